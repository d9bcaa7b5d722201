"""Guardrails: functions that check the arguments and the results of calls."""

from __future__ import annotations

import typing
from typing import Any, cast

from agents_tools.errors import UserTypeError
from agents_tools.policies._policy import check_function, with_parentheses
from agents_tools.schema.json_schema import copy_json
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.policy import Run

__all__ = ["input_guardrail", "output_guardrail"]


@with_parentheses
def input_guardrail(
    function: Callable[[ToolContext[Any], dict[str, Any]], Any],
) -> Policy:
    """Check the arguments of each call before its approval and before it runs.

    Args:
        function: Called with the context and the arguments; sync or async. It returns `None` to
            allow the call or a dictionary to replace the arguments, or raises `ToolDeniedError` or
            `ToolError` with a message for the model.
    """
    return _InputGuardrail(function)


class _InputGuardrail(Policy):
    name = "input_guardrail(...)"

    def __init__(self, function: Callable[[ToolContext[Any], dict[str, Any]], Any]) -> None:
        check_function("input_guardrail", function, "context", "arguments")
        self._function = function

    async def before(self, call: Call) -> Mapping[str, Any] | None:
        arguments = self._function(call.context, copy_json(call.arguments))
        if hasattr(arguments, "__await__"):
            arguments = await arguments
        if arguments is not None and not isinstance(arguments, dict):
            raise UserTypeError(
                f"The input guardrail of tool {call.tool_name!r} returned a wrong value: "
                f"expected None or a dictionary of arguments, got {type_with_article(arguments)}."
            )
        return cast("dict[str, Any] | None", arguments)


@with_parentheses
def output_guardrail(function: Callable[[ToolContext[Any], Any], Any]) -> Policy:
    """Check the return value of each call before anything else uses it.

    Args:
        function: Called with the context and the value; sync or async. It returns `None` to keep
            the value or another value to replace it, or raises `ToolError` with a message for the
            model.
    """
    return _OutputGuardrail(function)


class _OutputGuardrail(Policy):
    name = "output_guardrail(...)"

    def __init__(self, function: Callable[[ToolContext[Any], Any], Any]) -> None:
        check_function("output_guardrail", function, "context", "value")
        self._function = function

    async def around(self, call: Call, call_next: Run) -> Any:
        value = await call_next(call)
        replacement = self._function(call.context, value)
        if hasattr(replacement, "__await__"):
            replacement = await replacement
        return value if replacement is None else replacement
