"""FastMCP's `Client`; where `fastmcp_tasks` is installed, it drives tasks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import Any

from tests.mcp.clients.steps import Progress, answer_to, report, sampled, target

types: Any = importlib.import_module("mcp_types")


class FastMCPClient:
    """A client.

    Args:
        client: FastMCP's client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    async def tools(self) -> list[Any]:
        """Return the tools."""
        return await self._client.list_tools()

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool."""
        return await self._client.call_tool_mcp(name, arguments, progress_handler=progress)

    async def read(self, uri: str) -> Any:
        """Read a resource."""
        return await self._client.read_resource_mcp(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        return await self._client.get_prompt_mcp(name, arguments)

    async def task(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool as a task."""
        tasks: Any = importlib.import_module("fastmcp_tasks")
        task = await tasks.call_tool_task(self._client, name, arguments)
        result = await task.result()
        return {"content": [{"type": "text", "text": block.text} for block in result.content]}


async def elicit(_message: str, _kind: Any, params: Any, _context: Any) -> Any:
    """Answer a question."""
    return answer_to(params)


async def answer(_messages: Any, params: Any, _context: Any) -> Any:
    """Answer as a model."""
    return types.CreateMessageResultWithTools.model_validate(sampled(params))


def transport(where: str | list[str]) -> Any:
    """Return the transport to a server."""
    transports: Any = importlib.import_module("fastmcp.client.transports")
    if isinstance(where, list):
        return transports.StdioTransport(command=where[0], args=where[1:])
    return transports.StreamableHttpTransport(where)


async def main(mode: str = "auto") -> None:
    """Connect and run the steps."""
    fastmcp: Any = importlib.import_module("fastmcp")
    with contextlib.suppress(ImportError):
        importlib.import_module("fastmcp_tasks")  # clients created after it declare tasks
    connected = fastmcp.Client(
        transport(target()),
        mode=mode,
        elicitation_handler=elicit,
        sampling_handler=answer,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
    )
    async with connected as client:
        await report(client.protocol_version or "", FastMCPClient(client))


if __name__ == "__main__":
    asyncio.run(main())
