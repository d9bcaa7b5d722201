"""Time limits for calls."""

from __future__ import annotations

import math
import time
import typing
from typing import Any

from agents_tools.concurrency.supervisor import supervise
from agents_tools.errors import ToolTimeoutError, UserTypeError, UserValueError
from agents_tools.policies._policy import with_parentheses
from agents_tools.text.escape import describe_value
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    import asyncio

    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run
    from agents_tools.tool.tool import FunctionTool

__all__ = ["has_deadline", "timeout"]


@with_parentheses
def timeout(
    seconds: float | None = None, *, idle: float | None = None, error: str | None = None
) -> Policy:
    """End a call with an error at a deadline, or when it shows no sign of life.

    An async tool is cancelled and has a grace period of two seconds for its cleanup; the caller
    does not wait for it. A sync tool is abandoned in its thread, where it can check `ctx.cancelled`
    or call `ctx.check()` to stop; until then it continues and may still take effect. A function
    that runs longer than the grace period is reported in the log.

    Args:
        seconds: The time limit of a call, in seconds; none by default.
        idle: The time, in seconds, after which a call that emits no event is ended. Progress,
            text and events of calls inside it count, also those of MCP servers.
        error: The error message for the model; it names the tool and the time by default.

    Raises:
        UserError: No limit is set, or a limit is not a positive number.
    """
    if seconds is None and idle is None:
        raise UserTypeError(
            "timeout(...) has no limit: expected a positive number of seconds, got None. Pass one, "
            "for example timeout(10)."
        )
    _check("timeout(...)", seconds)
    _check("timeout(idle=...)", idle)
    return _Timeout(seconds, idle, error)


def has_deadline(tool: FunctionTool[..., Any]) -> bool:
    """Return whether a `timeout` policy limits the duration of the calls of a tool.

    Args:
        tool: The tool.
    """
    return any(isinstance(one, _Timeout) and one.has_deadline for one in tool.policies)


_MAX_SECONDS = 1e9
"""The event loop cannot wait longer."""


def _check(option: str, value: Any) -> None:
    if value is None:
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= _MAX_SECONDS or math.isnan(value):
        raise UserValueError(
            f"{option} is not valid: expected a positive number of seconds up to "
            f"{_MAX_SECONDS:.0e}, got {describe_value(value)}."
        )


class _Timeout(Policy):
    needs_arguments = False

    def __init__(self, seconds: float | None, idle: float | None, error: str | None) -> None:
        options = [] if seconds is None else [f"{seconds:g}"]
        options += [] if idle is None else [f"idle={idle:g}"]
        self.name = f"timeout({', '.join(options)})"
        self._seconds = seconds
        self._idle = idle
        self._error = error
        self.has_deadline = seconds is not None

    async def around(self, call: Call, call_next: Run) -> Any:
        outer, sinks = call.deadline, call.sinks
        limit = _TimeLimit(call, self._seconds, self._idle, self._error)
        try:
            return await limit.run(call_next)
        finally:
            call.deadline = outer
            if self._idle is not None:
                call.sinks = sinks


class _TimeLimit:
    """The time limit of one attempt of a call, which runs in a task of its own."""

    def __init__(
        self, call: Call, seconds: float | None, idle: float | None, error: str | None
    ) -> None:
        self._call = call
        self._seconds = seconds
        self._idle = idle
        self._error = error
        self._started = self._last_event = time.monotonic()
        self._is_over = False
        self._alarm: asyncio.TimerHandle | None = None

    async def run(self, call_next: Run) -> Any:
        """Run the call until its end or its limit.

        Raises:
            ToolTimeoutError: The call did not end in time.
            BaseException: The exception that the call raised.
        """
        import asyncio

        call = self._call
        if self._seconds is not None:
            deadline = self._started + self._seconds
            call.deadline = deadline if call.deadline is None else min(call.deadline, deadline)
        if self._idle is not None:
            call.sinks = (*call.sinks, self._note_event)
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        task = loop.create_task(_catch_exceptions(call_next, call))
        task.add_done_callback(self._end)
        self._set_alarm(loop)
        try:
            await self._ended
        except asyncio.CancelledError:
            call.cancel()
            task.cancel()
            await asyncio.wait({task})  # for at most the grace period, see `drive`
            raise
        finally:
            self._end()
            if self._alarm is not None:
                self._alarm.cancel()
        if not task.done():
            call.cancel()
            task.cancel()
            supervise(task, name=call.tool_name)
            raise ToolTimeoutError(self._message())
        try:
            return self._result(*task.result())
        finally:
            del task  # breaks the reference cycle error -> frame -> task -> error

    def _result(self, value: Any, raised: BaseException | None) -> Any:
        if isinstance(raised, ToolTimeoutError) and self._has_passed():
            raise ToolTimeoutError(self._message()) from raised  # an inner one at the same time
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # breaks the reference cycle error -> frame -> error
        return value

    def _has_passed(self) -> bool:
        return self._seconds is not None and time.monotonic() >= self._started + self._seconds

    def _note_event(self, event: Event) -> None:
        del event
        self._last_event = time.monotonic()

    def _end(self, _: object = None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the call at its limit; if an event has moved the limit, wait again."""
        ends = [] if self._seconds is None else [self._started + self._seconds]
        ends += [] if self._idle is None else [self._last_event + self._idle]
        left = min(ends) - time.monotonic()
        if left > 0:
            self._alarm = loop.call_later(left, self._set_alarm, loop)
        else:
            self._end()

    def _message(self) -> str:
        if self._error is not None:
            return self._error
        name = self._call.tool_name
        if self._seconds is not None and (self._idle is None or self._has_passed()):
            fault = f"Tool {name!r} took longer than {self._seconds:g} s"
        else:
            fault = f"Tool {name!r} gave no sign of life for {self._idle:g} s"
        if self._call.tool.source.can_be_stopped:
            return f"{fault} and was stopped."
        return (
            f"{fault}. It cannot be stopped and may still take effect. Check before you call it "
            "again."
        )


async def _catch_exceptions(call_next: Run, call: Call) -> tuple[Any, BaseException | None]:
    """Return the exception of a call instead of raising it.

    `SystemExit` and `KeyboardInterrupt` in a task would end the event loop.
    """
    import asyncio

    try:
        return await call_next(call), None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, asyncio.CancelledError()
    except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
        return None, error
