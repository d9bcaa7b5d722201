"""The log of a stream in memory: it numbers events and wakes the readers."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias
from weakref import WeakSet

from agents_tools.events.coalesce import coalesce, drop_display_events
from agents_tools.events.kinds import GapEvent
from agents_tools.persistence import PendingFuture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agents_tools.events.base import Event
    from agents_tools.persistence import EventFilter, EventStore

__all__ = ["Cursor", "EventLog", "LogReader", "Policy"]

Policy: TypeAlias = Literal["block", "coalesce", "drop_oldest"]
"""What happens when a reader is slow: senders wait, display events are merged, or dropped."""

BATCH: Final = 256
"""The number of events that a reader gets at a time."""

PAGE: Final = 1000
"""The number of events that are read from a store at a time."""

EventRange: TypeAlias = "tuple[list[Event], int]"
"""Events, and the id before which they are complete."""

_id = attrgetter("id")


class LogReader(Protocol):
    """A reader that waits for the next event."""

    rank: tuple[int, str, str]

    def wake(self) -> None:
        """Continue to read. Called in any thread, without a lock."""
        ...


class EventLog:
    """The recent events in the order of their ids, and their readers.

    Args:
        next_id: The id of the next event.
        last_id: The id of the newest event. Ids between the two can be unused.
        window: The approximate number of events that are kept in memory.
        store: The store with the older events.
        unsaved: Returns the events that are not in the store yet.
        has_gaps: Whether readers receive a `GapEvent` for ids without an event.
    """

    def __init__(
        self,
        next_id: int,
        last_id: int,
        *,
        window: int,
        store: EventStore | None,
        unsaved: Callable[[], list[Event]],
        has_gaps: bool = True,
    ) -> None:
        # Reentrant: a finalizer or a signal handler can interrupt this code and publish.
        self.lock = RLock()
        self.next_id = next_id
        self.last_id = last_id
        self.closed = False
        self.cut = False  # whether readers end at once and drop their unread events
        self.cursors: WeakSet[Cursor] = WeakSet()
        self.senders: list[PendingFuture[None]] = []
        self.waiting: dict[LogReader, None] = {}
        self.store = store
        self.unsaved = unsaved
        self.has_gaps = has_gaps
        self._events: list[Event] = []
        self._window: tuple[int, list[Event]] = (next_id, self._events)
        self._slack = max(window // 4, 16)
        self._limit = window + self._slack
        self._size = window
        self._retained: list[Event] = []
        self.room = -1  # `next_id` up to which no sender has to wait; -1 if it must be computed

    # --- writing, under the lock ------------------------------------------------------------------

    def append(self, event: Any) -> None:
        """Append an event and set its id."""
        event.id = self.last_id = self.next_id
        self.next_id += 1
        events = self._events
        events.append(event)
        if len(events) >= self._limit:
            self._trim()

    def take_waiting(self) -> list[LogReader]:
        """Remove and return the waiting readers, in the order in which they are woken."""
        woken = list(self.waiting)
        self.waiting.clear()
        if len(woken) > 1:
            woken.sort(key=_rank)
        return woken

    def _trim(self) -> None:
        """Drop the oldest events from memory, but retain those that a slow reader must not miss."""
        cursors = [cursor for cursor in self.cursors if not cursor.is_dead()]
        surplus = len(self._events) - self._size
        needed = [one for one in map(self._needed, cursors) if one is not None]
        first = min([self._events[surplus].id, *needed])
        surplus = bisect_left(self._events, first, key=_id)
        self._limit = max(len(self._events) - surplus, self._size) + self._slack
        behind = min((cursor.at for cursor in cursors), default=first)
        if behind < first:
            old = self._events[:surplus]
            self._retained = [event for event in self._retained if event.id >= behind]
            self._retained += [one for one in old if one.id >= behind and not one.droppable]
        else:
            self._retained = []
        self._events = self._events[surplus:]  # a new list: readers can hold the old one
        self._window = (first, self._events)

    def _needed(self, cursor: Cursor) -> int | None:
        """Return the first id that a reader with the policy `block` still needs; `None` for others.

        A reader that is more than `max_pending` events behind does not count either.
        """
        if cursor.blocks and self.next_id - cursor.at <= cursor.max_pending:
            return max(cursor.at, self._window[0])
        return None

    # --- reading ----------------------------------------------------------------------------------

    @property
    def first_id(self) -> int:
        """The first id that is in memory."""
        return self._window[0]

    def recent(self, at: int, limit: int | None = None) -> list[Event] | None:
        """Return the events in memory from an id on; `None` if older events are needed."""
        first, events = self._window
        if at < first:
            return None
        if not events or at > events[-1].id:
            return []
        index = at - first
        if index >= len(events) or events[index].id != at:
            index = bisect_left(events, at, key=_id)  # a read-only log can have gaps between ids
        return events[index:] if limit is None else events[index : index + limit]

    def read_older(
        self, at: int, where: EventFilter | None, *, gaps: bool = True
    ) -> PendingFuture[EventRange]:
        """Read events from an id on that are not in memory, with gaps for those not stored."""
        end = self.first_id
        gaps = gaps and self.has_gaps
        in_memory = {event.id: event for event in (*self._retained, *self.unsaved())}
        if self.store is None:
            return PendingFuture.now((_merge([], in_memory, at, end, where, gaps=gaps), end))
        done: PendingFuture[EventRange] = PendingFuture()

        def merge(read: PendingFuture[list[Event]]) -> None:
            try:
                stored = read.result()
                last = stored[-1].id + 1 if len(stored) == PAGE else end
                done.resolve((_merge(stored, in_memory, at, last, where, gaps=gaps), last))
            except Exception as error:  # noqa: BLE001 - raised to the waiting reader
                done.fail(error)

        read = self.store.read(at - 1, before=end, limit=PAGE, where=where)
        read.add_done_callback(merge)
        return done

    # --- senders ----------------------------------------------------------------------------------

    def is_full_for(self, senders: tuple[object, ...]) -> bool:
        """Return whether a reader with the policy `block`, except a sender, is too far behind."""
        if self.next_id <= self.room:
            return False
        with self.lock:
            cursors = [one for one in self.cursors if one.blocks and not one.is_dead()]
        rooms = [(one.seen + 1 + one.max_pending, one.owner) for one in cursors]
        self.room = min((room for room, _ in rooms), default=self.next_id + BATCH)
        return any(room < self.next_id and owner not in senders for room, owner in rooms)

    def release_senders(self) -> None:
        """Wake the waiting senders, which check again whether there is room."""
        with self.lock:
            senders, self.senders = self.senders, []
        for sender in senders:
            sender.resolve(None)

    def add_cursor(self, cursor: Cursor) -> None:
        """Register the cursor of a reader."""
        with self.lock:
            self.cursors.add(cursor)
            self.room = -1

    # --- forks ----------------------------------------------------------------------------------

    def after_fork(self, waiting: Iterable[LogReader]) -> None:
        """Reset the log in a forked child.

        Another thread of the parent can have been in the middle of `append`, so the state is
        derived from the list of events.

        Args:
            waiting: The readers that wait in the child. The others belong to the parent.
        """
        self.lock = RLock()
        first = self._events[0].id if self._events else self._window[0]
        self._window = (first, self._events)
        self.next_id = self._events[-1].id + 1 if self._events else first
        self.last_id = min(self.last_id, self.next_id - 1)
        self.waiting = dict.fromkeys(waiting)
        self.senders = []


def _rank(reader: LogReader) -> tuple[int, str, str]:
    return reader.rank


def _merge(
    stored: list[Event],
    in_memory: dict[int, Event],
    at: int,
    end: int,
    where: EventFilter | None,
    *,
    gaps: bool,
) -> list[Event]:
    chosen = {
        key: event
        for key, event in in_memory.items()
        if at <= key < end and (where is None or where.accepts(event))
    }
    events = stored
    if chosen:
        chosen.update((event.id, event) for event in stored)
        events = [chosen[key] for key in sorted(chosen)]
    return _fill_gaps(events, at, end) if gaps and where is None else events


def _fill_gaps(events: list[Event], first: int, end: int) -> list[Event]:
    """Return the events with a gap event for each range of missing ids.

    Args:
        events: The events with ids from `first` to `end`.
        first: The first id.
        end: The id after the last one.
    """
    if len(events) == end - first:
        return events
    complete: list[Event] = []
    for event in events:
        if event.id > first:
            complete.append(_gap(first, event.id, event))
        complete.append(event)
        first = event.id + 1
    if end > first:
        complete.append(_gap(first, end, events[-1] if events else None))
    return complete


def _gap(first: int, end: int, near: Event | None) -> GapEvent:
    """Return the event that replaces the missing events with ids from `first` to `end`."""
    timestamp = 0.0 if near is None else near.timestamp
    return GapEvent(end - first).replace(id=end - 1, timestamp=timestamp)


class Cursor:
    """The position of a reader in the log.

    Args:
        log: The log.
        at: The id to read next.
        policy: What happens when the reader is slow.
        max_pending: The number of events that can wait before the policy applies.
        where: The filter for events.

    Attributes:
        is_dead: Returns whether the reader can never read again.
    """

    __slots__ = (
        *("__weakref__", "_older", "_size", "at", "blocks", "is_dead", "log", "max_pending"),
        *("owner", "policy", "seen", "where"),
    )

    def __init__(
        self,
        log: EventLog,
        at: int,
        *,
        policy: Policy,
        max_pending: int,
        where: EventFilter | None,
    ) -> None:
        self.log = log
        self.at = at
        self.seen = at - 1
        self.policy: Policy = policy
        self.max_pending = max_pending
        self.where = where
        self.is_dead: Callable[[], bool] = _never
        self.blocks = False
        self.owner: object = None
        self._size = BATCH if policy == "block" else max_pending
        self._older: PendingFuture[list[Event]] | None = None
        log.add_cursor(self)

    def take(self) -> list[Event] | PendingFuture[list[Event]]:
        """Return the next events in order; an empty list if there are none now.

        A pending read of the store is returned again until `clear_pending` is called.
        """
        if self._older is not None:
            return self._older
        while True:
            events = self.log.recent(self.at, self._size)
            if events is None:
                self._older = self._take_older()
                return self._older
            if not events:
                return events
            if self.policy == "drop_oldest" and self.log.next_id - self.at > self.max_pending:
                events = self._take_newest(events)
            else:
                first, self.at = self.at, events[-1].id + 1
                events = self._prepare(events, first)
            if events:
                return events
            self.advance(self.at - 1)

    def clear_pending(self) -> None:
        """Forget the pending read, because it is done."""
        self._older = None

    def advance(self, id: int) -> None:
        """Set the id of the last event that the reader has handled."""
        self.seen = id
        if self.log.senders:
            self.log.release_senders()

    def start(self, owner: object) -> None:
        """Let senders wait for this reader from now on, if its policy is `block`."""
        self.owner = owner
        if self.policy == "block" and not self.blocks:
            self.blocks = True
            self.log.add_cursor(self)

    def leave(self) -> None:
        """Stop reading."""
        self.blocks = False
        with self.log.lock:
            self.log.cursors.discard(self)
        self.log.release_senders()

    def _prepare(self, events: list[Event], first: int) -> list[Event]:
        """Return events for the reader: filtered, with gaps, and merged if it coalesces."""
        if self.where is not None:
            events = self._matching(events)
        elif len(events) != self.at - first and self.log.has_gaps:
            events = _fill_gaps(events, first, self.at)
        return coalesce(events) if self.policy == "coalesce" and len(events) > 1 else events

    def _matching(self, events: list[Event]) -> list[Event]:
        accepts = None if self.where is None else self.where.accepts
        return events if accepts is None else [event for event in events if accepts(event)]

    def _take_newest(self, events: list[Event]) -> list[Event]:
        """Drop display events until at most `max_pending` events are waiting."""
        newest = self.log.next_id - self.max_pending
        waiting = self.log.recent(self.at) or events  # the window can move meanwhile
        old = [event for event in waiting if event.id < newest] or events
        self.at = old[-1].id + 1
        return drop_display_events(self._matching(old), 0)[0]

    def _take_older(self) -> PendingFuture[list[Event]]:
        done: PendingFuture[list[Event]] = PendingFuture()

        def finish(read: PendingFuture[EventRange]) -> None:
            try:
                events, self.at = read.result()
                if self.policy == "drop_oldest":
                    events, _ = drop_display_events(events, 0)
                done.resolve(coalesce(events) if self.policy == "coalesce" else events)
            except Exception as error:  # noqa: BLE001 - raised to the waiting reader
                done.fail(error)

        self.log.read_older(self.at, self.where).add_done_callback(finish)
        return done


def _never() -> bool:
    return False
