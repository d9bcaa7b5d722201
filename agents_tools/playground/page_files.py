"""The files of the page of the playground, and the headers that protect the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.server.static_files import StaticFile, read_files

if TYPE_CHECKING:
    from starlette.types import Message, Send

__all__ = ["SECURITY_HEADERS", "pages", "secured"]

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


def pages() -> dict[str, StaticFile]:
    """Return all files of the page, by their paths on the server."""
    found = {
        f"/static/{name}": file
        for name, file in read_files("agents_tools.playground", "static").items()
    }
    if "/static/index.html" in found:
        found["/"] = found["/static/index.html"]
    return found


def secured(send: Send) -> Send:
    """Return a `send` that adds security headers to each response."""

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in SECURITY_HEADERS}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            message = {**message, "headers": [*kept, *SECURITY_HEADERS]}
        await send(message)

    return send_secured
