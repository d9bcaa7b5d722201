"""What all adapters share: how another framework calls our tools, and how its tools become ours."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import agents_tools.export
from agents_tools import (
    Agent,
    BaseTool,
    BaseToolParams,
    CallOutcome,
    NotifyStreamEvent,
    RunContextWrapper,
    ToolContext,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    UserError,
    function_tool,
    listen,
    notify,
    streaming_tool,
)
from agents_tools.export._incoming import fitting_name, incoming, media, say
from agents_tools.export._outgoing import (
    called,
    data_url,
    described,
    exported,
    followed,
    text_of,
)
from agents_tools.toolset import Toolset
from tests.frameworks.functions import PIXEL, to_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@streaming_tool
async def count(upto: int) -> AsyncIterator[Any]:
    """Count.

    Args:
        upto: How far.
    """
    for number in range(upto):
        yield NotifyStreamEvent(str(number))
    yield f"counted to {upto}"


@function_tool
def work(steps: int) -> str:
    """Work in a thread.

    Args:
        steps: How much.
    """
    for step in range(steps):
        notify(str(step))
    return "done"


class _Params(BaseToolParams):
    """Do nothing."""

    name = "nothing"


class Nothing(BaseTool):
    """A tool that is a class."""

    params_class = _Params

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        return "nothing", {}


# --- what is exported


def test_one_tool_gives_one_object_and_several_give_a_list() -> None:
    """The shape of the answer is that of the question."""
    assert exported(count, lambda tool: tool.name, "to_x") == "count"
    assert exported([count], lambda tool: tool.name, "to_x") == ["count"]
    assert exported((count, [work, Nothing()]), lambda tool: tool.name, "to_x") == [
        "count",
        "work",
        "nothing",
    ]
    assert exported(Nothing(), lambda tool: tool.name, "to_x") == "nothing"


def test_toolset_is_several_tools() -> None:
    """Whatever agents here take, other frameworks get."""
    tools = Toolset(count, [work]).prefix("my_")
    assert exported(tools, lambda tool: tool.name, "to_x") == ["my_count", "my_work"]
    with pytest.raises(UserError, match="get_tools"):
        exported(Toolset(count, _Dynamic()), lambda tool: tool.name, "to_x")


def test_tools_that_are_switched_off_are_not_offered() -> None:
    """A framework has no place for a tool that agents do not offer."""
    off = work.with_(is_enabled=False)
    assert exported([count, off], lambda tool: tool.name, "to_x") == ["count"]


class _Dynamic:
    async def get_tools(self) -> list[Any]:
        return [count]


class _Manager:
    def get_tools(self) -> list[Any]:
        return [count]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (len, r"to_x\(\) takes a tool .*Put @function_tool on the function first"),
        ("count", r"to_x\(\) takes a tool or several of them, not str"),
        ([len], r"to_x\(\) takes function tools, not builtin"),
        (_Dynamic(), r"known while it runs: give await tools\.get_tools\(\)"),
        ([_Manager()], r"not _Manager\. .*: give tools\.get_tools\(\)"),
        (Nothing, r"not the class Nothing\. Make a tool of it first"),
        ([Agent("Boss", model="test:none")], r"not Agent\. Give agent\.as_tool\(\.\.\.\)"),
        ([count, work.with_(name="count")], r"two tools named 'count'.*policies\.rename"),
    ],
)
def test_what_is_no_tool_is_refused_with_a_remedy(given: Any, message: str) -> None:
    """The mistake is made in our call, and named there, not inside the framework."""
    with pytest.raises(UserError, match=message):
        exported(given, lambda tool: tool.name, "to_x")


# --- a call


async def test_events_come_as_json_in_order_before_the_call_has_ended() -> None:
    """A framework's stream is not thread-safe: everything arrives on the loop of the call."""
    got: list[Any] = []
    threads: set[bool] = set()
    loop = asyncio.get_running_loop()

    def emit(event: dict[str, Any]) -> None:
        threads.add(asyncio.get_running_loop() is loop)
        got.append(event)

    outcome = await called(work, {"steps": 100}, call_id="c1", emit=emit)
    assert outcome.output == "done"
    assert [event["data"] for event in got[1:-1]] == [str(step) for step in range(100)]
    assert [event["seq"] for event in got] == list(range(102))
    assert threads == {True}


async def test_stream_that_fails_does_not_break_the_call(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever listens never breaks a call; that it failed is in the log."""

    def emit(event: dict[str, Any]) -> None:
        raise OSError("the stream is gone")

    assert (await called(count, {"upto": 1}, emit=emit)).output == "counted to 1"
    assert "A stream failed on 'tool_stream_start_event'" in caplog.text


async def test_followed_call_gives_its_events_and_then_how_it_ended() -> None:
    """Frameworks that read a stream of a tool get the same as all others."""
    items = [item async for item in followed(count, '{"upto": 2}', call_id="c1")]
    assert isinstance(items[-1], CallOutcome)
    assert items[-1].output == "counted to 2"
    assert [item["type"] for item in items if isinstance(item, dict)] == [
        "tool_stream_start_event",
        "notify_stream_event",
        "notify_stream_event",
        "tool_stream_end_event",
    ]


async def test_closing_a_followed_call_cancels_it() -> None:
    """A framework that stops reading has stopped the call, and its cleanup has run."""
    cleaned: list[str] = []

    @streaming_tool
    async def endless() -> AsyncIterator[Any]:
        """Go on."""
        try:
            while True:
                yield NotifyStreamEvent("on and on")
                await asyncio.sleep(0)
        finally:
            cleaned.append("yes")

    async with contextlib.aclosing(followed(endless, {})) as items:
        async for item in items:
            assert isinstance(item, dict)
            if item["type"] == "notify_stream_event":
                break
    assert cleaned == ["yes"]


async def test_call_inside_one_of_our_calls_is_heard_there() -> None:
    """A framework between two tools of ours takes nothing away."""
    streamed: list[Any] = []

    @function_tool
    async def outer() -> str:
        """Call another framework."""
        await called(count, {"upto": 1}, call_id="c2", emit=streamed.append)
        async for _ in followed(count, {"upto": 1}, call_id="c3"):
            pass
        return "ok"

    heard: list[Any] = []
    await outer.call(ToolContext(tool_call_id="c1", emit=heard.append), "{}")
    assert [event.path for event in heard if event.type == "notify_stream_event"] == [
        ("c1", "c2"),
        ("c1", "c3"),
    ]
    assert len(streamed) == 3


async def test_listeners_hear_each_event_once() -> None:
    """`listen()` works the same whatever runs the tool."""
    async with listen() as heard:
        await called(count, {"upto": 1}, emit=lambda event: None)
        async for _ in followed(count, {"upto": 1}):
            pass
    assert [event.type for event in heard].count("notify_stream_event") == 2


async def test_tool_that_answers_for_nothing_raises_into_the_framework() -> None:
    """`failure_error_function=None` means the same everywhere."""

    @function_tool(failure_error_function=None)
    def fail() -> str:
        """Fail."""
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await called(fail, {})
    with pytest.raises(OSError, match="no disk"):
        async for _ in followed(fail, {}):
            pass


async def test_arguments_without_a_json_form_are_the_fault_of_the_framework() -> None:
    """Whoever debugs it is told that the tool was never called."""
    with pytest.raises(UserError, match="handed over arguments that have no JSON form"):
        await called(count, {"upto": object()})


@pytest.mark.parametrize(
    ("block", "text", "url"),
    [
        (ToolOutputImage(data=PIXEL), "[image: image/png, 70 bytes]", to_url(PIXEL)),
        (ToolOutputImage(url="https://a.b/c.png"), "[image: at https://a.b/c.png]", "https://a.b/c.png"),
        (ToolOutputImage(file_id="f1"), "[image: f1]", None),
        (ToolOutputImage(url="data:image/png;base64,eA=="), "[image: inline]", "data:image/png;base64,eA=="),
        (
            ToolOutputFileContent(data=b"xy", mime_type="text/csv", filename="a.csv"),
            "[file: a.csv, text/csv, 2 bytes]",
            "data:text/csv;base64,eHk=",
        ),
        (ToolOutputAudio(data=b"x", mime_type="audio/wav"), "[audio: audio/wav, 1 bytes]", "data:audio/wav;base64,eA=="),
    ],
)  # fmt: skip
def test_blocks_that_a_framework_has_no_place_for_are_described(
    block: Any, text: str, url: str | None
) -> None:
    """A model that cannot be shown something is told that it is there."""
    assert described(block) == text
    assert data_url(block) == url
    assert text_of([ToolOutputText("see"), block]) == f"see\n{text}"


# --- their tools


async def _echo(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
    say(context, {"at": "work"}, tag="custom")
    say(context, NotifyStreamEvent("ours"))
    say(context, None)
    return arguments


async def test_tool_of_a_framework_is_called_with_arguments_that_fit() -> None:
    """Its schema is enforced here: it never sees what does not fit."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    tool = incoming(
        framework="Elsewhere", name="echo", description="Echo.", schema=schema, call=_echo
    )
    assert tool.params_json_schema == schema
    assert tool.origin.place == "the Elsewhere tool 'echo'"
    heard: list[Any] = []
    outcome = await tool.call(ToolContext(emit=heard.append), '{"n": 3}')
    assert outcome.output == '{"n":3}'
    assert [(event.data, event.tag) for event in heard[1:-1]] == [
        ('{"at":"work"}', "custom"),
        ("ours", None),
    ]
    for wrong in ('{"n": 0}', "{}", '{"n"', "[]"):
        assert (await tool.call(None, wrong)).status == "invalid_args"


async def test_event_that_went_through_a_framework_as_json_is_an_event_again() -> None:
    """A tool of ours behind a framework behind a tool of ours: nothing becomes a line of JSON."""
    heard: list[Any] = []
    sent: list[Any] = []

    @function_tool
    def progress_there(ctx: ToolContext[Any]) -> str:
        """Report."""
        ctx.progress(1, 2)
        return "ok"

    await called(progress_there, {}, emit=sent.append)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> str:
        say(context, sent[1])
        say(context, {"v": 1, "type": "unheard_of"})
        return "ok"

    tool = incoming(framework="E", name="t", description=None, schema=None, call=call)
    await tool.call(ToolContext(emit=heard.append), "{}")
    assert [event.type for event in heard[1:-1]] == ["tool_progress_event", "notify_stream_event"]


@pytest.mark.parametrize("name", ["langchain", "pydantic_ai", "openai_agents"])
async def test_tool_that_went_to_a_framework_and_back_is_heard_once(name: str) -> None:
    """What it says inside is heard there, and not once more from the stream of the framework."""
    pytest.importorskip("langgraph.graph")  # its stream is there once it is loaded
    there = getattr(agents_tools.export, f"to_{name}")(work)
    tool = getattr(agents_tools.export, f"from_{name}")(there)
    heard: list[Any] = []
    outcome = await tool.call(ToolContext(emit=heard.append), '{"steps": 1}')
    assert outcome.output == "done"
    assert [(event.type, len(event.path)) for event in heard] == [
        ("tool_stream_start_event", 1),
        ("tool_stream_start_event", 2),
        ("notify_stream_event", 2),
        ("tool_stream_end_event", 2),
        ("tool_stream_end_event", 1),
    ]


def test_names_of_other_frameworks_are_made_to_fit() -> None:
    """Some take any text as a name; no provider does."""
    assert fitting_name("search") == "search"
    assert fitting_name("Search the web!") == "Search_the_web"
    assert fitting_name("x" * 80) == "x" * 64
    assert fitting_name("äö") == "tool"


def test_parameters_that_are_no_object_are_refused() -> None:
    """A tool takes arguments by name."""
    with pytest.raises(UserError, match="Elsewhere tool 'x' are no JSON Schema of an object"):
        incoming(
            framework="Elsewhere", name="x", description="", schema={"type": "array"}, call=_echo
        )


def test_media_of_other_frameworks_become_blocks() -> None:
    """Data is data, whether it came as bytes, in base64 or in a URL."""
    png = ToolOutputImage(data=b"x", mime_type="image/png")
    assert media("image", data="eA==", mime_type="image/png") == png
    assert media("image", url="data:image/png;base64,eA==") == png
    assert media("audio", data=b"x", mime_type="audio/wav") == ToolOutputAudio(
        data=b"x", mime_type="audio/wav"
    )
    assert media("file", file_id="f1", filename="a") == ToolOutputFileContent(
        file_id="f1", filename="a"
    )


# --- the door


def test_every_name_of_the_door_is_there_or_says_what_to_install() -> None:
    """What is missing is a framework, and never a puzzle."""
    for name in agents_tools.export.__all__:
        try:
            found = getattr(agents_tools.export, name)
        except UserError as error:
            assert "pip install -U 'agents-tools[" in str(error)  # noqa: PT017 - it may be installed
        else:
            assert found.__name__ == name


def test_help_and_completion_name_what_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """They look at every name: one that only raises would end them."""
    monkeypatch.setitem(
        agents_tools.export._FRAMEWORKS,  # pyright: ignore[reportPrivateUsage]
        "smolagents",
        ("smolagents", "a_framework.that_is_nowhere"),
    )
    assert "to_smolagents" not in dir(agents_tools.export)
    members = dict(inspect.getmembers(agents_tools.export))
    assert {"from_langchain", "to_langchain", "to_mcp"} <= members.keys()


def test_fault_of_ours_is_not_blamed_on_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    """To install it once more would not help."""
    monkeypatch.delitem(sys.modules, "agents_tools.export.langchain", raising=False)
    monkeypatch.setitem(
        sys.modules, "agents_tools.export._approval", ModuleType("agents_tools.export._approval")
    )
    monkeypatch.delitem(vars(agents_tools.export), "to_langchain", raising=False)
    with pytest.raises(ImportError, match="cannot import name 'decided'"):
        _ = agents_tools.export.to_langchain


def test_what_is_not_there_is_an_attribute_error() -> None:
    """`hasattr` and completion work as for any module."""
    assert not hasattr(agents_tools.export, "to_nowhere")
    assert "to_langchain" in dir(agents_tools.export)


def test_the_door_loads_nothing_before_it_is_used() -> None:
    """A program that exports to one provider pays for that one."""
    program = (
        "import sys, agents_tools.export\n"
        "agents_tools.export.to_anthropic\n"
        "heavy = {'agents', 'anthropic', 'langchain_core', 'openai', 'pydantic_ai'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(  # noqa: S603 - a program from here
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_framework_that_is_too_old_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An import that fails inside the framework is no `ImportError` of the user's."""
    monkeypatch.delitem(sys.modules, "agents_tools.export.langchain", raising=False)
    monkeypatch.setitem(sys.modules, "langchain_core.tools", ModuleType("langchain_core.tools"))
    monkeypatch.delitem(vars(agents_tools.export), "to_langchain", raising=False)
    with pytest.raises(UserError, match=r"does not fit .*BaseTool.*agents-tools\[langchain\]"):
        _ = agents_tools.export.to_langchain


@pytest.mark.parametrize(
    ("name", "needed"), [("openai_agents", "agents"), ("pydantic_ai", "pydantic_ai")]
)
def test_a_module_without_its_framework_cannot_be_imported(
    name: str, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the remedy, once; who goes on without it looks for an `ImportError`."""
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"agents_tools.export.{name}", raising=False)
    monkeypatch.delitem(vars(agents_tools.export), f"to_{name}", raising=False)
    with pytest.raises(ImportError) as direct:
        importlib.import_module(f"agents_tools.export.{name}")
    assert isinstance(direct.value, UserError)
    with pytest.raises(UserError) as door:
        getattr(agents_tools.export, f"to_{name}")
    for told in (str(direct.value), str(door.value)):
        assert told.count("pip install -U 'agents-tools[") == 1


def test_context_of_the_application_is_given_on() -> None:
    """A plain wrapper is enough to call a tool that asks for its context."""

    @function_tool
    def who(ctx: RunContextWrapper[Any]) -> str:
        """Say who."""
        return str(ctx.context)

    async def run() -> Any:
        return (await called(who, {}, context="Ann")).output

    assert asyncio.run(run()) == "Ann"
