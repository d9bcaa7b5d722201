"""The MCP SDK 1.x."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from agents_tools.mcp._sdk import MODERN, RawJson
from agents_tools.mcp.client.sdk_session import ClientSession, Sdk, json_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.mcp.client.pending_requests import PendingRequest
    from agents_tools.mcp.client.sdk_session import ClientHooks
    from agents_tools.mcp.config import MCPServerConfig, ProtocolEra

__all__ = ["SdkV1"]


class SdkV1(Sdk):
    """The SDK 1.x."""

    def http_streams(self, config: MCPServerConfig, client: Any) -> Any:
        """Return the streams to a server over HTTP."""
        module: Any = importlib.import_module("mcp.client.streamable_http")
        return module.streamable_http_client(config.url, http_client=client)

    @contextlib.asynccontextmanager
    async def connect(
        self, transport: Any, config: MCPServerConfig, hooks: ClientHooks, protocol: ProtocolEra
    ) -> AsyncGenerator[ClientSession]:
        """Connect over the streams of a transport."""
        del config  # this version of the SDK needs nothing of it
        if protocol == "modern":
            raise ConnectionError(
                f"protocol='modern' expects version {MODERN} or later, but it needs version 2 of "
                "the package mcp, version 1 is installed"
            )
        async with (
            transport as (read, write),
            self.mcp.ClientSession(read, write, **self._session_options(hooks)) as session,
        ):
            facts = json_of(await session.initialize())
            yield _SdkV1Session(session, self.mcp.McpError, facts)


class _SdkV1Session(ClientSession):
    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await super().send(request, params)
        except asyncio.CancelledError:
            if request.id is not None and request.sent:
                await asyncio.shield(self._cancel(request.id))
            raise

    async def _cancel(self, number: int | str) -> None:
        """Notify the server of a cancellation: this version of the SDK does not do it."""
        params = {"requestId": number, "reason": "cancelled"}
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await self._session.send_notification(RawJson("notifications/cancelled", params))
