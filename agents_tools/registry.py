"""The public path of the tool registry."""

from __future__ import annotations

from agents_tools.classes.registry import (
    RegistryChange,
    Tool,
    ToolRegistry,
    ToolSpec,
    default_registry,
    list_registered_tools,
    register_tool,
    resolve_tool,
)

__all__ = [
    "RegistryChange",
    "Tool",
    "ToolRegistry",
    "ToolSpec",
    "default_registry",
    "list_registered_tools",
    "register_tool",
    "resolve_tool",
]
