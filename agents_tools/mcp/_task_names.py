"""Names of the two forms of tasks, and which tools of a server require them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.mcp._coerce import an_object

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MODERN", "TASKS", "refused_tasks", "requires_task"]

MODERN = "2026-07-28"
"""The first protocol version in which tasks are an extension."""
TASKS = "io.modelcontextprotocol/tasks"
"""The name of the extension."""


def requires_task(wire: Mapping[str, Any]) -> bool:
    """Return whether a tool can be called as a task only (`execution.taskSupport`, 2025-11-25)."""
    return "execution" in wire and an_object(wire["execution"]).get("taskSupport") == "required"


def refused_tasks(
    tools: list[dict[str, Any]], version: str, capabilities: Mapping[str, Any]
) -> dict[str, str]:
    """Return why tools that can be called as tasks only cannot be called, by their names."""
    requests = an_object(an_object(capabilities.get("tasks")).get("requests"))
    if version >= MODERN or "call" in an_object(requests.get("tools")):
        return {}
    reason = "it can be called as a task only, and the server does not support tasks"
    return {str(tool.get("name")): reason for tool in tools if requires_task(tool)}
