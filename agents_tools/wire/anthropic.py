"""Tool definitions for the Messages API of Anthropic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agents_tools.schema.strict import ANTHROPIC_STRICT
from agents_tools.wire.project import Provider, project

if TYPE_CHECKING:
    from agents_tools.schema.references import JsonSchema
    from agents_tools.tool.tool import FunctionTool

__all__ = ["to_anthropic"]


def to_anthropic(
    tool: FunctionTool[..., Any], *, strict: bool | None = None, inline_refs: bool = False
) -> dict[str, Any]:
    """Describe a tool for Anthropic.

    Options of the tool come from `metadata["anthropic"]`, for example `cache_control`, or
    `{"strict": True}`. Parameters whose names Anthropic does not accept are renamed.

    Args:
        tool: The tool.
        strict: Whether to use strict mode. Off unless set here or in the options, because the API
            rejects a request with too many strict tools. Optional parameters stay optional.
        inline_refs: Whether to replace references in the schema by their targets.
    """
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name}
    if tool.description:
        out["description"] = tool.description
    out["input_schema"] = parameters
    if strict:
        out["strict"] = True
    return {**out, **options}


PROVIDER = Provider(
    name="anthropic",
    build=_build,
    options="anthropic",
    reserved=frozenset({"type", "name", "input_schema"}),
    strict=ANTHROPIC_STRICT,
    property_names=re.compile(r"[A-Za-z0-9_.-]{1,64}"),
)
