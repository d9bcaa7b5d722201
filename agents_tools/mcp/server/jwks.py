"""The key set (JWKS) of an authorization server: fetched on use, cached, and fetched again."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from typing import Any, cast
from urllib.parse import urlsplit

from agents_tools.concurrency.fair_lock import FairLock, LockTicket
from agents_tools.errors import UserValueError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._sdk import sdk_http
from agents_tools.server.host_rules import is_loopback
from agents_tools.server.http_security import RequestRefused
from agents_tools.text.json_limits import check_bounds
from agents_tools.text.output import release_text

__all__ = ["KeySet"]

logger = logging.getLogger("agents_tools.mcp")

_CACHE_TIME = 600.0
"""Seconds after which the keys are fetched again."""
_RETRY_TIME = 30.0
"""Seconds for which cached keys are used on after they could not be fetched again."""
_MAX_FETCHES, _FETCH_WINDOW = 5, 60.0
"""The largest number of fetches within a number of seconds: tokens can name any unknown key."""
_TIMEOUT = 10.0
"""Seconds that a fetch can take."""
_MAX_SIZE = 1 << 20
"""The maximum size of a key set, in bytes."""
_MAX_CANDIDATES = 16
"""The maximum number of keys that are tried for a token without a key id."""


class KeySet:
    """The public keys of an issuer, from their URL. Can be used on several event loops.

    Args:
        url: The URL; `None` to read it from the metadata of the issuer.
        issuer: The issuer, whose metadata is at its well-known URL; used without `url`.

    Raises:
        UserValueError: The URL is not https, or http on loopback.
    """

    def __init__(self, url: str | None, issuer: str) -> None:
        option, source = ("issuer", issuer) if url is None else ("jwks_url", url)
        if not is_secure(source):
            raise UserValueError(
                f"JWTVerifier({option}=...) expects an https URL, or http on loopback, got "
                f"{source!r:.200}. Keys from an unprotected connection can be forged."
            )
        self._url = url
        self._issuer = issuer
        self._keys: list[dict[str, Any]] | None = None
        self._expires = 0.0
        self._attempts = 0
        self._fetches: deque[float] = deque(maxlen=_MAX_FETCHES)
        self._lock = FairLock[bool]()
        self._lock.put(True)

    async def find(self, kid: str | None, kind: str) -> list[dict[str, Any]]:
        """Return the keys that a token can be signed with.

        Args:
            kid: The id of the key; `None` if the token does not name one.
            kind: The type of the key (`kty`).

        Raises:
            RequestRefused: There are no keys, because they cannot be fetched.
        """
        keys = self._keys
        if keys is None or time.monotonic() > self._expires:
            keys = await self._fetch_once()
        found = _matching(keys, kid, kind)
        if not found and kid is not None and self._can_fetch():
            found = _matching(await self._fetch_once(), kid, kind)
        return found

    def _can_fetch(self) -> bool:
        full = len(self._fetches) == _MAX_FETCHES
        return not full or time.monotonic() - self._fetches[0] > _FETCH_WINDOW

    async def _fetch_once(self) -> list[dict[str, Any]]:
        """Fetch the keys, unless another call does so meanwhile, and return them.

        The cached keys are returned if they cannot be fetched again.
        """
        before = self._attempts
        held = await self._lock.take(LockTicket())
        try:
            if self._attempts == before and self._can_fetch():
                self._fetches.append(time.monotonic())
                await self._fetch()
                self._attempts += 1
        finally:
            if held:
                self._lock.put(True)
        if self._keys is None:
            raise RequestRefused(
                503,
                "Tokens cannot be verified at the moment: the keys of the authorization server "
                "are not available. Try again later.",
                {"Retry-After": "10"},
            )
        return self._keys

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT):
                url = await _discover(self._issuer) if self._url is None else self._url
                self._keys = await _download_keys(url)
        except (OSError, ValueError, RecursionError) as error:
            self._expires = time.monotonic() + _RETRY_TIME
            reason = release_text(str(error) or type(error).__name__, limit=300)
            source = f"of {self._issuer}" if self._url is None else self._url
            logger.warning("The key set %s cannot be fetched: %s", source, reason)
        else:
            self._expires = time.monotonic() + _CACHE_TIME


def is_secure(url: str) -> bool:
    """Return whether a URL is https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def _matching(keys: list[dict[str, Any]], kid: str | None, kind: str) -> list[dict[str, Any]]:
    found = [
        key
        for key in keys
        if key.get("kty") == kind
        and key.get("use", "sig") == "sig"
        and (kid is None or key.get("kid") == kid)
    ]
    return found[:_MAX_CANDIDATES]


async def _discover(issuer: str) -> str:
    """Return the URL of the keys, from the metadata of an issuer.

    RFC 8414 puts the well-known part before the path of the issuer, OpenID Connect Discovery 1.0
    after it.

    Raises:
        OSError: The issuer cannot be reached.
        ValueError: It has no metadata, or they are not its own or name no keys.
    """
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    places = [f"/.well-known/oauth-authorization-server{path}"]
    places.append(f"{path}/.well-known/openid-configuration")
    problems: list[str] = []
    for place in places:
        url = f"{parts.scheme}://{parts.netloc}{place}"
        try:
            metadata = await _download(url)
        except ValueError as error:
            problems.append(f"{url}: {error}")
            continue
        keys = metadata.get("jwks_uri")
        if metadata.get("issuer") != issuer:
            problems.append(f"{url}: its issuer is another one")
        elif not isinstance(keys, str) or not is_secure(keys):
            problems.append(f"{url}: it names no key set (jwks_uri)")
        else:
            return keys
    raise ValueError("; ".join(problems))


async def _download_keys(url: str) -> list[dict[str, Any]]:
    """Return the keys at a URL.

    Raises:
        OSError: The server cannot be reached.
        ValueError: The response is not a key set.
    """
    keys = (await _download(url)).get("keys")
    if not isinstance(keys, list):
        raise ValueError('it has no list "keys"')  # noqa: TRY004 - the content is wrong
    return [
        cast("dict[str, Any]", key) for key in cast("list[object]", keys) if isinstance(key, dict)
    ]


async def _download(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL; an empty one for other JSON.

    Raises:
        OSError: The server cannot be reached.
        ValueError: The response is not JSON, or too long.
    """
    http: Any = sdk_http()
    pieces: list[bytes] = []
    size = 0
    try:
        async with (
            http.AsyncClient(timeout=_TIMEOUT, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != 200:  # noqa: PLR2004 - OK
                raise ValueError(f"it answered with HTTP status {response.status_code}")
            async for piece in response.aiter_bytes():
                size += len(piece)
                if size > _MAX_SIZE:
                    raise ValueError(f"it is longer than {_MAX_SIZE:,} bytes")
                pieces.append(piece)
    except http.HTTPError as error:
        raise OSError(str(error) or type(error).__name__) from error
    text = b"".join(pieces).decode()
    check_bounds(text)
    return an_object(json.loads(text))
