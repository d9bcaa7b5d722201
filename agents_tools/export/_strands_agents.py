"""Agents of Strands at work for us."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from agents_tools.errors import MaxTurnsExceeded, ToolCancelledError, ToolError
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    custom,
)
from agents_tools.export._strands_calls import Ours
from agents_tools.export._strands_tools import asked
from agents_tools.export._turns import turns_of
from agents_tools.export._until import LOOK
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from strands import Agent

    from agents_tools.context import ToolContext

__all__ = ["run_of"]


def run_of(
    agent: Agent,
    max_turns: int | None,
    *,
    preserve_context: bool,
    invocation_state: Mapping[str, Any] | None,
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[Said]]:
    """Give what runs an agent for one task after the other.

    Args:
        agent: The agent.
        max_turns: How often its model is asked at most.
        preserve_context: Whether it remembers earlier tasks.
        invocation_state: What its own tools find in their state.
    """
    beginning = None if preserve_context else agent.take_snapshot(preset="session")
    limits: dict[str, Any] = {} if max_turns is None else {"limits": {"turns": max_turns}}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        async with _turn(agent, beginning):
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
                    for said in _said(event, agent):
                        yield said
            finally:
                await stream.aclose()
                for invocation in agent.event_loop_metrics.agent_invocations[before:]:
                    usage.add(_usage(invocation))
        yield _last(last, agent.name, max_turns)

    return run


@contextlib.asynccontextmanager
async def _turn(agent: Agent, beginning: Any) -> AsyncGenerator[None]:
    """Wait for a turn with an agent, which refuses two calls at once, and let it forget."""
    turns = turns_of(agent)
    while not turns.take(agent.name):  # noqa: ASYNC110 - given up by another loop, maybe
        await asyncio.sleep(LOOK)
    with turns.used():
        if beginning is not None:
            agent.load_snapshot(beginning)
        yield


def _said(event: dict[str, Any], agent: Agent) -> list[Said]:
    if isinstance(event.get("data"), str):
        return [Told(event["data"])]
    if "tool_stream_event" in event:
        told = event["tool_stream_event"]
        if _is_ours(agent, told["tool_use"]["name"]):
            return []  # it says so itself
        return [custom(told["data"], call_id=str(told["tool_use"]["toolUseId"]))]
    said: list[Said] = []
    message: Any = event.get("message")
    for block in message["content"] if isinstance(message, dict) else ():
        if "toolUse" in block and not _is_ours(agent, block["toolUse"]["name"]):
            use = block["toolUse"]
            said.append(CallBegan(str(use["toolUseId"]), use["name"], arguments_of(use["input"])))
        elif "toolResult" in block:
            result = block["toolResult"]
            said.append(CallEnded(str(result["toolUseId"]), result["status"] == "error"))
    return said


def _is_ours(agent: Agent, name: str) -> bool:
    return isinstance(agent.tool_registry.registry.get(name), Ours)


def _last(result: Any, name: str, max_turns: int | None) -> Answer | Waits:
    if result is None:
        raise ToolError(f"Agent {name!r} ended without an answer.")
    match result.stop_reason:
        case "interrupt":
            return Waits(asked(result.interrupts))
        case "cancelled":
            raise ToolCancelledError(f"Agent {name!r} was cancelled.")
        case "limit_turns":
            raise MaxTurnsExceeded(f"Agent {name!r} did not finish within {max_turns} turns.")
        case _:
            if result.structured_output is not None:
                return Answer(result.structured_output, result)
            return Answer(str(result).removesuffix("\n"), result)


def _usage(invocation: Any) -> Usage:
    used: dict[str, int] = invocation.usage
    read, written = used.get("inputTokens", 0), used.get("outputTokens", 0)
    cached = used.get("cacheReadInputTokens", 0)
    if read + written != used.get("totalTokens", 0):  # the cache is not counted in
        read += cached + used.get("cacheWriteInputTokens", 0)
    return Usage(
        requests=len(invocation.cycles),
        input_tokens=read,
        output_tokens=written,
        cached_input_tokens=cached,
    )
