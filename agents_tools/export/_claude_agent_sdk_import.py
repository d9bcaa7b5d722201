"""Tools of the Claude Agent SDK as function tools."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, cast, get_args, get_origin

from pydantic import Field
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.errors import ToolError
from agents_tools.export._import_tool import import_tool
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["from_foreign_tool"]


def from_foreign_tool(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    """Convert a tool of the SDK to a function tool."""

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # handlers of the SDK get only the arguments
        return _from_foreign_output(await tool.handler(arguments))

    return import_tool(
        framework="Claude Agent SDK",
        name=tool.name,
        description=tool.description,
        schema=_schema(tool.name, tool.input_schema),
        call=call,
        annotations=_annotations(tool.annotations),
        failure_error_function=failure_error_function,
    )


def _schema(name: str, input_schema: Any) -> Any:
    """Return the schema of a tool, from a JSON Schema, a `TypedDict` or a mapping of types."""
    if isinstance(input_schema, dict):
        if isinstance(input_schema.get("type"), str) and "properties" in input_schema:
            return input_schema
        return _typed_dict(name, input_schema) if input_schema else None
    if not is_typeddict(input_schema):
        return None
    hints = get_type_hints(input_schema, include_extras=True)
    fields = {key: _with_required(input_schema, key, hint) for key, hint in hints.items()}
    return _typed_dict(name, fields)


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    make: Any = TypedDict  # pydantic rejects the one of `typing` on older versions of Python
    return make(f"{name}_args", {key: _with_description(hint) for key, hint in fields.items()})


def _with_description(hint: Any) -> Any:
    """Convert a string in `Annotated` to a pydantic description."""
    origin = get_origin(hint)
    if origin in {Required, NotRequired}:
        return cast("Any", origin)[_with_description(get_args(hint)[0])]
    texts = [note for note in get_args(hint)[1:] if isinstance(note, str)]
    if origin is not Annotated or not texts:
        return hint
    return Annotated[hint, Field(description=texts[0])]


def _with_required(typed_dict: Any, key: str, hint: Any) -> Any:
    """Mark a field as required or not required, as its class does."""
    if get_origin(hint) in {Required, NotRequired}:
        return hint
    return Required[hint] if key in typed_dict.__required_keys__ else NotRequired[hint]


def _annotations(annotations: Any) -> ToolAnnotations | None:
    if annotations is None:
        return None
    hints = annotations.model_dump(by_alias=True, exclude_none=True)
    return ToolAnnotations(
        **{key: hints[key] for key in ToolAnnotations.__dataclass_fields__ if key in hints}
    )


def _from_foreign_output(output: Any) -> Any:
    if not isinstance(output, Mapping):
        raise ToolError(
            f"The tool returned an invalid result: expected a mapping with `content`, got "
            f"{type(output).__name__}."
        )
    result = cast("Mapping[str, Any]", output)
    items = result.get("content", [])
    if not isinstance(items, list):
        raise ToolError(
            f"The tool returned an invalid `content`: expected a list, got {type(items).__name__}."
        )
    blocks = [_from_foreign_block(item) for item in cast("list[Any]", items)]
    only = blocks[0] if len(blocks) == 1 else None
    content: Any = only.text if isinstance(only, ToolOutputText) else blocks or ""
    return ToolResult(content=content, is_error=True) if result.get("is_error") else content


def _from_foreign_block(item: Any) -> ContentBlock:
    """Convert an MCP content block."""
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
            fields = (item.get(key) for key in ("name", "uri", "description"))
            return ToolOutputText("\n".join(str(field) for field in fields if field))
        case _:
            kind = item.get("type") if isinstance(item, Mapping) else type(item).__name__
            raise ToolError(
                f"The tool returned an invalid content block: expected a block of MCP, got "
                f"{kind!r:.60}."
            )


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ToolError(f"The tool returned data that is not valid base64: {error}.") from error
