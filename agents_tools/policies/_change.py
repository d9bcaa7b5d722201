"""What a policy function gives: something that turns a tool into another tool."""

from __future__ import annotations

import typing
from typing import Any

from typing_extensions import TypeVar

from agents_tools._records import Policy
from agents_tools.errors import ModelBehaviorError, UserTypeError
from agents_tools.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["Change", "ToolT", "change_around", "comes_from_body", "marked"]

ToolT = TypeVar("ToolT", bound=FunctionTool[..., Any])


class Change:
    """What a policy function gives: it turns a tool into another one."""

    def __init__(self, name: str, change: Callable[[Any], Any]) -> None:
        self._name = name
        self._change = change

    def __call__(self, tool: ToolT) -> ToolT:
        """Apply the policy to a tool."""
        become = getattr(tool, "as_function_tool", None)  # class-based tools
        if become is not None:
            tool = become()
        if not isinstance(tool, FunctionTool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The policy {self._name} goes around a tool, not around a "
                f"{type(tool).__name__}. Put it above `@function_tool`, not below."
            )
        return self._change(tool)

    def __repr__(self) -> str:
        """Show the policy as it was written."""
        return f"<policy {self._name}>"


def change_around(name: str, wrap: Callable[[Call], Call], **more: Any) -> Change:
    """Make a policy that goes around the body of a tool.

    Args:
        name: What it is called, in a tool's repr and in errors.
        wrap: From the call inside to the call outside.
        **more: The other fields of `Policy`.
    """
    policy = Policy(name=name, wrap=wrap, **more)
    return Change(name, lambda tool: tool.with_(policy=policy))


def marked(tool: FunctionTool[..., Any], **facts: Any) -> FunctionTool[..., Any]:
    """Put facts into the metadata namespace that is the library's own."""
    own = {**tool.metadata.get("agents_tools", {}), **facts}
    return tool.with_(metadata={**tool.metadata, "agents_tools": own})


def comes_from_body(error: Exception, context: ToolContext[Any]) -> bool:
    """Whether an error was raised with arguments that the tool accepts.

    A tool that was made by hand reads its arguments itself, and says of what kind its error is.
    """
    if context.validated:
        return True
    by_hand = context.tool is not None and context.tool.origin.kind == "manual"
    return by_hand and not isinstance(error, ModelBehaviorError)
