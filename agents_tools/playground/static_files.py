"""The files of the page: a fixed table, so that no request names a file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import Response

from agents_tools.server.application import empty_response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    from starlette.types import Message, Send

    from agents_tools.server.application import Handler, HttpRequest

__all__ = ["SECURITY_HEADERS", "StaticFile", "handlers_of", "pages", "secured"]

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
"""The pattern for the names of served files."""

SECURITY_HEADERS = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
            b"connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """One file of the page.

    Attributes:
        data: The content.
        kind: The content type.
        etag: The ETag, derived from the content.
    """

    data: bytes
    kind: str
    etag: str


def pages() -> dict[str, StaticFile]:
    """Return all files of the page, by their paths on the server."""
    found: dict[str, StaticFile] = {}
    for entry in files("agents_tools.playground").joinpath("static").iterdir():
        page = _page(entry)
        if page is not None:
            found[f"/static/{entry.name}"] = page
    if "/static/index.html" in found:
        found["/"] = found["/static/index.html"]
    return found


def handlers_of(table: Mapping[str, StaticFile]) -> dict[tuple[str, str], Handler]:
    """Return the handler of each file."""
    return {
        (method, path): _handler(page) for path, page in table.items() for method in ("GET", "HEAD")
    }


def secured(send: Send) -> Send:
    """Return a `send` that adds security headers to each response."""

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in SECURITY_HEADERS}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            message = {**message, "headers": [*kept, *SECURITY_HEADERS]}
        await send(message)

    return send_secured


def _page(entry: Traversable) -> StaticFile | None:
    kind = _KINDS.get(f".{entry.name.rpartition('.')[2]}")
    if kind is None or not entry.is_file():
        return None
    data = entry.read_bytes()
    return StaticFile(data=data, kind=kind, etag=f'"{hashlib.sha256(data).hexdigest()[:24]}"')


def _handler(page: StaticFile) -> Handler:
    # Browsers can cache it, but must revalidate it: the next release can have other files.
    headers = {"etag": page.etag, "cache-control": "no-cache"}

    async def answer(request: HttpRequest) -> Response:
        known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
        if page.etag in known or f"W/{page.etag}" in known:
            return empty_response(304, headers)
        data = b"" if request.method == "HEAD" else page.data
        return Response(data, headers=headers, media_type=page.kind)

    return answer
