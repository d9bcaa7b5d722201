"""Agents of Agno as tools: the run and its events."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from agno.team import Team
from agno.tools import Function

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
from agents_tools.export._agno_export import AgnoToolEvent
from agents_tools.export._agno_import import event_kind, payload

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.tool.context import ToolContext

__all__ = ["agent_runner"]


def agent_runner(
    agent: Any, max_turns: int | None, session_id: str | None
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[AgentEvent]]:
    """Return a function that runs an agent or a team on a task.

    Args:
        agent: The agent, or the team.
        max_turns: The maximum number of model requests.
        session_id: The session of all tasks; by default each task has a new session.
    """
    name = agent.name or "agent"

    async def run(
        task: str, _context: ToolContext[Any], usage: Usage
    ) -> AsyncGenerator[AgentEvent]:
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
                kind = event_kind(event)
                if kind is None:
                    last = event
                if kind == "ModelRequestStarted" and usage.requests == max_turns:
                    raise MaxTurnsExceeded(
                        f"Agent {name!r} did not finish within {max_turns} turns. "
                        "Raise max_turns if the task needs more."
                    )
                if kind == "ModelRequestCompleted":
                    usage.add(_usage(event))
                for converted in _convert(kind, event, agent):
                    yield converted
        finally:
            await stream.aclose()
        yield _final_event(last, name)

    return run


def _convert(kind: str | None, event: Any, agent: Any) -> list[AgentEvent]:
    match kind:
        case "RunContent" if isinstance(event.content, str) and event.content:
            # The text of a team's members is for the team, which writes the answer.
            is_from_member = isinstance(agent, Team) and event.event == kind
            return [] if is_from_member else [TextDelta(event.content)]
        case "ToolCallStarted" if not _is_exported(agent, event.tool.tool_name):
            tool = event.tool
            arguments = parse_arguments(tool.tool_args)
            return [CallStarted(str(tool.tool_call_id), tool.tool_name, arguments)]
        case "ToolCallCompleted" | "ToolCallError":
            failed = kind == "ToolCallError" or bool(event.tool.tool_call_error)
            return [CallEnded(str(event.tool.tool_call_id), failed)]
        case "CustomEvent" if not isinstance(event, AgnoToolEvent):
            return [custom_event(payload(event), type(event).__name__, event.tool_call_id)]
        case _:
            return []


def _is_exported(agent: Any, name: str) -> bool:
    tools: Any = agent.tools if isinstance(agent.tools, (list, tuple)) else ()
    members: Any = getattr(agent, "members", None)
    return any(
        isinstance(tool, Function)
        and tool.name == name
        and hasattr(tool.entrypoint, "function_tool")
        for tool in tools
    ) or any(
        _is_exported(member, name) for member in (members if isinstance(members, list) else ())
    )


def _final_event(result: Any, name: str) -> FinalAnswer | AgentPaused:
    if result is None:
        raise ToolError(f"Agent {name!r} ended without a final output.")
    if result.is_paused:
        names = [tool.tool_name for tool in result.tools or () if tool.is_paused]
        return AgentPaused(f"the approval or the result of {', '.join(map(repr, names))}")
    if result.is_cancelled:
        raise ToolCancelledError(f"Agent {name!r} was cancelled.")
    if str(getattr(result.status, "value", result.status)).upper() == "ERROR":
        raise ToolError(f"Agent {name!r} failed: {result.content}")
    return FinalAnswer(result.content, result)


def _usage(event: Any) -> Usage:
    return Usage(
        requests=1,
        input_tokens=event.input_tokens or 0,
        output_tokens=event.output_tokens or 0,
        cached_input_tokens=event.cache_read_tokens or 0,
        reasoning_tokens=event.reasoning_tokens or 0,
    )
