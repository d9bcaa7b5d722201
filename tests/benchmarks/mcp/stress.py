"""MCP servers that die, lose sessions or have many clients: `python -m tests.benchmarks.mcp.stress`.

`python -m tests.benchmarks.mcp.stress serve` is the server with many clients.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil

from agents_tools import FunctionTool, function_tool
from agents_tools.mcp import MCPToolManager, serve_async
from tests.benchmarks.tables import duration, markdown
from tests.mcp.hostile_http import HostileHTTP
from tests.mcp.small import program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KILLS = 30
LOSSES = 100
CLIENTS = 1_000
CALLS = 200
BEGUN = 0.05
"""Seconds until a call that is killed has certainly begun."""

Tools = dict[str, FunctionTool[..., Any]]


@function_tool
def echo(text: str) -> str:
    """Return a text."""
    return text


class Shelf:
    """Tools that can change, so clients listen for changes."""

    def get_tools(self) -> list[Any]:
        """Return the tools."""
        return [echo]


async def serve() -> None:
    """Serve a tool until a signal ends it."""

    def ready(url: str) -> None:
        print(url, flush=True)

    await serve_async(Shelf(), "http", port=0, on_ready=ready, auth=False, max_streams=2 * CLIENTS)


def tools_of(manager: MCPToolManager) -> Tools:
    """Return the tools by their names on the server."""
    return {str(tool.origin.wire_name): tool for tool in manager.get_tools()}


async def timed(tool: FunctionTool[..., Any]) -> tuple[str, float]:
    """Call a tool; return the status and the seconds."""
    start = perf_counter()
    outcome = await tool.call(None, '{"text": "hello"}')
    return outcome.status, perf_counter() - start


async def killed_between_calls() -> list[str]:
    """Kill a server on stdio before each call, which starts it again."""
    async with MCPToolManager(connect_timeout=60) as manager:
        await manager.add_server("bench", **program())
        tools = tools_of(manager)
        await timed(tools["echo"])

        async def kill() -> None:
            os.kill(manager.get_server_info("bench")["pid"], 9)
            while manager.get_server_info("bench")["connected"]:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.001)

        return await repeated(
            "kill -9 of a server on stdio, then a call, with the restart",
            KILLS,
            kill,
            tools["echo"],
        )


async def killed_in_calls() -> list[str]:
    """Kill a server on stdio in the middle of a call."""
    lost = 0
    async with MCPToolManager(connect_timeout=60) as manager:
        await manager.add_server("bench", **program())
        tools = tools_of(manager)
        for _ in range(KILLS):
            await timed(tools["echo"])  # starts the server
            call = asyncio.create_task(tools["hang"].call(None, "{}"))
            await asyncio.sleep(BEGUN)
            os.kill(manager.get_server_info("bench")["pid"], 9)
            lost += (await call).status == "lost"
    return ["kill -9 during a call: calls reported as `lost`", f"{lost} of {KILLS}", ""]


async def session_lost(name: str, unknown: tuple[int, bytes]) -> list[str]:
    """Lose the session of a server over HTTP before each call, which opens a new one."""
    async with HostileHTTP(unknown=unknown) as server, MCPToolManager() as manager:
        await manager.add_server("bench", url=server.url)
        tools = tools_of(manager)
        await timed(tools["echo"])

        async def lose() -> None:
            server.given.clear()

        return await repeated(f"session lost ({name}), then a call", LOSSES, lose, tools["echo"])


async def repeated(
    title: str, times: int, harm: Callable[[], Awaitable[None]], tool: FunctionTool[..., Any]
) -> list[str]:
    """Return a row for a call after each harm."""
    results: list[tuple[str, float]] = []
    for _ in range(times):
        await harm()
        results.append(await timed(tool))
    succeeded = sum(status == "ok" for status, _ in results)
    median = statistics.median(seconds for _, seconds in results)
    return [title, f"{succeeded} of {times} succeed", duration(median)]


async def many_clients() -> list[list[str]]:
    """Open streams of idle clients to a server, and call it from another client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4 * CLIENTS), hard), hard))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.mcp.stress", "serve"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    writers: list[asyncio.StreamWriter] = []
    try:
        url = (await process.stdout.readline()).decode().strip()
        server = psutil.Process(process.pid)
        async with MCPToolManager() as manager:
            await manager.add_server("bench", url=url)
            tool = tools_of(manager)["echo"]
            alone, memory = await median_of_calls(tool), server.memory_info().rss
            writers += [await listening(url, number) for number in range(CLIENTS)]
            among = await median_of_calls(tool)
            each = (server.memory_info().rss - memory) / CLIENTS
    finally:
        for writer in writers:
            writer.close()
        process.terminate()
        await process.wait()
    return [
        ["call over HTTP, without other clients", f"{CALLS} of {CALLS} succeed", duration(alone)],
        [
            f"… with {CLIENTS:,} idle clients that listen for changes",
            f"{CALLS} of {CALLS} succeed",
            duration(among),
        ],
        ["memory of the server for each idle client", f"{each / 1024:.0f} KB", ""],
    ]


async def median_of_calls(tool: FunctionTool[..., Any]) -> float:
    """Return the median seconds of calls, all of which have to succeed."""
    results = [await timed(tool) for _ in range(CALLS)]
    if {status for status, _ in results} != {"ok"}:
        sys.exit(f"A call failed: {results}")
    return statistics.median(seconds for _, seconds in results)


async def listening(url: str, number: int) -> asyncio.StreamWriter:
    """Open a stream for changes, and wait until the server has accepted it."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    method = "subscriptions/listen"
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "idle", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    head = (
        f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\n"
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        f"mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write((head + body).encode())
    status = await reader.readline()
    if b" 200 " not in status:
        sys.exit(f"A client cannot listen: {status!r} {await reader.read(500)!r}")
    await reader.readuntil(b"data:")
    return writer


async def main() -> None:
    """Measure, and print the table."""
    no_session = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
    as_typescript = json.dumps({"jsonrpc": "2.0", "error": no_session, "id": None}).encode()
    rows = [
        await killed_between_calls(),
        await killed_in_calls(),
        await session_lost("status 404", (404, b"")),
        await session_lost("status 400, as the TypeScript SDK", (400, as_typescript)),
        *await many_clients(),
    ]
    print(markdown(["", "result", "median"], rows))


if __name__ == "__main__":
    asyncio.run(serve() if "serve" in sys.argv else main())
