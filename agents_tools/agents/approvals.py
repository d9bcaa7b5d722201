"""Approval of tool calls: decisions that were made before, and new requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.state import PendingCall, call_pin, pin_of
from agents_tools.content.items import ToolApprovalItem
from agents_tools.errors import Interruption, ModelBehaviorError, ToolDeniedError, UserTypeError
from agents_tools.text.json_limits import parse_object
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.arguments import encode_arguments
from agents_tools.tool.invocation import approve, guard, replace_arguments, validate
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.agents.config import RunConfig
    from agents_tools.agents.pending_tool_call import PendingToolCall
    from agents_tools.agents.run_recorder import RunRecorder
    from agents_tools.content.items import ToolCallItem
    from agents_tools.tool.call import Call, RunScope
    from agents_tools.tool.tool import FunctionTool

__all__ = ["CallApprovals", "approval_item_of", "arguments_of"]

_MAX_QUESTIONS = 3
"""How often a person is asked about one call who edits its arguments to invalid ones."""

_CHANGED = "The tool has changed since the decision. Decide again."


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
        scope: RunScope,
        emit_item: Callable[..., None],
        recorder: RunRecorder | None = None,
    ) -> None:
        self.agent_name = agent_name
        self._config = config
        self._scope = scope
        self._emit_item = emit_item
        self._recorder = recorder
        self.pending: dict[str, PendingCall] = {}
        self.always_approved: dict[str, str] = {}

    async def check(
        self,
        call: PendingToolCall,
        tool: FunctionTool[..., Any],
        record: Call,
    ) -> bool:
        """Check the policies of a tool before its call, and request an approval if one is needed.

        Args:
            call: The call.
            tool: The tool.
            record: The record of the call, with its arguments; it receives the decision.

        Returns:
            Whether the call can run; otherwise it has to wait for a decision.
        """
        definition = pin_of(tool)
        pin = call_pin(call.item, definition)
        pending = self.pending.get(call.item.call_id)
        if pending is not None and pending.pin == pin:
            _restore_created(record, pending.item.arguments)
        await guard(record)
        if record.failure is not None or not tool.can_need_approval:
            return True
        arguments = arguments_of(record)
        decision = self._previous_decision(call.item, tool, definition, pin, arguments)
        error = None if decision is None else await _apply_edit(record, decision)
        if error is None and await _is_decided(record, decision):
            self._use(call, tool, definition, decision)
            return True
        if record.tool.name not in {tool.name, call.target.name}:
            record.failure = _undecidable(record)
            return True
        item = replace(self.approval_item(call.target, arguments), error=error)
        if self._config.approve is not None:
            decision = await self._decide(record, item)
            self._use(call, tool, definition, decision)
            return await _is_decided(record, decision)
        is_known = pending is not None and (pending.pin, pending.item.arguments) == (pin, arguments)
        if not is_known or error is not None:  # a decision about another definition is not valid
            if pending is not None and pending.decision is not None and error is None:
                item = replace(item, error=_CHANGED)
            if self._recorder is not None:
                self._recorder.record_approval_request(
                    call.item.call_id, pin, tool.name, definition
                )
            self._emit_item("tool_approval_requested", item)
        self.pending[call.item.call_id] = PendingCall(item=item, pin=pin)
        return False

    def _use(
        self,
        call: PendingToolCall,
        tool: FunctionTool[..., Any],
        definition: str,
        decision: Decision | None,
    ) -> None:
        """Apply the parts of a decision that concern more than whether the call runs."""
        call.edited_arguments = _edit_of(decision)
        if decision is not None and decision.approved and decision.always:
            self.always_approved[tool.name] = definition

    async def decide_inside(self, record: Call) -> Decision:
        """Decide about a call inside a running call, which cannot wait for the run to be resumed.

        Args:
            record: The record of the call.
        """
        return await self._decide(record, approval_item_of(record, self.agent_name))

    def approval_item(self, call: ToolCallItem, arguments: str) -> ToolApprovalItem:
        """Return the item that requests or records the approval of a call."""
        return ToolApprovalItem(
            call_id=call.call_id, name=call.name, arguments=arguments, agent=self.agent_name
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
            return pending.decision
        is_approved = self.always_approved.get(tool.name) == definition
        return Decision(approved=True) if is_approved else None

    async def _decide(self, record: Call, item: ToolApprovalItem) -> Decision:
        """Ask `RunConfig(approve=...)`, again if the arguments that a person edited are invalid."""
        for _ in range(_MAX_QUESTIONS):
            decision = await self._ask(item)
            error = await _apply_edit(record, decision)
            if error is None:
                return decision
            item = replace(item, error=error)
        return Decision(
            approved=False,
            message=f"The arguments that a person wrote for tool {record.tool_name!r} are invalid. "
            "The call was not run.",
        )

    async def _ask(self, item: ToolApprovalItem) -> Decision:
        """Call `RunConfig(approve=...)`."""
        item = replace(item, path=item.path or self._scope.path)
        decision: Any = cast("Callable[[ToolApprovalItem], Any]", self._config.approve)(item)
        if hasattr(decision, "__await__"):
            decision = await decision
        if isinstance(decision, bool):
            return Decision(approved=decision)
        if isinstance(decision, Decision):
            return decision
        raise UserTypeError(
            "RunConfig(approve=...) returned a wrong value: expected a boolean or a Decision, "
            f"got {type_with_article(decision)}."
        )


def _edit_of(decision: Decision | None) -> str | None:
    """Return the arguments of the person who approved a call, if they differ from the model's."""
    return decision.arguments if decision is not None and decision.approved else None


async def _apply_edit(record: Call, decision: Decision) -> str | None:
    """Use the arguments that a person edited, and ask the guardrails about them.

    Returns:
        The fault of the arguments; `None` if there is none.
    """
    edit = _edit_of(decision)
    if edit is not None:
        try:
            replace_arguments(record, edit)
        except ModelBehaviorError as error:
            return str(error)
        await guard(record)
    return None


async def _is_decided(record: Call, decision: Decision | None) -> bool:
    """Ask the policies whether a call can run; return whether no decision is missing."""
    record.decision = decision
    try:
        await approve(record)
    except Interruption:
        return False
    return True


def approval_item_of(record: Call, agent: str | None = None) -> ToolApprovalItem:
    """Return the request for the approval of a running call.

    Args:
        record: The record of the call.
        agent: The name of the agent that made it.
    """
    return ToolApprovalItem(
        call_id=record.tool_call_id,
        name=record.tool_name,
        arguments=arguments_of(record),
        agent=agent,
        path=record.path[:-1],
    )


def arguments_of(record: Call) -> str:
    """Return the canonical arguments of a call as JSON text, to show and to bind a decision to."""
    arguments = record.arguments
    if not arguments and not record.hidden:
        return record.text or "{}"  # a tool that reads its arguments itself gets any text
    return encode_arguments(arguments, f"of tool {record.tool_name!r}", "")


def _restore_created(record: Call, arguments: str) -> None:
    """Use the defaults that were created when the call was shown to a person."""
    created = () if record.parsed is None else record.parsed.created
    if created:
        shown = parse_object(arguments) or {}
        stored = {name: shown[name] for name in created if name in shown}
        validate(record, {**record.arguments, **stored})


def _undecidable(record: Call) -> ToolDeniedError:
    """Return the error for a call whose tool was found only by repairing the arguments.

    A person would decide about the calling tool, and could allow all tools that it calls.
    """
    return ToolDeniedError(
        f"Tool {record.tool_name!r} needs the approval of a person, which requires arguments "
        "that are valid JSON. Send the call again with valid JSON."
    )
