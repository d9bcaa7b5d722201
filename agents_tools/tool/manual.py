"""Declarations of tools that are made from a JSON Schema instead of a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.tool.json_schema import check_params_schema, schema_reader
from agents_tools.tool.naming import check_tool_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import RawDeclaration

__all__ = ["manual_declaration", "schema_declaration"]


def manual_declaration(
    name: str,
    description: str,
    params_json_schema: Mapping[str, Any],
    output_json_schema: Mapping[str, Any] | None,
    on_invoke_tool: Callable[[Any, str], Awaitable[Any]],
) -> RawDeclaration:
    """Return the declaration of a tool whose function validates its arguments itself."""
    from agents_tools.tool.declaration import RawDeclaration, ToolOrigin

    return RawDeclaration(
        name=check_tool_name(name),
        description=description,
        json_schema=check_params_schema(name, params_json_schema),
        output_json_schema=None if output_json_schema is None else dict(output_json_schema),
        body=on_invoke_tool,
        origin=ToolOrigin(kind="manual"),
    )


def schema_declaration(
    name: str,
    description: str,
    schema: type | Mapping[str, Any],
    output_json_schema: Mapping[str, Any] | None,
    on_invoke_tool: Callable[[Any, str], Awaitable[Any]],
    *,
    enforce: bool,
) -> RawDeclaration:
    """Return the declaration of a tool whose arguments are validated before its function runs.

    Raises:
        UserError: The schema cannot be described or enforced.
    """
    from agents_tools.tool.declaration import RawDeclaration, ToolOrigin

    json_schema, normalize = schema_reader(check_tool_name(name), schema, enforce=enforce)

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        if normalize is not None:
            args_json = normalize(args_json)
        context.validated = True
        return await on_invoke_tool(context, args_json)

    return RawDeclaration(
        name=name,
        description=description,
        json_schema=check_params_schema(name, json_schema),
        output_json_schema=None if output_json_schema is None else dict(output_json_schema),
        body=body,
        origin=ToolOrigin(kind="schema"),
        reader=normalize,
    )
