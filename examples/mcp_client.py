"""Use the tools of an MCP server as function tools, also when the server dies.

Run it: python examples/mcp_client.py. It prints the ends of four calls: one succeeds, one is
refused before it is sent, one is lost with the server, and one succeeds after the server's restart.
Then it prints the events of a call.

The server is this file, started again with the argument `serve`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from agents_tools import Event, ToolProgressEvent, function_tool, streaming_tool
from agents_tools.mcp import MCPToolManager, serve

THIS_FILE = str(Path(__file__).resolve())


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@streaming_tool
async def copy(files: list[str]) -> AsyncIterator[Event | str]:
    """Copy files."""
    for done, file in enumerate(files, start=1):
        yield ToolProgressEvent(done, total=len(files), message=file)
    yield f"{len(files)} copied"


@function_tool
def crash() -> str:
    """End the server in the middle of a call."""
    os._exit(3)


async def main() -> None:
    """Connect a server, call its tools in every way a call can end, and watch one."""
    async with MCPToolManager() as manager:
        await manager.add_server(
            "files", command=sys.executable, args=[THIS_FILE, "serve"], inherit_env=["PYTHONPATH"]
        )
        tools = {tool.name: tool for tool in manager.get_tools()}
        print("tools:", *tools)

        for name, arguments in (
            ("files_add", '{"a": 1, "b": 2}'),
            ("files_add", '{"a": "one"}'),  # never reaches the server
            ("files_crash", "{}"),  # whether it took effect is unknown
            ("files_add", '{"a": 3, "b": 4}'),  # the server is started again for this one
        ):
            outcome = await tools[name].call(None, arguments)
            first_line = str(outcome.output).splitlines()[0]
            print(f"{outcome.status}: {first_line}")

        async with tools["files_copy"].stream(files=["one.txt", "two.txt"]) as stream:
            async for event in stream:
                if isinstance(event, ToolProgressEvent):
                    print(f"  {event.current} of {event.total}: {event.message}")
        print(stream.result.content)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve([add, copy, crash])
    else:
        asyncio.run(main())
