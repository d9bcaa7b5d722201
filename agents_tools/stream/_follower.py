"""Read a stream with `async for`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from agents_tools.errors import UserError
from agents_tools.store import Pending
from agents_tools.stream._log import Cursor
from agents_tools.stream._waking import Home, Waiter

if TYPE_CHECKING:
    from typing import Self

    from agents_tools.events import Event
    from agents_tools.store import EventFilter
    from agents_tools.stream._log import Log, Policy

__all__ = ["Follower"]

_STRETCH: Final = 1024
"""After how many events without a pause a reader lets other tasks run."""

_numbers = iter(range(1 << 62))


class Follower:
    """The events of a stream from some id on: those that were, then those that come.

    Iterate over it with `async for`, in one task. It ends when the stream is closed and everything
    was read. Leave it with `aclose`, or use it with `async with`.
    """

    def __init__(
        self, log: Log, at: int, policy: Policy, max_pending: int, where: EventFilter | None
    ) -> None:
        self.rank: tuple[int, str, str] = (1, f"{next(_numbers):020}", "")
        self._log = log
        self._home: Home | None = None
        self._cursor = Cursor(log, at, policy=policy, max_pending=max_pending, where=where)
        self._hand: deque[Event] = deque()
        self._waiter: Waiter | None = None
        self._stretch = 0
        self._left = False
        self._last = at - 1

    def __aiter__(self) -> Self:
        """Read from here."""
        return self

    async def __anext__(self) -> Event:
        """Give the next event.

        Raises:
            StopAsyncIteration: The stream is closed and everything was read, or this was closed.
            UserError: Another task is reading.
        """
        hand = self._hand
        cursor = self._cursor
        if cursor.seen < self._last:
            cursor.advance(self._last)
        if not hand or self._stretch >= _STRETCH or self._left or self._log.cut:
            await self._fill()
        self._stretch += 1
        event = hand.popleft()
        self._last = event.id
        return event

    async def aclose(self) -> None:
        """Read no more."""
        self._left = True
        self._hand.clear()
        self._cursor.leave()
        with self._log.lock:
            self._log.waiting.pop(self, None)
        self.wake()

    async def __aenter__(self) -> Self:
        """Read inside a block."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Read no more."""
        await self.aclose()

    def __del__(self) -> None:
        """Let nobody wait for a reader that is gone."""
        if not self._left:
            self._cursor.leave()

    def wake(self) -> None:
        """Go on reading."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.wake()

    async def _fill(self) -> None:
        """Have at least one event in the hand."""
        self._start()
        if self._stretch >= _STRETCH:
            self._stretch = 0
            await _pause()
        if self._log.cut:
            self._left = True
            self._hand.clear()
        while not self._hand:
            if self._left:
                raise StopAsyncIteration
            taken = self._cursor.take()
            if isinstance(taken, Pending):
                taken = await self._arrival(taken)
            elif not taken:
                await self._wait()
            self._hand.extend(taken)

    async def _arrival(self, pending: Pending[list[Event]]) -> list[Event]:
        try:
            return await pending
        finally:
            if pending.done():  # or a cancelled reader would miss it
                self._cursor.took()

    def _start(self) -> None:
        """Know the task that reads; a reader belongs to one loop at a time."""
        from asyncio import current_task

        if self._waiter is not None:
            raise UserError(
                "Two tasks read the same follower; let each follow the stream on its own.",
            )
        if self._home is None or not self._home.is_here():
            self._home = Home()
            self._cursor.is_dead = self._home.is_closed
        self._cursor.start(current_task())

    async def _wait(self) -> None:
        """Wait for the next event; leave when there will be none."""
        waiter = Waiter(self._home or Home())
        log = self._log
        with log.lock:
            if log.next_id > self._cursor.at:
                return
            if log.closed:
                self._left = True
                return
            self._waiter = waiter
            log.waiting[self] = None
        self._stretch = 0
        try:
            await waiter.wait()
        finally:
            self._waiter = None
            with log.lock:
                log.waiting.pop(self, None)


async def _pause() -> None:
    from asyncio import sleep

    await sleep(0)
