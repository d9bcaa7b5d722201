"""Sessions of the MCP SDK, `mcp`, in its major versions 1 and 2.

Requests and results are plain JSON objects, as on the wire. Other modules do not need to know
which version is installed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agents_tools.errors import UserError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.client.http import http_client
from agents_tools.mcp.client.in_process import InProcessDispatcher
from agents_tools.mcp.client.pending_requests import ReadStream, WriteStream, current_request
from agents_tools.mcp.client.stdio import StdioTransport
from agents_tools.mcp.oauth import OAuth

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from agents_tools.mcp.client.pending_requests import PendingRequest, PendingRequests
    from agents_tools.mcp.config import LogLevel, MCPServerConfig, ProtocolEra

__all__ = [
    "ClientHooks",
    "ClientSession",
    "RawJson",
    "RawResult",
    "ServerRefusal",
    "message_of",
    "open_session",
    "sdk_http",
    "sdk_line",
    "silence_sdk_loggers",
]

_CLOSED = -32000
_METHOD_NOT_FOUND = -32601
MODERN = "2026-07-28"
"""The first protocol version without sessions."""


HeaderMirror: TypeAlias = "Callable[[dict[str, Any]], dict[str, str]]"
"""Returns HTTP headers for the params of a call."""


class ServerRefusal(Exception):  # noqa: N818 - a response of the server, not an error of the client
    """The server answered with an error.

    Args:
        code: The JSON-RPC code.
        message: The text of the error.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHooks:
    """What the owner of a connection provides.

    Attributes:
        elicit: Returns the result of a question; `None` if it is not supported. So do the others.
        sample: Returns the result of a request for a model.
        roots: Returns the folders that the server can work in.
        client_name: The name of the program for servers.
        client_version: Its version; that of this library by default.
    """

    elicit: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    sample: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    roots: Callable[[], Awaitable[dict[str, Any]]] | None = None
    client_name: str = "agents-tools"
    client_version: str | None = None


class ClientSession(Protocol):
    """A session with one server."""

    version: str
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str | None

    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result.

        Raises:
            ServerRefusal: The server answered with an error.
            ConnectionError: The connection has ended.
        """
        ...

    async def listen(self, on_change: Callable[[str], None]) -> None:
        """Report changed lists, in the protocol versions that have a stream for them."""
        ...

    async def listen_to_resources(
        self, uris: list[str], on_open: Callable[[], None], on_update: Callable[[str], None]
    ) -> None:
        """Report changed resources, in the protocol versions that have a stream for them.

        Args:
            uris: The resources.
            on_open: Called when the server has accepted the subscription.
            on_update: Called with the URI of each changed resource.

        Raises:
            ServerRefusal: The server does not report the changes of one of the resources.
        """
        ...

    def check_headers(
        self, tools: list[dict[str, Any]]
    ) -> tuple[dict[str, str], HeaderMirror | None]:
        """Return why tools have invalid headers, by name, and a function that creates the headers.

        From protocol version 2026-07-28 on, a schema can name HTTP headers that repeat arguments
        (`x-mcp-header`).
        """
        ...


@functools.cache
def sdk_line() -> int:
    """Return the major version of the installed SDK: 1 or 2.

    Raises:
        UserError: The SDK is not installed.
    """
    try:
        return int(metadata.version("mcp").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        raise UserError(
            'MCP requires the extra `mcp`. Run: pip install "agents-tools[mcp]".'
        ) from None


def sdk_http() -> Any:
    """Return the HTTP library of the installed SDK: `httpx`, or `httpx2` for version 2."""
    return importlib.import_module("httpx" if sdk_line() == 1 else "httpx2")


def message_of(data: Any) -> Any:
    """Create a message of the SDK from plain JSON.

    Raises:
        ValueError: The JSON is not a message.
    """
    types: Any = importlib.import_module("mcp.types")
    if sdk_line() == 1:
        return types.JSONRPCMessage.model_validate(data)
    return types.jsonrpc_message_adapter.validate_python(data, by_name=False)


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
    sdk: _Sdk = _SdkV2() if sdk_line() >= 2 else _SdkV1()  # noqa: PLR2004 - the major version
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
    sdk: _Sdk, config: MCPServerConfig, pending: PendingRequests
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


async def _logged_in(sdk: _Sdk, config: MCPServerConfig, pending: PendingRequests) -> Any:
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


_SDK_LOGGERS = ("auth", "sse", "stdio", "streamable_http")


def silence_sdk_loggers() -> None:
    """Disable the SDK's log messages, unless configured: callers get the same facts as errors."""
    for name in ("client", *(f"mcp.client.{one}" for one in _SDK_LOGGERS)):
        log = logging.getLogger(name)
        if log.level == logging.NOTSET:
            log.setLevel(logging.CRITICAL)


class RawJson:
    """A request or notification as plain JSON, with the interface that the SDK's session uses."""

    name_param: str | None = None

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the request as the SDK serializes it."""
        return {"method": self.method, "params": self.params}


class _RawTaskRequest(RawJson):
    """A request about a task, whose id the SDK repeats in the HTTP header `Mcp-Name`."""

    name_param = "taskId"


class RawResult:
    """A result type that accepts every object."""

    @staticmethod
    def model_validate(value: Any, **_: Any) -> Any:
        """Return the result as it is."""
        return value


async def _record_progress(
    request: PendingRequest, progress: float, total: float | None, message: str | None
) -> None:
    """Record progress that was reported without a stream."""
    request.record_progress({"progress": progress, "total": total, "message": message})


async def _log(pending: PendingRequests, params: Any) -> None:
    """Pass on a log message that arrived without a stream."""
    pending.log(_wire(params))


async def _ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    """Do nothing: with a callback the SDK requests progress, which `PendingRequests` handles."""


def _callback(hook: Any, types: Any, result: str) -> Any:
    if hook is None:
        return None

    async def answer(_context: Any, params: Any = None) -> Any:
        fields = (
            await hook()
            if params is None
            else await hook(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        )
        if "error" in fields:
            return types.ErrorData(code=-1, message=fields["error"])
        kind = result
        if result == "CreateMessageResult" and isinstance(fields.get("content"), list):
            kind = "CreateMessageResultWithTools"
        return getattr(types, kind).model_validate(fields)

    return answer


class _Sdk(Protocol):
    """One major version of the SDK."""

    httpx: Any

    def message(self, data: dict[str, Any]) -> Any: ...

    def error(self, number: Any, text: str) -> Any: ...

    def http_streams(self, config: MCPServerConfig, client: Any) -> Any: ...

    def connect(
        self, transport: Any, config: MCPServerConfig, hooks: ClientHooks, protocol: ProtocolEra
    ) -> Any: ...

    def in_memory(
        self,
        config: MCPServerConfig,
        hooks: ClientHooks,
        pending: PendingRequests,
        protocol: ProtocolEra,
    ) -> Any: ...


class _BaseClientSession:
    """An open session: the code that both major versions share.

    Args:
        session: The session of the SDK.
        error_type: The class of its errors.
        facts: What the server has reported about itself.
        direct: Tracks the requests, if there are no streams that do this.
    """

    def __init__(
        self,
        session: Any,
        error_type: type[Exception],
        facts: dict[str, Any],
        direct: PendingRequests | None = None,
    ) -> None:
        import anyio
        from pydantic import ValidationError

        self._session = session
        self._error_type = error_type
        self._invalid = ValidationError
        self._closed = (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError)
        self._direct = direct
        self.version: str = facts.get("protocolVersion") or MODERN
        self.server_info: dict[str, Any] = facts.get("serverInfo") or {}
        self.capabilities: dict[str, Any] = facts.get("capabilities") or {}
        self.instructions: str | None = facts.get("instructions")

    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        # The streams, and a server in this process, read the request from this context variable.
        token = current_request.set(request)
        on_progress: Any = _ignore_progress
        if self._direct is not None:
            on_progress = partial(_record_progress, request)
            self._direct.add(request)
            request.sent = True
        is_task = request.method.startswith("tasks/")
        message = (_RawTaskRequest if is_task else RawJson)(request.method, params)
        try:
            result = await self._send(message, on_progress)
        except self._error_type as error:
            details: Any = getattr(error, "error", error)
            raise ServerRefusal(details.code, str(details.message)) from None
        except self._invalid as error:
            raise ServerRefusal(_CLOSED, f"its answer is not valid: {error}") from None
        except self._closed as error:
            raise ConnectionError(str(error)) from error
        finally:
            current_request.reset(token)
        return result if request.raw is None else request.raw

    async def _send(self, message: RawJson, on_progress: Any) -> Any:
        return await self._session.send_request(message, RawResult, progress_callback=on_progress)

    async def listen(self, on_change: Callable[[str], None]) -> None:
        del on_change  # older protocol versions send changes as notifications of the session

    async def listen_to_resources(
        self, uris: list[str], on_open: Callable[[], None], on_update: Callable[[str], None]
    ) -> None:
        del uris, on_update  # as above
        on_open()

    def check_headers(
        self, tools: list[dict[str, Any]]
    ) -> tuple[dict[str, str], HeaderMirror | None]:
        del tools  # older protocol versions do not have such headers
        return {}, None


class _SdkV2:
    """The SDK 2.x."""

    def __init__(self) -> None:
        self.mcp: Any = importlib.import_module("mcp")
        self.types: Any = importlib.import_module("mcp.types")
        self.httpx: Any = sdk_http()
        self._item: Any = importlib.import_module("mcp.shared.message").SessionMessage

    def message(self, data: dict[str, Any]) -> Any:
        return self._item(message_of(data))

    def error(self, number: Any, text: str) -> Any:
        error = self.types.ErrorData(code=-32000, message=text)
        return self._item(self.types.JSONRPCError(jsonrpc="2.0", id=number, error=error))

    def http_streams(self, config: MCPServerConfig, client: Any) -> Any:
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
        client = self.mcp.Client(
            transport,
            cache=None,
            mode="legacy" if protocol == "legacy" else "auto",
            **self._options(config, hooks),
        )
        async with client:
            if protocol == "modern" and client.protocol_version < MODERN:
                raise _unsupported(f"the server supports version {client.protocol_version}")
            yield _SdkV2Session(client.session, self.mcp.MCPError)

    def _options(self, config: MCPServerConfig, hooks: ClientHooks) -> dict[str, Any]:
        """Return the options that the client and the session of the SDK share."""
        return {
            "log_level": config.log_level,
            "client_info": _client_info(self.types, hooks),
            "elicitation_callback": _callback(hooks.elicit, self.types, "ElicitResult"),
            "sampling_callback": _callback(hooks.sample, self.types, "CreateMessageResult"),
            "list_roots_callback": _callback(hooks.roots, self.types, "ListRootsResult"),
        }

    @contextlib.asynccontextmanager
    async def in_memory(
        self,
        config: MCPServerConfig,
        hooks: ClientHooks,
        pending: PendingRequests,
        protocol: ProtocolEra,
    ) -> AsyncGenerator[ClientSession]:
        if protocol == "legacy":
            async with (
                _memory_streams(config.server, pending) as streams,
                self.connect(contextlib.nullcontext(streams), config, hooks, protocol) as session,
            ):
                yield session
            return
        # There are no streams: the server is called directly.
        server = _inner_server(config.server)
        runner: Any = importlib.import_module("mcp.server.runner")
        async with server.lifespan(server) as state:
            dispatcher = InProcessDispatcher(runner.modern_on_request(server, state))
            async with self.mcp.ClientSession(
                dispatcher=dispatcher,
                logging_callback=partial(_log, pending),
                **self._options(config, hooks),
            ) as session:
                await session.discover()
                yield _InProcessSession(
                    session, self.mcp.MCPError, pending, dispatcher, config.log_level
                )


class _SdkV2Session(_BaseClientSession):
    def __init__(
        self, session: Any, error_type: type[Exception], direct: PendingRequests | None = None
    ) -> None:
        info, capabilities = session.server_info, session.server_capabilities
        facts = {
            "protocolVersion": session.protocol_version,
            "serverInfo": None if info is None else _wire(info),
            "capabilities": None if capabilities is None else _wire(capabilities),
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


class _SdkV1:
    """The SDK 1.x."""

    def __init__(self) -> None:
        self.mcp: Any = importlib.import_module("mcp")
        self.types: Any = importlib.import_module("mcp.types")
        self.httpx: Any = sdk_http()
        self._item: Any = importlib.import_module("mcp.shared.message").SessionMessage

    def message(self, data: dict[str, Any]) -> Any:
        return self._item(message_of(data))

    def error(self, number: Any, text: str) -> Any:
        error = self.types.ErrorData(code=-32000, message=text)
        answer = self.types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
        return self._item(self.types.JSONRPCMessage(answer))

    def http_streams(self, config: MCPServerConfig, client: Any) -> Any:
        module: Any = importlib.import_module("mcp.client.streamable_http")
        return module.streamable_http_client(config.url, http_client=client)

    @contextlib.asynccontextmanager
    async def connect(
        self, transport: Any, config: MCPServerConfig, hooks: ClientHooks, protocol: ProtocolEra
    ) -> AsyncGenerator[ClientSession]:
        del config  # this version of the SDK needs nothing of it
        if protocol == "modern":
            raise _unsupported("it needs version 2 of the package mcp, version 1 is installed")
        async with (
            transport as (read, write),
            self.mcp.ClientSession(
                read,
                write,
                client_info=_client_info(self.types, hooks),
                elicitation_callback=_callback(hooks.elicit, self.types, "ElicitResult"),
                sampling_callback=_callback(hooks.sample, self.types, "CreateMessageResult"),
                list_roots_callback=_callback(hooks.roots, self.types, "ListRootsResult"),
            ) as session,
        ):
            facts = _wire(await session.initialize())
            yield _SdkV1Session(session, self.mcp.McpError, facts)

    @contextlib.asynccontextmanager
    async def in_memory(
        self,
        config: MCPServerConfig,
        hooks: ClientHooks,
        pending: PendingRequests,
        protocol: ProtocolEra,
    ) -> AsyncGenerator[ClientSession]:
        async with (
            _memory_streams(config.server, pending) as streams,
            self.connect(contextlib.nullcontext(streams), config, hooks, protocol) as session,
        ):
            yield session


@contextlib.asynccontextmanager
async def _memory_streams(
    server: Any, pending: PendingRequests
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Run a server in this process, and provide the streams to it."""
    import anyio

    memory: Any = importlib.import_module("mcp.shared.memory")
    server = _inner_server(server)
    async with (
        memory.create_client_server_memory_streams() as (client_side, server_side),
        anyio.create_task_group() as group,
    ):
        group.start_soon(server.run, *server_side, server.create_initialization_options())
        try:
            yield (
                ReadStream(client_side[0], pending),
                WriteStream(client_side[1], pending, direct=True),
            )
        finally:
            group.cancel_scope.cancel()


def _inner_server(server: Any) -> Any:
    """Return the server of the SDK's lowest level that is inside a high-level one."""
    for inner in ("_mcp_server", "_lowlevel_server"):
        server = getattr(server, inner, server)
    return server


class _SdkV1Session(_BaseClientSession):
    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        import asyncio

        try:
            return await super().send(request, params)
        except asyncio.CancelledError:
            if request.id is not None and request.sent:
                await asyncio.shield(self._cancel(request.id))
            raise

    async def _cancel(self, number: int | str) -> None:
        """Notify the server of a cancellation: this version of the SDK does not do it."""
        import asyncio

        params = {"requestId": number, "reason": "cancelled"}
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await self._session.send_notification(RawJson("notifications/cancelled", params))


def _unsupported(why: str) -> ConnectionError:
    return ConnectionError(f"protocol='modern' expects version {MODERN} or later, but {why}")


def _list_changed(kind: str) -> str:
    """Return the method of the notification that a list has changed."""
    return f"notifications/{kind}/list_changed"


def _wire(model: Any) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _client_info(types: Any, hooks: ClientHooks) -> Any:
    from agents_tools._package import __version__

    version = hooks.client_version or __version__
    return types.Implementation(name=hooks.client_name, version=version)
