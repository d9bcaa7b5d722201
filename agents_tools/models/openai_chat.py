"""Models of the Chat Completions API, at OpenAI or any compatible server."""

from __future__ import annotations

import functools
import json
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from agents_tools._package import missing_extra

try:
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
except ImportError as error:
    raise missing_extra("An OpenAI model", "openai", error) from error

from agents_tools.agents.model import (
    ModelResponse,
    call_delta,
    call_started,
    message_started,
    reasoning_delta,
    refusal_delta,
    text_delta,
)
from agents_tools.content.items import (
    Item,
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
from agents_tools.content.usage import Usage
from agents_tools.errors import UserValueError
from agents_tools.models._http import (
    ToolDefinitionCache,
    ToolDefinitions,
    base64_text,
    block_as_text,
    count,
    host_of,
    merge_extra,
    text,
)
from agents_tools.models._openai import (
    Endpoint,
    OpenAIRequest,
    attribute,
    data_url,
    file_name,
    is_own_host,
    new_call_id,
    object_of,
    safe_name,
    short_id,
    stream_error,
    stream_response,
)
from agents_tools.wire.hosted import raise_hosted_unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openai import AsyncOpenAI

    from agents_tools.agents.model import FinishReason, ModelRequest
    from agents_tools.events.base import Emit

__all__ = ["OpenAIChatModel"]

_KEY = "openai_chat"
"""The key in `provider_data` of an item for data that only the same server understands."""

_OPTIONAL = {"stream_options": r"stream_options|include_usage"}
"""Fields that some servers reject."""


def load(name: str, **options: Any) -> OpenAIChatModel:
    """Return the model with a name, such as `gpt-5` or `qwen3:8b`."""
    return OpenAIChatModel(name, **options)


class OpenAIChatModel:
    """A model of the Chat Completions API, at OpenAI or any compatible server.

    Args:
        name: The name of the model at the server.
        client: The client to use, which belongs to one event loop; by default, one is created per
            event loop.
        base_url: The URL of the API, such as `http://localhost:11434/v1`; by default
            `OPENAI_BASE_URL`, or OpenAI's own URL.
        api_key: The key; `OPENAI_API_KEY` by default. Servers other than OpenAI's do not require
            a key.
    """

    provider: ClassVar[str] = "openai_chat"

    def __init__(
        self,
        name: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self.name = name
        self._endpoint = Endpoint(name, client, base_url, api_key)
        reject_hosted = functools.partial(raise_hosted_unsupported, model=name)
        self._definition_cache = ToolDefinitionCache(self.provider, reject_hosted)
        self._dropped: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAIChatModel({self.name!r})"

    @property
    def base_url(self) -> str:
        """The URL of the API."""
        return self._endpoint.url

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send the request and return the response; see `Model.respond`."""
        definitions = self._definition_cache.get(request.tools)
        client = await self._endpoint.client()
        url = str(client.base_url)
        body = _body(request, definitions, url)
        target = OpenAIRequest(
            model=self.name, url=url, key=client.api_key, definitions=definitions
        )
        answer = _ChatResponse(request, emit, target)
        await stream_response(
            functools.partial(
                client.chat.completions.create, model=self.name, messages=[], stream=True
            ),
            body,
            answer,
            target,
            settings=request.settings,
            optional=_OPTIONAL,
            dropped=self._dropped,
        )
        return answer.response()


# --- the request


def _body(request: ModelRequest, definitions: ToolDefinitions, url: str) -> dict[str, Any]:
    settings = request.settings
    body: dict[str, Any] = {
        "messages": list(_messages(request, url)),
        "stream_options": {"include_usage": True},
    }
    if definitions.wire:
        body["tools"] = definitions.wire
        if settings.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = settings.parallel_tool_calls
    choice = _tool_choice(settings.tool_choice, definitions)
    if choice is not None:
        body["tool_choice"] = choice
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.top_p is not None:
        body["top_p"] = settings.top_p
    if settings.max_tokens is not None:
        # OpenAI's newer models reject the old name; most other servers do not support the new one.
        name = "max_completion_tokens" if is_own_host(url) else "max_tokens"
        body[name] = settings.max_tokens
    if settings.reasoning_effort is not None:
        body["reasoning_effort"] = settings.reasoning_effort
    if settings.stop:
        body["stop"] = list(settings.stop)
    if request.output is not None:
        form = request.output
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": safe_name(form.name),
                "schema": dict(form.schema),
                "strict": form.strict,
            },
        }
    return merge_extra(body, settings.extra_body)


def _tool_choice(chosen: str | None, definitions: ToolDefinitions) -> Any:
    if chosen is None or chosen in {"auto", "required", "none"}:
        return chosen if definitions.wire else None
    if chosen not in definitions.names:
        known = ", ".join(definitions.names) or "none"
        raise UserValueError(
            f"ModelSettings(tool_choice={chosen!r}) is not a known tool: expected auto, required, "
            f"none, or one of the tools: {known}."
        )
    return {"type": "function", "function": {"name": chosen}}


def _messages(request: ModelRequest, url: str) -> Iterator[dict[str, Any]]:
    if request.instructions:
        yield {"role": "system", "content": request.instructions}
    outputs: defaultdict[str, deque[ToolCallOutputItem]] = defaultdict(deque)
    for item in request.input:  # some servers use an id several times
        if isinstance(item, ToolCallOutputItem):
            outputs[item.call_id].append(item)
    turn: list[MessageOutputItem | ReasoningItem | ToolCallItem] = []
    for index, item in enumerate(request.input):
        match item:
            case MessageOutputItem() | ReasoningItem() | ToolCallItem():
                turn.append(item)
            case MessageInputItem():
                yield from _turn(turn, outputs, url)
                turn = []
                yield _input_message(item, f"input[{index}].content", url)
            case ToolCallOutputItem():  # added after its call, independent of its position
                yield from _turn(turn, outputs, url)
                turn = []
    yield from _turn(turn, outputs, url)


def _input_message(item: MessageInputItem, path: str, url: str) -> dict[str, Any]:
    role = item.role
    if role == "developer" and not is_own_host(url):
        role = "system"  # the role that most other models support
    if isinstance(item.content, str):
        return {"role": role, "content": item.content}
    parts = [_part(block, f"{path}[{index}]") for index, block in enumerate(item.content)]
    if role != "user" and any(part["type"] != "text" for part in parts):
        raise UserValueError(
            f"{path}: a message with the role {item.role!r} can only contain text."
        )
    return {"role": role, "content": parts or ""}


def _turn(
    items: Sequence[MessageOutputItem | ReasoningItem | ToolCallItem],
    outputs: Mapping[str, deque[ToolCallOutputItem]],
    url: str,
) -> Iterator[dict[str, Any]]:
    """Yield the items of one turn as one message, followed by the outputs of its calls."""
    texts = [
        item.text if item.refusal is None else item.refusal
        for item in items
        if isinstance(item, MessageOutputItem)
    ]
    calls = [item for item in items if isinstance(item, ToolCallItem) and item.needs_answer]
    if not calls and not any(texts):
        return
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    thoughts = [item for item in items if isinstance(item, ReasoningItem)]
    reasoning = "\n\n".join(item.text for item in thoughts if _is_own(item, url))
    if reasoning:
        message["reasoning_content"] = reasoning
    details = [one for item in thoughts for one in _stored(item, url).get("details", ())]
    if details:
        message["reasoning_details"] = details
    if calls:
        message["tool_calls"] = [_call(call, url) for call in calls]
    yield message
    media: list[dict[str, Any]] = []
    for call in calls:
        remaining = outputs.get(call.call_id)
        if remaining:
            yield _tool_message(remaining.popleft(), media)
    if media:
        yield {"role": "user", "content": media}


def _is_own(item: ReasoningItem, url: str) -> bool:
    return _stored(item, url).get("field") == "reasoning_content"


def _stored(item: ReasoningItem | ToolCallItem, url: str) -> dict[str, Any]:
    """Return the data that this server sent with an item; empty for an item of another server.

    The server expects its data back; other servers reject the fields.
    """
    stored = object_of((item.provider_data or {}).get(_KEY))
    return stored if stored.get("server") == host_of(url) else {}


_MAX_ID_LENGTH = 40


def _call(item: ToolCallItem, url: str) -> dict[str, Any]:
    arguments = item.arguments
    if not _is_object(arguments):
        # Some servers parse the arguments of the whole history and fail on invalid JSON.
        arguments = json.dumps({"invalid_json": arguments}, ensure_ascii=False)
    call: dict[str, Any] = {
        "id": short_id(item.call_id, _MAX_ID_LENGTH),
        "type": "function",
        "function": {"name": safe_name(item.name), "arguments": arguments},
    }
    extra = _stored(item, url).get("extra_content")
    return {**call, "extra_content": extra} if extra else call


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _tool_message(item: ToolCallOutputItem, media: list[dict[str, Any]]) -> dict[str, Any]:
    call_id = short_id(item.call_id, _MAX_ID_LENGTH)
    message: dict[str, Any] = {"role": "tool", "tool_call_id": call_id}
    if isinstance(item.output, str):
        return {**message, "content": item.output}
    texts: list[str] = []
    for block in item.output:
        part = _part(block, None)
        if part["type"] == "text":
            texts.append(part["text"])
            continue
        # A tool message can only contain text; other blocks follow in a user message.
        texts.append(f"[{block.type}: in the message below]")
        origin = f"The {block.type} from {item.name or 'the tool'} for call {call_id}:"
        media += [{"type": "text", "text": origin}, part]
    return {**message, "content": "\n".join(texts)}


def _part(block: ContentBlock, path: str | None) -> dict[str, Any]:
    """Convert a content block; `path` is its position in the input, `None` for tool output."""
    match block:
        case ToolOutputText():
            return _text_part(block.text)
        case ToolOutputImage() if block.file_id is None:
            url = block.url if block.url is not None else data_url(block)
            detail = {} if block.detail is None else {"detail": block.detail}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case ToolOutputAudio() if block.data is not None and block.mime_type in _SOUNDS:
            sound = {"data": base64_text(block.data), "format": _SOUNDS[block.mime_type]}
            return {"type": "input_audio", "input_audio": sound}
        case ToolOutputFileContent() if block.file_id is not None:
            return {"type": "file", "file": {"file_id": block.file_id}}
        case ToolOutputFileContent() if block.data is not None:
            name = file_name(block)
            if name is None:
                return _text_part(block_as_text(block))
            return {"type": "file", "file": {"filename": name, "file_data": data_url(block)}}
        case _ if path is None:
            return _text_part(block_as_text(block))
        case _:
            raise UserValueError(f"{path}: {_REMEDIES[block.type]}")


def _text_part(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


_SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
_REMEDIES = {
    "image": "Chat Completions accepts images as data or by url, not by file_id.",
    "audio": "Chat Completions accepts audio as data, of type audio/wav or audio/mpeg.",
    "file": "Chat Completions accepts files as data or by file_id, not by url.",
}


# --- the answer


class _ChatCall:
    """A call that is not complete yet."""

    __slots__ = ("arguments", "call_id", "extra", "index", "is_reported", "is_started", "name")

    def __init__(self, index: object, call_id: str) -> None:
        self.index = index
        self.call_id = call_id
        self.name = ""
        self.arguments = ""
        self.extra: dict[str, Any] = {}
        self.is_started = False
        self.is_reported = False

    def item(self, server: str) -> ToolCallItem:
        stored = {_KEY: {"extra_content": self.extra, "server": server}} if self.extra else None
        return ToolCallItem(
            call_id=self.call_id,
            name=self.name,
            arguments=self.arguments or "{}",
            provider_data=stored,
        )


class _ChatResponse:
    """Builds a response from the chunks of its stream."""

    def __init__(self, request: ModelRequest, emit: Emit, target: OpenAIRequest) -> None:
        self.is_complete = False
        self._emit = emit
        self._on_call = request.on_call
        self._target = target
        self._server = host_of(target.url)
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._calls: list[_ChatCall] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._message_fields: dict[str, Any] = {}

    def process(self, event: Any) -> None:
        for name in ("id", "created", "model", "system_fingerprint", "service_tier"):
            value = attribute(event, name)
            if value:
                self._message_fields[name] = value
        usage = object_of(attribute(event, "usage"))
        if usage:
            self._usage = usage
        choices = attribute(event, "choices")
        for choice in cast("list[Any]", choices) if isinstance(choices, list) else ():
            if not attribute(choice, "index"):
                self._read_choice(choice)

    def process_body(self, body: dict[str, Any]) -> None:
        choices = body.get("choices")
        deltas = [
            {**object_of(choice), "delta": object_of(choice).get("message")}
            for choice in (cast("list[Any]", choices) if isinstance(choices, list) else ())
        ]
        self.process(ChatCompletionChunk.construct(None, **{**body, "choices": deltas}))

    def _read_choice(self, choice: Any) -> None:
        delta = attribute(choice, "delta")
        self._read_reasoning(delta)
        content = attribute(delta, "content")
        if isinstance(content, list):
            self._add_parts(cast("list[Any]", content))
        else:
            self._add_text(text(content))
        refusal = text(attribute(delta, "refusal"))
        if refusal:
            self._refusals.append(refusal)
            self._emit(refusal_delta(refusal))
        pieces = attribute(delta, "tool_calls")
        for delta_call in cast("list[Any]", pieces) if isinstance(pieces, list) else ():
            self._add_call(delta_call)
        finish = text(attribute(choice, "finish_reason"))
        if finish == "error":
            raise stream_error(None, "the provider reported an error", self._target)
        if finish:
            self._finish = finish
            self.is_complete = True
            if finish not in _CUT_OFF:
                self._report_calls(self._calls)

    def _add_text(self, content: str) -> None:
        if not content:
            return
        if not self._texts:
            self._emit(message_started())
        self._texts.append(content)
        self._emit(text_delta(content))

    def _add_parts(self, parts: Sequence[Any]) -> None:
        for part in map(object_of, parts):
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                blocks = cast("list[Any]", inner) if isinstance(inner, list) else ()
                self._add_reasoning("", "".join(text(object_of(one).get("text")) for one in blocks))
            else:
                self._add_text(text(part.get("text")))

    def _read_reasoning(self, delta: Any) -> None:
        details = attribute(delta, "reasoning_details")
        for detail in cast("list[Any]", details) if isinstance(details, list) else ():
            self._add_detail(object_of(detail))
        for field in ("reasoning_content", "reasoning"):
            content = text(attribute(delta, field))
            if content:
                self._add_reasoning(field, content)
                return

    def _add_reasoning(self, field: str, content: str) -> None:
        if content:
            self._reasoning_field = field
            self._reasoning.append(content)
            self._emit(reasoning_delta(content))

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """Add a piece of reasoning as OpenRouter sends it: pieces with one index are one block."""
        last = self._details[-1] if self._details else {}
        keys = ("type", "index")
        if "index" not in detail or any(last.get(key) != detail.get(key) for key in keys):
            self._details.append(detail)
            return
        joined = {name: text(last.get(name)) + text(detail.get(name)) for name in _JOINED}
        fields = {name: value for name, value in {**detail, **joined}.items() if value}
        self._details[-1] = {**last, **fields}

    def _add_call(self, delta_call: Any) -> None:
        function = attribute(delta_call, "function")
        call_id, name = text(attribute(delta_call, "id")), text(attribute(function, "name"))
        call = self._call_of(attribute(delta_call, "index"), call_id, name)
        if len(name) > len(call.name):  # some servers repeat the name in each delta
            call.name = name
        if call.name and not call.is_started:
            call.is_started = True
            self._emit(call_started(call.call_id, call.name))
        # Gemini sends a signature here, and refuses the call in the next request without it.
        call.extra |= object_of(attribute(delta_call, "extra_content"))
        arguments = attribute(function, "arguments")
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments, ensure_ascii=False)
        content = text(arguments)
        if not content:
            return
        if call.is_reported and content.strip():
            raise stream_error(None, f"call {call.call_id} continued after its end", self._target)
        call.arguments += content
        if call.is_started:
            self._emit(call_delta(call.call_id, content))

    def _call_of(self, index: object, call_id: str, name: str) -> _ChatCall:
        """Return the call that a delta belongs to, or start a new one."""
        if index is None:
            matches = [call for call in self._calls if call_id and call.call_id == call_id]
            matches = matches or ([] if name or call_id else self._calls)
        else:
            matches = [call for call in self._calls if call.index == index]
        if matches and not self._is_next(matches[-1], call_id, name):
            return matches[-1]
        self._report_calls([call for call in self._calls if call.arguments])
        used_ids = {call.call_id for call in self._calls}
        call = _ChatCall(index, new_call_id() if not call_id or call_id in used_ids else call_id)
        self._calls.append(call)
        return call

    @staticmethod
    def _is_next(call: _ChatCall, call_id: str, name: str) -> bool:
        """Return whether a delta starts another call: some servers use the index 0 for all."""
        if not (call_id and name) or call_id == call.call_id:
            return False
        # A call without arguments can be complete; a longer name can be the rest of its name.
        return _is_object(call.arguments) or not (call.arguments or name.startswith(call.name))

    def _report_calls(self, calls: Sequence[_ChatCall]) -> None:
        """Report the calls that are complete."""
        if self._on_call is None:
            return
        for call in calls:
            if call.name and not call.is_reported and _is_object(call.arguments or "{}"):
                call.is_reported = True
                self._on_call(call.item(self._server))

    def response(self) -> ModelResponse:
        """Return the complete response."""
        content, refusal = "".join(self._texts), "".join(self._refusals)
        items: list[Item] = []
        if self._reasoning or self._details:
            stored: dict[str, Any] = {"field": self._reasoning_field, "server": self._server}
            if self._details:
                stored["details"] = self._details
            items.append(ReasoningItem(text="".join(self._reasoning), provider_data={_KEY: stored}))
        if refusal:
            items.append(MessageOutputItem(refusal=refusal))
        elif content:
            items.append(MessageOutputItem(text=content))
        items += [call.item(self._server) for call in self._calls]
        return ModelResponse(
            items=items,
            usage=_usage(self._usage),
            finish_reason=self._reason(refusal),
            response_id=text(self._message_fields.get("id")) or None,
            model=text(self._message_fields.get("model")) or None,
            raw=self._raw(content, refusal),
        )

    def _reason(self, refusal: str) -> FinishReason:
        if self._finish == "length":
            return "length"
        if self._finish == "content_filter":
            return "content_filter"
        if self._calls:
            return "tool_calls"
        return "refusal" if refusal else "stop"

    def _raw(self, content: str, refusal: str) -> ChatCompletion:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content or None,
            "refusal": refusal or None,
        }
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self._calls
            ]
        choice = {"index": 0, "finish_reason": self._finish, "message": message}
        fields: dict[str, Any] = {
            **self._message_fields,
            "choices": [choice],
            "usage": self._usage or None,
        }
        return ChatCompletion.construct(None, object="chat.completion", **fields)


_CUT_OFF = {"length", "content_filter"}
_JOINED = ("text", "summary", "data")
"""The fields of a block of reasoning that arrive in pieces."""


def _usage(fields: Mapping[str, Any]) -> Usage:
    input_details = object_of(fields.get("prompt_tokens_details"))
    output_details = object_of(fields.get("completion_tokens_details"))
    return Usage(
        requests=1,
        input_tokens=count(fields.get("prompt_tokens")),
        output_tokens=count(fields.get("completion_tokens")),
        cached_input_tokens=count(input_details.get("cached_tokens"))
        or count(fields.get("prompt_cache_hit_tokens")),
        cache_write_tokens=count(input_details.get("cache_write_tokens"))
        or count(fields.get("cache_creation_input_tokens")),
        reasoning_tokens=count(output_details.get("reasoning_tokens")),
    )
