"""An event store in memory, for tests and for events that need not be kept."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from itertools import islice
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import EventConflictError, EventStoreError
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.protocol import SessionInfo
from agents_tools.persistence.unknown_event import event_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter
    from agents_tools.persistence.protocol import Durability

__all__ = ["MemoryEventStore"]

_id = attrgetter("id")


class MemoryEventStore:
    """An event store in memory. It holds JSON-compatible copies of the events.

    Args:
        sid: The name of the log.
    """

    def __init__(self, sid: str = "default", *, _parent_state: _SharedState | None = None) -> None:
        self.sid = sid
        self._shared = _parent_state or _SharedState()
        self._log = self._shared.log(sid)
        self._root = _parent_state is None
        self._closed = False
        self._waiting: dict[PendingFuture[int], int] = {}
        self._log.readers.append(self)

    @property
    def last_id(self) -> int:
        """The id of the newest event; -1 if there is none."""
        return self._log.last_id

    @property
    def next_id(self) -> int:
        """The id of the next event."""
        return max(self._log.last_id, self._log.reserved) + 1

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> PendingFuture[int]:
        """Store events, all or none."""
        del durability  # memory is lost with the process in any case
        try:
            copies = [event_of(event.to_dict()) for event in events]
            with self._shared.lock:
                self._check_open()
                last = self._log.extend(copies, expect_seq, self.next_id, self._name)
                woken = [one for reader in self._log.readers for one in reader.due(last)]
        except Exception as error:  # noqa: BLE001 - raised by the future
            return PendingFuture.failed(error)
        for pending in woken:
            pending.resolve(last)
        return PendingFuture.now(last)

    def reserve(self, id: int, /) -> None:
        """Mark ids up to this one as used."""
        self._log.reserved = max(self._log.reserved, id)

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> PendingFuture[list[Event]]:
        """Return events in the order of their ids."""
        if self._closed:
            return PendingFuture.failed(self._closed_error())
        events = self._log.events
        first = bisect_right(events, after, key=_id)
        end = len(events) if before is None else bisect_left(events, before, key=_id)
        selected = events[first:end]
        if reverse:
            selected.reverse()
        matching = selected if where is None else filter(where.accepts, selected)
        return PendingFuture.now(
            list(matching if limit is None else islice(matching, max(limit, 0)))
        )

    def wait(self, after: int, /) -> PendingFuture[int]:
        """Wait for an event with a larger id."""
        with self._shared.lock:
            if self._closed:
                return PendingFuture.failed(self._closed_error())
            if self._log.last_id > after:
                return PendingFuture.now(self._log.last_id)
            pending: PendingFuture[int] = PendingFuture(
                on_cancel=lambda: self._waiting.pop(pending, None)
            )
            self._waiting[pending] = after
        return pending

    def session(self, sid: str, /) -> MemoryEventStore:
        """Return another log of the same memory."""
        with self._shared.lock:
            self._check_open()
            return MemoryEventStore(sid, _parent_state=self._shared)

    def sessions(self) -> PendingFuture[list[SessionInfo]]:
        """List the logs that hold events."""
        if self._closed:
            return PendingFuture.failed(self._closed_error())
        with self._shared.lock:
            logs = sorted(self._shared.logs.items())
        return PendingFuture.now([_describe(sid, log.events[:]) for sid, log in logs if log.events])

    def delete(self, sid: str, /) -> PendingFuture[None]:
        """Delete a log."""
        if self._closed:
            return PendingFuture.failed(self._closed_error())
        with self._shared.lock:
            self._shared.log(sid).clear()
        return PendingFuture.now(None)

    def close(self) -> None:
        """Fail the pending waits and close the store.

        The events stay in memory while another store refers to them.
        """
        with self._shared.lock:
            handles = [self]
            if self._root:
                handles = [one for log in self._shared.logs.values() for one in log.readers]
            waiting = [pending for one in handles for pending in one.let_go()]
        for pending in waiting:
            pending.fail(self._closed_error())

    # --- under the lock ---------------------------------------------------------------------------

    def due(self, last: int) -> list[PendingFuture[int]]:
        """Remove and return the futures that wait for an event up to this id."""
        due = [pending for pending, after in self._waiting.items() if last > after]
        for pending in due:
            del self._waiting[pending]
        return due

    def let_go(self) -> list[PendingFuture[int]]:
        """Close the store and return the futures that wait."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._closed = True
        if self in self._log.readers:
            self._log.readers.remove(self)
        return waiting

    def _check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> EventStoreError:
        return EventStoreError(f"The {self._name} is closed.", store=self._name)

    @property
    def _name(self) -> str:
        return f"log {self.sid!r} in memory"


class _SharedState:
    """The logs and the lock of one store."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.logs: dict[str, _MemoryLog] = {}
        _states.add(self)

    def log(self, sid: str) -> _MemoryLog:
        return self.logs.setdefault(sid, _MemoryLog())

    def after_fork(self) -> None:
        """Reset in a forked child: another thread of the parent can have held the lock."""
        self.lock = RLock()
        for log in self.logs.values():
            log.last_id = log.events[-1].id if log.events else INVALID_ID


_states: WeakSet[_SharedState] = WeakSet()


def _after_fork() -> None:
    for state in list(_states):
        state.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _MemoryLog:
    """The events of one log, and the stores that refer to it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.readers: list[MemoryEventStore] = []
        self.last_id = INVALID_ID
        self.reserved = INVALID_ID

    def extend(self, events: list[Event], expected: int | None, next_id: int, name: str) -> int:
        if expected is not None and expected != len(self.events):
            raise EventConflictError(
                f"The {name} has another writer: expected {expected:,} events, got "
                f"{len(self.events):,}. Read the new events and try again.",
                store=name,
            )
        last = self.last_id
        for event in events:
            if event.id == INVALID_ID:
                mutable: Any = event
                mutable.id = max(next_id, last + 1)
            elif event.id <= last:
                raise EventConflictError(
                    f"The {name} already has the id {event.id}: expected at least "
                    f"{max(next_id, last + 1)}. Append only new events.",
                    store=name,
                )
            last = event.id
        self.events += events
        self.last_id = last
        return last

    def clear(self) -> None:
        self.events = []
        self.last_id = INVALID_ID
        self.reserved = INVALID_ID


def _describe(sid: str, events: list[Event]) -> SessionInfo:
    import json

    return SessionInfo(
        sid=sid,
        events=len(events),
        first=events[0].timestamp,
        last=events[-1].timestamp,
        last_id=events[-1].id,
        size=sum(len(json.dumps(event.to_dict())) for event in events),
    )
