"""Adapter for the tool runner of Anthropic's SDK."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from anthropic.lib.tools import (
    BetaAsyncBuiltinFunctionTool,
    BetaAsyncFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionTool,
    ToolError as ForeignToolError,
)

from agents_tools.concurrency.bridge import run_sync
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.errors import ToolError, UserTypeError
from agents_tools.export._agent_adapter import display_text
from agents_tools.export._export_tool import (
    arguments_json,
    base64_data,
    call_tool,
    describe_block,
    export_tools,
    has_failed,
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

    _Foreign = (
        BetaAsyncFunctionTool[Any]
        | BetaAsyncBuiltinFunctionTool
        | BetaFunctionTool[Any]
        | BetaBuiltinFunctionTool
    )

__all__ = ["from_anthropic_sdk", "to_anthropic_sdk"]


@overload
def to_anthropic_sdk(
    tools: FunctionTool[..., Any] | BaseTool,
    *,
    sync: Literal[False] = False,
    strict: bool | None = None,
    context: Any = None,
) -> BetaAsyncBuiltinFunctionTool: ...
@overload
def to_anthropic_sdk(
    tools: Iterable[Any],
    *,
    sync: Literal[False] = False,
    strict: bool | None = None,
    context: Any = None,
) -> list[BetaAsyncBuiltinFunctionTool]: ...
@overload
def to_anthropic_sdk(
    tools: FunctionTool[..., Any] | BaseTool,
    *,
    sync: Literal[True],
    strict: bool | None = None,
    context: Any = None,
) -> BetaBuiltinFunctionTool: ...
@overload
def to_anthropic_sdk(
    tools: Iterable[Any],
    *,
    sync: Literal[True],
    strict: bool | None = None,
    context: Any = None,
) -> list[BetaBuiltinFunctionTool]: ...
def to_anthropic_sdk(
    tools: Any, *, sync: bool = False, strict: bool | None = None, context: Any = None
) -> Any:
    """Convert tools for `client.beta.messages.tool_runner(tools=...)`.

    The runner passes neither the id of a call nor an application's object to tools, and has no
    stream for events: subscribe to them with `listen()`.

    Args:
        tools: One tool, or several.
        sync: Whether the tools are for a synchronous client.
        strict: Whether to use strict mode; by default the setting of the tool.
        context: The application's object, for tools that ask for it.

    Raises:
        UserError: A value is not a tool, or Anthropic does not support its schema.
    """
    kind = _SyncTool if sync else _AsyncTool
    return export_tools(
        tools, lambda tool: kind(_AnthropicToolBase(tool, strict, context)), "to_anthropic_sdk"
    )


class _AnthropicToolBase:
    """The shared part of the sync and the async tool."""

    def __init__(self, tool: FunctionTool[..., Any], strict: bool | None, context: Any) -> None:
        self._tool = tool
        self._projection = project(tool, "anthropic", strict)
        self._context = context

    @property
    def wire(self) -> Any:
        return self._projection.wire

    async def call(self, arguments: object) -> Any:
        text = arguments_json(cast("Mapping[str, Any]", arguments))
        outcome = await call_tool(self._tool, self._projection.decode(text), context=self._context)
        content = _to_foreign_output(outcome.output)
        if has_failed(outcome):
            raise ForeignToolError(content)
        return content


class _AsyncTool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, base: _AnthropicToolBase) -> None:
        self._base = base

    def to_dict(self) -> Any:
        return self._base.wire

    async def call(self, input: object) -> Any:
        return await self._base.call(input)


class _SyncTool(BetaBuiltinFunctionTool):
    def __init__(self, base: _AnthropicToolBase) -> None:
        self._base = base

    def to_dict(self) -> Any:
        return self._base.wire

    def call(self, input: object) -> Any:
        return run_sync(self._base.call, input)


def _to_foreign_output(output: ToolOutput) -> Any:
    if isinstance(output, str):
        return output
    return [_to_foreign_block(block) for block in output]


_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def _to_foreign_block(block: ContentBlock) -> dict[str, Any]:
    match block:
        case ToolOutputImage() if block.url is not None:
            return {"type": "image", "source": {"type": "url", "url": block.url}}
        case ToolOutputImage(data=bytes(), mime_type=str(kind)) if kind in _IMAGES:
            return {"type": "image", "source": _inline(block, kind)}
        case ToolOutputFileContent(data=bytes(), mime_type=str(kind)) if kind in _IMAGES:
            return {"type": "image", "source": _inline(block, kind)}
        case ToolOutputFileContent(data=bytes(), mime_type="application/pdf"):
            return {"type": "document", "source": _inline(block, "application/pdf")}
        case _:
            return {"type": "text", "text": describe_block(block)}


def _inline(block: ToolOutputImage | ToolOutputFileContent, mime_type: str) -> dict[str, Any]:
    return {"type": "base64", "media_type": mime_type, "data": base64_data(block)}


@overload
def from_anthropic_sdk(tool: _Foreign) -> FunctionTool[..., Any]: ...
@overload
def from_anthropic_sdk(tool: Sequence[_Foreign]) -> list[FunctionTool[..., Any]]: ...
def from_anthropic_sdk(tool: Any) -> Any:
    """Convert tools of Anthropic's SDK to function tools.

    Args:
        tool: A tool as created by `@beta_tool` or `@beta_async_tool`, or several.

    Raises:
        UserError: The value is not a tool of the SDK, or a tool without a schema, whose arguments
            only Anthropic's models know.
    """
    return import_tools(tool, _KINDS, _from_foreign_tool, "from_anthropic_sdk")


_KINDS = (
    BetaAsyncFunctionTool,
    BetaAsyncBuiltinFunctionTool,
    BetaFunctionTool,
    BetaBuiltinFunctionTool,
)


def _from_foreign_tool(foreign: Any) -> FunctionTool[..., Any]:
    wire: Mapping[str, Any] = foreign.to_dict()
    if "input_schema" not in wire:
        raise UserTypeError(
            f"The Anthropic tool {wire.get('name')!r} cannot be converted: expected an "
            f"input_schema, got the type {wire.get('type')!r}, whose arguments are known only to "
            "Anthropic's models. Use a tool of agents_tools.builtin instead."
        )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context
        try:
            if isinstance(foreign, (BetaFunctionTool, BetaBuiltinFunctionTool)):
                return _from_foreign_output(await call_in_thread(foreign.call, arguments))
            return _from_foreign_output(await foreign.call(arguments))
        except ForeignToolError as error:
            raise ToolError(str(error)) from error

    return import_tool(
        framework="Anthropic",
        name=foreign.name,
        description=cast("Any", wire.get("description")),
        schema=cast("Mapping[str, Any]", wire["input_schema"]),
        call=call,
        strict_json_schema=bool(wire.get("strict")),
    )


def _from_foreign_output(output: Any) -> Any:
    if inspect.isgenerator(output):
        output = list(cast("Iterable[Any]", output))
    return [_from_foreign_block(block) for block in output] if are_blocks(output) else output


def _from_foreign_block(block: Mapping[str, Any]) -> ContentBlock:
    source: Mapping[str, Any] = block.get("source") or {}
    kinds = {"image": "image", "document": "file"}
    match block:
        case {"type": "text", "text": str(text)}:
            return ToolOutputText(text)
        case {"type": "image" | "document" as kind} if source.get("type") == "base64":
            return media_block(kinds[kind], data=source["data"], mime_type=source["media_type"])
        case {"type": "image" | "document" as kind} if source.get("type") == "url":
            return media_block(kinds[kind], url=source["url"])
        case _:
            return ToolOutputText(display_text(block))
