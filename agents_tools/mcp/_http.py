"""HTTP below the SDK's transports: headers of each call, and faults that end only their request."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import logging
import time
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from agents_tools._text import safe_text, shorten
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.mcp._shapes import an_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.mcp._exchange import Exchange, Request
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["http_client"]

logger = logging.getLogger("agents_tools.mcp")

_NOT_FOUND = 404
_IDLE = 3.0
"""Seconds for which a connection that nobody uses is kept: fewer than servers keep theirs, since a
request that meets the end of its connection half-way counts as lost."""
_FAREWELL = 1.5
"""Seconds that a server may take to hear that a session is over."""
_NOT_RUN = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 421, 429, 503})
"""Statuses of requests that a server has not acted upon."""
_UNKNOWN = frozenset({502, 504})
"""Statuses of something between, which does not know what the server did."""
_KEPT = frozenset({307, 308})
_METHOD_NOT_FOUND, _INVALID_REQUEST, _INTERNAL, _CLOSED = -32601, -32600, -32603, -32000


def http_client(httpx: Any, config: MCPServerConfig, exchange: Exchange) -> Any:
    """Make the HTTP client for one connection.

    A request that cannot be sent, or is refused, is answered with a JSON-RPC error, so that it
    costs its own caller and not the whole session; what is known of it is noted in the exchange.

    Args:
        httpx: The HTTP library that this line of the SDK works with.
        config: The server.
        exchange: The connection.
    """
    base: Any = httpx.AsyncClient

    class Client(base):  # type: ignore[misc] # a base that is only known here
        async def send(self, request: Any, **options: Any) -> Any:
            message = _message_of(request)
            number = message.get("id") if "method" in message else None
            open_request = exchange.of(number) if number is not None else None
            try:
                await _add_headers(request, config, open_request)
                if exchange.mirror is not None and message.get("method") == "tools/call":
                    request.headers.update(exchange.mirror(an_object(message.get("params"))))
                if open_request is not None:
                    open_request.sent = True
                    open_request.in_session = "mcp-session-id" in request.headers
                if request.method == "DELETE":
                    async with asyncio.timeout(_FAREWELL):
                        return await base.send(self, request, **options)
                response: Any = await base.send(self, request, **options)
                exchange.refused = response.status_code if response.status_code >= 400 else None  # noqa: PLR2004
                if message:
                    return await _answer(httpx, config, request, number, open_request, response)
                return response
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if not message:
                    raise  # a stream of events, which the SDK opens again, or a farewell
                return _failed(httpx, config, request, number, open_request, error, exchange)

    return Client(
        headers=dict(config.headers),
        auth=config.auth,
        timeout=httpx.Timeout(30.0, connect=config.connect_timeout, read=None, pool=None),
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=32, keepalive_expiry=_IDLE
        ),
        follow_redirects=False,
    )


async def _add_headers(request: Any, config: MCPServerConfig, open_request: Request | None) -> None:
    if config.header_provider is None:
        return
    given: Any = config.header_provider(None if open_request is None else open_request.context)
    if hasattr(given, "__await__"):
        given = await given
    for name, value in dict(given or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise UserTypeError(
                f"The header_provider of MCP server {config.name!r} gives texts by name; "
                f"it gave {type(value).__name__} for {name!r:.60}."
            )
        if not value.isprintable():
            raise UserValueError(
                f"The header_provider of MCP server {config.name!r} gave {name!r:.60} a value with "
                "a line end or another character that no header can have. Strip it."
            )
        request.headers[name] = value


async def _answer(
    httpx: Any,
    config: MCPServerConfig,
    request: Any,
    number: Any,
    open_request: Request | None,
    response: Any,
) -> Any:
    """Give the answer to a POST as the SDK's transport can read it."""
    if open_request is not None:
        open_request.sent = True
        open_request.status = response.status_code
    if response.is_redirect and not _stays(request, response):
        await response.aclose()
        place = shorten(safe_text(response.headers.get("location", "")), 200)
        _note(
            open_request,
            f"it answers with a redirect to {place}, which is not followed",
            sent=False,
        )
        return _error(httpx, request, number, _INVALID_REQUEST, "redirected")
    if response.status_code >= 400:  # noqa: PLR2004 - where errors begin
        return await _refused(httpx, config, request, number, open_request, response)
    kind = response.headers.get("content-type", "").lower()
    if number is not None and kind.startswith("application/json"):
        length = response.headers.get("content-length", "")
        packed = "content-encoding" in response.headers
        short = not packed and length.isdecimal() and int(length) <= config.max_message
        if short and httpx.__name__ != "httpx":
            await response.aread()  # this line of the SDK answers for what cannot be read
            return response
        body = await _body(response, config.max_message)
        try:
            fits = isinstance(from_json(body), dict)
        except ValueError:
            fits = False
        if not fits:
            _note(open_request, "its answer is no JSON-RPC message")
            return _error(httpx, request, number, _CLOSED, "no JSON-RPC message")
        headers = {
            name: response.headers[name]
            for name in ("content-type", "mcp-session-id")
            if name in response.headers
        }
        return httpx.Response(response.status_code, headers=headers, content=body, request=request)
    if number is not None and response.status_code != 202 and not kind.startswith("text/event"):  # noqa: PLR2004
        await response.aclose()
        _note(
            open_request, f"it answers with {shorten(safe_text(kind), 60) or 'no type'}, not JSON"
        )
        return _error(httpx, request, number, _INVALID_REQUEST, "unexpected content type")
    if open_request is not None:
        response.stream = _watched(httpx, response.stream, open_request)
    return response


_LAST_LOOK = 0.5
"""Seconds that an answer may take from the end of its stream to whoever waits for it."""


def _give_up(open_request: Request) -> None:
    if open_request.raw is None and open_request.clock is not None:
        open_request.fault = "its stream of events has ended without a result"
        open_request.lose()


def _watched(httpx: Any, stream: Any, open_request: Request) -> Any:
    """Give a stream of events that notes when it has ended without the answer."""
    base: Any = httpx.AsyncByteStream

    class Watched(base):  # type: ignore[misc] # a base that is only known here
        async def __aiter__(self) -> Any:
            numbered = False
            try:
                async for piece in stream:
                    numbered = numbered or piece.startswith(b"id:") or b"\nid:" in piece
                    yield piece
            finally:
                open_request.cut = open_request.raw is None
                if open_request.cut and not numbered:  # nothing takes it up where it was cut
                    asyncio.get_running_loop().call_later(_LAST_LOOK, _give_up, open_request)

        async def aclose(self) -> None:
            await stream.aclose()

    return Watched()


async def _refused(
    httpx: Any,
    config: MCPServerConfig,
    request: Any,
    number: Any,
    open_request: Request | None,
    response: Any,
) -> Any:
    status = response.status_code
    wait = _seconds(response.headers.get("retry-after"))
    body = b""
    with contextlib.suppress(Exception):  # what it says beside the status is only a help
        body = await _body(response, 1 << 16)
    given: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        given = json.loads(body)
    message = an_object(given)
    error = an_object(message.get("error"))
    told = message.get("jsonrpc") == "2.0" and isinstance(error.get("code"), int)
    if told and status not in _UNKNOWN:
        if open_request is not None:
            open_request.retry_after = wait
            open_request.sent = status not in _NOT_RUN
            if wait is not None or (status == _NOT_FOUND and open_request.in_session):
                open_request.fault = _said(config, status, body)
        if number is None:
            return httpx.Response(202, request=request)
        return httpx.Response(
            200, json={"jsonrpc": "2.0", "id": number, "error": error}, request=request
        )
    if open_request is not None:
        open_request.retry_after = wait
        open_request.lost = status in _UNKNOWN
    _note(open_request, _said(config, status, body), sent=status not in _NOT_RUN)
    if number is None:
        logger.debug("%s: a notification was refused: %s", config.name, status)
        return httpx.Response(202, request=request)
    code = _INTERNAL
    if status == _NOT_FOUND:
        code = _INVALID_REQUEST if "mcp-session-id" in request.headers else _METHOD_NOT_FOUND
    return _error(httpx, request, number, code, _said(config, status, body))


def _said(config: MCPServerConfig, status: int, body: bytes) -> str:
    text = shorten(safe_text(body[:400].decode(errors="replace")).strip(), 200)
    more = f": {text}" if text and not text.lstrip().startswith("<") else ""
    remedy = ""
    if status in {401, 403}:
        given = config.auth or config.headers or config.header_provider
        remedy = (
            "; the credentials in headers=, header_provider= or auth= are not accepted"
            if given
            else "; give credentials in headers=, header_provider= or auth="
        )
    return f"it answers with HTTP status {status}{remedy}{more}"


def _failed(
    httpx: Any,
    config: MCPServerConfig,
    request: Any,
    number: Any,
    open_request: Request | None,
    error: Exception,
    exchange: Exchange,
) -> Any:
    never = (
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.PoolTimeout,
        httpx.UnsupportedProtocol,
        httpx.InvalidURL,
        httpx.LocalProtocolError,
    )
    sent = isinstance(error, httpx.TransportError) and not isinstance(error, never)
    if isinstance(error, never):
        why = f"it cannot be reached at {config.place}: {_reason(error)}"
    elif sent:
        why = f"the connection broke: {_reason(error)}"
    else:
        why = _reason(error)
    exchange.fault = why
    if open_request is not None:
        open_request.sent = sent
        open_request.lost = sent
        open_request.fault = why
    if number is None:
        return httpx.Response(202, request=request)
    return _error(httpx, request, number, _CLOSED, why)


def _reason(error: Exception) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        deeper = cause.__cause__ or cause.__context__
        if not isinstance(deeper, OSError):
            break
        cause = deeper
    text = getattr(cause, "strerror", None) or str(cause) or str(error)
    name = type(error).__name__
    return shorten(safe_text(f"{text} ({name})" if text else name), 300)


def _note(open_request: Request | None, fault: str, *, sent: bool | None = None) -> None:
    if open_request is not None:
        open_request.fault = fault
        if sent is not None:
            open_request.sent = sent


def _error(httpx: Any, request: Any, number: Any, code: int, message: str) -> Any:
    body = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
    return httpx.Response(200 if number is not None else 202, json=body, request=request)


def _message_of(request: Any) -> Mapping[str, Any]:
    """Give the JSON-RPC message of a POST; empty for everything else."""
    if request.method != "POST":
        return {}
    try:
        message: Any = from_json(request.content)
    except Exception:  # noqa: BLE001 - a form of an OAuth server, or a stream
        return {}
    found = an_object(message)
    return found if found.get("jsonrpc") == "2.0" else {}


def _stays(request: Any, response: Any) -> bool:
    if response.status_code not in _KEPT:
        return False
    there = request.url.join(response.headers.get("location", ""))
    return (there.scheme, there.host, there.port) == (
        request.url.scheme,
        request.url.host,
        request.url.port,
    )


async def _body(response: Any, limit: int) -> bytes:
    """Read a body, at most so many bytes of it.

    Raises:
        ValueError: It is longer.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in response.aiter_bytes():
            size += len(piece)
            if size > limit:
                message = f"its answer is longer than {limit:,} bytes (max_message)"
                raise ValueError(message)
            pieces.append(piece)
    finally:
        await response.aclose()
    return b"".join(pieces)


def _seconds(text: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
