"""The error of a queue."""

from __future__ import annotations

from agents_tools.errors import AgentsToolsError

__all__ = ["QueueError"]


class QueueError(AgentsToolsError):
    """The database of a queue cannot be used.

    Args:
        message: The problem and the remedy.
        store: The address of the database, without its password.
    """

    def __init__(self, message: str, *, store: str) -> None:
        super().__init__(message)
        self.store = store
