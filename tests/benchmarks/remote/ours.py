"""The library's worker and backend, with the same names as `engine`. `ours.py` serves."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count as numbers
from typing import Any

from agents_tools import NotifyStreamEvent, function_tool, streaming_tool
from agents_tools.execution import CallEnvelope
from agents_tools.mcp import MCPBackend, mcp_server
from tests.benchmarks.remote.engine import PAUSE, serve


@function_tool
async def echo(text: str) -> str:
    """Give back a text."""
    return text


@streaming_tool
async def ticks(count: int) -> AsyncGenerator[Any]:
    """Say something now and then."""
    for _ in range(count):
        await asyncio.sleep(PAUSE)
        yield NotifyStreamEvent(repr(time.time()))
    yield "done"


@streaming_tool
async def steps(count: int) -> AsyncGenerator[Any]:
    """Say much at once."""
    for _ in range(count):
        yield NotifyStreamEvent(repr(time.time()))
    yield "done"


class Connection:
    """A backend."""

    def __init__(self, backend: MCPBackend) -> None:
        self._backend = backend
        self._ids = numbers()

    async def echo(self, text: str) -> str:
        """Call a tool that says nothing before its answer."""
        output = ""
        async for event in self._backend.submit(self._envelope("echo", f'{{"text": "{text}"}}')):
            output = event.payload.get("output", "")
        return output

    async def events(self, name: str, count: int) -> list[float]:
        """Call a tool that says something, and give how long each of its events was on its way."""
        envelope = self._envelope(name, f'{{"count": {count}}}')
        return [
            time.time() - float(event.payload["data"])
            async for event in self._backend.submit(envelope)
            if event.kind == "event"
        ]

    def _envelope(self, tool: str, arguments: str) -> CallEnvelope:
        return CallEnvelope(call_id=f"bench-{next(self._ids)}", tool=tool, arguments=arguments)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Connection]:
    """Connect to a worker."""
    async with MCPBackend(url) as backend:
        yield Connection(backend)


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(mcp_server([echo, ticks, steps]))))
