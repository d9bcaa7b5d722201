"""The event stream itself."""

from __future__ import annotations

import logging
import os
import weakref
from collections import deque
from contextlib import suppress
from itertools import islice
from threading import RLock
from time import monotonic, perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from uuid import uuid4

from agents_tools._secrets import has_secrets
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.events import (
    INVALID_ID,
    Event,
    EventSource,
    NotifyStreamEvent,
    Origin,
    RunFinishedEvent,
    RunStartedEvent,
)
from agents_tools.store import EventFilter, Pending
from agents_tools.stream._bounds import bounded
from agents_tools.stream._feed import Feed
from agents_tools.stream._follower import Follower
from agents_tools.stream._given import as_event, as_source, check_options, first_after
from agents_tools.stream._history import newest_first, oldest_first
from agents_tools.stream._log import Cursor, Log
from agents_tools.stream._masking import Masker
from agents_tools.stream._saving import Saver
from agents_tools.stream._subscription import Subscription, speaker
from agents_tools.stream._subscriptions import Subscriptions, in_loop
from agents_tools.stream._waking import Home, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from agents_tools.action import Action, Observation
    from agents_tools.store import EventStore
    from agents_tools.stream._log import Policy, Reader

__all__ = ["EventStream"]

_log = logging.getLogger("agents_tools")

_all: Final[weakref.WeakSet[EventStream]] = weakref.WeakSet()

_TURN: Final = 0.001
"""How long a sender may hold the event loop before readers get a turn, in seconds."""

_LOOK: Final = 1.0
"""How often whoever waits for a slow reader looks whether it is still there, in seconds."""


class EventStream:
    """The events of a session: published from anywhere, numbered, kept, and read by many.

    Ids are dense and increasing; everybody sees events in the order of their ids. Publishing never
    waits, for no reader and for no store. Durable events are stored in the background; `flush`
    tells when they are safe. Recent events are kept in memory; a reader that begins earlier, or is
    far behind, gets older ones from the store, and a `GapEvent` for what is nowhere. Durable events
    and those that tell of the begin and end of something are never left out for a slow reader.

    ::

        async with EventStream(store) as stream:
            stream.subscribe("server", callback)
            async for event in stream.follow(after=last_id):
                ...

    Args:
        store: Where durable events are kept; nowhere by default. It stays open.
        sid: The name of the session; the log of that name is used.
        user_id: Whose session it is; for the user of the stream.
        keep: Which events are stored: `durable` ones, and where runs begin and end; or `all`.
        window: How many recent events are kept in memory.
        secrets: Values that are masked in this stream, by name, besides the registered ones.
        on_error: Gets what a callback or the store raised, the event (or `None`), and who it was.
        read_only: Follow a log that somebody else writes; publishing is refused.

    Attributes:
        sid: The name of the session.
        user_id: Whose session it is.
        store: The log in which events are kept.
        first_id: The id of the first event that is published here; those before it were others'.
        errors: The last 100 errors of callbacks and of the store.
    """

    def __init__(
        self,
        store: EventStore | None = None,
        *,
        sid: str | None = None,
        user_id: str | None = None,
        keep: Literal["durable", "all"] = "durable",
        window: int = 10_000,
        secrets: Mapping[str, str] | None = None,
        on_error: Callable[[Exception, Event | None, str], Any] | None = None,
        read_only: bool = False,
    ) -> None:
        if window < 1:
            raise UserValueError(f"window must be at least 1 event, not {window!r}.")
        if keep not in {"durable", "all"}:
            raise UserValueError(f"keep is 'durable' or 'all', not {keep!r}.")
        if read_only and store is None:
            raise UserValueError("A read-only stream needs the store that it reads.")
        if store is not None and sid is not None and sid != store.sid:
            store = store.session(sid)
        self.sid = sid or (store.sid if store is not None else uuid4().hex)
        self.user_id = user_id
        self.store = store
        self.errors: deque[Exception] = deque(maxlen=100)
        self._on_error = on_error
        self._keep_all = keep == "all"
        self._read_only = read_only
        self._saver = Saver(store, self._not_stored) if store and not read_only else None
        last = INVALID_ID if store is None else store.last_id
        first = last + 1 if store is None or read_only else store.next_id
        unsaved = self._saver.unsaved if self._saver else _nothing
        self.first_id = first
        self._log = Log(first, last, window=window, store=store, unsaved=unsaved)
        self._lock = self._log.lock
        self._closed = False
        self._refusing = read_only  # whether nothing may be published
        self._busy = False
        self._late: deque[Event] = deque()
        self._subscriptions = Subscriptions(self._report, self._note)
        self._next_turn = 0.0
        self._warned = False
        self._secrets: dict[str, str] = dict(secrets or {})
        self._masker = Masker(self._secrets)
        _all.add(self)
        self._feed: Feed | None = None
        if read_only and store is not None:
            fed, ended = weakref.WeakMethod(self._fed), weakref.WeakMethod(self._feed_ended)
            self._feed = Feed(store, last, fed, ended)
            self._feed.start()

    # --- what it is -------------------------------------------------------------------------------

    @property
    def last_id(self) -> int:
        """The id of the newest event; -1 when there is none."""
        return self._log.last_id

    @property
    def closed(self) -> bool:
        """Whether it takes no more events."""
        return self._closed

    @property
    def secrets(self) -> Mapping[str, str]:
        """Values that are masked in this stream, by name; may be set."""
        return MappingProxyType(self._secrets)

    @secrets.setter
    def secrets(self, secrets: Mapping[str, str]) -> None:
        own = dict(secrets)
        self._masker.use(own)
        self._secrets = own

    def __repr__(self) -> str:
        """Show which session it is, and how far it is."""
        return f"EventStream({self.sid!r}, last_id={self.last_id})"

    # --- publishing -------------------------------------------------------------------------------

    def publish(self, event: Event, /) -> Event:
        """Number an event, keep it, and hand it to everybody; callable from any thread.

        Never waits. After `close`, what a run says is dropped, and a warning logged once: a run
        does not fail because nobody listens any more.

        Returns:
            What readers get: a copy with its id, its time, and without secrets.

        Raises:
            UserValueError: The event has an id already, so it has been published before.
            UserError: The stream is closed, or only reads.
        """
        if event.id != INVALID_ID:
            raise UserValueError(
                f"{event!r} has an id already: it was published before. Make a new event, or "
                "event.replace(id=-1) to publish it once more.",
            )
        if has_secrets() or self._masker.is_needed:
            return self._put_masked(event)
        return self._put(event)

    def add_event(
        self,
        event: Event | Action | Observation,
        source: EventSource | str,
        *,
        cause: int | None = None,
    ) -> Event:
        """Publish an event, an action or an observation of somebody.

        Args:
            event: What it is; an action or observation travels in an event of that name.
            source: Who it comes from.
            cause: The id of the event that led to it.

        Raises:
            UserValueError: The event has an id already, or there is no such source.
            UserTypeError: It is none of the three.
            UserError: The stream is closed, or only reads.
        """
        said = as_event(event)
        who = as_source(source)
        if said.id != INVALID_ID:
            return self.publish(said)
        self._refuse_when_closed()
        old = said.origin or Origin()
        origin = Origin(old.tool_name, old.tool_call_id, old.path, who)
        return self.publish(
            said.replace(origin=origin, cause=said.cause if cause is None else cause)
        )

    async def send(self, event: Event, /) -> Event:
        """Publish an event; then wait while a reader that must not miss anything is too far behind.

        Readers on the same loop get a turn about once per millisecond.

        Raises:
            UserValueError: As for `publish`.
            UserError: The stream is closed, or only reads.
        """
        from asyncio import sleep

        self._refuse_when_closed()
        published = self.publish(event)
        if self._log.next_id > self._log.room or perf_counter() >= self._next_turn:
            await self._wait_for_room()
            await sleep(0)
            self._next_turn = perf_counter() + _TURN
        return published

    def flush(self, timeout: float | None = None) -> Pending[None]:
        """Make sure that everything published so far is stored; `await` it, or call `result`.

        What was not stored is raised there: an `EventStoreError`, or why an event has no JSON form.

        Args:
            timeout: Wait for it here, in this thread, so many seconds at most.
        """
        done = self._saver.flush() if self._saver else Pending.now(None)
        if timeout is not None:
            done.result(timeout)
        return done

    # --- reading ----------------------------------------------------------------------------------

    def subscribe(
        self,
        subscriber_id: str,
        callback: Callable[[Event], Any],
        callback_id: str | None = None,
        *,
        after: int | None = None,
        policy: Policy = "block",
        max_pending: int = 1024,
        max_failures: int = 10,
        where: EventFilter | None = None,
    ) -> Subscription:
        """Call something with each event, one after the other.

        A plain function is called in a thread of its own, an async one on the running loop (on the
        background loop where there is none). When an event comes, subscriptions are told in the
        order of their ids. What a callback raises goes to `errors` and `on_error`.

        Args:
            subscriber_id: Who subscribes.
            callback: What is called.
            callback_id: Tells the callbacks of a subscriber apart; made up by default.
            after: Begin after the event of this id; by default with the next one.
            policy: What happens when the callback is slow: `block` lets `send` wait, `coalesce`
                merges display events, `drop_oldest` leaves them out and says so with a `GapEvent`.
            max_pending: How many events may wait before that happens.
            max_failures: After so many failures in a row it is called no more.
            where: Which events it gets.

        Raises:
            UserValueError: The subscriber has a callback of this id already.
            UserError: The stream is closed.
        """
        if not callable(callback):
            raise UserTypeError(f"callback must be callable, not {type(callback).__name__}.")
        check_options(policy, max_pending, max_failures)
        with self._lock:
            self._refuse_when_closed(reading=True)
            cursor = Cursor(
                self._log,
                self._log.next_id if after is None else first_after(after),
                policy=policy,
                max_pending=max_pending,
                where=where,
            )
            made = self._subscriptions.add(
                subscriber_id, callback_id, callback, cursor, max_failures
            )
        made.begin()
        return made

    def unsubscribe(self, subscriber_id: str, callback_id: str) -> None:
        """Call a callback no more; legal in the callback itself.

        A callback that is running when this is called may end later; it is waited for a moment.
        Ids that are not known are logged only.
        """
        made = self._subscriptions.take(subscriber_id, callback_id)
        if made is None:
            _log.warning("%r has no callback %s/%s.", self, subscriber_id, callback_id)
            return
        made.stop()

    def follow(
        self,
        after: int = INVALID_ID,
        *,
        policy: Policy = "block",
        max_pending: int = 1024,
        where: EventFilter | None = None,
    ) -> Follower:
        """Read events with `async for`: those that were, then those that come, none twice.

        It ends when the stream is closed and everything was read.

        Args:
            after: Begin after the event of this id; by default with the first one.
            policy: What happens when the reader is slow; as for `subscribe`.
            max_pending: How many events may wait before that happens.
            where: Which events.
        """
        check_options(policy, max_pending)
        return Follower(self._log, first_after(after), policy, max_pending, where)

    def get_events(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        reverse: bool = False,
        filter: EventFilter | None = None,
        limit: int | None = None,
    ) -> Iterator[Event]:
        """Go over the events that there are, in memory and in the store.

        Waits for the store; in async code `await stream.read()`, or `follow`.

        Args:
            start: The first id.
            end: The last id; by default that of the newest event.
            reverse: Newest first.
            filter: Which events.
            limit: How many at most.
        """
        stop = self.last_id if end is None else min(end, self.last_id)
        in_order = newest_first if reverse else oldest_first
        return islice(in_order(self._log, start, stop, filter), limit)

    async def read(self) -> list[Event]:
        """Give the conversation so far: the durable events that belong to no call.

        With `append`, this makes a stream a session of `Runner.run`.
        """
        kept = {event.id: event for event in self._log.unsaved()}
        if self.store is None:
            kept.update((event.id, event) for event in self._log.recent(self._log.first_id) or ())
        else:
            kept.update((event.id, event) for event in await self.store.read())
        events = [kept[key] for key in sorted(kept)]
        return [event for event in events if event.durable and not event.path]

    async def append(self, events: Sequence[Event], /) -> None:
        """Publish events, and wait until everything that was published is stored.

        A run that publishes to this stream itself has it for a session too, and gives nothing here
        a second time.
        """
        self._refuse_when_closed()
        for event in events:
            self.publish(event if event.id == INVALID_ID else event.replace(id=INVALID_ID))
        await self.flush()

    # --- closing ----------------------------------------------------------------------------------

    def close(self, *, drain: bool = True, timeout: float | None = None) -> None:
        """Take no more events, deliver and store those that there are, and stop.

        Async callbacks on the loop that this is called on are not waited for; `aclose` does that.
        Safe to call again. The store stays open.

        Args:
            drain: Deliver what was published; otherwise callbacks stop, and readers end, at once.
            timeout: How long that may take, in seconds; what is not delivered then is dropped.

        Raises:
            EventStoreError: Something could not be stored.
        """
        until = None if timeout is None else monotonic() + timeout
        self._shut(drain=drain)
        for one in self._subscriptions.ending(here=in_loop()):
            if not _is_drained(one, until):
                one.stop(wait=False)
        if self._saver:
            self._saver.flush().result(_left(until))

    async def aclose(self, *, drain: bool = True, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as `close`
        """Close, as `close` does, and let the loop go on meanwhile."""
        until = None if timeout is None else monotonic() + timeout
        self._shut(drain=drain)
        for one in self._subscriptions.ending(here=False):
            if not await _drained(one, until):
                one.stop(wait=False)
        if self._saver:
            await _within(self._saver.flush(), until)

    def __enter__(self) -> Self:
        """Use it inside a block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Use it inside a block."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close it."""
        await self.aclose()

    # --- inside -----------------------------------------------------------------------------------

    def _put_masked(self, event: Event) -> Event:
        """Put what is due before an event, and the event without its secrets."""
        with self._masker.lock:
            *due, masked = self._masker.clean(event)
            for one in due:
                self._put(one)
            return self._put(masked)

    def _release(self) -> None:
        """Put what was held back because it could be the beginning of a secret."""
        if not self._closed and self._masker.is_needed:
            with self._masker.lock:
                for one in self._masker.release():
                    self._put(one)

    def _put(self, event: Event) -> Event:
        """Number an event and wake everybody who waits."""
        event = bounded(event)
        origin: Any = event.origin
        copy: Any = event.stamped(origin, event.seq)
        if event.timestamp:
            copy.timestamp = event.timestamp
        log = self._log
        woken: Sequence[Reader] = ()
        with log.lock:
            if self._refusing:
                return self._refused(event)
            if self._busy:  # a finalizer or a signal handler speaks in the midst of this
                self._late.append(copy)
                return cast("Event", copy)
            self._busy = True
            try:
                log.put(copy)
                if self._saver and self._is_kept(copy):
                    self._saver.add(copy)
                if self._late:
                    self._put_late()
                if log.waiting:
                    woken = log.take_waiting()
            finally:
                self._busy = False
        for reader in woken:
            reader.wake()
        if self.store is not None:
            self._save(copy)
        return cast("Event", copy)

    def _put_late(self) -> None:
        while self._late:
            event = self._late.popleft()
            self._log.put(event)
            if self._saver and self._is_kept(event):
                self._saver.add(event)

    def _is_kept(self, event: Event) -> bool:
        """Whether an event is stored: what belongs to a conversation, and where runs begin and end.

        By the latter a log is divided into runs.
        """
        return (
            event.durable
            or self._keep_all
            or (isinstance(event, (RunStartedEvent, RunFinishedEvent)) and not event.path)
        )

    def _save(self, event: Event) -> None:
        if self._saver and self._is_kept(event):
            self._saver.go()
        elif self.store is not None:
            self.store.reserve(event.id)

    def _refused(self, event: Event) -> Event:
        if event.origin is None or self._read_only:
            self._refuse_when_closed()
        if not self._warned:
            self._warned = True
            _log.warning("%r is closed; what runs still say is dropped.", self)
        return event

    def _refuse_when_closed(self, *, reading: bool = False) -> None:
        if self._closed:
            raise UserError(f"{self!r} is closed. Make a new EventStream on the same store.")
        if self._read_only and not reading:
            raise UserError(
                f"{self!r} only reads what another writes; publish there, or make it without "
                "read_only=True.",
            )

    async def _wait_for_room(self) -> None:
        """Wait for slow readers, but not for the one who sends."""
        from asyncio import current_task

        senders = (current_task(), speaker())
        while self._log.is_full_for(senders) and not self._closed:
            wake = Waiter(Home())
            self._log.senders.append(wake.wake)
            try:
                if self._log.is_full_for(senders):
                    await wake.wait(_LOOK)
            finally:
                with suppress(ValueError):
                    self._log.senders.remove(wake.wake)

    def _fed(self, events: list[Event]) -> None:
        """Take what another has written."""
        with self._lock:
            for event in events:
                self._log.next_id = event.id
                self._log.put(event)
            woken = self._log.take_waiting()
        for reader in woken:
            reader.wake()

    def _feed_ended(self, error: Exception) -> None:
        """End after what was read: the store is closed, or cannot be read any more."""
        if not self._closed:
            self._report(error, None, "store")
            self._shut(drain=True)

    def _after_fork(self) -> None:
        """Start anew in a child: threads that are not there may have held the locks."""
        self._log.after_fork(self._subscriptions.after_fork())
        self._lock = self._log.lock
        self._masker.lock = RLock()
        self._busy = False
        self._late.clear()
        if self._saver:
            self._saver.after_fork()

    # --- what goes wrong --------------------------------------------------------------------------

    def _not_stored(self, error: Exception, event: Event | None) -> None:
        self._report(error, event, "store")

    def _report(self, error: Exception, event: Event | None, who: str) -> None:
        self.errors.append(error)
        _log.error("%r: %s failed: %s", self, who, error, exc_info=error)
        if self._on_error is None:
            return
        try:
            self._on_error(error, event, who)
        except Exception:  # noqa: BLE001 - a hook must not end what goes on
            _log.exception("%r: on_error failed.", self)

    def _note(self, text: str) -> None:
        """Say what everybody who reads should know."""
        _log.error("%r: %s", self, text)
        if not self._closed and not self._read_only:
            note = NotifyStreamEvent(text, tag="subscriber", level="error")
            self.publish(note.replace(origin=Origin(source=EventSource.ENVIRONMENT)))

    def _shut(self, *, drain: bool) -> None:
        self._release()
        with self._lock:
            self._closed = self._refusing = self._log.closed = True
            self._log.cut = self._log.cut or not drain
            woken = self._log.take_waiting()
        if not drain:
            for one in self._subscriptions.all():
                one.stop(wait=False)
        for reader in woken:
            if isinstance(reader, Subscription):
                reader.retire()
            else:
                reader.wake()
        self._log.release_senders()
        if self._feed is not None:
            self._feed.stop()


def _after_fork() -> None:
    for stream in list(_all):
        stream._after_fork()  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _nothing() -> list[Event]:
    return []


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())


def _is_drained(one: Subscription, until: float | None) -> bool:
    """Wait until a callback has got everything; `False` where the time or its loop is over."""
    while not one.drained.done():
        left = _left(until)
        try:
            one.drained.result(_LOOK if left is None else min(left, _LOOK))
        except TimeoutError:
            if left == 0.0 or one.is_dead():
                return False
    return True


async def _drained(one: Subscription, until: float | None) -> bool:
    """Wait as `_is_drained` does, in a task."""
    from asyncio import timeout

    while not one.drained.done():
        left = _left(until)
        try:
            async with timeout(_LOOK if left is None else min(left, _LOOK)):
                await one.drained
        except TimeoutError:
            if left == 0.0 or one.is_dead():
                return False
    return True


async def _within(pending: Pending[None], until: float | None) -> None:
    from asyncio import timeout

    if pending.done():
        pending.result()
        return
    async with timeout(_left(until)):
        await pending
