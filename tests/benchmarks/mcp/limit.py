"""The limit: the SDK's own client, with nothing around it. It is also the subject `mcp`."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp import Client, StdioServerParameters

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Connection:
    """A client of the SDK and what its server has listed."""

    def __init__(self, client: Client, names: list[str], asked: str) -> None:
        self.names = names
        self.asked = float(asked)
        self._client = client

    async def call(self, name: str, arguments: str) -> str:
        """Call a tool and give the text of its answer."""
        result = await self._client.call_tool(name, json.loads(arguments))
        (block,) = result.content
        return getattr(block, "text", "")

    async def progress(self, name: str, arguments: str, expected: int) -> int:
        """Call a tool and count its reports; some come after the answer."""
        came = 0
        all_there = asyncio.Event()

        async def count(progress: float, total: float | None, message: str | None) -> None:
            nonlocal came
            del progress, total, message
            came += 1
            if came == expected:
                all_there.set()

        await self._client.call_tool(name, json.loads(arguments), progress_callback=count)
        async with asyncio.timeout(10):
            await all_there.wait()
        return came


def memory(server: Any) -> Any:
    """Connect to a server in this process."""
    return _connect(server)


def stdio(command: list[str]) -> Any:
    """Start a server and connect to it."""
    return _connect(StdioServerParameters(command=command[0], args=command[1:]))


def http(url: str) -> Any:
    """Connect to a server that runs already."""
    return _connect(url)


@asynccontextmanager
async def connect_all(commands: list[list[str]]) -> AsyncGenerator[int]:
    """Start servers and list their tools one after the other, in the block that closes them."""
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(stdio(command)) for command in commands]
        yield sum(len(connection.names) for connection in connections)


@asynccontextmanager
async def connect_all_at_once(commands: list[list[str]]) -> AsyncGenerator[int]:
    """Start servers and list their tools at once, each in a task of its own."""
    done = asyncio.Event()
    listed: asyncio.Queue[int] = asyncio.Queue()

    async def keep(command: list[str]) -> None:
        async with stdio(command) as connection:
            await listed.put(len(connection.names))
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for command in commands:
            group.create_task(keep(command))
        yield sum([await listed.get() for _ in commands])
        done.set()


@asynccontextmanager
async def _connect(target: Any) -> AsyncGenerator[Connection]:
    async with Client(target) as client:
        tools = (await client.list_tools()).tools
        yield Connection(client, [tool.name for tool in tools], tools[0].description or "")
