"""For any model output and any point of cancellation, the conversation stays consistent."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from agents_tools import (
    Agent,
    Event,
    MessageOutputItem,
    ModelRequest,
    ModelResponse,
    RunConfig,
    RunFinishedEvent,
    RunItemStreamEvent,
    Runner,
    RunResult,
    RunResultStreaming,
    RunStartedEvent,
    ToolAnnotations,
    ToolApprovalItem,
    ToolCallItem,
    ToolContext,
    ToolError,
    function_tool,
    streaming_tool,
)
from agents_tools.agents import RunState, call_delta, call_started, text_delta
from agents_tools.errors import ModelError
from agents_tools.policies import exclusive, needs_approval, timeout
from agents_tools.testing import check_events

AT_MOST = 10.0


@dataclass(frozen=True)
class Plan:
    """What a model says and how the run is done.

    Attributes:
        turns: For each agent the calls of each of its turns: tool, argument, call id.
        fault: In which turn of the outer agent its model fails once, with its calls already said.
        config: How the run is done.
        decisions: What the person says, by a fingerprint of the call.
    """

    turns: dict[str, list[list[tuple[str, str, str]]]]
    fault: int
    config: RunConfig
    decisions: tuple[bool, ...]


SIMPLE = ("add", "peek", "fail", "boom", "slow", "guard", "alone", "say", "sync", "stops", "nope")
ARGUMENTS = st.sampled_from(['{"n": 1}', '{"n": 2}', '{"n": "x"}', "{", "", '{"n": 1, "m": 2}'])
IDS = st.sampled_from(["", "", "a", "b", "c"])


def calls(*tools: str) -> st.SearchStrategy[list[list[tuple[str, str, str]]]]:
    call = st.tuples(st.sampled_from(tools), ARGUMENTS, IDS)
    return st.lists(st.lists(call, min_size=1, max_size=4), max_size=3)


PLANS = st.builds(
    Plan,
    turns=st.fixed_dictionaries(
        {
            "outer": calls(*SIMPLE, "loud", "quiet", "loud", "quiet"),
            "loud": calls(*SIMPLE, "deep"),
            "quiet": calls(*SIMPLE, "deep"),
            "deep": calls(*SIMPLE),
        }
    ),
    fault=st.integers(0, 4),
    config=st.builds(
        RunConfig,
        max_parallel_tools=st.sampled_from([None, 1, 2]),
        start_calls_early=st.booleans(),
        retry_backoff=st.just(0),
        model_retries=st.sampled_from([0, 1]),
    ),
    decisions=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)


@dataclass
class World:
    """Agents and tools that follow a plan, and what their tools did."""

    plan: Plan
    ran: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    failed: bool = False

    async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
        """Return the turn that follows from the conversation alone, independent of the order of requests."""
        turn = sum(isinstance(item, MessageOutputItem) for item in request.input)
        emit(text_delta(f"turn {turn}"))
        script = self.plan.turns[request.agent]
        made = [
            ToolCallItem(call_id=call_id, name=name, arguments=arguments)
            for name, arguments, call_id in (script[turn] if turn < len(script) else [])
        ]
        for item in made:
            emit(call_started(item.call_id, item.name))
            emit(call_delta(item.call_id, item.arguments))
            if request.on_call is not None:
                request.on_call(item)
            await asyncio.sleep(0)
        if request.agent == "outer" and turn == self.plan.fault and not self.failed:
            self.failed = True
            raise ModelError("cut", retryable=True)
        return ModelResponse(items=[MessageOutputItem(text=f"turn {turn}"), *made])

    def agent(self) -> Agent:
        def note(context: ToolContext[Any]) -> None:
            self.ran[context.path] += 1

        @function_tool
        async def add(n: int, context: ToolContext[Any]) -> int:
            note(context)
            context.notify("adding")
            await asyncio.sleep(0)
            return n + 1

        @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
        async def peek(n: int, context: ToolContext[Any]) -> str:
            # Not noted: it may run for an answer that never comes, and once more for the next.
            for _ in range(n):
                await asyncio.sleep(0)
            return f"saw {n}"

        @function_tool
        async def fail(n: int, context: ToolContext[Any]) -> str:
            note(context)
            raise ToolError(f"no {n}")

        @function_tool(failure_error_function=None)
        async def boom(n: int, context: ToolContext[Any]) -> str:
            note(context)
            if n == 2:
                raise LookupError("boom")
            return "no boom"

        @timeout(0.002)
        @function_tool
        async def slow(n: int, context: ToolContext[Any]) -> str:
            note(context)
            await asyncio.sleep(60)
            return "never"

        @needs_approval
        @function_tool
        async def guard(n: int, context: ToolContext[Any]) -> str:
            note(context)
            return f"guarded {n}"

        @exclusive()
        @function_tool
        async def alone(n: int, context: ToolContext[Any]) -> str:
            note(context)
            await asyncio.sleep(0)
            return f"alone {n}"

        @streaming_tool
        async def say(n: int, context: ToolContext[Any]):
            note(context)
            for number in range(n):
                context.progress(number, n)
            yield f"said {n}"

        @function_tool
        def sync(n: int, context: ToolContext[Any]) -> str:
            note(context)
            return f"sync {n}"

        @function_tool
        async def stops(n: int, context: ToolContext[Any]) -> str:
            note(context)
            cast("asyncio.Task[Any]", asyncio.current_task()).cancel()
            await asyncio.sleep(0)
            return "never"

        tools: list[Any] = [add, peek, fail, boom, slow, guard, alone, say, sync, stops]
        deep = Agent("deep", tools=tools, model=self).as_tool(
            parameters=Number, streaming=True, failure_error_function=None
        )
        inner = [*tools, deep]
        loud = Agent("loud", tools=inner, model=self).as_tool(parameters=Number, streaming=True)
        quiet = Agent("quiet", tools=inner, model=self).as_tool(parameters=Number)
        return Agent("outer", tools=[*tools, loud, quiet], model=self)


@dataclass
class Number:
    n: int


@dataclass
class Seen:
    """One way through a plan: the conversation, how it ended, and what was said."""

    result: RunResult | RunResultStreaming
    error: str | None
    events: list[Event] = field(default_factory=list[Event])

    @property
    def history(self) -> list[dict[str, Any]]:
        """The conversation, with the ids of calls numbered: some are made up."""
        numbers: dict[str, int] = {}
        items = self.result.to_input_list()
        for item in items:
            if "call_id" in item:
                item["call_id"] = numbers.setdefault(item["call_id"], len(numbers))
        return items


async def played(
    world: World, agent: Agent, given: Any, *, streamed: bool, stop_after: int | None = None
) -> Seen:
    """Play one run to its end, or until it was stopped after some events."""
    if not streamed:
        try:
            return Seen(await Runner.run(agent, given, run_config=world.plan.config), None)
        except Exception as error:  # noqa: BLE001 - whatever the plan leads to
            failed: Any = error
            return Seen(failed.run_result, repr(error))
    run = Runner.run_streamed(agent, given, run_config=world.plan.config)
    seen = Seen(run, None)
    try:
        async for event in run.stream_events():
            seen.events.append(event)
            if len(seen.events) == stop_after:
                run.cancel()
    except Exception as error:  # noqa: BLE001 - as above
        seen.error = repr(error)
    check_events(seen.events)
    assert [type(event) for event in seen.events if not event.path].count(RunFinishedEvent) == 1
    assert isinstance(seen.events[-1], RunFinishedEvent)
    return seen


def check_conversation(seen: Seen) -> None:
    """Check that each call has one answer, but for those that wait, and what is written of it."""
    items = seen.result.to_input_list()
    made = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    waiting = {
        one.path[0] if one.path else one.call_id for one in seen.result.to_state().interruptions
    }
    assert len(set(made)) == len(made)
    assert len(set(answered)) == len(answered)
    assert set(made) - set(answered) == waiting
    assert [call_id for call_id in made if call_id in set(answered)] == answered
    state = seen.result.to_state()
    text = state.to_json()
    assert RunState.from_json(text).to_json() == text
    assert state.started == []


async def check_nothing_runs() -> None:
    async with asyncio.timeout(AT_MOST):
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - until what was cancelled has ended
            await asyncio.sleep(0)


def decide(world: World, seen: Seen) -> RunState:
    """Decide about each call that waits, always the same, in a state that went through JSON."""
    state = RunState.from_json(seen.result.to_state().to_json())

    def agrees(item: ToolApprovalItem) -> bool:
        mark = zlib.crc32(f"{len(item.path)} {item.arguments}".encode())
        return world.plan.decisions[mark % len(world.plan.decisions)]

    for item in state.interruptions:
        (state.approve if agrees(item) else state.reject)(item)
    return state


async def to_the_end(world: World, agent: Agent, seen: Seen, *, streamed: bool) -> list[Seen]:
    """Go on with a run, deciding whatever waits, until nothing does."""
    way = [seen]
    while way[-1].error is None and way[-1].result.interruptions:
        assert len(way) < 40
        state = decide(world, way[-1])
        way.append(await played(world, agent, state, streamed=streamed))
        check_conversation(way[-1])
    return way


def check_runs(world: World) -> None:
    """Check that no body ran twice for one call, in whatever process its run went on."""
    twice = {path: count for path, count in world.ran.items() if count > 1}
    assert not twice


@given(PLANS)
def test_a_streamed_run_equals_a_plain_one(plan: Plan) -> None:
    """Streaming must not change the run, including its approvals."""

    async def both() -> None:
        ends: list[Seen] = []
        for streamed in (False, True):
            world = World(plan)
            agent = world.agent()
            first = await played(world, agent, "Go.", streamed=streamed)
            check_conversation(first)
            way = await to_the_end(world, agent, first, streamed=streamed)
            check_runs(world)
            ends.append(way[-1])
            if streamed:
                check_events_are_the_history(way)
            await check_nothing_runs()
        plain, watched = ends
        assert plain.error == watched.error
        if plain.error is None:  # who is cancelled by a failing sibling depends on who was faster
            assert plain.history == watched.history

    asyncio.run(both())


def check_events_are_the_history(way: Sequence[Seen]) -> None:
    """Check that durable events without a path give the items, in the end."""
    said = [
        {key: value for key, value in event.item.items() if key != "public_message"}
        for seen in way
        for event in seen.events
        if isinstance(event, RunItemStreamEvent)
        and not event.path
        and not event.name.startswith("tool_approval_")
    ]
    items = way[-1].result.to_input_list()[1:]
    assert sorted(map(json.dumps, said)) == sorted(map(json.dumps, items))


@given(PLANS, st.integers(1, 60), st.booleans())
def test_a_cancelled_run_is_consistent_and_can_be_resumed(
    plan: Plan, stop_after: int, resumes: bool
) -> None:
    """Each call has an answer, no task keeps running, and no call runs twice."""

    async def stopped() -> None:
        world = World(plan)
        agent = world.agent()
        seen = await played(world, agent, "Go.", streamed=True, stop_after=stop_after)
        await check_nothing_runs()
        check_conversation(seen)
        check_runs(world)
        started = [event.path for event in seen.events if isinstance(event, RunStartedEvent)]
        finished = [event.path for event in seen.events if isinstance(event, RunFinishedEvent)]
        assert sorted(started) == sorted(finished)
        if not resumes:
            return
        state = decide(world, seen)
        again = await played(world, agent, state, streamed=True)
        check_conversation(again)
        way = await to_the_end(world, agent, again, streamed=True)
        check_events_are_the_history([seen, *way])
        check_runs(world)
        await check_nothing_runs()

    asyncio.run(stopped())


@pytest.mark.requirement("F42")
@given(PLANS, st.integers(1, 40))
def test_a_resumed_state_runs_no_call_again(plan: Plan, take_after: int) -> None:
    """The state after a crash knows which calls may have taken effect."""

    async def crashed() -> None:
        world = World(plan)
        agent = world.agent()
        text = ""
        run = Runner.run_streamed(agent, "Go.", run_config=plan.config)
        count = 0
        try:
            async for _ in run.stream_events():
                count += 1
                if count == take_after:
                    text = run.to_state().to_json()
                    run.cancel()  # as good as a crash: what is said from here on is lost
        except Exception:  # noqa: BLE001, S110 - whatever the plan leads to
            pass
        await check_nothing_runs()
        if not text:
            return
        state = RunState.from_json(text)
        started = set(state.started)
        before = world.ran.copy()
        after = await played(world, agent, state, streamed=True)
        check_conversation(after)
        for path, number in world.ran.items():
            if path in before and path[0] in started:
                harmless = path[:1] == path and number <= 2
                assert number == before[path] or harmless

    asyncio.run(crashed())
