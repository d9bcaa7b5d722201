"""Test agents of other frameworks as tools: real frameworks with models that need no network."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from pydantic_ai import RunContext

from agents_tools import (
    Agent,
    AgentUpdatedStreamEvent,
    Event,
    NotifyStreamEvent,
    RunFinishedEvent,
    Runner,
    ToolContext,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    Usage,
    function_tool,
)
from agents_tools.errors import UserTypeError
from agents_tools.testing import ScriptedModel, call_tool, check_events, tool_call
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from agents_tools import FunctionTool


class InnerTool:
    """The inner tool of the agents, which records its calls."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.inside = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.asked: FunctionTool[..., Any] | None = None

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
        if self.asked is not None:
            await self.asked.invoke(topic=topic)
        self.topics.append(topic)
        return f"{topic} are fine"


def _openai_agents(seen: InnerTool, topic: str, **options: Any) -> FunctionTool[..., Any]:
    from agents import Agent as ForeignAgent, RunConfig, Usage as ForeignUsage, function_tool
    from agents.testing import (
        ModelStep,
        ScriptedModel as Scripted,
        assistant_message,
        function_call,
    )
    from openai.types.responses.response_usage import InputTokensDetails

    from agents_tools.export.openai_agents import as_tool

    @function_tool
    async def look_up(topic: str) -> str:
        """Look up a topic."""
        return await seen.look_up(topic)

    details = InputTokensDetails(cached_tokens=1, cache_write_tokens=2)
    usage = ForeignUsage(
        requests=1, input_tokens=5, output_tokens=2, total_tokens=7, input_tokens_details=details
    )
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


def _pydantic_ai(seen: InnerTool, topic: str, **options: Any) -> FunctionTool[..., Any]:
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


def _langgraph(seen: InnerTool, topic: str, **options: Any) -> FunctionTool[..., Any]:
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.graph import END, START, MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]

    from agents_tools.export.langgraph import as_tool

    details = {"cache_read": 1, "cache_creation": 2}
    used: dict[str, Any] = {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 7,
        "input_token_details": details,
    }

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


FRAMEWORKS = {
    "openai_agents": _openai_agents,
    "pydantic_ai": _pydantic_ai,
    "langgraph": _langgraph,
}
"""What makes a tool of an agent that looks a topic up and then says that it is fine."""


@pytest.fixture(params=FRAMEWORKS)
def make(request: pytest.FixtureRequest) -> Callable[..., FunctionTool[..., Any]]:
    """Return a function that makes a tool of an agent of each framework."""
    return FRAMEWORKS[request.param]


@pytest.fixture
def seen() -> InnerTool:
    return InnerTool()


def _text_of(events: Iterable[Event]) -> str:
    notifications = [event for event in events if isinstance(event, NotifyStreamEvent)]
    return "".join(event.data for event in notifications if len(event.path) == 1)


async def test_the_answer_of_the_agent_is_the_output_of_the_tool(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """Without streaming, the caller sees a call and its result, and no inner event."""
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


async def test_events_inside_the_agent_are_streamed_live_in_its_call(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """An inner tool is a child of the agent's call; the agent's text is streamed as deltas."""
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
    assert _text_of(events) == "They are fine."
    assert [item.get("call_id") for item in run.to_input_list()] == [None, "c1", "c1", None]


async def test_usage_of_the_agent_counts_for_the_caller(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """A budget must include sub-agents."""
    model = ScriptedModel([tool_call("scout", input="How?"), "Fine."], usage=Usage(requests=1))
    result = await Runner.run(Agent("Top", tools=[make(seen, "bees")], model=model), "Bees?")
    assert result.usage.requests == 4
    assert result.usage.total_tokens > 0


@pytest.mark.parametrize("framework", ["openai_agents", "langgraph"])
async def test_tokens_of_the_cache_count_for_the_caller(framework: str, seen: InnerTool) -> None:
    """Those that are written cost more than others, and those that are read cost less."""
    model = ScriptedModel([tool_call("scout", input="How?"), "Fine."])
    agent = Agent("Top", tools=[FRAMEWORKS[framework](seen, "bees")], model=model)
    usage = (await Runner.run(agent, "Bees?")).usage
    assert (usage.cached_input_tokens, usage.cache_write_tokens) == (2, 4)


async def test_usage_before_a_failure_counts_for_every_outer_run(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """A loop that fails each time must use up the budget, however deeply it is nested."""
    one = Usage(requests=1)
    inner = ScriptedModel([tool_call("scout", input="How?"), "It failed."], usage=one)
    middle = Agent("Middle", tools=[make(seen, "bees", max_turns=1)], model=inner)
    model = ScriptedModel([tool_call("middle", input="Go."), "Fine."], usage=one)
    result = await Runner.run(Agent("Top", tools=[middle.as_tool()], model=model), "Bees?")
    assert "Tool 'scout' failed" in str(inner.requests[-1].input[-1])
    assert result.usage.requests == 5


@pytest.mark.parametrize("streaming", [True, False])
async def test_events_of_our_own_tools_follow_the_streaming_setting(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool, streaming: bool
) -> None:
    """Without streaming no inner event may appear, whichever library it comes from."""

    @function_tool
    async def ask_around(ctx: ToolContext[Any], topic: str) -> str:
        ctx.notify(f"asking around about {topic}")
        return "they are"

    seen.asked = ask_around
    received: list[Event] = []
    tool = make(seen, "bees", streaming=streaming, on_stream=received.append)
    called = await call_tool(tool, input="Bees?")
    check_events(called.events)
    for events, expected in ((called.events, streaming), (received, True)):
        assert ("asking around about bees" in str(events)) is expected


async def test_a_failure_of_the_agent_is_a_failure_of_the_tool(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """The model of the caller reads the error, and the run continues."""
    called = await call_tool(make(seen, "nothing", streaming=True), input="How is nothing?")
    texts = {
        "ok": (
            "They are fine.",
        ),  # this framework reports the error to its own model, and continues
        "tool_error": ("no such topic",),
    }
    assert any(text in str(called.output) for text in texts[called.status])


async def test_cancelling_the_call_cancels_the_agent(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """No one needs the result of the inner run any more, so it must stop."""
    tool = make(seen, "for ever", streaming=True)
    received: list[Event] = []
    async with tool.stream(input="Wait.") as stream:
        async for event in stream:
            received.append(event)
            if event.path and event.path[-1] == "f1":
                break
        await asyncio.wait_for(seen.inside.wait(), 5)
    assert seen.cancelled.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_timed_out_call_ends_its_inner_calls_before_itself(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """The result does not wait for the cleanup of the agent, and no call stays open forever."""
    received: list[Event] = []
    context: ToolContext[Any] = ToolContext(emit=received.append)
    tool = make(seen, "for ever", streaming=True)
    task = asyncio.create_task(tool.call(context, '{"input": "Wait."}'))
    await asyncio.wait_for(seen.inside.wait(), 5)
    call_of(context).end(
        "timeout"
    )  # as a timeout policy of the call does while the agent still runs
    task.cancel()
    await asyncio.wait_for(seen.cancelled.wait(), 5)
    await asyncio.wait({task}, timeout=30)
    check_events(received)
    assert [event.path[-1] for event in received].count("f1") == 2


async def test_an_extractor_gets_the_result_object_of_the_framework(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """Framework-specific data must be accessible."""

    async def extract(result: Any) -> str:
        return f"from {type(result).__name__}"

    called = await call_tool(make(seen, "bees", custom_output_extractor=extract), input="Bees?")
    assert called.output in {
        "from RunResultStreaming",
        "from AgentRunResult",
        "from dict",
    }


async def test_on_stream_receives_inner_events_that_the_caller_does_not(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """`on_stream` is for applications that show one agent in a place of its own."""
    received: list[Event] = []
    called = await call_tool(make(seen, "bees", on_stream=received.append), input="Bees?")
    assert len(called.events) == 2
    assert [event.tool_name for event in received if isinstance(event, ToolStreamStartEvent)] == [
        "look_up"
    ]
    assert isinstance(received[-1], RunFinishedEvent)


async def test_typed_input_reaches_the_agent_as_json(
    make: Callable[..., FunctionTool[..., Any]], seen: InnerTool
) -> None:
    """Structured input is validated before the agent starts."""

    @dataclass
    class Question:
        topic: str
        depth: int = 1

    tool = make(seen, "bees", parameters=Question)
    assert set(tool.params_json_schema["properties"]) == {"topic", "depth"}
    assert (await call_tool(tool, topic="bees", depth="deep")).status == "invalid_args"
    assert (await call_tool(tool, topic="bees")).status == "ok"


def _waits_in_openai_agents() -> FunctionTool[..., Any]:
    from agents import Agent as ForeignAgent, RunConfig, function_tool as foreign_function_tool
    from agents.testing import ModelStep, ScriptedModel as Scripted, function_call

    from agents_tools.export.openai_agents import as_tool

    @foreign_function_tool(needs_approval=True)
    async def launch() -> str:
        return "launched"

    model = Scripted([ModelStep(output=[function_call("launch", {}, call_id="f1")])])
    agent = ForeignAgent(name="Scout", tools=[launch], model=model)
    return as_tool(agent, run_config=RunConfig(tracing_disabled=True), streaming=True)


def _waits_in_pydantic_ai() -> FunctionTool[..., Any]:
    from pydantic_ai import Agent as ForeignAgent, DeferredToolRequests
    from pydantic_ai.models.test import TestModel

    from agents_tools.export.pydantic_ai import as_tool

    def launch() -> str:
        return "launched"

    agent = ForeignAgent(TestModel(), name="Scout", output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(launch)
    return as_tool(agent, streaming=True)


def _waits_in_langgraph() -> FunctionTool[..., Any]:
    from langgraph.types import interrupt

    async def ask(state: Any) -> Any:
        return {"messages": [("ai", interrupt("launch?"))]}

    return _graph_tool({"ask": ask}, streaming=True, remembers=True)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"tool_nmae": "x"}, r"as_tool(...) has no option 'tool_nmae'. Did you mean 'tool_name'?"),
        ({"max_turn": 3}, r"as_tool(...) has no option 'max_turn'. Did you mean 'max_turns'?"),
        ({"colour": "red"}, r"as_tool(...) has no option 'colour'. Its options: tool_name, "),
        ({"is_enabled": "no"}, "option is_enabled= expects a boolean, or a function of"),
        ({"failure_error_function": 1}, "option failure_error_function= expects a function of"),
    ],
    ids=lambda option: next(iter(option)) if isinstance(option, dict) else "",
)
@pytest.mark.parametrize("framework", ["langgraph", "openai_agents", "pydantic_ai"])
def test_a_wrong_option_raises_where_the_tool_is_created(
    framework: str, option: dict[str, Any], message: str
) -> None:
    as_tool = importlib.import_module(f"agents_tools.export.{framework}").as_tool
    with pytest.raises(UserTypeError) as caught:
        as_tool(SimpleNamespace(name="scout", description=None), **option)
    assert message in str(caught.value)
    if "as_tool" in message:
        assert str(caught.value).startswith(f"agents_tools.export.{framework}.as_tool(...) has")


@pytest.mark.parametrize(
    "make_waiting", [_waits_in_openai_agents, _waits_in_pydantic_ai, _waits_in_langgraph]
)
async def test_an_agent_that_waits_for_approval_returns_an_error(
    make_waiting: Callable[[], FunctionTool[..., Any]],
) -> None:
    """An empty text, or the task itself, could be mistaken for an answer."""
    called = await call_tool(make_waiting(), input="Go.")
    assert called.status == "denied"
    assert "'Scout' waits for" in str(called.output)
    assert "launch" in str(called.output)
    check_events(called.events)
    finished = [event for event in called.events if isinstance(event, RunFinishedEvent)]
    assert [event.status for event in finished] == ["interrupted"]
    ended = [event for event in called.events if isinstance(event, ToolStreamEndEvent)]
    assert {event.status for event in ended} == {"denied"}


# --- features of single frameworks


async def test_a_handoff_inside_the_agent_is_reported() -> None:
    """A user interface must show which agent is active."""
    from agents import Agent as ForeignAgent, RunConfig
    from agents.testing import (
        ModelStep,
        ScriptedModel as Scripted,
        assistant_message,
        function_call,
    )

    from agents_tools.export.openai_agents import as_tool

    model = Scripted(
        [
            ModelStep(output=[function_call("transfer_to_expert", {}, call_id="f1")]),
            ModelStep(output=[assistant_message("Bees it is.")]),
        ]
    )
    expert = ForeignAgent[Any](name="Expert", model=model)
    agent = ForeignAgent[Any](name="Scout", handoffs=[expert], model=model)
    tool = as_tool(agent, run_config=RunConfig(tracing_disabled=True), streaming=True)
    called = await call_tool(tool, input="Bees?")
    assert called.output == "Bees it is."
    updated = [event for event in called.events if isinstance(event, AgentUpdatedStreamEvent)]
    assert [event.agent for event in updated] == ["Expert"]


async def test_a_repeated_call_id_of_a_server_gives_two_calls() -> None:
    """Some servers restart their call ids in each answer; events need unique ids."""
    from pydantic_ai import Agent as ForeignAgent
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    from agents_tools.export.pydantic_ai import as_tool

    async def stream(messages: Any, info: Any) -> AsyncIterator[Any]:
        if len(messages) > 3:
            yield "done"
        else:
            yield {0: DeltaToolCall(name="work", json_args="{}", tool_call_id="f1")}

    def work() -> str:
        return "worked"

    agent = ForeignAgent(FunctionModel(stream_function=stream), name="Scout")
    agent.tool_plain(work)
    called = await call_tool(as_tool(agent, streaming=True), input="Work.")
    check_events(called.events)
    started = [event for event in called.events if isinstance(event, ToolStreamStartEvent)]
    assert [event.path[1:] for event in started] == [(), ("f1",), ("f1_2",)]


async def test_custom_events_appear_in_the_call_that_emits_them() -> None:
    """Progress of an inner tool belongs to that tool; server-side events are not shown."""
    from pydantic_ai import Agent as ForeignAgent
    from pydantic_ai.messages import CustomEvent
    from pydantic_ai.models.test import TestModel

    from agents_tools.export.pydantic_ai import as_tool

    @dataclass(kw_only=True)
    class HiveProgressEvent(CustomEvent):
        done: int
        total: int

    @dataclass(kw_only=True)
    class HiveMetricEvent(CustomEvent, ui=False):
        size: int

    async def work(ctx: RunContext[Any]) -> str:
        await ctx.emit(HiveProgressEvent(done=1, total=2))
        await ctx.emit(HiveMetricEvent(size=9))
        return "worked"

    agent = ForeignAgent(TestModel(), name="Scout")
    agent.tool(work)
    called = await call_tool(as_tool(agent, streaming=True), input="Work.")
    check_events(called.events)
    notifications = [event for event in called.events if isinstance(event, NotifyStreamEvent)]
    (progress,) = [event for event in notifications if not event.is_delta]
    assert (progress.tool_name, progress.tag, progress.data) == (
        "work",
        "hive_progress",
        '{"done":1,"total":2}',
    )


def _graph_tool(
    nodes: dict[str, Any], state: Any = None, *, remembers: bool = False, **options: Any
) -> FunctionTool[..., Any]:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]

    from agents_tools.export.langgraph import as_tool

    graph: Any = StateGraph(state or MessagesState)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    compiled = graph.compile(name="Scout", checkpointer=InMemorySaver() if remembers else None)
    if remembers:
        compiled = compiled.with_config({"configurable": {"thread_id": "1"}})
    return as_tool(compiled, **options)


async def test_a_graph_with_memory_reports_only_new_messages() -> None:
    """Earlier messages were streamed and counted in earlier runs."""
    from langchain_core.messages import AIMessage, ToolMessage

    times = 0

    async def work(state: Any) -> Any:
        nonlocal times
        times += 1
        used = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
        call = {"name": "look_up", "args": {}, "id": f"f{times}"}
        asked = AIMessage("", tool_calls=[call], usage_metadata=used)  # type: ignore[list-item]
        answered = ToolMessage("fine", tool_call_id=f"f{times}")
        return {"messages": [*state["messages"], asked, answered, AIMessage(f"Answer {times}.")]}

    tool = _graph_tool({"work": work}, remembers=True, streaming=True)
    for turn in (1, 2):
        called = await call_tool(tool, input="How are bees?")
        check_events(called.events)
        assert called.output == f"Answer {turn}."
        assert _text_of(called.events) == f"Answer {turn}."
        started = [event for event in called.events if isinstance(event, ToolStreamStartEvent)]
        assert [event.path[1:] for event in started] == [(), (f"f{turn}",)]
        (finished,) = [event for event in called.events if isinstance(event, RunFinishedEvent)]
        assert finished.usage is not None
        assert finished.usage["requests"] == 1


async def test_text_of_a_graph_model_is_streamed_once_in_pieces() -> None:
    """The full message that follows the pieces must not repeat their text."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    model = GenericFakeChatModel(messages=iter([AIMessage("bees are fine")]))

    async def ask(state: Any) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    called = await call_tool(_graph_tool({"ask": ask}, streaming=True), input="Bees?")
    notifications = [event for event in called.events if isinstance(event, NotifyStreamEvent)]
    assert [event.data for event in notifications] == ["bees", " ", "are", " ", "fine"]
    assert all(event.is_delta for event in notifications)
    assert called.output == "bees are fine"


async def test_custom_data_of_a_node_and_our_own_events_are_streamed() -> None:
    """A node can report progress with the API of either library."""
    from langgraph.config import get_stream_writer

    async def work(state: Any) -> Any:
        write = get_stream_writer()
        write("looking")
        write({"done": 1})
        write(ToolProgressEvent(1, 2))
        write(object())
        return {"messages": [("ai", "done")]}

    called = await call_tool(_graph_tool({"work": work}, streaming=True), input="Work.")
    check_events(called.events)
    notifications = [event for event in called.events if isinstance(event, NotifyStreamEvent)]
    assert [event.data for event in notifications if not event.is_delta] == [
        "looking",
        '{"done":1}',
        "(object, not JSON-serializable)",
    ]
    (progress,) = [event for event in called.events if isinstance(event, ToolProgressEvent)]
    assert (progress.current, progress.total) == (1, 2)


@dataclass
class Survey:
    """The state of a graph without messages."""

    topic: str = ""
    found: str = ""


class Structured(TypedDict, total=False):
    """The state of a graph whose answer has a type."""

    messages: Annotated[list[Any], lambda old, new: (old or []) + new]
    structured_response: dict[str, int]


async def test_a_graph_without_messages_receives_arguments_and_returns_its_state() -> None:
    """A plain pipeline is not a chat; its state is its interface."""

    @dataclass
    class Question:
        topic: str

    def look(state: Survey) -> dict[str, str]:
        return {"found": f"{state.topic} are fine"}

    called = await call_tool(_graph_tool({"look": look}, Survey, parameters=Question), topic="bees")
    assert called.output == '{"topic":"bees","found":"bees are fine"}'


async def test_a_structured_response_is_the_output() -> None:
    """The last message of such a graph is not the requested result."""

    def answer(state: Structured) -> Structured:
        return {"messages": [], "structured_response": {"bees": 3}}

    called = await call_tool(_graph_tool({"answer": answer}, Structured), input="How many?")
    assert called.output == '{"bees":3}'
