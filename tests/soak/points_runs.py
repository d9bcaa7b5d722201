"""Runs of agents, for faults at each of their awaits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from agents_tools import (
    Agent,
    Event,
    EventStream,
    ModelRequest,
    ModelResponse,
    RunConfig,
    Runner,
    ToolAnnotations,
    function_tool,
    policies,
)
from agents_tools.agents import RunHooks
from agents_tools.errors import EventStoreError
from agents_tools.events import Emit, RunItemStreamEvent
from agents_tools.persistence import RunStore, SQLiteEventStore
from agents_tools.persistence.stores.memory import MemoryStorage
from agents_tools.testing import ScriptedModel, tool_call
from tests.soak.points_calls import slow_tool
from tests.soak.points_stage import Scenario, Stage, together
from tests.watched_storage import WatchedStorage

__all__ = ["RUNS", "flat_agent", "nested_agent"]


class _Model(ScriptedModel):
    """A model at which faults may strike before and after it has spoken."""

    def __init__(self, stage: Stage, steps: Any) -> None:
        super().__init__(steps)
        self._stage = stage

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the next answer."""
        await self._stage.at("model, before it speaks")
        response = await super().respond(request, emit)
        await self._stage.at("model, after it has spoken")
        return response


def _store_of(stage: Stage) -> RunStore:
    """Return a store whose writes can fail."""

    def strike(_: Any) -> None:
        try:
            stage.hit("store")
        except Exception as error:
            raise EventStoreError("The write was struck.", store="stage") from error

    storage: Any = WatchedStorage(MemoryStorage(), before=strike)
    return RunStore(storage)


class _Hooks(RunHooks[Any]):
    """Hooks at which faults may strike."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: Any
    ) -> None:
        """Hear that the model is asked."""
        await self._stage.at("hook")

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Hear that a tool is called."""
        await self._stage.at("hook")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Hear that a tool has answered."""
        await self._stage.at("hook")


class _Sink:
    """Takes all events of a run, and may fail on each."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def publish(self, event: Event, /) -> None:
        """Take an event."""
        del event
        self._stage.hit("sink")


async def _waited(run: Any) -> None:
    """Wait for the end of a run, which can be the cancellation of its task alone."""
    try:
        await run.wait()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise


def _one_answer_each(calls: list[str], answers: list[str]) -> Iterator[str]:
    """Yield which calls of a history have no answer or two."""
    if Counter(calls) != Counter(answers):
        yield f"calls {calls} have the answers {answers}"


def _stored(stage: Stage, store: RunStore) -> None:
    """Check afterwards that each call of the session has one output there."""

    def check() -> Iterator[str]:
        named = dict[str, list[str]](tool_called=[], tool_output=[])
        for event in store.conversation("chat").result():
            if isinstance(event, RunItemStreamEvent) and event.name in named:
                named[event.name].append(event.item["call_id"])
        yield from _one_answer_each(named["tool_called"], named["tool_output"])

    stage.checks.append(check)


def _in_history(items: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the ids of the calls in a history, and those of the answers."""
    named = dict[str, list[str]](function_call=[], function_call_output=[])
    for item in items:
        if (kind := item.get("type")) in named:
            named[kind].append(item["call_id"])
    return named["function_call"], named["function_call_output"]


def _told(stage: Stage, run: Any) -> None:
    """Look afterwards whether each call in the history of a run has one answer."""

    def check() -> Iterator[str]:
        calls, answers = _in_history(run.to_input_list())
        waiting = run.to_state().pending  # as before, where the run was never begun
        yield from _one_answer_each([call for call in calls if call not in waiting], answers)

    stage.checks.append(check)


def _tools(stage: Stage) -> list[Any]:
    @function_tool
    def count(text: str) -> int:
        """Count letters, in a thread."""
        with stage.inside("count"):
            stage.hit("body", body=True)
            return len(text)

    @function_tool
    async def fail(text: str) -> str:
        """Fail."""
        with stage.inside("fail"):
            await stage.at("body", body=True)
            raise ValueError(text)

    return [slow_tool(stage), count, fail]


_TURN = [
    tool_call("slow", text="a", call_id="c1"),
    tool_call("count", text="b", call_id="c2"),
    tool_call("fail", text="c", call_id="c3"),
    tool_call("slow", text="d", call_id="c4"),
]


def nested_agent(stage: Stage) -> Agent[Any, Any]:
    """Make an agent that calls two tools and twice another agent at once."""
    inner_turns = [tool_call("slow", text="deep", call_id="d1"), "deep done"]
    inner = Agent("inner", tools=[slow_tool(stage)], model=_Model(stage, inner_turns * 2))

    async def on_stream(_: Event) -> None:
        await stage.at("on_stream")

    research = inner.as_tool("research", streaming=True, on_stream=on_stream)
    turn = [
        tool_call("slow", text="a", call_id="c1"),
        tool_call("research", input="look", call_id="c2"),
    ]
    return Agent(
        "outer", tools=[slow_tool(stage), research], model=_Model(stage, [turn, "all done"])
    )


def flat_agent(stage: Stage, **more: Any) -> Agent[Any, Any]:
    return Agent("flat", tools=_tools(stage), model=_Model(stage, [_TURN, "done"]), **more)


def _ran(
    make: Callable[[Stage], Agent[Any, Any]], **config: Any
) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        store = _store_of(stage)
        _stored(stage, store)
        await Runner.run(
            make(stage),
            "Go.",
            session="chat",
            hooks=_Hooks(stage),
            run_config=RunConfig(event_stream=_Sink(stage), store=store, **config),
        )

    return play


def _streamed(
    make: Callable[[Stage], Agent[Any, Any]], *, leave: bool = False
) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        async with Runner.run_streamed(make(stage), "Go.") as run:
            _told(stage, run)
            async for event in run.stream_events():
                await stage.at("reader")
                if leave and event.type == "tool_stream_start_event":
                    return
            await _waited(run)

    return play


def _guarded_agent(stage: Stage) -> Agent[Any, Any]:
    tool = policies.needs_approval(slow_tool(stage))
    turn = [tool_call("slow", text=text, call_id=text) for text in ("a", "b")]
    return Agent("careful", tools=[tool], model=_Model(stage, [turn, "done"]))


async def _approved(stage: Stage) -> None:
    """Stop for a person, and go on with what is decided."""
    agent = _guarded_agent(stage)
    first = await Runner.run(agent, "Go.")
    state = first.to_state()
    yes, no = state.interruptions
    state.approve(yes)
    state.reject(no, "not today")
    await stage.at("person")
    async with Runner.run_streamed(agent, state) as run:
        _told(stage, run)
        await _waited(run)


async def _asked(stage: Stage) -> None:
    """Ask the person at once."""

    async def approve(_: Any) -> bool:
        await stage.at("person")
        return True

    async with Runner.run_streamed(
        _guarded_agent(stage), "Go.", run_config=RunConfig(approve=approve)
    ) as run:
        _told(stage, run)
        await _waited(run)


def _early(stage: Stage) -> Agent[Any, Any]:
    looks = slow_tool(stage, annotations=ToolAnnotations(readOnlyHint=True))
    turn = [tool_call("slow", text=text, call_id=text) for text in ("a", "b")]
    return Agent("early", tools=[looks], model=_Model(stage, [turn, "done"]))


def _alone(stage: Stage) -> Agent[Any, Any]:
    tool = policies.exclusive()(slow_tool(stage))
    turn = [tool_call("slow", text=text, call_id=text) for text in ("a", "b")]
    return Agent("alone", tools=[tool], model=_Model(stage, [turn, "done"]))


async def _recorded(stage: Stage) -> None:
    """Run with a store from which the run can be resumed."""
    store = stage.kept["store"] = _store_of(stage)
    config = RunConfig(store=store)
    await Runner.run(flat_agent(stage), "Go.", run_id="r", run_config=config)


async def _resumed(stage: Stage) -> None:
    """Resume the run: each call has one output, and no process holds the run."""
    store = stage.kept["store"]
    if not await store.runs():
        return
    agent = Agent("flat", tools=_tools(stage), model=ScriptedModel([_TURN, "done", "done"]))
    result = await Runner.resume(agent, "r", store=store)
    calls, answers = _in_history(result.to_input_list())
    assert sorted(calls) == sorted(answers) == sorted(set(calls)), (calls, answers)


async def _with_deadline(stage: Stage) -> None:
    """Let the run be over in the midst of its tools."""
    hangs = asyncio.Event()

    @function_tool
    async def hang() -> None:
        """Wait for what never comes."""
        with stage.inside("hang"):
            await stage.at("body", body=True)
            await hangs.wait()

    turn = [tool_call("hang", call_id="c1"), tool_call("slow", text="x", call_id="c2")]
    agent = Agent(
        "late", tools=[hang, slow_tool(stage)], model=_Model(stage, [turn, "done", "done"])
    )
    async with Runner.run_streamed(agent, "Go.", run_config=RunConfig(timeout=0.02)) as run:
        _told(stage, run)
        try:
            await _waited(run)
        except TimeoutError as error:
            if type(error) is TimeoutError:
                raise


async def _into_a_stream(stage: Stage) -> None:
    """Store the conversation in a file, twice, while a subscriber reads it."""
    store = SQLiteEventStore(stage.folder / "events.db")
    try:
        async with EventStream(store) as stream:
            seen = list[Event]()

            async def reads() -> None:
                async for event in stream.follow():
                    seen.append(event)
                    await stage.at("reader")

            async def runs() -> None:
                for _ in range(2):
                    config = RunConfig(event_stream=stream)
                    await Runner.run(flat_agent(stage), "Go.", run_config=config)
                stream.close()

            await together(runs(), reads())
    finally:
        store.close()
    ids = [event.id for event in seen]
    if ids != list(range(len(ids))):
        stage.checks.append(lambda: iter([f"a reader saw the ids {ids}"]))


RUNS: list[Scenario] = [
    Scenario(name="run into an event stream", play=_into_a_stream),
    Scenario(name="run", play=_ran(flat_agent), heard=True),
    Scenario(name="run, nobody hears", play=_ran(flat_agent)),
    Scenario(name="run of nested agents", play=_ran(nested_agent), heard=True),
    Scenario(name="run, one tool at a time", play=_ran(flat_agent, max_parallel_tools=1)),
    Scenario(name="run with a timeout", play=_ran(nested_agent, timeout=30)),
    Scenario(name="run with early calls", play=_ran(_early, start_calls_early=True), heard=True),
    Scenario(name="run with exclusive calls", play=_ran(_alone)),
    Scenario(name="streamed run", play=_streamed(flat_agent), heard=True),
    Scenario(name="streamed run of nested agents", play=_streamed(nested_agent), heard=True),
    Scenario(name="streamed run left early", play=_streamed(nested_agent, leave=True), heard=True),
    Scenario(name="run that stops for a person", play=_approved, heard=True),
    Scenario(name="run that asks a person", play=_asked, heard=True),
    Scenario(name="run that is too late", play=_with_deadline, heard=True),
    Scenario(name="run with a store", play=_recorded, again=_resumed),
]
