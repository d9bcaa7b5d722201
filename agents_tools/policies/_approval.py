"""Approval of calls by a person."""

from __future__ import annotations

import typing
from typing import Any, overload

from agents_tools.errors import Interruption, ToolDeniedError
from agents_tools.policies._policy import ToolT, check_function, with_parentheses
from agents_tools.schema.json_schema import copy_json
from agents_tools.schema.security_risk import take_risk, with_risk
from agents_tools.text.secrets import library_logger
from agents_tools.tool.call import RunScope
from agents_tools.tool.policy import Policy
from agents_tools.tool.records import is_read_only, trusted_hints
from agents_tools.tool.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import Decision

__all__ = ["approve_destructive", "needs_approval", "security_risk"]


@overload
def needs_approval(predicate: ToolT, /) -> ToolT: ...


@overload
def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] = True,
) -> Policy: ...


def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] | ToolT = True,
) -> Policy | ToolT:
    """Require the approval of a person before a call runs.

    The approval is requested after all guardrails and before anything else of the call runs, at any
    position in the stack, and only for valid arguments. The run then ends with `interruptions` and
    continues when its state contains the decisions; with `RunConfig.approve`, that function decides
    at once. A call by another tool needs `RunConfig.approve`; without it, and without a run, the
    call is denied.

    Args:
        predicate: Which calls need approval: all of them, or those for which a function of the
            context and the canonical arguments returns true; sync or async. If the function raises,
            the call needs approval.
    """
    if isinstance(predicate, FunctionTool):  # written without parentheses
        return needs_approval()(typing.cast("ToolT", predicate))

    return _Approval(predicate)


class _Approval(Policy):
    name = "needs_approval()"
    asks_person = True

    def __init__(self, predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any]) -> None:
        if not isinstance(predicate, bool):
            check_function("needs_approval", predicate, "context", "arguments")
        self._predicate = predicate

    async def before(self, call: Call) -> None:
        if not await _is_needed(self._predicate, call):
            return
        decision = call.decision
        if decision is None:
            if isinstance(call.parent, RunScope):
                raise Interruption
            decision = call.decision = await _ask(call)
        if not decision.approved:
            raise ToolDeniedError(
                decision.message or f"A person refused this call of {call.tool_name!r}."
            )


async def _ask(call: Call) -> Decision:
    """Return the decision about a call inside another one, which cannot be interrupted."""
    approve = call.find_approver()
    if approve is None:
        raise ToolDeniedError(
            f"Tool {call.tool_name!r} needs the approval of a person, but no run can request it "
            "here. The call was not run. Call it in a run of an agent; for a tool that another "
            "tool calls, set RunConfig(approve=...)."
        )
    return await approve(call)


@with_parentheses
def approve_destructive() -> Policy:
    """Require the approval of a person before each call of a destructive tool.

    Tools that are annotated as read-only or not destructive are returned unchanged. A tool without
    annotations counts as destructive, and so does every tool of a server that is not trusted
    (`trusted=True` of the server). As with `needs_approval`, a call without a run is denied. For a
    list of tools: `[approve_destructive()(tool) for tool in tools]`.
    """
    return _ApproveDestructive()


class _ApproveDestructive(Policy):
    name = "approve_destructive()"

    def apply(self, tool: Any) -> Any:
        hints = trusted_hints(tool)
        is_safe = hints is not None and (hints.read_only or not hints.destructive)
        return tool if is_safe else needs_approval()(tool)


@with_parentheses
def security_risk() -> Policy:
    """Add an argument in which the model rates the risk of each call.

    Tools that are not read-only, and all tools of untrusted servers, get a first argument
    `security_risk` (LOW, MEDIUM, HIGH or UNKNOWN). It is removed before the arguments are
    validated, and is available as `ctx.security_risk` to hooks, to the tool and to policies below
    this one.

    Raises:
        UserError: The tool has a parameter of that name.
    """
    return _SecurityRisk()


class _SecurityRisk(Policy):
    name = "security_risk()"
    _tool_name = ""

    def apply(self, tool: Any) -> Any:
        if is_read_only(tool):
            return tool
        policy = _SecurityRisk()
        policy._tool_name = tool.name
        changed = tool.with_(policy=policy)
        _ = changed.json_schema  # raises now if the name is taken
        return changed

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return with_risk(schema, self._tool_name)

    async def map_arguments(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        call.security_risk = take_risk(arguments, call.tool_name)
        return arguments


async def _is_needed(predicate: Any, call: Call) -> bool:
    if not callable(predicate):
        return bool(predicate)
    try:
        needed: Any = predicate(call.context, copy_json(call.arguments))
        return bool(await needed if hasattr(needed, "__await__") else needed)
    except Exception:  # noqa: BLE001 - a broken predicate must never let a call through
        library_logger().exception(
            "The approval predicate of tool %r failed, so the call needs approval.",
            call.tool_name,
        )
        return True
