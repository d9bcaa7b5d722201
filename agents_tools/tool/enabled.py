"""Whether a tool is offered to an agent."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["is_enabled"]


async def is_enabled(tool: Any, context: Any, agent: Any) -> bool:
    """Return whether a tool is offered.

    Args:
        tool: The tool.
        context: The context of the run.
        agent: The agent that would offer the tool; without one, a condition counts as true.
    """
    enabled: Any = getattr(tool, "is_enabled", True)
    if callable(enabled):
        if agent is None:
            return True
        enabled = cast("Any", enabled)(context, agent)
        if hasattr(enabled, "__await__"):
            enabled = await enabled
    return bool(enabled)
