"""The state of tools belongs to a run: two users of one agent share nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from agents_tools import (
    Action,
    Agent,
    Observation,
    RunConfig,
    Runner,
    ToolCallOutputItem,
    ToolDefinition,
    ToolError,
    ToolExecutor,
    ToolRegistry,
    ToolSpec,
    ToolState,
    UserError,
    function_tool,
    get_default_tools,
    policies,
    register_tool,
)
from agents_tools.classes import BaseTool, BaseToolParams, PerRunExecutor, default_registry
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import function_tools, state as tool_state
from tests.waiting import comes, until


def bash(command: str, **more: Any) -> Any:
    return tool_call("execute_bash", command=command, **more)


async def outputs(agent: Agent[Any, Any], *steps: Any, **config: Any) -> list[Any]:
    """Run an agent with a script of its own, and return the outputs of its calls."""
    model = ScriptedModel([*steps, "done"])
    result = await Runner.run(agent, "go", run_config=RunConfig(model=model, **config))
    return [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent[Any, Any]]:
    with get_default_tools(tmp_path) as tools:
        yield Agent("Worker", tools=tools)


def is_alive(pid: str) -> bool:
    return Path(f"/proc/{pid.strip()}").exists()


# --- the built-in tools


async def test_two_users_of_one_agent_share_nothing(agent: Agent[Any, Any], tmp_path: Path) -> None:
    """One module-level agent serves all users of a web application."""
    (tmp_path / "f").write_text("old")

    def script(user: str) -> list[Any]:
        return [
            bash(f"export NAME={user} && mkdir {user} && cd {user}; f() {{ echo f; }}; echo $NAME"),
            tool_call("task_tracker", command="plan", tasks=[{"title": f"work of {user}"}]),
            bash("echo $NAME in ${PWD##*/}"),
            tool_call("task_tracker", command="view"),
        ]

    one, two = await asyncio.gather(
        outputs(agent, *script("alice")), outputs(agent, *script("bob"))
    )
    assert (one[2], two[2]) == ("alice in alice\n", "bob in bob\n")
    assert "work of alice" in one[3]
    assert "bob" not in str(one)
    assert "alice" not in str(two)

    edit = {"path": "f", "old_str": "old", "new_str": "new"}
    await outputs(agent, tool_call("str_replace_editor", command="str_replace", **edit))
    later = await outputs(
        agent,
        bash("echo [$NAME] $(type -t f) ${PWD##*/}"),
        tool_call("task_tracker", command="view"),
        tool_call("str_replace_editor", command="undo_edit", path="f"),
        tool_call("str_replace_editor", command="create", path="f", file_text="x"),
    )
    assert later[0] == f"[] {tmp_path.name}\n"
    assert later[1] == "There are no tasks yet. Use `plan`."
    assert "no change" in later[2].lower()
    assert "view" in later[3].lower()  # the file was viewed by nobody in this run
    assert (tmp_path / "f").read_text() == "new"


async def test_sub_agents_have_their_own_state(agent: Agent[Any, Any]) -> None:
    """Two sub-agents at once, and their caller, use the same list of tools."""
    sub = Agent("Sub", tools=agent.tools).as_tool("sub", "A worker.")
    lead = Agent("Lead", tools=[*agent.tools, sub])
    model = ScriptedModel(
        {
            "Lead": [
                bash("who=lead"),
                [tool_call("sub", input="a"), tool_call("sub", input="b")],
                bash("echo [$who]"),
                "done",
            ],
            "Sub": [*[bash("echo [$who]; who=sub")] * 2, *[bash("echo [$who]")] * 2, "1", "2"],
        }
    )
    result = await Runner.run(lead, "go", run_config=RunConfig(model=model))
    shown = [
        item["output"]
        for request in model.requests
        if request.agent == "Sub"
        for item in (one.to_dict() for one in request.input)
        if item.get("type") == "function_call_output"
    ]
    assert set(shown) == {"[]\n", "[sub]\n"}
    last = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)][-1]
    assert last == "[lead]\n"


async def test_the_state_ends_with_its_run(agent: Agent[Any, Any], tmp_path: Path) -> None:
    """No shell is left, however the run ends."""
    (pid,) = await outputs(agent, bash("echo $$"))
    assert not is_alive(pid)

    with pytest.raises(UserError, match="no answer left"):
        await Runner.run(
            agent, "go", run_config=RunConfig(model=ScriptedModel([bash("echo $$ >failed")]))
        )
    assert not is_alive((tmp_path / "failed").read_text())

    running = asyncio.create_task(outputs(agent, bash("echo $$ >cancelled; touch begun; sleep 60")))
    await comes((tmp_path / "begun").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    pid = (tmp_path / "cancelled").read_text()
    await comes(lambda: not is_alive(pid))


async def test_parallel_calls_of_a_run_use_one_shell(agent: Agent[Any, Any]) -> None:
    """The first two calls create it at the same time."""
    pids = await outputs(agent, [bash("echo $$"), bash("echo $$"), bash("echo $$")])
    assert len(set(pids)) == 1


async def test_a_call_that_times_out_keeps_the_shell_of_its_run(agent: Agent[Any, Any]) -> None:
    """Only its command is stopped, so that the next one can run."""
    steps = bash("kept=1; echo $$"), bash("echo begun; sleep 60"), bash("echo $kept $$")
    pid, stopped, last = await outputs(agent, *steps, tool_timeout=2)
    assert "2 s" in stopped
    assert last == f"1 {pid}"


async def test_a_resumed_run_starts_with_a_new_state(tmp_path: Path) -> None:
    """The shell of a run that waits for a person ended with it, maybe in another process."""
    with get_default_tools(tmp_path) as tools:
        guarded = policies.needs_approval()(
            function_tool(lambda: "paid", name_override="pay", description_override="Pay.")
        )
        agent = Agent("Worker", tools=[*tools, guarded])
        model = ScriptedModel([bash("kept=1; echo $$"), tool_call("pay"), bash("echo [$kept]"), ""])
        with ToolState() as shared:
            for config, kept in ((RunConfig(model=model), "[]\n"),
                                 (RunConfig(model=model, tool_state=shared), "[1]\n")):  # fmt: skip
                stopped = await Runner.run(agent, "go", run_config=config)
                first = stopped.new_items[1]
                assert isinstance(first, ToolCallOutputItem)
                assert is_alive(str(first.output)) is (config.tool_state is not None)
                state = stopped.to_state()
                state.approve(state.interruptions[0])
                resumed = await Runner.run(agent, state, run_config=config)
                found = [one for one in resumed.new_items if isinstance(one, ToolCallOutputItem)]
                assert found[-1].output == kept
                model.add(bash("kept=1; echo $$"), tool_call("pay"), bash("echo [$kept]"), "")


async def test_the_runs_of_a_chat_can_share_a_state(agent: Agent[Any, Any]) -> None:
    """The application decides which runs belong together, and when they end."""
    async with ToolState() as chat:
        await outputs(agent, bash("kept=1"), tool_state=chat)
        assert await outputs(agent, bash("echo $kept"), tool_state=chat) == ["1\n"]
        assert await outputs(agent, bash("echo $kept")) == ["\n"]
        (pid,) = await outputs(agent, bash("echo $$"), tool_state=chat)
        assert is_alive(pid)
        sub = Agent("Sub", tools=agent.tools).as_tool("sub", "A worker.")
        model = ScriptedModel(
            {"Lead": [tool_call("sub", input="x"), "done"], "Sub": [bash("echo [$kept]"), "done"]}
        )
        config = RunConfig(model=model, tool_state=chat)
        await Runner.run(Agent("Lead", tools=[sub]), "go", run_config=config)
        assert model.requests[2].input[-1].to_dict()["output"] == "[]\n"
    assert not is_alive(pid)
    (text,) = await outputs(agent, bash("echo $$"), tool_state=chat)
    assert "cannot be called any more" in text
    with pytest.raises(TypeError, match="expected a ToolState, got a str"):
        RunConfig(tool_state="chat")  # type: ignore[arg-type]


async def test_a_list_can_be_shared_by_all_runs(tmp_path: Path) -> None:
    """For a program with one user."""
    with get_default_tools(tmp_path, shared=True) as tools:
        agent = Agent("Worker", tools=tools)
        await outputs(agent, bash("kept=1"))
        (kept, pid) = (await outputs(agent, bash("echo $kept; echo $$")))[0].split()
        assert kept == "1"
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_direct_calls_share_the_state_of_the_list(agent: Agent[Any, Any]) -> None:
    """`invoke`, the command line and servers call outside of runs."""
    tool = agent.tools_map["execute_bash"]
    await tool.call(None, '{"command": "kept=1"}')
    assert (await tool.call(None, '{"command": "echo $kept"}')).output == "1\n"
    assert await outputs(agent, bash("echo [$kept]")) == ["[]\n"]

    @function_tool
    async def outer() -> str:
        """Call another tool."""
        return str((await tool.call(None, '{"command": "echo [$own$kept]"}')).output)

    inside = Agent("Worker", tools=[*agent.tools, outer])
    assert (await outputs(inside, bash("own=2"), tool_call("outer")))[1] == "[2]\n"


async def test_a_closed_list_starts_nothing(tmp_path: Path) -> None:
    """A run can outlive the block in which its tools are open."""
    tools = get_default_tools(tmp_path)
    agent = Agent("Worker", tools=tools)
    model = ScriptedModel([bash("echo $$ >pid; sleep 60"), bash("echo $$"), "done"])
    running = asyncio.create_task(Runner.run(agent, "go", run_config=RunConfig(model=model)))
    await comes(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    await asyncio.to_thread(tools.close)
    assert not is_alive((tmp_path / "pid").read_text())
    result = await running
    last = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)][-1]
    assert "closed" in str(last.output)
    (text,) = await outputs(agent, bash("touch never"))
    assert "closed" in text
    assert not (tmp_path / "never").exists()


# --- registered classes and functions


class CountAction(Action):
    pass


class Counter(ToolExecutor[CountAction, Observation]):
    made: ClassVar[list[Counter]] = []

    def __init__(self) -> None:
        self.count = 0
        self.closed = 0
        self.made.append(self)

    def __call__(self, action: CountAction, conversation: Any = None) -> Observation:
        del action, conversation
        self.count += 1
        return Observation.from_text(str(self.count))

    def close(self) -> None:
        self.closed += 1


class CounterTool(ToolDefinition[CountAction, Observation]):
    name: ClassVar[str] = "count"

    @classmethod
    def create(cls, conv_state: Any = None) -> Sequence[Self]:
        del conv_state
        fields: Any = {"action_type": CountAction, "observation_type": Observation}
        executor = Counter()
        tools = [cls(description="Count.", executor=executor, **fields) for _ in range(2)]
        object.__setattr__(tools[1], "name", "also_count")
        return tools


class CounterParams(BaseToolParams):
    """Count."""

    name: ClassVar[str] = "base_count"


class BaseCounter(BaseTool):
    params_class = CounterParams

    def __init__(self) -> None:
        self.count = 0

    def execute(self, session: object, args_json: str) -> tuple[str, dict[str, Any]]:
        self.count += 1
        return str(self.count), {}


def closure() -> list[Any]:
    count = 0

    @function_tool
    async def closure_count() -> int:
        """Count."""
        nonlocal count
        count += 1
        return count

    return [closure_count]


@pytest.fixture
def registry() -> Iterator[ToolRegistry]:
    Counter.made.clear()
    with ToolRegistry() as registry:
        registry.register("counters", CounterTool)
        registry.register("base_counter", BaseCounter)
        registry.register("closure", closure)
        yield registry


NAMES = ("count", "also_count", "base_count", "closure_count")


async def test_specifications_are_factories(registry: ToolRegistry) -> None:
    """Tools of one specification share an executor in a run; runs and direct calls do not."""
    tools = [tool for name in registry.get_tool_names() for tool in registry.resolve(name)]
    assert [tool.name for tool in tools] == list(NAMES)
    agent = Agent("Worker", tools=tools)
    calls = [tool_call(name) for name in NAMES * 2]
    for _ in range(2):
        assert await outputs(agent, *calls) == ["1", "2", "1", "1", "3", "4", "2", "2"]
    direct = [(await tool.call(None, "{}")).output for tool in tools]
    assert direct == ["1", "2", "1", "1"]
    assert [one.closed for one in Counter.made] == [0, 1, 1]
    registry.close()
    assert [one.closed for one in Counter.made] == [1, 1, 1]
    assert await outputs(agent, tool_call("count")) == ["The tool is closed."]


async def test_a_specification_can_be_shared(registry: ToolRegistry) -> None:
    """All runs use the tools that were created once; the registry closes them."""
    agent = Agent("Worker", tools=registry.resolve("counters", shared=True))
    assert await outputs(agent, tool_call("count")) == ["1"]
    assert await outputs(agent, tool_call("also_count")) == ["2"]
    assert [one.closed for one in Counter.made] == [0]
    registry.close()
    assert [one.closed for one in Counter.made] == [1]


@pytest.mark.parametrize("shared", [False, True])
async def test_specifications_of_built_in_tools_can_be_shared(*, shared: bool) -> None:
    """They make an executor for each run themselves."""
    agent = Agent("Worker", tools=default_registry.resolve("task_tracker", shared=shared))
    await outputs(agent, tool_call("task_tracker", command="plan", tasks=[{"title": "a"}]))
    (view,) = await outputs(agent, tool_call("task_tracker"))
    assert ("1. [ ] a" in view) is shared


async def test_policies_of_a_resolved_tool_stay(registry: ToolRegistry) -> None:
    """They wrap the call, whichever run it belongs to."""
    tool = policies.rename("tally")(registry.resolve("counters")[0])
    agent = Agent("Worker", tools=[policies.limit(calls=1)(tool)])
    first, second = await outputs(agent, tool_call("tally"), tool_call("tally"))
    assert first == "1"
    assert "can be called once" in second


async def test_an_agent_accepts_specifications() -> None:
    """As in programs for OpenHands; the default registry has the built-in tools."""
    register_tool("tally", CounterTool)
    try:
        agent = Agent("Worker", tools=[ToolSpec(name="TaskTrackerTool"), ToolSpec(name="tally")])
        assert [tool.name for tool in agent.known_tools] == ["task_tracker", "count", "also_count"]
        plan = tool_call("task_tracker", command="plan", tasks=[{"title": "a"}])
        await outputs(agent, plan)
        view, count = await outputs(agent, tool_call("task_tracker"), tool_call("count"))
        assert "no tasks" in view
        assert count == "1"
    finally:
        default_registry.unregister("tally")
    (plan_tool,) = function_tools([ToolSpec(name="task_tracker")])
    assert plan_tool.name == "task_tracker"
    with pytest.raises(UserError, match="No tool is registered as 'unknown'"):
        Agent("Worker", tools=[ToolSpec(name="unknown")])


async def test_an_executor_that_a_function_returns_again_is_shared() -> None:
    """It outlives the first run, because the function holds it."""
    counter = Counter()
    registry = ToolRegistry()
    fields: Any = {"name": "count", "description": "", "action_type": CountAction}
    registry.register("held", lambda: [ToolDefinition(executor=counter, **fields)])
    agent = Agent("Worker", tools=registry.resolve("held"))
    assert await outputs(agent, tool_call("count")) == ["1"]
    assert await outputs(agent, tool_call("count")) == ["2"]
    assert counter.closed == 0
    registry.close()
    assert counter.closed == 1


async def test_a_function_that_returns_other_tools_is_reported() -> None:
    """The model saw the first ones."""
    names = iter("ab")
    registry = ToolRegistry()
    fields: Any = {"description": "", "action_type": CountAction}
    registry.register(
        "odd", lambda: [ToolDefinition(name=next(names), executor=Counter(), **fields)]
    )
    (text,) = await outputs(Agent("Worker", tools=registry.resolve("odd")), tool_call("a"))
    assert "has returned other tools for this run" in text


async def test_one_failed_creation_is_tried_again(registry: ToolRegistry) -> None:
    """The model can repeat the call."""
    attempts: list[int] = []

    def create() -> Counter:
        attempts.append(1)
        if len(attempts) == 1:
            raise ToolError("not now")
        return Counter()

    tool: Any = ToolDefinition(
        name="count", description="", action_type=CountAction, executor=PerRunExecutor(create)
    )
    agent = Agent("Worker", tools=[tool])
    assert await outputs(agent, tool_call("count"), tool_call("count")) == ["not now", "1"]
    assert [one.closed for one in Counter.made] == [1]


async def test_an_async_executor_can_belong_to_a_run() -> None:
    """Its calls run on the event loop."""

    class Async(ToolExecutor[CountAction, Observation]):
        async def __call__(self, action: CountAction, conversation: Any = None) -> Observation:
            del action, conversation
            await asyncio.sleep(0)
            return Observation.from_text(str(id(asyncio.get_running_loop())))

    fields: Any = {"name": "loop", "description": "", "action_type": CountAction}
    agent = Agent("Worker", tools=[ToolDefinition(executor=PerRunExecutor(Async), **fields)])
    assert await outputs(agent, tool_call("loop")) == [str(id(asyncio.get_running_loop()))]


# --- the state itself


def test_a_state_closes_in_reverse_order_and_logs_errors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One object that cannot be closed does not prevent the others."""
    closed: list[str] = []

    def close(name: str) -> None:
        closed.append(name)
        if name == "b":
            raise RuntimeError("stuck")

    with ToolState() as state:
        for name in "abc":
            assert state.get(name, lambda name=name: name, close) == name
            assert state.get(name, lambda: "other", close) == name
    state.close()
    assert closed == ["c", "b", "a"]
    assert state.find("a") is None
    assert "cannot be closed" in caplog.text
    with pytest.raises(ToolError, match="cannot be called any more"):
        state.get("a", lambda: "a", close)


async def test_a_state_that_cannot_be_closed_does_not_hold_its_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller waits for the grace of a cancelled call at most; the thread finishes alone."""
    monkeypatch.setattr(tool_state, "GRACE", 0.01)
    state, ends, ended = ToolState(), threading.Event(), threading.Event()
    state.get("slow", lambda: "slow", lambda _: (ends.wait(30), ended.set()))
    await state.aclose()
    assert "is not closed after" in caplog.text
    ends.set()
    await comes(ended.is_set)


async def test_an_object_that_is_being_created_is_closed_too() -> None:
    """The run can be cancelled while a function connects to something."""
    state, begun, goes_on = ToolState(), threading.Event(), threading.Event()
    closed: list[str] = []

    def create() -> str:
        begun.set()
        goes_on.wait(30)
        return "made"

    creating = asyncio.create_task(asyncio.to_thread(state.get, "x", create, closed.append))
    await asyncio.to_thread(begun.wait, 30)
    closing = asyncio.create_task(state.aclose())
    await asyncio.sleep(0)
    goes_on.set()
    await closing
    await creating
    until(lambda: closed == ["made"])
