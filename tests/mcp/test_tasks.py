"""Tasks: our client and server together over HTTP, and other processes on the same store."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents_tools import (
    Agent,
    FunctionTool,
    MemoryRunStore,
    RunConfig,
    Runner,
    SQLiteRunStore,
    ToolCallOutputItem,
    ToolContext,
    ToolError,
    ToolProgressEvent,
    UserError,
    function_tool,
)
from agents_tools.errors import EventStoreError
from agents_tools.mcp import MCPGateway, MCPToolManager, mcp_server, roots
from agents_tools.persistence.stored_log import StoredLog
from agents_tools.server.run_manager import RunManager
from agents_tools.testing import ScriptedModel, call_tool, tool_call
from tests.mcp.small import LINE, listening
from tests.scale import slow_case

pytestmark = pytest.mark.skipif(LINE == 1, reason="served tasks need version 2 of the SDK")

BOUND = 30.0
ROOT = Path(__file__).parents[2]
TASKS = "io.modelcontextprotocol/tasks"
TOKENS = {"first-token-of-sixteen": "alice", "second-token-of-sixteen": "bob"}

Tool = FunctionTool[..., Any]


class Gate:
    """Lets the tools of a test wait until the test opens it."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.calls = 0

    def tools(self) -> list[Tool]:
        """Return the tools."""

        @function_tool
        async def work(ctx: ToolContext[Any], name: str) -> str:
            """Report a status, and wait."""
            self.calls += 1
            ctx.progress(1, total=3, message="measuring")
            self.began.set()
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return f"{name} is done"

        @function_tool
        async def ask(ctx: ToolContext[Any]) -> str:
            """Ask the person at the client."""
            return f"{await ctx.ask('How big?', answer=int)} cm"

        @function_tool
        async def quick(value: int) -> int:
            """Return a value at once."""
            return value

        @function_tool(metadata={"mcp": {"execution": {"taskSupport": "required"}}})
        async def fail() -> str:
            """Fail."""
            raise ToolError("The kettle is empty.")

        @function_tool(metadata={"mcp": {"execution": {"taskSupport": "required"}}})
        async def folders() -> str:
            """Need the folders of the client."""
            return f"{await roots()}"

        return [work, ask, quick, fail, folders]


@contextlib.asynccontextmanager
async def serving(gate: Gate, **options: Any) -> AsyncGenerator[str]:
    """Serve the tools, and yield the URL."""
    served: dict[str, Any] = {"tasks": True, **options}
    app = mcp_server(gate.tools(), **served)
    async with listening(app) as address:
        try:
            yield f"{address}/mcp"
        finally:
            await app.aclose()


@contextlib.asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncGenerator[dict[str, Tool]]:
    """Connect our client, and yield the tools by their names on the server."""
    async with MCPToolManager(**options) as manager:
        await manager.add_server("peer", url=url)
        yield {str(tool.origin.wire_name): tool for tool in manager.get_tools()}


class Wire:
    """A client that sends plain JSON-RPC.

    Args:
        url: The URL of the server.
        version: The protocol version.
        token: The bearer token.
        can_task: Whether it declares the extension.

    Attributes:
        headers: Headers in place of its own.
    """

    def __init__(
        self, url: str, version: str = "2026-07-28", token: str = "", *, can_task: bool = True
    ) -> None:
        self.headers: dict[str, str | None] = {}
        self.url = url
        self.version = version
        self.token = token
        self.can_task = can_task

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; return the response of JSON-RPC."""
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": self.version,
        }
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if self.version >= "2026":
            extensions = {"extensions": {TASKS: {}}} if self.can_task else {}
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {**extensions, "elicitation": {}},
            }
            headers["mcp-method"] = method
            if name := params.get("name", params.get("taskId")):
                headers["mcp-name"] = name
        changed = {**headers, **self.headers}
        headers = {key: value for key, value in changed.items() if value is not None}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with httpx.AsyncClient(timeout=BOUND) as client:
            response = await client.post(self.url, json=body, headers=headers)
        return response.json()

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; return its result."""
        response = await self.send(method, **params)
        assert "result" in response, response
        return response["result"]

    async def code(self, method: str, **params: Any) -> int:
        """Send a request; return the code of its error."""
        return (await self.send(method, **params))["error"]["code"]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; up to 2025-11-25 as a task."""
        task = {} if self.version >= "2026" else {"task": {"ttl": 60_000}}
        return await self.result("tools/call", name=tool, arguments=arguments, **task)

    async def becomes(
        self, task_id: str, status: str, *, message: str | None = None
    ) -> dict[str, Any]:
        """Poll until a task has a status, and a message."""
        async with asyncio.timeout(BOUND):
            while True:
                task = await self.result("tasks/get", taskId=task_id)
                if task["status"] == status and message in {None, task.get("statusMessage")}:
                    return task
                await asyncio.sleep(0.02)


# --- our client and server


async def test_a_call_that_becomes_a_task_returns_its_result() -> None:
    """The caller sees one call, with the status messages of the task as progress."""
    gate = Gate()
    async with asyncio.timeout(BOUND), serving(gate) as url, connected(url) as tools:
        running = asyncio.create_task(call_tool(tools["work"], {"name": "tea"}))
        await gate.began.wait()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.7, gate.opened.set)
        result = await running
    assert (result.status, result.output) == ("ok", "tea is done")
    messages = [one.message for one in result.events if isinstance(one, ToolProgressEvent)]
    assert messages == ["measuring"]


async def test_a_quick_call_needs_no_task() -> None:
    """It would cost another request and the poll interval."""
    async with asyncio.timeout(BOUND), serving(Gate(), json_response=True) as url:
        async with connected(url) as tools:
            assert (await call_tool(tools["quick"], {"value": 7})).output == "7"
        result = await Wire(url).call("quick", value=7)
    assert result["resultType"] == "complete"
    assert result["structuredContent"] == 7


async def test_an_error_of_the_tool_is_the_result_of_the_task() -> None:
    async with asyncio.timeout(BOUND), serving(Gate()) as url, connected(url) as tools:
        result = await call_tool(tools["fail"])
        assert result.status == "tool_error"
        assert "The kettle is empty." in str(result.output)
        missing = await call_tool(tools["folders"])
        assert "roots" in str(missing.output)


async def test_a_question_of_a_task_is_answered() -> None:
    """The task waits as `input_required`; the answer continues it."""
    ask = {"ask": lambda _question: 7}
    async with asyncio.timeout(BOUND), serving(Gate()) as url, connected(url, **ask) as tools:
        assert (await call_tool(tools["ask"])).output == "7 cm"


async def test_cancelling_the_call_cancels_the_task() -> None:
    gate = Gate()
    async with asyncio.timeout(BOUND), serving(gate) as url, connected(url) as tools:
        running = asyncio.create_task(call_tool(tools["work"], {"name": "tea"}))
        await gate.began.wait()
        await asyncio.sleep(0.3)  # the task was created, and is polled
        running.cancel()
        await asyncio.wait({running})
        await gate.cancelled.wait()


async def test_a_task_longer_than_max_time_is_cancelled() -> None:
    gate = Gate()
    async with asyncio.timeout(BOUND), serving(gate) as url, connected(url, max_time=1) as tools:
        result = await call_tool(tools["work"], {"name": "tea"})
        assert result.status == "timeout"
        await gate.cancelled.wait()


@contextlib.asynccontextmanager
async def through_gateway(gate: Gate, **options: Any) -> AsyncGenerator[str]:
    """Serve the tools through a gateway, both with tasks, and yield the URL."""
    async with serving(gate, tasks="required") as inner:
        config = {"mcpServers": {"far": {"url": inner}}}
        async with MCPGateway(config) as gateway:
            app = mcp_server(gateway, tasks=True, json_response=True, **options)
            async with listening(app) as address:
                try:
                    yield f"{address}/mcp"
                finally:
                    await app.aclose()


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_tasks_pass_through_a_gateway(version: str, tmp_path: Path) -> None:
    """The status message, the question and the result are those of the task behind it."""
    gate = Gate()
    store = tmp_path / "tasks.db"
    async with asyncio.timeout(BOUND), through_gateway(gate, store=store) as url:
        wire = Wire(url, version)
        created = await wire.call("far_work", name="tea")
        created = created.get("task", created)
        await gate.began.wait()
        await wire.becomes(created["taskId"], "working", message="measuring")
        gate.opened.set()
        task = await wire.becomes(created["taskId"], "completed")
        if version < "2026":
            task["result"] = await wire.result("tasks/result", taskId=created["taskId"])
        assert "tea is done" in str(task["result"])
        async with connected(url, ask=lambda _question: 7) as tools:
            assert (await call_tool(tools["far_ask"])).output == "7 cm"
    assert gate.calls == 1
    assert store.exists()


async def test_cancelling_a_task_of_a_gateway_cancels_the_one_behind_it() -> None:
    gate = Gate()
    async with asyncio.timeout(BOUND), through_gateway(gate) as url:
        wire = Wire(url)
        created = await wire.call("far_work", name="tea")
        await gate.began.wait()
        await wire.result("tasks/cancel", taskId=created["taskId"])
        await gate.cancelled.wait()
        await wire.becomes(created["taskId"], "cancelled")


# --- the server


async def test_a_client_without_the_extension_gets_no_task() -> None:
    gate = Gate()
    gate.opened.set()
    async with asyncio.timeout(BOUND), serving(gate, json_response=True) as url:
        wire = Wire(url, can_task=False)
        assert (await wire.call("work", name="tea"))["content"][0]["text"] == "tea is done"
        assert await wire.code("tools/call", name="fail", arguments={}) == -32021
        assert await wire.code("tasks/get", taskId="task_x") == -32021


async def test_the_header_of_a_task_can_be_missing_but_not_wrong() -> None:
    """FastMCP sends none with the requests of a task, although the protocol requires it."""
    gate = Gate()
    async with asyncio.timeout(BOUND), serving(gate, json_response=True) as url:
        wire = Wire(url)
        task_id = (await wire.call("work", name="tea"))["taskId"]
        wire.headers["mcp-name"] = None
        assert (await wire.result("tasks/get", taskId=task_id))["status"] == "working"
        wire.headers["mcp-name"] = "task_other"
        assert await wire.code("tasks/get", taskId=task_id) == -32020


async def test_a_task_belongs_to_its_caller() -> None:
    """Its id does not let another caller read or cancel it."""

    class Verifier:
        async def verify_token(self, token: str) -> Any:
            from types import SimpleNamespace

            name = TOKENS.get(token)
            fields = {"client_id": name, "subject": name, "scopes": [], "expires_at": None}
            return None if name is None else SimpleNamespace(token=token, **fields)

    gate = Gate()
    options = {"auth": Verifier(), "json_response": True}
    async with asyncio.timeout(BOUND), serving(gate, **options) as url:
        alice, bob = (Wire(url, token=token) for token in TOKENS)
        task_id = (await alice.call("work", name="tea"))["taskId"]
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            assert await bob.code(method, taskId=task_id) == -32602
        assert not gate.cancelled.is_set()
        old = [Wire(url, "2025-11-25", token) for token in TOKENS]
        listed = [(await one.result("tasks/list"))["tasks"] for one in old]
        assert [[task["taskId"] for task in tasks] for tasks in listed] == [[task_id], []]


async def test_open_tasks_are_limited_for_each_caller() -> None:
    gate = Gate()
    async with asyncio.timeout(BOUND), serving(gate, max_tasks=2, json_response=True) as url:
        wire = Wire(url)
        first = await wire.call("work", name="one")
        await wire.call("work", name="two")
        error = (await wire.send("tools/call", name="work", arguments={"name": "x"}))["error"]
        assert "Too many tasks" in error["message"]
        await wire.result("tasks/cancel", taskId=first["taskId"])
        assert (await wire.call("work", name="three"))["resultType"] == "task"


async def test_an_expired_task_is_deleted() -> None:
    gate, store = Gate(), MemoryRunStore()
    options = {"store": store, "task_ttl": 1, "json_response": True}
    async with asyncio.timeout(BOUND), serving(gate, **options) as url:
        wire = Wire(url)
        task_id = (await wire.call("work", name="tea"))["taskId"]
        while "result" in await wire.send("tasks/get", taskId=task_id):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        assert await store.runs() == []
        assert gate.cancelled.is_set()


async def test_a_task_that_cannot_be_stored_can_be_taken_by_another_process() -> None:
    """Its lease was held, so that it stayed in progress for as long as the server ran."""

    class FullStore(MemoryRunStore):
        def log(self, run_id: str, /) -> StoredLog:
            log = super().log(run_id)
            append = log.append

            def fail(events: Any, **options: Any) -> Any:
                if any(getattr(event, "name", "") == "call_begun" for event in events):
                    raise EventStoreError("The disk is full.", store="memory")
                return append(events, **options)

            log.append = fail
            return log

    gate, store = Gate(), FullStore()
    async with asyncio.timeout(BOUND), serving(gate, store=store, json_response=True) as url:
        assert "error" in await Wire(url).send("tools/call", name="work", arguments={"name": "x"})
        (info,) = await store.runs()
        assert info.is_orphaned


async def test_a_task_starts_without_reading_what_was_just_stored() -> None:
    """If that failed, the task was in progress for ever, but nothing ran it."""

    class Unreadable(MemoryRunStore):
        def run(self, run_id: str, /) -> Any:
            raise EventStoreError("The store is gone.", store="memory")

    store = Unreadable()
    async with asyncio.timeout(BOUND), serving(Gate(), store=store, json_response=True) as url:
        assert (await Wire(url).call("quick", value=7))["structuredContent"] == 7
        assert await store.runs() == []


async def test_tasks_of_version_2025_11_25() -> None:
    """The older form: declared by the client, with a result that is fetched on its own."""
    gate = Gate()
    async with asyncio.timeout(BOUND), serving(gate, json_response=True) as url:
        wire = Wire(url, "2025-11-25")
        info = {"capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        started = await wire.result("initialize", protocolVersion="2025-11-25", **info)
        requests = {"tools": {"call": {}}}
        assert started["capabilities"]["tasks"] == {"cancel": {}, "requests": requests}
        listed = {one["name"]: one for one in (await wire.result("tools/list"))["tools"]}
        assert listed["fail"]["execution"] == {"taskSupport": "required"}
        task = (await wire.call("work", name="tea"))["task"]
        assert (task["status"], task["ttl"]) == ("working", 60_000)
        waiting = asyncio.create_task(wire.result("tasks/result", taskId=task["taskId"]))
        await gate.began.wait()
        assert (await wire.becomes(task["taskId"], "working"))["pollInterval"] == 500
        gate.opened.set()
        result = await waiting
        assert result["content"][0]["text"] == "tea is done"
        related = {"io.modelcontextprotocol/related-task": {"taskId": task["taskId"]}}
        assert result["_meta"] == related
        assert await wire.code("tasks/cancel", taskId=task["taskId"]) == -32602
        failed = (await wire.call("fail"))["task"]["taskId"]
        await wire.becomes(failed, "failed")
        assert (await wire.result("tasks/result", taskId=failed))["isError"] is True
        assert await wire.code("tools/call", name="fail", arguments={}) == -32601


# --- several processes


async def test_servers_on_one_store_know_each_others_tasks(tmp_path: Path) -> None:
    """The state, answers and cancellations pass through the store."""
    first, second = Gate(), Gate()
    stores = [SQLiteRunStore(tmp_path / "tasks.db") for _ in range(2)]
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(BOUND))
        here, there = [
            Wire(await stack.enter_async_context(serving(gate, store=store, json_response=True)))
            for gate, store in zip((first, second), stores, strict=True)
        ]
        task_id = (await here.call("work", name="tea"))["taskId"]
        task = await there.becomes(task_id, "working")
        assert (await here.becomes(task_id, "working"))["createdAt"] == task["createdAt"]
        await there.result("tasks/cancel", taskId=task_id)
        await here.becomes(task_id, "cancelled")
        assert first.cancelled.is_set()
        asked = (await here.call("ask"))["taskId"]
        (name,) = (await there.becomes(asked, "input_required"))["inputRequests"]
        answer = {name: {"action": "accept", "content": {"answer": 7}}}
        await there.result("tasks/update", taskId=asked, inputResponses=answer)
        done = await there.becomes(asked, "completed")
        assert done["result"]["content"][0]["text"] == "7 cm"
        assert second.calls == 0
    for store in stores:
        store.close()


PROGRAM = """
import asyncio, sys
from pathlib import Path
from agents_tools import ToolAnnotations, function_tool
from agents_tools.mcp import serve_async

folder = Path(sys.argv[1])

def noted(name):
    with (folder / name).open("a") as file:
        file.write("x")
    return len((folder / name).read_text())

@function_tool
async def once() -> str:
    noted("once")
    await asyncio.sleep(600)

@function_tool(annotations=ToolAnnotations(idempotentHint=True))
async def again() -> str:
    if noted("again") == 1:
        await asyncio.sleep(600)
    return "the second time"

@function_tool(metadata={"mcp": {"execution": {"taskSupport": "required"}}})
async def ready() -> str:
    return "ready"

asyncio.run(serve_async(
    [once, again, ready], "http", port=0, auth=False, json_response=True, tasks=True,
    store=folder / "tasks.db", on_ready=lambda url: print(url, flush=True),
))
"""


@contextlib.contextmanager
def process_of_server(folder: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start a server as a process, and yield it with its URL."""
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: S603
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(3))
async def test_a_killed_server_keeps_its_tasks(tmp_path: Path, moment: int) -> None:
    """A finished task keeps its result; a begun one runs again if it can, or is lost."""
    async with asyncio.timeout(3 * BOUND):
        with process_of_server(tmp_path) as (process, url):
            wire = Wire(url)
            done = (await wire.call("ready"))["taskId"]
            await wire.becomes(done, "completed")
            once, again = [(await wire.call(name))["taskId"] for name in ("once", "again")]
            await comes((tmp_path / "again").exists)
            for _ in range(moment):
                await wire.result("tasks/get", taskId=once)
            process.kill()  # SIGKILL
            process.wait()
        with process_of_server(tmp_path) as (_, url):
            wire = Wire(url)
            task = await wire.result("tasks/get", taskId=done)
            assert task["result"]["content"][0]["text"] == "ready"
            lost = await wire.becomes(once, "failed")
            assert "unknown whether the call took effect" in lost["error"]["message"]
            repeated = await wire.becomes(again, "completed")
            assert repeated["result"]["content"][0]["text"] == "the second time"
    assert (tmp_path / "once").read_text() == "x"
    assert (tmp_path / "again").read_text() == "xx"


CLIENT = """
import asyncio, sys
from agents_tools import Agent, RunConfig, Runner, SQLiteRunStore
from agents_tools.mcp import MCPToolManager
from agents_tools.testing import ScriptedModel, tool_call

url, path = sys.argv[1:]

async def main():
    async with MCPToolManager() as manager:
        await manager.add_server("peer", url=url)
        script = [tool_call("peer_work", name="tea"), "never"]
        agent = Agent("A", mcp_servers=[manager], model=ScriptedModel(script))
        config = RunConfig(store=SQLiteRunStore(path))
        run = Runner.run_streamed(agent, "Go.", run_config=config, run_id="r1")
        async for event in run.stream_events():
            if event.type == "tool_progress_event":
                print(event.message, flush=True)

asyncio.run(main())
"""


async def resumed(url: str, path: Path) -> ToolCallOutputItem:
    """Resume the run of the client in this process, and return the output of its call."""
    async with MCPToolManager() as manager:
        await manager.add_server("peer", url=url)
        agent = Agent("A", mcp_servers=[manager], model=ScriptedModel(["Finished."]))
        store = SQLiteRunStore(path)
        result = await Runner.resume(agent, "r1", store=store)
        assert result.final_output == "Finished."
        store.close()
        (output,) = [one for one in result.new_items if isinstance(one, ToolCallOutputItem)]
        return output


@pytest.mark.parametrize(
    "is_known",
    [pytest.param(True, id="same server"), slow_case(False, id="server without the task")],
)
async def test_a_run_whose_process_is_killed_gets_the_result_of_its_task(
    tmp_path: Path, is_known: bool
) -> None:
    """The log of the run has the task, so the call is not repeated; an unknown task is lost."""
    gate, other = Gate(), Gate()
    path = tmp_path / "runs.db"
    async with asyncio.timeout(3 * BOUND), serving(gate) as url, serving(other) as elsewhere:
        command = [sys.executable, "-c", CLIENT, url, str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: ASYNC220, S603
        try:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == "measuring\n"
        finally:
            process.kill()  # SIGKILL
            process.communicate()
        assert not gate.cancelled.is_set()
        gate.opened.set()
        output = await resumed(url if is_known else elsewhere, path)
        if is_known:
            assert (output.status, output.output) == ("ok", "tea is done")
        else:
            assert output.status == "lost"
            assert "unknown whether" in str(output.output)
    assert (gate.calls, other.calls) == (1, 0)


async def test_a_server_that_hands_its_runs_over_does_not_cancel_their_tasks(
    tmp_path: Path,
) -> None:
    """The process that resumes the run gets the result; a cancelled run cancels its task."""
    gate = Gate()
    path = tmp_path / "runs.db"
    script = [tool_call("peer_work", name="tea"), "never"]
    async with asyncio.timeout(BOUND), serving(gate) as url, MCPToolManager() as manager:
        await manager.add_server("peer", url=url)
        store = SQLiteRunStore(path)
        runs = RunManager(store=store, run_config=RunConfig(resume_orphans=True))
        agent = Agent("A", mcp_servers=[manager], model=ScriptedModel(script))
        active = runs.start(agent, "Go.", run_id="r1")
        async for event in active.events():
            if isinstance(event, ToolProgressEvent):
                break
        await runs.aclose()
        store.close()
        assert not gate.cancelled.is_set()
        gate.opened.set()
        output = await resumed(url, path)
        assert (output.status, output.output) == ("ok", "tea is done")
    assert gate.calls == 1


async def comes(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110 - the state is in another process
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tasks": "all"}, "tasks= expects"),
        ({"tasks": True, "max_tasks": 0}, "max_tasks= expects"),
        ({"tasks": True, "task_ttl": 0}, "task_ttl= expects"),
        ({"store": MemoryRunStore()}, "store= needs tasks="),
    ],
)
def test_an_invalid_option_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=text):
        mcp_server([], **options)
