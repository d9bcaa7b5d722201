"""How each user interface shows a call that continues in the background."""

from __future__ import annotations

import io
import json
import re
from typing import Any, get_args

import pytest
from inline_snapshot import snapshot

from agents_tools import Event
from agents_tools.events import RunItemStreamEvent, event_from_dict
from agents_tools.ui import ag_ui, sse, vercel
from agents_tools.ui.console.text_views import PlainRun
from tests.ui.scenarios import SCENARIOS, events_of

ACKNOWLEDGED = (
    "Call 'call_1' of tool 'report' runs in the background. Its result follows in a later "
    "message. Continue with other work, and do not repeat the call."
)


@pytest.fixture
async def events() -> list[Event]:
    """Return the events of the scenario, whose times are as far apart as in a slow run."""
    return [
        event.replace(timestamp=1e9 + number)
        for number, event in enumerate(await events_of(SCENARIOS["background"]))
    ]


def test_ag_ui_shows_the_activity_of_the_call(events: list[Event]) -> None:
    """The protocol has one result for each call, so later states are in its activity."""
    encoder = ag_ui.AgUiEncoder()
    frames = [frame for event in events for frame in encoder.encode(event)]
    shown = [
        frame["content"]
        if frame["type"].startswith("TOOL_CALL_RESULT")
        else {
            name: frame["content"][name]
            for name in ("status", "progress", "result")
            if name in frame["content"]
        }
        for frame in frames
        if frame["type"] in {"TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT"}
    ]
    assert shown == snapshot(
        [
            ACKNOWLEDGED,
            {"status": "running"},
            {"status": "running", "progress": {"current": 1, "total": 2, "message": "reading"}},
            {"status": "running", "progress": {"current": 2, "total": 2, "message": "writing"}},
            {"status": "ok", "progress": {"current": 2, "total": 2, "message": "writing"}},
            {
                "status": "ok",
                "progress": {"current": 2, "total": 2, "message": "writing"},
                "result": "all about tea",
            },
        ]
    )


@pytest.mark.parametrize("version", get_args(vercel.Version))
def test_vercel_replaces_the_acknowledgement_by_the_result(
    events: list[Event], version: vercel.Version
) -> None:
    """The acknowledgement is a preliminary output of the call."""
    encoder = vercel.VercelEncoder(version)
    chunks = [chunk for event in events for chunk in encoder.encode(event)] + encoder.close()
    outputs = [chunk for chunk in chunks if chunk["type"] == "tool-output-available"]
    assert [(one["output"], one.get("preliminary", False)) for one in outputs] == [
        (ACKNOWLEDGED, True),
        ("all about tea", False),
    ]
    states = [chunk["data"] for chunk in chunks if chunk["type"] == "data-agents-tool"]
    assert [(one["status"], one.get("progress", {}).get("message")) for one in states] == [
        ("running", None),
        ("running", "reading"),
        ("running", "writing"),
        ("ok", "writing"),
    ]


def test_a_console_shows_the_progress_and_the_result(events: list[Event]) -> None:
    """The end of the call comes after text that the model has written meanwhile."""
    out = io.StringIO()
    view = PlainRun("helper", out)
    for event in events:
        view.show(event)
    lines = [
        re.sub(r"(?<=done in )[\d.]+ m?s", "1 s", line) for line in out.getvalue().splitlines()
    ]
    assert lines == snapshot(
        [
            'helper > report: called with about="tea"',
            "helper > report: continues in the background",
            "helper > report: 1/2 (50%) reading",
            "helper > report: 2/2 (100%) writing",
            "helper > report: done in 1 s: all about tea",
        ]
    )


def test_sse_sends_the_events_of_the_call(events: list[Event]) -> None:
    """A page of one's own reads the same items and display events as Python code."""
    frames = "".join(sse.encode(events))
    data = [json.loads(line[6:]) for line in frames.splitlines() if line.startswith("data: {")]
    states: list[Any] = []
    for event in map(event_from_dict, data):
        if event.path == ("call_1",):
            states.append(event.type)
        elif isinstance(event, RunItemStreamEvent) and "output" in event.item:
            states.append((event.name, event.item.get("in_background"), event.item["output"]))
    assert states == [
        ("tool_output", True, ACKNOWLEDGED),
        "tool_stream_start_event",
        "tool_progress_event",
        "tool_progress_event",
        "tool_stream_end_event",
        ("background_result", None, "all about tea"),
    ]
