"""Events as bars on lanes, for a browser's trace viewer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, strategies as st

from agents_tools import Agent, NotifyStreamEvent, Runner, function_tool, listen, progress
from agents_tools.events import Event, Origin, ToolStreamEndEvent, ToolStreamStartEvent
from agents_tools.telemetry import chrome_trace, write_chrome_trace
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from pathlib import Path


@function_tool
async def work(name: str) -> str:
    progress(1, 2)
    await asyncio.sleep(0)
    return name


async def run_of_two() -> list[Event]:
    inner = Agent("inner", tools=[work], model=ScriptedModel([tool_call("work", name="x"), "y"]))
    outer = Agent(
        "outer",
        tools=[inner.as_tool("ask"), work],
        model=ScriptedModel([[tool_call("ask", input="?"), tool_call("work", name="z")], "done"]),
    )
    async with listen() as events:
        await Runner.run(outer, "go")
    return events.events


def bars(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [mark for mark in trace["traceEvents"] if mark["ph"] == "X"]


def no_bars_cross(marks: list[dict[str, Any]]) -> bool:
    """Whether bars of a lane are in one another or apart; a viewer draws no others."""
    for one in marks:
        for other in marks:
            if one is other or one["tid"] != other["tid"]:
                continue
            first, second = one["ts"], other["ts"]
            if first < second < first + one["dur"] < second + other["dur"] - 1e-3:
                return False
    return True


async def test_runs_model_requests_and_calls_are_bars() -> None:
    trace = chrome_trace(await run_of_two())
    drawn = bars(trace)
    assert sorted((bar["cat"], bar["name"]) for bar in drawn) == [
        ("call", "ask"),
        ("call", "work"),
        ("call", "work"),
        ("model", "model"),
        ("model", "model"),
        ("model", "model"),
        ("model", "model"),
        ("run", "inner"),
        ("run", "outer"),
    ]
    assert no_bars_cross(drawn)
    lanes = {bar["name"]: bar["tid"] for bar in drawn if bar["name"] in {"outer", "inner", "ask"}}
    assert lanes == {"outer": 0, "inner": 0, "ask": 0}
    assert {mark["args"]["progress"] for mark in trace["traceEvents"] if mark["ph"] == "C"} == {1}


async def test_a_timeline_is_written_as_json(tmp_path: Path) -> None:
    written = write_chrome_trace(tmp_path / "trace.json", await run_of_two())
    assert json.loads(written.read_text(encoding="utf-8"))["displayTimeUnit"] == "ms"


def test_no_events_give_an_empty_timeline() -> None:
    assert bars(chrome_trace([])) == []


def test_an_unfinished_call_is_drawn_as_running() -> None:
    start = ToolStreamStartEvent({"a": 1}).replace(
        origin=Origin("t", "c", ("c",)), timestamp=1_000.0
    )
    note = NotifyStreamEvent("half way").replace(origin=Origin("t", "c", ("c",)), timestamp=1_002.5)
    trace = chrome_trace([start, note])
    (bar,) = bars(trace)
    assert (bar["dur"], bar["args"]) == (2_500_000.0, {"a": 1, "status": "running"})
    (mark,) = [mark for mark in trace["traceEvents"] if mark["ph"] == "i"]
    assert (mark["name"], mark["ts"], mark["tid"]) == ("half way", 2_500_000.0, bar["tid"])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 8)), max_size=12))
def test_overlapping_calls_have_separate_lanes(spans: list[tuple[int, int]]) -> None:
    """Each lane holds only bars that a viewer can draw."""
    moments: list[tuple[float, int, Event]] = []
    for number, (begin, length) in enumerate(spans):
        origin = Origin("t", str(number), (str(number),))
        start = ToolStreamStartEvent({}).replace(origin=origin, timestamp=1.0 + begin)
        end = ToolStreamEndEvent(status="ok", duration=1.0).replace(
            origin=origin, timestamp=1.0 + begin + length
        )
        moments += [(1.0 + begin, 1, start), (1.0 + begin + length, 0, end)]
    events = [event for _, _, event in sorted(moments, key=lambda one: one[:2])]
    drawn = bars(chrome_trace(events))
    assert len(drawn) == len(spans)
    assert no_bars_cross(drawn)
