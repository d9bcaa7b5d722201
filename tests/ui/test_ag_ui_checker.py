"""The check of AG-UI streams rejects what real clients reject or silently lose."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools.testing import AgUiStreamError, assert_agui, check_ag_ui
from tests.ui.ag_ui_cases import BEGIN, BROKEN, END, GOOD, Case

OLD: dict[str, tuple[Any, ...]] = {
    "there is no SUBAGENT_STARTED": (
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"},
    ),
    "no field subagentRunId": ({"type": "CUSTOM", "name": "x", "value": 1, "subagentRunId": "s"},),
    "the content of a result is a string": (
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": []},
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_stream_that_clients_accept_passes(name: str) -> None:
    """A check with false positives would not be used."""
    check_ag_ui(GOOD[name])


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_stream_is_rejected_with_position_and_rule(case: Case) -> None:
    """The message must lead to the event and explain the error."""
    with pytest.raises(AgUiStreamError) as caught:
        check_ag_ui(case.frames)
    error = caught.value
    assert error.index == case.at
    assert case.rule in error.rule
    assert case.says in str(error)
    assert str(error).startswith("Broken rule: ")
    assert isinstance(error, AssertionError)


@pytest.mark.parametrize("why", OLD)
def test_a_client_before_1_0_gets_nothing_new(why: str) -> None:
    """Clients of version 0.0.45 fail completely on unknown events."""
    stream = [BEGIN, *OLD[why], END]
    with pytest.raises(AgUiStreamError, match=why):
        check_ag_ui(stream, "0.x")
    if "SUBAGENT" not in why:
        check_ag_ui(stream)


def test_a_client_before_1_0_knows_no_cancelled_run_and_no_protocol_version() -> None:
    for frame in (
        {**END, "outcome": {"type": "cancelled"}},
        {**BEGIN, "protocolVersion": "1.0"},
    ):
        stream = [BEGIN, frame] if frame["type"] == "RUN_FINISHED" else [frame, END]
        check_ag_ui(stream)
        with pytest.raises(AgUiStreamError, match=r"before 1\.0"):
            check_ag_ui(stream, "0.x")


def test_results_of_earlier_calls_pass_when_they_are_named() -> None:
    """A run that resumes after an approval answers calls of the previous run."""
    result = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "3"}
    assert_agui([BEGIN, result, END], earlier_calls=["c"])
    with pytest.raises(AgUiStreamError, match="no tool call 'c'"):
        assert_agui([BEGIN, result, END], earlier_calls=["other"])


def test_an_unknown_version_is_rejected() -> None:
    """A typing error must not switch rules off."""
    with pytest.raises(ValueError, match=r"expected 1\.0 or 0\.x"):
        check_ag_ui([BEGIN, END], "2.0")  # type: ignore[arg-type]
