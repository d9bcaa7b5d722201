"""What only ADK has, with our tools in it and its tools and agents here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool as ForeignTool
from google.genai import types

from agents_tools import (
    ToolContext,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    UserError,
    function_tool,
    listen,
    progress,
    streaming_tool,
)
from agents_tools.export.google_adk import EVENT, as_tool, from_google_adk, to_google_adk
from agents_tools.policies import needs_approval
from agents_tools.testing import call_tool
from tests.frameworks.functions import PIXEL
from tests.frameworks.harness.google_adk import ScriptedModel, make_agent, read, started
from tests.frameworks.suite import Call, Report

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


def test_one_tool_is_one_and_a_list_a_list() -> None:
    """Whoever has one tool wants no list; its schema goes over as it is."""
    tool: Any = to_google_adk(crunch)
    assert tool.name == "crunch"
    assert [one.name for one in to_google_adk([crunch])] == ["crunch"]
    declaration = tool._get_declaration()
    assert declaration.parameters_json_schema == crunch.params_json_schema
    assert (declaration.name, declaration.description) == ("crunch", "Work.")


def test_a_runner_that_is_called_synchronously_calls_our_tools() -> None:
    """`runner.run` runs everything in a loop of its own, in a thread."""

    @function_tool
    async def fetch(ctx: ToolContext[Any]) -> str:
        """Fetch."""
        ctx.context.state["fetched"] = True
        return f"for {ctx.context.state['user']}"

    calls = [Call("c1", "crunch", '{"steps": 2}'), Call("c2", "fetch")]
    agent = make_agent(ScriptedModel(calls, "done"), to_google_adk([crunch, fetch]))
    runner, begin = asyncio.run(started(agent))
    report = Report()
    kept: dict[str, Any] = {}
    with listen() as heard:
        for event in runner.run(**begin, state_delta={"user": "Ann"}):
            read(report, event)
            kept.update(event.actions.state_delta)
    assert report.final == "done"
    assert (report.answers["c1"].text, report.answers["c2"].text) == ("2 done", "for Ann")
    assert kept["fetched"]
    said = [one["current"] for one in report.streamed if one["type"] == "tool_progress_event"]
    assert said == [1.0, 2.0]
    assert len([event for event in heard if isinstance(event, ToolProgressEvent)]) == 2


async def test_events_of_ours_are_not_kept_in_the_session() -> None:
    """Progress is for whoever watches, not for the model's next turn."""
    agent = make_agent(
        ScriptedModel([Call("c1", "crunch", '{"steps": 2}')], "done"), to_google_adk([crunch])
    )
    runner, begin = await started(agent)
    told = [event async for event in runner.run_async(**begin)]
    assert any(EVENT in (event.custom_metadata or {}) for event in told)
    session: Any = await runner.session_service.get_session(
        app_name="tests", user_id="u", session_id=begin["session_id"]
    )
    assert len(session.events) == 4  # what the user said, the call, its result, the answer
    assert not any(EVENT in (event.custom_metadata or {}) for event in session.events)


async def test_media_are_parts_of_the_response() -> None:
    """A model that sees must get the picture, and no text for it."""

    @function_tool
    def draw() -> list[Any]:
        """Draw."""
        return [
            ToolOutputText("here"),
            ToolOutputImage(data=PIXEL),
            ToolOutputImage(url="https://example.com/a.png", mime_type="image/png"),
            ToolOutputFileContent(file_id="file_1"),
        ]

    agent = make_agent(ScriptedModel([Call("c1", "draw")], "done"), to_google_adk([draw]))
    runner, begin = await started(agent)
    responses = [
        response
        async for event in runner.run_async(**begin)
        for response in event.get_function_responses()
    ]
    (response,) = responses
    assert response.response == {"result": "here\n[file: file_1]"}
    blob, file = response.parts or ()
    assert (blob.inline_data.data, blob.inline_data.mime_type) == (PIXEL, "image/png")
    assert file.file_data.file_uri == "https://example.com/a.png"


async def test_an_exception_that_is_to_pass_passes() -> None:
    """`failure_error_function=None` means that the application handles it."""

    @function_tool(failure_error_function=None)
    def fail() -> str:
        """Fail."""
        raise LookupError("nothing there")

    agent = make_agent(ScriptedModel([Call("c1", "fail")], "done"), to_google_adk([fail]))
    runner, begin = await started(agent)
    with pytest.raises(LookupError, match="nothing there"):
        _ = [event async for event in runner.run_async(**begin)]


async def test_a_tool_that_is_run_without_a_runner_answers() -> None:
    """Tests of an application call its tools directly."""

    class Nowhere:
        function_call_id = "c1"
        tool_confirmation = None

    tool: Any = to_google_adk(crunch)
    given = await tool.run_async(args={"steps": 1}, tool_context=Nowhere())
    assert given == {"result": "1 done"}


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_call_that_needs_approval_asks_for_confirmation(confirmed: bool) -> None:
    """Confirmation is how agents of ADK ask people."""
    launched: list[str] = []

    @needs_approval(lambda ctx, arguments: arguments["rocket"] != "toy")
    @function_tool
    async def launch(rocket: str) -> str:
        """Launch."""
        launched.append(rocket)
        return f"launched {rocket}"

    calls = [Call("c1", "launch", '{"rocket": "V2"}'), Call("c2", "launch", '{"rocket": "toy"}')]
    agent = make_agent(ScriptedModel(calls, "done"), to_google_adk([launch]))
    runner, begin = await started(agent)
    asked: list[Any] = []
    async for event in runner.run_async(**begin):
        asked += [
            call for call in event.get_function_calls() if call.name == "adk_request_confirmation"
        ]
    assert launched == ["toy"]
    (request,) = asked
    answer = types.FunctionResponse(
        id=request.id, name=request.name, response={"confirmed": confirmed}
    )
    begin["new_message"] = types.Content(role="user", parts=[types.Part(function_response=answer)])
    report = Report()
    async for event in runner.run_async(**begin):
        read(report, event)
    assert launched == ["toy"] + ["V2"] * confirmed
    assert report.answers["c1"].failed is not confirmed
    assert report.final == "done"


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

    agent = make_agent(ScriptedModel([Call("c1", "crawl")], "done"), to_google_adk([crawl]))
    runner, begin = await started(agent)
    events: Any = runner.run_async(**begin)
    async for event in events:
        if EVENT in (event.custom_metadata or {}):
            break
    await events.aclose()
    await asyncio.wait_for(over.wait(), 5)


async def test_an_abort_cancels_the_call() -> None:
    """An abort signal is how applications of ADK stop a run."""
    inside, over, abort = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_google_adk([wait]))
    runner, begin = await started(agent)

    async def read_all() -> None:
        async for _ in runner.run_async(**begin, abort_signal=abort):
            pass

    run = asyncio.ensure_future(read_all())
    await asyncio.wait_for(inside.wait(), 5)
    abort.set()
    await asyncio.wait_for(run, 5)
    assert over.is_set()


async def test_progress_is_live() -> None:
    """Whoever watches must see it while the tool works, not afterwards."""
    go = asyncio.Event()

    @function_tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Wait."""
        ctx.notify("ready")
        await asyncio.wait_for(go.wait(), 5)
        return "went"

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_google_adk([wait]))
    runner, begin = await started(agent)
    report = Report()
    async for event in runner.run_async(**begin):
        read(report, event)
        if report.streamed and report.streamed[-1].get("data") == "ready":
            go.set()
    assert report.answers["c1"].text == "went"


# --- their tools here


def test_a_tool_of_ours_comes_back_as_it_was() -> None:
    """There and back again is no detour."""
    assert from_google_adk(to_google_adk([crunch])) == [crunch]
    with pytest.raises(UserError, match=r"expects a .*BaseTool, got function"):
        from_google_adk(test_a_tool_of_ours_comes_back_as_it_was)


async def test_a_tool_of_theirs_finds_its_state_and_may_return_media() -> None:
    """A tool must find what it finds in an agent of ADK."""
    from google.adk.tools import ToolContext as ForeignContext

    def draw(tool_context: ForeignContext) -> Any:
        """Draw."""
        image = types.Part.from_bytes(data=PIXEL, mime_type="image/png")
        return {"result": f"for {tool_context.state['user']}", "image": image}

    called = await call_tool(from_google_adk(ForeignTool(draw), state={"user": "Ann"}))
    text, image = called.output
    assert (text.text, image.data) == ("for Ann", PIXEL)


async def test_an_error_of_theirs_is_a_failure() -> None:
    """ADK tells its models of errors in a dictionary."""

    def find() -> Any:
        """Find."""
        return {"error": "nothing there"}

    called = await call_tool(from_google_adk(ForeignTool(find)))
    assert (called.status, called.output) == ("tool_error", "nothing there")


async def test_confirmation_of_theirs_is_approval_of_ours() -> None:
    """What ADK would not run without a person does not run here without one."""
    from agents_tools import Agent, RunConfig, Runner
    from agents_tools.testing import ScriptedModel as Scripted, tool_call

    launched: list[str] = []

    def launch(rocket: str) -> str:
        """Launch."""
        launched.append(rocket)
        return f"launched {rocket}"

    tool = from_google_adk(ForeignTool(launch, require_confirmation=True))
    assert (await call_tool(tool, rocket="V2")).status == "denied"
    assert not launched
    model = Scripted([tool_call("launch", rocket="V2"), "Fine."])
    config = RunConfig(approve=lambda item: True)
    await Runner.run(Agent("Top", tools=[tool], model=model), "Go.", run_config=config)
    assert launched == ["V2"]
    assert "launched V2" in str(model.requests[-1].input[-1])


# --- their agents here


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_an_agent_of_agents_is_heard_as_one() -> None:
    """Who speaks within is the framework's matter."""
    from google.adk.agents import SequentialAgent

    parts = [LlmAgent(name=name, model=ScriptedModel(f"{name} says so")) for name in ("one", "two")]
    called = await call_tool(
        as_tool(SequentialAgent(name="Both", sub_agents=parts), streaming=True), input="Go."
    )
    assert called.output == "two says so"
    said = [event for event in called.events if event.type == "notify_stream_event"]
    assert "".join(event.data for event in said) == "one says sotwo says so"
