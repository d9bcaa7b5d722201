"""Agents of other frameworks as tools: the real frameworks, with models that need no network."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    RunFinishedEvent,
    Runner,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    Usage,
)
from agents_tools.testing import ScriptedModel, call_tool, check_events, tool_call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agents_tools import FunctionTool


class Seen:
    """What the inner tool sees."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.inside = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def look_up(self, topic: str) -> str:
        """Look up a topic."""
        if topic == "for ever":
            self.inside.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if topic == "nothing":
            raise LookupError("no such topic")
        self.topics.append(topic)
        return f"{topic} are fine"


def _openai_agents(seen: Seen, topic: str, **options: Any) -> FunctionTool[..., Any]:
    from agents import Agent as ForeignAgent, RunConfig, Usage as ForeignUsage, function_tool
    from agents.testing import (
        ModelStep,
        ScriptedModel as Scripted,
        assistant_message,
        function_call,
    )

    from agents_tools.export.openai_agents import as_tool

    @function_tool
    async def look_up(topic: str) -> str:
        """Look up a topic."""
        return await seen.look_up(topic)

    usage = ForeignUsage(requests=1, input_tokens=5, output_tokens=2, total_tokens=7)
    model = Scripted(
        [
            ModelStep(
                output=[function_call("look_up", {"topic": topic}, call_id="f1")], usage=usage
            ),
            ModelStep(output=[assistant_message("They are fine.")], usage=usage),
        ]
    )
    agent = ForeignAgent(name="Scout", tools=[look_up], model=model)
    return as_tool(agent, run_config=RunConfig(tracing_disabled=True), **options)


def _pydantic_ai(seen: Seen, topic: str, **options: Any) -> FunctionTool[..., Any]:
    from pydantic_ai import Agent as ForeignAgent
    from pydantic_ai.messages import ToolReturnPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    from agents_tools.export.pydantic_ai import as_tool

    async def stream(messages: Any, info: Any) -> AsyncIterator[Any]:
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            yield "They "
            yield "are fine."
        else:
            arguments = f'{{"topic": "{topic}"}}'
            yield {0: DeltaToolCall(name="look_up", json_args=arguments, tool_call_id="f1")}

    agent = ForeignAgent(FunctionModel(stream_function=stream), name="Scout")
    agent.tool_plain(seen.look_up)
    return as_tool(agent, **options)


def _langgraph(seen: Seen, topic: str, **options: Any) -> FunctionTool[..., Any]:
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.graph import END, START, MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]

    from agents_tools.export.langgraph import as_tool

    used = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}

    async def ask(state: Any) -> Any:
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage("They are fine.", usage_metadata=used)]}
        call = {"name": "look_up", "args": {"topic": topic}, "id": "f1"}
        return {"messages": [AIMessage("", tool_calls=[call], usage_metadata=used)]}

    async def run_tools(state: Any) -> Any:
        text = await seen.look_up(state["messages"][-1].tool_calls[0]["args"]["topic"])
        return {"messages": [ToolMessage(text, tool_call_id="f1")]}

    def after(state: Any) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", after)
    graph.add_edge("tools", "ask")
    return as_tool(graph.compile(name="Scout"), **options)


@dataclass
class Framework:
    """How to make a tool of an agent that looks a topic up and then says that it is fine."""

    make: Callable[..., FunctionTool[..., Any]]
    counts: bool = True


FRAMEWORKS = {
    "openai_agents": Framework(_openai_agents),
    "pydantic_ai": Framework(_pydantic_ai),
    "langgraph": Framework(_langgraph),
}


@pytest.fixture(params=FRAMEWORKS)
def make(request: pytest.FixtureRequest) -> Callable[..., FunctionTool[..., Any]]:
    """Make a tool of an agent of each framework."""
    return FRAMEWORKS[request.param].make


@pytest.fixture
def seen() -> Seen:
    return Seen()


def _told(events: list[Event]) -> str:
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    return "".join(event.data for event in said if len(event.path) == 1)


async def test_the_answer_of_the_agent_is_the_answer_of_the_tool(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """Without streaming, the caller sees a call and its result, nothing of the inside."""
    tool = make(seen, "bees")
    assert tool.name == "scout"
    assert (tool.origin.kind, tool.origin.agent) == ("agent", "Scout")
    called = await call_tool(tool, input="How are bees?")
    assert (called.status, called.output) == ("ok", "They are fine.")
    assert seen.topics == ["bees"]
    assert {event.type for event in called.events} == {
        "tool_stream_start_event",
        "tool_stream_end_event",
    }


async def test_what_happens_inside_is_live_and_in_its_place(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """An inner tool is a call below the agent's own, and its text is deltas of the agent's."""
    tool = make(seen, "bees", streaming=True)
    model = ScriptedModel([tool_call("scout", input="How are bees?", call_id="c1"), "Fine."])
    run = Runner.run_streamed(Agent("Top", tools=[tool], model=model), "Bees?")
    events = [event async for event in run.stream_events()]
    check_events(events)
    started = [event for event in events if isinstance(event, ToolStreamStartEvent)]
    assert [(event.tool_name, event.path, event.input_args) for event in started] == [
        ("scout", ("c1",), {"input": "How are bees?"}),
        ("look_up", ("c1", "f1"), {"topic": "bees"}),
    ]
    ended = [event for event in events if isinstance(event, ToolStreamEndEvent)]
    assert [(event.path[-1], event.status) for event in ended] == [("f1", "ok"), ("c1", "ok")]
    assert _told(events) in {"They are fine.", ""}  # a graph streams the text of real models only
    assert [item.get("call_id") for item in run.to_input_list()] == [None, "c1", "c1", None]


async def test_what_it_used_counts_for_the_caller(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """A budget that forgets sub-agents is none."""
    model = ScriptedModel([tool_call("scout", input="How?"), "Fine."], usage=Usage(requests=1))
    result = await Runner.run(Agent("Top", tools=[make(seen, "bees")], model=model), "Bees?")
    assert result.usage.requests == 4
    assert result.usage.total_tokens > 0


async def test_a_failure_inside_is_a_failure_of_the_tool(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """The model of the caller reads what went wrong; the run goes on."""
    called = await call_tool(make(seen, "nothing", streaming=True), input="How is nothing?")
    told = {
        "ok": ("They are fine.",),  # the framework told its own model, which went on
        "tool_error": ("no such topic",),
    }
    assert any(text in str(called.output) for text in told[called.status])


async def test_cancelling_the_call_cancels_the_agent(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """Nobody waits for the inner run any more, so nothing of it may go on."""
    tool = make(seen, "for ever", streaming=True)
    heard: list[Event] = []
    async with tool.stream(input="Wait.") as stream:
        async for event in stream:
            heard.append(event)
            if event.path and event.path[-1] == "f1":
                break
        await asyncio.wait_for(seen.inside.wait(), 5)
    await asyncio.wait_for(seen.cancelled.wait(), 5)


async def test_an_extractor_gets_the_result_of_the_framework(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """What only the framework knows must be within reach."""

    async def extract(result: Any) -> str:
        return f"from {type(result).__name__}"

    called = await call_tool(make(seen, "bees", custom_output_extractor=extract), input="Bees?")
    assert called.output in {
        "from RunResultStreaming",
        "from AgentRunResult",
        "from dict",
    }


async def test_a_callback_hears_the_inside_though_the_caller_does_not(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """`on_stream` is for those who show one agent in one place."""
    heard: list[Event] = []
    called = await call_tool(make(seen, "bees", on_stream=heard.append), input="Bees?")
    assert len(called.events) == 2
    assert [event.tool_name for event in heard if isinstance(event, ToolStreamStartEvent)] == [
        "look_up"
    ]
    assert isinstance(heard[-1], RunFinishedEvent)


async def test_the_agent_gets_input_of_a_type_as_json(
    make: Callable[..., FunctionTool[..., Any]], seen: Seen
) -> None:
    """Structured input is checked before the agent starts."""

    @dataclass
    class Question:
        topic: str
        depth: int = 1

    tool = make(seen, "bees", parameters=Question)
    assert set(tool.params_json_schema["properties"]) == {"topic", "depth"}
    assert (await call_tool(tool, topic="bees", depth="deep")).status == "invalid_args"
    assert (await call_tool(tool, topic="bees")).status == "ok"
