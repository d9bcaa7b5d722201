"""Models of all providers that Pydantic AI supports, through its direct interface."""

from __future__ import annotations

import json
import uuid
import warnings
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools._package import missing_extra

try:
    from pydantic_ai import exceptions, messages as wire
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models import Model as PydanticModel, ModelRequestParameters, infer_model
    from pydantic_ai.native_tools import AbstractNativeTool
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition
except ImportError as error:
    raise missing_extra("A Pydantic AI model", "pydantic-ai", error) from error
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

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
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputText,
    output_text,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    UserError,
    UserValueError,
)
from agents_tools.models._clients import loop_client
from agents_tools.models._http import block_as_text
from agents_tools.text.characters import replace_escaped_surrogates
from agents_tools.text.output import release_text
from agents_tools.wire.hosted import hosted_definition
from agents_tools.wire.mcp import to_mcp

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pydantic_ai.usage import RequestUsage

    from agents_tools.agents.model import FinishReason, ModelRequest, ModelSettings
    from agents_tools.content.items import Item
    from agents_tools.events.base import Emit

__all__ = ["PydanticAIModel"]

_KEY = "pydantic-ai"
_NATIVE_TOOL: TypeAdapter[AbstractNativeTool] = TypeAdapter(AbstractNativeTool)
_PARTS: TypeAdapter[list[Any]] = TypeAdapter(list[wire.ModelResponsePart])
_MAX_REASON_LENGTH = 500
_MAX_PAUSES = 32
_RETRYABLE_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


def load(name: str) -> PydanticAIModel:
    """Return the model with a name such as `groq:llama-3.3-70b-versatile`."""
    return PydanticAIModel(name)


class PydanticAIModel:
    """A model of Pydantic AI.

    Args:
        model: The name in Pydantic AI, `<provider>:<model>`, or a model object, which belongs to
            one event loop.
    """

    provider = None  # Pydantic AI converts the schemas to the dialect of the provider

    def __init__(self, model: str | PydanticModel) -> None:
        self._model_or_name = model
        self.name = model if isinstance(model, str) else model.model_name
        self._tool_cache: tuple[tuple[Any, ...], list[ToolDefinition]] = ((), [])

    def __repr__(self) -> str:
        return f"PydanticAIModel({self.name!r})"

    @property
    def provider_id(self) -> str | None:
        """The name of the provider in Pydantic AI; `None` if the name of the model has none."""
        if isinstance(self._model_or_name, str):
            return self._model_or_name.rpartition(":")[0] or None
        return self._model_or_name.system

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send the request and return the response; see `Model.respond`."""
        parameters = ModelRequestParameters(
            function_tools=self._tools(request.tools),
            native_tools=self._native_tools(request.tools),
            **_output_options(request),
        )
        conversation = sent = _messages(request)
        parts: list[Any] = []
        usage = Usage()
        for _ in range(_MAX_PAUSES):
            answer = await self._send(sent, parameters, request, emit)
            usage.add(_usage(answer.usage))
            parts.extend(answer.parts)
            answer = replace(answer, parts=parts)
            if not _is_paused(answer):
                return _response(answer, usage, emit)
            # The provider pauses a long response with its own tools. It continues the response
            # when the next request contains the partial response.
            sent = [*conversation, answer]
        raise ModelError(
            f"{self.name} paused its response {_MAX_PAUSES} times without finishing it.",
            model=self.name,
        )

    async def _send(
        self,
        messages: list[wire.ModelMessage],
        parameters: ModelRequestParameters,
        request: ModelRequest,
        emit: Emit,
    ) -> wire.ModelResponse:
        """Send a request, and process the events of the response as they arrive."""
        settings: Any = _settings(request.settings)
        reader = _ModelEventReader(request, emit)
        with _translate_errors(self.name):
            model = await self._model()
            async with AsyncExitStack() as stack:
                with _translate_errors(self.name, unsent=request.input):
                    stream = await stack.enter_async_context(
                        model_request_stream(
                            model,
                            messages,
                            model_settings=settings,
                            model_request_parameters=parameters,
                        )
                    )
                async for event in stream:
                    reader.process(event)
        answer = stream.get()
        if answer.state != "complete" and not _is_paused(answer):
            raise ModelError(
                f"The response of {self.name!r} was interrupted: it ended before it was complete.",
                model=self.name,
                retryable=True,
            )
        reader.finish(answer)
        return answer

    async def _model(self) -> PydanticModel:
        if not isinstance(self._model_or_name, str):
            return self._model_or_name
        name = self._model_or_name
        open_model = await loop_client((_KEY, name), lambda: _OpenModel(infer_model(name)))
        return await open_model.ready()

    def _tools(self, tools: tuple[Any, ...]) -> list[ToolDefinition]:
        if self._tool_cache[0] is not tools:
            self._tool_cache = (
                tools,
                [
                    definition
                    for tool in tools
                    if hasattr(tool, "call") and (definition := self._definition(tool)) is not None
                ],
            )
        return self._tool_cache[1]

    def _definition(self, tool: Any) -> ToolDefinition | None:
        try:
            definition = to_mcp(tool)
        except UserError as error:
            warnings.warn(f"Tool {tool.name!r} is left out: {error}", stacklevel=2)
            return None
        return ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=definition["inputSchema"],
        )

    def _native_tools(self, tools: tuple[Any, ...]) -> list[AbstractNativeTool]:
        """Return the hosted tools as native tools of Pydantic AI."""
        definitions = (
            hosted_definition(tool, "to_pydantic_ai", self.name)
            for tool in tools
            if not hasattr(tool, "call")
        )
        return [_NATIVE_TOOL.validate_python(definition) for definition in definitions]


class _OpenModel:
    """A model of one event loop, entered on first use and exited when the loop ends."""

    def __init__(self, model: PydanticModel) -> None:
        self._model = model
        self._entered = False

    async def ready(self) -> PydanticModel:
        """Return the model with open connections."""
        if not self._entered:
            self._entered = True
            await self._model.__aenter__()
        return self._model

    async def close(self) -> None:
        """Close the connections of the model."""
        if self._entered:
            await self._model.__aexit__(None, None, None)


# --- the request


def _output_options(request: ModelRequest) -> dict[str, Any]:
    output_format = request.output
    if output_format is None:
        return {}
    definition = OutputObjectDefinition(
        json_schema=dict(output_format.schema),
        name=output_format.name,
        strict=output_format.strict,
    )
    return {"output_mode": "native", "output_object": definition, "allow_text_output": False}


def _settings(settings: ModelSettings) -> dict[str, Any]:
    choice = settings.tool_choice
    provided = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "thinking": settings.reasoning_effort,
        "stop_sequences": None if settings.stop is None else list(settings.stop),
        "timeout": settings.timeout,
        "cache": settings.prompt_cache,
        "extra_headers": settings.extra_headers and dict(settings.extra_headers),
        "extra_body": settings.extra_body and dict(settings.extra_body),
        "tool_choice": [choice] if choice not in {None, "auto", "required", "none"} else choice,
    }
    # The run retries failed requests; retries of the client would multiply with these.
    return {"max_retries": 0, **{name: one for name, one in provided.items() if one is not None}}


def _messages(request: ModelRequest) -> list[wire.ModelMessage]:
    """Convert the conversation to alternating requests and responses."""
    turns: list[tuple[type[Any], list[Any]]] = []
    for index, item in enumerate(request.input):
        kind = (
            wire.ModelRequest
            if isinstance(item, (MessageInputItem, ToolCallOutputItem))
            else wire.ModelResponse
        )
        parts = _parts(item, f"input[{index}].content")
        if not parts:
            continue
        if not turns or turns[-1][0] is not kind:
            turns.append((kind, []))
        turns[-1][1].extend(parts)
    if not turns or turns[-1][0] is not wire.ModelRequest:
        turns.append((wire.ModelRequest, []))
    messages = [kind(parts=parts) for kind, parts in turns]
    if request.instructions:
        messages[-1] = replace(messages[-1], instructions=request.instructions)
    return cast("list[wire.ModelMessage]", messages)


def _parts(item: Item, path: str) -> list[Any]:
    """Convert an item; `path` is the position of its content in the input."""
    match item:
        case MessageInputItem(role="user"):
            return [wire.UserPromptPart(_content(item.content, path))]
        case MessageInputItem():
            return [wire.SystemPromptPart(_system_text(item, path))]
        case ToolCallOutputItem():
            return _output_parts(item)
        case MessageOutputItem():
            parts = _stored_parts(_stored(item), path)
            if parts and parts[0].content == item.text:  # otherwise, the application changed it
                return parts
            return [wire.TextPart(item.text or item.refusal or "")]
        case ReasoningItem():
            stored = _stored(item)
            return [wire.ThinkingPart(content=item.text, **stored)] if stored else []
        case ToolCallItem(kind="hosted"):
            return _stored_parts(_stored(item), path)
        case ToolCallItem():
            # Some providers get the arguments as an object, whose texts have to be encodable.
            arguments = replace_escaped_surrogates(item.arguments.encode()).decode()
            call_id, stored = item.call_id, _stored(item)
            return [wire.ToolCallPart(item.name, arguments, tool_call_id=call_id, **stored)]


def _stored(item: MessageOutputItem | ReasoningItem | ToolCallItem) -> dict[str, Any]:
    return dict((item.provider_data or {}).get(_KEY) or {})


def _stored_parts(stored: dict[str, Any], path: str) -> list[Any]:
    """Return the parts of a response as Pydantic AI created them; none of another provider."""
    try:
        return _PARTS.validate_python(stored.get("parts", []))
    except ValidationError as error:
        raise UserValueError(
            f"{path.removesuffix('.content')}.provider_data[{_KEY!r}]: expected the parts of a "
            f"response of Pydantic AI: {error.errors()[0]['msg']}."
        ) from error


def _output_parts(item: ToolCallOutputItem) -> list[Any]:
    """Return the text of an output, and a message with its other blocks and the id of the call."""
    texts = output_text(item.output)
    outcome = _OUTCOMES.get(item.status, "failed")
    part = wire.ToolReturnPart(item.name, texts, tool_call_id=item.call_id, outcome=outcome)
    blocks = [] if isinstance(item.output, str) else item.output
    rest = [block for block in blocks if not isinstance(block, ToolOutputText)]
    if not rest:
        return [part]
    content: list[Any] = [f"The content of call {item.call_id} other than text:"]
    content += [_block(block, None) for block in rest]
    return [part, wire.UserPromptPart(content)]


_OUTCOMES: dict[str, Any] = {"ok": "success", "denied": "denied"}


def _content(content: str | list[ContentBlock], path: str) -> Any:
    if isinstance(content, str):
        return content
    return [_block(block, f"{path}[{index}]") for index, block in enumerate(content)]


def _system_text(item: MessageInputItem, path: str) -> str:
    blocks = [] if isinstance(item.content, str) else item.content
    for index, block in enumerate(blocks):
        if not isinstance(block, ToolOutputText):
            raise UserValueError(
                f"{path}[{index}]: a message with the role {item.role!r} can only contain text."
            )
    return output_text(item.content)


def _block(block: ContentBlock, path: str | None) -> Any:
    """Convert a content block; `path` is its position in the input, `None` for tool output."""
    if isinstance(block, ToolOutputText):
        return block.text
    if block.data is not None:
        kind = block.mime_type or "application/octet-stream"
        return wire.BinaryContent(data=block.data, media_type=kind)
    if block.url is None:
        if path is None:
            return block_as_text(block)
        raise UserValueError(
            f"{path}: the {block.type} with the id {block.file_id!r} is only available at the "
            "provider that stores it. Pass data= or url=."
        )
    kinds: dict[str, Any] = {"image": wire.ImageUrl, "audio": wire.AudioUrl}
    return kinds.get(block.type, wire.DocumentUrl)(url=block.url)


# --- the answer


@dataclass(slots=True)
class _StreamedCall:
    """A call that is not complete yet."""

    call_id: str
    name: str
    arguments: str = ""


class _ModelEventReader:
    """Converts the events of a stream to events of this library, and its parts to items."""

    def __init__(self, request: ModelRequest, emit: Emit) -> None:
        self._request = request
        self._emit = emit
        self._calls: dict[int, _StreamedCall] = {}
        self._done: set[int] = set()

    def process(self, event: Any) -> None:
        """Process the next event."""
        match event:
            case wire.PartStartEvent(index=index, part=part):
                self._report_complete_calls(except_index=index)
                self._start(index, part)
            case wire.PartDeltaEvent(index=index, delta=delta):
                self._apply_delta(index, delta)
            case _:
                pass

    def finish(self, answer: wire.ModelResponse) -> None:
        """Report the calls that are still open, unless the response was cut off.

        The last call ends with the stream. Only then it is known whether it is complete.
        """
        if answer.finish_reason not in _CUT_OFF:
            self._report_complete_calls(except_index=-1)

    def _report_complete_calls(self, *, except_index: int) -> None:
        for index in list(self._calls):
            if index != except_index:
                self._finish_part(index)

    def _start(self, index: int, part: Any) -> None:
        match part:
            case wire.TextPart():
                self._emit(message_started(part.id))
                if part.content:
                    self._emit(text_delta(part.content, part.id))
            case wire.ThinkingPart() if part.content:
                self._emit(reasoning_delta(part.content, part.id))
            case wire.NativeToolCallPart():
                self._emit(hosted_call_started(part.tool_call_id, part.tool_name))
            case wire.ToolCallPart():
                call = self._calls[index] = _StreamedCall(part.tool_call_id, part.tool_name)
                self._emit(call_started(call.call_id, call.name))
                self._add_arguments(call, _text_of(part.args))
            case _:
                pass

    def _apply_delta(self, index: int, delta: Any) -> None:
        match delta:
            case wire.TextPartDelta():
                self._emit(text_delta(delta.content_delta))
            case wire.ThinkingPartDelta() if delta.content_delta:
                self._emit(reasoning_delta(delta.content_delta))
            case wire.ToolCallPartDelta() if index in self._calls:
                self._add_arguments(self._calls[index], _text_of(delta.args_delta))
            case _:
                pass

    def _add_arguments(self, call: _StreamedCall, piece: str) -> None:
        if piece:
            call.arguments += piece
            self._emit(call_delta(call.call_id, piece))

    def _finish_part(self, index: int) -> None:
        call = self._calls.get(index)
        if call is None or index in self._done:
            return
        self._done.add(index)
        if self._request.on_call is not None:
            arguments = call.arguments or "{}"
            self._request.on_call(
                ToolCallItem(call_id=call.call_id, name=call.name, arguments=arguments)
            )


_CUT_OFF = {"length", "content_filter"}


def _response(answer: wire.ModelResponse, usage: Usage, emit: Emit) -> ModelResponse:
    items: list[Item] = []
    for part in answer.parts:
        _add_part(items, part)
    refusal = (answer.provider_details or {}).get("refusal")
    if refusal:
        emit(refusal_delta(refusal))
        # The partial output before a refusal is not an answer.
        reasoning = [item for item in items if isinstance(item, ReasoningItem)]
        items = [*reasoning, MessageOutputItem(refusal=refusal)]
    return ModelResponse(
        items=items,
        usage=usage,
        finish_reason="refusal" if refusal else _finish_reason(answer.finish_reason),
        response_id=answer.provider_response_id,
        model=answer.model_name,
        raw=answer,
    )


def _is_paused(answer: wire.ModelResponse) -> bool:
    details = answer.provider_details or {}
    return answer.state == "suspended" and details.get("finish_reason") == "pause_turn"


def _usage(usage: RequestUsage) -> Usage:
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_input_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=int(usage.details.get("reasoning_tokens", 0)),
    )


def _add_part(items: list[Item], part: Any) -> None:
    """Add the item of a part to the items of a response."""
    match part:
        case wire.TextPart():
            if part.content:
                items.append(MessageOutputItem(text=part.content, id=part.id, **_exact(part)))
        case wire.ThinkingPart():
            data = _provider_fields(part)
            items.append(ReasoningItem(text=part.content, id=part.id, provider_data=data))
        case wire.ToolCallPart():
            call = ToolCallItem(
                call_id=part.tool_call_id or f"call_{uuid.uuid4().hex[:16]}",
                name=part.tool_name,
                arguments=_text_of(part.args) or "{}",
                id=part.id,
                provider_data=_provider_fields(part),
            )
            items.append(call)
        case wire.NativeToolCallPart():
            items.append(_hosted_call(part, part.tool_name, part.tool_call_id, part.args))
        case wire.NativeToolReturnPart():
            # Results are stored with the hosted call before them, in the order of the response.
            last = items[-1] if items else None
            if isinstance(last, ToolCallItem) and last.kind == "hosted":
                parts: list[Any] = [*_stored(last)["parts"], *_json_of(part)]
                items[-1] = replace(last, provider_data={_KEY: {"parts": parts}})
            else:
                items.append(_hosted_call(part, part.tool_name))
        case wire.FilePart():  # a file that the model or its sandbox created
            items.append(_hosted_call(part, "generated_file"))
        case _:
            pass


def _hosted_call(part: Any, name: str, call_id: str = "", arguments: Any = None) -> ToolCallItem:
    return ToolCallItem(
        call_id=call_id or f"call_{uuid.uuid4().hex[:16]}",
        name=name,
        arguments=_text_of(arguments) or "{}",
        kind="hosted",
        provider_data={_KEY: {"parts": _json_of(part)}},
    )


def _exact(part: Any) -> dict[str, Any]:
    """Return the field for a text that the provider expects back as it is: with its signature."""
    if part.provider_details is None and part.citations is None:
        return {}
    return {"provider_data": {_KEY: {"parts": _json_of(part)}}}


def _json_of(part: Any) -> list[Any]:
    return _PARTS.dump_python([part], mode="json")


def _provider_fields(part: Any) -> dict[str, Any] | None:
    """Return the fields of a part that the provider expects back."""
    names = ("id", "signature", "provider_name", "provider_details")
    fields = {name: getattr(part, name, None) for name in names}
    present = {name: value for name, value in fields.items() if value is not None}
    return {_KEY: to_jsonable_python(present)} if present else None


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
def _translate_errors(model: str, unsent: Sequence[Item] = ()) -> Generator[None]:
    """Translate errors of Pydantic AI to errors of this library.

    Args:
        model: The name of the model.
        unsent: The conversation, while it is converted for the provider.
    """
    try:
        yield
    except Exception as error:
        translated = _convert_error(error, model) or _media_error(error, model, unsent)
        if translated is None:
            raise
        raise translated from error


def _convert_error(error: Exception, model: str) -> Exception | None:
    why = release_text(str(error), limit=_MAX_REASON_LENGTH, patterns=True)
    match error:
        case UserError() | ModelError():
            return None
        case exceptions.UserError() | ImportError():
            return UserError(f"The model {model!r} cannot be used through Pydantic AI: {why}")
        case exceptions.ModelHTTPError():
            return _http_error(error, model, why)
        case exceptions.ModelAPIError():
            return ModelError(
                f"The request to the model {model!r} failed: {why}",
                model=model,
                retryable=True,
                retry_after=getattr(error, "retry_after", None),
            )
        case exceptions.AgentRunError():
            return ModelError(f"The response of {model!r} cannot be read: {why}", model=model)
        case OSError() | TimeoutError():
            return ModelError(
                f"The provider of {model!r} could not be reached: {why}",
                model=model,
                retryable=True,
            )
        case _:
            return None


def _media_error(error: Exception, model: str, items: Sequence[Item]) -> UserError | None:
    """Return the error for a content block that Pydantic AI cannot convert for the provider.

    Pydantic AI raises different errors for it, which do not name the block.
    """
    if isinstance(error, UserError) or not isinstance(error, _UNCONVERTED):
        return None
    places = [
        f"input[{at}].content[{number}] ({block.mime_type or block.type})"
        for at, item in enumerate(items)
        if isinstance(item, MessageInputItem) and not isinstance(item.content, str)
        for number, block in enumerate(item.content)
        if not isinstance(block, ToolOutputText)
    ]
    if not places:
        return None
    why = release_text(str(error), limit=_MAX_REASON_LENGTH, patterns=True).rstrip(".")
    reason = f": {why}" if why else ""
    return UserValueError(
        f"{', '.join(places)}: the model {model!r} does not accept this content{reason}. Remove or "
        "convert it, or choose another model."
    )


_UNCONVERTED = (NotImplementedError, AssertionError, ValueError)


def _http_error(error: exceptions.ModelHTTPError, model: str, why: str) -> ModelError:
    overflow = getattr(exceptions, "ModelContextWindowExceededError", None)
    if overflow is not None and isinstance(error, overflow):
        return ContextWindowExceeded(
            f"The conversation is too long for {model!r}: {why}",
            model=model,
            status=error.status_code,
        )
    return ModelError(
        f"The provider of {model!r} rejected the request: {why}",
        model=model,
        status=error.status_code,
        retryable=error.status_code in _RETRYABLE_STATUSES,
        retry_after=getattr(error, "retry_after", None),
    )
