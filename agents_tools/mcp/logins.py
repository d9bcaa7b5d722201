"""Log in to MCP servers, and out of them, without a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.errors import MCPConnectionError
from agents_tools.mcp._sdk import sdk_http, silence_sdk_loggers
from agents_tools.mcp.client.login import OAuthLogin
from agents_tools.mcp.client.login_errors import LoginError
from agents_tools.mcp.client.login_store import LoginStoreBusyError

if TYPE_CHECKING:
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["log_in", "log_out"]


async def log_in(config: MCPServerConfig) -> bool:
    """Log in to a server in the user's browser, even if there is a stored login.

    Args:
        config: The configuration of the server, with `OAuth` options as `auth`.

    Returns:
        Whether the server required a login.

    Raises:
        MCPConnectionError: The login has failed.
    """
    silence_sdk_loggers()
    try:
        return await OAuthLogin(config, sdk_http(), forced=True).log_in()
    except LoginError as error:
        raise MCPConnectionError(
            f"MCP server {config.name!r}: {error}.", server=config.name, code=401
        ) from None


async def log_out(config: MCPServerConfig) -> bool:
    """Delete the stored login to a server, and revoke its tokens.

    Args:
        config: The configuration of the server, with `OAuth` options as `auth`.

    Returns:
        Whether there was a stored login.

    Raises:
        MCPConnectionError: Another program is logging in to the server.
    """
    try:
        return await OAuthLogin(config, sdk_http()).log_out()
    except LoginStoreBusyError:
        raise MCPConnectionError(
            f"MCP server {config.name!r}: another program is logging in to it. Wait for its end.",
            server=config.name,
        ) from None
