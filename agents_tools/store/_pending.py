"""What a store is still doing, for threads and for event loops alike."""

from __future__ import annotations

from concurrent.futures import CancelledError
from threading import Event as Signal, RLock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future

__all__ = ["Pending"]

S = TypeVar("S")
T = TypeVar("T")

# One for all: it is held for a few assignments. Reentrant: a finalizer may end something in here.
_lock: Final = RLock()


class Pending(Generic[T]):
    """Something that was begun and will have a result; `await` it, or call `result`.

    The work goes on when nobody waits, and when the task that waits is cancelled, unless it can be
    given up (`on_cancel`). Whoever does the work calls `resolve` or `fail`, once, in any thread and
    outside of its locks: those who are told may use the store at once.

    Args:
        future: What does the work, if that is a future; its result becomes this one's.
        on_cancel: Gives the work up; without it the work cannot be cancelled.
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
        self._callbacks: list[Callable[[Pending[T]], None]] | None = None
        self._on_cancel = on_cancel
        if future is not None:
            future.add_done_callback(self._take)

    @staticmethod
    def now(value: S) -> Pending[S]:
        """Give something that has its result already."""
        made: Pending[S] = Pending()
        made.resolve(value)
        return made

    @staticmethod
    def failed(error: BaseException) -> Pending[Any]:
        """Give something that has failed already."""
        made: Pending[Any] = Pending()
        made.fail(error)
        return made

    def done(self) -> bool:
        """Whether it has a result, or has failed."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Give the result, waiting for it in this thread.

        Args:
            timeout: How long to wait, in seconds; the work goes on afterwards.

        Raises:
            TimeoutError: The time passed.
        """
        if not self._done:
            signal = Signal()
            self.add_done_callback(lambda _: signal.set())
            if not signal.wait(timeout):
                raise TimeoutError(f"There was no result after {timeout:g} s.")
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def error(self) -> BaseException | None:
        """Why it failed; `None` if it did not, or is not done."""
        return self._error

    def add_done_callback(self, callback: Callable[[Pending[T]], Any]) -> None:
        """Call something with this once it is done: at once if it is, else in any thread."""
        with _lock:
            if not self._done:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback(self)

    def resolve(self, value: T) -> bool:
        """Give it its result; `False` if it was done before."""
        return self._settle(value, None)

    def fail(self, error: BaseException) -> bool:
        """Let it fail; `False` if it was done before."""
        return self._settle(None, error)

    def cancel(self) -> bool:
        """Give the work up if that is possible; `False` if not, or if it was done before."""
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
        from contextlib import suppress

        loop = get_running_loop()
        waiter = loop.create_future()

        def wake(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(settle)

        def settle() -> None:
            if not waiter.done():
                waiter.set_result(None)

        self.add_done_callback(wake)
        try:
            yield from waiter
        except BaseException:
            self.cancel()
            raise

    def _settle(self, value: T | None, error: BaseException | None) -> bool:
        with _lock:
            if self._done:
                return False
            self._value = value
            self._error = error
            self._done = True
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback(self)
        return True

    def _take(self, future: Future[T]) -> None:
        if future.cancelled():
            self.fail(CancelledError())
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.resolve(future.result())
