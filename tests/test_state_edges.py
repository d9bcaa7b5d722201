"""The state of a run at the edges: copies, calls that nobody here answers, pins that stay."""

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
from agents_tools.agents.state import waiting_calls
from agents_tools.events import Origin


def state_of(*history: Any, **more: Any) -> RunState:
    """Make a state by hand, as `from_json` does."""
    return RunState(agent="A", run_id="run_1", history=list(history), input_count=0, **more)


def test_a_copy_has_nothing_in_common_with_its_state() -> None:
    """It is decided about by itself, and its run counts by itself."""
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
    """A search that the provider made has its results with it: no answer comes from here."""
    ours = ToolCallItem(call_id="c1", name="send", arguments="{}")
    theirs = ToolCallItem(call_id="c2", name="web_search", arguments="{}", kind="hosted")
    assert [call.call_id for call in state_of(ours, theirs).open_calls] == ["c1"]


def test_only_the_conversations_own_calls_wait_in_it() -> None:
    """An agent inside has calls of its own, with ids of its own, perhaps the same ones."""

    def said(name: str, call_id: str, *path: str) -> RunItemStreamEvent:
        item = ToolApprovalItem(call_id=call_id, name="send", arguments="{}", agent="A")
        return RunItemStreamEvent(name, item.to_dict()).replace(origin=Origin(path=path))

    events = [
        said("tool_approval_requested", "c1"),
        said("tool_approval_requested", "c2"),
        said("tool_approval_requested", "c3", "outer"),
        said("tool_approval_granted", "c1"),
        said("tool_approval_granted", "c2", "outer"),
    ]
    assert waiting_calls(events) == {"c2"}


def test_arguments_of_a_person_are_written_in_one_way() -> None:
    """The order of the keys and the script of the text change nothing in what is pinned."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")
    for arguments in ({"b": "ä", "a": 1}, {"a": 1, "b": "ä"}):
        state = state_of(pending={"c1": PendingCall(item=item, pin="p")})
        state.approve(item, arguments=arguments)
        decision = state.pending["c1"].decision
        assert decision is not None
        assert decision.arguments == '{"a":1,"b":"ä"}'


def test_a_state_comes_back_from_json_as_it_was() -> None:
    """All of it: what was decided, what stands for later calls, and the runs inside."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")

    def whole(**more: Any) -> RunState:
        return state_of(
            ToolCallItem(call_id="c1", name="send", arguments="{}", agent="A"),
            turns=3,
            tool_calls=2,
            usage=Usage(requests=2, input_tokens=5, output_tokens=7),
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
def test_a_persons_arguments_have_a_json_form(value: Any) -> None:
    """What is approved is what a tool can be given: there is no NaN in JSON."""
    item = ToolApprovalItem(call_id="c1", name="send", arguments="{}", agent="A")
    state = state_of(pending={"c1": PendingCall(item=item, pin="p")})
    with pytest.raises(UserError, match="not serializable as JSON"):
        state.approve(item, arguments={"a": value})
    assert state.pending["c1"].decision is None
