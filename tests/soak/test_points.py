"""Fault injection at every await: the package handles the faults, and planted bugs are found."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any

import pytest

from agents_tools import (
    Agent,
    FunctionTool,
    Runner,
    function_tool,
    notify,
    policies,
)
from agents_tools.agents.tool_calls import TurnCalls
from agents_tools.concurrency.limiter import Limiter
from agents_tools.events import listen
from agents_tools.mcp import MCPToolManager
from agents_tools.mcp.server.input_required import WaitingCalls
from agents_tools.persistence import SQLiteRunStore
from agents_tools.testing import ScriptedModel, check_events, tool_call
from agents_tools.tool import ToolStream
from agents_tools.tool.call import Call
from tests.mcp.small import program
from tests.soak import points_play
from tests.soak.campaign import Budget
from tests.soak.points import SCENARIOS, cases_of, run_scenarios
from tests.soak.points_drive import Case
from tests.soak.points_play import play
from tests.soak.points_stage import Scenario, Stage

_BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
_LIGHT = [
    "async call, heard",
    "call in a thread",
    "stream of a generator, heard",
    "many policies",
    "run of nested agents",
    "streamed run",
]


def _found(*names: str, seconds: float = 20) -> set[str]:
    """Return the findings of scenarios, without their positions."""
    outcome = run_scenarios([_BY_NAME[name] for name in names], Budget(seconds=seconds, seed=3))
    return {finding.what for finding in outcome.findings}


@pytest.mark.requirement("F5", "F9", "F19", "F40")
def test_a_small_campaign_has_no_findings() -> None:
    """Any finding is a bug, and the figures show how much was tried."""
    outcome = run_scenarios([_BY_NAME[name] for name in _LIGHT], Budget(seconds=3, seed=7))
    assert outcome.findings == []
    assert outcome.figures["scenarios"] == len(_LIGHT)
    assert 0 < outcome.cases <= int(outcome.figures["cases_possible"])


def test_the_same_seed_chooses_the_same_cases() -> None:
    """A finding must be reproducible."""
    scenario = _BY_NAME["async call"]
    first, second = (list(cases_of(scenario, play(scenario))) for _ in range(2))
    assert first == second
    assert [Case.read(str(case)) for case in first] == first


def test_scenario_names_are_unique() -> None:
    """A case is reported and replayed by the name of its scenario."""
    assert len(_BY_NAME) == len(SCENARIOS)
    assert not any("/" in name for name in _BY_NAME)


# --- planted bugs


@pytest.mark.slow
def test_a_swallowed_cancellation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = FunctionTool.call

    async def swallowing(self: Any, ctx: Any, args_json: str) -> Any:
        try:
            return await whole(self, ctx, args_json)
        except asyncio.CancelledError:
            return None

    monkeypatch.setattr(FunctionTool, "call", swallowing)
    found = _found("async call")
    assert any(what.startswith("its cancellation was swallowed") for what in found)
    assert any(what.startswith("its deadline was swallowed") for what in found)


def test_a_slot_that_is_not_released_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    leave = Limiter.release

    def leaving(self: Any) -> None:
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            leave(self)

    monkeypatch.setattr(Limiter, "release", leaving)
    monkeypatch.setattr(points_play, "WITHIN", 0.3)
    case = Case("limit", "all", 0, 1)
    [fault] = [one for one in play(_BY_NAME["limit"], case).faults if "afterwards" in one]
    assert fault.startswith("afterwards, the same things do not work")


def test_a_leaked_task_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaves(self: Any, *_: object) -> None:
        self._channel.close()

    monkeypatch.setattr(ToolStream, "__aexit__", leaves)
    monkeypatch.setattr(points_play, "WITHIN", 0.3)

    @function_tool
    async def wait() -> None:
        """Emit progress, and wait for an event that never comes."""
        notify("waiting")
        await asyncio.Event().wait()

    async def left_early(_: Stage) -> None:
        async with wait.stream() as stream:
            await anext(aiter(stream))

    faults = play(Scenario(name="left early", play=left_early)).faults
    assert any(fault.startswith("a task is left") for fault in faults)


@pytest.mark.slow
def test_a_missing_end_event_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    end: Any = Call.end

    def silent(self: Any, status: Any) -> None:
        if status != "cancelled":
            end(self, status)

    monkeypatch.setattr(Call, "end", silent)
    assert any(what.startswith("Broken law") for what in _found("async call, heard"))


@pytest.mark.slow
def test_a_missing_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    close: Any = TurnCalls._finish

    def closes(self: Any, call: Any, status: Any, *given: Any, **more: Any) -> Any:
        return None if status == "cancelled" else close(self, call, status, *given, **more)

    monkeypatch.setattr(TurnCalls, "_finish", closes)
    assert any("have the answers" in what for what in _found("streamed run", seconds=3))


def test_leaked_resources_and_unraised_errors_are_found() -> None:
    """Files, timers, coroutines that were never awaited, and exceptions that were never retrieved."""

    async def careless(_: Any) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(60, print)
        loop.create_future().set_exception(ValueError("lost"))
        asyncio.sleep(0)  # noqa: ASYNC105, RUF100 # pyright: ignore[reportUnusedCoroutine] - that is the point

    faults = play(Scenario(name="careless", play=careless)).faults
    for expected in ("a timer is left", "never retrieved", "was never awaited"):
        assert any(expected in fault for fault in faults), expected


# --- bugs that the campaign has found


async def test_a_failure_function_is_always_awaited() -> None:
    """A call that is closing cannot wait; the model gets the default text, not a coroutine."""

    async def told(_: Any, __: Exception) -> str:
        return "told"

    @function_tool(failure_error_function=told)
    async def leave() -> None:
        """Leave as a generator does."""
        raise GeneratorExit

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = await leave.call(None, "{}")
        gc.collect()
    assert isinstance(outcome.output, str)
    assert "GeneratorExit" in outcome.output


async def test_a_call_with_a_timeout_can_be_cancelled_before_it_starts() -> None:
    """`asyncio.run` cancels all tasks at once when it ends."""

    @policies.timeout(5)
    @function_tool
    async def wait() -> None:
        """Wait."""

    before = asyncio.all_tasks()
    task = asyncio.create_task(wait.call(None, "{}"))
    await asyncio.sleep(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in asyncio.all_tasks() - before:
            one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()


async def test_start_and_end_events_are_emitted_if_a_redaction_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The text is dropped, but without start and end events a subscriber would hang."""

    def broken(text: str) -> str:
        raise ZeroDivisionError(text)

    @policies.redact(broken)
    @function_tool
    async def say(text: str) -> int:
        """Say something."""
        notify(text, is_delta=True)
        return 1

    with listen() as subscriber:
        await say.call(None, '{"text": "secret"}')
    assert [event.type for event in subscriber] == [
        "tool_stream_start_event",
        "tool_stream_end_event",
    ]
    check_events(subscriber)
    assert "secret" not in repr([event.to_dict() for event in subscriber])
    assert "A policy failed" in caplog.text


async def test_a_run_can_be_cancelled_while_its_store_opens(tmp_path: Path) -> None:
    """No coroutine is left unawaited when all tasks are cancelled at once."""
    agent = Agent("A", model=ScriptedModel([tool_call("x"), "done"]))
    before = asyncio.all_tasks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for turns in range(1, 12):
            async with SQLiteRunStore(tmp_path / f"{turns}.db") as store:
                run = Runner.run(agent, "Go.", session=store.session("chat"))
                task = asyncio.create_task(run)
                for _ in range(turns):
                    await asyncio.sleep(0)
                for one in asyncio.all_tasks() - before:
                    one.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        gc.collect()


async def test_closing_a_server_during_a_request_can_be_cancelled() -> None:
    """Waiting for the cleanup of the call must not hide the cancellation of the waiting task."""
    cleaning, asked = asyncio.Event(), asyncio.Event()
    calls = WaitingCalls()

    async def perform(client: Any, _: Any) -> dict[str, Any]:
        try:
            asked.set()
            await client.request("roots/list", {}, needs={"roots": {}})
        finally:
            cleaning.set()
            await done.wait()
            over.set()
        return {}

    done, over = asyncio.Event(), asyncio.Event()
    await _begin(calls, perform)
    closing = asyncio.create_task(calls.close())
    await asyncio.wait_for(cleaning.wait(), 5)
    closing.cancel()
    await asyncio.wait({closing}, timeout=30)
    done.set()
    assert closing.cancelled()
    await over.wait()


async def test_an_error_of_an_abandoned_call_is_retrieved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Otherwise asyncio would log its traceback, including secrets."""
    calls = WaitingCalls()

    async def perform(client: Any, _: Any) -> dict[str, Any]:
        try:
            await client.request("roots/list", {}, needs={"roots": {}})
        finally:
            raise ValueError("the cleanup has failed")
        return {}

    await _begin(calls, perform)
    await calls.close()
    gc.collect()
    assert caplog.text == ""


async def _begin(calls: WaitingCalls, perform: Any) -> None:
    """Begin a call, until it asks the client."""
    result = await calls.run(
        perform, None, capabilities={"roots": {}}, principal=None, state=None, responses=None
    )
    assert result["resultType"] == "input_required"


@pytest.mark.slow
async def test_closing_a_server_on_stdio_cancels_its_timers() -> None:
    """Timers of a closed process must not keep objects alive."""
    loop: Any = asyncio.get_running_loop()
    before = {timer for timer in loop._scheduled if not timer.cancelled()}
    async with MCPToolManager() as manager:
        await manager.add_server("far", **program())
    left = {timer for timer in loop._scheduled if not timer.cancelled()} - before
    assert not [timer for timer in left if "_Process" in repr(timer)]
