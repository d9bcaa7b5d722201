"""Tool definitions for the Model Context Protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools.schema.references import References, subschemas
from agents_tools.wire.compact import CompactForm, compact
from agents_tools.wire.project import Provider, project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.schema.references import JsonSchema
    from agents_tools.tool.tool import FunctionTool

__all__ = ["FREE_OUTPUT_VERSION", "output_is_wrapped", "to_mcp"]

FREE_OUTPUT_VERSION = "2026-07-28"
"""The first protocol version in which a structured result can be any JSON value."""


def to_mcp(
    tool: FunctionTool[..., Any],
    *,
    strict: bool | None = None,  # noqa: ARG001 -- all providers have the same parameters
    inline_refs: bool = False,
    protocol_version: str | None = None,
) -> dict[str, Any]:
    """Describe a tool for MCP, as one entry of a `tools/list` result.

    Options of the tool come from `metadata["mcp"]`, for example `title`, `icons`, `_meta`.

    Args:
        tool: The tool.
        strict: Ignored: MCP has no strict mode.
        inline_refs: Whether to replace references in the schema by their targets, for clients
            that do not support references.
        protocol_version: The protocol version of the client. Before 2026-07-28, an output schema
            must describe an object, or clients reject the whole list. Other outputs are therefore
            wrapped as `{"result": ...}`; this is the default, because it works with every
            version. `output_is_wrapped` returns whether to wrap the structured result.
    """
    wrap = protocol_version is None or protocol_version < FREE_OUTPUT_VERSION
    return project(tool, WRAPPING if wrap else PROVIDER, inline_refs=inline_refs).wire


def output_is_wrapped(
    schema: Mapping[str, Any] | None, protocol_version: str | None = None
) -> bool:
    """Return whether a structured result is sent as `{"result": ...}`."""
    if schema is None or (protocol_version is not None and protocol_version >= FREE_OUTPUT_VERSION):
        return False
    return not _is_object(schema)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return References(schema).follow(dict(schema)).get("type") == "object"


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
    """Return the output schema, without closing objects or removing null from unions."""
    short = compact(schema, CompactForm(close=False, omit_null=False, bare_literals=False))
    if not wrap:
        return short
    if _is_object(short):
        return {"type": "object", **short}
    definitions: JsonSchema = short.pop("$defs", {})
    if _redirect_to_result(short, *definitions.values()):
        definitions["result"], short = short, {"$ref": _RESULT}
    out: JsonSchema = {"type": "object", "properties": {"result": short}, "required": ["result"]}
    return {**out, "$defs": definitions} if definitions else out


_RESULT = "#/$defs/result"


def _redirect_to_result(*schemas: JsonSchema) -> bool:
    """Change references to the old root to its definition; return whether there were any."""
    has_changed = False
    pending = list(schemas)
    while pending:
        node = pending.pop()
        if node.get("$ref") == "#":
            node["$ref"], has_changed = _RESULT, True
        pending.extend(child for _, child in subschemas(node))
    return has_changed


def _wrapping(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    return _build(tool, parameters, strict, options, wrap=True)


PROVIDER = Provider(
    name="mcp",
    build=_build,
    options="mcp",
    reserved=frozenset({"name", "inputSchema", "outputSchema"}),
    form=CompactForm(bare_literals=False),
    allow_combined_root=True,
    accepts_any_schema=True,
)

WRAPPING = replace(PROVIDER, name="mcp (wrapped output)", build=_wrapping)
