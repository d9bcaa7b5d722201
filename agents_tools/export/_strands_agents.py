"""Agents of Strands as tools: the run and its events."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from agents_tools.content.usage import Usage
from agents_tools.errors import MaxTurnsExceeded, ToolCancelledError, ToolError
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentPaused,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    custom_event,
    parse_arguments,
)
from agents_tools.export._poll_cancellation import POLL_INTERVAL
from agents_tools.export._serialize_calls import serializer_for
from agents_tools.export._strands_export import StrandsFunctionTool
from agents_tools.export._strands_import import describe_interrupts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from strands import Agent

    from agents_tools.tool.context import ToolContext

__all__ = ["agent_runner"]


def agent_runner(
    agent: Agent,
    max_turns: int | None,
    *,
    preserve_context: bool,
    invocation_state: Mapping[str, Any] | None,
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[AgentEvent]]:
    """Return a function that runs an agent on a task.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests.
        preserve_context: Whether the agent remembers earlier tasks.
        invocation_state: The state that its own tools get.
    """
    snapshot = None if preserve_context else agent.take_snapshot(preset="session")
    limits: dict[str, Any] = {} if max_turns is None else {"limits": {"turns": max_turns}}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        async with _exclusive_use(agent, snapshot):
            before = len(agent.event_loop_metrics.agent_invocations)
            stream: Any = agent.stream_async(
                task,
                invocation_state={"context": context.context, **(invocation_state or {})},
                **limits,
            )
            last: Any = None
            try:
                async for event in stream:
                    last = event.get("result", last)
                    for converted in _convert(event, agent):
                        yield converted
            finally:
                await stream.aclose()
                for invocation in agent.event_loop_metrics.agent_invocations[before:]:
                    usage.add(_usage(invocation))
        yield _final_event(last, agent.name, max_turns)

    return run


@contextlib.asynccontextmanager
async def _exclusive_use(agent: Agent, snapshot: Any) -> AsyncGenerator[None]:
    """Wait until the agent is free, since it rejects concurrent calls, and restore its snapshot."""
    serializer = serializer_for(agent)
    # Another event loop may release the agent, so there is no asyncio event to wait for.
    while not serializer.acquire(agent.name):  # noqa: ASYNC110
        await asyncio.sleep(POLL_INTERVAL)
    with serializer.held():
        if snapshot is not None:
            agent.load_snapshot(snapshot)
        yield


def _convert(event: dict[str, Any], agent: Agent) -> list[AgentEvent]:
    if isinstance(event.get("data"), str):
        return [TextDelta(event["data"])]
    if "tool_stream_event" in event:
        streamed = event["tool_stream_event"]
        if _is_exported(agent, streamed["tool_use"]["name"]):
            return []  # the function tool has emitted the event itself
        return [custom_event(streamed["data"], call_id=str(streamed["tool_use"]["toolUseId"]))]
    events: list[AgentEvent] = []
    message: Any = event.get("message")
    for block in message["content"] if isinstance(message, dict) else ():
        if "toolUse" in block and not _is_exported(agent, block["toolUse"]["name"]):
            use = block["toolUse"]
            arguments = parse_arguments(use["input"])
            events.append(CallStarted(str(use["toolUseId"]), use["name"], arguments))
        elif "toolResult" in block:
            result = block["toolResult"]
            events.append(CallEnded(str(result["toolUseId"]), result["status"] == "error"))
    return events


def _is_exported(agent: Agent, name: str) -> bool:
    return isinstance(agent.tool_registry.registry.get(name), StrandsFunctionTool)


def _final_event(result: Any, name: str, max_turns: int | None) -> FinalAnswer | AgentPaused:
    if result is None:
        raise ToolError(f"Agent {name!r} ended without a final output.")
    match result.stop_reason:
        case "interrupt":
            return AgentPaused(describe_interrupts(result.interrupts))
        case "cancelled":
            raise ToolCancelledError(f"Agent {name!r} was cancelled.")
        case "limit_turns":
            raise MaxTurnsExceeded(
                f"Agent {name!r} did not finish within {max_turns} turns. "
                "Raise max_turns if the task needs more."
            )
        case _:
            if result.structured_output is not None:
                return FinalAnswer(result.structured_output, result)
            return FinalAnswer(str(result).removesuffix("\n"), result)


def _usage(invocation: Any) -> Usage:
    used: dict[str, int] = invocation.usage
    read, written = used.get("inputTokens", 0), used.get("outputTokens", 0)
    cached = used.get("cacheReadInputTokens", 0)
    if read + written != used.get("totalTokens", 0):  # inputTokens leaves out cached tokens
        read += cached + used.get("cacheWriteInputTokens", 0)
    return Usage(
        requests=len(invocation.cycles),
        input_tokens=read,
        output_tokens=written,
        cached_input_tokens=cached,
        cache_write_tokens=used.get("cacheWriteInputTokens", 0),
    )
