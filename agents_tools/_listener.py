"""What every HTTP listener of the library has around it: who may come in, and how much."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import ipaddress
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from agents_tools._text import safe_text, shorten
from agents_tools.errors import UserTypeError, UserValueError

__all__ = [
    "Guarded",
    "ListenerLimits",
    "Principal",
    "TokenVerifier",
    "check_binding",
    "current_principal",
]

logger = logging.getLogger("agents_tools")

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_SHORTEST_TOKEN = 16
_METHODS = "GET, POST, DELETE"
_HEADERS = (
    "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
    "mcp-session-id"
)


class TokenVerifier(Protocol):
    """Tells whether a bearer token is good; sync or async, as the MCP SDK's own protocol."""

    def verify_token(self, token: str) -> Any:
        """Give what is known of the token (`client_id`, `scopes`, `expires_at`), or `None`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """How much a listener takes.

    Attributes:
        max_body: Bytes of one request.
        max_concurrency: Requests at once.
        body_timeout: Seconds that a request's body may take to come.
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
        claims: What the verifier gave.
    """

    client_id: str
    scopes: tuple[str, ...] = ()
    subject: str | None = None
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


class Refused(Exception):  # noqa: N818 - an answer rather than a fault
    """A request that is not let in."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Guarded:
    """An ASGI app behind checks of Host, Origin, content type, size, number and token.

    Host and Origin are checked whatever address is listened on, since a web page can make a
    browser send requests to it under a name of its own (DNS rebinding).

    Args:
        app: The app.
        host: The address that is listened on.
        allowed_hosts: Values of Host beside loopback: `example.com`, `example.com:8000`,
            `example.com:*`, `*.example.com`.
        allowed_origins: Values of Origin of web pages that may call.
        auth: A bearer token; or what verifies tokens; `None` for none.
        required_scopes: Scopes that a token has to have.
        limits: How much is taken.
        protect: Says which paths need the token; all by default.
        metadata_url: Where clients learn how to get a token (RFC 9728).

    Raises:
        UserError: The token is too short, or `auth` is neither a token nor a verifier.
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
    ) -> None:
        if isinstance(auth, str):
            if len(auth) < _SHORTEST_TOKEN:
                raise UserValueError(
                    f"auth= is a token of at least {_SHORTEST_TOKEN} characters; this one has "
                    f"{len(auth)}. Make one with secrets.token_urlsafe()."
                )
        elif auth is not None and not callable(getattr(auth, "verify_token", None)):
            raise UserTypeError(
                "auth= is a bearer token as text, or an object with verify_token(token), "
                f"not {type(auth).__name__}."
            )
        self._app = app
        self._loopback = _is_loopback(host)
        self._hosts = tuple(_pattern(one) for one in allowed_hosts)
        self._origins = frozenset(one.rstrip("/").lower() for one in allowed_origins)
        self._auth = auth
        self._scopes = frozenset(required_scopes)
        self._limits = limits or ListenerLimits()
        self._protect = protect
        self._metadata_url = metadata_url
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        response = _Response(send)
        try:
            origin = self._check_place(scope)
            if origin is not None:
                response.origin = origin
            if scope["method"] == "OPTIONS" and origin is not None:
                await response.finish(204, b"", _preflight())
                return
            await self._enter(scope, receive, response)
        except Refused as refused:
            logger.warning("A request was refused (%d): %s", refused.status, refused)
            await response.refuse(refused.status, str(refused), refused.headers)
        except Exception:
            number = secrets.token_hex(4)
            logger.exception("A request has failed (error %s).", number)
            await response.refuse(500, f"The server has failed (error {number}).", {})

    async def _enter(self, scope: Scope, receive: Receive, response: _Response) -> None:
        if self._inside >= self._limits.max_concurrency:
            raise Refused(
                503,
                f"{self._limits.max_concurrency} requests are being handled, which is the most at "
                "once (max_concurrency).",
                **{"Retry-After": "1"},
            )
        self._inside += 1
        token = None
        try:
            _check_body(scope, self._limits)
            if self._auth is not None and (
                self._protect is None or self._protect(str(scope.get("path", "")))
            ):
                token = _principal.set(await self._authenticated(scope))
            await self._app(scope, _Body(receive, self._limits).receive, response.send)
        finally:
            self._inside -= 1
            if token is not None:
                _principal.reset(token)

    # --- where a request comes from

    def _check_place(self, scope: Scope) -> str | None:
        """Check Host and Origin; give the origin if it is another one that may call."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1:
            raise Refused(421, f"The request has {len(hosts) or 'no'} Host headers; it has one.")
        host = hosts[0]
        if not self._is_own(host):
            raise Refused(
                421,
                f"The Host header {_shown(host)} is not one that this server answers to. If it is "
                f"its name, add it to allowed_hosts.",
            )
        origins = _values(scope, b"origin")
        if not origins:
            return None
        origin = origins[0].rstrip("/").lower()
        if len(origins) == 1 and origin in self._origins:
            return origins[0]
        if len(origins) > 1 or not self._is_same(origin, host):
            raise Refused(
                403,
                f"Web pages of the Origin {_shown(origins[0])} may not call this server. If they "
                "should, add it to allowed_origins.",
            )
        return None

    def _is_own(self, host: str) -> bool:
        name, port = _split(host)
        if name is None:
            return False
        return _is_loopback(name) or any(fits(name, port) for fits in self._hosts)

    def _is_same(self, origin: str, host: str) -> bool:
        """Whether an origin is this machine, or the very server that it calls."""
        try:
            parts = urlsplit(origin)
            name = parts.hostname
        except ValueError:
            return False
        if parts.scheme not in {"http", "https"} or not name or parts.path:
            return False
        return _is_loopback(name) or parts.netloc == host.lower()

    # --- who comes

    async def _authenticated(self, scope: Scope) -> Principal:
        given = _values(scope, b"authorization")
        scheme, _, token = given[0].partition(" ") if given else ("", "", "")
        token = token.strip()
        if len(given) != 1 or scheme.lower() != "bearer" or not token:
            raise Refused(
                401,
                "A bearer token is needed: send the header 'Authorization: Bearer ...'.",
                **{"WWW-Authenticate": self._challenge()},
            )
        found = await self._verified(token)
        if found is None:
            raise Refused(
                401,
                "The bearer token is not valid.",
                **{"WWW-Authenticate": self._challenge('error="invalid_token"')},
            )
        missing = sorted(self._scopes - set(found.scopes))
        if missing and not isinstance(self._auth, str):
            scopes = " ".join(sorted(self._scopes))
            raise Refused(
                403,
                f"The token lacks the scopes {', '.join(missing)}.",
                **{
                    "WWW-Authenticate": self._challenge(
                        f'error="insufficient_scope", scope="{scopes}"'
                    )
                },
            )
        return found

    async def _verified(self, token: str) -> Principal | None:
        auth = self._auth
        if isinstance(auth, str):
            same = hmac.compare_digest(auth.encode(), token.encode(errors="replace"))
            return Principal(client_id="token") if same else None
        if auth is None:
            return None
        found = auth.verify_token(token)
        if inspect.isawaitable(found):
            found = await found
        if found is None or found is False:
            return None
        expires = getattr(found, "expires_at", None)
        if isinstance(expires, (int, float)) and expires < time.time():
            return None
        return Principal(
            client_id=str(getattr(found, "client_id", "") or "token"),
            scopes=tuple(getattr(found, "scopes", None) or ()),
            subject=getattr(found, "subject", None),
            claims=found,
        )

    def _challenge(self, *more: str) -> str:
        told = list(more)
        if self._metadata_url is not None:
            told.append(f'resource_metadata="{self._metadata_url}"')
        return " ".join(["Bearer", ", ".join(told)]).strip()


class _Response:
    """The answer, which may begin only once, with what another origin has to see on it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.origin: str | None = None

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass a part of the answer on."""
        if message["type"] == "http.response.start":
            self._begun = True
            if self.origin is not None:
                message["headers"] = [*message.get("headers", ()), *self._cross()]
        await self._send(message)

    def _cross(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"access-control-allow-origin", (self.origin or "").encode("latin-1")),
            (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
            (b"vary", b"Origin"),
        ]

    async def finish(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        """Give a whole answer."""
        if self._begun:
            return
        length = (b"content-length", str(len(body)).encode())
        start = {"type": "http.response.start", "status": status, "headers": [*headers, length]}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, status: int, message: str, headers: MutableMapping[str, str]) -> None:
        """Say why a request is not let in."""
        body = json.dumps({"error": {"status": status, "message": message}}).encode()
        named = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]
        await self.finish(status, body, [(b"content-type", b"application/json"), *named])


class _Body:
    """The body of a request, as far as it is taken."""

    def __init__(self, receive: Receive, limits: ListenerLimits) -> None:
        self._receive = receive
        self._limits = limits
        self._size = 0
        self._whole = False

    async def receive(self) -> MutableMapping[str, Any]:
        """Give the next part."""
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout(self._limits.body_timeout):
                message = await self._receive()
        except TimeoutError:
            raise Refused(
                408, f"The body has not come within {self._limits.body_timeout:g} s."
            ) from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._size > self._limits.max_body:
                raise _too_large(self._limits)
        return message


def _check_body(scope: Scope, limits: ListenerLimits) -> None:
    """Check what the headers say of the body."""
    lengths = _values(scope, b"content-length")
    if lengths:
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            raise Refused(400, f"The Content-Length {_shown(lengths[0])} is no number.")
        if int(lengths[0]) > limits.max_body:
            raise _too_large(limits)
    if scope["method"] != "POST":
        return
    kinds = _values(scope, b"content-type")
    kind = kinds[0].partition(";")[0].strip().lower() if len(kinds) == 1 else ""
    if kind != "application/json":
        shown = _shown(", ".join(kinds)) if kinds else "missing"
        raise Refused(415, f"The Content-Type is {shown}; it has to be application/json.")


def _too_large(limits: ListenerLimits) -> Refused:
    return Refused(
        413, f"The request is larger than {limits.max_body:,} bytes, which is the most (max_body)."
    )


def _preflight() -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-methods", _METHODS.encode()),
        (b"access-control-allow-headers", _HEADERS.encode()),
        (b"access-control-max-age", b"600"),
    ]


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _shown(value: str) -> str:
    return repr(shorten(safe_text(value), 100))


def _split(host: str) -> tuple[str | None, str]:
    """Give the name and the port of a Host header; no name if it is none."""
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", host)
    if found is None:
        return None, ""
    return found[1].strip("[]").lower().rstrip("."), found[2] or ""


def _is_loopback(name: str) -> bool:
    name = name.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _pattern(allowed: str) -> Callable[[str, str], bool]:
    """Give what tells whether a name and a port are those that were allowed."""
    name, colon, port = allowed.lower().rpartition(":")
    if not colon or allowed.endswith("]"):
        name, port = allowed.lower(), "*"
    name = name.strip("[]")
    if not name or "/" in name or "://" in allowed:
        raise UserValueError(
            f"allowed_hosts= are names such as 'example.com' or '*.example.com:8000', not "
            f"{allowed!r:.80}."
        )
    below = name[1:] if name.startswith("*.") else None

    def fits(given: str, given_port: str) -> bool:
        known = given.endswith(below) if below is not None else given == name
        return known and port in {"*", given_port}

    return fits
