"""Use the model of the client in a served tool (sampling)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from agents_tools.errors import UserTypeError
from agents_tools.mcp._coerce import an_object, objects, text_or_none
from agents_tools.mcp.server.served_client import request_of_tool

__all__ = ["SampledMessage", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMessage:
    """The answer of the model of a client.

    Attributes:
        text: The text of the answer; several blocks are joined.
        content: The blocks of the answer in the form of the protocol.
        model: The name of the model.
        stop_reason: Why the model stopped: `endTurn`, `maxTokens`, `stopSequence` or another value.
    """

    text: str
    content: Sequence[Mapping[str, Any]] = field(default_factory=tuple[Mapping[str, Any], ...])
    model: str | None = None
    stop_reason: str | None = None


async def sample(
    messages: str | Sequence[str | Mapping[str, Any]],
    *,
    system: str | None = None,
    max_tokens: int = 1_024,
    temperature: float | None = None,
    stop: Sequence[str] = (),
    models: Sequence[str] = (),
    include_context: Literal["none", "thisServer", "allServers"] | None = None,
    key: str | None = None,
) -> SampledMessage:
    """Ask the model of the client that calls a served tool, and wait for its answer.

    It sends `sampling/createMessage`. The client decides which model answers, and can ask its user
    first. Protocol version 2026-07-28 deprecates sampling; clients can still support it.

    Args:
        messages: The text of the user, or several messages: texts of the user, or objects with
            `role` and `content` in the form of the protocol.
        system: The system prompt.
        max_tokens: The maximum number of tokens of the answer.
        temperature: The temperature; that of the client by default.
        stop: Texts that end the answer.
        models: Names of models, or parts of names, in the order of preference.
        include_context: Which context of MCP servers the client adds.
        key: A name for the request that is unique in the call, as for `ToolContext.ask`.

    Raises:
        ToolDeniedError: The client does not support sampling, or has refused the request.
        UserError: No call of an MCP client is running.
    """
    params: dict[str, Any] = {"messages": _messages_of(messages), "maxTokens": max_tokens}
    optional = {
        "systemPrompt": system,
        "temperature": temperature,
        "stopSequences": list(stop) or None,
        "modelPreferences": {"hints": [{"name": name} for name in models]} if models else None,
        "includeContext": include_context,
    }
    params |= {name: value for name, value in optional.items() if value is not None}
    result = await request_of_tool(
        "sample",
        "sampling/createMessage",
        params,
        needs={"sampling": {}},
        failure="The client did not ask its model",
        key=key,
    )
    return _read_message(result)


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
