"""Build the request bodies of the Messages API."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import defaultdict, deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import (
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.errors import (
    UserError,
    UserValueError,
)
from agents_tools.models._anthropic_values import PROVIDER, an_object, json_object
from agents_tools.models._http import (
    RefusedReasoning,
    ToolDefinitions,
    base64_text,
    merge_extra,
)
from agents_tools.schema.strict import ANTHROPIC_STRICT, to_strict
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.agents.model import ModelRequest, ModelSettings, OutputFormat
    from agents_tools.content.items import Item

__all__ = [
    "CALL_FIELDS",
    "DEFAULT_MAX_TOKENS",
    "THOUGHTS",
    "block_of",
    "call_block",
    "request_body",
    "schema_of",
    "signatures",
    "without_thoughts",
]

DEFAULT_MAX_TOKENS = 16_384
"""The default of `ModelSettings(max_tokens=...)`, which the API requires. It includes thinking."""


def request_body(
    request: ModelRequest, definitions: ToolDefinitions, schema: Any
) -> dict[str, Any]:
    """Return a request body; `schema` is the output schema in the API's dialect, or `None`."""
    settings, output_format = request.settings, request.output
    messages = _messages(request.input)
    if not messages:
        raise UserValueError(
            "The request has no messages: the Messages API requires at least one non-empty message "
            "in addition to the system prompt."
        )
    limit = settings.max_tokens
    body: dict[str, Any] = {
        "max_tokens": DEFAULT_MAX_TOKENS if limit is None else limit,
        "messages": messages,
    }
    system = [request.instructions, *_system_texts(request.input)]
    if output_format is not None and schema is None:
        schema_text = json.dumps(dict(output_format.schema), ensure_ascii=False)
        system.append(f"Answer only with JSON that matches this JSON Schema:\n{schema_text}")
    if any(map(str.strip, system)):
        body["system"] = "\n\n".join(text for text in system if text.strip())
    if definitions.wire:
        body["tools"] = definitions.wire
        choice = _tool_choice(settings, definitions)
        if choice is not None:
            body["tool_choice"] = choice
    else:
        _tool_choice(settings, definitions)
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.top_p is not None:
        body["top_p"] = settings.top_p
    if settings.stop:
        body["stop_sequences"] = list(settings.stop)
    output: dict[str, Any] = {}
    if settings.reasoning_effort is not None:
        output["effort"] = settings.reasoning_effort
    if schema is not None:
        output["format"] = {"type": "json_schema", "schema": schema}
    if output:
        body["output_config"] = output
    container = _container(request.input, definitions)
    if container is not None:
        body["container"] = container
    if settings.prompt_cache is not None:
        _add_cache_breakpoints(body, settings)
    return merge_extra(body, settings.extra_body)


def _container(items: Sequence[Item], definitions: ToolDefinitions) -> dict[str, Any] | None:
    """Return the sandbox of the last call that ran in one, as long as it exists.

    It keeps its files between requests. Code that waits for a function call requires it.
    """
    if not any(str(one.get("type")).startswith(_SANDBOXED) for one in definitions.wire):
        return None
    for item in reversed(items):
        if not isinstance(item, ToolCallItem):
            continue
        container = an_object(_stored(item).get("container"))
        if container:
            return {"id": container["id"]} if _is_current(container.get("expires_at")) else None
    return None


_SANDBOXED = ("code_execution_", "web_search_", "web_fetch_")
"""The types of hosted tools that can run code: newer versions of the web tools filter with it."""


def _is_current(expires_at: object) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        return datetime.fromisoformat(cast("str", expires_at)) > datetime.now(UTC)
    return False


def _add_cache_breakpoints(body: dict[str, Any], settings: ModelSettings) -> None:
    """Mark where the beginning of a request is cached: in at most four places, as the API allows.

    The places are the end of the tools, of the system prompt, of the last message of the user, and
    of the one before it, where the cache of the last request ends. The API searches only 20 blocks
    back for that end, and a turn with many calls has more.
    """
    lifetime: object = settings.prompt_cache
    if lifetime not in {"5m", "1h"}:
        raise UserValueError(
            f"ModelSettings(prompt_cache={lifetime!r:.60}) is not valid: expected '5m' or '1h'."
        )
    ttl = {} if lifetime == "5m" else {"ttl": lifetime}
    mark = {"cache_control": {"type": "ephemeral", **ttl}}
    tools: list[dict[str, Any]] = body.get("tools", [])
    marked = sum("cache_control" in tool for tool in tools)  # by the metadata of the tools
    if tools and not marked:
        body["tools"] = _marked(tools, mark)
        marked = 1
    if "system" in body:
        body["system"] = _marked([_text_block(body["system"])], mark)
        marked += 1
    if "cache_control" in (settings.extra_body or {}):
        return  # the API adds the breakpoint of the conversation by itself
    messages = [one for one in reversed(body["messages"]) if one["role"] == "user"]
    for message in messages[: min(2, max(0, _MOST_BREAKPOINTS - marked))]:
        message["content"] = _marked(message["content"], mark)


_MOST_BREAKPOINTS = 4


def _marked(blocks: list[dict[str, Any]], mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a copy of blocks with a mark on the last one; deferred tools cannot have it."""
    marked = list(blocks)
    for index in reversed(range(len(marked))):
        if not marked[index].get("defer_loading"):
            marked[index] = {**marked[index], **mark}
            break
    return marked


def schema_of(output_format: OutputFormat) -> dict[str, Any] | None:
    """Return an output schema in the API's dialect; `None` if it cannot be expressed."""
    if not output_format.strict:
        return None
    try:
        return to_strict(output_format.schema, ANTHROPIC_STRICT)[0]
    except UserError:
        return None


def _tool_choice(settings: ModelSettings, definitions: ToolDefinitions) -> dict[str, Any] | None:
    chosen, single = settings.tool_choice, settings.parallel_tool_calls is False
    if chosen == "none":
        return {"type": "none"}
    if chosen is None and not single:
        return None
    if chosen is not None and chosen not in {"auto", "required", *definitions.names}:
        known = ", ".join(definitions.names) or "none"
        raise UserValueError(
            f"ModelSettings(tool_choice={chosen!r}) is not a known tool: expected auto, required, "
            f"none, or one of the tools: {known}."
        )
    kinds = {None: "auto", "auto": "auto", "required": "any"}
    choice: dict[str, Any] = {"type": kinds.get(chosen, "tool")}
    if chosen in definitions.names and choice["type"] == "tool":
        choice["name"] = definitions.wire[definitions.names.index(chosen)]["name"]
    if single:
        choice["disable_parallel_tool_use"] = True
    return choice


def _system_texts(items: Sequence[Item]) -> list[str]:
    texts: list[str] = []
    for index, item in enumerate(items):
        if not isinstance(item, MessageInputItem) or item.role == "user":
            continue
        if isinstance(item.content, str):
            texts.append(item.content)
            continue
        for number, block in enumerate(item.content):
            if not isinstance(block, ToolOutputText):
                raise UserValueError(
                    f"input[{index}].content[{number}]: a message with the role {item.role!r} can "
                    "only contain text."
                )
            texts.append(block.text)
    return texts


_OutputItem = MessageOutputItem | ReasoningItem | ToolCallItem


def _messages(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Convert the conversation to alternating user and assistant messages."""
    outputs: defaultdict[str, deque[ToolCallOutputItem]] = defaultdict(deque)
    for item in items:
        if isinstance(item, ToolCallOutputItem):
            outputs[item.call_id].append(item)
    messages: list[dict[str, Any]] = []
    ids: set[str] = set()
    turn: list[_OutputItem] = []
    complete_ids = _complete_ids(items)
    for index, item in enumerate(items):
        match item:
            case MessageOutputItem() | ReasoningItem() | ToolCallItem():
                turn.append(item)
            case MessageInputItem(role="user"):
                _end_turn(turn, outputs, ids, messages, complete_ids)
                _add(messages, "user", _input_blocks(item, f"input[{index}].content"))
            case ToolCallOutputItem():  # added after its call, independent of its position
                _end_turn(turn, outputs, ids, messages, complete_ids)
            case MessageInputItem():
                pass  # part of the system prompt
    _end_turn(turn, outputs, ids, messages, complete_ids)
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        if last["type"] == "text":  # the API rejects trailing whitespace in a text to continue
            messages[-1]["content"][-1] = {**last, "text": last["text"].rstrip()}
    return messages


def _add(messages: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": blocks})


def _end_turn(
    turn: list[_OutputItem],
    outputs: Mapping[str, deque[ToolCallOutputItem]],
    ids: set[str],
    messages: list[dict[str, Any]],
    complete_ids: set[str],
) -> None:
    """Add the output of the model in one turn, then the outputs of its calls; empty the turn."""
    blocks: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for item in turn:
        if not isinstance(item, ToolCallItem) or not item.needs_answer:
            blocks += _output_blocks(item, complete_ids)
            continue
        call_id = _unique_id(item.call_id, ids)
        blocks.append(call_block(item, call_id))
        remaining = outputs.get(item.call_id)
        results.append(_result(remaining.popleft() if remaining else None, call_id))
    turn.clear()
    while blocks and blocks[-1]["type"] in THOUGHTS:
        blocks.pop()  # of a response that was cut off: the API rejects it at the end of a message
    _add(messages, "assistant", blocks)
    _add(messages, "user", results)


THOUGHTS = {"thinking", "redacted_thinking"}


def without_thoughts(
    messages: Sequence[dict[str, Any]], refused: RefusedReasoning
) -> list[dict[str, Any]]:
    """Return messages without the thinking that the provider refused."""
    return [
        {**one, "content": [part for part in one["content"] if _signature(part) not in refused]}
        for one in messages
    ]


def signatures(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the signatures of the thinking in messages."""
    found = (_signature(part) for one in messages for part in one["content"])
    return [signature for signature in found if signature is not None]


def _signature(part: Mapping[str, Any]) -> str | None:
    """Return the signature or the encrypted text of thinking; `None` for other parts."""
    return part.get("signature", part.get("data")) if part["type"] in THOUGHTS else None


def _stored(item: _OutputItem) -> dict[str, Any]:
    return an_object((item.provider_data or {}).get(PROVIDER))


def _hosted_blocks(item: _OutputItem) -> list[dict[str, Any]]:
    """Return the blocks of a call that Anthropic ran, with the results that follow it."""
    blocks = _stored(item).get("blocks") if isinstance(item, ToolCallItem) else None
    return [an_object(block) for block in cast("list[Any]", blocks)] if blocks else []


def _complete_ids(items: Sequence[Item]) -> set[str]:
    """Return the ids of the calls of hosted tools that the API accepts.

    Each call needs its result, and the other way round. One of the two is missing in a response
    that was cut off, and in a shortened history. Code that waits for a function call has no result
    yet.
    """
    calls: set[str] = set()
    results: set[str] = set()
    for item in items:
        if not isinstance(item, ToolCallItem):
            continue
        caller = an_object(_stored(item).get("caller")).get("tool_id")
        results.add(str(caller))
        for block in _hosted_blocks(item):
            if "tool_use_id" in block:
                results.add(str(block["tool_use_id"]))
            else:
                calls.add(str(block.get("id")))
    return calls & results


def _output_blocks(item: _OutputItem, complete_ids: set[str]) -> list[dict[str, Any]]:
    stored = _stored(item)
    match item:
        case MessageOutputItem() if isinstance(stored.get("blocks"), list):
            return [
                dict(block) for block in stored["blocks"] if an_object(block).get("type") == "text"
            ]
        case MessageOutputItem():
            content = item.text if item.refusal is None else item.refusal
            return [_text_block(content)] if content.strip() else []
        case ReasoningItem() if isinstance(stored.get("signature"), str):
            return [{"type": "thinking", "thinking": item.text, "signature": stored["signature"]}]
        case ReasoningItem() if isinstance(stored.get("redacted"), str):
            return [{"type": "redacted_thinking", "data": stored["redacted"]}]
        case ToolCallItem():
            blocks = (
                (block.get("tool_use_id", block.get("id")), block) for block in _hosted_blocks(item)
            )
            return [
                block for call_id, block in blocks if call_id is None or call_id in complete_ids
            ]
        case _:
            return []


def _unique_id(call_id: str, used: set[str]) -> str:
    """Return a unique id for a call that the API accepts."""
    number, unique = 0, call_id
    while not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", unique) or unique in used:
        unique = f"call_{hashlib.sha256(f'{call_id}/{number}'.encode()).hexdigest()[:32]}"
        number += 1
    used.add(unique)
    return unique


def call_block(item: ToolCallItem, call_id: str) -> dict[str, Any]:
    """Return a call as a block of a message; arguments that are not an object are wrapped."""
    arguments = json_object(item.arguments or "{}")
    if arguments is None:
        arguments = {"invalid_json": item.arguments}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", item.name)[:64] or "_"
    stored = an_object((item.provider_data or {}).get(PROVIDER))
    extra = {field: stored[field] for field in CALL_FIELDS if field in stored}
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments, **extra}


CALL_FIELDS = ("caller", "toolset_name")
"""Further fields of a call that the API expects back."""


def _result(item: ToolCallOutputItem | None, call_id: str) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if item is None:  # every call must be answered
        return {**result, "content": "No output was recorded.", "is_error": True}
    content: Any = item.output
    if not isinstance(content, str):
        blocks: list[dict[str, Any]] = []
        for block in content:
            # The API accepts only text in an error result.
            converted = (
                block_of(block, None) if item.status == "ok" else _text_block(_as_text(block))
            )
            if converted["type"] != "text" or converted["text"].strip():
                blocks.append(converted)
        content = blocks or ""
    if item.status != "ok":
        result["is_error"] = True
    return {**result, "content": content}


def _input_blocks(item: MessageInputItem, path: str) -> list[dict[str, Any]]:
    if isinstance(item.content, str):
        return [_text_block(item.content)] if item.content.strip() else []
    blocks = [block_of(block, f"{path}[{index}]") for index, block in enumerate(item.content)]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _text_block(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def block_of(block: ContentBlock, path: str | None) -> dict[str, Any]:
    """Convert a content block; `path` is its position in the input, `None` for tool output."""
    source = _source(block)
    if isinstance(block, ToolOutputText):
        return _text_block(block.text)
    if source is None:
        if path is not None:
            raise UserValueError(f"{path}: {_REMEDIES[block.type]}")
        return _text_block(_as_text(block))
    if isinstance(block, ToolOutputImage) or source.get("media_type") in _IMAGES:
        return {"type": "image", "source": source}
    name = getattr(block, "filename", None)
    return {"type": "document", "source": source, **({"title": name[:500]} if name else {})}


def _source(block: ContentBlock) -> dict[str, Any] | None:
    """Return the source of the data of a block; `None` if the API does not accept the data."""
    match block:
        case ToolOutputText() | ToolOutputAudio():
            return None
        case _ if block.file_id is not None:
            return {"type": "file", "file_id": block.file_id}
        case _ if block.url is not None:
            return {"type": "url", "url": block.url}
        case _:
            kind, data = block.mime_type or "", block.data or b""
    if kind in _IMAGES or (kind == "application/pdf" and block.type == "file"):
        return {"type": "base64", "media_type": kind, "data": base64_text(data)}
    if isinstance(block, ToolOutputFileContent):
        content = _decoded(data)
        if content is not None and content.strip():
            return {"type": "text", "media_type": "text/plain", "data": content}
    return None


_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


_REMEDIES = {
    "image": "Anthropic accepts images of type image/jpeg, image/png, image/gif or image/webp. "
    "Convert the image.",
    "audio": "Anthropic's models do not accept audio. Send a transcript.",
    "file": "Anthropic accepts files that are PDF documents or text. Convert the file.",
}


def _as_text(block: ContentBlock) -> str:
    """Return the text of a block, or a description of it."""
    if isinstance(block, ToolOutputText):
        return block.text
    name = getattr(block, "filename", None) or block.type
    if block.data is None:
        return f"[{name}: {shorten(block.url or block.file_id or '', 200)}]"
    content = _decoded(block.data) if isinstance(block, ToolOutputFileContent) else None
    if content is not None:
        return content
    return f"[{name}: {len(block.data):,} bytes of {block.mime_type}, not shown]"


def _decoded(data: bytes) -> str | None:
    with contextlib.suppress(UnicodeDecodeError):
        content = data.decode()
        return None if "\0" in content else content
    return None
