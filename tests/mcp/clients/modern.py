"""The `Client` of SDK version 2: the era without sessions."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.mcp.clients.steps import Progress, report, target


async def main() -> None:
    """Connect, list the tools and run the steps."""
    where = target()
    if isinstance(where, list):
        server: Any = stdio_client(StdioServerParameters(command=where[0], args=where[1:]))
    else:
        server = where
    async with Client(server) as client:
        listed = await client.list_tools()

        async def call(name: str, arguments: dict[str, Any], progress: Progress) -> Any:
            return await client.call_tool(name, arguments, progress_callback=progress)

        await report(client.protocol_version, listed.tools, call)


if __name__ == "__main__":
    asyncio.run(main())
