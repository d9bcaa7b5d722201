"""Serve function tools over MCP, and print the messages for a client.

Run it: python examples/mcp_server.py. It prints the tools, a failure, two progress notifications
and a result.

`python mcp_server.py serve` is the server on standard input and output, as an editor starts it.
Without an argument, this program starts itself as the server and prints the JSON messages.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents_tools import Event, ToolError, ToolProgressEvent, function_tool, streaming_tool
from agents_tools.mcp import serve

THIS_FILE = str(Path(__file__).resolve())
STOCK = {"tea": 12, "cake": 0}


@function_tool
def count_stock(thing: str) -> int:
    """Count what is in stock.

    Args:
        thing: What to count.
    """
    if thing not in STOCK:
        raise ToolError(f"We do not sell {thing}.")
    return STOCK[thing]


@streaming_tool
async def take_stock() -> AsyncIterator[Event | str]:
    """Count everything there is."""
    for done, thing in enumerate(STOCK, start=1):
        yield ToolProgressEvent(done, total=len(STOCK), message=f"counting {thing}")
    yield f"{sum(STOCK.values())} pieces"


MODERN: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "example", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""What each request carries from version 2026-07-28 on, in place of a session."""


async def main() -> None:
    """Ask the server three questions, one after the other."""
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        THIS_FILE,
        "serve",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    if server.stdin is None or server.stdout is None:
        raise RuntimeError("there are no pipes")
    questions: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {"_meta": MODERN}),
        ("tools/call", {"name": "count_stock", "arguments": {"thing": "owls"}, "_meta": MODERN}),
        ("tools/call", {"name": "take_stock", "_meta": {**MODERN, "progressToken": "t"}}),
    ]
    for number, (method, params) in enumerate(questions):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        message: dict[str, Any] = {}
        while message.get("id") != number:  # reports of progress come first
            message = json.loads(await server.stdout.readline())
            show(message)
    server.stdin.close()  # which ends it
    await server.wait()


def show(message: dict[str, Any]) -> None:
    """Print what matters of a message."""
    if message.get("method") == "notifications/progress":
        told = message["params"]
        print(f"progress: {told['progress']:g} of {told['total']:g}, {told['message']}")
    elif "tools" in message["result"]:
        for tool in message["result"]["tools"]:
            print(f"{tool['name']}: {tool['description']} {json.dumps(tool['inputSchema'])}")
    else:
        result = message["result"]
        print("failed:" if result.get("isError") else "result:", result["content"][0]["text"])


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve([count_stock, take_stock], name="shop")
    else:
        asyncio.run(main())
