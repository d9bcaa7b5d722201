"""The event stream of a session."""

from __future__ import annotations

import logging
import os
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from itertools import islice
from threading import RLock
from time import monotonic, perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from uuid import uuid4

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.kinds import NotifyStreamEvent, RunFinishedEvent, RunStartedEvent
from agents_tools.persistence import EventFilter, PendingFuture
from agents_tools.persistence.stream.follower import Follower
from agents_tools.persistence.stream.history import newest_first, oldest_first
from agents_tools.persistence.stream.log import Cursor, EventLog
from agents_tools.persistence.stream.log_tail import LogTail
from agents_tools.persistence.stream.masking import EventMasker
from agents_tools.persistence.stream.size_limit import limit_size
from agents_tools.persistence.stream.subscription import (
    Subscription,
    current_subscription,
    is_async,
)
from agents_tools.persistence.stream.subscriptions import Subscriptions, in_loop
from agents_tools.persistence.stream.validation import (
    as_event,
    as_source,
    check_options,
    first_after,
)
from agents_tools.persistence.stream.writer import LogWriter
from agents_tools.text.secrets import has_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from typing import Self

    from agents_tools.classes.action import Action, Observation
    from agents_tools.events.base import Event
    from agents_tools.persistence import EventStore
    from agents_tools.persistence.stream.log import LogReader, Policy

__all__ = ["EventStream"]

_log = logging.getLogger("agents_tools")

_open_streams: Final[weakref.WeakSet[EventStream]] = weakref.WeakSet()

_TURN_INTERVAL: Final = 0.001
"""How long a sender can hold the event loop before readers get a turn, in seconds."""

_CHECK_INTERVAL: Final = 1.0
"""How often a sender that waits for a slow reader checks that it still exists, in seconds."""


class EventStream:
    """The events of a session: published from any thread, numbered, stored and read by many.

    Ids increase without gaps, and every reader gets the events in the order of their ids.
    `publish` never waits for a reader or for the store. Durable events are stored in the
    background; `flush` waits until they are stored. Recent events are kept in memory. A reader
    that begins earlier, or is far behind, gets older events from the store, and a `GapEvent` in
    place of events that were not stored. Durable events, and the start and end events of calls and
    runs, are never dropped for a slow reader.

    ::

        async with EventStream(store) as stream:
            stream.subscribe("server", callback)
            async for event in stream.follow(after=last_id):
                ...

    Args:
        store: The store for durable events; by default they are not stored. The stream does not
            close it.
        sid: The name of the session. The log of that name in the store is used.
        user_id: The owner of the session. The stream itself does not use it.
        keep: Which events are stored: `durable` for durable events and the start and end of runs,
            `all` for every event; `run` for the log of one run: every event, with neighbouring
            deltas merged, and with marks of the registered secrets, which are restored when the run
            is resumed. Readers of the stream receive `***`, and no `GapEvent` for merged deltas.
        window: The number of recent events that are kept in memory.
        secrets: Values that are masked in this stream, by name, in addition to the registered ones.
        on_error: Called with an exception of a callback or of the store, the event (or `None`) and
            the name of the failed part, in any thread. It is a sync function.
        read_only: Follow a log that another process or stream writes. Publishing is refused.

    Attributes:
        sid: The name of the session.
        user_id: The owner of the session.
        store: The log that stores the events.
        first_id: The id of the first event of this stream. Earlier events were published by other
            streams of the session.
        errors: The last 100 errors of callbacks and of the store.
    """

    def __init__(
        self,
        store: EventStore | None = None,
        *,
        sid: str | None = None,
        user_id: str | None = None,
        keep: Literal["durable", "all", "run"] = "durable",
        window: int = 10_000,
        secrets: Mapping[str, str] | None = None,
        on_error: Callable[[Exception, Event | None, str], Any] | None = None,
        read_only: bool = False,
    ) -> None:
        if window < 1:
            raise UserValueError(
                f"EventStream(window=) is too small: expected at least 1, got {window!r}."
            )
        if keep not in {"durable", "all", "run"}:
            raise UserValueError(
                f"EventStream(keep=) is invalid: expected 'durable', 'all' or 'run', got {keep!r}."
            )
        if read_only and store is None:
            raise UserValueError(
                "EventStream(read_only=True) has no store to read from. Pass store=."
            )
        if on_error is not None and is_async(on_error):
            raise UserTypeError(
                "EventStream(on_error=): expected a sync function, got an async one. Start a task "
                "in it with asyncio.run_coroutine_threadsafe."
            )
        if store is not None and sid is not None and sid != store.sid:
            store = store.session(sid)
        self.sid = sid or (store.sid if store is not None else uuid4().hex)
        self.user_id = user_id
        self.store = store
        self.errors: deque[Exception] = deque(maxlen=100)
        self._on_error = on_error
        self._keep_all = keep != "durable"
        self._read_only = read_only
        self._restorable = keep == "run" and not secrets
        self._writer = (
            LogWriter(store, self._report_store_error, merges_deltas=keep == "run")
            if store and not read_only
            else None
        )
        last = INVALID_ID if store is None else store.last_id
        first = last + 1 if store is None or read_only else store.next_id
        unsaved = self._writer.unsaved if self._writer else _no_events
        self.first_id = first
        self._log = EventLog(
            first, last, window=window, store=store, unsaved=unsaved, has_gaps=keep != "run"
        )
        self._lock = self._log.lock
        self._closed = False
        self._is_refusing = read_only  # whether publishing is refused
        self._is_appending = False
        self._deferred: deque[Event] = deque()
        self._subscriptions = Subscriptions(self._report, self._publish_note)
        self._next_turn = 0.0
        self._has_warned = False
        self._secrets: dict[str, str] = dict(secrets or {})
        self._masker = EventMasker(self._secrets)
        _open_streams.add(self)
        self._tail: LogTail | None = None
        if read_only and store is not None:
            receive = weakref.WeakMethod(self._receive_stored)
            fail = weakref.WeakMethod(self._on_tail_error)
            self._tail = LogTail(store, last, receive, fail)
            self._tail.start()

    # --- properties ------------------------------------------------------------------------------

    @property
    def last_id(self) -> int:
        """The id of the newest event; -1 when there is none."""
        return self._log.last_id

    @property
    def closed(self) -> bool:
        """Return whether the stream is closed and accepts no more events."""
        return self._closed

    @property
    def secrets(self) -> Mapping[str, str]:
        """The values that are masked in this stream, by name. You can assign new ones."""
        return MappingProxyType(self._secrets)

    @secrets.setter
    def secrets(self, secrets: Mapping[str, str]) -> None:
        copy = dict(secrets)
        self._masker.use(copy)
        self._secrets = copy

    def __repr__(self) -> str:
        """Return the name of the session and the id of the newest event."""
        return f"EventStream({self.sid!r}, last_id={self.last_id})"

    # --- publishing -------------------------------------------------------------------------------

    def publish(self, event: Event, /) -> Event:
        """Number an event, store it and deliver it to all readers, from any thread.

        This never waits. After `close`, events of running calls are dropped and a warning is
        logged once, because a run must not fail when its stream is closed.

        Returns:
            The event as readers get it: a copy with an id and a time, and with masked secrets.

        Raises:
            UserValueError: The event already has an id, because it was published before.
            UserError: The stream is closed or read-only.
        """
        if event.id != INVALID_ID:
            raise UserValueError(
                f"{event!r} already has an id: expected an event that was not published before. "
                "Create a new event, or publish event.replace(id=-1).",
            )
        if has_secrets() or self._masker.is_needed:
            return self._publish_masked(event)
        return self._append(event)

    def publish_restorable(self, event: Event, original: Event, /) -> Event:
        """Publish an event to the log of a run, whose secrets are restored when it is resumed.

        Args:
            event: The event for readers; its secrets can be masked.
            original: The event with its secrets.
        """
        if not self._restorable or not has_secrets():
            return self.publish(event)
        return self._publish_masked(event, original)

    def add_event(
        self,
        event: Event | Action | Observation,
        source: EventSource | str,
        *,
        cause: int | None = None,
    ) -> Event:
        """Publish an event, an action or an observation with its source.

        Args:
            event: The event. An action or an observation is wrapped in an event of that name.
            source: The source of the event.
            cause: The id of the event that caused this one.

        Raises:
            UserValueError: The event already has an id, or the source is unknown.
            UserTypeError: The value is not an event, an action or an observation.
            UserError: The stream is closed or read-only.
        """
        new = as_event(event)
        checked_source = as_source(source)
        if new.id != INVALID_ID:
            return self.publish(new)
        self._refuse_when_closed()
        old = new.origin or Origin()
        origin = Origin(old.tool_name, old.tool_call_id, old.path, checked_source)
        return self.publish(new.replace(origin=origin, cause=new.cause if cause is None else cause))

    async def send(self, event: Event, /) -> Event:
        """Publish an event, then wait while a reader with the policy `block` is too far behind.

        Readers on the same loop get a turn about once per millisecond.

        Raises:
            UserValueError: The event already has an id.
            UserError: The stream is closed or read-only.
        """
        from asyncio import sleep

        self._refuse_when_closed()
        published = self.publish(event)
        if self._log.next_id > self._log.room or perf_counter() >= self._next_turn:
            await self._wait_for_room()
            await sleep(0)
            self._next_turn = perf_counter() + _TURN_INTERVAL
        return published

    def flush(self, timeout: float | None = None) -> PendingFuture[None]:
        """Return a future that is done when all events published so far are stored.

        Await the future or call its `result`. Both raise if an event was not stored: an
        `EventStoreError`, or the error of an event without a JSON form.

        Args:
            timeout: Wait in this thread for at most this number of seconds.
        """
        done = self._writer.flush() if self._writer else PendingFuture.now(None)
        if timeout is not None:
            done.result(timeout)
        return done

    @contextmanager
    def group(self) -> Generator[None]:
        """Store the events that are published in the block all or none."""
        if self._writer is None:
            yield
            return
        try:
            with self._writer.group():
                yield
        finally:
            self._writer.write()

    def consume(self, number: int) -> None:
        """Delete a message to the run of the log, together with the next stored event."""
        if self._writer is not None:
            self._writer.consume(number)

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
        """Call a function with each event, one event after the other.

        A sync function is called in a thread of its own. An async function is called on the running
        loop, or on the background loop if no loop is running. Subscriptions are woken in the order
        of their ids. Exceptions of the callback are added to `errors` and passed to `on_error`.

        Args:
            subscriber_id: The id of the subscriber.
            callback: The function.
            callback_id: The id of the callback, unique for its subscriber. Generated by default.
            after: Begin after the event with this id. By default, begin with the next event.
            policy: What happens when the callback is slow: `block` lets `send` wait, `coalesce`
                merges display events, `drop_oldest` replaces them by a `GapEvent`.
            max_pending: The number of events that can wait before the policy applies.
            max_failures: The subscription ends after this number of failures in a row.
            where: The filter for events.

        Raises:
            UserValueError: The subscriber already has a callback with this id.
            UserError: The stream is closed.
        """
        if not callable(callback):
            raise UserTypeError(
                f"subscribe(callback=): expected a function, got {type(callback).__name__}."
            )
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
            subscription = self._subscriptions.add(
                subscriber_id, callback_id, callback, cursor, max_failures
            )
        subscription.begin()
        return subscription

    def unsubscribe(self, subscriber_id: str, callback_id: str) -> None:
        """Remove a callback. The callback itself can call this.

        If the callback is running, wait for it, but for a second at most. An unknown id is only
        logged.
        """
        subscription = self._subscriptions.remove(subscriber_id, callback_id)
        if subscription is None:
            _log.warning(
                "%r has no callback %s/%s to unsubscribe.",
                self,
                subscriber_id,
                callback_id,
            )
            return
        subscription.stop()

    def follow(
        self,
        after: int = INVALID_ID,
        *,
        policy: Policy = "block",
        max_pending: int = 1024,
        where: EventFilter | None = None,
    ) -> Follower:
        """Return an async iterator over past and future events, each of them once.

        It ends when the stream is closed and all events were read.

        Args:
            after: Begin after the event with this id. By default, begin with the first event.
            policy: What happens when the reader is slow; see `subscribe`.
            max_pending: The number of events that can wait before the policy applies.
            where: The filter for events.
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
        """Iterate over the existing events, in memory and in the store.

        This blocks while the store reads. In async code, use `await stream.read()` or `follow`.

        Args:
            start: The first id.
            end: The last id; by default the id of the newest event.
            reverse: Whether to begin with the newest event.
            filter: The filter for events.
            limit: The largest number of events.
        """
        stop = self.last_id if end is None else min(end, self.last_id)
        in_order = newest_first if reverse else oldest_first
        return islice(in_order(self._log, start, stop, filter), limit)

    async def read(self) -> list[Event]:
        """Return the conversation so far: the durable events outside of calls."""
        by_id = {event.id: event for event in self._log.unsaved()}
        if self.store is None:
            by_id.update((event.id, event) for event in self._log.recent(self._log.first_id) or ())
        else:
            by_id.update((event.id, event) for event in await self.store.read())
        events = [by_id[key] for key in sorted(by_id)]
        return [event for event in events if event.durable and not event.path]

    # --- closing ----------------------------------------------------------------------------------

    def close(self, *, drain: bool = True, timeout: float | None = None) -> None:
        """Accept no more events, deliver and store the published ones, and stop.

        This does not wait for async callbacks on the loop of the caller; use `aclose` for that.
        It can be called again. The store stays open.

        Args:
            drain: Whether to deliver the published events. Otherwise callbacks and readers stop at
                once.
            timeout: The time limit for delivery, in seconds. Events that are not delivered by then
                are dropped.

        Raises:
            EventStoreError: An event could not be stored.
        """
        until = None if timeout is None else monotonic() + timeout
        self._begin_close(drain=drain)
        for one in self._subscriptions.closable(here=in_loop()):
            if not _wait_until_drained(one, until):
                one.stop(wait=False)
        if self._writer:
            self._writer.flush().result(_remaining(until))

    async def aclose(self, *, drain: bool = True, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as `close`
        """Close like `close`, without blocking the event loop."""
        until = None if timeout is None else monotonic() + timeout
        self._begin_close(drain=drain)
        for one in self._subscriptions.closable(here=False):
            if not await _wait_until_drained_async(one, until):
                one.stop(wait=False)
        if self._writer:
            await _wait_until_done(self._writer.flush(), until)

    def __enter__(self) -> Self:
        """Return the stream itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the stream."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the stream."""
        await self.aclose()

    # --- internals --------------------------------------------------------------------------------

    def _publish_masked(self, event: Event, original: Event | None = None) -> Event:
        """Append the held text that is due before an event, and then the masked event."""
        with self._masker.lock:
            *due, masked = self._masker.clean(event)
            for one in due:
                self._append(one)
            return self._append(masked, original)

    def _release_held_text(self) -> None:
        """Append the text that was held back because it could be the beginning of a secret."""
        if not self._closed and self._masker.is_needed:
            with self._masker.lock:
                for one in self._masker.release():
                    self._append(one)

    def _append(self, event: Event, original: Event | None = None) -> Event:
        """Number an event, store it and wake the waiting readers.

        Args:
            event: The event for readers.
            original: The event with its secrets, which a restorable log stores with marks.
        """
        event = limit_size(event)
        origin: Any = event.origin
        copy: Any = event.stamped(origin, event.seq)
        if event.timestamp:
            copy.timestamp = event.timestamp
        log = self._log
        woken: Sequence[LogReader] = ()
        with log.lock:
            if self._is_refusing:
                return self._refuse(event)
            if self._is_appending:  # a finalizer or a signal handler publishes meanwhile
                self._deferred.append(copy)
                return cast("Event", copy)
            self._is_appending = True
            try:
                log.append(copy)
                if self._writer and self._is_stored(copy):
                    self._writer.add(self._stored_form(copy, original))
                if self._deferred:
                    self._append_deferred()
                if log.waiting:
                    woken = log.take_waiting()
            finally:
                self._is_appending = False
        for reader in woken:
            reader.wake()
        if self.store is not None:
            self._save(copy)
        return cast("Event", copy)

    def _stored_form(self, event: Event, original: Event | None) -> Event:
        """Return the event that is stored: without masks if the log can restore secrets.

        Texts that are split into deltas are stored masked, because no delta has the whole secret.
        """
        if original is None or not self._restorable or event.droppable:
            return event
        stored: Any = limit_size(original).__copy__()
        stored.id, stored.seq, stored.timestamp = event.id, event.seq, event.timestamp
        stored.origin = event.origin
        return cast("Event", stored)

    def _append_deferred(self) -> None:
        while self._deferred:
            event = self._deferred.popleft()
            self._log.append(event)
            if self._writer and self._is_stored(event):
                self._writer.add(event)

    def _is_stored(self, event: Event) -> bool:
        """Return whether an event is stored.

        Besides durable events, the start and end of runs are stored, because they divide a log
        into runs.
        """
        return (
            event.durable
            or self._keep_all
            or (isinstance(event, (RunStartedEvent, RunFinishedEvent)) and not event.path)
        )

    def _save(self, event: Event) -> None:
        if self._writer and self._is_stored(event):
            self._writer.write()
        elif self.store is not None:
            self.store.reserve(event.id)

    def _refuse(self, event: Event) -> Event:
        if event.origin is None or self._read_only:
            self._refuse_when_closed()
        if not self._has_warned:
            self._has_warned = True
            _log.warning("%r is closed: events of runs that continue are dropped.", self)
        return event

    def _refuse_when_closed(self, *, reading: bool = False) -> None:
        if self._closed:
            raise UserError(f"{self!r} is closed. Create a new EventStream on the same store.")
        if self._read_only and not reading:
            raise UserError(
                f"{self!r} is read-only. Publish in the stream that writes the log, or create this "
                "one without read_only=True.",
            )

    async def _wait_for_room(self) -> None:
        """Wait for slow readers, except the task or the callback that sends."""
        from asyncio import current_task

        senders = (current_task(), current_subscription())
        while self._log.is_full_for(senders) and not self._closed:
            room: PendingFuture[None] = PendingFuture()
            self._log.senders.append(room)
            try:
                if self._log.is_full_for(senders):
                    await room.wait(_CHECK_INTERVAL)
            finally:
                with suppress(ValueError):
                    self._log.senders.remove(room)

    def _receive_stored(self, events: list[Event]) -> None:
        """Add events that another stream has stored."""
        with self._lock:
            for event in events:
                self._log.next_id = event.id
                self._log.append(event)
            woken = self._log.take_waiting()
        for reader in woken:
            reader.wake()

    def _on_tail_error(self, error: Exception) -> None:
        """End after the events read so far, because the store is closed or cannot be read."""
        if not self._closed:
            self._report(error, None, "store")
            self._begin_close(drain=True)

    def _after_fork(self) -> None:
        """Reset the stream in a forked child, where threads that held locks do not exist."""
        self._log.after_fork(self._subscriptions.after_fork())
        self._lock = self._log.lock
        self._masker.lock = RLock()
        self._is_appending = False
        self._deferred.clear()
        if self._writer:
            self._writer.after_fork()

    # --- errors -----------------------------------------------------------------------------------

    def _report_store_error(self, error: Exception, event: Event | None) -> None:
        self._report(error, event, "store")

    def _report(self, error: Exception, event: Event | None, part: str) -> None:
        self.errors.append(error)
        _log.error("%r: %s failed: %s", self, part, error, exc_info=error)
        if self._on_error is None:
            return
        try:
            self._on_error(error, event, part)
        except Exception:  # noqa: BLE001 - an error in the hook must not stop delivery
            _log.exception("%r: on_error failed.", self)

    def _publish_note(self, text: str) -> None:
        """Log an error and publish it for all readers."""
        _log.error("%r: %s", self, text)
        if not self._closed and not self._read_only:
            note = NotifyStreamEvent(text, tag="subscriber", level="error")
            self.publish(note.replace(origin=Origin(source=EventSource.ENVIRONMENT)))

    def _begin_close(self, *, drain: bool) -> None:
        self._release_held_text()
        with self._lock:
            self._closed = self._is_refusing = self._log.closed = True
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
        if self._tail is not None:
            self._tail.stop()


def _after_fork() -> None:
    for stream in list(_open_streams):
        stream._after_fork()  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _no_events() -> list[Event]:
    return []


def _remaining(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())


def _wait_until_drained(one: Subscription, until: float | None) -> bool:
    """Wait until a callback has got all events; return `False` after a timeout.

    Also return `False` when the loop of the callback is closed.
    """
    while not one.drained.done():
        seconds = _remaining(until)
        try:
            one.drained.result(
                _CHECK_INTERVAL if seconds is None else min(seconds, _CHECK_INTERVAL)
            )
        except TimeoutError:
            if seconds == 0.0 or one.is_dead():
                return False
    return True


async def _wait_until_drained_async(one: Subscription, until: float | None) -> bool:
    """Wait like `_wait_until_drained`, in a task."""
    from asyncio import timeout

    while not one.drained.done():
        seconds = _remaining(until)
        try:
            async with timeout(
                _CHECK_INTERVAL if seconds is None else min(seconds, _CHECK_INTERVAL)
            ):
                await one.drained
        except TimeoutError:
            if seconds == 0.0 or one.is_dead():
                return False
    return True


async def _wait_until_done(pending: PendingFuture[None], until: float | None) -> None:
    from asyncio import timeout

    if pending.done():
        pending.result()
        return
    async with timeout(_remaining(until)):
        await pending
