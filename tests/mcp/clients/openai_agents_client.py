"""The MCP servers of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

from tests.mcp.clients.steps import BOUND, Progress, report, target


class ServerOfAgents:
    """A client.

    Args:
        server: The server object of the Agents SDK.
    """

    def __init__(self, server: Any) -> None:
        self._server = server

    async def tools(self) -> list[Any]:
        """Return the tools."""
        return await self._server.list_tools()

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool; the SDK has no parameter for progress."""
        del progress
        return await self._server.call_tool(name, arguments)

    async def read(self, uri: str) -> Any:
        """Read a resource."""
        return await self._server.read_resource(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        return await self._server.get_prompt(name, arguments)


async def main() -> None:
    """Connect and run the steps."""
    where = target()
    if isinstance(where, list):
        server: Any = MCPServerStdio(
            {"command": where[0], "args": where[1:]}, client_session_timeout_seconds=BOUND
        )
    else:
        server = MCPServerStreamableHttp({"url": where}, client_session_timeout_seconds=BOUND)
    async with server:
        await report("", ServerOfAgents(server))


if __name__ == "__main__":
    asyncio.run(main())
