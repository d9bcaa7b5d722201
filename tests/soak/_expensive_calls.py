"""The expensive kinds of calls: they start processes, open files or serve."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents_tools import (
    Agent,
    EventStream,
    MessageEvent,
    RunConfig,
    Runner,
    ToolContext,
    policies,
)
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor
from agents_tools.execution import ProcessBackend, run_on
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.persistence import SQLiteEventStore, SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import ag_ui, sse
from tests import isolated_tools
from tests.mcp.small import listening
from tests.soak._calls import BrokenError, Kind, add, count, fail, wait
from tests.ui.web import Exchange

__all__ = ["EXPENSIVE_CALLS"]

_WITHIN = 60.0
_ROOT = Path(__file__).parents[2]
_SERVER: dict[str, Any] = {
    "command": sys.executable,
    "args": [str(_ROOT / "tests" / "mcp" / "served.py"), "stdio"],
    "cwd": str(_ROOT),
}
_PER_SERVER = 10


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="agents-tools-leaks-") as folder:
        yield Path(folder)


def _expected(seen: object, expected: object) -> None:
    if seen != expected:
        raise BrokenError(f"got {seen!r:.300}, not {expected!r}")


def _agent() -> Agent[Any, Any]:
    steps = [tool_call("add", a=1, b=2), tool_call("count", to=3), "Done."]
    return Agent("helper", tools=[add, count, wait], model=ScriptedModel(steps))


# --- served over HTTP


async def over_sse(times: int) -> None:
    """Run an agent over server-sent events; every third client leaves in the middle."""
    for begun in range(0, times, _PER_SERVER):
        app = sse.app([add, count, wait], keep_runs=5, max_running=50)
        for number in range(min(_PER_SERVER, times - begun)):
            name = ("add", "count", "wait")[number % 3]
            given = {"tool": name, "arguments": {"a": 1, "b": 2} if name == "add" else {}}
            if name == "count":
                given["arguments"] = {"to": 3}
            exchange = Exchange(app, "POST", "/runs", given)
            if name == "wait":
                await exchange.until("tool_stream_start_event")
                await exchange.leave()
            else:
                await exchange.whole()
            _expected(exchange.status, 200)
        await app.aclose()


async def over_ag_ui(times: int) -> None:
    """Run an agent over AG-UI; every second client leaves in the middle."""
    for number in range(times):
        app = ag_ui.app(_agent())
        exchange = Exchange(app, "POST", "/", _ag_ui_body())
        if number % 2:
            await exchange.until("RUN_STARTED")
            await exchange.leave()
        else:
            await exchange.whole()
            _expected("RUN_FINISHED" in exchange.text, True)
        await app.aclose()


def _ag_ui_body() -> dict[str, Any]:
    hello = {"id": "u1", "role": "user", "content": "Go."}
    some = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": [hello]}
    return {**some, "tools": [], "context": [], "state": {}, "forwardedProps": {}}


# --- MCP


async def _called(manager: MCPToolManager, times: int) -> None:
    tools = {str(tool.origin.wire_name): tool for tool in manager.get_tools()}
    for number in range(times):
        outcome = await tools["add"].call(None, f'{{"a": {number}, "b": 1}}')
        _expected(outcome.status, "ok")
        if number % 5 == 4:
            outcome = await tools["fail"].call(None, '{"how": "told"}')
            _expected(outcome.status, "tool_error")
        if number % 5 == 3 and "wait" in tools:
            task = asyncio.ensure_future(tools["add"].call(None, '{"a": 1, "b": 1}'))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])


async def mcp_in_memory(times: int) -> None:
    """Connect to a server in this process, call it, and close."""
    for begun in range(0, times, _PER_SERVER):
        server: Any = mcp_server([add, fail, wait])._server.server
        async with asyncio.timeout(_WITHIN), MCPToolManager() as manager:
            await manager.add_server("other", server=server)
            await _called(manager, min(_PER_SERVER, times - begun))


async def mcp_over_stdio(times: int) -> None:
    """Start a server as a program, call it, and end it."""
    for begun in range(0, times, _PER_SERVER):
        async with asyncio.timeout(_WITHIN), MCPToolManager() as manager:
            await manager.add_server("other", **_SERVER)
            await _called_there(manager, min(_PER_SERVER, times - begun))


async def _called_there(manager: MCPToolManager, times: int) -> None:
    tools = {str(tool.origin.wire_name): tool for tool in manager.get_tools()}
    for number in range(times):
        outcome = await tools["add"].call(None, f'{{"a": {number}, "b": 1}}')
        _expected(outcome.status, "ok")


async def mcp_over_http(times: int) -> None:
    """Serve over HTTP, connect, call, and close both."""
    for begun in range(0, times, _PER_SERVER):
        async with (
            asyncio.timeout(_WITHIN),
            listening(mcp_server([add, fail, wait], stateless=bool(begun % 2))) as address,
            MCPToolManager() as manager,
        ):
            await manager.add_server("other", url=f"{address}/mcp")
            await _called(manager, min(_PER_SERVER, times - begun))


# --- processes


async def in_processes(times: int) -> None:
    """Call in worker processes, let some of them die, and end them all."""
    backend = ProcessBackend("tests.isolated_tools", workers=2)
    try:
        async with asyncio.timeout(_WITHIN):
            for number in range(times):
                if number % 25 == 24:
                    outcome = await run_on(backend)(isolated_tools.leave).call(
                        None, '{"how": "exit"}'
                    )
                    _expected(outcome.status, "lost")
                outcome = await run_on(backend)(isolated_tools.add).call(
                    ToolContext(), '{"a": 1, "b": 2}'
                )
                _expected(outcome.value, 3)
    finally:
        await backend.aclose()


async def isolated(times: int) -> None:
    """Isolate a tool, call it, and close what isolates it."""
    for begun in range(0, times, 50):
        policy = policies.isolate()
        tool = policy(isolated_tools.add)
        for _ in range(min(50, times - begun)):
            _expected((await tool.call(None, '{"a": 1, "b": 2}')).value, 3)
        await policy.aclose()


def _shell(times: int) -> None:
    with _folder() as folder:
        for begun in range(0, times, _PER_SERVER):
            shell = TerminalExecutor(folder, soft_timeout=20)
            try:
                for number in range(min(_PER_SERVER, times - begun)):
                    seen = shell(TerminalAction(command=f"(sleep 300 &); echo {number}"))
                    _expected(seen.text, f"{number}\n")
            finally:
                shell.close()


async def in_shells(times: int) -> None:
    """Run commands that leave processes behind in sandboxed shells, and close them."""
    await asyncio.to_thread(_shell, times)


# --- files


async def stored(times: int) -> None:
    """Open a store and a stream over it, publish, read, and close both."""
    with _folder() as folder:
        for begun in range(0, times, 50):
            many = min(50, times - begun)
            store = SQLiteEventStore(folder / f"{begun}.db")
            async with asyncio.timeout(_WITHIN), EventStream(store) as stream:
                for number in range(many):
                    await stream.send(MessageEvent(f"{number}"))
            read = store.read().result(_WITHIN)
            store.close()
            _expected(len(read), many)


async def stored_runs(times: int) -> None:
    """Run agents with a store."""
    with _folder() as folder:
        store = SQLiteRunStore(folder / "runs.db")
        for number in range(times):
            result = await Runner.run(
                _agent(), "Go.", run_id=f"run {number}", run_config=RunConfig(store=store)
            )
            _expected(result.final_output, "Done.")
            await store.delete(f"run {number}")
        await store.aclose()


EXPENSIVE_CALLS: tuple[Kind, ...] = (
    Kind(name="SSE over HTTP", run=over_sse, least=30, max_seconds=1, most=128),
    Kind(name="AG-UI over HTTP", run=over_ag_ui, least=30, max_seconds=1, most=128),
    Kind(name="MCP in memory", run=mcp_in_memory, least=50, max_seconds=1, most=64),
    Kind(name="MCP over stdio", run=mcp_over_stdio, least=10, max_seconds=8, most=256),
    Kind(name="MCP over HTTP", run=mcp_over_http, least=30, max_seconds=2, most=256),
    Kind(name="worker processes", run=in_processes, least=50, max_seconds=6, most=64),
    Kind(name="isolated tools", run=isolated, least=50, max_seconds=6, most=64),
    Kind(name="sandboxed shells", run=in_shells, least=20, max_seconds=4, most=128),
    Kind(name="events in SQLite", run=stored, least=50, max_seconds=0.5, most=64),
    Kind(name="runs with a store", run=stored_runs, least=20, max_seconds=1, most=64),
)
