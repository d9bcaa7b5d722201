"""Events as JSON lines: every line reader can read the written events."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from agents_tools import NotifyStreamEvent
from agents_tools.errors import UserValueError
from agents_tools.events import event_from_dict
from agents_tools.ui import ndjson
from tests.ui.scenarios import SCENARIOS, Scenario, events_of


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
async def test_lines_decode_to_the_original_events(scenario: Scenario) -> None:
    events = await events_of(scenario)
    lines = list(ndjson.encode(events))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert [json.loads(line) for line in lines] == [event.to_dict() for event in events]
    assert list(ndjson.decode("".join(lines))) == events
    assert list(ndjson.decode(lines)) == events


@given(st.text())
def test_one_event_is_one_line_for_every_reader(text: str) -> None:
    """Some readers end a line at U+2028 too."""
    event = NotifyStreamEvent(data=text)
    (line,) = ndjson.encode([event])
    assert line.splitlines() == [line[:-1]]
    assert list(ndjson.decode(line)) == [event]


@pytest.mark.parametrize("text", ["a\u2028b\u2029c\u0085d", "\ud800", "\r\n\x0b\x0c\x1c", "日本語"])
def test_unicode_line_ends_and_lone_surrogates_are_preserved(text: str) -> None:
    """They are written as escapes, which every JSON reader accepts."""
    event = NotifyStreamEvent(data=text)
    (line,) = ndjson.encode([event])
    assert line.encode().decode().splitlines() == [line[:-1]]
    assert list(ndjson.decode(line)) == [event_from_dict(event.to_dict())]


def test_keep_alive_lines_are_ignored() -> None:
    """They are empty."""
    (line,) = ndjson.encode([NotifyStreamEvent(data="a")])
    assert len(list(ndjson.decode(f"\n\n{line}\n\n{line}"))) == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is not JSON: "),
        ("[" * 100_000, "line 2 is not JSON: "),
        ('{"v": 1, "type": "nothing"}', "line 2 is not an event: event.type: "),
        ("[]", "line 2 is not an event: event: "),
    ],
)
def test_a_line_without_an_event_is_named_in_the_error(line: str, told: str) -> None:
    """The error must help to find the line."""
    with pytest.raises(UserValueError) as caught:
        list(ndjson.decode(["", line]))
    assert str(caught.value).startswith(told)
