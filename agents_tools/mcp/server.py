"""Function tools as an MCP server: on stdin and stdout, or as an ASGI app over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any, Literal

from agents_tools._listener import Guarded, ListenerLimits, bound_socket, check_binding
from agents_tools.errors import UserValueError
from agents_tools.mcp._offer import MCPRequest, Offer
from agents_tools.mcp._sdk_server import SdkServer
from agents_tools.mcp._signals import shared_signals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping, Sequence

    from agents_tools.mcp._offer import Tools

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["MCPApp", "MCPRequest", "mcp_server", "serve", "serve_async"]

logger = logging.getLogger("agents_tools.mcp")

_FAREWELL = 5
"""Seconds that requests in flight get when the server is asked to end."""
_IDLE = 75
"""Seconds for which a connection that nobody uses is kept: more than proxies keep theirs."""


def mcp_server(
    tools: Tools,
    *,
    name: str = "agents-tools",
    version: str | None = None,
    instructions: str | None = None,
    host: str = "127.0.0.1",
    path: str = "/mcp",
    auth: Any = None,
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
    worker: bool = False,
    page_size: int = 1_000,
    context: Callable[[MCPRequest], Any] | None = None,
) -> MCPApp:
    """Make an MCP server of function tools: an ASGI app for uvicorn, Starlette or FastAPI.

    Both eras of the protocol are spoken: sessions are begun with `initialize` up to 2025-11-25,
    and there are none from 2026-07-28 on. A tool that says something while it works reports
    progress to clients that want it.

    Args:
        tools: The tools; or an object with `get_tools()`, such as an `MCPToolManager`, whose tools
            are served as they are at the moment.
        name: What the server calls itself.
        version: Its version; that of the library by default.
        instructions: What it tells models about itself.
        host: The address that it will listen on; other than loopback needs `auth`.
        path: Where it is.
        auth: A bearer token, as text; or an object with `verify_token(token)`, such as a
            `TokenVerifier` of the SDK. Without it, and without `allowed_hosts`, requests of other
            machines are refused, whatever address the server around listens on.
        required_scopes: Scopes that a token has to have.
        authorization_servers: Who gives tokens; told to clients that come without one.
        resource_url: What tokens are for: the address of this server as clients know it.
        allowed_hosts: Values of the Host header beside loopback: `example.com`, `*.example.com`.
        allowed_origins: Values of the Origin header of web pages that may call.
        max_body: The most bytes of a request.
        max_concurrency: The most requests at once.
        stateless: Whether no session is kept, so that any of several servers behind a load
            balancer can answer any request. Without it clients of the earlier era are told of
            changes in the list of tools.
        json_response: Whether results are plain JSON instead of a stream; there is no progress.
        errors: What clients are told of exceptions other than the library's own and `ToolError`:
            `hide` gives the type and an id that stands in the log, `show` the message.
        worker: Whether clients are backends (`MCPBackend`) of this application: they then hear
            everything that is said below a call, such as what agents in it say and do, and the
            policies of a tool are left out here where the backend has applied them already.
            Without it backends hear what a call says of its work, and all policies apply.
        page_size: How many tools stand on one page of the list.
        context: Gives what tools see as `ctx.context`, from an `MCPRequest`; sync or async. The
            request itself by default.

    Raises:
        UserError: What is given cannot work.
    """
    check_binding(host, auth=auth, setting="auth")
    app = MCPApp(
        SdkServer(
            Offer(tools, errors=errors, worker=worker, page_size=page_size, context=context),
            name=name,
            version=_version() if version is None else version,
            instructions=instructions,
            changes=hasattr(tools, "get_tools"),
            plain=json_response,
        ),
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
    subscribe = getattr(tools, "subscribe", None)
    if callable(subscribe):
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
    """Serve function tools until the client or a signal ends it.

    Args:
        tools: The tools, as for `mcp_server`.
        transport: `stdio`: on standard input and output, for a client that starts this program.
            `http`: on an address.
        host: http: the address; other than loopback needs `auth`.
        port: http: the port.
        **options: What `mcp_server` takes. Over HTTP `auth` is needed; `auth=False` takes calls of
            every program of this machine.

    Raises:
        UserError: What is given cannot work.
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
    """Do what `serve` does, on the event loop that runs.

    Args:
        tools: The tools, as for `mcp_server`.
        transport: `stdio` or `http`.
        host: http: the address.
        port: http: the port; 0 takes a free one.
        on_ready: http: called with the address when it listens.
        **options: What `mcp_server` takes; `auth` as for `serve`.

    Raises:
        UserError: What is given cannot work.
    """
    over_stdio = transport == "stdio"
    options["auth"] = _chosen_auth(options.get("auth"), needed=transport == "http")
    app = mcp_server(tools, host="127.0.0.1" if over_stdio else host, **options)
    if over_stdio:
        await app.run_stdio()
    elif transport == "http":
        await _listen(app, host, port, on_ready)
    else:
        raise UserValueError(f"serve(transport=...) is 'stdio' or 'http', not {transport!r:.60}.")


def _chosen_auth(auth: Any, *, needed: bool) -> Any:
    """Give what lets clients in; that there is nothing has to be said."""
    if auth is None and needed:
        raise UserValueError(
            "A server over HTTP lets nobody in without a token, since every program and every "
            "user of this machine could call the tools. Give auth= a token of at least 16 "
            "characters, such as secrets.token_urlsafe() makes, or a verifier. auth=False leaves "
            "the tools open to this machine."
        )
    return None if auth is False else auth


class MCPApp:
    """An MCP server; made by `mcp_server`. It is an ASGI app, and can serve stdin and stdout."""

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
            raise UserValueError(f"path= begins with '/', not {path!r:.60}.")
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
                "authorization_servers= needs resource_url=: what their tokens are for."
            )
        self._well_known = f"/.well-known/oauth-protected-resource{self.path}"
        metadata_url = None
        if resource_url is not None and authorization_servers:
            metadata_url = resource_url.removesuffix(self.path).rstrip("/") + self._well_known
        self._running: _Running | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guarded = Guarded(
            self._route,
            host=host,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            required_scopes=required_scopes,
            limits=limits,
            protect=lambda where: where not in {"/healthz", self._well_known},
            metadata_url=metadata_url,
            resource=resource_url,
            local_only=auth is None and not allowed_hosts,
        )

    async def tools_changed(self) -> None:
        """Tell clients that the list of tools has changed."""
        await self._server.tools_changed()

    def tools_changed_soon(self) -> None:
        """Do what `tools_changed` does, from any thread and without waiting for it."""
        loop = self._loop
        if loop is not None and loop.is_running():
            asyncio.run_coroutine_threadsafe(self._server.tools_changed(), loop)

    async def run_stdio(self) -> None:
        """Serve on standard input and output until the client closes them."""
        self._loop = asyncio.get_running_loop()
        from agents_tools.mcp._stdio_server import stdio_streams

        try:
            async with stdio_streams() as (read, write):
                await self._server.server.run(read, write, self._server.options())
        finally:
            await self._server.interviews.close()

    async def aclose(self) -> None:
        """End all sessions. It begins anew with the next request."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()
        await self._server.interviews.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or take part in the start and end of the server around it."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._started()
                except Exception as error:  # noqa: BLE001 - told to the server, which reports it
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _started(self) -> Any:
        """Give what handles requests; it is started by the first one where nothing else has."""
        running = self._running
        if running is None or running.over:
            self._loop = asyncio.get_running_loop()
            running = self._running = _Running(
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
        where = _inner_path(scope)
        if where == "/healthz":
            await _respond(send, 200, {"status": "ok"})
        elif where == self._well_known and self._metadata["authorization_servers"]:
            await _respond(send, 200, self._metadata)
        elif where.rstrip("/") == self.path.rstrip("/"):
            manager = await self._started()
            handle = getattr(manager, "asgi_app", None) or manager.handle_request
            await handle(self._server.owned(_without_last_event(scope)), receive, send)
        else:
            message = f"There is nothing at {where!r:.100}; the MCP server is at {self.path!r}."
            await _respond(send, 404, {"error": {"message": message}})


class _Running:
    """The SDK's manager of sessions, in a task of its own, in which it is entered and left."""

    def __init__(self, manager: Any) -> None:
        loop = asyncio.get_running_loop()
        self.manager = manager
        self.ready: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._end = asyncio.Event()
        self._task = loop.create_task(self._run(), name="mcp server")

    @property
    def over(self) -> bool:
        """Whether it can be used no more."""
        return self._task.done() or self._loop.is_closed()

    async def stop(self) -> None:
        """End its sessions."""
        self._end.set()
        await asyncio.wait({self._task}, timeout=_FAREWELL)

    async def _run(self) -> None:
        try:
            async with self.manager.run():
                self.ready.set_result(None)
                await self._end.wait()
        except Exception as error:
            if not self.ready.done():
                self.ready.set_exception(error)
            logger.exception("The MCP server has ended.")


def _without_last_event(scope: Scope) -> Scope:
    """Leave out what event a client has seen last: none is kept, and the SDK has no answer then."""
    kept = [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]
    return {**scope, "headers": kept}


def _inner_path(scope: Scope) -> str:
    """Give the path within what the app is mounted at."""
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
        timeout_graceful_shutdown=_FAREWELL,
        timeout_keep_alive=_IDLE,
        server_header=False,
    )
    if on_ready is not None:
        shown = f"[{host}]" if ":" in host else host
        on_ready(f"http://{shown}:{sock.getsockname()[1]}{app.path}")
    server = uvicorn.Server(config)
    vars(server)["capture_signals"] = lambda: shared_signals(server)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = True
        await asyncio.wait({task}, timeout=_FAREWELL + 2)
        raise
    finally:
        sock.close()


def _version() -> str:
    from agents_tools._version import __version__

    return __version__
