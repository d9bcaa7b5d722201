"""Sessions: the conversations of an application, as lists of runs in a run store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.events.base import Event
    from agents_tools.persistence.run_store import RunStore
    from agents_tools.persistence.storage import RunInfo

__all__ = ["Session"]


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: an ordered list of runs under an id that the application chooses.

    Pass it as `Runner.run(..., session=...)`. A run continues the conversation of the earlier runs
    and becomes the last one. One run at a time is active in a session.

    Args:
        id: The id, for example of a chat.
        store: The store of the runs.
    """

    id: str
    store: RunStore

    def events(self) -> PendingFuture[list[Event]]:
        """Return the messages, calls and outputs of all runs, oldest first."""
        return self.store.conversation(self.id)

    def runs(self) -> PendingFuture[list[RunInfo]]:
        """List the runs, oldest first."""
        return self.store.runs(session=self.id)
