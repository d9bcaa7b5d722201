"""Adapter for Pydantic AI: function tools in its agents, its tools, and its agents as tools."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from agents_tools._package import missing_extra
from agents_tools.tool.context import call_of

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
    raise missing_extra("agents_tools.export.pydantic_ai", "pydantic-ai", error) from error

from agents_tools import policies
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import ToolError
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentPaused,
    AgentToolOptions,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    custom_event,
    display_text,
    make_agent_tool,
    parse_arguments,
)
from agents_tools.export._approval import needs_decision, with_decision
from agents_tools.export._export_tool import (
    arguments_json,
    as_text,
    describe_block,
    export_tools,
    has_failed,
    stream_call,
)
from agents_tools.export._import_tool import forward_event, import_tool, import_tools, media_block
from agents_tools.tool.enabled import is_enabled
from agents_tools.tool.run_context import RunContextWrapper

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from pydantic_ai import AgentRunResult
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.tools import ToolDefinition

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

__all__ = ["ToolEventPart", "as_tool", "from_pydantic_ai", "to_pydantic_ai"]


@dataclass(kw_only=True)
class ToolEventPart(CustomEvent, name="agents_tools"):
    """An event of a function tool in the event stream of an agent of Pydantic AI.

    Attributes:
        event: The event as JSON; convert it with `event_from_dict`.
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
    """Convert tools for agents of Pydantic AI.

    The application's object is the `deps` of the run. Events of a tool appear in the event stream
    of the agent as `ToolEventPart`. A failed call is reported as failed and never counts as a
    retry; limit failures with `policies`.

    Args:
        tools: One tool, or several.
        strict: Whether to use the strict mode of providers that have one; by default Pydantic AI
            decides.
        approvals: Whether a call that needs approval is deferred, for agents with
            `DeferredToolRequests` among their output types. By default the call is denied.

    Raises:
        UserError: A value is not a tool.
    """

    def make(tool: FunctionTool[..., Any]) -> ForeignTool[Any]:
        return _to_foreign_tool(tool, strict, approvals)

    return export_tools(tools, make, "to_pydantic_ai")


_ANY_OBJECT = SchemaValidator(core_schema.dict_schema())


def _to_foreign_tool(
    tool: FunctionTool[..., Any], strict: bool | None, approvals: bool
) -> ForeignTool[Any]:
    async def call(context: RunContext[Any], /, **arguments: Any) -> Any:
        outcome: Any = None
        called_tool = tool
        if tool.can_need_approval:
            called_tool = await _apply_decision(tool, context, arguments, approvals)
        stream = stream_call(
            called_tool, arguments, call_id=context.tool_call_id, context=context.deps
        )
        async with contextlib.aclosing(stream) as items:
            async for item in items:
                if isinstance(item, dict):
                    await _emit(context, item)
                else:
                    outcome = item
        return _to_foreign_result(outcome)

    foreign: ForeignTool[Any] = ForeignTool.from_schema(
        call,
        name=tool.name,
        description=tool.description,
        json_schema=tool.params_json_schema,
        takes_ctx=True,
    )
    # The default validator accepts any value, and one that is not an object would end the run.
    foreign.function_schema.validator = _ANY_OBJECT
    foreign.strict = strict
    foreign.metadata = dict(tool.metadata) or None
    if callable(tool.is_enabled):
        foreign.prepare = _prepare(tool)
    return foreign


async def _apply_decision(
    tool: FunctionTool[..., Any],
    context: RunContext[Any],
    arguments: dict[str, Any],
    approvals: bool,
) -> FunctionTool[..., Any]:
    """Return the tool with the approval decision; defer the call until it is made."""
    if context.tool_call_approved:
        return with_decision(tool, approved=True)
    text, call_id = arguments_json(arguments), context.tool_call_id
    if approvals and await needs_decision(tool, text, call_id=call_id, context=context.deps):
        raise ApprovalRequired
    return tool


def _prepare(tool: FunctionTool[..., Any]) -> Any:
    async def prepare(
        context: RunContext[Any], definition: ToolDefinition
    ) -> ToolDefinition | None:
        wrapper = RunContextWrapper(context.deps)
        return definition if await is_enabled(tool, wrapper, context.agent) else None

    return prepare


async def _emit(context: RunContext[Any], event: dict[str, Any]) -> None:
    with contextlib.suppress(ForeignUserError):  # a context outside of a run has no stream
        await context.emit(ToolEventPart(event=event))


def _to_foreign_result(outcome: CallOutcome) -> Any:
    if has_failed(outcome):
        raise ToolFailed(as_text(outcome.output))
    content = _to_foreign_output(outcome.output)
    if outcome.metadata is None:
        return content
    return ToolReturn(return_value=content, metadata=dict(outcome.metadata))


def _to_foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_to_foreign_block(block) for block in output]


def _to_foreign_block(block: ContentBlock) -> Any:
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
            return describe_block(block)


@overload
def from_pydantic_ai(tool: ForeignTool[Any]) -> FunctionTool[..., Any]: ...
@overload
def from_pydantic_ai(tool: Sequence[ForeignTool[Any]]) -> list[FunctionTool[..., Any]]: ...
def from_pydantic_ai(tool: Any) -> Any:
    """Convert tools of Pydantic AI to function tools.

    Their `deps` are the application's object. Events that they emit become events of the call.
    Their timeout and approval settings become policies. A tool that its `prepare` function removes
    is not offered to models.

    Args:
        tool: A `pydantic_ai.Tool`, or several.

    Raises:
        UserError: The value is not a tool of Pydantic AI.
    """
    return import_tools(tool, ForeignTool, _from_foreign_tool, "from_pydantic_ai")


def _from_foreign_tool(foreign: ForeignTool[Any]) -> FunctionTool[..., Any]:
    schema = foreign.function_schema

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        foreign_context: RunContext[Any] = RunContext(
            deps=context.context,
            model=TestModel(),
            usage=RunUsage(),
            tool_call_id=context.tool_call_id,
            tool_name=foreign.name,
            _event_stream_buffer=_PydanticAIEventTap(context),
            tool_call_approved=foreign.requires_approval or call_of(context).decision is not None,
        )
        try:
            validated: Any = schema.validator.validate_python(arguments)
            if foreign.args_validator is not None:
                validation: Any = foreign.args_validator(foreign_context, **validated)
                if hasattr(validation, "__await__"):
                    await validation
            return _from_foreign_result(await schema.call(validated, foreign_context))
        except (ModelRetry, ToolFailed) as error:
            raise ToolError(error.message) from error
        except ApprovalRequired as error:
            raise ToolError(
                f"The Pydantic AI tool {foreign.name!r} raised ApprovalRequired during its call, "
                "which only works in an agent of Pydantic AI. Set requires_approval=True instead."
            ) from error

    tool = import_tool(
        framework="Pydantic AI",
        name=foreign.name,
        description=foreign.description,
        schema=schema.json_schema,
        call=call,
        metadata=foreign.metadata,
        strict_json_schema=bool(foreign.strict),
        is_enabled=True if foreign.prepare is None else _foreign_is_enabled(foreign),
    )
    if foreign.timeout is not None:
        tool = policies.timeout(foreign.timeout)(tool)
    return policies.needs_approval()(tool) if foreign.requires_approval else tool


def _foreign_is_enabled(foreign: ForeignTool[Any]) -> Any:
    async def is_enabled(context: RunContextWrapper[Any], agent: Any) -> bool:
        del agent
        foreign_context: RunContext[Any] = RunContext(
            deps=context.context, model=TestModel(), usage=RunUsage(), tool_name=foreign.name
        )
        return await foreign.prepare_tool_def(foreign_context) is not None

    return is_enabled


class _PydanticAIEventTap(list[Any]):
    """An event buffer that emits the events of a tool of Pydantic AI as events of the call."""

    def __init__(self, context: ToolContext[Any]) -> None:
        super().__init__()
        self._context = context

    def append(self, event: Any, /) -> None:
        if isinstance(event, ToolEventPart):
            forward_event(self._context, event.event)
        elif isinstance(event, CustomEvent):
            forward_event(self._context, _payload(event), tag=event.name)


def _from_foreign_result(value: Any) -> Any:
    if not isinstance(value, ToolReturn):
        return _from_foreign_output(value)
    returned = cast("Any", value)
    extra: Any = returned.content or []
    content = _from_foreign_output(returned.return_value)
    if extra:
        items = cast("list[Any]", content if isinstance(content, list) else [content])
        extra_items: Any = [extra] if isinstance(extra, str) else extra
        content = [_as_block(_from_foreign_block(item)) for item in (*items, *extra_items)]
    return ToolResult(content=content, metadata=returned.metadata)


_MEDIA = (BinaryContent, FileUrl)


def _from_foreign_output(value: Any) -> Any:
    items = cast("list[Any]", value if isinstance(value, list) else [value])
    if not any(isinstance(item, _MEDIA) for item in items):
        return cast("Any", value)
    return [_as_block(_from_foreign_block(item)) for item in items]


def _from_foreign_block(item: Any) -> Any:
    kinds: dict[Any, str] = {ImageUrl: "image", AudioUrl: "audio"}
    if isinstance(item, BinaryContent):
        kind = "image" if item.is_image else "audio" if item.is_audio else "file"
        return media_block(kind, data=item.data, mime_type=item.media_type)
    if isinstance(item, FileUrl):
        return media_block(kinds.get(type(item), "file"), url=item.url)
    return item


def _as_block(item: Any) -> Any:
    """Return an item of a list with blocks as a block."""
    media_kinds = (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent)
    return item if isinstance(item, media_kinds) else ToolOutputText(display_text(item))


def as_tool(
    agent: AbstractAgent[Any, Any],
    *,
    max_turns: int | None = None,
    **options: Unpack[AgentToolOptions[AgentRunResult[Any]]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of Pydantic AI. Its dependencies are the run's `context`.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests; the framework's default if not given.
        **options: See `agents_tools.export.AgentToolOptions`.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """
    limits = None if max_turns is None else UsageLimits(request_limit=max_turns)

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        used = RunUsage()
        started = agent.run_stream_events(
            task, deps=context.context, usage_limits=limits, usage=used
        )
        try:
            async with started as events:
                async for event in events:
                    for converted in _convert(event):
                        yield converted
        finally:
            usage.add(_usage(used))

    return make_agent_tool(agent.name or "agent", run, as_tool, options)


def _convert(event: Any) -> list[AgentEvent]:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return [TextDelta(text)]
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return [TextDelta(text)]
        case FunctionToolCallEvent(part=call):
            return [CallStarted(call.tool_call_id, call.tool_name, parse_arguments(call.args))]
        case FunctionToolResultEvent():
            part: Any = event.part
            return [CallEnded(part.tool_call_id, part.outcome != "success")]
        case ToolEventPart():
            return []  # the function tool has emitted the event itself
        case CustomEvent() if event.ui:
            return [custom_event(_payload(event), event.name, event.tool_call_id)]
        case AgentRunResultEvent():
            return [_final_event(cast("Any", event).result)]
        case _:
            return []


def _payload(event: CustomEvent) -> dict[str, Any]:
    """Return the data of a custom event, without the fields that identify its call."""
    standard = {field.name for field in fields(CustomEvent)}
    names = {field.name for field in fields(event)} - standard
    return {name: getattr(event, name) for name in sorted(names)}


def _final_event(result: Any) -> FinalAnswer | AgentPaused:
    if not isinstance(result.output, DeferredToolRequests):
        return FinalAnswer(result.output, result)
    requests = result.output
    names = ", ".join(repr(call.tool_name) for call in (*requests.approvals, *requests.calls))
    return AgentPaused(f"the approval or the result of {names}")


def _usage(used: Any) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_input_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        reasoning_tokens=int(used.details.get("reasoning_tokens", 0)),
    )
