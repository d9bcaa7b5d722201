"""A deadline for each call."""

from __future__ import annotations

import time
import typing
from typing import Any

from agents_tools._supervisor import GRACE, finish, supervise
from agents_tools.errors import ToolTimeoutError, UserValueError
from agents_tools.policies._change import Change, change_around

if typing.TYPE_CHECKING:
    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["timeout"]


def timeout(seconds: float, *, error: str | None = None) -> Change:
    """Answer at a deadline, whatever the tool does.

    An async tool is cancelled and has a grace period of two seconds for its cleanup, of which
    the caller sees nothing; a sync one is abandoned in its thread, where `ctx.cancelled` and
    `ctx.check()` let it stop by itself. What outlives its grace is reported.

    Args:
        seconds: How long a call may take.
        error: What the model is told; a sentence with the tool and the time by default.

    Raises:
        UserError: `seconds` is no positive number.
    """
    if not isinstance(seconds, (int, float)) or not seconds > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(f"timeout(...) takes a positive number of seconds, not {seconds!r}.")

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            outer = context.deadline
            try:
                return await _until(inner, context, args_json, seconds, error)
            finally:
                context.deadline = outer

        return call

    return change_around(f"timeout({seconds:g})", wrap)


async def _until(
    inner: Call, context: ToolContext[Any], args_json: str, seconds: float, text: str | None
) -> Any:
    import asyncio

    until = time.monotonic() + seconds
    if context.deadline is None or until < context.deadline:
        context.deadline = until
    told = text or f"Tool {context.tool_name!r} took longer than {seconds:g} s and was stopped."
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    task = loop.create_task(_guarded(inner, context, args_json))

    def wake(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    task.add_done_callback(wake)
    alarm = loop.call_later(seconds, wake)
    try:
        await over
    except asyncio.CancelledError:
        context.cancel()
        task.cancel()
        await finish(task, name=context.tool_name, grace=GRACE)
        raise
    finally:
        alarm.cancel()
    if not task.done():
        context.cancel()
        task.cancel()
        supervise(task, name=context.tool_name)
        raise ToolTimeoutError(told)
    value, raised = task.result()
    if isinstance(raised, ToolTimeoutError) and time.monotonic() >= until:
        raise ToolTimeoutError(told) from raised  # the tool saw the same deadline by itself
    if raised is not None:
        try:
            raise raised
        finally:
            del raised, task  # or the error would hold on to itself through this frame
    return value


async def _guarded(
    inner: Call, context: ToolContext[Any], args_json: str
) -> tuple[Any, BaseException | None]:
    """Carry what a body raises out of its task: some of it would end the event loop instead."""
    import asyncio

    try:
        return await inner(context, args_json), None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, asyncio.CancelledError()
    except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
        return None, error
