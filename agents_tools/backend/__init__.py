"""Where the body of a tool runs: in this process, in another one, on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.backend._protocol import (
    BackendCapabilities,
    BackendHealth,
    CallEnvelope,
    CallEvent,
    EventKind,
    ToolBackend,
)

if TYPE_CHECKING:
    from agents_tools.backend._execute import execute, pin_of
    from agents_tools.backend._ledger import Ledger
    from agents_tools.backend._local import LocalBackend
    from agents_tools.backend._process import ProcessBackend
    from agents_tools.backend._remote import remote_tools, run_on

__all__ = [
    "BackendCapabilities",
    "BackendHealth",
    "CallEnvelope",
    "CallEvent",
    "EventKind",
    "Ledger",
    "LocalBackend",
    "ProcessBackend",
    "ToolBackend",
    "execute",
    "pin_of",
    "remote_tools",
    "run_on",
]

_LATE = {
    "Ledger": "_ledger",
    "LocalBackend": "_local",
    "ProcessBackend": "_process",
    "execute": "_execute",
    "pin_of": "_execute",
    "remote_tools": "_remote",
    "run_on": "_remote",
}


def __getattr__(name: str) -> Any:
    """Import a backend, and what goes with it, when it is first asked for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
