"""FastMCP's `Client`."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from tests.mcp.clients.steps import Progress, report, target


async def main() -> None:
    """Connect, list the tools and run the steps."""
    fastmcp: Any = importlib.import_module("fastmcp")
    transports: Any = importlib.import_module("fastmcp.client.transports")
    where = target()
    if isinstance(where, list):
        server = transports.StdioTransport(command=where[0], args=where[1:])
    else:
        server = transports.StreamableHttpTransport(where)
    async with fastmcp.Client(server) as client:
        tools = await client.list_tools()

        async def call(name: str, arguments: dict[str, Any], progress: Progress) -> Any:
            return await client.call_tool_mcp(name, arguments, progress_handler=progress)

        await report("", tools, call)


if __name__ == "__main__":
    asyncio.run(main())
