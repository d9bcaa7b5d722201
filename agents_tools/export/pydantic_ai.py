"""Agents of Pydantic AI as tools."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import (
    AgentRunResultEvent,
    DeferredToolRequests,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
)
from pydantic_ai.messages import CustomEvent, TextPart, TextPartDelta
from pydantic_ai.usage import RunUsage, UsageLimits

from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    custom,
    foreign_tool,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from pydantic_ai import AgentRunResult
    from pydantic_ai.agent import AbstractAgent

    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool"]


def as_tool(
    agent: AbstractAgent[Any, Any],
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[AgentRunResult[Any]], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of Pydantic AI. Its dependencies are the run's `context`.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; the framework's default if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    limits = None if max_turns is None else UsageLimits(request_limit=max_turns)

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        used = RunUsage()
        started = agent.run_stream_events(
            task, deps=context.context, usage_limits=limits, usage=used
        )
        try:
            async with started as events:
                async for event in events:
                    for said in _said(event):
                        yield said
        finally:
            usage.add(_usage(used))

    return foreign_tool(
        agent.name or "agent",
        run,
        tool_name=tool_name,
        tool_description=tool_description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


def _said(event: Any) -> list[Said]:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return [Told(text)]
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return [Told(text)]
        case FunctionToolCallEvent(part=call):
            return [CallBegan(call.tool_call_id, call.tool_name, arguments_of(call.args))]
        case FunctionToolResultEvent():
            given: Any = event.part
            return [CallEnded(given.tool_call_id, given.outcome != "success")]
        case CustomEvent() if event.ui:
            return [custom(_payload(event), event.name, event.tool_call_id)]
        case AgentRunResultEvent():
            return [_last(cast("Any", event).result)]
        case _:
            return []


def _payload(event: CustomEvent) -> dict[str, Any]:
    """Give what an event of the application's says, without where it says it."""
    own = {field.name for field in fields(event)} - {field.name for field in fields(CustomEvent)}
    return {name: getattr(event, name) for name in sorted(own)}


def _last(result: Any) -> Answer | Waits:
    if not isinstance(result.output, DeferredToolRequests):
        return Answer(result.output, result)
    waiting = result.output
    names = ", ".join(repr(call.tool_name) for call in (*waiting.approvals, *waiting.calls))
    return Waits(f"the approval or the result of {names}")


def _usage(used: Any) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_input_tokens=used.cache_read_tokens,
        reasoning_tokens=int(used.details.get("reasoning_tokens", 0)),
    )
