"""Tools for the tool runner of OpenAI's SDK, and its registered functions as ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction

from agents_tools._bridge import run_sync
from agents_tools.export._foreign import shown
from agents_tools.export._incoming import are_blocks, imported, in_thread, incoming, media
from agents_tools.export._outgoing import (
    arguments_json,
    called,
    data_url,
    described,
    exported,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.wire._project import project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.tool import FunctionTool

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
    """Make functions for `AsyncResponsesToolRunner(functions=...)`.

    The runner tells a function neither the id of its call nor an application's object, and has
    no stream for what tools say: hear it with `listen()`. It has no place for failures either,
    so that their text is the output. It refuses arguments that are no JSON object itself.

    Args:
        tools: A tool, or several.
        sync: Whether they are for `ResponsesToolRunner`, which is not async.
        strict: Hold the model to the schema; as the tool says if not given.
        context: The application's object, for tools that ask for it.

    Raises:
        UserError: It is no tool, or OpenAI cannot be told of it.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _outgoing(tool, sync=sync, strict=strict, context=context)

    return exported(tools, make, "to_openai_sdk")


def _outgoing(
    tool: FunctionTool[..., Any], *, sync: bool, strict: bool | None, context: Any
) -> AsyncRegisteredFunction | RegisteredFunction:
    projection = project(tool, "openai_responses", strict)

    async def execute(arguments: dict[str, object]) -> Any:
        text = projection.decode(arguments_json(arguments))
        outcome = await called(tool, text, context=context)
        return _foreign_output(outcome.output)

    def execute_here(arguments: dict[str, object]) -> Any:
        return run_sync(execute, arguments)

    wire: Any = projection.wire
    return (
        RegisteredFunction(wire, execute_here) if sync else AsyncRegisteredFunction(wire, execute)
    )


def _foreign_output(output: ToolOutput) -> Any:
    return output if isinstance(output, str) else [_foreign_block(block) for block in output]


def _foreign_block(block: ContentBlock) -> dict[str, Any]:
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
            return {"type": "input_text", "text": described(block)}


def _source(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


@overload
def from_openai_sdk(
    tool: RegisteredFunction | AsyncRegisteredFunction,
) -> FunctionTool[..., Any]: ...
@overload
def from_openai_sdk(tool: Sequence[Any]) -> list[FunctionTool[..., Any]]: ...
def from_openai_sdk(tool: Any) -> Any:
    """Make our tools of functions that are registered for the tool runner of OpenAI's SDK.

    Args:
        tool: A `RegisteredFunction` or `AsyncRegisteredFunction`, or several.

    Raises:
        UserError: It is no such function.
    """
    kinds = (RegisteredFunction, AsyncRegisteredFunction)
    return imported(tool, kinds, _incoming, "from_openai_sdk")


def _incoming(foreign: RegisteredFunction | AsyncRegisteredFunction) -> FunctionTool[..., Any]:
    wire: Mapping[str, Any] = foreign.tool
    model: Any = getattr(getattr(foreign, "_parsed_tool", None), "model", None)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context
        given: Any = arguments if model is None else model.model_validate(arguments)
        if isinstance(foreign, RegisteredFunction):
            return _own_output(await in_thread(foreign.execute, given))
        return _own_output(await foreign.execute(given))

    return incoming(
        framework="OpenAI",
        name=wire["name"],
        description=wire.get("description"),
        schema=wire.get("parameters"),
        call=call,
        strict_json_schema=bool(wire.get("strict")),
    )


def _own_output(output: Any) -> Any:
    return [_own_block(block) for block in output] if are_blocks(output) else output


def _own_block(block: Mapping[str, Any]) -> ContentBlock:
    match block:
        case {"type": "input_image"}:
            return media("image", url=block.get("image_url"), file_id=block.get("file_id"))
        case {"type": "input_file"}:
            inline = block.get("file_data")
            return media(
                "file",
                url=inline or block.get("file_url"),
                file_id=block.get("file_id"),
                filename=block.get("filename"),
            )
        case {"type": "input_text", "text": str(text)}:
            return ToolOutputText(text)
        case _:
            return ToolOutputText(shown(block))
