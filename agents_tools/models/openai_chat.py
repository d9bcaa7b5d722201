"""Models over chat completions: OpenAI's, and those of any server that speaks this API."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from openai.types.chat import ChatCompletion

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.items import (
    Item,
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
from agents_tools.models._common import (
    Offer,
    Offers,
    base64_text,
    count,
    host_of,
    merged,
    shown_as_text,
    text,
)
from agents_tools.models._openai import (
    Asked,
    Endpoint,
    ask,
    attribute,
    broken_off,
    data_url,
    file_name,
    is_own_host,
    new_call_id,
    object_of,
    safe_name,
    short_id,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.usage import Usage
from agents_tools.wire.openai_chat import refuse_hosted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openai import AsyncOpenAI

    from agents_tools.events import Emit
    from agents_tools.hosted import HostedTool
    from agents_tools.model import FinishReason, ModelRequest

__all__ = ["OpenAIChatModel", "load"]

_KEY = "openai_chat"
"""Where an item's `provider_data` holds what only such a server understands."""

_OPTIONAL = {"stream_options": r"stream_options|include_usage"}
"""Fields that some servers refuse."""


def load(name: str, **options: Any) -> OpenAIChatModel:
    """Give the model of a name, such as `gpt-5` or `qwen3:8b`."""
    return OpenAIChatModel(name, **options)


class OpenAIChatModel:
    """A model behind chat completions, at OpenAI or at any server that speaks this API.

    Args:
        name: The model, as the server calls it.
        client: A client to use in place of one of our own; it belongs to one event loop.
        base_url: The address of the API, such as `http://localhost:11434/v1`; `OPENAI_BASE_URL`,
            or OpenAI's own, if not given.
        api_key: The key; `OPENAI_API_KEY` if not given. Servers other than OpenAI's need none.
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
        self._offers = Offers(self.provider, self._refuse)
        self._dropped: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAIChatModel({self.name!r})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer; see `Model.respond`."""
        offer = self._offers.of(request.tools)
        client = await self._endpoint.client()
        url = str(client.base_url)
        body = _body(request, offer, url)
        asked = Asked(model=self.name, url=url, key=client.api_key, offer=offer)
        answer = _Answer(request, emit, asked)
        await ask(
            functools.partial(
                client.chat.completions.create, model=self.name, messages=[], stream=True
            ),
            body,
            answer,
            asked,
            settings=request.settings,
            optional=_OPTIONAL,
            dropped=self._dropped,
        )
        return answer.response()

    def _refuse(self, tool: HostedTool) -> NoReturn:
        refuse_hosted(tool, self.name)
        raise UserTypeError(f"{tool!r} is no function tool.")


# --- the request


def _body(request: ModelRequest, offer: Offer, url: str) -> dict[str, Any]:
    settings = request.settings
    body: dict[str, Any] = {
        "messages": list(_messages(request, url)),
        "stream_options": {"include_usage": True},
    }
    if offer.wire:
        body["tools"] = offer.wire
        if settings.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = settings.parallel_tool_calls
    choice = _tool_choice(settings.tool_choice, offer)
    if choice is not None:
        body["tool_choice"] = choice
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.top_p is not None:
        body["top_p"] = settings.top_p
    if settings.max_tokens is not None:
        # OpenAI's newer models refuse the old name, and most other servers do not know the new one.
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
    return merged(body, settings.extra_body)


def _tool_choice(chosen: str | None, offer: Offer) -> Any:
    if chosen is None or chosen in {"auto", "required", "none"}:
        return chosen if offer.wire else None
    if chosen not in offer.names:
        known = ", ".join(offer.names) or "none"
        raise UserValueError(
            f"ModelSettings(tool_choice={chosen!r}): there is no such tool to call. Choose auto, "
            f"required, none, or one of the tools: {known}."
        )
    return {"type": "function", "function": {"name": chosen}}


def _messages(request: ModelRequest, url: str) -> Iterator[dict[str, Any]]:
    if request.instructions:
        yield {"role": "system", "content": request.instructions}
    outputs = {item.call_id: item for item in request.input if isinstance(item, ToolCallOutputItem)}
    turn: list[MessageOutputItem | ReasoningItem | ToolCallItem] = []
    for index, item in enumerate(request.input):
        match item:
            case MessageOutputItem() | ReasoningItem() | ToolCallItem():
                turn.append(item)
            case MessageInputItem():
                yield from _turn(turn, outputs, url)
                turn = []
                yield _input_message(item, f"input[{index}].content", url)
            case ToolCallOutputItem():  # stands behind its call, wherever it was recorded
                yield from _turn(turn, outputs, url)
                turn = []
    yield from _turn(turn, outputs, url)


def _input_message(item: MessageInputItem, at: str, url: str) -> dict[str, Any]:
    role = item.role
    if role == "developer" and not is_own_host(url):
        role = "system"  # what the templates of most other models know
    if isinstance(item.content, str):
        return {"role": role, "content": item.content}
    parts = [_part(block, f"{at}[{index}]") for index, block in enumerate(item.content)]
    if role != "user" and any(part["type"] != "text" for part in parts):
        raise UserValueError(f"{at}: a message of role {item.role!r} holds text only.")
    return {"role": role, "content": parts or ""}


def _turn(
    items: Sequence[MessageOutputItem | ReasoningItem | ToolCallItem],
    outputs: Mapping[str, ToolCallOutputItem],
    url: str,
) -> Iterator[dict[str, Any]]:
    """Give what a model said in one turn as one message, and the outputs of its calls behind it."""
    said = [
        item.text if item.refusal is None else item.refusal
        for item in items
        if isinstance(item, MessageOutputItem)
    ]
    calls = [item for item in items if isinstance(item, ToolCallItem) and item.needs_answer]
    if not calls and not any(said):
        return
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(said) or None}
    thought = "\n\n".join(
        item.text for item in items if isinstance(item, ReasoningItem) and _is_own(item, url)
    )
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    yield message
    media: list[dict[str, Any]] = []
    for call in calls:
        output = outputs.get(call.call_id)
        if output is not None:
            yield _tool_message(output, media)
    if media:
        yield {"role": "user", "content": media}


def _is_own(item: ReasoningItem, url: str) -> bool:
    """Say whether a server wants its thoughts back; others refuse a field that they do not know."""
    own = object_of((item.provider_data or {}).get(_KEY))
    return own.get("field") == "reasoning_content" and own.get("server") == host_of(url)


_LONGEST_ID = 40


def _call(item: ToolCallItem) -> dict[str, Any]:
    arguments = item.arguments
    if not _is_object(arguments):
        # Some servers read the arguments of the whole history and fail on what is no JSON.
        arguments = json.dumps({"invalid_json": arguments}, ensure_ascii=False)
    return {
        "id": short_id(item.call_id, _LONGEST_ID),
        "type": "function",
        "function": {"name": safe_name(item.name), "arguments": arguments},
    }


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _tool_message(item: ToolCallOutputItem, media: list[dict[str, Any]]) -> dict[str, Any]:
    call_id = short_id(item.call_id, _LONGEST_ID)
    message: dict[str, Any] = {"role": "tool", "tool_call_id": call_id}
    if isinstance(item.output, str):
        return {**message, "content": item.output}
    texts: list[str] = []
    for block in item.output:
        part = _part(block, None)
        if part["type"] == "text":
            texts.append(part["text"])
            continue
        # Only text may stand here; the rest follows in a message of its own.
        texts.append(f"[{block.type}: in the message below]")
        origin = f"The {block.type} that {item.name or 'the tool'} gave for call {call_id}:"
        media += [{"type": "text", "text": origin}, part]
    return {**message, "content": "\n".join(texts)}


def _part(block: ContentBlock, at: str | None) -> dict[str, Any]:
    """Write a content block; `at` is where the user wrote it, `None` for what a tool answered."""
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
                return _text_part(shown_as_text(block))
            return {"type": "file", "file": {"filename": name, "file_data": data_url(block)}}
        case _ if at is None:
            return _text_part(shown_as_text(block))
        case _:
            raise UserValueError(f"{at}: {_REMEDIES[block.type]}")


def _text_part(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


_SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
_REMEDIES = {
    "image": "chat completions take images as data or by url, not by file_id.",
    "audio": "chat completions take sounds as data, of type audio/wav or audio/mpeg.",
    "file": "chat completions take files as data or by file_id, not by url.",
}


# --- the answer


class _Call:
    """A call as far as it has come."""

    __slots__ = ("arguments", "call_id", "handed_over", "index", "name", "told")

    def __init__(self, index: object, call_id: str) -> None:
        self.index = index
        self.call_id = call_id
        self.name = ""
        self.arguments = ""
        self.told = False
        self.handed_over = False

    def item(self) -> ToolCallItem:
        return ToolCallItem(call_id=self.call_id, name=self.name, arguments=self.arguments or "{}")


class _Answer:
    """Puts an answer together from the chunks of its stream."""

    def __init__(self, request: ModelRequest, emit: Emit, asked: Asked) -> None:
        self.whole = False
        self._emit = emit
        self._on_call = request.on_call
        self._asked = asked
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._thoughts: list[str] = []
        self._thought_field = ""
        self._calls: list[_Call] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._facts: dict[str, Any] = {}

    def take(self, event: Any) -> None:
        for name in ("id", "created", "model", "system_fingerprint", "service_tier"):
            value = attribute(event, name)
            if value:
                self._facts[name] = value
        usage = object_of(attribute(event, "usage"))
        if usage:
            self._usage = usage
        choices = attribute(event, "choices")
        for choice in cast("list[Any]", choices) if isinstance(choices, list) else ():
            if not attribute(choice, "index"):
                self._take_choice(choice)

    def _take_choice(self, choice: Any) -> None:
        delta = attribute(choice, "delta")
        self._take_thought(delta)
        content = attribute(delta, "content")
        if isinstance(content, list):
            self._take_parts(cast("list[Any]", content))
        else:
            self._take_text(text(content))
        refusal = text(attribute(delta, "refusal"))
        if refusal:
            self._refusals.append(refusal)
            self._emit(refusal_delta(refusal))
        pieces = attribute(delta, "tool_calls")
        for piece in cast("list[Any]", pieces) if isinstance(pieces, list) else ():
            self._take_call(piece)
        finish = text(attribute(choice, "finish_reason"))
        if finish == "error":
            raise broken_off(None, "the provider met an error", self._asked)
        if finish:
            self._finish = finish
            self.whole = True
            if finish not in _CUT_OFF:
                self._hand_over(self._calls)

    def _take_text(self, words: str) -> None:
        if not words:
            return
        if not self._texts:
            self._emit(message_started())
        self._texts.append(words)
        self._emit(text_delta(words))

    def _take_parts(self, parts: Sequence[Any]) -> None:
        for part in map(object_of, parts):
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                blocks = cast("list[Any]", inner) if isinstance(inner, list) else ()
                self._think("", "".join(text(object_of(one).get("text")) for one in blocks))
            else:
                self._take_text(text(part.get("text")))

    def _take_thought(self, delta: Any) -> None:
        for field in ("reasoning_content", "reasoning"):
            words = text(attribute(delta, field))
            if words:
                self._think(field, words)
                return

    def _think(self, field: str, words: str) -> None:
        if words:
            self._thought_field = field
            self._thoughts.append(words)
            self._emit(reasoning_delta(words))

    def _take_call(self, piece: Any) -> None:
        function = attribute(piece, "function")
        call_id, name = text(attribute(piece, "id")), text(attribute(function, "name"))
        call = self._call_of(attribute(piece, "index"), call_id, name)
        if len(name) > len(call.name):  # in full with every piece, or longer each time
            call.name = name
        if call.name and not call.told:
            call.told = True
            self._emit(call_started(call.call_id, call.name))
        arguments = attribute(function, "arguments")
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments, ensure_ascii=False)
        words = text(arguments)
        if not words:
            return
        if call.handed_over and words.strip():
            raise broken_off(None, f"call {call.call_id} went on after its end", self._asked)
        call.arguments += words
        if call.told:
            self._emit(call_delta(call.call_id, words))

    def _call_of(self, index: object, call_id: str, name: str) -> _Call:
        """Find the call that a piece belongs to, or begin one."""
        if index is None:
            same = [call for call in self._calls if call_id and call.call_id == call_id]
            same = same or ([] if name or call_id else self._calls)
        else:
            same = [call for call in self._calls if call.index == index]
        if same and not self._is_next(same[-1], call_id, name):
            return same[-1]
        self._hand_over([call for call in self._calls if call.arguments])
        taken = {call.call_id for call in self._calls}
        call = _Call(index, new_call_id() if not call_id or call_id in taken else call_id)
        self._calls.append(call)
        return call

    @staticmethod
    def _is_next(call: _Call, call_id: str, name: str) -> bool:
        """Tell another call under the same index: some servers number all calls of an answer 0."""
        return bool(call_id and name) and call_id != call.call_id and _is_object(call.arguments)

    def _hand_over(self, calls: Sequence[_Call]) -> None:
        """Hand over the calls that are complete; those in pieces still wait."""
        if self._on_call is None:
            return
        for call in calls:
            if call.name and not call.handed_over and _is_object(call.item().arguments):
                call.handed_over = True
                self._on_call(call.item())

    def response(self) -> ModelResponse:
        """Give the answer."""
        words, refusal = "".join(self._texts), "".join(self._refusals)
        items: list[Item] = []
        if self._thoughts:
            own = {"field": self._thought_field, "server": host_of(self._asked.url)}
            items.append(ReasoningItem(text="".join(self._thoughts), provider_data={_KEY: own}))
        if refusal:
            items.append(MessageOutputItem(refusal=refusal))
        elif words:
            items.append(MessageOutputItem(text=words))
        items += [call.item() for call in self._calls]
        return ModelResponse(
            items=items,
            usage=_usage(self._usage),
            finish_reason=self._reason(refusal),
            response_id=text(self._facts.get("id")) or None,
            model=text(self._facts.get("model")) or None,
            raw=self._raw(words, refusal),
        )

    def _reason(self, refusal: str) -> FinishReason:
        if self._finish == "length":
            return "length"
        if self._finish == "content_filter":
            return "content_filter"
        if self._calls:
            return "tool_calls"
        return "refusal" if refusal else "stop"

    def _raw(self, words: str, refusal: str) -> ChatCompletion:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": words or None,
            "refusal": refusal or None,
        }
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
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
        facts: dict[str, Any] = {**self._facts, "choices": [choice], "usage": self._usage or None}
        return ChatCompletion.construct(None, object="chat.completion", **facts)


_CUT_OFF = {"length", "content_filter"}


def _usage(told: Mapping[str, Any]) -> Usage:
    read = object_of(told.get("prompt_tokens_details"))
    written = object_of(told.get("completion_tokens_details"))
    return Usage(
        requests=1,
        input_tokens=count(told.get("prompt_tokens")),
        output_tokens=count(told.get("completion_tokens")),
        cached_input_tokens=count(read.get("cached_tokens"))
        or count(told.get("prompt_cache_hit_tokens")),
        reasoning_tokens=count(written.get("reasoning_tokens")),
    )
