"""Events in, frames out: what tools and agents say, on terminals, web pages and in protocols.

The modules are found by name: `ui.console`, `ui.sse`, `ui.ndjson`, `ui.ag_ui`, `ui.vercel`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_tools.ui import (
        ag_ui as ag_ui,
        console as console,
        ndjson as ndjson,
        sse as sse,
        vercel as vercel,
    )

__all__ = ["ag_ui", "console", "ndjson", "sse", "vercel"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"agents_tools.ui.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
