"""What only Agno has, with our tools in it and its tools and agents here."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from agno.db.in_memory import InMemoryDb
from agno.exceptions import StopAgentRun
from agno.media import Image
from agno.run.agent import CustomEvent
from agno.team import Team
from agno.tools import Toolkit, tool as foreign_tool
from agno.tools.function import ToolResult

from agents_tools import (
    ToolContext,
    ToolProgressEvent,
    UserError,
    function_tool,
    listen,
    progress,
    streaming_tool,
)
from agents_tools.export.agno import AgnoToolEvent, as_tool, from_agno, to_agno
from agents_tools.policies import needs_approval
from agents_tools.testing import call_tool
from tests.frameworks.functions import PIXEL
from tests.frameworks.harness.agno import ScriptedModel, answers_in, make_agent
from tests.frameworks.suite import Call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@function_tool
def crunch(steps: int) -> str:
    """Work.

    Args:
        steps: How much.
    """
    for step in range(1, steps + 1):
        progress(step, steps)
    return f"{steps} done"


@function_tool
def greet(name: str) -> str:
    """Greet."""
    return f"Hello {name!r}"


def test_one_tool_is_one_and_a_list_a_list() -> None:
    """Whoever has one tool wants no list."""
    assert to_agno(crunch).name == "crunch"
    assert [tool.name for tool in to_agno([crunch])] == ["crunch"]
    assert to_agno(crunch).parameters == crunch.params_json_schema


@pytest.mark.parametrize("stream", [True, False])
def test_an_agent_that_is_run_synchronously_calls_our_tools(stream: bool) -> None:
    """`agent.run` has no event loop, and streams all the same."""

    @function_tool
    async def fetch(ctx: ToolContext[Any]) -> str:
        """Fetch."""
        await asyncio.sleep(0)
        return f"for {ctx.context.dependencies['user']}"

    calls = [
        Call("c1", "crunch", '{"steps": 2}'),
        Call("c2", "fetch"),
        Call("c3", "crunch", '{"steps": "many"}'),
    ]
    agent = make_agent(ScriptedModel(calls, "done"), to_agno([crunch, fetch]))
    told: list[dict[str, Any]] = []
    with listen() as heard:
        if stream:
            messages: Any = None
            for event in agent.run(
                "Go.",
                stream=True,
                stream_events=True,
                yield_run_output=True,
                dependencies={"user": "Ann"},
            ):
                if isinstance(event, AgnoToolEvent):
                    assert event.tool_call_id in {"c1", "c2", "c3"}
                    told.append(event.data or {})
                messages = getattr(event, "messages", messages)
        else:
            messages = agent.run("Go.", dependencies={"user": "Ann"}).messages
    answers = answers_in(messages)
    assert (answers["c1"].text, answers["c2"].text) == ("2 done", "for Ann")
    assert answers["c3"].failed
    assert answers["c3"].text.startswith("Invalid arguments for tool 'crunch'")
    said = [one["current"] for one in told if one["type"] == "tool_progress_event"]
    assert said == ([1.0, 2.0] if stream else [])
    assert len([event for event in heard if isinstance(event, ToolProgressEvent)]) == 2


async def test_a_run_without_a_stream_calls_our_tools() -> None:
    """Events that nobody reads must not get into the result."""
    model = ScriptedModel([Call("c1", "crunch", '{"steps": 2}')], "done")
    result = await make_agent(model, to_agno([crunch])).arun("Go.")
    assert answers_in(result.messages)["c1"].text == "2 done"
    assert result.content == "done"


async def test_arguments_are_what_the_model_wrote() -> None:
    """Agno makes `None` of the text `none`, and `True` of `true`; people have such names."""
    names = ["None", "true", " null"]
    calls = [Call(name, "greet", json.dumps({"name": name})) for name in names]
    result = await make_agent(ScriptedModel(calls, "done"), to_agno([greet])).arun("Go.")
    answers = answers_in(result.messages)
    assert [answers[name].text for name in names] == [f"Hello {name!r}" for name in names]


async def test_what_a_hook_of_agno_changes_is_what_the_tool_gets() -> None:
    """Hooks correct arguments on purpose."""

    async def correct(function_name: str, function_call: Any, arguments: Any) -> Any:
        arguments["name"] = "Bo"
        return await function_call(**arguments)

    agent = make_agent(
        ScriptedModel([Call("c1", "greet", '{"name": "none"}')], "done"),
        to_agno([greet]),
        tool_hooks=[correct],
    )
    result = await agent.arun("Go.")
    assert answers_in(result.messages)["c1"].text == "Hello 'Bo'"


async def test_parameters_may_have_the_names_that_agno_hands_things_over_by() -> None:
    """A model fills them in, and nobody else."""

    @function_tool
    def send(fc: str, images: list[str]) -> str:
        """Send."""
        return f"{fc} {images}"

    calls = [Call("c1", "send", '{"fc": "x", "images": ["y"]}')]
    result = await make_agent(ScriptedModel(calls, "done"), to_agno([send])).arun("Go.")
    assert answers_in(result.messages)["c1"].text == "x ['y']"


async def test_cancelling_the_run_cancels_its_calls() -> None:
    """`cancel_run` sets a mark that nobody else tells our tools about."""
    inside, over = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_agno([wait]))
    run = asyncio.ensure_future(agent.arun("Go.", run_id="r1"))
    await asyncio.wait_for(inside.wait(), 5)
    agent.cancel_run("r1")
    result = await asyncio.wait_for(run, 5)
    assert over.is_set()
    assert result.is_cancelled


def test_cancelling_a_synchronous_run_cancels_its_calls() -> None:
    """The thread of the run waits, so another one has to cancel it."""
    inside, over = threading.Event(), threading.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_agno([wait]))
    results: list[Any] = []
    run = threading.Thread(target=lambda: results.append(agent.run("Go.", run_id="r2")))
    run.start()
    assert inside.wait(5)
    agent.cancel_run("r2")
    run.join(5)
    assert over.is_set()
    assert results[0].is_cancelled


@pytest.mark.parametrize("confirmed", [True, False])
async def test_what_agno_has_asked_a_person_about_is_decided(confirmed: bool) -> None:
    """Nobody wants to be asked twice, and nobody to be passed over."""
    launched: list[str] = []

    @needs_approval
    @function_tool
    async def launch(rocket: str) -> str:
        """Launch."""
        launched.append(rocket)
        return f"launched {rocket}"

    function = to_agno(launch)
    function.requires_confirmation = True
    calls = [Call("c1", "launch", '{"rocket": "V2"}')]
    agent = make_agent(ScriptedModel(calls, "done"), [function])
    result = await agent.arun("Go.")
    assert result.is_paused
    for requirement in result.active_requirements:
        if confirmed:
            requirement.confirm()
        else:
            requirement.reject()
    result = await agent.acontinue_run(run_response=result)
    assert launched == ["V2"] * confirmed
    assert result.content == "done"


async def test_without_agno_asking_a_call_that_needs_approval_is_denied() -> None:
    """Nobody can be asked there."""
    function = to_agno(needs_approval(crunch))
    model = ScriptedModel([Call("c1", "crunch", '{"steps": 2}')], "done")
    result = await make_agent(model, [function]).arun("Go.")
    answer = answers_in(result.messages)["c1"]
    assert answer.failed
    assert "no run can request it here" in answer.text


async def test_a_call_whose_reader_goes_away_is_cancelled() -> None:
    """Whoever stops reading the events of a run wants nothing more of it."""
    over = asyncio.Event()

    @streaming_tool
    async def crawl() -> Any:
        """Crawl."""
        try:
            yield ToolProgressEvent(1)
            await asyncio.Event().wait()
        finally:
            over.set()
        yield "never"

    agent = make_agent(ScriptedModel([Call("c1", "crawl")], "done"), to_agno([crawl]))
    events: Any = agent.arun("Go.", stream=True, stream_events=True)
    async for event in events:
        if isinstance(event, AgnoToolEvent):
            break
    await events.aclose()
    await asyncio.wait_for(over.wait(), 5)


async def test_progress_is_live() -> None:
    """Whoever watches must see it while the tool works, not afterwards."""
    go = asyncio.Event()

    @function_tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Wait."""
        ctx.notify("ready")
        await asyncio.wait_for(go.wait(), 5)
        return "went"

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_agno([wait]))
    async for event in agent.arun("Go.", stream=True, stream_events=True):
        if isinstance(event, AgnoToolEvent) and (event.data or {}).get("data") == "ready":
            go.set()
    assert go.is_set()


def test_progress_of_a_synchronous_run_is_live() -> None:
    """There the tool works in another thread than its reader."""
    go = threading.Event()

    @function_tool
    def wait(ctx: ToolContext[Any]) -> str:
        """Wait."""
        ctx.notify("ready")
        return "went" if go.wait(5) else "nobody heard"

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_agno([wait]))
    for event in agent.run("Go.", stream=True, stream_events=True):
        if isinstance(event, AgnoToolEvent) and (event.data or {}).get("data") == "ready":
            go.set()
        if event.event == "ToolCallCompleted":
            assert event.tool.result == "went"
    assert go.is_set()


async def test_events_of_ours_are_kept_where_agno_keeps_events() -> None:
    """An interface that reads a session later shows what was shown live."""
    model = ScriptedModel([Call("c1", "crunch", '{"steps": 1}')], "done")
    agent = make_agent(
        model, to_agno([crunch]), db=InMemoryDb(), store_events=True, session_id="s1"
    )
    async for event in agent.arun("Go.", stream=True, stream_events=True):
        if isinstance(event, AgnoToolEvent):
            assert json.loads(json.dumps(event.to_dict()))["data"] == event.data
    session: Any = agent.get_session(session_id="s1")
    kept = [event.data for event in session.runs[-1].events if event.event == "CustomEvent"]
    assert [data["type"] for data in kept] == [
        "tool_stream_start_event",
        "tool_progress_event",
        "tool_stream_end_event",
    ]


# --- their tools here


async def test_a_toolkit_is_a_list_of_tools_and_ours_come_back_as_they_were() -> None:
    """A toolkit is how Agno ships its tools."""

    class Kit(Toolkit):
        def __init__(self) -> None:
            super().__init__(name="kit", tools=[self.add, self.draw])

        def add(self, first: int, second: int = 1) -> int:
            """Add.

            Args:
                first: The one.
                second: The other.
            """
            return first + second

        def draw(self) -> ToolResult:
            """Draw."""
            image = Image(content=PIXEL, mime_type="image/png")
            return ToolResult(content="here", images=[image])

    add, draw = from_agno(Kit())
    assert (add.name, add.description) == ("add", "Add.")
    assert (await call_tool(add, first=2)).output == "3"
    assert (await call_tool(add, first="two")).status == "invalid_args"
    text, image = (await call_tool(draw)).output
    assert (text.text, image.data) == ("here", PIXEL)
    assert from_agno(to_agno([crunch])) == [crunch]


async def test_custom_events_of_theirs_are_said_and_are_no_part_of_the_result() -> None:
    """Agno itself writes their repr into what the model reads."""

    @foreign_tool
    def work() -> Any:
        """Work."""
        yield CustomEvent(done=1)
        yield "worked"

    called = await call_tool(from_agno(work))
    assert called.output == "worked"
    said = [event for event in called.events if event.type == "notify_stream_event"]
    assert [event.data for event in said] == ['{"done":1}', "worked"]


async def test_a_tool_of_theirs_that_stops_its_agent_has_failed_here() -> None:
    """There is no agent of Agno here that it could stop."""

    @foreign_tool
    def give_up() -> str:
        """Give up."""
        raise StopAgentRun("no use")

    called = await call_tool(from_agno(give_up))
    assert (called.status, called.output) == ("tool_error", "no use")


async def test_confirmation_of_theirs_is_approval_of_ours() -> None:
    """What Agno would not run without a person does not run here without one."""

    @foreign_tool(requires_confirmation=True)
    def launch() -> str:
        """Launch."""
        return "launched"

    called = await call_tool(from_agno(launch))
    assert called.status == "denied"

    @foreign_tool(external_execution=True)
    def elsewhere() -> str:
        """Go elsewhere."""
        return ""

    with pytest.raises(
        UserError, match="'elsewhere' cannot be converted: it has external_execution=True"
    ):
        from_agno(elsewhere)


# --- their agents here


async def test_a_team_is_a_tool_and_speaks_for_its_members() -> None:
    """What a member says goes to the team, which answers."""
    member = make_agent(ScriptedModel("I say so"), [], name="Member", id="member")
    delegate = Call("d1", "delegate_task_to_member", '{"member_id": "member", "task": "Say."}')
    team = Team(
        members=[member],
        name="Scouts",
        model=ScriptedModel([delegate], "They say so"),
        telemetry=False,
    )
    heard: list[Any] = []
    called = await call_tool(as_tool(team, on_stream=heard.append), input="Go.")
    assert called.output == "They say so"
    said = [event.data for event in heard if event.type == "notify_stream_event"]
    assert "".join(said) == "They say so"
    started = [event.tool_name for event in heard if event.type == "tool_stream_start_event"]
    assert started == ["delegate_task_to_member"]
    assert heard[-1].usage["requests"] == 3
