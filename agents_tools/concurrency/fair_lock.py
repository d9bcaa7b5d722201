"""Things that one call at a time may use, and the line of calls that wait for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import Generic, TypeVar

__all__ = ["FairLock", "LockTicket"]

T = TypeVar("T")


class LockTicket(Generic[T]):
    """A place in a line. Made on the event loop that waits."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.signal = asyncio.Event()
        self.got: T | None = None
        self.left = False

    def leave(self) -> None:
        """Wait no longer; any thread may say so."""
        self.left = True
        self.wake()

    def wake(self) -> bool:
        """Wake who waits; `False` if no one can wait there any more."""
        try:
            self.loop.call_soon_threadsafe(self.signal.set)
        except RuntimeError:  # the event loop is closed
            return False
        return True


class FairLock(Generic[T]):
    """What is free, and who waits; can be used from several event loops and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: deque[T] = deque()
        self._waiting: deque[LockTicket[T]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def put(self, thing: T) -> None:
        """Return a thing to whoever waits longest, or keep it for the next to come."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free.append(thing)
                    return
                ticket = self._waiting.popleft()
                ticket.got = thing
            if ticket.wake():
                return

    async def take(self, ticket: LockTicket[T], *, deadline: float | None = None) -> T | None:
        """Take a thing, waiting for one.

        Args:
            ticket: The place in the line.
            deadline: Until when to wait, in seconds since 1970.

        Returns:
            The thing; `None` at the deadline, and after `ticket.leave()`.
        """
        with self._lock:
            if self._free:
                return self._free.popleft()
            if ticket.left:
                return None
            ticket.got = None  # what it got the last time
            ticket.signal.clear()
            self._waiting.append(ticket)
        seconds = None if deadline is None else max(0.0, deadline - time.time())
        try:
            async with asyncio.timeout(seconds):
                while ticket.got is None and not ticket.left:
                    await ticket.signal.wait()
                    ticket.signal.clear()
        except TimeoutError:
            pass
        except BaseException:
            if (thing := self._quit(ticket)) is not None:
                self.put(thing)
            raise
        return self._quit(ticket)

    def _quit(self, ticket: LockTicket[T]) -> T | None:
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            return ticket.got

    def put_for_all(self, thing: T) -> None:
        """Return all who wait the same thing."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            for ticket in waiting:
                ticket.got = thing
        for ticket in waiting:
            ticket.wake()

    def clear(self) -> list[T]:
        """Take all that is free, and send away all who wait."""
        with self._lock:
            free, waiting = list(self._free), list(self._waiting)
            self._free.clear()
            self._waiting.clear()
        for ticket in waiting:
            ticket.leave()
        return free
