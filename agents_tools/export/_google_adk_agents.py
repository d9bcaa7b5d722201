"""Agents of Google's ADK as tools: the run and its events."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from google.adk.agents.run_config import RunConfig, StreamingMode

from agents_tools.content.usage import Usage
from agents_tools.errors import MaxTurnsExceeded, ToolError
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentPaused,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    parse_arguments,
)
from agents_tools.export._google_adk_export import EVENT, AdkFunctionTool
from agents_tools.export._google_adk_import import CONFIRMATION
from agents_tools.export._google_adk_sessions import open_session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from google.adk.agents import BaseAgent

    from agents_tools.tool.context import ToolContext

__all__ = ["agent_runner"]


def agent_runner(
    agent: BaseAgent, max_turns: int | None, state: Mapping[str, Any] | None
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[AgentEvent]]:
    """Return a function that runs an agent on a task.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests.
        state: The initial state of the session of each task.
    """
    limits: dict[str, Any] = {} if max_turns is None else {"max_llm_calls": max_turns}

    async def run(
        task: str, _context: ToolContext[Any], usage: Usage
    ) -> AsyncGenerator[AgentEvent]:
        config = RunConfig(streaming_mode=StreamingMode.SSE, **limits)
        reader = _AdkEventReader(agent, config.max_llm_calls)
        async with (
            open_session(agent, state) as session,
            contextlib.aclosing(session.run(task, config)) as events,
        ):
            async for event in events:
                usage.add(_usage(event))
                for converted in reader.convert(event):
                    yield converted
        yield reader.final_event()

    return run


class _AdkEventReader:
    """Convert the events of one run: text, calls and the final output."""

    def __init__(self, agent: BaseAgent, max_turns: int) -> None:
        self._agent = agent
        self._max_turns = max_turns
        self._is_streaming_text = False
        self._pending: dict[str, str] = {}  # the names of tools that wait, by the id of the call
        self._last: Any = None

    def convert(self, event: Any) -> list[AgentEvent]:
        """Convert one event.

        Raises:
            MaxTurnsExceeded: The agent reached the maximum number of model requests.
            ToolError: The agent failed.
        """
        if event.error_code and not event.content:
            if event.error_code == "LlmCallsLimitExceededError":
                raise MaxTurnsExceeded(
                    f"Agent {self._agent.name!r} did not finish within {self._max_turns} turns. "
                    "Raise max_turns if the task needs more."
                )
            raise ToolError(
                f"Agent {self._agent.name!r} failed: {event.error_code}: {event.error_message}"
            )
        metadata = event.custom_metadata or {}
        if EVENT in metadata:
            return []  # the function tool has emitted the event itself
        events = self._text(event)
        if not event.partial:
            events += self._calls(event)
            if event.is_final_response() and (event.content or event.output is not None):
                self._last = event
        return events

    def final_event(self) -> FinalAnswer | AgentPaused:
        """Return the final output, or a pause if a call still waits for its result."""
        if self._pending:
            names = ", ".join(repr(name) for name in self._pending.values())
            return AgentPaused(f"the approval or the result of {names}")
        event = self._last
        if event is None:
            raise ToolError(f"Agent {self._agent.name!r} ended without a final output.")
        if event.output is not None:
            return FinalAnswer(event.output, event)
        text = _text_of(event)
        for response in event.get_function_responses() if not text else ():
            return FinalAnswer(response.response, event)  # a tool result that ended the run
        return FinalAnswer(text, event)

    def _text(self, event: Any) -> list[AgentEvent]:
        text = _text_of(event)
        # Text that was streamed in partial events is repeated as a whole in the next event.
        is_repeated = self._is_streaming_text and not event.partial
        self._is_streaming_text = bool(event.partial) or (self._is_streaming_text and not text)
        return [TextDelta(text)] if text and not is_repeated else []

    def _calls(self, event: Any) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                self._pending[call.id] = _requested_tool(call)
            if call.name not in _REQUESTS and not _is_exported(self._agent, call.name):
                events.append(CallStarted(str(call.id), str(call.name), parse_arguments(call.args)))
        for response in event.get_function_responses():
            self._pending.pop(response.id, None)
            failed = "error" in (response.response or {})
            events.append(CallEnded(str(response.id), failed))
        return events


_REQUESTS = {CONFIRMATION, "adk_request_credential", "adk_request_input"}
"""The names of calls that request input from a person."""


def _requested_tool(call: Any) -> str:
    """Return the name of the tool that a request for input is about."""
    original = (call.args or {}).get("originalFunctionCall") or {}
    return original.get("name") or call.name


def _is_exported(agent: Any, name: str) -> bool:
    tools: list[Any] = getattr(agent, "tools", [])
    return any(isinstance(tool, AdkFunctionTool) and tool.name == name for tool in tools) or any(
        _is_exported(sub_agent, name) for sub_agent in agent.sub_agents
    )


def _text_of(event: Any) -> str:
    """Return the text of an event, without thoughts."""
    parts = event.content.parts if event.content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def _usage(event: Any) -> Usage:
    used = event.usage_metadata
    if used is None or event.partial:
        return Usage()
    thoughts = used.thoughts_token_count or 0
    return Usage(
        requests=1,
        input_tokens=used.prompt_token_count or 0,
        output_tokens=(used.candidates_token_count or 0) + thoughts,
        cached_input_tokens=used.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )
