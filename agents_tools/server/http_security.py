"""Protect the HTTP listeners of the library: authentication, Host and Origin checks, limits."""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypedDict

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.server.file_limits import max_process_connections
from agents_tools.server.host_rules import (
    DEFAULT_PORTS,
    check_list,
    describe_refused_origin,
    host_rule,
    is_loopback,
    is_other_machine,
    origin_rule,
    parse_authority,
    parse_origin,
    show_header,
)
from agents_tools.server.log_throttle import LogThrottle
from agents_tools.server.request_slots import ALL_CALLERS, RequestSlots, SlotsFullError
from agents_tools.text.escape import type_name
from agents_tools.text.forms import MASK
from agents_tools.text.output import release_text
from agents_tools.text.secrets import guard_logs

__all__ = [
    "PRINCIPAL_KEY",
    "ListenerLimits",
    "Principal",
    "RequestRefused",
    "SecuredApp",
    "SecurityOptions",
    "TokenVerifier",
    "acting_for",
    "check_binding",
    "check_body",
    "current_principal",
    "header_values",
    "inner_path",
    "owner_of",
    "scopes_of",
    "too_large",
]

logger = logging.getLogger("agents_tools")
guard_logs()

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

PRINCIPAL_KEY = "agents_tools.principal"
"""The key of the authenticated caller in the state of an ASGI scope."""
_SHORTEST_TOKEN = 16
_LONGEST_LENGTH = 18
"""The largest number of digits of a Content-Length. With more, it exceeds every limit."""
_TOO_SLOW = 408
_METHODS = b"GET, POST, DELETE"
_HEADERS = (
    b"authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
    b"mcp-session-id, prefer"
)
_HEADER_NAME = re.compile("[a-z0-9_-]{1,100}")
_EXPOSED_HEADERS = b"location, mcp-session-id, retry-after, www-authenticate"


class TokenVerifier(Protocol):
    """Verifies bearer tokens. Compatible with the protocol of the MCP SDK; sync or async."""

    def verify_token(self, token: str) -> Any:
        """Return the claims of a token, or `None` if the token is invalid.

        The attributes `client_id`, `scopes`, `subject`, `expires_at` (in seconds since 1970) and
        `resource` (the server that the token is for) are read; each is optional. An attribute
        `required_scopes` of the verifier adds scopes that all tokens must have.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """The limits of a listener.

    Attributes:
        max_body: The largest body of a request, in bytes.
        max_concurrency: The largest number of requests of one caller at the same time, without open
            streams. All callers together can have ten times as many.
        max_streams: The same for open streams. They also leave a part of the connections that the
            process can have for other requests: a caller can use half of them, all callers three
            quarters.
        body_timeout: How long to wait for the whole body of a request, in seconds.
    """

    max_body: int = 4 << 20
    max_concurrency: int = 100
    max_streams: int = 1_000
    body_timeout: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_body", "max_concurrency", "max_streams", "body_timeout"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                raise UserValueError(
                    f"{name}= is invalid: expected a number above 0, got {value!r:.60}."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The authenticated caller.

    Attributes:
        client_id: The client.
        scopes: The permissions of the client.
        subject: The user, if the token names one.
        token: The token itself. It is for this server only: do not pass it to tools or to other
            servers.
        claims: The return value of the verifier.
    """

    client_id: str
    scopes: tuple[str, ...] = ()
    subject: str | None = None
    token: str = field(default="", repr=False)
    claims: Any = field(default=None, repr=False)


_principal: ContextVar[Principal | None] = ContextVar("agents_tools_principal", default=None)


def current_principal() -> Principal | None:
    """Return the caller of the current request; `None` if the server requires no token."""
    return _principal.get()


@contextmanager
def acting_for(principal: Principal | None) -> Generator[None]:
    """Set the caller of the current request, if it is known."""
    if principal is None:
        yield
        return
    before = _principal.set(principal)
    try:
        yield
    finally:
        _principal.reset(before)


def owner_of(principal: Principal | None) -> str | None:
    """Return the key of a caller; `None` where callers are not told apart."""
    if principal is None:
        return None
    return json.dumps([principal.client_id, principal.subject])


def scopes_of(auth: Any, required_scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes that a token must have: those of the app, and those of its verifier."""
    own = () if isinstance(auth, str) else getattr(auth, "required_scopes", None) or ()
    return tuple(dict.fromkeys([*required_scopes, *own]))


def check_binding(host: str, *, auth: Any, setting: str) -> None:
    """Refuse to listen without a token on an address that other machines can reach.

    Args:
        host: The address to listen on.
        auth: The token or the token verifier.
        setting: The name of the setting for `auth`, for the error message.

    Raises:
        UserError: The address is not loopback and `auth` is `None`.
    """
    if auth is None and not is_loopback(host):
        raise UserValueError(
            f"Listening on {host!r} lets every machine that reaches it call the tools. Give "
            f"{setting}= a token of at least {_SHORTEST_TOKEN} characters or a verifier, or "
            "listen on 127.0.0.1."
        )


def inner_path(scope: Mapping[str, Any]) -> str:
    """Return the path below the mount point of the app."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        path = path.removeprefix(root)
    return path or "/"


class SecurityOptions(TypedDict, total=False):
    """The options of `SecuredApp`, except those that say where it listens and for whom."""

    allowed_hosts: Sequence[str]
    allowed_origins: Sequence[str]
    required_scopes: Sequence[str]
    limits: ListenerLimits | None
    protect: Callable[[str], bool] | None
    is_stream: Callable[[Scope], bool] | None
    metadata_url: str | None
    resource: str | None


class RequestRefused(Exception):  # noqa: N818 - a response rather than a fault
    """Raised to answer a request with an error."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class SecuredApp:
    """An ASGI app behind checks of Host, Origin, content type, body size, concurrency and token.

    Host and Origin are checked on every address, because a web page can make a browser send
    requests to any address under the page's own host name (DNS rebinding). Loopback names are
    always accepted. Pages that were loaded from this machine, such as those of a development
    server, can call the app by these names and read its responses.

    Args:
        app: The app.
        host: The address that the server listens on, for the log.
        allowed_hosts: Accepted values of the Host header, besides loopback: `example.com`,
            `example.com:8000`, `example.com:*`, `*.example.com`. An entry without a port accepts
            every port.
        allowed_origins: Origins of web pages that can call the app and read its responses, such
            as `https://example.com`.
        auth: A bearer token, or a token verifier; `None` to require no token.
        required_scopes: Scopes that a token must have. They need a verifier.
        limits: The limits of the listener.
        protect: Returns whether a path needs the token, and a slot of `max_concurrency`. By default
            all paths do.
        is_stream: Returns whether a request, given as its ASGI scope, opens a stream that its
            client watches. By default none does.
        metadata_url: The URL of the protected resource metadata (RFC 9728), sent with a 401.
        resource: The resource that tokens must be issued for. Tokens for another resource are
            refused. If the verifier does not return `resource`, it must check this itself.
        local_only: Whether to refuse requests from other machines, if the server reports the
            address of the client.

    Raises:
        UserError: The token is too short or has invalid characters, `auth` is neither a token nor
            a verifier, scopes are required without a verifier, or a host or an origin is
            malformed.
    """

    def __init__(
        self,
        app: App,
        *,
        host: str = "127.0.0.1",
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        auth: str | TokenVerifier | None = None,
        required_scopes: Sequence[str] = (),
        limits: ListenerLimits | None = None,
        protect: Callable[[str], bool] | None = None,
        is_stream: Callable[[Scope], bool] | None = None,
        metadata_url: str | None = None,
        resource: str | None = None,
        local_only: bool = False,
    ) -> None:
        self._local_only = local_only
        self._app = app
        self._host = host
        self._hosts = tuple(map(host_rule, check_list("allowed_hosts", allowed_hosts)))
        self._origins = frozenset(map(origin_rule, check_list("allowed_origins", allowed_origins)))
        self._auth = _checked_auth(auth)
        self._scopes = scopes_of(auth, tuple(check_list("required_scopes", required_scopes)))
        if self._scopes and (auth is None or isinstance(auth, str)):
            raise UserValueError(
                "required_scopes= needs a verifier as auth=: a plain token has no scopes. Pass an "
                "object with verify_token(token)."
            )
        self._limits = limits or ListenerLimits()
        self._protect = protect
        self._metadata_url = metadata_url
        self._resource = resource
        self._is_stream = is_stream
        most, described = self._limits.max_concurrency, "requests are being handled"
        total = most * ALL_CALLERS
        self._requests = RequestSlots(most, total, described, "max_concurrency")
        self._verifying = RequestSlots(total, total, described, "max_concurrency")
        self._streams = _stream_slots(self._limits.max_streams)
        self._throttle = LogThrottle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it to the app, or answer it with an error."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, _Response(send))

    async def _answer(self, scope: Scope, receive: Receive, response: _Response) -> None:
        try:
            response.origin = self._check_host_and_origin(scope)
            if scope["method"] == "OPTIONS" and response.origin is not None:
                await response.allow(header_values(scope, b"access-control-request-headers"))
            else:
                await self._enter(scope, receive, response)
        except RequestRefused as refused:
            await self._refuse(response, refused)
        except Exception as error:  # noqa: BLE001 - logged; the client gets its id
            if not response.settled:  # else the app raised it because of a refusal
                await self._fail(scope, response, error)

    async def _enter(self, scope: Scope, receive: Receive, response: _Response) -> None:
        """Pass the request to the app while it has a slot.

        Paths that need no token, such as a health check, are answered also by a busy server.
        """
        check_body(scope, self._limits)

        async def refuse(refused: RequestRefused) -> None:
            if refused.status == _TOO_SLOW and str(scope.get("http_version", "1.1")) < "2":
                # Without it, the client could continue to send the rest of the body for ever.
                refused.headers = {"Connection": "close"}
            await self._refuse(response, refused)

        body = _Body(receive, self._limits, refuse)
        if not self._is_protected(scope):
            await self._app(scope, body.receive, response.send)
            return
        is_stream = self._is_stream is not None and self._is_stream(scope)
        slots = self._streams if is_stream else self._requests
        try:
            principal = None
            if self._auth is not None:
                with self._verifying.taken(None):
                    principal = await self._authenticated(scope)
                state: dict[str, Any] = {**(scope.get("state") or {}), PRINCIPAL_KEY: principal}
                scope = {**scope, "state": state}
            with slots.taken(owner_of(principal)), acting_for(principal):
                await self._app(scope, body.receive, response.send)
        except SlotsFullError as error:
            raise RequestRefused(503, str(error), {"Retry-After": "1"}) from None

    async def _refuse(self, response: _Response, refused: RequestRefused) -> None:
        if response.settled:
            return
        note = self._throttle.note(refused.status)
        if note is not None:
            logger.warning(
                "A request to the listener on %s was refused (%d): %s%s",
                self._host,
                refused.status,
                refused,
                note,
            )
        error = {"status": refused.status, "message": str(refused)}
        await response.fail(refused.status, error, refused.headers)

    async def _fail(self, scope: Scope, response: _Response, error: Exception) -> None:
        number = os.urandom(4).hex()
        text = self._without_tokens("".join(traceback.format_exception(error)), scope)
        logger.error("A request failed (error %s).\n%s", number, text)
        message = f"The request failed with an internal error. See {number} in the server log."
        await response.fail(500, {"status": 500, "message": message, "id": number}, {})

    def _without_tokens(self, text: str, scope: Scope) -> str:
        """Mask the token of the request and the token of the server in a text."""
        known = [value.rpartition(" ")[2] for value in header_values(scope, b"authorization")]
        if isinstance(self._auth, str):
            known.append(self._auth)
        for token in known:
            if len(token) >= _SHORTEST_TOKEN:
                text = text.replace(token, MASK)
        return release_text(text, to="model", patterns=True)

    # --- Host and Origin

    def _check_host_and_origin(self, scope: Scope) -> str | None:
        """Check Host and Origin, and return the origin if its pages can read the response."""
        client: Any = scope.get("client")
        if self._local_only and client and is_other_machine(str(client[0])):
            raise RequestRefused(
                403,
                f"This server refuses requests from other machines, such as "
                f"{show_header(client[0])}, because it requires no token. Set auth=, or add the "
                "name of the server to allowed_hosts=.",
            )
        host = self._checked_host(header_values(scope, b"host"))
        origins = header_values(scope, b"origin")
        if not origins:
            return None
        origin = parse_origin(origins[0])
        if len(origins) == 1 and origin is not None:
            is_local = origin[0] in DEFAULT_PORTS and is_loopback(origin[1]) and is_loopback(host)
            if is_local or origin in self._origins:
                return origins[0]
        raise RequestRefused(403, describe_refused_origin(origins))

    def _checked_host(self, hosts: list[str]) -> str:
        """Return the name in the Host header, if it is a name of this server."""
        if len(hosts) != 1:
            counted = " and ".join(map(show_header, hosts[:3])) if hosts else "none"
            raise RequestRefused(421, f"The Host header is wrong: expected one, got {counted}.")
        authority = parse_authority(hosts[0])
        if authority is not None and (
            is_loopback(authority[0]) or any(matches(*authority) for matches in self._hosts)
        ):
            return authority[0]
        raise RequestRefused(
            421,
            f"The Host header {show_header(hosts[0])} is not allowed. If it is a name of this "
            "server, add it to allowed_hosts=.",
        )

    # --- authentication

    def _is_protected(self, scope: Scope) -> bool:
        return self._protect is None or self._protect(inner_path(scope))

    async def _authenticated(self, scope: Scope) -> Principal:
        token = _bearer(header_values(scope, b"authorization"))
        if token is None:
            raise RequestRefused(
                401,
                "A bearer token is missing. Send the header 'Authorization: Bearer ...' once.",
                self._challenge(*self._needed()),
            )
        principal = await self._verified(token)
        if principal is None:
            raise RequestRefused(
                401,
                "The bearer token is invalid or has expired.",
                self._challenge('error="invalid_token"', *self._needed()),
            )
        missing = [scope for scope in self._scopes if scope not in principal.scopes]
        if missing:
            raise RequestRefused(
                403,
                f"The token lacks required scopes: {', '.join(missing)}.",
                self._challenge('error="insufficient_scope"', *self._needed()),
            )
        return principal

    async def _verified(self, token: str) -> Principal | None:
        auth = self._auth
        if auth is None or isinstance(auth, str):
            same = auth is not None and hmac.compare_digest(auth, token)
            return Principal(client_id="token", token=token) if same else None
        claims: Any = auth.verify_token(token)
        if hasattr(claims, "__await__"):
            claims = await claims
        if claims is None or claims is False or self._is_stale(claims):
            return None
        scopes = getattr(claims, "scopes", None) or ()
        return Principal(
            client_id=str(getattr(claims, "client_id", None) or "token"),
            scopes=tuple(scopes.split() if isinstance(scopes, str) else scopes),
            subject=getattr(claims, "subject", None),
            token=token,
            claims=claims,
        )

    def _is_stale(self, claims: Any) -> bool:
        """Return whether a token has expired or was issued for another resource."""
        expires = getattr(claims, "expires_at", None)
        if isinstance(expires, datetime):
            expires = expires.timestamp()
        if expires is not None and not float(expires) > time.time():
            return True
        resource = getattr(claims, "resource", None)
        if self._resource is None or resource is None:
            return False
        return str(resource).rstrip("/") != self._resource.rstrip("/")

    def _needed(self) -> list[str]:
        """Return the parameter of a challenge that names the scopes, if any are required."""
        return [f'scope="{" ".join(self._scopes)}"'] if self._scopes else []

    def _challenge(self, *params: str) -> dict[str, str]:
        if self._metadata_url is not None:
            params = (*params, f'resource_metadata="{self._metadata_url}"')
        return {"WWW-Authenticate": f"Bearer {', '.join(params)}".strip()}


def _stream_slots(max_streams: int) -> RequestSlots:
    """Return the slots for open streams, which must leave connections for other requests."""
    connections = max_process_connections()
    most, total = max_streams, max_streams * ALL_CALLERS
    if connections is not None:
        most = min(most, max(1, connections // 2))
        total = min(total, max(1, connections * 3 // 4))
    return RequestSlots(most, total, "streams are open", "max_streams")


class _Response:
    """The response to a request, with CORS headers if pages of another origin can read it.

    Attributes:
        origin: The origin that can read the response.
        settled: Whether `SecuredApp` has answered itself. Messages of the app are then ignored.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.origin: str | None = None
        self.settled = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a message of the app, unless the request was answered with an error."""
        if not self.settled:
            await self._pass_on(message)

    async def allow(self, requested: Sequence[str]) -> None:
        """Answer the preflight request of a browser.

        Pages of an allowed origin can send any header, for example one that `context=` reads.

        Args:
            requested: The headers that name what the page wants to send.
        """
        names = [name.strip().lower() for name in ",".join(requested).split(",")]
        other = [name.encode() for name in names if _HEADER_NAME.fullmatch(name)]
        headers = [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", b", ".join([_HEADERS, *other])),
            (b"access-control-max-age", b"600"),
        ]
        await self._finish(204, headers, b"")

    async def fail(self, status: int, error: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Answer with an error.

        If the app has already begun its response, leave that response unfinished.
        """
        self.settled = True
        if self._begun:
            return
        body = json.dumps({"error": error}).encode()
        named = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]
        kind = (b"content-type", b"application/json")
        await self._finish(status, [kind, (b"content-length", b"%d" % len(body)), *named], body)

    async def _finish(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.settled = True
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await self._pass_on(start)
        await self._pass_on({"type": "http.response.body", "body": body})

    async def _pass_on(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            if self.origin is not None:
                message = {**message, "headers": _with_cors_headers(message, self.origin)}
        await self._send(message)


class _Body:
    """The body of a request, read within the limits.

    An error response is sent from here, because the app could turn the exception into a response
    of its own.
    """

    def __init__(
        self,
        receive: Receive,
        limits: ListenerLimits,
        refuse: Callable[[RequestRefused], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._limits = limits
        self._refuse = refuse
        self._size = 0
        self._remaining = limits.body_timeout
        self._refused: RequestRefused | None = None
        self._is_complete = False

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next message of the client."""
        if self._refused is not None:
            raise self._refused
        if self._is_complete:
            return await self._receive()
        try:
            message = await self._receive_in_time()
            if message["type"] == "http.request":
                self._count(message)
        except RequestRefused as refused:
            self._refused = refused
            await self._refuse(refused)
            raise
        return message

    async def _receive_in_time(self) -> MutableMapping[str, Any]:
        import asyncio

        clock = asyncio.get_running_loop().time
        before = clock()
        limit = asyncio.timeout(self._remaining)
        try:
            async with limit:
                message = await self._receive()
        except TimeoutError:
            if not limit.expired():
                raise
            raise RequestRefused(
                _TOO_SLOW,
                f"The body did not arrive within {self._limits.body_timeout:g} s (body_timeout=).",
            ) from None
        self._remaining -= clock() - before
        return message

    def _count(self, message: MutableMapping[str, Any]) -> None:
        self._size += len(message.get("body", b""))
        if self._size > self._limits.max_body:
            raise too_large(self._limits)
        self._is_complete = not message.get("more_body", False)


def check_body(scope: Scope, limits: ListenerLimits) -> None:
    """Check the Content-Length and Content-Type of a request.

    A page of another origin cannot send JSON without a preflight request.

    Raises:
        RequestRefused: The body is too large, or a POST has no JSON.
    """
    lengths = header_values(scope, b"content-length")
    if lengths and (len(lengths) > 1 or re.fullmatch("[0-9]+", lengths[0]) is None):
        raise RequestRefused(
            400,
            f"The Content-Length is invalid: expected one number, got "
            f"{show_header(', '.join(lengths))}.",
        )
    digits = lengths[0].lstrip("0") if lengths else ""
    if len(digits) > _LONGEST_LENGTH or int(digits or "0") > limits.max_body:
        raise too_large(limits)
    if scope["method"].upper() != "POST":
        return
    kinds = header_values(scope, b"content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        shown = show_header(", ".join(kinds)) if kinds else "none"
        raise RequestRefused(
            415,
            f"The Content-Type is wrong: expected application/json, got {shown}.",
        )


def too_large(limits: ListenerLimits) -> RequestRefused:
    """Return the error for a body above the limit."""
    return RequestRefused(
        413,
        f"The body is too large: expected at most {limits.max_body:,} bytes (max_body=).",
    )


def _with_cors_headers(message: Mapping[str, Any], origin: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response, with those that let one origin read it."""
    kept = [
        (key, value)
        for key, value in message.get("headers", ())
        if not key.lower().startswith((b"access-control-allow-origin", b"access-control-expose-"))
    ]
    return [
        *kept,
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    ]


def header_values(scope: Mapping[str, Any], name: bytes) -> list[str]:
    """Return all values of a header, whose name is in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _bearer(values: list[str]) -> str | None:
    """Return the token of the Authorization header; `None` without exactly one valid header."""
    match = re.fullmatch(r"(?i:bearer) +([!-~]+) *", values[0]) if len(values) == 1 else None
    return match[1] if match is not None else None


def _checked_auth(auth: str | TokenVerifier | None) -> str | TokenVerifier | None:
    if not isinstance(auth, str):
        if auth is None or callable(getattr(auth, "verify_token", None)):
            return auth
        raise UserTypeError(
            "auth= is invalid: expected a bearer token or an object with verify_token(token), got "
            f"{type_name(type(auth))}."
        )
    if len(auth) < _SHORTEST_TOKEN:
        raise UserValueError(
            f"auth= is too short: expected a token of at least {_SHORTEST_TOKEN} characters, got "
            f"{len(auth)}. Create a token with secrets.token_urlsafe()."
        )
    if re.fullmatch("[!-~]+", auth) is None:
        raise UserValueError(
            "auth= has invalid characters: expected visible ASCII characters, got a blank, a line "
            "end or another character that clients cannot send. If the token was read from a "
            "file, strip it."
        )
    return auth
