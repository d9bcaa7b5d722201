"""Connections to MCP servers with the installed SDK, `mcp`, in its major version 1 or 2."""

from __future__ import annotations

import contextlib
import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from agents_tools.mcp._sdk import sdk_line, silence_sdk_loggers
from agents_tools.mcp.client.http import http_client
from agents_tools.mcp.client.pending_requests import ReadStream, WriteStream
from agents_tools.mcp.client.sdk_v1 import SdkV1
from agents_tools.mcp.client.sdk_v2 import SdkV2
from agents_tools.mcp.client.stdio import StdioTransport
from agents_tools.mcp.oauth import OAuth

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.mcp.client.pending_requests import PendingRequests
    from agents_tools.mcp.client.sdk_session import ClientHooks, ClientSession, Sdk
    from agents_tools.mcp.config import MCPServerConfig, ProtocolEra

__all__ = ["open_session"]


@contextlib.asynccontextmanager
async def open_session(
    config: MCPServerConfig,
    pending: PendingRequests,
    hooks: ClientHooks,
    on_stdio: Callable[[StdioTransport], None],
    *,
    protocol: ProtocolEra = "auto",
) -> AsyncGenerator[ClientSession]:
    """Connect, negotiate the protocol version, and provide the session.

    Args:
        config: The configuration of the server.
        pending: Tracks the requests in flight.
        hooks: The callbacks for requests of the server.
        on_stdio: Called with the process of a stdio server before it starts.
        protocol: The protocol versions to use.

    Raises:
        ConnectionError: The server or the SDK does not support these versions.
    """
    sdk: Sdk = SdkV2() if sdk_line() >= 2 else SdkV1()  # noqa: PLR2004 - the major version
    silence_sdk_loggers()
    if config.transport == "memory":
        async with sdk.in_memory(config, hooks, pending, protocol) as session:
            yield session
        return
    if config.transport == "stdio":
        process = StdioTransport(config, sdk, pending)
        on_stdio(process)
        transport: Any = process
    else:
        transport = _http_transport(sdk, config, pending)
    async with sdk.connect(transport, config, hooks, protocol) as session:
        yield session


@contextlib.asynccontextmanager
async def _http_transport(
    sdk: Sdk, config: MCPServerConfig, pending: PendingRequests
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    async with contextlib.AsyncExitStack() as stack:
        inner: Any = None
        if config.http_client_factory is not None:
            inner = config.http_client_factory()
            if not isinstance(inner, sdk.httpx.AsyncClient):
                message = (
                    f"http_client_factory expects to return an {sdk.httpx.__name__}.AsyncClient, "
                    f"got {type(inner).__module__}.{type(inner).__qualname__}"
                )
                raise TypeError(message)
            await stack.enter_async_context(inner)
        auth = await _logged_in(sdk, config, pending)
        client = http_client(sdk.httpx, config, pending, auth=auth, inner=inner)
        if config.transport == "sse":
            module = importlib.import_module("mcp.client.sse")
            opened = module.sse_client(
                config.url,
                timeout=config.connect_timeout,
                httpx_client_factory=partial(_return_client, client),
            )
        else:
            await stack.enter_async_context(client)
            opened = sdk.http_streams(config, client)
        streams: Any = await stack.enter_async_context(opened)
        yield ReadStream(streams[0], pending), WriteStream(streams[1], pending)


async def _logged_in(sdk: Sdk, config: MCPServerConfig, pending: PendingRequests) -> Any:
    """Return the auth object of a server with OAuth, after the first login; else `None`.

    Raises:
        LoginError: The login has failed.
    """
    if not isinstance(config.auth, OAuth):
        return None
    from agents_tools.mcp.client.login import OAuthLogin

    login = OAuthLogin(config, sdk.httpx, pending)
    if not login.has_token:
        await login.log_in()
    return login.auth


def _return_client(client: Any, **_: Any) -> Any:
    """Return the existing client instead of creating one."""
    return client
