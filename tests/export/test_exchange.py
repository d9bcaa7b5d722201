"""Test the code shared by all framework adapters: exporting our tools and importing others."""

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
from agents_tools._package import MissingDependency
from agents_tools.export._export_tool import (
    as_text,
    call_tool,
    data_url,
    describe_block,
    export_tools,
    stream_call,
)
from agents_tools.export._import_tool import (
    forward_event,
    import_tool,
    media_block,
    valid_tool_name,
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
    """Have no parameters."""

    name = "nothing"


class Nothing(BaseTool):
    """A tool that is a class."""

    params_class = _Params

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        return "nothing", {}


# --- exporting tools


def test_one_tool_returns_one_object_and_several_return_a_list() -> None:
    """The result has the shape of the argument."""
    assert export_tools(count, lambda tool: tool.name, "to_x") == "count"
    assert export_tools([count], lambda tool: tool.name, "to_x") == ["count"]
    assert export_tools((count, [work, Nothing()]), lambda tool: tool.name, "to_x") == [
        "count",
        "work",
        "nothing",
    ]
    assert export_tools(Nothing(), lambda tool: tool.name, "to_x") == "nothing"


def test_a_toolset_counts_as_several_tools() -> None:
    """Adapters accept the same values as agents of this library."""
    tools = Toolset(count, [work]).prefix("my_")
    assert export_tools(tools, lambda tool: tool.name, "to_x") == ["my_count", "my_work"]
    with pytest.raises(UserError, match="get_tools"):
        export_tools(Toolset(count, _Dynamic()), lambda tool: tool.name, "to_x")


def test_disabled_tools_are_not_exported() -> None:
    """A framework cannot represent a tool that is not offered."""
    off = work.with_(is_enabled=False)
    assert export_tools([count, off], lambda tool: tool.name, "to_x") == ["count"]


class _Dynamic:
    async def get_tools(self) -> list[Any]:
        return [count]


class _Manager:
    def get_tools(self) -> list[Any]:
        return [count]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (len, r"to_x\(\) expects a tool .*Decorate the function with @function_tool first"),
        ("count", r"to_x\(\) expects a tool or several of them, got str"),
        ([len], r"to_x\(\) expects function tools, got builtin"),
        (_Dynamic(), r"only known at run time: pass await tools\.get_tools\(\)"),
        ([_Manager()], r"got _Manager\. .*: pass tools\.get_tools\(\)"),
        (Nothing, r"got the class Nothing\. Create an instance first"),
        ([Agent("Boss", model="test:none")], r"got Agent\. Pass agent\.as_tool\(\.\.\.\)"),
        ([count, work.with_(name="count")], r"two tools named 'count'.*policies\.rename"),
    ],
)
def test_an_invalid_tool_is_refused_with_a_remedy(given: Any, message: str) -> None:
    """The error is raised by our function and not inside the framework."""
    with pytest.raises(UserError, match=message):
        export_tools(given, lambda tool: tool.name, "to_x")


# --- calling tools


async def test_events_arrive_as_json_in_order_before_the_call_ends() -> None:
    """Streams of frameworks are not thread-safe, so all events arrive on the loop of the call."""
    got: list[Any] = []
    threads: set[bool] = set()
    loop = asyncio.get_running_loop()

    def emit(event: dict[str, Any]) -> None:
        threads.add(asyncio.get_running_loop() is loop)
        got.append(event)

    outcome = await call_tool(work, {"steps": 100}, call_id="c1", emit=emit)
    assert outcome.output == "done"
    assert [event["data"] for event in got[1:-1]] == [str(step) for step in range(100)]
    assert [event["seq"] for event in got] == list(range(102))
    assert threads == {True}


async def test_an_emit_function_that_fails_does_not_break_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An observer must never affect a call; its failure is logged."""

    def emit(event: dict[str, Any]) -> None:
        raise OSError("the stream is gone")

    assert (await call_tool(count, {"upto": 1}, emit=emit)).output == "counted to 1"
    assert "stream raised an error for the event 'tool_stream_start_event'" in caplog.text


async def test_a_followed_call_yields_its_events_and_then_its_outcome() -> None:
    """Frameworks that read a stream of a tool get the same events as others."""
    items = [item async for item in stream_call(count, '{"upto": 2}', call_id="c1")]
    assert isinstance(items[-1], CallOutcome)
    assert items[-1].output == "counted to 2"
    assert [item["type"] for item in items if isinstance(item, dict)] == [
        "tool_stream_start_event",
        "notify_stream_event",
        "notify_stream_event",
        "tool_stream_end_event",
    ]


async def test_closing_a_followed_call_cancels_it() -> None:
    """When the framework stops reading, the call is cancelled and its cleanup has run."""
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

    async with contextlib.aclosing(stream_call(endless, {})) as items:
        async for item in items:
            assert isinstance(item, dict)
            if item["type"] == "notify_stream_event":
                break
    assert cleaned == ["yes"]


async def test_a_call_inside_another_call_publishes_its_events_there() -> None:
    """A framework between two tools of this library must not lose events."""
    streamed: list[Any] = []

    @function_tool
    async def outer() -> str:
        """Call another framework."""
        await call_tool(count, {"upto": 1}, call_id="c2", emit=streamed.append)
        async for _ in stream_call(count, {"upto": 1}, call_id="c3"):
            pass
        return "ok"

    received: list[Any] = []
    await outer.call(ToolContext(tool_call_id="c1", emit=received.append), "{}")
    assert [event.path for event in received if event.type == "notify_stream_event"] == [
        ("c1", "c2"),
        ("c1", "c3"),
    ]
    assert len(streamed) == 3


async def test_listeners_receive_each_event_once() -> None:
    """`listen()` works the same in every framework."""
    async with listen() as received:
        await call_tool(count, {"upto": 1}, emit=lambda event: None)
        async for _ in stream_call(count, {"upto": 1}):
            pass
    assert [event.type for event in received].count("notify_stream_event") == 2


async def test_a_tool_without_failure_error_function_raises_into_the_framework() -> None:
    """`failure_error_function=None` means the same everywhere."""

    @function_tool(failure_error_function=None)
    def fail() -> str:
        """Fail."""
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await call_tool(fail, {})
    with pytest.raises(OSError, match="no disk"):
        async for _ in stream_call(fail, {}):
            pass


async def test_arguments_without_a_json_form_raise_an_error_of_the_framework() -> None:
    """The error says that the tool was not called."""
    with pytest.raises(UserError, match="from the framework cannot be converted to JSON"):
        await call_tool(count, {"upto": object()})


@pytest.mark.parametrize(
    ("block", "text", "url"),
    [
        (ToolOutputImage(data=PIXEL), "[image: image/png, 70 bytes]", to_url(PIXEL)),
        (ToolOutputImage(url="https://a.b/c.png"), "[image: at https://a.b/c.png]", "https://a.b/c.png"),
        (ToolOutputImage(file_id="f1"), "[image: f1]", None),
        (ToolOutputImage(url="data:image/png;base64,eA=="), "[image: image/png, 1 bytes]", "data:image/png;base64,eA=="),
        (
            ToolOutputFileContent(data=b"xy", mime_type="text/csv", filename="a.csv"),
            "[file: a.csv, text/csv, 2 bytes]",
            "data:text/csv;base64,eHk=",
        ),
        (ToolOutputAudio(data=b"x", mime_type="audio/wav"), "[audio: audio/wav, 1 bytes]", "data:audio/wav;base64,eA=="),
    ],
)  # fmt: skip
def test_blocks_that_a_framework_cannot_represent_are_described(
    block: Any, text: str, url: str | None
) -> None:
    """The model learns that a block exists that it cannot see."""
    assert describe_block(block) == text
    assert data_url(block) == url
    assert as_text([ToolOutputText("see"), block]) == f"see\n{text}"


# --- tools of other frameworks


async def _echo(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
    forward_event(context, {"at": "work"}, tag="custom")
    forward_event(context, NotifyStreamEvent("ours"))
    forward_event(context, None)
    return arguments


async def test_a_foreign_tool_is_called_only_with_valid_arguments() -> None:
    """Its schema is enforced before the call."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    tool = import_tool(
        framework="Elsewhere", name="echo", description="Echo.", schema=schema, call=_echo
    )
    assert tool.params_json_schema == schema
    assert tool.origin.place == "the Elsewhere tool 'echo'"
    received: list[Any] = []
    outcome = await tool.call(ToolContext(emit=received.append), '{"n": 3}')
    assert outcome.output == '{"n":3}'
    assert [(event.data, event.tag) for event in received[1:-1]] == [
        ('{"at":"work"}', "custom"),
        ("ours", None),
    ]
    for wrong in ('{"n": 0}', "{}", '{"n"', "[]"):
        assert (await tool.call(None, wrong)).status == "invalid_args"


async def test_an_event_passed_through_a_framework_as_json_is_restored() -> None:
    """Nested through a framework, an event of our tool must not become a line of JSON."""
    received: list[Any] = []
    sent: list[Any] = []

    @function_tool
    def progress_there(ctx: ToolContext[Any]) -> str:
        """Report."""
        ctx.progress(1, 2)
        return "ok"

    await call_tool(progress_there, {}, emit=sent.append)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> str:
        forward_event(context, sent[1])
        forward_event(context, {"v": 1, "type": "unheard_of"})
        return "ok"

    tool = import_tool(framework="E", name="t", description=None, schema=None, call=call)
    await tool.call(ToolContext(emit=received.append), "{}")
    assert [event.type for event in received[1:-1]] == [
        "tool_progress_event",
        "notify_stream_event",
    ]


@pytest.mark.parametrize("name", ["langchain", "pydantic_ai", "openai_agents"])
async def test_events_of_a_tool_exported_and_imported_again_are_published_once(name: str) -> None:
    """They must not appear a second time from the stream of the framework."""
    pytest.importorskip("langgraph.graph")  # its stream exists once it is imported
    there = getattr(agents_tools.export, f"to_{name}")(work)
    tool = getattr(agents_tools.export, f"from_{name}")(there)
    received: list[Any] = []
    outcome = await tool.call(ToolContext(emit=received.append), '{"steps": 1}')
    assert outcome.output == "done"
    assert [(event.type, len(event.path)) for event in received] == [
        ("tool_stream_start_event", 1),
        ("tool_stream_start_event", 2),
        ("notify_stream_event", 2),
        ("tool_stream_end_event", 2),
        ("tool_stream_end_event", 1),
    ]


def test_names_of_foreign_tools_are_made_valid() -> None:
    """Some frameworks accept any text as a name, but no provider does."""
    assert valid_tool_name("search") == "search"
    assert valid_tool_name("Search the web!") == "Search_the_web"
    assert valid_tool_name("x" * 80) == "x" * 64
    assert valid_tool_name("äö") == "tool"


def test_parameters_that_are_not_an_object_are_refused() -> None:
    """A tool takes arguments by name."""
    with pytest.raises(UserError, match=r"Elsewhere tool 'x' has an unsupported schema: .*'array'"):
        import_tool(
            framework="Elsewhere", name="x", description="", schema={"type": "array"}, call=_echo
        )


def test_media_of_other_frameworks_become_blocks() -> None:
    """The data can be bytes, base64 or a data URL."""
    png = ToolOutputImage(data=b"x", mime_type="image/png")
    assert media_block("image", data="eA==", mime_type="image/png") == png
    assert media_block("image", url="data:image/png;base64,eA==") == png
    assert media_block("audio", data=b"x", mime_type="audio/wav") == ToolOutputAudio(
        data=b"x", mime_type="audio/wav"
    )
    assert media_block("file", file_id="f1", filename="a") == ToolOutputFileContent(
        file_id="f1", filename="a"
    )


# --- lazy imports


def test_each_name_is_importable_or_names_the_missing_package() -> None:
    for name in agents_tools.export.__all__:
        found = getattr(agents_tools.export, name)
        if isinstance(found, MissingDependency):
            with pytest.raises(UserError, match=r"pip install -U 'agents-tools\["):
                found()
        else:
            assert found.__name__ == name


def test_help_and_completion_work_without_a_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both look up every name, so a name that raises would break them."""
    monkeypatch.setitem(sys.modules, "smolagents", None)
    monkeypatch.delitem(sys.modules, "agents_tools.export.smolagents", raising=False)
    monkeypatch.delitem(vars(agents_tools.export), "to_smolagents", raising=False)
    members = dict(inspect.getmembers(agents_tools.export))
    assert {"from_langchain", "to_langchain", "to_mcp"} <= members.keys()
    assert "pip install -U 'agents-tools[smolagents]'" in repr(members["to_smolagents"])


def test_an_internal_error_is_not_blamed_on_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reinstalling the framework would not help."""
    monkeypatch.delitem(sys.modules, "agents_tools.export.langchain", raising=False)
    monkeypatch.setitem(
        sys.modules, "agents_tools.export._approval", ModuleType("agents_tools.export._approval")
    )
    monkeypatch.delitem(vars(agents_tools.export), "to_langchain", raising=False)
    with pytest.raises(ImportError, match="cannot import name 'is_approval'"):
        _ = agents_tools.export.to_langchain


def test_an_unknown_name_raises_attribute_error() -> None:
    """`hasattr` and completion work as for any module."""
    assert not hasattr(agents_tools.export, "to_nowhere")
    assert "to_langchain" in dir(agents_tools.export)


def test_importing_the_module_loads_no_framework() -> None:
    """A program that exports to one provider must not load the others."""
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


def test_an_old_framework_version_is_named_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The import error inside the framework would not explain the cause."""
    monkeypatch.delitem(sys.modules, "agents_tools.export.langchain", raising=False)
    monkeypatch.setitem(sys.modules, "langchain_core.tools", ModuleType("langchain_core.tools"))
    monkeypatch.delitem(vars(agents_tools.export), "to_langchain", raising=False)
    with pytest.raises(UserError, match=r"another version .*BaseTool.*agents-tools\[langchain\]"):
        agents_tools.export.to_langchain([])


@pytest.mark.parametrize(
    ("name", "needed"), [("openai_agents", "agents"), ("pydantic_ai", "pydantic_ai")]
)
def test_a_module_without_its_framework_raises_import_error(
    name: str, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the remedy; programs with an optional framework catch `ImportError`."""
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"agents_tools.export.{name}", raising=False)
    monkeypatch.delitem(vars(agents_tools.export), f"to_{name}", raising=False)
    with pytest.raises(ImportError) as direct:
        importlib.import_module(f"agents_tools.export.{name}")
    assert isinstance(direct.value, UserError)
    with pytest.raises(UserError) as lazy:
        getattr(agents_tools.export, f"to_{name}")([])
    for message in (str(direct.value), str(lazy.value)):
        assert message.count("pip install -U 'agents-tools[") == 1


def test_the_context_of_the_application_is_passed_on() -> None:
    """A plain wrapper is enough to call a tool that asks for its context."""

    @function_tool
    def who(ctx: RunContextWrapper[Any]) -> str:
        """Say who."""
        return str(ctx.context)

    async def run() -> Any:
        return (await call_tool(who, {}, context="Ann")).output

    assert asyncio.run(run()) == "Ann"
