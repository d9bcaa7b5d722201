"""Tool definitions for the chat completions API of OpenAI and compatible servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.schema.strict import OPENAI_STRICT
from agents_tools.wire.hosted import raise_hosted_unsupported
from agents_tools.wire.project import Provider, project

if TYPE_CHECKING:
    from agents_tools.schema.references import JsonSchema
    from agents_tools.tool.tool import FunctionTool

__all__ = ["to_openai_chat"]


def to_openai_chat(
    tool: FunctionTool[..., Any],
    *,
    strict: bool | None = None,
    inline_refs: bool = False,
    model: str | None = None,
) -> dict[str, Any]:
    """Describe a tool for chat completions.

    Options of the tool come from `metadata["openai"]`, without those that only the Responses API
    supports.

    Args:
        tool: The tool.
        strict: Whether to use strict mode; by default the setting of the tool.
        inline_refs: Whether to replace references in the schema by their targets, for models that
            do not support references.
        model: The name of the model, for error messages.

    Raises:
        UserError: The tool is hosted; chat completions have no hosted tools.
    """
    if not hasattr(type(tool), "json_schema"):
        raise_hosted_unsupported(tool, model)
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


_RESPONSES_OPTIONS = frozenset({"defer_loading", "allowed_callers", "output_schema"})


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
    supported = {key: value for key, value in options.items() if key not in _RESPONSES_OPTIONS}
    return {"type": "function", "function": function, **supported}


PROVIDER = Provider(
    name="openai_chat",
    build=_build,
    options="openai",
    reserved=frozenset({"type", "function", "name", "parameters"}),
    strict=OPENAI_STRICT,
    strict_by_default=True,
)
