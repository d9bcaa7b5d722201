"""Serve function tools with MCP, on stdin and stdout or as an ASGI app over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.errors import UserValueError
from agents_tools.mcp.server.handlers import MCPRequest, ToolHandlers
from agents_tools.mcp.server.sdk import SdkServer
from agents_tools.mcp.server.signals import shared_signals
from agents_tools.server.http_security import (
    ListenerLimits,
    SecuredApp,
    bound_socket,
    check_binding,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping, Sequence

    from agents_tools.mcp.server.handlers import Tools

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["MCPApp", "MCPRequest", "mcp_server", "serve", "serve_async"]

logger = logging.getLogger("agents_tools.mcp")

_SHUTDOWN_TIMEOUT = 5
"""Seconds that requests in flight have to finish when the server shuts down."""
_KEEP_ALIVE = 75
"""Seconds for which an idle connection is kept open: more than on most proxies."""


def mcp_server(
    tools: Tools,
    *,
    name: str = "agents-tools",
    version: str | None = None,
    instructions: str | None = None,
    host: str = "127.0.0.1",
    path: str = "/mcp",
    auth: object = None,
    required_scopes: Sequence[str] = (),
    authorization_servers: Sequence[str] = (),
    resource_url: str | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    max_body: int = 4 << 20,
    max_concurrency: int = 100,
    stateless: bool = True,
    json_response: bool = False,
    errors: Literal["hide", "show"] = "hide",
    page_size: int = 1_000,
    context: Callable[[MCPRequest], Any] | None = None,
) -> MCPApp:
    """Create an MCP server from function tools: an ASGI app for uvicorn, Starlette or FastAPI.

    The server supports protocol versions with sessions (up to 2025-11-25) and without them (from
    2026-07-28 on). Progress and display events are sent to clients that request progress.

    Args:
        tools: The tools, or an object with `get_tools()` such as an `MCPToolManager`.
        name: The name that the server reports.
        version: The version that the server reports; that of the library by default.
        instructions: Instructions for models that use the server.
        host: The address to listen on; an address other than loopback requires `auth`.
        path: The path of the endpoint.
        auth: A bearer token, or an object with `verify_token(token)` such as a `TokenVerifier` of
            the SDK. Without `auth` and `allowed_hosts`, requests from other machines are refused.
        required_scopes: The scopes that a token must have.
        authorization_servers: URLs of the servers that issue tokens, sent to unauthorized clients.
        resource_url: The URL of this server as clients know it: the audience of the tokens.
        allowed_hosts: Accepted Host headers other than loopback: `example.com`, `*.example.com`.
        allowed_origins: Origin headers of the web pages that can call the server.
        max_body: The maximum size of a request, in bytes.
        max_concurrency: The maximum number of concurrent requests.
        stateless: Whether to keep no sessions, so that a load balancer can distribute requests.
            If false, clients of the older versions are notified of changed tools.
        json_response: Whether results are plain JSON instead of a stream, without progress.
        errors: For unexpected exceptions, `hide` sends clients the type and an id that is in the
            log, `show` the message. Errors of the library and `ToolError` are always shown.
        page_size: The number of tools on one page of the tool list.
        context: Returns `ctx.context` for an `MCPRequest`, sync or async; by default the request.

    Raises:
        UserError: An option is invalid.
    """
    check_binding(host, auth=auth, setting="auth")
    handlers = ToolHandlers(tools, errors=errors, page_size=page_size, context=context)
    app = MCPApp(
        SdkServer(handlers, name, version, instructions),
        host=host,
        path=path,
        auth=auth,
        required_scopes=tuple(required_scopes),
        authorization_servers=tuple(authorization_servers),
        resource_url=resource_url,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        limits=ListenerLimits(max_body=max_body, max_concurrency=max_concurrency),
        stateless=stateless,
        json_response=json_response,
    )
    if callable(subscribe := getattr(tools, "subscribe", None)):
        subscribe(app.tools_changed_soon)
    return app


def serve(
    tools: Tools,
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    **options: Any,
) -> None:
    """Serve function tools until the client closes the connection or a signal arrives.

    Args:
        tools: The tools, as for `mcp_server`.
        transport: `stdio` for standard input and output, for a client that starts this program;
            `http` for a network address.
        host: The address for `http`; an address other than loopback requires `auth`.
        port: The port for `http`.
        **options: The options of `mcp_server`. `http` requires `auth`; with `auth=False`, every
            program on this machine can call the tools.

    Raises:
        UserError: An option is invalid.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_async(tools, transport, host=host, port=port, **options))


async def serve_async(
    tools: Tools,
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    on_ready: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve function tools like `serve`, on the running event loop.

    Args:
        tools: The tools, as for `mcp_server`.
        transport: `stdio` or `http`.
        host: The address for `http`.
        port: The port for `http`; 0 selects a free one.
        on_ready: For `http`, called with the URL once the server listens.
        **options: The options of `mcp_server`; `auth` as for `serve`.

    Raises:
        UserError: An option is invalid.
    """
    is_stdio = transport == "stdio"
    options["auth"] = _resolve_auth(options.get("auth"), required=transport == "http")
    app = mcp_server(tools, host="127.0.0.1" if is_stdio else host, **options)
    if is_stdio:
        await app.run_stdio()
    elif transport == "http":
        await _listen(app, host, port, on_ready)
    else:
        raise UserValueError(
            f"serve(transport=...) expects 'stdio' or 'http', got {transport!r:.60}."
        )


def _resolve_auth(auth: Any, *, required: bool) -> Any:
    """Return the authentication to use; `auth=False` disables it explicitly."""
    if auth is None and required:
        raise UserValueError(
            "A server over HTTP requires a token: without one, every program and every user of "
            "this machine could call the tools. Pass a token of at least 16 characters as auth=, "
            "such as one from secrets.token_urlsafe(), or a verifier. Pass auth=False to allow "
            "calls from all programs on this machine."
        )
    return None if auth is False else auth


class MCPApp:
    """An MCP server, created by `mcp_server`: an ASGI app that can also serve stdin and stdout."""

    def __init__(
        self,
        server: SdkServer,
        *,
        host: str,
        path: str,
        auth: Any,
        required_scopes: tuple[str, ...],
        authorization_servers: tuple[str, ...],
        resource_url: str | None,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        limits: ListenerLimits,
        stateless: bool,
        json_response: bool,
    ) -> None:
        if not path.startswith("/"):
            raise UserValueError(f"path= expects a path that starts with '/', got {path!r:.60}.")
        self.path = path.rstrip("/") or "/"
        self._server = server
        self._stateless = stateless
        self._json = json_response
        self._max_body = limits.max_body
        self._metadata = {
            "resource": resource_url,
            "authorization_servers": list(authorization_servers),
            "scopes_supported": list(required_scopes),
            "bearer_methods_supported": ["header"],
        }
        if authorization_servers and resource_url is None:
            raise UserValueError(
                "authorization_servers= requires resource_url=, the URL that the tokens are for."
            )
        self._well_known = f"/.well-known/oauth-protected-resource{self.path}"
        metadata_url = None
        if resource_url is not None and authorization_servers:
            metadata_url = resource_url.removesuffix(self.path).rstrip("/") + self._well_known
        self._running: _RunningServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._secured_app = SecuredApp(
            self._route,
            host=host,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            required_scopes=required_scopes,
            limits=limits,
            protect=lambda path: path not in {"/healthz", self._well_known},
            metadata_url=metadata_url,
            resource=resource_url,
            local_only=auth is None and not allowed_hosts,
        )

    async def tools_changed(self) -> None:
        """Notify clients that the list of tools has changed."""
        await self._server.tools_changed()

    def tools_changed_soon(self) -> None:
        """Notify clients of changed tools in the background; can be called from any thread."""
        loop = self._loop
        if loop is not None and loop.is_running():
            asyncio.run_coroutine_threadsafe(self._server.tools_changed(), loop)

    async def run_stdio(self) -> None:
        """Serve on standard input and output until the client closes them."""
        self._loop = asyncio.get_running_loop()
        from agents_tools.mcp.server.stdio import stdio_streams

        try:
            async with stdio_streams() as (read, write):
                await self._server.server.run(read, write, self._server.options())
        finally:
            await self._server.elicitations.close()

    async def aclose(self) -> None:
        """Close all sessions. The next request starts the server again."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()
        await self._server.elicitations.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request, or the startup and shutdown of the ASGI server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._secured_app(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._ensure_started()
                except Exception as error:  # noqa: BLE001 - the ASGI server reports it
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _ensure_started(self) -> Any:
        """Return the SDK's session manager; start it if no lifespan event has started it."""
        running = self._running
        if running is None or running.is_closed:
            self._loop = asyncio.get_running_loop()
            running = self._running = _RunningServer(
                self._server.http(
                    stateless=self._stateless,
                    json_response=self._json,
                    max_request_body_size=self._max_body,
                    security_settings=None,
                )
            )
        await asyncio.shield(running.ready)
        return running.manager

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _inner_path(scope)
        if path == "/healthz":
            await _respond(send, 200, {"status": "ok"})
        elif path == self._well_known and self._metadata["authorization_servers"]:
            await _respond(send, 200, self._metadata)
        elif path.rstrip("/") == self.path.rstrip("/"):
            manager = await self._ensure_started()
            handle = getattr(manager, "asgi_app", None) or manager.handle_request
            await handle(self._server.with_principal(_without_last_event(scope)), receive, send)
        else:
            message = f"Path {path!r:.100} was not found. The MCP server is at {self.path!r}."
            await _respond(send, 404, {"error": {"message": message}})


class _RunningServer:
    """The SDK's session manager in its own task: the task that enters it must also exit it."""

    def __init__(self, manager: Any) -> None:
        loop = asyncio.get_running_loop()
        self.manager = manager
        self.ready: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._stop = asyncio.Event()
        self._task = loop.create_task(self._run(), name="mcp server")

    @property
    def is_closed(self) -> bool:
        """Whether the task or its loop has ended."""
        return self._task.done() or self._loop.is_closed()

    async def stop(self) -> None:
        """Close all sessions."""
        self._stop.set()
        await asyncio.wait({self._task}, timeout=_SHUTDOWN_TIMEOUT)

    async def _run(self) -> None:
        try:
            async with self.manager.run():
                self.ready.set_result(None)
                await self._stop.wait()
        except Exception as error:
            if not self.ready.done():
                self.ready.set_exception(error)
            logger.exception("The MCP server has ended.")


def _without_last_event(scope: Scope) -> Scope:
    """Remove the Last-Event-ID header: events are not stored, so the SDK cannot resume a stream."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]
    return {**scope, "headers": headers}


def _inner_path(scope: Scope) -> str:
    """Return the path below the path that the app is mounted at."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", ""))
    return (path.removeprefix(root) if root and path.startswith(root) else path) or "/"


async def _respond(send: Send, status: int, body: Any) -> None:
    data = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


async def _listen(
    app: MCPApp, host: str, port: int, on_ready: Callable[[str], None] | None
) -> None:
    import uvicorn

    sock = bound_socket(host, port)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
        timeout_keep_alive=_KEEP_ALIVE,
        server_header=False,
    )
    if on_ready is not None:
        url_host = f"[{host}]" if ":" in host else host
        on_ready(f"http://{url_host}:{sock.getsockname()[1]}{app.path}")
    server = uvicorn.Server(config)
    vars(server)["capture_signals"] = lambda: shared_signals(server)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = True
        await asyncio.wait({task}, timeout=_SHUTDOWN_TIMEOUT + 2)
        raise
    finally:
        sock.close()
