"""A person decides before a call runs."""

from __future__ import annotations

import typing
from typing import Any, overload

from agents_tools._records import Policy
from agents_tools._risk import take_risk, with_risk
from agents_tools.context import RunScope
from agents_tools.errors import Interruption, ToolDeniedError
from agents_tools.policies._change import Change, ToolT, change_around
from agents_tools.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.context import ToolContext

__all__ = ["approve_destructive", "needs_approval", "security_risk"]


@overload
def needs_approval(predicate: ToolT, /) -> ToolT: ...


@overload
def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] = True,
) -> Change: ...


def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] | ToolT = True,
) -> Change | ToolT:
    """Let a person decide before a call runs.

    Asked before everything else around the tool, wherever in the stack it stands, with arguments
    that the tool accepts. A run then ends with `interruptions` and goes on once its state has the
    decisions, or asks `RunConfig.approve` at once. Where nobody can be asked, in `tool.invoke` for
    example, the call is denied.

    Args:
        predicate: Which calls: all, or those for which a function of the context and the
            arguments says so; sync or async. One that fails means that a person decides.
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
                f"Tool {context.tool_name!r} needs a person's approval, and nobody can be asked "
                "where it was called. It was not run."
            )
        if not decision.approved:
            raise ToolDeniedError(
                decision.message or f"A person refused this call of {context.tool_name!r}."
            )

    return change_around("needs_approval()", lambda inner: inner, admit=admit)


def approve_destructive() -> Change:
    """Let a person decide before each call of a tool that may destroy something.

    Tools whose annotations say that they are read-only, or not destructive, are left as they are;
    a tool without annotations may be destructive. As with `needs_approval`, a call where nobody
    can be asked is denied. For a whole list: `[approve_destructive()(tool) for tool in tools]`.
    """

    def change(tool: Any) -> Any:
        hints = tool.annotations
        harmless = hints is not None and (hints.read_only or not hints.destructive)
        return tool if harmless else needs_approval()(tool)

    return Change("approve_destructive()", change)


def security_risk() -> Change:
    """Let the model say how risky each call is, for others to decide by.

    Tools that are not read-only get an argument `security_risk` (LOW, MEDIUM, HIGH or UNKNOWN),
    which stands first. It is taken off before the arguments are validated, and is
    `ctx.security_risk` for policies, hooks and the tool: put the ones that read it below.

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
        _ = changed.json_schema  # a clash of names is told now
        return changed

    return Change("security_risk()", change)


async def _is_needed(predicate: Any, context: ToolContext[Any], args_json: str) -> bool:
    if not callable(predicate):
        return bool(predicate)
    context.arguments_json = args_json
    try:
        needed: Any = predicate(context, dict(context.arguments))
        return bool(await needed if hasattr(needed, "__await__") else needed)
    except Exception:  # noqa: BLE001 - whatever is wrong with the rule, the call is not let through
        _log().exception(
            "The approval rule of tool %r failed; a person decides.", context.tool_name
        )
        return True


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
