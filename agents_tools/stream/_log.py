"""The one log of a stream in memory, which gives events their ids and wakes who reads it."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias
from weakref import WeakSet

from agents_tools.store import Pending
from agents_tools.stream._squeeze import coalesced, with_gaps, without_droppable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agents_tools.events import Event
    from agents_tools.store import EventFilter, EventStore

__all__ = ["Cursor", "Log", "Policy", "Reader"]

Policy: TypeAlias = Literal["block", "coalesce", "drop_oldest"]
"""What happens when a reader is slow: senders wait, display events are merged, or left out."""

HANDFUL: Final = 256
"""How many events a reader takes at a time."""

PAGE: Final = 1000
"""How many events are read from a store at a time."""

Stretch: TypeAlias = "tuple[list[Event], int]"
"""Events, and the id up to which they are complete."""

_id = attrgetter("id")


class Reader(Protocol):
    """Somebody who waits for the next event."""

    rank: tuple[int, str, str]

    def wake(self) -> None:
        """Read on; called in any thread, outside of every lock."""
        ...


class Log:
    """The recent events in the order of their ids, and everybody who reads them.

    Args:
        next_id: The id of the next event.
        last_id: The id of the newest event; there may be ids between the two that nobody has.
        window: How many events are kept, about.
        store: Where older ones can be read.
        unsaved: Gives those that are on their way into the store.
    """

    def __init__(
        self,
        next_id: int,
        last_id: int,
        *,
        window: int,
        store: EventStore | None,
        unsaved: Callable[[], list[Event]],
    ) -> None:
        # Reentrant: a finalizer or a signal handler may run in here and have something to say.
        self.lock = RLock()
        self.next_id = next_id
        self.last_id = last_id
        self.closed = False
        self.cut = False  # whether readers end at once, without what they have not read
        self.cursors: WeakSet[Cursor] = WeakSet()
        self.senders: list[Callable[[], Any]] = []
        self.waiting: dict[Reader, None] = {}
        self.store = store
        self.unsaved = unsaved
        self._events: list[Event] = []
        self._window: tuple[int, list[Event]] = (next_id, self._events)
        self._slack = max(window // 4, 16)
        self._limit = window + self._slack
        self._size = window
        self._attic: list[Event] = []
        self.room = -1

    # --- writing, under the lock ------------------------------------------------------------------

    def put(self, event: Any) -> None:
        """Give an event the next id, and append it."""
        event.id = self.last_id = self.next_id
        self.next_id += 1
        events = self._events
        events.append(event)
        if len(events) >= self._limit:
            self._trim()

    def take_waiting(self) -> list[Reader]:
        """Give everybody who waits, in the order in which they are told."""
        woken = list(self.waiting)
        self.waiting.clear()
        if len(woken) > 1:
            woken.sort(key=_rank)
        return woken

    def _trim(self) -> None:
        """Let go of the oldest events, but keep what a slow reader must not miss."""
        cursors = [cursor for cursor in self.cursors if not cursor.is_dead()]
        surplus = len(self._events) - self._size
        needed = [one for one in map(self._needed, cursors) if one is not None]
        first = min([self._events[surplus].id, *needed])
        surplus = bisect_left(self._events, first, key=_id)
        self._limit = max(len(self._events) - surplus, self._size) + self._slack
        behind = min((cursor.at for cursor in cursors), default=first)
        if behind < first:
            old = self._events[:surplus]
            self._attic = [event for event in self._attic if event.id >= behind]
            self._attic += [one for one in old if one.id >= behind and not one.droppable]
        else:
            self._attic = []
        self._events = self._events[surplus:]  # a new list: readers may hold the old one
        self._window = (first, self._events)

    def _needed(self, cursor: Cursor) -> int | None:
        """Give the id up to which senders keep a reader supplied; `None` if they do not."""
        if cursor.blocks and self.next_id - cursor.at <= cursor.max_pending:
            return max(cursor.at, self._window[0])
        return None

    # --- reading ----------------------------------------------------------------------------------

    @property
    def first_id(self) -> int:
        """From which id on events are in memory."""
        return self._window[0]

    def recent(self, at: int, limit: int | None = None) -> list[Event] | None:
        """Give events in memory from an id on; `None` if they are older than what is there."""
        first, events = self._window
        if at < first:
            return None
        index = at - first
        if index < len(events) and events[index].id != at:
            index = bisect_left(events, at, key=_id)  # ids are not dense in what is only read
        return events[index:] if limit is None else events[index : index + limit]

    def older(self, at: int, where: EventFilter | None, *, gaps: bool = True) -> Pending[Stretch]:
        """Give events from an id on that are not in memory any more; gaps for what is nowhere."""
        end = self.first_id
        kept = {event.id: event for event in (*self._attic, *self.unsaved())}
        if self.store is None:
            return Pending.now((_merged([], kept, at, end, where, gaps=gaps), end))
        done: Pending[Stretch] = Pending()

        def merge(read: Pending[list[Event]]) -> None:
            try:
                stored = read.result()
                last = stored[-1].id + 1 if len(stored) == PAGE else end
                done.resolve((_merged(stored, kept, at, last, where, gaps=gaps), last))
            except Exception as error:  # noqa: BLE001 - whoever waits gets it
                done.fail(error)

        read = self.store.read(at - 1, before=end, limit=PAGE, where=where)
        read.add_done_callback(merge)
        return done

    # --- senders ----------------------------------------------------------------------------------

    def is_full_for(self, senders: tuple[object, ...]) -> bool:
        """Whether a reader that must not miss anything is too far behind, besides the senders."""
        if self.next_id <= self.room:
            return False
        with self.lock:
            cursors = [one for one in self.cursors if one.blocks and not one.is_dead()]
        rooms = [(one.seen + 1 + one.max_pending, one.owner) for one in cursors]
        self.room = min((room for room, _ in rooms), default=self.next_id + HANDFUL)
        return any(room < self.next_id and owner not in senders for room, owner in rooms)

    def release_senders(self) -> None:
        """Let those who send look again."""
        with self.lock:
            senders, self.senders = self.senders, []
        for wake in senders:
            wake()

    def enter(self, cursor: Cursor) -> None:
        """Know of a reader."""
        with self.lock:
            self.cursors.add(cursor)
            self.room = -1

    # --- forks ----------------------------------------------------------------------------------

    def after_fork(self, waiting: Iterable[Reader]) -> None:
        """Start anew in a child, where only these readers wait: the others belong to the parent."""
        self.lock = RLock()
        self.waiting = dict.fromkeys(waiting)
        self.senders = []


def _rank(reader: Reader) -> tuple[int, str, str]:
    return reader.rank


def _merged(
    stored: list[Event],
    kept: dict[int, Event],
    at: int,
    end: int,
    where: EventFilter | None,
    *,
    gaps: bool,
) -> list[Event]:
    chosen = {
        key: event
        for key, event in kept.items()
        if at <= key < end and (where is None or where.accepts(event))
    }
    events = stored
    if chosen:
        chosen.update((event.id, event) for event in stored)
        events = [chosen[key] for key in sorted(chosen)]
    return with_gaps(events, at, end) if gaps and where is None else events


class Cursor:
    """A place in the log from which somebody reads on.

    Args:
        log: The log.
        at: The id to read next.
        policy: What happens when the reader is slow.
        max_pending: How far the reader may be behind before that happens.
        where: Which events it wants.

    Attributes:
        is_dead: Tells whether the reader can never read again.
    """

    __slots__ = (
        *("__weakref__", "_older", "_size", "at", "blocks", "is_dead", "log", "max_pending"),
        *("owner", "policy", "seen", "where"),
    )

    def __init__(
        self,
        log: Log,
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
        self._size = HANDFUL if policy == "block" else max_pending
        self._older: Pending[list[Event]] | None = None
        log.enter(self)

    def take(self) -> list[Event] | Pending[list[Event]]:
        """Give the next events, in order; none if there are none now.

        What is pending is given again and again, until `took` says that it has arrived.
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
                events = self._wanted(events, first)
            if events:
                return events
            self.advance(self.at - 1)

    def took(self) -> None:
        """Note that what was pending has arrived, or never will."""
        self._older = None

    def advance(self, id: int) -> None:
        """Note how far the reader is."""
        self.seen = id
        if self.log.senders:
            self.log.release_senders()

    def start(self, owner: object) -> None:
        """Let senders wait for this reader from now on, if that is its policy."""
        self.owner = owner
        if self.policy == "block" and not self.blocks:
            self.blocks = True
            self.log.enter(self)

    def leave(self) -> None:
        """Read no more."""
        self.blocks = False
        with self.log.lock:
            self.log.cursors.discard(self)
        self.log.release_senders()

    def _wanted(self, events: list[Event], first: int) -> list[Event]:
        """Give what the reader wants of the events from an id on."""
        if self.where is not None:
            events = self._matching(events)
        elif len(events) != self.at - first:
            events = with_gaps(events, first, self.at)
        return coalesced(events) if self.policy == "coalesce" and len(events) > 1 else events

    def _matching(self, events: list[Event]) -> list[Event]:
        accepts = None if self.where is None else self.where.accepts
        return events if accepts is None else [event for event in events if accepts(event)]

    def _take_newest(self, events: list[Event]) -> list[Event]:
        """Leave out display events until at most `max_pending` events are waiting."""
        newest = self.log.next_id - self.max_pending
        waiting = self.log.recent(self.at) or events  # the window may have moved on meanwhile
        old = [event for event in waiting if event.id < newest] or events
        self.at = old[-1].id + 1
        return without_droppable(self._matching(old))

    def _take_older(self) -> Pending[list[Event]]:
        done: Pending[list[Event]] = Pending()

        def go_on(read: Pending[Stretch]) -> None:
            try:
                events, self.at = read.result()
                if self.policy == "drop_oldest":
                    events = without_droppable(events)
                done.resolve(coalesced(events) if self.policy == "coalesce" else events)
            except Exception as error:  # noqa: BLE001 - whoever waits gets it
                done.fail(error)

        self.log.older(self.at, self.where).add_done_callback(go_on)
        return done


def _never() -> bool:
    return False
