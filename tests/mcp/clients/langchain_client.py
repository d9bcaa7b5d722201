"""The MCP adapters of LangChain; its messages are reported in the words of the protocol."""

from __future__ import annotations

import asyncio
import base64
import importlib
from typing import Any

from tests.mcp.clients.steps import Progress, answer_to, report, target


class Adapter:
    """A client.

    Attributes:
        session: The session that the adapters have opened.
    """

    def __init__(self) -> None:
        self.session: Any = None
        self._tools: dict[str, Any] = {}
        self._progress: Progress | None = None

    async def load(self, session: Any, handlers: Any) -> None:
        """Load the tools of a session."""
        module: Any = importlib.import_module("langchain_mcp_adapters.tools")
        tools = await module.load_mcp_tools(session, callbacks=handlers, server_name="peer")
        self.session, self._tools = session, {tool.name: tool for tool in tools}

    async def on_progress(self, done: float, total: Any, message: Any, _context: Any) -> None:
        """Pass a report to the running call: the adapters have one handler for all calls."""
        assert self._progress is not None
        await self._progress(done, total, message)

    async def tools(self) -> list[Any]:
        """Return the tools."""
        return [
            {"name": name, "description": tool.description, "inputSchema": tool.args_schema}
            for name, tool in self._tools.items()
        ]

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool."""
        self._progress = progress
        asked = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        message = await self._tools[name].ainvoke(asked)
        content = message.content
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        result = {"content": [block_of(block) for block in blocks]}
        result["isError"] = message.status == "error"
        if message.artifact is not None:
            result["structuredContent"] = message.artifact["structured_content"]
        return result

    async def read(self, uri: str) -> Any:
        """Read a resource."""
        resources: Any = importlib.import_module("langchain_mcp_adapters.resources")
        (blob,) = await resources.load_mcp_resources(self.session, uris=uri)
        if isinstance(blob.data, str):
            return {"contents": [{"uri": uri, "text": blob.data}]}
        return {"contents": [{"uri": uri, "blob": base64.b64encode(blob.data).decode()}]}

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        prompts: Any = importlib.import_module("langchain_mcp_adapters.prompts")
        messages = await prompts.load_mcp_prompt(self.session, name, arguments=arguments)
        roles = {"human": "user", "ai": "assistant"}
        return {
            "messages": [
                {"role": roles[one.type], "content": {"type": "text", "text": one.content}}
                for one in messages
            ]
        }


def block_of(block: dict[str, Any]) -> dict[str, Any]:
    """Return a content block of LangChain as one of the protocol."""
    match block["type"]:
        case "image":
            return {"type": "image", "mimeType": block["mime_type"], "data": block["base64"]}
        case "file":
            resource = {"mimeType": block["mime_type"], "blob": block["base64"]}
            return {"type": "resource", "resource": resource}
        case _:
            return {"type": "text", "text": block["text"]}


async def main() -> None:
    """Connect and run the steps."""
    adapters: Any = importlib.import_module("langchain_mcp_adapters.client")
    callbacks: Any = importlib.import_module("langchain_mcp_adapters.callbacks")
    types: Any = importlib.import_module("mcp.types")

    async def elicit(_mcp: Any, params: Any, _context: Any) -> Any:
        return types.ElicitResult(action="accept", content=answer_to(params))

    where = target()
    connection = (
        {"transport": "stdio", "command": where[0], "args": where[1:]}
        if isinstance(where, list)
        else {"transport": "http", "url": where}
    )
    adapter = Adapter()
    handlers = callbacks.Callbacks(on_progress=adapter.on_progress, on_elicitation=elicit)
    client = adapters.MultiServerMCPClient({"peer": connection}, callbacks=handlers)
    async with client.session("peer") as session:
        await adapter.load(session, handlers)
        await report("", adapter)


if __name__ == "__main__":
    asyncio.run(main())
