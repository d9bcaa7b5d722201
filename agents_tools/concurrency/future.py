"""The future with which threads and event loops wait for each other."""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import contextmanager
from functools import partial
from threading import Lock, RLock, get_ident, local
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future as TaskFuture
    from collections.abc import Callable, Generator
    from concurrent.futures import Future

__all__ = ["LoopReference", "PendingFuture", "batched_wakeups", "call_on_loop", "running_loop"]

S = TypeVar("S")
T = TypeVar("T")

# Shared by all futures, because it is held only for a few assignments. Reentrant, because a
# finalizer can resolve a future while the lock is held.
_lock = RLock()


class PendingFuture(Generic[T]):
    """The future result of an operation; `await` it, or call `result`.

    Any number of tasks, on any event loops, and of threads can wait. The code that runs the
    operation calls `resolve` or `fail` in any thread, without holding locks, because callbacks can
    use the store.

    These states need care:

    - **Set twice.** The first `resolve`, `fail` or `cancel` counts and returns `True`; the others
      change nothing and return `False`. Two sides that compete, such as a timeout and a result,
      learn from it which one was first.
    - **Cancelled before the start.** `cancel` sets the error, so a later `resolve` returns `False`:
      code that starts the operation checks `done` first, or claims a future of its own.
    - **Waiter gone.** A cancelled task or a timeout ends only the wait, because other waiters and
      the operation do not depend on it; the callback of the waiter is removed, because a long
      operation can be waited for many times. With `on_cancel` or `loop`, a cancelled `await`
      cancels the future as well.
    - **Set and waiter cancelled at once.** The task gets `CancelledError` although the future has a
      result. Code that hands over a resource checks `cancel`: `False` means that the resource has
      arrived and must be passed on.
    - **Loop ended.** Waking a task of a closed loop is ignored, because the task never continues.
      A future with `loop` refuses its result then, so that a resource goes to the next in line.
    - **Loop of the same thread.** The task is woken directly, without writing to the self-pipe of
      the loop. A handler of `signal.signal` therefore must not set a future for a loop of its own
      thread; use `loop.add_signal_handler`.
    - **Forked child.** The lock is replaced, because another thread can have held it. A future of
      the parent is not set in the child, because the thread that runs the operation is missing.

    Args:
        future: The future of an executor, whose result is passed on.
        on_cancel: The function that cancels the operation. By default it cannot be cancelled.
        loop: The event loop of the only task that waits. The future can be cancelled, and cannot
            be set after the loop was closed.
    """

    __slots__ = ("_callbacks", "_done", "_error", "_loop", "_on_cancel", "_value")

    def __init__(
        self,
        future: Future[T] | None = None,
        *,
        on_cancel: Callable[[], Any] | None = None,
        loop: AbstractEventLoop | None = None,
    ) -> None:
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[PendingFuture[T]], None]] | None = None
        self._on_cancel = on_cancel
        self._loop = loop
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

    def can_be_set(self) -> bool:
        """Return whether there is no result yet, and the loop of the waiting task is not closed."""
        return not self._done and (self._loop is None or not self._loop.is_closed())

    def result(self, timeout: float | None = None) -> T:
        """Return the result, waiting for it in this thread.

        Args:
            timeout: The maximum wait in seconds; the operation continues afterwards.

        Raises:
            TimeoutError: There was no result in time.
        """
        if not self.wait_in_thread(timeout):
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
        """Set the result; `False` if it cannot be set (see `can_be_set`)."""
        return self._settle(value, None)

    def fail(self, error: BaseException) -> bool:
        """Set the error; `False` if it cannot be set (see `can_be_set`)."""
        return self._settle(None, error)

    def cancel(self) -> bool:
        """Cancel the operation; `False` if it cannot be cancelled, or was done before."""
        from concurrent.futures import CancelledError

        is_cancellable = self._on_cancel is not None or self._loop is not None
        if not is_cancellable or not self.fail(CancelledError()):
            return False
        if self._on_cancel is not None:
            self._on_cancel()
        return True

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the result in a task."""
        if not self._done:
            try:
                yield from self._wait(None)
            except BaseException:
                self.cancel()
                raise
        return self.result()

    @coroutine  # an `async def` cannot share the generator with `__await__`
    def wait(self, timeout: float | None = None) -> Generator[Any, None, bool]:
        """Wait in a task until the future is done; it continues when the task is cancelled.

        Args:
            timeout: The maximum wait in seconds.

        Returns:
            Whether the future is done.
        """
        if not self._done:
            yield from self._wait(timeout)
        return self._done

    def _wait(self, timeout: float | None) -> Generator[Any, None, None]:
        waker = _current_waker()
        waiter = waker.loop.create_future()
        wake = partial(waker.wake, waiter)
        timer = None if timeout is None else waker.loop.call_later(timeout, _finish, waiter)
        self.add_done_callback(wake)
        try:
            yield from waiter
        finally:
            if timer is not None:
                timer.cancel()
            if not self._done:
                self._remove_callback(wake)

    def wait_in_thread(self, timeout: float | None = None) -> bool:
        """Wait in this thread until the future is done.

        Args:
            timeout: The maximum wait in seconds.

        Returns:
            Whether the future is done.
        """
        if self._done:
            return True
        signal = Lock()  # locked until the future is done: faster than an event
        signal.acquire()

        def wake(_: object) -> None:
            signal.release()

        self.add_done_callback(wake)
        try:
            signal.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            if not self._done:
                self._remove_callback(wake)
        return self._done

    def _remove_callback(self, callback: Callable[[PendingFuture[T]], None]) -> None:
        with _lock:
            if self._callbacks is not None and callback in self._callbacks:
                self._callbacks.remove(callback)

    def _settle(self, value: T | None, error: BaseException | None) -> bool:
        with _lock:
            if self._done or (self._loop is not None and self._loop.is_closed()):
                return False
            self._value = value
            self._error = error
            self._done = True
            callbacks, self._callbacks = self._callbacks or [], None
        if self._loop is None or running_loop() is self._loop:
            self._run_callbacks(callbacks)
            return True
        if call_on_loop(self._loop, self._run_callbacks, callbacks):
            return True
        self._done, self._value, self._error = False, None, None  # the loop was closed just now
        return False

    def _run_callbacks(self, callbacks: list[Callable[[PendingFuture[T]], None]]) -> None:
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[PendingFuture[T]], None]) -> None:
        try:
            callback(self)
        except Exception:
            import logging

            logging.getLogger("agents_tools").exception(
                "A callback of a PendingFuture raised an exception."
            )

    def _copy_result(self, future: Future[T]) -> None:
        from concurrent.futures import CancelledError

        if future.cancelled():
            self.fail(CancelledError())
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.resolve(future.result())


def call_on_loop(loop: AbstractEventLoop, fn: Callable[..., object], *args: Any) -> bool:
    """Make a loop call a function soon, from any thread; `False` if the loop is closed."""
    try:
        loop.call_soon_threadsafe(fn, *args)
    except RuntimeError:
        return False
    return True


def running_loop() -> AbstractEventLoop | None:
    """Return the loop that runs in this thread, which must not be blocked; `None` without one."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return cast("AbstractEventLoop", asyncio.get_running_loop())
    except RuntimeError:
        return None


class LoopReference:
    """The running event loop and its thread.

    Args:
        loop: The loop, if it is known.
    """

    __slots__ = ("_thread", "loop")

    def __init__(self, loop: AbstractEventLoop | None = None) -> None:
        from asyncio import get_running_loop

        self.loop: AbstractEventLoop = loop or get_running_loop()
        self._thread = get_ident()

    def is_here(self) -> bool:
        """Return whether this is the thread of the loop."""
        return get_ident() == self._thread

    def is_closed(self) -> bool:
        """Return whether the loop is closed."""
        return self.loop.is_closed()

    def call(self, fn: Callable[[], object]) -> bool:
        """Make the loop call a function soon; `False` if the loop is closed."""
        if not self.is_here():
            return call_on_loop(self.loop, fn)
        try:
            self.loop.call_soon(fn)
        except RuntimeError:
            return False
        return True


class _LoopWaker(LoopReference):
    """Wakes the tasks of a loop from any thread, several at once if possible.

    Args:
        loop: The loop that runs in this thread.
    """

    __slots__ = ("_due", "_is_scheduled")

    def __init__(self, loop: AbstractEventLoop | None) -> None:
        super().__init__(loop)
        self._due: deque[TaskFuture[None]] = deque()
        self._is_scheduled = False

    def wake(self, waiter: TaskFuture[None], _: object = None) -> None:
        """Wake a task soon."""
        if get_ident() == self._thread and running_loop() is self.loop:
            _finish(waiter)
            return
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
        if not call_on_loop(self.loop, self._wake_due):
            self._due.clear()  # the loop is closed, so no task waits

    def _wake_due(self) -> None:
        self._is_scheduled = False  # first, so that later calls of `wake` schedule this again
        while self._due:
            _finish(self._due.popleft())


def _finish(waiter: TaskFuture[None]) -> None:
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


def _current_waker() -> _LoopWaker:
    """Return the waker of the loop that runs in this thread."""
    loop = running_loop()
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
