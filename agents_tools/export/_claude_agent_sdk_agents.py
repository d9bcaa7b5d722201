"""The agent that the Claude Agent SDK runs, at work for us."""

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

from agents_tools._text import shorten
from agents_tools.errors import MaxTurnsExceeded, ToolError
from agents_tools.export._claude_agent_sdk_calls import SERVERS
from agents_tools.export._foreign import Answer, CallBegan, CallEnded, Said, Told, arguments_of
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from claude_agent_sdk import Transport

    from agents_tools.context import ToolContext

__all__ = ["run_of"]


def run_of(
    options: ClaudeAgentOptions,
    max_turns: int | None,
    *,
    name: str,
    transport: Callable[[], Transport] | None,
) -> Callable[[str, ToolContext[Any], Usage], AsyncGenerator[Said]]:
    """Give what runs the agent of the SDK for one task after the other.

    Args:
        options: What it runs with.
        max_turns: How often its model is asked at most; that of the options if not given.
        name: What the agent is called.
        transport: Makes what a task talks to instead of the program on this machine.
    """
    changes = {} if max_turns is None else {"max_turns": max_turns}
    own = _names_of_ours(options)

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        del context  # the SDK has none
        reader = _Reader(name, own)
        stream: Any = query(
            prompt=task,
            options=replace(options, include_partial_messages=True, **changes),
            transport=None if transport is None else transport(),
        )
        try:
            async with contextlib.aclosing(stream) as messages:
                async for message in messages:
                    for said in reader.said(message):
                        yield said
        finally:
            usage.add(reader.used)

    return run


def _names_of_ours(options: ClaudeAgentOptions) -> frozenset[str]:
    """Give what the model calls those of its tools that are ours: they speak for themselves."""
    servers: Any = options.mcp_servers
    if not isinstance(servers, dict):
        return frozenset()
    found: set[str] = set()
    for name, config in cast("dict[str, Any]", servers).items():
        server = config.get("instance") if config.get("type") == "sdk" else None
        tools = frozenset[str]() if server is None else SERVERS.get(server, frozenset())
        found |= {f"mcp__{name}__{tool}" for tool in tools}
    return frozenset(found)


class _Reader:
    """Reads the messages of one run."""

    def __init__(self, name: str, own: frozenset[str]) -> None:
        self._name = name
        self._own = own
        self._answers: dict[str, Usage] = {}
        self._all: Usage | None = None
        self._calls: set[str] = set()
        self._in_pieces = False

    @property
    def used(self) -> Usage:
        """What was used by now: as the last message says, or else the answers of the model."""
        if self._all is not None:
            return self._all
        found = Usage()
        for used in self._answers.values():
            found.add(used)
        return found

    def said(self, message: Any) -> list[Said]:
        """Give what a message says."""
        match message:
            case StreamEvent(event={"delta": {"type": "text_delta", "text": str(text)}}):
                self._in_pieces = True
                return [Told(text, call_id=message.parent_tool_use_id)]
            case AssistantMessage():
                if message.message_id is not None and message.usage is not None:
                    # One answer comes in several messages.
                    self._answers[message.message_id] = _usage(message.usage, 1)
                said = [one for block in message.content for one in self._block(block, message)]
                self._in_pieces = False
                return said
            case UserMessage(content=list(blocks)):
                return [one for block in blocks for one in self._block(block, message)]
            case ResultMessage():
                return [self._last(message)]
            case _:
                return []

    def _block(self, block: Any, message: Any) -> list[Said]:
        if isinstance(block, TextBlock) and isinstance(message, AssistantMessage):
            # It has been told already where it came in pieces.
            told = Told(block.text, call_id=message.parent_tool_use_id)
            return [] if self._in_pieces or not block.text else [told]
        if isinstance(block, ToolUseBlock) and block.name not in self._own:
            self._calls.add(block.id)
            return [CallBegan(block.id, block.name, arguments_of(block.input))]
        if isinstance(block, ToolResultBlock) and block.tool_use_id in self._calls:
            return [CallEnded(block.tool_use_id, bool(block.is_error))]
        return []

    def _last(self, result: ResultMessage) -> Said:
        self._all = _usage(result.usage or {}, result.num_turns)
        if result.subtype == "error_max_turns":
            raise MaxTurnsExceeded(
                f"Agent {self._name!r} had no answer after {result.num_turns} turns."
            )
        if result.is_error:
            why = result.result or "; ".join(result.errors or ()) or result.subtype
            raise ToolError(f"Agent {self._name!r} failed: {shorten(why, 500)}")
        if result.structured_output is not None:
            return Answer(result.structured_output, result)
        return Answer(result.result or "", result)


def _usage(used: dict[str, Any], requests: int) -> Usage:
    read = used.get("cache_read_input_tokens") or 0
    written = used.get("cache_creation_input_tokens") or 0
    return Usage(
        requests=requests,
        input_tokens=(used.get("input_tokens") or 0) + read + written,
        output_tokens=used.get("output_tokens") or 0,
        cached_input_tokens=read,
    )
