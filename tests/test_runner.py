"""Runs of agents: what is asked, what is run, what is recorded, and how a run ends."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from agents_tools import (
    Agent,
    Event,
    FunctionTool,
    MaxTurnsExceeded,
    MessageOutputItem,
    ModelBehaviorError,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    ReasoningItem,
    RunConfig,
    RunFinishedEvent,
    RunItemStreamEvent,
    Runner,
    RunResult,
    RunStartedEvent,
    ToolAnnotations,
    ToolCallItem,
    ToolCallOutputItem,
    ToolContext,
    ToolError,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    Usage,
    UserError,
    function_tool,
    streaming_tool,
)
from agents_tools.agents import (
    AgentHooks,
    FunctionToolResult,
    ModelSettings,
    RunHooks,
    RunState,
    StopAtTools,
    ToolsToFinalOutputResult,
    load_model,
)
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.content import MessageInputItem, item_from_dict
from agents_tools.errors import (
    BudgetExceeded,
    ModelError,
    RunError,
    RunTimeoutError,
    ToolRefusedError,
)
from agents_tools.policies import exclusive, timeout, truncate
from agents_tools.testing import ScriptedModel, check_events, override_model, tool_call
from tests.waiting import comes

WITHIN = 45.0
"""Seconds that anything here may take at most."""


@function_tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@function_tool
async def fails() -> str:
    """Fail."""
    raise ToolError("broken on purpose")


READ_ONLY = ToolAnnotations(readOnlyHint=True)


class Gate:
    """A tool that says when it was entered and left, and waits until it may go on."""

    def __init__(self, name: str = "wait", *, annotations: ToolAnnotations | None = None) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()
        self.open = asyncio.Event()
        self.ended = ""

        async def body() -> str:
            self.entered.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.ended = "cancelled"
                raise
            finally:
                self.left.set()
            self.ended = "ok"
            return f"{name} is over"

        made = function_tool(body, name_override=name, description_override="Wait.")
        self.tool: FunctionTool[..., Any] = made.with_(annotations=annotations)


def agent_of(*steps: Any, tools: Sequence[Any] = (), **more: Any) -> Agent[Any, Any]:
    return Agent("Driver", tools=list(tools), model=ScriptedModel(list(steps)), **more)


def model_of(agent: Agent[Any, Any]) -> ScriptedModel:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model


async def run(agent: Agent[Any, Any], given: Any = "go", **more: Any) -> RunResult:
    return await asyncio.wait_for(Runner.run(agent, given, **more), WITHIN)


async def streamed(
    agent: Agent[Any, Any], given: Any = "go", **more: Any
) -> tuple[Any, list[Event]]:
    """Run to the end, keep the events, and check that they are lawful."""
    result = Runner.run_streamed(agent, given, **more)
    events = [event async for event in result.stream_events()]
    check_events(events)
    return result, events


async def _read(result: Any, seen: list[Event]) -> None:
    async for event in result.stream_events():
        seen.append(event)  # noqa: PERF401 - what came before an error is to be kept


def outputs(result: Any) -> list[Any]:
    return [
        (item["call_id"], item["status"], item["output"])
        for item in result.to_input_list()
        if "output" in item
    ]


def names_of(events: Sequence[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, RunItemStreamEvent)]


def assert_answered(result: Any) -> None:
    """Check that each call has exactly one answer, which comes after it."""
    calls: list[str] = []
    answers: list[str] = []
    for item in result.to_input_list():
        if item.get("type") == "function_call":
            calls.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            assert item["call_id"] in calls
            answers.append(item["call_id"])
    assert sorted(calls) == sorted(answers)
    assert len(set(calls)) == len(calls)


# --- plain, streamed, sync


async def test_a_run_asks_calls_and_asks_again() -> None:
    """This is what a run is; each request sees all that was said before."""
    agent = agent_of(
        [ReasoningItem(text="adding"), tool_call("add", a=1, b=2)],
        "It is 3.",
        tools=[add],
        instructions="Add.",
    )
    result = await run(agent)
    assert result.final_output == "It is 3."
    assert result.last_agent is agent
    assert result.interruptions == []
    assert result.usage == Usage(requests=2)
    assert len(result.raw_responses) == 2
    assert result.final_output_as(str) == "It is 3."
    with pytest.raises(UserError, match="expected int, got str"):
        result.final_output_as(int)
    assert [request.instructions for request in model_of(agent).requests] == ["Add.", "Add."]
    assert [len(request.input) for request in model_of(agent).requests] == [1, 4]
    assert [item.to_dict() for item in result.input] == result.to_input_list()[:1]
    assert result.to_input_list() == snapshot(
        [
            {"role": "user", "content": "go"},
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "adding"}],
                "agent": "Driver",
            },
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "add",
                "arguments": '{"a": 1, "b": 2}',
                "agent": "Driver",
            },
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": "3",
                "name": "add",
                "status": "ok",
                "agent": "Driver",
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It is 3."}],
                "agent": "Driver",
            },
        ]
    )
    assert repr(result) == snapshot("<RunResult of 'Driver': 'It is 3.', 2 turns, 0 tokens>")


async def test_streamed_plain_and_sync_runs_give_the_same() -> None:
    """Whoever watches must not change what happens."""
    script = ([tool_call("add", a=1, b=2), tool_call("nothing")], "done")
    plain = await run(agent_of(*script, tools=[add]))
    watched, events = await streamed(agent_of(*script, tools=[add]))
    sync = await asyncio.to_thread(Runner.run_sync, agent_of(*script, tools=[add]), "go")
    inside = Runner.run_sync(agent_of(*script, tools=[add]), "go")  # while this loop runs
    history = plain.to_input_list()
    assert watched.to_input_list() == sync.to_input_list() == inside.to_input_list() == history
    assert watched.final_output == sync.final_output == "done"
    assert [item.to_dict() for item in watched.new_items] == history[1:]
    assert [item.to_dict() for item in watched.input] == history[:1]
    assert watched.is_complete
    assert watched.final_output_as(str) == "done"
    assert repr(watched) == "<RunResultStreaming of 'Driver': done>"
    assert [type(events[0]), type(events[-1])] == [RunStartedEvent, RunFinishedEvent]
    said = [event for event in events if event.durable and not event.path]
    assert len(said) == len(history)
    assert names_of(events) == snapshot(
        ["tool_called", "tool_called", "tool_output", "tool_output", "message_output_created"]
    )


@pytest.mark.requirement("A36", "A38", "A39", "A56")
async def test_what_a_streaming_tool_says_is_seen_and_never_recorded() -> None:
    """The history is that of a plain tool with its last value, watched or not."""

    @streaming_tool(name_override="add")
    async def loud(a: int, b: int) -> AsyncIterator[NotifyStreamEvent | str]:
        yield NotifyStreamEvent("adding")
        yield str(a + b)

    script = (tool_call("add", a=1, b=2), "It is 3.")
    plain = await run(agent_of(*script, tools=[add]))
    agent = agent_of(*script, tools=[loud])
    quiet = await run(agent)
    watched, events = await streamed(agent_of(*script, tools=[loud]))
    assert quiet.to_input_list() == watched.to_input_list() == plain.to_input_list()
    assert [one.data for one in events if isinstance(one, NotifyStreamEvent)] == ["adding"]
    (item,) = (one for one in watched.new_items if isinstance(one, ToolCallOutputItem))
    assert item.output == "3"
    assert model_of(agent).requests[1].input[-1] == item


@pytest.mark.requirement("A54")
async def test_a_stream_can_be_read_in_part_and_again_and_waited_for() -> None:
    """User interfaces leave loops; the run must come to its end all the same."""
    result = Runner.run_streamed(agent_of(tool_call("add", a=1, b=2), "done", tools=[add]), "go")
    assert repr(result) == "<RunResultStreaming of 'Driver': running>"
    assert result.final_output is None
    stream = result.stream_events()
    first = await anext(stream)
    assert isinstance(first, RunStartedEvent)
    await stream.aclose()  # type: ignore[attr-defined]
    rest = [event async for event in result.stream_events()]
    check_events([first, *rest])
    assert isinstance(rest[-1], RunFinishedEvent)
    assert [event async for event in result.stream_events()] == []
    assert (await result.wait()).final_output == "done"
    assert result.run_id == first.run_id
    assert result.usage.requests == len(result.raw_responses) == 2


async def test_a_failed_stream_tells_its_error_once_after_its_events() -> None:
    """The reader must see what led to the error, and not be told of it again and again."""
    result = Runner.run_streamed(agent_of(ModelError("no such model")), "go")
    seen: list[Event] = []
    with pytest.raises(ModelError, match="no such model") as caught:
        await _read(result, seen)
    check_events(seen)
    last = seen[-1]
    assert isinstance(last, RunFinishedEvent)
    assert (last.status, last.error) == ("error", "ModelError: no such model")
    assert caught.value.run_result.to_input_list() == result.to_input_list()  # type: ignore[attr-defined]
    assert [event async for event in result.stream_events()] == []
    with pytest.raises(ModelError):
        await result.wait()


def test_streaming_needs_a_loop() -> None:
    """There is nobody to run it otherwise, and asyncio's own words do not help."""
    with pytest.raises(UserError) as caught:
        Runner.run_streamed(agent_of("x"), "go")
    assert str(caught.value) == snapshot(
        "Runner.run_streamed needs a running event loop. Call it in an async function. Runner.run_sync runs an agent without one."
    )


# --- inputs


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ("hello", 1),
        ([], 0),
        ([{"role": "user", "content": "hello"}], 1),
        ([{"role": "developer", "content": [{"type": "input_text", "text": "x"}]}], 1),
        ([MessageInputItem(content="x"), MessageOutputItem(text="y")], 2),
        (iter([{"role": "system", "content": "x"}, {"role": "assistant", "content": "y"}]), 2),
    ],
)
async def test_inputs_come_as_text_items_or_json(given: Any, count: int) -> None:
    """Applications keep conversations in their own ways."""
    agent = agent_of("done")
    result = await run(agent, given)
    assert len(model_of(agent).requests[0].input) == count
    again = agent_of("more")
    more = await run(again, [*result.to_input_list(), {"role": "user", "content": "on"}])
    assert len(more.input) == count + 2


BAD_INPUTS: dict[str, Any] = {
    "number": 5,
    "mapping": {"role": "user", "content": "x"},
    "bytes": b"x",
    "none in list": [None],
    "role": [{"role": "robot", "content": "x"}],
    "no content": [{"role": "user"}],
    "extra": [{"role": "user", "content": "x", "name": "bob"}],
    "type": [{"type": "video"}],
    "no arguments": [{"type": "function_call", "call_id": "a", "name": "b"}],
    "status": [{"type": "function_call_output", "call_id": "a"}],
}


async def test_bad_inputs_are_refused_by_name_before_anything_runs() -> None:
    """The mistake is the caller's, so it must be told at the call."""
    told: dict[str, str] = {}
    for name, given in BAD_INPUTS.items():
        with pytest.raises(UserError) as caught:
            await Runner.run(agent_of(), given)
        with pytest.raises(UserError, match=r"input|text or a list"):
            Runner.run_streamed(agent_of(), given)
        told[name] = str(caught.value)
    assert told == snapshot(
        {
            "number": 'input: expected text or a list of items such as {"role": "user", "content": "…"}, got a int.',
            "mapping": 'input: expected text or a list of items such as {"role": "user", "content": "…"}, got a dict.',
            "bytes": "input[0]: expected an item or its JSON object, got a int.",
            "none in list": "input[0]: expected an item or its JSON object, got null.",
            "role": "input[0].role: expected one of user, system, developer, assistant; got 'robot'.",
            "no content": "input[0].content is missing: expected text or a list of content blocks.",
            "extra": "input[0]: unknown field 'name'. The fields are type, role, content.",
            "type": "input[0].type: expected one of message, reasoning, function_call, function_call_output, got 'video'.",
            "no arguments": "input[0].arguments: expected text, got nothing.",
            "status": "input[0].output is missing: expected text or a list of content blocks.",
        }
    )


@pytest.mark.parametrize("agent", ["Driver", None, add])
async def test_only_agents_run(agent: Any) -> None:
    """The first argument is easily mistaken."""
    with pytest.raises(UserError, match="expected an Agent, got a"):
        await Runner.run(agent, "go")


async def test_an_open_call_of_the_input_is_answered_first() -> None:
    """No provider takes a conversation in which a call has no answer."""
    agent = agent_of("done", tools=[add])
    given = [
        {"role": "user", "content": "1 + 2?"},
        tool_call("add", a=1, b=2, call_id="early").to_dict(),
        {"role": "user", "content": "well?"},
    ]
    result, events = await streamed(agent, given)
    kinds = [item.get("type", item.get("role")) for item in result.to_input_list()]
    assert kinds == ["user", "function_call", "function_call_output", "user", "message"]
    assert outputs(result) == [("early", "ok", "3")]
    assert isinstance(events[-1], RunFinishedEvent)


# --- hooks


class Noted(RunHooks[Any]):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self.told.append(("agent_start", agent.name, context.context))

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self.told.append(("agent_end", output, context.usage.requests))

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str, input_items: Any
    ) -> None:
        self.told.append(("llm_start", system_prompt, len(input_items)))

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        self.told.append(("llm_end", response.finish_reason))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self.told.append(
            ("tool_start", tool.name, context.tool_call_id, dict(context.arguments), context.path)
        )

    async def on_tool_end(
        self, context: Any, agent: Any, tool: Any, result: ToolCallOutputItem
    ) -> None:
        self.told.append(("tool_end", result.call_id, result.status, result.output, result.value))


async def test_hooks_are_told_each_step_with_call_ids_and_arguments() -> None:
    """Audits need to know which call it was, not just which tool."""
    hooks = Noted()
    agent = agent_of(
        [tool_call("add", a=1, b=2, call_id="one")],
        [tool_call("add", a="x", b=2, call_id="two")],
        "done",
        tools=[add],
        instructions="Be brief.",
    )
    await run(agent, hooks=hooks, context="app")
    assert hooks.told == snapshot(
        [
            ("agent_start", "Driver", "app"),
            ("llm_start", "Be brief.", 1),
            ("llm_end", "tool_calls"),
            ("tool_start", "add", "one", {"a": 1, "b": 2}, ("one",)),
            ("tool_end", "one", "ok", "3", "3"),
            ("llm_start", "Be brief.", 3),
            ("llm_end", "tool_calls"),
            ("tool_start", "add", "two", {"a": "x", "b": 2}, ("two",)),
            (
                "tool_end",
                "two",
                "invalid_args",
                """\
Invalid arguments for tool 'add':
- a: expected an integer, got "x"\
""",
                None,
            ),
            ("llm_start", "Be brief.", 5),
            ("llm_end", "stop"),
            ("agent_end", "done", 3),
        ]
    )


class OfAgent(AgentHooks[Any]):
    def __init__(self, told: list[str]) -> None:
        self.told = told

    async def on_start(self, context: Any, agent: Any) -> None:
        self.told.append(f"start {agent.name}")

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        self.told.append(f"end {agent.name}: {output}")


async def test_hooks_of_the_run_hear_inner_agents_and_hooks_of_an_agent_only_it() -> None:
    """A run is one thing to whoever watches it; an agent's own hooks go where it goes."""
    told: list[str] = []
    inner = Agent("Inner", hooks=OfAgent(told))
    outer = Agent("Outer", tools=[inner.as_tool()])
    model = ScriptedModel({"Outer": [tool_call("inner", input="x"), "out"], "Inner": ["in"]})
    hooks = Noted()
    await run(outer, hooks=hooks, run_config=RunConfig(model=model))
    assert told == ["start Inner", "end Inner: in"]
    assert [one[:2] for one in hooks.told if one[0].startswith("agent")] == [
        ("agent_start", "Outer"),
        ("agent_start", "Inner"),
        ("agent_end", "in"),
        ("agent_end", "out"),
    ]


@pytest.mark.parametrize(
    "where", ["on_agent_start", "on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"]
)
async def test_a_hook_that_raises_ends_the_run_and_leaves_nothing(where: str) -> None:
    """Hooks may veto; what they leave must be a whole conversation all the same."""

    async def veto(*args: Any) -> None:
        raise PermissionError("not today")

    hooks = RunHooks[Any]()
    setattr(hooks, where, veto)
    gate = Gate()
    agent = agent_of([tool_call("add", a=1, b=2), tool_call("wait")], "x", tools=[add, gate.tool])
    with pytest.raises(PermissionError) as caught:
        await run(agent, hooks=hooks)
    assert_answered(caught.value.run_result)  # type: ignore[attr-defined]


# --- parallel calls


@pytest.mark.requirement("A59")
async def test_calls_of_a_turn_run_at_once_and_are_recorded_in_their_order() -> None:
    """The first to end is shown first; the history does not depend on speed."""
    one, two = Gate("one"), Gate("two")
    agent = agent_of(
        [tool_call("one", call_id="c1"), tool_call("two", call_id="c2")],
        "done",
        tools=[one.tool, two.tool],
    )
    result = Runner.run_streamed(agent, "go")
    events: list[Event] = []
    async for event in result.stream_events():
        events.append(event)
        if one.entered.is_set() and two.entered.is_set():
            two.open.set()
        if isinstance(event, RunItemStreamEvent) and event.name == "tool_output":
            one.open.set()
    check_events(events)
    shown = [
        event.item["call_id"]
        for event in events
        if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
    ]
    assert shown == ["c2", "c1"]
    assert [call_id for call_id, *_ in outputs(result)] == ["c1", "c2"]


@pytest.mark.parametrize("limit", [1, 2, None])
async def test_no_more_calls_run_at_once_than_may(limit: int | None) -> None:
    """Services behind tools break when everything comes at once."""
    running, most = 0, 0

    @function_tool
    async def work(number: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return str(number)

    calls = [tool_call("work", number=number) for number in range(5)]
    result = await run(
        agent_of(calls, "done", tools=[work]), run_config=RunConfig(max_parallel_tools=limit)
    )
    assert most == (limit or 5)
    assert [output for *_, output in outputs(result)] == ["0", "1", "2", "3", "4"]


async def test_an_exclusive_tool_is_a_barrier_within_its_turn() -> None:
    """What was asked before it has ended, and nothing after it has begun."""
    order: list[str] = []

    def made(name: str) -> Any:
        async def body() -> str:
            order.append(f"+{name}")
            await asyncio.sleep(0)
            order.append(f"-{name}")
            return name

        return function_tool(body, name_override=name)

    tools = [made("a"), made("b"), exclusive()(made("alone")), made("c"), made("d")]
    calls = [tool_call(tool.name) for tool in tools]
    await run(agent_of(calls, "done", tools=tools))
    assert order == ["+a", "+b", "-a", "-b", "+alone", "-alone", "+c", "+d", "-c", "-d"]


# --- calls that cannot be


async def test_unknown_tools_and_bad_arguments_are_answered_with_what_helps() -> None:
    """The model can correct itself only if it is told how."""
    agent = agent_of(
        [
            tool_call("ad", a=1, b=2, call_id="near"),
            tool_call("rocket", call_id="far"),
            tool_call("add", a=1, call_id="missing"),
            tool_call("add", "{not json", call_id="text"),
            tool_call("add", "[1, 2]", call_id="list"),
        ],
        "done",
        tools=[add, fails],
    )
    assert outputs(await run(agent)) == snapshot(
        [
            (
                "near",
                "invalid_args",
                "There is no tool 'ad'. Did you mean 'add'? Tools: add, fails.",
            ),
            ("far", "invalid_args", "There is no tool 'rocket'. Tools: add, fails."),
            (
                "missing",
                "invalid_args",
                """\
Invalid arguments for tool 'add':
- b: missing, expected an integer (required)\
""",
            ),
            (
                "text",
                "invalid_args",
                "Invalid arguments for tool 'add': not valid JSON (key must be a string at line 1 column 2). Send one JSON object with the tool's parameters.",
            ),
            (
                "list",
                "invalid_args",
                "Invalid arguments for tool 'add': expected one JSON object, got [1, 2]. Send one JSON object with the tool's parameters.",
            ),
        ]
    )


async def test_an_unknown_tool_may_end_the_run() -> None:
    """Evaluations want to know at once; siblings and history stay whole."""
    agent = agent_of([tool_call("add", a=1, b=2), tool_call("nothing")], tools=[add])
    with pytest.raises(ModelBehaviorError) as caught:
        await run(agent, run_config=RunConfig(unknown_tool="raise"))
    assert str(caught.value) == snapshot("Agent 'Driver': There is no tool 'nothing'. Tools: add.")
    assert_answered(caught.value.run_result)  # type: ignore[attr-defined]


async def test_many_tools_are_not_all_told() -> None:
    """An error must not cost more than the answer it stands for."""
    tools = [add.with_(name=f"tool_{number}") for number in range(200)]
    result = await run(agent_of(tool_call("x" * 5_000), "done", tools=tools))
    assert len(outputs(result)[0][2]) < 600
    assert "and 180 more" in outputs(result)[0][2]


@pytest.mark.requirement("A67")
async def test_a_failure_that_is_raised_stops_the_siblings_and_carries_the_result() -> None:
    """The run is over, but what was done is known, and nothing goes on."""
    gate = Gate()
    raising = fails.with_(failure_error_function=None)
    agent = agent_of(
        [tool_call("wait", call_id="w"), tool_call("fails", call_id="f")],
        tools=[gate.tool, raising],
    )
    with pytest.raises(ToolError, match="on purpose") as caught:
        await run(agent)
    result = caught.value.run_result  # type: ignore[attr-defined]
    assert isinstance(result, RunResult)
    assert outputs(result) == [
        ("w", "cancelled", "The call was cancelled before it had a result."),
        ("f", "tool_error", "The call failed: ToolError."),
    ]
    assert gate.ended == "cancelled"
    on = await run(agent_of("fine"), result.to_input_list())
    assert on.final_output == "fine"


async def test_what_a_raised_failure_says_stays_out_of_the_history() -> None:
    """It was meant for the program; the model is told only that there was one."""

    @function_tool(failure_error_function=None)
    async def leaks() -> str:
        raise RuntimeError("password in the text")

    with pytest.raises(RuntimeError) as caught:
        await run(agent_of(tool_call("leaks"), tools=[leaks]))
    assert "password" not in json.dumps(caught.value.run_result.to_input_list())  # type: ignore[attr-defined]


# --- what follows from tools


class Sum(BaseModel):
    total: int


@function_tool
async def total(a: int, b: int) -> Sum:
    """Add."""
    return Sum(total=a + b)


def _decide(context: Any, results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
    first = results[0]
    assert first.tool is not None
    assert (first.tool.name, first.run_item.status) == ("total", "ok")
    assert context.context == "app"
    return ToolsToFinalOutputResult(is_final_output=True, final_output=first.output)


async def _decide_later(context: Any, results: list[Any]) -> ToolsToFinalOutputResult:
    return _decide(context, results)


@pytest.mark.requirement("A74")
@pytest.mark.parametrize(
    "behavior",
    [
        "stop_on_first_tool",
        {"stop_at_tool_names": ["total"]},
        StopAtTools(stop_at_tool_names=["other", "total"]),
        MappingProxyType({"stop_at_tool_names": ("total",)}),
        _decide,
        _decide_later,
    ],
)
async def test_what_a_tool_returned_can_be_the_final_output(behavior: Any) -> None:
    """The object itself, not the text that the model would get."""
    agent = agent_of(tool_call("total", a=1, b=2), tools=[total], tool_use_behavior=behavior)
    result, events = await streamed(agent, context="app")
    assert result.final_output == Sum(total=3)
    assert result.final_output_as(Sum).total == 3
    assert_answered(result)
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.output == {"total": 3}


@pytest.mark.parametrize(
    "behavior",
    [
        "run_llm_again",
        {"stop_at_tool_names": ["other"]},
        lambda context, results: ToolsToFinalOutputResult(is_final_output=False),
    ],
)
async def test_otherwise_the_model_is_asked_again(behavior: Any) -> None:
    """A behavior that does not apply must not end the run."""
    agent = agent_of(tool_call("total", a=1, b=2), "3", tools=[total], tool_use_behavior=behavior)
    assert (await run(agent)).final_output == "3"


@pytest.mark.parametrize("behavior", ["stop_on_first_tool", {"stop_at_tool_names": ["fails"]}])
async def test_a_failed_call_never_ends_a_run(behavior: Any) -> None:
    """An error is no answer for the person who asked."""
    agent = agent_of(tool_call("fails"), "sorry", tools=[fails], tool_use_behavior=behavior)
    assert (await run(agent)).final_output == "sorry"


@pytest.mark.parametrize(
    "behavior", ["stop", 5, {}, {"stop_at_tool_names": "total"}, {"stop": []}, [], None]
)
def test_a_behavior_that_is_none_is_refused(behavior: Any) -> None:
    """A typing mistake must not silently mean the default."""
    with pytest.raises(UserError, match="tool_use_behavior of agent 'Driver'"):
        agent_of(tool_use_behavior=behavior)


async def test_a_behavior_function_has_to_decide() -> None:
    """`None` is what a forgotten `return` gives."""
    agent = agent_of(
        tool_call("add", a=1, b=2), tools=[add], tool_use_behavior=lambda context, results: None
    )
    with pytest.raises(UserError, match="ToolsToFinalOutputResult, got a NoneType"):
        await run(agent)


# --- limits


def _for_ever(request: ModelRequest) -> Any:
    return tool_call("add", a=len(request.input), b=1)


@pytest.mark.parametrize("turns", [1, 3])
async def test_a_model_that_never_ends_is_stopped_and_can_go_on(turns: int) -> None:
    """Money is spent per turn; what was done is not lost."""
    agent = agent_of(*[_for_ever] * turns, "done", tools=[add])
    with pytest.raises(MaxTurnsExceeded) as caught:
        await run(agent, max_turns=turns)
    assert isinstance(caught.value, RunError)
    result = caught.value.run_result
    assert len(result.raw_responses) == turns
    assert_answered(result)
    assert (await run(agent, result.to_state(), max_turns=turns + 1)).final_output == "done"


async def test_without_a_limit_a_run_goes_on() -> None:
    """Ten turns are a default, no law."""
    agent = agent_of(*[_for_ever] * 30, "done", tools=[add])
    assert (await run(agent, max_turns=None)).final_output == "done"
    with pytest.raises(MaxTurnsExceeded, match="within 10 turns"):
        await run(agent_of(*[_for_ever] * 30, tools=[add]))


@pytest.mark.requirement("S33")
async def test_calls_over_the_budget_are_denied_and_end_the_run() -> None:
    """None of the turn's calls runs: which ones would be arbitrary."""
    ran: list[int] = []

    @function_tool
    async def note(number: int) -> str:
        ran.append(number)
        return "noted"

    agent = agent_of(
        tool_call("note", number=1),
        [tool_call("note", number=2), tool_call("note", number=3)],
        tools=[note],
    )
    with pytest.raises(BudgetExceeded) as caught:
        await run(agent, run_config=RunConfig(max_tool_calls=2))
    assert ran == [1]
    assert str(caught.value) == snapshot(
        "Agent 'Driver' exceeded its limit of 2 tool calls. To allow more, raise RunConfig(max_tool_calls=...)."
    )
    assert [status for _, status, _ in outputs(caught.value.run_result)] == ["ok"] + ["denied"] * 2


@pytest.mark.requirement("S33")
async def test_tokens_over_the_budget_end_the_run_before_the_next_request() -> None:
    """The figure counts what inner runs used, too."""
    spent = Usage(requests=1, input_tokens=40, output_tokens=10)
    inner = Agent("Inner")
    agent = Agent("Outer", tools=[inner.as_tool()])
    model = ScriptedModel(
        {"Outer": [tool_call("inner", input="x"), "never"], "Inner": ["in"]}, usage=spent
    )
    with pytest.raises(BudgetExceeded) as caught:
        await run(agent, run_config=RunConfig(model=model, max_total_tokens=100))
    assert caught.value.run_result.usage.total_tokens == 100
    assert str(caught.value) == snapshot(
        "Agent 'Outer' has used 100 tokens of its limit of 100. To allow more, raise RunConfig(max_total_tokens=...)."
    )


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_the_deadline_of_a_run_holds_wherever_it_is(where: str) -> None:
    """A request that hangs costs as much as a tool that does."""
    gate = Gate()
    never = asyncio.Event()

    async def hangs(request: ModelRequest) -> str:
        await never.wait()
        return "never"

    agent = agent_of(hangs if where == "model" else tool_call("wait"), tools=[gate.tool])
    with pytest.raises(RunTimeoutError, match=r"took longer than 0\.05 s") as caught:
        await run(agent, run_config=RunConfig(timeout=0.05))
    assert isinstance(caught.value, TimeoutError)
    assert_answered(caught.value.run_result)
    assert where == "model" or gate.ended == "cancelled"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_parallel_tools": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"max_tool_calls": 0},
        {"max_total_tokens": -5},
        {"max_depth": -1},
        {"model_retries": -1},
        {"retry_backoff": -0.5},
        {"output_retries": -1},
        {"unknown_tool": "ignore"},
        {"max_parallel_tools": "3"},
        {"max_depth": None},
        {"model_retries": True},
        {"approve": 5},
        {"ask": "me"},
    ],
)
def test_a_configuration_that_cannot_be_is_refused(wrong: Any) -> None:
    """It would show itself as a run that hangs or never begins."""
    with pytest.raises(UserError, match=next(iter(wrong))):
        RunConfig(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_turns": "x"},
        {"max_turns": -1},
        {"run_config": {}},
        {"hooks": 5},
        {"session": "s"},
    ],
)
async def test_an_option_of_a_run_that_cannot_be_is_refused(wrong: Any) -> None:
    """The mistake must be told where it is made, in words of this library."""
    with pytest.raises(UserError, match=next(iter(wrong))):
        await Runner.run(Agent("Main", model=ScriptedModel(["x"])), "Go.", **wrong)


@pytest.mark.parametrize("wrong", [None, [], "[]", b"\xff", "{}", 5])
def test_what_is_no_state_is_refused(wrong: Any) -> None:
    """A state comes from a file or a queue, and those hold anything."""
    with pytest.raises(UserError, match="state"):
        RunState.from_json(wrong)
    if not isinstance(wrong, (str, bytes)):
        with pytest.raises(UserError, match="state"):
            RunState.from_dict(wrong)


async def test_what_an_inner_run_uses_counts_for_the_budget_of_the_outer() -> None:
    """Otherwise a sub-agent could spend what its caller may not."""
    usage = Usage(requests=1, input_tokens=60)
    noop = tool_call("noop")

    @function_tool
    def noop_() -> str:
        """Do nothing."""
        return ""

    inner_model = ScriptedModel([noop, noop, noop, "x"], usage=usage)
    inner = Agent("Inner", tools=[noop_.with_(name="noop")], model=inner_model)
    outer_model = ScriptedModel([tool_call("inner", input="?"), "x"], usage=usage)
    outer = Agent("Outer", tools=[inner.as_tool()], model=outer_model)
    with pytest.raises(BudgetExceeded, match="'Outer' has used 180 tokens of its limit of 150"):
        await Runner.run(outer, "Go.", run_config=RunConfig(max_total_tokens=150))


# --- settings


async def test_a_tool_choice_holds_until_a_tool_was_used() -> None:
    """A forced tool would be called for ever."""
    settings = ModelSettings(tool_choice="required", temperature=0.5)
    script = (tool_call("add", a=1, b=2), "3")
    for reset, chosen in ((True, ["required", None]), (False, ["required", "required"])):
        agent = agent_of(*script, tools=[add], model_settings=settings, reset_tool_choice=reset)
        await run(agent, run_config=RunConfig(model_settings=ModelSettings(max_tokens=7)))
        asked = [request.settings for request in model_of(agent).requests]
        assert [one.tool_choice for one in asked] == chosen
        assert all((one.temperature, one.max_tokens) == (0.5, 7) for one in asked)


async def test_instructions_may_be_a_function_of_the_run() -> None:
    """They are made anew for each request, from what is known then."""

    def plain(context: Any, agent: Agent[Any, Any]) -> str:
        return f"{agent.name} for {context.context}, {context.usage.requests}"

    async def later(context: Any, agent: Agent[Any, Any]) -> str:
        return plain(context, agent)

    for instructions in (plain, later):
        agent = agent_of(tool_call("add", a=1, b=2), "3", tools=[add], instructions=instructions)
        await run(agent, context="Ada")
        asked = [request.instructions for request in model_of(agent).requests]
        assert asked == ["Driver for Ada, 0", "Driver for Ada, 1"]
    with pytest.raises(UserError, match="expected text, got a int"):
        await run(agent_of("x", instructions=lambda context, agent: 5))


async def test_tools_are_offered_as_their_rules_say_in_each_turn() -> None:
    """What a person may do can change while a run goes on."""
    allowed = {"value": True}

    async def rule(context: Any, agent: Agent[Any, Any]) -> bool:
        assert agent.name == "Driver"
        return allowed["value"] and context.context == "app"

    def forbid(request: ModelRequest) -> Any:
        allowed["value"] = False
        return tool_call("add", a=1, b=2, call_id="first")

    agent = agent_of(
        forbid,
        tool_call("add", a=1, b=2, call_id="second"),
        "done",
        tools=[add.with_(is_enabled=rule), fails.with_(is_enabled=False), total],
    )
    result = await run(agent, context="app")
    offered = [[tool.name for tool in one.tools] for one in model_of(agent).requests]
    assert offered == [["add", "total"], ["total"], ["total"]]
    assert [status for _, status, _ in outputs(result)] == ["ok", "invalid_args"]


class Server:
    """Something that has tools."""

    def __init__(self, *batches: list[Any]) -> None:
        self.batches = list(batches)

    def get_tools(self) -> list[Any]:
        return self.batches.pop(0) if len(self.batches) > 1 else self.batches[0]


class LateServer(Server):
    async def get_tools(self) -> list[Any]:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        return super().get_tools()


@pytest.mark.parametrize("kind", [Server, LateServer])
async def test_servers_are_asked_before_each_turn(kind: type[Server]) -> None:
    """Their tools change while they run."""
    agent = agent_of(
        tool_call("add", a=1, b=2), "3", tools=[fails], mcp_servers=[kind([add], [add, total])]
    )
    result = await run(agent)
    offered = [[tool.name for tool in one.tools] for one in model_of(agent).requests]
    assert offered == [["fails", "add"], ["fails", "add", "total"]]
    assert outputs(result)[0][1:] == ("ok", "3")


async def test_wrong_tools_are_refused_where_they_are_given() -> None:
    """Each of these mistakes is made by everybody once."""

    async def bare() -> str:
        return ""

    wrong: dict[str, Callable[[], Any]] = {
        "function": lambda: Agent("A", tools=[bare]),  # pyright: ignore[reportArgumentType]
        "agent": lambda: Agent("A", tools=[Agent("B")]),  # pyright: ignore[reportArgumentType]
        "text": lambda: Agent("A", tools=["add"]),  # pyright: ignore[reportArgumentType]
        "twice": lambda: Agent("A", tools=[add, total.with_(name="add")]),
        "server": lambda: Agent("A", mcp_servers=[object()]),  # pyright: ignore[reportArgumentType]
        "name": lambda: Agent(""),
        "instructions": lambda: Agent("A", instructions=5),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        "output": lambda: Agent("A", output_type=object()),  # pyright: ignore[reportArgumentType]
    }
    told: dict[str, str] = {}
    for name, make in wrong.items():
        with pytest.raises(UserError) as caught:
            make()
        told[name] = str(caught.value)
    told["twice"] = told["twice"].split(": ")[0]  # the rest names places in files
    told["output"] = told["output"].split("object at")[0]
    told["function"] = told["function"].split("<function")[0]
    assert told == snapshot(
        {
            "function": "The tools of agent 'A' are not valid: expected function tools and hosted tools, got ",
            "agent": "The tools of agent 'A' are not valid: expected function tools and hosted tools, got <Agent 'B', model None, tools: none>. Use agent.as_tool().",
            "text": "The tools of agent 'A' are not valid: expected function tools and hosted tools, got 'add'. Create a tool with @function_tool, Agent.as_tool() or FunctionTool(...).",
            "twice": "Agent 'A' has two tools named 'add'",
            "server": "The mcp_servers of agent 'A' are not valid: expected objects with a method get_tools(), got a object.",
            "name": "Agent(name=...) is not valid: expected a non-empty string, got ''.",
            "instructions": "The instructions of agent 'A' are not valid: expected text or a function of (context, agent), got a int.",
            "output": "The output_type of agent 'A', <object ",
        }
    )
    server = Server([add])
    with pytest.raises(UserError, match="two tools named 'add'"):
        await run(agent_of("x", tools=[total.with_(name="add")], mcp_servers=[server]))


# --- models


class Provider(ModelProvider):
    def __init__(self, model: Any) -> None:
        self.asked: list[str | None] = []
        self.model = model

    def get_model(self, name: str | None) -> Any:
        self.asked.append(name)
        return self.model


@pytest.mark.requirement("A61")
async def test_a_provider_gets_the_name_as_the_agent_has_it() -> None:
    """Names mean what their provider says."""
    provider = Provider(ScriptedModel(["a", "b", "c", "d"]))
    config = RunConfig(model_provider=provider)
    await run(Agent("A", model="house/model:1"), run_config=config)
    await run(Agent("A"), run_config=config)
    await run(Agent("A", model="x"), run_config=RunConfig(model="y", model_provider=provider))
    assert provider.asked == ["house/model:1", None, "y"]
    own = ScriptedModel(["own"])
    assert (await run(Agent("A", model=own), run_config=config)).final_output == "own"
    with override_model(ScriptedModel(["forced"])):
        assert (await run(Agent("A", model=own), run_config=config)).final_output == "forced"
    assert provider.asked == ["house/model:1", None, "y"]


async def test_a_model_that_cannot_be_found_is_told_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This is the first error that anybody meets."""
    monkeypatch.delenv("AGENTS_TOOLS_MODEL", raising=False)
    told: dict[str, str] = {}
    config = RunConfig()
    for name, model in {
        "none": None,
        "unknown": "mystery-1",
        "prefix": "mystery/1",
        "empty": "openai/",
        "object": object(),
    }.items():
        with pytest.raises(UserError) as caught:
            await Runner.run(Agent("A", model=model), "go", run_config=config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        told[name] = str(caught.value)
    with pytest.raises(UserError) as caught:
        await run(Agent("A"), run_config=RunConfig(model_provider=Provider(5)))
    told["provider"] = str(caught.value)
    assert told == snapshot(
        {
            "none": "No model is configured. Set Agent(model=...), for example 'openai/gpt-5', RunConfig(model=...) or the environment variable AGENTS_TOOLS_MODEL. Names start with openai/, openai-chat/, anthropic/, pydantic-ai/, local/.",
            "unknown": "The model 'mystery-1' has no known provider: expected a name that starts with openai/, openai-chat/, anthropic/, pydantic-ai/, local/. For your own models, pass a ModelProvider: RunConfig(model_provider=...).",
            "prefix": "The model 'mystery/1' has no known provider: expected a name that starts with openai/, openai-chat/, anthropic/, pydantic-ai/, local/. For your own models, pass a ModelProvider: RunConfig(model_provider=...).",
            "empty": "The model name 'openai/' is incomplete. Add the model after 'openai/'.",
            "object": "Agent 'A': model= expects the name of a model, or a Model, got object.",
            "provider": "A int is not a model: expected an async method respond(request, emit). Pass a Model, or a name such as 'openai/gpt-5'.",
        }
    )
    with pytest.raises(UserError, match="mystery-1"):
        load_model("mystery-1")


class Answers:
    """A model that gives what it is told, whatever it is."""

    provider: str | None = None

    def __init__(self, *answers: Any, provider: str | None = None) -> None:
        self.answers = list(answers)
        self.provider = provider

    async def respond(self, request: ModelRequest, emit: Any) -> Any:
        return self.answers.pop(0)


@pytest.mark.parametrize("answer", [None, "text", {"items": []}])
async def test_a_model_has_to_give_a_response(answer: Any) -> None:
    """Models are written by users, too."""
    with pytest.raises(UserError, match=r"Answers\.respond returned a wrong value"):
        await run(Agent("A", model=Answers(answer)))


async def test_a_model_may_not_answer_for_tools() -> None:
    """The history would hold an answer that no tool gave."""
    given: list[Any] = [
        tool_call("add", a=1, b=2, call_id="c"),
        ToolCallOutputItem(call_id="c", output="7"),
    ]
    with pytest.raises(UserError, match="got a ToolCallOutputItem") as caught:
        await run(Agent("A", model=Answers(ModelResponse(items=given)), tools=[add]))
    assert_answered(caught.value.run_result)  # type: ignore[attr-defined]


@pytest.mark.parametrize("provider", ["openai_responses", "openai_chat", "anthropic"])
async def test_arguments_come_back_from_the_dialect_of_a_provider(provider: str) -> None:
    """A strict mode writes null where the tool has a default; bad JSON is the model's fault."""

    @function_tool
    async def greet(name: str, times: int = 2) -> str:
        return name * times

    model = Answers(
        ModelResponse(
            items=[
                tool_call("greet", '{"name": "a", "times": null}', call_id="c1"),
                tool_call("greet", '{"name": "a", "tim', call_id="c2"),
                tool_call("greet", "null", call_id="c3"),
                tool_call("greet", "", call_id="c4"),
            ]
        ),
        ModelResponse(items=[MessageOutputItem(text="done")]),
        provider=provider,
    )
    result = await run(Agent("A", model=model, tools=[greet]))
    assert [status for _, status, _ in outputs(result)] == ["ok"] + ["invalid_args"] * 3
    assert outputs(result)[0][2] == "aa"


async def test_a_tool_that_a_provider_cannot_be_told_of_ends_no_run() -> None:
    """It was not offered, but models call what they remember."""
    odd = FunctionTool(
        name="odd",
        description="Takes what no strict mode takes.",
        params_json_schema={"type": "object", "$ref": "#/$defs/nowhere"},
        on_invoke_tool=_odd,
    )
    model = Answers(
        ModelResponse(items=[tool_call("odd", call_id="c1")]),
        ModelResponse(items=[MessageOutputItem(text="done")]),
        provider="openai_responses",
    )
    result = await run(Agent("A", model=model, tools=[odd]))
    assert result.final_output == "done"
    assert_answered(result)


async def _odd(context: Any, arguments: str) -> str:
    return "odd"


# --- faults of providers

AGAIN = ModelError("overloaded", retryable=True, status=503)


async def test_what_may_pass_is_tried_again() -> None:
    """Most faults of providers last for seconds."""
    agent = agent_of(AGAIN, ModelError("cut", retryable=True, retry_after=0.001), "fine")
    result, events = await streamed(agent, run_config=RunConfig(retry_backoff=0))
    assert result.final_output == "fine"
    retries = [event.data for event in events if isinstance(event, RawResponseStreamEvent)]
    assert [(one["attempt"], one["delay"]) for one in retries if "attempt" in one] == [
        (1, 0.0),
        (2, 0.001),
    ]
    assert len(result.raw_responses) == 1


def _is_retry(event: Any) -> bool:
    return isinstance(event, RawResponseStreamEvent) and event.data["type"] == "agents_tools.retry"


@pytest.mark.parametrize(
    ("error", "retries", "asked"),
    [(AGAIN, 2, 3), (AGAIN, 0, 1), (ModelError("no key", status=401), 2, 1)],
)
async def test_what_does_not_pass_ends_the_run(error: Exception, retries: int, asked: int) -> None:
    """There is an end to patience, and no point in asking with a wrong key."""
    agent = agent_of(*[error] * 5)
    with pytest.raises(ModelError) as caught:
        await run(agent, run_config=RunConfig(retry_backoff=0, model_retries=retries))
    assert len(model_of(agent).requests) == asked
    assert caught.value.run_result.to_input_list() == [{"role": "user", "content": "go"}]  # type: ignore[attr-defined]


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    """The answer would come too late; better to say so now."""
    error = ModelError("later", retryable=True, retry_after=60)
    with pytest.raises(ModelError, match="later"):
        await run(agent_of(error), run_config=RunConfig(timeout=3))


async def test_a_tool_that_the_provider_refuses_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One bad schema among a hundred must not cost the session."""
    refused = ToolRefusedError("bad schema", tool_name="total", reason="no such type")
    agent = agent_of(refused, tool_call("add", a=1, b=2), "3", tools=[add, total])
    with caplog.at_level(logging.WARNING, "agents_tools"):
        result, events = await streamed(agent)
    assert result.final_output == "3"
    offered = [[tool.name for tool in one.tools] for one in model_of(agent).requests]
    assert offered == [["add", "total"], ["add"], ["add"]]
    told = "Tool 'total' is left out: the provider refuses it (no such type)."
    assert told in caplog.text
    assert [event.data for event in events if isinstance(event, NotifyStreamEvent)] == [told]


@pytest.mark.parametrize("name", ["total", "stranger"])
async def test_a_refusal_that_cannot_be_helped_ends_the_run(name: str) -> None:
    """Leaving out again what is out already would never end."""
    refused = ToolRefusedError("bad schema", tool_name=name, reason="no such type")
    with pytest.raises(ToolRefusedError):
        await run(agent_of(refused, refused, tools=[add, total]))


# --- answers that are not whole


async def test_calls_of_a_truncated_answer_never_run() -> None:
    """Arguments that happen to be valid JSON may still be half of what was meant."""
    cut = ModelResponse(
        items=[tool_call("add", a=1, b=2, call_id="c1"), tool_call("add", '{"a": 1', call_id="c2")],
        finish_reason="length",
    )
    agent = agent_of(cut, "done", tools=[add])
    result = await run(agent)
    assert [status for _, status, _ in outputs(result)] == ["invalid_args"] * 2
    assert "was cut off" in outputs(result)[0][2]


async def test_an_empty_reply_is_asked_for_once_more() -> None:
    """It is a hiccup, mostly; but two of them are an answer."""
    thought = ModelResponse(items=[ReasoningItem(text="hm")])
    agent = agent_of(ModelResponse(items=[]), "here")
    assert (await run(agent)).final_output == "here"
    result = await run(agent_of(thought, ModelResponse(items=[])))
    assert result.final_output == ""
    assert len(result.raw_responses) == 2


@pytest.mark.parametrize("ids", [["", ""], ["same", "same"]])
async def test_calls_without_an_id_of_their_own_get_one(ids: list[str]) -> None:
    """Small servers give none, or always the same."""
    given = [
        ToolCallItem(call_id=call_id, name="add", arguments=json.dumps({"a": 1, "b": number}))
        for number, call_id in enumerate(ids)
    ]
    agent = Agent(
        "A",
        model=Answers(
            ModelResponse(items=given),
            ModelResponse(items=given[:1]),
            ModelResponse(items=[MessageOutputItem(text="done")]),
        ),
        tools=[add],
    )
    result, _ = await streamed(agent)
    assert_answered(result)
    assert [output for *_, output in outputs(result)] == ["1", "2", "1"]


# --- structured output


class Place(BaseModel):
    name: str
    people: int


async def test_a_final_answer_of_a_type_is_read_and_may_be_corrected() -> None:
    """Models err in form before they err in substance."""
    agent = agent_of(
        "Paris, about two million",
        '{"name": "Paris"}',
        '```json\n{"name": "Paris", "people": 2}\n```',
        output_type=Place,
    )
    result, events = await streamed(agent)
    assert result.final_output == Place(name="Paris", people=2)
    told = [item["content"] for item in result.to_input_list() if item.get("role") == "user"]
    assert told == snapshot(
        [
            "go",
            """\
The answer does not match the schema:
- the answer: Invalid JSON: expected value at line 1 column 1; got "Paris, about two million"
Answer again, only with JSON that matches the schema.\
""",
            """\
The answer does not match the schema:
- people: Field required; got {"name": "Paris"}
Answer again, only with JSON that matches the schema.\
""",
        ]
    )
    assert names_of(events).count("output_refused") == 2
    output = model_of(agent).requests[0].output
    assert output is not None
    assert (output.name, output.strict) == ("Place", True)
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.output == {"name": "Paris", "people": 2}


async def test_an_answer_that_is_never_of_its_type_ends_the_run() -> None:
    """Corrections cost turns; there is a limit."""
    with pytest.raises(ModelBehaviorError) as caught:
        await run(agent_of(*["no"] * 5, output_type=Place))
    assert len(caught.value.run_result.raw_responses) == 3  # type: ignore[attr-defined]
    agent = agent_of(*["no"] * 5, output_type=Place)
    with pytest.raises(ModelBehaviorError):
        await run(agent, run_config=RunConfig(output_retries=0))
    assert len(model_of(agent).requests) == 1


async def test_a_refusal_is_no_answer_of_a_type() -> None:
    """The application asked for an object and must not get an apology for one."""
    said = [MessageOutputItem(refusal="I may not")]
    refusal = ModelResponse(items=said, finish_reason="refusal")
    for answer in (refusal, ModelResponse(items=said)):  # not every provider says why it stopped
        with pytest.raises(ModelBehaviorError, match="refused to answer: I may not"):
            await run(agent_of(answer, output_type=Place))
    assert (await run(agent_of(refusal))).final_output == "I may not"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (str, "plain", "plain"),
        (int, '{"response": 3}', 3),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Place | None, '{"response": null}', None),
    ],
)
async def test_any_type_with_a_json_form_may_be_asked_for(kind: Any, text: str, value: Any) -> None:
    """Values that are no objects travel in one."""
    assert (await run(agent_of(text, output_type=kind))).final_output == value


# --- early start


class Slow:
    """A model that writes one call, waits for a sign, and then writes the rest."""

    provider = None

    def __init__(self, call: ToolCallItem, seen: asyncio.Event, *then: Any) -> None:
        self.call = call
        self.seen = seen
        self.then = list(then)

    async def respond(self, request: ModelRequest, emit: Any) -> Any:
        if any(isinstance(item, ToolCallOutputItem) for item in request.input):
            return ModelResponse(items=[MessageOutputItem(text="done")])
        step = self.then.pop(0)
        if request.on_call is not None:
            request.on_call(self.call)
            async with asyncio.timeout(WITHIN):
                await self.seen.wait()
        if isinstance(step, Exception):
            raise step
        return ModelResponse(items=step, finish_reason="tool_calls")


EARLY = RunConfig(start_calls_early=True, retry_backoff=0)


async def test_harmless_calls_begin_while_the_model_still_writes() -> None:
    """The time of the answer's rest is won; events show that the tool ran before it came."""
    gate = Gate("look", annotations=READ_ONLY)
    call = tool_call("look", call_id="c1")
    later = tool_call("add", a=1, b=2, call_id="c2")
    agent = Agent("A", model=Slow(call, gate.entered, [call, later]), tools=[gate.tool, add])
    gate.open.set()
    result, events = await streamed(agent, run_config=EARLY)
    assert outputs(result) == [("c1", "ok", "look is over"), ("c2", "ok", "3")]
    started = _first(events, lambda one: isinstance(one, ToolStreamStartEvent))
    called = _first(events, lambda one: getattr(one, "name", "") == "tool_called")
    assert started < called
    plain = await run(
        Agent("A", model=Slow(call, gate.entered, [call, later]), tools=[gate.tool, add])
    )
    assert plain.to_input_list() == result.to_input_list()


def _first(events: Sequence[Event], wanted: Callable[[Any], bool]) -> int:
    return next(place for place, event in enumerate(events) if wanted(event))


@pytest.mark.parametrize("second", ["again", "other"])
async def test_an_early_call_of_a_failed_answer_is_dropped(second: str) -> None:
    """The answer was never given; the conversation must not know of its calls."""
    gate = Gate("look", annotations=READ_ONLY)
    call = tool_call("look", call_id="c1")
    rest = [call] if second == "again" else [tool_call("add", a=1, b=2, call_id="c9")]
    model = Slow(call, gate.entered, AGAIN, rest)
    ended: list[str] = []

    class Opens(RunHooks[Any]):
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            ended.append(gate.ended)
            gate.open.set()

    agent = Agent("A", model=model, tools=[gate.tool, add])
    result, events = await streamed(agent, run_config=EARLY, hooks=Opens())
    assert ended[0] == "cancelled"
    assert_answered(result)
    assert [status for _, status, _ in outputs(result)] == ["ok"]
    assert names_of(events).count("tool_called") == 1
    starts = sum(isinstance(event, ToolStreamStartEvent) for event in events)
    ends = [event.status for event in events if isinstance(event, ToolStreamEndEvent)]
    assert starts == len(ends) > 1
    assert ends[0] == "cancelled"


async def _not_early(tool: FunctionTool[..., Any], entered: Callable[[], bool]) -> None:
    call = tool_call(tool.name, call_id="c1")
    before: list[bool] = []

    async def respond(request: ModelRequest, emit: Any) -> ModelResponse:
        if request.input[-1] != MessageInputItem(content="go"):
            return ModelResponse(items=[MessageOutputItem(text="done")])
        assert request.on_call is not None
        request.on_call(call)
        for _ in range(5):
            await asyncio.sleep(0)
        before.append(entered())
        return ModelResponse(items=[call])

    model = Answers()
    model.respond = respond  # type: ignore[method-assign]
    result = await run(Agent("A", model=model, tools=[tool]), run_config=EARLY)
    assert before == [False]
    assert entered()
    assert_answered(result)


async def test_what_may_do_harm_or_has_to_be_alone_begins_only_when_its_turn_has_come() -> None:
    """A call may be taken back until the answer is whole."""
    for hints, change in (
        (None, None),
        (ToolAnnotations(idempotentHint=True), None),
        (READ_ONLY, exclusive()),
    ):
        gate = Gate("look", annotations=hints)
        gate.open.set()
        tool = gate.tool if change is None else change(gate.tool)
        await _not_early(tool, gate.entered.is_set)


# --- sessions and event streams


@dataclass
class Memory:
    """A session in memory, which can be slow or broken."""

    events: list[Event] = field(default_factory=list[Event])
    appended: list[int] = field(default_factory=list[int])
    hold: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None

    async def read(self) -> list[Event]:
        return list(self.events)

    async def append(self, events: Sequence[Event], /) -> None:
        self.reached.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        self.appended.append(len(events))
        self.events.extend(events)


async def test_a_session_carries_the_conversation_from_run_to_run() -> None:
    """The application gives only what is new."""
    session = Memory()
    first = await run(agent_of(tool_call("add", a=1, b=2), "3", tools=[add]), session=session)
    agent = agent_of("still 3", tools=[add])
    second, events = await streamed(agent, "sure?", session=session)
    asked = [item.to_dict() for item in model_of(agent).requests[0].input]
    assert asked == [*first.to_input_list(), {"role": "user", "content": "sure?"}]
    assert second.to_input_list()[:-1] == asked
    assert [item.to_dict() for item in second.new_items] == second.to_input_list()[-1:]
    assert sum(event.durable for event in events) == 2  # what was before is not said again
    wire = [event.to_dict() for event in session.events]
    assert len(wire) == len(second.to_input_list())
    assert session.appended == [2, 1, 1, 2]


async def test_a_session_that_was_cut_off_answers_its_open_calls_first() -> None:
    """Nobody knows whether they took effect; the model must not believe that they did not."""
    session = Memory()
    await run(agent_of(tool_call("add", a=1, b=2), "3", tools=[add]), session=session)
    del session.events[2:]  # the program ended while the call ran
    result = await run(agent_of("I see", tools=[add]), "well?", session=session)
    kinds = [item.get("type", item.get("role")) for item in result.to_input_list()]
    assert kinds == ["user", "function_call", "function_call_output", "user", "message"]
    assert outputs(result)[0][1] == "lost"
    again = agent_of("bye", tools=[add])
    assert (await run(again, "bye", session=session)).final_output == "bye"
    assert len(outputs(await run(agent_of("x"), "x", session=session))) == 1


async def test_a_session_that_cannot_keep_a_call_keeps_it_from_running() -> None:
    """What runs must be known before it does, or a restart would run it again."""
    gate = Gate()
    session = Memory(error=OSError("disk full"))
    with pytest.raises(OSError, match="disk full") as caught:
        await run(agent_of(tool_call("wait"), tools=[gate.tool]), session=session)
    assert not gate.entered.is_set()
    assert_answered(caught.value.run_result)  # type: ignore[attr-defined]


async def test_a_cancel_while_the_session_writes_leaves_no_call_without_an_answer() -> None:
    """Wherever a run is stopped, its history is one that providers take."""
    session = Memory(hold=asyncio.Event())
    result = Runner.run_streamed(
        agent_of(tool_call("add", a=1, b=2), tools=[add]), "go", session=session
    )
    await asyncio.wait_for(session.reached.wait(), WITHIN)
    result.cancel()
    session.hold = None
    events = [event async for event in result.stream_events()]
    check_events(events)
    assert_answered(result)


class Published:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        self.events.append(event)


async def test_an_event_stream_gets_what_a_reader_gets() -> None:
    """It may stand in for one, in another process."""
    published = Published()
    agent = agent_of(tool_call("add", a=1, b=2), "3", tools=[add])
    config = RunConfig(event_stream=published)
    _, events = await streamed(agent, run_config=config)
    assert [event.to_dict() for event in published.events] == [one.to_dict() for one in events]
    published.events.clear()
    await run(agent_of("x"), run_config=config)
    check_events(published.events)
    assert isinstance(published.events[-1], RunFinishedEvent)


async def test_an_event_stream_that_raises_costs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever watches never breaks a run."""

    class Broken:
        def publish(self, event: Event) -> None:
            raise RuntimeError("full")

    result = await run(agent_of("x"), run_config=RunConfig(event_stream=Broken()))
    assert result.final_output == "x"
    assert "An event listener failed" in caplog.text


async def test_a_run_of_many_events_without_a_reader_ends_and_keeps_what_counts() -> None:
    """Nobody is obliged to read; pieces of text may go, items may not."""
    model = ScriptedModel(["word " * 20_000], piece=4)
    result = Runner.run_streamed(Agent("A", model=model), "go")
    await asyncio.wait_for(result.wait(), WITHIN)
    events = [event async for event in result.stream_events()]
    check_events(events)
    assert names_of(events) == ["message_output_created"]
    assert len(events) < 20_000


# --- ends


async def _at_stage(stage: str) -> tuple[Any, Gate]:
    """Begin a run and wait until it is in a stage."""
    gate = Gate()
    reached, never = asyncio.Event(), asyncio.Event()

    async def hangs(*args: Any) -> Any:
        reached.set()
        await never.wait()

    hooks = RunHooks[Any]()
    steps: list[Any] = [[tool_call("wait"), tool_call("add", a=1, b=2)], "done"]
    more: dict[str, Any] = {}
    if stage in {"on_agent_start", "on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"}:
        setattr(hooks, stage, hangs)
    elif stage == "model":
        steps.insert(0, hangs)
    elif stage == "retry":
        steps.insert(0, ModelError("wait", retryable=True, retry_after=60))
    elif stage == "instructions":
        more["instructions"] = hangs
    elif stage == "decide":
        more["tool_use_behavior"] = hangs
    if stage in {"decide", "on_tool_end", "on_agent_end"}:
        gate.open.set()
    if stage == "on_agent_end":
        setattr(hooks, stage, hangs)
    agent = agent_of(*steps, tools=[gate.tool, add], **more)
    result = Runner.run_streamed(agent, "go", hooks=hooks)
    if stage == "tool":
        await asyncio.wait_for(gate.entered.wait(), WITHIN)
    elif stage == "retry":
        stream = result.stream_events()
        async with asyncio.timeout(WITHIN):
            async for event in stream:
                if _is_retry(event):
                    break
    elif stage != "begin":
        await asyncio.wait_for(reached.wait(), WITHIN)
    return result, gate


STAGES = [
    "begin",
    "on_agent_start",
    "instructions",
    "on_llm_start",
    "model",
    "retry",
    "on_llm_end",
    "on_tool_start",
    "tool",
    "on_tool_end",
    "decide",
    "on_agent_end",
]


@pytest.mark.parametrize("way", ["cancel", "leave", "drop", "twice"])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_run_can_be_stopped_at_any_stage(stage: str, way: str) -> None:
    """Nothing goes on, each call has an answer, and the stream ends."""
    before = asyncio.all_tasks()
    result, gate = await _at_stage(stage)
    if way == "cancel":
        result.cancel()
    elif way == "twice":
        result.cancel()
        await asyncio.sleep(0)
        result.cancel()
    elif way == "leave":
        async with result:
            pass
    elif way == "drop":
        del result
        gc.collect()
        await comes(lambda: asyncio.all_tasks() <= before)
        assert gate.ended in {"", "cancelled", "ok"}
        return
    async with asyncio.timeout(WITHIN):
        events = [event async for event in result.stream_events()]
    assert result.is_complete
    assert result.final_output is None
    assert asyncio.all_tasks() <= before
    if stage not in {"begin", "retry"} and way != "leave":
        check_events(events)
        last = events[-1]
        assert isinstance(last, RunFinishedEvent)
        assert last.status == "cancelled"
    assert_answered(result)
    with pytest.raises(asyncio.CancelledError):
        await result.wait()


async def test_a_second_cancel_during_the_cleanup_of_a_tool_still_records_an_answer() -> None:
    """People press Ctrl-C twice; servers cancel and then close."""
    entered, cleaning, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @function_tool
    async def slow_to_end() -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    continue
        return "never"

    result = Runner.run_streamed(agent_of(tool_call("slow_to_end"), tools=[slow_to_end]), "go")
    await asyncio.wait_for(entered.wait(), WITHIN)
    for _ in range(3):
        result.cancel()
        await asyncio.wait_for(cleaning.wait(), WITHIN)
        await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(WITHIN):
        events = [event async for event in result.stream_events()]
    assert_answered(result)
    check_events(events)
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.status == "cancelled"


async def test_a_tool_that_will_not_end_costs_its_grace_once() -> None:
    """Two seconds are promised, not two seconds for each place that waits."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        entered.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        return "never"

    loop = asyncio.get_running_loop()
    result = Runner.run_streamed(agent_of(tool_call("stubborn"), tools=[stubborn]), "go")
    await asyncio.wait_for(entered.wait(), WITHIN)
    began = loop.time()
    result.cancel()
    async with asyncio.timeout(WITHIN):
        async for _ in result.stream_events():
            pass
    took = loop.time() - began
    go_on.set()
    assert_answered(result)
    assert took < 2 * GRACE


async def _left(*, read: bool = False, error: Exception | None = None) -> None:
    async with Runner.run_streamed(agent_of(ModelError("no key")), "go") as result:
        if read:
            await _read(result, [])
        await comes(lambda: result.is_complete)
        if error is not None:
            raise error


async def test_leaving_the_block_raises_what_nobody_was_told() -> None:
    """An error must not be lost because its reader left early."""
    with pytest.raises(ModelError, match="no key"):
        await _left()
    with pytest.raises(ModelError, match="no key"):
        await _left(read=True)
    with pytest.raises(KeyError):  # what happens in the block comes first
        await _left(error=KeyError())
    async with Runner.run_streamed(agent_of("x"), "go") as result:
        assert [event async for event in result.stream_events()]
    assert result.final_output == "x"


async def test_a_waiter_that_is_cancelled_does_not_stop_the_run() -> None:
    """Several may wait for one run."""
    gate = Gate()
    result = Runner.run_streamed(agent_of(tool_call("wait"), "done", tools=[gate.tool]), "go")
    await asyncio.wait_for(gate.entered.wait(), WITHIN)
    waiter = asyncio.ensure_future(result.wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    gate.open.set()
    assert (await asyncio.wait_for(result.wait(), WITHIN)).final_output == "done"


async def test_a_plain_run_that_is_cancelled_stops_its_tools() -> None:
    """A server that drops a request must not pay for its end."""
    gate = Gate()
    task = asyncio.ensure_future(Runner.run(agent_of(tool_call("wait"), tools=[gate.tool]), "go"))
    await asyncio.wait_for(gate.entered.wait(), WITHIN)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.ended == "cancelled"


# --- states of runs that go on


@pytest.mark.requirement("F42")
async def test_f42_a_state_taken_while_calls_run_knows_which_have_ended() -> None:
    """After a crash what ended keeps its answer; what ran is run again only if harmless."""
    slow, same = Gate("slow"), Gate("same", annotations=ToolAnnotations(idempotentHint=True))
    quick = Gate("quick")
    quick.open.set()
    gates = [slow, quick, same]
    calls = [tool_call(gate.tool.name, call_id=f"c_{gate.tool.name}") for gate in gates]
    tools = [gate.tool for gate in gates]
    run = Runner.run_streamed(agent_of(calls, tools=tools), "go")
    async for event in run.stream_events():
        if isinstance(event, RunItemStreamEvent) and event.name == "tool_output":
            break
    state = RunState.from_json(run.to_state().to_json())
    assert state.started == ["c_slow", "c_same"]
    async with run:
        pass
    for gate in gates:
        gate.entered.clear()
        gate.open.set()
    result = await run_state(agent_of("done", tools=tools), state)
    assert [(call_id, status) for call_id, status, _ in outputs(result)] == [
        ("c_slow", "lost"),
        ("c_quick", "ok"),
        ("c_same", "ok"),
    ]
    assert [gate.entered.is_set() for gate in gates] == [False, False, True]


async def run_state(agent: Agent[Any, Any], state: RunState) -> RunResult:
    result = await run(agent, state)
    assert_answered(result)
    return result


async def test_what_was_said_after_an_open_call_is_not_lost_when_it_is_stopped() -> None:
    """The person's words belong to the conversation, however its calls end."""
    gate = Gate()
    open_call = tool_call("wait", call_id="c1").to_dict()
    given = [{"role": "user", "content": "one"}, open_call, {"role": "user", "content": "two"}]
    result = Runner.run_streamed(agent_of(tools=[gate.tool]), given)
    await asyncio.wait_for(gate.entered.wait(), WITHIN)
    assert [item.to_dict() for item in result.to_state().history][2:] == given[2:]
    async with result:
        pass
    history = result.to_input_list()
    assert [item.get("type", item.get("content")) for item in history] == [
        "one",
        "function_call",
        "function_call_output",
        "two",
    ]


# --- values


async def test_outputs_keep_the_object_and_the_text() -> None:
    """Programs read objects, models read text."""
    result = await run(
        agent_of([tool_call("total", a=1, b=2)], "3", tools=[truncate(100)(timeout(5)(total))])
    )
    items = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert items[0].value == Sum(total=3)
    assert items[0].output == '{"total":3}'
    assert item_from_dict(items[0].to_dict()) == items[0]


async def test_a_tool_sees_the_run_that_it_is_called_in() -> None:
    """Ids in logs must lead from the tool to the run."""
    seen: list[ToolContext[Any]] = []

    @function_tool
    async def look(context: ToolContext[Any]) -> str:
        seen.append(context)
        return "seen"

    agent = agent_of(tool_call("look", call_id="c1"), "done", tools=[look])
    result = await run(agent, context={"user": 1})
    context = seen[0]
    assert (context.tool_call_id, context.path, context.run_id) == ("c1", ("c1",), result.run_id)
    assert context.agent is agent
    assert context.context is result.context
    assert context.usage is result.usage


@pytest.mark.requirement("A71")
def test_agents_say_what_they_are() -> None:
    """A repr is what logs and debuggers show."""
    agent = Agent("Adder", tools=[add.with_(name=f"t{n}") for n in range(7)], model="openai/x")
    assert repr(agent) == snapshot(
        "<Agent 'Adder', model 'openai/x', tools: t0, t1, t2, t3, t4, …>"
    )
    clone = agent.clone(name="Other", tools=[add])
    assert (clone.name, clone.tools, agent.name, len(agent.tools)) == ("Other", [add], "Adder", 7)
