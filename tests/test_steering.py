"""Sending messages to a run while it works."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents_tools import Agent, MaxTurnsExceeded, RunConfig, Runner, UserError, function_tool
from agents_tools.agents import ModelRequest, RunState
from agents_tools.agents.config import RunHooks
from agents_tools.agents.run import Run
from agents_tools.content import MessageInputItem, ToolCallItem, ToolCallOutputItem
from agents_tools.errors import ModelError
from agents_tools.events import EventSource, MessageEvent
from agents_tools.persistence import MemoryRunStore, Session, SQLiteRunStore
from agents_tools.persistence.conversation import conversation
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, check_events, tool_call

TIME_LIMIT = 30.0


@pytest.fixture(autouse=True)
async def _bound() -> AsyncIterator[None]:
    """End a test that waits for ever."""
    async with asyncio.timeout(TIME_LIMIT):
        yield


def shape(items: Sequence[Any]) -> list[str]:
    """Return items in a short form."""
    shown: list[str] = []
    for item in items:
        match item:
            case MessageInputItem():
                shown.append(f"{item.role}: {item.content}")
            case ToolCallItem():
                shown.append(f"call {item.name}")
            case ToolCallOutputItem():
                shown.append(f"output {item.output}")
            case _:
                shown.append(str(getattr(item, "text", type(item).__name__)))
    return shown


class Worker:
    """A tool that runs until it is released."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()

        @function_tool
        async def work() -> str:
            """Work."""
            self.started.set()
            await self.go.wait()
            return "worked"

        self.tool = work


def sender(runs: list[Any], text: str, answer: Any) -> Callable[[ModelRequest], Any]:
    """Return an answer of the model that sends a message to the first run before it arrives."""

    def respond(_: ModelRequest) -> Any:
        runs[0].send(text)
        return answer

    return respond


async def test_a_message_during_a_call_comes_after_its_output() -> None:
    """A provider refuses messages between a call and its output."""
    worker = Worker()
    session = MemoryRunStore().session("chat")
    model = ScriptedModel([[tool_call("work"), tool_call("work")], "X it is."])
    agent = Agent("A", tools=[worker.tool], model=model)
    run = Runner.run_streamed(agent, "Do it.", session=session)
    await worker.started.wait()
    run.send("Do X instead.")
    run.send([{"role": "user", "content": "Hurry."}, {"role": "system", "content": "Noon."}])
    worker.go.set()
    events = [event async for event in run.stream_events()]
    check_events(events)
    assert run.final_output == "X it is."
    expected = [
        "user: Do it.",
        "call work",
        "call work",
        "output worked",
        "output worked",
        "user: Do X instead.",
        "user: Hurry.",
        "system: Noon.",
    ]
    assert shape(model.requests[1].input) == expected
    assert shape(conversation(await session.events())) == [*expected, "X it is."]
    assert shape((await run.wait()).new_items) == [*expected[1:], "X it is."]
    sent = [event for event in events if isinstance(event, MessageEvent)]
    assert [(event.role, event.source) for event in sent] == [
        ("user", EventSource.USER),
        ("user", EventSource.USER),
        ("user", EventSource.USER),
        ("system", EventSource.AGENT),
    ]


async def test_a_plain_run_takes_messages_from_another_thread() -> None:
    """A web handler or a signal handler sends from where it is; `wait` reads no events."""
    worker = Worker()
    model = ScriptedModel([tool_call("work"), "Done."])
    run = Runner.run_streamed(Agent("A", tools=[worker.tool], model=model), "Do it.")
    waiting = asyncio.create_task(run.wait())
    await worker.started.wait()
    threads = [threading.Thread(target=run.send, args=(f"{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    worker.go.set()
    result = await waiting
    assert result.final_output == "Done."
    assert sorted(shape(model.requests[1].input)[3:]) == [f"user: {n}" for n in range(8)]


@pytest.mark.parametrize("behavior", ["run_llm_again", "stop_on_first_tool"])
async def test_a_message_with_the_final_answer_gets_another_turn(behavior: Any) -> None:
    """The run cannot know that the person did not read the answer before writing."""
    ended: list[object] = []

    class Hooks(RunHooks[Any]):
        async def on_agent_end(self, context: Any, agent: Any, output: object) -> None:
            ended.append(output)

    worker = Worker()
    worker.go.set()
    runs: list[Any] = []
    first = tool_call("work") if behavior == "stop_on_first_tool" else "One."
    model = ScriptedModel([sender(runs, "And more?", first), "Two."])
    agent = Agent("A", tools=[worker.tool], model=model, tool_use_behavior=behavior)
    run = Runner.run_streamed(agent, "Go.", hooks=Hooks())
    runs.append(run)
    assert (await run.wait()).final_output == "Two."
    assert shape(model.requests[1].input)[-1] == "user: And more?"
    assert ended == ["Two."]


async def test_a_message_while_the_model_streams_waits_for_its_response() -> None:
    """The response did not consider the message, so it stands before it."""
    streaming, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> str:
        streaming.set()
        await go.wait()
        return "One."

    model = ScriptedModel([slow, "Two."])
    run = Runner.run_streamed(Agent("A", model=model), "Go.")
    await streaming.wait()
    run.send("Stop.")
    go.set()
    assert (await run.wait()).final_output == "Two."
    assert shape(model.requests[1].input) == ["user: Go.", "One.", "user: Stop."]


async def test_a_message_before_the_first_request_follows_the_input() -> None:
    """`run_streamed` returns before the run has begun."""
    model = ScriptedModel(["One."])
    run = Runner.run_streamed(Agent("A", model=model), "Go.")
    run.send("Please.")
    assert (await run.wait()).final_output == "One."
    assert shape(model.requests[0].input) == ["user: Go.", "user: Please."]


async def test_a_message_counts_for_max_turns_and_is_kept() -> None:
    """A limit holds whatever is sent; the message is in the result that the error carries."""
    runs: list[Any] = []
    model = ScriptedModel([sender(runs, "More?", "One.")])
    session = MemoryRunStore().session("chat")
    run = Runner.run_streamed(Agent("A", model=model), "Go.", max_turns=1, session=session)
    runs.append(run)
    with pytest.raises(MaxTurnsExceeded) as caught:
        await run.wait()
    expected = ["user: Go.", "One.", "user: More?"]
    assert shape(await session_items(session)) == expected
    assert shape(caught.value.run_result.new_items) == expected[1:]  # type: ignore[attr-defined]


async def session_items(session: Session) -> list[Any]:
    """Return the conversation that a session stores."""
    return conversation(await session.events())


async def test_after_the_end_sending_names_the_remedy() -> None:
    """A message that no run reads must not look delivered."""
    run = Runner.run_streamed(Agent("A", model=ScriptedModel(["One."])), "Go.", run_id="run_7")
    await run.wait()
    with pytest.raises(UserError, match=r"run 'run_7' of agent 'A' has ended.*Runner\.run\(agent"):
        run.send("More?")


@pytest.mark.parametrize(
    "given", [7, [{"type": "function_call_output"}], [ToolCallItem(call_id="c", name="x")]]
)
async def test_only_messages_can_be_sent(given: Any) -> None:
    """Other items would break the order of calls and outputs."""
    model = ScriptedModel(["One."])
    run = Runner.run_streamed(Agent("A", model=model), "Go.")
    with pytest.raises(UserError, match=r"send\(\)"):
        run.send(given)
    await run.wait()
    assert shape(model.requests[0].input) == ["user: Go."]


async def test_a_message_to_a_cancelled_run_stays_in_the_session() -> None:
    """The person sees the message in the conversation, so the next run has to see it too."""
    worker = Worker()
    session = MemoryRunStore().session("chat")
    model = ScriptedModel([tool_call("work"), "Yes."])
    agent = Agent("A", tools=[worker.tool], model=model)
    run = Runner.run_streamed(agent, "Do it.", session=session)
    await worker.started.wait()
    run.send("No, stop.")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.wait()
    await Runner.run(agent, "Well?", session=session)
    assert shape(model.requests[1].input) == [
        "user: Do it.",
        "call work",
        "output The call was cancelled before it had a result.",
        "user: No, stop.",
        "user: Well?",
    ]


@pytest.mark.parametrize("through", ["state", "session"])
async def test_a_message_to_a_run_that_stops_for_an_approval_is_in_its_state(through: str) -> None:
    """The run resumes with the message after the output of the approved call."""

    @needs_approval()
    @function_tool
    def ship() -> str:
        """Ship it."""
        return "shipped"

    session = MemoryRunStore().session("chat")
    runs: list[Any] = []
    model = ScriptedModel([sender(runs, "By train.", tool_call("ship")), "Done.", "Bye."])
    agent = Agent("A", tools=[ship], model=model)
    run = Runner.run_streamed(agent, "Ship it.", session=session)
    runs.append(run)
    result = await run.wait()
    assert len(result.interruptions) == 1
    assert result.final_output is None
    with pytest.raises(UserError, match=r"result\.to_state\(\)"):
        run.send("Too late.")
    expected = ["user: Ship it.", "call ship", "output shipped", "user: By train."]
    if through == "state":
        state = RunState.from_json(result.to_state().to_json())
        state.approve(state.interruptions[0])
        resumed = await Runner.run(agent, state, session=session)
    else:
        config = RunConfig(approve=lambda _: True)
        resumed = await Runner.run(agent, "Now.", session=session, run_config=config)
        expected.append("user: Now.")
    assert resumed.final_output == "Done."
    assert shape(model.requests[1].input) == expected
    await Runner.run(agent, "Thanks.", session=session)
    assert shape(model.requests[2].input) == [*expected, "Done.", "user: Thanks."]


async def test_a_message_goes_to_the_run_that_it_is_sent_to() -> None:
    """An agent inside a run has a conversation of its own."""
    worker = Worker()
    model = ScriptedModel(
        {
            "Boss": [tool_call("helper", input="Help.", call_id="call_1"), "Boss done."],
            "Helper": [tool_call("work"), "Helper done."],
        }
    )
    helper = Agent("Helper", tools=[worker.tool], model=model)
    boss = Agent("Boss", tools=[helper.as_tool("helper", "Help.", streaming=True)], model=model)
    events: list[Any] = []
    run = Run(boss, [MessageInputItem(content="Go.")], sinks=(events.append,))
    running = asyncio.create_task(run.execute())
    await worker.started.wait()
    (inner,) = run.inner
    run.send("To the boss.")
    inner.send("To the helper.")
    worker.go.set()
    result = await running
    assert result.final_output == "Boss done."
    by_agent = {request.agent: shape(request.input) for request in model.requests}
    assert by_agent["Helper"][-1] == "user: To the helper."
    assert by_agent["Boss"][-2:] == ["output Helper done.", "user: To the boss."]
    sent = {event.content: event for event in events if isinstance(event, MessageEvent)}
    assert sent["To the boss."].source is EventSource.USER
    assert sent["To the helper."].source is EventSource.AGENT
    assert sent["To the helper."].path == ("call_1",)


async def test_a_resumed_run_repeats_the_messages_that_were_sent(tmp_path: Path) -> None:
    """A recorded response followed a message, so the conversation has to contain it again."""
    worker = Worker()
    worker.go.set()
    runs: list[Any] = []
    model = ScriptedModel(
        [
            sender(runs, "Hurry.", "One."),
            tool_call("work"),
            ModelError("the provider is gone"),
            "Three.",
        ]
    )
    store = SQLiteRunStore(tmp_path / "runs.db")
    session = store.session("chat")
    agent = Agent("A", tools=[worker.tool], model=model)
    run = Runner.run_streamed(agent, "Go.", run_id="r", session=session)
    runs.append(run)
    with pytest.raises(ModelError):
        await run.wait()
    result = await Runner.resume(agent, "r", store=store)
    assert result.final_output == "Three."
    expected = ["user: Go.", "One.", "user: Hurry.", "call work", "output worked"]
    assert shape(model.requests[3].input) == expected
    assert shape(result.to_state().history) == [*expected, "Three."]
    assert shape(await session_items(session)) == [*expected, "Three."]
    await store.aclose()
