"""Agents of Google's ADK at work for us."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from google.adk.agents.run_config import RunConfig, StreamingMode

from agents_tools.errors import MaxTurnsExceeded, ToolError
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
)
from agents_tools.export._google_adk_calls import EVENT, Ours
from agents_tools.export._google_adk_sessions import session_with
from agents_tools.export._google_adk_tools import CONFIRMATION
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from google.adk.agents import BaseAgent

    from agents_tools.context import ToolContext

__all__ = ["run_of"]


def run_of(
    agent: BaseAgent, max_turns: int | None, state: Mapping[str, Any] | None
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[Said]]:
    """Give what runs an agent for one task after the other.

    Args:
        agent: The agent.
        max_turns: How often models are asked at most.
        state: What the session of each task starts with.
    """
    limits: dict[str, Any] = {} if max_turns is None else {"max_llm_calls": max_turns}

    async def run(task: str, _context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        config = RunConfig(streaming_mode=StreamingMode.SSE, **limits)
        reader = _Reader(agent, config.max_llm_calls)
        async with (
            session_with(agent, state) as session,
            contextlib.aclosing(session.run(task, config)) as events,
        ):
            async for event in events:
                usage.add(_usage(event))
                for said in reader.said(event):
                    yield said
        yield reader.last()

    return run


class _Reader:
    """Reads the events of an agent: its text, its calls and its answer."""

    def __init__(self, agent: BaseAgent, max_turns: int) -> None:
        self._agent = agent
        self._max_turns = max_turns
        self._said: set[str] = set()
        self._pieces = False
        self._waits: dict[str, str] = {}
        self._last: Any = None

    def said(self, event: Any) -> list[Said]:
        """Give what an event says."""
        if event.error_code and not event.content:
            if event.error_code == "LlmCallsLimitExceededError":
                raise MaxTurnsExceeded(
                    f"Agent {self._agent.name!r} did not finish within {self._max_turns} turns."
                )
            raise ToolError(
                f"Agent {self._agent.name!r} failed: {event.error_code}: {event.error_message}"
            )
        metadata = event.custom_metadata or {}
        if EVENT in metadata:
            return []  # a tool of ours says so itself
        said = self._text(event)
        if not event.partial:
            said += self._calls(event)
            if event.is_final_response() and (event.content or event.output is not None):
                self._last = event
        return said

    def last(self) -> Answer | Waits:
        """Give the answer, unless a call is still without one."""
        if self._waits:
            names = ", ".join(repr(name) for name in self._waits.values())
            return Waits(f"the approval or the result of {names}")
        event = self._last
        if event is None:
            raise ToolError(f"Agent {self._agent.name!r} ended without an answer.")
        if event.output is not None:
            return Answer(event.output, event)
        words = _words(event)
        for response in event.get_function_responses() if not words else ():
            return Answer(response.response, event)  # a tool answered for the model
        return Answer(words, event)

    def _text(self, event: Any) -> list[Said]:
        text = _words(event)
        # What came in pieces comes once more as a whole.
        again = self._pieces and not event.partial
        self._pieces = bool(event.partial) or (self._pieces and not text)
        return [Told(text)] if text and not again else []

    def _calls(self, event: Any) -> list[Said]:
        said: list[Said] = []
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                self._waits[call.id] = _asked_for(call)
            if call.name not in _REQUESTS and not _is_ours(self._agent, call.name):
                said.append(CallBegan(str(call.id), str(call.name), arguments_of(call.args)))
        for response in event.get_function_responses():
            self._waits.pop(response.id, None)
            failed = "error" in (response.response or {})
            said.append(CallEnded(str(response.id), failed))
        return said


_REQUESTS = {CONFIRMATION, "adk_request_credential", "adk_request_input"}
"""Calls that are questions to a person."""


def _asked_for(call: Any) -> str:
    """Give the name of the tool that a question to a person is about."""
    original = (call.args or {}).get("originalFunctionCall") or {}
    return original.get("name") or call.name


def _is_ours(agent: Any, name: str) -> bool:
    tools: list[Any] = getattr(agent, "tools", [])
    return any(isinstance(tool, Ours) and tool.name == name for tool in tools) or any(
        _is_ours(one, name) for one in agent.sub_agents
    )


def _words(event: Any) -> str:
    """Give the text of an event, thoughts left out."""
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
