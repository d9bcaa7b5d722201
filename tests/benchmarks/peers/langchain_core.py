"""LangChain, through `ainvoke` of a structured tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Body = Callable[[dict[str, Any]], Awaitable[str]]


def decorate(functions: list[Callable[..., Any]]) -> list[BaseTool]:
    """Make tools."""
    return [tool(function, parse_docstring="Args:" in function.__doc__) for function in functions]


def from_schema(name: str, schema: dict[str, Any], body: Body, description: str = "") -> BaseTool:
    """Create a tool from a raw JSON Schema, which is sent to the model but not enforced."""

    async def run(**arguments: Any) -> str:
        return await body(arguments)

    return StructuredTool.from_function(
        coroutine=run, name=name, description=description or "Run it.", args_schema=schema
    )


def definitions(tools: list[BaseTool]) -> list[dict[str, Any]]:
    """Return the definitions for the model."""
    return [convert_to_openai_tool(tool)["function"] for tool in tools]


def caller(tool: BaseTool) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments, which it takes as a dict."""

    async def call(arguments: str) -> Any:
        return await tool.ainvoke(json.loads(arguments))

    return call


def answerer(tool: BaseTool) -> Callable[[str], Awaitable[Any]]:
    """Call as a model does, which gives a message."""

    async def answer(arguments: str) -> Any:
        asked = {"type": "tool_call", "id": "call", "name": tool.name}
        return await tool.ainvoke(asked | {"args": json.loads(arguments)})

    return answer


async def stream(events: int) -> int:
    """Run a tool that dispatches custom events, and count them."""

    @tool
    async def steps() -> str:
        """Take steps."""
        for _ in range(events):
            await adispatch_custom_event("step", "step")
        return "done"

    came = 0
    async for event in steps.astream_events({}, version="v2"):
        came += event["event"] == "on_custom_event"
    return came
