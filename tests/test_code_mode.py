"""Test code mode: programs whose calls are calls of the run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import psutil
import pytest
from pydantic import BaseModel, Field

from agents_tools import (
    Action,
    Agent,
    CodeLimits,
    Event,
    FunctionTool,
    Observation,
    RunConfig,
    Runner,
    ToolContext,
    ToolDefinition,
    ToolError,
    ToolExecutor,
    ToolOutputImage,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    UserError,
    WebSearchTool,
    code_mode,
    function_tool,
    listen,
    register_secret,
    streaming_tool,
    to_mcp,
)
from agents_tools.agents import RunHooks, RunState
from agents_tools.errors import BudgetExceeded
from agents_tools.events import NotifyStreamEvent, RunItemStreamEvent
from agents_tools.persistence import MemoryRunStore
from agents_tools.policies import exclusive, needs_approval, redact, timeout
from agents_tools.testing import ScriptedModel, check_events, tool_call
from agents_tools.toolset import Toolset, tool_search
from tests.waiting import comes

pytest.importorskip("pydantic_monty")

effects: list[str] = []


@pytest.fixture(autouse=True)
def _clear_effects() -> None:
    effects.clear()


class User(BaseModel):
    """A user."""

    id: int
    name: str
    tags: list[str] = []


@function_tool
async def get_user(
    user_id: Annotated[int, Field(ge=0, description="The id from list_users")],
) -> User:
    """Return a user."""
    return User(id=user_id, name=f"user {user_id}", tags=["a"])


@function_tool
def list_users(limit: int = 3) -> list[int]:
    """List the ids of the users."""
    return list(range(limit))


@needs_approval
@function_tool
def pay(amount: float, to: str) -> str:
    """Pay money."""
    effects.append(f"pay {amount:g} {to}")
    return f"paid {amount:g} to {to}"


@function_tool
def count(start: int) -> int:
    """Count."""
    effects.append(f"count {start}")
    return start + 1


def agent_of(tool: FunctionTool[..., Any], *programs: str, **options: Any) -> Agent[Any, Any]:
    """Return an agent whose model runs programs and then answers."""
    turns = [
        tool_call(tool.name, code=program, call_id=f"c_program{number}")
        for number, program in enumerate(programs)
    ]
    return Agent("Coder", tools=[tool], model=ScriptedModel([*turns, "Done."]), **options)


def output_of(result: Any) -> str:
    """Return the output of the last call."""
    outputs = [item for item in result.new_items if item.type == "tool_call_output_item"]
    return str(outputs[-1].output)


async def events_of(stream: Any) -> list[Event]:
    return [event async for event in stream.stream_events()]


# --- programs and their results


async def test_a_program_returns_the_value_of_its_last_line() -> None:
    """Intermediate results stay in the program."""
    code = code_mode(get_user, list_users)
    program = """
import asyncio
users = await asyncio.gather(*[get_user(number) for number in await list_users(limit=4)])
{user["name"]: user["tags"] for user in users if user["id"] > 1}
"""
    assert await code.invoke(code=program) == {"user 2": ["a"], "user 3": ["a"]}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print('one')\nprint('two', end='')", "one\ntwo"),
        ("print('one')\n{'two': 2}", 'one\n{"two":2}'),
        ("'a text'", "a text"),
        ("None", None),
        ("x = 1", None),
        ("(1, 2.5, True, {3: 'x'})", [1, 2.5, True, {"3": "x"}]),
        ("import datetime\ndatetime.date(2020, 1, 2)", "2020-01-02"),
        ("float('nan')", "nan"),
        ("[float('nan')]", [None]),
        ("```python\nprint('```')\n1 + 1\n```\n", "```\n2"),
        ("```\n```", None),
        ("b'abc'", "YWJj"),
        ("class A:\n    def __init__(self):\n        self.x = 1\nA()", {"x": 1}),
        ("list_users(1)\n5", "5\n[Not run, because the program did not await them: calls of list_users.]"),
    ],
)  # fmt: skip
async def test_results(program: str, expected: Any) -> None:
    """A value that is not JSON is converted; printed lines come before it."""
    assert await code_mode(list_users).invoke(code=program) == expected


async def test_calls_of_gather_run_at_the_same_time() -> None:
    """Two tools that wait for each other both end."""
    reached: dict[str, asyncio.Event] = {"a": asyncio.Event(), "b": asyncio.Event()}

    @function_tool
    async def meet(me: str, other: str) -> str:
        """Meet."""
        reached[me].set()
        await asyncio.wait_for(reached[other].wait(), 5)
        return me

    program = "import asyncio\nawait asyncio.gather(meet('a', 'b'), meet('b', 'a'))"
    assert await code_mode(meet).invoke(code=program) == ["a", "b"]
    for event in reached.values():
        event.clear()
    result = await Runner.run(agent_of(code_mode(meet), program), "Go.")
    assert output_of(result) == '["a","b"]'


async def test_each_task_of_a_program_continues_when_its_own_call_ends() -> None:
    """A slow call does not hold up the next call of another task."""
    last = asyncio.Event()

    @function_tool
    async def slow() -> str:
        """Wait for the last step of the other task."""
        await asyncio.wait_for(last.wait(), 5)
        return "slow"

    @function_tool
    async def step(number: int) -> int:
        """Take a step."""
        if number == 3:
            last.set()
        return number

    program = """
import asyncio
async def steps():
    return [await step(number) for number in range(4)]
await asyncio.gather(slow(), steps())
"""
    result = await Runner.run(agent_of(code_mode(slow, step), program), "Go.")
    assert output_of(result) == '["slow",[0,1,2,3]]'


@function_tool
def fail(kind: str) -> str:
    """Fail."""
    if kind == "tool":
        raise ToolError("No such owl.")
    raise KeyError(kind)


@timeout(0.01)
@function_tool
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


@function_tool(failure_error_function=None)
def raising() -> str:
    """Raise."""
    raise ValueError("raised")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("get_user('x')", "ValueError: Invalid arguments for tool 'get_user':\n- user_id: expected"),
        ("get_user()", "ValueError: Invalid arguments for tool 'get_user':\n- user_id: missing"),
        ("fail('tool')", "RuntimeError: No such owl."),
        ("fail('other')", "RuntimeError: "),
        ("raising()", "RuntimeError: "),
        ("hang()", "TimeoutError: "),
        ("pay(1, 'Ada')", "PermissionError: Tool 'pay' needs the approval of a person"),
        ("get_user(1, 2)", "TypeError: get_user() takes 1 arguments, got 2 positional ones"),
        ("get_user(1, user_id=2)", "TypeError: get_user() got two values for argument 'user_id'"),
        ("get_usr(1)", "NameError: name 'get_usr' is not defined. Did you mean get_user?"),
    ],
)  # fmt: skip
async def test_an_error_of_a_call_is_an_exception(call: str, error: str) -> None:
    """The program can catch it, and its message is the one that the model would get."""
    code = code_mode(get_user, fail, hang, raising, pay)
    program = f"""
try:
    await {call}
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""
    printed = await code.invoke(code=program)
    assert printed.startswith(error)
    if not call.startswith("pay"):  # in a run, this one waits
        result = await Runner.run(agent_of(code, program), "Go.")
        assert output_of(result).startswith(error)


async def test_an_uncaught_error_is_a_short_traceback() -> None:
    """It names the line, after what was printed."""
    program = "print('before')\ndef f(n):\n    return 1 / n\nf(0)"
    outcome = await code_mode(get_user).call(None, json.dumps({"code": program}))
    assert outcome.status == "tool_error"
    assert outcome.output == (
        "before\n"
        "Traceback (most recent call last):\n"
        '  File "program", line 4, in <module>\n'
        "    f(0)\n"
        "    ~~~~\n"
        '  File "program", line 3, in f\n'
        "    return 1 / n\n"
        "           ~~~~~\n"
        "ZeroDivisionError: division by zero"
    )


async def test_the_error_of_a_program_follows_a_long_output() -> None:
    """It was cut off, so that a model took the output for that of a whole program."""
    program = "for number in range(1_000):\n    print('row', number)\n1 / 0"
    code = code_mode(get_user)
    outcome = await code.call(None, json.dumps({"code": program}))
    result = await Runner.run(agent_of(code, program), "Go.")
    for output in (str(outcome.output), output_of(result)):
        assert "row 0\nrow 1\n" in output
        assert "row 999\nTraceback (most recent call last):\n" in output
        assert output.endswith("ZeroDivisionError: division by zero")


async def test_a_function_with_the_name_of_a_module_can_be_called() -> None:
    """An import in the program would replace it."""

    @function_tool
    def json() -> str:
        """Return JSON."""
        return "[1]"

    assert await code_mode(json).invoke(code="import json\njson.loads(await json_())") == [1]


async def test_a_forgotten_await_is_explained() -> None:
    """Models often write the call of a function without it."""
    outcome = await code_mode(get_user).call(None, json.dumps({"code": "get_user(1)['name']"}))
    assert str(outcome.output).endswith(
        "The call of a tool returns its result only when it is awaited: await f(...)."
    )


async def test_a_call_that_was_started_and_not_awaited_ends_before_the_program() -> None:
    """The program does not leave a call behind whose end nobody knows."""
    program = "a = count(1)\nawait list_users()"
    for run in (False, True):
        effects.clear()
        code = code_mode(count, list_users)
        if run:
            await Runner.run(agent_of(code, program), "Go.")
        else:
            await code.invoke(code=program)
        assert effects == ["count 1"]


async def test_images_and_texts_are_what_a_program_can_use() -> None:
    """A text that looks like JSON stays a text."""

    @function_tool
    def picture() -> list[Any]:
        """Return a picture."""
        return ["a picture", ToolOutputImage(data=b"hi", mime_type="image/png")]

    @function_tool
    def digits() -> str:
        """Return digits."""
        return "12"

    @function_tool
    def nothing() -> None:
        """Return nothing."""

    @function_tool
    def empty() -> str:
        """Return an empty text."""
        return ""

    program = "[await picture(), await digits(), await nothing(), await empty()]"
    code = code_mode(picture, digits, nothing, empty)
    expected = ["a picture\n[image]", "12", None, ""]
    assert await code.invoke(code=program) == expected
    assert json.loads(output_of(await Runner.run(agent_of(code, program), "Go."))) == expected


async def test_bytes_are_passed_from_tool_to_tool() -> None:
    """A result and an argument have the same form."""

    @function_tool
    def load() -> bytes:
        """Load bytes."""
        return b"\xffabc"

    @function_tool
    def size(data: bytes) -> int:
        """Count bytes."""
        return len(data)

    assert await code_mode(load, size).invoke(code="await size(await load())") == 4


async def test_secrets_and_policies_of_outputs_apply_to_programs() -> None:
    """A program could disguise a secret before it returns it."""
    register_secret("hunter2-hunter2")

    @function_tool
    def read() -> dict[str, str]:
        """Read."""
        return {"key": "hunter2-hunter2", "mail": "ada@example.org"}

    code = code_mode(read)
    assert await code.invoke(code="'-'.join((await read())['key'])") == "*-*-*"

    hidden = redact(r"ada@\S+?org")(read)
    text = await code_mode(hidden).invoke(code="(await read())['mail'][::-1]")
    assert "adA" not in text
    assert "gro.elpmaxe" not in text


# --- calls of a run


async def test_events_show_what_a_program_does() -> None:
    """Each inner call has its bracket below that of the program, and its own events."""

    @streaming_tool
    async def work(name: str) -> AsyncIterator[Any]:
        """Work."""
        yield NotifyStreamEvent(f"working on {name}")
        yield f"{name} is done"

    program = "print('start')\nawait work('a')"
    stream = Runner.run_streamed(agent_of(code_mode(work), program), "Go.")
    events = await events_of(stream)
    check_events(events)
    inner = ("c_program0", "c_program0.1")
    shown = [
        (event.type, event.path) for event in events if event.path and "item" not in event.type
    ]
    assert shown == [
        ("tool_stream_start_event", inner[:1]),
        ("notify_stream_event", inner[:1]),
        ("tool_stream_start_event", inner),
        ("notify_stream_event", inner),
        ("tool_stream_end_event", inner),
        ("tool_stream_end_event", inner[:1]),
    ]
    items = [event for event in events if isinstance(event, RunItemStreamEvent) and event.path]
    assert [event.name for event in items] == ["tool_called", "tool_output"]
    history = stream.to_input_list()
    assert "work" not in {item.get("name") for item in history}


async def test_without_a_run_events_have_paths_too() -> None:
    """Listeners see the inner calls."""
    async with listen() as events:
        await code_mode(count).invoke(code="await count(1)")
    starts = [event for event in events if isinstance(event, ToolStreamStartEvent)]
    assert [event.tool_name for event in starts] == ["run_code", "count"]
    assert starts[1].path[0] == starts[0].tool_call_id


async def test_hooks_budgets_and_time_limits_apply_to_inner_calls() -> None:
    """They are ordinary calls of the run."""
    seen: list[str] = []

    class Hooks(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            seen.append(tool.name)

        async def on_llm_start(
            self, context: Any, agent: Any, system_prompt: Any, input_items: Any
        ) -> None:
            seen.append("model")

    code = code_mode(count, hang_without_limit)
    program = """
try:
    await hang_without_limit()
except TimeoutError:
    print("late")
for number in range(3):
    await count(number)
"""
    config = RunConfig(tool_timeout=0.05)
    result = await Runner.run(agent_of(code, program), "Go.", hooks=Hooks(), run_config=config)
    assert output_of(result) == "late"
    assert seen == ["model", "run_code", "hang_without_limit", *["count"] * 3, "model"]
    assert result.usage.tool_calls == 5

    effects.clear()
    agent = agent_of(code, "for number in range(9):\n    await count(number)")
    with pytest.raises(BudgetExceeded):
        await Runner.run(agent, "Go.", run_config=RunConfig(max_tool_calls=4))
    assert effects == ["count 0", "count 1", "count 2"]


@function_tool
async def hang_without_limit() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


async def test_an_exclusive_tool_runs_alone_in_a_program() -> None:
    """It waits for earlier calls, and later ones wait for it."""
    running: list[str] = []
    overlaps: list[list[str]] = []

    async def work(name: str) -> str:
        running.append(name)
        overlaps.append([*running])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.remove(name)
        return name

    @function_tool
    async def shared(name: str) -> str:
        """Work."""
        return await work(name)

    @exclusive()
    @function_tool
    async def alone(name: str) -> str:
        """Work alone."""
        return await work(name)

    program = """
import asyncio
await asyncio.gather(shared('a'), shared('b'), alone('c'), shared('d'), shared('e'))
"""
    await Runner.run(agent_of(code_mode(shared, alone), program), "Go.")
    assert ["c"] in overlaps
    assert all("c" not in names for names in overlaps if len(names) > 1)
    assert max(map(len, overlaps)) == 2


async def test_a_program_shares_the_state_of_tools_with_the_run() -> None:
    """A shell that a program has used is the one that the model uses afterwards."""

    @function_tool
    def remember(context: ToolContext[Any], word: str) -> list[str]:
        """Remember a word."""
        from agents_tools.tool.context import call_of

        state = call_of(context).find_tool_state()
        assert state is not None
        words = state.get("words", list[str], lambda _: None)
        words.append(word)
        return [*words]

    code = code_mode(remember)
    agent = Agent(
        "Coder",
        tools=[code, remember],
        model=ScriptedModel(
            [
                tool_call("remember", word="a"),
                tool_call("run_code", code="await remember('b')"),
                tool_call("remember", word="c"),
                "Done.",
            ]
        ),
    )
    result = await Runner.run(agent, "Go.")
    assert output_of(result) == '["a","b","c"]'


async def test_an_agent_runs_inside_a_program() -> None:
    """Its usage counts for the run, and its call has the path of the program."""
    helper = Agent("Helper", model=ScriptedModel(["Helped."]))
    code = code_mode(helper.as_tool(tool_name="helper", streaming=True))
    result = await Runner.run(agent_of(code, "await helper('x')"), "Go.")
    assert output_of(result) == "Helped."


async def test_a_cancelled_call_of_a_program_is_an_exception_in_it() -> None:
    """The program and the run continue."""
    started = asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return ""

    program = "try:\n    await wait()\nexcept RuntimeError as error:\n    print(error)"
    stream = Runner.run_streamed(agent_of(code_mode(wait), program), "Go.")
    reading = asyncio.ensure_future(events_of(stream))
    await asyncio.wait_for(started.wait(), 5)
    assert stream.cancel("c_program0.1")
    await asyncio.wait_for(reading, 5)
    assert "The user cancelled this call" in output_of(stream)


@pytest.mark.parametrize("program", ["while True:\n    pass", "await hang_without_limit()"])
async def test_cancelling_a_run_ends_its_program(program: str) -> None:
    """The process of the sandbox ends with it, and so do the calls."""
    before = _sandboxes()
    stream = Runner.run_streamed(agent_of(code_mode(hang_without_limit), program), "Go.")
    reading = asyncio.ensure_future(events_of(stream))
    await comes(lambda: _sandboxes() - before)
    stream.cancel()
    events = await asyncio.wait_for(reading, 5)
    ends = [event for event in events if isinstance(event, ToolStreamEndEvent)]
    assert {event.status for event in ends} == {"cancelled"}
    await comes(lambda: not (_sandboxes() - before))


def _sandboxes() -> set[int]:
    found: set[int] = set()
    for process in psutil.Process(os.getpid()).children(recursive=True):
        try:
            if process.name() == "monty" and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


# --- approvals


PAYING = """
first = await count(1)
print(f"counted {first}")
try:
    text = await pay(first, to="Ada")
except PermissionError as error:
    text = str(error)
[text, await count(10)]
"""


@pytest.mark.parametrize("decision", ["approve", "edit", "reject"])
async def test_a_program_waits_for_a_person(decision: str) -> None:
    """Its state is JSON; finished calls do not run again in another process."""
    code = code_mode(count, pay)
    result = await Runner.run(agent_of(code, PAYING), "Go.")
    (item,) = result.interruptions
    assert (item.name, json.loads(item.arguments), item.path) == (
        "pay",
        {"amount": 2, "to": "Ada"},
        ("c_program0",),
    )
    state = RunState.from_json(result.to_state().to_json())
    if decision == "approve":
        state.approve(state.interruptions[0])
    elif decision == "edit":
        state.approve(state.interruptions[0], {"amount": 5, "to": "Bo"})
    else:
        state.reject(state.interruptions[0], "Too much.")
    resumed = Agent("Coder", tools=[code], model=ScriptedModel(["Done."]))
    result = await Runner.run(resumed, state)
    text = {"approve": "paid 2 to Ada", "edit": "paid 5 to Bo", "reject": "Too much."}[decision]
    assert output_of(result) == f"counted 2\n{json.dumps([text, 11], separators=(',', ':'))}"
    paid = {"approve": ["pay 2 Ada"], "edit": ["pay 5 Bo"], "reject": []}[decision]
    assert effects == ["count 1", *paid, "count 10"]
    assert result.usage.tool_calls == 4


async def test_a_program_waits_for_several_people_while_other_calls_run() -> None:
    """The run is interrupted when nothing else can continue; decided calls run at once."""
    program = """
import asyncio
await asyncio.gather(pay(1, "Ada"), count(1), pay(2, "Bo"))
"""
    code = code_mode(count, pay)
    result = await Runner.run(agent_of(code, program), "Go.")
    assert effects == ["count 1"]
    assert len(result.interruptions) == 2
    state = result.to_state()
    state.approve(result.interruptions[1])
    result = await Runner.run(agent_of(code), state)
    assert effects == ["count 1", "pay 2 Bo"]
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await Runner.run(agent_of(code), state)
    assert effects == ["count 1", "pay 2 Bo", "pay 1 Ada"]
    assert output_of(result) == '["paid 1 to Ada",2,"paid 2 to Bo"]'


async def test_an_approval_in_a_program_can_be_decided_at_once() -> None:
    """`RunConfig(approve=...)` decides, also without an interruption."""
    asked: list[str] = []

    async def approve(item: Any) -> bool:
        asked.append(item.name)
        return True

    config = RunConfig(approve=approve)
    result = await Runner.run(agent_of(code_mode(count, pay), PAYING), "Go.", run_config=config)
    assert asked == ["pay"]
    assert effects == ["count 1", "pay 2 Ada", "count 10"]
    assert result.final_output == "Done."


async def test_an_approval_of_a_stored_run_is_decided_by_another_process() -> None:
    """The program is repeated from the log of the run."""
    store = MemoryRunStore()
    code = code_mode(count, pay)
    config = RunConfig(store=store)
    await Runner.run(agent_of(code, PAYING), "Go.", run_id="r", run_config=config)
    (item,) = await store.approvals("r")
    await store.decide("r", item.call_id, True, path=item.path)
    result = await Runner.resume(agent_of(code), "r", store=store)
    assert output_of(result) == 'counted 2\n["paid 2 to Ada",11]'
    assert effects == ["count 1", "pay 2 Ada", "count 10"]
    assert [one.tool_name for one in await store.log("r").read() if _is_start(one)] == [
        *("run_code", "count", "run_code", "pay", "count")
    ]


def _is_start(event: Any) -> bool:
    return isinstance(event, ToolStreamStartEvent)


async def test_a_stored_program_waits_several_times() -> None:
    """Each decision continues it from the log, in the process that stored it or in another one."""
    store = MemoryRunStore()
    code = code_mode(count, pay)
    program = "a = await pay(await count(1), 'Ada')\nb = await pay(await count(2), 'Bo')\n[a, b]"
    config = RunConfig(store=store)
    result = await Runner.run(agent_of(code, program), "Go.", run_id="r", run_config=config)
    for _ in range(2):
        (item,) = await store.approvals("r")
        await store.decide("r", item.call_id, True, path=item.path)
        result = await Runner.resume(agent_of(code), "r", store=store)
    assert output_of(result) == '["paid 2 to Ada","paid 3 to Bo"]'
    assert effects == ["count 1", "pay 2 Ada", "count 2", "pay 3 Bo"]
    assert result.usage.tool_calls == 5


async def test_a_program_that_changes_is_not_continued() -> None:
    """A recorded result must not become that of another call."""
    code = code_mode(count, pay)
    result = await Runner.run(agent_of(code, PAYING), "Go.")
    data = result.to_state().to_dict()
    (inner,) = data["nested"].values()
    for item in inner["history"]:
        if item.get("name") == "count" and "arguments" in item:
            item["arguments"] = '{"start":7}'
    state = RunState.from_dict(data)
    state.approve(state.interruptions[0])
    result = await Runner.run(agent_of(code), state)
    assert "The program cannot be continued: call 1 was count" in output_of(result)
    assert effects == ["count 1"]


async def test_a_program_inside_another_tool_cannot_wait_for_a_person() -> None:
    """Python code that runs around it cannot be interrupted."""
    code = code_mode(count, pay)

    @function_tool
    async def outer() -> str:
        """Run the program."""
        outcome = await code.call(None, json.dumps({"code": PAYING}))
        return str(outcome.output)

    model = ScriptedModel([tool_call("outer"), "Done."])
    result = await Runner.run(Agent("Outer", tools=[outer], model=model), "Go.")
    assert "The program waits for the approval of 'pay'" in output_of(result)


async def test_the_clock_and_random_numbers_do_not_change_when_a_program_continues() -> None:
    """Otherwise it could make other calls than before."""
    program = """
import random, time, datetime
now = (datetime.datetime.now().isoformat(), time.time(), random.random())
await pay(1, str(now))
now == (datetime.datetime.now().isoformat(), time.time(), now[2])
"""
    code = code_mode(pay)
    result = await Runner.run(agent_of(code, program), "Go.")
    state = RunState.from_json(result.to_state().to_json())
    state.approve(state.interruptions[0])
    await asyncio.sleep(0.002)
    result = await Runner.run(agent_of(code), state)
    assert output_of(result) == "true"
    assert len(effects) == 1


# --- tools of all kinds


class Query(Action):
    """A query."""

    text: str


class Found(Observation):
    """What was found."""

    rows: list[int] = Field(default_factory=list[int])


class Finder(ToolExecutor[Query, Found]):
    """Finds rows."""

    def __call__(self, action: Query, conversation: Any = None) -> Found:
        """Find."""
        return Found.from_text(f"{len(action.text)} rows", rows=[*range(len(action.text))])


class FindTool(ToolDefinition[Query, Found]):
    """Finds rows."""

    @classmethod
    def create(cls, conv_state: Any = None, **params: Any) -> Sequence[FindTool]:
        """Create the tool."""
        return [
            cls(
                description="Find rows.",
                action_type=Query,
                observation_type=Found,
                executor=Finder(),
            )
        ]


async def test_class_based_tools_return_their_observation() -> None:
    """The fields are values of the program."""
    code = code_mode(*FindTool.create())
    name = FindTool.create()[0].name
    program = f"found = await {name}(text='abc')\nsum(found['rows'])"
    assert await code.invoke(code=program) == 3
    assert output_of(await Runner.run(agent_of(code, program), "Go.")) == "3"


@pytest.mark.slow
async def test_tools_of_mcp_servers() -> None:
    """Their structured results are values, and their errors exceptions."""
    pytest.importorskip("mcp")
    mcp = pytest.importorskip("agents_tools.mcp")
    script = """
from agents_tools import function_tool
from agents_tools.mcp import serve

@function_tool
def rows(limit: int) -> dict[str, list[int]]:
    "Return rows."
    return {"rows": list(range(limit))}

@function_tool
def broken() -> str:
    "Fail."
    raise ValueError("no")

serve([rows, broken])
"""
    async with mcp.MCPToolManager() as manager:
        await manager.add_server("db", "stdio", command=sys.executable, args=["-c", script])
        program = """
rows = (await db_rows(limit=4))["rows"]
try:
    await db_broken()
except RuntimeError:
    rows.append("failed")
rows
"""
        expected = [0, 1, 2, 3, "failed"]
        static = code_mode(manager.get_tools())
        assert "db_rows(limit: int)" in static.description
        assert await static.invoke(code=program) == expected
        dynamic = code_mode(manager)
        assert "db_rows" not in dynamic.description
        found = await dynamic.invoke(code="await search_tools('rows of the database')")
        assert "db_rows(limit: int)" in found
        assert await dynamic.invoke(code=program) == expected
        result = await Runner.run(agent_of(dynamic, program), "Go.")
        assert json.loads(output_of(result)) == expected


async def test_tools_of_another_framework() -> None:
    """A foreign tool is a function, and code mode is a tool of the other framework."""
    langchain = pytest.importorskip("langchain_core.tools")
    from agents_tools.export.langchain import from_langchain, to_langchain

    @langchain.tool
    def shout(text: str) -> str:
        """Shout a text."""
        return text.upper()

    code = code_mode(from_langchain(shout), get_user)
    program = "await shout(text=(await get_user(1))['name'])"
    assert await code.invoke(code=program) == "USER 1"
    assert await to_langchain(code).ainvoke({"code": program}) == "USER 1"


async def test_code_mode_is_served_over_mcp() -> None:
    """Its description has the functions."""
    assert "get_user(user_id: int)" in to_mcp(code_mode(get_user))["description"]


# --- the description


def test_the_description_has_compact_signatures() -> None:
    """They have what a model needs to write a program."""

    class Order(BaseModel):
        id: int
        lines: list[dict[str, float]]
        note: str | None = None

    @function_tool
    def find_orders(
        customer: str, state: Annotated[str, Field(pattern="x")] = "open", limit: int | None = None
    ) -> list[Order]:
        """Find orders.

        Args:
            customer: The name of the customer.
            state: The state.
        """
        raise NotImplementedError

    description = code_mode(find_orders).description
    assert description.partition("Functions:\n")[2] == (
        "find_orders(customer: str, state: str = 'open', limit: int | None = None) -> "
        "list[{id: int, lines: list[dict[str, float]], note?: str | None}]\n"
        "  Find orders.\n"
        "  customer: The name of the customer.\n"
        "  state: The state."
    )


def test_sentences_that_descriptions_begin_with_stand_once() -> None:
    """Servers often describe themselves in each of their tools."""
    server = "This tool is part of the file system. It works in one folder."

    @function_tool(description_override=f"{server} Remove a file.")
    def remove(name: str) -> None:
        raise NotImplementedError

    @function_tool(description_override=f"{server} Rename a file. It must exist.")
    def rename(name: str, to: str) -> None:
        raise NotImplementedError

    @function_tool(description_override="This tool is alone. It sleeps.")
    def sleep() -> None:
        raise NotImplementedError

    description = code_mode(remove, sleep, rename).description
    assert description.partition("Functions:\n")[2] == (
        "sleep()\n"
        "  This tool is alone. It sleeps.\n"
        "\n"
        "# This tool is part of the file system. It works in one folder.\n"
        "remove(name: str)\n"
        "  Remove a file.\n"
        "rename(name: str, to: str)\n"
        "  Rename a file. It must exist."
    )


async def test_many_tools_are_searched_from_the_program() -> None:
    """The description keeps to its budget: signatures, names, or only the search."""

    def tool_of(number: int) -> FunctionTool[..., Any]:
        words = f"Do thing {number} of the many that a tool can do, in several words."

        @function_tool(name_override=f"tool_{number}", description_override=words)
        def tool(first: int, second: str = "") -> str:
            return f"{number} {first}"

        return tool

    tools = [*map(tool_of, range(200)), get_user]
    assert "in several words" in code_mode(*tools, max_tokens=20_000).description
    short = code_mode(*tools, max_tokens=5_000).description
    assert "in several words" not in short
    assert "tool_7(first: int, second: str = '') -> str" in short
    names = code_mode(*tools, max_tokens=1_500).description
    assert "tool_7, tool_8" in names
    none = code_mode(*tools, max_tokens=100)
    assert "There are 201 functions." in none.description
    found = await none.invoke(code="await search_tools('user')")
    assert found.startswith("get_user(user_id: int) -> {id: int, name: str, tags?: list[str]}")
    found = await none.invoke(code="await search_tools('tool_8, tool_150')")
    assert [line.partition("(")[0] for line in found.splitlines()[::2]] == ["tool_8", "tool_150"]
    assert await none.invoke(code="await tool_150(5)") == "150 5"
    assert await none.invoke(code="await search_tools('zebra')") == (
        "None of the 201 functions fits 'zebra'."
    )


async def test_names_that_python_has_a_meaning_for_are_changed() -> None:
    """The description shows the name of the function."""

    def tool_of(name: str) -> FunctionTool[..., Any]:
        @function_tool(name_override=name)
        def tool() -> str:
            """Return the name."""
            return name

        return tool

    names = ["list", "get-user", "get_user", "import", "9lives", "search_tools"]
    code = code_mode(*map(tool_of, names))
    program = (
        "[await list_(), await get_user_(), await get_user(), await import_(), await _9lives(),"
        " await search_tools()]"
    )
    assert await code.invoke(code=program) == [
        "list",
        "get-user",
        "get_user",
        "import",
        "9lives",
        "search_tools",
    ]
    assert "search_tools_" not in code.description  # nothing to search for
    result = await Runner.run(agent_of(code, program), "Go.")
    assert json.loads(output_of(result)) == await code.invoke(code=program)


async def test_a_disabled_tool_is_not_called() -> None:
    """It is checked when the program runs."""

    @function_tool(is_enabled=False)
    def never() -> str:
        """Do nothing."""
        effects.append("never")
        return ""

    @function_tool(is_enabled=lambda *_: False)
    def off() -> str:
        """Do nothing."""
        effects.append("off")
        return ""

    code = code_mode(never, off, count)
    assert "never" not in code.description
    outcome = await code.call(None, json.dumps({"code": "await never()"}))
    assert "NameError: name 'never' is not defined." in str(outcome.output)
    result = await Runner.run(agent_of(code, "await off()"), "Go.")
    assert "ValueError: There is no tool 'off'." in output_of(result)
    assert effects == []


async def test_tools_behind_a_search_are_functions() -> None:
    """The program needs no other search."""
    code = code_mode(tool_search(Toolset(get_user, count)), list_users)
    assert "get_user(user_id: int)" in code.description
    assert await code.invoke(code="(await get_user(2))['name'], await count(1)") == ["user 2", 2]


@pytest.mark.parametrize("program", ["while True:\n    pass", "await hang_without_limit()"])
async def test_a_time_limit_of_the_tool_ends_the_program(program: str) -> None:
    """It also counts the time that the program waits."""
    code = timeout(0.3)(code_mode(hang_without_limit))
    outcome = await code.call(None, json.dumps({"code": program}))
    assert outcome.status == "timeout"
    result = await Runner.run(agent_of(code, program), "Go.")
    assert "0.3" in output_of(result)


@pytest.mark.parametrize("name", ["ag_ui", "vercel"])
async def test_user_interfaces_show_the_calls_of_a_program(name: str) -> None:
    """Their streams keep the rules of their protocols."""
    module = pytest.importorskip(f"agents_tools.ui.{name}")
    program = "import asyncio\nprint('start')\nawait asyncio.gather(count(1), get_user(2))"
    stream = Runner.run_streamed(agent_of(code_mode(count, get_user), program), "Go.")
    text = "".join(module.encode(await events_of(stream)))
    assert "c_program0.1" in text
    assert "c_program0.2" in text


def test_wrong_arguments_are_refused() -> None:
    """The error names the argument."""
    with pytest.raises(UserError, match="max_tokens"):
        code_mode(get_user, max_tokens=0)
    with pytest.raises(UserError, match="limits"):
        code_mode(get_user, limits=5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"CodeLimits\(calls=...\)"):
        CodeLimits(calls=0)
    with pytest.raises(UserError, match="cannot offer 'web_search'"):
        code_mode(get_user, WebSearchTool())
    with pytest.raises(UserError, match="two tools"):
        code_mode(get_user, Toolset(get_user.with_(description="Another one.")))


def test_without_the_extra_the_remedy_is_named() -> None:
    """The package can be installed without the sandbox."""
    program = """
import sys
sys.modules["pydantic_monty"] = None
import agents_tools
from agents_tools.errors import MissingExtraError
try:
    agents_tools.code_mode()
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    assert "pip install -U 'agents-tools[code]'" in done.stdout


def test_the_sandbox_is_loaded_by_the_first_program() -> None:
    """Declaring the tool is fast."""
    program = """
import sys
from agents_tools import code_mode, function_tool
code_mode(function_tool(lambda x: x, name_override="f", description_override="F"))
print("pydantic_monty" in sys.modules)
"""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    assert done.stdout == "False\n"
