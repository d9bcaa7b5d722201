"""Time limits for calls."""

from __future__ import annotations

import time
import typing
from typing import Any

from agents_tools.concurrency.supervisor import GRACE, finish, supervise
from agents_tools.errors import ToolTimeoutError, UserValueError
from agents_tools.policies._policy import PolicyDecorator, change_around, with_parentheses

if typing.TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import Call

__all__ = ["timeout"]


@with_parentheses
def timeout(seconds: float, *, error: str | None = None) -> PolicyDecorator:
    """End a call with an error at a deadline.

    An async tool is cancelled and has a grace period of two seconds for its cleanup; the caller
    does not wait for it. A sync tool is abandoned in its thread, where it can check `ctx.cancelled`
    or call `ctx.check()` to stop. A function that runs longer than the grace period is reported in
    the log.

    Args:
        seconds: The time limit of a call, in seconds.
        error: The error message for the model; it names the tool and the time by default.

    Raises:
        UserError: `seconds` is not a positive number.
    """
    if not isinstance(seconds, (int, float)) or not seconds > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"timeout(...) is not valid: expected a positive number of seconds, got {seconds!r}."
        )

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            outer = context.deadline
            try:
                return await _call_until(inner, context, args_json, seconds, error)
            finally:
                context.deadline = outer

        return call

    return change_around(f"timeout({seconds:g})", wrap)


async def _call_until(
    inner: Call, context: ToolContext[Any], args_json: str, seconds: float, text: str | None
) -> Any:
    import asyncio

    deadline = time.monotonic() + seconds
    if context.deadline is None or deadline < context.deadline:
        context.deadline = deadline
    message = text or f"Tool {context.tool_name!r} took longer than {seconds:g} s and was stopped."
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
        raise ToolTimeoutError(message)
    value, raised = task.result()
    if isinstance(raised, ToolTimeoutError) and time.monotonic() >= deadline:
        raise ToolTimeoutError(message) from raised  # an inner timeout with the same deadline
    if raised is not None:
        try:
            raise raised
        finally:
            del raised, task  # breaks the reference cycle error -> frame -> error
    return value


async def _guarded(
    inner: Call, context: ToolContext[Any], args_json: str
) -> tuple[Any, BaseException | None]:
    """Return the exception of a call instead of raising it.

    `SystemExit` and `KeyboardInterrupt` in a task would end the event loop.
    """
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
