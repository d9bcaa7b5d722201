"""Approval of tool calls: decisions that were made before, and new requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.state import PendingCall, call_pin, pin_of
from agents_tools.content.items import ToolApprovalItem
from agents_tools.errors import Interruption, UserTypeError
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.agents.config import RunConfig
    from agents_tools.agents.pending_tool_call import PendingToolCall
    from agents_tools.content.items import ToolCallItem
    from agents_tools.tool.context import RunScope, ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["CallApprovals"]


class CallApprovals:
    """The approvals of one run.

    Args:
        agent_name: The name of the agent.
        config: The configuration of the run.
        scope: The scope of the run.
        emit_item: Emits the event of a new item.

    Attributes:
        pending: The calls that wait for approval, by call id.
        always_approved: The fingerprints of tools that need no further approval, by name.
    """

    def __init__(
        self,
        agent_name: str,
        config: RunConfig,
        scope: RunScope[Any],
        emit_item: Callable[..., None],
    ) -> None:
        self._agent_name = agent_name
        self._config = config
        self._scope = scope
        self._emit_item = emit_item
        self.pending: dict[str, PendingCall] = {}
        self.always_approved: dict[str, str] = {}

    async def check(
        self,
        call: PendingToolCall,
        tool: FunctionTool[..., Any],
        context: ToolContext[Any],
        arguments: str,
    ) -> str | None:
        """Check the policies of a tool before its call, and request an approval if one is needed.

        Args:
            call: The call.
            tool: The tool.
            context: The context of the call; it receives the decision.
            arguments: The arguments as JSON text.

        Returns:
            The arguments that the call runs with; `None` if the call has to wait for a decision.
        """
        definition = pin_of(tool)
        pin = call_pin(call.item, definition)
        arguments = await tool.prepare(context, arguments)
        decision = self._previous_decision(call.item, tool, definition, pin, arguments)
        has_asked = False
        while True:
            context.decision = decision
            if decision is not None and decision.arguments is not None:
                call.edited_arguments = decision.arguments
                arguments = await tool.prepare(context, decision.arguments)
            try:
                await tool.admit(context, arguments)
            except Interruption:
                item = self.approval_item(call.target, arguments)
                if not has_asked and self._config.approve is not None:
                    has_asked = True
                    decision = await self._decide(item)
                    continue
                if call.item.call_id not in self.pending:
                    self._emit_item("tool_approval_requested", item)
                self.pending[call.item.call_id] = PendingCall(item=item, pin=pin)
                return None
            return arguments

    def approval_item(self, call: ToolCallItem, arguments: str) -> ToolApprovalItem:
        """Return the item that requests or records the approval of a call."""
        return ToolApprovalItem(
            call_id=call.call_id, name=call.name, arguments=arguments, agent=self._agent_name
        )

    def _previous_decision(
        self,
        item: ToolCallItem,
        tool: FunctionTool[..., Any],
        definition: str,
        pin: str,
        arguments: str,
    ) -> Decision | None:
        """Return the decision about exactly this call of exactly this tool, if there is one."""
        pending = self.pending.get(item.call_id)
        if (
            pending is not None
            and pending.decision is not None
            and (pending.pin, pending.item.arguments) == (pin, arguments)
        ):
            if pending.standing and pending.decision.approved:
                self.always_approved[tool.name] = definition
            return pending.decision
        is_approved = self.always_approved.get(tool.name) == definition
        return Decision(approved=True) if is_approved else None

    async def _decide(self, item: ToolApprovalItem) -> Decision:
        """Call `RunConfig(approve=...)`."""
        item = replace(item, path=self._scope.path)
        decision: Any = cast("Callable[[ToolApprovalItem], Any]", self._config.approve)(item)
        if hasattr(decision, "__await__"):
            decision = await decision
        if isinstance(decision, bool):
            return Decision(approved=decision)
        if isinstance(decision, Decision):
            return decision
        raise UserTypeError(
            "RunConfig(approve=...) returned a wrong value: expected a boolean or a Decision, "
            f"got a {type(decision).__name__}."
        )
