"""Resources that one call at a time can use, and the queue of calls that wait for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import Generic, TypeVar

__all__ = ["FairLock", "LockTicket"]

T = TypeVar("T")


class LockTicket(Generic[T]):
    """A place in the queue. Create it on the event loop that waits."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.signal = asyncio.Event()
        self.resource: T | None = None
        self.left = False

    def leave(self) -> None:
        """Stop waiting. Can be called from any thread."""
        self.left = True
        self.wake()

    def wake(self) -> bool:
        """Wake the waiting task; `False` if its event loop is closed."""
        try:
            self.loop.call_soon_threadsafe(self.signal.set)
        except RuntimeError:  # the event loop is closed
            return False
        return True


class FairLock(Generic[T]):
    """Hands resources to waiting calls in order, also across event loops and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: deque[T] = deque()
        self._waiting: deque[LockTicket[T]] = deque()

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
                ticket = self._waiting.popleft()
                ticket.resource = resource
            if ticket.wake():
                return

    async def take(self, ticket: LockTicket[T], *, deadline: float | None = None) -> T | None:
        """Wait for a resource and return it.

        Args:
            ticket: The place in the queue.
            deadline: The time at which to stop waiting, in seconds since 1970.

        Returns:
            The resource; `None` at the deadline, and after `ticket.leave()`.
        """
        with self._lock:
            if self._free:
                return self._free.popleft()
            if ticket.left:
                return None
            ticket.resource = None  # the resource of the previous wait
            ticket.signal.clear()
            self._waiting.append(ticket)
        seconds = None if deadline is None else max(0.0, deadline - time.time())
        try:
            async with asyncio.timeout(seconds):
                while ticket.resource is None and not ticket.left:
                    await ticket.signal.wait()
                    ticket.signal.clear()
        except TimeoutError:
            pass
        except BaseException:
            if (resource := self._leave_queue(ticket)) is not None:
                self.put(resource)
            raise
        return self._leave_queue(ticket)

    def _leave_queue(self, ticket: LockTicket[T]) -> T | None:
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            return ticket.resource

    def put_for_all(self, resource: T) -> None:
        """Hand the same resource to all waiting calls."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            for ticket in waiting:
                ticket.resource = resource
        for ticket in waiting:
            ticket.wake()

    def clear(self) -> list[T]:
        """Return all free resources, and end all waits."""
        with self._lock:
            free, waiting = list(self._free), list(self._waiting)
            self._free.clear()
            self._waiting.clear()
        for ticket in waiting:
            ticket.leave()
        return free
