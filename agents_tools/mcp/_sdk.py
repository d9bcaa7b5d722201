"""The SDK of the protocol, `mcp`: the one place that knows its two lines, 1.x and 2.x.

What is sent and what comes back are plain JSON objects, as on the wire.
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
from agents_tools.mcp._exchange import ReadStream, WriteStream, current_request
from agents_tools.mcp._http import http_client
from agents_tools.mcp._shapes import an_object
from agents_tools.mcp._stdio import StdioTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from agents_tools.mcp._exchange import Exchange, Request
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["Hooks", "Json", "Refusal", "Session", "message_of", "open_session", "sdk_line"]

_CLOSED = -32000
_TOOLS_CHANGED = "notifications/tools/list_changed"
MODERN = "2026-07-28"
"""The first version of the protocol that has no sessions."""


Mirror: TypeAlias = "Callable[[dict[str, Any]], dict[str, str]]"
"""Gives headers from the params of a call."""


class Refusal(Exception):  # noqa: N818 - what the server said, told apart from our errors
    """The server answered with an error.

    Args:
        code: Its JSON-RPC code.
        message: Its words.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What a server may ask of the client, each from params to a result; `None`: not offered."""

    elicit: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    sample: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    roots: Callable[[], Awaitable[dict[str, Any]]] | None = None


class Session(Protocol):
    """A session with one server."""

    version: str
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str | None

    async def send(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and give its result.

        Raises:
            Refusal: The server answered with an error.
            ConnectionError: The connection has ended.
        """
        ...

    async def listen(self, on_change: Callable[[str], None]) -> None:
        """Hear of changed lists, in the versions that say so on a stream of its own."""
        ...

    def mirrored(self, tools: list[dict[str, Any]]) -> tuple[dict[str, str], Mirror | None]:
        """Say which tools ask for headers that cannot be, and how to give those that can.

        From 2026-07-28 on a schema may name headers that repeat arguments (`x-mcp-header`).
        """
        ...


@functools.cache
def sdk_line() -> int:
    """Give the line of the SDK that is installed: 1 or 2.

    Raises:
        UserError: It is not installed.
    """
    try:
        return int(metadata.version("mcp").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        raise UserError('MCP takes the extra `mcp`: pip install "agents-tools[mcp]".') from None


def message_of(data: Any) -> Any:
    """Make a message of the SDK from plain JSON.

    Raises:
        ValueError: It is none.
    """
    types: Any = importlib.import_module("mcp.types")
    if sdk_line() == 1:
        return types.JSONRPCMessage.model_validate(data)
    return types.jsonrpc_message_adapter.validate_python(data, by_name=False)


@contextlib.asynccontextmanager
async def open_session(
    config: MCPServerConfig,
    exchange: Exchange,
    hooks: Hooks,
    on_stdio: Callable[[StdioTransport], None],
) -> AsyncGenerator[Session]:
    """Connect, agree on a version, and give the session.

    Args:
        config: The server.
        exchange: What goes over the connection.
        hooks: What the server may ask for.
        on_stdio: Gets the process of a stdio server before it starts.
    """
    line: _Line = _Two() if sdk_line() >= 2 else _One()  # noqa: PLR2004 - the second line
    _quiet()
    if config.transport == "memory":
        async with line.in_memory(config, hooks, exchange) as session:
            yield session
        return
    if config.transport == "stdio":
        process = StdioTransport(config, line, exchange)
        on_stdio(process)
        transport: Any = process
    else:
        transport = _http_transport(line, config, exchange)
    async with line.over(transport, hooks) as session:
        yield session


@contextlib.asynccontextmanager
async def _http_transport(
    line: _Line, config: MCPServerConfig, exchange: Exchange
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    async with contextlib.AsyncExitStack() as stack:
        client = http_client(line.httpx, config, exchange)
        if config.transport == "sse":
            module = importlib.import_module("mcp.client.sse")
            opened = module.sse_client(
                config.url,
                timeout=config.connect_timeout,
                httpx_client_factory=partial(_given, client),
            )
        else:
            await stack.enter_async_context(client)
            opened = line.streamable(config, client)
        streams: Any = await stack.enter_async_context(opened)
        yield ReadStream(streams[0], exchange), WriteStream(streams[1], exchange)


def _given(client: Any, **_: Any) -> Any:
    """Give the client that is made already, whatever the SDK would make it of."""
    return client


def _quiet() -> None:
    """Keep the SDK from telling the world what reaches the caller as an error anyway."""
    for name in ("client", "mcp.client.streamable_http", "mcp.client.sse", "mcp.client.stdio"):
        log = logging.getLogger(name)
        if log.level == logging.NOTSET:
            log.setLevel(logging.CRITICAL)


class Json:
    """A request or a notification that is JSON already; the SDK only asks for this form of it."""

    name_param: str | None = None

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"method": self.method, "params": self.params}


class _AsItIs:
    """A type of results that takes every object."""

    @staticmethod
    def model_validate(value: Any, **_: Any) -> Any:
        return value


async def _progress(
    request: Request, progress: float, total: float | None, message: str | None
) -> None:
    """Take a report of progress that came without a stream."""
    request.heard({"progress": progress, "total": total, "message": message})


async def _ignored(progress: float, total: float | None, message: str | None) -> None:
    """Only say by being there that progress is wanted: the exchange has taken it already."""


def _callback(hook: Any, types: Any, result: str) -> Any:
    if hook is None:
        return None

    async def answer(_context: Any, params: Any = None) -> Any:
        given = (
            await hook()
            if params is None
            else await hook(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        )
        if "error" in given:
            return types.ErrorData(code=-1, message=given["error"])
        kind = result
        if result == "CreateMessageResult" and isinstance(given.get("content"), list):
            kind = "CreateMessageResultWithTools"
        return getattr(types, kind).model_validate(given)

    return answer


class _Line(Protocol):
    """One line of the SDK."""

    httpx: Any

    def message(self, data: dict[str, Any]) -> Any: ...

    def error(self, number: Any, text: str) -> Any: ...

    def streamable(self, config: MCPServerConfig, client: Any) -> Any: ...

    def over(self, transport: Any, hooks: Hooks) -> Any: ...

    def in_memory(self, config: MCPServerConfig, hooks: Hooks, exchange: Exchange) -> Any: ...


class _Session:
    """What both lines have in common once a session is open."""

    def __init__(
        self, session: Any, refused: type[Exception], facts: dict[str, Any], *, streamed: bool
    ) -> None:
        self._session = session
        self._refused = refused
        self._streamed = streamed
        self.version: str = facts.get("protocolVersion") or MODERN
        self.server_info: dict[str, Any] = facts.get("serverInfo") or {}
        self.capabilities: dict[str, Any] = facts.get("capabilities") or {}
        self.instructions: str | None = facts.get("instructions")

    async def send(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        import anyio
        from pydantic import ValidationError

        # What is below a session, streams or a server in this process, finds it by this variable.
        token = current_request.set(request)
        heard = _ignored if self._streamed else partial(_progress, request)
        if not self._streamed:
            request.sent = True
        try:
            result = await self._session.send_request(
                Json(request.method, params), _AsItIs, progress_callback=heard
            )
        except self._refused as error:
            told: Any = getattr(error, "error", error)
            raise Refusal(told.code, str(told.message)) from None
        except ValidationError as error:
            raise Refusal(_CLOSED, f"its answer is not what the protocol says: {error}") from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError) as error:
            raise ConnectionError(str(error)) from error
        finally:
            current_request.reset(token)
        return result if request.raw is None else request.raw

    async def listen(self, on_change: Callable[[str], None]) -> None:
        del on_change  # the versions before hear of it by themselves

    def mirrored(self, tools: list[dict[str, Any]]) -> tuple[dict[str, str], Mirror | None]:
        del tools  # the versions before know of no such headers
        return {}, None


class _Two:
    """The line 2.x."""

    def __init__(self) -> None:
        self.mcp: Any = importlib.import_module("mcp")
        self.types: Any = importlib.import_module("mcp.types")
        self.httpx: Any = importlib.import_module("httpx2")
        self._item: Any = importlib.import_module("mcp.shared.message").SessionMessage

    def message(self, data: dict[str, Any]) -> Any:
        return self._item(message_of(data))

    def error(self, number: Any, text: str) -> Any:
        error = self.types.ErrorData(code=-32000, message=text)
        return self._item(self.types.JSONRPCError(jsonrpc="2.0", id=number, error=error))

    def streamable(self, config: MCPServerConfig, client: Any) -> Any:
        module: Any = importlib.import_module("mcp.client.streamable_http")
        return module.streamable_http_client(
            config.url, http_client=client, max_sse_event_size=config.max_message
        )

    @contextlib.asynccontextmanager
    async def over(
        self, transport: Any, hooks: Hooks, *, streamed: bool = True
    ) -> AsyncGenerator[Session]:
        client = self.mcp.Client(
            transport,
            cache=None,
            client_info=self.types.Implementation(name="agents-tools", version=_own_version()),
            elicitation_callback=_callback(hooks.elicit, self.types, "ElicitResult"),
            sampling_callback=_callback(hooks.sample, self.types, "CreateMessageResult"),
            list_roots_callback=_callback(hooks.roots, self.types, "ListRootsResult"),
        )
        async with client:
            yield _TwoSession(client, self.mcp.MCPError, streamed=streamed)

    def in_memory(self, config: MCPServerConfig, hooks: Hooks, exchange: Exchange) -> Any:
        del exchange  # there are no streams: the server is called
        return self.over(config.server, hooks, streamed=False)


class _TwoSession(_Session):
    def __init__(self, client: Any, refused: type[Exception], *, streamed: bool) -> None:
        self._client = client
        info, capabilities = client.server_info, client.server_capabilities
        facts = {
            "protocolVersion": client.protocol_version,
            "serverInfo": None if info is None else _wire(info),
            "capabilities": None if capabilities is None else _wire(capabilities),
            "instructions": client.instructions,
        }
        super().__init__(client.session, refused, facts, streamed=streamed)

    async def listen(self, on_change: Callable[[str], None]) -> None:
        wanted = {
            f"{one}_list_changed": True
            for one in ("tools", "prompts", "resources")
            if an_object(self.capabilities.get(one)).get("listChanged")
        }
        if self.version < MODERN or not wanted:
            return
        async with self._client.listen(**wanted) as changes:
            on_change(_TOOLS_CHANGED)  # perhaps, since the list was asked for
            async for _ in changes:  # in this process only; over streams the exchange hears them
                on_change(_TOOLS_CHANGED)

    def mirrored(self, tools: list[dict[str, Any]]) -> tuple[dict[str, str], Mirror | None]:
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
            elif found := inbound.x_mcp_header_map(schema):
                maps[name] = found

        def mirror(params: dict[str, Any]) -> dict[str, str]:
            found = maps.get(str(params.get("name")))
            return (
                {} if not found else inbound.mcp_param_headers(found, params.get("arguments") or {})
            )

        return refused, mirror if maps else None


class _One:
    """The line 1.x."""

    def __init__(self) -> None:
        self.mcp: Any = importlib.import_module("mcp")
        self.types: Any = importlib.import_module("mcp.types")
        self.httpx: Any = importlib.import_module("httpx")
        self._item: Any = importlib.import_module("mcp.shared.message").SessionMessage

    def message(self, data: dict[str, Any]) -> Any:
        return self._item(message_of(data))

    def error(self, number: Any, text: str) -> Any:
        error = self.types.ErrorData(code=-32000, message=text)
        answer = self.types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
        return self._item(self.types.JSONRPCMessage(answer))

    def streamable(self, config: MCPServerConfig, client: Any) -> Any:
        module: Any = importlib.import_module("mcp.client.streamable_http")
        return module.streamable_http_client(config.url, http_client=client)

    @contextlib.asynccontextmanager
    async def over(self, transport: Any, hooks: Hooks) -> AsyncGenerator[Session]:
        async with (
            transport as (read, write),
            self.mcp.ClientSession(
                read,
                write,
                client_info=self.types.Implementation(name="agents-tools", version=_own_version()),
                elicitation_callback=_callback(hooks.elicit, self.types, "ElicitResult"),
                sampling_callback=_callback(hooks.sample, self.types, "CreateMessageResult"),
                list_roots_callback=_callback(hooks.roots, self.types, "ListRootsResult"),
            ) as session,
        ):
            facts = _wire(await session.initialize())
            yield _OneSession(session, self.mcp.McpError, facts, streamed=True)

    @contextlib.asynccontextmanager
    async def in_memory(
        self, config: MCPServerConfig, hooks: Hooks, exchange: Exchange
    ) -> AsyncGenerator[Session]:
        import anyio

        memory: Any = importlib.import_module("mcp.shared.memory")
        server: Any = getattr(config.server, "_mcp_server", config.server)  # inside a FastMCP
        async with (
            memory.create_client_server_memory_streams() as (near, far),
            anyio.create_task_group() as group,
        ):
            group.start_soon(server.run, *far, server.create_initialization_options())
            streams = ReadStream(near[0], exchange), WriteStream(near[1], exchange, direct=True)
            try:
                async with self.over(contextlib.nullcontext(streams), hooks) as session:
                    yield session
            finally:
                group.cancel_scope.cancel()


class _OneSession(_Session):
    async def send(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        import asyncio

        try:
            return await super().send(request, params)
        except asyncio.CancelledError:
            if request.id is not None and request.sent:
                await asyncio.shield(self._cancel(request.id))
            raise

    async def _cancel(self, number: int | str) -> None:
        """Tell the server that nobody waits any more; this line leaves that to its user."""
        import asyncio

        params = {"requestId": number, "reason": "cancelled"}
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await self._session.send_notification(Json("notifications/cancelled", params))


def _wire(model: Any) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _own_version() -> str:
    from agents_tools._version import __version__

    return __version__
