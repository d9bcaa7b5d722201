"""The module that turns events into the tree of a run, for the playground and for other pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agents_tools
from tests.programs import CHROMIUM
from tests.ui.scenarios import SCENARIOS, decided_events_of, events_of

async_api = pytest.importorskip("playwright.async_api")

SOURCE = Path(agents_tools.__file__).parent / "ui" / "client" / "client.js"
pytestmark = [
    pytest.mark.external("chromium"),
    pytest.mark.timeout(120),
]


async def states_of(events: list[dict[str, Any]]) -> list[Any]:
    """Return the status and the output of the first call after each event that changes them."""
    async with async_api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page()
        states: list[Any] = await page.evaluate(
            """async ([source, events]) => {
              const { EventTree } = await import(
                "data:text/javascript," + encodeURIComponent(source));
              const tree = new EventTree();
              const states = [];
              for (const event of events) {
                tree.apply(event);
                const [call] = tree.calls;
                if (call) states.push([call.status, call.progress?.current ?? null, call.output ?? null]);
              }
              return states;
            }""",
            [SOURCE.read_text(), events],
        )
        await browser.close()
    return [state for index, state in enumerate(states) if states[index - 1 : index] != [state]]


async def test_a_call_in_the_background_runs_until_its_end() -> None:
    """Its acknowledgement is shown as its output, and then its result."""
    events = [event.to_dict() for event in await events_of(SCENARIOS["background"])]
    shown = [
        [status, current, output and output[:16]]
        for status, current, output in await states_of(events)
    ]
    acknowledged = "Call 'call_1' of"
    assert shown == [
        ["preparing", None, None],
        ["waiting", None, None],
        ["waiting", None, acknowledged],
        ["running", None, acknowledged],
        ["running", 1, acknowledged],
        ["running", 2, acknowledged],
        ["ok", 2, acknowledged],
        ["ok", 2, "all about tea"],
    ]


async def test_a_call_of_an_agent_waits_while_a_call_within_it_needs_approval() -> None:
    """Its own call ends at the interruption, and starts again after the decision."""
    before, after = await decided_events_of(SCENARIOS["nested_approve"])
    first = await states_of([event.to_dict() for event in before])
    whole = await states_of([event.to_dict() for event in (*before, *after)])
    assert [status for status, *_ in first][-2:] == ["running", "interrupted"]
    assert [status for status, *_ in whole[len(first) :]][:1] == ["running"]
    assert whole[-1][0] == "ok"
