"""Tool definitions for the Responses API of OpenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.schema.strict import OPENAI_STRICT
from agents_tools.wire.project import Provider, project

if TYPE_CHECKING:
    from agents_tools.schema.references import JsonSchema
    from agents_tools.tool.tool import FunctionTool

__all__ = ["to_openai_responses"]


def to_openai_responses(
    tool: FunctionTool[..., Any], *, strict: bool | None = None, inline_refs: bool = False
) -> dict[str, Any]:
    """Describe a tool for the Responses API.

    Options of the tool come from `metadata["openai"]`, for example `defer_loading`.

    Args:
        tool: The tool.
        strict: Whether to use strict mode; by default the setting of the tool.
        inline_refs: Whether to replace references in the schema by their targets.
    """
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    # `strict` is always set, because the API rewrites the schema if it is missing.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": strict,
        **options,
    }


PROVIDER = Provider(
    name="openai_responses",
    build=_build,
    options="openai",
    reserved=frozenset({"type", "name", "parameters"}),
    strict=OPENAI_STRICT,
    strict_by_default=True,
)
