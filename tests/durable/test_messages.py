"""Runs that other processes decide about, cancel and send messages to.

A second store object on the same file stands for another process: it shares nothing but the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    ToolAnnotations,
    UserError,
    function_tool,
    policies,
)
from agents_tools.agents import RunResult
from agents_tools.content import ToolCallOutputItem
from agents_tools.errors import EventConflictError, EventStoreError, RunInUseError, UserKeyError
from agents_tools.events import RunItemStreamEvent
from agents_tools.events.kinds import RunFinishedEvent, RunRecordEvent
from agents_tools.persistence import EventFilter, MemoryRunStore, RunStore, SQLiteRunStore
from agents_tools.persistence.conversation import conversation
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import FunctionTool
from tests.watched_storage import FailingWrites, watched_store

WITHIN = 30.0


@pytest.fixture(autouse=True)
async def _bound() -> AsyncIterator[None]:
    """End a test that waits without end."""
    async with asyncio.timeout(WITHIN):
        yield


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteRunStore]:
    """Return the store of the process that runs the agents."""
    async with SQLiteRunStore(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture
async def other(store: SQLiteRunStore, tmp_path: Path) -> AsyncIterator[SQLiteRunStore]:
    """Return the store of another process."""
    async with SQLiteRunStore(tmp_path / "runs.db") as opened:
        yield opened


class Work:
    """Tools of a test: `pay` needs approval, `work` runs until it is released."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.worked = 0
        self.started = asyncio.Event()
        self.go = asyncio.Event()

        @policies.needs_approval()
        @function_tool
        def pay(to: str) -> str:
            """Pay."""
            self.paid.append(to)
            return f"paid {to}"

        async def work() -> str:
            """Work."""
            self.worked += 1
            self.started.set()
            await self.go.wait()
            return "worked"

        self.pay: FunctionTool[..., Any] = pay
        self.work: FunctionTool[..., Any] = function_tool(work)
        self.look: FunctionTool[..., Any] = function_tool(
            work, name_override="look", annotations=ToolAnnotations(readOnlyHint=True)
        )

    @property
    def tools(self) -> list[FunctionTool[..., Any]]:
        """All tools."""
        return [self.pay, self.work, self.look]


def agent_of(work: Work, *answers: Any) -> Agent[Any, Any]:
    """Return an agent with the tools of a test."""
    return Agent("A", tools=work.tools, model=ScriptedModel(answers))


def outputs(result: RunResult) -> list[tuple[str, str, Any]]:
    """Return the id, the status and the output of each call."""
    return [
        (item.call_id, item.status, item.output)
        for item in result.new_items
        if isinstance(item, ToolCallOutputItem)
    ]


async def wait_until_listed(store: RunStore, run_id: str, count: int = 1) -> list[Any]:
    """Wait until approvals of a run are listed."""
    log = store.log(run_id)
    try:
        last = log.last_id
        while len(waiting := await store.approvals(run_id)) < count:
            last = await log.wait(last)
    finally:
        log.close()
    return waiting


async def status_of(store: RunStore, run_id: str) -> str | None:
    """Return the status of a run."""
    info = await store.run(run_id)
    return None if info is None else info.status


# --- decisions


@pytest.mark.requirement("D43")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_reaches_a_run_that_works(
    store: SQLiteRunStore, other: SQLiteRunStore, approved: bool
) -> None:
    """The person uses another server than the one that runs the agent; nothing is restarted."""
    work = Work()
    calls = [tool_call("pay", to="Ada", call_id="c1"), tool_call("work", call_id="c2")]
    agent = agent_of(work, calls, "done")
    config = RunConfig(store=store)
    run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=config))
    (item,) = await wait_until_listed(other, "r")
    assert (item.call_id, item.name, item.arguments) == ("c1", "pay", '{"to":"Ada"}')
    await work.started.wait()
    await other.decide("r", "c1", approved, message="Not now.")
    assert await other.approvals("r") == []
    await wait_for_record(other, "r", "approval_decided")
    work.go.set()
    result = await run
    assert result.final_output == "done"
    assert work.paid == (["Ada"] if approved else [])
    assert [status for _, status, _ in outputs(result)] == ["ok" if approved else "denied", "ok"]
    assert approved or "Not now." in outputs(result)[0][2]


async def wait_for_record(store: RunStore, run_id: str, name: str) -> RunRecordEvent:
    """Wait until a record is in a log."""
    log = store.log(run_id)
    try:
        last = -1
        while True:
            last = await log.wait(last)
            for event in await log.read():
                if isinstance(event, RunRecordEvent) and event.name == name:
                    return event
    finally:
        log.close()


@pytest.mark.requirement("D43")
async def test_a_decision_about_a_run_that_waits_is_executed_when_it_is_resumed(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """A web request decides, and a worker resumes the run later, also more than once."""
    work = Work()
    agent = agent_of(work, tool_call("pay", to="Ada", call_id="c1"), "done")
    first = await Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store))
    assert [item.call_id for item in first.interruptions] == ["c1"]
    await other.decide("r", "c1", True, arguments={"to": "Bo"})
    for _ in range(2):
        result = await Runner.resume(agent, "r", store=other)
        assert (result.final_output, work.paid) == ("done", ["Bo"])
    assert await status_of(store, "r") == "ok"


@pytest.mark.requirement("D43")
async def test_of_two_decisions_the_first_one_counts(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """Two people look at the same list; the second one learns that it is decided."""
    work = Work()
    calls = [tool_call("pay", to="Ada", call_id="c1"), tool_call("work", call_id="c2")]
    agent = agent_of(work, calls, "done")
    run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store)))
    await wait_until_listed(other, "r")
    decisions = [store.decide("r", "c1", False), other.decide("r", "c1", True)]
    results = await asyncio.gather(*decisions, return_exceptions=True)
    errors = [result for result in results if result is not None]
    assert [type(error) for error in errors] == [EventConflictError]
    await wait_for_record(other, "r", "approval_decided")
    with pytest.raises(EventConflictError, match="Another decision about this call"):
        await other.decide("r", "c1", True)  # also after the run has received the first one
    work.go.set()
    result = await run
    assert (outputs(result)[0][1] == "ok") is (results[1] is None)
    assert work.paid == (["Ada"] if results[1] is None else [])
    with pytest.raises(UserKeyError, match="No call 'c9'"):
        await other.decide("r", "c9", True)


@pytest.mark.requirement("D43")
async def test_a_person_who_wrote_invalid_arguments_decides_again(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """The second decision counts, also when the process ends between both."""
    work = Work()
    agent = agent_of(work, tool_call("pay", to="Ada", call_id="c1"), "done")
    await Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store))
    await other.decide("r", "c1", True, arguments={"whom": "Bo"})
    again = await Runner.resume(agent, "r", store=store)
    assert "to" in str(again.interruptions[0].error)
    assert [item.call_id for item in await other.approvals("r")] == ["c1"]
    await other.decide("r", "c1", True, arguments={"to": "Bo"})
    result = await Runner.resume(agent, "r", store=other)
    assert (result.final_output, work.paid) == ("done", ["Bo"])


@pytest.mark.requirement("D43")
@pytest.mark.parametrize("is_shown", [True, False], ids=["streaming", "quiet"])
async def test_the_call_of_an_agent_inside_a_run_can_be_decided_elsewhere(
    store: SQLiteRunStore, other: SQLiteRunStore, is_shown: bool
) -> None:
    """It is listed with its path, whether or not the events of the inner agent are shown."""
    work = Work()
    model = ScriptedModel(
        {
            "Outer": [tool_call("inner", input="Pay.", call_id="o1"), "outer done"],
            "Inner": [tool_call("pay", to="Ada", call_id="c1"), "inner done"],
        }
    )
    inner = Agent("Inner", tools=work.tools, model=model)
    outer = Agent("Outer", tools=[inner.as_tool("inner", streaming=is_shown)], model=model)
    await Runner.run(outer, "x", run_id="r", run_config=RunConfig(store=store))
    (item,) = await other.approvals("r")
    assert (item.path, item.call_id, item.agent) == (("o1",), "c1", "Inner")
    await other.decide("r", "c1", True, path=item.path)
    assert await other.approvals("r") == []
    result = await Runner.resume(outer, "r", store=other)
    assert (result.final_output, work.paid) == ("outer done", ["Ada"])
    assert result.usage.requests == 4


async def test_the_same_call_id_in_two_agents_is_decided_by_its_path(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """Models number their calls, so agents inside one run use the same ids."""
    work = Work()
    inner = [
        Agent(
            name, tools=work.tools, model=ScriptedModel([tool_call("pay", to=name, call_id="c1")])
        )
        for name in ("left", "right")
    ]
    calls = [tool_call(one.name, input="Pay.", call_id=f"o_{one.name}") for one in inner]
    calls.append(tool_call("pay", to="outer", call_id="c1"))
    tools = [*work.tools, *(one.as_tool(one.name) for one in inner)]
    outer = Agent("Outer", tools=tools, model=ScriptedModel([calls]))
    await Runner.run(outer, "x", run_id="r", run_config=RunConfig(store=store))
    with pytest.raises(UserError, match="3 waiting calls of run 'r' have the id 'c1'"):
        await other.decide("r", "c1", True)
    await other.decide("r", "c1", True, path=["o_right"])
    await other.decide("r", "c1", False, path=["o_left"])
    await other.decide("r", "c1", True, path=[])
    for agent in (*inner, outer):
        agent.model.add("done")  # type: ignore[union-attr]
    await Runner.resume(outer, "r", store=other)
    assert sorted(work.paid) == ["outer", "right"]


async def test_the_events_of_a_quiet_agent_are_only_for_resuming(store: SQLiteRunStore) -> None:
    """A person who reads the run sees the call of the agent, and its answer."""
    work = Work()
    work.go.set()
    model = ScriptedModel(
        {
            "Outer": [tool_call("inner", input="Go.", call_id="o1"), "outer done"],
            "Inner": [tool_call("work", call_id="c1"), "inner done"],
        }
    )
    inner = Agent("Inner", tools=work.tools, model=model)
    outer = Agent("Outer", tools=[inner.as_tool("inner")], model=model)
    config = RunConfig(store=store)
    await Runner.run(outer, "x", run_id="r", run_config=config, session="chat")
    events = await store.log("r").read(where=EventFilter(hidden=False))
    assert all(not event.path or event.path == ("o1",) for event in events)
    assert "inner done" not in [
        str(event.item.get("text")) for event in events if isinstance(event, RunItemStreamEvent)
    ]
    assert not any(event.path for event in await store.conversation("chat"))


# --- cancellation


async def test_a_waiting_run_that_was_cancelled_can_be_resumed_and_decided() -> None:
    """Its inbox has had a message that is not there any more; in memory, nothing else waits."""
    work = Work()
    agent = agent_of(work, tool_call("pay", to="Ada", call_id="c1"), "Done.")
    async with MemoryRunStore() as store:
        await Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store))
        await store.cancel("r")
        assert await store.approvals("r") == []
        waiting = await Runner.resume(agent, "r", store=store)
        assert await store.approvals("r") == waiting.interruptions != []
        await store.decide("r", "c1", True)
        result = await Runner.resume(agent, "r", store=store)
    assert (result.final_output, work.paid) == ("Done.", ["Ada"])


@pytest.mark.requirement("F40")
async def test_a_run_is_cancelled_by_another_process(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """The reason is in the log, for the people who read it."""
    work = Work()
    agent = agent_of(work, tool_call("work", call_id="c1"))
    run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store)))
    await work.started.wait()
    await other.cancel("r", reason="Too slow.")
    await asyncio.wait({run})
    assert run.cancelled()
    assert await status_of(other, "r") == "cancelled"
    last = (await other.log("r").read())[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.error == "Too slow."
    assert await other.messages("r") == []


@pytest.mark.requirement("F40")
async def test_one_call_is_cancelled_by_another_process(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """The model reads that, and the run continues."""
    work = Work()
    agent = agent_of(work, tool_call("work", call_id="c1"), "done")
    run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store)))
    await work.started.wait()
    await other.cancel("r", "c1")
    result = await run
    assert [status for _, status, _ in outputs(result)] == ["cancelled"]
    assert result.final_output == "done"
    assert await other.messages("r") == []


@pytest.mark.requirement("F40")
async def test_a_run_that_waits_is_ended_by_its_cancellation(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """No process holds it, so none would receive a message."""
    work = Work()
    agent = agent_of(work, tool_call("pay", to="Ada", call_id="c1"))
    config = RunConfig(store=store)
    await Runner.run(agent, "x", run_id="r", run_config=config, session="chat")
    await other.cancel("r", reason="Wrong trip.")
    assert await status_of(store, "r") == "cancelled"
    assert await store.approvals("r") == []
    with pytest.raises(UserKeyError):
        await other.decide("r", "c1", True)
    last = (await store.log("r").read())[-1]
    assert (last.type, getattr(last, "error", "")) == ("run_finished_event", "Wrong trip.")
    await other.cancel("r", reason="Again.")  # a run that has ended stays as it is
    assert await other.messages("r") == []
    agent.model.add("Hello.")  # type: ignore[union-attr]
    later = await Runner.run(agent, "Hi.", run_config=config, session="chat")
    assert later.final_output == "Hello."  # the cancelled call is not asked about again
    assert work.paid == []


@pytest.mark.requirement("F40")
async def test_the_cancellation_of_a_waiting_call_is_executed_when_the_run_is_resumed(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """The call ends without a decision, and the model reads that."""
    work = Work()
    agent = agent_of(work, tool_call("pay", to="Ada", call_id="c1"), "done")
    await Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store))
    await other.cancel("r", "c1")
    assert await status_of(store, "r") == "interrupted"
    result = await Runner.resume(agent, "r", store=store)
    assert [status for _, status, _ in outputs(result)] == ["cancelled"]
    assert (result.final_output, work.paid) == ("done", [])
    assert await other.messages("r") == []


async def test_a_run_that_does_not_exist_cannot_be_cancelled(store: SQLiteRunStore) -> None:
    """The caller has another id, or another store."""
    for sent in (store.cancel("r"), store.cancel("r", "c1"), store.send("r", "x")):
        with pytest.raises(UserKeyError, match="Run 'r' does not exist"):
            await sent


# --- messages of the user


@pytest.mark.requirement("F40")
async def test_a_message_reaches_the_model_before_its_next_request(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """It is a part of the conversation from then on, once."""
    work = Work()
    agent = agent_of(work, tool_call("work", call_id="c1"), "done", "bye")
    config = RunConfig(store=store)
    run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=config, session="chat"))
    await work.started.wait()
    await other.send("r", "Hurry.")
    work.go.set()
    result = await run
    expected = ["x", "Hurry."]
    assert texts(result.to_input_list()) == expected
    assert texts(item.to_dict() for item in conversation(await other.conversation("chat"))) == (
        expected
    )
    assert await other.messages("r") == []
    with pytest.raises(UserError, match="run 'r' has ended"):
        await other.send("r", "Too late.")


def texts(items: Any) -> list[str]:
    """Return the messages of the user."""
    return [str(item["content"]) for item in items if item.get("role") == "user"]


async def test_a_message_that_comes_with_the_last_answer_gets_another_turn(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """`send` has accepted it, so the run must not end without it."""

    async def answer(_: Any) -> str:
        await other.send("r", "Sure?")
        return "done"

    agent = Agent("A", model=ScriptedModel([answer, "Sure."]))
    result = await Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=store))
    assert result.final_output == "Sure."
    assert texts(result.to_input_list()) == ["x", "Sure?"]


# --- exactly once


class CutRun:
    """A run whose store fails at a write and at all later ones, as if its process had ended."""

    def __init__(self, path: Path, write: int, *, is_before: bool) -> None:
        self.fails = FailingWrites(write)
        self.store = (
            watched_store(path, before=self.fails)
            if is_before
            else watched_store(path, after=self.fails)
        )

    async def start(self, agent: Agent[Any, Any], work: Work) -> None:
        """Start the run, and wait until its tool works or the store has failed."""
        config = RunConfig(store=self.store)
        self._run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=config))
        working = asyncio.create_task(work.started.wait())
        await asyncio.wait({self._run, working}, return_when=asyncio.FIRST_COMPLETED)
        working.cancel()

    async def end(self) -> bool:
        """Wait for the end of the run; return whether the store has failed."""
        await asyncio.wait({self._run})
        if not self._run.cancelled():
            assert isinstance(self._run.exception(), EventStoreError | None)
        await self.store.aclose()
        return bool(self.fails.failures)


def answer(request: Any) -> Any:
    """Call the tool, and then answer; the same in any process."""
    is_done = any(isinstance(item, ToolCallOutputItem) for item in request.input)
    return "done" if is_done else tool_call("look", call_id="c1")


CUT = pytest.mark.parametrize("is_before", [True, False], ids=["before a write", "after a write"])


@pytest.mark.requirement("F42")
@CUT
async def test_a_message_is_received_once_wherever_the_run_is_cut_off(
    tmp_path: Path, is_before: bool
) -> None:
    """It is deleted from the inbox with the event that adds it to the conversation."""
    write, has_failed = 0, True
    while has_failed:
        write += 1
        work, path = Work(), tmp_path / f"{write}.db"
        agent = agent_of(work, *[answer] * 6)
        cut = CutRun(path, write, is_before=is_before)
        await cut.start(agent, work)
        async with SQLiteRunStore(path) as other:
            if await status_of(other, "r") != "running":
                assert await cut.end()
                continue
            await other.send("r", "Hurry.")
            work.go.set()
            has_failed = await cut.end()
            result = await Runner.run(agent, "x", run_id="r", run_config=RunConfig(store=other))
            assert texts(result.to_input_list()) == ["x", "Hurry."], write
            assert result.final_output == "done"
            assert await other.messages("r") == []
    assert write > 2  # writes of a busy machine are joined


@pytest.mark.requirement("F42")
@CUT
@pytest.mark.parametrize("call_id", [None, "c1"], ids=["run", "call"])
async def test_a_cancellation_is_executed_wherever_the_run_is_cut_off(
    tmp_path: Path, call_id: str | None, is_before: bool
) -> None:
    """A call that a person has cancelled must not run again in the next process."""
    write, has_failed = 0, True
    while has_failed:
        write += 1
        work, path = Work(), tmp_path / f"{write}.db"
        agent = agent_of(work, *[answer] * 6)
        cut = CutRun(path, write, is_before=is_before)
        await cut.start(agent, work)
        async with SQLiteRunStore(path) as other:
            if await status_of(other, "r") != "running":
                assert await cut.end()
                continue
            await other.cancel("r", call_id)
            has_failed = await cut.end()
            worked = work.worked
            if call_id is None:
                await other.cancel("r")  # the first one was possibly received and not stored
                assert await status_of(other, "r") == "cancelled", write
            else:
                result = await Runner.resume(agent, "r", store=other)
                assert [status for _, status, _ in outputs(result)] == ["cancelled"], write
                assert result.final_output == "done"
            assert work.worked == worked
            assert await other.messages("r") == []
    assert write > 2  # writes of a busy machine are joined


@pytest.mark.requirement("F42")
@CUT
async def test_a_decision_counts_wherever_the_run_is_cut_off(
    tmp_path: Path, is_before: bool
) -> None:
    """It is moved from the inbox to the log at once, so no person is asked twice."""
    write, has_failed = 0, True
    while has_failed:
        write += 1
        work, path = Work(), tmp_path / f"{write}.db"
        calls = [tool_call("pay", to="Ada", call_id="c1"), tool_call("look", call_id="c2")]

        def both(request: Any, calls: Any = calls) -> Any:
            return calls if answer(request) != "done" else "done"

        agent = agent_of(work, *[both] * 6)
        cut = CutRun(path, write, is_before=is_before)
        await cut.start(agent, work)
        async with SQLiteRunStore(path) as other:
            if await status_of(other, "r") != "running":
                assert await cut.end()
                continue
            is_asked = bool(await other.approvals("r"))
            if is_asked:
                await other.decide("r", "c1", True)
            work.go.set()
            has_failed = await cut.end()
            result = await Runner.resume(agent, "r", store=other)
            if not is_asked:
                assert [item.call_id for item in result.interruptions] == ["c1"]
                await other.decide("r", "c1", True)
                result = await Runner.resume(agent, "r", store=other)
            (_, status, _), second = outputs(result)
            assert status in {"ok", "lost"}, write
            assert work.paid == ["Ada"] or (status == "lost" and not work.paid)
            assert second[1] == "ok"
            assert result.final_output == "done"
            assert await other.messages("r") == []
    assert write > 3  # writes of a busy machine are joined


# --- sessions


async def test_a_session_has_one_active_run(store: SQLiteRunStore, other: SQLiteRunStore) -> None:
    """Two runs at once would both continue the same conversation."""
    work = Work()
    agent = agent_of(work, tool_call("work", call_id="c1"), "done", "Hello.")
    config = RunConfig(store=store)
    run = asyncio.create_task(Runner.run(agent, "x", run_id="r", run_config=config, session="chat"))
    await work.started.wait()
    for opened in (store, other):
        with pytest.raises(RunInUseError, match="chat"):
            await Runner.run(agent, "y", run_config=RunConfig(store=opened), session="chat")
    work.go.set()
    assert (await run).final_output == "done"
    result = await Runner.run(agent, "y", run_config=RunConfig(store=other), session="chat")
    assert texts(result.to_input_list()) == ["x", "y"]
    assert [run.status for run in await other.session("chat").runs()] == ["ok", "ok"]


@pytest.mark.requirement("D39")
async def test_the_next_run_of_a_session_takes_over_the_call_that_waits(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """A person writes on without a decision; the call is not lost, and is asked about again."""
    work = Work()
    agent = agent_of(work, tool_call("pay", to="Ada", call_id="c1"), "done")
    config = RunConfig(store=store)
    await Runner.run(agent, "x", run_id="r1", run_config=config, session="chat")
    result = await Runner.run(
        agent, "Well?", run_id="r2", run_config=RunConfig(store=other), session="chat"
    )
    assert [item.call_id for item in result.interruptions] == ["c1"]
    assert [(run.run_id, run.status) for run in await store.runs(session="chat")] == [
        ("r1", "cancelled"),
        ("r2", "interrupted"),
    ]
    assert (await store.approvals("r1"), len(await store.approvals("r2"))) == ([], 1)
    await store.decide("r2", "c1", True)
    done = await Runner.resume(agent, "r2", store=store)
    assert (done.final_output, work.paid) == ("done", ["Ada"])
    assert texts(done.to_input_list()) == ["x", "Well?"]


async def test_the_next_run_of_a_session_ends_one_whose_process_has_ended(tmp_path: Path) -> None:
    """Its open call is answered in the new run, so resuming the old one would answer it twice."""
    work, path = Work(), tmp_path / "runs.db"
    agent = agent_of(work, tool_call("work", call_id="c1"), "done")
    fails = FailingWrites(100)
    cut = watched_store(path, before=fails)
    config = RunConfig(store=cut)
    run = asyncio.create_task(
        Runner.run(agent, "x", run_id="r1", run_config=config, session="chat")
    )
    await work.started.wait()
    fails.left = 0
    run.cancel()
    await asyncio.wait({run})
    await cut.aclose()
    async with SQLiteRunStore(path) as store:
        assert [run.is_orphaned for run in await store.runs()] == [True]
        config = RunConfig(store=store)
        result = await Runner.run(agent, "y", run_id="r2", run_config=config, session="chat")
        assert [status for _, status, _ in outputs(result)] == ["lost"]
        assert [run.status for run in await store.runs()] == ["cancelled", "ok"]


@pytest.mark.requirement("D39")
async def test_two_processes_continue_a_session_in_turn(
    store: SQLiteRunStore, other: SQLiteRunStore
) -> None:
    """The lease ends with the run, so any worker of a server can take the next request."""
    model = ScriptedModel(["one", "two", "three", "four"])
    for number, opened in enumerate([store, other, store, other], 1):
        agent = Agent("A", model=model)
        config = RunConfig(store=opened)
        result = await Runner.run(agent, str(number), run_config=config, session="chat")
        assert texts(result.to_input_list()) == [str(one) for one in range(1, number + 1)]


async def test_the_history_of_a_session_is_its_messages_calls_and_outputs(
    store: SQLiteRunStore,
) -> None:
    """The records of the runs are for resuming, not for people or models."""
    work = Work()
    work.go.set()
    agent = agent_of(work, tool_call("work", call_id="c1"), "done")
    await Runner.run(agent, "x", run_config=RunConfig(store=store), session="chat")
    events = await store.session("chat").events()
    assert [event.type for event in events] == [
        "message_event",
        *["run_item_stream_event"] * 3,
    ]
