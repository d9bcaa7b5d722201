"""The MCP server of this library, with SDK clients and with clients that break the protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib
import json
import logging
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import mcp as sdk
import psutil
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from agents_tools import (
    FunctionTool,
    NotifyStreamEvent,
    ToolContext,
    ToolError,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    ToolResult,
    function_tool,
    get_default_tools,
    streaming_tool,
)
from agents_tools.errors import UserError
from agents_tools.mcp import mcp_server, serve, serve_async
from agents_tools.mcp.server import MCPApp, MCPRequest
from agents_tools.mcp.server.client_states import ClientStates
from agents_tools.server.http_security import Principal
from tests.mcp.peers import listening as program_listening, own_server_command
from tests.mcp.served import wait as wait_in
from tests.mcp.small import LINE, listening
from tests.scale import IS_FULL, slow_case
from tests.waiting import comes, until

mcp: Any = sdk
httpx: Any = importlib.import_module("httpx" if LINE == 1 else "httpx2")

SdkError: type[Exception] = mcp.McpError if LINE == 1 else mcp.MCPError

BOUND = 45.0
"""Seconds after which a wait counts as endless."""
LEGACY, MODERN = "2025-11-25", "2026-07-28"
NEEDS_TWO = pytest.mark.skipif(LINE < 2, reason="SDK 1.x supports one protocol era")
ERAS = pytest.mark.parametrize("era", [LEGACY, pytest.param(MODERN, marks=NEEDS_TWO)])
CANARY = "hunter2-canary-of-some-length"

Tool = FunctionTool[..., Any]
Answer = dict[str, Any]


# --- tools


class Shelf(BaseModel):
    name: str
    boxes: int


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@function_tool
def shelf(name: str) -> Shelf:
    """Look at a shelf."""
    return Shelf(name=name, boxes=len(name))


@function_tool
def words() -> str:
    """Say something."""
    return "hello"


@function_tool
def echo(payload: str) -> dict[str, str]:
    """Give back what came."""
    return {"payload": payload}


@function_tool
def nothing() -> None:
    """Do nothing."""


@function_tool
def fail() -> str:
    """Fail with what is nobody's business."""
    raise RuntimeError(CANARY)


@function_tool
def refuse() -> str:
    """Fail with words for the model."""
    raise ToolError("The kettle is empty.")


@function_tool
def pieces() -> ToolResult:
    """Give one of each kind."""
    return ToolResult(
        content=[
            ToolOutputText("one of each"),
            ToolOutputImage(data=b"\x89PNG", mime_type="image/png"),
            ToolOutputAudio(data=b"RIFF", mime_type="audio/wav"),
            ToolOutputFileContent(data=b"\x00", mime_type="application/x-tea", filename="tea"),
            ToolOutputFileContent(data=b"leaves", mime_type="text/plain", filename="tea.txt"),
            ToolOutputImage(url="https://there.example/a.png"),
        ],
        structured={"kinds": 6},
        metadata={"_meta": {"mine": 1}, "secret": CANARY},
    )


@streaming_tool
async def steps(n: int) -> AsyncGenerator[Any]:
    """Say how far it is."""
    for number in range(1, n + 1):
        yield NotifyStreamEvent(f"note {number}")
        yield ToolProgressEvent(number, total=n, message=f"step {number}")
    yield ToolProgressEvent(n, total=n, message="the same again")
    yield f"{n} steps"


@function_tool
def noisy() -> str:
    """Print."""
    print("a line of its own")  # noqa: T201 - that is the point
    os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n')
    return "printed"


TOOLS: list[Tool] = [
    add, echo, fail, noisy, nothing, pieces, refuse, shelf, steps, words,
]  # fmt: skip


# --- clients


class Refused(Exception):  # noqa: N818 - what the server said, told apart from errors of a test
    """The server answered with an error."""

    def __init__(self, error: Any) -> None:
        told = getattr(error, "error", error)
        super().__init__(told.message)
        self.code: int = told.code


class Client:
    """A client of the SDK, in either line: plain JSON in and out."""

    def __init__(self, session: Any, version: str) -> None:
        self.session = session
        self.version = version

    async def _asked(self, made: Any) -> Answer:
        try:
            result = await made
        except SdkError as error:
            raise Refused(error) from None
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def list(self, cursor: str | None = None) -> Answer:
        return await self._asked(self.session.list_tools(cursor=cursor))

    async def call(self, name: str, arguments: Answer | None = None, **options: Any) -> Answer:
        return await self._asked(self.session.call_tool(name, arguments or {}, **options))

    async def text(self, name: str, **arguments: Any) -> str:
        (block,) = (await self.call(name, arguments))["content"]
        return block["text"]


@contextlib.asynccontextmanager
async def client(
    target: Any, era: str, headers: dict[str, str] | None = None, **options: Any
) -> AsyncGenerator[Client]:
    """Connect a client to an app in memory, an address, or a command."""
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(target, str) and (LINE == 1 or headers):
            module: Any = importlib.import_module("mcp.client.streamable_http")
            http = await stack.enter_async_context(httpx.AsyncClient(headers=headers or {}))
            target = module.streamable_http_client(target, http_client=http)
        elif isinstance(target, list):
            module = importlib.import_module("mcp.client.stdio")
            program, *args = target
            target = module.stdio_client(mcp.StdioServerParameters(command=program, args=args))
        elif isinstance(target, MCPApp):
            target = target._server.server
        if LINE > 1:
            mode = "legacy" if era < MODERN else MODERN
            session = await stack.enter_async_context(mcp.Client(target, mode=mode, **options))
            yield Client(session, session.protocol_version)
        elif hasattr(target, "request_handlers"):
            memory: Any = importlib.import_module("mcp.shared.memory")
            connected = memory.create_connected_server_and_client_session(target, **options)
            yield Client(await stack.enter_async_context(connected), LEGACY)
        else:
            transport: Any = target
            read, write, *_ = await stack.enter_async_context(transport)
            made = mcp.ClientSession(read, write, **options)
            session = await stack.enter_async_context(made)
            yield Client(session, (await session.initialize()).protocolVersion)


@contextlib.asynccontextmanager
async def serving(tools: Any = None, **options: Any) -> AsyncGenerator[str]:
    """Serve tools over HTTP in this process, and give the address."""
    app = mcp_server(TOOLS if tools is None else tools, **options)
    async with listening(app) as address:
        yield f"{address}/mcp"


@contextlib.asynccontextmanager
async def reached(how: str, era: str, tools: Any = None, **options: Any) -> AsyncGenerator[Client]:
    """Serve tools in memory or over HTTP, and connect a client."""
    async with asyncio.timeout(BOUND), contextlib.AsyncExitStack() as stack:
        if how == "memory":
            target: Any = mcp_server(TOOLS if tools is None else tools, **options)
        else:
            sessions = {"stateless": how == "http", **options}
            target = await stack.enter_async_context(serving(tools, **sessions))
        yield await stack.enter_async_context(client(target, era))


HOWS = pytest.mark.parametrize("how", ["memory", "http", "sessions"])


# --- tool lists and calls


@HOWS
@ERAS
async def test_tools_are_listed_and_called(how: str, era: str) -> None:
    """The tools behave the same in both eras, with and without sessions."""
    async with reached(how, era) as one:
        assert one.version == era
        assert [tool["name"] for tool in (await one.list())["tools"]] == [t.name for t in TOOLS]
        assert (await one.call("words"))["content"] == [{"type": "text", "text": "hello"}]
        assert await one.text("add", a=1) == "2"
        assert await one.text("add", a=1, b=2) == "3"
        assert (await one.call("nothing")).get("isError", False) is False


@ERAS
async def test_a_program_serves_tools_on_stdin_and_stdout(era: str) -> None:
    async with asyncio.timeout(BOUND), client(own_server_command("stdio"), era) as one:
        assert "add" in {tool["name"] for tool in (await one.list())["tools"]}
        assert await one.text("add", a=1, b=2) == "3"


@ERAS
async def test_lists_have_pages(era: str) -> None:
    """Tools are in the order of names; cursors are opaque, and an invalid cursor is rejected."""
    async with reached("http", era, page_size=3) as one:
        names: list[str] = []
        cursors: list[str] = []
        page = await one.list()
        while True:
            names += [tool["name"] for tool in page["tools"]]
            assert len(page["tools"]) <= 3
            if "nextCursor" not in page:
                break
            cursors.append(page["nextCursor"])
            page = await one.list(cursors[-1])
        assert names == [tool.name for tool in TOOLS]
        assert len(set(cursors)) == len(cursors) == 3
        assert not any(name in cursor for name in names for cursor in cursors)
        again = await one.list(cursors[0])
        assert [tool["name"] for tool in again["tools"]] == names[3:6]
        for wrong in ("nonsense", "", "YWZ0ZXI", base64.b64encode(b"before:a").decode(), "ä"):
            with pytest.raises(Refused) as refused:
                await one.list(wrong)
            assert refused.value.code == -32602
        assert str(refused.value) == snapshot("The cursor 'ä' was not issued by this server.")


@HOWS
@ERAS
async def test_an_unknown_tool_is_an_error_with_the_nearest_name(how: str, era: str) -> None:
    async with reached(how, era) as one:
        texts: list[str] = []
        for wrong in ("wrods", "xyz", "", "w" * 500):
            with pytest.raises(Refused) as refused:
                await one.call(wrong)
            assert refused.value.code == -32602
            texts.append(str(refused.value))
        assert texts[:3] == [
            "Unknown tool: 'wrods'. Did you mean 'words'?",
            "Unknown tool: 'xyz'.",
            "Unknown tool: ''.",
        ]
        assert len(texts[3]) < 200
        assert await one.text("words") == "hello"


@HOWS
@ERAS
async def test_bad_arguments_are_a_result_that_explains_the_fix(how: str, era: str) -> None:
    """The model reads results; it would never see a protocol error."""
    async with reached(how, era) as one:
        result = await one.call("add", {"a": "many", "b": 1})
        assert result["isError"] is True
        assert result["content"][0]["text"] == snapshot("""\
Invalid arguments for tool 'add':
- a: expected an integer, got "many"\
""")
        missing = await one.call("add")
        assert missing["isError"] is True
        assert "a" in missing["content"][0]["text"]
        assert await one.text("words") == "hello"


# --- failures


@HOWS
@ERAS
async def test_internal_errors_are_hidden(
    how: str, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets an error number that is also in the log."""
    caplog.set_level(logging.ERROR, "agents_tools.mcp")
    async with reached(how, era) as one:
        result = await one.call("fail")
        told = await one.call("refuse")
    assert CANARY not in json.dumps(result)
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert text.startswith("Tool 'fail' failed: RuntimeError (error ")
    number = text.partition("(error ")[2].partition(")")[0]
    (record,) = (one for one in caplog.records if number in one.getMessage())
    assert record.exc_info is not None
    assert CANARY in str(record.exc_info[1])
    assert (told["isError"], "The kettle is empty." in told["content"][0]["text"]) == (True, True)


async def test_the_message_of_a_tool_error_in_a_task_group_is_shown() -> None:
    """It is for the model, as the message of every `ToolError`."""

    @function_tool
    async def brew() -> str:
        async def boil() -> None:
            raise ToolError("The kettle is empty.")

        async with asyncio.TaskGroup() as group:
            group.create_task(boil())
        return "unreachable"

    async with reached("memory", LEGACY, [brew]) as one:
        result = await one.call("brew")
    assert (result["isError"], result["content"][0]["text"]) == (True, "The kettle is empty.")


@ERAS
async def test_the_message_of_an_exception_that_ends_programs_is_hidden(era: str) -> None:
    """The tool error that replaces it contains its message."""

    @function_tool
    def leave() -> str:
        raise SystemExit(CANARY)

    async with reached("memory", era, [leave]) as one:
        result = await one.call("leave")
    assert CANARY not in json.dumps(result)
    assert "SystemExit (error " in result["content"][0]["text"]


@ERAS
async def test_error_texts_are_shown_if_enabled(era: str) -> None:
    async with reached("memory", era, errors="show") as one:
        result = await one.call("fail")
        assert CANARY in result["content"][0]["text"]


async def test_a_tool_can_set_its_own_error_text() -> None:
    """The text of the tool itself takes precedence over the default."""

    @function_tool(failure_error_function=lambda _ctx, _error: "Try tomorrow.")
    def later() -> str:
        raise RuntimeError(CANARY)

    async with reached("memory", LEGACY, [later]) as one:
        result = await one.call("later")
        assert (result["isError"], result["content"][0]["text"]) == (True, "Try tomorrow.")


# --- results


def _not_a_number() -> float:
    return float("nan")


def _text() -> int:
    return cast("Any", "many")


def _shelf() -> Shelf:
    return Shelf.model_construct(name="tea", boxes="many")


def _result() -> ToolResult:
    return ToolResult(content="three", structured={"boxes": "many"})


COUNT = {"type": "object", "properties": {"boxes": {"type": "integer"}}, "required": ["boxes"]}


@ERAS
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_a_result_that_does_not_match_its_output_schema_is_an_error(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients validate structured results, and raise an exception for one that does not match."""
    with_schema = FunctionTool(
        name="_result",
        description="",
        params_json_schema={"type": "object", "properties": {}},
        on_invoke_tool=lambda _ctx, _arguments: asyncio.sleep(0, _result()),
        output_json_schema=COUNT,
    )
    tools = [*map(function_tool, (_not_a_number, _text, _shelf)), with_schema]
    async with reached("memory", era, tools) as one:
        await one.list()
        results = {tool.name: await one.call(tool.name) for tool in tools}
    for name, result in results.items():
        assert result["isError"] is True, name
        assert result.get("structuredContent") is None
        text = result["content"][0]["text"]
        assert text.startswith(f"Tool '{name}' ran, but its result does not match its output")
        assert "a fault of the tool and not of the call" in text
    assert "'boxes'" in results["_shelf"]["content"][0]["text"]
    assert "The result of tool '_text' does not match its output schema" in caplog.text


@HOWS
@ERAS
async def test_results_match_the_output_schema(how: str, era: str) -> None:
    """An object is sent unchanged; other values are wrapped where the era requires objects."""
    async with reached(how, era) as one:
        listed = {tool["name"]: tool for tool in (await one.list())["tools"]}
        whole = (await one.call("shelf", {"name": "tea"}))["structuredContent"]
        assert whole == {"name": "tea", "boxes": 3}
        assert listed["shelf"]["outputSchema"]["type"] == "object"
        number = (await one.call("add", {"a": 1}))["structuredContent"]
        schema = listed["add"]["outputSchema"]
        if era < MODERN:
            assert (number, schema["properties"]["result"]["type"]) == ({"result": 2}, "integer")
        else:
            assert (number, schema["type"]) == (2, "integer")


@HOWS
@ERAS
async def test_each_kind_of_content_is_serialized_for_the_protocol(how: str, era: str) -> None:
    async with reached(how, era) as one:
        result = await one.call("pieces")
    assert result["content"] == snapshot(
        [
            {"type": "text", "text": "one of each"},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {
                "type": "resource",
                "resource": {
                    "uri": "attachment:///tea",
                    "mimeType": "application/x-tea",
                    "blob": "AA==",
                },
            },
            {
                "type": "resource",
                "resource": {
                    "uri": "attachment:///tea.txt",
                    "mimeType": "text/plain",
                    "text": "leaves",
                },
            },
            {"name": "a.png", "uri": "https://there.example/a.png", "type": "resource_link"},
        ]
    )
    assert result["structuredContent"] == {"kinds": 6}
    assert result["_meta"]["mine"] == 1
    assert CANARY not in json.dumps(result), "metadata is for the application"


# --- progress


@HOWS
@ERAS
async def test_event_data_and_long_texts_are_only_for_clients_that_read_them(
    how: str, era: str
) -> None:
    """The data of an artifact would exceed the size limit of a client over HTTP."""
    heard: list[str | None] = []

    async def on_progress(_: float, __: float | None, message: str | None) -> None:
        heard.append(message)

    @function_tool
    def report(ctx: ToolContext[Any]) -> str:
        """Report."""
        ctx.notify("y" * 1_500_000)
        ctx.artifact("report.csv", "x" * 1_500_000, mime_type="text/csv")
        return "ready"

    async with reached(how, era, [report]) as one:
        result = await one.call("report", progress_callback=on_progress)
        await one.call("report")
    assert result["content"] == [{"type": "text", "text": "ready"}]
    assert [message and len(message) for message in heard] == [2_000, len("report.csv (text/csv)")]


@ERAS
async def test_a_large_json_result_stays_json(era: str) -> None:
    @function_tool
    def rows() -> list[dict[str, str]]:
        """Return rows."""
        return [{"id": str(number), "text": "y" * 80} for number in range(3_000)]

    async with reached("memory", era, [rows]) as one:
        result = await one.call("rows")
    text = result["content"][0]["text"]
    shown = json.loads(text)
    assert len(text) <= 256 * 1_024
    assert shown[0]["id"] == "0"
    assert shown[-1]["id"] == "2999"
    assert next(one for one in shown if isinstance(one, str)).endswith("of 3,000 items omitted …")


@HOWS
@ERAS
async def test_progress_increases_and_arrives_before_the_result(how: str, era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with reached(how, era) as one:
        result = await one.call("steps", {"n": 20}, progress_callback=on_progress)
        at_result = len(heard)
        await one.call("words")
        assert result["content"][0]["text"] == "20 steps"
    numbers = [progress for progress, _, _ in heard]
    assert numbers == sorted(set(numbers)), "each is more than the one before"
    texts = [message for _, _, message in heard]
    assert texts[:4] == ["note 1", "step 1", "note 2", "step 2"]
    assert texts[-1] == "the same again"
    assert len(texts) == 41
    assert at_result == len(heard), "nothing came after the result"


BURST = """
import asyncio, pathlib
from agents_tools import ToolProgressEvent, function_tool, streaming_tool
from agents_tools.mcp import serve

@streaming_tool
async def burst():
    for number in range(1, 26):
        yield ToolProgressEvent(number, total=25)
    yield "done"

@function_tool
async def mark(path: str) -> str:
    await asyncio.sleep(0.2)
    pathlib.Path(path).touch()
    return "marked"

serve([burst, mark])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a client has read")
@pytest.mark.parametrize(
    "is_socket", [slow_case(False, id="pipe"), pytest.param(True, id="socket")]
)
def test_a_result_follows_when_a_slow_client_has_read_the_progress(
    tmp_path: Path, *, is_socket: bool
) -> None:
    """Clients in TypeScript ignore reports that they read together with the result."""
    ours, theirs = socket.socketpair()
    with (
        ours,
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", BURST],
            stdin=subprocess.PIPE,
            stdout=theirs.fileno() if is_socket else subprocess.PIPE,
        ) as process,
    ):
        theirs.close()
        assert process.stdin is not None
        output = ours.fileno() if process.stdout is None else process.stdout.fileno()

        def send(*messages: Any) -> None:
            lines = b"".join(json.dumps(one).encode() + b"\n" for one in messages)
            cast("Any", process.stdin).write(lines)
            cast("Any", process.stdin).flush()

        def read() -> list[dict[str, Any]]:
            return [json.loads(line) for line in os.read(output, 1 << 20).splitlines()]

        try:
            send(request("initialize", 1, **INITIALIZE))
            assert [one["id"] for one in read()] == [1]
            params: dict[str, Any] = {"_meta": {"progressToken": "t"}, "name": "burst"}
            marked = {"path": str(tmp_path / "marked")}
            send(
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                request("tools/call", 2, **params),
                request("tools/call", 3, name="mark", arguments=marked),
            )
            until((tmp_path / "marked").exists)
            first = read()
            assert len([one for one in first if one.get("method")]) == 25
            assert 2 not in [one.get("id") for one in first]
            later = read()
            while 2 not in [one.get("id") for one in later]:
                later += read()
        finally:
            process.kill()


async def test_progress_is_sent_only_on_request() -> None:
    async with reached("http", LEGACY) as one:
        assert await one.text("steps", n=3) == "3 steps"


async def test_plain_json_instead_of_a_stream() -> None:
    """With `json_response=True` there is no progress; everything else works."""
    async with serving(json_response=True) as url, httpx.AsyncClient() as http:
        response = await http.post(
            url, json=request("tools/call", name="add", arguments={"a": 1}), headers=HEADERS
        )
        assert response.headers["content-type"].startswith("application/json")
        assert response.json()["result"]["structuredContent"] == {"result": 2}


# --- cancelling


@pytest.mark.skipif(LINE < 2, reason="SDK 1.x does not report cancelled tasks")
@HOWS
@ERAS
async def test_a_call_cancelled_by_its_client_is_cancelled(how: str, era: str) -> None:
    """The cleanup of the tool runs."""
    began, ended = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    if (how, era) == ("http", LEGACY):
        pytest.skip("without a session a cancellation of that era finds nothing to cancel")
    async with reached(how, era, [wait, words]) as one:
        task = asyncio.create_task(one.call("wait"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ended.wait()
        assert await one.text("words") == "hello"


async def test_a_disconnect_of_the_client_cancels_its_call() -> None:
    """Over HTTP without sessions this is the only signal that the server gets."""
    began, ended = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with asyncio.timeout(BOUND), serving([wait]) as url, httpx.AsyncClient() as http:
        body = request("tools/call", name="wait", arguments={})
        task = asyncio.create_task(http.post(url, json=body, headers=HEADERS, timeout=60))
        await began.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await ended.wait()


# --- changes


class Shop:
    """A provider whose tools change."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = list(tools)

    def get_tools(self) -> list[Tool]:
        return self.tools


async def test_clients_with_a_session_are_notified_of_changes() -> None:
    """This is the protocol up to 2025-11-25."""
    told = asyncio.Event()

    async def on_message(message: Any) -> None:
        if "list_changed" in str(getattr(getattr(message, "root", message), "method", "")):
            told.set()

    shop = Shop(add)
    app = mcp_server(shop, stateless=False)
    async with asyncio.timeout(BOUND), listening(app) as address:  # noqa: SIM117 - as below
        async with client(f"{address}/mcp", LEGACY, message_handler=on_message) as one:
            assert [tool["name"] for tool in (await one.list())["tools"]] == ["add"]
            shop.tools.append(words)
            while not told.is_set():  # the notification stream may not be open yet
                await app.tools_changed()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await told.wait()
            assert [tool["name"] for tool in (await one.list())["tools"]] == ["add", "words"]


@NEEDS_TWO
@pytest.mark.parametrize("how", ["memory", "http"])
async def test_clients_that_subscribe_are_notified_of_changes(how: str) -> None:
    """This is the protocol from 2026-07-28."""
    shop = Shop(add)
    app = mcp_server(shop)
    async with asyncio.timeout(BOUND), contextlib.AsyncExitStack() as stack:
        target: Any = app
        if how == "http":
            target = f"{await stack.enter_async_context(listening(app))}/mcp"
        one = await stack.enter_async_context(client(target, MODERN))
        async with one.session.listen(tools_list_changed=True) as changes:
            shop.tools = [words]
            await app.tools_changed()
            async for _ in changes:
                break
        listed = await one.session.list_tools(cache_mode="bypass")
        assert [tool.name for tool in listed.tools] == ["words"]


async def test_removed_tools_cannot_be_called() -> None:
    shop = Shop(add, words)
    async with reached("memory", LEGACY, shop) as one:
        assert await one.text("words") == "hello"
        shop.tools = [add]
        with pytest.raises(Refused):
            await one.call("words")


def test_two_tools_of_one_name_are_rejected() -> None:
    """A call by that name would be ambiguous."""
    with pytest.raises(UserError) as caught:
        mcp_server([add, function_tool(lambda: 1, name_override="add")])
    assert str(caught.value) == snapshot(
        "Two of the tools to serve are named 'add'. Give one of them another name, for example with policies.rename('add_2')."
    )
    assert mcp_server([add, add])


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": ["add"]},
        {"tools": "add"},
        {"tools": 3},
        {"errors": "some"},
        {"page_size": 0},
        {"path": "mcp"},
        {"host": "0.0.0.0"},  # noqa: S104 - that is the point
        {"authorization_servers": ["https://there.example"]},
    ],
)
def test_invalid_options_are_rejected_before_the_server_listens(wrong: dict[str, Any]) -> None:
    options: dict[str, Any] = {"tools": TOOLS, **wrong}
    with pytest.raises(UserError):
        mcp_server(**options)


# --- authentication and context


@function_tool
def whoami(ctx: ToolContext[MCPRequest]) -> dict[str, Any]:
    """Tell what is known of the request."""
    request = ctx.context
    return {
        "version": request.protocol_version,
        "headers": dict(request.headers),
        "principal": repr(request.principal),
        "meta": dict(request.meta),
    }


SECRETS = {
    "Authorization": f"Bearer {CANARY}",
    "Cookie": f"a={CANARY}",
    "X-Api-Key": CANARY,
    "X-User": "ada",
}


@ERAS
async def test_tools_see_their_request_without_credentials(era: str) -> None:
    async with (
        asyncio.timeout(BOUND),
        serving([whoami], auth=CANARY) as url,
        client(url, era, SECRETS) as one,
    ):
        text = await one.text("whoami")
    assert CANARY not in text
    known = json.loads(text)
    assert known["version"] == era
    assert known["headers"]["x-user"] == "ada"
    assert not {"authorization", "cookie", "x-api-key"} & known["headers"].keys()


@ERAS
async def test_an_application_creates_the_context_of_its_tools(era: str) -> None:
    """`context=` is called with the request of each call."""

    @function_tool
    def user(ctx: ToolContext[str]) -> str:
        return ctx.context

    async def context(request: MCPRequest) -> str:
        return f"user {request.headers.get('x-user')}"

    async with (
        asyncio.timeout(BOUND),
        serving([user], context=context) as url,
        client(url, era, {"X-User": "ada"}) as one,
    ):
        assert await one.text("user") == "user ada"


GOOD = "a-token-of-sixteen-characters"


class Verifier:
    """A verifier with the interface of the SDK."""

    async def verify_token(self, token: str) -> Any:
        from mcp.server.auth.provider import AccessToken

        if token != GOOD:
            return None
        return AccessToken(token=token, client_id="ada", scopes=["read"])


@pytest.mark.parametrize("auth", [GOOD, Verifier()])
async def test_a_token_is_required(auth: Any) -> None:
    """Each method is rejected without one, and the response describes the authentication."""
    async with serving([whoami], auth=auth) as url, httpx.AsyncClient() as http:
        for headers in (
            {},
            {"Authorization": "Bearer bad"},
            {"Authorization": f"Basic {GOOD}"},
            {"Authorization": GOOD},
        ):
            for send in (http.post, http.get, http.delete):
                response = await send(url, headers={**HEADERS, **headers})
                assert response.status_code == 401, (send, headers)
                assert response.headers["www-authenticate"].startswith("Bearer")
        async with client(url, LEGACY, {"Authorization": f"Bearer {GOOD}"}) as one:
            known = json.loads(await one.text("whoami"))
    assert (isinstance(auth, str)) or "ada" in known["principal"]
    assert GOOD not in known["principal"]


class ManyVerifier:
    """A verifier whose tokens name their clients."""

    async def verify_token(self, token: str) -> Any:
        from mcp.server.auth.provider import AccessToken

        return AccessToken(token=token, client_id=token.partition("-")[0], scopes=[])


@ERAS
async def test_each_client_has_its_own_tool_state(era: str, tmp_path: Path) -> None:
    """The shell of one client is not visible to another, and ends with the server."""

    def token(name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {name}-token-of-sixteen"}

    with get_default_tools(tmp_path) as tools:
        bash = tools[0].as_function_tool()
        async with serving([bash], auth=ManyVerifier()) as url:
            async with client(url, era, token("ada")) as one, client(url, era, token("bob")) as two:
                await one.text("execute_bash", command="export NAME=ada; echo $$ >pid")
                assert await two.text("execute_bash", command="echo [$NAME]") == "[]\n"
                assert await one.text("execute_bash", command="echo [$NAME]") == "[ada]\n"
            shell = psutil.Process(int((tmp_path / "pid").read_text()))
            assert shell.is_running()
        await comes(lambda: not shell.is_running())
        assert (await bash.call(None, '{"command": "echo [$NAME]"}')).output == "[]\n"


async def test_the_states_of_idle_clients_are_closed() -> None:
    """A server with thousands of clients does not keep thousands of shells."""
    closed: list[int] = []
    states = ClientStates()
    async with states.of(Principal(client_id="busy", token="")) as busy:
        assert busy is not None
        busy.get("x", lambda: -1, closed.append)
        for number in range(150):
            async with states.of(Principal(client_id=f"{number}", token="")) as state:
                assert state is not None
                assert state.get("x", lambda number=number: number + 1, closed.append)
        assert closed == list(range(1, 52))
    await states.aclose()
    assert sorted(closed) == [-1, *range(1, 151)]
    async with states.of(None) as none:
        assert none is None


async def test_a_token_without_the_scope_is_not_enough() -> None:
    async with (
        serving([words], auth=Verifier(), required_scopes=["write"]) as url,
        httpx.AsyncClient() as http,
    ):
        response = await http.post(
            url, json=request("tools/list"), headers={**HEADERS, "Authorization": f"Bearer {GOOD}"}
        )
        assert response.status_code == 403
        assert "write" in response.headers["www-authenticate"]


# --- many servers, many clients


HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": LEGACY,
}


def request(method: str, number: Any = 1, **params: Any) -> Answer:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


INITIALIZE: dict[str, Any] = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


async def test_any_of_several_servers_answers_any_request() -> None:
    """Requests are stateless: a client can switch servers, as behind a load balancer."""
    async with (
        asyncio.timeout(BOUND),
        serving(json_response=True) as first,
        serving(json_response=True) as second,
        httpx.AsyncClient(headers=HEADERS) as http,
    ):
        begun = await http.post(first, json=request("initialize", **INITIALIZE))
        assert begun.json()["result"]["protocolVersion"] == LEGACY
        assert "mcp-session-id" not in begun.headers
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(second, json=told)).status_code == 202
        for number, url in enumerate([second, first, second, first], 2):
            call = request("tools/call", number, name="add", arguments={"a": number})
            answer = (await http.post(url, json=call)).json()
            assert (answer["id"], answer["result"]["structuredContent"]) == (
                number,
                {"result": number + 1},
            )


CLIENTS = 200 if IS_FULL else 40


@pytest.mark.scaled
@pytest.mark.requirement("S24")
@pytest.mark.parametrize("json_response", [True, False])
@pytest.mark.timeout(120)
async def test_s24_clients_never_get_the_data_of_another_client(*, json_response: bool) -> None:
    """Many clients call at once with the same ids and different payloads."""
    async with (
        serving([echo], json_response=json_response, max_concurrency=1_000) as url,
        httpx.AsyncClient(
            headers=HEADERS, timeout=60, limits=httpx.Limits(max_connections=200)
        ) as http,
    ):

        async def one() -> int:
            for number in range(5):
                payload = secrets.token_hex(32)
                body = request("tools/call", number, name="echo", arguments={"payload": payload})
                response = await http.post(url, json=body)
                assert response.status_code == 200, response.text
                text = response.text if json_response else response.text.partition("data: ")[2]
                answer = json.loads(text)
                assert answer["id"] == number
                assert answer["result"]["structuredContent"] == {"payload": payload}
            return 5

        assert sum(await asyncio.gather(*(one() for _ in range(CLIENTS)))) == 5 * CLIENTS


@pytest.mark.requirement("S24")
@HOWS
@ERAS
async def test_s24_calls_of_many_sdk_clients_are_separate(how: str, era: str) -> None:
    """All of them start with the same request number."""
    async with asyncio.timeout(BOUND), contextlib.AsyncExitStack() as stack:
        app = mcp_server([echo], stateless=how != "sessions", max_concurrency=1_000)
        target: Any = app
        if how != "memory":
            target = f"{await stack.enter_async_context(listening(app))}/mcp"

        async def one() -> None:
            async with client(target, era) as mine:
                for _ in range(5):
                    payload = secrets.token_hex(16)
                    result = await mine.call("echo", {"payload": payload})
                    assert result["structuredContent"] == {"payload": payload}

        await asyncio.gather(*(one() for _ in range(20)))


# --- shutdown


@pytest.mark.parametrize("signal_name", ["SIGTERM", slow_case("SIGINT")])
@pytest.mark.parametrize("transport", [slow_case("http"), "sessions"])
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.timeout(120)
async def test_a_signal_shuts_the_program_down(
    tmp_path: Path, transport: str, signal_name: str
) -> None:
    """During a call, the cleanup of the tool runs."""
    with program_listening([sys.executable, "-m", "tests.mcp.test_server", transport]) as program:
        url = (await asyncio.to_thread(program.wait_for, "http")).strip()
        async with httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
            headers = {}
            if transport == "sessions":
                begun = await http.post(url, json=request("initialize", **INITIALIZE))
                headers["mcp-session-id"] = begun.headers["mcp-session-id"]
                told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                await http.post(url, json=told, headers=headers)
            body = request("tools/call", name="wait", arguments={"folder": str(tmp_path)})
            task = asyncio.create_task(http.post(url, json=body, headers=headers))
            await comes((tmp_path / "began").exists)
            program.process.send_signal(getattr(signal, signal_name))
            code = await asyncio.to_thread(program.process.wait, 30)
            with contextlib.suppress(httpx.HTTPError):
                await task
    assert code in {0, 128 + getattr(signal, signal_name), -getattr(signal, signal_name)}
    assert (tmp_path / "cancelled").exists()
    assert not any("Traceback" in line for line in program.lines), program.lines


async def test_a_server_of_this_loop_ends_when_it_is_cancelled() -> None:
    """A call is running; its port is free again afterwards."""
    began, ended = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve_async([wait], "http", port=0, auth=False, on_ready=address.set_result)
    )
    async with asyncio.timeout(BOUND), httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
        url = await address
        body = request("tools/call", name="wait", arguments={})
        call = asyncio.create_task(http.post(url, json=body))
        await began.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await ended.wait()
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError, httpx.HTTPError):
            await call
        port = int(url.rpartition(":")[2].partition("/")[0])
        (await asyncio.start_server(lambda *_: None, "127.0.0.1", port)).close()
    for left in asyncio.all_tasks():  # the SDK's streams leave one on each loop
        if getattr(left.get_coro(), "__name__", "") == "_shutdown_watcher":
            left.cancel()


# --- stdin and stdout


class PipedServer:
    """The server as a program, with direct access to its lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, line: bytes | Answer) -> None:
        assert self.process.stdin is not None
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.process.stdin.write(data + b"\n")
        await self.process.stdin.drain()

    async def answer(self) -> Answer:
        """Return the next line, which must be a message."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "the server has ended"
        return json.loads(line)

    async def ask(self, method: str, number: Any = 1, **params: Any) -> Answer:
        await self.send(request(method, number, **params))
        return await self.answer()

    async def works(self) -> None:
        """Check that the next request is answered."""
        number = secrets.token_hex(4)
        answer = await self.ask("tools/call", number, name="add", arguments={"a": 1, "b": 2})
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (number, "3")


@contextlib.asynccontextmanager
async def piped() -> AsyncGenerator[PipedServer]:
    """Start the server as a program, and initialize a session."""
    program, *args = own_server_command("stdio")
    process = await asyncio.create_subprocess_exec(
        program, *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=64 << 20,
    )  # fmt: skip
    try:
        async with asyncio.timeout(BOUND):
            pipe = PipedServer(process)
            answer = await pipe.ask("initialize", **INITIALIZE)
            assert answer["result"]["protocolVersion"] == LEGACY
            await pipe.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield pipe
            assert process.stdin is not None
            process.stdin.close()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "order", "arguments": {"orders": %s}}}'
GARBAGE: dict[str, tuple[bytes, int | None]] = {
    "no json": (b"hello", -32700),
    "half of an object": (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list"', -32700),
    "deep nesting": (CALL % (b"[" * 100_000 + b"]" * 100_000), -32700),
    "deep nesting without an end": (b"[" * 1_000_000, -32700),
    "a whole number of 5000 digits": (CALL % (b"9" * 5_000), None),
    "an id of 5000 digits": (
        b'{"jsonrpc": "2.0", "id": %s, "method": "ping"}' % (b"9" * 5_000),
        None,
    ),
    "a lone surrogate": (CALL % b'"\\ud800"', None),
    "a lone surrogate as the id": (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None),
    "no utf-8": (CALL % b'"\xff\xfe"', None),
    "no utf-8 at all": (b"\xff\xfe\x00", -32700),
    "nan": (CALL % b"NaN", None),
    "a list": (b"[1, 2]", -32600),
    "an empty batch": (b"[]", -32600),
    "a number": (b"3", -32600),
    "null": (b"null", -32600),
    "an empty object": (b"{}", -32600),
    "another version": (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600),
    "an id that is an object": (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
    "an id with a fraction": (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
    "a list of messages": (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
    "an id in the params": (b'{"jsonrpc": "2.0", "method": 3, "params": {"id": 1}}', -32600),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": 7, "method": 3}', -32600),
    "params that are a list": (
        b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}',
        None,
    ),
    "arguments that are text": (
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "arguments": "x"}}',
        None,
    ),
    "a method that is none": (
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/brew"}',
        -32601 if LINE > 1 else -32602,
    ),
    "20 megabytes": (CALL % (b'"' + b"x" * (20 << 20) + b'"'), -32700),
}


@pytest.mark.requirement("S25")
async def test_s25_an_invalid_line_does_not_affect_other_requests() -> None:
    """It gets an error response, and the next request works."""
    async with piped() as pipe:
        for kind, (line, code) in GARBAGE.items():
            await pipe.send(line)
            answer = await pipe.answer()
            if code is not None:
                assert answer["error"]["code"] == code, kind
                assert answer["id"] in {7, None}, kind
            assert "Traceback" not in json.dumps(answer), kind
            await pipe.works()


@pytest.mark.requirement("S25")
async def test_s25_a_thousand_invalid_lines_do_not_affect_other_requests() -> None:
    """Bad messages must not end the service for other requests."""
    async with piped() as pipe:
        for _ in range(1_000):
            await pipe.send(secrets.token_bytes(20).replace(b"\n", b"").strip() + b"!")
        answers = [await pipe.answer() for _ in range(1_000)]
        assert {answer["error"]["code"] for answer in answers} <= {-32700, -32600}
        await pipe.works()


def _damaged(frame: bytes, chance: random.Random) -> bytes:
    """Return a frame in which a few bytes are changed, removed or doubled."""
    data = bytearray(frame)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(2)] = chance.choice(
            [b"", bytes([chance.randrange(11, 256)]), b'"', b"{", b"]", data[at : at + 9]]
        )
    return bytes(data)


@pytest.mark.requirement("S25")
async def test_s25_after_each_of_many_damaged_frames_the_server_answers() -> None:
    """Frames that are almost valid reach deeper code than noise does."""
    chance = random.Random(25)  # noqa: S311 - the same frames each time
    call = request("tools/call", 7, name="add", arguments={"a": 1, "b": 2})
    frames = [json.dumps(one).encode() for one in (call, request("ping", 7), request("tools/list"))]
    async with piped() as pipe:
        for number in range(300):
            await pipe.send(_damaged(chance.choice(frames), chance))
            ping = f"ping {number}"
            await pipe.send(request("ping", ping))
            while (await pipe.answer()).get("id") != ping:
                pass  # the response to the damaged frame, if any
        await pipe.works()


@pytest.mark.slow
async def test_empty_lines_and_windows_line_ends_are_accepted() -> None:
    async with piped() as pipe:
        for line in (b"", b"  ", b"\r"):
            await pipe.send(line)
        await pipe.works()
        await pipe.send(json.dumps(request("ping", 9)).encode() + b"\r")
        assert (await pipe.answer())["id"] == 9


@pytest.mark.slow
async def test_requests_before_initialize_are_rejected() -> None:
    """A client that skips `initialize` gets an error, and can initialize after it."""
    async with piped() as pipe:
        again = await pipe.ask("initialize", 2, **INITIALIZE)
        assert again["id"] == 2
        await pipe.works()


@pytest.mark.slow
@ERAS
async def test_output_of_tools_is_not_on_the_protocol_stream(era: str, tmp_path: Path) -> None:
    """This covers prints, and the output of child processes to descriptor 1."""
    script = tmp_path / "noisy.py"
    root = Path(__file__).parents[2]
    script.write_text(
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from agents_tools.mcp import serve\n"
        "from tests.mcp.test_server import noisy, words\n"
        "print('before it begins', file=sys.stderr)\n"
        "serve([noisy, words])\n"
    )
    async with asyncio.timeout(BOUND), client([sys.executable, str(script)], era) as one:
        assert await one.text("noisy") == "printed"
        assert await one.text("words") == "hello"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
async def test_a_program_on_a_pipe_ends_by_a_signal(tmp_path: Path, signal_name: str) -> None:
    """This holds during a call, and without waiting for its client."""
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(contextlib.suppress(AssertionError))
        pipe = await stack.enter_async_context(piped())
        await pipe.send(request("tools/call", name="wait", arguments={"folder": str(tmp_path)}))
        await comes((tmp_path / "began").exists)
        pipe.process.send_signal(getattr(signal, signal_name))
        await pipe.process.wait()
    assert pipe.process.returncode is not None


if __name__ == "__main__":
    serve(
        [wait_in, words],
        "http",
        port=0,
        auth=False,
        stateless=sys.argv[1] == "http",
        on_ready=lambda url: print(url, flush=True),  # noqa: T201 - tells the test where it is
    )
