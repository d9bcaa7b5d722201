"""Tools as the chat completions API of OpenAI takes them, and many servers that speak it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools._strict import OPENAI_STRICT, JsonSchema
from agents_tools.errors import UserTypeError
from agents_tools.wire._project import Provider, project

if TYPE_CHECKING:
    from agents_tools.tool import FunctionTool

__all__ = ["refuse_hosted", "to_openai_chat"]


def to_openai_chat(
    tool: FunctionTool[..., Any],
    *,
    strict: bool | None = None,
    inline_refs: bool = False,
    model: str | None = None,
) -> dict[str, Any]:
    """Describe a tool for chat completions.

    Options of the tool come from `metadata["openai"]`, without those that only the Responses API
    knows.

    Args:
        tool: The tool.
        strict: Hold the model to the schema; as the tool says if not given.
        inline_refs: Write out what the schema refers to, for models that cannot follow references.
        model: The model the tool is for, to be named where the tool cannot be exported.

    Raises:
        UserError: The tool is one that the provider runs, which only the Responses API takes.
    """
    if not hasattr(type(tool), "json_schema"):
        refuse_hosted(tool, model)
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


def refuse_hosted(tool: object, model: str | None = None) -> None:
    """Say why a hosted tool cannot go to a model over chat completions.

    Raises:
        UserError: Always.
    """
    kind = type(tool).__name__
    name = getattr(tool, "name", None) or kind
    asked = f"model {model!r}" if model else "this model"
    raise UserTypeError(
        f"tool {name!r} ({kind}) runs at the provider and needs the Responses API, but {asked} is "
        'reached over chat completions; choose a model named "openai/…" or leave the tool out'
    )


_OF_RESPONSES = frozenset({"defer_loading", "allowed_callers", "output_schema"})


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
    }
    if strict:
        function["strict"] = True
    if "description" in options:
        function["description"] = options.pop("description")
    kept = {key: value for key, value in options.items() if key not in _OF_RESPONSES}
    return {"type": "function", "function": function, **kept}


PROVIDER = Provider(
    name="openai_chat",
    build=_build,
    options="openai",
    reserved=frozenset({"type", "function", "name", "parameters"}),
    strict=OPENAI_STRICT,
    strict_by_default=True,
)
