"""Read a stream with `async for`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from agents_tools.concurrency.future import LoopReference
from agents_tools.errors import UserError
from agents_tools.persistence import PendingFuture
from agents_tools.persistence.stream.log import Cursor

if TYPE_CHECKING:
    from typing import Self

    from agents_tools.events.base import Event
    from agents_tools.persistence import EventFilter
    from agents_tools.persistence.stream.log import EventLog, Policy

__all__ = ["Follower"]

_MAX_READ: Final = 1024
"""The number of events that a reader gets before other tasks of the loop run."""

_counter = iter(range(1 << 62))


class Follower:
    """An async iterator over the past and future events of a stream.

    Iterate over it with `async for`, in one task. It ends when the stream is closed and all events
    were read. To stop earlier, call `aclose` or use `async with`.
    """

    def __init__(
        self, log: EventLog, at: int, policy: Policy, max_pending: int, where: EventFilter | None
    ) -> None:
        self.rank: tuple[int, str, str] = (1, f"{next(_counter):020}", "")
        self._log = log
        self._loop: LoopReference | None = None
        self._cursor = Cursor(log, at, policy=policy, max_pending=max_pending, where=where)
        self._batch: deque[Event] = deque()
        self._waiter: PendingFuture[None] | None = None
        self._read_in_turn = 0
        self._is_closed = False
        self._last = at - 1

    def __aiter__(self) -> Self:
        """Return the follower itself."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event.

        Raises:
            StopAsyncIteration: The stream is closed and all events were read, or the follower was
                closed.
            UserError: Another task is reading.
        """
        batch = self._batch
        cursor = self._cursor
        if cursor.seen < self._last:
            cursor.advance(self._last)
        if not batch or self._read_in_turn >= _MAX_READ or self._is_closed or self._log.cut:
            await self._fill()
        self._read_in_turn += 1
        event = batch.popleft()
        self._last = event.id
        return event

    async def aclose(self) -> None:
        """Stop reading."""
        self._is_closed = True
        self._batch.clear()
        self._cursor.leave()
        with self._log.lock:
            self._log.waiting.pop(self, None)
        self.wake()

    async def __aenter__(self) -> Self:
        """Return the follower itself."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the follower."""
        await self.aclose()

    def __del__(self) -> None:
        """Detach from the log, so that no sender waits for a reader that does not exist."""
        if not self._is_closed:
            self._cursor.leave()

    def wake(self) -> None:
        """Continue to read."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.resolve(None)

    async def _fill(self) -> None:
        """Read events until the batch has at least one."""
        self._start()
        if self._read_in_turn >= _MAX_READ:
            self._read_in_turn = 0
            await _yield_to_event_loop()
        if self._log.cut:
            self._is_closed = True
            self._batch.clear()
        while not self._batch:
            if self._is_closed:
                raise StopAsyncIteration
            events = self._cursor.take()
            if isinstance(events, PendingFuture):
                events = await self._finish_read(events)
            elif not events:
                await self._wait()
            self._batch.extend(events)

    async def _finish_read(self, pending: PendingFuture[list[Event]]) -> list[Event]:
        try:
            return await pending
        finally:
            if pending.done():  # otherwise a cancelled reader would miss the events
                self._cursor.clear_pending()

    def _start(self) -> None:
        """Register the task that reads. A reader belongs to one loop at a time."""
        from asyncio import current_task

        if self._waiter is not None:
            raise UserError(
                "Two tasks read the same follower: expected one. Call `follow` in each task.",
            )
        if self._loop is None or not self._loop.is_here():
            self._loop = LoopReference()
            self._cursor.is_dead = self._loop.is_closed
        self._cursor.start(current_task())

    async def _wait(self) -> None:
        """Wait for the next event; close the follower if there will be none."""
        waiter: PendingFuture[None] = PendingFuture()
        log = self._log
        with log.lock:
            if log.next_id > self._cursor.at:
                return
            if log.closed:
                self._is_closed = True
                return
            self._waiter = waiter
            log.waiting[self] = None
        self._read_in_turn = 0
        try:
            await waiter
        finally:
            self._waiter = None
            with log.lock:
                log.waiting.pop(self, None)


async def _yield_to_event_loop() -> None:
    from asyncio import sleep

    await sleep(0)
