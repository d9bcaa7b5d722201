"""Graphs of LangGraph, and agents built with them, as tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Unpack, cast

from agents_tools._package import missing_extra

try:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
except ImportError as error:
    raise missing_extra("agents_tools.export.langgraph", "langgraph", error) from error

from agents_tools.content.usage import Usage
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentPaused,
    AgentToolOptions,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    custom_event,
    display_text,
    make_agent_tool,
    parse_arguments,
)
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["as_tool"]


def as_tool(
    agent: Any,
    *,
    max_turns: int | None = None,
    **options: Unpack[AgentToolOptions[dict[str, Any]]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs a graph. Its runtime context is the `context` of the run.

    A graph whose state has `messages` gets the task as a user message. Its output is the
    `structured_response`, or else the text of the last message. Any other graph gets the arguments
    of the tool as its state, and its output is its last state.

    Args:
        agent: The compiled graph, or an agent from `create_agent`.
        max_turns: The maximum number of steps of the graph (its recursion limit); the framework's
            default if not given.
        **options: See `agents_tools.export.AgentToolOptions`. A `custom_output_extractor` receives
            the last state of the graph.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        reader = _GraphEventReader()
        stream: Any = agent.astream(
            _state(agent, task, typed=options.get("parameters") is not None),
            None if max_turns is None else {"recursion_limit": max_turns},
            context=context.context,
            stream_mode=["messages", "custom", "updates", "values"],
            subgraphs=True,
        )
        try:
            async for space, mode, data in stream:
                for event in reader.convert(space, mode, data):
                    yield event
        finally:
            await stream.aclose()
            for used in reader.usage.values():
                usage.add(used)
        yield reader.final_event()

    return make_agent_tool(agent.name or "agent", run, as_tool, options)


def _state(agent: Any, task: str, *, typed: bool) -> dict[str, Any]:
    if "messages" in getattr(agent, "channels", ("messages",)):
        return {"messages": [{"role": "user", "content": task}]}
    return json.loads(task) if typed else {"input": task}


class _GraphEventReader:
    """Convert the stream of a graph: text, calls and the last state.

    Calls are reported when the update of their node arrives. Messages in the first state of a
    graph are ignored, because a graph with a memory starts with all earlier messages.
    """

    def __init__(self) -> None:
        self.usage: dict[str, Usage] = {}
        self._state: Any = None
        self._paused: AgentPaused | None = None
        self._spaces: set[tuple[str, ...]] = set()
        self._seen: set[tuple[str, str]] = set()

    def convert(self, space: tuple[str, ...], mode: str, data: Any) -> list[AgentEvent]:
        """Convert one item of the stream."""
        match mode:
            case "custom":
                return [custom_event(data)]
            case "messages":
                return self._text(data[0])
            case "updates":
                updates: dict[str, Any] = data
                if "__interrupt__" in updates and not space:
                    self._paused = _paused(updates["__interrupt__"])
                return self._calls([m for update in updates.values() for m in _messages(update)])
            case _:
                if not space:
                    self._state = data
                return self._values(space, _messages(data))

    def final_event(self) -> FinalAnswer | AgentPaused:
        """Return the output in the last state, or a pause if the graph was interrupted."""
        if self._paused is not None:
            return self._paused
        last_state: Any = self._state
        if not isinstance(last_state, dict) or "messages" not in last_state:
            return FinalAnswer(last_state, last_state)
        state = cast("dict[str, Any]", last_state)
        if state.get("structured_response") is not None:
            return FinalAnswer(state["structured_response"], state)
        messages: list[Any] = state["messages"]
        return FinalAnswer(str(messages[-1].text) if messages else "", state)

    def _text(self, message: Any) -> list[AgentEvent]:
        if not isinstance(message, AIMessage) or not message.text:
            return []
        # A message that was not streamed arrives once from each graph that contains it.
        is_chunk = isinstance(message, AIMessageChunk)
        if not is_chunk and not self._is_new("text", message.id):
            return []
        return [TextDelta(str(message.text))]

    def _values(self, space: tuple[str, ...], messages: list[Any]) -> list[AgentEvent]:
        is_known_space = space in self._spaces
        self._spaces.add(space)
        calls = self._calls(messages)
        for message in messages:
            used: Any = getattr(message, "usage_metadata", None)
            if self._is_new("usage", message.id) and used and is_known_space:
                self.usage[message.id] = _usage(used)
        return calls if is_known_space else []

    def _calls(self, messages: list[Any]) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for message in messages:
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    if self._is_new("started", call["id"]):
                        arguments = parse_arguments(call["args"])
                        events.append(CallStarted(str(call["id"]), call["name"], arguments))
            elif isinstance(message, ToolMessage) and self._is_new("ended", message.tool_call_id):
                events.append(CallEnded(message.tool_call_id, message.status == "error"))
        return events

    def _is_new(self, kind: str, key: str | None) -> bool:
        """Return whether an item is seen for the first time; an item without an id never is."""
        if key is None or (kind, key) in self._seen:
            return False
        self._seen.add((kind, key))
        return True


def _messages(update: Any) -> list[Any]:
    """Return the messages in a state, or in a node's update of a state."""
    states = cast("list[Any]", update if isinstance(update, list) else [update])
    items: list[Any] = []
    for state in states:
        if isinstance(state, dict):
            messages: Any = cast("dict[str, Any]", state).get("messages", [])
            items += messages if isinstance(messages, list) else [messages]
    return [item for item in items if isinstance(item, BaseMessage)]


def _paused(interrupts: Any) -> AgentPaused:
    questions = "; ".join(display_text(item.value) for item in interrupts)
    return AgentPaused(
        f"an answer to {shorten(questions, _MAX_QUESTIONS)}" if questions else "its continuation"
    )


_MAX_QUESTIONS = 300
"""The maximum number of characters of the questions in an error message."""


def _usage(used: dict[str, Any]) -> Usage:
    read: dict[str, int] = used.get("input_token_details") or {}
    written: dict[str, int] = used.get("output_token_details") or {}
    return Usage(
        requests=1,
        input_tokens=used.get("input_tokens", 0),
        output_tokens=used.get("output_tokens", 0),
        cached_input_tokens=read.get("cache_read", 0),
        cache_write_tokens=read.get("cache_creation", 0),
        reasoning_tokens=written.get("reasoning", 0),
    )
