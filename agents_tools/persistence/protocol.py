"""The protocol of event stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter

__all__ = ["Durability", "EventStore", "RunStatus", "SessionInfo"]

RunStatus: TypeAlias = Literal["running", "interrupted", "ok", "error", "cancelled"]
"""The status of a run. `interrupted` runs wait for a person. A `running` run whose lease is free is
orphaned: its process has ended."""

Durability: TypeAlias = Literal["normal", "sync"]
"""The failures that a stored event survives: `normal` the end of the process, also by a crash;
`sync` also a power failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A summary of one log of a store.

    Attributes:
        sid: The name of the log.
        events: The number of events.
        first: The time of the first event, in seconds since 1970; `None` if the log is empty.
        last: The time of the last event, in seconds since 1970; `None` if the log is empty.
        last_id: The id of the last event; -1 if the log is empty.
        size: The approximate size in bytes.
    """

    sid: str
    events: int
    first: float | None
    last: float | None
    last_id: int
    size: int


class EventStore(Protocol):
    """A store for the events of one log. `session` returns other logs of the same store.

    Only `close` blocks. Methods that take time return a `PendingFuture`, which works in threads
    and event loops. All methods can be called in any thread. Failures are raised by the
    `PendingFuture` as an `EventStoreError`.

    Attributes:
        sid: The name of the log.
    """

    sid: str

    @property
    def last_id(self) -> int:
        """The id of the newest stored event; -1 if there is none."""
        ...

    @property
    def next_id(self) -> int:
        """The id of the next event, larger than all stored and reserved ids."""
        ...

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> PendingFuture[int]:
        """Store events in this order, all or none. Writing begins at once.

        Events without an id are copied and get the next ids. Existing ids must increase and be
        larger than the last id of the log.

        Args:
            events: The events.
            expect_seq: The number of events that the log must hold before.
            durability: The failures that the events must survive when the future is done.

        Returns:
            A future with the id of the last event of the log. It raises `EventConflictError` if the
            log is not in the expected state, `EventStoreFullError`, or `UserValueError` for an
            event without a JSON form.
        """
        ...

    def reserve(self, id: int, /) -> None:
        """Mark ids up to this one as used by events that are not stored.

        This is cheap, because a store can reserve a block of ids at a time.
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
    ) -> PendingFuture[list[Event]]:
        """Return stored events in the order of their ids.

        Args:
            after: Return only events with larger ids.
            before: Return only events with smaller ids.
            limit: The largest number of events.
            reverse: Whether to return the newest events first. `limit` then keeps the newest.
            where: The filter for events.
        """
        ...

    def wait(self, after: int, /) -> PendingFuture[int]:
        """Wait for an event with a larger id, also from another process.

        Returns:
            A future with the id of the newest event; it can be cancelled. It raises
            `EventStoreError` when the store is closed.
        """
        ...

    def session(self, sid: str, /) -> EventStore:
        """Return a log of the same store, by name. It can also be this log."""
        ...

    def sessions(self) -> PendingFuture[list[SessionInfo]]:
        """List the logs that hold events, sorted by name."""
        ...

    def delete(self, sid: str, /) -> PendingFuture[None]:
        """Delete a log with all its events. A missing log is not an error."""
        ...

    def close(self) -> None:
        """Finish pending writes and close the log. It can be called again.

        A store that `session` returned closes only its log; the original store closes all logs.
        """
        ...
