"""Tools as Gemini takes them: function declarations with a JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserValueError
from agents_tools.wire._compact import Form
from agents_tools.wire._project import Provider, project

if TYPE_CHECKING:
    from agents_tools._strict import JsonSchema
    from agents_tools.tool import FunctionTool

__all__ = ["to_gemini"]


def to_gemini(
    tool: FunctionTool[..., Any],
    *,
    strict: bool | None = None,  # noqa: ARG001 -- every provider is called alike
    inline_refs: bool = True,
) -> dict[str, Any]:
    """Describe a tool for Gemini, as one function declaration.

    Options of the tool come from `metadata["gemini"]`, for example `behavior`.

    Args:
        tool: The tool.
        strict: Means nothing here: Gemini has no strict mode for a single tool.
        inline_refs: Write out what the schema refers to. Gemini itself follows references only
            where they are not recursive or not required, and with nothing beside them.
    """
    return project(tool, PROVIDER, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, _strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    if not (tool.name[0].isalpha() or tool.name[0] == "_"):
        raise UserValueError(
            f"Gemini takes no tool called {tool.name!r}: a name must start with a letter or an "
            "underscore there; rename the tool"
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
    form=Form(
        bare_literals=False,
        null_literals=False,
        inline_refs=True,
        keywords=frozenset({"format", "minItems", "maxItems", "minimum", "maximum"}),
    ),
)
