"""The check of AG-UI streams: what real clients reject, and what they quietly lose, it rejects."""

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
def test_a_stream_that_clients_take_passes(name: str) -> None:
    """What is right must not be found fault with, or nobody will use the check."""
    check_ag_ui(GOOD[name])


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_stream_is_refused_with_place_and_rule(case: Case) -> None:
    """Whoever reads the message has to find the event and to know what is wrong with it."""
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
    """Clients of version 0.0.45 fail as a whole on what they do not know."""
    stream = [BEGIN, *OLD[why], END]
    with pytest.raises(AgUiStreamError, match=why):
        check_ag_ui(stream, "0.x")
    if "SUBAGENT" not in why:
        check_ag_ui(stream)


def test_a_client_before_1_0_knows_no_cancelled_run_and_no_protocol_version() -> None:
    """Likewise."""
    for frame in (
        {**END, "outcome": {"type": "cancelled"}},
        {**BEGIN, "protocolVersion": "1.0"},
    ):
        stream = [BEGIN, frame] if frame["type"] == "RUN_FINISHED" else [frame, END]
        check_ag_ui(stream)
        with pytest.raises(AgUiStreamError, match=r"before 1\.0"):
            check_ag_ui(stream, "0.x")


def test_results_of_earlier_calls_pass_when_they_are_named() -> None:
    """A run that goes on after an approval answers calls of the run before."""
    result = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "3"}
    assert_agui([BEGIN, result, END], earlier_calls=["c"])
    with pytest.raises(AgUiStreamError, match="no tool call 'c'"):
        assert_agui([BEGIN, result, END], earlier_calls=["other"])


def test_a_wrong_version_is_refused() -> None:
    """A slip must not switch rules off."""
    with pytest.raises(ValueError, match=r"expected 1\.0 or 0\.x"):
        check_ag_ui([BEGIN, END], "2.0")  # type: ignore[arg-type]
