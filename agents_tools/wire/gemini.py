"""Tool definitions for Gemini: function declarations with a JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserValueError
from agents_tools.wire.compact import CompactForm
from agents_tools.wire.project import Provider, project

if TYPE_CHECKING:
    from agents_tools.schema.references import JsonSchema
    from agents_tools.tool.tool import FunctionTool

__all__ = ["to_gemini"]


def to_gemini(
    tool: FunctionTool[..., Any],
    *,
    strict: bool | None = None,  # noqa: ARG001 -- all providers have the same parameters
    inline_refs: bool = True,
) -> dict[str, Any]:
    """Describe a tool for Gemini, as one function declaration.

    Options of the tool come from `metadata["gemini"]`, for example `behavior`.

    Args:
        tool: The tool.
        strict: Ignored: Gemini has no strict mode for a single tool.
        inline_refs: Whether to replace references in the schema by their targets. Gemini itself
            supports recursive references only in optional properties, and no keywords next to a
            reference.
    """
    return project(tool, PROVIDER, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, _strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    if not (tool.name[0].isalpha() or tool.name[0] == "_"):
        raise UserValueError(
            f"the name {tool.name!r} is invalid: expected a letter or an underscore first. Rename "
            "the tool, for example with policies.rename"
        )
    out: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if parameters["properties"] or parameters.get("additionalProperties"):
        out["parametersJsonSchema"] = parameters
    return {**out, **options}


PROVIDER = Provider(
    name="gemini",
    build=_build,
    options="gemini",
    reserved=frozenset({"name", "parameters", "parametersJsonSchema", "parameters_json_schema"}),
    form=CompactForm(
        bare_literals=False,
        null_literals=False,
        inline_refs=True,
        keywords=frozenset({"format", "minItems", "maxItems", "minimum", "maximum"}),
    ),
)
