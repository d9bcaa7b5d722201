"""What ends a command early, and the exit codes that scripts rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents_tools.events.kinds import CallStatus

__all__ = [
    "BROKEN_PIPE",
    "CANCELLED",
    "EXIT_CODES",
    "FOUND",
    "OK",
    "USAGE",
    "CommandError",
]

OK = 0
FOUND = 1
"""`check` has found errors, or `schema --diff` a breaking change."""
USAGE = 2
CANCELLED = 130
BROKEN_PIPE = 141
"""Whoever read standard output has gone: what a shell reports for a program so ended."""

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
"""What `call` exits with, by how the call ended."""


class CommandError(Exception):
    """The command cannot do what was asked; the message is shown without a traceback.

    Args:
        message: What is wrong and where.
        hint: What to do about it, on a line of its own.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
