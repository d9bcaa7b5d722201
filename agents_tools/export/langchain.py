"""Adapter for LangChain and LangGraph: function tools in their agents, and their tools."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, cast, get_origin, overload

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import (
    BaseTool as ForeignTool,
    InjectedToolArg,
    InjectedToolCallId,
    Tool as SimpleTool,
    ToolException,
)

from agents_tools.concurrency.bridge import run_sync
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.errors import ToolError, UserTypeError
from agents_tools.export._approval import is_approval, needs_decision, with_decision
from agents_tools.export._export_tool import (
    arguments_json,
    as_text,
    base64_data,
    call_tool,
    describe_block,
    export_tools,
    has_failed,
)
from agents_tools.export._import_tool import forward_event, import_tool, import_tools, media_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["from_langchain", "to_langchain"]


@overload
def to_langchain(
    tools: FunctionTool[..., Any] | BaseTool, *, approvals: bool = False
) -> ForeignTool: ...
@overload
def to_langchain(tools: Iterable[Any], *, approvals: bool = False) -> list[ForeignTool]: ...
def to_langchain(tools: Any, *, approvals: bool = False) -> ForeignTool | list[ForeignTool]:
    """Convert tools for agents of LangChain and graphs of LangGraph.

    In a graph, the application's object is the runtime context, and the events of a tool appear in
    the stream modes `custom` and `tools`. A failed call returns a `ToolMessage` with the status
    `error`. The metadata of a `ToolResult` becomes the artifact of the message.

    Args:
        tools: One tool, or several.
        approvals: Whether a call that needs approval interrupts the graph, which needs a
            checkpointer. The call runs if the graph is resumed with `True` or `"yes"`. By default
            the call is denied.

    Raises:
        UserError: A value is not a tool.
    """
    return export_tools(tools, lambda tool: _to_foreign_tool(tool, approvals), "to_langchain")


def _to_foreign_tool(tool: FunctionTool[..., Any], approvals: bool) -> ForeignTool:
    return _LangChainTool(
        tool,
        approvals and tool.can_need_approval,
        name=tool.name,
        description=tool.description,
        args_schema=tool.params_json_schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
        metadata=dict(tool.metadata) or None,
    )


class _LangChainTool(ForeignTool):
    """A tool of LangChain that calls a function tool."""

    _function_tool: Any = None
    _interrupts: bool = False

    def __init__(self, tool: FunctionTool[..., Any], interrupts: bool, **options: Any) -> None:
        super().__init__(**options)
        self._function_tool = tool
        self._interrupts = interrupts

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # All arguments are passed as one, since a parameter of the tool may have the name of one
        # of LangChain's own parameters, such as `config`.
        return (tool_input, tool_call_id), {}

    def _run(self, arguments: str | dict[str, Any], call_id: str | None) -> Any:
        return run_sync(self._arun, arguments, call_id)

    async def _arun(self, arguments: str | dict[str, Any], call_id: str | None) -> Any:
        runtime = _runtime()
        context = None if runtime is None else runtime.context
        tool = self._function_tool
        if self._interrupts and runtime is not None:
            tool = await _apply_decision(tool, arguments, call_id, context)
        outcome = await call_tool(
            tool,
            arguments,
            call_id=call_id,
            context=context,
            emit=None if runtime is None else _LangChainStream(runtime),
        )
        if has_failed(outcome):
            raise ToolException(as_text(outcome.output))
        artifact = None if outcome.metadata is None else dict(outcome.metadata)
        return _to_foreign_output(outcome.output), artifact


def _runtime() -> Any:
    """Return the runtime of the calling graph; `None` outside of a graph."""
    if "langgraph.runtime" not in sys.modules:
        return None
    from langgraph.runtime import get_runtime

    try:
        return get_runtime()
    except (KeyError, RuntimeError):
        return None


async def _apply_decision(
    tool: FunctionTool[..., Any], arguments: Any, call_id: str | None, context: Any
) -> FunctionTool[..., Any]:
    """Return the tool with the approval decision; interrupt the graph until it is made."""
    from langgraph.types import interrupt

    text = arguments if isinstance(arguments, str) else arguments_json(arguments)
    if not await needs_decision(tool, text, call_id=call_id, context=context):
        return tool
    request = {"approve": tool.name, "arguments": arguments, "tool_call_id": call_id}
    return with_decision(tool, approved=is_approval(interrupt(request)))


class _LangChainStream:
    """A writer of events to the stream modes `custom` and `tools` of a graph."""

    def __init__(self, runtime: Any) -> None:
        from langgraph.prebuilt import ToolRuntime

        self._write = runtime.stream_writer
        self._delta: Any = getattr(ToolRuntime, "emit_output_delta", None)  # since LangGraph 1.2

    def __call__(self, event: dict[str, Any]) -> None:
        self._write(event)
        if self._delta is not None:
            self._delta(None, event)


def _to_foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_to_foreign_block(block) for block in output]


def _to_foreign_block(block: ContentBlock) -> dict[str, Any]:
    match block:
        case ToolOutputImage() | ToolOutputFileContent():
            fields: dict[str, Any] = {
                "base64": base64_data(block),
                "url": block.url,
                "file_id": block.file_id,
                "mime_type": block.mime_type,
                "filename": getattr(block, "filename", None),
            }
            fields = {name: value for name, value in fields.items() if value is not None}
            return {"type": block.type, **fields}
        case ToolOutputAudio():  # LangChain would write an audio block as the text of its JSON
            return {"type": "text", "text": describe_block(block)}
        case _:
            return {"type": "text", "text": block.text}


@overload
def from_langchain(tool: ForeignTool) -> FunctionTool[..., Any]: ...
@overload
def from_langchain(tool: Sequence[ForeignTool]) -> list[FunctionTool[..., Any]]: ...
def from_langchain(tool: Any) -> Any:
    """Convert tools of LangChain to function tools.

    Custom events that they dispatch, and data that they write to the stream of a graph, become
    events of the call. The application's object is the context of their `ToolRuntime`.

    Args:
        tool: A tool of LangChain, or several.

    Raises:
        UserError: The value is not a tool of LangChain, or it needs the state or the store of a
            graph.
    """
    return import_tools(tool, ForeignTool, _from_foreign_tool, "from_langchain")


def _from_foreign_tool(foreign: ForeignTool) -> FunctionTool[..., Any]:
    schema = _schema(foreign)
    runtime_names = _runtime_names(foreign, schema)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        runtime = _runtime_for(context) if runtime_names else None
        request: Any = {
            "type": "tool_call",
            "id": context.tool_call_id,
            "name": foreign.name,
            "args": {**arguments, **dict.fromkeys(runtime_names, runtime)},
        }
        config: RunnableConfig = {
            "callbacks": [_LangChainCallbacks(context)],
            "configurable": _configurable(context),
        }
        try:
            result: Any = await foreign.ainvoke(request, config)
        except ToolException as error:
            raise ToolError(str(error)) from error
        if not isinstance(result, ToolMessage):
            return result
        content = _from_foreign_output(cast("Any", result).content)
        if result.status == "error":
            raise ToolError(content if isinstance(content, str) else result.text)
        return content

    return import_tool(
        framework="LangChain",
        name=foreign.name,
        description=foreign.description,
        schema=schema,
        call=call,
        metadata=foreign.metadata,
    )


def _schema(foreign: ForeignTool) -> Mapping[str, Any]:
    if isinstance(foreign, SimpleTool) and foreign.args_schema is None:
        return {"type": "object", "properties": foreign.args, "required": list(foreign.args)}
    model: Any = foreign.tool_call_schema
    if isinstance(model, dict):
        schema = dict(cast("dict[str, Any]", model))
    else:
        create_schema = getattr(model, "model_json_schema", None) or model.schema  # Pydantic 1
        schema = dict(cast("dict[str, Any]", create_schema()))
    schema.pop("description", None)  # repeats the description of the tool
    return schema


def _runtime_names(foreign: ForeignTool, schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters that expect a `ToolRuntime`.

    Raises:
        UserError: A parameter expects another value that only a graph can inject.
    """
    if isinstance(foreign.args_schema, dict) or isinstance(foreign, SimpleTool):
        return []
    model: Any = foreign.get_input_schema()
    names: list[str] = []
    for name, field in getattr(model, "model_fields", {}).items():
        if name in schema.get("properties", {}) or InjectedToolCallId in _kinds(field):
            continue
        if InjectedToolArg in _kinds(field) and not field.is_required():
            continue  # an argument of the application; a subclass is injected by a graph
        if (
            getattr(get_origin(field.annotation) or field.annotation, "__name__", "")
            != "ToolRuntime"
        ):
            raise UserTypeError(
                f"The LangChain tool {foreign.name!r} cannot be converted: its parameter {name!r} "
                "is injected by a graph. Convert the whole graph with "
                "agents_tools.export.langgraph.as_tool."
            )
        names.append(name)
    return names


def _kinds(field: Any) -> set[Any]:
    return {item if isinstance(item, type) else type(item) for item in field.metadata}


def _runtime_for(context: ToolContext[Any]) -> Any:
    from langgraph.prebuilt import ToolRuntime

    class RuntimeArgument(ToolRuntime[Any, Any]):
        def emit_output_delta(self, delta: Any) -> None:
            forward_event(context, delta)

    return RuntimeArgument(
        state={},
        context=context.context,
        config={},
        stream_writer=lambda data: forward_event(context, data),
        tool_call_id=context.tool_call_id,
        store=None,
    )


def _configurable(context: ToolContext[Any]) -> dict[str, Any]:
    """Return the configuration that `get_stream_writer()` and `get_runtime()` of LangGraph read."""
    if "langgraph.runtime" not in sys.modules:
        return {}
    from langgraph import config
    from langgraph.runtime import Runtime

    runtime: Any = Runtime(
        context=context.context, stream_writer=lambda data: forward_event(context, data)
    )
    return {cast("Any", config).CONFIG_KEY_RUNTIME: runtime}


class _LangChainCallbacks(AsyncCallbackHandler):
    """Callbacks that emit the custom events of a tool of LangChain as events of the call."""

    def __init__(self, context: ToolContext[Any]) -> None:
        self._context = context

    async def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        del more
        forward_event(self._context, data, tag=name)


def _from_foreign_output(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [_from_foreign_block(block) for block in cast("list[Any]", content)]


def _from_foreign_block(block: Any) -> ContentBlock:
    match block:
        case str():
            return ToolOutputText(block)
        case {"type": "text", "text": str(text)}:
            return ToolOutputText(text)
        case {"type": "image_url", "image_url": str(url) | {"url": str(url)}}:
            return media_block("image", url=url)
        case {"type": "image" | "audio" | "file" as kind, "base64": str(data)}:
            return media_block(kind, data=data, mime_type=block.get("mime_type"))
        case {"type": "image" | "audio" | "file" as kind, "url": str(url)}:
            return media_block(kind, url=url)
        case _:
            return ToolOutputText(json.dumps(block, ensure_ascii=False, default=str))
