"""Approval decisions about calls that are made by another framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.usage import Usage
from agents_tools.errors import Interruption
from agents_tools.tool.call import Call, RunScope
from agents_tools.tool.invocation import check, prepare
from agents_tools.tool.policy import Policy
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["is_approval", "needs_decision", "with_decision"]


async def needs_decision(
    tool: FunctionTool[..., Any], args_json: str, *, call_id: str | None, context: Any
) -> bool:
    """Return whether a call needs an approval decision before it can run.

    Args:
        tool: The tool.
        args_json: The arguments.
        call_id: The id of the call.
        context: The application's object.
    """
    if not tool.can_need_approval:
        return False
    scope = RunScope(
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
    # The call is never made. It has a run scope because policies interrupt only calls in a run.
    trial = Call.fresh(context, tool_name=tool.name, tool_call_id=call_id, parent=scope)
    await prepare(trial, tool, args_json)
    try:
        await check(trial)
    except Interruption:
        return True
    return False


def with_decision(tool: FunctionTool[..., Any], approved: bool, message: str | None = None) -> Any:
    """Return the tool for one call whose approval has been decided.

    Args:
        tool: The tool.
        approved: Whether the call may run.
        message: The reason for a rejection, which is sent to the model.
    """
    return tool.with_(policy=_Decided(Decision(approved=approved, message=message)))


class _Decided(Policy):
    """Stores the decision in the call before the approval policies ask for it."""

    name = "decided"

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    async def before(self, call: Call) -> None:
        call.decision = self._decision


_YES = frozenset({"a", "approve", "approved", "ok", "true", "y", "yes"})


def is_approval(response: Any) -> bool:
    """Return whether a person's response is an explicit approval."""
    if isinstance(response, dict):
        response = cast("dict[str, Any]", response).get("approved")
    return response is True or (isinstance(response, str) and response.strip().lower() in _YES)
