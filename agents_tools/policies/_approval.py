"""Approval of calls by a person."""

from __future__ import annotations

import typing
from typing import Any, overload

from agents_tools.errors import Interruption, ToolDeniedError
from agents_tools.policies._policy import PolicyDecorator, ToolT, change_around, with_parentheses
from agents_tools.schema.security_risk import take_risk, with_risk
from agents_tools.tool.context import RunScope
from agents_tools.tool.records import Policy
from agents_tools.tool.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.context import ToolContext

__all__ = ["approve_destructive", "needs_approval", "security_risk"]


@overload
def needs_approval(predicate: ToolT, /) -> ToolT: ...


@overload
def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] = True,
) -> PolicyDecorator: ...


def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] | ToolT = True,
) -> PolicyDecorator | ToolT:
    """Require the approval of a person before a call runs.

    The approval is requested before all other policies run, at any position in the stack, and only
    for valid arguments. The run then ends with `interruptions` and continues when its state
    contains the decisions; with `RunConfig.approve`, that function decides at once. Without a run,
    for example in `tool.invoke`, the call is denied.

    Args:
        predicate: Which calls need approval: all of them, or those for which a function of the
            context and the arguments returns true; sync or async. If the function raises, the call
            needs approval.
    """
    if isinstance(predicate, FunctionTool):  # written without parentheses
        return needs_approval()(typing.cast("ToolT", predicate))

    async def admit(context: ToolContext[Any], args_json: str) -> None:
        if not await _is_needed(predicate, context, args_json):
            return
        decision = context.decision
        if decision is None:
            if isinstance(context.parent, RunScope):
                raise Interruption
            raise ToolDeniedError(
                f"Tool {context.tool_name!r} needs the approval of a person, but no run "
                "can request it here. The call was not run."
            )
        if not decision.approved:
            raise ToolDeniedError(
                decision.message or f"A person refused this call of {context.tool_name!r}."
            )

    return change_around("needs_approval()", lambda inner: inner, admit=admit)


@with_parentheses
def approve_destructive() -> PolicyDecorator:
    """Require the approval of a person before each call of a destructive tool.

    Tools that are annotated as read-only or not destructive are returned unchanged. A tool without
    annotations counts as destructive. As with `needs_approval`, a call without a run is denied. For
    a list of tools: `[approve_destructive()(tool) for tool in tools]`.
    """

    def change(tool: Any) -> Any:
        hints = tool.annotations
        is_safe = hints is not None and (hints.read_only or not hints.destructive)
        return tool if is_safe else needs_approval()(tool)

    return PolicyDecorator("approve_destructive()", change)


@with_parentheses
def security_risk() -> PolicyDecorator:
    """Add an argument in which the model rates the risk of each call.

    Tools that are not read-only get a first argument `security_risk` (LOW, MEDIUM, HIGH or
    UNKNOWN). It is removed before the arguments are validated, and is available as
    `ctx.security_risk` to hooks, to the tool and to policies below this one.

    Raises:
        UserError: The tool has a parameter of that name.
    """

    def change(tool: Any) -> Any:
        if tool.annotations is not None and tool.annotations.read_only:
            return tool
        name = tool.name

        async def prepare(context: ToolContext[Any], args_json: str) -> str:
            args_json, context.security_risk = take_risk(args_json, name)
            return args_json

        policy = Policy(
            name="security_risk()",
            wrap=lambda inner: inner,
            reshape=lambda schema: with_risk(schema, name),
            prepare=prepare,
        )
        changed = tool.with_(policy=policy)
        _ = changed.json_schema  # raises now if the name is taken
        return changed

    return PolicyDecorator("security_risk()", change)


async def _is_needed(predicate: Any, context: ToolContext[Any], args_json: str) -> bool:
    if not callable(predicate):
        return bool(predicate)
    context.arguments_json = args_json
    try:
        needed: Any = predicate(context, dict(context.arguments))
        return bool(await needed if hasattr(needed, "__await__") else needed)
    except Exception:  # noqa: BLE001 - a broken predicate must never let a call through
        _log().exception(
            "The approval predicate of tool %r failed, so the call needs approval.",
            context.tool_name,
        )
        return True


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
