"""Guardrails: functions that check the arguments and the results of calls."""

from __future__ import annotations

import typing
from typing import Any

from agents_tools.errors import UserTypeError
from agents_tools.policies._policy import PolicyDecorator, change_around, with_parentheses

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import Call

__all__ = ["input_guardrail", "output_guardrail"]


@with_parentheses
def input_guardrail(
    function: Callable[[ToolContext[Any], dict[str, Any]], Any],
) -> PolicyDecorator:
    """Check the arguments of each call before its approval and before it runs.

    Args:
        function: Called with the context and the arguments; sync or async. It returns `None` to
            allow the call or a dictionary to replace the arguments, or raises `ToolDeniedError` or
            `ToolError` with a message for the model.
    """

    async def prepare(context: ToolContext[Any], args_json: str) -> str:
        arguments = function(context, dict(context.arguments))
        if hasattr(arguments, "__await__"):
            arguments = await arguments
        if arguments is None:
            return args_json
        if not isinstance(arguments, dict):
            raise UserTypeError(
                f"The input guardrail of tool {context.tool_name!r} returned a wrong value: "
                f"expected None or a dictionary of arguments, got a {type(arguments).__name__}."
            )
        from pydantic_core import to_json

        return to_json(arguments).decode()

    return change_around("input_guardrail(...)", lambda inner: inner, prepare=prepare)


@with_parentheses
def output_guardrail(function: Callable[[ToolContext[Any], Any], Any]) -> PolicyDecorator:
    """Check the return value of each call before anything else uses it.

    Args:
        function: Called with the context and the value; sync or async. It returns `None` to keep
            the value or another value to replace it, or raises `ToolError` with a message for the
            model.
    """

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            value = await inner(context, args_json)
            replacement = function(context, value)
            if hasattr(replacement, "__await__"):
                replacement = await replacement
            return value if replacement is None else replacement

        return call

    return change_around("output_guardrail(...)", wrap)
