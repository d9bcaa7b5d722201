"""The bit of HTTP that the apps of this package need: routes, JSON and streams, over plain ASGI."""

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

from agents_tools._json import JsonFault, JsonLimits, check_bounds, check_keys
from agents_tools._listener import (
    Guarded,
    ListenerLimits,
    Principal,
    check_binding,
    is_other_machine,
)
from agents_tools._text import safe_text, shorten
from agents_tools.errors import UserError
from agents_tools.ui._outlet import Outlet
from agents_tools.ui._written import written

if TYPE_CHECKING:
    from agents_tools._listener import TokenVerifier

__all__ = [
    "App",
    "Handler",
    "HttpError",
    "Request",
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
    """A request that gets an error for an answer: `{"error": {"status", "message"}}`.

    Args:
        status: The status.
        message: What is wrong, where, and what to do about it.
        headers: Headers of the answer.
        **facts: What else programs are told of it, beside the status and the message.
    """

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.facts = facts


class Request:
    """A request, as a handler sees it.

    Attributes:
        method: Its method.
        path: Its path below what the app is mounted at; begins with a slash.
        params: The parts of the path that the route names.
        query: What is asked for after the `?`; of names given twice, the last one counts.
        headers: The headers in lower case, without those that hold credentials.
        principal: Who calls, where the server knows it.
        client: The address of the other machine, where the server knows it.
        scope: The ASGI scope.
        receive: Gives what comes from the client.
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
        """Give the whole body.

        Raises:
            HttpError: The client went away before all of it was there.
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
        """Give the body as what its JSON says; `None` where there is no body.

        Raises:
            HttpError: It is no JSON, or more than is taken.
        """
        return read_json(await self.body())

    async def json_object(self) -> dict[str, Any]:
        """Give the body as a JSON object; an empty one where there is no body.

        Raises:
            HttpError: It is something else.
        """
        given = await self.json()
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise HttpError(422, f"The body is a JSON object, not {json_kind(given)}.")
        return cast("dict[str, Any]", given)


Handler: TypeAlias = Callable[[Request, Send], Awaitable[None]]
"""Answers a request: gets it and what takes the answer."""


class App:
    """An ASGI app of a few routes, behind the checks of `Guarded`.

    Args:
        routes: Handlers by method and path, such as `("GET", "/runs/{id}")`. `{name:path}` at the
            end takes slashes as well.
        on_start: Called when the server around starts, where it tells; sync or async.
        on_stop: Called when it stops, and by `aclose`; sync or async.
        host: The address that will be listened on; other than loopback needs `auth`.
        auth: A bearer token, or what verifies tokens; `None` for none.
        required_scopes: Scopes that a token has to have.
        allowed_hosts: Values of the Host header beside loopback.
        allowed_origins: Values of the Origin header of web pages that may call.
        max_body: The most bytes of a request.
        max_concurrency: The most requests at once; each client that watches holds one.
        body_timeout: Seconds to wait for a request's body.
        protect: Says which paths need the token; all by default.
        name: What the app is called in messages.

    Raises:
        UserError: What is given cannot work.
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
        self._guarded = Guarded(
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
        """Answer a request, or take part in the start and the end of the server around it."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def aclose(self) -> None:
        """End what goes on; a server that tells the app of its end does so by itself."""
        await _called(self._on_stop)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start and end with an app around: `FastAPI(lifespan=app.lifespan)`.

        An app that is mounted into another one is told nothing of the server's end.

        Args:
            app: The app around.
        """
        del app
        await _called(self._on_start)
        try:
            yield
        finally:
            await self.aclose()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await _called(self._on_start)
                except Exception as error:  # noqa: BLE001 - told to the server, which reports it
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            self._check_client(scope)
            handler, params = self._find(str(scope["method"]).upper(), inner_path(scope))
            await handler(Request(scope, receive, params=params), watched)
        except (HttpError, UserError) as error:
            if begun:  # an answer that stays unfinished tells the client that something is wrong
                raise
            known = error if isinstance(error, HttpError) else HttpError(422, str(error))
            told = {"status": known.status, "message": known.message, **known.facts}
            await respond_json(send, {"error": told}, known.status, known.headers)

    def _check_client(self, scope: Scope) -> None:
        """Refuse other machines where nothing says that they may come."""
        client: Any = scope.get("client")
        if self._only_local and client and is_other_machine(str(client[0])):
            raise HttpError(
                403,
                f"The {self._name} takes no requests of other machines, such as {client[0]}, since "
                "everybody could call the tools. Give it auth=, or say with allowed_hosts= under "
                "which name it may be reached.",
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
                405, f"{shown(path)} takes {allowed}, not {shown(method)}.", {"Allow": allowed}
            )
        known = ", ".join(f"{route.method} {route.path}" for route in self._routes)
        raise HttpError(404, f"There is nothing at {shown(path)}. There is: {known}.")


class _Route:
    """One method at one path.

    Args:
        method: The method.
        path: The path, with names in braces.
        handler: Who answers.
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
        """Give the named parts of a path; `None` where it is another one."""
        found = self._pattern.fullmatch(path)
        return None if found is None else found.groupdict()


# --- answers


async def respond_json(send: Send, value: Any, status: int = 200, headers: Headers = ()) -> None:
    """Answer with JSON.

    Args:
        send: Takes the answer.
        value: What to say; anything that `written` makes JSON of.
        status: The status.
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
    """Answer with a text, or with bytes of some other kind."""
    data = text.encode() if isinstance(text, str) else text
    await _respond(send, data, status, content_type, headers)


async def respond_empty(send: Send, status: int = 204, headers: Headers = ()) -> None:
    """Answer with a status alone."""
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
    """Answer with frames as they come, until they end or the client is gone.

    Frames that are there at once are sent as one piece. For a client that does not read, some
    64 KiB of them are made and no more. The iterator is closed on every way out.

    Args:
        receive: Gives what comes from the client; it tells that the client is gone.
        send: Takes the answer.
        frames: The frames.
        content_type: What they are.
        headers: More headers.
        heartbeat: After how many silent seconds a frame is sent that says nothing; it keeps
            connections open, and finds clients that are gone where the server does not tell.
        heartbeat_frame: What is sent then.
        on_disconnect: Called when the client goes before the end; sync or async.
    """
    own = {
        "content-type": content_type,
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "x-content-type-options": "nosniff",
    }
    own |= {name.lower(): value for name, value in _pairs(headers)}
    outlet = Outlet(send, frames, heartbeat, heartbeat_frame)
    try:
        start = {"type": "http.response.start", "status": 200, "headers": _encoded(own)}
        gone = await outlet.run(receive, start)
        if gone:
            await _called(on_disconnect)
    finally:
        await outlet.aclose()


# --- reading what comes


def read_json(body: bytes | str) -> Any:
    """Give what a JSON text says, within the bounds of the library; `None` for an empty one.

    Raises:
        HttpError: It is no JSON, or more than is taken; the message names the place.
    """
    if not body.strip():
        return None
    try:
        text = body if isinstance(body, str) else body.decode()
        check_bounds(text, JsonLimits(size=max(len(text), 1)))
        value = json.loads(text, parse_constant=_no_number)
        check_keys(text)
    except UnicodeDecodeError as error:
        raise HttpError(400, f"The body is not UTF-8: byte {error.start} is none of it.") from None
    except JsonFault as fault:
        raise HttpError(400, f"The body is not taken: {fault}.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise HttpError(400, f"The body is no JSON: {error.msg} ({where}).") from None
    except (ValueError, RecursionError) as error:
        raise HttpError(400, f"The body is no JSON: {error}.") from None
    return value


def json_kind(value: object) -> str:
    """Name the kind of a JSON value, with its article."""
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
    """Write a value of a client's out for a message: shortened, and with nothing unseen in it."""
    return safe_text(repr(shorten(str(value), length)))


def inner_path(scope: Scope) -> str:
    """Give the path within what the app is mounted at, without a slash at its end."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        path = path.removeprefix(root)
    return path.rstrip("/") or "/"


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


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


async def _called(function: Callable[[], Any] | None) -> None:
    """Call a function that may be sync or async."""
    if function is not None:
        given = function()
        if hasattr(given, "__await__"):
            await given
