"""Tools for LangChain and LangGraph, and their tools as ours."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, cast, get_origin, overload

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import (
    BaseTool as ForeignTool,
    InjectedToolCallId,
    Tool as SimpleTool,
    ToolException,
)

from agents_tools._bridge import run_sync
from agents_tools.errors import ToolError, UserTypeError
from agents_tools.export._approval import decided, is_undecided, says_yes
from agents_tools.export._incoming import imported, incoming, media, say
from agents_tools.export._outgoing import (
    arguments_json,
    called,
    data_of,
    described,
    exported,
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
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.tool import FunctionTool

__all__ = ["from_langchain", "to_langchain"]


@overload
def to_langchain(
    tools: FunctionTool[..., Any] | BaseTool, *, approvals: bool = False
) -> ForeignTool: ...
@overload
def to_langchain(tools: Iterable[Any], *, approvals: bool = False) -> list[ForeignTool]: ...
def to_langchain(tools: Any, *, approvals: bool = False) -> ForeignTool | list[ForeignTool]:
    """Make tools for agents of LangChain and graphs of LangGraph.

    In a graph, the application's object is the runtime context, and what a tool says appears in
    the stream modes `custom` and `tools`. A call that failed is answered by a `ToolMessage` with
    the status `error`. What only the application sees of a `ToolResult` is its artifact.

    Args:
        tools: A tool, or several.
        approvals: Whether a call that needs a person's approval interrupts the graph, which has to
            have a checkpointer; it runs if it is resumed with `True` or `"yes"`. It is denied
            otherwise.

    Raises:
        UserError: It is no tool.
    """
    return exported(tools, lambda tool: _outgoing(tool, approvals), "to_langchain")


def _outgoing(tool: FunctionTool[..., Any], approvals: bool) -> ForeignTool:
    return _Ours(
        tool,
        approvals and tool.needs_admission,
        name=tool.name,
        description=tool.description,
        args_schema=tool.params_json_schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
        metadata=dict(tool.metadata) or None,
    )


class _Ours(ForeignTool):
    """One of our tools as LangChain calls it."""

    _ours: Any = None
    _asks: bool = False

    def __init__(self, ours: FunctionTool[..., Any], asks: bool, **options: Any) -> None:
        super().__init__(**options)
        self._ours = ours
        self._asks = asks

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # As one argument: parameters of ours may have the names of LangChain's own.
        return (tool_input, tool_call_id), {}

    def _run(self, given: str | dict[str, Any], call_id: str | None) -> Any:
        return run_sync(self._arun, given, call_id)

    async def _arun(self, given: str | dict[str, Any], call_id: str | None) -> Any:
        runtime = _runtime()
        context = None if runtime is None else runtime.context
        tool = self._ours
        if self._asks and runtime is not None:
            tool = await _admitted(tool, given, call_id, context)
        outcome = await called(
            tool,
            given,
            call_id=call_id,
            context=context,
            emit=None if runtime is None else _Stream(runtime),
        )
        if has_failed(outcome):
            raise ToolException(text_of(outcome.output))
        artifact = None if outcome.metadata is None else dict(outcome.metadata)
        return _foreign_output(outcome.output), artifact


def _runtime() -> Any:
    """Give the runtime of the graph that calls; `None` outside of one."""
    if "langgraph.runtime" not in sys.modules:
        return None
    from langgraph.runtime import get_runtime

    try:
        return get_runtime()
    except (KeyError, RuntimeError):
        return None


async def _admitted(
    tool: FunctionTool[..., Any], given: Any, call_id: str | None, context: Any
) -> FunctionTool[..., Any]:
    """Give the tool with what a person has decided; the graph is interrupted until then."""
    from langgraph.types import interrupt

    text = given if isinstance(given, str) else arguments_json(given)
    if not await is_undecided(tool, text, call_id=call_id, context=context):
        return tool
    asked = {"approve": tool.name, "arguments": given, "tool_call_id": call_id}
    return decided(tool, approved=says_yes(interrupt(asked)))


class _Stream:
    """The streams of a graph, for whoever listens to them."""

    def __init__(self, runtime: Any) -> None:
        from langgraph.prebuilt import ToolRuntime

        self._write = runtime.stream_writer
        self._delta: Any = getattr(ToolRuntime, "emit_output_delta", None)  # since LangGraph 1.2

    def __call__(self, event: dict[str, Any]) -> None:
        self._write(event)
        if self._delta is not None:
            self._delta(None, event)


def _foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_foreign_block(block) for block in output]


def _foreign_block(block: ContentBlock) -> dict[str, Any]:
    match block:
        case ToolOutputImage() | ToolOutputFileContent():
            given: dict[str, Any] = {
                "base64": data_of(block),
                "url": block.url,
                "file_id": block.file_id,
                "mime_type": block.mime_type,
                "filename": getattr(block, "filename", None),
            }
            kept = {name: value for name, value in given.items() if value is not None}
            return {"type": block.type, **kept}
        case ToolOutputAudio():  # LangChain writes sounds among other blocks as text
            return {"type": "text", "text": described(block)}
        case _:
            return {"type": "text", "text": block.text}


@overload
def from_langchain(tool: ForeignTool) -> FunctionTool[..., Any]: ...
@overload
def from_langchain(tool: Sequence[ForeignTool]) -> list[FunctionTool[..., Any]]: ...
def from_langchain(tool: Any) -> Any:
    """Make our tools of tools of LangChain.

    What they dispatch as custom events, or write to the stream of a graph, becomes events of the
    call. The application's object is the context of their `ToolRuntime`.

    Args:
        tool: A tool of LangChain, or several.

    Raises:
        UserError: It is no such tool, or one that needs the state or the store of a graph.
    """
    return imported(tool, ForeignTool, _incoming, "from_langchain")


def _incoming(foreign: ForeignTool) -> FunctionTool[..., Any]:
    schema = _schema(foreign)
    runtime_names = _runtime_names(foreign, schema)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        runtime = _runtime_for(context) if runtime_names else None
        asked: Any = {
            "type": "tool_call",
            "id": context.tool_call_id,
            "name": foreign.name,
            "args": {**arguments, **dict.fromkeys(runtime_names, runtime)},
        }
        heard: RunnableConfig = {
            "callbacks": [_Hearer(context)],
            "configurable": _configurable(context),
        }
        try:
            answer: Any = await foreign.ainvoke(asked, heard)
        except ToolException as error:
            raise ToolError(str(error)) from error
        if not isinstance(answer, ToolMessage):
            return answer
        content = _own_output(cast("Any", answer).content)
        if answer.status == "error":
            raise ToolError(content if isinstance(content, str) else answer.text)
        return content

    return incoming(
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
    given: Any = foreign.tool_call_schema
    if not isinstance(given, dict):  # models of Pydantic 1 have their schema elsewhere
        given = getattr(given, "model_json_schema", None) or given.schema
        given = given()
    schema = dict(cast("dict[str, Any]", given))
    schema.pop("description", None)  # the tool's own, which models are told otherwise
    return schema


def _runtime_names(foreign: ForeignTool, schema: Mapping[str, Any]) -> list[str]:
    """Give the parameters that take a `ToolRuntime`.

    Raises:
        UserError: There are others that only a graph fills.
    """
    if isinstance(foreign.args_schema, dict) or isinstance(foreign, SimpleTool):
        return []
    given: Any = foreign.get_input_schema()
    names: list[str] = []
    for name, field in getattr(given, "model_fields", {}).items():
        if name in schema.get("properties", {}) or InjectedToolCallId in _kinds(field):
            continue
        if (
            getattr(get_origin(field.annotation) or field.annotation, "__name__", "")
            != "ToolRuntime"
        ):
            raise UserTypeError(
                f"The parameter {name!r} of the LangChain tool {foreign.name!r} is filled by a "
                "graph, and there is none here. Make a tool of the graph: "
                "agents_tools.export.langgraph.as_tool."
            )
        names.append(name)
    return names


def _kinds(field: Any) -> set[Any]:
    return {given if isinstance(given, type) else type(given) for given in field.metadata}


def _runtime_for(context: ToolContext[Any]) -> Any:
    from langgraph.prebuilt import ToolRuntime

    class Runtime(ToolRuntime[Any, Any]):
        def emit_output_delta(self, delta: Any) -> None:
            say(context, delta)

    return Runtime(
        state={},
        context=context.context,
        config={},
        stream_writer=lambda data: say(context, data),
        tool_call_id=context.tool_call_id,
        store=None,
    )


def _configurable(context: ToolContext[Any]) -> dict[str, Any]:
    """Give what `get_stream_writer()` and `get_runtime()` of LangGraph look for."""
    if "langgraph.runtime" not in sys.modules:
        return {}
    from langgraph import config
    from langgraph.runtime import Runtime

    runtime: Any = Runtime(context=context.context, stream_writer=lambda data: say(context, data))
    return {cast("Any", config).CONFIG_KEY_RUNTIME: runtime}


class _Hearer(AsyncCallbackHandler):
    """Says in our events what a tool of LangChain dispatches."""

    def __init__(self, context: ToolContext[Any]) -> None:
        self._context = context

    async def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        del more
        say(self._context, data, tag=name)


def _own_output(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [_own_block(block) for block in cast("list[Any]", content)]


def _own_block(block: Any) -> ContentBlock:
    match block:
        case str():
            return ToolOutputText(block)
        case {"type": "text", "text": str(text)}:
            return ToolOutputText(text)
        case {"type": "image_url", "image_url": str(url) | {"url": str(url)}}:
            return media("image", url=url)
        case {"type": "image" | "audio" | "file" as kind, "base64": str(data)}:
            return media(kind, data=data, mime_type=block.get("mime_type"))
        case {"type": "image" | "audio" | "file" as kind, "url": str(url)}:
            return media(kind, url=url)
        case _:
            return ToolOutputText(json.dumps(block, ensure_ascii=False, default=str))
