"""Functions that look at the arguments and the results of calls."""

from __future__ import annotations

import typing
from typing import Any

from agents_tools.errors import UserTypeError
from agents_tools.policies._change import Change, change_around

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["input_guardrail", "output_guardrail"]


def input_guardrail(
    function: Callable[[ToolContext[Any], dict[str, Any]], Any],
) -> Change:
    """Look at the arguments of each call before it runs, and before anybody approves it.

    Args:
        function: Called with the context and the arguments; sync or async. It gives `None` to let
            the call pass, other arguments as a dictionary to let it run with those, or raises
            `ToolDeniedError` or `ToolError` with what the model is told.
    """

    async def prepare(context: ToolContext[Any], args_json: str) -> str:
        given = function(context, dict(context.arguments))
        if hasattr(given, "__await__"):
            given = await given
        if given is None:
            return args_json
        if not isinstance(given, dict):
            raise UserTypeError(
                f"The input guardrail of tool {context.tool_name!r} gives None or a dictionary of "
                f"arguments, not a {type(given).__name__}."
            )
        from pydantic_core import to_json

        return to_json(given).decode()

    return change_around("input_guardrail(...)", lambda inner: inner, prepare=prepare)


def output_guardrail(function: Callable[[ToolContext[Any], Any], Any]) -> Change:
    """Look at what each call returns before anybody else does.

    Args:
        function: Called with the context and the value; sync or async. It gives `None` to let the
            value pass, another one to put in its place, or raises `ToolError` to hold it back and
            tell the model why.
    """

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            value = await inner(context, args_json)
            given = function(context, value)
            if hasattr(given, "__await__"):
                given = await given
            return value if given is None else given

        return call

    return change_around("output_guardrail(...)", wrap)
