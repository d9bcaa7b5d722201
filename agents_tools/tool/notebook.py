"""The display of a tool in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.schema.lookup import named_types
from agents_tools.text.escape import describe_value
from agents_tools.text.html import html_block, html_table, html_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["tool_html"]


def tool_html(
    name: str, policies: Sequence[str], description: str, schema: Mapping[str, Any]
) -> str:
    """Return the name, policies, description and parameters of a tool as HTML."""
    headers = ("parameter", "type", "default", "description")
    return html_block(
        name, policies, html_text(description), html_table(headers, _parameters(schema))
    )


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    properties: dict[str, Any] = schema.get("properties") or {}
    for name, one in properties.items():
        absent = "required" if name in required else ""
        default = describe_value(one["default"]) if "default" in one else absent
        yield name, _type_text(one), default, one.get("description", "")


def _type_text(schema: dict[str, Any]) -> str:
    if "enum" in schema or "const" in schema:
        return " | ".join(map(describe_value, schema.get("enum", [schema.get("const")])))
    if items := schema.get("items"):
        return f"array of {_type_text(items)}"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(map(_type_text, options))
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rpartition("/")[2]
    return " | ".join(named_types(schema)) or "any"
