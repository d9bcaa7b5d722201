"""The runs of a server: start, watch, decide, cancel, keep and delete."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sqlite3
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
    NotifyStreamEvent,
    RunConfig,
    Runner,
    ToolAnnotations,
    ToolContext,
    function_tool,
    register_secret,
    streaming_tool,
)
from agents_tools.agents import ModelResponse, RunState
from agents_tools.content import ToolOutputText
from agents_tools.content.items import ToolCallOutputItem
from agents_tools.errors import EventStoreFullError, UserError
from agents_tools.events import (
    ErrorEvent,
    GapEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
)
from agents_tools.persistence import MemoryRunStore, RunStore, SQLiteRunStore
from agents_tools.persistence.storage import AppendRows
from agents_tools.persistence.stores.memory import MemoryStorage
from agents_tools.persistence.stream import EventStream
from agents_tools.policies import needs_approval
from agents_tools.server import active_run as _runs_live, run_manager as _runs
from agents_tools.server.approvals import CallReference
from agents_tools.server.http_errors import HttpError
from agents_tools.server.public_errors import ErrorMasker
from agents_tools.server.run_manager import ActiveRun, RunManager
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text import forget_secret
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


def output_of(
    output: Any, status: Any, public: str | None = None, name: str = "tool_output"
) -> Event:
    item = ToolCallOutputItem(call_id="1", output=output, status=status, public_message=public)
    data = item.to_dict() | ({} if public is None else {"public_message": public})
    return RunItemStreamEvent(name, data).attach(item)


class Gate:
    """A tool that waits until it is released, and records its cancellation."""

    def __init__(self, *, is_idempotent: bool = False) -> None:
        self.begun = asyncio.Event()
        self.released = asyncio.Event()
        self.cancelled = asyncio.Event()

        @function_tool(annotations=ToolAnnotations(idempotentHint=is_idempotent))
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
    """This holds for every kind of run, live and on replay; the ids increase."""
    async with runs_of(errors="show") as runs:
        run = runs.start(scenario.make(), scenario.input, max_turns=scenario.max_turns)
        live = [event async for event in run.events(policy="block")]
        again = [event async for event in run.events(policy="block")]
        kept = [event.to_dict() for event in live if not event.droppable]
        assert [event.to_dict() for event in again if not event.droppable] == kept
        ids = [event.id for event in live]
        assert ids == sorted(set(ids))
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
        assert await runs.store.run("mine") is not None
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
        with pytest.raises(UserError, match="expected 'other'"):
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
        assert await runs.find_newest("t") is two
        assert await runs.find_newest("none") is None
        assert await runs.find(one.id) is one
        assert await runs.find("none") is None
        assert await runs.list() == [one, two, other]
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
                assert run.is_running
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
    assert RunManager(store=MemoryRunStore()).on_disconnect == "detach"
    assert RunManager(store=MemoryRunStore(), on_disconnect="cancel").on_disconnect == "cancel"


# --- cancelling


async def test_a_cancelled_run_emits_its_end_with_the_reason() -> None:
    """There is one end event, after the ends of the calls."""
    gate = Gate()
    async with runs_of() as runs:
        run = runs.start(agent_of(tool_call("wait"), tools=[gate.tool]), "Hi")
        await gate.begun.wait()
        assert await run.cancel("enough") is True
        assert await run.cancel() is True
        events = await all_events(run)
        ends = [event for event in events if isinstance(event, ToolStreamEndEvent)]
        assert [event.status for event in ends] == ["cancelled"]
        last = events[-1]
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, last.error) == ("cancelled", "enough")
        assert (run.status, run.error) == ("cancelled", "enough")
        assert await run.cancel() is False


def test_an_async_on_failure_is_rejected() -> None:
    """It would never run."""

    async def report(run_id: str, error: Exception) -> None:
        del run_id, error

    with pytest.raises(UserError, match="on_failure=: expected a sync function"):
        RunManager(on_failure=report)


async def test_a_failed_run_has_its_end_although_on_failure_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[tuple[str, str]] = []

    def report(run_id: str, error: Exception) -> None:
        seen.append((run_id, str(error)))
        raise ValueError("no such file")

    async with runs_of(on_failure=report) as runs:
        run = runs.start(agent_of(RuntimeError("no model")), "Hi")
        await run.wait()
        assert seen == [(run.id, "no model")]
        assert run.status == "error"
    assert f"on_failure= of run {run.id} failed" in caplog.text


async def test_a_run_that_is_cancelled_before_it_began_has_an_end() -> None:
    """Its task never started."""
    async with runs_of() as runs:
        run = runs.start(agent_of("Hello."), "Hi")
        await run.cancel()
        *_, last = await all_events(run)
        assert isinstance(last, RunFinishedEvent)
        assert last.status == "cancelled"


async def test_a_run_that_waits_can_be_cancelled() -> None:
    """Its approvals are dropped."""
    async with runs_of() as runs:
        run = runs.start_tool(drop, '{"table": "t"}')
        before = await all_events(run)
        assert await run.cancel("never mind") is True
        output, last = await all_events(run, before[-1].id)
        assert output.to_dict()["item"]["status"] == "cancelled"
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, run.interruptions) == ("cancelled", [])
        with pytest.raises(HttpError, match="does not wait for approvals"):
            await run.decide([{"call_id": "call_1", "approve": True}])


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
        await run.decide([(CallReference(first.call_id), Decision(approved=True))])
        assert run.status == "interrupted"
        assert run.interruptions == [second]
        await run.decide([{"call_id": second.call_id, "approve": False, "message": "no"}])
        assert run.is_running
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
            await run.decide([{"call_id": item.call_id, "path": [], "approve": True}])
        await run.decide(
            [{"call_id": item.call_id, "path": [*path, item.call_id], "approve": True}]
        )
        after = await all_events(run, before[-1].id)
        assert run.status == "ok"
        assert after[-1].seq > before[-1].seq


# --- retention


async def test_runs_that_ended_long_ago_are_deleted() -> None:
    """Their events are deleted as well; running ones are kept, whatever their number."""
    gate = Gate()
    async with runs_of(keep_runs=2, keep_for=1e-9) as runs:
        going = runs.start_tool(gate.tool, "{}")
        for _ in range(4):
            old = runs.start_tool(add, '{"a": 1, "b": 2}')
            await old.wait()
        newest = runs.start_tool(add, '{"a": 1, "b": 2}')
        await newest.wait()
        assert len(await runs.list()) <= 4
        assert await runs.find(going.id) is going
        assert await runs.find(newest.id) is newest
        gate.released.set()
        await going.wait()


async def test_a_run_can_be_deleted_when_it_has_ended() -> None:
    """It is deleted from memory and from the store."""
    store, gate = MemoryRunStore(), Gate()
    async with runs_of(store=store) as runs:
        run = runs.start_tool(gate.tool, "{}", run_id="r1")
        await gate.begun.wait()
        with pytest.raises(HttpError, match="cancel it first"):
            await runs.delete(run)
        gate.released.set()
        await run.wait()
        await runs.delete(run)
        assert await runs.find("r1") is None
        assert await store.run("r1") is None
        assert await store.log("r1").read() == []


async def test_a_run_that_another_server_has_deleted_is_gone() -> None:
    """It is not shown from memory."""
    store = MemoryRunStore()
    async with runs_of(store=store) as runs:
        run = runs.start_tool(add, '{"a": 1, "b": 2}', run_id="r1")
        await run.wait()
        assert await runs.find("r1") is run
        await store.delete("r1")
        assert await runs.find("r1") is None


async def test_an_id_in_the_store_cannot_be_used_again() -> None:
    """The answer is a conflict. A server that does not ask first does not change the run."""
    store = MemoryRunStore()
    async with runs_of(store=store) as runs:
        run = runs.start_tool(add, '{"a": 1, "b": 2}', run_id="r1")
        events = await all_events(run)
    async with runs_of(store=store) as runs:
        with pytest.raises(HttpError, match="already"):
            await runs.check_new("r1")
        again = runs.start_tool(add, '{"a": 5, "b": 5}', run_id="r1")
        await again.wait()
        assert "exists already" in str(again.error)
        assert (await store.log("r1").read())[-1].id == events[-1].id


async def test_an_unreadable_log_does_not_affect_other_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The other runs are listed and can be read."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    async with runs_of(store=store) as runs:
        for name in ("bad", "good"):
            await runs.start_tool(add, '{"a": 1, "b": 2}', run_id=name).wait()
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as file, file:
        file.execute("UPDATE event SET body = '{' WHERE log = 1")
    async with runs_of(store=store) as runs:
        assert [run.id for run in await runs.list()] == ["good"]
        assert "Run 'bad' is skipped" in caplog.text
        good = await runs.find("good")
        assert good is not None
        assert good.output == 3
    store.close()


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
    assert (last.status, last.error) == ("cancelled", "The server is stopping.")
    assert await runs.list() == []
    again = runs.start_tool(add, '{"a": 1, "b": 2}')
    await again.wait()
    await runs.aclose()


# --- runs of earlier processes


async def test_runs_of_an_earlier_process_can_be_listed_and_read() -> None:
    """Stored runs are available again, including their owners."""
    store = MemoryRunStore()
    async with runs_of(store=store) as earlier:
        one = earlier.start(agent_of("Hello."), "Hi", run_id="one", thread_id="t", meta={"a": 1})
        events = await all_events(one)
        two = earlier.start_tool(add, '{"a": 1, "b": 2}', run_id="two")
        await two.wait()
    await store.log("unrelated").append([RunStartedEvent()])
    async with runs_of(store=store) as runs:
        found, other = await runs.list()
        assert (found.id, found.thread_id, found.meta) == ("one", "t", {"a": 1})
        assert (found.status, found.output, found.kind) == ("ok", "Hello.", "agent")
        assert (other.id, other.kind, other.output) == ("two", "tool", 3)
        again = await all_events(found)
        kept = [event.to_dict() for event in events if not event.droppable]
        assert [event.to_dict() for event in again] == kept
        assert await all_events(found, events[-1].id) == []
        assert await runs.find_newest("t") is found


_SERVER = """
import asyncio, sys
from agents_tools import function_tool
from agents_tools.persistence import SQLiteRunStore
from agents_tools.server.run_manager import RunManager

@function_tool
async def wait() -> str:
    "Wait for ever."
    print("begun", flush=True)
    await asyncio.Event().wait()
    return ""

async def main():
    runs = RunManager(store=SQLiteRunStore(sys.argv[1]))
    await runs.start_tool(wait, "{}", run_id="r1", thread_id="t").wait()

asyncio.run(main())
"""


@pytest.mark.requirement("F42")
async def test_a_run_of_a_process_that_was_killed_is_orphaned(tmp_path: Path) -> None:
    """The process gets `kill -9` during a call. The next server continues or cancels the run."""
    path = tmp_path / "runs.db"
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program
        [sys.executable, "-c", _SERVER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.kill()
    gate = Gate()
    with contextlib.closing(SQLiteRunStore(path)) as store:
        async with runs_of(store=store) as runs:
            (run,) = await runs.list()
            assert (run.id, run.thread_id, run.status) == ("r1", "t", "orphaned")
            with pytest.raises(HttpError, match="does not offer 'wait'"):
                await runs.resume_by_request(run)
            runs.offer([gate.tool])
            await runs.resume_by_request(run)
            events = await all_events(run)
            outputs = [
                event.item["status"]
                for event in events
                if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
            ]
            assert outputs == ["lost"]  # the call may have had an effect, so it does not run again
            assert run.status == "error"
            assert not gate.begun.is_set()
            with pytest.raises(HttpError, match="it is 'error'"):
                await runs.resume_by_request(run)


@pytest.mark.requirement("S24")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_sub_agent_does_not_change_the_summary_of_its_run(
    kind: str, tmp_path: Path
) -> None:
    """The run keeps its agent, its owner and its conversation; else other callers could see it."""
    store = MemoryRunStore() if kind == "memory" else SQLiteRunStore(tmp_path / "runs.db")
    inner = agent_of("Inner.").as_tool("inner", "A sub-agent.")
    outer = Agent(
        "outer", tools=[inner], model=ScriptedModel([tool_call("inner", input="?"), "Done."])
    )
    async with runs_of(store=store) as runs:
        run = runs.start(outer, "Hi", run_id="r1", thread_id="t", meta={"a": 1})
        await run.wait()
        info = await store.run("r1")
        assert info is not None
        assert (info.agent, info.session, info.facts["meta"]) == ("outer", "t", {"a": 1})
    store.close()


async def test_a_waiting_run_resumes_in_another_process() -> None:
    """Its log is in the store, and its events continue."""
    store = MemoryRunStore()
    agent = agent_of(tool_call("drop", table="t"), "Done.", tools=[drop])
    async with runs_of(store=store) as earlier:
        before = await all_events(earlier.start(agent, "Hi", run_id="r1"))
    async with runs_of(store=store) as runs:
        runs.offer(agent)
        found = await runs.find("r1")
        assert found is not None
        assert found.status == "interrupted"
        with pytest.raises(HttpError, match="1 calls wait for approval"):
            await runs.resume_by_request(found)
        (item,) = found.interruptions
        await found.decide([{"call_id": item.call_id, "approve": True}])
        after = await all_events(found, before[-1].id)
        assert (found.status, found.output) == ("ok", "Done.")
        assert after[0].id > before[-1].id
        assert after[0].seq > before[-1].seq
        assert "dropped t" in str([event.to_dict() for event in after])


async def test_a_server_without_the_agent_records_the_decision() -> None:
    """A server that offers the agent resumes the run, by itself with `resume_orphans`."""
    store = MemoryRunStore()
    agent = agent_of(tool_call("drop", table="t"), "Done.", tools=[drop])
    async with runs_of(store=store) as earlier:
        await earlier.start(agent, "Hi", run_id="r1").wait()
    async with runs_of(store=store) as runs:
        found = await runs.find("r1")
        assert found is not None
        await found.decide([{"call_id": found.interruptions[0].call_id, "approve": True}])
        assert (found.status, found.interruptions) == ("interrupted", [])
    async with runs_of(store=store, run_config=RunConfig(resume_orphans=True)) as runs:
        runs.offer(agent)
        await runs.restore()
        found = await runs.find("r1")
        assert found is not None
        while found.status != "ok":
            assert await found.refresh()
            await asyncio.sleep(0)
        assert found.output == "Done."


async def test_an_unreadable_log_does_not_stop_the_search_for_runs_to_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The other runs are resumed."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    for name in ("bad", "good"):
        async with runs_of(store=store) as earlier:
            agent = agent_of(tool_call("drop", table="t"), "Done.", tools=[drop])
            await earlier.start(agent, "Hi", run_id=name).wait()
        await store.decide(name, "call_1", True)
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as file, file:
        file.execute("UPDATE event SET body = '{' WHERE log = 1")
    async with runs_of(store=store, run_config=RunConfig(resume_orphans=True)) as runs:
        runs.offer(agent_of("Done.", tools=[drop]))
        await runs.restore()
        async with asyncio.timeout(5):
            good = await runs.find("good")
            while good is None or good.status != "ok":
                await asyncio.sleep(0.01)
                good = await runs.find("good")
        assert "Run 'bad' is skipped" in caplog.text
    store.close()


@pytest.mark.requirement("S20")
async def test_a_call_does_not_run_with_a_masked_secret() -> None:
    """Secrets are not stored, so a process without the secret only has the mask."""
    store = MemoryRunStore()
    register_secret("open-sesame-31337")
    agent = agent_of(tool_call("drop", table="open-sesame-31337"), "Done.", tools=[drop])
    try:
        async with runs_of(store=store) as earlier:
            await earlier.start(agent, "Hi", run_id="r1").wait()
    finally:
        forget_secret("open-sesame-31337")
    async with runs_of(store=store) as runs:
        runs.offer(agent)
        found = await runs.find("r1")
        assert found is not None
        decision = {"call_id": found.interruptions[0].call_id, "approve": True}
        with pytest.raises(HttpError, match="held a secret, which was not stored"):
            await found.decide([decision])
        assert await found.cancel()
        assert found.status == "cancelled"


@pytest.mark.requirement("S20")
async def test_a_call_runs_with_the_secrets_of_the_manager() -> None:
    """Servers with the same secrets restore them when they resume a run."""
    store, secret = MemoryRunStore(), "open-sesame-31337"
    agent = agent_of(tool_call("drop", table=secret), "Done.", tools=[drop])
    async with runs_of(store=store, secrets={"WORD": secret}) as earlier:
        events = await all_events(earlier.start(agent, "Hi", run_id="r1"))
        assert secret not in str([event.to_dict() for event in events])
    try:
        async with runs_of(store=store, secrets={"WORD": secret}) as runs:
            runs.offer(agent)
            found = await runs.find("r1")
            assert found is not None
            await found.decide([{"call_id": found.interruptions[0].call_id, "approve": True}])
            events = await all_events(found)
            assert secret not in str([event.to_dict() for event in events])
            assert "dropped ***" in str([event.to_dict() for event in events])
    finally:
        forget_secret(secret)


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
        await run.cancel()
        last = (await all_events(run))[-1]
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, run.status) == ("cancelled", "cancelled")
        released.set()
        assert await runs.find(run.id) is run
        assert run.status == "cancelled"


class FullStorage(MemoryStorage):
    """A storage whose disk is full after some appends.

    Args:
        room: The number of appends that it can store.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, requests: Any, /) -> Any:
        results: list[Any] = []
        for request in requests:
            self.room -= isinstance(request, AppendRows)
            full = isinstance(request, AppendRows) and self.room < 0
            error = EventStoreFullError("no room", store="a disk")
            results += [error] if full else super().write([request])
        return results


@pytest.mark.parametrize("room", range(8))
async def test_a_failing_store_ends_the_streams_with_an_error(
    room: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients that watch and clients that come later see the end; neither waits forever."""
    async with runs_of(store=RunStore(FullStorage(room))) as runs:
        run = runs.start(agent_of(tool_call("add", a=1, b=2), "Done.", tools=[add]), "Hi")
        first = (await all_events(run))[-1]
        late = (await all_events(run))[-1]
        assert isinstance(first, RunFinishedEvent)
        assert isinstance(late, RunFinishedEvent)
        assert late.status == run.status
        if late.status == "error":
            assert "no room" in str(late.error)
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
        (
            output_of(
                "KeyError: 'inside'",
                "tool_error",
                "KeyError (error 0123abcd).",
                "background_result",
            ),
            True,
        ),
        (output_of("The call was refused.", "denied"), False),
        (output_of("Tool 'x' failed: KeyError: 'inside'", "ok"), False),
        (output_of("The shop is closed.", "tool_error"), False),
        (output_of([ToolOutputText("a")], "tool_error"), False),
    ],
)
def test_unexpected_errors_are_hidden(event: Event, *, hidden: bool) -> None:
    """This includes nested runs and calls.

    Messages of the library and of tool authors are shown.
    """
    masker = ErrorMasker("hide")
    shown = masker.event(event, "r1")
    assert (shown != event) is hidden
    assert masker.event(event, "r1") == shown
    assert "inside" in str(ErrorMasker("show").event(event, "r1").to_dict()) or not hidden
    if hidden:
        assert "inside" not in str(shown.to_dict())
        assert "(error " in str(shown.to_dict())


# --- runs of other servers


@asynccontextmanager
async def two_managers(
    first: RunStore, second: RunStore, **options: Any
) -> AsyncGenerator[tuple[RunManager, RunManager]]:
    """Yield two managers with their stores."""
    async with (
        runs_of(store=first, **options) as one,
        runs_of(store=second, **options) as other,
    ):
        yield one, other


@asynccontextmanager
async def two_servers(path: Path, **options: Any) -> AsyncGenerator[tuple[RunManager, RunManager]]:
    """Yield two managers whose stores are on one file."""
    with (
        contextlib.closing(SQLiteRunStore(path)) as first,
        contextlib.closing(SQLiteRunStore(path)) as second,
    ):
        async with two_managers(first, second, **options) as managers:
            yield managers


async def seen_on(other: RunManager, run: ActiveRun) -> ActiveRun:
    """Return a run as the other server shows it."""
    await run.wait_until_stored()
    seen = await other.find(run.id)
    assert seen is not None
    return seen


async def test_a_run_is_watched_and_cancelled_through_another_server(tmp_path: Path) -> None:
    """Each server shows the same events under the same ids."""
    async with two_servers(tmp_path / "runs.db") as (one, other):
        gate = Gate()
        run = one.start_tool(gate.tool, "{}", run_id="r1")
        mine = asyncio.ensure_future(all_events(run))
        await gate.begun.wait()
        seen = await seen_on(other, run)
        assert (seen.status, seen.is_driven_here) == ("running", False)
        watching = asyncio.ensure_future(all_events(seen))
        assert await seen.cancel("enough") is True
        events = await watching
        assert [event.to_dict() for event in events] == [one.to_dict() for one in await mine]
        last = events[-1]
        assert isinstance(last, RunFinishedEvent)
        assert (last.status, last.error) == ("cancelled", "enough")
        assert gate.cancelled.is_set()
        assert (seen.status, run.status) == ("cancelled", "cancelled")


async def test_one_call_is_cancelled_through_another_server(tmp_path: Path) -> None:
    """The run continues without the call."""
    async with two_servers(tmp_path / "runs.db") as (one, other):
        gate = Gate()
        calls = [tool_call("wait", call_id="slow"), tool_call("add", a=1, b=2, call_id="sum")]
        run = one.start(agent_of(calls, "Done.", tools=[gate.tool, add]), "Hi", run_id="r1")
        await gate.begun.wait()
        seen = await seen_on(other, run)
        assert await seen.cancel_call("slow") is True
        events = await all_events(seen)
        assert (seen.status, seen.output) == ("ok", "Done.")
        outputs = {
            event.item["call_id"]: event.item["status"]
            for event in events
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
        }
        assert outputs == {"slow": "cancelled", "sum": "ok"}
        assert await seen.cancel_call("slow") is False


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_late_client_of_another_server_sees_the_text_so_far(
    kind: str, tmp_path: Path
) -> None:
    """Merged deltas have the whole text, and no gap is reported for the ids in between."""
    begun, released = asyncio.Event(), asyncio.Event()

    @streaming_tool
    async def tell() -> AsyncGenerator[Any]:
        """Tell a story."""
        for number in range(50):
            yield NotifyStreamEvent(f"{number},", is_delta=True)
        begun.set()
        await released.wait()
        yield "told"

    memory = MemoryRunStore()
    servers = (
        two_servers(tmp_path / "runs.db") if kind == "sqlite" else two_managers(memory, memory)
    )
    async with servers as (one, other):
        run = one.start_tool(tell, "{}", run_id="r1")
        await begun.wait()
        seen = await seen_on(other, run)
        text, last = "", -1
        async with contextlib.aclosing(seen.events()) as events:
            async for event in events:
                assert not isinstance(event, GapEvent)
                assert event.id > last
                last = event.id
                if isinstance(event, NotifyStreamEvent):
                    text += event.data
                if text.endswith("49,"):
                    released.set()
        assert text == "".join(f"{number}," for number in range(50))
        assert (seen.status, seen.output) == ("ok", "told")


async def test_runs_of_other_servers_use_no_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not counted, and a server that stops neither ends them nor waits for them."""
    monkeypatch.setattr(_runs, "_SHUTDOWN_TIMEOUT", 3_600.0)
    async with two_servers(tmp_path / "runs.db", max_running=3) as (one, other):
        gate = Gate()
        running = [one.start_tool(gate.tool, "{}", run_id=f"r{n}") for n in range(3)]
        for run in running:
            assert (await seen_on(other, run)).status == "running"
        await other.start_tool(add, '{"a": 1, "b": 2}').wait()
        async with asyncio.timeout(PATIENCE / 2):
            await other.aclose()
        assert [run.status for run in running] == ["running"] * 3
        gate.released.set()
        for run in running:
            await run.wait()


async def test_a_run_that_ends_on_another_server_leaves_no_reader(tmp_path: Path) -> None:
    """Its subscribers are served to the end; then the reader of the log is closed."""
    async with two_servers(tmp_path / "runs.db") as (one, other):
        gate = Gate()
        run = one.start_tool(gate.tool, "{}", run_id="r1")
        await gate.begun.wait()
        seen = await seen_on(other, run)
        with seen.watching():
            watching = asyncio.ensure_future(all_events(seen))
            gate.released.set()
            assert isinstance((await watching)[-1], RunFinishedEvent)
        assert (seen.status, seen.output) == ("ok", "waited")
        assert seen.is_idle
        streams = [one for one in gc.get_objects() if isinstance(one, EventStream)]
        assert not [stream for stream in streams if stream.sid == "r1" and not stream.closed]


async def test_arguments_too_deep_for_an_event_do_not_break_the_stream() -> None:
    """Models can nest arguments deeper than events allow; the run and the store continue."""
    store = MemoryRunStore()
    deep = '{"a": ' + "[" * 150 + "]" * 150 + "}"
    async with runs_of(store=store) as runs:
        run = runs.start(agent_of([tool_call("add", deep)], "Done.", tools=[add]), "Hi")
        await run.wait()
        assert (run.status, run.output) == ("ok", "Done.")
        stored = await store.log(run.id).read()
        assert [event.type for event in stored][-1] == RunFinishedEvent.type


@pytest.mark.requirement("F41")
async def test_one_of_two_servers_that_decide_at_once_resumes_the_run(tmp_path: Path) -> None:
    """The call is made once; both servers show the run to its end."""
    gate, calls = asyncio.Event(), list[str]()

    @needs_approval
    @function_tool
    async def pay() -> str:
        """Pay."""
        calls.append("paid")
        await gate.wait()
        return "paid"

    async with two_servers(tmp_path / "runs.db") as (one, other):
        agent = agent_of(tool_call("pay"), "Done.", tools=[pay])
        await one.start(agent, "Hi", run_id="r1").wait()
        found: list[ActiveRun] = []
        for runs in (one, other):
            runs.offer(agent)
            run = await runs.find("r1")
            assert run is not None
            assert run.status == "interrupted"
            found.append(run)
        before = found[0].last_id
        decision = [{"call_id": "call_1", "approve": True}]
        results = await asyncio.gather(
            *(run.decide(decision) for run in found), return_exceptions=True
        )
        refused = [result for result in results if result is not None]
        assert all(isinstance(one, HttpError) and one.status == 409 for one in refused)
        assert len(refused) <= 1
        for run in found:
            await run.refresh()
        watching = [asyncio.ensure_future(all_events(run, before)) for run in found]
        while not calls:
            await asyncio.wait_for(asyncio.sleep(0), PATIENCE)
        assert sum(run.is_driven_here for run in found) == 1
        gate.set()
        ends = [(await one)[-1] for one in watching]
        assert [getattr(end, "status", "") for end in ends] == ["ok", "ok"]
        assert [run.status for run in found] == ["ok", "ok"]
    assert calls == ["paid"]


async def test_a_server_that_stops_leaves_its_runs_to_another_one(tmp_path: Path) -> None:
    """This holds with `resume_orphans`; a call that may be repeated runs again there."""
    config = RunConfig(resume_orphans=True)
    async with two_servers(tmp_path / "runs.db", run_config=config) as (one, other):
        gate = Gate(is_idempotent=True)
        run = one.start(agent_of(tool_call("wait"), "Done.", tools=[gate.tool]), "Hi", run_id="r1")
        await gate.begun.wait()
        gate.begun.clear()
        await one.aclose()
        other.offer(agent_of("Done.", tools=[gate.tool]))
        await other.restore()
        await gate.begun.wait()
        gate.released.set()
        seen = await other.find("r1")
        assert seen is not None
        assert isinstance((await all_events(seen))[-1], RunFinishedEvent)
        assert (seen.status, seen.output) == ("ok", "Done.")
        assert run.status != "ok"


async def test_an_old_state_of_a_run_does_not_end_its_events(tmp_path: Path) -> None:
    """Another server continues the run while this one still reads that it waits for a decision."""
    begun, gate = asyncio.Event(), asyncio.Event()

    @needs_approval
    @function_tool
    async def pay() -> str:
        """Pay."""
        begun.set()
        await gate.wait()
        return "paid"

    agent = Agent(
        "clerk", tools=[pay], model=ScriptedModel([tool_call("pay", call_id="c1"), "Done."])
    )
    stores = [SQLiteRunStore(tmp_path / "runs.db") for _ in range(2)]
    here, there = (RunManager(store=store) for store in stores)
    run = there.start(agent, "pay", run_id="r1")
    events = [event async for event in run.events()]
    waiting = await stores[0].run("r1")
    assert waiting is not None
    assert waiting.status == "interrupted"
    await run.decide([{"call_id": "c1", "approve": True}])
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
    watched = await here.find("r1")
    assert watched is not None
    await watched.apply(waiting)
    assert watched.status == "running"
    gate.set()
    async with asyncio.timeout(PATIENCE):
        rest = [event async for event in watched.events(events[-1].id)]
    assert isinstance(rest[-1], RunFinishedEvent)
    assert rest[-1].output == "Done."
    for manager, store in zip((here, there), stores, strict=True):
        await manager.aclose()
        store.close()
