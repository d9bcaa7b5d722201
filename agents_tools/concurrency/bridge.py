"""The background event loop on which sync code runs async functions."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar

from agents_tools.concurrency.future import PendingFuture, running_loop
from agents_tools.errors import (
    ToolCancelledError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserError,
    UserTypeError,
    UserValueError,
)

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable, Callable

__all__ = ["call_async_from_sync", "is_blocked", "run_sync"]

P = ParamSpec("P")
R = TypeVar("R")


def call_async_from_sync(
    fn: Callable[..., Awaitable[R]],
    /,
    *args: object,
    timeout: float | None = None,
    **kwargs: object,
) -> R:
    """Run an async function from sync code and return its result.

    The function runs on a background event loop, in a thread that all such calls of the process
    share, with a copy of the context variables of the caller. Ctrl-C in the main thread cancels
    it. If the calling thread runs an event loop, that loop is blocked until the call ends.

    Args:
        fn: The async function, not a coroutine.
        args: The positional arguments of the function.
        timeout: The time limit in seconds; after it the function is cancelled. By default there
            is no limit.
        kwargs: The keyword arguments of the function.

    Raises:
        ToolTimeoutError: The time limit passed. The function can still be cleaning up.
        ToolCancelledError: The function was cancelled or raised `CancelledError`.
        UserError: The call was made on the thread of the background loop itself.
    """
    if timeout is not None and not timeout > 0:
        raise UserValueError(
            f"timeout= is invalid: expected a positive number of seconds, got {timeout!r}."
        )
    return _wait(fn, args, kwargs, inf if timeout is None else timeout)


def run_sync(fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run an async function from sync code without a time limit; see `call_async_from_sync`.

    All keyword arguments are passed to the function.
    """
    return _wait(fn, args, kwargs, inf)


_GRACE: Final = 2.0
"""How long an interrupted caller waits for the cleanup of the function, in seconds."""
_TICK: Final = 0.5
"""How long a caller waits at a time, in seconds; some systems delay Ctrl-C until a wait ends."""

_Outcome: TypeAlias = "tuple[bool, Any]"
"""True and the returned value, or False and the raised exception."""


def is_blocked(loop: AbstractEventLoop) -> bool:
    """Return whether a loop is blocked until the async function that runs here ends."""
    return any(caller.loop is loop and not caller.over for caller in _blocked.get())


class _BlockedCaller:
    """An event loop that a caller blocks."""

    __slots__ = ("loop", "over")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.over = False


_blocked: ContextVar[tuple[_BlockedCaller, ...]] = ContextVar("agents_tools_blocked", default=())
"""The loops blocked by the code that runs here; waiting for them would be a deadlock."""


def _wait(
    fn: Callable[..., Awaitable[R]], args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float
) -> R:
    import asyncio

    if not callable(fn):
        raise UserTypeError(_not_callable_message(fn))
    bridge = _running_bridge()
    if threading.get_ident() == bridge.thread.ident:
        raise UserError(_deadlock_message(fn))
    call = _BridgeCall(bridge, fn, args, kwargs)
    loop = running_loop()
    here = None if loop is None else _BlockedCaller(loop)
    token = None if here is None else _blocked.set((*_blocked.get(), here))
    try:
        bridge.loop.call_soon_threadsafe(call.start)
        returned, value = _receive(call.outcome, timeout, bridge.thread)
    except TimeoutError:
        call.cancel()
        raise ToolTimeoutError(f"{_name(fn)} had no result after {timeout:g} s.") from None
    except BaseException:  # Ctrl-C, or an exception of another signal handler
        call.cancel()
        with contextlib.suppress(TimeoutError):
            _receive(call.outcome, _GRACE, bridge.thread)
        raise
    finally:
        if here is not None and token is not None:
            here.over = True
            _blocked.reset(token)
    if returned:
        result: R = value
        return result
    try:
        if isinstance(value, asyncio.CancelledError):
            raise ToolCancelledError(f"{_name(fn)} was cancelled.") from value
        raise value
    finally:
        # The traceback of the error holds this frame, which must not hold the error.
        del call, value


def _receive(
    outcome: PendingFuture[_Outcome], timeout: float, thread: threading.Thread
) -> _Outcome:
    """Wait for the outcome of a call that runs in that thread.

    Raises:
        TimeoutError: There was no outcome in time.
    """
    until = time.monotonic() + timeout
    while True:
        left = until - time.monotonic()
        if outcome.wait_in_thread(min(left, _TICK)):
            return outcome.result()
        if left <= _TICK:
            raise TimeoutError
        if not thread.is_alive():
            return False, ToolLostError("The thread of the background loop has ended.")


class _BridgeCall:
    """A run of an async function on the background loop."""

    __slots__ = ("args", "bridge", "fn", "kwargs", "outcome", "task")

    def __init__(
        self,
        bridge: _Bridge,
        fn: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.bridge = bridge
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.outcome: PendingFuture[_Outcome] = PendingFuture()
        self.task: Task[_Outcome] | None = None

    def cancel(self) -> None:
        """Request the cancellation of the function; callable from any thread."""
        self.bridge.loop.call_soon_threadsafe(self._cancel)

    # The other methods run on the loop.

    def start(self) -> None:
        self.task = self.bridge.loop.create_task(_outcome(self.fn, self.args, self.kwargs))
        # The loop only has weak references to tasks, and the caller can leave before the task ends.
        self.bridge.tasks.add(self.task)
        self.task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self.task is None:
            self.outcome.resolve((False, None))
        else:
            self.task.cancel()

    def _end(self, task: Task[_Outcome]) -> None:
        import asyncio

        self.bridge.tasks.discard(task)
        self.task = None
        cancelled = task.cancelled()  # before its first step
        self.outcome.resolve((False, asyncio.CancelledError()) if cancelled else task.result())


async def _outcome(
    fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Outcome:
    """Await the function and report its result or exception, without stopping the loop."""
    try:
        return True, await _awaitable(fn, fn(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        return False, error


class _Bridge:
    """An event loop that runs in a daemon thread for the rest of the process."""

    def __init__(self) -> None:
        import asyncio

        self.loop: AbstractEventLoop = asyncio.new_event_loop()
        self.tasks: set[Task[Any]] = set()
        self.thread = threading.Thread(target=self._run, name="agents-tools-bridge", daemon=True)
        try:
            self.thread.start()
        except RuntimeError as error:
            self.loop.close()
            raise ToolOverloadedError(f"The background loop has not started: {error}.") from error

    def _run(self) -> None:
        while True:
            # Other tasks can stop the loop, or raise an exception that the loop does not catch.
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


_bridge: _Bridge | None = None
_lock = threading.RLock()
_parent_bridges: list[_Bridge | None] = []
"""Bridges from before a fork, kept alive because closing them would disturb the parent's loop."""


def _running_bridge() -> _Bridge:
    global _bridge  # noqa: PLW0603 - one for the process, created when first needed
    bridge = _bridge
    if bridge is not None and bridge.thread.is_alive():
        return bridge
    with _lock:
        if _bridge is None or not _bridge.thread.is_alive():
            _bridge = _Bridge()
        return _bridge


def _reset_after_fork() -> None:
    """Remove the bridge in a forked process, which has only the thread that forked."""
    global _bridge, _lock
    _parent_bridges.append(_bridge)
    _bridge, _lock = None, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _name(fn: Any) -> str:
    fn = getattr(fn, "func", fn)  # functools.partial
    return str(getattr(fn, "__qualname__", None) or type(fn).__qualname__)


def _not_callable_message(fn: Any) -> str:
    if not hasattr(fn, "__await__"):
        return f"The function is invalid: expected an async function, got {type(fn).__name__}."
    if hasattr(fn, "close"):
        fn.close()  # otherwise Python warns that it was never awaited
    name = _name(fn)
    return (
        f"Pass the async function and its arguments, not its coroutine: {name}, …, not {name}(…)."
    )


def _awaitable(fn: Any, result: Awaitable[R]) -> Awaitable[R]:
    if hasattr(result, "__await__"):
        return result
    raise UserTypeError(
        f"{_name(fn)} is not an async function: it returned {type(result).__name__}, which cannot "
        "be awaited. Call it directly."
    )


def _deadlock_message(fn: Any) -> str:
    name = _name(fn)
    return (
        f"{name} cannot run from sync code on the thread of the background loop, which would wait "
        f"for itself. Use `await {name}(…)` there, or run the sync code in another thread: "
        "`await asyncio.to_thread(…)`."
    )
