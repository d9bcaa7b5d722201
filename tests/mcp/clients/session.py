"""The SDK's `ClientSession`, in both SDK versions: the era with `initialize`."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from tests.mcp.clients.steps import Progress, report, target


async def main() -> None:
    """Connect, list the tools and run the steps."""
    mcp: Any = importlib.import_module("mcp")
    async with opened(mcp, target()) as streams, mcp.ClientSession(*streams[:2]) as session:
        begun = await session.initialize()
        listed = await session.list_tools()

        async def call(name: str, arguments: dict[str, Any], progress: Progress) -> Any:
            return await session.call_tool(name, arguments, progress_callback=progress)

        version = getattr(begun, "protocolVersion", None) or begun.protocol_version
        await report(version, listed.tools, call)


def opened(mcp: Any, where: str | list[str]) -> Any:
    """Open a transport of the installed SDK version."""
    if isinstance(where, list):
        return mcp.stdio_client(mcp.StdioServerParameters(command=where[0], args=where[1:]))
    module: Any = importlib.import_module("mcp.client.streamable_http")
    return module.streamable_http_client(where)


if __name__ == "__main__":
    asyncio.run(main())
