"""The console: what people see of a run on a terminal, in a log and in a notebook."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    RunConfig,
    Runner,
    ToolError,
    UserError,
    event_from_dict,
    function_tool,
    progress,
    streaming_tool,
)
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import console

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@streaming_tool
async def crawl(url: str) -> AsyncIterator[Any]:
    """Crawl a site."""
    yield NotifyStreamEvent(data="[1/2] connecting")
    progress(1, 2, "half")
    yield NotifyStreamEvent(data="two\x1b[2J lines\nof text", is_delta=True)
    yield "crawled"


@function_tool
async def broken() -> str:
    """Fail."""
    raise ToolError("no way")


def research() -> Agent[Any]:
    inner = Agent(
        name="Reader", tools=[crawl], model=ScriptedModel([tool_call("crawl", url="a"), "read"])
    )
    ask = inner.as_tool(tool_name="ask_reader", tool_description="Ask.", streaming=True)
    script: list[Any] = [[tool_call("ask_reader", input="hi"), tool_call("broken")], "all done"]
    return Agent(name="Chief", tools=[ask, broken], model=ScriptedModel(script))


async def events_of_a_run() -> list[Event]:
    return [event async for event in Runner.run_streamed(research(), "go").stream_events()]


async def test_a_run_is_told_in_lines_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs get one line per change, and nothing of it comes to standard output."""
    await console.render(Runner.run_streamed(research(), "go"))

    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert "Chief > ask_reader > crawl: [1/2] connecting" in lines
    assert "Chief > ask_reader > crawl: 1/2 (50%) half" in lines
    assert "Chief > ask_reader > crawl: of text" in lines
    assert any(line.startswith("Chief > broken: failed after") for line in lines)
    assert lines[-1].startswith("Chief: done in")
    assert "\x1b" not in err  # what a tool says acts on no terminal


async def test_a_run_publishes_to_a_console_of_its_configuration() -> None:
    file = io.StringIO()
    with console.Console(view="plain", file=file) as shown:
        await Runner.run(research(), "go", run_config=RunConfig(event_stream=shown))
    assert file.getvalue().splitlines()[-1].startswith("Chief: done in")


async def test_the_stream_of_a_call_needs_no_agent() -> None:
    file = io.StringIO()
    async with crawl.stream(url="a") as stream:
        await console.render(stream, file=file)
    lines = file.getvalue().splitlines()
    assert lines[0] == 'crawl: called with url="a"'
    assert lines[-1].startswith("crawl: done in")


async def test_events_of_a_log_are_shown_again() -> None:
    file, events = io.StringIO(), await events_of_a_run()
    await console.render(events, view="plain", file=file)
    assert file.getvalue().splitlines()[-1].startswith("Chief: done in")


async def test_lines_of_json_are_events_again() -> None:
    file, events = io.StringIO(), await events_of_a_run()
    await console.render(events, view="ndjson", file=file)
    assert [event_from_dict(json.loads(line)) for line in file.getvalue().splitlines()] == events


async def test_the_live_tree_shows_agents_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents, tools, bars and what they said; no colours where they are unwanted."""
    monkeypatch.setenv("NO_COLOR", "1")
    file, events = io.StringIO(), await events_of_a_run()
    await console.render(events, view="live", file=file)
    shown = file.getvalue()
    assert "\x1b" not in shown
    assert "Chief" in shown
    assert "ask_reader -> Reader" in shown
    assert "crawl" in shown
    assert "no way" in shown


async def test_the_live_tree_of_a_call_has_no_agent() -> None:
    file = io.StringIO()
    async with crawl.stream(url="a") as stream:
        await console.render(stream, view="live", file=file)
    assert file.getvalue().split()[:2] == ["ok", "crawl"]


async def test_what_the_run_raises_is_raised_and_told() -> None:
    file = io.StringIO()
    agent = Agent(name="Chief", model=ScriptedModel([tool_call("broken")] * 9), tools=[broken])
    with pytest.raises(Exception, match="turns"):
        await console.render(Runner.run_streamed(agent, "go", max_turns=2), file=file)
    assert "Chief: failed after" in file.getvalue()


async def test_a_run_that_is_cancelled_is_told_as_that() -> None:
    file, begun = io.StringIO(), asyncio.Event()

    @function_tool
    async def hang() -> str:
        """Hang."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(name="Chief", tools=[hang], model=ScriptedModel([tool_call("hang"), ""]))
    async with Runner.run_streamed(agent, "go") as run:
        task = asyncio.create_task(console.render(run, file=file))
        async with asyncio.timeout(10):
            await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert file.getvalue().splitlines()[-1].startswith("Chief: cancelled after")


@pytest.fixture
def notebook() -> Iterator[None]:
    """Run the test in a shell of IPython, which keeps no history."""
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.instance(config=config)
    yield
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("notebook")
async def test_a_notebook_gets_the_tree_as_a_page() -> None:
    """In the output of the cell, drawn again in place."""
    events = await events_of_a_run()
    with capture_output() as captured:
        await console.render(events, view="notebook")
    pages = [output.data["text/html"] for output in captured.outputs]
    assert len(pages) >= 2
    assert len({output.transient["display_id"] for output in captured.outputs}) == 1
    assert "crawl" in pages[-1]
    assert "no way" in pages[-1]
    assert "<script" not in pages[-1]


@pytest.mark.usefixtures("notebook")
async def test_markup_of_a_tool_stays_text_in_a_notebook() -> None:
    """S19: whoever writes a tool's output must not write the page."""

    @streaming_tool
    async def evil() -> AsyncIterator[Any]:
        """Say markup."""
        yield NotifyStreamEvent(data="<script>alert(1)</script>", level="error")
        yield "<img src=x onerror=alert(1)>"

    with capture_output() as captured:
        async with evil.stream() as stream:
            await console.render(stream, view="notebook")
    for output in captured.outputs:
        assert "<script" not in output.data["text/html"]
        assert "<img" not in output.data["text/html"]


@pytest.mark.parametrize(("given", "told"), [(5, "not int"), ("text", "not str")])
async def test_what_are_no_events_is_refused(given: object, told: str) -> None:
    with pytest.raises(UserError, match=told):
        await console.render(given)


def test_an_unknown_view_is_refused_with_those_there_are() -> None:
    with pytest.raises(UserError, match="auto, live, plain, ndjson, notebook, none"):
        console.Console(view="shiny")  # type: ignore[arg-type]


async def test_a_reader_that_has_gone_is_no_trouble() -> None:
    file = io.StringIO()
    file.close()
    await console.render(await events_of_a_run(), view="plain", file=file)
