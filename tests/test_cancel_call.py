"""Cancelling one call of a run, and the default time limit of the calls of a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents_tools import Agent, RunConfig, Runner, function_tool, policies
from agents_tools.content import ToolCallOutputItem
from agents_tools.errors import UserError
from agents_tools.testing import ScriptedModel, check_events, tool_call

_CANCELLED = (
    "The user cancelled this call before it had a result. If it had started, it may have taken "
    "effect in part."
)


def outputs(result: Any) -> list[tuple[str, Any]]:
    """Return the statuses and texts of the calls of a run."""
    return [
        (item.status, item.output)
        for item in result.new_items
        if isinstance(item, ToolCallOutputItem)
    ]


class Sleeper:
    """A tool that never ends by itself, and events that show its state."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

        @function_tool
        async def sleep() -> str:
            """Sleep for a long time."""
            self.started.set()
            try:
                await asyncio.sleep(60)
            finally:
                self.stopped.set()
            return "awake"

        self.tool = sleep


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_one_call_is_cancelled_and_the_run_continues() -> None:
    """The model reads that the call was cancelled, and the other call of the turn has its result."""
    sleeper = Sleeper()
    model = ScriptedModel(
        [[tool_call("sleep", call_id="slow"), tool_call("add", a=1, b=2, call_id="sum")], "done"]
    )
    run = Runner.run_streamed(Agent("a", tools=[sleeper.tool, add], model=model), "go")
    events: list[Any] = []

    async def watch() -> None:
        events.extend([event async for event in run.stream_events()])

    async with asyncio.timeout(30):
        watching = asyncio.create_task(watch())
        await sleeper.started.wait()
        assert run.cancel("slow") is True
        await watching
    assert sleeper.stopped.is_set()
    assert run.final_output == "done"
    assert outputs(run) == [
        (
            "cancelled",
            _CANCELLED,
        ),
        ("ok", "3"),
    ]
    check_events(events)
    ended = [one.status for one in events if one.type == "tool_stream_end_event"]
    assert sorted(ended) == ["cancelled", "ok"]
    assert run.cancel("slow") is False


async def test_a_call_of_an_agent_inside_the_run_is_cancelled() -> None:
    """The id is enough, whatever the depth of the agent that made the call."""
    sleeper = Sleeper()
    inner = Agent(
        "inner",
        tools=[sleeper.tool],
        model=ScriptedModel([tool_call("sleep", call_id="deep"), "inner done"]),
    )
    model = ScriptedModel([tool_call("inner", input="x", call_id="outer"), "outer done"])
    run = Runner.run_streamed(Agent("outer", tools=[inner.as_tool()], model=model), "go")
    async with asyncio.timeout(30):
        await sleeper.started.wait()
        assert run.cancel("unknown") is False
        assert run.cancel("deep") is True
        async for _ in run.stream_events():
            pass
    assert outputs(run) == [("ok", "inner done")]
    assert run.final_output == "outer done"


async def test_cancelling_the_run_still_cancels_all_of_it() -> None:
    """A call that is cancelled alone does not hide a cancellation of the run."""
    sleeper = Sleeper()
    model = ScriptedModel([tool_call("sleep", call_id="slow"), "done"])
    run = Runner.run_streamed(Agent("a", tools=[sleeper.tool], model=model), "go")
    async with asyncio.timeout(30):
        await sleeper.started.wait()
        run.cancel("slow")
        run.cancel()
        async for _ in run.stream_events():
            pass
    assert sleeper.stopped.is_set()
    assert run.final_output is None
    assert [status for status, _ in outputs(run)] == ["cancelled"]


async def test_a_run_has_a_default_time_limit_for_its_calls() -> None:
    """A tool with a limit of its own keeps it."""
    fast, slow = Sleeper(), Sleeper()
    patient = policies.timeout(0.2, error="own limit")(slow.tool.with_(name="patient"))
    model = ScriptedModel([[tool_call("sleep"), tool_call("patient")], "done"])
    agent = Agent("a", tools=[fast.tool, patient], model=model)
    result = await Runner.run(agent, "go", run_config=RunConfig(tool_timeout=0.05))
    assert outputs(result) == [
        ("timeout", "Tool 'sleep' took longer than 0.05 s and was stopped."),
        ("timeout", "own limit"),
    ]


async def test_the_default_limit_applies_inside_agents_but_not_to_them() -> None:
    """An agent that runs as a tool takes as long as its calls together."""
    sleeper = Sleeper()
    script = ScriptedModel([tool_call("sleep"), tool_call("sleep"), "inner done"])
    inner = Agent("inner", tools=[sleeper.tool], model=script)
    model = ScriptedModel([tool_call("inner", input="x"), "outer done"])
    agent = Agent("outer", tools=[inner.as_tool()], model=model)
    result = await Runner.run(agent, "go", run_config=RunConfig(tool_timeout=0.1))
    assert outputs(result) == [("ok", "inner done")]


@pytest.mark.parametrize("seconds", [0, -1, "1", True])
def test_the_default_limit_must_be_positive(seconds: Any) -> None:
    with pytest.raises(UserError, match=r"tool_timeout=\.\.\.\) is not valid"):
        RunConfig(tool_timeout=seconds)


async def test_progress_moves_the_idle_limit() -> None:
    """A call that shows progress continues; one that stops to do so is ended."""
    ticks = 6

    @policies.timeout(idle=0.2)
    @function_tool
    async def work(silent: bool) -> str:
        from agents_tools import progress

        for tick in range(ticks):
            await asyncio.sleep(0.08)
            if not silent:
                progress(tick, ticks)
        return "worked"

    assert (await work.call(None, '{"silent": false}')).output == "worked"
    outcome = await work.call(None, '{"silent": true}')
    assert (outcome.status, outcome.output) == (
        "timeout",
        "Tool 'work' gave no sign of life for 0.2 s and was stopped.",
    )
