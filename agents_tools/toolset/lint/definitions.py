"""Tools from their definitions in a JSON document, to check them without their code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import MissingExtraError, ToolError, UserError, UserValueError
from agents_tools.schema.arguments import ArgumentReader
from agents_tools.tool.manual import ManualSource
from agents_tools.tool.naming import valid_tool_name
from agents_tools.tool.records import ToolAnnotations, ToolOrigin
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.lint.finding import Finding
from agents_tools.wire.diff import read_tool_list

if TYPE_CHECKING:
    from agents_tools.toolset.lint.finding import Tool

__all__ = ["is_tool_list", "tools_of_document"]

_MAX_DEPTH = 6
_HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def is_tool_list(document: object) -> bool:
    """Return whether a JSON document has definitions of tools, and not MCP servers.

    Args:
        document: The document.
    """
    if isinstance(document, Mapping):
        return "tools" in document and "mcpServers" not in document
    return isinstance(document, list)


def tools_of_document(
    document: object, place: str | None = None
) -> tuple[list[Tool], list[Finding]]:
    """Return the tools that a JSON document defines, and the findings about the others.

    The document is a list of tools in the format of any provider, an object with such a list as
    `tools` (as an MCP server returns it), or a list of servers with their tools.

    Args:
        document: The document.
        place: The name of its file, for findings.

    Raises:
        UserError: The document has no definitions of tools.
    """
    tools: list[Tool] = []
    found: list[Finding] = []
    for server, entry in _entries(document, None, 0):
        (shape,) = read_tool_list([entry])
        name = valid_tool_name(shape.name)
        origin = ToolOrigin(kind="schema", server=server, wire_name=shape.name, place=place)
        if name != shape.name:
            message = (
                f"has a name that providers do not accept ({shape.name!r:.80}): use 1 to 64 "
                "letters, digits, '_' and '-'"
            )
            found.append(_finding("not-portable", name, message, origin))
        try:
            source = ManualSource(
                name,
                shape.description,
                shape.parameters or {"type": "object", "properties": {}},
                _refuse,
                output_json_schema=shape.output,
                origin=origin,
            )
            _check_schema(name, shape.parameters)
        except UserError as error:
            found.append(_finding("declaration", name, str(error), origin))
            continue
        annotations = _annotations(entry.get("annotations"))
        tools.append(
            FunctionTool.of_source(source, strict_json_schema=False, annotations=annotations)
        )
    if not tools and not found:
        raise UserValueError(
            "The document has no definitions of tools: expected a list of objects with a name and "
            "a schema. Write one with: agents-tools schema TARGET"
        )
    return tools, found


def _check_schema(name: str, parameters: dict[str, Any] | None) -> None:
    """Raise a `UserError` if the JSON Schema is not valid; without the extra, all are valid."""
    with contextlib.suppress(MissingExtraError):
        ArgumentReader.of_schema(name, parameters or {})


async def _refuse(_context: object, _args_json: str) -> object:
    raise ToolError("This tool was read from its definition and cannot be called.")


def _entries(
    value: object, server: str | None, depth: int
) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the definitions in a document, each with the name of its server."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for member in cast("list[object]", value):
            yield from _entries(member, server, depth + 1)
    elif isinstance(value, Mapping):
        entry = cast("Mapping[str, Any]", value)
        inner = entry.get("tools")
        if isinstance(inner, list):
            name = entry.get("server_name") or entry.get("name") or server
            shown = name if isinstance(name, str) else server
            yield from _entries(cast("list[object]", inner), shown, depth + 1)
        elif isinstance(inner, Mapping):
            for name, part in cast("Mapping[str, object]", inner).items():
                yield from _entries(part, name, depth + 1)
        elif "name" in entry or "function" in entry or "toolSpec" in entry:
            yield server, entry


def _annotations(hints: object) -> ToolAnnotations | None:
    if not isinstance(hints, Mapping):
        return None
    found = cast("Mapping[str, Any]", hints)
    values = {key: found[key] for key in _HINTS if found.get(key) is not None}
    return ToolAnnotations(**values) if values else None


def _finding(code: str, name: str, message: str, origin: ToolOrigin) -> Finding:
    return Finding(
        level="error",
        code=code,
        tool=name,
        message=message,
        place=origin.place,
        server=origin.server,
    )
