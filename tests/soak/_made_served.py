"""A server of ours on stdin and stdout, to be sent rubbish."""

from __future__ import annotations

from agents_tools import ToolError, function_tool
from agents_tools.mcp import serve

__all__ = ["TOOLS"]


@function_tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


@function_tool
async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@function_tool
async def fail() -> str:
    """Fail."""
    raise ToolError("The shelf is empty.")


TOOLS = (echo, add, fail)

if __name__ == "__main__":
    serve(TOOLS, "stdio")
