"""Checks of the options of policies."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from typing import Any, cast

from typing_extensions import ParamSpec, TypeVar

from agents_tools.errors import UserTypeError
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.policy import Policy
from agents_tools.tool.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ToolT", "check_function", "with_parentheses"]

P = ParamSpec("P")
ToolT = TypeVar("ToolT", bound=FunctionTool[..., Any])
PolicyT = TypeVar("PolicyT", bound=Policy)

_TAKE_FUNCTIONS = {"input_guardrail", "output_guardrail", "redact"}
"""The policies whose first argument can be a function."""


def with_parentheses(factory: Callable[P, PolicyT]) -> Callable[P, PolicyT]:
    """Make a policy function explain that it needs parentheses when it decorates a tool directly.

    Args:
        factory: The policy function, such as `limit`.
    """

    @functools.wraps(factory)
    def checked(*args: P.args, **kwargs: P.kwargs) -> PolicyT:
        name = factory.__name__
        bare = args and not kwargs and isinstance(args[0], (FunctionTool, types.FunctionType))
        if bare and (isinstance(args[0], FunctionTool) or name not in _TAKE_FUNCTIONS):
            target: str = cast("Any", args[0]).__name__
            raise UserTypeError(
                f"policies.{name} expects its options in parentheses, got {target!r}. Write "
                f"@policies.{name}(...) above @function_tool."
            )
        return factory(*args, **kwargs)

    return checked


def check_function(
    policy: str, function: object, *parameters: str, can_be_async: bool = True
) -> None:
    """Check that a policy can call a function.

    Args:
        policy: The name of the policy, and of the option if that is not the only one.
        function: The function.
        parameters: The arguments that the policy passes.
        can_be_async: Whether the policy awaits the function.

    Raises:
        UserError: It is not a function, it has other parameters, or it is async and must not be.
    """
    got = type_with_article(function)
    if not can_be_async and inspect.iscoroutinefunction(function):
        raise UserTypeError(
            f"policies.{policy} expects a sync function, got an async one. Write it with `def`."
        )
    if callable(function):
        from agents_tools.schema.signature import mismatched_signature

        signature = mismatched_signature(function, *parameters)
        if signature is None:
            return
        got = f"{getattr(function, '__name__', 'a function')}{signature}"
    raise UserTypeError(
        f"policies.{policy} expects a function of ({', '.join(parameters)}), got {got:.200}. "
        "Change its parameters."
    )
