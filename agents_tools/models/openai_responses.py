"""Models of OpenAI's Responses API."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from agents_tools._package import missing_extra

try:
    from openai.types.responses import ResponseCompletedEvent
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
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import ModelError, UserValueError
from agents_tools.events.kinds import RawResponseStreamEvent
from agents_tools.models._http import (
    RefusedReasoning,
    ToolDefinitionCache,
    ToolDefinitions,
    block_as_text,
    count,
    merge_extra,
    text,
)
from agents_tools.models._openai import (
    Endpoint,
    OpenAIRequest,
    attribute,
    data_url,
    file_name,
    new_call_id,
    object_of,
    safe_name,
    short_id,
    stream_error,
    stream_response,
)
from agents_tools.wire.hosted import hosted_definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai import AsyncOpenAI

    from agents_tools.agents.model import FinishReason, ModelRequest
    from agents_tools.content.items import CallKind
    from agents_tools.events.base import Emit

__all__ = ["OpenAIResponsesModel"]

_KEY = "openai"
"""The key in `provider_data` of an item for data that only this API understands."""

_SEARCH = {"type": "tool_search"}

_OPTIONAL = {"include": r"encrypted.?content is not|\binclude\b"}
"""Fields that some models reject: models without reasoning have nothing to encrypt."""


def load(name: str, **options: Any) -> OpenAIResponsesModel:
    """Return the model with a name, such as `gpt-5`."""
    return OpenAIResponsesModel(name, **options)


class OpenAIResponsesModel:
    """A model of OpenAI's Responses API.

    The provider stores nothing between the turns: requests set `store=False` and contain the whole
    conversation, including encrypted reasoning.

    Args:
        name: The name of the model, such as `gpt-5`.
        client: The client to use, which belongs to one event loop; by default, one is created per
            event loop.
        base_url: The URL of the API; by default `OPENAI_BASE_URL`, or OpenAI's own URL.
        api_key: The key; `OPENAI_API_KEY` by default.
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
        hosted = functools.partial(hosted_definition, method="to_responses", model=name)
        self._definition_cache = ToolDefinitionCache(self.provider, hosted, _SEARCH)
        self._dropped: set[str] = set()
        self._refused = RefusedReasoning()

    def __repr__(self) -> str:
        return f"OpenAIResponsesModel({self.name!r})"

    @property
    def base_url(self) -> str:
        """The URL of the API."""
        return self._endpoint.url

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send the request and return the response; see `Model.respond`."""
        definitions = self._definition_cache.get(request.tools)
        body = _body(request, definitions)
        client = await self._endpoint.client()
        target = OpenAIRequest(
            model=self.name,
            url=str(client.base_url),
            key=client.api_key,
            definitions=definitions,
            not_found_remedy="Use 'openai-chat/…' for servers without the Responses API.",
        )
        answer = _ResponsesResponse(request, emit, target)
        send = functools.partial(
            stream_response,
            functools.partial(client.responses.create, model=self.name, stream=True),
            answer=answer,
            target=target,
            settings=request.settings,
            optional=_OPTIONAL,
            dropped=self._dropped,
        )
        items: list[dict[str, Any]] = body["input"]
        try:
            await send(body={**body, "input": self._readable(items)})
        except ModelError as error:
            reasoning = [one for item in self._readable(items) if (one := _encrypted_text(item))]
            code = getattr(error.__cause__, "code", None)
            if code != "invalid_encrypted_content" or not reasoning:
                raise
            # Only the account whose model wrote it can read encrypted reasoning.
            self._refused.update(reasoning)
            await send(body={**body, "input": self._readable(items)})
        return answer.response()

    def _readable(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one for one in items if _encrypted_text(one) not in self._refused]


# --- the request


def _body(request: ModelRequest, definitions: ToolDefinitions) -> dict[str, Any]:
    settings = request.settings
    if settings.stop:
        raise UserValueError(
            "ModelSettings(stop=...) is not supported by the Responses API. Remove it, or use the "
            "model as 'openai-chat/…'."
        )
    stored = bool((settings.extra_body or {}).get("store"))
    body: dict[str, Any] = {
        "input": _input(request.input, stored=stored),
        "store": False,
        "include": ["reasoning.encrypted_content", *_include_values(request)],
    }
    if request.instructions:
        body["instructions"] = request.instructions
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
    return merge_extra(body, settings.extra_body)


def _encrypted_text(item: Mapping[str, Any]) -> str:
    """Return the encrypted text of reasoning, or its id if the provider stores it."""
    if item.get("type") != "reasoning":
        return ""
    return text(item.get("encrypted_content")) or text(item.get("id"))


def _include_values(request: ModelRequest) -> list[str]:
    """Return the extra output that hosted tools request, without duplicates."""
    names = (name for tool in request.tools for name in getattr(tool, "include", ()))
    return list(dict.fromkeys(names))


def _tool_choice(chosen: str | None, definitions: ToolDefinitions) -> Any:
    if chosen is None or chosen in {"auto", "required", "none"}:
        return chosen if definitions.wire else None
    if chosen not in definitions.names:
        known = ", ".join(definitions.names) or "none"
        raise UserValueError(
            f"ModelSettings(tool_choice={chosen!r}) is not a known tool: expected auto, required, "
            f"none, or one of the tools: {known}."
        )
    fields = definitions.wire[definitions.names.index(chosen)]
    match fields["type"]:
        case "function":
            return {"type": "function", "name": chosen}
        case "mcp":
            return {"type": "mcp", "server_label": fields.get("server_label", chosen)}
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


def _stored_item(item: MessageOutputItem | ReasoningItem | ToolCallItem) -> dict[str, Any] | None:
    data = (item.provider_data or {}).get(_KEY)
    return dict(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else None


def _message(item: MessageOutputItem) -> dict[str, Any]:
    stored = _stored_item(item)
    if stored is None or not stored.get("id"):
        # The API rejects ids of other providers, and accepts this form without an id.
        return {"role": "assistant", "content": item.text if item.refusal is None else item.refusal}
    part: dict[str, Any] = (
        {"type": "output_text", "text": item.text, "annotations": []}
        if item.refusal is None
        else {"type": "refusal", "refusal": item.refusal}
    )
    extra = {name: stored[name] for name in ("id", "phase") if stored.get(name) is not None}
    return {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **extra,
    }


def _reasoning(item: ReasoningItem, *, stored: bool) -> list[dict[str, Any]]:
    raw = _stored_item(item)
    # The provider searches its stored items for an item without content.
    if raw is None or not (raw.get("encrypted_content") or raw.get("content") or stored):
        return []
    return [raw]


def _call(item: ToolCallItem) -> list[dict[str, Any]]:
    stored = _stored_item(item)
    if item.kind == "hosted":
        return [] if stored is None else [stored]
    call_id = short_id(item.call_id, _MAX_ID_LENGTH)
    if item.kind == "function" or stored is None:
        call = {
            "type": "function_call",
            "call_id": call_id,
            "name": safe_name(item.name),
            "arguments": item.arguments,
        }
        return [{**(stored or {}), **call}]
    if item.kind == "mcp_approval":
        return [stored]
    return [{**stored, "call_id": call_id}]


_MAX_ID_LENGTH = 64


def _call_output(item: ToolCallOutputItem, call: ToolCallItem | None) -> list[dict[str, Any]]:
    stored = None if call is None else _stored_item(call)
    call_id = short_id(item.call_id, _MAX_ID_LENGTH)
    match item.kind:
        case "hosted":
            return []
        case "local_shell" if stored is not None:
            texts = _as_text(item.output)
            return [
                {
                    "type": "local_shell_call_output",
                    "id": call_id,
                    "call_id": call_id,
                    "output": texts,
                }
            ]
        case "computer" if stored is not None:
            return _computer_output(item, call_id, stored)
        case "mcp_approval" if stored is not None:
            return [_approval(item, stored)]
        case _:
            return [
                {
                    "type": "function_call_output",
                    "call_id": call_id,
                    "output": _content(item.output, None),
                }
            ]


def _computer_output(
    item: ToolCallOutputItem, call_id: str, stored: Mapping[str, Any]
) -> list[dict[str, Any]]:
    blocks = [] if isinstance(item.output, str) else item.output
    image = next((block for block in blocks if isinstance(block, ToolOutputImage)), None)
    output: dict[str, Any] = {
        "type": "computer_call_output",
        "call_id": call_id,
        "output": {"type": "computer_screenshot", **_picture(image or _BLANK)},
    }
    checks: object = stored.get("pending_safety_checks")
    if checks and item.status == "ok":
        output["acknowledged_safety_checks"] = checks
    if image is not None:
        return [output]
    # The API only accepts an image here: a text result follows as a message.
    texts = f"There is no screenshot for {call_id}. {_as_text(item.output)}".rstrip()
    return [output, {"role": "user", "content": texts}]


_BLANK = ToolOutputImage(
    data=base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
)
"""One transparent pixel."""


def _approval(item: ToolCallOutputItem, stored: Mapping[str, Any]) -> dict[str, Any]:
    texts = _as_text(item.output).strip()
    response: dict[str, Any] = {
        "type": "mcp_approval_response",
        "approval_request_id": stored.get("id", item.call_id),
        "approve": item.status == "ok" and texts.lower() == "approve",
    }
    if texts.lower() != "approve" and texts:
        response["reason"] = texts
    return response


def _as_text(output: ToolOutput) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(
        block.text if isinstance(block, ToolOutputText) else block_as_text(block)
        for block in output
    )


def _content(content: str | list[ContentBlock], path: str | None) -> str | list[dict[str, Any]]:
    """Convert content; `path` is its position in the input, `None` for tool output."""
    if isinstance(content, str):
        return content
    parts = [
        _part(block, None if path is None else f"{path}[{index}]")
        for index, block in enumerate(content)
    ]
    return parts or ""


def _part(block: ContentBlock, path: str | None) -> dict[str, Any]:
    match block:
        case ToolOutputText():
            return {"type": "input_text", "text": block.text}
        case ToolOutputImage():
            return {"type": "input_image", **_picture(block), "detail": block.detail or "auto"}
        case ToolOutputFileContent() if block.file_id is not None:
            return {"type": "input_file", "file_id": block.file_id, **_detail(block)}
        case ToolOutputFileContent() if block.url is not None:
            return {"type": "input_file", "file_url": block.url, **_detail(block)}
        case ToolOutputFileContent() if (name := file_name(block)) is not None:
            content = {"filename": name, "file_data": data_url(block)}
            return {"type": "input_file", **content, **_detail(block)}
        case ToolOutputFileContent():
            return {"type": "input_text", "text": block_as_text(block)}
        case ToolOutputAudio() if path is None:
            return {"type": "input_text", "text": block_as_text(block)}
        case ToolOutputAudio():
            raise UserValueError(
                f"{path}: the Responses API does not accept audio. Use a model with audio input as "
                "'openai-chat/…', or send a transcript."
            )


def _detail(block: ToolOutputFileContent) -> dict[str, str]:
    return {} if block.detail is None else {"detail": block.detail}


def _picture(block: ToolOutputImage) -> dict[str, Any]:
    if block.file_id is not None:
        return {"file_id": block.file_id}
    return {"image_url": block.url if block.url is not None else data_url(block)}


# --- the answer


class _ResponsesResponse:
    """Builds a response from the events of its stream."""

    def __init__(self, request: ModelRequest, emit: Emit, target: OpenAIRequest) -> None:
        self.is_complete = False
        self._emit = emit
        self._on_call = request.on_call
        self._target = target
        self._items: dict[int, Item] = {}
        self._call_ids: dict[object, str] = {}
        self._final: Any = None
        self._cut_off = False

    def process(self, event: Any) -> None:
        kind: object = attribute(event, "type")
        match kind:
            case "response.output_text.delta":
                self._emit(text_delta(text(attribute(event, "delta")), _id(event)))
            case "response.refusal.delta":
                self._emit(refusal_delta(text(attribute(event, "delta")), _id(event)))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._emit(reasoning_delta(text(attribute(event, "delta")), _id(event)))
            case "response.reasoning_summary_part.added" if attribute(event, "summary_index"):
                self._emit(reasoning_delta("\n\n", _id(event)))
            case "response.function_call_arguments.delta":
                self._add_arguments(event)
            case "response.output_item.added":
                self._start_call(event)
            case "response.output_item.done":
                raw = object_of(attribute(event, "item"))
                self._add(_position(event, self._items), raw, self._known_call_id(event))
            case "response.completed" | "response.incomplete":
                final = attribute(event, "response")
                is_incomplete = attribute(final, "status") == "incomplete"
                self._finish(final, whole=kind == "response.completed" and not is_incomplete)
            case "response.failed":
                error = attribute(event, "response", "error")
                raise stream_error(
                    attribute(error, "code"), attribute(error, "message"), self._target
                )
            case "error":
                raise stream_error(
                    attribute(event, "code"), attribute(event, "message"), self._target
                )
            case str() if kind.startswith(_PROGRESS):
                self._emit(RawResponseStreamEvent(object_of(event)))
            case _:
                pass

    def process_body(self, body: dict[str, Any]) -> None:
        event = f"response.{body.get('status')}"
        self.process(ResponseCompletedEvent.construct(None, type=event, response=body))

    def _start_call(self, event: Any) -> None:
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

    def _known_call_id(self, event: Any) -> str | None:
        """Return the id that was emitted at the start of the call that an event belongs to."""
        known = (self._call_ids.get(key) for key in _keys(event))
        return next((call_id for call_id in known if call_id is not None), None)

    def _add_arguments(self, event: Any) -> None:
        call_id = self._known_call_id(event)
        if call_id is not None:
            self._emit(call_delta(call_id, text(attribute(event, "delta"))))

    def _add(
        self, position: int, raw: dict[str, Any], call_id: str | None, *, whole: bool = True
    ) -> None:
        if position in self._items or not raw:
            return
        item = _item(raw, call_id, self._target.definitions)
        self._items[position] = item
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
        # Some servers send items only in this event, others only before it.
        fields = attribute(final, "output")
        for position, raw in enumerate(
            cast("list[Any]", fields) if isinstance(fields, list) else ()
        ):
            call_id = self._call_ids.get(("index", position))
            self._add(position, object_of(raw), call_id, whole=whole)
        self.is_complete = True

    def response(self) -> ModelResponse:
        """Return the complete response."""
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
"""Events about tools that the provider runs; they are emitted unchanged."""


def _id(value: Any, name: str = "item_id") -> str | None:
    return text(attribute(value, name)) or None


def _keys(event: Any) -> list[tuple[str, object]]:
    keys = [
        ("index", attribute(event, "output_index")),
        ("id", attribute(event, "item_id")),
        ("id", attribute(event, "item", "id")),
    ]
    return [key for key in keys if key[1] is not None]


def _position(event: Any, items: Mapping[int, Item]) -> int:
    position = attribute(event, "output_index")
    return position if isinstance(position, int) and position >= 0 else len(items)


def _usage(fields: Mapping[str, Any]) -> Usage:
    input_details = object_of(fields.get("input_tokens_details"))
    return Usage(
        requests=1,
        input_tokens=count(fields.get("input_tokens")),
        output_tokens=count(fields.get("output_tokens")),
        cached_input_tokens=count(input_details.get("cached_tokens")),
        cache_write_tokens=count(input_details.get("cache_write_tokens")),
        reasoning_tokens=count(
            object_of(fields.get("output_tokens_details")).get("reasoning_tokens")
        ),
    )


def _item(raw: dict[str, Any], call_id: str | None, definitions: ToolDefinitions) -> Item:
    match raw.get("type"):
        case "message":
            return _read_message(raw)
        case "reasoning":
            return _read_reasoning(raw)
        case "function_call":
            return _read_call(raw, call_id)
        case kind:
            return _read_other_call(raw, text(kind) or "unknown", definitions)


def _read_message(raw: Mapping[str, Any]) -> MessageOutputItem:
    texts: list[str] = []
    refusals: list[str] = []
    annotations: list[Any] = []
    for part in _objects(raw.get("content")):
        texts.append(text(part.get("text")))
        refusals.append(text(part.get("refusal")))
        annotations.extend(_objects(part.get("annotations")))
    refusal = "".join(refusals)
    stored = {name: raw[name] for name in ("id", "phase") if raw.get(name) is not None}
    if annotations:
        stored["annotations"] = annotations
    return MessageOutputItem(
        text="" if refusal else "".join(texts),
        refusal=refusal or None,
        id=text(raw.get("id")) or None,
        provider_data={_KEY: stored} if stored else None,
    )


def _read_reasoning(raw: dict[str, Any]) -> ReasoningItem:
    parts = _objects(raw.get("summary")) or _objects(raw.get("content"))
    extra = {name: value for name, value in raw.items() if value is not None and name != "status"}
    extra.setdefault("summary", [])
    return ReasoningItem(
        text="\n\n".join(text(part.get("text")) for part in parts),
        id=text(raw.get("id")) or None,
        provider_data={_KEY: extra},
    )


def _read_call(raw: Mapping[str, Any], call_id: str | None) -> ToolCallItem:
    item_fields = {"type", "call_id", "name", "arguments", "status"}
    stored = {
        name: value for name, value in raw.items() if value is not None and name not in item_fields
    }
    return ToolCallItem(
        call_id=text(raw.get("call_id")) or call_id or new_call_id(),
        name=text(raw.get("name")),
        arguments=text(raw.get("arguments")) or "{}",
        id=text(raw.get("id")) or None,
        provider_data={_KEY: stored} if stored else None,
    )


def _read_other_call(raw: dict[str, Any], type_: str, definitions: ToolDefinitions) -> ToolCallItem:
    """Read a call of a hosted tool: to run on this machine, or one that the provider has run."""
    item_id = text(raw.get("id"))
    call_id = text(raw.get("call_id")) or item_id or new_call_id()
    kind: CallKind
    match type_:
        case "local_shell_call":
            kind, name = "local_shell", _hosted_name(definitions, "local_shell")
            arguments = _json(raw.get("action"))
        case "computer_call":
            kind, name = "computer", _hosted_name(definitions, "computer_use_preview", "computer")
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


def _hosted_name(definitions: ToolDefinitions, *types: str) -> str:
    """Return the name of the tool whose definition has one of the types."""
    fields = zip(definitions.names, definitions.wire, strict=True)
    return next((name for name, wire in fields if wire.get("type") in types), types[0])


def _json(value: object) -> str:
    return "{}" if value is None else json.dumps(value, ensure_ascii=False)


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [object_of(part) for part in cast("list[Any]", value) if isinstance(part, Mapping)]
