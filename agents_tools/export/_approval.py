"""A person's decision about a call that another framework asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools._records import Decision, Policy
from agents_tools.context import RunScope, ToolContext
from agents_tools.errors import Interruption
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from agents_tools.tool import FunctionTool

__all__ = ["decided", "is_undecided", "says_yes"]


async def is_undecided(
    tool: FunctionTool[..., Any], args_json: str, *, call_id: str | None, context: Any
) -> bool:
    """Whether a person has to decide before a call may run.

    Args:
        tool: The tool.
        args_json: The arguments.
        call_id: The id of the call.
        context: The application's object.
    """
    if not tool.needs_admission:
        return False
    scope: RunScope[Any] = RunScope(
        context,
        agent=None,
        run_id="",
        usage=Usage(),
        sinks=(),
        channel=None,
        parent=None,
        deadline=None,
        asker=None,
        run=None,
    )
    # Asked of a call that is never made: only one in a run says that it has to wait.
    asked: ToolContext[Any] = ToolContext(
        context, tool_name=tool.name, tool_call_id=call_id, parent=scope
    )
    try:
        await tool.admit(asked, await tool.prepare(asked, args_json))
    except Interruption:
        return True
    return False


def decided(tool: FunctionTool[..., Any], approved: bool, message: str | None = None) -> Any:
    """Give the tool for one call that a person has decided about.

    Args:
        tool: The tool.
        approved: Whether the call may run.
        message: Why it may not; the model is told.
    """
    decision = Decision(approved=approved, message=message)

    async def prepare(context: ToolContext[Any], args_json: str) -> str:
        context.decision = decision
        return args_json

    return tool.with_(policy=Policy(name="decided", wrap=lambda inner: inner, prepare=prepare))


_YES = frozenset({"a", "approve", "approved", "ok", "true", "y", "yes"})


def says_yes(response: Any) -> bool:
    """Whether what a person answered is a yes, and nothing less."""
    if isinstance(response, dict):
        response = cast("dict[str, Any]", response).get("approved")
    return response is True or (isinstance(response, str) and response.strip().lower() in _YES)
