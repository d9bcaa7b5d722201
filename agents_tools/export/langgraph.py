"""Graphs of LangGraph, and the agents made of them, as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    arguments_of,
    foreign_tool,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

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
    """Make a tool of a graph whose state has `messages`. Its runtime context is the run's.

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

    async def run(task: str, context: ToolContext[Any]) -> AsyncGenerator[Said]:
        reader = _Reader()
        stream: Any = agent.astream(
            {"messages": [{"role": "user", "content": task}]},
            None if max_turns is None else {"recursion_limit": max_turns},
            context=context.context,
            stream_mode=["messages", "custom", "values"],
            subgraphs=True,
        )
        try:
            async for space, mode, data in stream:
                for said in reader.said(space, mode, data):
                    yield said
        finally:
            await stream.aclose()
        yield reader.answer()

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


class _Reader:
    """Reads the stream of a graph: its text, its calls and its last state."""

    def __init__(self) -> None:
        self._state: dict[str, Any] = {}
        self._seen: set[str] = set()
        self._usage: dict[str, Usage] = {}

    def said(self, space: tuple[str, ...], mode: str, data: Any) -> Iterator[Said]:
        """Give what a piece of the stream says."""
        if mode == "custom":
            yield Told(data if isinstance(data, str) else repr(data), whole=True)
        elif mode == "messages":
            message: Any = data[0]
            if isinstance(message, AIMessageChunk) and message.text:
                yield Told(str(message.text))
        elif mode == "values":
            if not space:
                self._state = data
            yield from self._of_state(data)

    def _of_state(self, state: Any) -> Iterator[Said]:
        messages: list[Any] = state.get("messages", []) if hasattr(state, "get") else []
        for message in messages:
            if isinstance(message, AIMessage):
                yield from self._of_model(message)
            elif isinstance(message, ToolMessage) and self._new(f"end {message.tool_call_id}"):
                yield CallEnded(message.tool_call_id, message.status == "error")

    def _of_model(self, message: AIMessage) -> Iterator[Said]:
        used: Any = message.usage_metadata
        if used and message.id:
            self._usage[message.id] = _usage(used)
        for call in message.tool_calls:
            call_id = call["id"] or ""
            if self._new(f"begin {call_id}"):
                yield CallBegan(call_id, call["name"], arguments_of(call["args"]))

    def _new(self, key: str) -> bool:
        known = key in self._seen
        self._seen.add(key)
        return not known

    def answer(self) -> Answer:
        """Give the last message of the last state."""
        messages: list[Any] = self._state.get("messages", [])
        usage = Usage()
        for one in self._usage.values():
            usage.add(one)
        return Answer(str(messages[-1].text) if messages else "", self._state, usage)


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
