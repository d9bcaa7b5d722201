"""A bounded queue of events with one reader and writers in any thread.

Delivering an event needs no lock: writers append to one deque, and the reader removes batches from
it. Only taking a batch, waking a waiter and making room in a full queue need the lock.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from agents_tools.concurrency.future import PendingFuture, running_loop
from agents_tools.errors import UserError
from agents_tools.events.coalesce import (
    coalesce,
    count_events,
    drop_display_events,
    gap_after,
)
from agents_tools.events.single_reader import SingleReader, yield_to_event_loop

if TYPE_CHECKING:
    from typing import Self

    from agents_tools.events.base import Event
    from agents_tools.events.kinds import GapEvent

__all__ = ["Channel"]

SEND_TIMEOUT: Final = 5.0
"""How long a writer waits for a reader that does not read, in seconds."""

_TURN_INTERVAL: Final = 0.001
"""How long a writer can hold the event loop before the reader gets a turn, in seconds."""

_BATCH: Final = 64
"""The number of events that the reader gets at a time."""

_MAX_BATCHES: Final = 16
"""The number of batches that the reader gets before other tasks run."""


class Channel(SingleReader):
    """A bounded queue of events with one reader and writers in any thread.

    The reader iterates over the channel with `async for`. It can begin late, pause and continue.
    After `close`, it gets the events that are left and the iteration ends.

    Args:
        maxsize: The largest number of events in the queue, besides the batch that the reader has
            taken. Events that are not droppable are accepted even when the queue is full.
        patience: How long a writer waits for a reader that does not read, in seconds.
    """

    def __init__(self, maxsize: int = 1024, *, patience: float = SEND_TIMEOUT) -> None:
        super().__init__()
        if maxsize < 1:
            raise UserError(
                f"Channel(maxsize=) is too small: expected at least 1, got maxsize={maxsize}."
            )
        self._maxsize = maxsize
        self._patience = patience
        self._limit = maxsize  # from this length on, a push first makes room; 0 when closed
        self._queue: deque[Event] = deque()
        self._batch: deque[Event] = deque()  # used by the reader only
        self._batches = 0
        self._batches_in_turn = 0
        self._senders: deque[PendingFuture[None]] = deque()
        self._closed = False
        self._dropped = 0
        self._is_incompressible = False  # a full queue without droppable events
        self._gap: GapEvent | None = None  # counts the events dropped from an incompressible queue
        self._stalled: tuple[int, int] | None = None  # the reader's position at the last timeout
        self._next_turn = 0.0

    @property
    def closed(self) -> bool:
        """Return whether the channel is closed and accepts no more events."""
        return self._closed

    @property
    def dropped(self) -> int:
        """The number of events dropped so far. Merged events do not count."""
        return self._dropped

    def push(self, event: Event) -> None:
        """Deliver an event without waiting, from any thread.

        When the queue is full, adjacent deltas of a call are merged and only its latest progress
        event is kept. If that is not enough, a `GapEvent` replaces the oldest droppable events.
        """
        if len(self._queue) >= self._limit and not self._make_room(event):
            return
        self._queue.append(event)
        if self._reader is not None:
            self._wake_reader()

    def should_wait(self) -> bool:
        """Return whether a writer should await `wait_for_room` now.

        This is the case when the queue is full, or when the reader is due for a turn.
        """
        return len(self._queue) >= self._limit or perf_counter() >= self._next_turn

    async def wait_for_room(self) -> None:
        """Let the reader have its turn, and wait until an event can be pushed without loss.

        The reader and other tasks get a turn about once per millisecond, even if the writer has no
        other `await`, and also if a policy drops all its events.
        """
        if perf_counter() >= self._next_turn:
            await yield_to_event_loop()
            self._next_turn = perf_counter() + _TURN_INTERVAL
        # Last, because other writers can fill the queue while the reader has its turn.
        if len(self._queue) >= self._limit:
            await self._wait_in_queue()

    def wait_for_room_blocking(self) -> None:
        """Wait in a worker thread until an event can be pushed without loss.

        In a thread that runs an event loop, return at once: waiting would block the loop.
        """
        while len(self._queue) >= self._limit and running_loop() is None:
            sender: PendingFuture[None] = PendingFuture()
            position = self._join_queue(sender)
            if position is None:
                return
            try:
                has_room = sender.wait_in_thread(self._patience)
            except BaseException:
                self._abandon(sender)
                raise
            if not has_room:
                self._leave_queue(sender, position)

    def close(self) -> None:
        """Accept no more events and wake the reader and all senders. Can be called again."""
        with self._lock:
            self._closed = True
            self._limit = 0
            senders = [*self._senders]
            self._senders.clear()
        for sender in senders:
            sender.resolve(None)
        self._wake_reader()

    def __aiter__(self) -> Self:
        """Return the channel itself."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event.

        Raises:
            StopAsyncIteration: The channel is closed and all events were read.
            UserError: Another task is reading.
        """
        if self._batch:
            return self._batch.popleft()
        if self._batches_in_turn >= _MAX_BATCHES:
            self._batches_in_turn = 0
            await yield_to_event_loop()
        while not self._take_batch():
            if self._closed:
                raise StopAsyncIteration
            self._batches_in_turn = 0
            await self._wait_until_ready()
        return self._batch.popleft()

    # --- reading ----------------------------------------------------------------------------------

    def _is_ready(self) -> bool:
        return bool(self._queue) or self._closed

    def _take_batch(self) -> bool:
        with self._lock:
            count = min(len(self._queue), _BATCH)
            if not count:
                return False
            self._batch.extend([self._queue.popleft() for _ in range(count)])
            self._batches += 1
            self._batches_in_turn += 1
            self._is_incompressible = False
            self._gap = None
            if not self._closed:
                self._limit = self._maxsize
            free = max(self._limit - len(self._queue), 0)
            released = [self._senders.popleft() for _ in range(min(free, len(self._senders)))]
        for sender in released:
            if not sender.resolve(None):
                self._wake_sender()
        return True

    # --- waiting for room -------------------------------------------------------------------------

    async def _wait_in_queue(self) -> None:
        while len(self._queue) >= self._limit:
            sender: PendingFuture[None] = PendingFuture(loop=running_loop())
            position = self._join_queue(sender)
            if position is None:
                return
            try:
                has_room = await sender.wait(self._patience)
            except BaseException:
                self._abandon(sender)
                raise
            if not has_room:
                self._leave_queue(sender, position)

    def _join_queue(self, sender: PendingFuture[None]) -> tuple[int, int] | None:
        """Queue a sender and return the reader's position; return `None` if it need not wait.

        A sender does not wait when there is room, after `close`, and when another sender has timed
        out while the reader stood at the same position.
        """
        with self._lock:
            position = (self._batches, len(self._batch))
            if len(self._queue) < self._limit or self._closed or self._stalled == position:
                return None
            self._senders.append(sender)
            return position

    def _leave_queue(self, sender: PendingFuture[None], position: tuple[int, int]) -> None:
        """Remove a sender that timed out, and note that the reader does not read."""
        with self._lock:
            if sender in self._senders:  # otherwise it was woken meanwhile
                self._senders.remove(sender)
            if position == (self._batches, len(self._batch)):
                self._stalled = position

    def _abandon(self, sender: PendingFuture[None]) -> None:
        """Remove a sender that was cancelled while it waited."""
        with self._lock:
            is_queued = sender in self._senders
            if is_queued:
                self._senders.remove(sender)
        if not is_queued:
            # It was woken and cancelled at the same time: the free slot goes to the next sender.
            self._wake_sender()

    def _wake_sender(self) -> None:
        woken = False
        while not woken:
            with self._lock:
                if not self._senders:
                    return
                sender = self._senders.popleft()
            woken = sender.resolve(None)

    # --- making room ------------------------------------------------------------------------------

    def _make_room(self, event: Event) -> bool:
        with self._lock:
            if self._closed:
                return False
            if not event.droppable:
                return True
            if not self._is_incompressible:
                self._shorten()
            if self._is_incompressible:
                self._drop(event)
            return not self._is_incompressible

    def _shorten(self) -> None:
        """Shorten the queue. Events that other threads append meanwhile stay behind the rest."""
        before = [self._queue.popleft() for _ in range(len(self._queue))]
        size = self._maxsize - max(self._maxsize // 8, 1)  # leaves room for the next events
        after, dropped = drop_display_events(coalesce(before), size)
        self._queue.extendleft(reversed(after))
        self._dropped += dropped
        self._limit = self._maxsize + len(after) - count_events(after)
        self._is_incompressible = count_events(after) > size

    def _drop(self, event: Event) -> None:
        self._dropped += 1
        if self._gap is None or self._queue[-1] is not self._gap:
            self._gap = gap_after(0, event)
            self._queue.append(self._gap)
        # The gap is changed in place, because only the reader may replace an entry of the queue.
        gap: Any = self._gap
        gap.dropped += 1
        gap.seq = event.seq
        gap.timestamp = event.timestamp
