"""Agents of a framework as tools; `AGENTS_TOOLS_FRAMEWORK` selects the framework."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import Any

import pytest

from agents_tools import (
    Agent,
    Event,
    FunctionTool,
    MaxTurnsExceeded,
    NotifyStreamEvent,
    RunContextWrapper,
    RunFinishedEvent,
    Runner,
    ToolContext,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    Usage,
    function_tool,
    policies,
)
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, call_tool, check_events, tool_call
from tests.frameworks.suite import Call, harness_of

pytestmark = pytest.mark.anyio

HARNESS: Any = harness_of(os.environ["AGENTS_TOOLS_FRAMEWORK"])
if not hasattr(HARNESS, "as_tool"):
    pytest.skip("agents of this framework become no tools", allow_module_level=True)
DONE = "They are fine."


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Seen:
    """Values that the inner tool received."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.inside = asyncio.Event()
        self.cancelled = asyncio.Event()


@pytest.fixture
def seen() -> Seen:
    return Seen()


def _theirs(seen: Seen) -> Any:
    """Return a tool of the framework."""

    async def look_up(topic: str) -> str:
        """Look up a topic."""
        if topic == "for ever":
            seen.inside.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.cancelled.set()
                raise
        if topic == "nothing":
            raise LookupError("no such topic")
        seen.topics.append(topic)
        return f"{topic} are fine"

    return HARNESS.own({"look_up": look_up})["look_up"]


def _scout(seen: Seen, topic: str, **options: Any) -> FunctionTool[..., Any]:
    calls = [Call("f1", "look_up", f'{{"topic": "{topic}"}}')]
    return HARNESS.as_tool([_theirs(seen)], [calls, DONE], **options)


def _name(event: Event) -> str:
    """Return the name of a tool without that of its server."""
    return (event.tool_name or "").rpartition("__")[2]


def _said(events: Any) -> str:
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    return "".join(event.data for event in said if len(event.path) == 1)


async def test_the_answer_of_the_agent_is_the_result_of_the_tool(seen: Seen) -> None:
    """Without streaming, the caller sees a call and its result, and no inner events."""
    tool = _scout(seen, "bees")
    assert tool.name == "scout"
    assert (tool.origin.kind, tool.origin.agent) == ("agent", "Scout")
    called = await call_tool(tool, input="How are bees?")
    assert (called.status, called.output) == ("ok", DONE)
    assert seen.topics == ["bees"]
    assert {event.type for event in called.events} == {
        "tool_stream_start_event",
        "tool_stream_end_event",
    }


async def test_inner_events_are_streamed_below_the_call_of_the_agent(seen: Seen) -> None:
    """An inner call is a child of the agent's call, and inner text is its deltas."""
    tool = _scout(seen, "bees", streaming=True)
    model = ScriptedModel([tool_call("scout", input="How are bees?", call_id="c1"), "Fine."])
    run = Runner.run_streamed(Agent("Top", tools=[tool], model=model), "Bees?")
    events = [event async for event in run.stream_events()]
    check_events(events)
    started = [event for event in events if isinstance(event, ToolStreamStartEvent)]
    assert [(_name(event), event.path, event.input_args) for event in started] == [
        ("scout", ("c1",), {"input": "How are bees?"}),
        ("look_up", ("c1", "f1"), {"topic": "bees"}),
    ]
    ended = [event for event in events if isinstance(event, ToolStreamEndEvent)]
    assert [(event.path[-1], event.status) for event in ended] == [("f1", "ok"), ("c1", "ok")]
    assert _said(events) == DONE
    deltas = [event for event in events if isinstance(event, NotifyStreamEvent)]
    assert len(deltas) == 3


async def test_the_usage_of_the_agent_counts_for_the_caller(seen: Seen) -> None:
    """A budget must include sub-agents."""
    model = ScriptedModel([tool_call("scout", input="How?"), "Fine."], usage=Usage(requests=1))
    result = await Runner.run(Agent("Top", tools=[_scout(seen, "bees")], model=model), "Bees?")
    assert result.usage.requests == 4
    assert (result.usage.input_tokens, result.usage.output_tokens) == (10, 4)


async def test_the_usage_of_a_failed_agent_counts_for_every_outer_run(seen: Seen) -> None:
    """An agent that fails each time must use up the budget, at any depth."""
    one = Usage(requests=1)
    inner = ScriptedModel([tool_call("scout", input="How?"), "It failed."], usage=one)
    middle = Agent("Middle", tools=[_scout(seen, "bees", max_turns=1)], model=inner)
    model = ScriptedModel([tool_call("middle", input="Go."), "Fine."], usage=one)
    result = await Runner.run(Agent("Top", tools=[middle.as_tool()], model=model), "Bees?")
    assert DONE not in str(inner.requests[-1].input[-1])
    assert result.usage.requests == 5


@pytest.mark.parametrize("streaming", [True, False])
async def test_our_tools_in_the_agent_emit_their_events_once(streaming: bool) -> None:
    """Events of our tool appear once, below the right call."""

    @function_tool
    async def ask_around(ctx: ToolContext[Any], topic: str) -> str:
        """Ask around."""
        ctx.notify(f"asking around about {topic}")
        return "they are"

    heard: list[Event] = []
    calls = [Call("f1", "ask_around", '{"topic": "bees"}')]
    tools = HARNESS.ours([ask_around])
    tool = HARNESS.as_tool(tools, [calls, DONE], streaming=streaming, on_stream=heard.append)
    called = await call_tool(tool, input="Bees?")
    check_events(called.events)
    for events, expected in ((called.events, streaming), (heard, True)):
        said = [event for event in events if isinstance(event, NotifyStreamEvent)]
        asked = [event for event in said if event.data == "asking around about bees"]
        assert len(asked) == expected
        if getattr(HARNESS, "tells_ids", True):
            assert all(event.path[1:] == ("f1",) for event in asked)
        started = [event for event in events if isinstance(event, ToolStreamStartEvent)]
        inner = [event for event in started if event.tool_name == "ask_around"]
        assert len(inner) == expected


async def test_our_tools_in_the_agent_get_the_context_of_the_run() -> None:
    """The application's context object must pass through the framework."""

    @function_tool
    async def whoami(ctx: ToolContext[Any]) -> str:
        """Tell who is asking."""
        found.append(ctx.context)
        return ""

    found: list[Any] = []
    tool = HARNESS.as_tool(HARNESS.ours([whoami]), [[Call("f1", "whoami")], DONE])
    model = ScriptedModel([tool_call("scout", input="How?"), "Fine."])
    user = object()
    await Runner.run(Agent("Top", tools=[tool], model=model), "Who?", context=user)
    assert found == [user]


async def test_a_failure_of_the_agent_is_a_failure_of_the_tool(seen: Seen) -> None:
    """The calling model reads the error; the run continues."""
    called = await call_tool(_scout(seen, "nothing", streaming=True), input="How is nothing?")
    check_events(called.events)
    told = {
        "ok": (DONE,),  # the framework reported it to its own model, which continued
        "tool_error": ("no such topic",),
    }
    assert any(text in str(called.output) for text in told[called.status])
    ended = [event for event in called.events if isinstance(event, ToolStreamEndEvent)]
    assert ended[0].path[-1] == "f1"
    assert ended[0].status in {"tool_error", "lost"}


async def test_a_failing_model_is_a_failure_of_the_tool() -> None:
    """An agent whose model cannot be reached has no answer."""
    called = await call_tool(HARNESS.as_tool([], []), input="How are bees?")
    assert called.status == "tool_error"


async def test_cancelling_the_call_cancels_the_agent(seen: Seen) -> None:
    """The inner run must stop completely."""
    tool = _scout(seen, "for ever", streaming=True)
    async with tool.stream(input="Wait.") as stream:
        async for event in stream:
            if event.path and event.path[-1] == "f1":
                break
        await asyncio.wait_for(seen.inside.wait(), 5)
    await asyncio.wait_for(seen.cancelled.wait(), 5)


async def test_cancelling_the_call_cancels_our_inner_tools() -> None:
    """The framework must not keep a cancelled call alive."""
    inside, over = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    tool = HARNESS.as_tool(HARNESS.ours([wait]), [[Call("f1", "wait")], DONE])
    async with tool.stream(input="Wait."):
        await asyncio.wait_for(inside.wait(), 5)
    await asyncio.wait_for(over.wait(), 5)


async def test_the_usage_of_a_cancelled_agent_counts(seen: Seen) -> None:
    """The usage until the cancellation is charged."""
    used = Usage()
    tool = _scout(seen, "for ever")
    context = RunContextWrapper(None, usage=used)
    async with tool.stream(context=context, input="Wait."):
        await asyncio.wait_for(seen.inside.wait(), 5)
    assert (used.requests, used.input_tokens, used.output_tokens) == (1, 5, 2)


async def test_an_extractor_gets_the_result_object_of_the_framework(seen: Seen) -> None:
    """It can read fields that only the framework has."""

    async def extract(result: Any) -> str:
        return f"from {type(result).__name__}"

    called = await call_tool(_scout(seen, "bees", custom_output_extractor=extract), input="Bees?")
    results = {"AgentOutput", "AgentResponse", "AgentResult", "Event", "ResultMessage", "RunOutput"}
    assert str(called.output).removeprefix("from ") in results


async def test_a_callback_gets_inner_events_without_streaming(seen: Seen) -> None:
    """`on_stream` is for showing one agent in one place."""
    heard: list[Event] = []
    called = await call_tool(_scout(seen, "bees", on_stream=heard.append), input="Bees?")
    assert len(called.events) == 2
    started = [event for event in heard if isinstance(event, ToolStreamStartEvent)]
    assert [_name(event) for event in started] == ["look_up"]
    assert isinstance(heard[-1], RunFinishedEvent)


async def test_a_typed_input_is_passed_as_json(seen: Seen) -> None:
    """Structured input is validated before the agent starts."""

    @dataclass
    class Question:
        topic: str
        depth: int = 1

    tool = _scout(seen, "bees", parameters=Question)
    assert set(tool.params_json_schema["properties"]) == {"topic", "depth"}
    assert (await call_tool(tool, topic="bees", depth="deep")).status == "invalid_args"
    assert (await call_tool(tool, topic="bees")).status == "ok"


async def test_an_agent_that_waits_for_approval_has_no_answer() -> None:
    """An empty text, or the task itself, would pass for an answer."""
    if not getattr(HARNESS, "waits", True):
        pytest.skip("its agents do not wait: a call that needs a person is refused")
    launched: list[str] = []

    @needs_approval
    @function_tool
    async def launch(rocket: str) -> str:
        """Launch a rocket."""
        launched.append(rocket)
        return "launched"

    tools = HARNESS.ours([launch])
    if HARNESS.name == "agno":
        tools[0].requires_confirmation = True
    if HARNESS.name == "agent_framework":
        tools[0].approval_mode = "always_require"
    calls = [Call("f1", "launch", '{"rocket": "V2"}')]
    called = await call_tool(HARNESS.as_tool(tools, [calls, "done"], streaming=True), input="Go.")
    assert called.status == "denied"
    assert "'Scout' waits for" in str(called.output)
    assert "launch" in str(called.output)
    assert not launched
    check_events(called.events)
    finished = [event for event in called.events if isinstance(event, RunFinishedEvent)]
    assert [event.status for event in finished] == ["interrupted"]


async def test_concurrent_and_successive_calls_are_independent() -> None:
    """Two calls of one agent must not share a conversation."""
    answers = ["one", "two", "three"]
    tool = HARNESS.as_tool([], answers)
    called = await asyncio.gather(call_tool(tool, input="a"), call_tool(tool, input="b"))
    assert sorted(str(one.output) for one in called) == ["one", "two"]
    assert (await call_tool(tool, input="c")).output == "three"


async def test_nested_agents_count_usage_and_emit_events_once() -> None:
    """Every request is counted once, and every call is streamed once."""

    @function_tool
    async def dig(ctx: ToolContext[Any]) -> str:
        """Dig."""
        ctx.notify("digging")
        return "dug"

    each = Usage(requests=1, input_tokens=100, output_tokens=10)
    inner = ScriptedModel([tool_call("dig", call_id="d1"), "Inner says so."], usage=each)
    tools = HARNESS.ours([Agent("Inner", tools=[dig], model=inner).as_tool(streaming=True)])
    calls = [Call("f1", "inner", '{"input": "Dig."}')]
    scout = HARNESS.as_tool(tools, [calls, "They are fine."], streaming=True)
    model = ScriptedModel([tool_call("scout", input="How?", call_id="c1"), "Fine."])
    run = Runner.run_streamed(Agent("Top", tools=[scout], model=model), "Bees?")
    events = [event async for event in run.stream_events()]
    check_events(events)
    started = [event for event in events if isinstance(event, ToolStreamStartEvent)]
    names = [(event.tool_name or "").rpartition("__")[2] for event in started]
    assert names == ["scout", "inner", "dig"]
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    assert [event.data for event in said].count("digging") == 1
    # Two of the framework's, two of the inner agent's; those of the outer one say nothing.
    assert run.usage.input_tokens == 10 + 200
    assert run.usage.output_tokens == 4 + 20


async def test_a_failing_callback_does_not_affect_the_call() -> None:
    """A subscriber must not be able to break the run."""

    def hear(_event: Event) -> None:
        raise RuntimeError("deaf")

    called = await call_tool(HARNESS.as_tool([], ["Fine."], on_stream=hear), input="a")
    assert (called.status, called.output) == ("ok", "Fine.")


async def test_a_callback_can_be_async() -> None:
    """A callback that writes to a socket is async."""
    heard: list[Event] = []

    async def hear(event: Event) -> None:
        await asyncio.sleep(0)
        heard.append(event)

    await call_tool(HARNESS.as_tool([], ["Fine."], on_stream=hear), input="a")
    assert isinstance(heard[-1], RunFinishedEvent)


async def test_a_failing_extractor_is_a_failure_of_the_tool() -> None:
    """Its error message is not an answer."""

    def extract(_result: Any) -> str:
        raise LookupError("nothing in it")

    tool = HARNESS.as_tool([], ["Secret words."], custom_output_extractor=extract)
    called = await call_tool(tool, input="a")
    assert called.status == "tool_error"
    assert "Secret words" not in str(called.output)


async def test_too_many_turns_have_their_own_error(seen: Seen) -> None:
    """A caller can distinguish an agent that loops from one that failed."""
    calls = [[Call(f"f{number}", "look_up", '{"topic": "bees"}')] for number in range(9)]
    tool = HARNESS.as_tool([_theirs(seen)], calls, max_turns=2)
    called = await call_tool(tool, input="How are bees?")
    assert called.status == "tool_error"
    assert isinstance(called.outcome.error, MaxTurnsExceeded)
    assert "2 turns" in str(called.output)


async def test_equal_inner_call_ids_of_concurrent_calls_are_distinguished() -> None:
    """Each conversation numbers its calls from the start."""
    both = asyncio.Barrier(2)

    @function_tool
    async def meet(ctx: ToolContext[Any]) -> str:
        """Meet the other."""
        if HARNESS.name != "strands":  # its agents do one thing at a time
            await asyncio.wait_for(both.wait(), 5)
        ctx.notify("met")
        return "met"

    calls = [Call("f1", "meet")]
    tool = HARNESS.as_tool(HARNESS.ours([meet]), [calls, calls, DONE, DONE], streaming=True)
    if HARNESS.name in {"strands", "claude_agent_sdk"}:
        tool = HARNESS.as_tool(HARNESS.ours([meet]), [calls, DONE, calls, DONE], streaming=True)
    model = ScriptedModel(
        [
            [
                tool_call("scout", input="a", call_id="c1"),
                tool_call("scout", input="b", call_id="c2"),
            ],
            "Fine.",
        ]
    )
    run = Runner.run_streamed(Agent("Top", tools=[tool], model=model), "Both.")
    events = [event async for event in run.stream_events()]
    check_events(events)
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    met = sorted(event.path[0] for event in said if event.data == "met")
    assert met == ["c1", "c2"]


async def test_a_framework_nested_in_itself_answers_and_is_cancelled(seen: Seen) -> None:
    """The inner and the outer run must not be confused."""
    for topic, ends in (("bees", True), ("for ever", False)):
        answers = [tool_call("scout", input="How?", call_id="s1"), "All is well."]
        middle = Agent("Middle", tools=[_scout(seen, topic)], model=ScriptedModel(answers))
        calls = [Call("f1", "middle", '{"input": "Ask the scout."}')]
        running = asyncio.create_task(HARNESS.run(HARNESS.ours([middle.as_tool()]), calls))
        if ends:
            report = await asyncio.wait_for(running, 20)
            assert report.error is None
            assert report.final == "done"
            assert "All is well." in report.answers["f1"].text
            assert seen.topics == ["bees"]
            continue
        await asyncio.wait_for(seen.inside.wait(), 20)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await asyncio.wait_for(seen.cancelled.wait(), 5)


async def test_a_timeout_of_an_agent_ends_its_inner_calls(seen: Seen) -> None:
    """A hanging framework must not block the outer run."""
    tool = policies.timeout(1.0)(_scout(seen, "for ever"))
    called = await asyncio.wait_for(call_tool(tool, input="Wait."), 20)
    assert called.status == "timeout"
    await asyncio.wait_for(seen.cancelled.wait(), 5)
