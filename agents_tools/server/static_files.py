"""Serve files of the package from a fixed table, so that no request names a file."""

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

    from agents_tools.server.application import Handler, HttpRequest

__all__ = ["StaticFile", "handlers_of", "read_files"]

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
"""The content types of the files that are served, by the ends of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file that is served.

    Attributes:
        data: The content.
        kind: The content type.
        etag: The ETag, derived from the content.
    """

    data: bytes
    kind: str
    etag: str


def read_files(package: str, folder: str) -> dict[str, StaticFile]:
    """Return the files of a folder by their names. Files of unknown kinds are left out.

    Args:
        package: The dotted name of a package.
        folder: The name of a folder in it.
    """
    entries = files(package).joinpath(folder).iterdir()
    found = {entry.name: _read(entry) for entry in entries}
    return {name: file for name, file in found.items() if file is not None}


def handlers_of(table: Mapping[str, StaticFile]) -> dict[tuple[str, str], Handler]:
    """Return the handlers by method and path of files by path."""
    return {
        (method, path): _handler(file) for path, file in table.items() for method in ("GET", "HEAD")
    }


def _read(entry: Traversable) -> StaticFile | None:
    kind = _KINDS.get(f".{entry.name.rpartition('.')[2]}")
    if kind is None or not entry.is_file():
        return None
    data = entry.read_bytes()
    return StaticFile(data=data, kind=kind, etag=f'"{hashlib.sha256(data).hexdigest()[:24]}"')


def _handler(file: StaticFile) -> Handler:
    # Browsers can cache it, but must revalidate it: the next release can have other files.
    headers = {"etag": file.etag, "cache-control": "no-cache"}

    async def answer(request: HttpRequest) -> Response:
        known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
        if file.etag in known or f"W/{file.etag}" in known:
            return empty_response(304, headers)
        data = b"" if request.method == "HEAD" else file.data
        return Response(data, headers=headers, media_type=file.kind)

    return answer
