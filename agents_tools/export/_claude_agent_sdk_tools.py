"""Tools of the Claude Agent SDK as ours."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, cast, get_args, get_origin

from pydantic import Field
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from agents_tools._records import ToolAnnotations
from agents_tools.errors import ToolError
from agents_tools.export._incoming import incoming
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)

if TYPE_CHECKING:
    from agents_tools.context import ToolContext
    from agents_tools.tool import FunctionTool

__all__ = ["tool_here"]


def tool_here(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    """Make ours of a tool of the SDK."""

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # they take no more than their arguments
        return _own_output(await tool.handler(arguments))

    return incoming(
        framework="Claude Agent SDK",
        name=tool.name,
        description=tool.description,
        schema=_schema(tool.name, tool.input_schema),
        call=call,
        annotations=_annotations(tool.annotations),
        failure_error_function=failure_error_function,
    )


def _schema(name: str, given: Any) -> Any:
    """Give what they take for a schema: JSON Schema, a typed dict, or types by name."""
    if isinstance(given, dict):
        if isinstance(given.get("type"), str) and "properties" in given:
            return given
        return _typed(name, given) if given else None
    if not is_typeddict(given):
        return None
    hints = get_type_hints(given, include_extras=True)
    return _typed(name, {key: _marked(given, key, hint) for key, hint in hints.items()})


def _typed(name: str, fields: dict[str, Any]) -> Any:
    make: Any = TypedDict  # what pydantic takes on every Python, unlike the one of `typing`
    return make(f"{name}_args", {key: _described(hint) for key, hint in fields.items()})


def _described(hint: Any) -> Any:
    """Make the text that describes a field what pydantic knows as its description."""
    origin = get_origin(hint)
    if origin in {Required, NotRequired}:
        return cast("Any", origin)[_described(get_args(hint)[0])]
    texts = [note for note in get_args(hint)[1:] if isinstance(note, str)]
    if origin is not Annotated or not texts:
        return hint
    return Annotated[hint, Field(description=texts[0])]


def _marked(given: Any, key: str, hint: Any) -> Any:
    """Say of a field whether it may be missing, as its class does."""
    if get_origin(hint) in {Required, NotRequired}:
        return hint
    return Required[hint] if key in given.__required_keys__ else NotRequired[hint]


def _annotations(given: Any) -> ToolAnnotations | None:
    if given is None:
        return None
    known = given.model_dump(by_alias=True, exclude_none=True)
    return ToolAnnotations(
        **{key: known[key] for key in ToolAnnotations.__dataclass_fields__ if key in known}
    )


def _own_output(given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise ToolError(f"The tool answered {type(given).__name__}, not a result with `content`.")
    result = cast("Mapping[str, Any]", given)
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ToolError(f"The tool answered a `content` that is a {type(content).__name__}.")
    blocks = [_own_block(item) for item in cast("list[Any]", content)]
    only = blocks[0] if len(blocks) == 1 else None
    seen: Any = only.text if isinstance(only, ToolOutputText) else blocks or ""
    return ToolResult(content=seen, is_error=True) if result.get("is_error") else seen


def _own_block(item: Any) -> ContentBlock:
    """Give a block of MCP as ours."""
    match item:
        case {"type": "text", "text": str(text)}:
            return ToolOutputText(text)
        case {"type": "image", "data": str(data)}:
            return ToolOutputImage(data=_decoded(data), mime_type=item.get("mimeType"))
        case {"type": "audio", "data": str(data)}:
            return ToolOutputAudio(data=_decoded(data), mime_type=item.get("mimeType"))
        case {"type": "resource", "resource": {"text": str(text)}}:
            return ToolOutputText(text)
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return ToolOutputFileContent(
                data=_decoded(data),
                filename=resource.get("uri"),
                mime_type=resource.get("mimeType"),
            )
        case {"type": "resource_link"}:
            told = (item.get(key) for key in ("name", "uri", "description"))
            return ToolOutputText("\n".join(str(part) for part in told if part))
        case _:
            kind = item.get("type") if isinstance(item, Mapping) else type(item).__name__
            raise ToolError(f"The tool answered a content block that is none of MCP: {kind!r:.60}.")


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ToolError(f"The tool answered with data that is no base64: {error}.") from error
