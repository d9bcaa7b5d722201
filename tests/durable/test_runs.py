"""Runs in a store: recorded steps, and runs that are resumed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agents_tools import (
    Agent,
    MaxTurnsExceeded,
    RunConfig,
    Runner,
    ToolAnnotations,
    ToolContext,
    UserError,
    function_tool,
    policies,
    register_secret,
)
from agents_tools.agents import RunResult
from agents_tools.content import ToolCallOutputItem
from agents_tools.errors import EventStoreError, ModelError, RunInUseError
from agents_tools.events import NotifyStreamEvent, RunItemStreamEvent, ToolStreamStartEvent
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.persistence import RunStore, SQLiteRunStore
from agents_tools.persistence.conversation import conversation
from agents_tools.persistence.storage import AppendRows, WriteRequest
from agents_tools.persistence.stores.sqlite import SQLiteStorage
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import FunctionTool

WITHIN = 45.0
AnyTool = FunctionTool[..., Any]


class FragileStorage(SQLiteStorage):
    """Fails at one write and at all later ones; earlier writes stay."""

    def __init__(self, path: Path, fatal: int) -> None:
        super().__init__(str(path), True, 5.0, 15.0, read_only=False)
        self._left = fatal

    def write(self, requests: Sequence[WriteRequest], /) -> Sequence[Any]:
        """Apply requests, and fail before or afterwards."""
        if not any(isinstance(request, AppendRows) for request in requests):
            return super().write(requests)
        self._pass()
        results = super().write(requests)
        self._pass()
        return results

    def _pass(self) -> None:
        self._left -= 1
        if self._left <= 0:
            raise EventStoreError("The disk is gone.", store=self.place)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteRunStore]:
    """Return a store, and close it."""
    opened = SQLiteRunStore(tmp_path / "runs.db")
    yield opened
    await opened.aclose()


def outputs(result: RunResult) -> list[tuple[str, str, Any]]:
    """Return the id, the status and the output of each call."""
    return [
        (item.call_id, item.status, item.output)
        for item in result.new_items
        if isinstance(item, ToolCallOutputItem)
    ]


async def cut_off(reached: asyncio.Event, run: Any, *more: asyncio.Event) -> None:
    """Cancel a run when events are set."""
    task = asyncio.ensure_future(run)
    for event in (reached, *more):
        await asyncio.wait_for(event.wait(), WITHIN)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


class Gate:
    """A tool that waits until it is released."""

    def __init__(self, **more: Any) -> None:
        self.reached = asyncio.Event()
        self.is_open = False
        self.calls: list[str] = []

        @function_tool(**more)
        async def wait(context: ToolContext[Any]) -> str:
            """Wait."""
            self.calls.append(context.idempotency_key)
            self.reached.set()
            if not self.is_open:
                await asyncio.Event().wait()
            return "waited"

        self.tool: AnyTool = wait


# --- recorded steps


@pytest.mark.requirement("F41")
async def test_a_run_that_has_ended_returns_its_result_again(store: SQLiteRunStore) -> None:
    """The model is not asked and no tool is called; the events are not repeated."""
    done: list[int] = []

    @function_tool
    def add(a: int, b: int) -> int:
        """Add."""
        done.append(a)
        return a + b

    model = ScriptedModel([tool_call("add", a=1, b=2), "3"])
    agent = Agent("A", tools=[add], model=model)
    config = RunConfig(store=store)
    first = await Runner.run(agent, "sum", run_id="r", run_config=config)
    again = Runner.resume_streamed(agent, "r", store=store)
    events = [event async for event in again.stream_events()]
    third = await Runner.run(agent, "sum", run_id="r", run_config=config)
    for other in (await again.wait(), third):
        assert other.final_output == first.final_output == "3"
        assert other.to_input_list() == first.to_input_list()
        assert (other.usage, other.run_id) == (first.usage, "r")
        assert len(other.raw_responses) == 2
    assert (len(model.requests), done) == (2, [1])
    assert [event.type for event in events] == ["run_started_event", "run_finished_event"]
    listed = [(run.run_id, run.status, run.agent) for run in await store.runs()]
    assert listed == [("r", "ok", "A")]


@pytest.mark.requirement("F42")
async def test_an_interrupted_call_is_lost_and_the_others_keep_their_output(
    store: SQLiteRunStore,
) -> None:
    """It may have taken effect, so it does not run again, and the model reads that."""
    gate, harmless = Gate(), Gate(name_override="look", annotations=_READ_ONLY)
    model = ScriptedModel([[tool_call("wait", call_id="c1"), tool_call("look", call_id="c2")]])
    agent = Agent("A", tools=[gate.tool, harmless.tool], model=model)
    run = Runner.run(agent, "x", run_id="r", run_config=_config(store))
    await cut_off(gate.reached, run, harmless.reached)
    harmless.is_open = gate.is_open = True
    model.add("I see.")
    for _ in range(2):
        result = await Runner.resume(agent, "r", store=store)
        assert [(one, status) for one, status, _ in outputs(result)] == [
            ("c1", "lost"),
            ("c2", "ok"),
        ]
        assert result.final_output == "I see."
    assert len(gate.calls) == 1
    assert harmless.calls == ["r:c2", "r:c2"]


@pytest.mark.requirement("F42")
async def test_a_repeatable_call_runs_again_once(store: SQLiteRunStore) -> None:
    """A call that ends its process each time must not repeat this without end."""
    gate = Gate(annotations=_READ_ONLY)
    model = ScriptedModel([tool_call("wait", call_id="c1")])
    agent = Agent("A", tools=[gate.tool], model=model)
    await cut_off(gate.reached, Runner.run(agent, "x", run_id="r", run_config=_config(store)))
    gate.reached.clear()
    await cut_off(gate.reached, Runner.resume(agent, "r", store=store))
    model.add("Enough.")
    result = await Runner.resume(agent, "r", store=store)
    assert [status for _, status, _ in outputs(result)] == ["lost"]
    assert len(gate.calls) == 2


_READ_ONLY = ToolAnnotations(readOnlyHint=True)


def _config(store: RunStore, **more: Any) -> RunConfig:
    return RunConfig(store=store, **more)


async def test_a_failed_request_is_repeated(store: SQLiteRunStore) -> None:
    """Only a response is a completed step."""
    model = ScriptedModel([tool_call("add"), ModelError("away"), "fine"])

    @function_tool
    def add() -> int:
        """Add."""
        return 3

    agent = Agent("A", tools=[add], model=model)
    with pytest.raises(ModelError):
        await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    assert [run.status for run in await store.runs()] == ["error"]
    result = await Runner.resume(agent, "r", store=store)
    assert result.final_output == "fine"
    assert result.usage.requests == 2


async def test_a_run_that_ended_with_an_error_raises_it_again(store: SQLiteRunStore) -> None:
    """The tool has no failure function, and it is not called a second time."""
    count = 0

    @function_tool(failure_error_function=None)
    def burst() -> int:
        """Burst."""
        nonlocal count
        count += 1
        raise ZeroDivisionError("by nothing")

    agent = Agent("A", tools=[burst], model=ScriptedModel([tool_call("burst")]))
    with pytest.raises(ZeroDivisionError):
        await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    with pytest.raises(Exception, match="ZeroDivisionError"):
        await Runner.resume(agent, "r", store=store)
    assert count == 1


async def test_a_resumed_run_keeps_its_turns_and_their_limit(store: SQLiteRunStore) -> None:
    """The limit counts from the start of the run; the caller can raise it."""

    @function_tool
    def again() -> str:
        """Do it again."""
        return "once more"

    model = ScriptedModel([tool_call("again") for _ in range(3)])
    agent = Agent("A", tools=[again], model=model)
    with pytest.raises(MaxTurnsExceeded):
        await Runner.run(agent, "x", run_id="r", run_config=_config(store), max_turns=3)
    with pytest.raises(MaxTurnsExceeded, match="within 3 turns"):
        await Runner.resume(agent, "r", store=store)
    model.add("done")
    result = await Runner.resume(agent, "r", store=store, max_turns=4)
    assert (result.final_output, result.usage.requests) == ("done", 4)


# --- values


class Point(BaseModel):
    """A value that is not plain JSON."""

    x: int


@dataclass
class Pair:
    """A value with other values."""

    left: Point
    right: Point


@function_tool
def point() -> Point:
    """Return a point."""
    return Point(x=1)


@function_tool
def pair() -> Pair:
    """Return two points."""
    return Pair(Point(x=1), Point(x=2))


@function_tool
def plain() -> dict[str, Any]:
    """Return plain JSON."""
    return {"a": [1, None, 2.5], "ü": "ß"}


@pytest.mark.parametrize("tool", [point, pair, plain], ids=lambda tool: tool.name)
async def test_the_value_of_a_tool_is_restored_as_its_type(
    store: SQLiteRunStore, tool: AnyTool
) -> None:
    """If it is the final output, the application gets the object in any process."""
    model = ScriptedModel([tool_call(tool.name)])
    agent = Agent("A", tools=[tool], model=model, tool_use_behavior="stop_on_first_tool")
    first = await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    again = await Runner.resume(agent, "r", store=store)
    assert again.final_output == first.final_output
    assert type(again.final_output) is type(first.final_output)


async def test_a_value_without_a_declared_type_is_restored_as_json(
    store: SQLiteRunStore,
) -> None:
    """A missing annotation must not end the run."""

    @function_tool
    def secret_handshake() -> Any:
        """Return a point without a type."""
        return Point(x=7)

    model = ScriptedModel([tool_call("secret_handshake")])
    agent = Agent(
        "A", tools=[secret_handshake], model=model, tool_use_behavior="stop_on_first_tool"
    )
    await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    again = await Runner.resume(agent, "r", store=store)
    assert again.final_output == {"x": 7}


async def test_a_structured_output_is_restored(store: SQLiteRunStore) -> None:
    """It is created again from the last answer of the model."""
    agent = Agent("A", model=ScriptedModel(['{"x": 4}']), output_type=Point)
    first = await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    again = await Runner.resume(agent, "r", store=store)
    assert again.final_output == first.final_output == Point(x=4)


async def test_a_large_result_is_stored_completely(store: SQLiteRunStore) -> None:
    """The model has read all of it."""
    text = "ä" * 200_000

    @function_tool
    def long() -> str:
        """Return a long text."""
        return text

    agent = Agent("A", tools=[long], model=ScriptedModel([tool_call("long"), "ok"]))
    await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    again = await Runner.resume(agent, "r", store=store)
    assert outputs(again)[0][2] == text


async def test_secrets_are_not_in_the_file_and_arguments_are_restored(
    store: SQLiteRunStore, tmp_path: Path
) -> None:
    """A call of a recorded response gets the arguments that the model sent."""
    register_secret("open-sesame-77")
    gate, seen = Gate(), list[str]()

    @function_tool
    def unlock(key: str) -> str:
        """Unlock."""
        seen.append(key)
        return f"unlocked with {key}"

    calls = [tool_call("wait"), tool_call("unlock", key="open-sesame-77")]
    model = ScriptedModel([calls])
    agent = Agent("A", tools=[gate.tool, unlock], model=model)
    config = _config(store, max_parallel_tools=1)
    await cut_off(gate.reached, Runner.run(agent, "x", run_id="r", run_config=config))
    assert b"sesame" not in _written(tmp_path)
    assert not seen
    model.add("ok")
    await Runner.resume(agent, "r", run_config=config)
    assert seen == ["open-sesame-77"]


def _written(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


# --- approvals


def _careful(calls: list[str], gate: Gate | None = None) -> Agent[Any, Any]:
    @policies.needs_approval()
    @function_tool
    async def pay(to: str) -> str:
        """Pay."""
        calls.append(to)
        if gate is not None:
            gate.reached.set()
            await asyncio.Event().wait()
        return f"paid {to}"

    return Agent("A", tools=[pay], model=ScriptedModel([tool_call("pay", to="Ada", call_id="c1")]))


async def test_a_waiting_run_is_decided_and_continued_by_another_process(
    store: SQLiteRunStore, tmp_path: Path
) -> None:
    """The other process finds the same waiting call, and one approval lets it run once."""
    calls: list[str] = []
    agent = _careful(calls)
    await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    assert [run.status for run in await store.runs()] == ["interrupted"]
    other = SQLiteRunStore(tmp_path / "runs.db")
    waiting = await Runner.resume(agent, "r", store=other)
    assert [item.call_id for item in waiting.interruptions] == ["c1"]
    state = waiting.to_state()
    state.approve(state.interruptions[0])
    agent.model.add("thanks")  # type: ignore[union-attr]
    for _ in range(2):  # a state handed in twice goes on twice, and pays once
        result = await Runner.run(agent, state, run_config=_config(other))
        assert (result.final_output, calls) == ("thanks", ["Ada"])
    again = await Runner.run(agent, "x", run_id="r", run_config=_config(other))
    assert (again.final_output, calls) == ("thanks", ["Ada"])
    await other.aclose()


@pytest.mark.requirement("F42")
async def test_an_approved_call_that_is_interrupted_is_lost(store: SQLiteRunStore) -> None:
    """An approval allows one execution of the call."""
    calls: list[str] = []
    gate = Gate()
    agent = _careful(calls, gate)
    state = (await Runner.run(agent, "x", run_id="r", run_config=_config(store))).to_state()
    state.approve(state.interruptions[0])
    await cut_off(gate.reached, Runner.run(agent, state, run_config=_config(store)))
    agent.model.add("hm")  # type: ignore[union-attr]
    result = await Runner.resume(agent, "r", store=store)
    assert [status for _, status, _ in outputs(result)] == ["lost"]
    assert calls == ["Ada"]


async def test_a_decision_during_the_run_is_not_requested_again(store: SQLiteRunStore) -> None:
    """The call has run with the arguments of the person."""
    from agents_tools import Decision

    asked: list[str] = []

    def approve(item: Any) -> Decision:
        asked.append(item.call_id)
        return Decision(approved=True, arguments='{"to": "Bo"}')

    calls: list[str] = []
    agent = _careful(calls)
    agent.model.add("ok")  # type: ignore[union-attr]
    config = _config(store, approve=approve)
    first = await Runner.run(agent, "x", run_id="r", run_config=config)
    again = await Runner.resume(agent, "r", run_config=config)
    assert outputs(again) == outputs(first)
    assert "to: {" in outputs(again)[0][2]
    assert (asked, calls) == (["c1"], ["Bo"])


async def test_an_agent_inside_a_run_waits_and_continues(store: SQLiteRunStore) -> None:
    """It resumes where it stopped, and its usage is counted once."""
    calls: list[str] = []
    inner = _careful(calls)
    outer = Agent(
        "Outer",
        tools=[inner.as_tool(tool_name="inner")],
        model=ScriptedModel([tool_call("inner", input="pay", call_id="o1")]),
    )
    waiting = await Runner.run(outer, "x", run_id="r", run_config=_config(store))
    assert waiting.interruptions[0].path == ("o1",)
    state = (await Runner.resume(outer, "r", store=store)).to_state()
    state.approve(state.interruptions[0])
    inner.model.add("inner done")  # type: ignore[union-attr]
    outer.model.add("outer done")  # type: ignore[union-attr]
    first = await Runner.run(outer, state, run_config=_config(store))
    again = await Runner.resume(outer, "r", store=store)
    for result in (first, again):
        assert (result.final_output, result.usage.requests) == ("outer done", 4)
    assert calls == ["Ada"]


# --- runs inside runs


async def test_an_agent_with_visible_events_inside_a_hidden_one_is_recorded_once(
    store: SQLiteRunStore,
) -> None:
    """Both levels hide their events from the stream of the run."""
    pay = policies.needs_approval(function_tool(lambda euros: f"paid {euros}", name_override="pay"))
    model = ScriptedModel(
        {
            "Outer": [tool_call("clerk", input="Pay."), "Done."],
            "Clerk": [tool_call("bank", input="Pay 5."), "Clerk: paid."],
            "Bank": [["I will.", tool_call("pay", euros=5)], "Bank: paid."],
        }
    )
    bank = Agent("Bank", tools=[pay], model=model)
    clerk = Agent("Clerk", tools=[bank.as_tool("bank", "Ask.", streaming=True)], model=model)
    outer = Agent("Outer", tools=[clerk.as_tool("clerk", "Ask.")], model=model)
    waiting = await Runner.run(outer, "Pay.", run_id="r", run_config=RunConfig(store=store))
    (item,) = waiting.interruptions
    await store.decide("r", item.call_id, True, path=item.path)
    result = await Runner.resume(outer, "r", store=store)
    assert result.final_output == "Done."
    (request,) = [one for one in model.requests[3:] if one.agent == "Bank"]
    assert [one.type for one in request.input] == [
        "message_input_item",
        "message_output_item",
        "tool_call_item",
        "tool_call_output_item",
    ]


async def test_a_run_in_the_body_of_a_tool_is_part_of_its_call(store: SQLiteRunStore) -> None:
    """A call of a function is one step, because the whole function may have taken effect."""
    helper = Agent("Helper", model=ScriptedModel(["helped"]))

    @function_tool
    async def ask() -> str:
        """Ask."""
        return str((await Runner.run(helper, "help")).final_output)

    agent = Agent("A", tools=[ask], model=ScriptedModel([tool_call("ask"), "done"]))
    first = await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    again = await Runner.resume(agent, "r", store=store)
    assert outputs(again) == outputs(first)
    events = await store.log("r").read()
    records = [event.name for event in events if isinstance(event, RunRecordEvent)]
    assert records == ["run_created", "model_response", "call_begun", "model_response"]


async def test_an_inner_agent_with_its_own_configuration_is_recorded(
    store: SQLiteRunStore,
) -> None:
    """Otherwise its calls would run twice."""
    gate, done = Gate(), list[int]()

    @function_tool
    def act() -> str:
        """Act."""
        done.append(1)
        return "acted"

    inner = Agent(
        "Inner",
        tools=[act, gate.tool],
        model=ScriptedModel([tool_call("act"), tool_call("wait")]),
    )
    tool = inner.as_tool(tool_name="inner", run_config=RunConfig(max_tool_calls=5))
    outer = Agent("Outer", tools=[tool], model=ScriptedModel([tool_call("inner", input="go")]))
    await cut_off(gate.reached, Runner.run(outer, "x", run_id="r", run_config=_config(store)))
    inner.model.add("inner done")  # type: ignore[union-attr]
    outer.model.add("outer done")  # type: ignore[union-attr]
    result = await Runner.resume(outer, "r", store=store)
    assert (result.final_output, outputs(result)[0][2]) == ("outer done", "inner done")
    assert (len(done), len(gate.calls), result.usage.requests) == (1, 1, 5)


# --- changed tools


async def test_changed_tools_cause_a_warning(
    store: SQLiteRunStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Recorded outputs stay, and the log shows that later ones are of other tools."""
    gate = Gate()
    agent = Agent("A", tools=[gate.tool, point], model=ScriptedModel([tool_call("wait")]))
    await cut_off(gate.reached, Runner.run(agent, "x", run_id="r", run_config=_config(store)))
    other = Agent(
        "A", tools=[Gate(description_override="Wait long.").tool], model=ScriptedModel(["ok"])
    )
    with caplog.at_level(logging.WARNING, "agents_tools"):
        run = Runner.resume_streamed(other, "r", store=store)
        events = [event async for event in run.stream_events()]
    warnings = [event.data for event in events if isinstance(event, NotifyStreamEvent)]
    assert warnings
    assert "changed: wait; gone: point" in warnings[0]
    assert warnings[0] in caplog.text
    assert run.final_output == "ok"


@pytest.mark.parametrize("is_decided", [False, True])
async def test_a_person_decides_again_about_a_call_of_a_changed_tool(
    store: SQLiteRunStore, *, is_decided: bool
) -> None:
    """A new release can change a description while a call waits, before or after the decision."""

    def teller(description: str, *answers: Any) -> Agent[Any, Any]:
        pay: AnyTool = function_tool(
            lambda euros: f"paid {euros}", name_override="pay", description_override=description
        )
        tools = [policies.needs_approval(pay)]
        return Agent("Teller", tools=tools, model=ScriptedModel(answers))

    call = tool_call("pay", euros=5, call_id="c1")
    await Runner.run(teller("Pay.", call), "x", run_id="r", run_config=_config(store))
    if is_decided:
        await store.decide("r", "c1", True)
    waiting = await Runner.resume(teller("Pay euros."), "r", store=store)
    reason = "The tool has changed since the decision. Decide again." if is_decided else None
    assert [item.error for item in waiting.interruptions] == [reason]
    assert [item.error for item in await store.approvals("r")] == [reason]
    await store.decide("r", "c1", True)
    result = await Runner.resume(teller("Pay euros.", "Done."), "r", store=store)
    assert (result.final_output, outputs(result)) == ("Done.", [("c1", "ok", "paid 5")])


async def test_the_output_of_a_removed_tool_stays(store: SQLiteRunStore) -> None:
    """The model has read it, and must not read another one later."""
    model = ScriptedModel([tool_call("point"), "ok"])
    await Runner.run(
        Agent("A", tools=[point], model=model), "x", run_id="r", run_config=_config(store)
    )
    again = await Runner.resume(Agent("A", model=ScriptedModel()), "r", store=store)
    assert [(status, output) for _, status, output in outputs(again)] == [("ok", '{"x":1}')]


async def test_a_wrong_run_or_store_is_refused(store: SQLiteRunStore) -> None:
    """Each message has a remedy."""
    agent = Agent("A", model=ScriptedModel(["ok"]))
    wrong: Any = "runs.db"
    with pytest.raises(UserError, match="Run 'r' does not exist"):
        await Runner.resume(agent, "r", store=store)
    with pytest.raises(UserError, match="Run 'r' does not exist"):
        await store.send("r", "Is it there now?")
    await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    with pytest.raises(UserError, match="expected 'A', got 'B'"):
        await Runner.resume(Agent("B", model=ScriptedModel()), "r", store=store)
    with pytest.raises(UserError, match="another input"):
        await Runner.run(agent, "y", run_id="r", run_config=_config(store))
    with pytest.raises(UserError, match="Pass store="):
        await Runner.resume(agent, "r")
    with pytest.raises(UserError, match=r"SQLiteRunStore\(path\), got a str"):
        RunConfig(store=wrong)
    with pytest.raises(UserError, match="run_id is not valid"):
        await Runner.run(agent, "x", run_id="", run_config=_config(store))
    assert [run.status for run in await store.runs()] == ["ok"]


# --- sessions


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def _answers(request: Any) -> Any:
    done = sum(isinstance(item, ToolCallOutputItem) for item in request.input)
    if done == 0:
        return [tool_call("add", a=1, b=2, call_id="c1"), tool_call("add", a=3, b=4, call_id="c2")]
    return "3 and 7" if done > 2 else tool_call("add", a=3, b=7, call_id="c3")


async def test_a_session_has_each_item_once_wherever_its_run_was_interrupted(
    tmp_path: Path,
) -> None:
    """Items of completed steps are stored before the end of the process or when resuming."""
    fatal = 0
    for fatal in range(1, 100):
        path = tmp_path / f"{fatal}.db"
        store = RunStore(FragileStorage(path, fatal))
        agent = Agent("A", tools=[add], model=ScriptedModel([_answers] * 5))
        broke = False
        try:
            config = _config(store)
            await Runner.run(agent, "sum", run_id="r", run_config=config, session="chat")
        except EventStoreError:
            broke = True
        await store.aclose()
        if not broke:
            break
        store = SQLiteRunStore(path)
        config = _config(store)
        result = await Runner.run(agent, "sum", run_id="r", run_config=config, session="chat")
        stored = [item.to_dict() for item in conversation(await store.conversation("chat"))]
        assert sorted(map(repr, stored)) == sorted(map(repr, result.to_input_list())), fatal
        assert result.final_output == "3 and 7"
        await store.aclose()
    assert fatal > 20


async def test_a_session_has_an_approved_call_once(store: SQLiteRunStore) -> None:
    """A program that is started again after a crash passes the same decided state."""
    calls, gate = list[str](), Gate()
    agent = _careful(calls)
    agent.tools.append(gate.tool)  # pyright: ignore[reportAttributeAccessIssue]
    config = _config(store)
    first = await Runner.run(agent, "x", run_id="r", run_config=config, session="chat")
    state = first.to_state()
    state.approve(state.interruptions[0])
    agent.model.add(tool_call("wait", call_id="c2"))  # type: ignore[union-attr]
    continued = Runner.run(agent, state, run_config=config, session="chat")
    await cut_off(gate.reached, continued)
    agent.model.add("ok")  # type: ignore[union-attr]
    result = await Runner.run(agent, state, run_config=config, session="chat")
    assert [(one, status) for one, status, _ in outputs(result)] == [("c1", "ok"), ("c2", "lost")]
    stored = [item.to_dict() for item in conversation(await store.conversation("chat"))]
    assert stored == result.to_input_list()
    assert calls == ["Ada"]


async def test_a_resumed_run_of_a_session_keeps_the_earlier_conversation(
    store: SQLiteRunStore,
) -> None:
    """The items of earlier runs are input, and stay before those of the run."""
    agent = Agent("A", tools=[add], model=ScriptedModel(["hello"]))
    await Runner.run(agent, "hi", run_config=_config(store), session="chat")
    gate = Gate()
    agent = Agent("A", tools=[gate.tool], model=ScriptedModel([tool_call("wait")]))
    run = Runner.run(agent, "go", run_id="r", run_config=_config(store), session="chat")
    await cut_off(gate.reached, run)
    agent.model.add("so it is")  # type: ignore[union-attr]
    result = await Runner.resume(agent, "r", store=store)
    assert [item.get("role") or item["type"] for item in result.to_input_list()] == [
        *("user", "assistant", "user", "function_call", "function_call_output", "assistant")
    ]
    assert [item.type for item in result.new_items][-1] == "message_output_item"
    kinds = [item.type for item in conversation(await store.conversation("chat"))]
    assert kinds.count("message_output_item") == 2


# --- early calls


async def test_calls_that_start_early_are_recorded(store: SQLiteRunStore) -> None:
    """Their output exists before the response that contains them."""
    seen: list[str] = []

    @function_tool(annotations=_READ_ONLY)
    async def look(at: str) -> str:
        """Look."""
        seen.append(at)
        return f"saw {at}"

    calls = [tool_call("look", at="a", call_id="c1"), tool_call("look", at="b", call_id="c2")]
    agent = Agent("A", tools=[look], model=ScriptedModel([calls, "ok"]))
    config = _config(store, start_calls_early=True)
    first = await Runner.run(agent, "x", run_id="r", run_config=config)
    again = await Runner.resume(agent, "r", run_config=config)
    assert outputs(again) == outputs(first)
    assert sorted(seen) == ["a", "b"]


async def test_a_resumed_run_streams_only_new_events(store: SQLiteRunStore) -> None:
    """A display must not show its calls twice."""
    gate = Gate()
    model = ScriptedModel([tool_call("add", a=1, b=2, call_id="c1"), tool_call("wait")])
    agent = Agent("A", tools=[add, gate.tool], model=model)
    await cut_off(gate.reached, Runner.run(agent, "x", run_id="r", run_config=_config(store)))
    model.add(tool_call("add", a=1, b=2, call_id="c9"), "ok")
    run = Runner.resume_streamed(agent, "r", store=store)
    events = [event async for event in run.stream_events()]
    begun = [event.tool_call_id for event in events if isinstance(event, ToolStreamStartEvent)]
    assert begun == ["c9"]
    items = [event.item for event in events if isinstance(event, RunItemStreamEvent)]
    assert [item.get("status") for item in items if "output" in item] == ["lost", "ok"]


async def test_a_second_task_with_the_same_run_is_refused(store: SQLiteRunStore) -> None:
    """A request that arrives twice must not run its calls twice; the first one continues."""
    gate = Gate()
    model = ScriptedModel([tool_call("wait"), "ok"])
    agent = Agent("A", tools=[gate.tool], model=model)
    first = asyncio.ensure_future(Runner.run(agent, "x", run_id="r", run_config=_config(store)))
    await asyncio.wait_for(gate.reached.wait(), WITHIN)
    with pytest.raises(RunInUseError, match="is in use by process"):
        await Runner.run(agent, "x", run_id="r", run_config=_config(store))
    assert [run.status for run in await store.runs()] == ["running"]
    first.cancel()
    await asyncio.wait({first})
    assert [run.status for run in await store.runs()] == ["cancelled"]


async def test_a_state_keeps_the_id_of_its_run(store: SQLiteRunStore) -> None:
    """With another id, its calls would run in two runs."""
    agent = _careful([])
    state = (await Runner.run(agent, "x", run_id="r", run_config=_config(store))).to_state()
    with pytest.raises(UserError, match="expected 'r', got 's'"):
        await Runner.run(agent, state, run_id="s", run_config=_config(store))


def test_a_run_is_resumed_in_synchronous_code(tmp_path: Path) -> None:
    """Scripts have no event loop."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    agent = Agent("A", model=ScriptedModel(["ok"]))
    first = Runner.run_sync(agent, "x", run_id="r", run_config=_config(store))
    again = Runner.resume_sync(agent, "r", store=store)
    assert (first.final_output, again.final_output) == ("ok", "ok")
    with pytest.raises(UserError, match=r"Runner\.resume_sync"):
        Runner.resume_streamed(agent, "r", store=store)
    asyncio.run(store.aclose())


async def test_early_calls_of_a_failed_response_run_again(
    store: SQLiteRunStore,
) -> None:
    """They are read-only, and their output belongs only to the same call."""
    seen: list[str] = []
    looked = asyncio.Event()

    @function_tool(annotations=_READ_ONLY)
    async def look(at: str) -> str:
        """Look."""
        seen.append(at)
        looked.set()
        return f"saw {at}"

    class Hasty:
        """Starts a call early, and fails the first time."""

        def __init__(self) -> None:
            self.turns = 0

        async def respond(self, request: Any, emit: Any) -> Any:
            """Answer."""
            self.turns += 1
            if self.turns > 2:
                return await ScriptedModel(["ok"]).respond(request, emit)
            call = tool_call("look", at="a", call_id="c1")
            request.on_call(call)
            if self.turns == 1:
                await asyncio.wait_for(looked.wait(), WITHIN)
                raise ModelError("broken")
            other = tool_call("look", at="b", call_id="c2")
            return await ScriptedModel([[call, other]]).respond(request, emit)

    agent = Agent("A", tools=[look], model=Hasty())
    config = _config(store, start_calls_early=True, model_retries=0)
    with pytest.raises(ModelError):
        await Runner.run(agent, "x", run_id="r", run_config=config)
    result = await Runner.resume(agent, "r", run_config=config)
    assert [(one, output) for one, _, output in outputs(result)] == [
        ("c1", "saw a"),
        ("c2", "saw b"),
    ]
    assert result.final_output == "ok"
