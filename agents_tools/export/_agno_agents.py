"""Agents of Agno at work for us."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from agno.team import Team
from agno.tools import Function

from agents_tools.errors import MaxTurnsExceeded, ToolCancelledError, ToolError
from agents_tools.export._agno_calls import ToolEvent
from agents_tools.export._agno_tools import kind_of, payload
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
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.context import ToolContext

__all__ = ["run_of"]


def run_of(
    agent: Any, max_turns: int | None, session_id: str | None
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[Said]]:
    """Give what runs an agent or a team for one task after the other.

    Args:
        agent: The agent, or the team.
        max_turns: How often models are asked at most.
        session_id: The session of all tasks; one of its own for each by default.
    """
    name = agent.name or "agent"

    async def run(task: str, _context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        stream: Any = agent.arun(
            task,
            stream=True,
            stream_events=True,
            yield_run_output=True,
            session_id=session_id or uuid.uuid4().hex,
        )
        last: Any = None
        try:
            async for event in stream:
                kind = kind_of(event)
                if kind is None:
                    last = event
                if kind == "ModelRequestStarted" and usage.requests == max_turns:
                    raise MaxTurnsExceeded(
                        f"Agent {name!r} did not finish within {max_turns} turns."
                    )
                if kind == "ModelRequestCompleted":
                    usage.add(_usage(event))
                for said in _said(kind, event, agent):
                    yield said
        finally:
            await stream.aclose()
        yield _last(last, name)

    return run


def _said(kind: str | None, event: Any, agent: Any) -> list[Said]:
    match kind:
        case "RunContent" if isinstance(event.content, str) and event.content:
            # What a member of a team says goes to the team, which answers.
            is_members = isinstance(agent, Team) and event.event == kind
            return [] if is_members else [Told(event.content)]
        case "ToolCallStarted" if not _is_ours(agent, event.tool.tool_name):
            tool = event.tool
            began = CallBegan(str(tool.tool_call_id), tool.tool_name, arguments_of(tool.tool_args))
            return [began]
        case "ToolCallCompleted" | "ToolCallError":
            failed = kind == "ToolCallError" or bool(event.tool.tool_call_error)
            return [CallEnded(str(event.tool.tool_call_id), failed)]
        case "CustomEvent" if not isinstance(event, ToolEvent):
            return [custom(payload(event), type(event).__name__, event.tool_call_id)]
        case _:
            return []


def _is_ours(agent: Any, name: str) -> bool:
    tools: Any = agent.tools if isinstance(agent.tools, (list, tuple)) else ()
    members: Any = getattr(agent, "members", None)
    return any(
        isinstance(tool, Function)
        and tool.name == name
        and hasattr(tool.entrypoint, "function_tool")
        for tool in tools
    ) or any(_is_ours(one, name) for one in (members if isinstance(members, list) else ()))


def _last(result: Any, name: str) -> Answer | Waits:
    if result is None:
        raise ToolError(f"Agent {name!r} ended without an answer.")
    if result.is_paused:
        names = [tool.tool_name for tool in result.tools or () if tool.is_paused]
        return Waits(f"the approval or the result of {', '.join(map(repr, names))}")
    if result.is_cancelled:
        raise ToolCancelledError(f"Agent {name!r} was cancelled.")
    if str(getattr(result.status, "value", result.status)).upper() == "ERROR":
        raise ToolError(f"Agent {name!r} failed: {result.content}")
    return Answer(result.content, result)


def _usage(event: Any) -> Usage:
    return Usage(
        requests=1,
        input_tokens=event.input_tokens or 0,
        output_tokens=event.output_tokens or 0,
        cached_input_tokens=event.cache_read_tokens or 0,
        reasoning_tokens=event.reasoning_tokens or 0,
    )
