"""MCP both ways: tools of any server as function tools, any function tools as a server.

Takes the extra `mcp`. Nothing of it is loaded before one of these names is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_tools._bridge import call_async_from_sync as call_async_from_sync
    from agents_tools.mcp._commands import ConfigFinding as ConfigFinding
    from agents_tools.mcp.adapter import MCPToolError as MCPToolError
    from agents_tools.mcp.backend import MCPBackend as MCPBackend
    from agents_tools.mcp.background import (
        MCPTools as MCPTools,
        create_mcp_tools as create_mcp_tools,
    )
    from agents_tools.mcp.config import (
        MCPServerConfig as MCPServerConfig,
        load_config as load_config,
    )
    from agents_tools.mcp.manager import (
        MCPToolManager as MCPToolManager,
        ToolListChange as ToolListChange,
    )
    from agents_tools.mcp.mcp_tool import MCPTool as MCPTool
    from agents_tools.mcp.pins import PinChange as PinChange, ToolPins as ToolPins
    from agents_tools.mcp.server import (
        mcp_server as mcp_server,
        serve as serve,
        serve_async as serve_async,
    )

_PLACES = {
    "agents_tools._bridge": ("call_async_from_sync",),
    "agents_tools.mcp._commands": ("ConfigFinding",),
    "agents_tools.mcp.adapter": ("MCPToolError",),
    "agents_tools.mcp.backend": ("MCPBackend",),
    "agents_tools.mcp.config": ("MCPServerConfig", "load_config"),
    "agents_tools.mcp.background": ("MCPTools", "create_mcp_tools"),
    "agents_tools.mcp.manager": ("MCPToolManager", "ToolListChange"),
    "agents_tools.mcp.mcp_tool": ("MCPTool",),
    "agents_tools.mcp.pins": ("PinChange", "ToolPins"),
    "agents_tools.mcp.server": ("mcp_server", "serve", "serve_async"),
}
_WHERE = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - loaded when first used
    "ConfigFinding",
    "MCPBackend",
    "MCPServerConfig",
    "MCPTool",
    "MCPToolError",
    "MCPToolManager",
    "MCPTools",
    "PinChange",
    "ToolListChange",
    "ToolPins",
    "call_async_from_sync",
    "create_mcp_tools",
    "load_config",
    "mcp_server",
    "serve",
    "serve_async",
]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used."""
    if name not in _WHERE:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return list(__all__)
