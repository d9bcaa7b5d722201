"""Log in to an MCP server with OAuth: stored tokens, refreshes, and the user's browser.

The SDK's provider implements the protocol. This module adds what it leaves open: a store, a way to
reach the user, refreshes in a new process, and requests that do not wait for one another.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import re
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agents_tools.errors import UserError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.client.login_callback import LoginCallback
from agents_tools.mcp.client.login_errors import LOGIN_KEY, LoginError, other_server
from agents_tools.mcp.client.login_store import LoginRecord, LoginStore, LoginStoreBusyError
from agents_tools.server.browser import can_open_browser, open_browser
from agents_tools.server.host_rules import is_loopback
from agents_tools.text.output import release_text
from agents_tools.text.secrets import forget_secret, register_secret

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from agents_tools.mcp.client.pending_requests import PendingRequests
    from agents_tools.mcp.config import MCPServerConfig
    from agents_tools.mcp.oauth import OAuth

__all__ = ["OAuthLogin"]

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_NO_SERVER, _FAILED = {404, 405, 410}, 500
_FAILURE_TIME = 60.0
"""Seconds after a failed login in which the user is not asked again."""
_EXPIRED = 1.0
"""An expiry time in the past. Zero would mean that the expiry is unknown."""
_MARGIN = 10.0
"""Seconds before the end of a token's lifetime from which it is not used any more."""
_MIN_SECRET = 8
_STEP_TIMEOUT = 15.0
"""Seconds that each request to an authorization server can take."""
_MAX_BODY = 1 << 20
"""The maximum size of a response of an authorization server, in bytes."""
_LOGOUT_TIMEOUT = 10.0
"""Seconds that the revocation of tokens can take."""

_masked: dict[Path, set[str]] = {}
"""The masked secrets of each stored login: old ones are forgotten, or their number would grow."""


class OAuthLogin:
    """The login of one connection; `auth` is the auth object for its HTTP client.

    Requests use the stored token. If it has expired or the server refuses it, one request renews
    it while the others wait: with the refresh token, or else by asking the user. Every request is
    sent again at most once.

    Args:
        config: The configuration of the server, with `OAuth` options as `auth`.
        http: The HTTP library of the installed SDK.
        pending: Tracks the requests in flight; `None` without a connection.
        forced: Whether to ask the user although there is a stored login.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        http: Any,
        pending: PendingRequests | None = None,
        *,
        forced: bool = False,
    ) -> None:
        options: Any = config.auth
        self._config = config
        self._options: OAuth = options
        self._pending = pending
        self._http = http
        self._forced = forced
        self.store = LoginStore(config.url or "", self._options.storage)
        self._record: LoginRecord = self.store.load()
        discarded = an_object(self._record.get("tokens")) if forced else {}
        self._discarded: object = discarded.get("access_token")
        self._failure: tuple[float, LoginError] | None = None
        self._callback: LoginCallback | None = None
        self._page = ""
        self._lock = asyncio.Lock()
        self._types: Any = importlib.import_module("mcp.shared.auth")
        auth: Any = importlib.import_module("mcp.client.auth")
        self._registration_error: Any = auth.OAuthRegistrationError
        self._metadata: Any = self._types.OAuthClientMetadata(
            client_name=self._options.client_name,
            redirect_uris=["http://127.0.0.1/callback"],  # the port is set when it is known
            token_endpoint_auth_method="none",  # noqa: S106 - a program cannot keep a secret
            scope=" ".join(self._options.scopes) or None,
        )
        self._provider: Any = auth.OAuthClientProvider(
            server_url=config.url,
            client_metadata=self._metadata,
            storage=self,
            redirect_handler=self._keep_page,
            callback_handler=self._ask_user,
            client_metadata_url=self._options.client_metadata_url,
        )
        self._context: Any = self._provider.context
        self.auth: Any = http.Auth()
        self.auth.async_auth_flow = self._authorize
        self._restore()

    @property
    def has_token(self) -> bool:
        """Whether there is a token, valid or not."""
        return self._access_token() is not None

    async def log_in(self) -> bool:
        """Log in before the first message of a session, if the server requires it.

        The timeouts of the SDK do not apply here, and a person needs more time than they allow.

        Returns:
            Whether a login was required.

        Raises:
            LoginError: The login has failed.
        """
        before = self._access_token()
        is_stream = self._config.transport == "sse"
        headers = {
            **self._config.headers,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        message = {"jsonrpc": "2.0", "id": "login", "method": "ping"}
        status = 0
        timeout = self._http.Timeout(30.0, connect=self._config.connect_timeout)
        try:
            async with (
                self._http.AsyncClient(auth=self.auth, timeout=timeout) as client,
                client.stream(
                    "GET" if is_stream else "POST",
                    self._config.url,
                    headers=headers,
                    json=None if is_stream else message,
                    extensions={LOGIN_KEY: self._waiting},
                ) as response,
            ):
                status = response.status_code
        except self._http.RequestError as error:
            reason = release_text(str(error) or type(error).__name__, limit=300)
            if place := other_server(error, self._http.URL(self._config.url)):
                raise LoginError(f"{place} cannot be reached for a login: {reason}") from None
            if self._forced:  # otherwise the connection that follows reports it
                raise LoginError(
                    f"it cannot be reached at {self._config.place}: {reason}"
                ) from None
        was_required = self._access_token() != before
        if self._forced and not was_required and (status in _NO_SERVER or status >= _FAILED):
            raise LoginError(
                f"{self._config.place} is not an MCP server: expected a response to a ping, "
                f"got HTTP status {status}"
            )
        return was_required

    async def log_out(self) -> bool:
        """Delete the stored login, and revoke its tokens if the authorization server can.

        Returns:
            Whether there was a stored login.

        Raises:
            LoginStoreBusyError: Another program is logging in.
            UserError: The stored login cannot be deleted.
        """
        async with self.store.locked(_LOGOUT_TIMEOUT):
            with contextlib.suppress(self._http.HTTPError, TimeoutError):
                async with asyncio.timeout(_LOGOUT_TIMEOUT):
                    await self._revoke()
            return self.store.delete()

    async def _revoke(self) -> None:
        """Revoke the tokens (RFC 7009); a refusal is ignored, as the login is deleted anyway."""
        tokens, metadata = self._context.current_tokens, self._context.oauth_metadata
        url = str(getattr(metadata, "revocation_endpoint", None) or "")
        if tokens is None or not self._is_secure(url):
            return
        client_id = getattr(self._context.client_info, "client_id", "")
        async with self._http.AsyncClient() as client:
            for kind in ("refresh_token", "access_token"):
                if value := getattr(tokens, kind, None):
                    data = {"token": value, "token_type_hint": kind, "client_id": client_id}
                    data, headers = self._context.prepare_token_auth(data, {})
                    await client.post(url, data=data, headers=headers)

    def _waiting(self) -> contextlib.AbstractContextManager[None]:
        if self._pending is None:
            return contextlib.nullcontext()
        return self._pending.waiting_for_user(None)

    # --- the storage of the SDK's provider

    async def get_tokens(self) -> Any:
        """Return the tokens."""
        return self._context.current_tokens

    async def set_tokens(self, tokens: Any) -> None:
        """Store new tokens, with what a later process needs to refresh them."""
        self._record |= {
            "tokens": _dump(tokens),
            "client_id": getattr(self._context.client_info, "client_id", None),
            "expires_at": None if tokens.expires_in is None else time.time() + tokens.expires_in,
            "authorization_server": _dump(self._context.oauth_metadata),
            "resource": _dump(self._context.protected_resource_metadata),
        }
        self._discarded = None
        self.store.save(self._record)
        self._mask_secrets()

    async def get_client_info(self) -> Any:
        """Return the registration of the client."""
        return self._context.client_info

    async def set_client_info(self, client_info: Any) -> None:
        """Store the registration of the client."""
        self._record["client"] = _dump(client_info)
        self.store.save(self._record)
        self._mask_secrets()

    def _restore(self) -> None:
        """Copy the stored login into the provider."""
        context, types, record = self._context, self._types, self._record
        try:
            client = self._own_client() or _parse(
                types.OAuthClientInformationFull, record.get("client")
            )
            tokens = _parse(types.OAuthToken, record.get("tokens"))
            if tokens is not None and tokens.access_token == self._discarded:
                tokens = None
            if client is None or record.get("client_id") != client.client_id:
                tokens = None  # another client got them
            context.client_info = client
            context.oauth_metadata = _parse(types.OAuthMetadata, record.get("authorization_server"))
            resource = _parse(types.ProtectedResourceMetadata, record.get("resource"))
            expires = float(record.get("expires_at") or 0.0)
        except (ValueError, TypeError, AttributeError):  # of another version, or changed by hand
            self._record = {}
            self._restore()
            return
        context.protected_resource_metadata = resource
        if resource is not None:
            context.auth_server_url = str(resource.authorization_servers[0])
        context.current_tokens = tokens
        context.token_expiry_time = expires - _MARGIN if expires else None
        self._mask_secrets()

    def _own_client(self) -> Any:
        """Return the registration that the options name; `None` if the client registers itself."""
        options = self._options
        if options.client_id is None:
            return None
        return self._types.OAuthClientInformationFull(
            client_id=options.client_id,
            client_secret=options.client_secret,
            redirect_uris=self._metadata.redirect_uris,
            token_endpoint_auth_method="client_secret_basic" if options.client_secret else "none",
        )

    def _mask_secrets(self) -> None:
        """Mask the current tokens and secrets in all texts of the library."""
        tokens, client = self._context.current_tokens, self._context.client_info
        values = {
            getattr(tokens, "access_token", None),
            getattr(tokens, "refresh_token", None),
            getattr(client, "client_secret", None),
        }
        current = {value for value in values if value and len(value) >= _MIN_SECRET}
        before = _masked.get(self.store.path, set())
        _masked[self.store.path] = current
        for value in current - before:
            with contextlib.suppress(UserError):  # too long to be masked
                register_secret(value)
        for value in before - current:
            forget_secret(value)

    # --- requests

    def _access_token(self) -> str | None:
        tokens = self._context.current_tokens
        return None if tokens is None else tokens.access_token

    async def _authorize(self, request: Any) -> AsyncGenerator[Any, Any]:
        """Send a request with a token, and renew the token if necessary."""
        refusal: Any = None
        if self._context.is_token_valid() or not self._context.can_refresh_token():
            sent = self._add_token(request)
            refusal = yield request
            if not _is_refusal(refusal) or LOGIN_KEY not in request.extensions:
                return
        else:
            sent = self._access_token()
        with request.extensions.get(LOGIN_KEY, contextlib.nullcontext)():
            async with self._lock, contextlib.aclosing(self._renew(request, refusal, sent)) as flow:
                try:
                    outgoing = await anext(flow)
                    while True:
                        response = yield outgoing
                        if outgoing is request and not _is_refusal(response):
                            return
                        outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    pass
        self._add_token(request)
        yield request

    def _add_token(self, request: Any) -> str | None:
        tokens = self._context.current_tokens
        if tokens is None:
            request.headers.pop("Authorization", None)
            return None
        request.headers["Authorization"] = f"Bearer {tokens.access_token}"
        return tokens.access_token

    async def _renew(
        self, request: Any, refusal: Any, sent: str | None
    ) -> AsyncGenerator[Any, Any]:
        """Get a new token; yields the requests for it.

        Args:
            request: The request that needs the token. It is yielded only if nothing else can show
                whether the server requires a login.
            refusal: The response of the server to the request; `None` if it was not sent.
            sent: The token that has expired, or that the server has refused.

        Raises:
            LoginError: There is no new token.
        """
        try:
            async with self.store.locked(self._options.timeout):
                self._record = self.store.load()
                self._restore()
                if self._access_token() not in {None, sent}:
                    return  # another request or program has renewed the token
                self._check_last_failure()
                if refusal is not None and refusal.status_code == _UNAUTHORIZED:
                    # The provider then uses the refresh token before it asks the user.
                    self._context.token_expiry_time = _EXPIRED
                async with contextlib.aclosing(self._provider.async_auth_flow(request)) as flow:
                    outgoing = await anext(flow)
                    while outgoing is not request or self._access_token() in {None, sent}:
                        if outgoing is not request:
                            self._check_target(outgoing)
                            # The timeouts of the client are those of calls, which can take long.
                            timeout = self._http.Timeout(_STEP_TIMEOUT).as_dict()
                            outgoing.extensions = {**outgoing.extensions, "timeout": timeout}
                            response = yield outgoing
                        else:
                            response, refusal = refusal or (yield request), None
                            if _is_refusal(response):
                                self._prepare_login(request, response)
                        _limit_body(self._http, response)
                        outgoing = await flow.asend(response)
        except StopAsyncIteration:
            pass
        except self._http.HTTPError:
            raise
        except Exception as error:  # noqa: BLE001 - of the SDK, or about what a server has sent
            raise self._failed(error, request) from None
        finally:
            if self._callback is not None:
                self._callback.close()
                self._callback = None

    def _check_last_failure(self) -> None:
        """Do not ask the user again shortly after a failed login.

        Raises:
            LoginError: The failure.
        """
        if self._failure is not None and time.monotonic() - self._failure[0] < _FAILURE_TIME:
            raise self._failure[1]

    def _failed(self, error: Exception, request: Any) -> LoginError:
        """Return the failure of a login for an error, and keep it for the next requests."""
        if self._pending is not None:
            self._pending.http_status = _UNAUTHORIZED
        if self._failure is not None and error is self._failure[1]:
            return self._failure[1]
        if isinstance(error, LoginStoreBusyError):
            text = "another program has not finished its login to this server"
        elif isinstance(error, (LoginError, UserError)):
            text = str(error).rstrip(".")
        elif isinstance(error, self._registration_error):
            text = self._describe_registration(error)
        else:
            text = f"the login has failed: {_text_of(error)}"
        failure = LoginError(text)
        if LOGIN_KEY in request.extensions:  # else the user was not asked
            self._failure = (time.monotonic(), failure)
        return failure

    def _describe_registration(self, error: Exception) -> str:
        """Return why the client is not registered, which mostly is not the client's fault."""
        context = self._context
        if context.protected_resource_metadata is None and context.oauth_metadata is None:
            return "it requires credentials, but offers no login. Pass them in headers="
        place = release_text(str(context.auth_server_url or "").rstrip("/"), limit=200)
        if context.oauth_metadata is None:
            return f"the metadata of its authorization server {place} cannot be read"
        if context.oauth_metadata.registration_endpoint is None:
            return (
                f"its authorization server {place} does not register clients. Register one there, "
                "and pass OAuth(client_id=...)"
            )
        return f"the login has failed: {_text_of(error)}"

    # --- asking the user

    def _prepare_login(self, request: Any, refusal: Any) -> None:
        """Check that the user can be asked, and open the port for the answer of the browser."""
        place = self._config.place
        can_ask = self._options.interactive
        if can_ask is None:
            can_ask = can_open_browser() or _has_terminal()
        if not can_ask or LOGIN_KEY not in request.extensions:
            raise LoginError(
                "it requires a login, and this process has no browser or terminal for it. Run: "
                f"agents-tools mcp login {place}"
            )
        if self._options.scopes and refusal.status_code == _UNAUTHORIZED:
            _replace_scope(refusal, " ".join(self._options.scopes))
        client = self._context.client_info
        registered = _port_of(client) if self._options.client_id is None else None
        port = self._options.redirect_port or registered
        self._callback = LoginCallback(port, fallback=self._options.redirect_port is None)
        uri = self._callback.redirect_uri
        if registered is not None and registered != urlsplit(uri).port:
            self._context.client_info = None  # registered for a port that is not available
        self._metadata.redirect_uris = self._types.OAuthClientMetadata(
            redirect_uris=[uri]
        ).redirect_uris

    async def _keep_page(self, url: str) -> None:
        """Keep the page for the login until the provider waits for its answer."""
        self._page = url

    async def _ask_user(self) -> Any:
        """Open the page for the login, and return the answer of the authorization server.

        Raises:
            LoginError: The login was denied, or has not ended in time.
        """
        page, callback, seconds = self._page, self._callback, self._options.timeout
        if callback is None or not page.isprintable() or not self._is_secure(page):
            raise LoginError("its authorization server names an invalid page for the login")
        try:
            async with (
                asyncio.timeout(seconds),
                callback.listening(page) as answer,
                open_browser(page) if can_open_browser() else contextlib.nullcontext(),
            ):
                print(  # noqa: T201 - standard error, which is where the user is reached
                    f"To log in to MCP server {self._config.name!r}, open this page in a "
                    f"browser:\n{page}",
                    file=sys.stderr,
                    flush=True,
                )
                code, state, issuer = await answer
        except TimeoutError:
            raise LoginError(f"the login was not completed within {seconds:g} s") from None
        result: Any = getattr(self._types, "AuthorizationCodeResult", None)
        return (code, state) if result is None else result(code=code, state=state, iss=issuer)

    def _check_target(self, request: Any) -> None:
        """Refuse to send secrets over an unprotected connection.

        Raises:
            LoginError: The URL is neither https nor, for a server on loopback, http on loopback.
        """
        if not self._is_secure(str(request.url)):
            place = release_text(f"{request.url.scheme}://{request.url.host}", limit=200)
            raise LoginError(
                f"its authorization server {place} has no secure address: expected https"
            )

    def _is_secure(self, url: str) -> bool:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return True
        own = urlsplit(self._config.url or "").hostname or ""
        return parts.scheme == "http" and is_loopback(parts.hostname or "") and is_loopback(own)


def _text_of(error: Exception) -> str:
    return release_text(str(error) or type(error).__name__, limit=300, patterns=True)


def _dump(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _parse(kind: Any, value: Any) -> Any:
    return None if value is None else kind.model_validate(value)


def _is_refusal(response: Any) -> bool:
    """Return whether a server demands a login, or one with more permissions."""
    challenge = response.headers.get("www-authenticate", "")
    if response.status_code == _FORBIDDEN:
        return re.search(r'error="?insufficient_scope\b', challenge) is not None
    return bool(response.status_code == _UNAUTHORIZED)


def _limit_body(http: Any, response: Any) -> None:
    """Limit the size of a body that the provider reads, and the time in which it has to arrive."""
    base: Any = http.AsyncByteStream
    stream = response.stream
    end = time.monotonic() + _STEP_TIMEOUT

    class LimitedStream(base):  # type: ignore[misc] # the base class depends on the SDK
        async def __aiter__(self) -> Any:
            size = 0
            async for piece in stream:
                size += len(piece)
                if size > _MAX_BODY or time.monotonic() > end:
                    raise LoginError(
                        f"a response to its login is longer than {_MAX_BODY:,} bytes, or takes "
                        f"more than {_STEP_TIMEOUT:g} s"
                    )
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    if not response.is_stream_consumed:
        response.stream = LimitedStream()


def _replace_scope(response: Any, scope: str) -> None:
    """Replace the scopes in the challenge of a server: the provider requests them."""
    challenge = response.headers.get("www-authenticate", "Bearer")
    without = re.sub(r',?\s*\bscope=(?:"[^"]*"|[^\s,]+)', "", challenge)
    separator = " " if without.strip().lower() == "bearer" else ", "
    response.headers["www-authenticate"] = f'{without}{separator}scope="{scope}"'


def _port_of(client: Any) -> int | None:
    """Return the port of a registered redirect URI."""
    for uri in getattr(client, "redirect_uris", None) or ():
        return urlsplit(str(uri)).port
    return None


def _has_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison] - it may be closed
