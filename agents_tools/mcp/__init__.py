"""MCP in both directions: tools of servers as function tools, and function tools as a server.

Requires the extra `mcp`, which is loaded when one of these names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.concurrency.bridge import (
        call_async_from_sync as call_async_from_sync,
    )
    from agents_tools.mcp.client.adapter import (
        MCPToolError as MCPToolError,
    )
    from agents_tools.mcp.client.background import (
        MCPTools as MCPTools,
        create_mcp_tools as create_mcp_tools,
    )
    from agents_tools.mcp.client.manager import (
        MCPToolManager as MCPToolManager,
        ToolListChange as ToolListChange,
    )
    from agents_tools.mcp.client.mcp_tool import (
        MCPTool as MCPTool,
    )
    from agents_tools.mcp.command_findings import (
        ConfigFinding as ConfigFinding,
    )
    from agents_tools.mcp.config import (
        MCPServerConfig as MCPServerConfig,
        load_config as load_config,
    )
    from agents_tools.mcp.gateway import (
        MCPGateway as MCPGateway,
    )
    from agents_tools.mcp.oauth import (
        OAuth as OAuth,
    )
    from agents_tools.mcp.pins import (
        PinChange as PinChange,
        ToolPins as ToolPins,
    )
    from agents_tools.mcp.server.app import (
        mcp_server as mcp_server,
        serve as serve,
        serve_async as serve_async,
    )
    from agents_tools.mcp.server.jwt_verifier import (
        JWTVerifier as JWTVerifier,
    )
    from agents_tools.mcp.server.prompts import (
        Prompt as Prompt,
        prompt as prompt,
    )
    from agents_tools.mcp.server.resources import (
        Resource as Resource,
        resource as resource,
    )
    from agents_tools.mcp.server.roots import (
        roots as roots,
    )
    from agents_tools.mcp.server.sampling import (
        SampledMessage as SampledMessage,
        sample as sample,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agents_tools.concurrency.bridge": ("call_async_from_sync",),
        "command_findings": ("ConfigFinding",),
        "client.adapter": ("MCPToolError",),
        "client.background": (
            "MCPTools",
            "create_mcp_tools",
        ),
        "client.manager": (
            "MCPToolManager",
            "ToolListChange",
        ),
        "client.mcp_tool": ("MCPTool",),
        "config": (
            "MCPServerConfig",
            "load_config",
        ),
        "gateway": ("MCPGateway",),
        "oauth": ("OAuth",),
        "pins": (
            "PinChange",
            "ToolPins",
        ),
        "server.prompts": ("Prompt", "prompt"),
        "server.resources": ("Resource", "resource"),
        "server.app": (
            "mcp_server",
            "serve",
            "serve_async",
        ),
        "server.jwt_verifier": ("JWTVerifier",),
        "server.roots": ("roots",),
        "server.sampling": (
            "SampledMessage",
            "sample",
        ),
    },
    requires=dict.fromkeys(
        ("server.app", "server.jwt_verifier"), "pip install -U 'agents-tools[mcp]'"
    ),
    counterparts="agents_tools.export._openai_agents_names",
)
