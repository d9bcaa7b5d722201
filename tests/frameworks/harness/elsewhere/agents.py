"""Agents of a framework as tools; `AGENTS_TOOLS_FRAMEWORK` says of which."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any

import pytest

from agents_tools import (
    Agent,
    Event,
    FunctionTool,
    NotifyStreamEvent,
    RunFinishedEvent,
    Runner,
    ToolContext,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    Usage,
    function_tool,
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
    """What the inner tool sees."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.inside = asyncio.Event()
        self.cancelled = asyncio.Event()


@pytest.fixture
def seen() -> Seen:
    return Seen()


def _theirs(seen: Seen) -> Any:
    """Give a tool of the framework's own."""

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
    """Give the name of a tool without that of its server."""
    return (event.tool_name or "").rpartition("__")[2]


def _said(events: Any) -> str:
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    return "".join(event.data for event in said if len(event.path) == 1)


async def test_the_answer_of_the_agent_is_the_answer_of_the_tool(seen: Seen) -> None:
    """Without streaming, the caller sees a call and its result, nothing of the inside."""
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


async def test_what_happens_inside_is_live_and_in_its_place(seen: Seen) -> None:
    """An inner tool is a call below the agent's own, and its text is deltas of the agent's."""
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


async def test_what_it_used_counts_for_the_caller(seen: Seen) -> None:
    """A budget that forgets sub-agents is none."""
    model = ScriptedModel([tool_call("scout", input="How?"), "Fine."], usage=Usage(requests=1))
    result = await Runner.run(Agent("Top", tools=[_scout(seen, "bees")], model=model), "Bees?")
    assert result.usage.requests == 4
    assert (result.usage.input_tokens, result.usage.output_tokens) == (10, 4)


async def test_what_it_used_before_it_failed_counts_for_every_run_around_it(seen: Seen) -> None:
    """A loop that fails each time must use up the budget, whoever is in between."""
    one = Usage(requests=1)
    inner = ScriptedModel([tool_call("scout", input="How?"), "It failed."], usage=one)
    middle = Agent("Middle", tools=[_scout(seen, "bees", max_turns=1)], model=inner)
    model = ScriptedModel([tool_call("middle", input="Go."), "Fine."], usage=one)
    result = await Runner.run(Agent("Top", tools=[middle.as_tool()], model=model), "Bees?")
    assert DONE not in str(inner.requests[-1].input[-1])
    assert result.usage.requests == 5


@pytest.mark.parametrize("streaming", [True, False])
async def test_our_own_tools_inside_are_heard_like_the_rest_of_the_inside(streaming: bool) -> None:
    """A tool of ours in such an agent speaks for itself: once, and at its place."""

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


async def test_our_own_tools_inside_find_the_context_of_the_run() -> None:
    """The application's object must not get lost on the way through another framework."""

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


async def test_a_failure_inside_is_a_failure_of_the_tool(seen: Seen) -> None:
    """The model of the caller reads what went wrong; the run goes on."""
    called = await call_tool(_scout(seen, "nothing", streaming=True), input="How is nothing?")
    check_events(called.events)
    told = {
        "ok": (DONE,),  # the framework told its own model, which went on
        "tool_error": ("no such topic",),
    }
    assert any(text in str(called.output) for text in told[called.status])
    ended = [event for event in called.events if isinstance(event, ToolStreamEndEvent)]
    assert ended[0].path[-1] == "f1"
    assert ended[0].status in {"tool_error", "lost"}


async def test_a_model_that_fails_is_a_failure_of_the_tool() -> None:
    """An agent whose model cannot be reached has no answer."""
    called = await call_tool(HARNESS.as_tool([], []), input="How are bees?")
    assert called.status == "tool_error"


async def test_cancelling_the_call_cancels_the_agent(seen: Seen) -> None:
    """Nobody waits for the inner run any more, so nothing of it may go on."""
    tool = _scout(seen, "for ever", streaming=True)
    async with tool.stream(input="Wait.") as stream:
        async for event in stream:
            if event.path and event.path[-1] == "f1":
                break
        await asyncio.wait_for(seen.inside.wait(), 5)
    await asyncio.wait_for(seen.cancelled.wait(), 5)


async def test_cancelling_the_call_cancels_our_tools_inside() -> None:
    """The framework in between must not keep a call alive that nobody waits for."""
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


async def test_an_extractor_gets_the_result_of_the_framework(seen: Seen) -> None:
    """What only the framework knows must be within reach."""

    async def extract(result: Any) -> str:
        return f"from {type(result).__name__}"

    called = await call_tool(_scout(seen, "bees", custom_output_extractor=extract), input="Bees?")
    results = {"AgentOutput", "AgentResponse", "AgentResult", "Event", "ResultMessage", "RunOutput"}
    assert str(called.output).removeprefix("from ") in results


async def test_a_callback_hears_the_inside_though_the_caller_does_not(seen: Seen) -> None:
    """`on_stream` is for those who show one agent in one place."""
    heard: list[Event] = []
    called = await call_tool(_scout(seen, "bees", on_stream=heard.append), input="Bees?")
    assert len(called.events) == 2
    started = [event for event in heard if isinstance(event, ToolStreamStartEvent)]
    assert [_name(event) for event in started] == ["look_up"]
    assert isinstance(heard[-1], RunFinishedEvent)


async def test_the_agent_gets_input_of_a_type_as_json(seen: Seen) -> None:
    """Structured input is checked before the agent starts."""

    @dataclass
    class Question:
        topic: str
        depth: int = 1

    tool = _scout(seen, "bees", parameters=Question)
    assert set(tool.params_json_schema["properties"]) == {"topic", "depth"}
    assert (await call_tool(tool, topic="bees", depth="deep")).status == "invalid_args"
    assert (await call_tool(tool, topic="bees")).status == "ok"


async def test_an_agent_that_waits_for_a_person_has_no_answer() -> None:
    """An empty text, or the task itself, would pass for an answer that was never given."""
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


async def test_calls_at_once_and_calls_one_after_the_other_know_nothing_of_each_other() -> None:
    """Two calls of one agent must not get into each other's conversation."""
    answers = ["one", "two", "three"]
    tool = HARNESS.as_tool([], answers)
    called = await asyncio.gather(call_tool(tool, input="a"), call_tool(tool, input="b"))
    assert sorted(str(one.output) for one in called) == ["one", "two"]
    assert (await call_tool(tool, input="c")).output == "three"
