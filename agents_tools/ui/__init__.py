"""User interfaces for events: terminals, notebooks, web pages and protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.server.application import HttpRequest as HttpRequest
    from agents_tools.server.run_manager import RunManager as RunManager
    from agents_tools.ui import (
        ag_ui as ag_ui,
        console as console,
        ndjson as ndjson,
        sse as sse,
        vercel as vercel,
    )
    from agents_tools.ui._app_limits import AppLimits as AppLimits
    from agents_tools.ui._handle_run import handle_run as handle_run
    from agents_tools.ui._mount import mount as mount
    from agents_tools.ui._serve import serve as serve

_EXTRA = "pip install -U 'agents-tools[ui]'"

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_app_limits": ("AppLimits",),
        "_handle_run": ("handle_run",),
        "_mount": ("mount",),
        "_serve": ("serve",),
        "agents_tools.server.application": ("HttpRequest",),
        "agents_tools.server.run_manager": ("RunManager",),
    },
    submodules=(
        "ag_ui",
        "console",
        "ndjson",
        "sse",
        "vercel",
    ),
    requires={
        "_handle_run": _EXTRA,
        "_mount": _EXTRA,
        "agents_tools.server.application": _EXTRA,
        "agents_tools.server.run_manager": _EXTRA,
    },
)
