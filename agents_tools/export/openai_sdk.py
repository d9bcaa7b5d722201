"""Adapter for the tool runner of OpenAI's SDK and its registered functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction

from agents_tools.concurrency.bridge import run_sync
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.export._agent_adapter import display_text
from agents_tools.export._export_tool import (
    arguments_json,
    call_tool,
    data_url,
    describe_block,
    export_tools,
)
from agents_tools.export._import_tool import (
    are_blocks,
    call_in_thread,
    import_tool,
    import_tools,
    media_block,
)
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["from_openai_sdk", "to_openai_sdk"]


@overload
def to_openai_sdk(
    tools: FunctionTool[..., Any] | BaseTool,
    *,
    sync: Literal[False] = False,
    strict: bool | None = None,
    context: Any = None,
) -> AsyncRegisteredFunction: ...
@overload
def to_openai_sdk(
    tools: Iterable[Any],
    *,
    sync: Literal[False] = False,
    strict: bool | None = None,
    context: Any = None,
) -> list[AsyncRegisteredFunction]: ...
@overload
def to_openai_sdk(
    tools: FunctionTool[..., Any] | BaseTool,
    *,
    sync: Literal[True],
    strict: bool | None = None,
    context: Any = None,
) -> RegisteredFunction: ...
@overload
def to_openai_sdk(
    tools: Iterable[Any],
    *,
    sync: Literal[True],
    strict: bool | None = None,
    context: Any = None,
) -> list[RegisteredFunction]: ...
def to_openai_sdk(
    tools: Any, *, sync: bool = False, strict: bool | None = None, context: Any = None
) -> Any:
    """Convert tools to functions for `AsyncResponsesToolRunner(functions=...)`.

    The runner passes neither the id of a call nor an application's object to functions, and has no
    stream for events: subscribe to them with `listen()`. It cannot mark a result as failed, so the
    error message of a failure is the output. The runner itself rejects arguments that are not a
    JSON object.

    Args:
        tools: One tool, or several.
        sync: Whether the functions are for the synchronous `ResponsesToolRunner`.
        strict: Whether to use strict mode; by default the setting of the tool.
        context: The application's object, for tools that ask for it.

    Raises:
        UserError: A value is not a tool, or OpenAI does not support its schema.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _to_foreign_tool(tool, sync=sync, strict=strict, context=context)

    return export_tools(tools, make, "to_openai_sdk")


def _to_foreign_tool(
    tool: FunctionTool[..., Any], *, sync: bool, strict: bool | None, context: Any
) -> AsyncRegisteredFunction | RegisteredFunction:
    projection = project(tool, "openai_responses", strict)

    async def execute(arguments: dict[str, object]) -> Any:
        text = projection.decode(arguments_json(arguments))
        outcome = await call_tool(tool, text, context=context)
        return _to_foreign_output(outcome.output)

    def execute_sync(arguments: dict[str, object]) -> Any:
        return run_sync(execute, arguments)

    wire: Any = projection.wire
    return (
        RegisteredFunction(wire, execute_sync) if sync else AsyncRegisteredFunction(wire, execute)
    )


def _to_foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_to_foreign_block(block) for block in output]


def _to_foreign_block(block: ContentBlock) -> dict[str, Any]:
    match block:
        case ToolOutputImage():
            source = _source(file_id=block.file_id, image_url=data_url(block))
            return {"type": "input_image", **source, "detail": block.detail or "auto"}
        case ToolOutputFileContent():
            source = _source(
                file_id=block.file_id,
                file_url=block.url,
                file_data=None if block.data is None else data_url(block),
                filename=block.filename or (None if block.data is None else "file"),
            )
            return {"type": "input_file", **source}
        case _:
            return {"type": "input_text", "text": describe_block(block)}


def _source(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


@overload
def from_openai_sdk(
    tool: RegisteredFunction | AsyncRegisteredFunction,
) -> FunctionTool[..., Any]: ...
@overload
def from_openai_sdk(tool: Sequence[Any]) -> list[FunctionTool[..., Any]]: ...
def from_openai_sdk(tool: Any) -> Any:
    """Convert functions that are registered for the tool runner of OpenAI's SDK to function tools.

    Args:
        tool: A `RegisteredFunction` or `AsyncRegisteredFunction`, or several.

    Raises:
        UserError: The value is not a registered function.
    """
    kinds = (RegisteredFunction, AsyncRegisteredFunction)
    return import_tools(tool, kinds, _from_foreign_tool, "from_openai_sdk")


def _from_foreign_tool(
    foreign: RegisteredFunction | AsyncRegisteredFunction,
) -> FunctionTool[..., Any]:
    wire: Mapping[str, Any] = foreign.tool
    model: Any = getattr(getattr(foreign, "_parsed_tool", None), "model", None)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context
        parsed: Any = arguments if model is None else model.model_validate(arguments)
        if isinstance(foreign, RegisteredFunction):
            return _from_foreign_output(await call_in_thread(foreign.execute, parsed))
        return _from_foreign_output(await foreign.execute(parsed))

    return import_tool(
        framework="OpenAI",
        name=wire["name"],
        description=wire.get("description"),
        schema=wire.get("parameters"),
        call=call,
        strict_json_schema=bool(wire.get("strict")),
    )


def _from_foreign_output(output: Any) -> Any:
    return [_from_foreign_block(block) for block in output] if are_blocks(output) else output


def _from_foreign_block(block: Mapping[str, Any]) -> ContentBlock:
    match block:
        case {"type": "input_image"}:
            return media_block("image", url=block.get("image_url"), file_id=block.get("file_id"))
        case {"type": "input_file"}:
            inline = block.get("file_data")
            return media_block(
                "file",
                url=inline or block.get("file_url"),
                file_id=block.get("file_id"),
                filename=block.get("filename"),
            )
        case {"type": "input_text", "text": str(text)}:
            return ToolOutputText(text)
        case _:
            return ToolOutputText(display_text(block))
