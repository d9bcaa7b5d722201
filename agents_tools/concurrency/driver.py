"""Await a coroutine in the task of the caller, but with context variables of its own."""

from __future__ import annotations

import asyncio
import signal
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agents_tools.concurrency.supervisor import GRACE, supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextvars import Context

__all__ = ["Driver"]

T = TypeVar("T")


class Driver(Generic[T]):
    """Awaits a coroutine without a task of its own, and keeps the promises of one.

    The coroutine runs in a copy of the current context, so the variables that it sets do not reach
    the caller. Timeouts, task groups and cancel scopes work in it, because `current_task()` is the
    task of the caller from start to end. Three kinds of cancellations are told apart by the context
    variables of the code that cancels the task:

    * The coroutine cancels its task by a call of its own. Only the coroutine gets the cancellation.
    * A timeout, task group or cancel scope inside the coroutine cancels the task. The caller was
      not cancelled, so the cleanup in the coroutine can take any time.
    * Other code cancels the task: the caller was cancelled. The coroutine has `GRACE` seconds for
      its cleanup. If it takes longer, the caller continues with `CancelledError`, and a supervised
      task awaits the coroutine. If that task is cancelled too, as at the end of `asyncio.run`, the
      coroutine is closed after another `GRACE` seconds, so that it cannot keep the program running.

    Args:
        coroutine: The coroutine.
        name: The name of the tool, for the log.
        is_inside: Returns whether the code that calls it runs in the coroutine, or in a task or a
            callback that was started there.

    Attributes:
        is_cancelled: Whether the caller was cancelled.
    """

    __slots__ = (
        "_coroutine",
        "_grace_began",
        "_has_expired",
        "_is_adopted",
        "_is_inside",
        "_is_sorted",
        "_loop",
        "_name",
        "_own_cancellations",
        "_pending",
        "_timer",
        "_variables",
        "_waiter",
        "is_cancelled",
    )

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], name: str, is_inside: Callable[[], bool]
    ) -> None:
        self._coroutine = coroutine
        self._name = name
        self._is_inside = is_inside
        self._variables: Context | None = None
        self._pending: Any = _START
        self._is_adopted = False
        self._is_sorted = False
        self._own_cancellations = 0  # requested by the coroutine and not delivered yet
        self._waiter: _Waiter | None = None
        self._grace_began = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._has_expired = False
        self.is_cancelled = False

    def __await__(self) -> Generator[Any, Any, T]:
        """Run the coroutine to its end, and return its result.

        Raises:
            asyncio.CancelledError: The caller was cancelled, or the coroutine raised it.
            BaseException: The exception that the coroutine raised.
        """
        variables = self._variables or copy_context()
        self._loop = asyncio.get_running_loop()
        task: Any = asyncio.current_task() or _NO_TASK
        before = task.cancelling()
        advance, value, pending = self._coroutine.send, None, self._pending
        own = 0
        try:
            while True:
                if pending is not _START:
                    advance, value = self._coroutine.send, None
                    try:
                        yield from self._wait_for(pending)
                    except asyncio.CancelledError as error:
                        self._sort_thrown_cancellation()
                        advance, value = self._coroutine.throw, error
                    if self._has_expired and not (pending is not None and pending.done()):
                        self._give_up(variables, pending)
                        raise asyncio.CancelledError  # noqa: TRY301 - as `await` would
                count = task.cancelling()
                try:
                    pending = variables.run(advance, value)
                finally:
                    value = None  # the frames of an error must not keep the error
                    if task.cancelling() > count:
                        if _is_interrupted():
                            self._begin_grace()
                            self._is_sorted = True
                        else:
                            own += task.cancelling() - count
                            self._own_cancellations += task.cancelling() - count
        except StopIteration as stop:
            if own:
                yield from self._absorb(task, before, own)
            return stop.value
        except GeneratorExit:
            variables.run(self._coroutine.close)
            raise
        except BaseException:
            if own:
                yield from self._absorb(task, before, own)
            raise
        finally:
            # The frames of an error keep these, and the result of the task can be the error.
            task = value = None
            if self._timer is not None:
                self._timer.cancel()

    def _wait_for(self, pending: Any) -> Generator[Any, Any, None]:
        """Wait for what the coroutine waits for: a future, or one turn of the event loop."""
        if pending is None:
            yield
            return
        pending._asyncio_future_blocking = False  # noqa: SLF001 - how futures are awaited
        waiter = self._waiter = _Waiter(self, pending)
        pending.add_done_callback(waiter.wake)
        try:
            yield from waiter
        finally:
            self._waiter = None
            pending.remove_done_callback(waiter.wake)

    def sort_cancellation(self, *, is_delivered: bool) -> None:
        """Note whether a cancellation of the task is one of the caller.

        Args:
            is_delivered: Whether the coroutine gets it from what it waits for. Otherwise it is
                thrown into the task later.
        """
        self._is_sorted = not is_delivered
        if self._own_cancellations:
            self._own_cancellations -= 1
        elif self._is_adopted or not self._is_inside():
            self._begin_grace()

    def _sort_thrown_cancellation(self) -> None:
        if self._is_sorted:
            self._is_sorted = False
        elif self._own_cancellations:
            self._own_cancellations -= 1
        else:
            self._begin_grace()

    def _begin_grace(self) -> None:
        self.is_cancelled = True
        if self._timer is None:
            self._grace_began = time.monotonic()
            self._timer = self._loop.call_later(GRACE, self._expire)

    def _expire(self) -> None:
        self._has_expired = True
        if self._waiter is not None:
            self._waiter.wake()

    def _give_up(self, variables: Context, pending: Any) -> None:
        """Let a supervised task await the coroutine; if one has done so already, close it."""
        if self._is_adopted:
            try:
                variables.run(self._coroutine.close)
            except Exception:  # noqa: BLE001 - it refuses to be closed, or fails at that
                _log().exception("A call of tool %r cannot be ended.", self._name)
            return
        rest = Driver(self._coroutine, self._name, self._is_inside)
        rest._is_adopted, rest._variables, rest._pending = True, variables, pending
        task = self._loop.create_task(rest._run())
        supervise(task, name=self._name, since=self._grace_began)

    async def _run(self) -> T:
        return await self

    def _absorb(self, task: Any, before: int, own: int) -> Generator[Any, Any, None]:
        """Take back cancellations of the task that the coroutine itself requested.

        Args:
            task: The task.
            before: How often the task was cancelled before the coroutine started.
            own: How often the coroutine cancelled it.
        """
        for _ in range(min(own, task.cancelling() - before)):
            task.uncancel()
        if self._own_cancellations:  # the event loop still throws one into the task
            try:
                yield
            except asyncio.CancelledError:
                if task.cancelling() > before:
                    raise


class _Waiter(asyncio.Future[None]):
    """What the task waits for while the coroutine waits for a future."""

    def __init__(self, driver: Driver[Any], pending: asyncio.Future[Any]) -> None:
        super().__init__(loop=pending.get_loop())
        self._driver = driver
        self._pending = pending

    def wake(self, _: object = None) -> None:
        """Let the task continue."""
        if not self.done():
            self.set_result(None)

    def cancel(self, msg: Any = None) -> bool:
        """Cancel what the coroutine waits for, as the cancellation of its task would."""
        if self.done():
            self._driver.sort_cancellation(is_delivered=False)
            return False
        is_delivered = self._pending.cancel(msg)
        self._driver.sort_cancellation(is_delivered=is_delivered)
        return is_delivered


def _is_interrupted() -> bool:
    """Return whether Ctrl-C has cancelled the main task of `asyncio.run`.

    Its signal handler runs in the middle of whatever runs, so a cancellation by it looks like one
    by the coroutine itself.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    runner = getattr(getattr(handler, "func", None), "__self__", None)
    return getattr(runner, "_interrupt_count", 0) > 0


class _NoTask:
    """Stands for the current task of a coroutine that something else than a task awaits."""

    def cancelling(self) -> int:
        return 0


_NO_TASK = _NoTask()
_START: Any = object()
"""Stands for what a coroutine waits for that has not been started."""


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
