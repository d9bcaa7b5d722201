"""A tool that runs commands in a bash which stays, and what it takes and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.builtin.terminal.definition import (
    BashTool,
    TerminalAction,
    TerminalObservation,
    TerminalTool,
)

if TYPE_CHECKING:
    from agents_tools.builtin.terminal.impl import BashExecutor, TerminalExecutor

__all__ = [
    "BashExecutor",
    "BashTool",
    "TerminalAction",
    "TerminalExecutor",
    "TerminalObservation",
    "TerminalTool",
]


def __getattr__(name: str) -> Any:
    """Give the executor, which is imported when it is asked for."""
    if name in {"BashExecutor", "TerminalExecutor"}:
        from agents_tools.builtin.terminal import impl

        return getattr(impl, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
