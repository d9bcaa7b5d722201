"""Test the runtime: it executes the actions of a stream and publishes one observation for each."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools import function_tool, get_default_tools, notify, progress
from agents_tools.builtin.file_editor import FileEditorAction
from agents_tools.builtin.terminal import TerminalAction
from agents_tools.classes import Action, Observation, ToolDefinition, ToolExecutor
from agents_tools.classes.event_types import (
    AgentErrorObservation,
    AgentFinishAction,
    AgentThinkAction,
    BrowseInteractiveAction,
    BrowserOutputObservation,
    ChangeAgentStateAction,
    CmdKillAction,
    CmdOutputObservation,
    CmdRunAction,
    ErrorObservation,
    FileEditAction,
    FileEditObservation,
    FileReadAction,
    FileReadObservation,
    IPythonRunCellAction,
    IPythonRunCellObservation,
    MCPAction,
    MCPObservation,
    MessageAction,
    NullAction,
    ToolObservation,
    event_of,
)
from agents_tools.concurrency.supervisor import abandoned_tasks
from agents_tools.errors import UserValueError
from agents_tools.event_driven import ToolRuntime
from agents_tools.events import (
    ActionEvent,
    Event,
    EventSource,
    NotifyStreamEvent,
    ObservationEvent,
    Origin,
    ToolProgressEvent,
)
from agents_tools.persistence import EventFilter, MemoryEventStore
from agents_tools.persistence.stream import EventStream
from agents_tools.policies import needs_approval
from agents_tools.registry import ToolRegistry, default_registry
from agents_tools.tool import RunContextWrapper, ToolContext, ToolOrigin
from tests.waiting import comes

OBSERVATIONS = EventFilter(types=("observation_event",))
BOUND = 45.0


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
async def hang() -> str:
    """Never end by itself."""
    notify("hanging")
    await asyncio.Event().wait()
    return "no"


@pytest.fixture
async def stream() -> AsyncIterator[EventStream]:
    """Yield an open stream."""
    async with EventStream() as stream:
        yield stream


async def wait_for_observation(stream: EventStream, event: Event) -> ObservationEvent[Any]:
    """Wait for the observation of an action."""
    async with asyncio.timeout(BOUND):
        async with stream.follow(where=OBSERVATIONS) as events:
            async for seen in events:
                if seen.cause == event.id and isinstance(seen, ObservationEvent):
                    return seen
    raise AssertionError("the stream has ended")


async def act(
    stream: EventStream, action: Action | Event, source: EventSource = EventSource.AGENT
) -> Any:
    """Publish an action and return the value of its observation."""
    return (await wait_for_observation(stream, stream.add_event(action, source))).value


async def wait_for_notification(stream: EventStream, text: str) -> Event:
    """Wait until a tool has published a text."""
    async with asyncio.timeout(BOUND):
        async with stream.follow() as events:
            async for event in events:
                if isinstance(event, NotifyStreamEvent) and event.data == text:
                    return event
    raise AssertionError("the stream has ended")


@pytest.mark.requirement("D24", "D39")
async def test_an_action_with_the_name_of_a_tool_gets_an_observation(
    stream: EventStream,
) -> None:
    """The observation has the action as its cause and the environment as its source."""
    async with ToolRuntime(stream, [add]):
        action = ActionEvent[Any]("add", {"a": 1, "b": 2})
        event = stream.add_event(action, EventSource.AGENT)
        seen = await wait_for_observation(stream, event)
        assert seen.value == ToolObservation("3", "add")
        assert (seen.cause, seen.source) == (event.id, EventSource.ENVIRONMENT)


@pytest.mark.requirement("D40", "D48")
@pytest.mark.parametrize(
    "action",
    [
        AgentThinkAction("Hm."),
        MessageAction("Hello"),
        AgentFinishAction("Done."),
        NullAction(),
        ChangeAgentStateAction("running"),  # type: ignore[arg-type]
    ],
    ids=lambda action: type(action).__name__,
)
async def test_actions_that_are_not_runnable_are_ignored(
    stream: EventStream, action: Action
) -> None:
    """Thoughts and messages are not executed."""
    async with ToolRuntime(stream, [add]):
        ignored = stream.add_event(action, EventSource.AGENT)
        observed = stream.add_event(ToolObservation("x"), EventSource.ENVIRONMENT)
        await act(stream, ActionEvent("add", {"a": 1, "b": 2}))
        causes = [event.cause for event in stream.get_events(filter=OBSERVATIONS)]
    assert ignored.id not in causes
    assert observed.id not in causes


@pytest.mark.requirement("D27", "D28", "D39")
async def test_the_documented_actions_are_executed_by_the_built_in_tools(
    stream: EventStream, tmp_path: Path
) -> None:
    """Covers a command, an edit and a view in the working directory."""
    async with ToolRuntime(stream, default_registry, working_dir=tmp_path):
        edited = await act(stream, FileEditAction("a.txt", "create", "one\ntwo\nthree\n"))
        assert isinstance(edited, FileEditObservation)
        assert not edited.prev_exists
        ran = await act(stream, CmdRunAction("wc -l < a.txt; exit_code() { return 3; }; exit_code"))
        assert isinstance(ran, CmdOutputObservation)
        assert (ran.text.split()[0], ran.exit_code) == ("3", 3)
        read = await act(stream, FileReadAction("a.txt", 2, 2))
        assert isinstance(read, FileReadObservation)
        assert "two" in read.text
        assert "one" not in read.text
        missing = await act(stream, FileReadAction("b.txt"))
        assert isinstance(missing, FileReadObservation)
        assert missing.is_error


@pytest.mark.requirement("D26", "D39")
async def test_the_action_of_a_built_in_tool_runs_that_tool(
    stream: EventStream, tmp_path: Path
) -> None:
    """The observation has the type of the tool."""
    async with ToolRuntime(stream, default_registry, working_dir=tmp_path):
        ran = await act(stream, TerminalAction(command="echo hello"))
        assert type(ran).__name__ == "TerminalObservation"
        assert ran.text.strip() == "hello"
        edited = await act(stream, FileEditorAction(command="create", path="x.txt", file_text="x"))
        assert edited.path.endswith("x.txt")


class DoubleAction(Action):
    """Double a number."""

    number: int


class DoubleObservation(Observation):
    """A number that was doubled."""

    doubled: int


class DoubleExecutor(ToolExecutor[DoubleAction, DoubleObservation]):
    """Doubles numbers."""

    closed = False

    def __call__(self, action: DoubleAction, conversation: Any = None) -> DoubleObservation:
        """Double a number."""
        del conversation
        return DoubleObservation.from_text(str(2 * action.number), doubled=2 * action.number)

    def close(self) -> None:
        """Note that it was closed."""
        DoubleExecutor.closed = True


class DoubleTool(ToolDefinition[DoubleAction, DoubleObservation]):
    """Doubles numbers."""

    @classmethod
    def create(cls, conv_state: Any = None) -> list[DoubleTool]:
        """Make the tool."""
        del conv_state
        return [
            cls(
                description="Double a number.",
                action_type=DoubleAction,
                observation_type=DoubleObservation,
                executor=DoubleExecutor(),
            )
        ]


@pytest.mark.requirement("D26")
@pytest.mark.parametrize("registered", [True, False])
async def test_the_action_of_a_custom_tool_runs_that_tool(
    stream: EventStream, registered: bool
) -> None:
    """The tool is passed directly or created by a registry; created tools are closed."""
    registry = ToolRegistry()
    registry.register("double", DoubleTool)
    DoubleExecutor.closed = False
    given = registry if registered else DoubleTool.create()
    async with ToolRuntime(stream, given):
        assert (await act(stream, DoubleAction(number=4))).doubled == 8
        assert (await act(stream, ActionEvent("double", {"number": 5}))).doubled == 10
    assert DoubleExecutor.closed is registered


@pytest.mark.requirement("D27")
async def test_a_custom_mapping_extends_the_runtime(stream: EventStream) -> None:
    """Any tool can execute any action."""

    @function_tool
    def browser(code: str) -> str:
        """Browse."""
        return f"did {code}"

    async with ToolRuntime(stream, [add, browser]) as runtime:
        seen = await act(stream, BrowseInteractiveAction("click('a')"))
        assert seen == BrowserOutputObservation("did click('a')")
        unknown = await act(stream, IPythonRunCellAction("1 + 1"))
        assert isinstance(unknown, AgentErrorObservation)
        assert "'execute_ipython_cell' for a IPythonRunCellAction" in unknown.text
        runtime.handles(
            IPythonRunCellAction,
            "add",
            lambda action: dict(zip("ab", map(int, action.code.split("+")), strict=True)),
            lambda action, outcome: IPythonRunCellObservation(str(outcome.value), action.code),
        )
        assert (await act(stream, IPythonRunCellAction("1 + 1"))).text == "2"


@pytest.mark.requirement("D37")
async def test_an_mcp_action_calls_the_tool_of_its_server(stream: EventStream) -> None:
    """It can use the name of the server or of this library; the observation has the cause."""
    remote: list[Any] = []
    for server in ("numbers", "letters"):

        @function_tool(name_override=f"{server}_add")
        def tool(a: int, b: int, server: str = server) -> str:
            """Add."""
            return f"{server}: {a + b}"

        tool._origin = ToolOrigin(kind="mcp", server=server, wire_name="add")  # pyright: ignore[reportPrivateUsage]
        remote.append(tool)
    async with ToolRuntime(stream, [*remote, add]):
        event = stream.add_event(MCPAction("add", {"a": 1, "b": 2}, "numbers"), EventSource.AGENT)
        seen = await wait_for_observation(stream, event)
        assert seen.value == MCPObservation("numbers: 3", "add", {"a": 1, "b": 2}, "numbers")
        assert seen.cause == event.id
        assert (await act(stream, MCPAction("letters_add", {"a": 1, "b": 2}))).text == "letters: 3"
        unclear = await act(stream, MCPAction("add", {"a": 1, "b": 2}))
        assert "Several servers have a tool 'add': letters, numbers" in unclear.text
        missing = await act(stream, MCPAction("sub", {}, "numbers"))
        assert isinstance(missing, AgentErrorObservation)


@pytest.mark.requirement("D38")
async def test_failures_are_observations_with_their_origin(stream: EventStream) -> None:
    """Errors of the agent are distinguished from failures of the environment."""

    @function_tool
    def fail() -> str:
        """Fail."""
        raise RuntimeError("the disk is full")

    @needs_approval
    @function_tool
    def dangerous() -> str:
        """Do something dangerous."""
        return "done"

    async with ToolRuntime(stream, [add, fail, dangerous]):
        broken = await act(stream, ActionEvent("fail", {}))
        assert isinstance(broken, ErrorObservation)
        assert (broken.error_id, broken.is_error) == ("tool_error", True)
        assert "the disk is full" in broken.text
        wrong = await act(stream, ActionEvent("add", {"a": "x", "b": 1}))
        assert isinstance(wrong, AgentErrorObservation)
        assert wrong.error_id == "invalid_args"
        unknown = await act(stream, ActionEvent("ad", {}))
        assert isinstance(unknown, AgentErrorObservation)
        assert "There is no tool 'ad'. Did you mean 'add'?" in unknown.text
        denied = await act(stream, ActionEvent("dangerous", {}))
        assert isinstance(denied, AgentErrorObservation)
        assert denied.error_id == "denied"
        damaged = await act(stream, ActionEvent("CmdRunAction", {"comand": "ls"}))
        assert isinstance(damaged, AgentErrorObservation)
        assert damaged.error_id == "invalid_action"


@pytest.mark.requirement("D24")
async def test_events_of_a_tool_are_published_while_it_runs(stream: EventStream) -> None:
    """They have the path of the call, and the action as their cause."""

    @function_tool
    def speak() -> str:
        """Speak."""
        notify("half way")
        progress(1, 2)
        return "done"

    async with ToolRuntime(stream, [speak]):
        origin = Origin("speak", "call_7", ("call_1",), EventSource.AGENT)
        event = stream.publish(ActionEvent[Any]("speak", {}).replace(origin=origin))
        seen = await wait_for_observation(stream, event)
        published = [one for one in stream.get_events() if event.id < one.id < seen.id]
    assert [type(one).__name__ for one in published] == [
        "ToolStreamStartEvent",
        "NotifyStreamEvent",
        "ToolProgressEvent",
        "ToolStreamEndEvent",
    ]
    assert isinstance(published[2], ToolProgressEvent)
    for one in published:
        assert (one.path, one.tool_name, one.cause) == (("call_1", "call_7"), "speak", event.id)
    assert (seen.path, seen.tool_call_id) == (("call_1",), "call_7")


@pytest.mark.requirement("D47")
async def test_the_timeout_of_an_action_is_enforced(stream: EventStream, tmp_path: Path) -> None:
    """The session stops a command, the runtime stops everything else."""

    @function_tool
    async def execute_ipython_cell(code: str) -> str:
        """Run a cell."""
        await asyncio.Event().wait()
        return code

    async with ToolRuntime(stream, [execute_ipython_cell]):
        stopped = await act(stream, IPythonRunCellAction("wait()", timeout=0.05))
        assert isinstance(stopped, ErrorObservation)
        assert stopped.error_id == "timeout"
        assert "took longer than 0.05 s" in stopped.text
    async with ToolRuntime(stream, default_registry, working_dir=tmp_path):
        late = await act(stream, CmdRunAction("cat <(sleep 60)", timeout=0.2))
        assert isinstance(late, CmdOutputObservation)
        assert late.exit_code == 124


@pytest.mark.requirement("D46", "D47")
async def test_a_setup_script_runs_hidden_in_the_terminal_session(
    stream: EventStream, tmp_path: Path
) -> None:
    """Its variables are available to later commands; views omit it."""
    (tmp_path / "set up.sh").write_text("export GREETING=hello\n", encoding="utf-8")
    async with ToolRuntime(stream, default_registry, working_dir=tmp_path) as runtime:
        event = runtime.run_setup_script("./set up.sh")
        seen = await wait_for_observation(stream, event)
        assert event.source is EventSource.ENVIRONMENT
        assert isinstance(event, ActionEvent)
        assert event.value.timeout == 600
        assert seen.value.exit_code == 0
        assert (await act(stream, CmdRunAction("echo $GREETING"))).text.startswith("hello")
    shown = [one.cause for one in stream.get_events(filter=EventFilter(hidden=False))]
    assert seen.hidden
    assert event.id not in [one.id for one in stream.get_events(filter=EventFilter(hidden=False))]
    assert shown


@pytest.mark.requirement("D39")
async def test_actions_run_sequentially_by_default(stream: EventStream) -> None:
    """A command can depend on the effects of the previous one."""
    running, most = 0, 0
    both = asyncio.Event()

    @function_tool
    async def work(wait: bool) -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            both.set()
        if wait:
            await both.wait()
        running -= 1
        return "done"

    async with ToolRuntime(stream, [work]):
        events = [
            stream.add_event(ActionEvent[Any]("work", {"wait": False}), "agent") for _ in range(4)
        ]
        for event in events:
            await wait_for_observation(stream, event)
        order = [one.cause for one in stream.get_events(filter=OBSERVATIONS)]
        assert (most, order) == (1, [event.id for event in events])
    async with ToolRuntime(stream, [work], max_parallel=2):
        events = [
            stream.add_event(ActionEvent[Any]("work", {"wait": True}), "agent") for _ in range(2)
        ]
        for event in events:
            await wait_for_observation(stream, event)
        assert most == 2
    with pytest.raises(UserValueError, match="expected a positive integer, got 0"):
        ToolRuntime(stream, [work], max_parallel=0)


@pytest.mark.requirement("D27", "D50")
async def test_a_kill_action_reaches_the_tool_before_waiting_actions(stream: EventStream) -> None:
    """It must not wait for the command that it is meant to stop."""
    async with ToolRuntime(stream, [hang, add]):
        hanging = stream.add_event(ActionEvent[Any]("hang", {}), "agent")
        after = stream.add_event(ActionEvent[Any]("add", {"a": 1, "b": 1}), "agent")
        await wait_for_notification(stream, "hanging")
        killed = await act(stream, CmdKillAction(hanging.id))
        assert isinstance(killed, CmdOutputObservation)
        gone = (await wait_for_observation(stream, hanging)).value
        assert isinstance(gone, ErrorObservation)
        assert gone.error_id == "cancelled"
        assert (await wait_for_observation(stream, after)).value.text == "2"
        nothing = await act(stream, CmdKillAction(hanging.id))
        assert isinstance(nothing, AgentErrorObservation)
        assert f"Action {hanging.id} is not running. Running actions: none." in nothing.text
        assert (await act(stream, CmdKillAction())).text == "Stopped: no action was running."


@pytest.mark.requirement("D27")
async def test_code_in_a_thread_can_detect_cancellation(stream: EventStream) -> None:
    """A thread cannot be stopped from outside, so it checks a flag."""
    seen = threading.Event()

    @function_tool
    def loop(ctx: ToolContext[Any]) -> str:
        """Loop."""
        ctx.notify("looping")
        while not ctx.cancelled:
            seen.wait(0.005)
        seen.set()
        return "stopped"

    async with ToolRuntime(stream, [loop]):
        stream.add_event(ActionEvent[Any]("loop", {}), "agent")
        await wait_for_notification(stream, "looping")
        await act(stream, CmdKillAction())
        assert await asyncio.to_thread(seen.wait, BOUND)


@pytest.mark.requirement("D18", "D19")
async def test_closing_cancels_running_actions_and_answers_them(stream: EventStream) -> None:
    """Each action has one observation, and no task is left."""
    runtime = ToolRuntime(stream, [hang])
    events = [stream.add_event(ActionEvent[Any]("hang", {}), "agent") for _ in range(3)]
    await wait_for_notification(stream, "hanging")
    await runtime.aclose()
    await runtime.aclose()
    for event in events:
        assert (await wait_for_observation(stream, event)).value.error_id == "cancelled"
    ignored = stream.add_event(ActionEvent[Any]("hang", {}), "agent")
    await stream.flush()
    assert ignored.id == stream.last_id


@pytest.mark.requirement("D19")
async def test_closing_on_the_event_loop_does_not_block(stream: EventStream) -> None:
    """Running actions are cancelled as soon as the loop continues."""
    with ToolRuntime(stream, [hang]) as runtime:
        event = stream.add_event(ActionEvent[Any]("hang", {}), "agent")
        await wait_for_notification(stream, "hanging")
    assert (await wait_for_observation(stream, event)).value.error_id == "cancelled"
    runtime.close()


@pytest.mark.requirement("D39")
def test_the_runtime_works_without_an_event_loop() -> None:
    """A synchronous program uses the background loop."""
    with EventStream() as stream, ToolRuntime(stream, [add, hang]) as runtime:
        answered = threading.Event()
        seen: list[Any] = []

        def take(event: Event) -> None:
            assert isinstance(event, ObservationEvent)
            seen.append(event.value)
            answered.set()

        stream.subscribe("test", take, where=OBSERVATIONS)
        stream.add_event(ActionEvent[Any]("add", {"a": 2, "b": 2}), "agent")
        assert answered.wait(BOUND)
        assert seen == [ToolObservation("4", "add")]
        answered.clear()
        stream.add_event(ActionEvent[Any]("hang", {}), "agent")
        stream.subscribe(
            "test",
            lambda _: answered.set(),
            after=-1,
            where=EventFilter(types=("notify_stream_event",)),
        )
        assert answered.wait(BOUND)
        runtime.close()
        assert [
            event.value.error_id
            for event in stream.get_events(filter=OBSERVATIONS)
            if isinstance(event, ObservationEvent) and isinstance(event.value, ErrorObservation)
        ] == ["cancelled"]


@pytest.mark.requirement("D39")
async def test_tools_receive_the_context_object_of_the_application(stream: EventStream) -> None:

    @function_tool
    def who(ctx: RunContextWrapper[str]) -> str:
        """Say who."""
        return ctx.context

    async with ToolRuntime(stream, [who], context="Ada"):
        assert (await act(stream, ActionEvent("who", {}))).text == "Ada"


@pytest.mark.requirement("D38")
async def test_a_failing_observation_mapping_produces_an_error(
    stream: EventStream, caplog: pytest.LogCaptureFixture
) -> None:
    """The action gets an observation in any case."""
    async with ToolRuntime(stream, [add]) as runtime:
        runtime.handles(
            "NullAction2", "add", lambda _: {"a": 1, "b": 1}, lambda *_: _none().observation
        )

        class NullAction2(Action):
            """Stand for an action of the application's own."""

        seen = await act(stream, NullAction2())
        assert isinstance(seen, ErrorObservation)
        assert seen.error_id == "to_observation"
    assert "The observation of a NullAction2 failed." in caplog.text


def _none() -> Any:
    return None


@pytest.mark.requirement("D8", "D25")
async def test_an_action_published_as_an_event_is_executed(stream: EventStream) -> None:
    """Its record can be attached, or the event has only its JSON."""
    async with ToolRuntime(stream, DoubleTool.create()):
        event = event_of(DoubleAction(number=1))
        assert (await act(stream, event)).doubled == 2
        bare = ActionEvent[Any]("DoubleAction", {"number": 3})
        assert (await act(stream, bare)).doubled == 6


class Odd(Observation):
    """An observation that cannot be published."""

    what: Any = None


@pytest.mark.requirement("D24", "D40")
@pytest.mark.parametrize("made", ["text", None, Odd(what=object())])
async def test_a_result_that_is_not_an_observation_produces_an_error(
    stream: EventStream, made: Any
) -> None:
    """Each action gets one observation, whatever a mapping returns."""
    async with ToolRuntime(stream, [add]) as runtime:
        runtime.handles("Sum", "add", lambda _: {"a": 1, "b": 2}, lambda _, __: made)
        runtime.handles(CmdRunAction, "add", lambda _: {"a": 1, "b": 2}, lambda _, __: made)
        seen = await act(stream, CmdRunAction("sum"))
    assert isinstance(seen, ErrorObservation)
    assert seen.error_id == "observation"


@pytest.mark.requirement("D18", "D40")
@pytest.mark.parametrize("wait", [True, False])
async def test_closing_answers_actions_that_were_not_started(
    stream: EventStream, wait: bool
) -> None:
    """This holds even if closing follows the publication at once."""
    runtime = ToolRuntime(stream, [add])
    events = [
        stream.add_event(ActionEvent[Any]("add", {"a": 1, "b": 2}), "agent") for _ in range(9)
    ]
    if wait:
        await runtime.aclose()
    else:
        runtime.close()
    other = ToolRuntime(stream, [hang])
    stream.add_event(ActionEvent[Any]("hang", {}), "agent")
    await wait_for_notification(stream, "hanging")
    await runtime.aclose()  # a second close answers no later action
    causes = [event.cause for event in stream.get_events(filter=OBSERVATIONS)]
    assert causes == [event.id for event in events]
    await other.aclose()


@pytest.mark.requirement("D18")
async def test_a_tool_that_ignores_cancellation_does_not_block_closing(
    stream: EventStream, caplog: pytest.LogCaptureFixture
) -> None:
    """Closing finishes, and the action still gets one observation."""
    go = asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        """Go on."""
        notify("hanging")
        while not go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await go.wait()
        return "at last"

    runtime = ToolRuntime(stream, [stubborn])
    event = stream.add_event(ActionEvent[Any]("stubborn", {}), "agent")
    try:
        await wait_for_notification(stream, "hanging")
        async with asyncio.timeout(BOUND):
            await runtime.aclose()
        assert "tool 'stubborn' is still running" in caplog.text
        assert (await wait_for_observation(stream, event)).value.error_id == "cancelled"
    finally:
        go.set()
    await comes(lambda: not abandoned_tasks())
    assert len(list(stream.get_events(filter=OBSERVATIONS))) == 1


@pytest.mark.requirement("D53")
async def test_actions_left_by_a_crash_are_lost_and_not_repeated() -> None:
    """A restarted program reports them as lost and executes nothing twice."""
    done: list[str] = []

    @function_tool
    def once(what: str) -> str:
        """Do it."""
        done.append(what)
        return what

    store = MemoryEventStore()
    async with EventStream(store) as stream:
        async with ToolRuntime(stream, [once]):
            await act(stream, ActionEvent[Any]("once", {"what": "a"}))
        left = stream.add_event(ActionEvent[Any]("once", {"what": "b"}), "agent")
        stream.add_event(AgentThinkAction("not runnable"), "agent")
    for _ in range(2):
        async with EventStream(store) as stream, ToolRuntime(stream, [once]):
            seen = (await wait_for_observation(stream, left)).value
            assert isinstance(seen, ErrorObservation)
            assert seen.error_id == "lost"
            await act(stream, ActionEvent[Any]("once", {"what": "c"}))
    assert done == ["a", "c", "c"]
    events = await store.read(where=OBSERVATIONS)
    assert [event.cause for event in events].count(left.id) == 1


@pytest.mark.requirement("D39")
async def test_actions_published_before_the_first_runtime_run_once() -> None:
    """Publishing before the runtime starts is not a crash."""
    done: list[str] = []

    @function_tool
    def once(what: str) -> str:
        """Do it."""
        done.append(what)
        return what

    async with EventStream(MemoryEventStore()) as stream:
        early = stream.add_event(ActionEvent[Any]("once", {"what": "a"}), "agent")
        async with ToolRuntime(stream, [once]):
            assert (await wait_for_observation(stream, early)).cause == early.id
        async with ToolRuntime(stream, [once]):
            await act(stream, ActionEvent[Any]("once", {"what": "b"}))
    assert done == ["a", "b"]


async def test_two_runtimes_with_the_same_tools_share_no_state(tmp_path: Path) -> None:
    """Two sessions of one program must not see each other's shell."""
    with get_default_tools(tmp_path) as tools:
        async with (
            EventStream() as first,
            EventStream() as second,
            ToolRuntime(first, tools),
            ToolRuntime(second, tools),
        ):
            await act(first, CmdRunAction("export NAME=alice"))
            await act(second, CmdRunAction("export NAME=bob"))
            seen = await act(first, CmdRunAction("echo I am $NAME"))
    assert "I am alice" in seen.text
