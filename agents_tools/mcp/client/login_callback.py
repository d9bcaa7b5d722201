"""The end of a login in the browser: a listener on loopback that receives the user's answer."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import html
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.responses import Response

from agents_tools.errors import UserError
from agents_tools.mcp.client.login_errors import LoginError
from agents_tools.server.application import Application
from agents_tools.server.listener import bound_socket, serve_app, url_of
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator

    from agents_tools.server.application import HttpRequest

__all__ = ["LoginAnswer", "LoginCallback"]

_HOST = "127.0.0.1"
_PATH = "/callback"


class LoginAnswer(NamedTuple):
    """The answer of the authorization server: the parameters of its redirect.

    Attributes:
        code: The authorization code.
        state: The state of the request.
        issuer: The issuer, if the authorization server sends it (RFC 9207).
    """

    code: str
    state: str
    issuer: str | None


class LoginCallback:
    """A loopback port to which the browser returns after a login.

    Args:
        port: The port to use; `None` for a free one.
        fallback: Whether a free port can be used if the port is not free.

    Raises:
        LoginError: The port is not free.
    """

    def __init__(self, port: int | None, *, fallback: bool) -> None:
        self._socket = _bound(port, fallback=fallback)
        self.redirect_uri = url_of(_HOST, self._socket) + _PATH

    def close(self) -> None:
        """Free the port."""
        self._socket.close()

    @contextlib.asynccontextmanager
    async def listening(
        self, authorization_url: str
    ) -> AsyncGenerator[asyncio.Future[LoginAnswer]]:
        """Listen while the block runs.

        Only an answer with the state of the request counts. Others, such as those of a web page
        that guesses the port, are refused, and the wait goes on.

        Args:
            authorization_url: The page for the login, which contains the state.

        Yields:
            The answer. It fails with `LoginError` if the login was denied.
        """
        [state] = parse_qs(urlsplit(authorization_url).query).get("state") or [""]
        answer: asyncio.Future[LoginAnswer] = asyncio.get_running_loop().create_future()
        app = Application({("GET", _PATH): _Handler(state, answer)}, host=_HOST)
        serving = asyncio.create_task(
            serve_app(app, self._socket, lifespan="off", shutdown_timeout=1), name="mcp login"
        )
        serving.add_done_callback(partial(_end_wait, answer))
        try:
            yield answer
        finally:
            serving.cancel()
            await asyncio.wait({serving})
            if answer.done() and not answer.cancelled():
                answer.exception()  # the block may have ended without it


def _end_wait(answer: asyncio.Future[LoginAnswer], serving: asyncio.Task[None]) -> None:
    """End the wait for an answer if nothing listens for it any more."""
    if not answer.done():
        reason = None if serving.cancelled() else serving.exception()
        text = f": {release_text(str(reason), limit=200)}" if reason is not None else ""
        answer.set_exception(LoginError(f"the answer of the browser cannot be received{text}"))


class _Handler:
    """Answers the browser, and resolves the answer.

    Args:
        state: The expected state.
        answer: The answer to resolve.
    """

    def __init__(self, state: str, answer: asyncio.Future[LoginAnswer]) -> None:
        self._state = state
        self._answer = answer

    async def __call__(self, request: HttpRequest) -> Response:
        query = request.query_params
        given = query.get("state", "")
        if not self._state or not hmac.compare_digest(given.encode(), self._state.encode()):
            return _page(
                "This answer is not for the login that is in progress", "Start it again.", 400
            )
        if self._answer.done():
            return _page("This login has already ended", "You can close this window.", 400)
        problem = query.get("error")
        code = query.get("code")
        if problem is not None or not code:
            more = query.get("error_description", "")
            facts = [release_text(text, limit=200) for text in (problem or "no code", more) if text]
            self._answer.set_exception(
                LoginError(f"the authorization server refused the login: {': '.join(facts)}")
            )
            return _page("The login was refused", ": ".join(facts), 400)
        self._answer.set_result(LoginAnswer(code, given, query.get("iss")))
        return _page("You are logged in", "You can close this window.", 200)


def _bound(port: int | None, *, fallback: bool) -> socket.socket:
    try:
        return bound_socket(_HOST, port or 0)
    except UserError:
        if port is None or not fallback:
            raise LoginError(
                f"the port {port} for the answer of the browser is not free. Close the program "
                "that uses it, or set another redirect_port="
            ) from None
    return bound_socket(_HOST, 0)


def _page(title: str, text: str, status: int) -> Response:
    """Return a page without scripts or foreign content."""
    content = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>"
        "<style>body{font:1.1rem system-ui,sans-serif;margin:20vh auto;max-width:36rem;"
        "padding:0 1rem;color-scheme:light dark}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></html>"
    )
    headers = {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return Response(content, status, headers, media_type="text/html")
