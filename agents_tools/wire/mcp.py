"""Tools as the Model Context Protocol lists them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools._strict import References, subschemas
from agents_tools.wire._compact import Form, compact
from agents_tools.wire._project import Provider, project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools._strict import JsonSchema
    from agents_tools.tool import FunctionTool

__all__ = ["FREE_OUTPUT_VERSION", "output_is_wrapped", "to_mcp"]

FREE_OUTPUT_VERSION = "2026-07-28"
"""The first protocol version in which a structured result may be any JSON value."""


def to_mcp(
    tool: FunctionTool[..., Any],
    *,
    strict: bool | None = None,  # noqa: ARG001 -- every provider is called alike
    inline_refs: bool = False,
    protocol_version: str | None = None,
) -> dict[str, Any]:
    """Describe a tool for MCP, as one entry of a `tools/list` result.

    Options of the tool come from `metadata["mcp"]`, for example `title`, `icons`, `_meta`.

    Args:
        tool: The tool.
        strict: Means nothing here: MCP has no strict mode.
        inline_refs: Write out what the schema refers to, for clients that cannot follow it.
        protocol_version: The version spoken with the client. Before 2026-07-28 an output schema
            must be an object, and one that is not makes the client refuse the whole list; so an
            output of another kind is wrapped as `{"result": ...}`. Not given: wrapped, which every
            version takes. `output_is_wrapped` tells whether the structured result needs the same.
    """
    wrap = protocol_version is None or protocol_version < FREE_OUTPUT_VERSION
    return project(tool, WRAPPING if wrap else PROVIDER, inline_refs=inline_refs).wire


def output_is_wrapped(
    schema: Mapping[str, Any] | None, protocol_version: str | None = None
) -> bool:
    """Say whether a structured result goes out as `{"result": ...}`."""
    if schema is None or (protocol_version is not None and protocol_version >= FREE_OUTPUT_VERSION):
        return False
    return not _is_object(schema)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return References(schema).followed(dict(schema)).get("type") == "object"


HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _build(
    tool: FunctionTool[..., Any],
    parameters: JsonSchema,
    _strict: bool,
    options: dict[str, Any],
    *,
    wrap: bool = False,
) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name}
    if tool.description:
        out["description"] = tool.description
    out["inputSchema"] = parameters
    if tool.output_json_schema is not None:
        out["outputSchema"] = _output(tool.output_json_schema, wrap=wrap)
    hints = {hint: getattr(tool.annotations, hint, None) for hint in HINTS}
    if any(value is not None for value in hints.values()):
        out["annotations"] = {hint: value for hint, value in hints.items() if value is not None}
    return {**out, **options}


def _output(schema: JsonSchema, *, wrap: bool) -> JsonSchema:
    """Describe what comes back: nothing is closed, and null stays where it can come."""
    short = compact(schema, Form(close=False, omit_null=False, bare_literals=False))
    if not wrap:
        return short
    if _is_object(short):
        return {"type": "object", **short}
    definitions: JsonSchema = short.pop("$defs", {})
    if _point_to_result(short, *definitions.values()):
        definitions["result"], short = short, {"$ref": _RESULT}
    out: JsonSchema = {"type": "object", "properties": {"result": short}, "required": ["result"]}
    return {**out, "$defs": definitions} if definitions else out


_RESULT = "#/$defs/result"


def _point_to_result(*schemas: JsonSchema) -> bool:
    """Turn references to the root, which is about to move, into ones to a definition."""
    found = False
    waiting = list(schemas)
    while waiting:
        node = waiting.pop()
        if node.get("$ref") == "#":
            node["$ref"], found = _RESULT, True
        waiting.extend(child for _, child in subschemas(node))
    return found


def _wrapping(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    return _build(tool, parameters, strict, options, wrap=True)


PROVIDER = Provider(
    name="mcp",
    build=_build,
    options="mcp",
    reserved=frozenset({"name", "inputSchema", "outputSchema"}),
    form=Form(bare_literals=False),
    any_root=True,
    takes_any=True,
)

WRAPPING = replace(PROVIDER, name="mcp (wrapped output)", build=_wrapping)
