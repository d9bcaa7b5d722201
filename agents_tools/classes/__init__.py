"""Class-based tools: actions, observations, executors, definitions and the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.classes.action import (
        Action as Action,
        ImageContent as ImageContent,
        Observation as Observation,
        TextContent as TextContent,
        ToolExecutor as ToolExecutor,
    )
    from agents_tools.classes.base_tool import (
        BaseTool as BaseTool,
        BaseToolParams as BaseToolParams,
    )
    from agents_tools.classes.definition import (
        ExecutableTool as ExecutableTool,
        ToolDefinition as ToolDefinition,
    )
    from agents_tools.classes.per_run import PerRunExecutor as PerRunExecutor
    from agents_tools.classes.registry import (
        RegistryChange as RegistryChange,
        Tool as Tool,
        ToolRegistry as ToolRegistry,
        ToolSpec as ToolSpec,
        default_registry as default_registry,
        list_registered_tools as list_registered_tools,
        register_tool as register_tool,
        resolve_tool as resolve_tool,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "action": (
            "Action",
            "ImageContent",
            "Observation",
            "TextContent",
            "ToolExecutor",
        ),
        "definition": (
            "ExecutableTool",
            "ToolDefinition",
        ),
        "base_tool": (
            "BaseTool",
            "BaseToolParams",
        ),
        "per_run": ("PerRunExecutor",),
        "registry": (
            "RegistryChange",
            "Tool",
            "ToolRegistry",
            "ToolSpec",
            "default_registry",
            "list_registered_tools",
            "register_tool",
            "resolve_tool",
        ),
    },
)
