"""Adapter for LlamaIndex: function tools in its agents, its tools, and its agents as tools."""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from agents_tools._package import missing_extra

try:
    from llama_index.core.agent.workflow import AgentOutput, AgentStream, ToolCall, ToolCallResult
    from llama_index.core.base.llms.types import AudioBlock, DocumentBlock, ImageBlock, TextBlock
    from llama_index.core.tools import (
        BaseTool,
        FunctionTool as ForeignTool,
        ToolMetadata,
        ToolOutput as ForeignOutput,
        adapt_to_async_tool,
    )
    from llama_index.core.workflow import Context, Event, InputRequiredEvent
except ImportError as error:
    raise missing_extra("agents_tools.export.llama_index", "llama-index", error) from error

from agents_tools.concurrency.bridge import run_sync
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import MaxTurnsExceeded, UserTypeError
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
from agents_tools.export._export_tool import (
    Tools,
    application_context,
    as_blocks,
    call_tool,
    describe_block,
    export_tools,
    has_failed,
)
from agents_tools.export._import_tool import import_tool, import_tools
from agents_tools.schema.json_schema import copy_json
from agents_tools.text.escape import shorten
from agents_tools.tool.failure import DEFAULT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.classes.base_tool import BaseTool as ClassTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

__all__ = ["LlamaIndexToolEvent", "as_tool", "from_llama_index", "to_llama_index"]


class LlamaIndexToolEvent(Event):
    """An event of a function tool in the stream of a workflow.

    Attributes:
        event: The event as JSON, with its `type` and its `tool_call_id`.
    """

    event: dict[str, Any]


@overload
def to_llama_index(
    tools: FunctionTool[..., Any] | ClassTool, *, context: Any = ...
) -> ForeignTool: ...
@overload
def to_llama_index(tools: Tools, *, context: Any = ...) -> list[ForeignTool]: ...
def to_llama_index(tools: Any, *, context: Any = None) -> Any:
    """Convert tools for LlamaIndex: `FunctionAgent(tools=to_llama_index([...]), llm=llm)`.

    The schema is passed unchanged, and the arguments are validated by the tool itself. In a
    workflow, its events appear in the stream as `LlamaIndexToolEvent`. Content blocks are kept. A
    failure is a `ToolOutput` with `is_error` and the tool's error message.

    Args:
        tools: One tool, or several.
        context: The application's object, which tools get as `ctx.context`. Defaults to the
            object of the enclosing run, or else to the `Context` of the workflow.

    Returns:
        One tool for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _LlamaIndexTool(tool, context)

    return export_tools(tools, make, "to_llama_index")


@overload
def from_llama_index(
    tool: list[BaseTool], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_llama_index(
    tool: BaseTool, *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_llama_index(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Convert tools of LlamaIndex (functions, query engines, retrievers) to function tools.

    Arguments are validated against the schema, which LlamaIndex itself does not do.

    Args:
        tool: A tool of LlamaIndex, or a list of them.
        failure_error_function: Creates the error message for the model; `None` raises the error.

    Raises:
        UserError: The value is not a tool of LlamaIndex, or it needs the `Context` of a workflow.
    """

    def make(item: Any) -> FunctionTool[..., Any]:
        return _from_foreign_tool(item, failure_error_function)

    # The base class is abstract, so type checkers do not accept it as `type[Any]`.
    return import_tools(tool, cast("type[Any]", BaseTool), make, "from_llama_index")


def as_tool(
    agent: Any,
    *,
    max_turns: int | None = None,
    **options: Unpack[AgentToolOptions[Any]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent or an `AgentWorkflow`. It forgets earlier calls.

    Args:
        agent: The agent: an object with `run(user_msg=...)`.
        max_turns: The maximum number of model requests; the framework's default if not given.
        **options: See `agents_tools.export.AgentToolOptions`.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """
    name = getattr(agent, "name", None) or "agent"
    limits: dict[str, Any] = {} if max_turns is None else {"max_iterations": max_turns}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        del context  # a workflow has its own state
        handler = agent.run(user_msg=task, **limits)
        exported_names = _exported_names(agent)
        try:
            async with contextlib.aclosing(handler.stream_events()) as events:
                async for event in events:
                    _count(event, usage)
                    for converted in _convert(event, exported_names):
                        yield converted
                        if isinstance(converted, AgentPaused):
                            return
            result = await handler
        except Exception as error:
            if usage.requests == max_turns:  # LlamaIndex has no exception class for this limit
                raise MaxTurnsExceeded(
                    f"Agent {name!r} did not finish within {max_turns} turns. "
                    "Raise max_turns if the task needs more."
                ) from error
            raise
        finally:
            if not handler.is_done():
                await handler.cancel_run()
        yield FinalAnswer(result.structured_response or str(result.response.content or ""), result)

    return make_agent_tool(
        name, run, as_tool, options, description=getattr(agent, "description", None)
    )


# --- function tools as tools of the framework


@dataclass
class _LlamaIndexMetadata(ToolMetadata):
    """The metadata of a function tool, with the tool's own schema."""

    fn_schema: Any = None
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fn_schema_str(self) -> str:
        """Return the schema as text, for agents that insert it into their prompt."""
        return json.dumps(self.parameters, ensure_ascii=False)

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return a copy of the schema, which the caller may change."""
        return cast("dict[str, Any]", copy_json(self.parameters))


class _LlamaIndexTool(ForeignTool):
    """A tool of LlamaIndex that calls a function tool."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        self._tool = tool
        self._context = context

        async def call(**arguments: Any) -> Any:
            return await self.acall(**arguments)

        schema = {"properties": {}, **tool.params_json_schema}
        metadata = _LlamaIndexMetadata(
            name=tool.name, description=tool.description, parameters=schema
        )
        super().__init__(async_fn=call, metadata=metadata)
        # Workflows pass their context as this argument, so the tool must not use the name itself.
        self.requires_context = True
        self.ctx_param_name = "workflow_context"
        while self.ctx_param_name in schema["properties"]:
            self.ctx_param_name += "_"

    def call(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the tool from sync code."""
        return run_sync(self.acall, *args, **arguments)

    async def acall(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the tool."""
        workflow = arguments.pop(self.ctx_param_name, None)
        names = self._tool.json_schema.get("properties", ())
        # LlamaIndex may pass positional arguments, for example the only argument of a tool.
        values = {**dict(zip(names, args, strict=False)), **arguments}
        outcome = await call_tool(
            self._tool,
            values,
            context=application_context(self._context, workflow),
            emit=None if workflow is None else _emitter(workflow),
        )
        if type(outcome.error).__name__ == "WaitingForEvent" and outcome.error is not None:
            raise outcome.error  # not a failure: this is how a workflow waits for human input
        return _to_foreign_output(self._tool.name, values, outcome)


def _emitter(context: Context[Any]) -> Callable[[dict[str, Any]], None]:
    def emit(event: dict[str, Any]) -> None:
        context.write_event_to_stream(LlamaIndexToolEvent(event=event))

    return emit


def _to_foreign_output(name: str, arguments: dict[str, Any], outcome: CallOutcome) -> Any:
    error = outcome.error
    return ForeignOutput(
        tool_name=name,
        blocks=[_to_foreign_block(block) for block in as_blocks(outcome.output)],
        raw_input={"args": (), "kwargs": arguments},
        raw_output=outcome.value if error is None else str(error),
        is_error=has_failed(outcome),
        exception=error,
    )


def _to_foreign_block(block: ContentBlock) -> Any:
    """Convert a block to a block of LlamaIndex; one that it does not support to a description."""
    if isinstance(block, ToolOutputText):
        return TextBlock(text=block.text)
    if block.file_id is not None:
        return TextBlock(text=describe_block(block))
    # LlamaIndex decodes data that looks like base64, so the data is always encoded.
    data = None if block.data is None else base64.b64encode(block.data)
    if isinstance(block, ToolOutputImage):
        return ImageBlock(
            image=data, url=block.url, image_mimetype=block.mime_type, detail=block.detail
        )
    if isinstance(block, ToolOutputAudio):
        kind = (block.mime_type or "").rpartition("/")[2]
        return AudioBlock(audio=data, url=block.url, format=_FORMATS.get(kind, kind) or None)
    kind = block.mime_type or "application/octet-stream"
    return DocumentBlock(data=data, url=block.url, title=block.filename, document_mimetype=kind)


_FORMATS = {"mpeg": "mp3", "x-wav": "wav"}


# --- tools of the framework as function tools


def _from_foreign_tool(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    name = tool.metadata.get_name()
    if getattr(tool, "requires_context", False):
        raise UserTypeError(
            f"The LlamaIndex tool {name!r} cannot be converted: it needs the Context of a "
            "workflow. Set the parameter with `partial_params`, or leave the tool in its workflow."
        )
    runner = adapt_to_async_tool(tool)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # tools of LlamaIndex get only the arguments
        return _from_foreign_output(await runner.acall(**arguments))

    return import_tool(
        framework="LlamaIndex",
        name=name,
        description=tool.metadata.description,
        schema=_schema(name, tool),
        call=call,
        failure_error_function=failure_error_function,
    )


def _schema(name: str, tool: Any) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", tool.metadata.get_parameters_dict())
    except Exception as error:
        raise UserTypeError(
            f"LlamaIndex cannot create the schema of its tool {name!r}: {shorten(str(error), 300)} "
            "Pass a pydantic model as `fn_schema`."
        ) from error


def _from_foreign_output(output: Any) -> Any:
    if not isinstance(output, ForeignOutput):
        return output
    result = cast("Any", output)
    if result.exception is not None:
        raise result.exception
    blocks = [_from_foreign_block(block) for block in result.blocks]
    content: Any = blocks
    if all(isinstance(block, ToolOutputText) for block in blocks):
        # The text of a value is its repr, so the value itself is returned to become JSON.
        raw = result.raw_output
        is_repr = isinstance(raw, (dict, list, tuple, int, float)) and result.content == str(raw)
        content = raw if is_repr else result.content
    return ToolResult(content=content, is_error=True) if result.is_error else content


def _from_foreign_block(block: Any) -> ContentBlock:
    if isinstance(block, TextBlock):
        return ToolOutputText(block.text)
    if isinstance(block, ImageBlock):
        source = _source(block.image, block, block.resolve_image)
        return ToolOutputImage(mime_type=block.image_mimetype, **source)
    if isinstance(block, AudioBlock):
        kind = None if block.format is None else f"audio/{block.format}"
        return ToolOutputAudio(mime_type=kind, **_source(block.audio, block, block.resolve_audio))
    if isinstance(block, DocumentBlock):
        source = _source(block.data, block, block.resolve_document)
        return ToolOutputFileContent(
            filename=block.title or PurePath(str(block.path or "")).name or None,
            mime_type=block.document_mimetype,
            **source,
        )
    return ToolOutputText(block.model_dump_json())


def _source(data: Any, block: Any, resolve: Callable[[], Any]) -> dict[str, Any]:
    """Return the data of a block, or its URL, which is not loaded."""
    if data is None and block.path is None and block.url is not None:
        return {"url": str(block.url)}
    return {"data": resolve().read()}


# --- agents of the framework as tools


def _exported_names(agent: Any) -> set[str]:
    """Return the names of the function tools in an agent, which emit their events themselves."""
    agents = getattr(agent, "agents", None)
    members = list(agents.values()) if isinstance(agents, dict) else [agent]
    tools = [tool for member in members for tool in getattr(member, "tools", None) or ()]
    return {tool.metadata.get_name() for tool in tools if isinstance(tool, _LlamaIndexTool)}


def _convert(event: Any, exported_names: set[str]) -> list[AgentEvent]:
    match event:
        case AgentStream():
            return [TextDelta(event.delta)] if event.delta else []
        case ToolCallResult():
            failed = event.tool_output.is_error
            return [] if event.tool_name in exported_names else [CallEnded(event.tool_id, failed)]
        case ToolCall():
            if event.tool_name in exported_names:
                return []
            arguments = parse_arguments(event.tool_kwargs)
            return [CallStarted(event.tool_id, event.tool_name, arguments)]
        case InputRequiredEvent():
            return [
                AgentPaused(
                    f"an answer to {shorten(display_text(event.model_dump(mode='json')), 300)}"
                )
            ]
        case _ if type(event).__module__.startswith(_INTERNAL):
            return []
        case _:
            return [custom_event(event.model_dump(), type(event).__name__)]


_INTERNAL = ("agents_tools.", "llama_index.", "workflows.")
"""Modules whose events are not custom events of the application."""


def _count(event: Any, usage: Usage) -> None:
    """Add the usage of a model response, if the provider reports it."""
    if not isinstance(event, AgentOutput):
        return
    raw = cast("Any", event).raw
    used: Any = raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None)
    counts = used if isinstance(used, dict) else getattr(used, "__dict__", {})

    def number(*names: str) -> int:
        return next((int(counts[name]) for name in names if counts.get(name) is not None), 0)

    usage.add(
        Usage(
            requests=1,
            input_tokens=number("input_tokens", "prompt_tokens"),
            output_tokens=number("output_tokens", "completion_tokens"),
        )
    )
