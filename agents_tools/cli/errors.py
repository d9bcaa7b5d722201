"""The error that ends a command, and the exit codes that scripts rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents_tools.events.kinds import CallStatus

__all__ = [
    "BROKEN_PIPE",
    "CANCELLED",
    "EXIT_CODES",
    "FAILED",
    "FOUND",
    "OK",
    "USAGE",
    "CommandError",
]

OK = 0
FOUND = 1
"""`check` has found errors, or `schema --diff` a breaking change."""
FAILED = 1
"""The command itself failed: its output cannot be written."""
USAGE = 2
CANCELLED = 130
BROKEN_PIPE = 141
"""Standard output was closed: the code that a shell reports after SIGPIPE."""

EXIT_CODES: dict[CallStatus, int] = {
    "ok": OK,
    "tool_error": 1,
    "invalid_args": 3,
    "timeout": 4,
    "denied": 5,
    "overloaded": 5,
    "lost": 5,
    "cancelled": CANCELLED,
}
"""The exit code of `call` for each status of the call."""


class CommandError(Exception):
    """The command fails with a message, without a traceback.

    Args:
        message: The problem and its place.
        hint: How to fix it, shown on its own line.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
