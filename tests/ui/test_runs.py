"""The runs of a server: start, watch, decide, cancel, keep and delete."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents_tools import (
    Agent,
    Event,
    Runner,
    ToolContext,
    function_tool,
    register_secret,
)
from agents_tools.agents import ModelResponse, RunState
from agents_tools.content import ToolOutputText
from agents_tools.content.items import ToolCallOutputItem
from agents_tools.errors import EventStoreFullError, UserError
from agents_tools.events import (
    ErrorEvent,
    Origin,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.persistence import MemoryEventStore, PendingFuture, SQLiteEventStore
from agents_tools.policies import needs_approval
from agents_tools.server import active_run as _runs_live, run_manager as _runs
from agents_tools.server.approvals import CallReference
from agents_tools.server.http_errors import HttpError
from agents_tools.server.public_errors import ErrorMasker
from agents_tools.server.run_manager import ActiveRun, RunManager
from agents_tools.server.run_records import ProcessIdentity, record_of, state_record
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import Decision
from tests.ui.scenarios import SCENARIOS, Scenario, events_of

PATIENCE = 45.0
UNLIKE = {"deltas", "slow_reader"}
"""Of these, a reader that is slow gets less than what was said."""


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@needs_approval
@function_tool
def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"


def output_of(output: Any, status: Any, public: str | None = None) -> Event:
    item = ToolCallOutputItem(call_id="1", output=output, status=status, public_message=public)
    return RunItemStreamEvent("tool_output", item.to_dict()).attach(item)


def output_from_elsewhere(output: str, status: Any) -> Event:
    return RunItemStreamEvent(
        "tool_output", ToolCallOutputItem(call_id="1", output=output, status=status).to_dict()
    )


class Gate:
    """A tool that waits until it is released, and records its cancellation."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.released = asyncio.Event()
        self.cancelled = asyncio.Event()

        @function_tool
        async def wait() -> str:
            """Wait."""
            self.begun.set()
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "waited"

        self.tool = wait


def agent_of(*answers: Any, tools: Any = ()) -> Agent[Any, Any]:
    return Agent(name="helper", tools=[*tools], model=ScriptedModel([*answers]))


@asynccontextmanager
async def runs_of(**options: Any) -> AsyncGenerator[RunManager]:
    runs = RunManager(**options)
    try:
        async with asyncio.timeout(PATIENCE):
            yield runs
    finally:
        await runs.aclose()


async def all_events(run: ActiveRun, after: int = -1) -> list[Event]:
    return [event async for event in run.events(after)]


async def idle(run: ActiveRun) -> None:
    while not run.idle:
        await asyncio.wait_for(asyncio.sleep(0), PATIENCE)


def comparable(events: list[Event]) -> list[Any]:
    """Return the events without the fields that differ from one run to the next."""
    left_out = {"id", "seq", "timestamp", "run_id", "duration"}
    return [
        {key: value for key, value in event.to_dict().items() if key not in left_out}
        for event in events
    ]


# --- runs


@pytest.mark.parametrize(
    "scenario",
    [one for one in SCENARIOS.values() if one.cancel_at is None and one.name not in UNLIKE],
    ids=lambda scenario: scenario.name,
)
async def test_subscribers_get_the_events_of_the_run(scenario: Scenario) -> None:
    """This holds for every kind of run, live and on replay; ids are dense and belong to one run."""
    async with runs_of(errors="show") as runs:
        run = runs.start(scenario.make(), scenario.input, max_turns=scenario.max_turns)
        live = [event async for event in run.events(policy="block")]
        again = [event async for event in run.events(policy="block")]
        assert [event.to_dict() for event in again] == [event.to_dict() for event in live]
        assert [event.id for event in live] == list(range(len(live)))
        assert run.status == scenario.ends
        if scenario.name not in {"retry", "parallel"}:  # their order depends on timing
            assert comparable(live) == comparable(await events_of(scenario))


async def test_the_id_of_a_run_is_the_one_that_tools_see() -> None:
    """The run id is the same for tools and for clients."""
    seen: list[str | None] = []

    @function_tool
    def look(ctx: ToolContext[Any]) -> str:
        """Look."""
        seen.append(ctx.run_id)
        return "ok"

    async with runs_of() as runs:
        run = runs.start(agent_of(tool_call("look"), "Done.", tools=[look]), "Hi", run_id="mine")
        events = await all_events(run)
        assert seen == ["mine"]
        assert isinstance(events[0], RunStartedEvent)
        assert events[0].run_id == "mine"
        assert run.stream.sid == "mine"
        assert run.result is not None
        assert run.result.run_id == "mine"


async def test_a_run_resumes_from_an_external_state() -> None:
    """`start` accepts the same inputs as `Runner.run`."""
    agent = agent_of(tool_call("drop", table="t"), "Done.", tools=[drop])
    result = await Runner.run(agent, "Clean up")
    state = RunState.from_json(result.to_state().to_json())
    state.approve(state.interruptions[0])
    async with runs_of() as runs:
        run = runs.start(agent, state)
        await all_events(run)
        assert (run.status, run.output) == ("ok", "Done.")
        with pytest.raises(UserError, match="not of 'other'"):
            runs.start(Agent(name="other"), state)
        with pytest.raises(UserError, match="Agent"):
            runs.start(add, "Hi")  # type: ignore[arg-type]


async def test_a_run_started_in_a_tool_is_separate_from_the_callers_run() -> None:
    """Its events are not part of the caller's run."""
    async with runs_of() as runs:
        started: list[ActiveRun] = []

        @function_tool
        async def start() -> str:
            """Start a run."""
            started.append(runs.start(agent_of("Inner."), "Hi"))
            return "started"

        outer = runs.start(agent_of(tool_call("start"), "Outer.", tools=[start]), "Hi")
        assert all("Inner." not in str(event.to_dict()) for event in await all_events(outer))
        inner = await all_events(started[0])
        assert all(event.path == () for event in inner)
        assert started[0].output == "Inner."


async def test_runs_are_found_by_id_and_by_conversation() -> None:
    """A client joins the newest run of a conversation."""
    async with runs_of() as runs:
        one = runs.start(agent_of("1"), "Hi", thread_id="t")
        two = runs.start(agent_of("2"), "Hi", thread_id="t")
        other = runs.start_tool(add, '{"a": 1, "b": 2}', thread_id="u", meta={"note": 1})
        assert runs.newest("t") is two
        assert runs.newest("none") is None
        assert runs.get(one.id) is one
        assert runs.get("none") is None
        assert runs.list() == [one, two, other]
        assert other.meta == {"note": 1}
        for run in (one, two, other):
            await run.wait()


async def test_invalid_run_options_are_rejected() -> None:
    """The message says what to pass instead."""
    for option in ("keep_runs", "keep_for", "max_running"):
        with pytest.raises(UserError, match=f"{option}= is a number above 0"):
            RunManager(**{option: 0})  # type: ignore[arg-type]
    with pytest.raises(UserError, match="context= is a function"):
        RunManager(context=5)  # type: ignore[arg-type]


# --- watching


async def test_the_run_is_cancelled_when_the_last_subscriber_leaves() -> None:
    """It is not cancelled by the first one, or if it is detached."""
    for how, cancelled in (("cancel", True), ("detach", False)):
        gate = Gate()
        async with runs_of(on_disconnect=how) as runs:
            run = runs.start_tool(gate.tool, "{}")
            await gate.begun.wait()
            with run.watching():
                with run.watching():
                    assert run.watchers == 2
                assert run.running
            gate.released.set()
            await run.wait()
            assert (run.status == "cancelled") is cancelled
            assert gate.cancelled.is_set() is cancelled


async def test_watching_to_the_end_cancels_nothing() -> None:
    """A run that waits for approvals has ended for its subscribers."""
    async with runs_of() as runs:
        run = runs.start_tool(drop, '{"table": "t"}')
        with run.watching():
            await all_events(run)
        assert run.status == "interrupted"
        assert [item.name for item in run.interruptions] == ["drop"]


async def test_a_store_means_detach() -> None:
    """Stored runs are kept for clients that connect later."""
    assert RunManager().on_disconnect == "cancel"
    assert RunManager(store=MemoryEventStore()).on_disconnect == "detach"
    assert RunManager(store=MemoryEventStore(), on_disconnect="cancel").on_disconnect == "cancel"


# --- cancelling


async def test_a_cancelled_run_emits_its_end_with_the_reason() -> None:
    """There is one end event, after the ends of the calls."""
    gate = Gate()
    async with runs_of() as runs:
        run = runs.start(agent_of(tool_call("wait"), tools=[gate.tool]), "Hi")
        await gate.begun.wait()
        assert run.cancel("enough") is True
        assert run.cancel() is True
        events = await all_events(run)
        ends = [event for event in events if isinstance(event, ToolStreamEndEvent)]
        assert [event.status for event in ends] == ["cancelled"]
        last = events[-1]
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, last.error) == ("cancelled", "enough")
        assert (run.status, run.error) == ("cancelled", "enough")
        assert run.cancel() is False


async def test_a_run_that_is_cancelled_before_it_began_has_an_end() -> None:
    """Its task never started."""
    async with runs_of() as runs:
        run = runs.start(agent_of("Hello."), "Hi")
        run.cancel()
        (last,) = await all_events(run)
        assert isinstance(last, RunFinishedEvent)
        assert last.status == "cancelled"


async def test_a_run_that_waits_can_be_cancelled() -> None:
    """Its approvals are dropped."""
    async with runs_of() as runs:
        run = runs.start_tool(drop, '{"table": "t"}')
        before = await all_events(run)
        assert run.cancel("never mind") is True
        (last,) = await all_events(run, before[-1].id)
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, run.interruptions) == ("cancelled", [])
        with pytest.raises(HttpError, match="waits for no approvals"):
            run.decide([{"call_id": "call_1", "approve": True}])


@pytest.mark.requirement("S20")
async def test_an_unexpected_error_of_a_run_is_reported_by_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception from outside the library is only logged."""

    class Broken:
        async def respond(self, request: Any, emit: Any) -> Any:
            del request, emit
            raise RuntimeError("the inside")

    async with runs_of() as runs:
        run = runs.start(Agent(name="a", model=Broken()), "Hi")  # type: ignore[arg-type]
        last = (await all_events(run))[-1]
        assert isinstance(last, RunFinishedEvent)
        assert run.status == "error"
        assert last.error == run.error
        assert str(run.error).startswith("RuntimeError (error ")
        assert "the inside" not in str(run.error)
        assert "the inside" in caplog.text
        run = runs.start(Agent(name="a"), "Hi")
        await run.wait()
        assert "No model is configured" in str(run.error)


# --- deciding


async def test_decisions_may_come_one_by_one() -> None:
    """The run resumes when the last call is decided."""
    calls = [tool_call("drop", table="a"), tool_call("drop", table="b")]
    async with runs_of() as runs:
        run = runs.start(agent_of(calls, "Done.", tools=[drop]), "Hi")
        before = await all_events(run)
        first, second = run.interruptions
        run.decide([(CallReference(first.call_id), Decision(approved=True))])
        assert run.status == "interrupted"
        assert run.interruptions == [second]
        run.decide([{"call_id": second.call_id, "approve": False, "message": "no"}])
        assert run.running
        after = await all_events(run, before[-1].id)
        assert run.output == "Done."
        outputs = [
            event.item["status"]
            for event in after
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
        ]
        assert sorted(outputs) == ["denied", "ok"]


async def test_calls_with_the_same_id_are_distinguished_by_their_path() -> None:
    """Ids are unique within one parent only."""
    scenario = SCENARIOS["nested_approve"]
    async with runs_of() as runs:
        run = runs.start(scenario.make(), scenario.input)
        before = await all_events(run)
        (item,) = run.interruptions
        assert item.path != ()
        path = tuple(item.path)
        with pytest.raises(HttpError, match="Waiting calls"):
            run.decide([{"call_id": item.call_id, "path": [], "approve": True}])
        run.decide([{"call_id": item.call_id, "path": [*path, item.call_id], "approve": True}])
        after = await all_events(run, before[-1].id)
        assert run.status == "ok"
        assert after[-1].seq > before[-1].seq


# --- retention


async def test_runs_that_ended_long_ago_are_deleted() -> None:
    """Their streams are closed; running ones are kept, whatever their number."""
    gate = Gate()
    async with runs_of(keep_runs=2, keep_for=1e-9) as runs:
        going = runs.start_tool(gate.tool, "{}")
        old = runs.start_tool(add, '{"a": 1, "b": 2}')
        await old.wait()
        runs.start_tool(add, '{"a": 1, "b": 2}')
        newest = runs.start_tool(add, '{"a": 1, "b": 2}')
        assert runs.get(old.id) is None
        assert old.stream.closed
        assert runs.get(going.id) is going
        assert runs.get(newest.id) is newest
        gate.released.set()
        await going.wait()


async def test_a_run_can_be_deleted_when_it_has_ended() -> None:
    """It is deleted from memory and from the store."""
    store, gate = MemoryEventStore(), Gate()
    async with runs_of(store=store) as runs:
        run = runs.start_tool(gate.tool, "{}", run_id="r1")
        await gate.begun.wait()
        with pytest.raises(HttpError, match="cancel it first"):
            await runs.delete(run)
        gate.released.set()
        await run.wait()
        await run.stream.flush()
        await runs.delete(run)
        assert await runs.find("r1") is None
        assert await store.session("r1").read() == []


async def test_an_id_in_the_store_cannot_be_used_again() -> None:
    """This also holds before the store has been read."""
    store = MemoryEventStore()
    store.session("r1").append([RunStartedEvent()]).result()
    async with runs_of(store=store) as runs:
        with pytest.raises(HttpError, match="already"):
            runs.start_tool(add, '{"a": 1, "b": 2}', run_id="r1")
        assert runs.list() == []


async def test_an_unreadable_log_does_not_affect_other_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The other runs are listed."""
    store = MemoryEventStore()
    broken = RunFinishedEvent(status="interrupted").stamped(Origin(), 1)
    store.session("bad").append([dead_record(), state_record({"no": "state"}), broken]).result()
    store.session("good").append([dead_record(), RunFinishedEvent()]).result()
    async with runs_of(store=store) as runs:
        await runs.restore()
        assert [run.id for run in runs.list()] == ["good"]
        assert "The run 'bad' cannot be read" in caplog.text


async def test_closing_ends_everything() -> None:
    """Running runs are cancelled, subscribers get the end, and the object can be started again."""
    gate = Gate()
    runs = RunManager()
    run = runs.start_tool(gate.tool, "{}")
    watching = asyncio.ensure_future(all_events(run))
    await gate.begun.wait()
    closing = asyncio.ensure_future(runs.aclose())
    await asyncio.sleep(0)
    with pytest.raises(HttpError, match="stopping"):
        runs.start_tool(add, "{}")
    await closing
    last = (await watching)[-1]
    assert isinstance(last, RunFinishedEvent)
    assert (last.status, last.error) == ("cancelled", "the server is stopping")
    assert run.stream.closed
    again = runs.start_tool(add, '{"a": 1, "b": 2}')
    await again.wait()
    await runs.aclose()


# --- runs of earlier processes


async def test_runs_of_an_earlier_process_can_be_listed_and_read() -> None:
    """Stored runs are available again, including their owners."""
    store = MemoryEventStore()
    async with runs_of(store=store) as earlier:
        one = earlier.start(agent_of("Hello."), "Hi", run_id="one", thread_id="t", meta={"a": 1})
        events = await all_events(one)
        two = earlier.start_tool(add, '{"a": 1, "b": 2}', run_id="two")
        await two.wait()
        await one.stream.flush()
        await two.stream.flush()
    store.session("unrelated").append([RunStartedEvent()]).result()
    async with runs_of(store=store) as runs:
        assert runs.list() == []
        await runs.restore()
        found, other = runs.list()
        assert (found.id, found.thread_id, found.meta) == ("one", "t", {"a": 1})
        assert (found.status, found.output, found.kind) == ("ok", "Hello.", "agent")
        assert (other.id, other.kind, other.output) == ("two", "tool", 3)
        again = await all_events(found)
        assert [event.to_dict() for event in again] == [event.to_dict() for event in events]
        assert await all_events(found, events[-1].id) == []
        assert runs.newest("t") is found
        with pytest.raises(HttpError, match="already"):
            runs.start(agent_of("Hello."), "Hi", run_id="one")


@pytest.mark.requirement("F42")
async def test_an_interrupted_process_leaves_a_lost_run_with_a_complete_stream() -> None:
    """Open calls end first, then the run, so that no subscriber waits forever."""
    store = MemoryEventStore()
    log = store.session("cut")
    outer = Origin("ask", "call_1", ("call_1",))
    inner = Origin("work", "call_1", ("call_1", "call_1"))
    log.append(
        [
            dead_record(),
            RunStartedEvent(run_id="cut", agent="helper").stamped(Origin(), 0),
            ToolStreamStartEvent(input_args={}).stamped(outer, 1),
            ToolStreamStartEvent(input_args={}).stamped(inner, 2),
        ]
    ).result()
    gc.collect()
    async with runs_of(store=store) as runs:
        run = await runs.find("cut")
        assert run is not None
        assert run.status == "lost"
        assert "the process that ran it has ended" in str(run.error)
        events = await all_events(run)
        assert [event.type for event in events[-3:]] == [
            "tool_stream_end_event",
            "tool_stream_end_event",
            "run_finished_event",
        ]
        assert [event.path for event in events[-3:]] == [inner.path, outer.path, ()]
        assert [event.seq for event in events] == list(range(6))
        assert run.cancel() is False
        count = len(await log.read())
    async with runs_of(store=store) as runs:
        await runs.restore()
        assert [run.status for run in runs.list()] == ["lost"]
        assert len(await log.read()) == count


_SERVER = """
import asyncio, sys
from agents_tools import function_tool
from agents_tools.persistence import SQLiteEventStore
from agents_tools.server.run_manager import RunManager

@function_tool
async def wait() -> str:
    "Wait for ever."
    print("begun", flush=True)
    await asyncio.Event().wait()
    return ""

async def main():
    runs = RunManager(store=SQLiteEventStore(sys.argv[1]))
    run = runs.start_tool(wait, "{}", run_id="r1", thread_id="t")
    async for event in run.events():
        if event.type == "tool_stream_start_event":
            await run.stream.flush()
            print("kept", flush=True)

asyncio.run(main())
"""


@pytest.mark.requirement("F42")
async def test_a_run_of_a_process_that_was_killed_is_lost(tmp_path: Path) -> None:
    """The process gets `kill -9` during a call; the next process emits the end."""
    path = tmp_path / "runs.db"
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program
        [sys.executable, "-c", _SERVER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert {process.stdout.readline(), process.stdout.readline()} == {"begun\n", "kept\n"}
        process.kill()
    store = SQLiteEventStore(path)
    try:
        async with runs_of(store=store) as runs:
            await runs.restore()
            (run,) = runs.list()
            assert (run.id, run.thread_id, run.status) == ("r1", "t", "lost")
            events = await all_events(run)
            assert [event.type for event in events[-2:]] == [
                "tool_stream_end_event",
                "run_finished_event",
            ]
            assert [event.to_dict()["status"] for event in events[-2:]] == ["lost", "lost"]
    finally:
        store.close()


async def test_a_run_of_a_living_process_is_watched_and_not_taken_over() -> None:
    """Two servers can share a store."""
    store, gate = MemoryEventStore(), Gate()
    async with runs_of(store=store) as one, runs_of(store=store) as other:
        run = one.start_tool(gate.tool, "{}", run_id="r1")
        await gate.begun.wait()
        await run.stream.flush()
        seen = await other.find("r1")
        assert seen is not None
        assert (seen.status, seen.remote) == ("running", True)
        assert seen.cancel() is False
        watching = asyncio.ensure_future(all_events(seen))
        gate.released.set()
        events = await watching
        assert isinstance(events[-1], RunFinishedEvent)
        assert (seen.status, seen.output) == ("ok", "waited")
        assert run.status == "ok"


async def test_a_waiting_run_resumes_in_another_process() -> None:
    """Its checkpoint is in the store, and its stream continues."""
    store = MemoryEventStore()
    agent = agent_of(tool_call("drop", table="t"), "Done.", tools=[drop])
    earlier = RunManager(store=store)
    run = earlier.start(agent, "Hi", run_id="r1")
    before = await all_events(run)
    await earlier.aclose()
    del earlier, run
    gc.collect()
    async with runs_of(store=store) as runs:
        found = await runs.find("r1")
        assert found is not None
        assert found.status == "interrupted"
        (item,) = found.interruptions
        decision = {"call_id": item.call_id, "approve": True}
        with pytest.raises(HttpError, match="its agent is not here"):
            found.decide([decision])
    async with runs_of(store=store) as runs:
        runs.offer(agent)
        found = await runs.find("r1")
        assert found is not None
        found.decide([decision])
        after = await all_events(found, before[-1].id)
        assert (found.status, found.output) == ("ok", "Done.")
        assert after[0].id > before[-1].id
        assert after[0].seq > before[-1].seq
        assert "dropped t" in str([event.to_dict() for event in after])


@pytest.mark.requirement("S20")
async def test_a_call_does_not_run_with_a_masked_secret() -> None:
    """Secrets are not stored, so another process only has the mask."""
    store = MemoryEventStore()
    register_secret("open-sesame-31337")
    agent = agent_of(tool_call("drop", table="open-sesame-31337"), "Done.", tools=[drop])
    earlier = RunManager(store=store)
    run = earlier.start(agent, "Hi", run_id="r1")
    await all_events(run)
    await earlier.aclose()
    del earlier, run
    gc.collect()
    async with runs_of(store=store) as runs:
        runs.offer(agent)
        found = await runs.find("r1")
        assert found is not None
        decision = {"call_id": found.interruptions[0].call_id, "approve": True}
        with pytest.raises(HttpError, match="held something secret, which was not stored"):
            found.decide([decision])
        assert found.cancel()
        assert found.status == "cancelled"


@pytest.mark.requirement("S24")
async def test_stored_runs_are_visible_to_their_owner_only() -> None:
    """The owner is stored with the run."""
    store = MemoryEventStore()
    record = record_of(
        thread_id=None,
        kind="agent",
        agent="a",
        owner='["x", null]',
        meta={},
        process=ProcessIdentity(),
    )
    store.session("r1").append([record, RunFinishedEvent()]).result()
    async with runs_of(store=store) as runs:
        run = await runs.find("r1")
        assert run is not None
        assert run.owner == '["x", null]'


def dead_record() -> Event:
    """Record a run of a process that has ended."""
    return record_of(
        thread_id=None, kind="agent", agent="helper", owner=None, meta={}, process=ProcessIdentity()
    )


def test_processes_with_the_same_number_are_distinguished() -> None:
    """A process number can be reused by another process."""
    here = ProcessIdentity()
    assert ProcessIdentity.is_alive(here.to_dict())
    assert ProcessIdentity.is_alive({**here.to_dict(), "host": "elsewhere"})
    assert not ProcessIdentity.is_alive({**here.to_dict(), "token": "another"})
    assert not ProcessIdentity.is_alive({**here.to_dict(), "began": "long ago"})
    assert not ProcessIdentity.is_alive({**here.to_dict(), "pid": 2**22 + 1})
    assert not here.is_other(here.to_dict())
    assert ProcessIdentity().is_other(here.to_dict())


# --- failures


@pytest.mark.requirement("F5")
async def test_a_cancelled_run_that_does_not_stop_is_reported_as_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Subscribers do not wait for it, and its later events are dropped."""
    monkeypatch.setattr(_runs_live, "_PATIENCE", 0.01)
    begun, released = asyncio.Event(), asyncio.Event()

    class Stubborn:
        async def respond(self, request: Any, emit: Any) -> Any:
            del request, emit
            begun.set()
            while not released.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await released.wait()
            return ModelResponse(items=[])

    async with runs_of() as runs:
        run = runs.start(Agent(name="a", model=Stubborn()), "Hi")
        await begun.wait()
        run.cancel()
        last = (await all_events(run))[-1]
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, run.status) == ("cancelled", "cancelled")
        released.set()
        await idle(run)
        assert run.stream.last_id == last.id
        assert run.status == "cancelled"


class Full(MemoryEventStore):
    """A store whose disk is full."""

    def append(self, events: Any, /, **_: Any) -> PendingFuture[int]:
        del events
        return PendingFuture.failed(EventStoreFullError("no room", store="a disk"))

    def session(self, sid: str, /) -> Full:
        return Full(sid)


async def test_a_failing_store_does_not_fail_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """The run stays available in memory, and the log names what was not stored."""
    async with runs_of(store=Full()) as runs:
        run = runs.start_tool(add, '{"a": 1, "b": 2}')
        await all_events(run)
        assert (run.status, run.output) == ("ok", 3)
        await idle(run)
    assert "no room" in caplog.text


class OwnBaseError(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, OwnBaseError])
@pytest.mark.parametrize("level", ["tool", "agent", "sub-agent"])
async def test_clients_do_not_read_the_message_of_any_exception(
    kind: type[BaseException], level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Tools raise more than `Exception`; the log has the message, under the id that clients get."""

    @function_tool
    def fail() -> str:
        raise kind("cannot open inside.db")

    agent = agent_of(tool_call("fail"), "Done.", tools=[fail])
    async with runs_of() as runs:
        if level == "tool":
            run = runs.start_tool(fail, "{}")
        elif level == "agent":
            run = runs.start(agent, "Go.")
        else:
            inner = agent.as_tool("inner", "A sub-agent.", streaming=True)
            outer = agent_of(tool_call("inner", input="Go."), "Done.", tools=[inner])
            run = runs.start(outer, "Go.")
        text = str([event.to_dict() for event in await all_events(run)])
    assert "inside.db" not in text
    number = text.partition("(error ")[2][:8]
    assert number in caplog.text
    assert "inside.db" in caplog.text


@pytest.mark.requirement("S20")
@pytest.mark.parametrize(
    ("event", "hidden"),
    [
        (RunFinishedEvent(status="error", error="RuntimeError: inside"), True),
        (RunFinishedEvent(status="error", error="ToolError: meant"), False),
        (RunFinishedEvent(status="error", error="RuntimeError"), False),
        (RunFinishedEvent(), False),
        (ErrorEvent(message="inside", kind="KeyError"), True),
        (ErrorEvent(message="inside"), True),
        (ErrorEvent(message="meant", kind="ToolError"), False),
        (output_of("KeyError: 'inside'", "tool_error", "KeyError (error 0123abcd)."), True),
        (output_from_elsewhere("KeyError: 'inside'", "tool_error"), True),
        (output_from_elsewhere("The call was refused.", "denied"), False),
        (output_of("Tool 'x' failed: KeyError: 'inside'", "ok"), False),
        (output_of("The shop is closed.", "tool_error"), False),
        (output_of([ToolOutputText("a")], "tool_error"), False),
    ],
)
def test_unexpected_errors_are_hidden(
    event: Event, *, hidden: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """This includes nested runs and calls.

    Messages of the library and of tool authors are shown.
    """
    shown = ErrorMasker("hide").event(event)
    assert (shown != event) is hidden
    assert ErrorMasker("show").event(event) is event
    if hidden:
        text = str(shown.to_dict())
        assert "inside" not in text
        number = text.partition("(error ")[2][:8]
        assert number in caplog.text
        assert "inside" in caplog.text


# --- runs of other servers


async def test_runs_of_other_servers_use_no_capacity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are not counted, not awaited on shutdown, and not kept forever."""
    monkeypatch.setattr(_runs, "_SHUTDOWN_TIMEOUT", 3_600.0)
    store, gate = MemoryEventStore(), Gate()
    async with runs_of(store=store) as one:
        other = RunManager(store=store, max_running=1, keep_runs=1)
        running = [one.start_tool(gate.tool, "{}", run_id=f"r{n}") for n in range(3)]
        await gate.begun.wait()
        for run in running:
            await run.stream.flush()
            seen = await other.find(run.id)
            assert seen is not None
            assert seen.remote
        mine = other.start_tool(add, '{"a": 1, "b": 2}')
        await mine.wait()
        await idle(mine)
        other.start_tool(add, '{"a": 1, "b": 2}', run_id="last")
        assert sum(run.remote for run in other.list()) <= 1
        async with asyncio.timeout(PATIENCE / 2):
            await other.aclose()
        gate.released.set()


async def test_a_run_that_ends_on_another_server_leaves_no_second_stream() -> None:
    """Its subscribers are served to the end; then the local mirror is released."""
    store, gate = MemoryEventStore(), Gate()
    async with runs_of(store=store) as one, runs_of(store=store) as other:
        run = one.start_tool(gate.tool, "{}", run_id="r1")
        await gate.begun.wait()
        await run.stream.flush()
        seen = await other.find("r1")
        assert seen is not None
        with seen.watching():
            watching = asyncio.ensure_future(all_events(seen))
            gate.released.set()
            await run.wait()
            await run.stream.flush()
            now = await other.find("r1")
            assert now is not None
            assert (now.remote, now.status) == (False, "ok")
            assert isinstance((await watching)[-1], RunFinishedEvent)
        assert now is seen or seen.stream.closed


async def test_client_requests_are_deleted_with_the_oldest_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Histories are long, and every request contains a whole one."""
    monkeypatch.setattr(_runs, "_KEPT_BYTES", 1_000)
    async with runs_of(keep_runs=2) as runs:
        for number in range(5):
            run = runs.start(agent_of("Hello."), "Hi", run_id=f"r{number}", weight=600)
            await run.wait()
            await idle(run)
        runs._tidy(now=True)
        assert [run.id for run in runs.list()] == ["r4"]


async def test_arguments_too_deep_for_an_event_do_not_break_the_stream() -> None:
    """Models can nest arguments deeper than events allow; the stream and the store continue."""
    store = MemoryEventStore()
    deep = '{"a": ' + "[" * 150 + "]" * 150 + "}"
    async with runs_of(store=store) as runs:
        run = runs.start(agent_of([tool_call("add", deep)], "Done.", tools=[add]), "Hi")
        await run.wait()
        await run.stream.flush()
        stored = await store.session(run.id).read()
        assert [event.to_dict()["type"] for event in stored][-1] == RunFinishedEvent.type


async def waiting_run(store: Any, agent: Agent[Any, Any]) -> None:
    """Store a waiting run of a process that has ended."""
    earlier = RunManager(store=store)
    run = earlier.start(agent, "Hi", run_id="r1")
    await run.wait()
    await run.stream.flush()
    await earlier.aclose()
    del earlier, run
    gc.collect()


@pytest.mark.requirement("F41")
async def test_one_of_two_servers_that_decide_at_once_resumes_the_run() -> None:
    """The call is made once; the other server mirrors the run."""
    store, gate, calls = MemoryEventStore(), asyncio.Event(), list[str]()

    @needs_approval
    @function_tool
    async def pay() -> str:
        """Pay."""
        calls.append("paid")
        await gate.wait()
        return "paid"

    await waiting_run(store, agent_of(tool_call("pay"), tools=[pay]))
    async with runs_of(store=store) as one, runs_of(store=store) as other:
        found: list[ActiveRun] = []
        for runs in (one, other):
            runs.offer(agent_of("Done.", tools=[pay]))
            run = await runs.find("r1")
            assert run is not None
            assert run.status == "interrupted"
            found.append(run)
        before = found[0].last_id
        for run in found:
            run.decide([{"call_id": "call_1", "approve": True}])
        watching = [asyncio.ensure_future(all_events(run, before)) for run in found]
        while not calls or sum(run.remote for run in found) != 1:
            await asyncio.wait_for(asyncio.sleep(0), PATIENCE)
        async with runs_of(store=store) as third:
            seen = await third.find("r1")
            assert seen is not None
            assert (seen.status, seen.remote) == ("running", True)  # and not lost
        gate.set()
        ends = [(await one)[-1] for one in watching]
        assert [getattr(end, "status", "") for end in ends] == ["ok", "ok"]
        assert [run.status for run in found] == ["ok", "ok"]
    assert calls == ["paid"]
