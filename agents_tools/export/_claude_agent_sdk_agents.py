"""The agent of the Claude Agent SDK as a tool: the run and its events."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

from agents_tools.content.usage import Usage
from agents_tools.errors import MaxTurnsExceeded, ToolError
from agents_tools.export._agent_adapter import (
    AgentEvent,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    parse_arguments,
)
from agents_tools.export._claude_agent_sdk_export import SERVERS
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from claude_agent_sdk import Transport

    from agents_tools.tool.context import ToolContext

__all__ = ["agent_runner"]


def agent_runner(
    options: ClaudeAgentOptions,
    max_turns: int | None,
    *,
    name: str,
    transport: Callable[[], Transport] | None,
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[AgentEvent]]:
    """Return a function that runs the agent of the SDK on a task.

    Args:
        options: The options of the agent.
        max_turns: The maximum number of model requests; that of the options by default.
        name: The name of the agent.
        transport: Creates the transport of a run; by default the program on this machine.
    """
    changes = {} if max_turns is None else {"max_turns": max_turns}
    exported_names = _exported_names(options)

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        del context  # the SDK has no context object
        reader = _ClaudeMessageReader(name, exported_names)
        stream: Any = query(
            prompt=task,
            options=replace(options, include_partial_messages=True, **changes),
            transport=None if transport is None else transport(),
        )
        try:
            async with contextlib.aclosing(stream) as messages:
                async for message in messages:
                    for event in reader.convert(message):
                        yield event
        finally:
            usage.add(reader.used)

    return run


def _exported_names(options: ClaudeAgentOptions) -> frozenset[str]:
    """Return the names of the function tools in the servers, which emit their events themselves."""
    servers: Any = options.mcp_servers
    if not isinstance(servers, dict):
        return frozenset()
    names: set[str] = set()
    for name, config in cast("dict[str, Any]", servers).items():
        server = config.get("instance") if config.get("type") == "sdk" else None
        tools = frozenset[str]() if server is None else SERVERS.get(server, frozenset())
        names |= {f"mcp__{name}__{tool}" for tool in tools}
    return frozenset(names)


class _ClaudeMessageReader:
    """Convert the messages of one run to events."""

    def __init__(self, name: str, exported_names: frozenset[str]) -> None:
        self._name = name
        self._exported_names = exported_names
        self._usage_by_response: dict[str, Usage] = {}
        self._total: Usage | None = None
        self._calls: set[str] = set()
        self._has_streamed_text = False

    @property
    def used(self) -> Usage:
        """The usage so far: the total of the last message, or else the sum of the responses."""
        if self._total is not None:
            return self._total
        total = Usage()
        for usage in self._usage_by_response.values():
            total.add(usage)
        return total

    def convert(self, message: Any) -> list[AgentEvent]:
        """Convert one message.

        Raises:
            MaxTurnsExceeded: The agent reached the maximum number of model requests.
            ToolError: The agent failed.
        """
        match message:
            case StreamEvent(event={"delta": {"type": "text_delta", "text": str(text)}}):
                self._has_streamed_text = True
                return [TextDelta(text, call_id=message.parent_tool_use_id)]
            case AssistantMessage():
                if message.message_id is not None and message.usage is not None:
                    # One response may be split into several messages with the same usage.
                    self._usage_by_response[message.message_id] = _usage(message.usage, 1)
                events = [
                    event for block in message.content for event in self._block(block, message)
                ]
                self._has_streamed_text = False
                return events
            case UserMessage(content=list(blocks)):
                return [event for block in blocks for event in self._block(block, message)]
            case ResultMessage():
                return [self._final_event(message)]
            case _:
                return []

    def _block(self, block: Any, message: Any) -> list[AgentEvent]:
        if isinstance(block, TextBlock) and isinstance(message, AssistantMessage):
            if self._has_streamed_text or not block.text:
                return []
            return [TextDelta(block.text, call_id=message.parent_tool_use_id)]
        if isinstance(block, ToolUseBlock) and block.name not in self._exported_names:
            self._calls.add(block.id)
            return [CallStarted(block.id, block.name, parse_arguments(block.input))]
        if isinstance(block, ToolResultBlock) and block.tool_use_id in self._calls:
            return [CallEnded(block.tool_use_id, bool(block.is_error))]
        return []

    def _final_event(self, result: ResultMessage) -> AgentEvent:
        self._total = _usage(result.usage or {}, result.num_turns)
        if result.subtype == "error_max_turns":
            raise MaxTurnsExceeded(
                f"Agent {self._name!r} did not finish within {result.num_turns} turns. "
                "Raise max_turns if the task needs more."
            )
        if result.is_error:
            reason = result.result or "; ".join(result.errors or ()) or result.subtype
            raise ToolError(f"Agent {self._name!r} failed: {shorten(reason, 500)}")
        if result.structured_output is not None:
            return FinalAnswer(result.structured_output, result)
        return FinalAnswer(result.result or "", result)


def _usage(used: dict[str, Any], requests: int) -> Usage:
    read = used.get("cache_read_input_tokens") or 0
    written = used.get("cache_creation_input_tokens") or 0
    return Usage(
        requests=requests,
        input_tokens=(used.get("input_tokens") or 0) + read + written,
        output_tokens=used.get("output_tokens") or 0,
        cached_input_tokens=read,
        cache_write_tokens=written,
    )
