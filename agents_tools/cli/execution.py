"""Run a call or an agent to its end, its timeout or Ctrl-C, and clean up its event loop."""

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
from agents_tools.concurrency.supervisor import GRACE, abandoned_tasks
from agents_tools.tool.context import ToolContext, call_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from agents_tools.cli.target import Tool
    from agents_tools.content.items import ToolApprovalItem
    from agents_tools.events.base import Emit
    from agents_tools.tool.question import Question
    from agents_tools.tool.records import CallOutcome, Decision

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
"""The seconds after which the user is shown that something is running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """How a call ended.

    Attributes:
        outcome: The outcome; `None` if the call was interrupted.
        duration: The duration in seconds.
        left_behind: Whether it continues after its grace period.
    """

    outcome: CallOutcome | None
    duration: float
    left_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveCall(Generic[T]):
    """How interruptible work ended.

    Attributes:
        value: The result; `None` if the work was interrupted.
        duration: The duration in seconds.
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
    ask: Callable[[Question], Any] | None = None,
    approve: Callable[[ToolApprovalItem], Awaitable[Decision]] | None = None,
    slow: Callable[[], None],
    stopping: Callable[[], None],
) -> FinishedCall:
    """Call a tool.

    The first Ctrl-C cancels the call, whose cleanup has a grace period; the second ends the
    process.

    Args:
        tool: The tool.
        args_json: The arguments as JSON text.
        emit: Receives the events.
        timeout: The largest duration of the call in seconds.
        ask: Answers questions of the tool; by default, none can be asked.
        approve: Decides about calls that need approval; by default, they are denied.
        slow: Called when the call takes longer than a moment.
        stopping: Called at the first Ctrl-C.
    """
    if timeout is not None:
        from agents_tools import policies

        tool = policies.timeout(timeout)(tool)
    context = ToolContext[Any](emit=emit)
    call_of(context).asker = ask
    if approve is not None:
        from agents_tools.agents.approvals import approval_item_of

        call_of(context).approver = lambda call: approve(approval_item_of(call))
    done = attend(lambda: tool.call(context, args_json), slow=slow, stopping=stopping)
    return FinishedCall(outcome=done.value, duration=done.duration, left_behind=done.left_behind)


def attend(
    work: Callable[[], Coroutine[Any, Any, T]],
    *,
    slow: Callable[[], None],
    stopping: Callable[[], None],
) -> InteractiveCall[T]:
    """Run a coroutine in its own event loop.

    The first Ctrl-C cancels it, and its cleanup has a grace period; the second ends the process.

    Args:
        work: Returns the coroutine.
        slow: Called when it takes longer than a moment.
        stopping: Called at the first Ctrl-C.

    Raises:
        Exception: The exception of the coroutine.
    """
    loop = asyncio.new_event_loop()
    try:
        with prints_on_stderr():
            return loop.run_until_complete(_attended(work, slow, stopping))
    finally:
        # A task that outlives its grace period ends with the process. Its warnings are no help.
        loop.set_exception_handler(_say_nothing)
        loop.close()


@contextlib.contextmanager
def cancelled_by_sigterm() -> Generator[None]:
    """Cancel the current task on SIGTERM, as Ctrl-C does, while the block runs."""
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
    """Confirm the first Ctrl-C on the terminal."""
    # A signal handler calls this. The code it interrupted can hold the locks of the streams, so
    # this writes to the descriptor.
    try:
        if sys.stderr.isatty():
            os.write(2, b"\r\x1b[Kcancelling; press Ctrl-C again to stop at once\r\n")
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
        left_behind = not task.done() or bool(abandoned_tasks())
        await _clear_up(loop, besides={task})
    if interrupted.is_set() or not task.done() or task.cancelled():
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it
        return InteractiveCall(value=None, duration=duration, left_behind=left_behind)
    return InteractiveCall(value=task.result(), duration=duration)


async def _clear_up(loop: asyncio.AbstractEventLoop, *, besides: set[asyncio.Task[Any]]) -> None:
    """Cancel the remaining tasks of the call and wait for their cleanup, up to the grace period."""
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
                os.write(2, b"\x1b[?25h\n")  # show the cursor again, which a live display hides
        os._exit(CANCELLED)

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
