"""What only smolagents has, with our tools in it and its tools here."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import pytest
from PIL import Image
from pydantic import BaseModel
from smolagents import CodeAgent, LogLevel, Tool as ForeignTool, tool as foreign_tool
from smolagents.agent_types import AgentImage
from smolagents.memory import ActionStep
from smolagents.models import get_tool_json_schema

from agents_tools import (
    Agent,
    FunctionTool,
    RunContextWrapper,
    Runner,
    ToolContext,
    ToolOutputImage,
    Usage,
    function_tool,
    listen,
)
from agents_tools.export.smolagents import as_tool, from_smolagents, to_smolagents
from agents_tools.policies import needs_approval, rename
from agents_tools.testing import ScriptedModel as Ours, call_tool, check_events, tool_call
from tests.frameworks import functions
from tests.frameworks.harness.elsewhere._hostile import (
    check_raised,
    check_refused,
    check_returned,
    outcome_of,
)
from tests.frameworks.harness.smolagents import HARNESS, ScriptedModel, make_agent, make_code_agent
from tests.frameworks.suite import Call
from tests.frameworks.tools import TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def written(tool: FunctionTool[..., Any]) -> dict[str, Any]:
    """Return the arguments as the model of a `ToolCallingAgent` receives them."""
    return get_tool_json_schema(to_smolagents(tool))["function"]["parameters"]


def test_arguments_keep_their_schema() -> None:
    """Nested types, choices and bounds reach the model, though there are no references."""
    properties = written(TOOLS["book"])["properties"]
    guest = properties["stay"]["properties"]["guest"]
    assert guest["properties"]["born"]["format"] == "date"
    assert guest["required"] == ["name", "born"]
    assert properties["stay"]["properties"]["room"]["enum"] == ["single", "double"]
    assert properties["stay"]["properties"]["nights"]["maximum"] == 30
    assert properties["board"]["enum"] == ["none", "breakfast"]
    assert properties["discount"]["maximum"] == 0.5
    assert "$ref" not in json.dumps(properties)
    assert written(TOOLS["book"])["required"] == ["stay", "arrival"]


class Shade(Enum):
    DARK = "dark"
    LIGHT = "light"


class Tree(BaseModel):
    """A tree."""

    name: str
    children: list[Tree] = []


async def test_arguments_of_any_type() -> None:
    """Unions, nulls, anything at all and types within themselves."""

    @function_tool
    def take(
        tree: Tree,
        shade: Shade,
        maybe: int | None,
        either: int | str,
        several: list[int] | dict[str, int] | None = None,
        anything: Any = 3,
        number: float | str = 1,
        only: Literal["a"] = "a",
    ) -> dict[str, Any]:
        return {"maybe": maybe, "either": either, "several": several, "anything": anything}

    theirs = to_smolagents(take)
    inputs = theirs.inputs
    assert inputs["tree"]["properties"]["children"]["items"]["type"] == "object"
    assert (inputs["shade"]["type"], inputs["shade"]["enum"]) == ("string", ["dark", "light"])
    assert (inputs["maybe"]["type"], inputs["maybe"]["nullable"]) == ("integer", True)
    assert inputs["either"]["type"] == ["integer", "string"]
    assert inputs["several"]["type"] == ["array", "object"]
    assert inputs["several"]["allOf"][0]["anyOf"][0]["items"] == {"type": "integer"}
    assert set(inputs["anything"]["type"]) >= {"string", "object", "array", "number", "boolean"}
    assert set(inputs["number"]["type"]) == {"number", "string", "integer"}
    assert inputs["only"]["type"] == "string"
    get_tool_json_schema(theirs)  # it changes copies of them
    tree = {"name": "oak", "children": [{"name": "twig"}]}
    given = {"tree": tree, "shade": "dark", "either": "x", "anything": None, "number": None}
    report = await HARNESS.run([theirs], [Call("c1", "take", json.dumps(given))])
    expected = '{"maybe":null,"either":"x","several":null,"anything":null}'
    assert report.answers["c1"].text == expected


async def test_a_failure_leaves_the_other_answers() -> None:
    """An exception in one of several calls would take the answers of all others with it."""
    calls = [
        Call("c1", "fail", '{"reason": "rain"}'),
        Call("c2", "greet", '{"name": "Ada"}'),
    ]
    report = await HARNESS.run(to_smolagents([TOOLS["fail"], TOOLS["greet"]]), calls)
    assert report.answers["c1"].text == "Tool 'fail' failed: ValueError: it failed because of rain"
    assert report.answers["c2"].text == "Hello Ada!"
    assert report.final == "done"


def run_code(code: str, *tools: Any, **options: Any) -> tuple[str, str]:
    """Run code in a `CodeAgent`; give what it printed, and what went wrong."""
    model = ScriptedModel(f"<code>\n{code}\n</code>", "<code>\nfinal_answer('done')\n</code>")
    agent = CodeAgent(
        tools=list(tools), model=model, verbosity_level=LogLevel.OFF, executor_kwargs=options
    )
    steps = [step for step in agent.run("Go.", stream=True) if isinstance(step, ActionStep)]
    return steps[0].observations or "", "" if steps[0].error is None else steps[0].error.message


def test_code_gets_values() -> None:
    """What a tool returned is data there, given by position or by name."""
    code = """
sums = totals([1, 2], {"a": 1.5, "b": 1})
print(sums["price"] * 2, sums["names"])
print(greet("Ada", None, 2))
print(tally(1, [2, 3], unit="cups"), pack(boxes=2))
"""
    printed, wrong = run_code(code, *to_smolagents(TOOLS.values()))
    assert not wrong
    assert "5.0 ['a', 'b']" in printed
    assert "Hello Ada! Hello Ada!" in printed
    assert "6 cups 2 boxes packed" in printed


def test_code_gets_exceptions() -> None:
    """A failure stops the code, which would go on with an error text as its data; it may catch it."""
    code = """
try:
    fail("rain")
except Exception as error:
    print("caught:", error)
greet(3, times="many")
print("never")
"""
    printed, wrong = run_code(code, *to_smolagents([TOOLS["fail"], TOOLS["greet"]]))
    assert "caught: Tool 'fail' failed: ValueError: it failed because of rain" in printed
    assert "never" not in printed
    assert "Invalid arguments for tool 'greet'" in wrong
    assert "times" in wrong


def test_code_is_told_what_types_do_not_say() -> None:
    """The prompt of a `CodeAgent` has one line for each argument; the schema stands there."""
    prompt = to_smolagents(TOOLS["book"]).to_code_prompt()
    assert '"maximum": 30' in prompt
    assert "Which meals. Optional." in prompt
    agent = make_code_agent(ScriptedModel(), to_smolagents([TOOLS["book"]]))
    assert '"enum": ["none", "breakfast"]' in agent.system_prompt


def test_listeners_hear_code() -> None:
    """With a time limit smolagents runs code in a thread that knows nothing of who listens here."""
    for everything, options in ((True, {}), (False, {"timeout_seconds": None})):
        with listen(all=everything) as heard:
            run_code("crunch(2)", to_smolagents(TOOLS["crunch"]), **options)
        assert [event.type for event in heard].count("tool_progress_event") == 2


async def test_images_are_images() -> None:
    """One image is an image for the agent; of several things an agent that calls gets the text."""

    @function_tool
    def draw(broken: bool = False) -> ToolOutputImage:
        return ToolOutputImage(data=b"\x89PNG\r\n\x1a\n" if broken else functions.PIXEL)

    theirs = to_smolagents(draw)
    assert isinstance(theirs(), Image.Image)
    assert isinstance(theirs(sanitize_inputs_outputs=True), AgentImage)
    assert theirs(broken=True) == "[image: image/png, 8 bytes]"
    chart = to_smolagents(TOOLS["chart"])
    assert str(chart(title="a", sanitize_inputs_outputs=True)).startswith("chart a\n[image:")
    text, image = chart(title="a")
    assert text == "chart a"
    assert image.size == (1, 1)
    report = await HARNESS.run([theirs], [Call("c1", "draw", "{}")])
    assert report.answers["c1"].blocks == ("image",)


async def test_cancelling_ends_the_call() -> None:
    """The agent is sync: its tools are told to stop."""
    functions.bodies.clear()
    functions.finished.clear()
    theirs = to_smolagents(TOOLS["wait"])
    call = asyncio.create_task(asyncio.to_thread(theirs, note="x", sanitize_inputs_outputs=True))
    while "wait" not in functions.bodies:  # noqa: ASYNC110 - it begins in another thread
        await asyncio.sleep(0)
    theirs.cancel()
    try:
        text = str(await call)
    except BaseException as error:  # noqa: BLE001 - either will do
        text = type(error).__name__
    assert functions.finished == ["wait"]
    assert "ancel" in text
    theirs.cancel()  # nothing is going on


async def test_the_applications_object() -> None:
    """The framework has none of its own."""

    @function_tool
    def whose(ctx: ToolContext[str]) -> str:
        return ctx.context

    assert to_smolagents(whose, context="mine")() == "mine"


async def test_a_call_that_needs_a_person_is_not_run() -> None:
    """Nobody can be asked there."""
    functions.bodies.clear()
    tool = needs_approval(TOOLS["greet"])
    report = await HARNESS.run([to_smolagents(tool)], [Call("c1", "greet", '{"name": "Ada"}')])
    assert "needs the approval of a person" in report.answers["c1"].text
    assert functions.bodies == []


def test_what_cannot_work_is_refused() -> None:
    """In our words, when it is declared."""
    dashed = rename("say-hello")(TOOLS["greet"])
    check_refused(lambda: to_smolagents(dashed), "'say-hello'", "'call_say_hello'")
    check_refused(lambda: to_smolagents(TOOLS["greet"]).to_dict(), "'greet'", "remote executor")
    check_refused(lambda: to_smolagents(rename("class")(TOOLS["greet"])), "'class'")

    class Look(ForeignTool):
        name = "look"
        description = "Look."
        inputs = {"picture": {"type": "image", "description": "It."}}  # noqa: RUF012
        output_type = "string"

        def forward(self, picture: Any) -> str:
            return str(picture)

    check_refused(lambda: from_smolagents(Look()), "'look'", "image", "'picture'")
    check_refused(lambda: from_smolagents(max), "from_smolagents()")  # type: ignore[call-overload]


def odd_tool(body: Callable[[], Any]) -> FunctionTool[..., Any]:
    """Make a tool of ours of one of theirs that does this."""

    class Odd(ForeignTool):
        name = "odd"
        description = "Odd."
        inputs: dict[str, Any] = {}  # noqa: RUF012
        output_type = "any"

        def forward(self) -> Any:
            return body()

    return from_smolagents(Odd())


async def test_foreign_tools_that_raise() -> None:
    """Whatever they raise is a failure of ours."""
    await check_raised(odd_tool)


async def test_foreign_tools_with_odd_results() -> None:
    """Whatever they return is a result, or a failure that says so."""
    await check_returned(odd_tool)
    found = await outcome_of(odd_tool(lambda: Image.new("RGB", (2, 2))))
    assert found.output[0].mime_type == "image/png"
    mixed = await outcome_of(odd_tool(lambda: ["a", AgentImage(Image.new("RGB", (2, 2)))]))
    assert [block.type for block in mixed.output] == ["text", "image"]


async def test_the_decorator_of_smolagents() -> None:
    """Its optional arguments may be left out or null; others are refused before the tool runs."""

    @foreign_tool
    def search(topic: str, limit: int | None = None, exact: bool = False) -> list[str]:
        """Search.

        Args:
            topic: What.
            limit: How many.
            exact: Whether only the word itself counts.
        """
        return [topic, str(limit), str(exact)]

    ours = from_smolagents([search])[0]
    assert (await outcome_of(ours, topic="a")).output == '["a","None","False"]'
    assert (await outcome_of(ours, topic="a", limit=None)).output == '["a","None","False"]'
    for wrong in ({"topic": 3}, {"topic": "a", "more": 1}, {"limit": 1}):
        assert (await outcome_of(ours, **wrong)).status == "invalid_args"


async def test_there_and_back_again() -> None:
    """A tool that was theirs for a while does what it did."""
    back = from_smolagents(to_smolagents(TOOLS["totals"]))
    found = await outcome_of(back, amounts=[1, 2], prices={"a": 1})
    assert json.loads(found.output) == {"amount": 3, "price": 1.0, "names": ["a"]}
    assert (await outcome_of(back, amounts=["x"], prices={})).status == "invalid_args"
    failed = await outcome_of(from_smolagents(to_smolagents(TOOLS["fail"])), reason="rain")
    assert failed.status == "tool_error"
    assert "it failed because of rain" in failed.output


def test_a_schema_that_explodes_is_bounded() -> None:
    """References to references, doubled at each level, are cut where they are too many."""
    levels = {
        f"L{level}": {
            "type": "object",
            "properties": {
                side: {"$ref": f"#/$defs/L{level + 1}"} if level < 40 else {"type": "string"}
                for side in ("left", "right")
            },
        }
        for level in range(41)
    }
    tool = FunctionTool.from_schema(
        name="deep",
        schema={
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/L0"}, "bad": {"description": "Anything."}},
            "$defs": levels,
        },
        on_invoke_tool=lambda ctx, args: asyncio.sleep(0, args),
        validate_arguments=False,
    )
    assert len(json.dumps(to_smolagents(tool).inputs)) < 1_000_000


# --- its agents as tools


@foreign_tool
def look_up(topic: str) -> str:
    """Look up a topic.

    Args:
        topic: What.
    """
    if topic == "nothing":
        raise LookupError("no such topic")
    return f"{topic} are fine"


def scout(*answers: Any, tools: Any = (), **options: Any) -> FunctionTool[..., Any]:
    """Return an agent called scout, with these answers of its model, as a tool."""
    agent = make_agent(ScriptedModel(*answers), [look_up, *tools])
    agent.name, agent.description = "scout", "Looks things up."
    return as_tool(agent, **options)


def asks(name: str, **arguments: Any) -> list[Call]:
    """Make an answer that asks for one call."""
    return [Call("f1", name, json.dumps(arguments))]


DONE = asks("final_answer", answer="They are fine.")


async def test_an_agent_is_a_tool() -> None:
    """It answers; its calls are below its own, live, and what it used counts."""
    tool = scout(asks("look_up", topic="bees"), DONE, streaming=True)
    assert (tool.name, tool.description) == ("scout", "Looks things up.")
    model = Ours([tool_call("scout", input="How?", call_id="c1"), "Fine."], usage=Usage(requests=1))
    run = Runner.run_streamed(Agent("Top", tools=[tool], model=model), "Bees?")
    events = [event async for event in run.stream_events()]
    check_events(events)
    started = [event for event in events if event.type == "tool_stream_start_event"]
    assert [(event.tool_name, event.path) for event in started] == [
        ("scout", ("c1",)),
        ("look_up", ("c1", "f1")),
    ]
    assert run.usage.requests == 4
    assert run.usage.input_tokens == 10
    assert "They are fine." in str(model.requests[-1].input[-1])


async def test_our_own_tools_inside_speak_for_themselves() -> None:
    """Once, at their place, with the object of the run around."""
    seen: list[Any] = []

    @function_tool
    def ask_around(ctx: ToolContext[Any]) -> str:
        seen.append(ctx.context)
        ctx.notify("asking around")
        return "they are"

    for streaming in (True, False):
        theirs = to_smolagents([ask_around])
        tool = scout(asks("ask_around"), DONE, tools=theirs, streaming=streaming)
        called = await call_tool(tool, context=RunContextWrapper("mine"), input="Bees?")
        check_events(called.events)
        assert called.output == "They are fine."
        said = [event for event in called.events if event.type == "notify_stream_event"]
        assert [(event.data, len(event.path)) for event in said] == [
            ("asking around", 2)
        ] * streaming
    assert seen == ["mine", "mine"]


async def test_an_agent_that_fails_or_goes_on_for_too_long() -> None:
    """A failing call is told to its model, a failing model to ours, and steps are limited."""
    told = await call_tool(scout(asks("look_up", topic="nothing"), DONE), input="Nothing?")
    assert told.output == "They are fine."
    failed = await call_tool(scout(), input="Bees?")
    assert failed.status == "tool_error"
    answers = [asks("look_up", topic="bees"), asks("look_up", topic="bees"), "I give up."]
    bounded = await call_tool(scout(*answers, max_turns=2), input="Bees?")
    assert bounded.output == "I give up."


async def test_calls_of_one_agent_run_one_after_the_other() -> None:
    """Two calls of one agent must not get into each other's conversation."""
    given = [asks("final_answer", answer=text) for text in ("one", "two", "three")]
    tool = scout(*given)
    called = await asyncio.gather(*(call_tool(tool, input=str(n)) for n in range(3)))
    assert sorted(str(one.output) for one in called) == ["one", "three", "two"]


async def test_two_tools_of_one_agent_take_turns() -> None:
    """It has one memory, whatever is made of it."""
    inside: list[int] = []
    most: list[int] = []

    @function_tool
    async def count() -> str:
        inside.append(1)
        most.append(len(inside))
        await asyncio.sleep(0.05)  # long enough for another call to come in, if it may
        inside.pop()
        return "counted"

    answers = [asks("count"), DONE, asks("count"), DONE]
    agent = make_agent(ScriptedModel(*answers), to_smolagents([count]))
    agent.name, agent.description = "scout", "Counts."
    tools = [as_tool(agent), as_tool(agent)]
    called = await asyncio.gather(*(call_tool(tool, input="Count.") for tool in tools))
    assert [one.output for one in called] == ["They are fine."] * 2
    assert most == [1, 1]


async def test_an_agent_that_calls_itself_is_told_so() -> None:
    """It would wait for its own turn for ever."""
    agent = make_agent(ScriptedModel(asks("scout", input="Again."), DONE), [])
    agent.name, agent.description = "scout", "Calls itself."
    tool = as_tool(agent)
    agent.tools["scout"] = to_smolagents(tool)
    called = await asyncio.wait_for(call_tool(tool, input="Go."), 10)
    assert called.output == "They are fine."
    assert "cannot be called by itself" in str(agent.memory.steps)


async def test_cancelling_the_call_cancels_our_tools_inside() -> None:
    """The framework in between must not keep a call alive; the next one finds it ready."""
    inside, over = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @function_tool
    async def wait() -> str:
        loop.call_soon_threadsafe(inside.set)
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    other = to_smolagents(wait)
    tool = scout(asks("wait"), DONE, DONE, tools=[other])
    async with tool.stream(input="Wait."):
        await asyncio.wait_for(inside.wait(), 5)
    assert await asyncio.to_thread(over.wait, 5)
    assert (await call_tool(tool, input="Again?")).output == "They are fine."


async def test_a_call_that_is_cancelled_begins_no_more_calls() -> None:
    """What the model asks for after nobody waits any more does not happen."""
    asked, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    launched: list[str] = []

    @function_tool
    async def launch() -> str:
        launched.append("rocket")
        return "launched"

    class Slow(ScriptedModel):
        def generate(self, messages: Any, **options: Any) -> Any:
            loop.call_soon_threadsafe(asked.set)
            assert go.wait(10)
            return super().generate(messages, **options)

    agent = make_agent(Slow(asks("launch"), DONE), to_smolagents([launch]))
    agent.name, agent.description = "scout", "Launches."
    tool = as_tool(agent)
    async with tool.stream(input="Go."):
        await asyncio.wait_for(asked.wait(), 5)
    go.set()
    assert (await call_tool(tool, input="Again?")).output == "They are fine."
    assert not launched


async def test_code_that_is_cancelled_begins_no_more_calls() -> None:
    """Code cannot be stopped between two calls, but the second one can be refused."""
    inside, go, left = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    done: list[str] = []

    @foreign_tool
    def block() -> str:
        """Block."""
        loop.call_soon_threadsafe(inside.set)
        assert go.wait(10)
        left.set()
        return "blocked"

    @function_tool
    async def launch(ctx: ToolContext[Any]) -> str:
        done.append(str(ctx.context))
        return "launched"

    code = "<code>\nblock()\nlaunch()\nfinal_answer('fine')\n</code>"
    agent = make_code_agent(ScriptedModel(code, code), [block, to_smolagents(launch)])
    agent.name, agent.description = "scout", "Launches."
    tool = as_tool(agent)
    async with tool.stream(input="Go."):
        await asyncio.wait_for(inside.wait(), 5)
    go.set()
    assert await asyncio.to_thread(left.wait, 5)
    called = await call_tool(tool, context=RunContextWrapper("mine"), input="Again?")
    assert called.output == "fine"
    assert done == ["mine"]


async def test_cancelling_the_call_cancels_what_code_calls() -> None:
    """Code runs in a thread of its own there, and is no less part of the call."""
    inside, over = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @function_tool
    async def wait() -> str:
        loop.call_soon_threadsafe(inside.set)
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    code = "<code>\nwait()\n</code>"
    agent = make_code_agent(ScriptedModel(code), [to_smolagents(wait)])
    agent.name, agent.description = "scout", "Waits."
    async with as_tool(agent).stream(input="Go."):
        await asyncio.wait_for(inside.wait(), 5)
    assert await asyncio.to_thread(over.wait, 5)
