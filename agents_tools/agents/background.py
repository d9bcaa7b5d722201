"""Calls of a run that continue in the background, and the tools with which a model manages them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import ToolError
from agents_tools.events.kinds import NotifyStreamEvent, ToolProgressEvent
from agents_tools.tool.context import ToolContext, call_of
from agents_tools.tool.decorators import function_tool
from agents_tools.tool.records import ToolAnnotations
from agents_tools.toolset.toolset import Toolset

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from agents_tools.agents.pending_tool_call import PendingToolCall
    from agents_tools.content.items import ToolCallItem
    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import AtEnd

__all__ = ["BackgroundCall", "BackgroundCalls", "acknowledgement", "background_tools"]

_MAX_LINE = 200
"""The largest number of characters of a line of progress."""


def acknowledgement(call: ToolCallItem) -> str:
    """Return the output for the model of a call that continues in the background."""
    return (
        f"Call {call.call_id!r} of tool {call.name!r} runs in the background. Its result follows "
        "in a later message. Continue with other work, and do not repeat the call."
    )


class BackgroundCall:
    """One call in the background, as the tools of the model show it.

    Args:
        call: The call of the model.
        record: The record of the call, whose events are noted.
        at_end: What happens to the call at the end of the run.
        task: The task in which it runs.

    Attributes:
        call: The call of the model.
        record: The record of the call.
        at_end: What happens to the call at the end of the run.
        task: The task in which it runs.
        status: `running`, or the status with which the call has ended.
    """

    __slots__ = (
        "_ended",
        "_line",
        "_progress",
        "_started",
        "at_end",
        "call",
        "record",
        "status",
        "task",
    )

    def __init__(
        self, call: PendingToolCall, record: Call, at_end: AtEnd, task: asyncio.Task[None]
    ) -> None:
        self.call = call
        self.record = record
        self.at_end = at_end
        self.task = task
        self.status = "running"
        self._started = time.monotonic()
        self._ended: float | None = None
        self._progress: ToolProgressEvent | None = None
        self._line = ""
        record.sinks = (*record.sinks, self._note)

    def end(self, status: str) -> None:
        """Note that the call has ended."""
        self.status = status
        self._ended = time.monotonic()

    def _note(self, event: Event) -> None:
        if isinstance(event, ToolProgressEvent):
            self._progress = event
        elif isinstance(event, NotifyStreamEvent):
            self._line = (self._line + event.data if event.is_delta else event.data)[-_MAX_LINE:]

    def to_dict(self) -> dict[str, Any]:
        """Return the state of the call as JSON: its status, seconds, and latest progress."""
        seconds = (self._ended or time.monotonic()) - self._started
        shown: dict[str, Any] = {
            "call_id": self.call.item.call_id,
            "tool": self.record.tool_name,
            "status": self.status,
            "seconds": round(seconds, 1),
        }
        if (progress := self._progress) is not None:
            shown["progress"] = progress.current
            if progress.total is not None:
                shown["total"] = progress.total
            if progress.message is not None:
                shown["message"] = progress.message[-_MAX_LINE:]
        if self._line:
            shown["latest"] = self._line
        return shown


class BackgroundCalls:
    """The calls of one run that have run in the background in this process.

    All methods except `wake` belong to the event loop of the run.
    """

    def __init__(self) -> None:
        self._calls: dict[str, BackgroundCall] = {}
        self._unchecked: list[BackgroundCall] = []  # their tasks run, or can have failed
        self._waiter: PendingFuture[None] | None = None

    @property
    def running(self) -> list[BackgroundCall]:
        """The calls whose tasks have not ended: a hook can run after the result was sent."""
        return [call for call in self._unchecked if not call.task.done()]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the state of all calls as JSON, in the order in which they began."""
        return [call.to_dict() for call in self._calls.values()]

    def get(self, call_id: str) -> BackgroundCall | None:
        """Return the call with an id, if there is one."""
        return self._calls.get(call_id)

    def add(self, call: BackgroundCall) -> None:
        """Add a call.

        An exception of its task, such as that of a tool without a failure function, ends the run.
        """
        self._calls[call.call.item.call_id] = call
        self._unchecked.append(call)
        call.task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved, also if the run has ended
        self.wake()

    def raise_error(self) -> None:
        """Raise the first exception with which a call ends the run, if there is one."""
        ended = [call for call in self._unchecked if call.task.done()]
        for call in ended:
            self._unchecked.remove(call)
            if not call.task.cancelled() and (error := call.task.exception()) is not None:
                raise error

    async def wait(self, is_enough: Callable[[], bool]) -> None:
        """Wait until all calls have ended that the run waits for.

        Args:
            is_enough: Whether the run can continue before that; checked after each `wake`.

        Raises:
            Exception: An exception with which a call ends the run.
        """
        while self._calls:
            # The future exists before the check, so that no wake-up of another thread is missed.
            waiter = self._waiter = PendingFuture()
            self.raise_error()
            if not any(call.at_end == "wait" for call in self.running) or is_enough():
                return
            await waiter

    def wake(self) -> None:
        """Let `wait` check again whether the run can continue. Any thread can call this."""
        if self._waiter is not None:
            self._waiter.resolve(None)


# --- tools for the model


def background_tools() -> Toolset:
    """Return tools with which a model lists, inspects and cancels its calls in the background.

    `list_background_calls` returns the calls of the run, `check_background_call` the status and the
    latest progress of one, and `cancel_background_call` cancels one. They act on the calls of the
    agent that calls them, and of its current run only. Add them to an agent whose tools have the
    policy `background`: `Agent(..., tools=[report, background_tools()])`.
    """
    return Toolset(list_background_calls, check_background_call, cancel_background_call)


@function_tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
async def list_background_calls(context: ToolContext[Any]) -> list[dict[str, Any]]:
    """List your calls in the background with their status and latest progress."""
    return _calls_of(context).to_list()


@function_tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
async def check_background_call(context: ToolContext[Any], call_id: str) -> dict[str, Any]:
    """Return the status and the latest progress of one of your calls in the background.

    Its result is not part of this: it follows in a message.

    Args:
        context: The context of the call.
        call_id: The id of the call in the background.
    """
    return _call_of(context, call_id).to_dict()


@function_tool(annotations=ToolAnnotations(idempotentHint=True, openWorldHint=False))
async def cancel_background_call(context: ToolContext[Any], call_id: str) -> str:
    """Cancel one of your calls in the background. A message confirms its end.

    Args:
        context: The context of the call.
        call_id: The id of the call in the background.
    """
    call = _call_of(context, call_id)
    if call.status != "running":
        return f"Call {call_id!r} has already ended with the status {call.status!r}."
    _run_of(context).calls.cancel(call_id)
    return f"Call {call_id!r} is being cancelled."


def _call_of(context: ToolContext[Any], call_id: str) -> BackgroundCall:
    calls = _calls_of(context)
    call = calls.get(call_id)
    if call is None:
        known = ", ".join(str(one["call_id"]) for one in calls.to_list()) or "none"
        raise ToolError(
            f"Call {call_id!r:.100} does not run in the background. The calls are: {known}."
        )
    return call


def _calls_of(context: ToolContext[Any]) -> BackgroundCalls:
    calls: BackgroundCalls | None = _run_of(context).calls.background
    return BackgroundCalls() if calls is None else calls


def _run_of(context: ToolContext[Any]) -> Any:
    scope = call_of(context).scope
    if scope is None or scope.run is None:
        raise ToolError("Calls in the background need a run of an agent. Call this tool in one.")
    return scope.run
