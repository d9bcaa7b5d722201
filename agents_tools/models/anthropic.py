"""Models of Anthropic over its Messages API."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import re
import uuid
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import anthropic
from anthropic.types import Message

from agents_tools._secrets import mask
from agents_tools._strict import ANTHROPIC_STRICT, to_strict
from agents_tools._text import safe_text, shorten
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.items import (
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
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
from agents_tools.models._clients import client_here
from agents_tools.models._common import (
    Offer,
    Offers,
    base64_text,
    checked_url,
    count,
    followed,
    merged,
    retry_after,
    text,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anthropic import AsyncAnthropic

    from agents_tools.events import Emit
    from agents_tools.hosted import HostedTool
    from agents_tools.items import Item
    from agents_tools.model import FinishReason, ModelRequest, ModelSettings, OutputFormat

__all__ = ["DEFAULT_MAX_TOKENS", "AnthropicModel", "load"]

DEFAULT_MAX_TOKENS = 16_384
"""The most tokens of an answer where `ModelSettings(max_tokens=)` says nothing: the API insists on
a figure. Thinking counts towards it."""

_KEY = "anthropic"
"""Where an item's `provider_data` holds what only this API understands."""

_NO_KEY = "none"
"""What servers without keys are given: the client insists on one."""

_log = logging.getLogger("agents_tools")


def load(name: str, **options: Any) -> AnthropicModel:
    """Give the model of a name, such as `claude-sonnet-5`."""
    return AnthropicModel(name, **options)


class AnthropicModel:
    """A model behind the Messages API.

    Answers are at most `DEFAULT_MAX_TOKENS` long unless the settings say otherwise. Thinking and
    prompt caching are asked for in the words of the API, by `ModelSettings(extra_body=...)`:
    `{"thinking": {"type": "adaptive"}}`, `{"cache_control": {"type": "ephemeral"}}`. Messages of
    the roles system and developer all become part of the system prompt. `temperature` and `top_p`
    are sent where they are set; newer models, and the API from version 2026-10-21 on, refuse them.

    Args:
        name: The model, as Anthropic calls it.
        client: A client to use in place of one of our own; it belongs to one event loop.
        base_url: The address of the API; `ANTHROPIC_BASE_URL`, or Anthropic's own, if not given.
        api_key: The key; `ANTHROPIC_API_KEY`, or what else the official client finds, if not given.
    """

    provider: ClassVar[str] = "anthropic"

    def __init__(
        self,
        name: str,
        *,
        client: AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self.name = name
        self._given = client
        self._base_url = checked_url(base_url, "base_url=")
        self._api_key = api_key
        self._offers = Offers(self.provider, self._refuse_hosted, _SEARCH)
        self._plain_forms: set[str] = set()
        if client is None:
            return
        if not hasattr(client, "messages") or not hasattr(client, "__aenter__"):
            raise UserTypeError(
                f"client= takes an anthropic.AsyncAnthropic, not a {type(client).__name__}."
            )
        if base_url or api_key:
            raise UserValueError(
                "client= says already where the model is; leave out base_url= and api_key=."
            )

    def __repr__(self) -> str:
        return f"AnthropicModel({self.name!r})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer; see `Model.respond`."""
        offer = self._offers.of(request.tools)
        form = request.output
        schema = None if form is None or form.name in self._plain_forms else _schema(form)
        body = _body(request, offer, schema)
        client = await self._client()
        asked = _Asked(
            model=self.name,
            url=str(client.base_url),
            keys=tuple(filter(None, (getattr(client, name, None) for name in _KEYS))),
            offer=offer,
        )
        answer = _Answer(request, emit, asked)
        conversation = body["messages"]
        for _ in range(_MOST_PAUSES):
            try:
                await _ask(client, body, answer, asked, request.settings)
            except _FormRefused as refused:
                if form is None or schema is None:  # a form of the caller's own making
                    raise refused.error from refused.__cause__
                self._plain_forms.add(form.name)
                schema = None
                body = {**_body(request, offer, None), "messages": body["messages"]}
                continue
            if not answer.paused:
                return answer.response()
            # The provider stops long work of its own tools for a breath; what it has done so far
            # is sent back for it to go on.
            said = {"role": "assistant", "content": answer.said_so_far()}
            body["messages"] = [*conversation, said]
        raise ModelError(
            f"{self.name} paused its answer {_MOST_PAUSES} times without an end.", model=self.name
        )

    async def _client(self) -> AsyncAnthropic:
        if self._given is not None:
            return self._given
        url = self._base_url or checked_url(
            os.environ.get("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
        )
        key = self._api_key or os.environ.get("ANTHROPIC_API_KEY") or None
        token = None if key else os.environ.get("ANTHROPIC_AUTH_TOKEN") or None

        def make() -> AsyncAnthropic:
            # The loop of a run retries; two layers of it would multiply.
            if token:
                return anthropic.AsyncAnthropic(auth_token=token, base_url=url, max_retries=0)
            if not key and url is not None and not _is_own_host(url):
                return anthropic.AsyncAnthropic(api_key=_NO_KEY, base_url=url, max_retries=0)
            try:
                client = anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0)
            except anthropic.AnthropicError as error:
                raise UserError(
                    f"The official client finds no usable credentials for the model "
                    f"{self.name!r}: {mask(str(error))} Set ANTHROPIC_API_KEY, or give "
                    "api_key=... to the model."
                ) from error
            found = (client.api_key, client.auth_token, getattr(client, "credentials", None))
            if not any(found):
                raise UserError(
                    f"There is no key for the model {self.name!r}. Set ANTHROPIC_API_KEY, or give "
                    "api_key=... to the model."
                )
            return client

        return await client_here(("anthropic", key, token, url), make)

    def _refuse_hosted(self, tool: HostedTool) -> dict[str, Any]:
        raise UserTypeError(
            f"tool {tool.name!r} ({type(tool).__name__}) runs at the provider and needs the "
            f"Responses API, but model {self.name!r} is reached over Anthropic's Messages API; "
            'choose a model named "openai/…" or leave the tool out'
        )


_KEYS = ("api_key", "auth_token")
_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
_MOST_PAUSES = 32


def _is_own_host(url: str) -> bool:
    found = re.match(r"https?://(?:[^/@]*@)?([^/?#:]+)", url)
    return found is not None and f".{found[1].lower()}".endswith(".anthropic.com")


# --- the request


def _body(request: ModelRequest, offer: Offer, schema: Any) -> dict[str, Any]:
    """Write a request; `schema` is that of its form in the API's own dialect, where it has one."""
    settings, form = request.settings, request.output
    messages = _messages(request.input)
    if not messages:
        raise UserValueError(
            "There is nothing to answer: the Messages API takes conversations with at least one "
            "message that is not empty, besides the system prompt."
        )
    limit = settings.max_tokens
    body: dict[str, Any] = {
        "max_tokens": DEFAULT_MAX_TOKENS if limit is None else limit,
        "messages": messages,
    }
    system = [request.instructions, *_system_texts(request.input)]
    if form is not None and schema is None:
        told = json.dumps(dict(form.schema), ensure_ascii=False)
        system.append(f"Answer with nothing but JSON that fits this JSON Schema:\n{told}")
    if any(map(str.strip, system)):
        body["system"] = "\n\n".join(text for text in system if text.strip())
    if offer.wire:
        body["tools"] = offer.wire
        choice = _tool_choice(settings, offer)
        if choice is not None:
            body["tool_choice"] = choice
    else:
        _tool_choice(settings, offer)
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
    return merged(body, settings.extra_body)


def _schema(form: OutputFormat) -> dict[str, Any] | None:
    """Give the schema of a form in the dialect of the API; `None` if it has no such form."""
    if not form.strict:
        return None
    try:
        return to_strict(form.schema, ANTHROPIC_STRICT)[0]
    except UserError:
        return None


def _tool_choice(settings: ModelSettings, offer: Offer) -> dict[str, Any] | None:
    chosen, single = settings.tool_choice, settings.parallel_tool_calls is False
    if chosen == "none":
        return {"type": "none"}
    if chosen is None and not single:
        return None
    if chosen is not None and chosen not in {"auto", "required", *offer.names}:
        known = ", ".join(offer.names) or "none"
        raise UserValueError(
            f"ModelSettings(tool_choice={chosen!r}): there is no such tool to call. Choose auto, "
            f"required, none, or one of the tools: {known}."
        )
    kinds = {None: "auto", "auto": "auto", "required": "any"}
    choice: dict[str, Any] = {"type": kinds.get(chosen, "tool")}
    if choice["type"] == "tool":
        choice["name"] = chosen
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
        for place, block in enumerate(item.content):
            if not isinstance(block, ToolOutputText):
                raise UserValueError(
                    f"input[{index}].content[{place}]: a message of role {item.role!r} holds text "
                    "only."
                )
            texts.append(block.text)
    return texts


_Said = MessageOutputItem | ReasoningItem | ToolCallItem


def _messages(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Write the conversation as messages of user and assistant that take turns."""
    outputs: defaultdict[str, deque[ToolCallOutputItem]] = defaultdict(deque)
    for item in items:
        if isinstance(item, ToolCallOutputItem):
            outputs[item.call_id].append(item)
    messages: list[dict[str, Any]] = []
    ids: set[str] = set()
    turn: list[_Said] = []
    for index, item in enumerate(items):
        match item:
            case MessageOutputItem() | ReasoningItem() | ToolCallItem():
                turn.append(item)
            case MessageInputItem(role="user"):
                _end_turn(turn, outputs, ids, messages)
                _add(messages, "user", _input_blocks(item, f"input[{index}].content"))
            case ToolCallOutputItem():  # stands behind its call, wherever it was recorded
                _end_turn(turn, outputs, ids, messages)
            case MessageInputItem():
                pass  # is in the system prompt
    _end_turn(turn, outputs, ids, messages)
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        if last["type"] == "text":  # what the model is to go on from must not end in blanks
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
    turn: list[_Said],
    outputs: Mapping[str, deque[ToolCallOutputItem]],
    ids: set[str],
    messages: list[dict[str, Any]],
) -> None:
    """Add what the model said in one turn, and the outputs of its calls behind it."""
    said: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for item in turn:
        if not isinstance(item, ToolCallItem) or not item.needs_answer:
            said += _said(item)
            continue
        call_id = _unique_id(item.call_id, ids)
        said.append(_call(item, call_id))
        waiting = outputs.get(item.call_id)
        results.append(_result(waiting.popleft() if waiting else None, call_id))
    turn.clear()
    if all(block["type"] in _THOUGHTS for block in said):
        return  # a thought alone is no message
    _add(messages, "assistant", said)
    _add(messages, "user", results)


_THOUGHTS = {"thinking", "redacted_thinking"}


def _said(item: _Said) -> list[dict[str, Any]]:
    own = _object((item.provider_data or {}).get(_KEY))
    match item:
        case MessageOutputItem() if isinstance(own.get("blocks"), list):
            return [dict(block) for block in own["blocks"] if _object(block).get("type") == "text"]
        case MessageOutputItem():
            words = item.text if item.refusal is None else item.refusal
            return [_text_block(words)] if words.strip() else []
        case ReasoningItem() if isinstance(own.get("signature"), str):
            return [{"type": "thinking", "thinking": item.text, "signature": own["signature"]}]
        case ReasoningItem() if isinstance(own.get("redacted"), str):
            return [{"type": "redacted_thinking", "data": own["redacted"]}]
        case ToolCallItem() if isinstance(own.get("block"), dict):
            return [own["block"]]
        case _:
            return []


def _unique_id(call_id: str, taken: set[str]) -> str:
    """Give the id of a call in a form that the API takes, and that no other call has."""
    number, wanted = 0, call_id
    while not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wanted) or wanted in taken:
        wanted = f"call_{hashlib.sha256(f'{call_id}/{number}'.encode()).hexdigest()[:32]}"
        number += 1
    taken.add(wanted)
    return wanted


def _call(item: ToolCallItem, call_id: str) -> dict[str, Any]:
    given = _json_object(item.arguments or "{}")
    if given is None:
        given = {"invalid_json": item.arguments}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", item.name)[:64] or "_"
    own = _object((item.provider_data or {}).get(_KEY))
    kept = {field: own[field] for field in _CALL_FIELDS if field in own}
    return {"type": "tool_use", "id": call_id, "name": name, "input": given, **kept}


_CALL_FIELDS = ("caller", "toolset_name")
"""What the API may say of a call besides, and wants back with it."""


def _result(item: ToolCallOutputItem | None, call_id: str) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if item is None:  # every call must be answered
        return {**result, "content": "No output was recorded.", "is_error": True}
    content: Any = item.output
    if not isinstance(content, str):
        blocks: list[dict[str, Any]] = []
        for block in content:
            # Errors are told in text alone.
            told = _block(block, None) if item.status == "ok" else _text_block(_as_text(block))
            if told["type"] != "text" or told["text"].strip():
                blocks.append(told)
        content = blocks or ""
    if item.status != "ok":
        result["is_error"] = True
    return {**result, "content": content}


def _input_blocks(item: MessageInputItem, at: str) -> list[dict[str, Any]]:
    if isinstance(item.content, str):
        return [_text_block(item.content)] if item.content.strip() else []
    blocks = [_block(block, f"{at}[{index}]") for index, block in enumerate(item.content)]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _text_block(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _block(block: ContentBlock, at: str | None) -> dict[str, Any]:
    """Write a content block; `at` is where the user wrote it, `None` for what a tool answered."""
    source = _source(block)
    if isinstance(block, ToolOutputText):
        return _text_block(block.text)
    if source is None:
        if at is not None:
            raise UserValueError(f"{at}: {_REMEDIES[block.type]}")
        return _text_block(_as_text(block))
    if isinstance(block, ToolOutputImage):
        return {"type": "image", "source": source}
    name = getattr(block, "filename", None)
    return {"type": "document", "source": source, **({"title": name[:500]} if name else {})}


def _source(block: ContentBlock) -> dict[str, Any] | None:
    """Say where the data of a block is; `None` for data that the API does not take."""
    match block:
        case ToolOutputText() | ToolOutputAudio():
            return None
        case _ if block.file_id is not None:
            return {"type": "file", "file_id": block.file_id}
        case _ if block.url is not None:
            held = _DATA_URL.fullmatch(block.url)
            if held is None:
                return {"type": "url", "url": block.url}
            kind, data = held[1].lower(), held[2]
        case _:
            kind, data = block.mime_type or "", base64_text(block.data or b"")
    if kind in (_IMAGES if isinstance(block, ToolOutputImage) else {"application/pdf"}):
        return {"type": "base64", "media_type": kind, "data": data}
    if isinstance(block, ToolOutputFileContent) and block.data is not None:
        words = _decoded(block.data)
        if words is not None and words.strip():
            return {"type": "text", "media_type": "text/plain", "data": words}
    return None


_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/=\s]*)")
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_REMEDIES = {
    "image": "Anthropic takes images of type image/jpeg, image/png, image/gif or image/webp.",
    "audio": "Anthropic's models take no sound; give them its words.",
    "file": "Anthropic takes files that are PDF documents or text.",
}


def _as_text(block: ContentBlock) -> str:
    """Say in words what a block holds: text in full."""
    if isinstance(block, ToolOutputText):
        return block.text
    name = getattr(block, "filename", None) or block.type
    if block.data is None:
        return f"[{name}: {shorten(block.url or block.file_id or '', 200)}]"
    words = _decoded(block.data) if isinstance(block, ToolOutputFileContent) else None
    if words is not None:
        return words
    return f"[{name}: {len(block.data):,} bytes of {block.mime_type}, not shown]"


def _decoded(data: bytes) -> str | None:
    with contextlib.suppress(UnicodeDecodeError):
        words = data.decode()
        return None if "\0" in words else words
    return None


# --- one request


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What an error is told against; no message may show the keys."""

    model: str
    url: str
    keys: tuple[str, ...]
    offer: Offer


class _FormRefused(Exception):  # noqa: N818 - a turn of the way, not an error
    """The model does not hold its answers to a schema, or not to this one."""

    def __init__(self, error: ModelError) -> None:
        super().__init__()
        self.error = error


class _Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def close(self) -> None: ...


async def _ask(
    client: AsyncAnthropic,
    body: Mapping[str, Any],
    answer: _Answer,
    asked: _Asked,
    settings: ModelSettings,
) -> None:
    """Put a request, and hand the events of the answer over as they come."""
    deadline = asyncio.timeout(settings.timeout)
    answer.begin()
    try:
        async with deadline:
            stream = await _opened(client, body, asked, settings)
            try:
                await followed(
                    stream, answer, broken=partial(_broken, asked=asked), cut=partial(_cut, asked)
                )
            finally:
                await stream.close()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise ModelError(
            f"{asked.model} did not finish its answer within {settings.timeout:g} s "
            "(ModelSettings(timeout=...)).",
            model=asked.model,
            retryable=True,
        ) from error


async def _opened(
    client: AsyncAnthropic, body: Mapping[str, Any], asked: _Asked, settings: ModelSettings
) -> _Stream:
    # The body goes past the client's own conversion, which would walk through every tool and the
    # whole conversation each turn.
    options: dict[str, Any] = {"extra_body": dict(body)}
    if settings.extra_headers is not None:
        options["extra_headers"] = dict(settings.extra_headers)
    if settings.timeout is not None:
        options["timeout"] = settings.timeout
    try:
        return await client.messages.create(
            model=asked.model, max_tokens=1, messages=[], stream=True, **options
        )
    except anthropic.APIStatusError as error:
        if _is_about_the_form(error, body):
            raise _FormRefused(_refusal(error, asked)) from error
        raise _refusal(error, asked) from error
    except anthropic.APIConnectionError as error:
        if type(error.__cause__).__name__ not in _UNSENT:
            raise _unreachable(error, asked) from error
        # The client's own error may show the key, so it is not chained.
        raise _unsent(error.__cause__ or error, asked) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the request never left
        raise _unsent(error, asked) from None


_UNSENT = {"LocalProtocolError", "UnsupportedProtocol"}
"""What the client raises for a request that breaks the rules of HTTP itself."""


# --- what can go wrong

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that goes with an error that is told in the middle of a stream."""

_OK, _BAD, _NOT_FOUND, _TOO_LARGE, _TOO_MANY, _SERVER = 200, 400, 404, 413, 429, 500
_TOO_LONG = re.compile(
    r"(?:prompt|input|conversation|messages?) (?:is|are) too long"
    r"|context[ _](?:limit|window|length)|too many (?:total )?(?:text bytes|tokens)",
    re.IGNORECASE,
)
_FORM = re.compile(r"output_config\.format|output_format|structured[ _]output", re.IGNORECASE)


def _told(error: anthropic.APIStatusError) -> tuple[str, str]:
    """Give the kind and the words of a provider's error."""
    body = _object(error.body)
    inner = _object(body.get("error"))
    words = inner.get("message") or body.get("message") or body.get("detail") or body.get("error")
    if not words and isinstance(error.body, str):
        words = error.body
    return text(inner.get("type")), str(words or error.message)


def _is_about_the_form(error: anthropic.APIStatusError, body: Mapping[str, Any]) -> bool:
    sent = "format" in _object(body.get("output_config"))
    return sent and error.status_code == _BAD and _FORM.search(_told(error)[1]) is not None


def _refusal(error: anthropic.APIStatusError, asked: _Asked) -> ModelError:
    """Give the error for what the provider refuses, at once or in the middle of its answer."""
    kind, words = _told(error)
    model, said = asked.model, _said_safely(words, asked)
    status = error.status_code
    told = f"{model}: the provider answered {status}: {said}"
    if status < _BAD:
        status = _STATUSES.get(kind, _SERVER)
        told = f"{model} broke off: {said} ({kind or 'unknown error'})"
    hasty = status == _TOO_MANY  # "too many tokens" a minute, not in the conversation
    if status == _TOO_LARGE or (status < _SERVER and not hasty and _TOO_LONG.search(said)):
        return ContextWindowExceeded(
            f"The conversation is too long for {model}: {said}", model=model, status=status
        )
    if status in {401, 403}:
        remedy = "Is ANTHROPIC_API_KEY (or api_key=) the right key, and may it use this model?"
        return ModelError(f"{told} {remedy}", model=model, status=status)
    if status == _NOT_FOUND:
        remedy = f"There may be no model {model!r} for this key."
        if not _is_own_host(asked.url):
            remedy = f"Does {_said_safely(asked.url, asked)} have a model {model!r}?"
        return ModelError(f"{told} {remedy}", model=model, status=status)
    if status in {408, 409, 429} or status >= _SERVER:
        headers = error.response.headers
        return ModelError(
            told,
            model=model,
            status=status,
            retryable=headers.get("x-should-retry") != "false",
            retry_after=retry_after(headers),
        )
    tool = _refused_tool(said, asked.offer) if status in {400, 422} else None
    if tool is not None:
        return ToolRefusedError(
            f"{model} does not take the tool {tool!r}: {said}",
            tool_name=tool,
            reason=said,
            model=model,
            status=status,
        )
    if status == _BAD and _SAMPLING.match(said):
        told += (
            " Newer models and versions of the API know no such setting: leave it out of "
            "ModelSettings."
        )
    return ModelError(told, model=model, status=status)


_SAMPLING = re.compile(r"[`'\"]?(?:temperature|top_p)\b")


def _refused_tool(said: str, offer: Offer) -> str | None:
    place = re.search(r"\btools[.\[](\d+)", said)
    if place is not None and int(place[1]) < len(offer.names):
        return offer.names[int(place[1])]
    if not re.search(r"schema|tool", said, re.IGNORECASE) or said.startswith("messages."):
        return None
    quoted = set(re.findall(r"['\"`]([A-Za-z0-9_-]{1,64})['\"`]", said))
    return next((name for name in offer.names if name in quoted), None)


def _broken(error: Exception, asked: _Asked) -> ModelError:
    if isinstance(error, anthropic.APIStatusError):
        return _refusal(error, asked)
    if isinstance(error, anthropic.APIConnectionError):
        return _cut(asked, str(error.__cause__ or "") or str(error))
    return _cut(asked, f"{type(error).__name__}: {error}")


def _cut(asked: _Asked, why: str) -> ModelError:
    return ModelError(
        f"The answer of {asked.model} broke off: {_said_safely(why, asked) or 'connection lost'}.",
        model=asked.model,
        retryable=True,
    )


def _unreachable(error: anthropic.APIConnectionError, asked: _Asked) -> ModelError:
    why = str(error.__cause__ or "") or str(error)
    if isinstance(error, anthropic.APITimeoutError):
        why = "no answer in time"
    local = "" if _is_own_host(asked.url) else " Is the server running, and is the address right?"
    return ModelError(
        f"{asked.model} could not be reached at {_said_safely(asked.url, asked)}: "
        f"{_said_safely(why, asked)}.{local}",
        model=asked.model,
        retryable=True,
    )


def _unsent(error: BaseException, asked: _Asked) -> UserError:
    said = _said_safely(f"{type(error).__name__}: {error}", asked)
    return UserError(
        f"The request to {asked.model} cannot be sent: {said}. Look at the model settings "
        "(extra_body, extra_headers), at the address and at the key."
    )


def _said_safely(words: str, asked: _Asked) -> str:
    """Shorten what a provider says, without secrets and control characters."""
    for key in asked.keys:
        if key != _NO_KEY:
            words = words.replace(key, "***")
    return shorten(mask(safe_text(words)).strip(), 500)


# --- the answer


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
        kept = {name: self.raw[name] for name in _CALL_FIELDS if self.raw.get(name)}
        if kept.get("caller") == {"type": "direct"}:
            del kept["caller"]
        return ToolCallItem(
            call_id=self.call_id,
            name=text(self.raw.get("name")),
            arguments=arguments,
            provider_data={_KEY: kept} if kept else None,
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
                return _call(self.call(), self.call_id)
            case _ if "input" in self.raw:
                return {**self.raw, "input": _json_object(self.words) or self.raw["input"] or {}}
            case _:
                return self.raw


class _Answer:
    """Puts an answer together from the events of its streams; a paused one has several."""

    def __init__(self, request: ModelRequest, emit: Emit, asked: _Asked) -> None:
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
        told = _object(event)
        match told.get("type"):
            case "message_start":
                self._facts = _object(told.get("message"))
                self._count(self._facts.get("usage"))
            case "content_block_start":
                self._start(told.get("index"), _object(told.get("content_block")))
            case "content_block_delta":
                self._go_on(self._block(told.get("index")), _object(told.get("delta")))
            case "content_block_stop":
                self._end(self._block(told.get("index")))
            case "message_delta":
                self._count(told.get("usage"))
                self._close(_object(told.get("delta")))
            case _:
                pass  # `message_stop` says nothing new; of others nothing is known

    def _count(self, usage: object) -> None:
        told = {name: one for name, one in _object(usage).items() if one is not None}
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
            raise _cut(self._asked, f"block {index} went on before it began")
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
            raise _cut(self._asked, f"call {block.call_id} went on after its end")
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
        if _json_object(item.arguments) is not None:
            block.handed_over = True
            self._on_call(item)

    def _add_usage(self) -> None:
        told = self._figures
        cached = count(told.get("cache_read_input_tokens"))
        written = count(told.get("cache_creation_input_tokens"))
        thought = _object(told.get("output_tokens_details")).get("thinking_tokens")
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
        why = text(_object(self._stop.get("stop_details")).get("explanation"))
        if why or not words.strip():
            words = why or "The model refused to answer."
            self._emit(refusal_delta(words))
        thoughts = [_item(block) for block in self._blocks if block.kind in _THOUGHTS]
        return [*thoughts, MessageOutputItem(refusal=words)]

    def _raw(self) -> Message:
        content = [block.whole() for block in self._blocks]
        told = {**self._facts, **self._stop, "content": content, "usage": self._figures}
        return Message.construct(None, **told)


def _message(blocks: Sequence[_Block]) -> MessageOutputItem:
    """Make one message of text blocks that follow each other: cited text comes in many."""
    own = None
    if any(block.citations for block in blocks):
        own = {_KEY: {"blocks": [block.whole() for block in blocks if block.words.strip()]}}
    return MessageOutputItem(text="".join(block.words for block in blocks), provider_data=own)


def _item(block: _Block) -> Item:
    match block.kind:
        case "thinking":
            own = {_KEY: {"signature": block.signature}} if block.signature else None
            return ReasoningItem(text=block.words, provider_data=own)
        case "redacted_thinking":
            return ReasoningItem(provider_data={_KEY: {"redacted": text(block.raw.get("data"))}})
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
                provider_data={_KEY: {"block": whole}},
            )


_NOT_WHOLE = {"max_tokens", "model_context_window_exceeded", "refusal"}


def _finish_reason(stopped: str, items: Sequence[Item]) -> FinishReason:
    if stopped == "refusal":
        return "refusal"
    if stopped in _NOT_WHOLE:
        return "length"
    called = any(isinstance(item, ToolCallItem) and item.needs_answer for item in items)
    return "tool_calls" if called else "stop"


# --- reading what servers send: nothing is taken for granted


def _object(value: object) -> dict[str, Any]:
    """Give a mapping, or the JSON of one of the client's objects, as a dictionary."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, anthropic.BaseModel):
        return value.to_dict(mode="json", warnings=False)
    return {}


def _json_object(words: str) -> dict[str, Any] | None:
    try:
        value: object = json.loads(words)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
