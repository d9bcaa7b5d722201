"""Flattening of nested lists of tools."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["flatten_tools", "function_tools"]


def flatten_tools(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a list, including those of nested lists and toolsets."""
    for tool in tools:
        kind = typing.cast("type[Any]", type(tool))
        if issubclass(kind, (list, tuple)) or hasattr(kind, "as_part"):
            yield from flatten_tools(typing.cast("list[Any]", tool))
        else:
            yield tool


def function_tools(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the tools of a list as function tools.

    Nested lists and toolsets are flattened, class-based tools are converted with their
    `as_function_tool` method, and specifications with `as_function_tools`.
    """
    for tool in flatten_tools(tools):
        if not isinstance(tool, type) and hasattr(tool, "as_function_tools"):
            yield from tool.as_function_tools()
            continue
        convert = None if isinstance(tool, type) else getattr(tool, "as_function_tool", None)
        yield tool if convert is None else convert()
