"""The decorator that policy functions return, and helpers to create it."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, Final, cast

from typing_extensions import ParamSpec, TypeVar

from agents_tools.errors import ModelBehaviorError, UserTypeError
from agents_tools.tool.records import Policy
from agents_tools.tool.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import Call

__all__ = [
    "PolicyDecorator",
    "ToolT",
    "change_around",
    "comes_from_body",
    "marked",
    "with_parentheses",
]

P = ParamSpec("P")
ToolT = TypeVar("ToolT", bound=FunctionTool[..., Any])

_TAKE_FUNCTIONS = {"input_guardrail", "output_guardrail", "redact"}
"""The policies whose first argument can be a function."""


class PolicyDecorator:
    """A decorator that takes a tool and returns a wrapped tool.

    Attributes:
        is_policy: Always true; `function_tool` rejects a policy in the place of a function.
    """

    is_policy: Final = True

    def __init__(self, name: str, change: Callable[[Any], Any]) -> None:
        self._name = name
        self._change = change

    def __call__(self, tool: ToolT) -> ToolT:
        """Return the tool with the policy applied.

        Raises:
            UserError: The argument is not a tool.
        """
        convert = getattr(tool, "as_function_tool", None)  # class-based tools
        if convert is not None:
            tool = convert()
        if not isinstance(tool, FunctionTool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The policy {self._name} cannot be applied: expected a tool, got a "
                f"{type(tool).__name__}. Put the policy above `@function_tool`, not below."
            )
        return self._change(tool)

    def __repr__(self) -> str:
        """Return the policy as it was written."""
        return f"<policy {self._name}>"


DecoratorT = TypeVar("DecoratorT", bound=PolicyDecorator)


def with_parentheses(factory: Callable[P, DecoratorT]) -> Callable[P, DecoratorT]:
    """Make a policy function explain that it needs parentheses when it decorates a tool directly.

    Args:
        factory: The policy function, such as `limit`.
    """

    @functools.wraps(factory)
    def checked(*args: P.args, **kwargs: P.kwargs) -> DecoratorT:
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


def change_around(name: str, wrap: Callable[[Call], Call], **more: Any) -> PolicyDecorator:
    """Create a policy that wraps the function of a tool.

    Args:
        name: The name of the policy in the repr of a tool and in errors.
        wrap: A function that takes the inner call and returns the outer call.
        **more: Other fields of `Policy`.
    """
    policy = Policy(name=name, wrap=wrap, **more)
    return PolicyDecorator(name, lambda tool: tool.with_(policy=policy))


def marked(tool: FunctionTool[..., Any], **facts: Any) -> FunctionTool[..., Any]:
    """Return a tool with more entries in the metadata of this library."""
    merged = {**tool.metadata.get("agents_tools", {}), **facts}
    return tool.with_(metadata={**tool.metadata, "agents_tools": merged})


def comes_from_body(error: Exception, context: ToolContext[Any]) -> bool:
    """Return whether an error was raised after the arguments were accepted.

    A manual tool (`FunctionTool(on_invoke_tool=...)`) validates its arguments itself, so there the
    type of the error decides.
    """
    if context.validated:
        return True
    is_manual = context.tool is not None and context.tool.origin.kind == "manual"
    return is_manual and not isinstance(error, ModelBehaviorError)
