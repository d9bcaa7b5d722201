"""An agent that is driven by events, with a runtime and a memory on the same stream."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest

from agents_tools import Agent, function_tool
from agents_tools.agents import ModelRequest
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

BOUND = 45.0
USER, AGENT, ENVIRONMENT = EventSource.USER, EventSource.AGENT, EventSource.ENVIRONMENT


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
async def stream() -> AsyncIterator[EventStream]:
    """Give a stream."""
    async with EventStream() as stream:
        yield stream


async def state(stream: EventStream, wanted: AgentState, after: int = -1) -> Event:
    """Wait until the agent is in a state."""
    async with asyncio.timeout(BOUND):
        async with stream.follow(after) as events:
            async for event in events:
                value: Any = getattr(event, "value", None) if not event.path else None
                if isinstance(value, AgentStateChangedObservation) and value.agent_state == wanted:
                    return event
    raise AssertionError("the stream has ended")


async def observed(stream: EventStream, kind: str, after: int = -1) -> Event:
    """Wait for an observation."""
    async with stream.follow(after) as events:
        async for event in events:
            if isinstance(event, ObservationEvent) and event.kind == kind:
                return cast("Event", event)
    raise AssertionError("the stream has ended")


async def tell(stream: EventStream, text: str, wanted: AgentState) -> None:
    """Say something to the agent, and wait for what it makes of it."""
    said = stream.add_event(MessageAction(text), USER)
    await state(stream, wanted, said.id)


def kinds(stream: EventStream, path: tuple[str, ...] = ()) -> list[str]:
    """Give what happened in a conversation, but for changes of the state."""
    return [
        getattr(event, "kind", None) or getattr(event, "name", "")
        for event in stream.get_events()
        if event.path == path
        and event.durable
        and getattr(event, "kind", "") != "AgentStateChangedObservation"
    ]


def states(stream: EventStream) -> list[str]:
    """Give the states of the outermost agent."""
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


def told(request: ModelRequest) -> list[str]:
    """Give what a model was asked with, shortly."""
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


@pytest.mark.requirement("D39", "D24", "D44")
async def test_the_flow_goes_from_the_agent_to_the_runtime_and_back(stream: EventStream) -> None:
    """Agent, action, stream, runtime, observation, agent; each with its cause."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "It is 3."])
    agent = Agent("Adder", instructions="Add.", tools=[add], model=model)
    async with ToolRuntime(stream, [add]), AgentController(stream, agent) as controller:
        await tell(stream, "What is 1 + 2?", AgentState.AWAITING_USER_INPUT)
        assert kinds(stream) == [
            "MessageAction",
            "tool_called",
            "add",
            "ToolObservation",
            "message_output_created",
            "MessageAction",
        ]
        assert told(model.requests[1]) == ["user: What is 1 + 2?", "call add", "output 3"]
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
        assert (controller.state.iteration, controller.state.usage.requests) == (2, 2)


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
async def test_only_what_asks_for_it_makes_the_agent_step(
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
async def test_changes_of_the_state_are_published_with_their_reason(stream: EventStream) -> None:
    """From LOADING to STOPPED, each from the environment, for whoever observes."""
    agent = Agent("A", model=ScriptedModel(["Hello.", "Hello again."]))
    async with AgentController(stream, agent) as controller:
        await tell(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED, "bye"), ENVIRONMENT)
        stopped: Any = await state(stream, AgentState.STOPPED)
        assert stopped.value == AgentStateChangedObservation("", AgentState.STOPPED, "bye")
        assert stopped.source is ENVIRONMENT
        await controller.set_agent_state_to(AgentState.STOPPED)
        await tell(stream, "And now?", AgentState.AWAITING_USER_INPUT)
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
async def test_a_thought_is_written_down_and_not_carried_out(stream: EventStream) -> None:
    """The text is in the history, and the description is the domain's."""
    think = ThinkTool.create(description="Think about the rules of chess.")
    model = ScriptedModel([tool_call("think", thought="Hm."), "I have thought."])
    agent = Agent("A", tools=[*think], model=model)
    async with ToolRuntime(stream, think), AgentController(stream, agent) as controller:
        await tell(stream, "Think.", AgentState.AWAITING_USER_INPUT)
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
    assert told(model.requests[1])[-1] == "output Your thought has been logged."
    offered: Any = model.requests[0].tools[0]
    assert offered.description == "Think about the rules of chess."


@pytest.mark.requirement("D32", "D43")
async def test_finishing_ends_the_work_with_its_outputs(stream: EventStream) -> None:
    """Also after it, a new task can be given."""
    model = ScriptedModel([tool_call("finish", result="All is done."), "Yes?"])
    agent = Agent("A", tools=[*FinishTool.create()], model=model)
    async with AgentController(stream, agent) as controller:
        await tell(stream, "Do it.", AgentState.FINISHED)
        assert controller.state.outputs == {"result": "All is done."}
        await tell(stream, "Another one.", AgentState.AWAITING_USER_INPUT)
    assert told(model.requests[1]) == [
        "user: Do it.",
        "call finish",
        "output All is done.",
        "user: Another one.",
    ]


@pytest.mark.requirement("D32")
async def test_a_task_may_be_rejected(stream: EventStream) -> None:
    """By whoever decides that."""
    async with AgentController(stream, Agent("A", model=ScriptedModel())) as controller:
        stream.add_event(AgentRejectAction({"reason": "too vague"}), AGENT)
        rejected: Any = await state(stream, AgentState.REJECTED)
        assert rejected.value.reason == "The task is rejected: too vague"
        assert controller.state.outputs == {"reason": "too vague"}


@pytest.mark.requirement("D45")
async def test_a_task_is_given_to_another_agent_and_comes_back(stream: EventStream) -> None:
    """The child works in its own place on the same stream, with the same runtime."""
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
        await tell(stream, "What is 2 + 3?", AgentState.AWAITING_USER_INPUT)
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
    assert told(model.requests[1]) == ["user: Add 2 and 3."]
    assert told(model.requests[3])[-1] == "output It is 5."
    assert model.requests[0].tools[0].name == "delegate"


@pytest.mark.requirement("D45")
async def test_a_delegate_that_is_not_there_or_fails_is_told(stream: EventStream) -> None:
    """The parent goes on with that knowledge."""
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
        await tell(stream, "Try.", AgentState.AWAITING_USER_INPUT)
    asked = [request for request in model.requests if request.agent == "Boss"]
    assert "There is no agent 'nobody'. Agents for delegation: helper." in told(asked[1])[-1]
    assert "ModelError: the model is gone" in told(asked[2])[-1]


@pytest.mark.requirement("D45", "D50")
async def test_a_delegate_is_stopped_with_its_parent(stream: EventStream) -> None:
    """Nobody works on for an agent that was stopped."""
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
        await state(stream, AgentState.STOPPED)
        assert controller.delegate is None
    assert "AgentDelegateObservation" in kinds(stream)


@pytest.mark.requirement("D45")
async def test_an_action_may_give_a_task_to_an_agent_without_a_model_asking(
    stream: EventStream,
) -> None:
    """Whoever is on the stream can delegate."""
    helper = Agent("Helper", model=ScriptedModel(["Done."]))
    boss = Agent("Boss", model=ScriptedModel(["Thanks."]))
    async with AgentController(stream, boss, delegates={"helper": helper}):
        stream.add_event(AgentDelegateAction("helper", {"task": "x", "where": "y"}), USER)
        async with asyncio.timeout(BOUND):
            async for event in stream.follow():
                if isinstance(event, ObservationEvent) and "Delegate" in event.kind:
                    assert event.value == AgentDelegateObservation("Done.", {}, "Helper")
                    break


@pytest.mark.requirement("D33", "D41")
@pytest.mark.parametrize("asynchronous", [True, False])
async def test_what_the_user_says_is_recalled_first(
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
        await tell(stream, "owls?", AgentState.AWAITING_USER_INPUT)
        await tell(stream, "fail", AgentState.AWAITING_USER_INPUT)
        await tell(stream, "an owl", AgentState.AWAITING_USER_INPUT)
    memory.close()
    assert told(model.requests[2]) == [
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
async def test_a_stop_overtakes_the_step_that_is_being_taken(stream: EventStream) -> None:
    """Control does not wait behind a slow model, or behind a slow tool."""
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
            said = stream.add_event(MessageAction(text), USER)
            await asyncio.wait_for(begun.wait(), BOUND)
            stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
            await state(stream, AgentState.STOPPED, said.id)
        await asyncio.wait_for(ended.wait(), BOUND)
        await tell(stream, "Are you there?", AgentState.AWAITING_USER_INPUT)
    last = told(model.requests[-1])
    assert last[:3] == ["user: the model", "user: the tool", "call hang"]
    assert last[-1] == "user: Are you there?"
    kills = [
        event for event in stream.get_events() if getattr(event, "kind", "") == "CmdKillAction"
    ]
    assert [event.value for event in kills if isinstance(event, ActionEvent)] == [
        CmdKillAction(kills[0].value.action_id)  # type: ignore[attr-defined]
    ]


@pytest.mark.requirement("D43")
async def test_a_paused_agent_goes_on_where_it_was(stream: EventStream) -> None:
    """What is observed meanwhile is not lost, and a step that was cut off is taken again."""
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
        await asyncio.wait_for(begun.wait(), BOUND)
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        paused = await state(stream, AgentState.PAUSED)
        begun.clear()
        go.set()
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await asyncio.wait_for(begun.wait(), BOUND)
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        paused = await state(stream, AgentState.PAUSED, paused.id)
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await state(stream, AgentState.AWAITING_USER_INPUT, paused.id)
    assert told(model.requests[-1]) == ["user: Work.", "call work", "output worked"]


@pytest.mark.requirement("D42")
async def test_what_is_said_during_a_step_is_answered_too(stream: EventStream) -> None:
    """A message that comes while the model writes must not be left standing."""

    async def first(_: ModelRequest) -> str:
        stream.add_event(MessageAction("And please hurry."), USER)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "One moment."

    model = ScriptedModel([first, "I hurry."])
    async with AgentController(stream, Agent("A", model=model)):
        await tell(stream, "Do it.", AgentState.AWAITING_USER_INPUT)
    assert told(model.requests[1]) == ["user: Do it.", "One moment.", "user: And please hurry."]


@pytest.mark.requirement("D43")
async def test_a_failing_model_is_an_error_state_that_can_be_left(stream: EventStream) -> None:
    """ERROR, with the reason; a passing failure is tried again."""
    model = ScriptedModel(
        [
            ModelError("busy", retryable=True, retry_after=0.001),
            "Hello.",
            ModelError("the key is wrong"),
            "Better.",
        ]
    )
    async with AgentController(stream, Agent("A", model=model)) as controller:
        await tell(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        await tell(stream, "Hi", AgentState.ERROR)
        assert controller.state.last_error == "ModelError: the key is wrong"
        await tell(stream, "Hi", AgentState.AWAITING_USER_INPUT)
    assert kinds(stream).count("ErrorObservation") == 1


@pytest.mark.requirement("D42")
async def test_an_agent_that_comes_to_no_end_is_stopped(stream: EventStream) -> None:
    """The limit counts from the last message of the user."""
    model = ScriptedModel([tool_call("add", a=1, b=1)] * 3)
    agent = Agent("A", tools=[add], model=model)
    async with ToolRuntime(stream, [add]), AgentController(stream, agent, max_iterations=3) as one:
        await tell(stream, "Count.", AgentState.ERROR)
        assert "exceeded its limit of 3 steps" in one.state.last_error
    with pytest.raises(UserValueError, match="expected a positive integer, got 0"):
        AgentController(stream, agent, max_iterations=0)


@pytest.mark.requirement("D40")
async def test_calls_that_cannot_be_are_told_and_never_become_orders(stream: EventStream) -> None:
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
        await tell(stream, "Go.", AgentState.AWAITING_USER_INPUT)
    outputs = [line for line in told(model.requests[1]) if line.startswith("output")]
    assert "There is no tool 'ChangeAgentStateAction'." in outputs[0]
    assert "There is no tool 'ad'. Did you mean 'add'?" in outputs[1]
    assert "cannot be read" in outputs[2]
    assert "are a JSON object" in outputs[3]
    assert outputs[4] == "output 3"
    assert "stopped" not in states(stream)


@pytest.mark.requirement("D44")
async def test_a_damaged_event_stops_nobody(
    stream: EventStream, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever publishes nonsense is told, and the agent works on."""
    agent = Agent("A", model=ScriptedModel(["Hello."] * 2))
    with_memory = MemorySubscriber(stream, lambda _: "nothing")
    async with AgentController(stream, agent):
        for kind in ("MessageAction", "CondensationAction", "RecallAction"):
            stream.add_event(ActionEvent[Any](kind, {"wrong": 1}), USER)
        await tell(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        with_memory.close()
    assert kinds(stream).count("ErrorObservation") == 3
    assert not stream.errors
    assert "is left out of the history" in caplog.text


@pytest.mark.requirement("D46")
async def test_hidden_events_are_left_out_of_views_and_kept_for_programs(
    stream: EventStream,
) -> None:
    """A filter of the stream does it."""
    stream.add_event(CmdRunAction("source setup.sh", hidden=True), ENVIRONMENT)
    stream.add_event(CmdOutputObservation("ready", "source setup.sh", 0, True), ENVIRONMENT)
    stream.add_event(MessageAction("Hello"), USER)
    shown: list[Any] = list(stream.get_events(filter=EventFilter(hidden=False)))
    assert [event.value for event in shown] == [MessageAction("Hello")]
    assert len(list(stream.get_events(filter=EventFilter(hidden=True)))) == 2


@pytest.mark.requirement("D44", "D53")
async def test_a_conversation_goes_on_in_another_process(stream: EventStream) -> None:
    """The history is the stream's, and what was open is told as such."""
    store = MemoryEventStore()
    async with EventStream(store) as first:
        before = Agent("A", tools=[add], model=ScriptedModel([tool_call("add", a=1, b=2)]))
        async with AgentController(first, before):
            said = first.add_event(MessageAction("1 + 2?"), USER)
            async with asyncio.timeout(BOUND):
                async for event in first.follow(said.id):
                    if isinstance(event, ActionEvent):
                        break
    model = ScriptedModel(["I could not."])
    agent = Agent("A", tools=[add], model=model)
    async with EventStream(store) as second, AgentController(second, agent) as controller:
        await tell(second, "And?", AgentState.AWAITING_USER_INPUT)
        assert len(controller.state.history) > 6
    assert told(model.requests[0]) == [
        "user: 1 + 2?",
        "call add",
        "output The call has no result: the agent was stopped before there was one.",
        "user: And?",
    ]


@pytest.mark.requirement("D36")
async def test_the_history_is_made_shorter_when_that_is_asked_for(stream: EventStream) -> None:
    """What was forgotten is replaced by a summary, in its place."""

    def condense(state: State) -> CondensationAction:
        ids = [event.id for event in state.history if event.durable][:-1]
        return CondensationAction(ids, "They greeted each other.")

    model = ScriptedModel(["Hello.", "What was it?"])
    async with AgentController(stream, Agent("A", model=model), condense=condense):
        await tell(stream, "Hi", AgentState.AWAITING_USER_INPUT)
        asked = stream.add_event(CondensationRequestAction(), USER)
        async with asyncio.timeout(BOUND):
            async for event in stream.follow(asked.id):
                if getattr(event, "kind", "") == "CondensationAction":
                    break
        await tell(stream, "Go on.", AgentState.AWAITING_USER_INPUT)
    assert told(model.requests[1]) == ["system: They greeted each other.", "user: Go on."]


@pytest.mark.requirement("D39")
def test_it_works_without_an_event_loop() -> None:
    """In a synchronous program, on the background loop."""
    agent = Agent("A", tools=[add], model=ScriptedModel([tool_call("add", a=1, b=2), "It is 3."]))
    answered = threading.Event()
    said: list[str] = []

    def watch(event: Event) -> None:
        value: Any = event.value if isinstance(event, ActionEvent) else None
        if isinstance(value, MessageAction) and event.source is AGENT:
            said.append(value.content)
            answered.set()

    with (
        EventStream() as stream,
        ToolRuntime(stream, [add]),
        AgentController(stream, agent) as controller,
    ):
        stream.subscribe("main", watch, where=EventFilter(types=("action_event",)))
        stream.add_event(MessageAction("1 + 2?"), USER)
        assert answered.wait(BOUND)
        assert controller.state.iteration == 2
    assert said == ["It is 3."]


@pytest.mark.requirement("D44")
def test_each_call_has_one_output_after_its_turn_whatever_came_between() -> None:
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
        seen("a", "first"),
        seen("a", "first again"),
        item(ToolCallItem(call_id="c", name="add"), 7),
        item(ReasoningItem(text="Once more."), 8),
        user(CmdRunAction("ls")).replace(id=20),
        event_of(CmdOutputObservation("a.py", "ls", 0)).replace(
            origin=Origin(source=ENVIRONMENT), cause=20
        ),
    ]
    log = [event if event.id >= 0 else event.replace(id=at) for at, event in enumerate(log)]
    again = [event_from_dict(event.to_dict()) for event in log]
    for events in (log, again):
        request = ModelRequest(input=items_of(events))
        assert told(request)[2:] == [
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
        assert told(request)[0] == "system: Be brief."


@pytest.mark.requirement("D45", "D43")
async def test_a_delegate_is_paused_with_its_parent_and_goes_on_with_it(
    stream: EventStream,
) -> None:
    """Nobody steps for an agent that is paused."""
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
        said = stream.add_event(MessageAction("Go."), USER)
        await asyncio.wait_for(begun.wait(), BOUND)
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        paused = await state(stream, AgentState.PAUSED)
        go.set()
        async with asyncio.timeout(BOUND):
            await observed(stream, "ToolObservation", said.id)
        await asyncio.sleep(0)
        assert controller.delegate is not None
        assert controller.delegate.state.agent_state == AgentState.PAUSED
        assert len(child_model.requests) == 1
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await state(stream, AgentState.AWAITING_USER_INPUT, paused.id)
        assert controller.delegate is None
    assert len(child_model.requests) == 2


@pytest.mark.requirement("D42")
@pytest.mark.parametrize("ending", ["answer", "finish"])
async def test_what_is_said_at_the_moment_of_the_answer_is_answered_too(
    stream: EventStream, ending: str
) -> None:
    """The user speaks just before the answer is on the stream; nobody may miss it."""

    def last(_: ModelRequest) -> Any:
        stream.add_event(MessageAction("And more?"), USER)
        return "One." if ending == "answer" else tool_call("finish", message="One.")

    model = ScriptedModel([last, "Two."])
    agent = Agent("A", tools=[*FinishTool.create()], model=model)
    async with AgentController(stream, agent):
        said = stream.add_event(MessageAction("Go."), USER)
        await state(stream, AgentState.AWAITING_USER_INPUT, said.id)
    assert told(model.requests[-1])[-1] == "user: And more?"


@pytest.mark.requirement("D42")
async def test_what_was_given_up_lets_nobody_step(stream: EventStream) -> None:
    """The end of a call that was stopped comes late, and is no reason to speak again."""
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
        await asyncio.wait_for(begun.wait(), BOUND)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
        await state(stream, AgentState.STOPPED)
        again = stream.add_event(MessageAction("Again."), USER)
        await asyncio.wait_for(asked.wait(), BOUND)
        go.set()
        async with asyncio.timeout(BOUND):
            ended = await observed(stream, "ErrorObservation", again.id)
            while ended not in controller.state.history:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
        write.set()
        await state(stream, AgentState.AWAITING_USER_INPUT, again.id)
    assert len(model.requests) == 2


@pytest.mark.requirement("D43")
@pytest.mark.parametrize("error", [asyncio.CancelledError(), RecursionError("deep")])
async def test_whatever_ends_a_step_is_an_error_state(
    stream: EventStream, error: BaseException
) -> None:
    """A model that cancels itself leaves no agent that runs for ever."""

    def fail(_: ModelRequest) -> str:
        raise error

    model = ScriptedModel([fail, "Better."])
    async with AgentController(stream, Agent("A", model=model)):
        await tell(stream, "Go.", AgentState.ERROR)
        await tell(stream, "Again.", AgentState.AWAITING_USER_INPUT)


@pytest.mark.requirement("D39")
async def test_arguments_that_cannot_be_read_are_told(stream: EventStream) -> None:
    """Arguments nested beyond all bounds are a mistake of the model."""
    deep = replace(tool_call("add"), arguments='{"a":' + 2_000 * "[" + 2_000 * "]" + "}")
    model = ScriptedModel([deep, "Sorry."])
    async with AgentController(stream, Agent("A", tools=[add], model=model)):
        await tell(stream, "Go.", AgentState.AWAITING_USER_INPUT)
    assert "cannot be read" in str(model.requests[-1].input[-1])


@pytest.mark.requirement("D47", "D50")
async def test_a_model_that_cannot_be_stopped_says_nothing_afterwards(stream: EventStream) -> None:
    """What it answers when the agent is stopped already is dropped."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def stubborn(_: ModelRequest) -> str:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        over.set()
        return "Nevertheless."

    async with AgentController(stream, Agent("A", model=ScriptedModel([stubborn]))):
        stream.add_event(MessageAction("Go."), USER)
        await asyncio.wait_for(begun.wait(), BOUND)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
        await asyncio.wait_for(over.wait(), BOUND)
    actions = stream.get_events(filter=EventFilter(types=("action_event",), sources=(AGENT,)))
    assert not list(actions)


@pytest.mark.requirement("D41")
@pytest.mark.parametrize(
    ("known", "text"), [({"a": 1}, '{"a":1}'), (["x", "y"], '["x","y"]'), (0, "0"), (None, "")]
)
@pytest.mark.parametrize("later", [True, False])
async def test_a_memory_may_give_any_value_now_or_later(
    stream: EventStream, known: Any, text: str, later: bool
) -> None:
    """Whatever it gives, who has asked gets one answer."""

    async def slowly() -> Any:
        return known

    memory = MemorySubscriber(stream, lambda _: slowly() if later else known)
    asked = stream.add_event(RecallAction("it"), USER)
    async with asyncio.timeout(BOUND):
        async with stream.follow(asked.id) as events:
            async for event in events:
                if isinstance(event, ObservationEvent):
                    assert event.value.text == text
                    break
    memory.close()
