"""Policies that change the name or the metadata of a tool."""

from __future__ import annotations

from typing import Any

from agents_tools.policies._policy import with_parentheses
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.policy import Policy

__all__ = ["rename", "with_metadata"]


@with_parentheses
def rename(name: str) -> Policy:
    """Change the name of a tool.

    Args:
        name: The new name: 1 to 64 letters, digits, `_` and `-`.

    Raises:
        UserError: The name is not valid.
    """
    check_tool_name(name)
    return _Rename(name)


@with_parentheses
def with_metadata(**metadata: object) -> Policy:
    """Add metadata to a tool; entries with the same names are replaced."""
    return _AddMetadata(metadata)


class _Rename(Policy):
    def __init__(self, tool_name: str) -> None:
        self.name = f"rename({tool_name!r})"
        self._tool_name = tool_name

    def apply(self, tool: Any) -> Any:
        return tool.with_(name=self._tool_name)


class _AddMetadata(Policy):
    name = "with_metadata(...)"

    def __init__(self, metadata: dict[str, object]) -> None:
        self._metadata = metadata

    def apply(self, tool: Any) -> Any:
        return tool.with_(metadata={**tool.metadata, **self._metadata})
