"""FastMCP's `Client`, against the same servers as the SDK's."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastmcp import Client
from fastmcp.client.transports import FastMCPTransport, StdioTransport
from mcp.server.mcpserver import MCPServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Connection:
    """A client and what its server has listed."""

    def __init__(self, client: Client[Any], names: list[str], asked: str) -> None:
        self.names = names
        self.asked = float(asked)
        self._client = client

    async def call(self, name: str, arguments: str) -> str:
        """Call a tool and give the text of its answer."""
        result = await self._client.call_tool(name, json.loads(arguments))
        (block,) = result.content
        return block.text

    async def progress(self, name: str, arguments: str, expected: int) -> int:
        """Call a tool and count its reports; some come after the answer."""
        came = 0
        all_there = asyncio.Event()

        async def count(progress: float, total: float | None, message: str | None) -> None:
            nonlocal came
            came += 1
            if came == expected:
                all_there.set()

        await self._client.call_tool(name, json.loads(arguments), progress_handler=count)
        async with asyncio.timeout(10):
            await all_there.wait()
        return came


def memory(server: Any) -> Any:
    """Connect to a server in this process, which it takes only inside one of the level above."""
    outer = MCPServer("benchmark")
    outer._lowlevel_server = server
    return _connect(FastMCPTransport(outer))


def stdio(command: list[str]) -> Any:
    """Start a server and connect to it."""
    return _connect(StdioTransport(command[0], command[1:], keep_alive=False))


def http(url: str) -> Any:
    """Connect to a server that runs already."""
    return _connect(url)


@asynccontextmanager
async def connect_all(commands: list[list[str]]) -> AsyncGenerator[int]:
    """Start servers and list their tools, with the client for a configuration."""
    servers = {
        f"bench{number}": {"command": command[0], "args": command[1:], "keep_alive": False}
        for number, command in enumerate(commands)
    }
    async with Client({"mcpServers": servers}) as client:
        yield len(await client.list_tools())


@asynccontextmanager
async def _connect(target: Any) -> AsyncGenerator[Connection]:
    async with Client(target) as client:
        tools = await client.list_tools()
        yield Connection(client, [tool.name for tool in tools], tools[0].description)
