"""Event-driven agents: AgentController with a runtime and a memory on one stream."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest

from agents_tools import Agent, function_tool
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.builtin import FinishTool, ThinkTool
from agents_tools.classes.event_types import (
    AgentDelegateAction,
    AgentDelegateObservation,
    AgentErrorObservation,
    AgentFinishAction,
    AgentRejectAction,
    AgentState,
    AgentStateChangedObservation,
    AgentThinkAction,
    ChangeAgentStateAction,
    CmdKillAction,
    CmdOutputObservation,
    CmdRunAction,
    CondensationAction,
    CondensationRequestAction,
    ErrorObservation,
    MessageAction,
    NullObservation,
    RecallAction,
    RecallObservation,
    SystemMessageAction,
    ToolObservation,
    event_of,
)
from agents_tools.content import MessageInputItem, ReasoningItem, ToolCallItem, ToolCallOutputItem
from agents_tools.errors import ModelError, UserValueError
from agents_tools.event_driven import (
    AgentController,
    MemorySubscriber,
    State,
    ToolRuntime,
    asks_for_step,
    items_of,
)
from agents_tools.events import (
    ActionEvent,
    Event,
    EventSource,
    MessageEvent,
    ObservationEvent,
    Origin,
    RunItemStreamEvent,
    event_from_dict,
)
from agents_tools.persistence import EventFilter, MemoryEventStore
from agents_tools.persistence.stream import EventStream
from agents_tools.testing import ScriptedModel, tool_call

TIME_LIMIT = 45.0
USER, AGENT, ENVIRONMENT = EventSource.USER, EventSource.AGENT, EventSource.ENVIRONMENT


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
async def stream() -> AsyncIterator[EventStream]:
    """Return an open stream."""
    async with EventStream() as stream:
        yield stream


async def wait_for_state(stream: EventStream, wanted: AgentState, after: int = -1) -> Event:
    """Wait until the agent is in a state, and return the event of the change."""
    async with asyncio.timeout(TIME_LIMIT):
        async with stream.follow(after) as events:
            async for event in events:
                value: Any = getattr(event, "value", None) if not event.path else None
                if isinstance(value, AgentStateChangedObservation) and value.agent_state == wanted:
                    return event
    raise AssertionError("the stream has ended")


async def wait_for_observation(stream: EventStream, kind: str, after: int = -1) -> Event:
    """Wait for an observation of a kind."""
    async with stream.follow(after) as events:
        async for event in events:
            if isinstance(event, ObservationEvent) and event.kind == kind:
                return cast("Event", event)
    raise AssertionError("the stream has ended")


async def send_message(stream: EventStream, text: str, wanted: AgentState) -> None:
    """Send a user message and wait for the resulting state."""
    user_message = stream.add_event(MessageAction(text), USER)
    await wait_for_state(stream, wanted, user_message.id)


def kinds(stream: EventStream, path: tuple[str, ...] = ()) -> list[str]:
    """Return the kinds of the events of a conversation, without state changes."""
    return [
        getattr(event, "kind", None) or getattr(event, "name", "")
        for event in stream.get_events()
        if event.path == path
        and event.durable
        and getattr(event, "kind", "") != "AgentStateChangedObservation"
    ]


def states(stream: EventStream) -> list[str]:
    """Return the states of the outermost agent."""
    values: list[Any] = [
        event.value
        for event in stream.get_events(filter=EventFilter(types=("observation_event",)))
        if isinstance(event, ObservationEvent) and not event.path
    ]
    return [
        str(value.agent_state)
        for value in values
        if isinstance(value, AgentStateChangedObservation)
    ]


def summarize_request(request: ModelRequest) -> list[str]:
    """Return a short form of the input of a model request."""
    shown: list[str] = []
    for item in request.input:
        match item:
            case MessageInputItem():
                shown.append(f"{item.role}: {item.content}")
            case ToolCallItem():
                shown.append(f"call {item.name}")
            case ToolCallOutputItem():
                shown.append(f"output {item.output}")
            case _:
                shown.append(str(getattr(item, "text", "")))
    return shown


async def test_calls_of_a_truncated_response_are_answered_and_never_run(
    stream: EventStream,
) -> None:
    """Arguments that are cut off can still be valid JSON."""
    cut = ModelResponse(items=[tool_call("add", a=1, b=2)], finish_reason="length")
    model = ScriptedModel([cut, "I will be brief."])
    agent = Agent("Adder", tools=[add], model=model)
    async with ToolRuntime(stream, [add]), AgentController(stream, agent):
        await send_message(stream, "What is 1 + 2?", AgentState.AWAITING_USER_INPUT)
        shown = kinds(stream)
    assert "add" not in shown
    assert "AgentErrorObservation" in shown
    (output,) = (one for one in summarize_request(model.requests[1]) if one.startswith("output"))
    assert "cut off at the limit of output tokens" in output


@pytest.mark.requirement("D39", "D24", "D44")
async def test_events_flow_from_the_agent_to_the_runtime_and_back(stream: EventStream) -> None:
    """Agent, action, stream, runtime, observation, agent; each event names its cause."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "It is 3."])
    agent = Agent("Adder", instructions="Add.", tools=[add], model=model)
    async with ToolRuntime(stream, [add]), AgentController(stream, agent) as controller:
        await send_message(stream, "What is 1 + 2?", AgentState.AWAITING_USER_INPUT)
        assert kinds(stream) == [
            "MessageAction",
            "tool_called",
            "add",
            "ToolObservation",
            "message_output_created",
            "MessageAction",
        ]
        assert summarize_request(model.requests[1]) == [
            "user: What is 1 + 2?",
            "call add",
            "output 3",
        ]
        assert model.requests[0].instructions == "Add."
        events = {event.id: event for event in stream.get_events()}
        last = next(
            event
            for event in reversed(events.values())
            if isinstance(event, ActionEvent) and event.source is AGENT
        )
        chain: list[Event] = [last]
        while (cause := chain[-1].cause) is not None:
            chain.append(events[cause])
        assert [getattr(event, "kind", "") for event in chain] == [
            "MessageAction",
            "ToolObservation",
            "add",
            "MessageAction",
        ]
        assert [event.id for event in controller.state.history] == [
            event.id for event in events.values() if event.durable
        ]
        assert (controller.state.iteration, controller.state.usage.requests) == (
            2,
            2,
        )


@pytest.mark.requirement("D42")
@pytest.mark.parametrize(
    ("value", "source", "cause", "wanted"),
    [
        (MessageAction("Hi"), USER, None, True),
        (MessageAction("Hi"), AGENT, None, False),
        (CmdOutputObservation("a"), ENVIRONMENT, 3, True),
        (CmdOutputObservation("a"), ENVIRONMENT, None, False),
        (ErrorObservation("no"), ENVIRONMENT, 3, True),
        (AgentErrorObservation("no"), ENVIRONMENT, 3, True),
        (AgentDelegateObservation("done"), ENVIRONMENT, 3, True),
        (RecallObservation("owls"), ENVIRONMENT, 3, True),
        (NullObservation(), ENVIRONMENT, 3, False),
        (AgentStateChangedObservation("", AgentState.RUNNING), ENVIRONMENT, 3, False),
        (CmdRunAction("ls"), AGENT, None, False),
        (AgentThinkAction("Hm."), AGENT, None, False),
        (AgentFinishAction(), AGENT, None, False),
        (ChangeAgentStateAction(AgentState.RUNNING), USER, None, False),
        (RecallAction("owls"), USER, None, False),
        (CondensationRequestAction(), USER, None, False),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "message") else str(value),
)
async def test_only_certain_events_trigger_a_step(
    stream: EventStream, value: Any, source: EventSource, cause: int | None, wanted: bool
) -> None:
    """`should_step`, as a table."""
    event = event_of(value).replace(origin=Origin(source=source), cause=cause)
    assert asks_for_step(event) is wanted
    async with AgentController(stream, Agent("A", model=ScriptedModel())) as controller:
        for one in AgentState:
            controller.state.agent_state = one
            assert controller.should_step(event) is (wanted and one is AgentState.RUNNING)
        controller.state.agent_state = AgentState.RUNNING
        foreign = event.replace(origin=Origin(path=("call_1",), source=source))
        assert not controller.should_step(foreign)
    assert asks_for_step(MessageEvent("Hi", role="user"))
    assert not asks_for_step(MessageEvent("Hi", role="assistant"))
    assert not asks_for_step(RunItemStreamEvent("tool_called", {}))


@pytest.mark.requirement("D43")
async def test_state_changes_are_published_with_their_reason(stream: EventStream) -> None:
    """From LOADING to STOPPED, each with the source ENVIRONMENT."""
    agent = Agent("A", model=ScriptedModel(["Hello.", "Hello again."]))
    async with AgentController(stream, agent) as controller:
        await send_message(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED, "bye"), ENVIRONMENT)
        stopped: Any = await wait_for_state(stream, AgentState.STOPPED)
        assert stopped.value == AgentStateChangedObservation("", AgentState.STOPPED, "bye")
        assert stopped.source is ENVIRONMENT
        await controller.set_agent_state_to(AgentState.STOPPED)
        await send_message(stream, "And now?", AgentState.AWAITING_USER_INPUT)
    assert states(stream) == [
        "loading",
        "awaiting_user_input",
        "running",
        "awaiting_user_input",
        "stopped",
        "running",
        "awaiting_user_input",
    ]


@pytest.mark.requirement("D48", "D49")
async def test_a_thought_is_recorded_and_not_executed(stream: EventStream) -> None:
    """The text is in the history, and the description is that of the domain."""
    think = ThinkTool.create(description="Think about the rules of chess.")
    model = ScriptedModel([tool_call("think", thought="Hm."), "I have thought."])
    agent = Agent("A", tools=[*think], model=model)
    async with ToolRuntime(stream, think), AgentController(stream, agent) as controller:
        await send_message(stream, "Think.", AgentState.AWAITING_USER_INPUT)
        assert kinds(stream) == [
            "MessageAction",
            "tool_called",
            "AgentThinkAction",
            "AgentThinkObservation",
            "message_output_created",
            "MessageAction",
        ]
        thoughts: list[Any] = [
            event for event in controller.state.history
            if getattr(event, "kind", "") == "AgentThinkAction"
        ]  # fmt: skip
        assert [event.value for event in thoughts] == [AgentThinkAction("Hm.")]
    assert summarize_request(model.requests[1])[-1] == "output Your thought has been logged."
    offered: Any = model.requests[0].tools[0]
    assert offered.description == "Think about the rules of chess."


@pytest.mark.requirement("D32", "D43")
async def test_finishing_ends_the_task_with_its_outputs(stream: EventStream) -> None:
    """A new task can follow."""
    model = ScriptedModel([tool_call("finish", result="All is done."), "Yes?"])
    agent = Agent("A", tools=[*FinishTool.create()], model=model)
    async with AgentController(stream, agent) as controller:
        await send_message(stream, "Do it.", AgentState.FINISHED)
        assert controller.state.outputs == {"result": "All is done."}
        await send_message(stream, "Another one.", AgentState.AWAITING_USER_INPUT)
    assert summarize_request(model.requests[1]) == [
        "user: Do it.",
        "call finish",
        "output All is done.",
        "user: Another one.",
    ]


@pytest.mark.requirement("D32")
async def test_a_task_can_be_rejected(stream: EventStream) -> None:
    """By the agent or by the user."""
    async with AgentController(stream, Agent("A", model=ScriptedModel())) as controller:
        stream.add_event(AgentRejectAction({"reason": "too vague"}), AGENT)
        rejected: Any = await wait_for_state(stream, AgentState.REJECTED)
        assert rejected.value.reason == "The task is rejected: too vague"
        assert controller.state.outputs == {"reason": "too vague"}


@pytest.mark.requirement("D45")
async def test_a_task_is_delegated_to_another_agent_and_its_result_returned(
    stream: EventStream,
) -> None:
    """The child runs under its own path on the same stream, with the same runtime."""
    model = ScriptedModel(
        {
            "Boss": [
                tool_call("delegate", agent="helper", task="Add 2 and 3.", call_id="call_1"),
                "The helper says 5.",
            ],
            "Helper": [tool_call("add", a=2, b=3), "It is 5."],
        }
    )
    helper = Agent("Helper", tools=[add], model=model)
    boss = Agent("Boss", model=model)
    async with (
        ToolRuntime(stream, [add]),
        AgentController(stream, boss, delegates={"helper": helper}) as controller,
    ):
        await send_message(stream, "What is 2 + 3?", AgentState.AWAITING_USER_INPUT)
        assert controller.delegate is None
        assert controller.state.usage.requests == 4
    assert kinds(stream) == [
        "MessageAction",
        "tool_called",
        "AgentDelegateAction",
        "AgentDelegateObservation",
        "message_output_created",
        "MessageAction",
    ]
    assert kinds(stream, ("call_1",)) == [
        "MessageAction",
        "tool_called",
        "add",
        "ToolObservation",
        "message_output_created",
        "MessageAction",
    ]
    assert summarize_request(model.requests[1]) == ["user: Add 2 and 3."]
    assert summarize_request(model.requests[3])[-1] == "output It is 5."
    assert model.requests[0].tools[0].name == "delegate"


@pytest.mark.requirement("D45")
async def test_a_missing_or_failing_delegate_is_reported_to_the_parent(stream: EventStream) -> None:
    """The parent continues with an error as the output."""
    model = ScriptedModel(
        {
            "Boss": [
                tool_call("delegate", agent="nobody", task="x"),
                tool_call("delegate", agent="helper", task="y"),
                "It did not work.",
            ],
            "Helper": [ModelError("the model is gone")],
        }
    )
    boss = Agent("Boss", model=model)
    helper = Agent("Helper", model=model)
    async with AgentController(stream, boss, delegates={"helper": helper}):
        await send_message(stream, "Try.", AgentState.AWAITING_USER_INPUT)
    asked = [request for request in model.requests if request.agent == "Boss"]
    assert 'agent: expected "helper", got "nobody"' in summarize_request(asked[1])[-1]
    assert "ModelError: the model is gone" in summarize_request(asked[2])[-1]


@pytest.mark.requirement("D45", "D50")
async def test_a_delegate_is_stopped_with_its_parent(stream: EventStream) -> None:
    """A child must not keep running for a stopped agent."""
    begun = asyncio.Event()

    async def never(_: ModelRequest) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "no"

    model = ScriptedModel(
        {"Boss": [tool_call("delegate", agent="helper", task="x")], "Helper": [never]}
    )
    boss, helper = Agent("Boss", model=model), Agent("Helper", model=model)
    async with AgentController(stream, boss, delegates={"helper": helper}) as controller:
        stream.add_event(MessageAction("Go."), USER)
        await begun.wait()
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
        await wait_for_state(stream, AgentState.STOPPED)
        assert controller.delegate is None
    assert "AgentDelegateObservation" in kinds(stream)


@pytest.mark.requirement("D45")
async def test_an_action_can_delegate_a_task_without_a_model_call(
    stream: EventStream,
) -> None:
    """Any publisher on the stream can delegate."""
    helper = Agent("Helper", model=ScriptedModel(["Done."]))
    boss = Agent("Boss", model=ScriptedModel(["Thanks."]))
    async with AgentController(stream, boss, delegates={"helper": helper}):
        stream.add_event(AgentDelegateAction("helper", {"task": "x", "where": "y"}), USER)
        async with asyncio.timeout(TIME_LIMIT):
            async for event in stream.follow():
                if isinstance(event, ObservationEvent) and "Delegate" in event.kind:
                    assert event.value == AgentDelegateObservation("Done.", {}, "Helper")
                    break


@pytest.mark.requirement("D33", "D41")
@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_user_message_triggers_a_recall_first(
    stream: EventStream, asynchronous: bool
) -> None:
    """The memory answers with source ENVIRONMENT, and the model reads it."""

    def known(action: RecallAction) -> str | None:
        if action.query == "fail":
            raise RuntimeError("no memory")
        return f"{action.recall_type}: owls" if "owl" in action.query else None

    async def slowly(action: RecallAction) -> str | None:
        return known(action)

    model = ScriptedModel(["Yes.", "No.", "Well."])
    memory = MemorySubscriber(stream, slowly if asynchronous else known)
    async with AgentController(stream, Agent("A", model=model), recall=True):
        await send_message(stream, "owls?", AgentState.AWAITING_USER_INPUT)
        await send_message(stream, "fail", AgentState.AWAITING_USER_INPUT)
        await send_message(stream, "an owl", AgentState.AWAITING_USER_INPUT)
    memory.close()
    assert summarize_request(model.requests[2]) == [
        "user: owls?",
        "system: workspace_context: owls",
        "Yes.",
        "user: fail",
        "No.",
        "user: an owl",
        "system: knowledge: owls",
    ]
    answers = [
        event for event in stream.get_events()
        if isinstance(event, ObservationEvent) and event.kind == "RecallObservation"
    ]  # fmt: skip
    assert [event.source for event in answers] == [ENVIRONMENT] * 3


@pytest.mark.requirement("D50", "D47")
async def test_a_stop_interrupts_the_running_step(stream: EventStream) -> None:
    """Control events do not wait for a slow model or a slow tool."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @function_tool
    async def hang() -> str:
        """Hang."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "no"

    async def slow(_: ModelRequest) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "no"

    model = ScriptedModel([slow, tool_call("hang"), "Here I am."])
    agent = Agent("A", tools=[hang], model=model)
    async with ToolRuntime(stream, [hang]), AgentController(stream, agent):
        for text in ("the model", "the tool"):
            begun.clear()
            user_message = stream.add_event(MessageAction(text), USER)
            await asyncio.wait_for(begun.wait(), TIME_LIMIT)
            stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
            await wait_for_state(stream, AgentState.STOPPED, user_message.id)
        await asyncio.wait_for(ended.wait(), TIME_LIMIT)
        await send_message(stream, "Are you there?", AgentState.AWAITING_USER_INPUT)
    last = summarize_request(model.requests[-1])
    assert last[:3] == ["user: the model", "user: the tool", "call hang"]
    assert last[-1] == "user: Are you there?"
    kills = [
        event for event in stream.get_events() if getattr(event, "kind", "") == "CmdKillAction"
    ]
    assert [event.value for event in kills if isinstance(event, ActionEvent)] == [
        CmdKillAction(kills[0].value.action_id)  # type: ignore[attr-defined]
    ]


@pytest.mark.requirement("D43")
async def test_a_paused_agent_resumes_where_it_was(stream: EventStream) -> None:
    """Observations during the pause are kept, and an interrupted step is repeated."""
    begun, go = asyncio.Event(), asyncio.Event()

    @function_tool
    async def work() -> str:
        """Work."""
        begun.set()
        await go.wait()
        return "worked"

    async def slow(_: ModelRequest) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "no"

    model = ScriptedModel([tool_call("work"), slow, "Done."])
    agent = Agent("A", tools=[work], model=model)
    async with ToolRuntime(stream, [work]), AgentController(stream, agent):
        stream.add_event(MessageAction("Work."), USER)
        await asyncio.wait_for(begun.wait(), TIME_LIMIT)
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        paused = await wait_for_state(stream, AgentState.PAUSED)
        begun.clear()
        go.set()
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await asyncio.wait_for(begun.wait(), TIME_LIMIT)
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        paused = await wait_for_state(stream, AgentState.PAUSED, paused.id)
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, paused.id)
    assert summarize_request(model.requests[-1]) == ["user: Work.", "call work", "output worked"]


@pytest.mark.requirement("D42")
async def test_a_message_during_a_step_is_answered_too(stream: EventStream) -> None:
    """A message that arrives while the model writes must not stay unanswered."""

    async def first(_: ModelRequest) -> str:
        stream.add_event(MessageAction("And please hurry."), USER)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "One moment."

    model = ScriptedModel([first, "I hurry."])
    async with AgentController(stream, Agent("A", model=model)):
        await send_message(stream, "Do it.", AgentState.AWAITING_USER_INPUT)
    assert summarize_request(model.requests[1]) == [
        "user: Do it.",
        "One moment.",
        "user: And please hurry.",
    ]


@pytest.mark.requirement("D43")
async def test_a_failing_model_leads_to_an_error_state_that_can_be_left(
    stream: EventStream,
) -> None:
    """ERROR, with the reason; transient failures are retried."""
    model = ScriptedModel(
        [
            ModelError("busy", retryable=True, retry_after=0.001),
            "Hello.",
            ModelError("the key is wrong"),
            "Better.",
        ]
    )
    async with AgentController(stream, Agent("A", model=model)) as controller:
        await send_message(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        await send_message(stream, "Hi", AgentState.ERROR)
        assert controller.state.last_error == "ModelError: the key is wrong"
        await send_message(stream, "Hi", AgentState.AWAITING_USER_INPUT)
    assert kinds(stream).count("ErrorObservation") == 1


@pytest.mark.requirement("D42")
async def test_an_agent_that_exceeds_its_iterations_is_stopped(stream: EventStream) -> None:
    """The limit counts from the last message of the user."""
    model = ScriptedModel([tool_call("add", a=1, b=1)] * 3)
    agent = Agent("A", tools=[add], model=model)
    async with ToolRuntime(stream, [add]), AgentController(stream, agent, max_iterations=3) as one:
        await send_message(stream, "Count.", AgentState.ERROR)
        assert "exceeded its limit of 3 steps" in one.state.last_error
    with pytest.raises(UserValueError, match="expected a positive integer, got 0"):
        AgentController(stream, agent, max_iterations=0)


@pytest.mark.requirement("D40")
async def test_invalid_calls_are_answered_and_never_become_control_actions(
    stream: EventStream,
) -> None:
    """A model cannot change the state by calling a tool of that name; each call is answered."""
    model = ScriptedModel(
        [
            [
                tool_call("ChangeAgentStateAction", agent_state="stopped"),
                tool_call("ad", a=1, b=2),
                tool_call("add", '{"a": 1'),
                tool_call("add", "[1]"),
                tool_call("add", a=1, b=2),
            ],
            "I see.",
        ]
    )
    agent = Agent("A", tools=[add], model=model)
    async with ToolRuntime(stream, [add]), AgentController(stream, agent):
        await send_message(stream, "Go.", AgentState.AWAITING_USER_INPUT)
    outputs = [line for line in summarize_request(model.requests[1]) if line.startswith("output")]
    assert "There is no tool 'ChangeAgentStateAction'." in outputs[0]
    assert "There is no tool 'ad'. Did you mean 'add'?" in outputs[1]
    assert "the JSON is incomplete" in outputs[2]
    assert "expected one JSON object" in outputs[3]
    assert outputs[4] == "output 3"
    assert "stopped" not in states(stream)


@pytest.mark.requirement("D44")
async def test_a_malformed_event_does_not_stop_the_agent(
    stream: EventStream, caplog: pytest.LogCaptureFixture
) -> None:
    """The publisher gets an error, and the agent continues."""
    agent = Agent("A", model=ScriptedModel(["Hello."] * 2))
    with_memory = MemorySubscriber(stream, lambda _: "nothing")
    async with AgentController(stream, agent):
        for kind in ("MessageAction", "CondensationAction", "RecallAction"):
            stream.add_event(ActionEvent[Any](kind, {"wrong": 1}), USER)
        await send_message(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        with_memory.close()
    assert kinds(stream).count("ErrorObservation") == 3
    assert not stream.errors
    assert "is left out of the history" in caplog.text


@pytest.mark.requirement("D46")
async def test_hidden_events_are_excluded_by_a_filter(
    stream: EventStream,
) -> None:
    """Views leave them out, programs can still read them."""
    stream.add_event(CmdRunAction("source setup.sh", hidden=True), ENVIRONMENT)
    stream.add_event(CmdOutputObservation("ready", "source setup.sh", 0, True), ENVIRONMENT)
    stream.add_event(MessageAction("Hello"), USER)
    shown: list[Any] = list(stream.get_events(filter=EventFilter(hidden=False)))
    assert [event.value for event in shown] == [MessageAction("Hello")]
    assert len(list(stream.get_events(filter=EventFilter(hidden=True)))) == 2


@pytest.mark.requirement("D44", "D53")
async def test_a_conversation_resumes_in_another_process(stream: EventStream) -> None:
    """The history comes from the stream, and open calls are reported as lost."""
    store = MemoryEventStore()
    async with EventStream(store) as first:
        before = Agent("A", tools=[add], model=ScriptedModel([tool_call("add", a=1, b=2)]))
        async with AgentController(first, before):
            user_message = first.add_event(MessageAction("1 + 2?"), USER)
            async with asyncio.timeout(TIME_LIMIT):
                async for event in first.follow(user_message.id):
                    if isinstance(event, ActionEvent):
                        break
    model = ScriptedModel(["I could not."])
    agent = Agent("A", tools=[add], model=model)
    async with EventStream(store) as second, AgentController(second, agent) as controller:
        await send_message(second, "And?", AgentState.AWAITING_USER_INPUT)
        assert len(controller.state.history) > 6
    assert summarize_request(model.requests[0]) == [
        "user: 1 + 2?",
        "call add",
        "output The call has no result: the agent was stopped before there was one.",
        "user: And?",
    ]


@pytest.mark.requirement("D36")
async def test_the_history_is_condensed_on_request(stream: EventStream) -> None:
    """A summary replaces the forgotten events at their position."""

    def condense(wait_for_state: State) -> CondensationAction:
        ids = [event.id for event in wait_for_state.history if event.durable][:-1]
        return CondensationAction(ids, "They greeted each other.")

    model = ScriptedModel(["Hello.", "What was it?"])
    async with AgentController(stream, Agent("A", model=model), condense=condense):
        await send_message(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        asked = stream.add_event(CondensationRequestAction(), USER)
        async with asyncio.timeout(TIME_LIMIT):
            async for event in stream.follow(asked.id):
                if getattr(event, "kind", "") == "CondensationAction":
                    break
        await send_message(stream, "Go on.", AgentState.AWAITING_USER_INPUT)
    assert summarize_request(model.requests[1]) == [
        "system: They greeted each other.",
        "user: Go on.",
    ]


async def test_a_function_that_cannot_condense_does_not_end_the_controller(
    stream: EventStream,
) -> None:
    """After ten failures in a row, the controller got no more events."""

    def condense(_: State) -> CondensationAction:
        raise ValueError("no model")

    failure: Any = None
    agent = Agent("A", model=ScriptedModel(["Hello."]))
    async with AgentController(stream, agent, condense=condense):
        for _ in range(12):
            asked = stream.add_event(CondensationRequestAction(), USER)
            failure = await wait_for_observation(stream, "ErrorObservation", asked.id)
        assert failure.value.error_id == "condense"
        assert "ValueError: no model" in str(failure.value.content)
        await send_message(stream, "Hi", AgentState.AWAITING_USER_INPUT)


@pytest.mark.requirement("D39")
def test_the_controller_works_without_an_event_loop() -> None:
    """In a synchronous program, on the background loop."""
    agent = Agent("A", tools=[add], model=ScriptedModel([tool_call("add", a=1, b=2), "It is 3."]))
    answered = threading.Event()
    user_message: list[str] = []

    def watch(event: Event) -> None:
        value: Any = event.value if isinstance(event, ActionEvent) else None
        if isinstance(value, MessageAction) and event.source is AGENT:
            user_message.append(value.content)
            answered.set()

    with (
        EventStream() as stream,
        ToolRuntime(stream, [add]),
        AgentController(stream, agent) as controller,
    ):
        stream.subscribe("main", watch, where=EventFilter(types=("action_event",)))
        stream.add_event(MessageAction("1 + 2?"), USER)
        assert answered.wait(TIME_LIMIT)
        assert controller.state.iteration == 2
    assert user_message == ["It is 3."]


@pytest.mark.requirement("D44")
def test_each_call_has_one_output_directly_after_its_turn() -> None:
    """Providers refuse a history in which outputs are missing or elsewhere."""
    asked = Origin(source=AGENT)

    def item(given: Any, cause: int) -> Event:
        return RunItemStreamEvent[Any]("x", given.to_dict()).replace(cause=cause, origin=asked)

    def seen(call_id: str, text: str) -> Event:
        origin = Origin("add", call_id, (), ENVIRONMENT)
        return event_of(ToolObservation(text)).replace(origin=origin, cause=99)

    def user(value: Any) -> Event:
        return event_of(value).replace(origin=Origin(source=USER))

    log = [
        user(SystemMessageAction("Be brief.")),
        user(MessageAction("Look.", ["data:image/png;base64,AAAA"])),
        item(ReasoningItem(text="Hm."), 1),
        item(ToolCallItem(call_id="a", name="add"), 1),
        item(ToolCallItem(call_id="b", name="add"), 1),
        seen("b", "second"),
        user(MessageAction("Hurry.")),
        event_of(ErrorObservation("It is lost.", "lost")).replace(  # the run log has the result
            origin=Origin("add", "a", (), ENVIRONMENT), cause=99
        ),
        seen("a", "first"),
        seen("a", "first again"),
        item(ToolCallItem(call_id="c", name="add"), 8),
        item(ReasoningItem(text="Once more."), 9),
        user(CmdRunAction("ls")).replace(id=20),
        event_of(CmdOutputObservation("a.py", "ls", 0)).replace(
            origin=Origin(source=ENVIRONMENT), cause=20
        ),
    ]
    log = [event if event.id >= 0 else event.replace(id=at) for at, event in enumerate(log)]
    again = [event_from_dict(event.to_dict()) for event in log]
    for events in (log, again):
        request = ModelRequest(input=items_of(events))
        assert summarize_request(request)[2:] == [
            "Hm.",
            "call add",
            "call add",
            "output first",
            "output second",
            "user: Hurry.",
            "call add",
            "output The call has no result: the agent was stopped before there was one.",
            "Once more.",
            "user: Result of an action of the user:\na.py",
        ]
        assert summarize_request(request)[0] == "system: Be brief."


@pytest.mark.requirement("D45", "D43")
async def test_a_delegate_is_paused_and_resumed_with_its_parent(
    stream: EventStream,
) -> None:
    """A child must not step while its parent is paused."""
    begun, go = asyncio.Event(), asyncio.Event()

    @function_tool
    async def work() -> str:
        """Work."""
        begun.set()
        await go.wait()
        return "worked"

    child_model = ScriptedModel([tool_call("work"), "I have."])
    child = Agent("Child", tools=[work], model=child_model)
    parent = Agent(
        "Parent", model=ScriptedModel([tool_call("delegate", agent="child", task="Work."), "So."])
    )
    runtime = ToolRuntime(stream, [work])
    async with runtime, AgentController(stream, parent, delegates={"child": child}) as controller:
        user_message = stream.add_event(MessageAction("Go."), USER)
        await asyncio.wait_for(begun.wait(), TIME_LIMIT)
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        paused = await wait_for_state(stream, AgentState.PAUSED)
        go.set()
        async with asyncio.timeout(TIME_LIMIT):
            await wait_for_observation(stream, "ToolObservation", user_message.id)
        await asyncio.sleep(0)
        assert controller.delegate is not None
        assert controller.delegate.state.agent_state == AgentState.PAUSED
        assert len(child_model.requests) == 1
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, paused.id)
        assert controller.delegate is None
    assert len(child_model.requests) == 2


@pytest.mark.requirement("D42")
@pytest.mark.parametrize("ending", ["answer", "finish"])
async def test_a_message_just_before_the_answer_is_answered_too(
    stream: EventStream, ending: str
) -> None:
    """The message is on the stream before the answer, so it must not be missed."""

    def last(_: ModelRequest) -> Any:
        stream.add_event(MessageAction("And more?"), USER)
        return "One." if ending == "answer" else tool_call("finish", message="One.")

    model = ScriptedModel([last, "Two."])
    agent = Agent("A", tools=[*FinishTool.create()], model=model)
    async with AgentController(stream, agent):
        user_message = stream.add_event(MessageAction("Go."), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, user_message.id)
    assert summarize_request(model.requests[-1])[-1] == "user: And more?"


@pytest.mark.requirement("D42")
async def test_the_late_end_of_a_stopped_call_triggers_no_step(stream: EventStream) -> None:
    begun, go, asked, write = (asyncio.Event() for _ in range(4))

    @function_tool
    async def slow() -> str:
        """Take long, to stop as well."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await go.wait()
        return "no"

    async def late(_: ModelRequest) -> str:
        asked.set()
        await write.wait()
        return "Here."

    model = ScriptedModel([tool_call("slow"), late, "Once more."])
    agent = Agent("A", tools=[slow], model=model)
    async with ToolRuntime(stream, [slow]), AgentController(stream, agent) as controller:
        stream.add_event(MessageAction("Go."), USER)
        await asyncio.wait_for(begun.wait(), TIME_LIMIT)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
        await wait_for_state(stream, AgentState.STOPPED)
        again = stream.add_event(MessageAction("Again."), USER)
        await asyncio.wait_for(asked.wait(), TIME_LIMIT)
        go.set()
        async with asyncio.timeout(TIME_LIMIT):
            ended = await wait_for_observation(stream, "ErrorObservation", again.id)
            while ended not in controller.state.history:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
        write.set()
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, again.id)
    assert len(model.requests) == 2


@pytest.mark.requirement("D43")
@pytest.mark.parametrize("error", [asyncio.CancelledError(), RecursionError("deep")])
async def test_any_exception_in_a_step_leads_to_an_error_state(
    stream: EventStream, error: BaseException
) -> None:
    """A model that cancels itself must not leave an agent in RUNNING."""

    def fail(_: ModelRequest) -> str:
        raise error

    model = ScriptedModel([fail, "Better."])
    async with AgentController(stream, Agent("A", model=model)):
        await send_message(stream, "Go.", AgentState.ERROR)
        await send_message(stream, "Again.", AgentState.AWAITING_USER_INPUT)


@pytest.mark.requirement("D39")
async def test_unreadable_arguments_are_reported_to_the_model(stream: EventStream) -> None:
    """Too deeply nested arguments are an error of the model."""
    deep = replace(tool_call("add"), arguments='{"a":' + 2_000 * "[" + 2_000 * "]" + "}")
    model = ScriptedModel([deep, "Sorry."])
    async with AgentController(stream, Agent("A", tools=[add], model=model)):
        await send_message(stream, "Go.", AgentState.AWAITING_USER_INPUT)
    (output,) = summarize_request(model.requests[-1])[-1:]
    assert "deep" in output


@pytest.mark.requirement("D47", "D50")
async def test_the_answer_of_a_stopped_model_is_dropped(stream: EventStream) -> None:
    """Some models do not react to cancellation."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def stubborn(_: ModelRequest) -> str:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        over.set()
        return "Nevertheless."

    async with AgentController(stream, Agent("A", model=ScriptedModel([stubborn]))):
        stream.add_event(MessageAction("Go."), USER)
        await asyncio.wait_for(begun.wait(), TIME_LIMIT)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
        await asyncio.wait_for(over.wait(), TIME_LIMIT)
    actions = stream.get_events(filter=EventFilter(types=("action_event",), sources=(AGENT,)))
    assert not list(actions)


@pytest.mark.requirement("D41")
@pytest.mark.parametrize(
    ("known", "text"), [({"a": 1}, '{"a":1}'), (["x", "y"], '["x","y"]'), (0, "0"), (None, "")]
)
@pytest.mark.parametrize("later", [True, False])
async def test_a_memory_can_return_any_value_directly_or_as_a_coroutine(
    stream: EventStream, known: Any, text: str, later: bool
) -> None:
    """Each recall gets exactly one answer."""

    async def slowly() -> Any:
        return known

    memory = MemorySubscriber(stream, lambda _: slowly() if later else known)
    asked = stream.add_event(RecallAction("it"), USER)
    async with asyncio.timeout(TIME_LIMIT):
        async with stream.follow(asked.id) as events:
            async for event in events:
                if isinstance(event, ObservationEvent):
                    assert event.value.text == text
                    break
    memory.close()
