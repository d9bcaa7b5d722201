"""A store that lasts as long as the process: for tests, and for what need not be kept."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any

from agents_tools.errors import EventConflictError, EventStoreError
from agents_tools.events import INVALID_ID, Event
from agents_tools.store._pending import Pending
from agents_tools.store._protocol import SessionInfo
from agents_tools.store._unknown import event_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.store._filter import EventFilter
    from agents_tools.store._protocol import Durability

__all__ = ["MemoryEventStore"]

_id = attrgetter("id")


class MemoryEventStore:
    """Keeps events in memory, in the form that they have after a way over JSON.

    Args:
        sid: The name of the log.
    """

    def __init__(self, sid: str = "default", *, _place: _Place | None = None) -> None:
        self.sid = sid
        self._place = _place or _Place()
        self._log = self._place.log(sid)
        self._root = _place is None
        self._closed = False
        self._waiting: dict[Pending[int], int] = {}
        self._log.readers.append(self)

    @property
    def last_id(self) -> int:
        """The id of the newest event; -1 when there is none."""
        return self._log.last_id

    @property
    def next_id(self) -> int:
        """The id that the next event is to have."""
        return max(self._log.last_id, self._log.reserved) + 1

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> Pending[int]:
        """Store events, all or none."""
        del durability  # memory is lost with the process in any case
        try:
            copies = [event_of(event.to_dict()) for event in events]
            with self._place.lock:
                self._check_open()
                last = self._log.extend(copies, expect_seq, self.next_id, self._name)
                woken = [one for reader in self._log.readers for one in reader.due(last)]
        except Exception as error:  # noqa: BLE001 - whoever waits for the outcome gets it
            return Pending.failed(error)
        for pending in woken:
            pending.resolve(last)
        return Pending.now(last)

    def reserve(self, id: int, /) -> None:
        """Note that ids up to this one are given."""
        self._log.reserved = max(self._log.reserved, id)

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> Pending[list[Event]]:
        """Give events in order of their ids."""
        if self._closed:
            return Pending.failed(self._is_closed())
        events = self._log.events
        first = bisect_right(events, after, key=_id)
        end = len(events) if before is None else bisect_left(events, before, key=_id)
        part = events[first:end]
        if reverse:
            part.reverse()
        chosen = part if where is None else filter(where.accepts, part)
        return Pending.now(list(chosen if limit is None else islice(chosen, max(limit, 0))))

    def wait(self, after: int, /) -> Pending[int]:
        """Wait for an event with a greater id."""
        with self._place.lock:
            if self._closed:
                return Pending.failed(self._is_closed())
            if self._log.last_id > after:
                return Pending.now(self._log.last_id)
            pending: Pending[int] = Pending(on_cancel=lambda: self._waiting.pop(pending, None))
            self._waiting[pending] = after
        return pending

    def session(self, sid: str, /) -> MemoryEventStore:
        """Give another log of the same memory."""
        with self._place.lock:
            self._check_open()
            return MemoryEventStore(sid, _place=self._place)

    def sessions(self) -> Pending[list[SessionInfo]]:
        """List the logs that hold events."""
        if self._closed:
            return Pending.failed(self._is_closed())
        with self._place.lock:
            logs = sorted(self._place.logs.items())
        return Pending.now([_described(sid, log.events[:]) for sid, log in logs if log.events])

    def delete(self, sid: str, /) -> Pending[None]:
        """Forget a log."""
        if self._closed:
            return Pending.failed(self._is_closed())
        with self._place.lock:
            self._place.log(sid).clear()
        return Pending.now(None)

    def close(self) -> None:
        """Release whoever waits; what is stored stays while a handle to it is there."""
        with self._place.lock:
            handles = [self]
            if self._root:
                handles = [one for log in self._place.logs.values() for one in log.readers]
            waiting = [pending for one in handles for pending in one.let_go()]
        for pending in waiting:
            pending.fail(self._is_closed())

    # --- under the lock ---------------------------------------------------------------------------

    def due(self, last: int) -> list[Pending[int]]:
        """Take out those who waited for what is there now."""
        due = [pending for pending, after in self._waiting.items() if last > after]
        for pending in due:
            del self._waiting[pending]
        return due

    def let_go(self) -> list[Pending[int]]:
        """Become closed, and give those who waited."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._closed = True
        if self in self._log.readers:
            self._log.readers.remove(self)
        return waiting

    def _check_open(self) -> None:
        if self._closed:
            raise self._is_closed()

    def _is_closed(self) -> EventStoreError:
        return EventStoreError(f"The {self._name} is closed.", store=self._name)

    @property
    def _name(self) -> str:
        return f"log {self.sid!r} in memory"


class _Place:
    """What the logs of one store share."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.logs: dict[str, _Log] = {}

    def log(self, sid: str) -> _Log:
        return self.logs.setdefault(sid, _Log())


class _Log:
    """The events of one log, and who looks at it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.readers: list[MemoryEventStore] = []
        self.last_id = INVALID_ID
        self.reserved = INVALID_ID

    def extend(self, events: list[Event], expected: int | None, next_id: int, name: str) -> int:
        if expected is not None and expected != len(self.events):
            raise EventConflictError(
                f"The {name} holds {len(self.events):,} events where {expected:,} were expected: "
                "somebody else has written to it. Read what is new and try again.",
                store=name,
            )
        last = self.last_id
        for event in events:
            if event.id == INVALID_ID:
                thawed: Any = event
                thawed.id = max(next_id, last + 1)
            elif event.id <= last:
                raise EventConflictError(
                    f"The {name} has the id {event.id} already; the next one is "
                    f"{max(next_id, last + 1)}.",
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


def _described(sid: str, events: list[Event]) -> SessionInfo:
    import json

    return SessionInfo(
        sid=sid,
        events=len(events),
        first=events[0].timestamp,
        last=events[-1].timestamp,
        last_id=events[-1].id,
        size=sum(len(json.dumps(event.to_dict())) for event in events),
    )
