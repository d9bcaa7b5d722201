"""Use the model of the client in a served tool (sampling)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from agents_tools.content.outputs import as_tool_result
from agents_tools.errors import ToolError, UserTypeError, UserValueError
from agents_tools.mcp._coerce import an_object, objects, text_or_none
from agents_tools.mcp.server.content import content_blocks
from agents_tools.mcp.server.handlers import AnyTool, as_tools
from agents_tools.mcp.server.served_calls import current_calls, failure_text
from agents_tools.mcp.server.served_client import request_of_tool
from agents_tools.wire.mcp import to_mcp

__all__ = ["SampledMessage", "SamplingTool", "capabilities_for", "sample"]

SamplingTool: TypeAlias = "AnyTool | Mapping[str, Any]"
"""A tool that `sample` calls itself, or a definition with `name` and `inputSchema`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMessage:
    """The answer of the model of a client.

    Attributes:
        text: The text of the answer; several blocks are joined.
        content: The blocks of the answer in the form of the protocol. Calls of tools that were
            passed as definitions have the type `tool_use`.
        model: The name of the model.
        stop_reason: Why the model stopped: `endTurn`, `maxTokens`, `stopSequence`, `toolUse` or
            another value.
        messages: The whole conversation with this answer, for another call of `sample`.
    """

    text: str
    content: Sequence[Mapping[str, Any]] = field(default_factory=tuple[Mapping[str, Any], ...])
    model: str | None = None
    stop_reason: str | None = None
    messages: Sequence[Mapping[str, Any]] = field(default_factory=tuple[Mapping[str, Any], ...])


async def sample(
    messages: str | Sequence[str | Mapping[str, Any]],
    *,
    system: str | None = None,
    max_tokens: int = 1_024,
    temperature: float | None = None,
    stop: Sequence[str] = (),
    models: Sequence[str] = (),
    include_context: Literal["none", "thisServer", "allServers"] | None = None,
    tools: Sequence[SamplingTool] = (),
    tool_choice: Literal["auto", "required", "none"] | None = None,
    max_rounds: int = 10,
    key: str | None = None,
) -> SampledMessage:
    """Ask the model of the client that calls a served tool, and wait for its answer.

    It sends `sampling/createMessage`. The client decides which model answers, and can ask its user
    first. Protocol version 2026-07-28 deprecates sampling; clients can still support it.

    With `tools`, the model can call tools, from protocol version 2025-11-25 on. They run here as
    part of the running call, those of one answer concurrently. Their results are sent to the model,
    until it answers without calls. If the model calls a tool that was passed as a definition, no
    call runs, and the answer contains the calls.

    Args:
        messages: The text of the user, or several messages: texts of the user, or objects with
            `role` and `content` in the form of the protocol.
        system: The system prompt.
        max_tokens: The maximum number of tokens of the answer.
        temperature: The temperature; that of the client by default.
        stop: Texts that end the answer.
        models: Names of models, or parts of names, in the order of preference.
        include_context: Which context of MCP servers the client adds.
        tools: The tools that the model can call: function tools, or definitions as of `to_mcp`.
        tool_choice: Whether the model decides about calls (`auto`, the default), has to call a tool
            in its first answer (`required`), or cannot call any (`none`).
        max_rounds: How often calls run and their results are sent. The model then has to answer
            without calls.
        key: A name for the request that is unique in the call, as for `ToolContext.ask`.

    Raises:
        ToolDeniedError: The client does not support sampling (for tools: `sampling.tools`), or has
            refused the request.
        ToolError: The model still calls tools after `max_rounds`.
        UserError: No call of an MCP client is running, or an argument is not valid.
    """
    offered = _OfferedTools(tools, tool_choice, max_rounds)
    conversation = _messages_of(messages)
    params: dict[str, Any] = {"maxTokens": max_tokens}
    optional = {
        "systemPrompt": system,
        "temperature": temperature,
        "stopSequences": list(stop) or None,
        "modelPreferences": {"hints": [{"name": name} for name in models]} if models else None,
        "includeContext": include_context,
    }
    params |= {name: value for name, value in optional.items() if value is not None}
    for number in range(max_rounds + 1):
        request = {"messages": conversation, **params, **offered.params(number)}
        result = await request_of_tool(
            "sample",
            "sampling/createMessage",
            request,
            needs=capabilities_for(request),
            failure="The client did not ask its model",
            key=key,
        )
        answer = _read_message(result)
        conversation = [*conversation, {"role": "assistant", "content": list(answer.content)}]
        calls = [block for block in answer.content if block.get("type") == "tool_use"]
        if not calls or not offered.can_run(calls):
            return replace(answer, messages=tuple(conversation))
        if number < max_rounds:
            conversation.append({"role": "user", "content": await offered.run(calls)})
    raise ToolError(
        f"The model of the client still calls tools after {max_rounds} rounds of calls. Raise "
        "max_rounds=, or offer fewer tools."
    )


def capabilities_for(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the capabilities that a client needs for the params of a request."""
    return {"sampling": {"tools": {}} if "tools" in params or "toolChoice" in params else {}}


class _OfferedTools:
    """The tools that the model of a client can call.

    Args:
        tools: The tools and definitions.
        choice: Whether the model has to call a tool.
        max_rounds: How often calls can run.

    Raises:
        UserError: An argument is not valid.
    """

    def __init__(self, tools: Sequence[SamplingTool], choice: str | None, max_rounds: int) -> None:
        if choice not in {None, "auto", "required", "none"}:
            raise UserValueError(
                f"sample(tool_choice=...) expects 'auto', 'required' or 'none', got {choice!r:.60}."
            )
        if type(max_rounds) is not int or max_rounds < 1:
            raise UserValueError(
                f"sample(max_rounds=...) expects a positive integer, got {max_rounds!r:.60}."
            )
        definitions = [dict(one) for one in tools if isinstance(one, Mapping)]
        own = as_tools([one for one in tools if not isinstance(one, Mapping)])
        own = [tool for tool in own if tool.is_enabled is not False]
        self._own = {tool.name: tool for tool in own}
        self._definitions = [*map(_definition_of, own), *definitions]
        self._choice = choice
        self._max_rounds = max_rounds
        names = [text_or_none(one.get("name")) for one in self._definitions]
        if None in names or any("inputSchema" not in one for one in definitions):
            raise UserTypeError(
                "sample(tools=...) expects function tools, or definitions with name and "
                "inputSchema, such as those of to_mcp(tool)."
            )
        if double := next((name for name in names if names.count(name) > 1), None):
            raise UserValueError(f"sample(tools=...) has two tools with the name {double!r}.")
        if choice is not None and not names:
            raise UserValueError("sample(tool_choice=...) expects tools=, got none.")

    def params(self, number: int) -> dict[str, Any]:
        """Return the params for the tools in one of the requests, which are counted from 0."""
        if not self._definitions:
            return {}
        choice = self._choice
        if number and choice == "required":  # otherwise the model could never answer
            choice = None
        if number == self._max_rounds:
            choice = "none"
        return {
            "tools": self._definitions,
            **({} if choice is None else {"toolChoice": {"mode": choice}}),
        }

    def can_run(self, calls: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether all calls run here: none of them is a call of a definition."""
        listed = {one["name"] for one in self._definitions}
        return bool(self._own) and not any(
            call.get("name") in listed and call.get("name") not in self._own for call in calls
        )

    async def run(self, calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Run calls concurrently, and return their results in the form of the protocol."""
        return await asyncio.gather(*map(self._run_one, calls))

    async def _run_one(self, call: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "tool_result", "toolUseId": call.get("id")}
        tool = self._own.get(str(call.get("name")))
        if tool is None:
            known = ", ".join(self._own)
            text = f"Unknown tool: {call.get('name')!r:.100}. Expected one of: {known}."
            return {**result, "content": [_text_block(text)], "isError": True}
        outcome = await tool.call(None, json.dumps(an_object(call.get("input"))))
        if outcome.error is not None:
            calls = current_calls.get()
            text = (
                failure_text(tool.name, outcome.error)
                if calls is None
                else calls.error_text(tool, outcome, outcome.error)
            )
            return {**result, "content": [_text_block(text)], "isError": True}
        returned = as_tool_result(outcome.value)
        is_error = returned is not None and returned.is_error
        content = content_blocks(outcome.output)
        return {**result, "content": content, **({"isError": True} if is_error else {})}


def _definition_of(tool: AnyTool) -> dict[str, Any]:
    """Return the definition of a tool; results have no structured form here."""
    return {name: value for name, value in to_mcp(tool).items() if name != "outputSchema"}


def _messages_of(messages: Any) -> list[dict[str, Any]]:
    """Return messages in the form of the protocol.

    Raises:
        UserTypeError: A message is neither text nor an object.
    """
    items: Any = [messages] if isinstance(messages, (str, Mapping)) else messages
    if not isinstance(items, Sequence):
        raise _type_error(items)
    return [_message_of(item) for item in cast("Sequence[object]", items)]


def _message_of(message: object) -> dict[str, Any]:
    if isinstance(message, Mapping):
        fields = an_object(cast("object", message))
        content = fields.get("content")
        return {**fields, "content": _text_block(content)} if isinstance(content, str) else fields
    if isinstance(message, str):
        return {"role": "user", "content": _text_block(message)}
    raise _type_error(message)


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _type_error(value: object) -> UserTypeError:
    return UserTypeError(
        "sample(messages=...) expects text, or a list of texts and of objects with role and "
        f"content, got {type(value).__name__}."
    )


def _read_message(result: dict[str, Any]) -> SampledMessage:
    content = result.get("content")
    blocks = objects(cast("object", content)) if isinstance(content, list) else [an_object(content)]
    texts = [text_or_none(block.get("text")) for block in blocks if block.get("type") == "text"]
    return SampledMessage(
        text="\n".join(text for text in texts if text is not None),
        content=tuple(blocks),
        model=text_or_none(result.get("model")),
        stop_reason=text_or_none(result.get("stopReason")),
    )
