"""A handle on one log of a run store."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import (
    EventStoreError,
    LeaseLostError,
    UserValueError,
)
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.protocol import SessionInfo
from agents_tools.persistence.rows import event_to_row
from agents_tools.persistence.storage import (
    LogPosition,
    ReadSpan,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter
    from agents_tools.persistence.protocol import Durability
    from agents_tools.persistence.storage import (
        RunMessage,
    )
    from agents_tools.persistence.store_engine import StoreEngine


__all__ = ["StoredLog"]


class StoredLog:
    """A handle on one log of a store. The first append takes the lease of the log.

    It implements `EventStore`, so an `EventStream` can write and read it. Handles of one store on
    the same log share the lease, which ends when the last one is closed or the run ends.

    Args:
        engine: The engine of the store.
        sid: The name of the log: the id of the run.
        store: The store, which stays open while a handle exists.

    Attributes:
        sid: The name of the log: the id of the run.
    """

    def __init__(self, engine: StoreEngine, sid: str, *, store: object) -> None:
        _check_name(sid)
        self.sid = sid
        self._store = store
        self._engine = engine
        engine.check_open()
        self._state = self._engine.log_state(sid)
        self._closed = False

    @property
    def last_id(self) -> int:
        """The id of the newest stored event; -1 if there is none."""
        if self._state.epoch or self._is_closed():
            return self._state.newest_id
        return self._engine.read_here(lambda: self._engine.storage.position(self.sid)).last_id

    @property
    def next_id(self) -> int:
        """The id of the next event. Reading it takes the lease, if it is free."""
        if self._can_take():
            with contextlib.suppress(EventStoreError, TimeoutError):
                self.take().result(self._engine.storage.lease_ttl)
        if self._state.epoch or self._is_closed():
            return self._state.next_id
        position = self._engine.read_here(lambda: self._engine.storage.position(self.sid))
        return max(position.last_id, position.reserved) + 1

    def _can_take(self) -> bool:
        """Return whether to take the lease without an explicit request.

        A lease that was lost is not taken again: the log has events that this store has not seen.
        """
        state = self._state
        if state.epoch or self._is_closed() or isinstance(state.failure, LeaseLostError):
            return False
        return not self._engine.is_writer_thread

    @property
    def epoch(self) -> int:
        """The epoch of the lease that this store holds; 0 if it holds none."""
        return self._state.epoch

    def take(
        self, *, session: str | None = None, is_exclusive: bool = False
    ) -> PendingFuture[LogPosition]:
        """Take the lease, so that this store can append.

        Args:
            session: The session that the run becomes a part of.
            is_exclusive: Whether another handle of this store with the lease is refused as well.

        Returns:
            A future with the end of the log. It raises `RunInUseError` if another process holds the
            run, or another run of the session is active.
        """
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.take(self._state, session, is_exclusive=is_exclusive)

    def has_lease(self) -> PendingFuture[bool]:
        """Renew the lease; the future tells whether this store still holds it."""
        return self._engine.renew(self._state)

    def release(self) -> PendingFuture[None]:
        """Release the lease, so that another process can continue the run."""
        return self._engine.release(self._state)

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
        consumed: Sequence[int] = (),
    ) -> PendingFuture[int]:
        """Store events, all or none. Writing begins at once, in one batch with waiting appends.

        Args:
            events: The events. Those without an id get the next ids.
            expect_seq: The number of events that were ever appended to the log before.
            durability: `normal` survives the end of the process, `sync` also a power failure.
            consumed: The numbers of messages that are deleted with this append.
        """
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        try:
            rows = [event_to_row(event) for event in events]
        except Exception as error:  # noqa: BLE001 - raised by the future
            return PendingFuture.failed(error)
        return self._engine.append(
            self._state, rows, expect_seq, sync=durability == "sync", consumed=consumed
        )

    def defer(self, events: Sequence[Event]) -> bool:
        """Store display events later, together; return whether the store can do this."""
        return not self._is_closed() and self._engine.defer(self._state, events)

    def reserve(self, id: int, /) -> None:
        """Mark ids up to this one as used. Ids are reserved in blocks, ahead of use."""
        if not self._is_closed():
            self._engine.reserve(self._state, id)

    def read(
        self,
        after: int = INVALID_ID,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> PendingFuture[list[Event]]:
        """Return events in the order of their ids. Marks of secrets are read as `***`.

        Args:
            after: Only events with larger ids.
            before: Only events with smaller ids.
            limit: The largest number of events.
            reverse: Whether the newest events come first. `limit` then keeps the newest.
            where: The filter for events.
        """
        span = ReadSpan(after=after, before=before, limit=limit, reverse=reverse, where=where)
        return self._read(span)

    def read_all(self, *, where: EventFilter | None = None) -> PendingFuture[list[Event]]:
        """Return all events, with the registered secrets restored, to resume a run.

        Args:
            where: The filter for events.
        """
        return self._read(ReadSpan(where=where, restore=True))

    def _read(self, span: ReadSpan) -> PendingFuture[list[Event]]:
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.submit_read(lambda: self._engine.storage.read(self.sid, span))

    def wait(self, after: int, /) -> PendingFuture[int]:
        """Wait for an event with a larger id, from any process. The future can be cancelled."""
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.wait(self._state, after, is_message=False)

    def wait_message(self, after: int, /) -> PendingFuture[int]:
        """Wait for a message with a larger number, from any process."""
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.wait(self._state, after, is_message=True)

    def messages(self, after: int = 0, /) -> PendingFuture[list[RunMessage]]:
        """Return the messages to the run with larger numbers."""
        return self._engine.submit_read(lambda: self._engine.storage.messages(self.sid, after))

    def session(self, sid: str, /) -> StoredLog:
        """Return a handle on another log of the same store."""
        return StoredLog(self._engine, sid, store=self._store)

    def sessions(self) -> PendingFuture[list[SessionInfo]]:
        """List the logs that hold events, sorted by name."""

        def read() -> list[SessionInfo]:
            infos = sorted(self._engine.storage.logs(), key=lambda info: info.run_id)
            return [
                SessionInfo(
                    sid=info.run_id,
                    events=info.events,
                    first=info.started,
                    last=info.updated,
                    last_id=info.last_id,
                    size=info.size,
                )
                for info in infos
            ]

        return self._engine.submit_read(read)

    def delete(self, sid: str, /) -> PendingFuture[None]:
        """Delete a log with all its events. This fails while another process writes to it."""
        return self._engine.delete(sid)

    def close(self) -> None:
        """Finish pending writes, and release the lease if no other handle of the store needs it."""
        if not self._is_closed():
            self._closed = True
            self._engine.close_log(self._state)

    def _is_closed(self) -> bool:
        return self._closed or self._engine.closed

    def _closed_error(self) -> EventStoreError:
        place = self._engine.storage.place
        return EventStoreError(
            f"The log {self.sid!r} in {place} is closed. Open it again.", store=place
        )


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise UserValueError(f"The name of a log is not a string: got {name!r:.60}.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserValueError(
            f"The name of a log is not valid Unicode: got {name!r:.60}. Remove the lone surrogate."
        ) from None
