"""What every store of events can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.events import Event
    from agents_tools.store._filter import EventFilter
    from agents_tools.store._pending import Pending

__all__ = ["Durability", "EventStore", "SessionInfo"]

Durability: TypeAlias = Literal["normal", "sync"]
"""What an acknowledged event survives: `normal` the end of the process, whatever ends it; `sync`
the loss of power as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """What is known of one log of a store.

    Attributes:
        sid: Its name.
        events: How many events it holds.
        first: When the first one was emitted, in seconds since 1970; `None` when it is empty.
        last: When the last one was, likewise.
        last_id: The id of the last one; -1 when it is empty.
        size: How many bytes it takes, about.
    """

    sid: str
    events: int
    first: float | None
    last: float | None
    last_id: int
    size: int


class EventStore(Protocol):
    """Keeps the events of one log; other logs of the same place are reached with `session`.

    No method waits, except `close`: what takes time gives a `Pending`, for threads and event loops
    alike. All of them may be called in any thread. What goes wrong is an `EventStoreError`, in the
    `Pending`.

    Attributes:
        sid: The name of the log.
    """

    sid: str

    @property
    def last_id(self) -> int:
        """The id of the newest event that is stored; -1 when there is none."""
        ...

    @property
    def next_id(self) -> int:
        """The id that the next event is to have, beyond all that are stored or reserved."""
        ...

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> Pending[int]:
        """Store events in this order, all or none; begins at once.

        Events without an id get the next ones, on copies. Ids that are given have to increase, and
        to be beyond the last one.

        Args:
            events: The events.
            expect_seq: How many events the log has to hold before.
            durability: What they have to survive before this is done.

        Returns:
            The id of the last event of the log. What fails: `EventConflictError` when the log is
            not where it was expected, `EventStoreFullError`, `UserValueError` for an event without
            a JSON form.
        """
        ...

    def reserve(self, id: int, /) -> None:
        """Note that ids up to this one are given, though to events that are not stored.

        Cheap: a store may note a block of ids at a time.
        """
        ...

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> Pending[list[Event]]:
        """Give stored events in order of their ids.

        Args:
            after: Only those with greater ids.
            before: Only those with smaller ids.
            limit: How many at most.
            reverse: Newest first; `limit` then means the newest ones.
            where: Which ones.
        """
        ...

    def wait(self, after: int, /) -> Pending[int]:
        """Wait for an event with a greater id, whoever stores it; may be cancelled.

        Returns:
            The id of the newest event. It fails with `EventStoreError` when the store is closed.
        """
        ...

    def session(self, sid: str, /) -> EventStore:
        """Give another log of the same place, or this one once more."""
        ...

    def sessions(self) -> Pending[list[SessionInfo]]:
        """List the logs that hold events, by name."""
        ...

    def delete(self, sid: str, /) -> Pending[None]:
        """Forget a log with all its events; one that is not there is no error."""
        ...

    def close(self) -> None:
        """Finish what was begun and let go of the place; safe to call again.

        A store made with `session` closes that log alone; the one it was made of closes all.
        """
        ...
