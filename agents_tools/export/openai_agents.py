"""Adapter for the OpenAI Agents SDK: function tools, the SDK's tools, and its agents as tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from agents_tools._package import missing_extra

try:
    from agents import FunctionTool as ForeignTool, RunContextWrapper as ForeignContext, Runner
    from agents.items import ToolCallItem, ToolCallOutputItem
    from agents.stream_events import (
        AgentUpdatedStreamEvent as ForeignUpdate,
        RawResponsesStreamEvent,
        RunItemStreamEvent,
    )
    from agents.tool import (
        ToolOutputFileContent as ForeignFile,
        ToolOutputImage as ForeignImage,
        ToolOutputText as ForeignText,
    )
    from agents.tool_context import ToolContext as ForeignToolContext
    from agents.usage import Usage as ForeignUsage
except ImportError as error:
    raise missing_extra("agents_tools.export.openai_agents", "openai-agents", error) from error

from agents_tools import policies
from agents_tools.concurrency.supervisor import finish
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import ToolError, UserValueError
from agents_tools.events.kinds import AgentUpdatedStreamEvent
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentPaused,
    AgentToolOptions,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    make_agent_tool,
    parse_arguments,
)
from agents_tools.export._approval import needs_decision, with_decision
from agents_tools.export._export_tool import call_tool, data_url, describe_block, export_tools
from agents_tools.export._import_tool import import_tool, import_tools, media_block
from agents_tools.tool.run_context import RunContextWrapper
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from agents import Agent, RunResultStreaming

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool
    from agents_tools.wire.project import Projection

__all__ = ["as_tool", "from_openai_agents", "to_openai_agents"]


@overload
def to_openai_agents(
    tools: FunctionTool[..., Any] | BaseTool, *, strict: bool | None = None
) -> ForeignTool: ...
@overload
def to_openai_agents(tools: Iterable[Any], *, strict: bool | None = None) -> list[ForeignTool]: ...
def to_openai_agents(tools: Any, *, strict: bool | None = None) -> ForeignTool | list[ForeignTool]:
    """Convert tools for agents of the OpenAI Agents SDK.

    The application's object is the `context` of the SDK's run. A call that needs approval
    interrupts the run, as the SDK's own tools with `needs_approval` do. The SDK has no stream for
    events of tools: subscribe to them with `listen()`.

    Args:
        tools: One tool, or several.
        strict: Whether to use strict mode; by default the setting of the tool.

    Raises:
        UserError: A value is not a tool, or the SDK does not support its schema.
    """
    return export_tools(tools, lambda tool: _to_foreign_tool(tool, strict), "to_openai_agents")


def _to_foreign_tool(tool: FunctionTool[..., Any], strict: bool | None) -> ForeignTool:
    projection = project(tool, "openai_responses", strict)
    wire = projection.wire

    async def on_invoke_tool(context: ForeignToolContext[Any], arguments: str) -> Any:
        approved = (
            tool.can_need_approval
            and context.is_tool_approved(tool.name, context.tool_call_id) is True
        )
        outcome = await call_tool(
            with_decision(tool, approved=True) if approved else tool,
            projection.decode(arguments),
            call_id=context.tool_call_id,
            context=context.context,
        )
        return _to_foreign_output(outcome.output)

    return ForeignTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=wire["parameters"],
        on_invoke_tool=on_invoke_tool,
        strict_json_schema=projection.strict,
        is_enabled=_is_enabled(tool),
        defer_loading=bool(wire.get("defer_loading")),
        needs_approval=_needs_approval(tool, projection) if tool.can_need_approval else False,
    )


def _needs_approval(tool: FunctionTool[..., Any], projection: Projection) -> Any:
    async def needs_approval(
        context: ForeignContext[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        text = projection.decode(json.dumps(arguments))
        return await needs_decision(tool, text, call_id=call_id, context=context.context)

    return needs_approval


def _is_enabled(tool: FunctionTool[..., Any]) -> Any:
    check = tool.is_enabled
    if not callable(check):
        return check

    async def is_enabled(context: ForeignContext[Any], agent: Any) -> bool:
        result: Any = check(RunContextWrapper(context.context), agent)
        return bool(await result if hasattr(result, "__await__") else result)

    return is_enabled


def _to_foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_to_foreign_block(block) for block in output]


def _to_foreign_block(block: ContentBlock) -> ForeignText | ForeignImage | ForeignFile:
    match block:
        case ToolOutputText():
            return ForeignText(text=block.text)
        case ToolOutputImage():
            detail = "high" if block.detail == "original" else block.detail
            return ForeignImage(image_url=data_url(block), file_id=block.file_id, detail=detail)
        case ToolOutputFileContent():
            return ForeignFile(
                file_data=None if block.data is None else data_url(block),
                file_url=block.url,
                file_id=block.file_id,
                filename=block.filename or (None if block.data is None else "file"),
            )
        case _:
            return ForeignText(text=describe_block(block))


@overload
def from_openai_agents(tool: ForeignTool) -> FunctionTool[..., Any]: ...
@overload
def from_openai_agents(tool: Sequence[ForeignTool]) -> list[FunctionTool[..., Any]]: ...
def from_openai_agents(tool: Any) -> Any:
    """Convert function tools of the OpenAI Agents SDK.

    Their timeout and approval settings become policies.

    Args:
        tool: A function tool of the SDK, or several.

    Raises:
        UserError: The value is not a function tool, or it has guardrails, which only the runner of
            the SDK can run.
    """
    return import_tools(tool, ForeignTool, _from_foreign_tool, "from_openai_agents")


def _from_foreign_tool(foreign: ForeignTool) -> FunctionTool[..., Any]:
    if foreign.tool_input_guardrails or foreign.tool_output_guardrails:
        raise UserValueError(
            f"The OpenAI Agents SDK tool {foreign.name!r} cannot be converted: it has guardrails, "
            "which only the runner of the SDK can run. Remove them, and apply "
            "policies.input_guardrail and policies.output_guardrail instead."
        )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        args_json = json.dumps(arguments)
        foreign_context: ForeignToolContext[Any] = ForeignToolContext(
            context.context,
            usage=ForeignUsage(),
            tool_name=foreign.name,
            tool_call_id=context.tool_call_id,
            tool_arguments=args_json,
        )
        output = await foreign.on_invoke_tool(foreign_context, args_json)
        if getattr(foreign_context, _FAILURE_HANDLED, False):
            raise ToolError(str(output))  # the SDK replaced the error by this message
        return _from_foreign_output(output)

    tool = import_tool(
        framework="OpenAI Agents SDK",
        name=foreign.name,
        description=foreign.description,
        schema=foreign.params_json_schema,
        call=call,
        output_json_schema=foreign.output_json_schema,
        strict_json_schema=foreign.strict_json_schema,
        is_enabled=_foreign_is_enabled(foreign),
    )
    if foreign.timeout_seconds is not None:
        tool = policies.timeout(foreign.timeout_seconds)(tool)
    return _with_approval(tool, foreign.needs_approval)


_FAILURE_HANDLED = "_function_tool_default_failure_handled"
"""The attribute that the SDK sets on the context of a failed call that it answered itself."""


def _foreign_is_enabled(foreign: ForeignTool) -> Any:
    check = foreign.is_enabled
    if isinstance(check, bool):
        return check

    async def is_enabled(context: Any, agent: Any) -> bool:
        result: Any = check(ForeignContext(context.context), agent)
        return bool(await result if hasattr(result, "__await__") else result)

    return is_enabled


def _with_approval(tool: FunctionTool[..., Any], setting: Any) -> FunctionTool[..., Any]:
    if not callable(setting):
        return policies.needs_approval()(tool) if setting else tool

    async def needs_approval(context: ToolContext[Any], arguments: dict[str, Any]) -> bool:
        foreign_context: ForeignContext[Any] = ForeignContext(context.context)
        check = cast("Any", setting)
        return bool(await check(foreign_context, arguments, context.tool_call_id))

    return policies.needs_approval(needs_approval)(tool)


_FOREIGN_BLOCKS = (ForeignText, ForeignImage, ForeignFile)


def _from_foreign_output(output: Any) -> Any:
    items = cast("list[Any]", output if isinstance(output, list) else [output])
    if not items or not all(isinstance(item, _FOREIGN_BLOCKS) for item in items):
        return cast("Any", output)
    return [_from_foreign_block(item) for item in items]


def _from_foreign_block(block: ForeignText | ForeignImage | ForeignFile) -> ContentBlock:
    match block:
        case ForeignText():
            return ToolOutputText(block.text)
        case ForeignImage():
            return media_block("image", url=block.image_url, file_id=block.file_id)
        case _:
            inline = block.file_data or ""
            url = inline if inline.startswith("data:") else block.file_url
            data = None if url is inline else block.file_data
            return media_block(
                "file", data=data, url=url, file_id=block.file_id, filename=block.filename
            )


def as_tool(
    agent: Agent[Any],
    *,
    max_turns: int | None = None,
    run_config: Any = None,
    **options: Unpack[AgentToolOptions[RunResultStreaming]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of the OpenAI Agents SDK.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests; the framework's default if not given.
        run_config: The SDK's `RunConfig`.
        **options: See `agents_tools.export.AgentToolOptions`.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """
    limits: dict[str, Any] = {} if max_turns is None else {"max_turns": max_turns}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        result = Runner.run_streamed(
            agent, task, context=context.context, run_config=run_config, **limits
        )
        events: Any = result.stream_events()
        try:
            async for event in events:
                for converted in _convert(event, agent):
                    yield converted
        finally:
            await _stop(result, events)
            usage.add(_usage(result.context_wrapper.usage))
        if result.interruptions:
            names = ", ".join(repr(item.name) for item in result.interruptions)
            yield AgentPaused(f"the approval of {names}")
        else:
            yield FinalAnswer(result.final_output, result)

    return make_agent_tool(agent.name, run, as_tool, options)


async def _stop(result: RunResultStreaming, events: Any) -> None:
    """Cancel a run that is not complete, and wait until its task has ended."""
    if not result.is_complete:
        result.cancel()
    task = result.run_loop_task
    # Closing the events waits for the run, so it would hang on a task that does not end.
    if task is None or await finish(task, name=result.current_agent.name):
        await events.aclose()


def _convert(event: Any, agent: Agent[Any]) -> list[AgentEvent]:
    if isinstance(event, RawResponsesStreamEvent):
        data: Any = event.data
        has_text = data.type == "response.output_text.delta" and data.delta
        return [TextDelta(data.delta)] if has_text else []
    if isinstance(event, ForeignUpdate):
        name_of_new_agent: str = event.new_agent.name
        if event.new_agent is agent:
            return []
        return [AgentUpdatedStreamEvent(agent=name_of_new_agent)]
    if not isinstance(event, RunItemStreamEvent):
        return []
    item: Any = event.item
    if isinstance(item, ToolCallItem) and event.name == "tool_called":
        raw: Any = item.raw_item
        call_id, name = _field(raw, "call_id"), _field(raw, "name")
        if call_id and name:
            return [CallStarted(call_id, name, parse_arguments(_field(raw, "arguments")))]
    if isinstance(item, ToolCallOutputItem):
        call_id = _field(item.raw_item, "call_id")
        return [CallEnded(call_id)] if call_id else []
    return []


def _field(item: Any, name: str) -> Any:
    mapping: Any = item
    return mapping.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _usage(used: ForeignUsage) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_input_tokens=used.input_tokens_details.cached_tokens or 0,
        cache_write_tokens=getattr(used.input_tokens_details, "cache_write_tokens", 0) or 0,
        reasoning_tokens=used.output_tokens_details.reasoning_tokens or 0,
    )
