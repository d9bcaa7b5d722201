"""An event-driven agent has the approvals, budgets, hooks and records of every run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools import Agent, RunConfig, function_tool
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.agents.config import RunHooks
from agents_tools.classes.event_types import (
    AgentState,
    AgentStateChangedObservation,
    ChangeAgentStateAction,
    MessageAction,
)
from agents_tools.content import (
    MessageInputItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import EventStoreError, ToolRefusedError
from agents_tools.event_driven import AgentController, ToolRuntime
from agents_tools.events import Event, EventSource, ObservationEvent, RunItemStreamEvent
from agents_tools.persistence import (
    EventFilter,
    MemoryEventStore,
    MemoryRunStore,
    PendingFuture,
    SQLiteRunStore,
)
from agents_tools.persistence.stream import EventStream
from agents_tools.policies import background, needs_approval
from agents_tools.testing import ScriptedModel, tool_call

TIME_LIMIT = 30.0
USER = EventSource.USER


@pytest.fixture(autouse=True)
async def _bound() -> AsyncIterator[None]:
    """End a test that waits for ever."""
    async with asyncio.timeout(TIME_LIMIT):
        yield


@pytest.fixture
async def stream() -> AsyncIterator[EventStream]:
    """Return an open stream."""
    async with EventStream() as stream:
        yield stream


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Ship:
    """A tool that needs approval."""

    def __init__(self) -> None:
        self.shipped: list[int] = []

        @needs_approval()
        @function_tool
        def ship(order: int) -> str:
            """Ship an order."""
            self.shipped.append(order)
            return f"shipped {order}"

        self.tool = ship


async def wait_for_state(
    stream: EventStream, wanted: AgentState, after: int = -1, path: tuple[str, ...] = ()
) -> Event:
    """Wait until the agent is in a state, and return the event of the change."""
    async with stream.follow(after) as events:
        async for event in events:
            value: Any = getattr(event, "value", None) if event.path == path else None
            if isinstance(value, AgentStateChangedObservation) and value.agent_state == wanted:
                return event
    raise AssertionError("the stream has ended")


async def send(stream: EventStream, text: str, wanted: AgentState) -> Event:
    """Send a message of the user, and wait for a state."""
    message = stream.add_event(MessageAction(text), USER)
    return await wait_for_state(stream, wanted, message.id)


def shape(request: ModelRequest) -> list[str]:
    """Return the input of a request in a short form."""
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


def kinds(stream: EventStream) -> list[str]:
    """Return the kinds of the published actions and observations, and the names of items."""
    return [
        str(getattr(event, "kind", None) or getattr(event, "name", ""))
        for event in stream.get_events()
        if event.durable and getattr(event, "kind", "") != "AgentStateChangedObservation"
    ]


@pytest.mark.requirement("D43", "D39")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_call_that_needs_approval_waits_for_the_decision_of_the_user(
    stream: EventStream, approved: bool
) -> None:
    """The request and the decision are on the stream, and no action is published before it."""
    ship = Ship()
    model = ScriptedModel([[tool_call("add", a=1, b=2), tool_call("ship", order=1)], "Done."])
    agent = Agent("A", tools=[add, ship.tool], model=model)
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent) as controller:
        waiting = await send(stream, "Ship.", AgentState.AWAITING_USER_CONFIRMATION)
        requests: list[Any] = [
            event
            for event in stream.get_events()
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_approval_requested"
        ]
        assert [one.item["arguments"] for one in requests] == ['{"order":1}']
        assert "ship" not in kinds(stream)
        assert ship.shipped == []
        decision = AgentState.USER_CONFIRMED if approved else AgentState.USER_REJECTED
        stream.add_event(ChangeAgentStateAction(decision, "Not today."), USER)
        await wait_for_state(stream, decision, waiting.id)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, waiting.id)
        assert controller.state.iteration == 2
    assert ship.shipped == ([1] if approved else [])
    assert ("ship" in kinds(stream)) is approved
    assert len(model.requests) == 2
    *before, last = shape(model.requests[1])
    assert before == ["user: Ship.", "call add", "call ship", "output 3"]
    assert ("shipped 1" if approved else "Not today.") in last


async def test_a_call_in_the_background_is_a_call_like_any_other(stream: EventStream) -> None:
    """The stream has one observation for each action, so the model gets the result as its output."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "Done."])
    agent = Agent("A", tools=[background()(add)], model=model)
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent):
        await send(stream, "Add.", AgentState.AWAITING_USER_INPUT)
    assert shape(model.requests[1]) == ["user: Add.", "call add", "output 3"]


async def test_a_message_does_not_decide_about_a_waiting_call(stream: EventStream) -> None:
    """The model gets the message after the output; the call still waits for a decision."""
    ship = Ship()
    model = ScriptedModel([tool_call("ship", order=1), "Done."])
    agent = Agent("A", tools=[ship.tool], model=model)
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent) as controller:
        waiting = await send(stream, "Ship.", AgentState.AWAITING_USER_CONFIRMATION)
        message = stream.add_event(MessageAction("By train."), USER)
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        again = await wait_for_state(stream, AgentState.AWAITING_USER_CONFIRMATION, message.id)
        assert ship.shipped == []
        assert again.id > waiting.id
        stream.add_event(ChangeAgentStateAction(AgentState.USER_CONFIRMED), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, again.id)
        assert controller.state.agent_state is AgentState.AWAITING_USER_INPUT
    assert shape(model.requests[1]) == [
        "user: Ship.",
        "call ship",
        "output shipped 1",
        "user: By train.",
    ]


async def test_a_decision_may_follow_the_request_at_once(stream: EventStream) -> None:
    """A program decides while another call of the step still runs, and while the agent pauses."""
    ship, go = Ship(), asyncio.Event()

    @function_tool
    async def work() -> str:
        """Work."""
        await go.wait()
        return "worked"

    model = ScriptedModel([[tool_call("work"), tool_call("ship", order=1)], "Done."])
    agent = Agent("A", tools=[work, ship.tool], model=model)
    async with ToolRuntime(stream, agent.tools, max_parallel=2), AgentController(stream, agent):
        message = stream.add_event(MessageAction("Go."), USER)
        requests: Any = stream.follow(
            message.id, where=EventFilter(types=("run_item_stream_event",))
        )
        async for event in requests:
            if event.name == "tool_approval_requested":
                break
        stream.add_event(ChangeAgentStateAction(AgentState.PAUSED), USER)
        stream.add_event(ChangeAgentStateAction(AgentState.USER_CONFIRMED), USER)
        go.set()
        stream.add_event(ChangeAgentStateAction(AgentState.RUNNING), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, message.id)
    assert ship.shipped == [1]
    assert shape(model.requests[1])[-2:] == ["output worked", "output shipped 1"]


async def test_a_decision_without_a_waiting_call_is_an_error(stream: EventStream) -> None:
    """The person learns that the decision came too late."""
    async with AgentController(stream, Agent("A", model=ScriptedModel())):
        action = stream.add_event(ChangeAgentStateAction(AgentState.USER_CONFIRMED), USER)
        async with stream.follow(action.id) as events:
            async for event in events:
                if isinstance(event, ObservationEvent) and event.kind == "ErrorObservation":
                    assert "No call waits for a decision" in event.value.text
                    break


async def test_a_stop_ends_a_run_that_waits_for_approval(stream: EventStream) -> None:
    """A later message starts a new run, and the call was never made."""
    ship = Ship()
    model = ScriptedModel([tool_call("ship", order=1), "Hello."])
    agent = Agent("A", tools=[ship.tool], model=model)
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent):
        await send(stream, "Ship.", AgentState.AWAITING_USER_CONFIRMATION)
        stream.add_event(ChangeAgentStateAction(AgentState.STOPPED), USER)
        await send(stream, "Hi.", AgentState.AWAITING_USER_INPUT)
    assert ship.shipped == []
    assert shape(model.requests[1])[-1] == "user: Hi."


async def test_the_call_of_a_delegate_waits_for_approval_too(stream: EventStream) -> None:
    """The decision goes to the agent that works."""
    ship = Ship()
    model = ScriptedModel(
        {
            "Boss": [tool_call("delegate", agent="helper", task="Ship.", call_id="call_1"), "So."],
            "Helper": [tool_call("ship", order=1), "Shipped it."],
        }
    )
    helper = Agent("Helper", tools=[ship.tool], model=model)
    boss = Agent("Boss", model=model)
    async with (
        ToolRuntime(stream, [ship.tool]),
        AgentController(stream, boss, delegates={"helper": helper}) as controller,
    ):
        message = stream.add_event(MessageAction("Go."), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_CONFIRMATION, message.id, ("call_1",))
        stream.add_event(ChangeAgentStateAction(AgentState.USER_CONFIRMED), USER)
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, message.id)
        assert controller.state.usage.requests == 4
    assert ship.shipped == [1]


async def test_an_approver_decides_without_a_change_of_state(stream: EventStream) -> None:
    """`RunConfig(approve=...)` works as in every run."""
    ship = Ship()
    asked: list[str] = []

    def decide(item: ToolApprovalItem) -> bool:
        asked.append(item.arguments)
        return True

    agent = Agent("A", tools=[ship.tool], model=ScriptedModel([tool_call("ship", order=1), "x"]))
    config = RunConfig(approve=decide)
    async with (
        ToolRuntime(stream, agent.tools),
        AgentController(stream, agent, run_config=config),
    ):
        await send(stream, "Ship.", AgentState.AWAITING_USER_INPUT)
    assert (asked, ship.shipped) == (['{"order":1}'], [1])


async def test_a_runtime_denies_an_action_that_no_controller_has_approved(
    stream: EventStream,
) -> None:
    """Anyone can publish an action; only the record of an approval lets it run."""
    ship = Ship()
    async with ToolRuntime(stream, [ship.tool]):
        from agents_tools.classes.event_types import ToolAction

        action = stream.add_event(ToolAction("ship", {"order": 1}), EventSource.AGENT)
        async with stream.follow(action.id) as events:
            async for event in events:
                if event.cause == action.id and isinstance(event, ObservationEvent):
                    assert "needs the approval of a person" in event.value.text
                    break
    assert ship.shipped == []


async def test_the_end_of_a_run_stops_its_actions(stream: EventStream) -> None:
    """A tool must not continue for a run that has reached its time limit."""
    stopped = asyncio.Event()

    @function_tool
    async def hang() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "no"

    agent = Agent("A", tools=[hang], model=ScriptedModel([tool_call("hang")]))
    config = RunConfig(timeout=0.2)
    async with (
        ToolRuntime(stream, agent.tools),
        AgentController(stream, agent, run_config=config),
    ):
        await send(stream, "Go.", AgentState.ERROR)
        await stopped.wait()


async def test_a_repeated_call_has_the_output_of_the_first_one(stream: EventStream) -> None:
    """Some models send a call twice under one id; the tool runs once."""
    call = tool_call("add", a=1, b=2, call_id="call_with_a_long_id")
    model = ScriptedModel([call, call, "3"])
    agent = Agent("A", tools=[add], model=model)
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent):
        await send(stream, "1 + 2?", AgentState.AWAITING_USER_INPUT)
    assert shape(model.requests[2])[-2:] == ["call add", "output 3"]
    assert kinds(stream).count("add") == 1


async def test_the_result_of_a_tool_can_be_the_answer(stream: EventStream) -> None:
    """`tool_use_behavior` ends the run as in every run."""
    model = ScriptedModel([tool_call("add", a=1, b=2)])
    agent = Agent("A", tools=[add], model=model, tool_use_behavior="stop_on_first_tool")
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent):
        await send(stream, "1 + 2?", AgentState.AWAITING_USER_INPUT)
    answers: list[Any] = list(
        stream.get_events(filter=EventFilter(types=("action_event",), sources=(EventSource.AGENT,)))
    )
    assert answers[-1].value.content == "3"


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (RunConfig(max_tool_calls=1), "BudgetExceeded"),
        (RunConfig(max_total_tokens=1), "BudgetExceeded"),
        (RunConfig(timeout=0.2), "RunTimeoutError"),
    ],
    ids=["calls", "tokens", "time"],
)
async def test_a_budget_of_the_run_holds(
    stream: EventStream, config: RunConfig, error: str
) -> None:
    """An event-driven agent can loop for ever just like any other; a message continues it."""

    async def slow(_: ModelRequest) -> Any:
        if config.timeout is not None:
            await asyncio.Event().wait()
        return tool_call("add", a=1, b=1)

    usage = Usage(requests=1, input_tokens=1, output_tokens=1)
    first = ModelResponse(items=[tool_call("add", a=1, b=1)], usage=usage)
    model = ScriptedModel([first, slow, slow, "Hello."])
    agent = Agent("A", tools=[add], model=model)
    async with (
        ToolRuntime(stream, agent.tools),
        AgentController(stream, agent, run_config=config) as controller,
    ):
        await send(stream, "Count.", AgentState.ERROR)
        assert controller.state.last_error.startswith(f"{error}: ")
        await send(stream, "Hello?", AgentState.RUNNING)


async def test_a_time_limit_for_calls_stops_the_action(stream: EventStream) -> None:
    """The model gets a timeout, and the runtime stops the tool."""
    stopped = asyncio.Event()

    @function_tool
    async def hang() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "no"

    model = ScriptedModel([tool_call("hang"), "It hung."])
    agent = Agent("A", tools=[hang], model=model)
    config = RunConfig(tool_timeout=0.1)
    async with (
        ToolRuntime(stream, agent.tools),
        AgentController(stream, agent, run_config=config),
    ):
        await send(stream, "Go.", AgentState.AWAITING_USER_INPUT)
        await stopped.wait()
    assert "Tool 'hang' timed out after 0.1 s" in shape(model.requests[1])[-1]
    outputs = [item for item in model.requests[1].input if isinstance(item, ToolCallOutputItem)]
    assert [item.status for item in outputs] == ["timeout"]


async def test_hooks_observe_the_agent_and_its_delegates(stream: EventStream) -> None:
    """Each moment once, in order; the calls are those of the agents."""
    seen: list[str] = []

    class Hooks(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            seen.append(f"{agent.name} starts for {context.context}")

        async def on_agent_end(self, context: Any, agent: Any, output: object) -> None:
            seen.append(f"{agent.name} ends: {output}")

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            seen.append(f"{agent.name} calls {tool.name} {dict(context.arguments)}")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            seen.append(f"{tool.name}: {result.status}")

    model = ScriptedModel(
        {
            "Boss": [tool_call("delegate", agent="helper", task="Add."), "So."],
            "Helper": [tool_call("add", a=2, b=3), "It is 5."],
        }
    )
    helper = Agent("Helper", tools=[add], model=model)
    boss = Agent("Boss", model=model)
    async with (
        ToolRuntime(stream, [add]),
        AgentController(stream, boss, delegates={"helper": helper}, hooks=Hooks(), context="Ada"),
    ):
        await send(stream, "Go.", AgentState.AWAITING_USER_INPUT)
    assert seen == [
        "Boss starts for Ada",
        "Boss calls delegate {'agent': 'helper', 'task': 'Add.'}",
        "Helper starts for Ada",
        "Helper calls add {'a': 2, 'b': 3}",
        "add: ok",
        "Helper ends: It is 5.",
        "delegate: ok",
        "Boss ends: So.",
    ]


async def test_a_tool_that_the_provider_refuses_is_left_out(stream: EventStream) -> None:
    """One schema must not end the session."""

    def refuse(request: ModelRequest) -> str:
        if any(tool.name == "add" for tool in request.tools):
            raise ToolRefusedError("bad schema", tool_name="add", reason="no such type")
        return "Without it."

    model = ScriptedModel([refuse, refuse])
    agent = Agent("A", tools=[add], model=model)
    async with AgentController(stream, agent) as controller:
        await send(stream, "Go.", AgentState.AWAITING_USER_INPUT)
        assert controller.state.agent_state is AgentState.AWAITING_USER_INPUT


async def test_an_answer_that_does_not_match_the_output_type_is_corrected(
    stream: EventStream,
) -> None:
    """The user sees only the answer that matches."""
    model = ScriptedModel(["three", "3"])
    agent = Agent("A", model=model, output_type=int)
    async with AgentController(stream, agent):
        await send(stream, "1 + 2?", AgentState.AWAITING_USER_INPUT)
    answers: list[Any] = list(
        stream.get_events(filter=EventFilter(types=("action_event",), sources=(EventSource.AGENT,)))
    )
    assert [event.value.content for event in answers] == ["3"]
    assert len(shape(model.requests[1])) == 3


@pytest.mark.requirement("D53")
@pytest.mark.parametrize("end", ["request", "approval", "call"])
async def test_a_run_with_a_store_continues_in_another_process(tmp_path: Path, end: str) -> None:
    """The model is not asked again for recorded responses, and calls do not run again."""
    ship = Ship()
    store, reached = MemoryEventStore(), asyncio.Event()
    begun: list[int] = []

    async def hang(_: ModelRequest) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "no"

    @function_tool
    async def charge(euros: int) -> str:
        """Charge an account."""
        begun.append(euros)
        reached.set()
        await asyncio.Event().wait()
        return "charged"

    second: dict[str, Any] = {
        "request": hang,
        "approval": tool_call("ship", order=1),
        "call": tool_call("charge", euros=5),
    }
    tools = [add, ship.tool, charge]
    config = RunConfig(store=SQLiteRunStore(tmp_path / "runs.db"))
    async with EventStream(store) as stream, ToolRuntime(stream, tools):
        model = ScriptedModel([tool_call("add", a=1, b=2), second[end]])
        agent = Agent("A", tools=tools, model=model)
        async with AgentController(stream, agent, run_config=config):
            message = stream.add_event(MessageAction("1 + 2?"), USER)
            if end == "approval":
                await wait_for_state(stream, AgentState.AWAITING_USER_CONFIRMATION, message.id)
            else:
                await reached.wait()
        last = stream.last_id
    model = ScriptedModel(["It is 3."])
    config = RunConfig(store=SQLiteRunStore(tmp_path / "runs.db"))
    async with (
        EventStream(store) as stream,
        ToolRuntime(stream, tools),
        AgentController(stream, Agent("A", tools=tools, model=model), run_config=config),
    ):
        if end == "approval":
            waiting = await wait_for_state(stream, AgentState.AWAITING_USER_CONFIRMATION, last)
            stream.add_event(ChangeAgentStateAction(AgentState.USER_CONFIRMED), USER)
            last = waiting.id
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, last)
    (request,) = map(shape, model.requests)
    assert request[:3] == ["user: 1 + 2?", "call add", "output 3"]
    if end == "approval":
        assert request[3:] == ["call ship", "output shipped 1"]
        assert ship.shipped == [1]
    elif end == "call":
        assert request[3] == "call charge"
        assert "The action was stopped before it had a result" in request[4]
        assert begun == [5]
        assert len(request) == 5


KILLED = """
import asyncio, os, signal, sys
from agents_tools import Agent, RunConfig, function_tool
from agents_tools.classes.event_types import MessageAction
from agents_tools.event_driven import AgentController, ToolRuntime
from agents_tools.persistence import SQLiteEventStore
from agents_tools.persistence import SQLiteRunStore
from agents_tools.persistence.stream import EventStream
from agents_tools.testing import ScriptedModel, tool_call

@function_tool
def work(n: int) -> str:
    with open("work.log", "a") as file:
        file.write(f"{n} ")
    return f"did {n}"

async def die(_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(answers):
    model = ScriptedModel(answers)
    agent = Agent("A", tools=[work], model=model)
    config = RunConfig(store=SQLiteRunStore("runs.db"))
    async with (
        EventStream(SQLiteEventStore("stream.db"), sid="chat") as stream,
        ToolRuntime(stream, [work]),
        AgentController(stream, agent, run_config=config),
    ):
        if len(answers) > 1:
            stream.add_event(MessageAction("Start."), "user")
        async for event in stream.follow(stream.first_id - 1):
            value = getattr(event, "value", None)
            if isinstance(value, MessageAction) and value.wait_for_response:
                break
    print(len(model.requests), [item.to_dict().get("output") for item in model.requests[0].input])

begun = [tool_call("work", n=1), tool_call("work", n=2), die]
asyncio.run(main(begun if sys.argv[1] == "begin" else ["All done."]))
"""


@pytest.mark.slow
def test_a_run_with_a_store_continues_after_its_process_was_killed(tmp_path: Path) -> None:
    """The model is asked once for each step, and each call runs once."""
    programs: list[subprocess.CompletedProcess[str]] = [
        subprocess.run(  # noqa: S603 - the program above
            [sys.executable, "-c", KILLED, argument],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        for argument in ("begin", "continue")
    ]
    assert programs[0].returncode == -signal.SIGKILL, programs[0].stderr
    assert programs[1].returncode == 0, programs[1].stderr
    assert programs[1].stdout == "1 [None, None, 'did 1', None, 'did 2']\n"
    assert (tmp_path / "work.log").read_text() == "1 2 "


async def test_a_run_without_a_store_is_not_continued(tmp_path: Path) -> None:
    """There is nothing to continue it from, so the agent waits for the user."""
    store, asked = MemoryEventStore(), asyncio.Event()

    async def hang(_: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "no"

    async with (
        EventStream(store) as stream,
        AgentController(stream, Agent("A", model=ScriptedModel([hang]))),
    ):
        stream.add_event(MessageAction("Hi"), USER)
        await asked.wait()
    model = ScriptedModel(["Hello."])
    config = RunConfig(store=SQLiteRunStore(tmp_path / "runs"))
    async with (
        EventStream(store) as stream,
        AgentController(stream, Agent("A", model=model), run_config=config) as controller,
    ):
        assert controller.state.agent_state is AgentState.AWAITING_USER_INPUT
        await send(stream, "Hi?", AgentState.AWAITING_USER_INPUT)
    assert [shape(request) for request in model.requests] == [["user: Hi", "user: Hi?"]]


async def test_a_message_while_a_call_runs_steers_the_next_request(stream: EventStream) -> None:
    """A message that arrives while a tool runs is in the next request, and is answered."""
    begun, go = asyncio.Event(), asyncio.Event()

    @function_tool
    async def work(n: int) -> str:
        """Work."""
        begun.set()
        await go.wait()
        return f"did {n}"

    model = ScriptedModel([tool_call("work", n=1), "I do X."])
    agent = Agent("A", tools=[work], model=model)
    async with ToolRuntime(stream, agent.tools), AgentController(stream, agent):
        message = stream.add_event(MessageAction("Start."), USER)
        await begun.wait()
        stream.add_event(MessageAction("Stop that, do X."), USER)
        go.set()
        await wait_for_state(stream, AgentState.AWAITING_USER_INPUT, message.id)
    assert shape(model.requests[1]) == [
        "user: Start.",
        "call work",
        "output did 1",
        "user: Stop that, do X.",
    ]


async def test_a_store_that_cannot_be_read_fails_the_start_of_the_controller() -> None:
    """The start waited for ever if only the search for an unfinished run failed."""

    class Unreadable(MemoryEventStore):
        def read(self, *args: Any, **options: Any) -> Any:
            if options.get("reverse"):
                return PendingFuture.failed(EventStoreError("The store is gone.", store="memory"))
            return super().read(*args, **options)

    agent = Agent("A", model=ScriptedModel(["Hello."]))
    config = RunConfig(store=MemoryRunStore())
    async with EventStream(store=Unreadable()) as stream:
        controller = AgentController(stream, agent, run_config=config)
        with pytest.raises(EventStoreError, match="The store is gone"):
            async with asyncio.timeout(5):
                await controller.__aenter__()
        await controller.aclose()
