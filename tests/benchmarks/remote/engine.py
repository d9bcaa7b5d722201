"""The engine alone: the SDK's server on its lowest level, and its client. `engine.py` serves.

Its events carry what those of the library do, as JSON in the message of a report of progress;
those of the `bare_…` tools carry a time and nothing else, which no program could use but this one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcp import Client, types
from mcp.server.lowlevel import Server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.server.context import ServerRequestContext

PAUSE = 0.002
"""Seconds between events whose way is timed: each goes alone."""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
TOOLS = {
    "echo": TEXT,
    **dict.fromkeys(("ticks", "steps", "bare_ticks", "bare_steps"), COUNT),
}


def event(number: int) -> str:
    """Give what the library's events carry, as whoever has only the SDK would write it."""
    now = time.time()
    told: dict[str, Any] = {
        "type": "notify_stream_event",
        "seq": number,
        "timestamp": datetime.fromtimestamp(now, UTC).isoformat(),
        "source": "environment",
        "path": ["call"],
        "tool_name": "ticks",
        "tool_call_id": "call",
        "data": repr(now),
        "is_delta": False,
        "tag": None,
        "level": "info",
    }
    return json.dumps(told)


def build() -> Server[Any]:
    """Make the server."""

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        tools = [types.Tool(name=name, input_schema=schema) for name, schema in TOOLS.items()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        text = arguments.get("text", "done")
        for number in range(arguments.get("count", 0)):
            if params.name.endswith("ticks"):
                await asyncio.sleep(PAUSE)
            told = repr(time.time()) if params.name.startswith("bare") else event(number)
            await context.session.report_progress(number + 1, None, told)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server("engine", on_list_tools=list_tools, on_call_tool=call_tool)


class Connection:
    """A client of the SDK."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def echo(self, text: str) -> str:
        """Call a tool that says nothing before its answer."""
        result = await self._client.call_tool("echo", {"text": text})
        return getattr(result.content[0], "text", "")

    async def events(self, name: str, count: int) -> list[float]:
        """Call a tool that says something, and give how long each of its events was on its way."""
        taken: list[float] = []
        all_there = asyncio.Event()
        bare = name.startswith("bare")

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            del progress, total
            told = json.loads(message or "{}")
            taken.append(time.time() - float(told if bare else told["data"]))
            if len(taken) == count:
                all_there.set()

        await self._client.call_tool(name, {"count": count}, progress_callback=hear)
        async with asyncio.timeout(10):
            await all_there.wait()
        return taken


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Connection]:
    """Connect to a server."""
    async with Client(url) as client:
        await client.list_tools()
        yield Connection(client)


async def serve(app: Any) -> None:
    """Serve until a signal ends it, and print the port."""
    import socket

    import uvicorn

    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(build().streamable_http_app(stateless_http=True))))
