"""Routes, JSON and streams over plain ASGI, for the apps of this package."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import parse_qsl

from agents_tools.errors import UserError
from agents_tools.server.host_rules import is_other_machine
from agents_tools.server.http_security import (
    ListenerLimits,
    Principal,
    SecuredApp,
    check_binding,
)
from agents_tools.server.response_stream import ResponseStream
from agents_tools.server.safe_json import written
from agents_tools.text.json_limits import JsonFault, JsonLimits, check_bounds, check_keys
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from agents_tools.server.http_security import TokenVerifier

__all__ = [
    "AsgiApp",
    "Handler",
    "HttpError",
    "HttpRequest",
    "respond_empty",
    "respond_json",
    "respond_stream",
    "respond_text",
]

logger = logging.getLogger("agents_tools.ui")

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = "Mapping[str, str] | Sequence[tuple[str, str]]"

_PRINCIPAL = "agents_tools.principal"
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
_LONGEST_SHOWN = 100
_BLANKS = b" \t\r\n"


class HttpError(Exception):
    """Raised to answer a request with `{"error": {"status", "message"}}`.

    Args:
        status: The HTTP status.
        message: The problem, its location and the remedy.
        headers: The headers of the response.
        **facts: Other fields of the error, for programs.
    """

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.facts = facts


class HttpRequest:
    """A request for a handler.

    Attributes:
        method: Its method.
        path: Its path below the mount point of the app; begins with a slash.
        params: The named parts of the path.
        query: The query parameters. If a name is repeated, the last value is used.
        headers: The headers with lower-case names, without those that hold credentials.
        principal: The authenticated caller, if there is one.
        client: The address of the client, if the server reports it.
        scope: The ASGI scope.
        receive: Returns the next ASGI message of the client.
    """

    __slots__ = (
        "_body",
        "client",
        "headers",
        "method",
        "params",
        "path",
        "principal",
        "query",
        "receive",
        "scope",
    )

    def __init__(
        self, scope: Scope, receive: Receive, *, params: Mapping[str, str] | None = None
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = str(scope["method"]).upper()
        self.path = inner_path(scope)
        self.params: Mapping[str, str] = params or {}
        text = bytes(scope.get("query_string") or b"").decode("latin-1")
        self.query: Mapping[str, str] = dict(parse_qsl(text, keep_blank_values=True))
        self.headers: Mapping[str, str] = _headers(scope)
        state: Any = scope.get("state") or {}
        found: object = state.get(_PRINCIPAL)
        self.principal = found if isinstance(found, Principal) else None
        client: Any = scope.get("client")
        self.client: str | None = str(client[0]) if client else None
        self._body: bytes | None = None

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
            HttpError: The client disconnected before the body was complete.
        """
        if self._body is None:
            parts: list[bytes] = []
            more = True
            while more:
                message = await self.receive()
                if message["type"] != "http.request":
                    raise HttpError(400, "The connection was closed before the body was complete.")
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
            self._body = b"".join(parts)
        return self._body

    async def json(self) -> Any:
        """Return the value of a JSON body; `None` without a body.

        Raises:
            HttpError: The body is not JSON or exceeds the limits.
        """
        return read_json(await self.body())

    async def json_object(self) -> dict[str, Any]:
        """Return the body as a JSON object; an empty one without a body.

        Raises:
            HttpError: The body is not a JSON object.
        """
        value = await self.json()
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise HttpError(
                422, f"The body is wrong: expected a JSON object, got {json_kind(value)}."
            )
        return cast("dict[str, Any]", value)


Handler: TypeAlias = Callable[[HttpRequest, Send], Awaitable[None]]
"""A function that answers a request through `send`."""


class AsgiApp:
    """An ASGI app with routes, behind the checks of `SecuredApp`.

    Args:
        routes: Handlers by method and path, such as `("GET", "/runs/{id}")`. `{name:path}` at the
            end takes slashes as well.
        on_start: Called when the server starts, if it supports lifespan events; sync or async.
        on_stop: Called when the server stops, and by `aclose`; sync or async.
        host: The address that the server listens on. Addresses other than loopback need `auth`.
        auth: A bearer token or a token verifier; `None` to require no token.
        required_scopes: Scopes that a token must have.
        allowed_hosts: Accepted values of the Host header, besides loopback.
        allowed_origins: Origins of other web pages that can call the app.
        max_body: The largest body of a request, in bytes.
        max_concurrency: The largest number of requests at the same time, including streams.
        body_timeout: How long to wait for the body of a request, in seconds.
        protect: Returns whether a path needs the token. By default all paths do.
        name: The name of the app in messages.

    Raises:
        UserError: An argument is invalid.
    """

    def __init__(
        self,
        routes: Mapping[tuple[str, str], Handler],
        *,
        on_start: Callable[[], Any] | None = None,
        on_stop: Callable[[], Any] | None = None,
        host: str = "127.0.0.1",
        auth: str | TokenVerifier | None = None,
        required_scopes: Sequence[str] = (),
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        max_body: int = 4 << 20,
        max_concurrency: int = 2_000,
        body_timeout: float = 30.0,
        protect: Callable[[str], bool] | None = None,
        name: str = "app",
    ) -> None:
        check_binding(host, auth=auth, setting="auth")
        self._routes = [_Route(method, path, to) for (method, path), to in routes.items()]
        self._on_start = on_start
        self._on_stop = on_stop
        self._name = name
        self._only_local = auth is None and not allowed_hosts
        self._guarded = SecuredApp(
            self._answer,
            host=host,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            required_scopes=required_scopes,
            limits=ListenerLimits(
                max_body=max_body, max_concurrency=max_concurrency, body_timeout=body_timeout
            ),
            protect=protect,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a lifespan event."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def aclose(self) -> None:
        """Stop the app. A server with lifespan events does this when it stops."""
        await _call(self._on_stop)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start and stop with an outer app: `FastAPI(lifespan=app.lifespan)`.

        A mounted app needs this, because the server sends lifespan events to the outer app only.

        Args:
            app: The outer app.
        """
        del app
        await _call(self._on_start)
        try:
            yield
        finally:
            await self.aclose()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await _call(self._on_start)
                except Exception as error:  # noqa: BLE001 - reported by the server
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_started = False

        async def send_tracked(message: MutableMapping[str, Any]) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            self._check_client(scope)
            handler, params = self._find(str(scope["method"]).upper(), inner_path(scope))
            await handler(HttpRequest(scope, receive, params=params), send_tracked)
        except (HttpError, UserError) as error:
            if is_started:  # an unfinished response shows the client that it failed
                raise
            known = error if isinstance(error, HttpError) else HttpError(422, str(error))
            error_body = {"status": known.status, "message": known.message, **known.facts}
            await respond_json(send, {"error": error_body}, known.status, known.headers)

    def _check_client(self, scope: Scope) -> None:
        """Refuse requests from other machines if neither a token nor a host is configured."""
        client: Any = scope.get("client")
        if self._only_local and client and is_other_machine(str(client[0])):
            raise HttpError(
                403,
                f"The {self._name} refuses requests from other machines, such as {client[0]}, "
                "because it requires no token. Set auth=, or add the name of the server to "
                "allowed_hosts=.",
            )

    def _find(self, method: str, path: str) -> tuple[Handler, dict[str, str]]:
        methods: set[str] = set()
        for route in self._routes:
            params = route.params_of(path)
            if params is None:
                continue
            if route.method == method:
                return route.handler, params
            methods.add(route.method)
        if methods:
            allowed = ", ".join(sorted(methods))
            raise HttpError(
                405,
                f"{shown(path)} does not support {shown(method)}: expected {allowed}.",
                {"Allow": allowed},
            )
        known = ", ".join(f"{route.method} {route.path}" for route in self._routes)
        raise HttpError(404, f"The path {shown(path)} does not exist. Routes: {known}.")


class _Route:
    """One method at one path.

    Args:
        method: The method.
        path: The path, with names in braces.
        handler: The function that answers.
    """

    def __init__(self, method: str, path: str, handler: Handler) -> None:
        self.method = method
        self.path = path
        self.handler = handler
        parts = re.split(r"\{(\w+)(:path)?\}", path)
        pattern = re.escape(parts[0])
        for name, rest, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            pattern += f"(?P<{name}>{'.+' if rest else '[^/]+'})" + re.escape(text)
        self._pattern = re.compile(pattern, re.DOTALL)

    def params_of(self, path: str) -> dict[str, str] | None:
        """Return the named parts of a path; `None` if it does not match."""
        found = self._pattern.fullmatch(path)
        return None if found is None else found.groupdict()


# --- responses


async def respond_json(send: Send, value: Any, status: int = 200, headers: Headers = ()) -> None:
    """Answer with JSON.

    Args:
        send: The ASGI function for the response.
        value: Any value that `written` can serialize.
        status: The HTTP status.
        headers: More headers.
    """
    await _respond(send, written(value), status, "application/json", headers)


async def respond_text(
    send: Send,
    text: str | bytes,
    status: int = 200,
    *,
    content_type: str = "text/plain; charset=utf-8",
    headers: Headers = (),
) -> None:
    """Answer with a text, or with bytes of another content type."""
    data = text.encode() if isinstance(text, str) else text
    await _respond(send, data, status, content_type, headers)


async def respond_empty(send: Send, status: int = 204, headers: Headers = ()) -> None:
    """Answer with a status and no body."""
    start = {"type": "http.response.start", "status": status, "headers": _encoded(headers)}
    await send(start)
    await send({"type": "http.response.body", "body": b""})


async def _respond(
    send: Send, body: bytes, status: int, content_type: str, headers: Headers
) -> None:
    own = [
        (b"content-type", content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    given = _encoded(headers)
    names = {name for name, _ in given}
    kept = [(name, value) for name, value in own if name not in names]
    await send({"type": "http.response.start", "status": status, "headers": [*kept, *given]})
    await send({"type": "http.response.body", "body": body})


async def respond_stream(
    receive: Receive,
    send: Send,
    frames: AsyncIterator[bytes],
    *,
    content_type: str = "text/event-stream",
    headers: Headers = (),
    heartbeat: float | None = 15.0,
    heartbeat_frame: bytes = b":\n\n",
    on_disconnect: Callable[[], Any] | None = None,
) -> None:
    """Answer with a stream of frames until they end or the client disconnects.

    Frames that are available at the same time are sent together. If the client does not read, at
    most about 64 KiB of frames are buffered. The iterator is always closed.

    Args:
        receive: Returns the next ASGI message of the client, such as its disconnect.
        send: The ASGI function for the response.
        frames: The frames.
        content_type: The content type of the frames.
        headers: More headers.
        heartbeat: The seconds without data after which an empty frame is sent. It keeps the
            connection open and detects clients that have disconnected.
        heartbeat_frame: The empty frame.
        on_disconnect: Called when the client disconnects before the end; sync or async.
    """
    own = {
        "content-type": content_type,
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "x-content-type-options": "nosniff",
    }
    own |= {name.lower(): value for name, value in _pairs(headers)}
    stream = ResponseStream(send, frames, heartbeat, heartbeat_frame)
    try:
        start = {"type": "http.response.start", "status": 200, "headers": _encoded(own)}
        is_disconnected = await stream.run(receive, start)
        if is_disconnected:
            await _call(on_disconnect)
    finally:
        await stream.aclose()


# --- requests


def read_json(body: bytes | str) -> Any:
    """Return the value of a JSON text within the limits of the library; `None` if it is empty.

    Raises:
        HttpError: The text is not JSON or exceeds the limits. The message names the position.
    """
    if not body.strip():
        return None
    try:
        text = body if isinstance(body, str) else body.decode()
        check_bounds(text, JsonLimits(size=max(len(text), 1)))
        value = json.loads(text, parse_constant=_refuse_constant)
        check_keys(text)
    except UnicodeDecodeError as error:
        raise HttpError(400, f"The body is not UTF-8: byte {error.start} is invalid.") from None
    except JsonFault as fault:
        raise HttpError(400, f"The body exceeds the limits: {fault}.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise HttpError(400, f"The body is not JSON: {error.msg} ({where}).") from None
    except (ValueError, RecursionError) as error:
        raise HttpError(400, f"The body is not JSON: {error}.") from None
    return value


def json_kind(value: object) -> str:
    """Return the name of the type of a JSON value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


def shown(value: object, length: int = _LONGEST_SHOWN) -> str:
    """Return a value of a client as it appears in a message: shortened and escaped."""
    return release_text(repr(release_text(str(value), to="program", limit=length)))


def inner_path(scope: Scope) -> str:
    """Return the path below the mount point of the app, without a slash at its end."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        path = path.removeprefix(root)
    return path.rstrip("/") or "/"


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _headers(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = {}
    for key, value in scope.get("headers") or ():
        name = key.decode("latin-1").lower()
        if name not in _CREDENTIALS:
            headers[name] = value.decode("latin-1")
    return headers


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in _pairs(headers)
    ]


async def _call(function: Callable[[], Any] | None) -> None:
    """Call a sync or async function."""
    if function is not None:
        result = function()
        if hasattr(result, "__await__"):
            await result
