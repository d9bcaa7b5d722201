"""`MCPTool`: one tool over an existing connection of this library or of the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, Literal

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from agents_tools import (
    Agent,
    FunctionTool,
    RunConfig,
    Runner,
    ToolCallOutputItem,
    ToolOutputImage,
    ToolProgressEvent,
    UserError,
)
from agents_tools.errors import (
    MCPConnectionError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
    UserTypeError,
    UserValueError,
)
from agents_tools.mcp import MCPTool, MCPToolError, MCPToolManager
from agents_tools.policies import limit
from agents_tools.testing import ScriptedModel, call_tool, tool_call
from tests.mcp.small import LINE, NOTHING, NUMBERS, TEXT, Small, program
from tests.scale import slow_case

BOUND = 45.0
"""Seconds after which a wait counts as endless."""
STEPS = {"type": "object", "properties": {"n": {"type": "integer"}}}


@contextlib.asynccontextmanager
async def managed(ask: Literal[True] | None = None, **connection: Any) -> AsyncGenerator[Any]:
    """Yield the connection of a manager to the server `box`."""
    async with MCPToolManager(ask=ask) as manager:
        await manager.add_server("box", **connection)
        yield manager.get_connection("box")


@contextlib.asynccontextmanager
async def in_session(small: Small) -> AsyncGenerator[Any]:
    """Yield a session of the SDK with a server in this process."""
    if LINE > 1:
        opened: Any = mcp.Client(small.server)
    else:
        memory: Any = importlib.import_module("mcp.shared.memory")
        opened = memory.create_connected_server_and_client_session(small.server)
    async with opened as session:
        yield session


@contextlib.asynccontextmanager
async def in_stdio_session(*args: str) -> AsyncGenerator[Any]:
    """Yield a session of the SDK with a program."""
    started = program(*args)
    parameters = StdioServerParameters(command=started["command"], args=started["args"])
    async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def reached(way: str) -> AsyncGenerator[Any]:
    ways: dict[str, Any] = {
        "our own, in memory": lambda: managed(server=Small().server),
        "our own, stdio": lambda: managed(**program()),
        "a session, in memory": lambda: in_session(Small()),
        "a session, stdio": in_stdio_session,
    }
    async with asyncio.timeout(BOUND), ways[way]() as connection:
        yield connection


WAYS = pytest.mark.parametrize(
    "way",
    [
        "our own, in memory",
        slow_case("our own, stdio"),
        "a session, in memory",
        slow_case("a session, stdio"),
    ],
)


def named(connection: Any, name: str, schema: dict[str, Any] = NOTHING) -> MCPTool:
    return MCPTool(connection, f"box_{name}", f"Do {name}.", schema, name)


# --- calls


@pytest.mark.requirement("C26", "C27", "C28")
@WAYS
async def test_it_calls_one_tool(way: str) -> None:
    """The model uses its own name for the tool, the server another."""
    async with reached(way) as connection:
        add = named(connection, "add", NUMBERS)
        assert isinstance(add, FunctionTool)
        assert (add.name, add.description, add.json_schema) == ("box_add", "Do add.", NUMBERS)
        result = await add.invoke(a=1, b=2)
        assert (result.content, result.structured) == ("3", {"sum": 3})
        assert (add.origin.kind, add.origin.wire_name) == ("mcp", "add")
        assert add.origin.server in {"box", "small", "session"}
        assert add.origin.server != "session" or LINE == 1
        assert add.loop is asyncio.get_running_loop()


@pytest.mark.requirement("C26")
@WAYS
async def test_errors_are_reported_as_for_other_server_tools(way: str) -> None:
    """Arguments are validated first; the error text of the tool goes to the model."""
    async with reached(way) as connection:
        refused = (await call_tool(named(connection, "add", NUMBERS), {"a": "x"})).outcome
        assert refused.status == "invalid_args"
        failed = (await call_tool(named(connection, "fail"), {})).outcome
        assert (failed.status, failed.output) == ("tool_error", "The shelf is empty.")
        assert isinstance(failed.error, MCPToolError)


@pytest.mark.requirement("C26")
@WAYS
async def test_server_progress_becomes_progress_events(way: str) -> None:
    """The events belong to the call."""
    async with reached(way) as connection:
        seen = await call_tool(named(connection, "steps", STEPS), {"n": 2})
        told = [one for one in seen.events if isinstance(one, ToolProgressEvent)]
        assert [(one.current, one.total, one.message) for one in told] == [
            (1, 2, "step 1"),
            (2, 2, "step 2"),
        ]
        assert {one.tool_name for one in told} == {"box_steps"}


@pytest.mark.requirement("C26")
@WAYS
async def test_an_agent_can_use_it_with_policies(way: str) -> None:
    async with reached(way) as connection:
        echo = limit(calls=1)(named(connection, "echo", TEXT))
        assert isinstance(echo, MCPTool)
        model = ScriptedModel(
            [tool_call("box_echo", text="hi"), tool_call("box_echo", text="hi"), "Done."]
        )
        result = await Runner.run(Agent("helper", tools=[echo], model=model), "Say hi.")
        first, second = [
            one.output for one in result.new_items if isinstance(one, ToolCallOutputItem)
        ]
        assert first == "hi"
        assert "can be called once" in str(second)


@pytest.mark.requirement("C28")
@WAYS
async def test_it_can_be_called_from_a_thread(way: str) -> None:
    """A connection belongs to a loop; calls from other threads run on it."""
    async with reached(way) as connection:
        echo = named(connection, "echo", TEXT)
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(echo.invoke_sync(text="hi").content))
        thread.start()
        await asyncio.to_thread(thread.join, BOUND)
        assert seen == ["hi"]


@pytest.mark.requirement("C26")
@pytest.mark.parametrize("ours", [True, False])
async def test_a_cancelled_call_is_cancelled_at_the_server(ours: bool) -> None:
    """The server must not work for a caller that has left."""
    small = Small()
    opened = managed(server=small.server) if ours else in_session(small)
    async with asyncio.timeout(BOUND), opened as connection:
        call = asyncio.ensure_future(named(connection, "hang").invoke())
        await small.began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        if ours or LINE > 1:  # SDK version 1 leaves that to the canceller
            await small.cancelled.wait()


@pytest.mark.requirement("C26")
@pytest.mark.parametrize("ours", [True, False])
async def test_a_call_of_a_server_that_dies_is_lost(ours: bool, tmp_path: Any) -> None:
    """Its outcome is unknown."""
    path = str(tmp_path / "died")
    opened: Any = managed(**program(path)) if ours else in_stdio_session(path)
    async with asyncio.timeout(BOUND), opened as connection:
        outcome = (await call_tool(named(connection, "once"), {})).outcome
        assert outcome.status == "lost"
        assert isinstance(outcome.error, ToolLostError)


@pytest.mark.requirement("C26")
async def test_a_question_of_the_server_reaches_the_run() -> None:
    """It works over a connection of this library in both eras."""

    async def ask(_question: Any) -> dict[str, Any]:
        return {"size": 3}

    async with asyncio.timeout(BOUND), managed(server=Small().server, ask=True) as connection:
        model = ScriptedModel([tool_call("box_ask"), "Done."])
        agent = Agent("helper", tools=[named(connection, "ask")], model=model)
        result = await Runner.run(agent, "Ask.", run_config=RunConfig(ask=ask))
        outputs = [one.output for one in result.new_items if isinstance(one, ToolCallOutputItem)]
        assert outputs == ["accept {'size': 3}"]


@pytest.mark.requirement("C26")
async def test_the_manager_answers_questions_outside_a_run() -> None:
    """The handler is the same as for the manager's own tools."""

    async def ask(_question: Any) -> dict[str, Any]:
        return {"size": 4}

    async with asyncio.timeout(BOUND), MCPToolManager(ask=ask) as manager:
        await manager.add_server("box", server=Small().server)
        tool = named(manager, "ask")  # of its only server
        assert (await tool.invoke()).content == "accept {'size': 4}"
        await manager.remove_server("box")
        outcome = (await call_tool(tool, {})).outcome
        assert isinstance(outcome.error, MCPConnectionError)


# --- names and descriptions


def session(call: Any = None, **more: Any) -> Any:
    async def answer(name: str, arguments: dict[str, Any]) -> Any:
        return {"content": [{"type": "text", "text": f"{name} {arguments}"}]}

    return SimpleNamespace(call_tool=call or answer, **more)


@pytest.mark.requirement("C27")
async def test_names_are_shortened_and_mapped_to_the_server_names() -> None:
    """At most 64 characters that every provider accepts; the server gets its own name."""
    tool = MCPTool(session(), "files/read.text", "Read.", NOTHING)
    assert (tool.name, tool.origin.wire_name) == ("files_read_text", "files/read.text")
    assert (await tool.invoke()).content == "files/read.text {}"
    long = [MCPTool(session(), "x" * 70 + end, "", NOTHING) for end in ("a", "b")]
    assert all(len(one.name) == 64 for one in long)
    assert long[0].name != long[1].name
    named_too = MCPTool(session(), "read", "", NOTHING, remote_tool_name="a b")
    assert (named_too.name, named_too.origin.wire_name) == ("read", "a b")


@pytest.mark.requirement("C26")
def test_hidden_text_is_removed_from_the_description(caplog: pytest.LogCaptureFixture) -> None:
    """It often comes from an untrusted server."""
    tool = MCPTool(session(), "read", "Read.\u200b\U000e0041", NOTHING)
    assert tool.description == "Read."
    assert "MCPTool 'read': description: removed invisible characters" in caplog.text


@pytest.mark.requirement("C28")
def test_the_server_is_named_by_its_session() -> None:
    """The name is used if the session knows it."""
    info = SimpleNamespace(name="shop\u200b")
    assert MCPTool(session(server_info=info), "read", "", NOTHING).origin.server == "shop"
    assert MCPTool(session(), "read", "", NOTHING).origin.server == "session"


@pytest.mark.requirement("C26")
@pytest.mark.parametrize(
    ("parts", "kind", "text"),
    [
        ({"mcp_connection": object()}, UserTypeError, "get_connection(name), or an open session"),
        ({"mcp_connection": MCPToolManager()}, UserValueError, "got servers: none"),
        ({"tool_name": " "}, UserTypeError, "expects a non-empty string"),
        ({"tool_name": 3}, UserTypeError, "expects a non-empty string"),
        ({"tool_description": 3}, UserTypeError, "tool_description expects a string"),
        ({"input_schema": None}, UserTypeError, "input_schema expects a JSON Schema"),
        ({"input_schema": {"type": "string"}}, UserValueError, "MCPTool 'read' is invalid"),
        ({"input_schema": {"type": "object", "properties": 3}}, UserError, "read"),
        ({"remote_tool_name": "a\u200bb"}, UserValueError, "its name"),
    ],
)
def test_an_invalid_tool_is_rejected_on_creation(
    parts: dict[str, Any], kind: type[Exception], text: str
) -> None:
    """The error must not come in the middle of a run."""
    whole: dict[str, Any] = {
        "mcp_connection": session(),
        "tool_name": "read",
        "tool_description": "Read.",
        "input_schema": NOTHING,
        **parts,
    }
    with pytest.raises(kind) as caught:
        MCPTool(**whole)
    assert text in str(caught.value)


@pytest.mark.requirement("C26")
@pytest.mark.skipif(LINE < 2, reason="SDK 1.x has no such client")
def test_a_client_that_is_not_open_is_rejected() -> None:
    """The error has a remedy."""
    with pytest.raises(UserError, match=r"is not open\. Enter it first"):
        MCPTool(mcp.Client(Small().server), "read", "", NOTHING)


# --- SDK sessions


class FakeMcpError(Exception):  # as in both versions of the SDK
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = SimpleNamespace(code=code, message=message)


class ClosedResourceError(Exception):
    """An exception with the name of the one in the library below the SDK."""


@pytest.mark.requirement("C26")
@pytest.mark.parametrize(
    ("raised", "status", "kind"),
    [
        (FakeMcpError(-32602, "no such tool"), "tool_error", MCPProtocolError),
        (FakeMcpError(-32001, "timed out"), "timeout", MCPTimeoutError),
        (FakeMcpError(408, "timed out"), "timeout", MCPTimeoutError),
        (TimeoutError(), "timeout", MCPTimeoutError),
        (FakeMcpError(-32000, "Connection closed"), "lost", ToolLostError),
        (ConnectionResetError(), "lost", ToolLostError),
        (ClosedResourceError(), "tool_error", MCPConnectionError),
        (RuntimeError("structured content"), "tool_error", MCPProtocolError),
        (ValueError("no result"), "tool_error", MCPProtocolError),
        (KeyError("a mistake"), "tool_error", KeyError),
    ],
)
async def test_errors_of_a_session_become_errors_of_this_library(
    raised: Exception, status: str, kind: type[Exception]
) -> None:
    """Error handling does not depend on the kind of connection."""

    async def fail(_name: str, _arguments: Any) -> Any:
        raise raised

    outcome = (await call_tool(named(session(fail), "read"), {})).outcome
    assert outcome.status == status
    error: BaseException | None = outcome.error
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    assert isinstance(error, kind)


@pytest.mark.requirement("C26")
async def test_content_of_a_session_is_converted() -> None:
    """Images stay images; an invalid result is an error."""
    data = {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}

    async def picture(_name: str, _arguments: Any) -> Any:
        return mcp.types.CallToolResult.model_validate(data)

    async def nothing(_name: str, _arguments: Any) -> Any:
        return None

    shown = await named(session(picture), "look").invoke()
    assert shown.content == [ToolOutputImage(data=b"hi", mime_type="image/png")]
    outcome = (await call_tool(named(session(nothing), "look"), {})).outcome
    assert isinstance(outcome.error, MCPProtocolError)


@pytest.mark.requirement("C28")
def test_a_session_whose_loop_has_ended_raises_an_error() -> None:
    """The call must not wait forever."""

    async def make() -> MCPTool:
        return named(session(), "read")

    tool = asyncio.run(make())
    with pytest.raises(MCPConnectionError, match="belongs to an event loop that is not running"):
        tool.invoke_sync()


@pytest.mark.requirement("C28")
def test_a_session_belongs_to_the_loop_of_the_first_call() -> None:
    """This holds if it was created outside of any loop."""
    tool = named(session(), "read")
    assert tool.loop is None
    assert tool.invoke_sync().content == "read {}"
    assert tool.loop is not None
