"""The `Client` of SDK version 2: the era without sessions."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import (
    CreateMessageResultWithTools,
    ElicitResult,
    SamplingCapability,
    SamplingToolsCapability,
)

from tests.mcp.clients.steps import Progress, answer_to, report, sampled, target


class Modern:
    """A client.

    Args:
        client: The client of the SDK.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[Any]:
        """Return the tools."""
        return (await self._client.list_tools()).tools

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool."""
        return await self._client.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str) -> Any:
        """Read a resource."""
        return await self._client.read_resource(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        return await self._client.get_prompt(name, arguments)


async def elicit(context: Any, params: Any) -> ElicitResult:
    """Answer a question."""
    del context
    return ElicitResult(action="accept", content=answer_to(params))


async def answer(context: Any, params: Any) -> CreateMessageResultWithTools:
    """Answer as a model."""
    del context
    return CreateMessageResultWithTools.model_validate(sampled(params))


async def main() -> None:
    """Connect and run the steps."""
    where = target()
    if isinstance(where, list):
        server: Any = stdio_client(StdioServerParameters(command=where[0], args=where[1:]))
    else:
        server = where
    connected = Client(
        server,
        elicitation_callback=elicit,
        sampling_callback=answer,
        sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability()),
    )
    async with connected as client:
        await report(client.protocol_version, Modern(client))


if __name__ == "__main__":
    asyncio.run(main())
