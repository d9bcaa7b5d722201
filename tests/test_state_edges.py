"""Test edge cases of run states: copies, calls of the provider and standing approvals."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools import (
    RunItemStreamEvent,
    ToolApprovalItem,
    ToolCallItem,
    Usage,
    UserError,
)
from agents_tools.agents import PendingCall, RunState
from agents_tools.events import Origin
from agents_tools.persistence.conversation import waiting_calls


def state_of(*history: Any, **more: Any) -> RunState:
    """Return a state created by hand, as `from_json` does."""
    return RunState(agent="A", run_id="run_1", history=list(history), input_count=0, **more)


def test_a_copy_shares_nothing_with_its_state() -> None:
    """Decisions and usage of the copy are separate."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")
    state = state_of(usage=Usage(requests=1), pending={"c1": PendingCall(item=item, pin="p")})
    copy = state.copy()
    copy.usage.add(Usage(requests=5))
    copy.approve(item)
    copy.history.append(ToolCallItem(call_id="c1", name="send", arguments="{}"))
    assert state.usage.requests == 1
    assert state.pending["c1"].decision is None
    assert state.history == []


def test_a_call_that_the_provider_answers_is_not_open() -> None:
    """A hosted search already contains its results, so the application need not answer it."""
    ours = ToolCallItem(call_id="c1", name="send", arguments="{}")
    theirs = ToolCallItem(call_id="c2", name="web_search", arguments="{}", kind="hosted")
    assert [call.call_id for call in state_of(ours, theirs).open_calls] == ["c1"]


def test_only_calls_of_the_conversation_itself_are_pending() -> None:
    """An inner agent has calls of its own, possibly with the same ids."""

    def approval_event(name: str, call_id: str, *path: str) -> RunItemStreamEvent:
        item = ToolApprovalItem(call_id=call_id, name="send", arguments="{}", agent="A")
        return RunItemStreamEvent(name, item.to_dict()).replace(origin=Origin(path=path))

    events = [
        approval_event("tool_approval_requested", "c1"),
        approval_event("tool_approval_requested", "c2"),
        approval_event("tool_approval_requested", "c3", "outer"),
        approval_event("tool_approval_granted", "c1"),
        approval_event("tool_approval_granted", "c2", "outer"),
    ]
    assert waiting_calls(events) == {"c2"}


def test_approved_arguments_have_one_canonical_form() -> None:
    """The order of keys and the escaping of text must not affect the approval."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")
    for arguments in ({"b": "ä", "a": 1}, {"a": 1, "b": "ä"}):
        state = state_of(pending={"c1": PendingCall(item=item, pin="p")})
        state.approve(item, arguments=arguments)
        decision = state.pending["c1"].decision
        assert decision is not None
        assert decision.arguments == '{"a":1,"b":"ä"}'


def test_a_state_round_trips_through_json() -> None:
    """This includes decisions, standing approvals and inner runs."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")

    def whole(**more: Any) -> RunState:
        return state_of(
            ToolCallItem(call_id="c1", name="send", arguments="{}", agent="A"),
            turns=3,
            usage=Usage(requests=2, input_tokens=5, output_tokens=7, tool_calls=2, cost=0.25),
            started=["c1"],
            pending={"c1": PendingCall(item=item, pin="p")},
            standing={"send": "pin"},
            **more,
        )

    state = whole(nested={"c2": whole()})
    state.approve(item, arguments={"a": 1}, always=True)
    assert RunState.from_json(state.to_json()) == state
    assert RunState.from_json(state.to_json().encode()) == state


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_approved_arguments_must_be_json(value: Any) -> None:
    """A tool can only receive JSON arguments, and NaN is not JSON."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")
    state = state_of(pending={"c1": PendingCall(item=item, pin="p")})
    with pytest.raises(UserError, match="not serializable as JSON"):
        state.approve(item, arguments={"a": value})
    assert state.pending["c1"].decision is None
