"""Test runs of agents: model requests, tool calls, the recorded history and how runs end."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

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
from agents_tools.agents.model import text_delta
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.content import MessageInputItem, item_from_dict
from agents_tools.errors import (
    BudgetExceeded,
    EventStoreError,
    ModelError,
    RunError,
    RunTimeoutError,
    ToolRefusedError,
)
from agents_tools.persistence import MemoryRunStore, SQLiteRunStore
from agents_tools.policies import exclusive, timeout, truncate
from agents_tools.testing import ScriptedModel, check_events, override_model, tool_call
from tests.waiting import comes
from tests.watched_storage import FailingWrites, watched_store

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
    """A tool that signals when it is entered and left, and waits until `open` is set."""

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


async def run(agent: Agent[Any, Any], input: Any = "go", **more: Any) -> RunResult:
    return await asyncio.wait_for(Runner.run(agent, input, **more), WITHIN)


async def run_streamed(
    agent: Agent[Any, Any], input: Any = "go", **more: Any
) -> tuple[Any, list[Event]]:
    """Run to the end, collect the events, and check them against the laws of events."""
    result = Runner.run_streamed(agent, input, **more)
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


def assert_each_call_has_one_output(result: Any) -> None:
    """Check that each call has exactly one output, and that it comes after the call."""
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


async def test_a_run_calls_tools_and_asks_the_model_again() -> None:
    """Each request contains the whole conversation so far."""
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
    assert result.usage == Usage(requests=2, tool_calls=1)
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


async def test_streamed_plain_and_sync_runs_have_the_same_result() -> None:
    """Streaming must not change the behavior of a run."""
    script = ([tool_call("add", a=1, b=2), tool_call("nothing")], "done")
    plain = await run(agent_of(*script, tools=[add]))
    watched, events = await run_streamed(agent_of(*script, tools=[add]))
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
    history_events = [event for event in events if event.durable and not event.path]
    assert len(history_events) == len(history)
    assert names_of(events) == snapshot(
        ["tool_called", "tool_called", "tool_output", "tool_output", "message_output_created"]
    )


@pytest.mark.requirement("A36", "A38", "A39", "A56")
async def test_progress_of_a_streaming_tool_is_streamed_but_not_recorded() -> None:
    """The history equals that of a plain tool that returns the last value, streamed or not."""

    @streaming_tool(name_override="add")
    async def loud(a: int, b: int) -> AsyncIterator[NotifyStreamEvent | str]:
        yield NotifyStreamEvent("adding")
        yield str(a + b)

    script = (tool_call("add", a=1, b=2), "It is 3.")
    plain = await run(agent_of(*script, tools=[add]))
    agent = agent_of(*script, tools=[loud])
    quiet = await run(agent)
    watched, events = await run_streamed(agent_of(*script, tools=[loud]))
    assert quiet.to_input_list() == watched.to_input_list() == plain.to_input_list()
    assert [one.data for one in events if isinstance(one, NotifyStreamEvent)] == ["adding"]
    (item,) = (one for one in watched.new_items if isinstance(one, ToolCallOutputItem))
    assert item.output == "3"
    assert model_of(agent).requests[1].input[-1] == item


async def test_many_parallel_streaming_tools_lose_no_event() -> None:
    """Together they fill the queue of the run, so each of them has to wait for the reader."""

    @streaming_tool
    async def count(first: int) -> AsyncIterator[NotifyStreamEvent | str]:
        for number in range(first, first + 20):
            yield NotifyStreamEvent(str(number))
        yield "done"

    calls = [tool_call("count", first=first) for first in range(0, 1_200, 20)]
    _, events = await run_streamed(agent_of(calls, "done", tools=[count]))
    numbers = [int(event.data) for event in events if isinstance(event, NotifyStreamEvent)]
    assert sorted(numbers) == list(range(1_200))


@pytest.mark.requirement("A54")
async def test_a_stream_can_be_read_in_part_read_again_and_awaited() -> None:
    """A user interface may leave its loop early; the run must still finish."""
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


async def test_a_failed_stream_raises_its_error_once_after_its_events() -> None:
    """The reader must see the events that led to the error, and must not get the error twice."""
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


def test_streaming_needs_a_running_event_loop() -> None:
    """Nothing could run it otherwise, and the error of asyncio does not name a remedy."""
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
async def test_inputs_can_be_text_items_or_json(given: Any, count: int) -> None:
    """Applications store conversations in different forms."""
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


async def test_invalid_inputs_are_refused_before_anything_runs() -> None:
    """The caller made the mistake, so the error must be raised at the call."""
    errors: dict[str, str] = {}
    for name, given in BAD_INPUTS.items():
        with pytest.raises(UserError) as caught:
            await Runner.run(agent_of(), given)
        with pytest.raises(UserError, match=r"input|text or a list"):
            Runner.run_streamed(agent_of(), given)
        errors[name] = str(caught.value)
    assert errors == snapshot(
        {
            "number": 'input: expected text or a list of items such as {"role": "user", "content": "…"}, got an int.',
            "mapping": 'input: expected text or a list of items such as {"role": "user", "content": "…"}, got a dict.',
            "bytes": "input[0]: expected an item or its JSON object, got an int.",
            "none in list": "input[0]: expected an item or its JSON object, got null.",
            "role": "input[0].role: expected one of user, system, developer, assistant; got 'robot'.",
            "no content": "input[0].content is missing: expected text or a list of content blocks.",
            "extra": "input[0]: unknown field 'name'. The fields are type, role, content, call_id.",
            "type": "input[0].type: expected one of message, reasoning, function_call, function_call_output, got 'video'.",
            "no arguments": "input[0].arguments: expected text, got nothing.",
            "status": "input[0].output is missing: expected text or a list of content blocks.",
        }
    )


@pytest.mark.parametrize("agent", ["Driver", None, add])
async def test_an_object_that_is_not_an_agent_is_refused(agent: Any) -> None:
    """The first argument is easily mistaken."""
    with pytest.raises(UserError, match="expected an Agent, got a"):
        await Runner.run(agent, "go")


async def test_an_open_call_in_the_input_is_answered_first() -> None:
    """No provider accepts a conversation in which a call has no output."""
    agent = agent_of("done", tools=[add])
    items = [
        {"role": "user", "content": "1 + 2?"},
        tool_call("add", a=1, b=2, call_id="early").to_dict(),
        {"role": "user", "content": "well?"},
    ]
    result, events = await run_streamed(agent, items)
    kinds = [item.get("type", item.get("role")) for item in result.to_input_list()]
    assert kinds == ["user", "function_call", "function_call_output", "user", "message"]
    assert outputs(result) == [("early", "ok", "3")]
    assert isinstance(events[-1], RunFinishedEvent)


# --- hooks


class RecordingHooks(RunHooks[Any]):
    """Record the arguments of each hook."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self.calls.append(("agent_start", agent.name, context.context))

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self.calls.append(("agent_end", output, context.usage.requests))

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str, input_items: Any
    ) -> None:
        self.calls.append(("llm_start", system_prompt, len(input_items)))

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        self.calls.append(("llm_end", response.finish_reason))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self.calls.append(
            ("tool_start", tool.name, context.tool_call_id, dict(context.arguments), context.path)
        )

    async def on_tool_end(
        self, context: Any, agent: Any, tool: Any, result: ToolCallOutputItem
    ) -> None:
        self.calls.append(("tool_end", result.call_id, result.status, result.output, result.value))


async def test_hooks_receive_each_step_with_call_ids_and_arguments() -> None:
    """An audit log needs to identify the call, not only the tool."""
    hooks = RecordingHooks()
    agent = agent_of(
        [tool_call("add", a=1, b=2, call_id="one")],
        [tool_call("add", a="x", b=2, call_id="two")],
        "done",
        tools=[add],
        instructions="Be brief.",
    )
    await run(agent, hooks=hooks, context="app")
    assert hooks.calls == snapshot(
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


class RecordingAgentHooks(AgentHooks[Any]):
    def __init__(self, lines: list[str]) -> None:
        self.calls = lines

    async def on_start(self, context: Any, agent: Any) -> None:
        self.calls.append(f"start {agent.name}")

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        self.calls.append(f"end {agent.name}: {output}")


async def test_hooks_of_a_run_see_inner_agents_and_hooks_of_an_agent_see_only_that_agent() -> None:
    """Hooks of a run observe the run as a whole; the hooks of an agent belong to the agent."""
    lines: list[str] = []
    inner = Agent("Inner", hooks=RecordingAgentHooks(lines))
    outer = Agent("Outer", tools=[inner.as_tool()])
    model = ScriptedModel({"Outer": [tool_call("inner", input="x"), "out"], "Inner": ["in"]})
    hooks = RecordingHooks()
    await run(outer, hooks=hooks, run_config=RunConfig(model=model))
    assert lines == ["start Inner", "end Inner: in"]
    assert [one[:2] for one in hooks.calls if one[0].startswith("agent")] == [
        ("agent_start", "Outer"),
        ("agent_start", "Inner"),
        ("agent_end", "in"),
        ("agent_end", "out"),
    ]


@pytest.mark.parametrize(
    "where", ["on_agent_start", "on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"]
)
async def test_a_hook_that_raises_ends_the_run_with_a_complete_history(where: str) -> None:
    """A hook can veto a step; each call in the history must still have an output."""

    async def veto(*args: Any) -> None:
        raise PermissionError("not today")

    hooks = RunHooks[Any]()
    setattr(hooks, where, veto)
    gate = Gate()
    agent = agent_of([tool_call("add", a=1, b=2), tool_call("wait")], "x", tools=[add, gate.tool])
    with pytest.raises(PermissionError) as caught:
        await run(agent, hooks=hooks)
    assert_each_call_has_one_output(caught.value.run_result)  # type: ignore[attr-defined]


# --- parallel calls


@pytest.mark.requirement("A59")
async def test_parallel_calls_are_recorded_in_the_order_of_the_request() -> None:
    """Outputs are streamed as they arrive; the history does not depend on their speed."""
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
async def test_the_number_of_concurrent_calls_is_limited(limit: int | None) -> None:
    """Services behind tools can fail under too many concurrent calls."""
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


async def test_an_exclusive_tool_runs_alone_within_its_turn() -> None:
    """Earlier calls have ended before it starts, and later calls start after it ends."""
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


# --- invalid calls


async def test_unknown_tools_and_invalid_arguments_are_answered_with_a_remedy() -> None:
    """The model can only correct itself if the error says how."""
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


async def test_an_unknown_tool_can_end_the_run() -> None:
    """Evaluations want to fail at once; the other calls and the history stay complete."""
    agent = agent_of([tool_call("add", a=1, b=2), tool_call("nothing")], tools=[add])
    with pytest.raises(ModelBehaviorError) as caught:
        await run(agent, run_config=RunConfig(unknown_tool="raise"))
    assert str(caught.value) == snapshot("Agent 'Driver': There is no tool 'nothing'. Tools: add.")
    assert_each_call_has_one_output(caught.value.run_result)  # type: ignore[attr-defined]


async def test_the_error_for_an_unknown_tool_lists_only_some_of_many_tools() -> None:
    """An error must not cost more tokens than the output it replaces."""
    tools = [add.with_(name=f"tool_{number}") for number in range(200)]
    result = await run(agent_of(tool_call("x" * 5_000), "done", tools=tools))
    assert len(outputs(result)[0][2]) < 600
    assert "and 180 more" in outputs(result)[0][2]


@pytest.mark.requirement("A67")
async def test_a_raised_failure_stops_the_other_calls_and_carries_the_result() -> None:
    """The run is over, but its result so far is available, and no call continues."""
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


async def test_the_text_of_a_raised_failure_stays_out_of_the_history() -> None:
    """The exception is for the program; the model only learns that the call failed."""

    @function_tool(failure_error_function=None)
    async def leaks() -> str:
        raise RuntimeError("password in the text")

    with pytest.raises(RuntimeError) as caught:
        await run(agent_of(tool_call("leaks"), tools=[leaks]))
    assert "password" not in json.dumps(caught.value.run_result.to_input_list())  # type: ignore[attr-defined]


# --- the tool_use_behavior of an agent


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
async def test_the_value_of_a_tool_can_be_the_final_output(behavior: Any) -> None:
    """The final output is the object itself, not the text for the model."""
    agent = agent_of(tool_call("total", a=1, b=2), tools=[total], tool_use_behavior=behavior)
    result, events = await run_streamed(agent, context="app")
    assert result.final_output == Sum(total=3)
    assert result.final_output_as(Sum).total == 3
    assert_each_call_has_one_output(result)
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
async def test_a_behavior_that_does_not_apply_lets_the_model_continue(behavior: Any) -> None:
    agent = agent_of(tool_call("total", a=1, b=2), "3", tools=[total], tool_use_behavior=behavior)
    assert (await run(agent)).final_output == "3"


@pytest.mark.parametrize("behavior", ["stop_on_first_tool", {"stop_at_tool_names": ["fails"]}])
async def test_a_failed_call_never_ends_a_run(behavior: Any) -> None:
    """An error is not an answer for the user."""
    agent = agent_of(tool_call("fails"), "sorry", tools=[fails], tool_use_behavior=behavior)
    assert (await run(agent)).final_output == "sorry"


@pytest.mark.parametrize(
    "behavior", ["stop", 5, {}, {"stop_at_tool_names": "total"}, {"stop": []}, [], None]
)
def test_an_invalid_behavior_is_refused(behavior: Any) -> None:
    """A typo must not silently select the default."""
    with pytest.raises(UserError, match="tool_use_behavior of agent 'Driver'"):
        agent_of(tool_use_behavior=behavior)


async def test_a_behavior_function_must_return_a_decision() -> None:
    """A forgotten `return` returns `None`."""
    agent = agent_of(
        tool_call("add", a=1, b=2), tools=[add], tool_use_behavior=lambda context, results: None
    )
    with pytest.raises(UserError, match="ToolsToFinalOutputResult, got a NoneType"):
        await run(agent)


# --- limits


def _call_forever(request: ModelRequest) -> Any:
    return tool_call("add", a=len(request.input), b=1)


@pytest.mark.parametrize("turns", [1, 3])
async def test_a_run_that_reaches_max_turns_stops_and_can_be_resumed(turns: int) -> None:
    """Each turn costs money; the work so far is not lost."""
    agent = agent_of(*[_call_forever] * turns, "done", tools=[add])
    with pytest.raises(MaxTurnsExceeded) as caught:
        await run(agent, max_turns=turns)
    assert isinstance(caught.value, RunError)
    result = caught.value.run_result
    assert len(result.raw_responses) == turns
    assert_each_call_has_one_output(result)
    assert (await run(agent, result.to_state(), max_turns=turns + 1)).final_output == "done"


async def test_a_run_without_a_turn_limit_continues() -> None:
    """Ten turns are only the default."""
    agent = agent_of(*[_call_forever] * 30, "done", tools=[add])
    assert (await run(agent, max_turns=None)).final_output == "done"
    with pytest.raises(MaxTurnsExceeded, match="within 10 turns"):
        await run(agent_of(*[_call_forever] * 30, tools=[add]))


@pytest.mark.requirement("S33")
async def test_calls_over_the_budget_are_denied_and_end_the_run() -> None:
    """No call of that turn runs, because any selection would be arbitrary."""
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
    """The count includes the usage of inner runs."""
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
async def test_the_deadline_of_a_run_applies_in_every_phase(where: str) -> None:
    """A model request that hangs costs as much time as a tool that hangs."""
    gate = Gate()
    never = asyncio.Event()

    async def hangs(request: ModelRequest) -> str:
        await never.wait()
        return "never"

    agent = agent_of(hangs if where == "model" else tool_call("wait"), tools=[gate.tool])
    with pytest.raises(RunTimeoutError, match=r"took longer than 0\.05 s") as caught:
        await run(agent, run_config=RunConfig(timeout=0.05))
    assert isinstance(caught.value, TimeoutError)
    assert_each_call_has_one_output(caught.value.run_result)
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
def test_an_invalid_run_config_is_refused(wrong: Any) -> None:
    """Otherwise the run would hang or never begin."""
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
async def test_an_invalid_option_of_a_run_is_refused(wrong: Any) -> None:
    """The error must be raised at the call and must name the option."""
    with pytest.raises(UserError, match=next(iter(wrong))):
        await Runner.run(Agent("Main", model=ScriptedModel(["x"])), "Go.", **wrong)


@pytest.mark.parametrize("wrong", [None, [], "[]", b"\xff", "{}", 5])
def test_an_object_that_is_not_a_run_state_is_refused(wrong: Any) -> None:
    """A state comes from a file or a queue, which can contain anything."""
    with pytest.raises(UserError, match="state"):
        RunState.from_json(wrong)
    if not isinstance(wrong, (str, bytes)):
        with pytest.raises(UserError, match="state"):
            RunState.from_dict(wrong)


async def test_usage_of_an_inner_run_counts_toward_the_budget_of_the_outer_run() -> None:
    """Otherwise a sub-agent could exceed the budget of its caller."""
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


async def test_a_tool_choice_applies_until_a_tool_was_called() -> None:
    """Otherwise the forced tool would be called forever."""
    settings = ModelSettings(tool_choice="required", temperature=0.5)
    script = (tool_call("add", a=1, b=2), "3")
    for reset, chosen in ((True, ["required", None]), (False, ["required", "required"])):
        agent = agent_of(*script, tools=[add], model_settings=settings, reset_tool_choice=reset)
        await run(agent, run_config=RunConfig(model_settings=ModelSettings(max_tokens=7)))
        asked = [request.settings for request in model_of(agent).requests]
        assert [one.tool_choice for one in asked] == chosen
        assert all((one.temperature, one.max_tokens) == (0.5, 7) for one in asked)


async def test_instructions_can_be_a_function_of_the_run() -> None:
    """The function is called for each request with the current context."""

    def plain(context: Any, agent: Agent[Any, Any]) -> str:
        return f"{agent.name} for {context.context}, {context.usage.requests}"

    async def later(context: Any, agent: Agent[Any, Any]) -> str:
        return plain(context, agent)

    for instructions in (plain, later):
        agent = agent_of(tool_call("add", a=1, b=2), "3", tools=[add], instructions=instructions)
        await run(agent, context="Ada")
        asked = [request.instructions for request in model_of(agent).requests]
        assert asked == ["Driver for Ada, 0", "Driver for Ada, 1"]
    with pytest.raises(UserError, match="expected text, got an int"):
        await run(agent_of("x", instructions=lambda context, agent: 5))


async def test_is_enabled_is_evaluated_in_each_turn() -> None:
    """The permissions of a user can change during a run."""
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


def _for_admins(context: Any, _agent: Agent[Any, Any]) -> bool:
    return context.context["role"] == "admin"


def _for_guests(context: Any, agent: Agent[Any, Any]) -> bool:
    return not _for_admins(context, agent)


@function_tool(name_override="lookup", is_enabled=_for_admins)
def lookup_all(text: str) -> str:
    """Search all documents."""
    return f"all {text}"


@function_tool(name_override="lookup", is_enabled=_for_guests)
def lookup_public(text: str) -> str:
    """Search the public documents."""
    return f"public {text}"


async def test_two_tools_of_one_name_can_exclude_each_other() -> None:
    """An application offers one variant of a tool to each kind of user, in each turn."""
    user = {"role": "guest"}

    def promote(request: ModelRequest) -> Any:
        user["role"] = "admin"
        return tool_call("lookup", text="b")

    agent = agent_of(
        promote, tool_call("lookup", text="b"), "done", tools=[lookup_all, add, lookup_public]
    )
    result = await run(agent, context=user)
    assert [output for *_, output in outputs(result)] == ["public b", "all b"]
    offered = [
        [getattr(tool, "description", "") for tool in one.tools] for one in model_of(agent).requests
    ]
    assert offered[0][-1] == "Search the public documents."
    assert [descriptions[0] for descriptions in offered[1:]] == ["Search all documents."] * 2


async def test_two_tools_of_one_name_that_are_enabled_at_once_are_refused() -> None:
    """The model could call neither of them."""
    agent = agent_of("x", tools=[lookup_all, lookup_all.with_(description="Other.")])
    assert (await run(agent, context={"role": "guest"})).final_output == "x"
    with pytest.raises(UserError, match="'Driver' has two tools named 'lookup' that are enabled"):
        await run(agent, context={"role": "admin"})
    with pytest.raises(UserError, match="two tools named 'lookup'"):
        agent_of("x", tools=[lookup_all, add.with_(name="lookup")])


class Server:
    """A tool source, such as an MCP server."""

    def __init__(self, *batches: list[Any]) -> None:
        self.batches = list(batches)

    def get_tools(self) -> list[Any]:
        return self.batches.pop(0) if len(self.batches) > 1 else self.batches[0]


class LateServer(Server):
    async def get_tools(self) -> list[Any]:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        return super().get_tools()


@pytest.mark.parametrize("kind", [Server, LateServer])
async def test_tool_sources_are_queried_before_each_turn(kind: type[Server]) -> None:
    """Their tools can change during a run."""
    agent = agent_of(
        tool_call("add", a=1, b=2), "3", tools=[fails], mcp_servers=[kind([add], [add, total])]
    )
    result = await run(agent)
    offered = [[tool.name for tool in one.tools] for one in model_of(agent).requests]
    assert offered == [["fails", "add"], ["fails", "add", "total"]]
    assert outputs(result)[0][1:] == ("ok", "3")


async def test_invalid_tools_are_refused_when_the_agent_is_created() -> None:
    """These mistakes are common."""

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
        "parameters": lambda: Agent("A", instructions=lambda context: "Hi."),  # type: ignore[arg-type, misc] # pyright: ignore[reportArgumentType, reportUnknownLambdaType]
        "output": lambda: Agent("A", output_type=object()),  # pyright: ignore[reportArgumentType]
    }
    errors: dict[str, str] = {}
    for name, make in wrong.items():
        with pytest.raises(UserError) as caught:
            make()
        errors[name] = str(caught.value)
    errors["twice"] = errors["twice"].split(": ")[0]  # the rest contains file paths
    errors["output"] = errors["output"].split("object at")[0]
    errors["function"] = errors["function"].split("<function")[0]
    assert errors == snapshot(
        {
            "function": "The tools of agent 'A' are not valid: expected function tools and hosted tools, got ",
            "agent": "The tools of agent 'A' are not valid: expected function tools and hosted tools, got <Agent 'B', model None, tools: none>. Use agent.as_tool().",
            "text": "The tools of agent 'A' are not valid: expected function tools and hosted tools, got 'add'. Create a tool with @function_tool, Agent.as_tool() or FunctionTool(...).",
            "twice": "Agent 'A' has two tools named 'add'",
            "server": "The mcp_servers of agent 'A' are not valid: expected objects with a method get_tools(), got an object.",
            "name": "Agent(name=...) is not valid: expected a non-empty string, got ''.",
            "instructions": "The instructions of agent 'A' are not valid: expected text or a function of (context, agent), got an int.",
            "parameters": "The instructions of agent 'A' are not valid: expected a function of (context, agent), got one with the parameters (context).",
            "output": "The output_type of agent 'A', <object ",
        }
    )
    server = Server([add])
    with pytest.raises(UserError, match="two tools named 'add'"):
        await run(agent_of("x", tools=[total.with_(name="add")], mcp_servers=[server]))


# --- models


class Provider(ModelProvider):
    def __init__(self, model: Any) -> None:
        self.names: list[str | None] = []
        self.model = model

    def get_model(self, name: str | None) -> Any:
        self.names.append(name)
        return self.model


@pytest.mark.requirement("A61")
async def test_a_provider_gets_the_model_name_unchanged() -> None:
    """The provider defines the meaning of a name."""
    provider = Provider(ScriptedModel(["a", "b", "c", "d"]))
    config = RunConfig(model_provider=provider)
    await run(Agent("A", model="house/model:1"), run_config=config)
    await run(Agent("A"), run_config=config)
    await run(Agent("A", model="x"), run_config=RunConfig(model="y", model_provider=provider))
    assert provider.names == ["house/model:1", None, "y"]
    own = ScriptedModel(["own"])
    assert (await run(Agent("A", model=own), run_config=config)).final_output == "own"
    with override_model(ScriptedModel(["forced"])):
        assert (await run(Agent("A", model=own), run_config=config)).final_output == "forced"
    assert provider.names == ["house/model:1", None, "y"]


async def test_the_error_for_a_model_that_cannot_be_found_has_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the first error that new users meet."""
    monkeypatch.delenv("AGENTS_TOOLS_MODEL", raising=False)
    errors: dict[str, str] = {}
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
        errors[name] = str(caught.value)
    with pytest.raises(UserError) as caught:
        await run(Agent("A"), run_config=RunConfig(model_provider=Provider(5)))
    errors["provider"] = str(caught.value)
    assert errors == snapshot(
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


class ScriptedAnswers:
    """A model that returns the given objects, whatever their type."""

    provider: str | None = None

    def __init__(self, *answers: Any, provider: str | None = None) -> None:
        self.answers = list(answers)
        self.provider = provider

    async def respond(self, request: ModelRequest, emit: Any) -> Any:
        return self.answers.pop(0)


@pytest.mark.parametrize("answer", [None, "text", {"items": []}])
async def test_a_model_must_return_a_model_response(answer: Any) -> None:
    """Users write models, too."""
    with pytest.raises(UserError, match=r"Answers\.respond returned a wrong value"):
        await run(Agent("A", model=ScriptedAnswers(answer)))


async def test_a_model_must_not_return_tool_outputs() -> None:
    """The history would have an output that no tool produced."""
    items: list[Any] = [
        tool_call("add", a=1, b=2, call_id="c"),
        ToolCallOutputItem(call_id="c", output="7"),
    ]
    with pytest.raises(UserError, match="got a ToolCallOutputItem") as caught:
        await run(Agent("A", model=ScriptedAnswers(ModelResponse(items=items)), tools=[add]))
    assert_each_call_has_one_output(caught.value.run_result)  # type: ignore[attr-defined]


@pytest.mark.parametrize("provider", ["openai_responses", "openai_chat", "anthropic"])
async def test_arguments_are_decoded_from_the_dialect_of_the_provider(provider: str) -> None:
    """A strict mode sends null for a parameter with a default; invalid JSON is an error."""

    @function_tool
    async def greet(name: str, times: int = 2) -> str:
        return name * times

    model = ScriptedAnswers(
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


async def test_calling_a_tool_that_the_provider_cannot_represent_does_not_end_the_run() -> None:
    """The tool was not offered, but a model can call a tool that it remembers."""
    odd = FunctionTool(
        name="odd",
        description="Takes what no strict mode takes.",
        params_json_schema={"type": "object", "$ref": "#/$defs/nowhere"},
        on_invoke_tool=_odd,
    )
    model = ScriptedAnswers(
        ModelResponse(items=[tool_call("odd", call_id="c1")]),
        ModelResponse(items=[MessageOutputItem(text="done")]),
        provider="openai_responses",
    )
    result = await run(Agent("A", model=model, tools=[odd]))
    assert result.final_output == "done"
    assert_each_call_has_one_output(result)


async def _odd(context: Any, arguments: str) -> str:
    return "odd"


# --- errors of providers

AGAIN = ModelError("overloaded", retryable=True, status=503)


async def test_temporary_errors_of_a_provider_are_retried() -> None:
    """Most of them last for seconds."""
    agent = agent_of(AGAIN, ModelError("cut", retryable=True, retry_after=0.001), "fine")
    result, events = await run_streamed(agent, run_config=RunConfig(retry_backoff=0))
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
async def test_permanent_errors_of_a_provider_end_the_run(
    error: Exception, retries: int, asked: int
) -> None:
    """The number of retries is limited, and an invalid key is not retried at all."""
    agent = agent_of(*[error] * 5)
    with pytest.raises(ModelError) as caught:
        await run(agent, run_config=RunConfig(retry_backoff=0, model_retries=retries))
    assert len(model_of(agent).requests) == asked
    assert caught.value.run_result.to_input_list() == [{"role": "user", "content": "go"}]  # type: ignore[attr-defined]


async def test_a_retry_delay_beyond_the_deadline_is_not_started() -> None:
    """The answer would come too late, so the run fails now."""
    error = ModelError("later", retryable=True, retry_after=60)
    with pytest.raises(ModelError, match="later"):
        await run(agent_of(error), run_config=RunConfig(timeout=3))


async def test_a_tool_that_the_provider_refuses_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One invalid schema among a hundred must not end the session."""
    refused = ToolRefusedError("bad schema", tool_name="total", reason="no such type")
    agent = agent_of(refused, tool_call("add", a=1, b=2), "3", tools=[add, total])
    with caplog.at_level(logging.WARNING, "agents_tools"):
        result, events = await run_streamed(agent)
    assert result.final_output == "3"
    offered = [[tool.name for tool in one.tools] for one in model_of(agent).requests]
    assert offered == [["add", "total"], ["add"], ["add"]]
    message = "Tool 'total' is left out: the provider refuses it (no such type)."
    assert message in caplog.text
    assert [event.data for event in events if isinstance(event, NotifyStreamEvent)] == [message]


@pytest.mark.parametrize("name", ["total", "stranger"])
async def test_a_refusal_that_cannot_be_fixed_ends_the_run(name: str) -> None:
    """Leaving out a tool that is already left out would repeat forever."""
    refused = ToolRefusedError("bad schema", tool_name=name, reason="no such type")
    with pytest.raises(ToolRefusedError):
        await run(agent_of(refused, refused, tools=[add, total]))


# --- incomplete answers


async def test_calls_of_a_truncated_answer_never_run() -> None:
    """Arguments that happen to be valid JSON can still be incomplete."""
    cut = ModelResponse(
        items=[tool_call("add", a=1, b=2, call_id="c1"), tool_call("add", '{"a": 1', call_id="c2")],
        finish_reason="length",
    )
    agent = agent_of(cut, "done", tools=[add])
    result = await run(agent)
    assert [status for _, status, _ in outputs(result)] == ["invalid_args"] * 2
    assert "was cut off" in outputs(result)[0][2]


async def test_an_empty_reply_is_retried_once() -> None:
    """A single empty reply is usually a glitch; the second one counts as the answer."""
    thought = ModelResponse(items=[ReasoningItem(text="hm")])
    agent = agent_of(ModelResponse(items=[]), "here")
    assert (await run(agent)).final_output == "here"
    result = await run(agent_of(thought, ModelResponse(items=[])))
    assert result.final_output == ""
    assert len(result.raw_responses) == 2


@pytest.mark.parametrize("ids", [["", ""], ["same", "same"]])
async def test_calls_without_a_unique_id_get_one(ids: list[str]) -> None:
    """Small model servers send no id, or always the same one."""
    items = [
        ToolCallItem(call_id=call_id, name="add", arguments=json.dumps({"a": 1, "b": number}))
        for number, call_id in enumerate(ids)
    ]
    agent = Agent(
        "A",
        model=ScriptedAnswers(
            ModelResponse(items=items),
            ModelResponse(items=items[:1]),
            ModelResponse(items=[MessageOutputItem(text="done")]),
        ),
        tools=[add],
    )
    result, _ = await run_streamed(agent)
    assert_each_call_has_one_output(result)
    assert [output for *_, output in outputs(result)] == ["1", "2", "1"]


# --- structured output


class Place(BaseModel):
    name: str
    people: int


async def test_an_invalid_final_answer_can_be_corrected_by_the_model() -> None:
    """Models get the format wrong more often than the content."""
    agent = agent_of(
        "Paris, about two million",
        '{"name": "Paris"}',
        '```json\n{"name": "Paris", "people": 2}\n```',
        output_type=Place,
    )
    result, events = await run_streamed(agent)
    assert result.final_output == Place(name="Paris", people=2)
    user_messages = [
        item["content"] for item in result.to_input_list() if item.get("role") == "user"
    ]
    assert user_messages == snapshot(
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


class Trip(BaseModel):
    place: Place | None
    days: int = 3
    tags: list[str] = Field(default_factory=list)


async def test_null_in_a_final_answer_stands_for_a_default() -> None:
    """The strict schema requires every field, and offers null to a model that has no value."""
    empty = '{"place": null, "days": null, "tags": null}'
    wrapped = f'{{"response": [{empty}, {{"place": null, "days": 1, "tags": []}}]}}'
    trips = (await run(agent_of(wrapped, output_type=list[Trip]))).final_output
    assert trips == [Trip(place=None), Trip(place=None, days=1)]
    agent = agent_of(empty, output_type=Trip)
    assert (await run(agent)).final_output == Trip(place=None)
    output = model_of(agent).requests[0].output
    assert output is not None
    assert output.schema["required"] == ["place", "days", "tags"]


async def test_a_model_knows_that_its_answer_was_cut_off() -> None:
    """Otherwise it corrects JSON that had no fault, in an answer that is as long again."""
    long = ModelResponse(items=[MessageOutputItem(text='{"name": "Par')], finish_reason="length")
    agent = agent_of(long, '{"name": "Paris", "people": 2}', output_type=Place)
    assert (await run(agent)).final_output == Place(name="Paris", people=2)
    feedback = model_of(agent).requests[1].input[-1]
    assert isinstance(feedback, MessageInputItem)
    assert feedback.content == (
        "The answer was cut off at the limit of output tokens. Answer again, shorter, and only "
        "with JSON that matches the schema."
    )


async def test_a_final_answer_with_deep_nesting_is_answered_with_the_fault() -> None:
    """A model that repeats a bracket without end must not crash the run."""
    agent = agent_of("[" * 100_000, "[[1]]", output_type=list[list[int]])
    assert (await run(agent)).final_output == [[1]]


async def test_a_final_answer_that_stays_invalid_ends_the_run() -> None:
    """Each correction costs a turn, so their number is limited."""
    with pytest.raises(ModelBehaviorError) as caught:
        await run(agent_of(*["no"] * 5, output_type=Place))
    assert len(caught.value.run_result.raw_responses) == 3  # type: ignore[attr-defined]
    agent = agent_of(*["no"] * 5, output_type=Place)
    with pytest.raises(ModelBehaviorError):
        await run(agent, run_config=RunConfig(output_retries=0))
    assert len(model_of(agent).requests) == 1


async def test_a_refusal_is_not_accepted_as_a_typed_answer() -> None:
    """The application must not get an object built from a refusal."""
    items = [MessageOutputItem(refusal="I may not")]
    refusal = ModelResponse(items=items, finish_reason="refusal")
    for answer in (refusal, ModelResponse(items=items)):  # not every provider sends a finish reason
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
async def test_any_type_with_a_json_form_can_be_the_output_type(
    kind: Any, text: str, value: Any
) -> None:
    """Values that are not objects are wrapped in one."""
    assert (await run(agent_of(text, output_type=kind))).final_output == value


# --- early start


class Slow:
    """A model that writes one call, waits for an event, and then writes the rest."""

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


async def test_read_only_calls_start_while_the_model_is_still_writing() -> None:
    """This saves time; the events show that the tool started before the answer was complete."""
    gate = Gate("look", annotations=READ_ONLY)
    call = tool_call("look", call_id="c1")
    later = tool_call("add", a=1, b=2, call_id="c2")
    agent = Agent("A", model=Slow(call, gate.entered, [call, later]), tools=[gate.tool, add])
    gate.open.set()
    result, events = await run_streamed(agent, run_config=EARLY)
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
    """The answer was never completed, so the history must not contain its calls."""
    gate = Gate("look", annotations=READ_ONLY)
    call = tool_call("look", call_id="c1")
    rest = [call] if second == "again" else [tool_call("add", a=1, b=2, call_id="c9")]
    model = Slow(call, gate.entered, AGAIN, rest)
    ended: list[str] = []

    class OpenGateAfterAnswer(RunHooks[Any]):
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            ended.append(gate.ended)
            gate.open.set()

    agent = Agent("A", model=model, tools=[gate.tool, add])
    result, events = await run_streamed(agent, run_config=EARLY, hooks=OpenGateAfterAnswer())
    assert ended[0] == "cancelled"
    assert_each_call_has_one_output(result)
    assert [status for _, status, _ in outputs(result)] == ["ok"]
    assert names_of(events).count("tool_called") == 1
    starts = sum(isinstance(event, ToolStreamStartEvent) for event in events)
    ends = [event.status for event in events if isinstance(event, ToolStreamEndEvent)]
    assert starts == len(ends) > 1
    assert ends[0] == "cancelled"


async def _assert_not_started_early(
    tool: FunctionTool[..., Any], entered: Callable[[], bool]
) -> None:
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

    model = ScriptedAnswers()
    model.respond = respond  # type: ignore[method-assign]
    result = await run(Agent("A", model=model, tools=[tool]), run_config=EARLY)
    assert before == [False]
    assert entered()
    assert_each_call_has_one_output(result)


async def test_calls_with_side_effects_and_exclusive_calls_do_not_start_early() -> None:
    """An early call may be dropped until the answer is complete."""
    for hints, change in (
        (None, None),
        (ToolAnnotations(idempotentHint=True), None),
        (READ_ONLY, exclusive()),
    ):
        gate = Gate("look", annotations=hints)
        gate.open.set()
        tool = gate.tool if change is None else change(gate.tool)
        await _assert_not_started_early(tool, gate.entered.is_set)


# --- sessions and event streams


async def test_a_session_carries_the_conversation_from_run_to_run() -> None:
    """The application passes only the new input."""
    session = MemoryRunStore().session("chat")
    first = await run(agent_of(tool_call("add", a=1, b=2), "3", tools=[add]), session=session)
    agent = agent_of("still 3", tools=[add])
    second, events = await run_streamed(agent, "sure?", session=session)
    asked = [item.to_dict() for item in model_of(agent).requests[0].input]
    assert asked == [*first.to_input_list(), {"role": "user", "content": "sure?"}]
    assert second.to_input_list()[:-1] == asked
    assert [item.to_dict() for item in second.new_items] == second.to_input_list()[-1:]
    assert sum(event.durable for event in events) == 2  # earlier events are not published again
    assert len(await session.events()) == len(second.to_input_list())
    assert [run.run_id for run in await session.runs()] == [first.run_id, second.run_id]


async def test_open_calls_of_an_interrupted_session_are_answered_first(tmp_path: Path) -> None:
    """It is unknown whether they took effect; the model must not assume that they did not."""
    gate, fails = Gate(), FailingWrites(1_000)
    async with watched_store(tmp_path / "runs.db", before=fails) as store:
        cut = Runner.run_streamed(
            agent_of(tool_call("wait"), tools=[gate.tool]), "go", session=store.session("chat")
        )
        await asyncio.wait_for(gate.entered.wait(), WITHIN)
        fails.left = 0  # as if the process ended while the call ran
        async with cut:
            pass
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        session = store.session("chat")
        result = await run(agent_of("I see", tools=[gate.tool]), "well?", session=session)
        kinds = [item.get("type", item.get("role")) for item in result.to_input_list()]
        assert kinds == ["user", "function_call", "function_call_output", "user", "message"]
        assert outputs(result)[0][1] == "lost"
        again = agent_of("bye", tools=[gate.tool])
        assert (await run(again, "bye", session=session)).final_output == "bye"
        assert len(outputs(await run(agent_of("x"), "x", session=session))) == 1


async def test_a_call_that_the_store_cannot_record_does_not_run(tmp_path: Path) -> None:
    """A call must be recorded before it runs, or a restart would run it again."""
    gate, fails = Gate(), FailingWrites(1_000)

    def answer(_: ModelRequest) -> Any:
        fails.left = 0
        return tool_call("wait")

    async with watched_store(tmp_path / "runs.db", before=fails) as store:
        agent = Agent("A", model=ScriptedModel([answer]), tools=[gate.tool])
        with pytest.raises(EventStoreError, match="The disk is full") as caught:
            await run(agent, session=store.session("chat"))
    assert not gate.entered.is_set()
    assert_each_call_has_one_output(caught.value.run_result)  # type: ignore[attr-defined]


async def test_cancelling_while_the_store_writes_leaves_no_open_call(tmp_path: Path) -> None:
    """Wherever a run is cancelled, providers must accept its history."""
    reached, hold = threading.Event(), threading.Event()

    def wait(_: Any) -> None:
        reached.set()
        hold.wait(WITHIN)

    async with watched_store(tmp_path / "runs.db", before=wait) as store:
        agent = agent_of(tool_call("add", a=1, b=2), tools=[add])
        result = Runner.run_streamed(agent, "go", session=store.session("chat"))
        await asyncio.to_thread(reached.wait, WITHIN)
        result.cancel()
        hold.set()
        events = [event async for event in result.stream_events()]
    check_events(events)
    assert_each_call_has_one_output(result)


class RecordingStream:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        self.events.append(event)


async def test_an_event_stream_gets_the_same_events_as_a_reader() -> None:
    """A reader in another process can then replace one in this process."""
    published = RecordingStream()
    agent = agent_of(tool_call("add", a=1, b=2), "3", tools=[add])
    config = RunConfig(event_stream=published)
    _, events = await run_streamed(agent, run_config=config)
    assert [event.to_dict() for event in published.events] == [one.to_dict() for one in events]
    published.events.clear()
    await run(agent_of("x"), run_config=config)
    check_events(published.events)
    assert isinstance(published.events[-1], RunFinishedEvent)


async def test_an_event_stream_that_raises_does_not_break_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An observer must never affect a run."""

    class Broken:
        def publish(self, event: Event) -> None:
            raise RuntimeError("full")

    result = await run(agent_of("x"), run_config=RunConfig(event_stream=Broken()))
    assert result.final_output == "x"
    assert "An event listener failed" in caplog.text


async def test_a_run_with_many_events_and_no_reader_finishes_and_retains_the_items() -> None:
    """Reading the events is optional; text deltas may be dropped, items may not."""
    model = ScriptedModel(["word " * 20_000], piece=4)
    result = Runner.run_streamed(Agent("A", model=model), "go")
    await asyncio.wait_for(result.wait(), WITHIN)
    events = [event async for event in result.stream_events()]
    check_events(events)
    assert names_of(events) == ["message_output_created"]
    assert len(events) < 20_000


# --- ends of runs


async def _at_stage(stage: str) -> tuple[Any, Gate]:
    """Start a run and wait until it reaches the stage."""
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
async def test_a_run_can_be_cancelled_at_any_stage(stage: str, way: str) -> None:
    """No call continues, each call has an output, and the stream ends."""
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
    assert_each_call_has_one_output(result)
    with pytest.raises(asyncio.CancelledError):
        await result.wait()


async def test_a_second_cancel_during_the_cleanup_of_a_tool_still_records_an_output() -> None:
    """Users press Ctrl-C twice; servers cancel and then close."""
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
    assert_each_call_has_one_output(result)
    check_events(events)
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.status == "cancelled"


async def test_a_tool_that_ignores_cancellation_costs_the_grace_period_once() -> None:
    """The limit is two seconds in total, not two seconds for each place that waits."""
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
    assert_each_call_has_one_output(result)
    assert took < 2 * GRACE


async def _leave_block(*, read: bool = False, error: Exception | None = None) -> None:
    async with Runner.run_streamed(agent_of(ModelError("no key")), "go") as result:
        if read:
            await _read(result, [])
        await comes(lambda: result.is_complete)
        if error is not None:
            raise error


async def test_leaving_the_block_raises_an_error_that_was_not_yet_raised() -> None:
    """An error must not be lost because its reader left early."""
    with pytest.raises(ModelError, match="no key"):
        await _leave_block()
    with pytest.raises(ModelError, match="no key"):
        await _leave_block(read=True)
    with pytest.raises(KeyError):  # an exception in the block has priority
        await _leave_block(error=KeyError())
    async with Runner.run_streamed(agent_of("x"), "go") as result:
        assert [event async for event in result.stream_events()]
    assert result.final_output == "x"


async def test_cancelling_one_waiter_does_not_cancel_the_run() -> None:
    """Several tasks can wait for one run."""
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


async def test_cancelling_a_plain_run_cancels_its_tools() -> None:
    """A server that drops a request must not pay for the rest of the run."""
    gate = Gate()
    task = asyncio.ensure_future(Runner.run(agent_of(tool_call("wait"), tools=[gate.tool]), "go"))
    await asyncio.wait_for(gate.entered.wait(), WITHIN)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.ended == "cancelled"


# --- run states


@pytest.mark.requirement("F42")
async def test_f42_a_state_saved_during_calls_lists_the_finished_ones() -> None:
    """After a crash, finished calls keep their output; others are repeated only if idempotent."""
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
    assert_each_call_has_one_output(result)
    return result


async def test_input_after_an_open_call_is_not_lost_on_cancel() -> None:
    """The user's message belongs to the conversation, however its calls end."""
    gate = Gate()
    open_call = tool_call("wait", call_id="c1").to_dict()
    items = [{"role": "user", "content": "one"}, open_call, {"role": "user", "content": "two"}]
    result = Runner.run_streamed(agent_of(tools=[gate.tool]), items)
    await asyncio.wait_for(gate.entered.wait(), WITHIN)
    assert [item.to_dict() for item in result.to_state().history][2:] == items[2:]
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


async def test_outputs_have_both_the_object_and_the_text() -> None:
    """Programs use the object, models the text."""
    result = await run(
        agent_of([tool_call("total", a=1, b=2)], "3", tools=[truncate(100)(timeout(5)(total))])
    )
    items = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert items[0].value == Sum(total=3)
    assert items[0].output == '{"total":3}'
    assert item_from_dict(items[0].to_dict()) == items[0]


async def test_a_tool_context_has_the_ids_of_its_run() -> None:
    """Ids in logs must lead from the tool call to the run."""
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
def test_agents_have_a_readable_repr() -> None:
    """Logs and debuggers show it."""
    agent = Agent("Adder", tools=[add.with_(name=f"t{n}") for n in range(7)], model="openai/x")
    assert repr(agent) == snapshot(
        "<Agent 'Adder', model 'openai/x', tools: t0, t1, t2, t3, t4, …>"
    )
    clone = agent.clone(name="Other", tools=[add])
    assert (clone.name, clone.tools, agent.name, len(agent.tools)) == ("Other", [add], "Adder", 7)


class SplitEmojiModel:
    """A model that sends each half of a surrogate pair in a delta of its own."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
        self.requests.append(json.dumps([item.to_dict() for item in request.input]))
        for char in "a\ud83d\ude00\ud800":
            emit(text_delta(char))
        message = MessageOutputItem(text="a\ud83d\ude00\ud800")
        return ModelResponse(items=[message], finish_reason="stop")


async def test_half_of_a_surrogate_pair_neither_leaves_a_model_nor_reaches_it() -> None:
    """UTF-8 cannot encode it, so the next request, a store or a page would fail."""
    model = SplitEmojiModel()
    async with Runner.run_streamed(Agent("A", model=model), "\udce9 hi") as run:
        events = [event async for event in run.stream_events()]
    deltas = [e.data["delta"] for e in events if isinstance(e, RawResponseStreamEvent)]
    assert deltas == ["a", "😀", "\ufffd"]
    assert run.final_output == "a😀\ufffd"
    assert "\\udce9" not in model.requests[0]
    assert json.loads(model.requests[0])[0]["content"] == "\ufffd hi"
