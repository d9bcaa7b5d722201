"""The Starlette application behind the HTTP endpoints of the library."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

from agents_tools._package import missing_extra
from agents_tools.errors import UserError

try:
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect, HTTPConnection, Request
    from starlette.responses import Response
    from starlette.routing import Match, Route
except ImportError as error:
    raise missing_extra("An HTTP endpoint of agents_tools", "ui", error) from error

from agents_tools.server.http_errors import HttpError, json_kind, shown
from agents_tools.server.http_security import (
    PRINCIPAL_KEY,
    Principal,
    SecuredApp,
    check_binding,
    inner_path,
)
from agents_tools.server.safe_json import written
from agents_tools.text.json_limits import JsonFault, JsonLimits, check_bounds, check_keys

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from agents_tools.server.http_security import SecurityOptions, TokenVerifier

__all__ = [
    "Application",
    "Handler",
    "HttpRequest",
    "JsonResponse",
    "empty_response",
    "error_response",
    "read_json",
    "unrouted_error",
]

_CREDENTIALS = frozenset({b"authorization", b"cookie", b"proxy-authorization"})


class HttpRequest(Request):
    """A `starlette.requests.Request` that has the caller, and hides credentials among its headers.

    `json()` reads the body within the limits of the library.
    """

    _shown_headers: Headers | None = None

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; `None` if the app requires no token."""
        state: Any = self.scope.get("state") or {}
        found: object = state.get(PRINCIPAL_KEY)
        return found if isinstance(found, Principal) else None

    @property
    def headers(self) -> Headers:
        """The headers without those that hold credentials.

        Tools often get the request. Read cookies from `cookies`, the token from `principal.token`.
        """
        if self._shown_headers is None:
            raw = [pair for pair in self.scope["headers"] if pair[0].lower() not in _CREDENTIALS]
            self._shown_headers = Headers(raw=raw)
        return self._shown_headers

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies."""
        return HTTPConnection(self.scope).cookies

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


Handler: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]
"""A function that answers a request."""


class Application(Starlette):
    """A Starlette application with routes, behind the checks of `SecuredApp`.

    Args:
        routes: Handlers by method and path, such as `("GET", "/runs/{id}")`.
        endpoints: ASGI apps by path. They answer all methods.
        on_start: Called when the server starts, if it supports lifespan events; sync or async.
        on_stop: Called when the server stops, and by `aclose`; sync or async.
        host: The address that the server listens on. Addresses other than loopback need `auth`.
        auth: A bearer token or a token verifier; `None` to require no token.
        **security: Other options of `SecuredApp`.

    Raises:
        UserError: An option is invalid.
    """

    def __init__(
        self,
        routes: Mapping[tuple[str, str], Handler],
        *,
        endpoints: Mapping[str, ASGIApp] | None = None,
        on_start: Callable[[], Any] | None = None,
        on_stop: Callable[[], Any] | None = None,
        host: str = "127.0.0.1",
        auth: str | TokenVerifier | None = None,
        **security: Unpack[SecurityOptions],
    ) -> None:
        check_binding(host, auth=auth, setting="auth")
        is_local = auth is None and not security.get("allowed_hosts")
        secured = partial(SecuredApp, host=host, auth=auth, local_only=is_local, **security)
        secured(_unused)  # an invalid option is an error now, not at the first request
        self._on_start = on_start
        self._on_stop = on_stop
        super().__init__(
            routes=[
                *(_route(method, path, handler) for (method, path), handler in routes.items()),
                *(Route(path, _AsgiEndpoint(app)) for path, app in (endpoints or {}).items()),
            ],
            middleware=[Middleware(secured)],
            exception_handlers={
                HttpError: _answer_error,
                UserError: _answer_user_error,
                HTTPException: self._answer_unrouted,
                ClientDisconnect: _answer_disconnect,
            },
            lifespan=self.lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a lifespan event.

        A slash at the end of a path has no meaning: a redirect would lose the body of a POST.
        """
        if scope["type"] == "http":
            root = str(scope.get("root_path", "")).rstrip("/")
            path = inner_path(scope).rstrip("/") or "/"
            scope = {**scope, "root_path": root, "path": root + path}
        await super().__call__(scope, receive, send)

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

    async def _answer_unrouted(self, request: Request, error: Exception) -> Response:
        """Answer a request that no route accepts with the routes that exist."""
        del error
        routes = _routes(self)
        matching = [route for route in routes if route.matches(request.scope)[0] != Match.NONE]
        return error_response(
            unrouted_error(
                request,
                [name for route in matching for name in route.methods or ()],
                [(name, route.path) for route in routes for name in route.methods or ("ANY",)],
            )
        )


def _routes(app: Starlette) -> list[Route]:
    return [route for route in app.routes if isinstance(route, Route)]


def unrouted_error(
    request: Request, allowed: Iterable[str], routes: Iterable[tuple[str, str]]
) -> HttpError:
    """Return the error for a request that no route accepts.

    Args:
        request: The request.
        allowed: The methods of the routes that accept its path.
        routes: All routes: their methods and paths.
    """
    path, methods = shown(inner_path(request.scope)), ", ".join(sorted(set(allowed)))
    if methods:
        message = f"{path} does not support {shown(request.method)}: expected {methods}."
        return HttpError(405, message, {"Allow": methods})
    known = ", ".join(f"{method} {route}" for method, route in routes if method != "HEAD")
    return HttpError(404, f"The path {path} does not exist. Routes: {known}.")


async def _unused(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand for the app while the options of `SecuredApp` are checked."""


def _route(method: str, path: str, handler: Handler) -> Route:
    route = Route(path, _Endpoint(handler), methods=[method])
    route.methods = {method}  # Starlette adds HEAD to GET, but a stream has no end to wait for
    return route


class _Endpoint:
    """An ASGI app that answers with the response of a handler.

    Args:
        handler: The handler.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._handler(HttpRequest(scope, receive, send))
        await response(scope, receive, send)


class _AsgiEndpoint:
    """An ASGI app as the endpoint of a route. Starlette reads a plain function as a handler.

    Args:
        app: The ASGI app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


# --- responses


class JsonResponse(Response):
    """A response with any value that `written` can serialize as JSON."""

    media_type = "application/json"

    def __init__(
        self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        own = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        super().__init__(value, status, {**own, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Return the value as JSON."""
        return written(content)


def empty_response(status: int = 204, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response without a body."""
    response = Response(None, status, headers)
    if status in {204, 304} and "content-length" in response.headers:
        del response.headers["content-length"]
    return response


def error_response(error: HttpError) -> Response:
    """Return the response that describes an error."""
    body = {"status": error.status, "message": error.message, **error.facts}
    return JsonResponse({"error": body}, error.status, error.headers)


async def _answer_error(_: Request, error: Exception) -> Response:
    return error_response(cast("HttpError", error))


async def _answer_user_error(_: Request, error: Exception) -> Response:
    return error_response(HttpError(422, str(error)))


async def _answer_disconnect(_: Request, __: Exception) -> Response:
    message = "The connection was closed before the body was complete."
    return error_response(HttpError(400, message))


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


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


async def _call(function: Callable[[], Any] | None) -> None:
    """Call a sync or async function."""
    if function is not None:
        result = function()
        if hasattr(result, "__await__"):
            await result
