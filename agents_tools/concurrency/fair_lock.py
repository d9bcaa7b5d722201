"""Resources that one call at a time can use, and the queue of calls that wait for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import Generic, TypeVar

from agents_tools.concurrency.future import PendingFuture

__all__ = ["FairLock", "LockTicket"]

T = TypeVar("T")


class LockTicket(Generic[T]):
    """A call that waits for resources. Create it on the event loop that waits."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.left = False
        self._turn: PendingFuture[T | None] | None = None

    def start_turn(self) -> PendingFuture[T | None]:
        """Return a new place in the queue, which is over already after `leave`."""
        turn = self._turn = PendingFuture[T | None](loop=self.loop)
        if self.left:  # checked after the assignment: another thread can call `leave` meanwhile
            turn.resolve(None)
        return turn

    def leave(self) -> None:
        """Stop waiting, now and later. Can be called from any thread."""
        self.left = True
        if (turn := self._turn) is not None:
            turn.resolve(None)


class FairLock(Generic[T]):
    """Hands resources to waiting calls in order, also across event loops and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: deque[T] = deque()
        self._waiting: deque[PendingFuture[T | None]] = deque()

    @property
    def waiting(self) -> int:
        """The number of waiting calls."""
        return len(self._waiting)

    def put(self, resource: T) -> None:
        """Hand a resource to the call that waits longest, or keep it for the next call."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free.append(resource)
                    return
                turn = self._waiting.popleft()
            if turn.resolve(resource):
                return

    async def take(self, ticket: LockTicket[T], *, deadline: float | None = None) -> T | None:
        """Wait for a resource and return it.

        Args:
            ticket: The waiting call.
            deadline: The time at which to stop waiting, in seconds since 1970.

        Returns:
            The resource; `None` at the deadline, and after `ticket.leave()`.
        """
        with self._lock:
            if self._free:
                return self._free.popleft()
            turn = ticket.start_turn()
            self._waiting.append(turn)
        try:
            await turn.wait(None if deadline is None else max(0.0, deadline - time.time()))
        except BaseException:
            self._abandon(turn)
            raise
        turn.resolve(None)  # the deadline has passed, unless a resource has arrived
        self._leave_queue(turn)
        return turn.result()

    def _abandon(self, turn: PendingFuture[T | None]) -> None:
        """Leave the queue; a resource that has arrived meanwhile goes to the next call."""
        self._leave_queue(turn)
        if turn.cancel() or not turn.done():
            return
        if (resource := turn.result()) is not None:
            self.put(resource)

    def _leave_queue(self, turn: PendingFuture[T | None]) -> None:
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)

    def put_for_all(self, resource: T) -> None:
        """Hand the same resource to all waiting calls."""
        for turn in self._take_waiting():
            turn.resolve(resource)

    def clear(self) -> list[T]:
        """Return all free resources, and end all waits."""
        with self._lock:
            free = list(self._free)
            self._free.clear()
        for turn in self._take_waiting():
            turn.resolve(None)
        return free

    def _take_waiting(self) -> list[PendingFuture[T | None]]:
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting
