"""Graphs of LangGraph, and the agents made of them, as tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agents_tools.export._missing import missing

try:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
except ImportError as error:
    raise missing("agents_tools.export.langgraph", "langgraph", error) from error

from agents_tools._text import shorten
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
    shown,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool"]


def as_tool(
    agent: Any,
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[dict[str, Any]], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of a graph. Its runtime context is the run's.

    A graph whose state has `messages` is given the task as a message of the user, and answers with
    its `structured_response`, or else with the text of its last message. Any other graph is given
    the arguments of the tool as its state, and answers with its last state.

    Args:
        agent: The compiled graph, or what `create_agent` gives.
        tool_name: What models call the tool; made from the graph's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the last state of the graph; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How many steps the graph takes at most (its recursion limit); the framework's
            default if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        reader = _Reader()
        stream: Any = agent.astream(
            _state(agent, task, typed=parameters is not None),
            None if max_turns is None else {"recursion_limit": max_turns},
            context=context.context,
            stream_mode=["messages", "custom", "updates", "values"],
            subgraphs=True,
        )
        try:
            async for space, mode, data in stream:
                for said in reader.said(space, mode, data):
                    yield said
        finally:
            await stream.aclose()
            for used in reader.usage.values():
                usage.add(used)
        yield reader.last()

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


def _state(agent: Any, task: str, *, typed: bool) -> dict[str, Any]:
    if "messages" in getattr(agent, "channels", ("messages",)):
        return {"messages": [{"role": "user", "content": task}]}
    return json.loads(task) if typed else {"input": task}


class _Reader:
    """Reads the stream of a graph: its text, its calls and its last state.

    Calls are told as the updates of their nodes bring them. What a state holds when it is first
    seen is from before: a graph with a memory starts with all of its past.
    """

    def __init__(self) -> None:
        self.usage: dict[str, Usage] = {}
        self._state: Any = None
        self._waits: Waits | None = None
        self._spaces: set[tuple[str, ...]] = set()
        self._seen: set[tuple[str, str]] = set()

    def said(self, space: tuple[str, ...], mode: str, data: Any) -> list[Said]:
        """Give what a piece of the stream says."""
        match mode:
            case "custom":
                return [custom(data)]
            case "messages":
                return self._text(data[0])
            case "updates":
                updates: dict[str, Any] = data
                if "__interrupt__" in updates and not space:
                    self._waits = _waits(updates["__interrupt__"])
                return self._calls([m for one in updates.values() for m in _messages(one)])
            case _:
                if not space:
                    self._state = data
                return self._values(space, _messages(data))

    def last(self) -> Answer | Waits:
        """Give the answer that the last state has, unless the graph was interrupted."""
        if self._waits is not None:
            return self._waits
        state: Any = self._state
        if not isinstance(state, dict) or "messages" not in state:
            return Answer(state, state)
        known = cast("dict[str, Any]", state)
        if known.get("structured_response") is not None:
            return Answer(known["structured_response"], known)
        messages: list[Any] = known["messages"]
        return Answer(str(messages[-1].text) if messages else "", known)

    def _text(self, message: Any) -> list[Said]:
        if not isinstance(message, AIMessage) or not message.text:
            return []
        # What a model did not write piece by piece comes as one message, from each graph it is in.
        piece = isinstance(message, AIMessageChunk)
        return [Told(str(message.text))] if piece or self._new("text", message.id) else []

    def _values(self, space: tuple[str, ...], messages: list[Any]) -> list[Said]:
        fresh = space in self._spaces
        self._spaces.add(space)
        calls = self._calls(messages)
        for message in messages:
            used: Any = getattr(message, "usage_metadata", None)
            if self._new("usage", message.id) and used and fresh:
                self.usage[message.id] = _usage(used)
        return calls if fresh else []

    def _calls(self, messages: list[Any]) -> list[Said]:
        said: list[Said] = []
        for message in messages:
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    if self._new("began", call["id"]):
                        arguments = arguments_of(call["args"])
                        said.append(CallBegan(str(call["id"]), call["name"], arguments))
            elif isinstance(message, ToolMessage) and self._new("ended", message.tool_call_id):
                said.append(CallEnded(message.tool_call_id, message.status == "error"))
        return said

    def _new(self, what: str, key: str | None) -> bool:
        if key is None or (what, key) in self._seen:
            return False
        self._seen.add((what, key))
        return True


def _messages(update: Any) -> list[Any]:
    """Give the messages in a state, or in what a node changes of it."""
    parts = cast("list[Any]", update if isinstance(update, list) else [update])
    found: list[Any] = []
    for part in parts:
        if isinstance(part, dict):
            given: Any = cast("dict[str, Any]", part).get("messages", [])
            found += given if isinstance(given, list) else [given]
    return [message for message in found if isinstance(message, BaseMessage)]


def _waits(interrupts: Any) -> Waits:
    asked = "; ".join(shown(one.value) for one in interrupts)
    return Waits(f"an answer to {shorten(asked, _MAX_ASKED)}" if asked else "its continuation")


_MAX_ASKED = 300
"""Characters that are told of what a graph was interrupted for."""


def _usage(used: dict[str, Any]) -> Usage:
    read: dict[str, int] = used.get("input_token_details") or {}
    written: dict[str, int] = used.get("output_token_details") or {}
    return Usage(
        requests=1,
        input_tokens=used.get("input_tokens", 0),
        output_tokens=used.get("output_tokens", 0),
        cached_input_tokens=read.get("cache_read", 0),
        reasoning_tokens=written.get("reasoning", 0),
    )
