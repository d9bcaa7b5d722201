"""What a store is still doing, for threads and for event loops alike."""

from __future__ import annotations

import logging
import os
from collections import deque
from concurrent.futures import CancelledError
from contextlib import contextmanager
from threading import Event as Signal, RLock, local
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future as Waiter
    from collections.abc import Callable, Generator
    from concurrent.futures import Future

__all__ = ["PendingFuture", "batched_wakeups"]

S = TypeVar("S")
T = TypeVar("T")

# One for all: it is held for a few assignments. Reentrant: a finalizer may end something in here.
_lock = RLock()


class PendingFuture(Generic[T]):
    """Something that was begun and will have a result; `await` it, or call `result`.

    The work continues when no one waits, and when the task that waits is cancelled, unless it can
    be given up (`on_cancel`). Whoever does the work calls `resolve` or `fail`, once, in any thread
    and outside of its locks: those who are told may use the store at once.

    Args:
        future: What does the work, if that is a future; its result becomes this one's.
        on_cancel: Returns the work up; without it the work cannot be cancelled.
    """

    __slots__ = ("_callbacks", "_done", "_error", "_on_cancel", "_value")

    def __init__(
        self,
        future: Future[T] | None = None,
        *,
        on_cancel: Callable[[], Any] | None = None,
    ) -> None:
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[PendingFuture[T]], None]] | None = None
        self._on_cancel = on_cancel
        if future is not None:
            future.add_done_callback(self._take)

    @staticmethod
    def now(value: S) -> PendingFuture[S]:
        """Return something that has its result already."""
        made: PendingFuture[S] = PendingFuture()
        made.resolve(value)
        return made

    @staticmethod
    def failed(error: BaseException) -> PendingFuture[Any]:
        """Return something that has failed already."""
        made: PendingFuture[Any] = PendingFuture()
        made.fail(error)
        return made

    def done(self) -> bool:
        """Return whether it has a result, or has failed."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Return the result, waiting for it in this thread.

        Args:
            timeout: How long to wait, in seconds; the work continues afterwards.

        Raises:
            TimeoutError: The time passed.
        """
        if not self._done and not self._is_done_within(timeout):
            raise TimeoutError(f"There was no result after {timeout:g} s.")
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def error(self) -> BaseException | None:
        """Why it failed; `None` if it did not, or is not done."""
        return self._error

    def add_done_callback(self, callback: Callable[[PendingFuture[T]], Any]) -> None:
        """Call something with this once it is done: at once if it is, else in any thread.

        What the callback raises is logged, and concerns no one else who waits.
        """
        with _lock:
            if not self._done:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        self._tell(callback)

    def resolve(self, value: T) -> bool:
        """Return it its result; `False` if it was done before."""
        return self._settle(value, None)

    def fail(self, error: BaseException) -> bool:
        """Let it fail; `False` if it was done before."""
        return self._settle(None, error)

    def cancel(self) -> bool:
        """Return the work up if that is possible; `False` if not, or if it was done before."""
        if self._on_cancel is None or not self.fail(CancelledError()):
            return False
        self._on_cancel()
        return True

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the result in a task."""
        if not self._done:
            yield from self._wait()
        return self.result()

    def _wait(self) -> Generator[Any, None, None]:
        from asyncio import get_running_loop

        alarm = _alarm_of(get_running_loop())
        waiter = alarm.loop.create_future()

        def wake(_: object) -> None:
            alarm.wake(waiter)

        self.add_done_callback(wake)
        try:
            yield from waiter
        except BaseException:
            self._forget(wake)
            self.cancel()
            raise

    def _is_done_within(self, timeout: float | None) -> bool:
        signal = Signal()

        def wake(_: object) -> None:
            signal.set()

        self.add_done_callback(wake)
        try:
            return signal.wait(timeout)
        finally:
            self._forget(wake)

    def _forget(self, callback: Callable[[PendingFuture[T]], None]) -> None:
        """Tell somebody no more: what takes long may be asked for many times."""
        with _lock:
            if self._callbacks is not None and callback in self._callbacks:
                self._callbacks.remove(callback)

    def _settle(self, value: T | None, error: BaseException | None) -> bool:
        with _lock:
            if self._done:
                return False
            self._value = value
            self._error = error
            self._done = True
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            self._tell(callback)
        return True

    def _tell(self, callback: Callable[[PendingFuture[T]], None]) -> None:
        try:
            callback(self)
        except Exception:
            logging.getLogger("agents_tools").exception(
                "A callback of something that a store did raised."
            )

    def _take(self, future: Future[T]) -> None:
        if future.cancelled():
            self.fail(CancelledError())
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.resolve(future.result())


class _TimeoutAlarm:
    """Wakes the tasks of a loop from any thread; those that are due together, all at once.

    Args:
        loop: The loop.
    """

    __slots__ = ("_due", "_rung", "loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self._due: deque[Waiter[None]] = deque()
        self._rung = False

    def wake(self, waiter: Waiter[None]) -> None:
        """Let a task continue soon."""
        self._due.append(waiter)
        if self._rung:  # whoever takes those that are due has not begun yet
            return
        self._rung = True
        held: list[_TimeoutAlarm] | None = getattr(_here, "held", None)
        if held is None:
            self.ring()
        else:
            held.append(self)

    def ring(self) -> None:
        """Let the loop wake those that are due."""
        try:
            self.loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop is closed, and nobody waits any more
            self._due.clear()

    def _settle(self) -> None:
        self._rung = False  # before anything is taken: what comes from now on rings again
        while self._due:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_result(None)


_here: Final = local()


@contextmanager
def batched_wakeups() -> Generator[None]:
    """Let tasks continue at the end of the block, with what is settled in it: each loop once.

    A loop that is woken for the first of many would compete with the thread that tells the others.
    """
    if getattr(_here, "held", None) is not None:
        yield
        return
    held: list[_TimeoutAlarm] = []
    _here.held = held
    try:
        yield
    finally:
        _here.held = None
        for alarm in held:
            alarm.ring()


def _alarm_of(loop: AbstractEventLoop) -> _TimeoutAlarm:
    """Return the alarm of the loop that runs in this thread."""
    alarm: _TimeoutAlarm | None = getattr(_here, "alarm", None)
    if alarm is None or alarm.loop is not loop:
        alarm = _here.alarm = _TimeoutAlarm(loop)
    return alarm


def _after_fork() -> None:
    """Start again in a child: a thread that is not there may have held the lock."""
    global _lock  # noqa: PLW0603 - see above
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
