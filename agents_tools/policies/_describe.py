"""Changes to what is said about a tool."""

from __future__ import annotations

from typing import Any

from agents_tools.policies._change import Change
from agents_tools.tool import check_tool_name

__all__ = ["rename", "with_metadata"]


def rename(name: str) -> Change:
    """Give a tool another name.

    Args:
        name: 1 to 64 letters, digits, `_` and `-`.

    Raises:
        UserError: The name is not acceptable.
    """
    check_tool_name(name)
    return Change(f"rename({name!r})", lambda tool: tool.with_(name=name))


def with_metadata(**metadata: Any) -> Change:
    """Add metadata to a tool; what it has under the same names is replaced."""
    return Change(
        "with_metadata(...)", lambda tool: tool.with_(metadata={**tool.metadata, **metadata})
    )
