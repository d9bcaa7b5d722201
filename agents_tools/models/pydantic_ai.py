"""Models of every provider that Pydantic AI reaches, through its direct interface."""

from __future__ import annotations

import json
import uuid
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import exceptions, messages as wire
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as ForeignModel, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

from agents_tools._secrets import mask
from agents_tools._text import shorten
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
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
    text_delta,
)
from agents_tools.models._clients import client_here
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputText,
)
from agents_tools.usage import Usage
from agents_tools.wire.mcp import to_mcp

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.events import Emit
    from agents_tools.items import Item
    from agents_tools.model import FinishReason, ModelRequest, ModelSettings

__all__ = ["PydanticAIModel", "load"]

_KEY = "pydantic-ai"
_LONGEST_REASON = 500
_BUSY = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


def load(name: str) -> PydanticAIModel:
    """Give the model of a name such as `groq:llama-3.3-70b-versatile`."""
    return PydanticAIModel(name)


class PydanticAIModel:
    """A model of Pydantic AI.

    Args:
        model: Its name there, `<provider>:<model>`, or the model itself, which then belongs to one
            event loop.
    """

    provider = None  # tools are told, and arguments come, as the natural schema has them

    def __init__(self, model: str | ForeignModel) -> None:
        self._given = model
        self.name = model if isinstance(model, str) else model.model_name
        self._offered: tuple[tuple[Any, ...], list[ToolDefinition]] = ((), [])

    def __repr__(self) -> str:
        return f"PydanticAIModel({self.name!r})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer; see `Model.respond`."""
        parameters = ModelRequestParameters(
            function_tools=self._tools(request.tools),
            **_form(request),
        )
        asked = _messages(request)
        settings: Any = _settings(request.settings)
        with _translated(self.name):
            model = await self._model()
            async with model_request_stream(
                model, asked, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                reader = _Reader(request, emit)
                async for event in stream:
                    reader.take(event)
                reader.finish()
                answer = stream.get()
        return reader.response(answer)

    async def _model(self) -> ForeignModel:
        if not isinstance(self._given, str):
            return self._given
        name = self._given
        held = await client_here((_KEY, name), lambda: _Held(infer_model(name)))
        return await held.ready()

    def _tools(self, tools: tuple[Any, ...]) -> list[ToolDefinition]:
        if self._offered[0] is not tools:
            self._offered = (tools, [one for one in map(self._told, tools) if one is not None])
        return self._offered[1]

    def _told(self, tool: Any) -> ToolDefinition | None:
        if not hasattr(tool, "call"):
            raise UserTypeError(
                f"The tool {tool.name!r} ({type(tool).__name__}) runs at its provider and needs "
                f"the Responses API, but the model {self.name!r} is reached through Pydantic AI. "
                "Choose a model named 'openai/…' or leave the tool out."
            )
        try:
            told = to_mcp(tool)
        except UserError as error:
            warnings.warn(f"Tool {tool.name!r} is left out: {error}", stacklevel=2)
            return None
        return ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=told["inputSchema"],
        )


class _Held:
    """A model of one event loop, entered at its first use and left as the loop ends."""

    def __init__(self, model: ForeignModel) -> None:
        self._model = model
        self._entered = False

    async def ready(self) -> ForeignModel:
        """Give the model, its connections open."""
        if not self._entered:
            self._entered = True
            await self._model.__aenter__()
        return self._model

    async def close(self) -> None:
        """Close its connections."""
        if self._entered:
            await self._model.__aexit__(None, None, None)


# --- the request


def _form(request: ModelRequest) -> dict[str, Any]:
    form = request.output
    if form is None:
        return {}
    described = OutputObjectDefinition(
        json_schema=dict(form.schema), name=form.name, strict=form.strict
    )
    return {"output_mode": "native", "output_object": described, "allow_text_output": False}


def _settings(settings: ModelSettings) -> dict[str, Any]:
    choice = settings.tool_choice
    given = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "thinking": settings.reasoning_effort,
        "stop_sequences": None if settings.stop is None else list(settings.stop),
        "timeout": settings.timeout,
        "extra_headers": settings.extra_headers and dict(settings.extra_headers),
        "extra_body": settings.extra_body and dict(settings.extra_body),
        "tool_choice": [choice] if choice not in {None, "auto", "required", "none"} else choice,
    }
    # The run asks again after what may pass; two layers that do would multiply.
    return {"max_retries": 0, **{name: one for name, one in given.items() if one is not None}}


def _messages(request: ModelRequest) -> list[wire.ModelMessage]:
    """Put the conversation into requests and responses that take turns."""
    turns: list[tuple[type[Any], list[Any]]] = []
    for item in request.input:
        kind = (
            wire.ModelRequest
            if isinstance(item, (MessageInputItem, ToolCallOutputItem))
            else wire.ModelResponse
        )
        parts = _parts(item)
        if not parts:
            continue
        if not turns or turns[-1][0] is not kind:
            turns.append((kind, []))
        turns[-1][1].extend(parts)
    if not turns or turns[-1][0] is not wire.ModelRequest:
        turns.append((wire.ModelRequest, []))
    made = [kind(parts=parts) for kind, parts in turns]
    if request.instructions:
        made[-1] = replace(made[-1], instructions=request.instructions)
    return cast("list[wire.ModelMessage]", made)


def _parts(item: Item) -> list[Any]:
    match item:
        case MessageInputItem(role="user"):
            return [wire.UserPromptPart(_content(item.content))]
        case MessageInputItem():
            return [wire.SystemPromptPart(_as_text(item.content))]
        case MessageOutputItem():
            return [wire.TextPart(item.text or item.refusal or "")]
        case ReasoningItem():
            own = (item.provider_data or {}).get(_KEY)
            return [] if own is None else [wire.ThinkingPart(content=item.text, **own)]
        case ToolCallItem():
            own = (item.provider_data or {}).get(_KEY, {})
            return [wire.ToolCallPart(item.name, item.arguments, tool_call_id=item.call_id, **own)]
        case ToolCallOutputItem():
            return _returned(item)


def _returned(item: ToolCallOutputItem) -> list[Any]:
    """Give the text of an output, and what is no text as a message that names the call."""
    said = _as_text(item.output)
    part = wire.ToolReturnPart(item.name, said, tool_call_id=item.call_id)
    blocks = [] if isinstance(item.output, str) else item.output
    rest = [block for block in blocks if not isinstance(block, ToolOutputText)]
    if not rest:
        return [part]
    content = [f"What the call {item.call_id} gave besides text:", *map(_block, rest)]
    return [part, wire.UserPromptPart(content)]


def _content(content: str | list[ContentBlock]) -> Any:
    return content if isinstance(content, str) else [_block(block) for block in content]


def _block(block: ContentBlock) -> Any:
    if isinstance(block, ToolOutputText):
        return block.text
    if block.data is not None:
        kind = block.mime_type or "application/octet-stream"
        return wire.BinaryContent(data=block.data, media_type=kind)
    if block.url is None:
        raise UserValueError(
            f"A {block.type} by its id ({block.file_id!r}) means nothing beyond the provider that "
            "stores it. Give data= or url=."
        )
    kinds: dict[str, Any] = {"image": wire.ImageUrl, "audio": wire.AudioUrl}
    return kinds.get(block.type, wire.DocumentUrl)(url=block.url)


def _as_text(output: ToolOutput) -> str:
    if isinstance(output, str):
        return output
    texts = [block.text for block in output if isinstance(block, ToolOutputText)]
    others = [block.type for block in output if not isinstance(block, ToolOutputText)]
    return "\n".join([*texts, *(f"[{kind}]" for kind in others)])


# --- the answer


@dataclass(slots=True)
class _Streamed:
    """A call on its way."""

    call_id: str
    name: str
    arguments: str = ""


class _Reader:
    """Turns the events of a stream into ours, and its parts into items."""

    def __init__(self, request: ModelRequest, emit: Emit) -> None:
        self._request = request
        self._emit = emit
        self._calls: dict[int, _Streamed] = {}
        self._done: set[int] = set()

    def take(self, event: Any) -> None:
        """Tell what an event says."""
        match event:
            case wire.PartStartEvent(index=index, part=part):
                self._settle(besides=index)
                self._start(index, part)
            case wire.PartDeltaEvent(index=index, delta=delta):
                self._go_on(index, delta)
            case wire.PartEndEvent(index=index):
                self._end(index)
            case _:
                pass

    def finish(self) -> None:
        """Take all calls as complete."""
        self._settle(besides=-1)

    def _settle(self, *, besides: int) -> None:
        for index in list(self._calls):
            if index != besides:
                self._end(index)

    def _start(self, index: int, part: Any) -> None:
        match part:
            case wire.TextPart():
                self._emit(message_started(part.id))
                if part.content:
                    self._emit(text_delta(part.content, part.id))
            case wire.ThinkingPart() if part.content:
                self._emit(reasoning_delta(part.content, part.id))
            case wire.ToolCallPart():
                call = self._calls[index] = _Streamed(part.tool_call_id, part.tool_name)
                self._emit(call_started(call.call_id, call.name))
                self._argue(call, _text_of(part.args))
            case _:
                pass

    def _go_on(self, index: int, delta: Any) -> None:
        match delta:
            case wire.TextPartDelta():
                self._emit(text_delta(delta.content_delta))
            case wire.ThinkingPartDelta() if delta.content_delta:
                self._emit(reasoning_delta(delta.content_delta))
            case wire.ToolCallPartDelta() if index in self._calls:
                self._argue(self._calls[index], _text_of(delta.args_delta))
            case _:
                pass

    def _argue(self, call: _Streamed, piece: str) -> None:
        if piece:
            call.arguments += piece
            self._emit(call_delta(call.call_id, piece))

    def _end(self, index: int) -> None:
        call = self._calls.get(index)
        if call is None or index in self._done:
            return
        self._done.add(index)
        if self._request.on_call is not None:
            arguments = call.arguments or "{}"
            self._request.on_call(
                ToolCallItem(call_id=call.call_id, name=call.name, arguments=arguments)
            )

    def response(self, answer: wire.ModelResponse) -> ModelResponse:
        """Give the whole answer."""
        items = [item for item in map(_item, answer.parts) if item is not None]
        usage = answer.usage
        return ModelResponse(
            items=items,
            usage=Usage(
                requests=1,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_input_tokens=usage.cache_read_tokens,
                reasoning_tokens=int(usage.details.get("reasoning_tokens", 0)),
            ),
            finish_reason=_finish_reason(answer.finish_reason),
            response_id=answer.provider_response_id,
            model=answer.model_name,
            raw=answer,
        )


def _item(part: Any) -> Item | None:
    match part:
        case wire.TextPart():
            return MessageOutputItem(text=part.content, id=part.id) if part.content else None
        case wire.ThinkingPart():
            return ReasoningItem(text=part.content, id=part.id, provider_data=_own(part))
        case wire.ToolCallPart():
            return ToolCallItem(
                call_id=part.tool_call_id or f"call_{uuid.uuid4().hex[:16]}",
                name=part.tool_name,
                arguments=_text_of(part.args) or "{}",
                id=part.id,
                provider_data=_own(part),
            )
        case wire.NativeToolCallPart():
            return ToolCallItem(
                call_id=part.tool_call_id,
                name=part.tool_name,
                arguments=_text_of(part.args) or "{}",
                kind="hosted",
            )
        case _:
            return None


def _own(part: Any) -> dict[str, Any] | None:
    """Keep what the provider wants back with a part."""
    names = ("id", "signature", "provider_name", "provider_details")
    found = {name: getattr(part, name, None) for name in names}
    kept = {name: value for name, value in found.items() if value is not None}
    return {_KEY: to_jsonable_python(kept)} if kept else None


def _text_of(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


def _finish_reason(reason: str | None) -> FinishReason | None:
    reasons: dict[str | None, FinishReason] = {
        "stop": "stop",
        "length": "length",
        "content_filter": "content_filter",
        "tool_call": "tool_calls",
    }
    return reasons.get(reason)


# --- errors


@contextmanager
def _translated(model: str) -> Generator[None]:
    """Raise what goes wrong at the provider as errors of our own."""
    try:
        yield
    except Exception as error:
        translated = _error(error, model)
        if translated is None:
            raise
        raise translated from error


def _error(error: Exception, model: str) -> Exception | None:
    why = mask(shorten(str(error), _LONGEST_REASON))
    match error:
        case UserError() | ModelError():
            return None
        case exceptions.UserError() | ImportError():
            return UserError(f"The model {model!r} cannot be used through Pydantic AI: {why}")
        case exceptions.ModelHTTPError():
            return _http_error(error, model, why)
        case exceptions.ModelAPIError():
            return ModelError(
                f"The model {model!r} could not be asked: {why}",
                model=model,
                retryable=True,
                retry_after=getattr(error, "retry_after", None),
            )
        case exceptions.AgentRunError():
            return ModelError(f"The answer of {model!r} cannot be read: {why}", model=model)
        case OSError() | TimeoutError():
            return ModelError(
                f"The provider of {model!r} could not be reached: {why}",
                model=model,
                retryable=True,
            )
        case _:
            return None


def _http_error(error: exceptions.ModelHTTPError, model: str, why: str) -> ModelError:
    overflow = getattr(exceptions, "ModelContextWindowExceededError", None)
    if overflow is not None and isinstance(error, overflow):
        return ContextWindowExceeded(
            f"The conversation is too long for {model!r}: {why}",
            model=model,
            status=error.status_code,
        )
    return ModelError(
        f"The provider of {model!r} refused the request: {why}",
        model=model,
        status=error.status_code,
        retryable=error.status_code in _BUSY,
        retry_after=getattr(error, "retry_after", None),
    )
