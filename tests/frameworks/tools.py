"""The same functions as tools of ours."""

from __future__ import annotations

from typing import Any

from agents_tools import FunctionTool, function_tool, streaming_tool
from tests.frameworks import functions

__all__ = ["TOOLS"]

STREAMING = {"crawl", "pack"}


def _made(name: str, function: Any) -> FunctionTool[..., Any]:
    decorator: Any = streaming_tool if name in STREAMING else function_tool
    return decorator(function)


TOOLS: dict[str, FunctionTool[..., Any]] = {
    name: _made(name, function) for name, function in functions.FUNCTIONS.items()
}
"""All of them, by name."""
