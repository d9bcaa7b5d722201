"""A tool that runs commands in a persistent bash session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.builtin.terminal.definition import (
        BashTool as BashTool,
        TerminalAction as TerminalAction,
        TerminalObservation as TerminalObservation,
        TerminalTool as TerminalTool,
    )
    from agents_tools.builtin.terminal.executor import (
        BashExecutor as BashExecutor,
        TerminalExecutor as TerminalExecutor,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "definition": (
            "BashTool",
            "TerminalAction",
            "TerminalObservation",
            "TerminalTool",
        ),
        "executor": (
            "BashExecutor",
            "TerminalExecutor",
        ),
    },
)
