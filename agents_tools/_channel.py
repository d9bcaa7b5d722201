"""How events get from whoever says something, in any thread, to the one who reads along.

A `Channel` is a bounded queue with one reader; `listen` collects what is said inside a block. An
event goes its way without a lock: writers append to one deque, and the reader takes handfuls from
it. Only taking a handful, waking somebody and making room in a full queue are done under a lock.
"""

from __future__ import annotations

import sys
from collections import deque
from contextvars import ContextVar, copy_context
from functools import wraps
from threading import Event as Signal, RLock, get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from agents_tools.errors import UserError, UserTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from agents_tools.events import Emit, Event, GapEvent, NotifyStreamEvent

__all__ = ["Channel", "Listener", "bind", "hear_everything", "listen", "listeners"]

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE: Final = 5.0
"""How long a writer waits for a reader that takes nothing, in seconds."""

_TURN: Final = 0.001
"""How long a writer may hold the event loop before the reader gets a turn, in seconds."""

_HANDFUL: Final = 64
"""How many events the reader takes at a time."""

_STRETCH: Final = 16
"""After how many handfuls without a pause the reader lets other tasks run."""

_LONGEST_DELTA: Final = 4096
"""Up to how many characters deltas are merged; this bounds the memory of a full queue."""


class _Readable:
    """What a single reader can wait at; writers in any thread wake it."""

    def __init__(self) -> None:
        # Reentrant: a finalizer or a signal handler may run in here and have something to say.
        self._lock = RLock()
        self._reader: _Waiter | None = None

    def _ready(self) -> bool:
        """Whether there is something to read, or never will be again."""
        raise NotImplementedError

    async def _wait_until_ready(self) -> None:
        waiter = _Waiter()
        if self._reader is not None and self._reader.is_waiting():
            raise UserError(
                "Two tasks read the same events; each event goes to one reader only. "
                "Let one task read and hand the events on.",
            )
        self._reader = waiter
        try:
            # Looked at once more after that line: a writer sees the reader, or this its event.
            with self._lock:
                ready = self._ready()
            if not ready:
                await waiter.wait()
        finally:
            if self._reader is waiter:
                self._reader = None

    def _wake_reader(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.wake()


class Channel(_Readable):
    """A bounded queue of events with one reader and writers in any thread.

    The reader iterates over it with `async for`, and may begin late, pause and go on. After
    `close`, it gets what is left and the iteration ends.

    Args:
        maxsize: How many events wait at most, besides the handful the reader has taken. Events
            that are not droppable always find room.
        patience: How long `send` waits for a reader that takes nothing, in seconds.
    """

    def __init__(self, maxsize: int = 1024, *, patience: float = PATIENCE) -> None:
        super().__init__()
        if maxsize < 1:
            raise UserError(f"A channel needs room for at least one event, got maxsize={maxsize}.")
        self._maxsize = maxsize
        self._patience = patience
        self._limit = maxsize  # from this length on a push takes the slow way; 0 when closed
        self._queue: deque[Event] = deque()
        self._hand: deque[Event] = deque()  # what the reader has taken; its alone
        self._handfuls = 0
        self._stretch = 0
        self._senders: deque[_Waiter | _Sleeper] = deque()
        self._closed = False
        self._dropped = 0
        self._exhausted = False  # what is left in the full queue has to stay
        self._gap: GapEvent | None = None
        self._stalled: tuple[int, int] | None = None
        self._next_turn = 0.0

    @property
    def closed(self) -> bool:
        """Whether it takes no more events."""
        return self._closed

    @property
    def dropped(self) -> int:
        """How many events were left out so far; merged ones are not counted."""
        return self._dropped

    def push(self, event: Event) -> None:
        """Deliver an event without ever waiting; callable from any thread.

        When the queue is full, adjacent deltas of a call are merged, its latest progress stands
        for the earlier ones, and then the oldest droppable events give way to a `GapEvent`.
        """
        if len(self._queue) >= self._limit and not self._has_room_for(event):
            return
        self._queue.append(event)
        if self._reader is not None:
            self._wake_reader()

    async def send(self, event: Event) -> None:
        """Deliver an event, waiting while the queue is full.

        The reader gets a turn at the first event and then about once per millisecond, so that
        events are live though the sender never waits for anything.
        """
        if len(self._queue) >= self._limit:
            await self._wait_for_room()
        self.push(event)
        if perf_counter() >= self._next_turn:
            await self._give_turn()

    def send_blocking(self, event: Event) -> None:
        """Deliver an event from a worker thread, waiting while the queue is full."""
        self.room_blocking()
        self.push(event)

    def due(self) -> bool:
        """Whether a writer should await `room` now: it is full, or the reader is to have a turn."""
        return len(self._queue) >= self._limit or perf_counter() >= self._next_turn

    async def room(self) -> None:
        """Wait, as `send` does, until an event can be pushed without loss; then take `turn`."""
        if len(self._queue) >= self._limit:
            await self._wait_for_room()
        await self.turn()

    async def turn(self) -> None:
        """Let the reader have what was pushed, if it had no turn for a millisecond."""
        if self._queue and perf_counter() >= self._next_turn:
            await self._give_turn()

    def room_blocking(self) -> None:
        """Wait like `room`, in a worker thread; a thread that runs an event loop never waits."""
        while len(self._queue) >= self._limit and not _in_event_loop():
            sleeper = _Sleeper()
            position = self._line_up(sleeper)
            if position is None:
                return
            woken = False
            try:
                woken = sleeper.wait(self._patience)
            finally:
                self._leave_line(sleeper, position, woken=woken)

    def close(self) -> None:
        """Take no more events and release everybody who waits; safe to call again."""
        with self._lock:
            self._closed = True
            self._limit = 0
            senders = [*self._senders]
            self._senders.clear()
        for sender in senders:
            sender.wake()
        self._wake_reader()

    def __aiter__(self) -> Self:
        """Read from here."""
        return self

    async def __anext__(self) -> Event:
        """Give the next event.

        Raises:
            StopAsyncIteration: The channel is closed and everything was read.
            UserError: Another task is reading.
        """
        if self._hand:
            return self._hand.popleft()
        if self._stretch >= _STRETCH:
            self._stretch = 0
            await _pause()
        while not self._take_handful():
            if self._closed:
                raise StopAsyncIteration
            self._stretch = 0
            await self._wait_until_ready()
        return self._hand.popleft()

    # --- reading ----------------------------------------------------------------------------------

    def _ready(self) -> bool:
        return bool(self._queue) or self._closed

    def _take_handful(self) -> bool:
        with self._lock:
            count = min(len(self._queue), _HANDFUL)
            if not count:
                return False
            self._hand.extend([self._queue.popleft() for _ in range(count)])
            self._handfuls += 1
            self._stretch += 1
            self._exhausted = False
            self._gap = None
            if not self._closed:
                self._limit = self._maxsize
            free = max(self._limit - len(self._queue), 0)
            released = [self._senders.popleft() for _ in range(min(free, len(self._senders)))]
        for sender in released:
            if not sender.wake():
                self._wake_a_sender()
        return True

    # --- waiting for room -------------------------------------------------------------------------

    async def _give_turn(self) -> None:
        await _pause()
        self._next_turn = perf_counter() + _TURN

    async def _wait_for_room(self) -> None:
        while len(self._queue) >= self._limit:
            waiter = _Waiter()
            position = self._line_up(waiter)
            if position is None:
                return
            woken = False
            try:
                woken = await waiter.wait(self._patience)
            finally:
                self._leave_line(waiter, position, woken=woken)

    def _line_up(self, sender: _Waiter | _Sleeper) -> tuple[int, int] | None:
        """Wait in line, and note how far the reader is; `None`: there is nothing to wait for."""
        with self._lock:
            position = (self._handfuls, len(self._hand))
            if len(self._queue) < self._limit or self._closed or self._stalled == position:
                return None
            self._senders.append(sender)
            return position

    def _leave_line(
        self,
        sender: _Waiter | _Sleeper,
        position: tuple[int, int],
        *,
        woken: bool,
    ) -> None:
        """Stop waiting: after being woken, at the end of patience or by cancellation."""
        if woken:
            return
        with self._lock:
            in_line = sender in self._senders
            if in_line:
                self._senders.remove(sender)
            if sender.overdue and position == (self._handfuls, len(self._hand)):
                self._stalled = position
        if not in_line and not sender.overdue:
            self._wake_a_sender()  # this one was released and cannot use its turn any more

    def _wake_a_sender(self) -> None:
        woken = False
        while not woken:
            with self._lock:
                if not self._senders:
                    return
                sender = self._senders.popleft()
            woken = sender.wake()

    # --- making room ------------------------------------------------------------------------------

    def _has_room_for(self, event: Event) -> bool:
        with self._lock:
            if self._closed:
                return False
            if not event.droppable:
                return True
            if not self._exhausted:
                self._squeeze()
            if self._exhausted:
                self._leave_out(event)
            return not self._exhausted

    def _squeeze(self) -> None:
        """Shorten the queue; what other threads append meanwhile stays behind the rest."""
        before = [self._queue.popleft() for _ in range(len(self._queue))]
        size = self._maxsize - max(self._maxsize // 8, 1)  # makes room for some events to come
        after, dropped = _squeezed(before, size)
        self._queue.extendleft(reversed(after))
        self._dropped += dropped
        self._limit = self._maxsize + len(after) - _count(after)
        self._exhausted = _count(after) > size

    def _leave_out(self, event: Event) -> None:
        self._dropped += 1
        if self._gap is None or self._queue[-1] is not self._gap:
            self._gap = _gap(0, event)
            self._queue.append(self._gap)
        # Widened where it stands: nobody but the reader may replace what is in the queue.
        _set(self._gap, "dropped", self._gap.dropped + 1)
        _set(self._gap, "seq", event.seq)
        _set(self._gap, "timestamp", event.timestamp)


_set: Final = object.__setattr__


def _squeezed(events: list[Event], size: int) -> tuple[list[Event], int]:
    """Merge and then leave out droppable events until at most `size` are left, besides gaps.

    Returns:
        What is left, with gaps where events were left out, and how many those were.
    """
    from agents_tools.events import GapEvent, ToolArtifactEvent

    events = _merged(events)
    surplus = _count(events) - size
    victims = [place for place, event in enumerate(events) if event.droppable]
    victims.sort(key=lambda place: isinstance(events[place], ToolArtifactEvent))  # these go last
    doomed = set(victims[: max(surplus, 0)])
    left: list[Event] = []
    for place, event in enumerate(events):
        missing = 1 if place in doomed else event.dropped if isinstance(event, GapEvent) else 0
        if not missing:
            left.append(event)
        elif left and isinstance(left[-1], GapEvent):
            left[-1] = _gap(left[-1].dropped + missing, event)
        else:
            left.append(_gap(missing, event))
    return left, len(doomed)


def _count(events: list[Event]) -> int:
    """Count events, besides gaps."""
    from agents_tools.events import GapEvent

    return sum(not isinstance(event, GapEvent) for event in events)


def _merged(events: list[Event]) -> list[Event]:
    """Merge adjacent deltas of a call, and let its latest progress stand for the earlier ones."""
    from agents_tools.events import GapEvent, NotifyStreamEvent, ToolProgressEvent

    merged: list[Event | None] = []
    last: dict[tuple[str, ...], int] = {}  # the place of the last event of each call
    progress: dict[tuple[str, ...], int] = {}
    for event in events:
        call = event.path
        if isinstance(event, NotifyStreamEvent) and event.is_delta and call in last:
            longer = _appended(merged[last[call]], event)
            if longer is not None:
                merged[last[call]] = longer
                continue
        elif isinstance(event, ToolProgressEvent) and event.origin:
            if call in progress:
                merged[progress[call]] = None
            progress[call] = len(merged)
        elif isinstance(event, GapEvent):
            last.clear()  # never over a hole
        if event.origin:
            last[call] = len(merged)
        merged.append(event)
    return [event for event in merged if event is not None]


def _appended(before: Event | None, delta: NotifyStreamEvent) -> NotifyStreamEvent | None:
    """Put two deltas together, if the first is one; its place is kept."""
    from agents_tools.events import NotifyStreamEvent

    if (
        isinstance(before, NotifyStreamEvent)
        and before.is_delta
        and (before.tag, before.level) == (delta.tag, delta.level)
        and len(before.data) + len(delta.data) <= _LONGEST_DELTA
    ):
        return before.replace(data=before.data + delta.data)
    return None


def _gap(dropped: int, last: Event) -> GapEvent:
    """Say that events are missing, in the place of the last of them."""
    from agents_tools.events import GapEvent

    return GapEvent(dropped).replace(seq=last.seq, timestamp=last.timestamp)


# --- listening ------------------------------------------------------------------------------------


def listen(*, all: bool = False, maxsize: int = 100_000) -> Listener:
    """Collect what tools say inside a block, whatever framework runs them.

    ::

        async with listen() as heard:
            await some_agent.run("…")
        for event in heard:
            ...

    Use it with `with` or `async with`. Inside the block `async for` gives events as they come;
    after it, `async for` ends where the events end.

    Args:
        all: Hear every call of the process. Otherwise those that begin inside the block, also in
            tasks, and in threads that got a copy of its context (see `bind`).
        maxsize: How many events are kept. Beyond, the oldest droppable ones give way to a
            `GapEvent`.
    """
    return Listener(everywhere=all, maxsize=maxsize)


class Listener(_Readable):
    """What was heard inside a `listen` block."""

    def __init__(self, *, everywhere: bool, maxsize: int) -> None:
        super().__init__()
        if maxsize < 1:
            raise UserError(f"listen needs room for at least one event, got maxsize={maxsize}.")
        self._everywhere = everywhere
        self._maxsize = maxsize
        self._limit = maxsize
        self._heard: list[Event] = []
        self._read = 0
        self._stretch = 0
        self._entered = False
        self._left = False

    @property
    def events(self) -> list[Event]:
        """All events so far, in a new list."""
        return self._heard.copy()

    def __iter__(self) -> Iterator[Event]:
        """Go over all events so far."""
        return iter(self.events)

    def __enter__(self) -> Self:
        """Start to hear."""
        if self._entered:
            raise UserError("This listener was used before. Write `with listen() as …` again.")
        self._entered = True
        _add_listener(self.hear, everywhere=self._everywhere)
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop hearing, also what still runs."""
        _remove_listener(self.hear, everywhere=self._everywhere)
        self._left = True
        self._wake_reader()

    async def __aenter__(self) -> Self:
        """Start to hear."""
        return self.__enter__()

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop hearing, also what still runs."""
        self.__exit__()

    def __aiter__(self) -> Self:
        """Read on from where the last reader stopped."""
        return self

    async def __anext__(self) -> Event:
        """Give the next event.

        Raises:
            StopAsyncIteration: The block is over and everything was read.
            UserError: Another task is reading.
        """
        if self._stretch >= _HANDFUL * _STRETCH:
            self._stretch = 0
            await _pause()
        while True:
            with self._lock:
                if self._read < len(self._heard):
                    self._read += 1
                    self._stretch += 1
                    return self._heard[self._read - 1]
                if self._left:
                    raise StopAsyncIteration
            self._stretch = 0
            await self._wait_until_ready()

    def hear(self, event: Event) -> None:
        """Take an event; the `Emit` that is in force inside the block."""
        if self._left:
            return
        self._heard.append(event)
        if len(self._heard) > self._limit:
            self._shorten()
        if self._reader is not None:
            self._wake_reader()

    def _ready(self) -> bool:
        return self._read < len(self._heard) or self._left

    def _shorten(self) -> None:
        """Leave out old events, those that were read already first."""
        with self._lock:
            count = len(self._heard)
            size = self._maxsize - max(self._maxsize // 8, 1)
            unread = self._heard[self._read : count]
            read, _ = _squeezed(self._heard[: self._read], max(size - _count(unread), 0))
            unread, _ = _squeezed(unread, max(size - _count(read), 0))
            self._heard[:count] = read + unread  # what was appended meanwhile stays behind it
            self._read = len(read)
            self._limit = max(self._maxsize, len(self._heard) + self._maxsize // 8)


_here: ContextVar[tuple[Emit, ...]] = ContextVar("agents_tools_listeners", default=())
_everywhere: tuple[Emit, ...] = ()
_open = 0
_counting = RLock()


def listeners() -> tuple[Emit, ...]:
    """Give everybody who listens here; empty, and cheap, when nobody does."""
    return _here.get() + _everywhere if _open else ()


def hear_everything(emit: Emit) -> Callable[[], None]:
    """Send all events of the process to a function, as they are said and where they are said.

    Args:
        emit: Takes an event, and never waits. It runs in the context of whoever says the event.

    Returns:
        What ends it; calling it again does nothing.
    """
    _add_listener(emit, everywhere=True)

    def stop() -> None:
        if emit in _everywhere:
            _remove_listener(emit, everywhere=True)

    return stop


def _add_listener(emit: Emit, *, everywhere: bool) -> None:
    global _everywhere, _open  # noqa: PLW0603 - the process has one set of listeners
    with _counting:
        _open += 1
        if everywhere:
            _everywhere = (*_everywhere, emit)
        else:
            _here.set((*_here.get(), emit))


def _remove_listener(emit: Emit, *, everywhere: bool) -> None:
    global _everywhere, _open  # noqa: PLW0603 - as above
    with _counting:
        _open -= 1
        if everywhere:
            _everywhere = tuple(other for other in _everywhere if other != emit)
        else:  # by value, not with a token: the block may be left in another context
            _here.set(tuple(other for other in _here.get() if other != emit))


def bind(fn: Callable[P, T]) -> Callable[P, T]:
    """Make `fn` run in a copy of this context, wherever it is called; each call in its own.

    This carries `listen`, and the call that is running, into threads that know nothing of them::

        executor.submit(bind(work), …)

    Raises:
        UserTypeError: `fn` is an async function. A task copies the context by itself.
    """
    from inspect import iscoroutinefunction

    if iscoroutinefunction(fn):
        raise UserTypeError(
            f"bind({getattr(fn, '__name__', fn)}): an async function runs in the context of the "
            "task that awaits it. Start a task here, asyncio.create_task copies the context.",
        )
    context = copy_context()

    @wraps(fn)
    def bound(*args: P.args, **kwargs: P.kwargs) -> T:
        return context.copy().run(fn, *args, **kwargs)

    return bound


# --- waiting --------------------------------------------------------------------------------------


class _Waiter:
    """A task that waits; any thread may wake it."""

    __slots__ = ("_future", "_loop", "_thread", "overdue")

    def __init__(self) -> None:
        from asyncio import get_running_loop

        self._loop = get_running_loop()
        self._future = self._loop.create_future()
        self._thread = get_ident()
        self.overdue = False

    def is_waiting(self) -> bool:
        return not self._future.done() and not self._loop.is_closed()

    async def wait(self, patience: float | None = None) -> bool:
        """Wait until woken; `False` when patience ends first."""
        if patience is None:
            await self._future
            return True
        timer = self._loop.call_later(patience, self._give_up)
        try:
            await self._future
        finally:
            timer.cancel()
        return not self.overdue

    def wake(self) -> bool:
        """Wake the task; `False` if its loop is closed, so that nothing will ever run there."""
        try:
            if get_ident() == self._thread:
                self._settle()
            else:
                self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            return False
        return True

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def _give_up(self) -> None:
        if not self._future.done():
            self.overdue = True
            self._future.set_result(None)


class _Sleeper:
    """A thread that waits."""

    __slots__ = ("_signal", "overdue")

    def __init__(self) -> None:
        self._signal = Signal()
        self.overdue = False

    def wait(self, patience: float) -> bool:
        """Wait until woken; `False` when patience ends first."""
        self.overdue = not self._signal.wait(patience)
        return not self.overdue

    def wake(self) -> bool:
        self._signal.set()
        return True


async def _pause() -> None:
    from asyncio import sleep

    await sleep(0)


def _in_event_loop() -> bool:
    """Whether this thread runs an event loop, which must not be blocked."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
