"""Await a coroutine in the task of the caller, but with context variables of its own."""

from __future__ import annotations

import asyncio
import signal
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from agents_tools.concurrency.supervisor import GRACE, supervise

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from contextvars import Context
    from typing import Self

__all__ = ["drive"]

T = TypeVar("T")


class Owner(Protocol):
    """The object that a driven coroutine belongs to: a call.

    Attributes:
        tool_name: The name of the tool, for the log.
        is_caller_cancelled: Set when code outside the coroutine has cancelled the caller.
        receiver_cancellations: How often a receiver of an event of the coroutine has cancelled the
            task that delivered the event.
    """

    tool_name: str
    is_caller_cancelled: bool
    receiver_cancellations: int

    def is_running_here(self) -> bool:
        """Return whether the current code runs in the coroutine, or was started there."""
        ...

    def abandon(self) -> None:
        """Note that the caller no longer waits for the coroutine, which continues."""
        ...


async def drive(coroutine: Coroutine[Any, Any, T], owner: Owner) -> T:
    """Await a coroutine without a task of its own, but with the promises of one.

    The coroutine runs in a copy of the current context, so the variables that it sets do not reach
    the caller. Timeouts, task groups and cancel scopes work in it, because `current_task()` is the
    task of the caller from start to end. Three kinds of cancellations are told apart by the context
    variables of the code that cancels the task:

    * The coroutine cancels its task by a call of its own. Only the coroutine gets the cancellation.
      If a receiver of its events cancels the task, that is a cancellation of the caller.
    * A timeout, task group or cancel scope inside the coroutine cancels the task. The caller was
      not cancelled, so the cleanup in the coroutine can take any time.
    * Other code cancels the task: the caller was cancelled, unless a cancel scope of the coroutine
      takes the cancellation back. The coroutine has `GRACE` seconds for its cleanup. If it takes
      longer, the caller continues with `CancelledError`, and a supervised task awaits the
      coroutine. If that task is cancelled too, as at the end of `asyncio.run`, the coroutine is
      closed after another `GRACE` seconds, so that it cannot keep the program running.

    Args:
        coroutine: The coroutine.
        owner: Knows the name of the tool and the code that the coroutine has started.

    Returns:
        The result of the coroutine.

    Raises:
        asyncio.CancelledError: The caller was cancelled, or the coroutine raised it.
        BaseException: The exception that the coroutine raised.
    """
    variables = copy_context()
    task: Any = asyncio.current_task() or _NO_TASK
    before, received = task.cancelling(), owner.receiver_cancellations
    try:
        pending = variables.run(coroutine.send, None)
    except StopIteration as stop:  # most coroutines end without waiting for anything
        if task.cancelling() > before:
            await _Driver(coroutine, owner, variables, before, received).absorb(task)
        return stop.value
    except BaseException:
        if task.cancelling() > before:
            await _Driver(coroutine, owner, variables, before, received).absorb(task)
        raise
    else:
        driver = _Driver(coroutine, owner, variables, before, received)
        if task.cancelling() > before:
            driver.count_own(task)
    finally:
        task = None  # the frames of an error must not keep the task
    return await driver.wait(pending)


class _Driver(Generic[T]):
    """Continues a coroutine whenever what it waits for is done; see `drive`.

    Args:
        coroutine: The coroutine.
        owner: Knows the name of the tool and the code that the coroutine has started.
        variables: The context variables of the coroutine.
        before: How often the task was cancelled before the coroutine started.
        received: How often receivers of events had cancelled it before the coroutine started.
    """

    __slots__ = (
        "_before",
        "_coroutine",
        "_grace_began",
        "_has_expired",
        "_is_adopted",
        "_is_sorted",
        "_loop",
        "_own",
        "_own_undelivered",
        "_owner",
        "_pending",
        "_received",
        "_timer",
        "_variables",
        "_waiter",
    )

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        owner: Owner,
        variables: Context,
        before: int,
        received: int,
    ) -> None:
        self._coroutine = coroutine
        self._owner = owner
        self._variables = variables
        self._before = before
        self._received = received  # the same before the step
        self._pending: Any = None
        self._is_adopted = False
        self._is_sorted = False  # the cancellation that is thrown next has been sorted already
        self._own = 0  # cancellations that the coroutine requested
        self._own_undelivered = 0
        self._waiter: _Waiter | None = None
        self._grace_began = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._has_expired = False
        self._loop = asyncio.get_running_loop()

    def count_own(self, task: Any) -> None:
        """Count the cancellations that the coroutine has requested in its first step."""
        self._add_own(task.cancelling() - self._before)

    def _add_own(self, count: int) -> None:
        received = self._owner.receiver_cancellations - self._received
        foreign = count if _is_interrupted() else min(count, received)
        self._own += count - foreign
        if foreign:
            self._begin_grace()
            self._is_sorted = True
        else:
            self._own_undelivered += count

    def wait(self, pending: Any) -> Self:
        """Return itself, to be awaited, for a coroutine that waits for something.

        Args:
            pending: What the coroutine waits for: a future, or `None` for one turn of the loop.
        """
        self._pending = pending
        return self

    def __await__(self) -> Generator[Any, Any, T]:
        """Run the coroutine to its end, and return its result."""
        task: Any = asyncio.current_task(self._loop) or _NO_TASK
        run, coroutine, pending = self._variables.run, self._coroutine, self._pending
        waiter: Any = _Waiter(self, self._loop)
        self._waiter = waiter
        raised: BaseException | None = None
        try:
            while True:
                try:
                    if getattr(pending, "_asyncio_future_blocking", None) is None:
                        waiter.pending = None
                        yield pending  # one turn of the event loop, or an object that it refuses
                    elif self._has_expired:
                        waiter.pending = pending
                    else:
                        yield waiter.stand_for(pending)
                except asyncio.CancelledError as error:
                    if self._is_sorted or not waiter.cancelled():
                        self._sort_thrown_cancellation()
                        raised = error
                except Exception as error:  # noqa: BLE001 - of the future, or of the loop
                    if not waiter.is_pending_done():
                        raised = error
                if self._has_expired and not waiter.is_pending_done():
                    if task.cancelling() > self._before:
                        self._give_up(pending)
                        raise asyncio.CancelledError  # noqa: TRY301 - as `await` would
                    waiter = self._end_grace()
                    if raised is None:
                        continue
                count, self._received = task.cancelling(), self._owner.receiver_cancellations
                try:
                    if raised is None:  # the coroutine gets an error of the future from it
                        pending = run(coroutine.send, None)
                    else:
                        pending = run(coroutine.throw, raised)
                finally:
                    raised = None  # the frames of an error must not keep the error
                    if task.cancelling() > count:
                        self._add_own(task.cancelling() - count)
        except StopIteration as stop:
            if self._own:
                yield from self.absorb(task).__await__()
            return stop.value
        except GeneratorExit:
            run(coroutine.close)
            raise
        except BaseException:
            if self._own:
                yield from self.absorb(task).__await__()
            raise
        finally:
            # The frames of an error keep these, and the result of the task can be the error.
            task = raised = waiter = self._waiter = None
            if self._timer is not None:
                self._timer.cancel()

    def sort_cancellation(self, *, is_delivered: bool) -> None:
        """Note whether a cancellation of the task is one of the caller.

        Args:
            is_delivered: Whether the coroutine gets it from what it waits for. Otherwise it is
                thrown into the task later.
        """
        self._is_sorted = not is_delivered
        if self._own_undelivered:
            self._own_undelivered -= 1
        elif self._is_adopted or not self._owner.is_running_here() or _is_interrupted():
            self._begin_grace()

    def _sort_thrown_cancellation(self) -> None:
        if self._is_sorted:
            self._is_sorted = False
        elif self._own_undelivered:
            self._own_undelivered -= 1
        else:
            self._begin_grace()

    def _begin_grace(self) -> None:
        self._owner.is_caller_cancelled = True
        if self._timer is None:
            self._grace_began = time.monotonic()
            self._timer = self._loop.call_later(GRACE, self._expire)

    def _end_grace(self) -> _Waiter:
        """Continue to wait: a scope of the coroutine has taken the cancellation back."""
        self._owner.is_caller_cancelled = self._has_expired = False
        self._timer = None
        self._waiter = _Waiter(self, self._loop)
        return self._waiter

    def _expire(self) -> None:
        self._has_expired = True
        if self._waiter is not None:
            self._waiter.wake()

    def _give_up(self, pending: Any) -> None:
        """Let a supervised task await the coroutine; if one has done so already, close it."""
        if self._is_adopted:
            try:
                self._variables.run(self._coroutine.close)
            except Exception:  # noqa: BLE001 - it refuses to be closed, or fails at that
                _log().exception("A call of tool %r cannot be ended.", self._owner.tool_name)
            return
        self._owner.abandon()
        rest = _Driver(self._coroutine, self._owner, self._variables, 0, 0)
        rest._is_adopted = True
        task = self._loop.create_task(rest._run(pending))
        supervise(task, name=self._owner.tool_name, grace=GRACE, since=self._grace_began)

    async def _run(self, pending: Any) -> T:
        return await self.wait(pending)

    async def absorb(self, task: Any) -> None:
        """Take back the cancellations of the task that the coroutine itself requested.

        Args:
            task: The task.
        """
        if not self._own:
            self.count_own(task)
        for _ in range(min(self._own, task.cancelling() - self._before)):
            task.uncancel()
        if self._own_undelivered:  # the event loop still throws one into the task
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if task.cancelling() > self._before:
                    raise


class _Waiter(asyncio.Future[None]):
    """What the task waits for: stands for the future that the coroutine waits for.

    Only a cancellation does not go to that future directly.

    Attributes:
        pending: The future; `None` while the coroutine waits for one turn of the loop.
    """

    __slots__ = ("_driver", "_wakeup", "pending")

    def __init__(self, driver: _Driver[Any], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._driver = driver
        self._wakeup: Any = None
        self.pending: asyncio.Future[Any] | None = None

    def stand_for(self, pending: asyncio.Future[Any]) -> Self:
        """Return itself, to be yielded to the task instead of the future."""
        self.pending = pending
        pending._asyncio_future_blocking = False  # noqa: SLF001 - how futures are awaited
        self._asyncio_future_blocking = True
        return self

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the future, which the task compares with its own."""
        return super().get_loop() if self.pending is None else self.pending.get_loop()

    def add_done_callback(self, fn: Any, *, context: Context | None = None) -> None:
        """Let the future wake the task."""
        if self.pending is not None:
            context = copy_context() if context is None else context
            self._wakeup = (fn, context)
            self.pending.add_done_callback(fn, context=context)

    def remove_done_callback(self, fn: Any, /) -> int:
        """Do not let the future wake the task."""
        self._wakeup = None
        return 0 if self.pending is None else self.pending.remove_done_callback(fn)

    def done(self) -> bool:
        """Return whether the task was woken."""
        return super().done() or self.is_pending_done()

    def is_pending_done(self) -> bool:
        """Return whether the future is done."""
        return self.pending is not None and self.pending.done()

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self.pending is not None and self.pending.cancelled()

    def wake(self) -> None:
        """Let the task continue although the future is not done."""
        if self._wakeup is not None and not self.done():
            wakeup, context = self._wakeup
            self.remove_done_callback(wakeup)
            self.set_result(None)
            self.get_loop().call_soon(wakeup, self, context=context)

    def cancel(self, msg: Any = None) -> bool:
        """Cancel what the coroutine waits for, as the cancellation of its task would."""
        pending = None if self.done() else self.pending
        is_delivered = pending is not None and pending.cancel(msg)
        self._driver.sort_cancellation(is_delivered=is_delivered)
        return is_delivered


def _is_interrupted() -> bool:
    """Return whether Ctrl-C has cancelled the main task of `asyncio.run`.

    Its signal handler runs in the middle of other code, so a cancellation by it can look like one
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


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
