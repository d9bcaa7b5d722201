"""Tools as the Responses API of OpenAI takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools._strict import OPENAI_STRICT, JsonSchema
from agents_tools.wire._project import Provider, project

if TYPE_CHECKING:
    from agents_tools.tool import FunctionTool

__all__ = ["to_openai_responses"]


def to_openai_responses(
    tool: FunctionTool[..., Any], *, strict: bool | None = None, inline_refs: bool = False
) -> dict[str, Any]:
    """Describe a tool for the Responses API.

    Options of the tool come from `metadata["openai"]`, for example `defer_loading`.

    Args:
        tool: The tool.
        strict: Hold the model to the schema; as the tool says if not given.
        inline_refs: Write out what the schema refers to.
    """
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    # `strict` is always said: where it is left out, the API rewrites the schema on its own.
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
