"""Agents of the OpenAI Agents SDK as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import Runner
from agents.items import ToolCallItem, ToolCallOutputItem
from agents.stream_events import (
    AgentUpdatedStreamEvent as ForeignUpdate,
    RawResponsesStreamEvent,
    RunItemStreamEvent,
)

from agents_tools._supervisor import finish
from agents_tools.events import AgentUpdatedStreamEvent
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    foreign_tool,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents import Agent, RunResultStreaming
    from agents.usage import Usage as ForeignUsage

    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool"]


def as_tool(
    agent: Agent[Any],
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[RunResultStreaming], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    run_config: Any = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of the OpenAI Agents SDK.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; the framework's default if not given.
        run_config: The framework's own `RunConfig`.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    options: dict[str, Any] = {} if max_turns is None else {"max_turns": max_turns}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        result = Runner.run_streamed(
            agent, task, context=context.context, run_config=run_config, **options
        )
        events: Any = result.stream_events()
        try:
            async for event in events:
                for said in _said(event, agent):
                    yield said
        finally:
            await _stop(result, events)
            usage.add(_usage(result.context_wrapper.usage))
        if result.interruptions:
            names = ", ".join(repr(item.name) for item in result.interruptions)
            yield Waits(f"the approval of {names}")
        else:
            yield Answer(result.final_output, result)

    return foreign_tool(
        agent.name,
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


async def _stop(result: RunResultStreaming, events: Any) -> None:
    """Cancel a run that still goes on, and wait until nothing is left of it."""
    if not result.is_complete:
        result.cancel()
    task = result.run_loop_task
    # Its events wait for the run when they are closed: only then it is known to be over.
    if task is None or await finish(task, name=result.current_agent.name):
        await events.aclose()


def _said(event: Any, agent: Agent[Any]) -> list[Said]:
    if isinstance(event, RawResponsesStreamEvent):
        data: Any = event.data
        told = data.type == "response.output_text.delta" and data.delta
        return [Told(data.delta)] if told else []
    if isinstance(event, ForeignUpdate):
        other: str = event.new_agent.name
        return [] if event.new_agent is agent else [AgentUpdatedStreamEvent(agent=other)]
    if not isinstance(event, RunItemStreamEvent):
        return []
    item: Any = event.item
    if isinstance(item, ToolCallItem) and event.name == "tool_called":
        raw: Any = item.raw_item
        call_id, name = _field(raw, "call_id"), _field(raw, "name")
        if call_id and name:
            return [CallBegan(call_id, name, arguments_of(_field(raw, "arguments")))]
    if isinstance(item, ToolCallOutputItem):
        call_id = _field(item.raw_item, "call_id")
        return [CallEnded(call_id)] if call_id else []
    return []


def _field(item: Any, name: str) -> Any:
    own: Any = item
    return own.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _usage(used: ForeignUsage) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_input_tokens=used.input_tokens_details.cached_tokens or 0,
        reasoning_tokens=used.output_tokens_details.reasoning_tokens or 0,
    )
