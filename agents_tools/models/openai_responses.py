"""Models of OpenAI over its Responses API."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from agents_tools.errors import UserValueError
from agents_tools.events import RawResponseStreamEvent
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
from agents_tools.models._common import Offer, Offers, count, merged, shown_as_text, text
from agents_tools.models._openai import (
    Asked,
    Endpoint,
    ask,
    attribute,
    broken_off,
    data_url,
    file_name,
    new_call_id,
    object_of,
    safe_name,
    short_id,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai import AsyncOpenAI

    from agents_tools.events import Emit
    from agents_tools.hosted import HostedTool
    from agents_tools.items import CallKind
    from agents_tools.model import FinishReason, ModelRequest

__all__ = ["OpenAIResponsesModel", "load"]

_KEY = "openai"
"""Where an item's `provider_data` holds what only this API understands."""

_SEARCH = {"type": "tool_search"}

_OPTIONAL = {"include": r"encrypted.?content|\binclude\b"}
"""Fields that some models refuse: those that do not reason have nothing to encrypt."""


def load(name: str, **options: Any) -> OpenAIResponsesModel:
    """Give the model of a name, such as `gpt-5`."""
    return OpenAIResponsesModel(name, **options)


class OpenAIResponsesModel:
    """A model behind the Responses API.

    Nothing is kept at the provider between the turns: requests say `store=False` and carry the
    whole conversation, reasoning in its encrypted form included.

    Args:
        name: The model, such as `gpt-5`.
        client: A client to use in place of one of our own; it belongs to one event loop.
        base_url: The address of the API; `OPENAI_BASE_URL`, or OpenAI's own, if not given.
        api_key: The key; `OPENAI_API_KEY` if not given.
    """

    provider: ClassVar[str] = "openai_responses"

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
        self._offers = Offers(self.provider, _hosted, _SEARCH)
        self._dropped: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAIResponsesModel({self.name!r})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer; see `Model.respond`."""
        offer = self._offers.of(request.tools)
        body = _body(request, offer)
        client = await self._endpoint.client()
        asked = Asked(
            model=self.name,
            url=str(client.base_url),
            key=client.api_key,
            offer=offer,
            elsewhere="Servers that only know chat completions are reached as 'openai-chat/…'.",
        )
        answer = _Answer(request, emit, asked)
        await ask(
            functools.partial(client.responses.create, model=self.name, stream=True),
            body,
            answer,
            asked,
            settings=request.settings,
            optional=_OPTIONAL,
            dropped=self._dropped,
        )
        return answer.response()


def _hosted(tool: HostedTool) -> dict[str, Any]:
    return dict(tool.to_responses())


# --- the request


def _body(request: ModelRequest, offer: Offer) -> dict[str, Any]:
    settings = request.settings
    if settings.stop:
        raise UserValueError(
            "ModelSettings(stop=...): the Responses API knows no texts to stop at. Leave it out, "
            "or reach the model as 'openai-chat/…'."
        )
    stored = bool((settings.extra_body or {}).get("store"))
    body: dict[str, Any] = {
        "input": _input(request.input, stored=stored),
        "store": False,
        "include": ["reasoning.encrypted_content", *_included(request)],
    }
    if request.instructions:
        body["instructions"] = request.instructions
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
        body["max_output_tokens"] = settings.max_tokens
    if settings.reasoning_effort is not None:
        body["reasoning"] = {"effort": settings.reasoning_effort}
    if request.output is not None:
        form = request.output
        body["text"] = {
            "format": {
                "type": "json_schema",
                "name": safe_name(form.name),
                "schema": dict(form.schema),
                "strict": form.strict,
            }
        }
    return merged(body, settings.extra_body)


def _included(request: ModelRequest) -> list[str]:
    """Give what hosted tools want to have in the answer, each once."""
    asked = (name for tool in request.tools for name in getattr(tool, "include", ()))
    return list(dict.fromkeys(asked))


def _tool_choice(chosen: str | None, offer: Offer) -> Any:
    if chosen is None or chosen in {"auto", "required", "none"}:
        return chosen if offer.wire else None
    if chosen not in offer.names:
        known = ", ".join(offer.names) or "none"
        raise UserValueError(
            f"ModelSettings(tool_choice={chosen!r}): there is no such tool to call. Choose auto, "
            f"required, none, or one of the tools: {known}."
        )
    told = offer.wire[offer.names.index(chosen)]
    match told["type"]:
        case "function":
            return {"type": "function", "name": chosen}
        case "mcp":
            return {"type": "mcp", "server_label": told.get("server_label", chosen)}
        case kind:
            return {"type": kind}


def _input(items: Sequence[Item], *, stored: bool) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    calls: dict[str, ToolCallItem] = {}
    for index, item in enumerate(items):
        match item:
            case MessageInputItem():
                content = _content(item.content, f"input[{index}].content")
                out.append({"role": item.role, "content": content})
            case MessageOutputItem():
                out.append(_message(item))
            case ReasoningItem():
                out.extend(_reasoning(item, stored=stored))
            case ToolCallItem():
                calls[item.call_id] = item
                out.extend(_call(item))
            case ToolCallOutputItem():
                out.extend(_call_output(item, calls.get(item.call_id)))
    return out


def _own(item: MessageOutputItem | ReasoningItem | ToolCallItem) -> dict[str, Any] | None:
    data = (item.provider_data or {}).get(_KEY)
    return dict(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else None


def _message(item: MessageOutputItem) -> dict[str, Any]:
    own = _own(item)
    if own is None or not own.get("id"):
        # Ids of other providers are refused, and a message without one is written like this.
        return {"role": "assistant", "content": item.text if item.refusal is None else item.refusal}
    part: dict[str, Any] = (
        {"type": "output_text", "text": item.text, "annotations": []}
        if item.refusal is None
        else {"type": "refusal", "refusal": item.refusal}
    )
    kept = {name: own[name] for name in ("id", "phase") if own.get(name) is not None}
    return {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **kept,
    }


def _reasoning(item: ReasoningItem, *, stored: bool) -> list[dict[str, Any]]:
    own = _own(item)
    # Without its content the provider would look for the item among those that it has stored.
    if own is None or not (own.get("encrypted_content") or own.get("content") or stored):
        return []
    return [own]


def _call(item: ToolCallItem) -> list[dict[str, Any]]:
    own = _own(item)
    if item.kind == "hosted":
        return [] if own is None else [own]
    call_id = short_id(item.call_id, _LONGEST_ID)
    if item.kind == "function" or own is None:
        call = {
            "type": "function_call",
            "call_id": call_id,
            "name": safe_name(item.name),
            "arguments": item.arguments,
        }
        return [{**(own or {}), **call}]
    if item.kind == "mcp_approval":
        return [own]
    return [{**own, "call_id": call_id}]


_LONGEST_ID = 64


def _call_output(item: ToolCallOutputItem, call: ToolCallItem | None) -> list[dict[str, Any]]:
    own = None if call is None else _own(call)
    call_id = short_id(item.call_id, _LONGEST_ID)
    match item.kind:
        case "hosted":
            return []
        case "local_shell" if own is not None:
            said = _as_text(item.output)
            return [
                {
                    "type": "local_shell_call_output",
                    "id": call_id,
                    "call_id": call_id,
                    "output": said,
                }
            ]
        case "computer" if own is not None:
            return _computer_output(item, call_id, own)
        case "mcp_approval" if own is not None:
            return [_approval(item, own)]
        case _:
            return [
                {
                    "type": "function_call_output",
                    "call_id": call_id,
                    "output": _content(item.output, None),
                }
            ]


def _computer_output(
    item: ToolCallOutputItem, call_id: str, own: Mapping[str, Any]
) -> list[dict[str, Any]]:
    blocks = [] if isinstance(item.output, str) else item.output
    image = next((block for block in blocks if isinstance(block, ToolOutputImage)), None)
    output: dict[str, Any] = {
        "type": "computer_call_output",
        "call_id": call_id,
        "output": {"type": "computer_screenshot", **_picture(image or _BLANK)},
    }
    checks: object = own.get("pending_safety_checks")
    if checks and item.status == "ok":
        output["acknowledged_safety_checks"] = checks
    if image is not None:
        return [output]
    # The API takes a picture and nothing else: what was said in its place follows as a message.
    said = f"There is no screenshot for {call_id}. {_as_text(item.output)}".rstrip()
    return [output, {"role": "user", "content": said}]


_BLANK = ToolOutputImage(
    data=base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
)
"""One transparent pixel."""


def _approval(item: ToolCallOutputItem, own: Mapping[str, Any]) -> dict[str, Any]:
    said = _as_text(item.output).strip()
    response: dict[str, Any] = {
        "type": "mcp_approval_response",
        "approval_request_id": own.get("id", item.call_id),
        "approve": item.status == "ok" and said.lower() == "approve",
    }
    if said.lower() != "approve" and said:
        response["reason"] = said
    return response


def _as_text(output: ToolOutput) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(
        block.text if isinstance(block, ToolOutputText) else shown_as_text(block)
        for block in output
    )


def _content(content: str | list[ContentBlock], at: str | None) -> str | list[dict[str, Any]]:
    """Write a content; `at` is where the user wrote it, `None` for what a tool has answered."""
    if isinstance(content, str):
        return content
    parts = [
        _part(block, None if at is None else f"{at}[{index}]")
        for index, block in enumerate(content)
    ]
    return parts or ""


def _part(block: ContentBlock, at: str | None) -> dict[str, Any]:
    match block:
        case ToolOutputText():
            return {"type": "input_text", "text": block.text}
        case ToolOutputImage():
            return {"type": "input_image", **_picture(block), "detail": block.detail or "auto"}
        case ToolOutputFileContent() if block.file_id is not None:
            return {"type": "input_file", "file_id": block.file_id}
        case ToolOutputFileContent() if block.url is not None:
            return {"type": "input_file", "file_url": block.url}
        case ToolOutputFileContent() if (name := file_name(block)) is not None:
            return {"type": "input_file", "filename": name, "file_data": data_url(block)}
        case ToolOutputFileContent():
            return {"type": "input_text", "text": shown_as_text(block)}
        case ToolOutputAudio() if at is None:
            return {"type": "input_text", "text": shown_as_text(block)}
        case ToolOutputAudio():
            raise UserValueError(
                f"{at}: the Responses API takes no sound. Give it to a model that hears, reached "
                "as 'openai-chat/…', or give its transcript."
            )


def _picture(block: ToolOutputImage) -> dict[str, Any]:
    if block.file_id is not None:
        return {"file_id": block.file_id}
    return {"image_url": block.url if block.url is not None else data_url(block)}


# --- the answer


class _Answer:
    """Puts an answer together from the events of its stream."""

    def __init__(self, request: ModelRequest, emit: Emit, asked: Asked) -> None:
        self.whole = False
        self._emit = emit
        self._on_call = request.on_call
        self._asked = asked
        self._items: dict[int, Item] = {}
        self._call_ids: dict[object, str] = {}
        self._final: Any = None
        self._cut_off = False

    def take(self, event: Any) -> None:
        kind: object = attribute(event, "type")
        match kind:
            case "response.output_text.delta":
                self._emit(text_delta(text(attribute(event, "delta")), _id(event)))
            case "response.refusal.delta":
                self._emit(refusal_delta(text(attribute(event, "delta")), _id(event)))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._emit(reasoning_delta(text(attribute(event, "delta")), _id(event)))
            case "response.function_call_arguments.delta":
                self._say_arguments(event)
            case "response.output_item.added":
                self._begin(event)
            case "response.output_item.done":
                raw = object_of(attribute(event, "item"))
                self._add(_place(event, self._items), raw, self._known(event))
            case "response.completed" | "response.incomplete":
                self._finish(attribute(event, "response"), whole=kind == "response.completed")
            case "response.failed":
                error = attribute(event, "response", "error")
                raise broken_off(attribute(error, "code"), attribute(error, "message"), self._asked)
            case "error":
                raise broken_off(attribute(event, "code"), attribute(event, "message"), self._asked)
            case str() if kind.startswith(_PROGRESS):
                self._emit(RawResponseStreamEvent(object_of(event)))
            case _:
                pass

    def _begin(self, event: Any) -> None:
        item = attribute(event, "item")
        match attribute(item, "type"):
            case "message":
                self._emit(message_started(_id(item, "id")))
            case "function_call":
                call_id = text(attribute(item, "call_id")) or new_call_id()
                for key in _keys(event):
                    self._call_ids[key] = call_id
                self._emit(call_started(call_id, text(attribute(item, "name"))))
            case "reasoning" | None:
                pass
            case _:
                self._emit(RawResponseStreamEvent(object_of(event)))

    def _known(self, event: Any) -> str | None:
        """Give the id of the call that an event is about, as it was told when the call began."""
        known = (self._call_ids.get(key) for key in _keys(event))
        return next((call_id for call_id in known if call_id is not None), None)

    def _say_arguments(self, event: Any) -> None:
        call_id = self._known(event)
        if call_id is not None:
            self._emit(call_delta(call_id, text(attribute(event, "delta"))))

    def _add(
        self, place: int, raw: dict[str, Any], call_id: str | None, *, whole: bool = True
    ) -> None:
        if place in self._items or not raw:
            return
        item = _item(raw, call_id, self._asked.offer)
        self._items[place] = item
        if (
            isinstance(item, ToolCallItem)
            and item.kind == "function"
            and self._on_call is not None
            and whole
            and raw.get("status") != "incomplete"
        ):
            self._on_call(item)

    def _finish(self, final: Any, *, whole: bool) -> None:
        self._final = final
        self._cut_off = not whole
        # Some servers tell items only here, and some only before.
        told = attribute(final, "output")
        for place, raw in enumerate(cast("list[Any]", told) if isinstance(told, list) else ()):
            call_id = self._call_ids.get(("index", place))
            self._add(place, object_of(raw), call_id, whole=whole)
        self.whole = True

    def response(self) -> ModelResponse:
        """Give the answer."""
        items = [item for _, item in sorted(self._items.items())]
        final = self._final
        return ModelResponse(
            items=items,
            usage=_usage(object_of(attribute(final, "usage"))),
            finish_reason=self._reason(items),
            response_id=text(attribute(final, "id")) or None,
            model=text(attribute(final, "model")) or None,
            raw=final,
        )

    def _reason(self, items: Sequence[Item]) -> FinishReason:
        if self._cut_off:
            why = attribute(self._final, "incomplete_details", "reason")
            return "content_filter" if why == "content_filter" else "length"
        if any(isinstance(item, ToolCallItem) and item.needs_answer for item in items):
            return "tool_calls"
        if any(isinstance(item, MessageOutputItem) and item.refusal for item in items):
            return "refusal"
        return "stop"


_PROGRESS = (
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.mcp_",
)
"""Events about what the provider runs itself: they are shown as they are."""


def _id(value: Any, name: str = "item_id") -> str | None:
    return text(attribute(value, name)) or None


def _keys(event: Any) -> list[tuple[str, object]]:
    keys = [
        ("index", attribute(event, "output_index")),
        ("id", attribute(event, "item_id")),
        ("id", attribute(event, "item", "id")),
    ]
    return [key for key in keys if key[1] is not None]


def _place(event: Any, items: Mapping[int, Item]) -> int:
    place = attribute(event, "output_index")
    return place if isinstance(place, int) and place >= 0 else len(items)


def _usage(told: Mapping[str, Any]) -> Usage:
    return Usage(
        requests=1,
        input_tokens=count(told.get("input_tokens")),
        output_tokens=count(told.get("output_tokens")),
        cached_input_tokens=count(object_of(told.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count(
            object_of(told.get("output_tokens_details")).get("reasoning_tokens")
        ),
    )


def _item(raw: dict[str, Any], call_id: str | None, offer: Offer) -> Item:
    match raw.get("type"):
        case "message":
            return _read_message(raw)
        case "reasoning":
            return _read_reasoning(raw)
        case "function_call":
            return _read_call(raw, call_id)
        case kind:
            return _read_other_call(raw, text(kind) or "unknown", offer)


def _read_message(raw: Mapping[str, Any]) -> MessageOutputItem:
    texts: list[str] = []
    refusals: list[str] = []
    annotations: list[Any] = []
    for part in _objects(raw.get("content")):
        texts.append(text(part.get("text")))
        refusals.append(text(part.get("refusal")))
        annotations.extend(_objects(part.get("annotations")))
    refusal = "".join(refusals)
    own = {name: raw[name] for name in ("id", "phase") if raw.get(name) is not None}
    if annotations:
        own["annotations"] = annotations
    return MessageOutputItem(
        text="" if refusal else "".join(texts),
        refusal=refusal or None,
        id=text(raw.get("id")) or None,
        provider_data={_KEY: own} if own else None,
    )


def _read_reasoning(raw: dict[str, Any]) -> ReasoningItem:
    parts = _objects(raw.get("summary")) or _objects(raw.get("content"))
    kept = {name: value for name, value in raw.items() if value is not None and name != "status"}
    kept.setdefault("summary", [])
    return ReasoningItem(
        text="\n\n".join(text(part.get("text")) for part in parts),
        id=text(raw.get("id")) or None,
        provider_data={_KEY: kept},
    )


def _read_call(raw: Mapping[str, Any], call_id: str | None) -> ToolCallItem:
    ours = {"type", "call_id", "name", "arguments", "status"}
    own = {name: value for name, value in raw.items() if value is not None and name not in ours}
    return ToolCallItem(
        call_id=text(raw.get("call_id")) or call_id or new_call_id(),
        name=text(raw.get("name")),
        arguments=text(raw.get("arguments")) or "{}",
        id=text(raw.get("id")) or None,
        provider_data={_KEY: own} if own else None,
    )


def _read_other_call(raw: dict[str, Any], type_: str, offer: Offer) -> ToolCallItem:
    """Read a call of a hosted tool: one that runs on this machine, or one that has run there."""
    item_id = text(raw.get("id"))
    call_id = text(raw.get("call_id")) or item_id or new_call_id()
    kind: CallKind
    match type_:
        case "local_shell_call":
            kind, name = "local_shell", _hosted_name(offer, "local_shell")
            arguments = _json(raw.get("action"))
        case "computer_call":
            kind, name = "computer", _hosted_name(offer, "computer_use_preview", "computer")
            action = object_of(raw.get("action")) or {"actions": raw.get("actions")}
            checks = raw.get("pending_safety_checks")
            arguments = _json({**action, **({"pending_safety_checks": checks} if checks else {})})
        case "mcp_approval_request":
            kind, name, call_id = "mcp_approval", text(raw.get("server_label")), item_id
            arguments = _json({key: raw.get(key) for key in ("name", "arguments", "server_label")})
        case _:
            kind, name = "hosted", type_
            arguments = text(raw.get("arguments")) or _json(raw.get("action"))
    return ToolCallItem(
        call_id=call_id,
        name=name,
        arguments=arguments,
        kind=kind,
        id=item_id or None,
        provider_data={_KEY: raw},
    )


def _hosted_name(offer: Offer, *types: str) -> str:
    """Give the name of the tool that is told under one of the types."""
    told = zip(offer.names, offer.wire, strict=True)
    return next((name for name, wire in told if wire.get("type") in types), types[0])


def _json(value: object) -> str:
    return "{}" if value is None else json.dumps(value, ensure_ascii=False)


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [object_of(part) for part in cast("list[Any]", value) if isinstance(part, Mapping)]
