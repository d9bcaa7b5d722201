"""The HTTP client of the SDK's transports: it adds headers, and isolates failed requests."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json, to_json

from agents_tools.errors import UserTypeError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.client.login_errors import LOGIN_KEY, LoginError, other_server
from agents_tools.mcp.client.tls import tls_settings
from agents_tools.mcp.config import check_header
from agents_tools.text.characters import replace_escaped_surrogates
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from agents_tools.mcp.client.pending_requests import PendingRequest, PendingRequests
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["http_client"]

logger = logging.getLogger("agents_tools.mcp")

_NOT_FOUND = 404
"""The status for an unknown session (2025-11-25, Streamable HTTP, "Session Management")."""
_BAD_REQUEST = 400
"""The status of servers that follow the examples of the TypeScript SDK, which keep their sessions
in memory: "Bad Request: No valid session ID provided"."""
_KEEP_ALIVE = 3.0
"""Seconds for which an idle connection is kept open: fewer than on most servers, because a request
on a connection that the server is closing counts as lost."""
_DELETE_TIMEOUT = 1.5
"""Seconds that a server has to answer the DELETE request that ends a session."""
_NOT_EXECUTED = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 421, 429, 503})
"""Statuses of requests that a server has not acted upon."""
_OUTCOME_UNKNOWN = frozenset({502, 504})
"""Statuses of a proxy that does not know whether the server has executed the request."""
_REDIRECT = 300
"""The first status of a redirect."""
_SAME_METHOD_REDIRECTS = frozenset({307, 308})
_SMALL = 1 << 16
"""The size in bytes up to which the SDK reads a JSON body, which costs less than another body."""
_METHOD_NOT_FOUND, _INVALID_REQUEST, _INTERNAL, _CLOSED = -32601, -32600, -32603, -32000


def http_client(
    httpx: Any,
    config: MCPServerConfig,
    pending: PendingRequests,
    *,
    auth: Any = None,
    inner: Any = None,
) -> Any:
    """Create the HTTP client for one connection.

    A request that cannot be sent, or is rejected, gets a JSON-RPC error as its response, so that
    only its call fails and not the session. The reason is stored in the pending request.

    Args:
        httpx: The HTTP library of the installed SDK: `httpx`, or `httpx2` for version 2.
        config: The configuration of the server.
        pending: Tracks the requests in flight.
        auth: The auth object, instead of that of the configuration.
        inner: A client of the program, which sends the requests.
    """
    base: Any = httpx.AsyncClient

    class HttpClient(base):  # type: ignore[misc] # the base class depends on the SDK
        async def send(self, request: Any, **options: Any) -> Any:
            message = _message_of(request)
            number = message.get("id") if "method" in message else None
            open_request = pending.find(number) if number is not None else None
            try:
                if config.header_provider is not None:
                    await _add_headers(request, config, open_request)
                if pending.header_mirror is not None and message.get("method") == "tools/call":
                    request.headers.update(pending.header_mirror(an_object(message.get("params"))))
                opens_session = config.transport == "sse" and request.method == "GET"
                if self.auth is not None and (number is not None or opens_session):
                    request.extensions[LOGIN_KEY] = partial(pending.waiting_for_user, open_request)
                if open_request is not None:
                    open_request.sent = True
                if request.method == "DELETE":
                    async with asyncio.timeout(_DELETE_TIMEOUT):
                        return await self.deliver(request, **options)
                response: Any = await self.deliver(request, **options)
                status: int = response.status_code
                pending.http_status = status if status >= 400 else None  # noqa: PLR2004
                if message:
                    return await _check_response(
                        httpx, config, request, number, open_request, response
                    )
                return response
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if not message:
                    raise  # an event stream, which the SDK reopens, or the end of a session
                return _exception_response(
                    httpx, config, request, number, open_request, error, pending
                )

        async def deliver(self, request: Any, **options: Any) -> Any:
            if inner is None:
                return await base.send(self, request, **options)
            if self.auth is not None:
                options["auth"] = self.auth
            return await inner.send(request, **{**options, "follow_redirects": False})

    return HttpClient(
        headers={**({} if inner is None else inner.headers), **config.headers},
        auth=config.auth if auth is None else auth,
        verify=tls_settings(httpx, config),
        timeout=httpx.Timeout(30.0, connect=config.connect_timeout, read=None, pool=None),
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=32, keepalive_expiry=_KEEP_ALIVE
        ),
        follow_redirects=False,
    )


async def _add_headers(
    request: Any, config: MCPServerConfig, open_request: PendingRequest | None
) -> None:
    provider: Any = config.header_provider
    headers: Any = provider(None if open_request is None else open_request.context)
    if hasattr(headers, "__await__"):
        headers = await headers
    subject = f"The header_provider of MCP server {config.name!r}"
    for name, value in dict(headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise UserTypeError(
                f"{subject} returned an invalid header {name!r:.60}: expected a string, got "
                f"{type(value).__name__}."
            )
        check_header(subject, name, value)
        request.headers[name] = value


async def _check_response(
    httpx: Any,
    config: MCPServerConfig,
    request: Any,
    number: Any,
    open_request: PendingRequest | None,
    response: Any,
) -> Any:
    """Return the response to a POST in a form that the SDK's transport can read."""
    if open_request is not None:
        open_request.sent = True
        open_request.status = response.status_code
    status: int = response.status_code
    is_redirect = status >= _REDIRECT and response.is_redirect
    if is_redirect and not _is_same_origin_redirect(request, response):
        await response.aclose()
        location = release_text(response.headers.get("location", ""), limit=200)
        _set_fault(
            open_request,
            f"it answered with a redirect to {location}, which is not followed",
            sent=False,
        )
        return _error(httpx, request, number, _INVALID_REQUEST, "redirected")
    if status >= 400:  # noqa: PLR2004 - the first error status
        return await _rejection_response(httpx, config, request, number, open_request, response)
    kind = response.headers.get("content-type", "").lower()
    if number is not None and kind.startswith("application/json"):
        length = response.headers.get("content-length", "")
        is_compressed = "content-encoding" in response.headers
        limit = min(_SMALL, config.max_message)
        is_short = not is_compressed and length.isdecimal() and int(length) <= limit
        if is_short and httpx.__name__ != "httpx":
            content: bytes = await response.aread()
            if replace_escaped_surrogates(content) is content:
                return response  # version 2 of the SDK reports an unreadable body itself
        body = await _body(response, config.max_message)
        message = _parsed(body)
        if message is None:
            body = replace_escaped_surrogates(body)
            message = _parsed(body)
        if message is None:
            _set_fault(open_request, "its answer is not a JSON-RPC message")
            return _error(httpx, request, number, _CLOSED, "not a JSON-RPC message")
        # The SDK parses and validates the body again, so it gets one without the result.
        if open_request is not None and isinstance(message.get("result"), dict):
            body = to_json({**message, "result": open_request.keep_result(message["result"])})
        headers = {
            name: response.headers[name]
            for name in ("content-type", "mcp-session-id")
            if name in response.headers
        }
        return httpx.Response(status, headers=headers, content=body, request=request)
    if number is not None and status != 202 and not kind.startswith("text/event"):  # noqa: PLR2004
        await response.aclose()
        _set_fault(
            open_request,
            f"it answered with {release_text(kind, limit=60) or 'no content type'}, not JSON",
        )
        return _error(httpx, request, number, _INVALID_REQUEST, "unexpected content type")
    # Over SSE, the answer to a POST has no stream: the result arrives on that of the session.
    if open_request is not None and kind.startswith("text/event"):
        stream = response.stream
        if "content-encoding" not in response.headers:
            stream = _without_lone_surrogates(stream)
        response.stream = _watch_stream(httpx, stream, response.stream.aclose, open_request)
    return response


def _parsed(body: bytes) -> dict[str, Any] | None:
    """Return a body as a JSON object; `None` if it is not one."""
    try:
        message: Any = from_json(body)
    except ValueError:
        return None
    return cast("dict[str, Any]", message) if isinstance(message, dict) else None


_DELIVERY_TIMEOUT = 0.5
"""Seconds from the end of a stream until its last message must have reached the session."""


def _fail_if_unanswered(open_request: PendingRequest) -> None:
    if open_request.raw is None and open_request.timeout is not None:
        open_request.fault = "its event stream ended without a result"
        open_request.mark_lost()


def _watch_stream(httpx: Any, stream: Any, close: Any, open_request: PendingRequest) -> Any:
    """Wrap an event stream, to fail its request if the stream ends without the answer."""
    base: Any = httpx.AsyncByteStream

    class WatchedStream(base):  # type: ignore[misc] # the base class depends on the SDK
        async def __aiter__(self) -> Any:
            has_ids = False
            try:
                async for piece in stream:
                    has_ids = has_ids or piece.startswith(b"id:") or b"\nid:" in piece
                    yield piece
            finally:
                open_request.stream_ended = open_request.raw is None
                # The SDK resumes a stream with event ids; other streams cannot continue.
                if open_request.stream_ended and not has_ids:
                    asyncio.get_running_loop().call_later(
                        _DELIVERY_TIMEOUT, _fail_if_unanswered, open_request
                    )

        async def aclose(self) -> None:
            await close()

    return WatchedStream()


async def _without_lone_surrogates(stream: Any) -> AsyncIterator[bytes]:
    """Yield an event stream in whole lines, because a cut inside an escape would hide it."""
    held: list[bytes] = []
    async for piece in stream:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        if not end:
            held.append(piece)
            continue
        yield replace_escaped_surrogates(b"".join([*held, piece[:end]]))
        held = [piece[end:]] if end < len(piece) else []
    if held:
        yield replace_escaped_surrogates(b"".join(held))


async def _rejection_response(
    httpx: Any,
    config: MCPServerConfig,
    request: Any,
    number: Any,
    open_request: PendingRequest | None,
    response: Any,
) -> Any:
    status = response.status_code
    wait = _seconds(response.headers.get("retry-after"))
    body = b""
    with contextlib.suppress(Exception):  # the status is sufficient without the body
        body = await _body(response, 1 << 16)
    data: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(body)
    message = an_object(data)
    error = an_object(message.get("error"))
    is_rpc_error = message.get("jsonrpc") == "2.0" and isinstance(error.get("code"), int)
    if open_request is not None and "mcp-session-id" in request.headers:
        open_request.session_lost = status == _NOT_FOUND or (
            status == _BAD_REQUEST and b"session" in body.lower()
        )
    if is_rpc_error and status not in _OUTCOME_UNKNOWN:
        if open_request is not None:
            open_request.retry_after = wait
            open_request.sent = status not in _NOT_EXECUTED
            if wait is not None or open_request.session_lost:
                open_request.fault = _status_text(config, status, body)
        if number is None:
            return httpx.Response(202, request=request)
        return httpx.Response(
            200, json={"jsonrpc": "2.0", "id": number, "error": error}, request=request
        )
    if open_request is not None:
        open_request.retry_after = wait
        open_request.lost = status in _OUTCOME_UNKNOWN
    _set_fault(open_request, _status_text(config, status, body), sent=status not in _NOT_EXECUTED)
    if number is None:
        logger.debug("%s: a notification was refused: %s", config.name, status)
        return httpx.Response(202, request=request)
    code = _INTERNAL
    if status == _NOT_FOUND:
        code = _INVALID_REQUEST if "mcp-session-id" in request.headers else _METHOD_NOT_FOUND
    return _error(httpx, request, number, code, _status_text(config, status, body))


def _status_text(config: MCPServerConfig, status: int, body: bytes) -> str:
    text = shorten(release_text(body[:400].decode(errors="replace")).strip(), 200)
    more = f": {text}" if text and not text.lstrip().startswith("<") else ""
    remedy = ""
    if status in {401, 403}:
        has_credentials = config.auth or config.headers or config.header_provider
        remedy = (
            "; it rejected the credentials in headers=, header_provider= or auth="
            if has_credentials
            else "; pass credentials in headers=, header_provider= or auth= ('oauth' to log in)"
        )
    return f"it answered with HTTP status {status}{remedy}{more}"


def _exception_response(
    httpx: Any,
    config: MCPServerConfig,
    request: Any,
    number: Any,
    open_request: PendingRequest | None,
    error: Exception,
    pending: PendingRequests,
) -> Any:
    unsent_errors = (
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.PoolTimeout,
        httpx.UnsupportedProtocol,
        httpx.InvalidURL,
        httpx.LocalProtocolError,
    )
    if isinstance(error, httpx.RequestError) and (place := other_server(error, request.url)):
        error = LoginError(f"{place} cannot be reached for a login: {_reason(error)}")
    if isinstance(error, LoginError) and open_request is not None:
        open_request.status = 401  # the request is not sent again, as after this status
    sent = isinstance(error, httpx.TransportError) and not isinstance(error, unsent_errors)
    if isinstance(error, unsent_errors):
        why = f"it cannot be reached at {config.place}: {_reason(error)}"
    elif sent:
        why = f"the connection broke: {_reason(error)}"
    elif isinstance(error, LoginError):
        why = str(error)
    else:
        why = _reason(error)
    pending.fault = why
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
    return release_text(f"{text} ({name})" if text else name, limit=300)


def _set_fault(
    open_request: PendingRequest | None, fault: str, *, sent: bool | None = None
) -> None:
    if open_request is not None:
        open_request.fault = fault
        if sent is not None:
            open_request.sent = sent


def _error(httpx: Any, request: Any, number: Any, code: int, message: str) -> Any:
    body = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
    return httpx.Response(200 if number is not None else 202, json=body, request=request)


def _message_of(request: Any) -> Mapping[str, Any]:
    """Return the JSON-RPC message of a POST request; empty for any other request."""
    if request.method != "POST":
        return {}
    try:
        message: Any = from_json(request.content)
    except Exception:  # noqa: BLE001 - a form for an OAuth server, or a stream
        return {}
    fields = an_object(message)
    return fields if fields.get("jsonrpc") == "2.0" else {}


def _is_same_origin_redirect(request: Any, response: Any) -> bool:
    if response.status_code not in _SAME_METHOD_REDIRECTS:
        return False
    target = request.url.join(response.headers.get("location", ""))
    return (target.scheme, target.host, target.port) == (
        request.url.scheme,
        request.url.host,
        request.url.port,
    )


async def _body(response: Any, limit: int) -> bytes:
    """Read a body.

    Raises:
        ValueError: The body is longer than the limit, in bytes.
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
    """Return the seconds of a Retry-After header, which is a number or a date."""
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
