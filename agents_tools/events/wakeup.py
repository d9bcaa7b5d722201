"""Let a task or a thread wait until another thread wakes it."""

from __future__ import annotations

import sys
from threading import Event as Signal, RLock, get_ident

from agents_tools.errors import UserError

__all__ = [
    "SingleReader",
    "TaskWaiter",
    "ThreadWaiter",
    "runs_event_loop",
    "yield_to_event_loop",
]


class SingleReader:
    """Base of classes with one reading task, which writers in any thread wake."""

    def __init__(self) -> None:
        # Reentrant: a finalizer or a signal handler can interrupt this code and emit an event.
        self._lock = RLock()
        self._reader: TaskWaiter | None = None

    def _ready(self) -> bool:
        """Return whether the reader can continue: there is an event, or the source is closed."""
        raise NotImplementedError

    async def _wait_until_ready(self) -> None:
        waiter = TaskWaiter()
        if self._reader is not None and self._reader.is_waiting():
            raise UserError(
                "Two tasks read the same events: expected one reader, because each event goes to "
                "one reader only. Read in one task and pass the events on from there.",
            )
        self._reader = waiter
        try:
            # Checked after the reader is registered: an event that comes before this line is seen
            # here, and the writer of a later one sees the reader.
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


class TaskWaiter:
    """A task that waits; any thread can wake it."""

    __slots__ = ("_future", "_loop", "_thread", "timed_out")

    def __init__(self) -> None:
        from asyncio import get_running_loop

        self._loop = get_running_loop()
        self._future = self._loop.create_future()
        self._thread = get_ident()
        self.timed_out = False

    def is_waiting(self) -> bool:
        """Return whether the task waits in a loop that is still open."""
        return not self._future.done() and not self._loop.is_closed()

    async def wait(self, patience: float | None = None) -> bool:
        """Wait until woken; return `False` if `patience` seconds pass first."""
        if patience is None:
            await self._future
            return True
        timer = self._loop.call_later(patience, self._time_out)
        try:
            await self._future
        finally:
            timer.cancel()
        return not self.timed_out

    def wake(self) -> bool:
        """Wake the task; return `False` if its loop is closed, so that it can never continue."""
        try:
            if get_ident() == self._thread:
                self._resolve()
            else:
                self._loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:
            return False
        return True

    def _resolve(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def _time_out(self) -> None:
        if not self._future.done():
            self.timed_out = True
            self._future.set_result(None)


class ThreadWaiter:
    """A thread that waits; any other thread can wake it."""

    __slots__ = ("_signal", "timed_out")

    def __init__(self) -> None:
        self._signal = Signal()
        self.timed_out = False

    def wait(self, patience: float) -> bool:
        """Wait until woken; return `False` if `patience` seconds pass first."""
        self.timed_out = not self._signal.wait(patience)
        return not self.timed_out

    def wake(self) -> bool:
        """Wake the thread; return `True`, because a thread can always continue."""
        self._signal.set()
        return True


async def yield_to_event_loop() -> None:
    """Let the other tasks of the event loop run once."""
    from asyncio import sleep

    await sleep(0)


def runs_event_loop() -> bool:
    """Return whether this thread runs an event loop, which must not be blocked."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
