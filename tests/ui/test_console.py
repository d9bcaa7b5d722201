"""The console: the display of a run on a terminal, in a log and in a notebook."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
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
from agents_tools.content import ToolCallItem, ToolCallOutputItem, Usage
from agents_tools.events import (
    Origin,
    RunFinishedEvent,
    RunItemStreamEvent,
    ToolArtifactEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
)
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import console
from agents_tools.ui.console.rich_view import RichRun

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


def research() -> Agent[Any, Any]:
    inner = Agent(
        name="Reader", tools=[crawl], model=ScriptedModel([tool_call("crawl", url="a"), "read"])
    )
    ask = inner.as_tool(tool_name="ask_reader", tool_description="Ask.", streaming=True)
    script: list[Any] = [[tool_call("ask_reader", input="hi"), tool_call("broken")], "all done"]
    return Agent(name="Chief", tools=[ask, broken], model=ScriptedModel(script))


async def events_of_a_run() -> list[Event]:
    return [event async for event in Runner.run_streamed(research(), "go").stream_events()]


async def test_a_run_is_printed_as_lines_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Logs get one line per change, and standard output stays empty."""
    await console.render(Runner.run_streamed(research(), "go"))

    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert "Chief > ask_reader > crawl: [1/2] connecting" in lines
    assert "Chief > ask_reader > crawl: 1/2 (50%) half" in lines
    assert "Chief > ask_reader > crawl: of text" in lines
    assert any(line.startswith("Chief > broken: failed after") for line in lines)
    assert lines[-1].startswith("Chief: done in")
    assert "\x1b" not in err  # terminal sequences of a tool are removed


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
    """It shows agents, tools, progress bars and messages, without colours if they are disabled."""
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


async def test_an_exception_of_the_run_is_raised_and_shown() -> None:
    file = io.StringIO()
    agent = Agent(name="Chief", model=ScriptedModel([tool_call("broken")] * 9), tools=[broken])
    with pytest.raises(Exception, match="turns"):
        await console.render(Runner.run_streamed(agent, "go", max_turns=2), file=file)
    assert "Chief: failed after" in file.getvalue()


async def test_a_cancelled_run_is_shown_as_cancelled() -> None:
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


async def test_a_call_that_waits_for_approval_is_cancelled_with_its_run() -> None:
    """Nobody can answer the approval of a run that is over, except if it was interrupted for it."""

    @needs_approval()
    @function_tool
    async def pay() -> str:
        """Pay."""
        return "paid"

    agent = Agent(name="Chief", tools=[pay], model=ScriptedModel([tool_call("pay"), ""]))
    interrupted = [event async for event in Runner.run_streamed(agent, "go").stream_events()]
    cancelled = [
        event.replace(status="cancelled") if isinstance(event, RunFinishedEvent) else event
        for event in interrupted
    ]
    shown: list[str] = []
    for events in (interrupted, cancelled):
        file = io.StringIO()
        await console.render(events, view="live", file=file)
        shown += [line for line in file.getvalue().splitlines() if "pay" in line]
    assert "waits for approval" in shown[0]
    assert "waits for approval" not in shown[1]
    assert "cancelled after" in shown[1]


@pytest.fixture
def notebook() -> Iterator[None]:
    """Run the test in an IPython shell without a history."""
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.instance(config=config)
    yield
    InteractiveShell.clear_instance()


@pytest.mark.requirement("S19")
@pytest.mark.usefixtures("notebook")
async def test_markup_of_a_tool_stays_text_in_a_notebook() -> None:
    """Output of a tool must not inject markup into the page."""

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


@pytest.mark.parametrize(("value", "message"), [(5, "got int"), ("text", "got str")])
async def test_invalid_events_are_rejected(value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        await console.render(value)


def test_an_unknown_view_is_rejected_with_the_available_ones() -> None:
    with pytest.raises(UserError, match="auto, live, plain, ndjson, notebook, none"):
        console.Console(view="shiny")  # type: ignore[arg-type]


async def test_a_closed_output_is_handled() -> None:
    file = io.StringIO()
    file.close()
    await console.render(await events_of_a_run(), view="plain", file=file)


def calls(count: int, above: tuple[str, ...] = ()) -> Iterator[Event]:
    """Return the events of sequential calls of a model."""
    for number in range(count):
        call_id = f"call_{number}"
        here, inside = Origin(path=above), Origin("dig", call_id, (*above, call_id))
        asked = ToolCallItem(call_id=call_id, name="dig", arguments='{"deep": true}')
        value = ToolCallOutputItem(call_id=call_id, name="dig", output="earth " * 1_000)
        yield RunItemStreamEvent[Any]("tool_called", asked.to_dict()).replace(origin=here)
        yield NotifyStreamEvent("careful", level="warning").replace(origin=inside)
        yield ToolStreamEndEvent("ok", 0.1).replace(origin=inside)
        yield RunItemStreamEvent[Any]("tool_output", value.to_dict()).replace(origin=here)


class Screen(io.StringIO):
    """A stream that Rich treats as a terminal."""

    def isatty(self) -> bool:
        """Return True, as a terminal does."""
        return True


@pytest.mark.parametrize("above", [(), ("boss",)])
def test_the_tree_of_thousands_of_calls_stays_small(above: tuple[str, ...]) -> None:
    """Rows, memory and time do not grow with finished calls; their costs are still counted."""
    screen = Screen()
    view = RichRun("Chief", screen)
    for event in calls(2_000, above):
        view.show(event)
        if event.path[len(above) :]:
            view.count(event.path, Usage(requests=1, input_tokens=1))
    assert len(view._tree.by_path) < 300  # pyright: ignore[reportPrivateUsage]
    assert len(view._tree._usage) < 300  # pyright: ignore[reportPrivateUsage]
    view.close("ok", 1)
    shown = screen.getvalue()
    assert shown.count("\n") < 700
    assert "earlier calls" in shown
    assert "4,000 tokens" in shown


@pytest.mark.requirement("D17")
@pytest.mark.parametrize("view", ["live", "plain", "ndjson"])
def test_events_that_cannot_be_shown_do_not_fail_the_run(
    view: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Events come in any order, some of them damaged; the next ones are shown."""
    screen = Screen()
    shown = console.Console(view=view, file=screen, name="Chief")
    damaged = RunItemStreamEvent[Any]("tool_output", {"type": "nonsense"})
    ended = ToolStreamEndEvent("ok", 1.0).replace(origin=Origin("dig", "a", ("a",)))
    late = ToolProgressEvent(5, 0).replace(origin=Origin("dig", "c", ("unknown", "c")))
    for event in (damaged, damaged, ended, late, *list(calls(1))[::-1]):
        shown.publish(event)
    shown.close()
    assert caplog.text.count("cannot be shown") == (0 if view == "ndjson" else 1)
    assert "dig" in screen.getvalue()


@pytest.mark.parametrize("view", ["auto", "live", "plain"])
def test_a_program_without_standard_error_works(view: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sets a stream that was closed before the start to `None`."""
    monkeypatch.setattr("sys.stderr", None)
    with console.Console(view=view) as shown:
        for event in calls(1):
            shown.publish(event)


@pytest.mark.requirement("D17")
def test_a_terminal_that_disappears_while_drawing_is_handled() -> None:
    """Neither the run nor the drawing thread fails."""
    screen = Screen()
    with console.Console(view="live", file=screen) as shown:
        for event in calls(3):
            shown.publish(event)
            screen.close()


class FailingScreen(Screen):
    """A terminal that can fail."""

    has_failed = False

    def write(self, text: str) -> int:
        """Write a text."""
        if self.has_failed:
            raise OSError("Input/output error")
        return super().write(text)


def test_a_tree_is_drawn_after_one_whose_terminal_failed_at_its_end() -> None:
    """The tree that has ended does not keep the screen."""
    screen = FailingScreen()
    first, second = (console.Console(view="live", file=screen, name=name) for name in "AB")
    first.publish(next(iter(calls(1))))
    screen.has_failed = True
    first.close()
    screen.has_failed = False
    before = len(screen.getvalue())
    with second:
        second.publish(next(iter(calls(1))))
        assert len(screen.getvalue()) > before  # the drawing has begun


@pytest.mark.parametrize(("size", "shown"), [(999_499, "999 kB"), (999_500, "1 MB")])
def test_a_rounded_size_has_the_next_unit(size: int, shown: str) -> None:
    """It was shown as 1e+03 kB."""
    output = io.StringIO()
    with console.Console(view="plain", file=output, name="Chief") as view:
        view.publish(ToolArtifactEvent("map", data=b"x" * size))
    assert f"made map ({shown})" in output.getvalue()


@pytest.mark.parametrize("view", ["live", "plain"])
def test_arguments_that_are_nested_too_deep_are_shown(
    view: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A model can write them, and the console must not fail the run at its end."""
    screen = Screen()
    asked = ToolCallItem(call_id="a", name="dig", arguments="[" * 100_000)
    with console.Console(view=view, file=screen, name="Chief") as shown:
        shown.publish(RunItemStreamEvent[Any]("tool_called", asked.to_dict()))
    assert "dig" in screen.getvalue()
    assert "[[[[" in screen.getvalue()
    assert not caplog.text


def test_two_trees_are_not_drawn_over_each_other() -> None:
    """The second one is shown when the first has ended, and then output is restored."""
    output, screen = sys.stdout, Screen()
    first, second = (console.Console(view="live", file=screen, name=name) for name in "AB")
    for event in calls(1):
        first.publish(event)
        second.publish(event)
    first.close()
    second.close()
    assert sys.stdout is output
    assert "B" in screen.getvalue()
    with console.Console(view="live", file=screen, name="C") as third:
        third.publish(next(iter(calls(1))))


def test_a_console_accepts_events_from_many_threads() -> None:
    """It is opened once, by the first thread."""
    for _ in range(20):
        shown = console.Console(view="live", file=Screen())
        gate = threading.Barrier(4)

        def tell(shown: console.Console = shown, gate: threading.Barrier = gate) -> None:
            gate.wait()
            for event in calls(2):
                shown.publish(event)

        threads = [threading.Thread(target=tell) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shown.close()
