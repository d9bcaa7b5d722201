"""What every HTTP listener of the library has around it: who may come in, and how much."""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import os
import re
import socket
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from agents_tools._secrets import MASK, guard_logs, mask
from agents_tools._text import escape_for_model, safe_text, shorten, type_name
from agents_tools.errors import UserError, UserTypeError, UserValueError

__all__ = [
    "Guarded",
    "ListenerLimits",
    "Principal",
    "TokenVerifier",
    "bound_socket",
    "check_binding",
    "current_principal",
    "is_other_machine",
]

logger = logging.getLogger("agents_tools")
guard_logs()

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_PRINCIPAL = "agents_tools.principal"
_SHORTEST_TOKEN = 16
_LONGEST_SHOWN = 100
_LONGEST_LENGTH = 18
"""Digits of a Content-Length; with more it is larger than any limit."""
_TOO_SLOW = 408
_METHODS = b"GET, POST, DELETE"
_HEADERS = (
    b"authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
    b"mcp-session-id, prefer"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class TokenVerifier(Protocol):
    """Tells whether a bearer token is good; sync or async, as the MCP SDK's own protocol."""

    def verify_token(self, token: str) -> Any:
        """Give what is known of the token, or `None` where it is not good.

        Read are `client_id`, `scopes`, `subject`, `expires_at` (in seconds since 1970) and
        `resource` (what the token is for), as far as they are there.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """How much a listener takes.

    Attributes:
        max_body: Bytes of one request.
        max_concurrency: Requests at once.
        body_timeout: Seconds to wait for a request's body, all its parts together.
    """

    max_body: int = 4 << 20
    max_concurrency: int = 100
    body_timeout: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_body", "max_concurrency", "body_timeout"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                raise UserValueError(f"{name}= is a number above 0, not {value!r:.60}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who calls, as far as the token says.

    Attributes:
        client_id: The client.
        scopes: What it may do.
        subject: The person, where the token names one.
        token: The token itself. It is for this server: it goes to no tool and to no other server.
        claims: What the verifier gave.
    """

    client_id: str
    scopes: tuple[str, ...] = ()
    subject: str | None = None
    token: str = field(default="", repr=False)
    claims: Any = field(default=None, repr=False)


_principal: ContextVar[Principal | None] = ContextVar("agents_tools_principal", default=None)


def current_principal() -> Principal | None:
    """Give who made the request that is being handled; `None` where no token is asked for."""
    return _principal.get()


def check_binding(host: str, *, auth: Any, setting: str) -> None:
    """Refuse to listen where others can reach without a token.

    Args:
        host: The address to listen on.
        auth: The token, or what verifies tokens.
        setting: The name of the setting for it.

    Raises:
        UserError: The address is not loopback, and there is no auth.
    """
    if auth is None and not _is_loopback(host):
        raise UserValueError(
            f"Listening on {host!r} lets every machine that reaches it call the tools. Give "
            f"{setting}= a token of at least {_SHORTEST_TOKEN} characters or a verifier, or "
            "listen on 127.0.0.1."
        )


def bound_socket(host: str, port: int) -> socket.socket:
    """Give a socket that listens on an address.

    Args:
        host: The address.
        port: The port; 0 for a free one.

    Raises:
        UserError: It cannot be listened on.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol named, or asyncio leaves small writes to wait for each other (40 ms).
        sock = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as error:
        raise UserError(f"The address {host!r} cannot be listened on: {error.strerror}.") from None
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(2048)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise UserError(
            f"The address {host}:{port} cannot be listened on: {error.strerror}. Choose another "
            "port=, or 0 for a free one."
        ) from None
    return sock


class Refused(Exception):  # noqa: N818 - an answer rather than a fault
    """A request that is not let in."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class Guarded:
    """An ASGI app behind checks of Host, Origin, content type, size, number and token.

    Host and Origin are checked whatever address is listened on, since a web page can make a
    browser send requests to it under a name of its own (DNS rebinding). Loopback names are
    answered to on every address, and pages of this machine may call them.

    Args:
        app: The app.
        host: The address that is listened on; named in the log.
        allowed_hosts: Values of Host beside loopback: `example.com`, `example.com:8000`,
            `example.com:*`, `*.example.com`. Without a port any port will do.
        allowed_origins: Values of Origin of other web pages that may call, such as
            `https://example.com`. They may also read the answers.
        auth: A bearer token; or what verifies tokens; `None` for none.
        required_scopes: Scopes that a token has to have, where a verifier tells them.
        limits: How much is taken.
        protect: Says which paths need the token; all by default.
        metadata_url: Where clients learn how to get a token (RFC 9728).
        resource: What tokens are for. One that is for something else is not taken; where the
            verifier does not say what a token is for, it has to check that itself.
        local_only: Whether requests of other machines are refused, as far as the server around
            says where one comes from.

    Raises:
        UserError: The token cannot be sent or is too short, `auth` is neither a token nor a
            verifier, scopes are required of something that has none, or a host or an origin is
            not written as one.
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
        metadata_url: str | None = None,
        resource: str | None = None,
        local_only: bool = False,
    ) -> None:
        self._local_only = local_only
        self._app = app
        self._host = host
        self._hosts = tuple(map(_host_rule, _listed("allowed_hosts", allowed_hosts)))
        self._origins = frozenset(map(_origin_rule, _listed("allowed_origins", allowed_origins)))
        self._auth = _checked_auth(auth)
        self._scopes = tuple(_listed("required_scopes", required_scopes))
        if self._scopes and (auth is None or isinstance(auth, str)):
            raise UserValueError(
                "required_scopes= needs a verifier as auth=: only that can tell the scopes of a "
                "token."
            )
        self._limits = limits or ListenerLimits()
        self._protect = protect
        self._metadata_url = metadata_url
        self._resource = resource
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, _Response(send))

    async def _answer(self, scope: Scope, receive: Receive, response: _Response) -> None:
        try:
            response.origin = self._check_place(scope)
            if scope["method"] == "OPTIONS" and response.origin is not None:
                await response.allow()
            else:
                await self._enter(scope, receive, response)
        except Refused as refused:
            await self._refuse(response, refused)
        except Exception as error:  # noqa: BLE001 - logged, and told the client by its number
            if not response.settled:  # else it is what the app made of a refusal
                await self._fail(scope, response, error)

    async def _enter(self, scope: Scope, receive: Receive, response: _Response) -> None:
        """Hold one of the places for as long as the app takes."""
        if self._inside >= self._limits.max_concurrency:
            raise Refused(
                503,
                f"{self._limits.max_concurrency} requests are being handled, which is the most at "
                "once (max_concurrency=). Try again in a second.",
                {"Retry-After": "1"},
            )
        self._inside += 1
        try:
            _check_body(scope, self._limits)
            await self._run(scope, receive, response)
        finally:
            self._inside -= 1

    async def _run(self, scope: Scope, receive: Receive, response: _Response) -> None:
        async def refuse(refused: Refused) -> None:
            if refused.status == _TOO_SLOW and str(scope.get("http_version", "1.1")) < "2":
                refused.headers = {"Connection": "close"}  # or the rest may come for ever
            await self._refuse(response, refused)

        body = _Body(receive, self._limits, refuse)
        if self._auth is None or not self._is_protected(scope):
            await self._app(scope, body.receive, response.send)
            return
        principal = await self._authenticated(scope)
        state: dict[str, Any] = {**(scope.get("state") or {}), _PRINCIPAL: principal}
        before = _principal.set(principal)
        try:
            await self._app({**scope, "state": state}, body.receive, response.send)
        finally:
            _principal.reset(before)

    async def _refuse(self, response: _Response, refused: Refused) -> None:
        if response.settled:
            return
        logger.warning(
            "A request to the listener on %s was refused (%d): %s",
            self._host,
            refused.status,
            refused,
        )
        error = {"status": refused.status, "message": str(refused)}
        await response.fail(refused.status, error, refused.headers)

    async def _fail(self, scope: Scope, response: _Response, error: Exception) -> None:
        number = os.urandom(4).hex()
        text = self._without_tokens("".join(traceback.format_exception(error)), scope)
        logger.error("A request has failed (error %s).\n%s", number, text)
        message = f"The server has failed; its log has more (error {number})."
        await response.fail(500, {"status": 500, "message": message, "id": number}, {})

    def _without_tokens(self, text: str, scope: Scope) -> str:
        """Mask in a text what the request was authorized with, or should have been."""
        known = [given.rpartition(" ")[2] for given in _values(scope, b"authorization")]
        if isinstance(self._auth, str):
            known.append(self._auth)
        for token in known:
            if len(token) >= _SHORTEST_TOKEN:
                text = text.replace(token, MASK)
        return escape_for_model(mask(text))

    # --- where a request comes from

    def _check_place(self, scope: Scope) -> str | None:
        """Check Host and Origin; give the origin where it is one that may read the answer."""
        client: Any = scope.get("client")
        if self._local_only and client and is_other_machine(str(client[0])):
            raise Refused(
                403,
                f"This server takes no requests of other machines, such as {_shown(client[0])}, "
                "since everybody could call the tools. Give it auth=, or say with allowed_hosts= "
                "under which name it may be reached.",
            )
        host = self._checked_host(_values(scope, b"host"))
        origins = _values(scope, b"origin")
        if not origins:
            return None
        origin = _origin(origins[0])
        if len(origins) == 1 and origin is not None:
            if origin in self._origins:
                return origins[0]
            if origin[0] in _DEFAULT_PORTS and _is_loopback(origin[1]) and _is_loopback(host):
                return None
        raise Refused(403, _origin_message(origins))

    def _checked_host(self, hosts: list[str]) -> str:
        """Give the name in the Host header, if it is one of this server."""
        if len(hosts) != 1:
            counted = " and ".join(map(_shown, hosts[:3])) if hosts else "none"
            raise Refused(421, f"A request has one Host header; this one has {counted}.")
        place = _authority(hosts[0])
        if place is not None and (
            _is_loopback(place[0]) or any(fits(*place) for fits in self._hosts)
        ):
            return place[0]
        raise Refused(
            421,
            f"This server does not answer to the Host header {_shown(hosts[0])}. If that is its "
            "name, add it to allowed_hosts=.",
        )

    # --- who comes

    def _is_protected(self, scope: Scope) -> bool:
        path, root = str(scope.get("path", "")), str(scope.get("root_path", ""))
        inner = path.removeprefix(root) if root and path.startswith(root) else path
        return self._protect is None or self._protect(inner)

    async def _authenticated(self, scope: Scope) -> Principal:
        token = _bearer(_values(scope, b"authorization"))
        if token is None:
            raise Refused(
                401,
                "A bearer token is needed: send the header 'Authorization: Bearer ...', once.",
                self._challenge(),
            )
        principal = await self._verified(token)
        if principal is None:
            raise Refused(
                401,
                "The bearer token is not valid here, or no longer.",
                self._challenge('error="invalid_token"'),
            )
        missing = [scope for scope in self._scopes if scope not in principal.scopes]
        if missing:
            raise Refused(
                403,
                f"The token lacks the scopes {', '.join(missing)}.",
                self._challenge('error="insufficient_scope"', f'scope="{" ".join(self._scopes)}"'),
            )
        return principal

    async def _verified(self, token: str) -> Principal | None:
        auth = self._auth
        if auth is None or isinstance(auth, str):
            same = auth is not None and hmac.compare_digest(auth, token)
            return Principal(client_id="token", token=token) if same else None
        found: Any = auth.verify_token(token)
        if hasattr(found, "__await__"):
            found = await found
        if found is None or found is False or self._is_stale(found):
            return None
        scopes = getattr(found, "scopes", None) or ()
        return Principal(
            client_id=str(getattr(found, "client_id", None) or "token"),
            scopes=tuple(scopes.split() if isinstance(scopes, str) else scopes),
            subject=getattr(found, "subject", None),
            token=token,
            claims=found,
        )

    def _is_stale(self, found: Any) -> bool:
        """Whether a token is too old, or for another server."""
        expires = getattr(found, "expires_at", None)
        if isinstance(expires, datetime):
            expires = expires.timestamp()
        if expires is not None and not float(expires) > time.time():
            return True
        resource = getattr(found, "resource", None)
        if self._resource is None or resource is None:
            return False
        return str(resource).rstrip("/") != self._resource.rstrip("/")

    def _challenge(self, *told: str) -> dict[str, str]:
        if self._metadata_url is not None:
            told = (*told, f'resource_metadata="{self._metadata_url}"')
        return {"WWW-Authenticate": f"Bearer {', '.join(told)}".strip()}


class _Response:
    """The answer, which begins only once, with what pages of another origin need to read it.

    Attributes:
        origin: The origin that may read it.
        settled: Whether the guard has answered by itself; what the app sends is then left out.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.origin: str | None = None
        self.settled = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass a part of the app's answer on."""
        if not self.settled:
            await self._pass_on(message)

    async def allow(self) -> None:
        """Tell a browser what the page that it asks for may send."""
        headers = [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _HEADERS),
            (b"access-control-max-age", b"600"),
        ]
        await self._finish(204, headers, b"")

    async def fail(self, status: int, error: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Say what is wrong; where the app's answer has begun, it is left as it is, unfinished."""
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
                message = {**message, "headers": _readable(message, self.origin)}
        await self._send(message)


class _Body:
    """The body of a request, as far as it is taken.

    A refusal is sent by itself, as the app may make an answer of its own of the exception.
    """

    def __init__(
        self,
        receive: Receive,
        limits: ListenerLimits,
        refuse: Callable[[Refused], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._limits = limits
        self._refuse = refuse
        self._size = 0
        self._patience = limits.body_timeout
        self._over: Refused | None = None
        self._whole = False

    async def receive(self) -> MutableMapping[str, Any]:
        """Give the next part."""
        if self._over is not None:
            raise self._over
        if self._whole:
            return await self._receive()
        try:
            message = await self._in_time()
            if message["type"] == "http.request":
                self._count(message)
        except Refused as refused:
            self._over = refused
            await self._refuse(refused)
            raise
        return message

    async def _in_time(self) -> MutableMapping[str, Any]:
        import asyncio

        clock = asyncio.get_running_loop().time
        before = clock()
        limit = asyncio.timeout(self._patience)
        try:
            async with limit:
                message = await self._receive()
        except TimeoutError:
            if not limit.expired():
                raise
            raise Refused(
                _TOO_SLOW,
                f"The body has not come within {self._limits.body_timeout:g} s (body_timeout=).",
            ) from None
        self._patience -= clock() - before
        return message

    def _count(self, message: MutableMapping[str, Any]) -> None:
        self._size += len(message.get("body", b""))
        if self._size > self._limits.max_body:
            raise _too_large(self._limits)
        self._whole = not message.get("more_body", False)


def _check_body(scope: Scope, limits: ListenerLimits) -> None:
    """Check what the headers say of the body."""
    lengths = _values(scope, b"content-length")
    if lengths and (len(lengths) > 1 or re.fullmatch("[0-9]+", lengths[0]) is None):
        raise Refused(400, f"The Content-Length {_shown(', '.join(lengths))} is no number.")
    digits = lengths[0].lstrip("0") if lengths else ""
    if len(digits) > _LONGEST_LENGTH or int(digits or "0") > limits.max_body:
        raise _too_large(limits)
    if scope["method"].upper() != "POST":
        return
    kinds = _values(scope, b"content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        shown = _shown(", ".join(kinds)) if kinds else "missing"
        raise Refused(415, f"The Content-Type is {shown}; it has to be application/json.")


def _too_large(limits: ListenerLimits) -> Refused:
    return Refused(
        413, f"The body is larger than {limits.max_body:,} bytes, which is the most (max_body=)."
    )


def _readable(message: Mapping[str, Any], origin: str) -> list[tuple[bytes, bytes]]:
    """Give the headers of an answer that one other origin may read."""
    kept = [
        (key, value)
        for key, value in message.get("headers", ())
        if not key.lower().startswith((b"access-control-allow-origin", b"access-control-expose-"))
    ]
    return [
        *kept,
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (
            b"access-control-expose-headers",
            b"location, mcp-session-id, retry-after, www-authenticate",
        ),
        (b"vary", b"Origin"),
    ]


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _bearer(given: list[str]) -> str | None:
    """Give the token of an Authorization header; there is none in several, or in a broken one."""
    found = re.fullmatch(r"(?i:bearer) +([!-~]+) *", given[0]) if len(given) == 1 else None
    return found[1] if found is not None else None


def _checked_auth(auth: str | TokenVerifier | None) -> str | TokenVerifier | None:
    if not isinstance(auth, str):
        if auth is None or callable(getattr(auth, "verify_token", None)):
            return auth
        raise UserTypeError(
            "auth= is a bearer token as text, or an object with verify_token(token), not "
            f"{type_name(type(auth))}."
        )
    if len(auth) < _SHORTEST_TOKEN:
        raise UserValueError(
            f"auth= is a token of at least {_SHORTEST_TOKEN} characters; this one has "
            f"{len(auth)}. Make one with secrets.token_urlsafe()."
        )
    if re.fullmatch("[!-~]+", auth) is None:
        raise UserValueError(
            "auth= is a token of visible ASCII characters; this one has a blank, a line end or "
            "another character that no client can send. Was it read from a file? Strip it."
        )
    return auth


# --- names of machines


def _shown(value: str) -> str:
    """Write a header out for a message: shortened, and with nothing in it that is not seen."""
    return safe_text(repr(shorten(mask(value), _LONGEST_SHOWN)))


def _authority(text: str) -> tuple[str, str] | None:
    """Give the name and the port of a Host header; nothing if it is none."""
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", text.lower())
    return None if found is None else (found[1].removesuffix("."), found[2] or "")


def _origin(text: str) -> tuple[str, str, str] | None:
    """Give the scheme, the name and the port of an Origin header; nothing if it is none."""
    scheme, mark, rest = text.lower().partition("://")
    place = _authority(rest)
    if not mark or place is None or re.fullmatch("[a-z][a-z0-9+.-]*", scheme) is None:
        return None
    name, port = place
    return scheme, name, "" if port == _DEFAULT_PORTS.get(scheme) else port


def _origin_message(origins: list[str]) -> str:
    shown = " and ".join(map(_shown, origins[:3]))
    if len(origins) > 1:
        return f"A request has one Origin header at most; this one has {shown}."
    if _origin(origins[0]) is None:
        return (
            f"A web page with the Origin header {shown} may not call this server, since that names "
            "no place. Serve the page over HTTP, and add its origin to allowed_origins=."
        )
    return (
        f"Web pages with the Origin header {shown} may not call this server. If they should, add "
        "it to allowed_origins=."
    )


def is_other_machine(address: str) -> bool:
    """Tell whether a client's address is one of another machine."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False  # a socket of this machine, or a client of a test
    mapped = getattr(found, "ipv4_mapped", None)
    return not (mapped or found).is_loopback


def _is_loopback(name: str) -> bool:
    name = name.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _listed(setting: str, values: Iterable[str]) -> Iterable[str]:
    if isinstance(values, str):
        raise UserTypeError(f"{setting}= is a list of texts, not one text: [{values!r:.80}].")
    return values


def _host_rule(allowed: str) -> Callable[[str, str], bool]:
    """Give what tells whether a name and a port are those that were allowed."""
    text = allowed.removesuffix(":*")
    below = text.startswith("*.")
    place = _authority(text.removeprefix("*."))
    if place is None or not place[0]:
        raise UserValueError(
            "allowed_hosts= has names such as 'example.com', 'example.com:8000', '*.example.com' "
            f"or '[fd00::1]', not {allowed!r:.80}."
        )
    name, port = place

    def fits(given: str, given_port: str) -> bool:
        known = given.endswith("." + name) if below else given == name
        return known and port in {"", given_port}

    return fits


def _origin_rule(allowed: str) -> tuple[str, str, str]:
    origin = _origin(allowed.removesuffix("/"))
    if origin is None or not origin[1]:
        raise UserValueError(
            "allowed_origins= has origins such as 'https://example.com' or "
            f"'http://10.0.0.5:3000', not {allowed!r:.80}."
        )
    return origin
