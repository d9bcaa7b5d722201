"""A limit on parallel uses and on uses per second, shared by threads and event loops."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque

from agents_tools.concurrency.future import PendingFuture, running_loop

__all__ = ["Limiter", "LimiterFull", "RateLimit"]


class LimiterFull(Exception):  # noqa: N818 - control flow: the caller raises its own error
    """As many uses wait as are allowed to.

    Args:
        waiting: The number of uses that wait.
    """

    def __init__(self, waiting: int) -> None:
        super().__init__(waiting)
        self.waiting = waiting


class Limiter:
    """Limits parallel uses and uses per second.

    Uses start in the order in which they were requested, from any thread and event loop. One that
    ends passes its slot to the first one that waits.

    Args:
        concurrent: The maximum number of parallel uses; `None` for no limit.
        rate: The limit on starts; `None` for no limit.
        queue: The maximum number of uses that wait; `None` for no limit.
    """

    def __init__(self, concurrent: int | None, rate: RateLimit | None, queue: int | None) -> None:
        self._free = concurrent
        self._rate = rate
        self._queue = queue
        self._waiting: deque[PendingFuture[None]] = deque()
        self._waiting_for_start = 0
        self._lock = threading.Lock()

    async def acquire(self) -> None:
        """Wait for a slot, and for the start time. If this is cancelled, nothing is held.

        Raises:
            LimiterFull: As many uses wait as are allowed to.
        """
        with self._lock:
            turn = self._take_slot_or_queue()
        if turn is not None:
            try:
                await turn
            except BaseException:
                with self._lock:
                    has_slot = turn.done() and turn.error() is None
                    if turn in self._waiting:
                        self._waiting.remove(turn)
                if has_slot:
                    self.release()
                raise
        if self._rate is not None:
            try:
                await self._wait_for_start(self._rate)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Pass the slot to the first use that waits, or free it."""
        if self._free is None:
            return
        with self._lock:
            while self._waiting:
                if self._waiting.popleft().resolve(None):
                    return
            self._free += 1

    def _take_slot_or_queue(self) -> PendingFuture[None] | None:
        """Return `None` if a slot was free, otherwise a future that is set when one is."""
        if self._free is None:
            return None
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return None
        if self._queue is not None and len(self._waiting) >= self._queue:
            raise LimiterFull(len(self._waiting))
        turn: PendingFuture[None] = PendingFuture(loop=running_loop())
        self._waiting.append(turn)
        return turn

    async def _wait_for_start(self, rate: RateLimit) -> None:
        import asyncio

        now = time.monotonic()
        with self._lock:
            may_wait = self._queue is None or self._waiting_for_start < self._queue
            start = rate.take(now, may_wait=may_wait)
            if start is None:
                raise LimiterFull(self._waiting_for_start)
            self._waiting_for_start += 1
        try:
            if start > now:
                await asyncio.sleep(start - now)
        except BaseException:
            with self._lock:
                rate.give_back(start)
            raise
        finally:
            with self._lock:
                self._waiting_for_start -= 1


class RateLimit:
    """The start times of uses for a rate limit with bursts.

    Args:
        per_second: The number of starts per second, evenly spaced.
        burst: How many of them can happen at once after a pause.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self._gap = 1.0 / per_second
        self._ahead = (burst - 1) * self._gap
        self._next = 0.0
        self._freed: list[float] = []  # a heap of start times that were returned unused

    def take(self, now: float, *, may_wait: bool) -> float | None:
        """Return the next start time; `None` if it is in the future and `may_wait` is false."""
        while self._freed and self._freed[0] < now:
            heapq.heappop(self._freed)
        start = self._freed[0] if self._freed else max(now, self._next - self._ahead)
        if start > now and not may_wait:
            return None
        if self._freed:
            return heapq.heappop(self._freed)
        self._next = max(now, self._next) + self._gap
        return start

    def give_back(self, start: float) -> None:
        """Return an unused start time, so that another use can take it."""
        heapq.heappush(self._freed, start)
