"""Futures for the operations of a store, which threads and event loops can wait for."""

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

# Shared by all futures, because it is held only for a few assignments. Reentrant, because a
# finalizer can resolve a future while the lock is held.
_lock = RLock()


class PendingFuture(Generic[T]):
    """The future result of an operation; `await` it, or call `result`.

    The operation continues if no caller waits, and if the waiting task is cancelled, unless it can
    be cancelled (`on_cancel`). The code that runs the operation calls `resolve` or `fail` once, in
    any thread, without holding locks, because callbacks can use the store.

    Args:
        future: The future of an executor, whose result is passed on.
        on_cancel: The function that cancels the operation. By default it cannot be cancelled.
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
            future.add_done_callback(self._copy_result)

    @staticmethod
    def now(value: S) -> PendingFuture[S]:
        """Return a future that has its result already."""
        future: PendingFuture[S] = PendingFuture()
        future.resolve(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> PendingFuture[Any]:
        """Return a future that has failed already."""
        future: PendingFuture[Any] = PendingFuture()
        future.fail(error)
        return future

    def done(self) -> bool:
        """Return whether the operation has succeeded or failed."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Return the result, waiting for it in this thread.

        Args:
            timeout: The maximum wait in seconds; the operation continues afterwards.

        Raises:
            TimeoutError: There was no result in time.
        """
        if not self._done and not self._is_done_within(timeout):
            raise TimeoutError(f"There was no result after {timeout:g} s.")
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def error(self) -> BaseException | None:
        """Return the error; `None` if the operation has not failed, or is not done."""
        return self._error

    def add_done_callback(self, callback: Callable[[PendingFuture[T]], Any]) -> None:
        """Call a function with this future when it is done, in any thread; at once if it is done.

        An exception of the callback is logged, and does not affect other callbacks.
        """
        with _lock:
            if not self._done:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        self._call(callback)

    def resolve(self, value: T) -> bool:
        """Set the result; `False` if the future was done before."""
        return self._settle(value, None)

    def fail(self, error: BaseException) -> bool:
        """Set the error; `False` if the future was done before."""
        return self._settle(None, error)

    def cancel(self) -> bool:
        """Cancel the operation; `False` if it cannot be cancelled, or was done before."""
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

        waker = _waker_of(get_running_loop())
        waiter = waker.loop.create_future()

        def wake(_: object) -> None:
            waker.wake(waiter)

        self.add_done_callback(wake)
        try:
            yield from waiter
        except BaseException:
            self._remove_callback(wake)
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
            self._remove_callback(wake)

    def _remove_callback(self, callback: Callable[[PendingFuture[T]], None]) -> None:
        """Remove a callback, because a long operation can be waited for many times."""
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
            self._call(callback)
        return True

    def _call(self, callback: Callable[[PendingFuture[T]], None]) -> None:
        try:
            callback(self)
        except Exception:
            logging.getLogger("agents_tools").exception(
                "A callback of a PendingFuture raised an exception."
            )

    def _copy_result(self, future: Future[T]) -> None:
        if future.cancelled():
            self.fail(CancelledError())
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.resolve(future.result())


class _LoopWaker:
    """Wakes the tasks of a loop from any thread, several at once if possible.

    Args:
        loop: The loop.
    """

    __slots__ = ("_due", "_is_scheduled", "loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self._due: deque[Waiter[None]] = deque()
        self._is_scheduled = False

    def wake(self, waiter: Waiter[None]) -> None:
        """Wake a task soon."""
        self._due.append(waiter)
        if self._is_scheduled:  # `_wake_due` has not started yet
            return
        self._is_scheduled = True
        batch: list[_LoopWaker] | None = getattr(_thread_state, "batch", None)
        if batch is None:
            self.schedule()
        else:
            batch.append(self)

    def schedule(self) -> None:
        """Make the loop wake the tasks."""
        try:
            self.loop.call_soon_threadsafe(self._wake_due)
        except RuntimeError:  # the loop is closed, so no task waits
            self._due.clear()

    def _wake_due(self) -> None:
        self._is_scheduled = False  # first, so that later calls of `wake` schedule this again
        while self._due:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_result(None)


_thread_state: Final = local()


@contextmanager
def batched_wakeups() -> Generator[None]:
    """Wake the tasks whose futures are done in the block at its end, each event loop once.

    A loop that is woken for the first future would compete with the thread that resolves the rest.
    """
    if getattr(_thread_state, "batch", None) is not None:
        yield
        return
    batch: list[_LoopWaker] = []
    _thread_state.batch = batch
    try:
        yield
    finally:
        _thread_state.batch = None
        for waker in batch:
            waker.schedule()


def _waker_of(loop: AbstractEventLoop) -> _LoopWaker:
    """Return the waker of the loop that runs in this thread."""
    waker: _LoopWaker | None = getattr(_thread_state, "waker", None)
    if waker is None or waker.loop is not loop:
        waker = _thread_state.waker = _LoopWaker(loop)
    return waker


def _after_fork() -> None:
    """Replace the lock in a forked process, because another thread can have held it."""
    global _lock  # noqa: PLW0603 - see above
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
