"""Serve function tools with MCP, on stdin and stdout or as an ASGI app over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import UserValueError
from agents_tools.mcp._sdk import MODERN
from agents_tools.mcp.server.handlers import ToolHandlers
from agents_tools.mcp.server.prompts import PromptHandlers
from agents_tools.mcp.server.requests import MCPRequest
from agents_tools.mcp.server.resources import ResourceHandlers
from agents_tools.mcp.server.sdk import SdkServer
from agents_tools.mcp.server.served_calls import ServedCalls
from agents_tools.mcp.server.tasks import create_tasks
from agents_tools.server.application import Application, JsonResponse
from agents_tools.server.http_security import ListenerLimits, header_values, scopes_of
from agents_tools.server.listener import HEAD_TIMEOUT, bound_socket, serve_app, url_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from agents_tools.mcp._sdk import ListKind
    from agents_tools.mcp.server.handlers import Tools
    from agents_tools.mcp.server.prompts import Prompts
    from agents_tools.mcp.server.resources import Resources
    from agents_tools.persistence.run_store import RunStore
    from agents_tools.server.application import Handler, HttpRequest

__all__ = ["MCPApp", "MCPRequest", "mcp_server", "serve", "serve_async"]

logger = logging.getLogger("agents_tools.mcp")

_SHUTDOWN_TIMEOUT = 5
"""Seconds that sessions have to end when the server shuts down."""
_MIN_SECRET = 32
"""The minimum length of a shared secret."""


def mcp_server(
    tools: Tools = (),
    *,
    resources: Resources = (),
    prompts: Prompts = (),
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
    max_streams: int = 1_000,
    stateless: bool = True,
    json_response: bool = False,
    errors: Literal["hide", "show"] = "hide",
    page_size: int = 1_000,
    context: Callable[[MCPRequest], Any] | None = None,
    state_secret: str | bytes | Sequence[str | bytes] | None = None,
    tasks: bool | Literal["required"] | Sequence[str] = False,
    store: RunStore | str | os.PathLike[str] | None = None,
    max_tasks: int = 100,
    task_ttl: float = 3_600.0,
) -> MCPApp:
    """Create an MCP server from tools, resources and prompts: an ASGI app.

    The server supports protocol versions with sessions (up to 2025-11-25) and without them (from
    2026-07-28 on). Progress and display events are sent to clients that request progress.

    Args:
        tools: The tools and agents, or an object with `get_tools()` such as an `MCPToolManager`.
            An agent is served as `agent.as_tool()`.
        resources: The resources, made with `resource` or `Resource.from_value`, or an object with
            `get_resources()`. Optional methods of the object: `subscribe_list(kind, callback)`
            is called with `resources` and a function that notifies the clients of a changed list;
            `subscribe_resource(uri, callback)` and `unsubscribe_resource(uri)` for the clients
            that subscribe to a resource.
        prompts: The prompts, made with `prompt`, and agents, or an object with `get_prompts()`
            and optionally `subscribe_list(kind, callback)`. The prompt of an agent has its
            instructions and an argument `input`.
        name: The name that the server reports.
        version: The version that the server reports; that of the library by default.
        instructions: Instructions for models that use the server.
        host: The address to listen on; an address other than loopback requires `auth`.
        path: The path of the endpoint.
        auth: A bearer token, a `JWTVerifier`, or another object with `verify_token(token)` such as
            a `TokenVerifier` of the SDK. Without `auth` and `allowed_hosts`, requests from other
            machines are refused.
        required_scopes: The scopes that a token must have.
        authorization_servers: URLs of the servers that issue tokens, sent to unauthorized clients.
        resource_url: The URL of this server as clients know it: the audience of the tokens.
        allowed_hosts: Accepted Host headers other than loopback: `example.com`, `*.example.com`.
        allowed_origins: Origin headers of the web pages that can call the server.
        max_body: The maximum size of a request, in bytes.
        max_concurrency: The maximum number of concurrent requests of one caller. All callers
            together can have ten times as many.
        max_streams: The same for open streams, in which clients wait for notifications.
        stateless: Whether to keep no sessions, so that a load balancer can distribute requests.
            If false, clients of the older versions are notified of changed tools.
        json_response: Whether results are plain JSON instead of a stream, without progress.
        errors: For unexpected exceptions, `hide` sends clients the type and an id that is in the
            log, `show` the message. Errors of the library and `ToolError` are always shown.
        page_size: The number of tools, resources or prompts on one page of a list.
        context: Returns `ctx.context` for an `MCPRequest`, sync or async; by default the request.
        state_secret: A secret of at least 32 bytes that several processes of the server share, so
            that any of them continues a call that asked a question (from 2026-07-28 on). The call
            then runs again from its start, with the recorded answers. Several secrets replace one
            another: the first one is used for new calls. By default, each process has a random one,
            and an answer has to reach the process of the call.
        tasks: The tools that clients can call as tasks, whose results they fetch later: all
            (`True`), all and only as tasks (`'required'`), or those whose names match a pattern of
            a list. `metadata={"mcp": {"execution": {"taskSupport": ...}}}` of a tool overrides it.
            It needs version 2 of the SDK.
        store: The run store of the tasks, or its path or address. Several processes can share it.
            By default, tasks are stored in memory, and end with the process.
        max_tasks: The maximum number of open tasks of one caller. Ten times as many are kept for
            it. All callers together can have ten times as many.
        task_ttl: The longest time that a task is kept and can run, from its creation, in seconds.
            Clients up to 2025-11-25 can request a shorter time.

    Raises:
        UserError: An option is invalid.
    """
    if type(page_size) is not int or page_size < 1:
        raise UserValueError(f"page_size= expects a positive integer, got {page_size!r:.60}.")
    calls = ServedCalls(errors, context)
    handlers = ToolHandlers(tools, calls, page_size=page_size)
    server = SdkServer(
        handlers,
        _handlers(ResourceHandlers, resources, calls, page_size),
        _handlers(PromptHandlers, prompts, calls, page_size),
        name,
        version,
        instructions,
        _secrets(state_secret),
    )
    if created := create_tasks(handlers, tasks, store, max_tasks=max_tasks, ttl=task_ttl):
        server.support_tasks(created, lists=auth is not None)
    app = MCPApp(
        server,
        host=host,
        path=path,
        auth=auth,
        required_scopes=tuple(required_scopes),
        authorization_servers=tuple(authorization_servers),
        resource_url=resource_url,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        limits=ListenerLimits(
            max_body=max_body, max_concurrency=max_concurrency, max_streams=max_streams
        ),
        stateless=stateless,
        json_response=json_response,
    )
    if callable(subscribe := getattr(tools, "subscribe", None)):
        subscribe(app.tools_changed_soon)
    lists: dict[ListKind, object] = {"resources": resources, "prompts": prompts}
    for kind, source in lists.items():
        if callable(subscribe := getattr(source, "subscribe_list", None)):
            subscribe(kind, partial(app.list_changed_soon, kind))
    return app


def _handlers(kind: Any, items: Any, calls: ServedCalls, page_size: int) -> Any:
    """Return the handlers for items; `None` if there are none and will be none."""
    is_single = hasattr(items, "tool")
    if not is_single and hasattr(items, "__len__") and not items:
        return None
    return kind(items, calls, page_size=page_size)


def _secrets(given: str | bytes | Sequence[str | bytes] | None) -> tuple[str | bytes, ...]:
    """Return the secrets of `state_secret=`.

    Raises:
        UserValueError: A secret is too short, or not text or bytes.
    """
    if given is None:
        return ()
    is_one = isinstance(given, (str, bytes)) or not isinstance(cast("object", given), Sequence)
    found = cast("tuple[str | bytes, ...]", (given,) if is_one else tuple(given))
    for secret in found:
        is_text = isinstance(cast("object", secret), (str, bytes))
        if not is_text or len(secret) < _MIN_SECRET:
            problem = f"one of {len(secret)}" if is_text else f"a {type(secret).__name__}"
            raise UserValueError(
                f"state_secret= expects a secret of at least {_MIN_SECRET} bytes, got {problem}. "
                "Create one with secrets.token_urlsafe(32) and pass it to all processes."
            )
    return found


def serve(
    tools: Tools = (),
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    head_timeout: float = HEAD_TIMEOUT,
    max_connections: int | None = None,
    **options: Any,
) -> None:
    """Serve function tools until the client closes the connection or a signal arrives.

    Args:
        tools: The tools, as for `mcp_server`.
        transport: `stdio` for standard input and output, for a client that starts this program;
            `http` for a network address.
        host: The address for `http`; an address other than loopback requires `auth`.
        port: The port for `http`.
        head_timeout: For `http`, the seconds in which a client must send the head of a request.
        max_connections: For `http`, the largest number of connections. By default, and at most, as
            many as the process can have open files, less a reserve for tools.
        **options: The options of `mcp_server`. `http` requires `auth`; with `auth=False`, every
            program on this machine can call the tools.

    Raises:
        UserError: An option is invalid.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            serve_async(
                tools,
                transport,
                host=host,
                port=port,
                head_timeout=head_timeout,
                max_connections=max_connections,
                **options,
            )
        )


async def serve_async(
    tools: Tools = (),
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    head_timeout: float = HEAD_TIMEOUT,
    max_connections: int | None = None,
    on_ready: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve function tools like `serve`, on the running event loop.

    Args:
        tools: The tools, as for `mcp_server`.
        transport: `stdio` or `http`.
        host: The address for `http`.
        port: The port for `http`; 0 selects a free one.
        head_timeout: As for `serve`.
        max_connections: As for `serve`.
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
        sock = bound_socket(host, port)
        if on_ready is not None:
            on_ready(url_of(host, sock) + app.path)  # from here on, connections wait
        await serve_app(
            app,
            sock,
            head_timeout=head_timeout,
            max_connections=max_connections,
            handle_signals=True,
        )
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


class MCPApp(Application):
    """An MCP server, created by `mcp_server`: a Starlette app that also serves stdin and stdout."""

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
        self._running: _RunningServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        if authorization_servers and resource_url is None:
            raise UserValueError(
                "authorization_servers= requires resource_url=, the URL that the tokens are for."
            )
        well_known = f"/.well-known/oauth-protected-resource{self.path.rstrip('/')}"
        routes: dict[tuple[str, str], Handler] = {("GET", "/healthz"): _health}
        metadata_url = None
        if resource_url is not None and authorization_servers:
            metadata_url = resource_url.removesuffix(self.path).rstrip("/") + well_known
            metadata = {
                "resource": resource_url,
                "authorization_servers": list(authorization_servers),
                "scopes_supported": list(scopes_of(auth, required_scopes)),
                "bearer_methods_supported": ["header"],
            }
            routes["GET", well_known] = _create_handler(metadata)
        super().__init__(
            routes,
            endpoints={self.path: self._handle},
            on_start=self._ensure_started,
            host=host,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            required_scopes=required_scopes,
            limits=limits,
            protect=lambda path: path not in {"/healthz", well_known},
            is_stream=_is_stream,
            metadata_url=metadata_url,
            resource=resource_url,
        )

    async def tools_changed(self) -> None:
        """Notify clients that the list of tools has changed."""
        await self._server.list_changed("tools")

    async def resources_changed(self) -> None:
        """Notify clients that the list of resources has changed."""
        await self._server.list_changed("resources")

    async def prompts_changed(self) -> None:
        """Notify clients that the list of prompts has changed."""
        await self._server.list_changed("prompts")

    async def resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribe to a resource that it has changed.

        Args:
            uri: The URI; for a template, that of the changed resource.
        """
        await self._server.resource_updated(uri)

    def tools_changed_soon(self) -> None:
        """Notify clients of changed tools in the background; can be called from any thread."""
        self.list_changed_soon("tools")

    def list_changed_soon(self, kind: ListKind) -> None:
        """Notify clients of a changed list in the background; can be called from any thread.

        Args:
            kind: The list: `tools`, `resources` or `prompts`.
        """
        loop = self._loop
        if loop is not None and loop.is_running():
            asyncio.run_coroutine_threadsafe(self._server.list_changed(kind), loop)

    async def run_stdio(self) -> None:
        """Serve on standard input and output until the client closes them."""
        self._loop = asyncio.get_running_loop()
        from agents_tools.mcp.server.stdio import stdio_streams

        try:
            async with stdio_streams() as (read, write):
                self._server.has_read = write.has_read
                await self._server.server.run(read, write, self._server.options())
        finally:
            await self._server.close()

    async def aclose(self) -> None:
        """Close all sessions. The next request starts the server again."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()
        await self._server.close()

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

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        manager = await self._ensure_started()
        handle = getattr(manager, "asgi_app", None) or manager.handle_request
        await handle(self._server.with_principal(_without_last_event(scope)), receive, send)


def _is_stream(scope: Scope) -> bool:
    """Return whether a request opens a stream of notifications, in which its client waits.

    Before protocol 2026-07-28 it is a GET. Later it is a method, which the SDK compares with the
    header.
    """
    if scope["method"] == "GET":
        return True
    versions = header_values(scope, b"mcp-protocol-version")
    is_modern = len(versions) == 1 and versions[0] >= MODERN
    return is_modern and header_values(scope, b"mcp-method") == ["subscriptions/listen"]


async def _health(_: HttpRequest) -> Response:
    return JsonResponse({"status": "ok"})


def _create_handler(value: Mapping[str, Any]) -> Handler:
    async def answer(_: HttpRequest) -> Response:
        return JsonResponse(value)

    return answer


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
