"""Tools for the OpenAI Agents SDK, its tools as ours, and its agents as tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast, overload

from agents_tools.export._missing import missing

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
    raise missing("agents_tools.export.openai_agents", "openai-agents", error) from error

from agents_tools import policies
from agents_tools._supervisor import finish
from agents_tools.context import RunContextWrapper
from agents_tools.errors import ToolError, UserValueError
from agents_tools.events import AgentUpdatedStreamEvent
from agents_tools.export._approval import decided, is_undecided
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    foreign_tool,
)
from agents_tools.export._incoming import imported, incoming, media
from agents_tools.export._outgoing import called, data_url, described, exported
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage
from agents_tools.wire._project import project

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from agents import Agent, RunResultStreaming

    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.events import Event
    from agents_tools.wire._project import Projection

__all__ = ["as_tool", "from_openai_agents", "to_openai_agents"]


@overload
def to_openai_agents(
    tools: FunctionTool[..., Any] | BaseTool, *, strict: bool | None = None
) -> ForeignTool: ...
@overload
def to_openai_agents(tools: Iterable[Any], *, strict: bool | None = None) -> list[ForeignTool]: ...
def to_openai_agents(tools: Any, *, strict: bool | None = None) -> ForeignTool | list[ForeignTool]:
    """Make tools for agents of the OpenAI Agents SDK.

    The application's object is the `context` of its run. A call that needs a person's approval
    interrupts the run, as a tool of the SDK's own with `needs_approval` does. The SDK has no stream
    for what tools say: hear it with `listen()`.

    Args:
        tools: A tool, or several.
        strict: Hold the model to the schema; as the tool says if not given.

    Raises:
        UserError: It is no tool, or the SDK cannot be told of it.
    """
    return exported(tools, lambda tool: _outgoing(tool, strict), "to_openai_agents")


def _outgoing(tool: FunctionTool[..., Any], strict: bool | None) -> ForeignTool:
    projection = project(tool, "openai_responses", strict)
    wire = projection.wire

    async def on_invoke_tool(context: ForeignToolContext[Any], arguments: str) -> Any:
        approved = (
            tool.needs_admission
            and context.is_tool_approved(tool.name, context.tool_call_id) is True
        )
        outcome = await called(
            decided(tool, approved=True) if approved else tool,
            projection.decode(arguments),
            call_id=context.tool_call_id,
            context=context.context,
        )
        return _foreign_output(outcome.output)

    return ForeignTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=wire["parameters"],
        on_invoke_tool=on_invoke_tool,
        strict_json_schema=projection.strict,
        is_enabled=_is_enabled(tool),
        defer_loading=bool(wire.get("defer_loading")),
        needs_approval=_needs_approval(tool, projection) if tool.needs_admission else False,
    )


def _needs_approval(tool: FunctionTool[..., Any], projection: Projection) -> Any:
    async def needed(context: ForeignContext[Any], given: dict[str, Any], call_id: str) -> bool:
        text = projection.decode(json.dumps(given))
        return await is_undecided(tool, text, call_id=call_id, context=context.context)

    return needed


def _is_enabled(tool: FunctionTool[..., Any]) -> Any:
    asked = tool.is_enabled
    if not callable(asked):
        return asked

    async def is_enabled(context: ForeignContext[Any], agent: Any) -> bool:
        answer: Any = asked(RunContextWrapper(context.context), agent)
        return bool(await answer if hasattr(answer, "__await__") else answer)

    return is_enabled


def _foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_foreign_block(block) for block in output]


def _foreign_block(block: ContentBlock) -> ForeignText | ForeignImage | ForeignFile:
    match block:
        case ToolOutputText():
            return ForeignText(text=block.text)
        case ToolOutputImage():
            return ForeignImage(
                image_url=data_url(block), file_id=block.file_id, detail=block.detail
            )
        case ToolOutputFileContent():
            return ForeignFile(
                file_data=None if block.data is None else data_url(block),
                file_url=block.url,
                file_id=block.file_id,
                filename=block.filename or (None if block.data is None else "file"),
            )
        case _:
            return ForeignText(text=described(block))


@overload
def from_openai_agents(tool: ForeignTool) -> FunctionTool[..., Any]: ...
@overload
def from_openai_agents(tool: Sequence[ForeignTool]) -> list[FunctionTool[..., Any]]: ...
def from_openai_agents(tool: Any) -> Any:
    """Make our tools of function tools of the OpenAI Agents SDK.

    The time a call may take and the approval it needs become policies.

    Args:
        tool: One of its function tools, or several.

    Raises:
        UserError: It is no function tool, or has guardrails, which only its own runner runs.
    """
    return imported(tool, ForeignTool, _incoming, "from_openai_agents")


def _incoming(foreign: ForeignTool) -> FunctionTool[..., Any]:
    if foreign.tool_input_guardrails or foreign.tool_output_guardrails:
        raise UserValueError(
            f"The tool {foreign.name!r} has guardrails that only the runner of the OpenAI Agents "
            "SDK runs. Write them as policies.input_guardrail and policies.output_guardrail, and "
            "give the tool without them."
        )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        given = json.dumps(arguments)
        around: ForeignToolContext[Any] = ForeignToolContext(
            context.context,
            usage=ForeignUsage(),
            tool_name=foreign.name,
            tool_call_id=context.tool_call_id,
            tool_arguments=given,
        )
        output = await foreign.on_invoke_tool(around, given)
        if getattr(around, _HANDLED, False):  # what it says instead of the error is all there is
            raise ToolError(str(output))
        return _own_output(output)

    tool = incoming(
        framework="OpenAI Agents SDK",
        name=foreign.name,
        description=foreign.description,
        schema=foreign.params_json_schema,
        call=call,
        output_json_schema=foreign.output_json_schema,
        strict_json_schema=foreign.strict_json_schema,
        is_enabled=_was_enabled(foreign),
    )
    if foreign.timeout_seconds is not None:
        tool = policies.timeout(foreign.timeout_seconds)(tool)
    return _with_approval(tool, foreign.needs_approval)


_HANDLED = "_function_tool_default_failure_handled"
"""What the SDK sets on the context of a call that failed, and that it answered itself."""


def _was_enabled(foreign: ForeignTool) -> Any:
    asked = foreign.is_enabled
    if isinstance(asked, bool):
        return asked

    async def is_enabled(context: Any, agent: Any) -> bool:
        answer: Any = asked(ForeignContext(context.context), agent)
        return bool(await answer if hasattr(answer, "__await__") else answer)

    return is_enabled


def _with_approval(tool: FunctionTool[..., Any], asked: Any) -> FunctionTool[..., Any]:
    if not callable(asked):
        return policies.needs_approval()(tool) if asked else tool

    async def needed(context: ToolContext[Any], arguments: dict[str, Any]) -> bool:
        around: ForeignContext[Any] = ForeignContext(context.context)
        return bool(await cast("Any", asked)(around, arguments, context.tool_call_id))

    return policies.needs_approval(needed)(tool)


_FOREIGN_BLOCKS = (ForeignText, ForeignImage, ForeignFile)


def _own_output(output: Any) -> Any:
    several = cast("list[Any]", output if isinstance(output, list) else [output])
    if not several or not all(isinstance(block, _FOREIGN_BLOCKS) for block in several):
        return cast("Any", output)
    return [_own_block(block) for block in several]


def _own_block(block: ForeignText | ForeignImage | ForeignFile) -> ContentBlock:
    match block:
        case ForeignText():
            return ToolOutputText(block.text)
        case ForeignImage():
            return media("image", url=block.image_url, file_id=block.file_id)
        case _:
            inline = block.file_data or ""
            url = inline if inline.startswith("data:") else block.file_url
            data = None if url is inline else block.file_data
            return media("file", data=data, url=url, file_id=block.file_id, filename=block.filename)


def as_tool(
    agent: Agent[Any],
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[RunResultStreaming], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    run_config: Any = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of the OpenAI Agents SDK.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; the framework's default if not given.
        run_config: The framework's own `RunConfig`.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    options: dict[str, Any] = {} if max_turns is None else {"max_turns": max_turns}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        result = Runner.run_streamed(
            agent, task, context=context.context, run_config=run_config, **options
        )
        events: Any = result.stream_events()
        try:
            async for event in events:
                for said in _said(event, agent):
                    yield said
        finally:
            await _stop(result, events)
            usage.add(_usage(result.context_wrapper.usage))
        if result.interruptions:
            names = ", ".join(repr(item.name) for item in result.interruptions)
            yield Waits(f"the approval of {names}")
        else:
            yield Answer(result.final_output, result)

    return foreign_tool(
        agent.name,
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


async def _stop(result: RunResultStreaming, events: Any) -> None:
    """Cancel a run that still goes on, and wait until nothing is left of it."""
    if not result.is_complete:
        result.cancel()
    task = result.run_loop_task
    # Its events wait for the run when they are closed: only then it is known to be over.
    if task is None or await finish(task, name=result.current_agent.name):
        await events.aclose()


def _said(event: Any, agent: Agent[Any]) -> list[Said]:
    if isinstance(event, RawResponsesStreamEvent):
        data: Any = event.data
        told = data.type == "response.output_text.delta" and data.delta
        return [Told(data.delta)] if told else []
    if isinstance(event, ForeignUpdate):
        other: str = event.new_agent.name
        return [] if event.new_agent is agent else [AgentUpdatedStreamEvent(agent=other)]
    if not isinstance(event, RunItemStreamEvent):
        return []
    item: Any = event.item
    if isinstance(item, ToolCallItem) and event.name == "tool_called":
        raw: Any = item.raw_item
        call_id, name = _field(raw, "call_id"), _field(raw, "name")
        if call_id and name:
            return [CallBegan(call_id, name, arguments_of(_field(raw, "arguments")))]
    if isinstance(item, ToolCallOutputItem):
        call_id = _field(item.raw_item, "call_id")
        return [CallEnded(call_id)] if call_id else []
    return []


def _field(item: Any, name: str) -> Any:
    own: Any = item
    return own.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _usage(used: ForeignUsage) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_input_tokens=used.input_tokens_details.cached_tokens or 0,
        reasoning_tokens=used.output_tokens_details.reasoning_tokens or 0,
    )
