"""What the Messages API answers, piece by piece and as a whole."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from anthropic.types import Message

from agents_tools.items import (
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
)
from agents_tools.model import (
    ModelResponse,
    call_delta,
    call_started,
    message_started,
    reasoning_delta,
    refusal_delta,
    text_delta,
)
from agents_tools.models._anthropic_errors import Asked, cut_off
from agents_tools.models._anthropic_request import CALL_FIELDS, THOUGHTS, call_block
from agents_tools.models._anthropic_values import PROVIDER, an_object, json_object
from agents_tools.models._common import (
    count,
    text,
)
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.events import Emit
    from agents_tools.items import Item
    from agents_tools.model import FinishReason, ModelRequest

__all__ = ["StreamedAnswer"]


class _Block:
    """A block of an answer, as far as it has come."""

    __slots__ = ("call_id", "citations", "handed_over", "kind", "pieces", "raw", "signature")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.kind = text(raw.get("type"))
        self.call_id = text(raw.get("id"))
        self.pieces: list[str] = []
        self.signature = text(raw.get("signature"))
        self.citations: list[Any] = list(raw.get("citations") or ())
        self.handed_over = False

    @property
    def words(self) -> str:
        return "".join(self.pieces)

    def call(self) -> ToolCallItem:
        """Give the item of a call."""
        given = self.raw.get("input")
        arguments = self.words or (json.dumps(given, ensure_ascii=False) if given else "{}")
        kept = {name: self.raw[name] for name in CALL_FIELDS if self.raw.get(name)}
        if kept.get("caller") == {"type": "direct"}:
            del kept["caller"]
        return ToolCallItem(
            call_id=self.call_id,
            name=text(self.raw.get("name")),
            arguments=arguments,
            provider_data={PROVIDER: kept} if kept else None,
        )

    def whole(self) -> dict[str, Any]:
        """Give the block as the API takes it back."""
        match self.kind:
            case "text":
                cited = {"citations": self.citations} if self.citations else {}
                return {"type": "text", "text": self.words, **cited}
            case "thinking":
                return {"type": "thinking", "thinking": self.words, "signature": self.signature}
            case "tool_use":
                return call_block(self.call(), self.call_id)
            case _ if "input" in self.raw:
                return {**self.raw, "input": json_object(self.words) or self.raw["input"] or {}}
            case _:
                return self.raw


class StreamedAnswer:
    """Puts an answer together from the events of its streams; a paused one has several."""

    def __init__(self, request: ModelRequest, emit: Emit, asked: Asked) -> None:
        self.whole = False
        self._emit = emit
        self._on_call = request.on_call
        self._asked = asked
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._facts: dict[str, Any] = {}
        self._figures: dict[str, Any] = {}
        self._stop: dict[str, Any] = {}
        self._usage = Usage()

    @property
    def paused(self) -> bool:
        """Whether the model wants to go on in another request."""
        return self._stop.get("stop_reason") == "pause_turn"

    def begin(self) -> None:
        """Begin with the next stream."""
        self.whole = False
        self._open, self._figures, self._stop = {}, {}, {}

    def said_so_far(self) -> list[dict[str, Any]]:
        """Give the blocks as the API takes them back."""
        whole = [block.whole() for block in self._blocks]
        return [one for one in whole if one.get("type") != "text" or one["text"].strip()]

    def take(self, event: Any) -> None:
        """Take the next event."""
        told = an_object(event)
        match told.get("type"):
            case "message_start":
                self._facts = an_object(told.get("message"))
                self._count(self._facts.get("usage"))
            case "content_block_start":
                self._start(told.get("index"), an_object(told.get("content_block")))
            case "content_block_delta":
                self._go_on(self._block(told.get("index")), an_object(told.get("delta")))
            case "content_block_stop":
                self._end(self._block(told.get("index")))
            case "message_delta":
                self._count(told.get("usage"))
                self._close(an_object(told.get("delta")))
            case _:
                pass  # `message_stop` says nothing new; of others nothing is known

    def _count(self, usage: object) -> None:
        told = {name: one for name, one in an_object(usage).items() if one is not None}
        self._figures = {**self._figures, **told}

    def _start(self, index: object, raw: dict[str, Any]) -> None:
        follows = bool(self._blocks) and self._blocks[-1].kind == "text"
        for block in self._open.values():
            self._hand_over(block)
        block = _Block(raw)
        self._blocks.append(block)
        if isinstance(index, int):
            self._open[index] = block
        match block.kind:
            case "text":
                if not follows:
                    self._emit(message_started())
                self._say(block, text(raw.get("text")))
            case "thinking":
                self._think(block, text(raw.get("thinking")))
            case "tool_use":
                taken = {one.call_id for one in self._blocks[:-1]}
                if not block.call_id or block.call_id in taken:
                    block.call_id = f"call_{uuid.uuid4().hex[:24]}"
                self._emit(call_started(block.call_id, text(raw.get("name"))))
                if raw.get("input"):  # in one piece; otherwise it follows
                    self._argue(block, json.dumps(raw["input"], ensure_ascii=False))
            case _:
                pass

    def _block(self, index: object) -> _Block:
        block = self._open.get(index) if isinstance(index, int) else None
        if block is None:
            raise cut_off(self._asked, f"block {index} went on before it began")
        return block

    def _go_on(self, block: _Block, delta: Mapping[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self._say(block, text(delta.get("text")))
            case "thinking_delta":
                self._think(block, text(delta.get("thinking")))
            case "signature_delta":
                block.signature += text(delta.get("signature"))
            case "citations_delta":
                block.citations.append(delta.get("citation"))
            case "input_json_delta":
                self._argue(block, text(delta.get("partial_json")))
            case _:
                pass

    def _say(self, block: _Block, words: str) -> None:
        if words:
            block.pieces.append(words)
            self._emit(text_delta(words))

    def _think(self, block: _Block, words: str) -> None:
        if words:
            block.pieces.append(words)
            self._emit(reasoning_delta(words))

    def _argue(self, block: _Block, words: str) -> None:
        if not words:
            return
        if block.handed_over and words.strip():
            raise cut_off(self._asked, f"call {block.call_id} went on after its end")
        block.pieces.append(words)
        if block.kind == "tool_use":
            self._emit(call_delta(block.call_id, words))

    def _end(self, block: _Block) -> None:
        # A call that has no arguments so far may be one that is cut off: it waits for what follows.
        if block.pieces:
            self._hand_over(block)

    def _close(self, delta: dict[str, Any]) -> None:
        if not delta.get("stop_reason"):
            return
        self._stop = delta
        self.whole = True
        self._add_usage()
        if delta["stop_reason"] not in _NOT_WHOLE:
            for block in self._blocks:
                self._hand_over(block)

    def _hand_over(self, block: _Block) -> None:
        if self._on_call is None or block.kind != "tool_use" or block.handed_over:
            return
        item = block.call()
        if json_object(item.arguments) is not None:
            block.handed_over = True
            self._on_call(item)

    def _add_usage(self) -> None:
        told = self._figures
        cached = count(told.get("cache_read_input_tokens"))
        written = count(told.get("cache_creation_input_tokens"))
        thought = an_object(told.get("output_tokens_details")).get("thinking_tokens")
        self._usage.add(
            Usage(
                requests=1,
                input_tokens=count(told.get("input_tokens")) + cached + written,
                output_tokens=count(told.get("output_tokens")),
                cached_input_tokens=cached,
                reasoning_tokens=count(thought),
            )
        )

    def response(self) -> ModelResponse:
        """Give the answer."""
        stopped = text(self._stop.get("stop_reason"))
        items = self._refused() if stopped == "refusal" else self._items()
        return ModelResponse(
            items=items,
            usage=self._usage,
            finish_reason=_finish_reason(stopped, items),
            response_id=text(self._facts.get("id")) or None,
            model=text(self._facts.get("model")) or None,
            raw=self._raw(),
        )

    def _items(self) -> list[Item]:
        items: list[Item] = []
        texts: list[_Block] = []
        for block in [*self._blocks, None]:
            if block is not None and block.kind == "text":
                texts.append(block)
                continue
            if any(one.pieces for one in texts):
                items.append(_message(texts))
            texts = []
            if block is not None:
                items.append(_item(block))
        return items

    def _refused(self) -> list[Item]:
        """Give a refusal: what stands before it is not meant to be used."""
        words = "".join(block.words for block in self._blocks if block.kind == "text")
        why = text(an_object(self._stop.get("stop_details")).get("explanation"))
        if why or not words.strip():
            words = why or "The model refused to answer."
            self._emit(refusal_delta(words))
        thoughts = [_item(block) for block in self._blocks if block.kind in THOUGHTS]
        return [*thoughts, MessageOutputItem(refusal=words)]

    def _raw(self) -> Message:
        content = [block.whole() for block in self._blocks]
        told = {**self._facts, **self._stop, "content": content, "usage": self._figures}
        return Message.construct(None, **told)


def _message(blocks: Sequence[_Block]) -> MessageOutputItem:
    """Make one message of text blocks that follow each other: cited text comes in many."""
    own = None
    if any(block.citations for block in blocks):
        own = {PROVIDER: {"blocks": [block.whole() for block in blocks if block.words.strip()]}}
    return MessageOutputItem(text="".join(block.words for block in blocks), provider_data=own)


def _item(block: _Block) -> Item:
    match block.kind:
        case "thinking":
            own = {PROVIDER: {"signature": block.signature}} if block.signature else None
            return ReasoningItem(text=block.words, provider_data=own)
        case "redacted_thinking":
            return ReasoningItem(
                provider_data={PROVIDER: {"redacted": text(block.raw.get("data"))}}
            )
        case "tool_use":
            return block.call()
        case _:
            whole = block.whole()
            given = whole.get("input")
            return ToolCallItem(
                call_id=block.call_id or f"call_{uuid.uuid4().hex[:24]}",
                name=text(whole.get("name")) or block.kind,
                arguments=json.dumps(given, ensure_ascii=False) if given else "{}",
                kind="hosted",
                provider_data={PROVIDER: {"block": whole}},
            )


_NOT_WHOLE = {"max_tokens", "model_context_window_exceeded", "refusal"}


def _finish_reason(stopped: str, items: Sequence[Item]) -> FinishReason:
    if stopped == "refusal":
        return "refusal"
    if stopped in _NOT_WHOLE:
        return "length"
    called = any(isinstance(item, ToolCallItem) and item.needs_answer for item in items)
    return "tool_calls" if called else "stop"
