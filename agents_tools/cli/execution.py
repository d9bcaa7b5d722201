"""Runs a call, or an agent, to its end, its timeout or a Ctrl-C, and leaves the loop clean."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agents_tools.cli.errors import CANCELLED
from agents_tools.cli.output import prints_on_stderr
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.tool.context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from agents_tools.cli.target import Tool
    from agents_tools.events.base import Emit
    from agents_tools.tool.declaration import CallOutcome

__all__ = [
    "FinishedCall",
    "InteractiveCall",
    "attend",
    "cancelled_by_sigterm",
    "run_call",
    "say_stopping",
]

T = TypeVar("T")

_MOMENT = 0.2
"""Seconds after which a person wants to see that something runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """How a call ended.

    Attributes:
        outcome: What came of it; `None` where it was interrupted.
        duration: How long it took, in seconds.
        left_behind: Whether it continues after its grace period.
    """

    outcome: CallOutcome | None
    duration: float
    left_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveCall(Generic[T]):
    """How something ended that could be interrupted.

    Attributes:
        value: What it gave; `None` where it was interrupted.
        duration: How long it took, in seconds.
        left_behind: Whether it continues after its grace period.
    """

    value: T | None
    duration: float
    left_behind: bool = False


def run_call(
    tool: Tool,
    args_json: str,
    *,
    emit: Emit,
    timeout: float | None = None,
    slow: Callable[[], None],
    stopping: Callable[[], None],
) -> FinishedCall:
    """Call a tool.

    The first Ctrl-C cancels the call, whose cleanup has a grace period; the second ends the
    process.

    Args:
        tool: The tool.
        args_json: Its arguments.
        emit: Gets the events.
        timeout: Seconds the call may take.
        slow: Called when the call takes longer than a moment.
        stopping: Called at the first Ctrl-C.
    """
    if timeout is not None:
        from agents_tools import policies

        tool = policies.timeout(timeout)(tool)
    done = attend(
        lambda: tool.call(ToolContext[Any](emit=emit), args_json), slow=slow, stopping=stopping
    )
    return FinishedCall(outcome=done.value, duration=done.duration, left_behind=done.left_behind)


def attend(
    work: Callable[[], Coroutine[Any, Any, T]],
    *,
    slow: Callable[[], None],
    stopping: Callable[[], None],
) -> InteractiveCall[T]:
    """Do something in an event loop of its own.

    The first Ctrl-C cancels it, and its cleanup has a grace period; the second ends the process.

    Args:
        work: Returns what is to be done.
        slow: Called when it takes longer than a moment.
        stopping: Called at the first Ctrl-C.

    Raises:
        Exception: What it raises.
    """
    loop = asyncio.new_event_loop()
    try:
        with prints_on_stderr():
            return loop.run_until_complete(_attended(work, slow, stopping))
    finally:
        # A task that outlived its grace goes with the process, and there is nothing to add to that.
        loop.set_exception_handler(_say_nothing)
        loop.close()


@contextlib.contextmanager
def cancelled_by_sigterm() -> Generator[None]:
    """Let SIGTERM cancel the task that is in the block, as Ctrl-C does."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task(loop)

    def end(*_: object) -> None:
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def say_stopping() -> None:
    """Tell the person at the terminal that the first Ctrl-C was understood."""
    # In a signal handler: what the handler interrupted may hold the locks of the streams.
    try:
        if sys.stderr.isatty():
            os.write(2, b"\r\x1b[Kcancelling; once more to stop at once\r\n")
    except (OSError, ValueError):
        pass


def _say_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    del loop, context


async def _attended(
    work: Callable[[], Coroutine[Any, Any, T]],
    slow: Callable[[], None],
    stopping: Callable[[], None],
) -> InteractiveCall[T]:
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()
    started = time.monotonic()
    task = asyncio.create_task(work())
    watch = asyncio.create_task(interrupted.wait())
    alarm = loop.call_later(_MOMENT, slow)

    def interrupt() -> None:
        stopping()
        loop.call_soon_threadsafe(interrupted.set)

    with _interrupts(interrupt):
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        alarm.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)
        duration = time.monotonic() - started
        await _clear_up(loop, besides={task})
    if not task.done():
        return InteractiveCall(value=None, duration=duration, left_behind=True)
    if interrupted.is_set() or task.cancelled():
        if not task.cancelled():
            task.exception()  # looked at: nobody is to be told of it any more
        return InteractiveCall(value=None, duration=duration)
    return InteractiveCall(value=task.result(), duration=duration)


async def _clear_up(loop: asyncio.AbstractEventLoop, *, besides: set[asyncio.Task[Any]]) -> None:
    """Cancel what the call left running and let it clean up, for as long as its grace."""
    own = asyncio.current_task()
    rest = asyncio.all_tasks() - besides - ({own} if own else set())
    for task in rest:
        if not task.cancelling():
            task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=GRACE)
    for task in rest:
        if task.done() and not task.cancelled():
            task.exception()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await loop.shutdown_asyncgens()


@contextlib.contextmanager
def _interrupts(first: Callable[[], None]) -> Generator[None]:
    """Call `first` at the first Ctrl-C and end the process at the second."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    count = 0

    def on_signal(*_: object) -> None:
        nonlocal count
        count += 1
        if count == 1:
            first()
            return
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h\n")  # the cursor, which a live display hides
        os._exit(CANCELLED)

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
