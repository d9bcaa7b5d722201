"""The MCP SDK 2.x."""

from __future__ import annotations

import contextlib
import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._sdk import MODERN, RawJson, inner_server
from agents_tools.mcp.client.in_process import InProcessDispatcher
from agents_tools.mcp.client.sdk_session import ClientSession, Sdk, ServerRefusal, json_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.mcp.client.pending_requests import PendingRequests
    from agents_tools.mcp.client.sdk_session import ClientHooks, HeaderMirror
    from agents_tools.mcp.config import LogLevel, MCPServerConfig, ProtocolEra

__all__ = ["SdkV2"]

_METHOD_NOT_FOUND = -32601


class SdkV2(Sdk):
    """The SDK 2.x."""

    def http_streams(self, config: MCPServerConfig, client: Any) -> Any:
        """Return the streams to a server over HTTP."""
        module: Any = importlib.import_module("mcp.client.streamable_http")
        return module.streamable_http_client(
            config.url, http_client=client, max_sse_event_size=config.max_message
        )

    @contextlib.asynccontextmanager
    async def connect(
        self,
        transport: Any,
        config: MCPServerConfig,
        hooks: ClientHooks,
        protocol: ProtocolEra,
    ) -> AsyncGenerator[ClientSession]:
        """Connect over the streams of a transport."""
        client = self.mcp.Client(
            transport,
            cache=None,
            mode="legacy" if protocol == "legacy" else "auto",
            **self._options(config, hooks),
        )
        async with client:
            if protocol == "modern" and client.protocol_version < MODERN:
                raise ConnectionError(
                    f"protocol='modern' expects version {MODERN} or later, but the server supports "
                    f"version {client.protocol_version}"
                )
            yield _SdkV2Session(client.session, self.mcp.MCPError)

    def _options(self, config: MCPServerConfig, hooks: ClientHooks) -> dict[str, Any]:
        """Return the options that the client and the session of the SDK share."""
        return {"log_level": config.log_level, **self._session_options(hooks)}

    @contextlib.asynccontextmanager
    async def in_memory(
        self,
        config: MCPServerConfig,
        hooks: ClientHooks,
        pending: PendingRequests,
        protocol: ProtocolEra,
    ) -> AsyncGenerator[ClientSession]:
        """Connect to a server in this process."""
        if protocol == "legacy":
            async with super().in_memory(config, hooks, pending, protocol) as session:
                yield session
            return
        # There are no streams: the server is called directly.
        server = inner_server(config.server)
        runner: Any = importlib.import_module("mcp.server.runner")
        async with server.lifespan(server) as state:
            dispatcher = InProcessDispatcher(runner.modern_on_request(server, state))
            async with self.mcp.ClientSession(
                dispatcher=dispatcher,
                logging_callback=partial(_pass_log_message, pending),
                **self._options(config, hooks),
            ) as session:
                await session.discover()
                yield _InProcessSession(
                    session, self.mcp.MCPError, pending, dispatcher, config.log_level
                )


class _SdkV2Session(ClientSession):
    def __init__(
        self, session: Any, error_type: type[Exception], direct: PendingRequests | None = None
    ) -> None:
        info, capabilities = session.server_info, session.server_capabilities
        facts = {
            "protocolVersion": session.protocol_version,
            "serverInfo": None if info is None else json_of(info),
            "capabilities": None if capabilities is None else json_of(capabilities),
            "instructions": session.instructions,
        }
        self._listen: Any = importlib.import_module("mcp.client.subscriptions").listen
        super().__init__(session, error_type, facts, direct)

    async def listen(self, on_change: Callable[[str], None]) -> None:
        topics = {
            f"{kind}_list_changed": True
            for kind in ("tools", "prompts", "resources")
            if an_object(self.capabilities.get(kind)).get("listChanged")
        }
        if self.version < MODERN or not topics:
            return
        async with self._listen(self._session, **topics) as changes:
            for topic in topics:  # the lists can have changed since they were requested
                on_change(_list_changed(topic.partition("_")[0]))
            # Only a server in this process yields changes here: `PendingRequests` handles the
            # notifications of other transports.
            async for change in changes:
                on_change(_list_changed(type(change).__name__.removesuffix("ListChanged").lower()))

    async def listen_to_resources(
        self, uris: list[str], on_open: Callable[[], None], on_update: Callable[[str], None]
    ) -> None:
        try:
            async with self._listen(self._session, resource_subscriptions=uris) as updates:
                accepted = updates.honored.resource_subscriptions or ()
                if refused := [uri for uri in uris if uri not in accepted]:
                    raise ServerRefusal(
                        _METHOD_NOT_FOUND, f"it does not report updates of {refused[0]!r:.200}"
                    )
                on_open()
                async for update in updates:  # of a server in this process, as above
                    on_update(str(update.uri))
        except self._error_type as error:
            details: Any = getattr(error, "error", error)
            raise ServerRefusal(details.code, str(details.message)) from None

    def check_headers(
        self, tools: list[dict[str, Any]]
    ) -> tuple[dict[str, str], HeaderMirror | None]:
        if self.version < MODERN:
            return {}, None
        inbound: Any = importlib.import_module("mcp.shared.inbound")
        refused: dict[str, str] = {}
        maps: dict[str, Any] = {}
        for tool in tools:
            name, schema = str(tool.get("name")), tool.get("inputSchema")
            reason = inbound.find_invalid_x_mcp_header(schema)
            if reason is not None:
                refused[name] = f"its x-mcp-header is not valid: {reason}"
            elif header_map := inbound.x_mcp_header_map(schema):
                maps[name] = header_map

        def mirror(params: dict[str, Any]) -> dict[str, str]:
            header_map = maps.get(str(params.get("name")))
            if not header_map:
                return {}
            return inbound.mcp_param_headers(header_map, params.get("arguments") or {})

        return refused, mirror if maps else None


class _InProcessSession(_SdkV2Session):
    """A session with a server in this process.

    Args:
        session: The session of the SDK.
        error_type: The class of its errors.
        direct: Tracks the requests.
        dispatcher: Calls the server.
        log_level: The lowest level of the log messages that are requested.
    """

    def __init__(
        self,
        session: Any,
        error_type: type[Exception],
        direct: PendingRequests,
        dispatcher: InProcessDispatcher,
        log_level: LogLevel | None,
    ) -> None:
        super().__init__(session, error_type, direct)
        self._call_server = dispatcher.send_raw_request
        self._envelope = dict(dispatcher.envelope)
        if log_level is not None:
            self._envelope["io.modelcontextprotocol/logLevel"] = log_level

    async def _send(self, message: RawJson, on_progress: Any) -> Any:
        if message.method != "tools/call":
            return await super()._send(message, on_progress)
        # As with streams, this library reads the result of a call itself, so the session of the
        # SDK, which validates it, is left out.
        params = message.params
        params["_meta"] = {**self._envelope, **params.get("_meta", {})}
        return await self._call_server(message.method, params, {"on_progress": on_progress})


async def _pass_log_message(pending: PendingRequests, params: Any) -> None:
    """Pass on a log message that arrived without a stream."""
    pending.log(json_of(params))


def _list_changed(kind: str) -> str:
    """Return the method of the notification that a list has changed."""
    return f"notifications/{kind}/list_changed"
