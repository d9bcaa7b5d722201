"""Tools for the tool runner of Anthropic's SDK, and its tools as ours."""

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

from agents_tools._bridge import run_sync
from agents_tools.errors import ToolError, UserTypeError
from agents_tools.export._foreign import shown
from agents_tools.export._incoming import are_blocks, imported, in_thread, incoming, media
from agents_tools.export._outgoing import (
    arguments_json,
    called,
    data_of,
    described,
    exported,
    has_failed,
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
    """Make tools for `client.beta.messages.tool_runner(tools=...)`.

    The runner tells a tool neither the id of its call nor an application's object, and has no
    stream for what tools say: hear it with `listen()`.

    Args:
        tools: A tool, or several.
        sync: Whether they are for a client that is not async.
        strict: Hold the model to the schema; as the tool says if not given.
        context: The application's object, for tools that ask for it.

    Raises:
        UserError: It is no tool, or Anthropic cannot be told of it.
    """
    kind = _SyncTool if sync else _AsyncTool
    return exported(tools, lambda tool: kind(_Ours(tool, strict, context)), "to_anthropic_sdk")


class _Ours:
    """What both kinds have in common."""

    def __init__(self, tool: FunctionTool[..., Any], strict: bool | None, context: Any) -> None:
        self._tool = tool
        self._projection = project(tool, "anthropic", strict)
        self._context = context

    @property
    def wire(self) -> Any:
        return self._projection.wire

    async def call(self, given: object) -> Any:
        text = arguments_json(cast("Mapping[str, Any]", given))
        outcome = await called(self._tool, self._projection.decode(text), context=self._context)
        content = _foreign_output(outcome.output)
        if has_failed(outcome):
            raise ForeignToolError(content)
        return content


class _AsyncTool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, ours: _Ours) -> None:
        self._ours = ours

    def to_dict(self) -> Any:
        return self._ours.wire

    async def call(self, input: object) -> Any:
        return await self._ours.call(input)


class _SyncTool(BetaBuiltinFunctionTool):
    def __init__(self, ours: _Ours) -> None:
        self._ours = ours

    def to_dict(self) -> Any:
        return self._ours.wire

    def call(self, input: object) -> Any:
        return run_sync(self._ours.call, input)


def _foreign_output(output: ToolOutput) -> Any:
    if isinstance(output, str):
        return output
    return [_foreign_block(block) for block in output]


_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def _foreign_block(block: ContentBlock) -> dict[str, Any]:
    match block:
        case ToolOutputImage() if block.url is not None and not block.url.startswith("data:"):
            return {"type": "image", "source": {"type": "url", "url": block.url}}
        case ToolOutputImage() if block.data is not None and block.mime_type in _IMAGES:
            return {"type": "image", "source": _inline(block, block.mime_type)}
        case ToolOutputFileContent() if block.mime_type == "application/pdf" and block.data:
            return {"type": "document", "source": _inline(block, block.mime_type)}
        case _:
            return {"type": "text", "text": described(block)}


def _inline(block: ToolOutputImage | ToolOutputFileContent, mime_type: str) -> dict[str, Any]:
    return {"type": "base64", "media_type": mime_type, "data": data_of(block)}


@overload
def from_anthropic_sdk(tool: _Foreign) -> FunctionTool[..., Any]: ...
@overload
def from_anthropic_sdk(tool: Sequence[_Foreign]) -> list[FunctionTool[..., Any]]: ...
def from_anthropic_sdk(tool: Any) -> Any:
    """Make our tools of tools of Anthropic's SDK, such as `@beta_tool` and `@beta_async_tool` make.

    Args:
        tool: One of them, or several.

    Raises:
        UserError: It is no such tool, or one whose arguments only Anthropic knows.
    """
    return imported(tool, _KINDS, _incoming, "from_anthropic_sdk")


_KINDS = (
    BetaAsyncFunctionTool,
    BetaAsyncBuiltinFunctionTool,
    BetaFunctionTool,
    BetaBuiltinFunctionTool,
)


def _incoming(foreign: Any) -> FunctionTool[..., Any]:
    wire: Mapping[str, Any] = foreign.to_dict()
    if "input_schema" not in wire:
        raise UserTypeError(
            f"The arguments of the tool {wire.get('name')!r} are known only to Anthropic's "
            f"models (its type is {wire.get('type')!r}). See the built-in tools of this library."
        )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context
        try:
            if isinstance(foreign, (BetaFunctionTool, BetaBuiltinFunctionTool)):
                return _own_output(await in_thread(foreign.call, arguments))
            return _own_output(await foreign.call(arguments))
        except ForeignToolError as error:
            raise ToolError(str(error)) from error

    return incoming(
        framework="Anthropic",
        name=foreign.name,
        description=cast("Any", wire.get("description")),
        schema=cast("Mapping[str, Any]", wire["input_schema"]),
        call=call,
        strict_json_schema=bool(wire.get("strict")),
    )


def _own_output(output: Any) -> Any:
    if inspect.isgenerator(output):
        output = list(cast("Iterable[Any]", output))
    return [_own_block(block) for block in output] if are_blocks(output) else output


def _own_block(block: Mapping[str, Any]) -> ContentBlock:
    source: Mapping[str, Any] = block.get("source") or {}
    kinds = {"image": "image", "document": "file"}
    match block:
        case {"type": "text", "text": str(text)}:
            return ToolOutputText(text)
        case {"type": "image" | "document" as kind} if source.get("type") == "base64":
            return media(kinds[kind], data=source["data"], mime_type=source["media_type"])
        case {"type": "image" | "document" as kind} if source.get("type") == "url":
            return media(kinds[kind], url=source["url"])
        case _:
            return ToolOutputText(shown(block))
