"""The `MCPToolset` of Pydantic AI; its values are reported in the words of the protocol."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
from typing import Any

from tests.mcp.clients.fastmcp_client import elicit, transport
from tests.mcp.clients.steps import Progress, report, target, text_result


class Toolset:
    """A client.

    Args:
        toolset: Pydantic AI's class of toolsets.
        failed: The exception that it raises for the error of a tool.
    """

    def __init__(self, toolset: Any, failed: type[Exception]) -> None:
        self.toolset = toolset(
            transport(target()), elicitation_handler=elicit, progress_handler=self._on_progress
        )
        self._failed = failed
        self._progress: Progress | None = None

    async def _on_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Pass a report to the running call: the toolset has one handler for all calls."""
        assert self._progress is not None
        await self._progress(done, total, message)

    async def tools(self) -> list[Any]:
        """Return the tools."""
        return await self.toolset.list_tools()

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool."""
        self._progress = progress
        try:
            value = await self.toolset.direct_call_tool(name, arguments)
        except self._failed as error:
            return text_result(str(error), isError=True)
        return result_of(value)

    async def task(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool as a task."""
        return result_of(await self.toolset.direct_call_tool(name, arguments, use_task=True))

    async def read(self, uri: str) -> Any:
        """Read a resource."""
        value = await self.toolset.read_resource(uri)
        if isinstance(value, str):
            return {"contents": [{"uri": uri, "text": value}]}
        return {"contents": [{"uri": uri, "blob": encoded(value.data)}]}

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        result = await self.toolset.get_prompt(name, arguments)
        return {
            "messages": [
                {"role": one.role, "content": block_of(one.content)} for one in result.messages
            ]
        }


def result_of(value: Any) -> dict[str, Any]:
    """Return the value of a call as a result."""
    blocks = [block_of(one) for one in (value if isinstance(value, list) else [value])]
    structured = {"structuredContent": value} if is_json(value) else {}
    return {"content": blocks, **structured}


def is_json(value: Any) -> bool:
    """Return whether a value is the structured content of a result."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def block_of(value: Any) -> dict[str, Any]:
    """Return a value for the model as a content block."""
    data = getattr(value, "data", None)
    if data is None:
        text = getattr(value, "content", value)  # the part of a prompt has its text there
        return {"type": "text", "text": text if isinstance(text, str) else json.dumps(text)}
    if value.media_type.startswith("image/"):
        return {"type": "image", "mimeType": value.media_type, "data": encoded(data)}
    return {
        "type": "resource",
        "resource": {"mimeType": value.media_type, "blob": encoded(data)},
    }


def encoded(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


async def main() -> None:
    """Connect and run the steps."""
    mcp: Any = importlib.import_module("pydantic_ai.mcp")
    failed: Any = importlib.import_module("pydantic_ai.exceptions").ModelRetry
    client = Toolset(mcp.MCPToolset, failed)
    async with client.toolset:
        await report("", client)


if __name__ == "__main__":
    asyncio.run(main())
