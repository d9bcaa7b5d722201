"""Calls that continue in the background while the model works."""

from __future__ import annotations

import typing
from typing import Any

from agents_tools.errors import UserValueError
from agents_tools.policies._policy import with_parentheses
from agents_tools.text.escape import describe_value
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from agents_tools.tool.policy import AtEnd

__all__ = ["background"]


@with_parentheses
def background(*, at_end: AtEnd = "wait") -> Policy:
    """Let the model continue while a call of the tool runs.

    The model gets an acknowledgement with the id of the call at once. The result follows as a
    message, exactly once, with the next request to the model after the end of the call. A run with
    a store keeps this promise also if its process ends and `Runner.resume` continues it.

    Approvals and guardrails are checked before the acknowledgement. All other policies, retries and
    time limits included, apply to the call in the background, whether they are inside or outside of
    this one. Without a run (`tool.invoke`, a server, a call by another tool), and in an
    `AgentController`, the policy has no effect.

    Args:
        at_end: What the run does when the model has finished its answer and the call still runs.
            `wait` waits for the call and asks the model again with its result. `cancel` ends the
            run and cancels the call.

    Raises:
        UserError: The tool is exclusive, or `at_end` has another value.
    """
    if at_end not in {"wait", "cancel"}:
        raise UserValueError(
            "background(at_end=...) is not valid: expected 'wait' or 'cancel', got "
            f"{describe_value(at_end)}."
        )
    return _Background(at_end)


class _Background(Policy):
    def __init__(self, at_end: AtEnd) -> None:
        self.name = "background()" if at_end == "wait" else f"background(at_end={at_end!r})"
        self.at_end = at_end

    def apply(self, tool: Any) -> Any:
        if tool.metadata.get("agents_tools", {}).get("exclusive"):
            raise UserValueError(
                f"Tool {tool.name!r} cannot have the policies background() and exclusive(): a call "
                "in the background runs next to other calls. Remove one of them."
            )
        return super().apply(tool)
