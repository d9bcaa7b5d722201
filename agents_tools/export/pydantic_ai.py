"""Tools for Pydantic AI, its tools as ours, and its agents as tools."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast, overload

from agents_tools.export._missing import missing

try:
    from pydantic_ai import (
        AgentRunResultEvent,
        ApprovalRequired,
        BinaryContent,
        DeferredToolRequests,
        FunctionToolCallEvent,
        FunctionToolResultEvent,
        ModelRetry,
        PartDeltaEvent,
        PartStartEvent,
        RunContext,
        Tool as ForeignTool,
        ToolFailed,
        ToolReturn,
    )
    from pydantic_ai.exceptions import UserError as ForeignUserError
    from pydantic_ai.messages import (
        AudioUrl,
        CustomEvent,
        DocumentUrl,
        FileUrl,
        ImageUrl,
        TextPart,
        TextPartDelta,
    )
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage, UsageLimits
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise missing("agents_tools.export.pydantic_ai", "pydantic-ai", error) from error

from agents_tools import policies
from agents_tools.context import RunContextWrapper
from agents_tools.errors import ToolError
from agents_tools.export._approval import decided, is_undecided
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    custom,
    foreign_tool,
    shown,
)
from agents_tools.export._incoming import imported, incoming, media, say
from agents_tools.export._outgoing import (
    arguments_json,
    described,
    exported,
    followed,
    has_failed,
    text_of,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from pydantic_ai import AgentRunResult
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.tools import ToolDefinition

    from agents_tools._records import CallOutcome
    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["ToolSays", "as_tool", "from_pydantic_ai", "to_pydantic_ai"]


@dataclass(kw_only=True)
class ToolSays(CustomEvent, name="agents_tools"):
    """What one of our tools says, in the event stream of an agent of Pydantic AI.

    Attributes:
        event: Our event as JSON; `event_from_dict` makes the event of it.
    """

    event: dict[str, Any]


@overload
def to_pydantic_ai(
    tools: FunctionTool[..., Any] | BaseTool,
    *,
    strict: bool | None = None,
    approvals: bool = False,
) -> ForeignTool[Any]: ...
@overload
def to_pydantic_ai(
    tools: Iterable[Any], *, strict: bool | None = None, approvals: bool = False
) -> list[ForeignTool[Any]]: ...
def to_pydantic_ai(
    tools: Any, *, strict: bool | None = None, approvals: bool = False
) -> ForeignTool[Any] | list[ForeignTool[Any]]:
    """Make tools for agents of Pydantic AI.

    The application's object is the `deps` of the run. What a tool says appears in the event stream
    of the agent as `ToolSays`. A call that failed is answered as failed and is never counted as a
    retry: how often that may happen is for `policies` to say.

    Args:
        tools: A tool, or several.
        strict: Whether providers with a strict mode are asked for it; for Pydantic AI to decide if
            not given.
        approvals: Whether a call that needs a person's approval is deferred, for agents that have
            `DeferredToolRequests` among their outputs. It is denied otherwise.

    Raises:
        UserError: It is no tool.
    """

    def make(tool: FunctionTool[..., Any]) -> ForeignTool[Any]:
        return _outgoing(tool, strict, approvals)

    return exported(tools, make, "to_pydantic_ai")


_ANY_OBJECT = SchemaValidator(core_schema.dict_schema())


def _outgoing(
    tool: FunctionTool[..., Any], strict: bool | None, approvals: bool
) -> ForeignTool[Any]:
    async def call(context: RunContext[Any], /, **arguments: Any) -> Any:
        outcome: Any = None
        admitted = await _admitted(tool, context, arguments, approvals) if gated else tool
        said = followed(admitted, arguments, call_id=context.tool_call_id, context=context.deps)
        async with contextlib.aclosing(said) as items:
            async for item in items:
                if isinstance(item, dict):
                    await _tell(context, item)
                else:
                    outcome = item
        return _foreign_result(outcome)

    gated = tool.needs_admission
    foreign: ForeignTool[Any] = ForeignTool.from_schema(
        call,
        name=tool.name,
        description=tool.description,
        json_schema=tool.params_json_schema,
        takes_ctx=True,
    )
    # Its validator lets anything pass, and what is no object would end the whole run.
    foreign.function_schema.validator = _ANY_OBJECT
    foreign.strict = strict
    foreign.metadata = dict(tool.metadata) or None
    if callable(tool.is_enabled):
        foreign.prepare = _prepare(tool)
    return foreign


async def _admitted(
    tool: FunctionTool[..., Any],
    context: RunContext[Any],
    arguments: dict[str, Any],
    approvals: bool,
) -> FunctionTool[..., Any]:
    """Give the tool with what a person has decided; the call is deferred until then."""
    if context.tool_call_approved:
        return decided(tool, approved=True)
    text, call_id = arguments_json(arguments), context.tool_call_id
    if approvals and await is_undecided(tool, text, call_id=call_id, context=context.deps):
        raise ApprovalRequired
    return tool


def _prepare(tool: FunctionTool[..., Any]) -> Any:
    async def prepare(
        context: RunContext[Any], definition: ToolDefinition
    ) -> ToolDefinition | None:
        answer: Any = tool.is_enabled(RunContextWrapper(context.deps), context.agent)
        enabled = await answer if hasattr(answer, "__await__") else answer
        return definition if enabled else None

    return prepare


async def _tell(context: RunContext[Any], event: dict[str, Any]) -> None:
    with contextlib.suppress(ForeignUserError):  # a context without a run has no stream
        await context.emit(ToolSays(event=event))


def _foreign_result(outcome: CallOutcome) -> Any:
    if has_failed(outcome):
        raise ToolFailed(text_of(outcome.output))
    content = _foreign_output(outcome.output)
    if outcome.metadata is None:
        return content
    return ToolReturn(return_value=content, metadata=dict(outcome.metadata))


def _foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_foreign_block(block) for block in output]


def _foreign_block(block: ContentBlock) -> Any:
    match block:
        case ToolOutputText():
            return block.text
        case _ if block.data is not None:
            kind = block.mime_type or "application/octet-stream"
            return BinaryContent(data=block.data, media_type=kind)
        case ToolOutputImage(url=str(url)):
            return ImageUrl(url=url, media_type=block.mime_type)
        case ToolOutputAudio(url=str(url)):
            return AudioUrl(url=url, media_type=block.mime_type)
        case ToolOutputFileContent(url=str(url)):
            return DocumentUrl(url=url, media_type=block.mime_type)
        case _:
            return described(block)


@overload
def from_pydantic_ai(tool: ForeignTool[Any]) -> FunctionTool[..., Any]: ...
@overload
def from_pydantic_ai(tool: Sequence[ForeignTool[Any]]) -> list[FunctionTool[..., Any]]: ...
def from_pydantic_ai(tool: Any) -> Any:
    """Make our tools of tools of Pydantic AI.

    Their `deps` are the application's object. What they emit becomes events of the call. The time
    a call may take and the approval it needs become policies; a tool that `prepare` leaves out is
    not offered.

    Args:
        tool: A `pydantic_ai.Tool`, or several.

    Raises:
        UserError: It is no such tool.
    """
    return imported(tool, ForeignTool, _incoming, "from_pydantic_ai")


def _incoming(foreign: ForeignTool[Any]) -> FunctionTool[..., Any]:
    schema = foreign.function_schema

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        around: RunContext[Any] = RunContext(
            deps=context.context,
            model=TestModel(),
            usage=RunUsage(),
            tool_call_id=context.tool_call_id,
            tool_name=foreign.name,
            _event_stream_buffer=_Hearing(context),
            tool_call_approved=foreign.requires_approval or context.decision is not None,
        )
        try:
            validated: Any = schema.validator.validate_python(arguments)
            if foreign.args_validator is not None:
                checked: Any = foreign.args_validator(around, **validated)
                if hasattr(checked, "__await__"):
                    await checked
            return _own_result(await schema.call(validated, around))
        except (ModelRetry, ToolFailed) as error:
            raise ToolError(error.message) from error
        except ApprovalRequired as error:
            raise ToolError(
                f"The tool {foreign.name!r} asks for approval in the middle of its call, which "
                "only an agent of Pydantic AI can wait for."
            ) from error

    tool = incoming(
        framework="Pydantic AI",
        name=foreign.name,
        description=foreign.description,
        schema=schema.json_schema,
        call=call,
        metadata=foreign.metadata,
        strict_json_schema=bool(foreign.strict),
        is_enabled=True if foreign.prepare is None else _was_enabled(foreign),
    )
    if foreign.timeout is not None:
        tool = policies.timeout(foreign.timeout)(tool)
    return policies.needs_approval()(tool) if foreign.requires_approval else tool


def _was_enabled(foreign: ForeignTool[Any]) -> Any:
    async def is_enabled(context: RunContextWrapper[Any], agent: Any) -> bool:
        del agent
        around: RunContext[Any] = RunContext(
            deps=context.context, model=TestModel(), usage=RunUsage(), tool_name=foreign.name
        )
        return await foreign.prepare_tool_def(around) is not None

    return is_enabled


class _Hearing(list[Any]):
    """Says in our events what a tool of Pydantic AI emits."""

    def __init__(self, context: ToolContext[Any]) -> None:
        super().__init__()
        self._context = context

    def append(self, event: Any, /) -> None:
        if isinstance(event, ToolSays):
            say(self._context, event.event)
        elif isinstance(event, CustomEvent):
            say(self._context, _payload(event), tag=event.name)


def _own_result(value: Any) -> Any:
    if not isinstance(value, ToolReturn):
        return _own_output(value)
    returned = cast("Any", value)
    extra: Any = returned.content or []
    content = _own_output(returned.return_value)
    if extra:
        first = cast("list[Any]", content if isinstance(content, list) else [content])
        more: Any = [extra] if isinstance(extra, str) else extra
        content = [_as_block(_own_block(item)) for item in (*first, *more)]
    return ToolResult(content=content, metadata=returned.metadata)


_MEDIA = (BinaryContent, FileUrl)


def _own_output(value: Any) -> Any:
    several = cast("list[Any]", value if isinstance(value, list) else [value])
    if not any(isinstance(item, _MEDIA) for item in several):
        return cast("Any", value)
    return [_as_block(_own_block(item)) for item in several]


def _own_block(item: Any) -> Any:
    kinds: dict[Any, str] = {ImageUrl: "image", AudioUrl: "audio"}
    if isinstance(item, BinaryContent):
        kind = "image" if item.is_image else "audio" if item.is_audio else "file"
        return media(kind, data=item.data, mime_type=item.media_type)
    if isinstance(item, FileUrl):
        return media(kinds.get(type(item), "file"), url=item.url)
    return item


def _as_block(item: Any) -> Any:
    """Give what stands among blocks as a block."""
    media_kinds = (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent)
    return item if isinstance(item, media_kinds) else ToolOutputText(shown(item))


def as_tool(
    agent: AbstractAgent[Any, Any],
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[AgentRunResult[Any]], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of Pydantic AI. Its dependencies are the run's `context`.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; the framework's default if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    limits = None if max_turns is None else UsageLimits(request_limit=max_turns)

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        used = RunUsage()
        started = agent.run_stream_events(
            task, deps=context.context, usage_limits=limits, usage=used
        )
        try:
            async with started as events:
                async for event in events:
                    for said in _said(event):
                        yield said
        finally:
            usage.add(_usage(used))

    return foreign_tool(
        agent.name or "agent",
        run,
        tool_name=tool_name,
        tool_description=tool_description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


def _said(event: Any) -> list[Said]:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return [Told(text)]
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return [Told(text)]
        case FunctionToolCallEvent(part=call):
            return [CallBegan(call.tool_call_id, call.tool_name, arguments_of(call.args))]
        case FunctionToolResultEvent():
            given: Any = event.part
            return [CallEnded(given.tool_call_id, given.outcome != "success")]
        case ToolSays():
            return []  # heard from the tool itself
        case CustomEvent() if event.ui:
            return [custom(_payload(event), event.name, event.tool_call_id)]
        case AgentRunResultEvent():
            return [_last(cast("Any", event).result)]
        case _:
            return []


def _payload(event: CustomEvent) -> dict[str, Any]:
    """Give what an event of the application's says, without where it says it."""
    own = {field.name for field in fields(event)} - {field.name for field in fields(CustomEvent)}
    return {name: getattr(event, name) for name in sorted(own)}


def _last(result: Any) -> Answer | Waits:
    if not isinstance(result.output, DeferredToolRequests):
        return Answer(result.output, result)
    waiting = result.output
    names = ", ".join(repr(call.tool_name) for call in (*waiting.approvals, *waiting.calls))
    return Waits(f"the approval or the result of {names}")


def _usage(used: Any) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_input_tokens=used.cache_read_tokens,
        reasoning_tokens=int(used.details.get("reasoning_tokens", 0)),
    )
