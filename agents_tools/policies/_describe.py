"""Policies that change the name or the metadata of a tool."""

from __future__ import annotations

from agents_tools.policies._policy import PolicyDecorator, with_parentheses
from agents_tools.tool.naming import check_tool_name

__all__ = ["rename", "with_metadata"]


@with_parentheses
def rename(name: str) -> PolicyDecorator:
    """Change the name of a tool.

    Args:
        name: The new name: 1 to 64 letters, digits, `_` and `-`.

    Raises:
        UserError: The name is not valid.
    """
    check_tool_name(name)
    return PolicyDecorator(f"rename({name!r})", lambda tool: tool.with_(name=name))


@with_parentheses
def with_metadata(**metadata: object) -> PolicyDecorator:
    """Add metadata to a tool; entries with the same names are replaced."""
    return PolicyDecorator(
        "with_metadata(...)", lambda tool: tool.with_(metadata={**tool.metadata, **metadata})
    )
