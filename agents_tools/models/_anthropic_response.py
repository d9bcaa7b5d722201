"""Read streamed responses of the Messages API."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from anthropic.types import Message

from agents_tools.agents.model import (
    ModelResponse,
    call_delta,
    call_started,
    hosted_call_started,
    message_started,
    reasoning_delta,
    refusal_delta,
    text_delta,
)
from agents_tools.content.items import (
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
)
from agents_tools.content.usage import Usage
from agents_tools.models._anthropic_errors import AnthropicRequest, interrupted_error
from agents_tools.models._anthropic_request import CALL_FIELDS, THOUGHTS, call_block
from agents_tools.models._anthropic_values import PROVIDER, an_object, json_object
from agents_tools.models._http import (
    count,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.agents.model import FinishReason, ModelRequest
    from agents_tools.content.items import Item
    from agents_tools.events.base import Emit

__all__ = ["StreamedMessage"]


class _ContentBlock:
    """A content block that is not complete yet."""

    __slots__ = ("call_id", "citations", "is_reported", "kind", "pieces", "raw", "signature")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.kind = text(raw.get("type"))
        self.call_id = text(raw.get("id"))
        self.pieces: list[str] = []
        self.signature = text(raw.get("signature"))
        self.citations: list[Any] = list(raw.get("citations") or ())
        self.is_reported = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def call_item(self) -> ToolCallItem:
        """Return the block as a call item."""
        arguments_object = self.raw.get("input")
        arguments = self.text or (
            json.dumps(arguments_object, ensure_ascii=False) if arguments_object else "{}"
        )
        extra = {name: self.raw[name] for name in CALL_FIELDS if self.raw.get(name)}
        if extra.get("caller") == {"type": "direct"}:
            del extra["caller"]
        return ToolCallItem(
            call_id=self.call_id,
            name=text(self.raw.get("name")),
            arguments=arguments,
            provider_data={PROVIDER: extra} if extra else None,
        )

    def to_request(self) -> dict[str, Any]:
        """Return the block in the form that the API accepts in a request."""
        match self.kind:
            case "text":
                citations = {"citations": self.citations} if self.citations else {}
                return {"type": "text", "text": self.text, **citations}
            case "thinking":
                return {"type": "thinking", "thinking": self.text, "signature": self.signature}
            case "tool_use":
                return call_block(self.call_item(), self.call_id)
            case _ if "input" in self.raw:
                return {**self.raw, "input": json_object(self.text) or self.raw["input"] or {}}
            case _:
                return self.raw


class StreamedMessage:
    """Builds a response from the events of its stream; a paused response has several streams."""

    def __init__(self, request: ModelRequest, emit: Emit, target: AnthropicRequest) -> None:
        self.is_complete = False
        self._emit = emit
        self._on_call = request.on_call
        self._target = target
        self._blocks: list[_ContentBlock] = []
        self._open: dict[int, _ContentBlock] = {}
        self._message_fields: dict[str, Any] = {}
        self._usage_fields: dict[str, Any] = {}
        self._stop_fields: dict[str, Any] = {}
        self._usage = Usage()

    @property
    def is_paused(self) -> bool:
        """Whether the model continues in another request."""
        return self._stop_fields.get("stop_reason") == "pause_turn"

    @property
    def container(self) -> dict[str, Any] | None:
        """The id of the sandbox that ran code, and when it expires; `None` if there is none."""
        fields = self._stop_fields.get("container") or self._message_fields.get("container")
        container = an_object(fields)
        known = {name: container[name] for name in ("id", "expires_at") if container.get(name)}
        return known if "id" in known else None

    def start_stream(self) -> None:
        """Start reading the next stream."""
        self.is_complete = False
        self._open, self._usage_fields, self._stop_fields = {}, {}, {}

    def partial_blocks(self) -> list[dict[str, Any]]:
        """Return the non-empty blocks in the form that the API accepts in a request."""
        blocks = [block.to_request() for block in self._blocks]
        return [one for one in blocks if one.get("type") != "text" or one["text"].strip()]

    def process(self, event: Any) -> None:
        """Process the next event."""
        fields = an_object(event)
        match fields.get("type"):
            case "message_start":
                self._message_fields = an_object(fields.get("message"))
                self._count(self._message_fields.get("usage"))
            case "content_block_start":
                self._start(fields.get("index"), an_object(fields.get("content_block")))
            case "content_block_delta":
                self._apply_delta(self._block(fields.get("index")), an_object(fields.get("delta")))
            case "content_block_stop":
                # A call that is cut off has this event too, so it is reported when the next block
                # starts, or when the answer ends and is complete.
                self._block(fields.get("index"))
            case "message_delta":
                self._count(fields.get("usage"))
                self._finish_stream(an_object(fields.get("delta")))
            case _:
                pass  # `message_stop` has no content; other events are unknown

    def process_body(self, body: dict[str, Any]) -> None:
        """Process the JSON body of a server that does not stream."""
        self.process({"type": "message_start", "message": body})
        blocks = body.get("content")
        for index, block in enumerate(
            cast("list[Any]", blocks) if isinstance(blocks, list) else ()
        ):
            self._start(index, an_object(block))
        self._finish_stream(body)

    def _count(self, usage: object) -> None:
        fields = {name: one for name, one in an_object(usage).items() if one is not None}
        self._usage_fields = {**self._usage_fields, **fields}

    def _start(self, index: object, raw: dict[str, Any]) -> None:
        continues_message = bool(self._blocks) and self._blocks[-1].kind == "text"
        for block in self._open.values():
            self._report_call(block)
        block = _ContentBlock(raw)
        self._blocks.append(block)
        if isinstance(index, int):
            self._open[index] = block
        match block.kind:
            case "text":
                if not continues_message:
                    self._emit(message_started())
                self._add_text(block, text(raw.get("text")))
            case "thinking":
                self._add_thinking(block, text(raw.get("thinking")))
            case "server_tool_use" | "mcp_tool_use":
                self._emit(hosted_call_started(block.call_id, text(raw.get("name"))))
            case "tool_use":
                used_ids = {one.call_id for one in self._blocks[:-1]}
                if not block.call_id or block.call_id in used_ids:
                    block.call_id = f"call_{uuid.uuid4().hex[:24]}"
                self._emit(call_started(block.call_id, text(raw.get("name"))))
                if raw.get("input"):  # some servers send the complete input here
                    self._add_arguments(block, json.dumps(raw["input"], ensure_ascii=False))
            case _:
                pass

    def _block(self, index: object) -> _ContentBlock:
        block = self._open.get(index) if isinstance(index, int) else None
        if block is None:
            raise interrupted_error(self._target, f"block {index} continued before its start")
        return block

    def _apply_delta(self, block: _ContentBlock, delta: Mapping[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self._add_text(block, text(delta.get("text")))
            case "thinking_delta":
                self._add_thinking(block, text(delta.get("thinking")))
            case "signature_delta":
                block.signature += text(delta.get("signature"))
            case "citations_delta":
                block.citations.append(delta.get("citation"))
            case "input_json_delta":
                self._add_arguments(block, text(delta.get("partial_json")))
            case "compaction_delta":
                fields = {name: one for name, one in delta.items() if name != "type"}
                block.raw = {**block.raw, **fields}
            case _:
                pass

    def _add_text(self, block: _ContentBlock, delta: str) -> None:
        if delta:
            block.pieces.append(delta)
            self._emit(text_delta(delta))

    def _add_thinking(self, block: _ContentBlock, delta: str) -> None:
        if delta:
            block.pieces.append(delta)
            self._emit(reasoning_delta(delta))

    def _add_arguments(self, block: _ContentBlock, delta: str) -> None:
        if not delta:
            return
        if block.is_reported and delta.strip():
            raise interrupted_error(self._target, f"call {block.call_id} continued after its end")
        block.pieces.append(delta)
        if block.kind == "tool_use":
            self._emit(call_delta(block.call_id, delta))

    def _finish_stream(self, delta: dict[str, Any]) -> None:
        if not delta.get("stop_reason"):
            return
        self._stop_fields = delta
        self.is_complete = True
        self._add_usage()
        if delta["stop_reason"] not in _INCOMPLETE:
            for block in self._blocks:
                self._report_call(block)

    def _report_call(self, block: _ContentBlock) -> None:
        if self._on_call is None or block.kind != "tool_use" or block.is_reported:
            return
        item = block.call_item()
        if json_object(item.arguments) is not None:
            block.is_reported = True
            self._on_call(item)

    def _add_usage(self) -> None:
        fields = self._usage_fields
        cache_reads = count(fields.get("cache_read_input_tokens"))
        cache_writes = count(fields.get("cache_creation_input_tokens"))
        by_lifetime = an_object(fields.get("cache_creation"))
        thinking = an_object(fields.get("output_tokens_details")).get("thinking_tokens")
        self._usage.add(
            Usage(
                requests=1,
                input_tokens=count(fields.get("input_tokens")) + cache_reads + cache_writes,
                output_tokens=count(fields.get("output_tokens")),
                cached_input_tokens=cache_reads,
                cache_write_tokens=cache_writes,
                cache_write_1h_tokens=count(by_lifetime.get("ephemeral_1h_input_tokens")),
                reasoning_tokens=count(thinking),
            )
        )

    def response(self) -> ModelResponse:
        """Return the complete response."""
        stop_reason = text(self._stop_fields.get("stop_reason"))
        items = self._refusal_items() if stop_reason == "refusal" else self._items()
        return ModelResponse(
            items=items,
            usage=self._usage,
            finish_reason=_finish_reason(stop_reason, items),
            response_id=text(self._message_fields.get("id")) or None,
            model=text(self._message_fields.get("model")) or None,
            raw=self._raw(),
        )

    def _items(self) -> list[Item]:
        items: list[Item] = []
        texts: list[_ContentBlock] = []
        for block in [*self._blocks, None]:
            if block is not None and block.kind == "text":
                texts.append(block)
                continue
            if any(one.pieces for one in texts):
                items.append(_message(texts))
            texts = []
            if block is not None:
                self._add_item(items, block)
        return items

    def _add_item(self, items: list[Item], block: _ContentBlock) -> None:
        last = items[-1] if items else None
        is_result = "tool_use_id" in block.raw
        if is_result and isinstance(last, ToolCallItem) and last.kind == "hosted":
            # Results are stored with the hosted call before them, in the order of the response.
            stored = an_object((last.provider_data or {}).get(PROVIDER))
            blocks = [*stored["blocks"], block.to_request()]
            items[-1] = replace(last, provider_data={PROVIDER: {**stored, "blocks": blocks}})
            return
        items.append(_item(block, self.container))

    def _refusal_items(self) -> list[Item]:
        """Return a refusal, without the partial output before it."""
        message = "".join(block.text for block in self._blocks if block.kind == "text")
        why = text(an_object(self._stop_fields.get("stop_details")).get("explanation"))
        if why or not message.strip():
            message = why or "The model refused to answer."
            self._emit(refusal_delta(message))
        reasoning = [_item(block, None) for block in self._blocks if block.kind in THOUGHTS]
        return [*reasoning, MessageOutputItem(refusal=message)]

    def _raw(self) -> Message:
        content = [block.to_request() for block in self._blocks]
        fields = {
            **self._message_fields,
            **self._stop_fields,
            "content": content,
            "usage": self._usage_fields,
        }
        return Message.construct(None, **fields)


def _message(blocks: Sequence[_ContentBlock]) -> MessageOutputItem:
    """Join consecutive text blocks into one message: text with citations arrives in many blocks."""
    stored = None
    if any(block.citations for block in blocks):
        stored = {
            PROVIDER: {"blocks": [block.to_request() for block in blocks if block.text.strip()]}
        }
    return MessageOutputItem(text="".join(block.text for block in blocks), provider_data=stored)


def _item(block: _ContentBlock, container: dict[str, Any] | None) -> Item:
    match block.kind:
        case "thinking":
            stored = {PROVIDER: {"signature": block.signature}} if block.signature else None
            return ReasoningItem(text=block.text, provider_data=stored)
        case "redacted_thinking":
            return ReasoningItem(
                provider_data={PROVIDER: {"redacted": text(block.raw.get("data"))}}
            )
        case "tool_use":
            return block.call_item()
        case _:
            fields = block.to_request()
            arguments_object = fields.get("input")
            hosted: dict[str, Any] = {"blocks": [fields]}
            if container is not None:
                hosted["container"] = container
            return ToolCallItem(
                call_id=block.call_id or f"call_{uuid.uuid4().hex[:24]}",
                name=text(fields.get("name")) or block.kind,
                arguments=json.dumps(arguments_object, ensure_ascii=False)
                if arguments_object
                else "{}",
                kind="hosted",
                provider_data={PROVIDER: hosted},
            )


_INCOMPLETE = {"max_tokens", "model_context_window_exceeded", "refusal"}


def _finish_reason(stop_reason: str, items: Sequence[Item]) -> FinishReason:
    if stop_reason == "refusal":
        return "refusal"
    if stop_reason in _INCOMPLETE:
        return "length"
    has_calls = any(isinstance(item, ToolCallItem) and item.needs_answer for item in items)
    return "tool_calls" if has_calls else "stop"
