"""Agents as tools of agents: input, output, inner events, usage, errors and cancellation."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agents_tools import (
    Agent,
    Event,
    MaxTurnsExceeded,
    ModelProvider,
    ModelRequest,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunConfig,
    RunFinishedEvent,
    RunItemStreamEvent,
    Runner,
    RunResult,
    RunResultStreaming,
    RunStartedEvent,
    ToolContext,
    ToolError,
    ToolOutputText,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    Usage,
    UserError,
    function_tool,
    listen,
    policies,
    streaming_tool,
)
from agents_tools.agents import RunHooks
from agents_tools.content import MessageInputItem, ToolCallItem, ToolCallOutputItem
from agents_tools.errors import ModelError
from agents_tools.testing import ScriptedModel, call_tool, check_events, tool_call

AT_MOST = 5.0
ASK = tool_call("inner", input="What?")


@function_tool
async def add(a: int, b: int, context: ToolContext[Any]) -> int:
    """Add two numbers."""
    context.notify("adding")
    return a + b


def agent(*steps: Any, tools: Sequence[Any] = (), name: str = "inner", **options: Any) -> Agent:
    return Agent(name, model=ScriptedModel(steps), tools=list(tools), **options)


def model_of(one: Agent) -> ScriptedModel:
    assert isinstance(one.model, ScriptedModel)
    return one.model


def outer(*tools: Any, steps: Sequence[Any] = (ASK, "Done."), **options: Any) -> Agent:
    return agent(*steps, tools=tools, name="outer", **options)


def answer(result: RunResult | RunResultStreaming) -> tuple[str, Any]:
    [item] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    return item.status, item.output


async def read_events(run: RunResultStreaming) -> list[Event]:
    async with asyncio.timeout(AT_MOST):
        events = [event async for event in run.stream_events()]
    check_events(events)
    return events


def short(events: Sequence[Event]) -> list[str]:
    lines = []
    for event in events:
        if isinstance(event, RawResponseStreamEvent):
            continue
        what = event.type.removesuffix("_event").removesuffix("_stream")
        if isinstance(event, RunItemStreamEvent):
            what = event.name
        lines.append(" ".join([what, "/".join(event.path)]).strip())
    return lines


# --- input and output


@pytest.mark.requirement("A58")
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_agent_tool_answers_without_seeing_the_callers_conversation(
    *, streaming: bool
) -> None:
    """Each agent has its own conversation; the caller's holds one call and one output."""
    inner = agent(tool_call("add", a=1, b=2), "3", tools=[add], instructions="Add.")
    one = outer(inner.as_tool(streaming=streaming))
    result = await Runner.run(one, "Secret question.")
    assert answer(result) == ("ok", "3")
    assert [item.get("type", "message") for item in result.to_input_list()] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    first = model_of(inner).requests[0]
    assert first.input == [MessageInputItem(content="What?")]
    assert first.instructions == "Add."
    assert "Secret" not in repr(model_of(inner).requests)
    assert [type(item) for item in model_of(one).requests[1].input[1:]] == [
        ToolCallItem,
        ToolCallOutputItem,
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Research Assistant!", "research_assistant"),
        ("  x  ", "x"),
        ("漢字", "agent"),
        ("a" * 80, "a" * 64),
    ],
    ids=["words", "spaces", "other script", "long"],
)
def test_an_agent_tool_is_named_after_its_agent(name: str, expected: str) -> None:
    """Any agent name becomes a tool name that model providers accept."""
    tool = agent(name=name).as_tool()
    assert tool.name == expected
    assert name in tool.description


def test_as_tool_sets_the_name_and_description() -> None:
    tool = agent().as_tool("ask", "Ask somebody.")
    assert (tool.name, tool.description) == ("ask", "Ask somebody.")
    assert tool.params_json_schema == snapshot(
        {
            "properties": {"input": {"title": "Input", "type": "string"}},
            "required": ["input"],
            "title": "ask_args",
            "type": "object",
        }
    )
    assert agent().as_tool().description == snapshot(
        "Delegate a task to agent 'inner' and return its answer."
    )
    assert (tool.origin.kind, tool.origin.agent) == ("agent", "inner")
    with pytest.raises(UserError, match="not accepted"):
        agent().as_tool("ask somebody")


def test_the_error_for_two_agents_of_one_name_identifies_both() -> None:
    """Both come from `as_tool`, so there is no file and line to name."""
    with pytest.raises(UserError) as caught:
        outer(agent(name="A b").as_tool(), agent(name="a-B").as_tool())
    assert str(caught.value) == snapshot(
        "Agent 'outer' has two tools named 'a_b': agent 'A b' as a tool and agent 'a-B' as a tool. Rename one of them, for example with policies.rename('a_b_2')."
    )


class Question(BaseModel):
    """Structured input for an agent."""

    topic: str = Field(description="About what.")
    depth: int = 1


@dataclass
class Asked:
    topic: str
    depth: int = 1


class Typed(TypedDict):
    topic: str


@pytest.mark.parametrize("kind", [Question, Asked, Typed])
async def test_the_input_can_have_a_schema(kind: Any) -> None:
    """The agent gets the validated JSON; errors are reported to the calling model."""
    inner = agent("Fine.")
    tool = inner.as_tool(parameters=kind)
    schema = tool.params_json_schema
    assert "topic" in schema["properties"]
    assert "description" not in schema
    calls = [tool_call("inner", topic="bees"), tool_call("inner", tpic="bees")]
    result = await Runner.run(outer(tool, steps=[calls, "x"]), "Go.")
    [request] = model_of(inner).requests
    [item] = request.input
    assert isinstance(item, MessageInputItem)
    assert isinstance(item.content, str)
    assert json.loads(item.content)["topic"] == "bees"
    statuses = [item.status for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert statuses == ["ok", "invalid_args"]


@pytest.mark.parametrize("kind", [int, list[int], "text"], ids=["int", "list", "no type"])
def test_an_input_schema_must_be_an_object(kind: Any) -> None:
    """Arguments of a call are an object."""
    with pytest.raises(UserError):
        agent().as_tool(parameters=kind)


@pytest.mark.requirement("A63", "A64")
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("kind", ["sync", "async", "blocks", "raising"])
async def test_the_output_can_be_extracted_from_the_result(kind: str, *, streaming: bool) -> None:
    """The extractor gets the whole inner run; its return value is the value of the tool."""
    seen: list[RunResult] = []

    def sync(result: RunResult) -> Any:
        seen.append(result)
        if kind == "raising":
            raise ToolError("Nothing to extract.")
        if kind == "blocks":
            return [ToolOutputText("a"), ToolOutputText("b")]
        return {"items": len(result.new_items)}

    async def later(result: RunResult) -> Any:
        return sync(result)

    inner = agent(tool_call("add", a=1, b=2), "3", tools=[add])
    extract = later if kind == "async" else sync
    tool = inner.as_tool(custom_output_extractor=extract, streaming=streaming)
    result = await Runner.run(outer(tool), "Go.")
    expected: dict[str, Any] = {
        "blocks": ("ok", [ToolOutputText("a"), ToolOutputText("b")]),
        "raising": ("tool_error", "Nothing to extract."),
    }
    assert answer(result) == expected.get(kind, ("ok", '{"items":3}'))
    assert seen[0].final_output == "3"
    assert seen[0].last_agent is inner


async def test_the_typed_output_of_an_agent_is_the_value_of_its_tool() -> None:
    """The application gets the object, the calling model its JSON."""
    inner = agent('{"topic": "bees", "depth": 2}', output_type=Question)
    tool = inner.as_tool()
    one = outer(tool, tool_use_behavior="stop_on_first_tool")
    result = await Runner.run(one, "Go.")
    assert result.final_output == Question(topic="bees", depth=2)
    assert answer(result) == ("ok", '{"topic":"bees","depth":2}')


async def test_an_agent_tool_works_outside_a_run() -> None:
    """Tests and applications call it like any tool."""
    tool = agent("3", "4").as_tool()
    assert await tool.invoke(input="?") == "3"
    called = await call_tool(tool, input="?")
    assert called.output == "4"


@pytest.mark.parametrize("kind", ["false", "sync", "async"])
async def test_an_agent_tool_can_be_disabled(kind: str) -> None:
    """Like any tool; a function gets the agent that would offer it."""
    seen: list[str] = []

    def off(context: Any, one: Agent) -> bool:
        seen.append(one.name)
        return context.context == "admin"

    async def later(context: Any, one: Agent) -> bool:
        return off(context, one)

    enabled: Any = {"false": False, "sync": off, "async": later}[kind]
    one = outer(agent("3").as_tool(is_enabled=enabled), steps=["x", "y"])
    for context in ("guest", "admin"):
        await Runner.run(one, "Go.", context=context)
    offered = [len(request.tools) for request in model_of(one).requests]
    assert offered == [0, 0 if kind == "false" else 1]
    assert seen == ([] if kind == "false" else ["outer", "outer"])


# --- errors inside


async def test_an_error_inside_is_an_error_of_the_tool() -> None:
    """The calling model decides what to do, and the outer run continues."""
    found = {}
    for name, inner, turns in (
        ("turns", agent(*[tool_call("add", a=1, b=1)] * 3, tools=[add]), 2),
        ("model", agent(ModelError("gone", retryable=False)), None),
        ("script", agent(), None),
    ):
        result = await Runner.run(outer(inner.as_tool(max_turns=turns)), "Go.")
        status, text = answer(result)
        assert status == "tool_error"
        assert result.final_output == "Done."
        found[name] = text
    assert found == snapshot(
        {
            "turns": "Agent 'inner' did not finish within 2 turns. To allow more, raise max_turns.",
            "model": "gone",
            "script": "The script of the model has no answer left for agent 'inner'; request 1 ends with {'role': 'user', 'content': 'What?'}.",
        }
    )


async def test_an_agent_tool_without_a_failure_function_ends_the_outer_run() -> None:
    """The error carries the result of the outermost run that it ended."""
    inner = agent(tool_call("add", a=1, b=1), tools=[add])
    tool = inner.as_tool(max_turns=1, failure_error_function=None)
    with pytest.raises(MaxTurnsExceeded, match="'inner'") as caught:
        await Runner.run(outer(tool), "Go.")
    result = caught.value.run_result
    assert result.last_agent.name == "outer"
    assert answer(result) == ("tool_error", "The call failed: MaxTurnsExceeded.")


async def test_agents_that_call_each_other_reach_a_depth_limit() -> None:
    """The error names the limit and the likely cause."""
    asked = 0

    def again(request: ModelRequest) -> Any:
        nonlocal asked
        asked += 1
        return ASK

    tools: list[Any] = []
    loop = Agent("inner", model=ScriptedModel([again] * 20), tools=tools)
    tool = loop.as_tool(failure_error_function=None)
    loop.tools.append(tool)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UserError) as caught:
        await Runner.run(outer(tool), "Go.", run_config=RunConfig(max_depth=3))
    assert str(caught.value) == snapshot(
        "Agent 'inner' would run inside 4 other agents: expected at most 3 (RunConfig(max_depth=...)). Check whether an agent calls itself."
    )
    assert asked == 3


# --- inherited settings and summed usage


async def test_usage_of_inner_runs_is_added_to_all_outer_runs() -> None:
    used = Usage(requests=1, input_tokens=10, output_tokens=1)
    seen: list[Usage] = []
    deep = Agent("deep", model=ScriptedModel(["d"], usage=used))
    model = ScriptedModel([tool_call("deep", input="?"), "m"], usage=used)
    inner = Agent("inner", model=model, tools=[deep.as_tool()])

    def keep(result: RunResult) -> str:
        seen.append(result.usage)
        return "x"

    tool = inner.as_tool(custom_output_extractor=keep)
    one = Agent("outer", model=ScriptedModel([ASK, "x"], usage=used), tools=[tool])
    result = await Runner.run(one, "Go.")
    assert result.usage == Usage(requests=5, input_tokens=50, output_tokens=5, tool_calls=2)
    assert seen == [Usage(requests=3, input_tokens=30, output_tokens=3, tool_calls=1)]


@pytest.mark.requirement("A60")
async def test_an_inner_run_inherits_the_configuration_of_its_caller() -> None:
    """Models, settings and limits are inherited as a whole, or replaced as a whole."""

    class Named(ModelProvider):
        def __init__(self, name: str) -> None:
            self.name = name

        def get_model(self, name: str | None) -> Any:
            asked.append((self.name, name))
            return ScriptedModel({"outer": [calls, "x"], "inner": ["i"], "own": ["o"]})

    asked: list[tuple[str, str | None]] = []
    calls = [tool_call("inner", input="?"), tool_call("own", input="?")]
    inherits = Agent("inner", model="fast").as_tool()
    own = Agent("own", model="slow").as_tool(run_config=RunConfig(model_provider=Named("own")))
    one = Agent("outer", model="big", tools=[inherits, own])
    await Runner.run(one, "Go.", run_config=RunConfig(model_provider=Named("outer")))
    assert asked[0] == ("outer", "big")
    assert sorted(asked[1:]) == [("outer", "fast"), ("own", "slow")]


async def test_the_context_object_and_run_hooks_reach_every_level() -> None:
    """Hooks of a run see its inner runs; hooks of an agent see only that agent."""
    lines: list[str] = []
    own: list[str] = []

    class Hooks(RunHooks[Any]):
        def __init__(self, book: list[str]) -> None:
            self.book = book

        async def on_tool_start(self, context: ToolContext[Any], agent: Any, tool: Any) -> None:
            self.book.append(f"{agent.name}: {tool.name} {context.context}")

    inner = agent(tool_call("add", a=1, b=2), "3", tools=[add], hooks=Hooks(own))
    one = outer(inner.as_tool())
    await Runner.run(one, "Go.", context="app", hooks=Hooks(lines))
    assert lines == ["outer: inner app", "inner: add app"]
    assert own == ["inner: add app"]


# --- events of inner runs


def _three_deep(*, streaming: bool = True, **options: Any) -> Agent:
    deep = agent(tool_call("add", a=1, b=2), "deep", tools=[add], name="deep")
    inner = agent(tool_call("deep", input="?"), "inner", tools=[deep.as_tool(streaming=streaming)])
    return outer(inner.as_tool(streaming=streaming, **options))


@pytest.mark.requirement("A52", "A53")
async def test_inner_events_are_streamed_with_their_path() -> None:
    """Three agents deep, in one order, nested like the calls."""
    run = Runner.run_streamed(_three_deep(), "Go.")
    events = await read_events(run)
    assert short(events) == snapshot(
        [
            "run_started",
            "message",
            "tool_called",
            "tool_stream_start call_1",
            "run_started call_1",
            "message call_1",
            "tool_called call_1",
            "tool_stream_start call_1/call_1",
            "run_started call_1/call_1",
            "message call_1/call_1",
            "tool_called call_1/call_1",
            "tool_stream_start call_1/call_1/call_1",
            "notify call_1/call_1/call_1",
            "tool_stream_end call_1/call_1/call_1",
            "tool_output call_1/call_1",
            "message_output_created call_1/call_1",
            "run_finished call_1/call_1",
            "tool_stream_end call_1/call_1",
            "tool_output call_1",
            "message_output_created call_1",
            "run_finished call_1",
            "tool_stream_end call_1",
            "tool_output",
            "message_output_created",
            "run_finished",
        ]
    )
    assert len(run.to_input_list()) == 4


async def test_inner_events_are_only_streamed_on_request() -> None:
    """The call itself is streamed; the history is the same either way."""
    quiet, loud = _three_deep(streaming=False), _three_deep()
    run = Runner.run_streamed(quiet, "Go.")
    events = await read_events(run)
    assert short(events) == snapshot(
        [
            "run_started",
            "message",
            "tool_called",
            "tool_stream_start call_1",
            "tool_stream_end call_1",
            "tool_output",
            "message_output_created",
            "run_finished",
        ]
    )
    other = Runner.run_streamed(loud, "Go.")
    await read_events(other)
    assert other.to_input_list() == run.to_input_list()


@pytest.mark.requirement("A53")
async def test_the_history_can_be_separated_from_inner_events() -> None:
    """The conversation is the set of durable events without a path."""
    run = Runner.run_streamed(_three_deep(), "Go.")
    events = await read_events(run)
    mine = [e.item for e in events if isinstance(e, RunItemStreamEvent) and not e.path]
    assert mine == run.to_input_list()[1:]


async def test_start_and_end_of_the_call_can_be_hidden() -> None:
    """The inner events stay, without a call around them."""
    run = Runner.run_streamed(_three_deep(enable_bracketing=False), "Go.")
    events = [event async for event in run.stream_events()]
    check_events(events, brackets=False)
    brackets = [e.path for e in events if isinstance(e, (ToolStreamStartEvent, ToolStreamEndEvent))]
    assert ("call_1",) not in brackets
    assert ("call_1", "call_1") in brackets


async def test_text_of_an_inner_agent_is_streamed_live() -> None:
    """Before its run ends."""
    going = asyncio.Event()

    async def later(request: ModelRequest) -> str:
        await going.wait()
        return "late"

    @function_tool
    async def early(context: ToolContext[Any]) -> str:
        context.notify("early")
        return "x"

    inner = agent(tool_call("early"), later, tools=[early])
    run = Runner.run_streamed(outer(inner.as_tool(streaming=True)), "Go.")
    async with asyncio.timeout(AT_MOST):
        async for event in run.stream_events():
            if isinstance(event, NotifyStreamEvent):
                assert event.path == ("call_1", "call_1")
                going.set()  # otherwise the run would never end
    assert run.final_output == "Done."


@pytest.mark.requirement("A59")
async def test_events_of_two_parallel_agents_differ_by_path() -> None:
    """The events of parallel runs interleave; each run keeps its own order."""
    one = agent(tool_call("add", a=1, b=2), "1", tools=[add], name="one")
    two = agent(tool_call("add", a=3, b=4), "2", tools=[add], name="two")
    tools = [one.as_tool(streaming=True), two.as_tool(streaming=True)]
    calls = [tool_call("one", input="?"), tool_call("two", input="?")]
    run = Runner.run_streamed(outer(*tools, steps=[calls, "x"]), "Go.")
    events = await read_events(run)
    answers = [item.output for item in run.new_items if isinstance(item, ToolCallOutputItem)]
    assert answers == ["1", "2"]
    for first in ("call_1", "call_2"):
        inside = [event for event in events if event.path[:1] == (first,)]
        assert [e.type for e in inside].count("run_finished_event") == 1
        assert isinstance(inside[0], ToolStreamStartEvent)
        assert isinstance(inside[1], RunStartedEvent)
        assert isinstance(inside[-1], ToolStreamEndEvent)


# --- on_stream


@pytest.mark.parametrize("kind", ["sync", "async", "raising"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_on_stream_gets_the_inner_events(
    kind: str, caplog: pytest.LogCaptureFixture, *, streaming: bool
) -> None:
    """In order, complete before the tool returns, and without an effect of its errors."""
    seen: list[Event] = []

    def sync(event: Event) -> None:
        seen.append(event)
        if kind == "raising":
            raise LookupError("callback")

    async def later(event: Event) -> None:
        await asyncio.sleep(0)
        sync(event)

    inner = agent(tool_call("add", a=1, b=2), "3", tools=[add])
    tool = inner.as_tool(streaming=streaming, on_stream=later if kind == "async" else sync)
    with caplog.at_level(logging.CRITICAL if kind != "raising" else logging.ERROR):
        run = Runner.run_streamed(outer(tool), "Go.")
        events = await read_events(run)
    assert answer(run) == ("ok", "3")
    assert isinstance(seen[0], RunStartedEvent)
    assert isinstance(seen[-1], RunFinishedEvent)
    assert {event.path[:1] for event in seen} == {("call_1",)}
    assert [event.seq for event in seen] == sorted(event.seq for event in seen)
    inside = [event for event in events if event.path[:1] == ("call_1",)]
    if streaming:
        assert [e.seq for e in inside[1:-1]] == [e.seq for e in seen]
    else:
        assert len(inside) == 2
    assert ("callback" in caplog.text) == (kind == "raising")


@pytest.mark.parametrize("way", ["cancel", "error"])
async def test_a_hanging_callback_does_not_delay_the_end_of_a_failed_run(way: str) -> None:
    """A run that ends without a result does not wait for its subscribers."""
    entered, stuck, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hangs(event: Event) -> None:
        stuck.set()
        try:
            await asyncio.sleep(60)
        finally:
            left.set()

    async def step(request: ModelRequest) -> Any:
        entered.set()
        await stuck.wait()
        if way == "error":
            raise ModelError("gone")
        await asyncio.sleep(60)

    run = Runner.run_streamed(outer(agent(step).as_tool(on_stream=hangs)), "Go.")
    async with asyncio.timeout(1.5):
        await entered.wait()
        await stuck.wait()
        if way == "cancel":
            run.cancel()
        await read_events(run)
        await left.wait()
    assert answer(run)[0] == ("cancelled" if way == "cancel" else "tool_error")


# --- runs inside functions


@pytest.mark.requirement("A62")
async def test_a_run_started_inside_a_function_belongs_to_the_outer_run() -> None:
    """Its events, usage and cancellation, without extra code in the function."""
    used = Usage(requests=1, input_tokens=1)
    inner = Agent(
        "inner",
        model=ScriptedModel([tool_call("add", a=1, b=2), "3"], usage=used),
        tools=[add],
    )

    @function_tool
    async def helper() -> str:
        return (await Runner.run(inner, "?")).final_output

    one = Agent(
        "outer", model=ScriptedModel([tool_call("helper"), "x"], usage=used), tools=[helper]
    )
    run = Runner.run_streamed(one, "Go.", context="app")
    events = await read_events(run)
    assert short(events) == snapshot(
        [
            "run_started",
            "message",
            "tool_called",
            "tool_stream_start call_1",
            "run_started call_1",
            "message call_1",
            "tool_called call_1",
            "tool_stream_start call_1/call_1",
            "notify call_1/call_1",
            "tool_stream_end call_1/call_1",
            "tool_output call_1",
            "message_output_created call_1",
            "run_finished call_1",
            "tool_stream_end call_1",
            "tool_output",
            "message_output_created",
            "run_finished",
        ]
    )
    assert run.usage.requests == 4
    assert len(run.to_input_list()) == 4


@pytest.mark.requirement("A62")
async def test_a_run_inside_a_function_that_exceeds_its_turns_is_a_tool_error() -> None:
    """The calling model reads the limit, and its run continues."""
    inner = agent(*[tool_call("add", a=1, b=1)] * 3, tools=[add])

    @function_tool
    async def helper() -> str:
        return str((await Runner.run(inner, "?", max_turns=2)).final_output)

    result = await Runner.run(outer(helper, steps=[tool_call("helper"), "x"]), "Go.")
    status, text = answer(result)
    assert status == "tool_error"
    assert "did not finish within 2 turns" in text
    assert result.final_output == "x"


@pytest.mark.requirement("A36")
async def test_a_streamed_run_inside_a_tool_is_visible_inside_and_outside() -> None:
    """A streaming tool can forward selected events; all others are streamed anyway."""
    inner = agent("Three.")
    seen: list[str] = []

    @streaming_tool
    async def helper():
        async with Runner.run_streamed(inner, "?") as inside:
            async for event in inside.stream_events():
                seen.append(event.type)  # noqa: PERF401 - as a tool would be written
        yield inside.final_output

    run = Runner.run_streamed(outer(helper, steps=[tool_call("helper"), "x"]), "Go.")
    events = await read_events(run)
    assert answer(run) == ("ok", "Three.")
    inside = [event.type for event in events if event.path == ("call_1",)]
    assert inside[1:-1] == seen


async def test_a_sync_tool_can_run_an_agent() -> None:
    """`run_sync` finds the outer run, although it uses another loop."""
    inner = agent(tool_call("add", a=1, b=2), "3", tools=[add])

    @function_tool
    def helper() -> str:
        return Runner.run_sync(inner, "?").final_output

    run = Runner.run_streamed(outer(helper, steps=[tool_call("helper"), "x"]), "Go.")
    events = await read_events(run)
    assert answer(run) == ("ok", "3")
    assert ("call_1", "call_1") in {event.path for event in events}


async def test_a_listener_records_runs_as_well_as_tools() -> None:
    """Everything started inside the block, plain runs included."""
    async with listen() as emitted:
        await Runner.run(_three_deep(), "Go.")
    events = emitted.events
    check_events(events)
    assert isinstance(events[0], RunStartedEvent)
    assert isinstance(events[-1], RunFinishedEvent)
    assert ("call_1", "call_1", "call_1") in {event.path for event in events}


# --- cancellation and timeouts


@pytest.mark.requirement("F40")
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("way", ["cancel", "deadline", "sibling"])
async def test_f40_three_levels_end_with_the_outermost_run(way: str, *, streaming: bool) -> None:
    """Within a second; each call and each run has one end event, and nothing keeps running."""
    entered, left, extracted = asyncio.Event(), [], []

    @function_tool
    async def hangs() -> str:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            left.append(1)
        return "x"

    @function_tool(failure_error_function=None)
    async def fails() -> str:
        await entered.wait()
        raise RuntimeError("out of fuel")

    deep = agent(tool_call("hangs"), tools=[hangs], name="deep")
    inner = agent(tool_call("deep", input="?"), tools=[deep.as_tool(streaming=streaming)])
    calls = [ASK, tool_call("fails")] if way == "sibling" else [ASK]
    tool = inner.as_tool(streaming=streaming, custom_output_extractor=extracted.append)
    one = outer(tool, fails, steps=[calls])
    config = RunConfig(timeout=0.2) if way == "deadline" else None
    run = Runner.run_streamed(one, "Go.", run_config=config)
    events: list[Event] = []

    async def read() -> None:
        async for event in run.stream_events():
            events.append(event)  # noqa: PERF401 - must survive an error of the iteration

    async with asyncio.timeout(1.2):
        await entered.wait()
        if way == "cancel":
            run.cancel()
            await read()
        else:
            kind = TimeoutError if way == "deadline" else RuntimeError
            with pytest.raises(kind):
                await read()
    check_events(events)
    assert left == [1]
    assert extracted == []
    finished = [event.path for event in events if isinstance(event, RunFinishedEvent)]
    expected = [("call_1", "call_1"), ("call_1",), ()] if streaming else [()]
    assert finished == expected
    ends = [e.status for e in events if isinstance(e, ToolStreamEndEvent) and "call_1" in e.path]
    assert ends == ["cancelled"] * (3 if streaming else 1)
    statuses = [i.status for i in run.new_items if isinstance(i, ToolCallOutputItem)]
    assert statuses == (["cancelled", "tool_error"] if way == "sibling" else ["cancelled"])


async def test_an_agent_that_times_out_leaves_no_call_open() -> None:
    """Inner calls end before the tool does, cleaned up or not."""

    @function_tool
    async def hang() -> None:
        await asyncio.Event().wait()

    inner = agent([tool_call("hang")], tools=[hang])
    tool = policies.timeout(1)(inner.as_tool(streaming=True))
    emitted: list[Event] = []
    outcome = await tool.call(ToolContext(emit=emitted.append), '{"input": "Wait."}')
    assert outcome.status == "timeout"
    check_events(emitted)
    ends = [event for event in emitted if isinstance(event, ToolStreamEndEvent)]
    assert [(event.tool_name, event.status) for event in ends] == [
        ("hang", "lost"),
        ("inner", "timeout"),
    ]
    if rest := asyncio.all_tasks() - {asyncio.current_task()}:
        assert (await asyncio.wait(rest, timeout=AT_MOST))[1] == set()
