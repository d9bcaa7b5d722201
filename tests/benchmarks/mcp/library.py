"""The library's manager, with the same names as the SDK's client and the peer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agents_tools import FunctionTool, ToolProgressEvent
from agents_tools.mcp import MCPToolManager
from tests.benchmarks.mcp.server import TOOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

CONNECT_TIMEOUT = 60.0
"""Seconds: eight interpreters that start at once on a busy machine take their time."""
MAX_OUTPUT = 64 << 20
"""Characters: the other clients cut nothing either."""


class Connection:
    """The tools of one server."""

    def __init__(self, tools: list[FunctionTool[..., Any]]) -> None:
        self.names = [tool.origin.wire_name for tool in tools]
        self.asked = float(tools[0].description)
        whole = [tool.with_(max_output=MAX_OUTPUT) for tool in tools[: len(TOOLS)]]
        self._tools = dict(zip(self.names, whole, strict=False))

    async def call(self, name: str, arguments: str) -> str:
        """Call a tool and give what the model reads."""
        return await self._tools[name].on_invoke_tool(None, arguments)

    async def progress(self, name: str, arguments: str, expected: int) -> int:
        """Call a tool and count its reports."""
        del expected
        came = 0
        async with self._tools[name].stream(arguments) as stream:
            async for event in stream:
                came += isinstance(event, ToolProgressEvent)
        return came


def memory(server: Any) -> Any:
    """Connect to a server in this process."""
    return _connect(server=server)


def stdio(command: list[str]) -> Any:
    """Start a server and connect to it."""
    return _connect(command=command[0], args=command[1:])


def http(url: str) -> Any:
    """Connect to a server that runs already."""
    return _connect(url=url)


@asynccontextmanager
async def connect_all(commands: list[list[str]]) -> AsyncGenerator[int]:
    """Start the servers of a configuration, which connects them at once."""
    servers = {
        f"bench{number}": {"command": command[0], "args": command[1:]}
        for number, command in enumerate(commands)
    }
    config = {"mcpServers": servers}
    async with MCPToolManager.from_config(config, connect_timeout=CONNECT_TIMEOUT) as manager:
        yield len(manager.get_tools())


@asynccontextmanager
async def _connect(**connection: Any) -> AsyncGenerator[Connection]:
    async with MCPToolManager(connect_timeout=CONNECT_TIMEOUT) as manager:
        yield Connection(await manager.add_server("bench", **connection))
