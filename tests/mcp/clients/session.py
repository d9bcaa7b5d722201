"""The SDK's `ClientSession`, in both SDK versions: the era with `initialize`."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from tests.mcp.clients.steps import Progress, answer_to, report, sampled, target


class Session:
    """A session.

    Args:
        session: The session of the SDK.
    """

    def __init__(self, session: Any) -> None:
        self._session = session

    async def tools(self) -> list[Any]:
        """Return the tools."""
        return (await self._session.list_tools()).tools

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool."""
        return await self._session.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str) -> Any:
        """Read a resource."""
        return await self._session.read_resource(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        return await self._session.get_prompt(name, arguments)

    async def task(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool as a task; only version 1 has tasks."""
        tasks = self._session.experimental
        created = await tasks.call_tool_as_task(name, arguments)
        async for _ in tasks.poll_task(created.task.taskId):
            pass
        result: Any = importlib.import_module("mcp.types").CallToolResult
        return await tasks.get_task_result(created.task.taskId, result)


async def main() -> None:
    """Connect and run the steps."""
    mcp: Any = importlib.import_module("mcp")
    types: Any = importlib.import_module("mcp.types")

    async def elicit(_context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content=answer_to(params))

    async def answer(_context: Any, params: Any) -> Any:
        return types.CreateMessageResultWithTools.model_validate(sampled(params))

    handlers = {
        "elicitation_callback": elicit,
        "sampling_callback": answer,
        "sampling_capabilities": types.SamplingCapability(tools=types.SamplingToolsCapability()),
    }
    async with (
        opened(mcp, target()) as streams,
        mcp.ClientSession(*streams[:2], **handlers) as session,
    ):
        begun = await session.initialize()
        version = getattr(begun, "protocolVersion", None) or begun.protocol_version
        await report(version, Session(session))


def opened(mcp: Any, where: str | list[str]) -> Any:
    """Open a transport of the installed SDK version."""
    if isinstance(where, list):
        return mcp.stdio_client(mcp.StdioServerParameters(command=where[0], args=where[1:]))
    module: Any = importlib.import_module("mcp.client.streamable_http")
    return module.streamable_http_client(where)


if __name__ == "__main__":
    asyncio.run(main())
