"""Function tools served over MCP, on stdio or HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.mcp.server.app import (
        MCPApp as MCPApp,
        MCPRequest as MCPRequest,
        mcp_server as mcp_server,
        serve as serve,
        serve_async as serve_async,
    )
    from agents_tools.mcp.server.jwt_verifier import (
        JWTVerifier as JWTVerifier,
        VerifiedToken as VerifiedToken,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "app": (
            "MCPApp",
            "MCPRequest",
            "mcp_server",
            "serve",
            "serve_async",
        ),
        "jwt_verifier": ("JWTVerifier", "VerifiedToken"),
    },
    requires=dict.fromkeys(("app", "jwt_verifier"), "pip install -U 'agents-tools[mcp]'"),
)
