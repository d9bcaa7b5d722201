"""FastMCP, through `Tool.run`; its streaming goes through a client in the same process."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastmcp import Client, Context, FastMCP
from fastmcp.tools import FunctionTool, Tool, ToolResult
from fastmcp.utilities.json_schema_type import json_schema_to_type_adapter
from pydantic import PrivateAttr, TypeAdapter

Body = Callable[[dict[str, Any]], Awaitable[str]]


def decorate(functions: list[Callable[..., Any]]) -> list[FunctionTool]:
    """Make tools."""
    return [Tool.from_function(function) for function in functions]


class SchemaTool(Tool):
    """A tool with a raw JSON Schema, validated by the type that FastMCP creates from it."""

    _body: Body = PrivateAttr()
    _arguments: TypeAdapter[Any] = PrivateAttr()

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Validate the arguments, which FastMCP leaves to the subclass, and run the body."""
        self._arguments.validate_python(arguments)
        return self.convert_result(await self._body(arguments))


def from_schema(name: str, schema: dict[str, Any], body: Body, description: str = "") -> SchemaTool:
    """Create a tool from a raw JSON Schema."""
    tool = SchemaTool(name=name, description=description, parameters=schema)
    tool._body = body
    tool._arguments = json_schema_to_type_adapter(schema)
    return tool


def definitions(tools: list[FunctionTool]) -> list[dict[str, Any]]:
    """Return the definitions for the model."""
    listed = [tool.to_mcp_tool().model_dump(by_alias=True, exclude_none=True) for tool in tools]
    return [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "parameters": tool["inputSchema"],
        }
        for tool in listed
    ]


def caller(tool: FunctionTool) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments, which it takes as a dict."""

    async def call(arguments: str) -> Any:
        return await tool.run(json.loads(arguments))

    return call


answerer = caller  # `run` makes the content blocks already


async def stream(events: int) -> int:
    """Run a tool that reports progress, and count the reports."""
    server = FastMCP("benchmark")
    came = 0

    @server.tool
    async def steps(ctx: Context) -> str:
        for step in range(events):
            await ctx.report_progress(step, events, "step")
        return "done"

    async def count(progress: float, total: float | None, message: str | None) -> None:
        nonlocal came
        came += 1

    async with Client(server) as client:
        await client.call_tool("steps", {}, progress_handler=count)
    return came
