"""Divide the lists of a server into pages."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from agents_tools.mcp.server.requests import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["page_of"]


def page_of(names: Iterable[str], cursor: str | None, size: int) -> tuple[list[str], str | None]:
    """Return the names on one page, and the cursor of the next page; `None` on the last one.

    Args:
        names: All names, in order.
        cursor: The cursor of the page; `None` for the first one.
        size: The number of names on a page.

    Raises:
        RequestError: This server did not issue the cursor.
    """
    left = list(names)
    if cursor is not None:
        last = _read(cursor)
        left = [name for name in left if name > last]
    page = left[:size]
    if len(left) <= size:
        return page, None
    return page, base64.urlsafe_b64encode(f"after:{page[-1]}".encode()).decode()


def _read(cursor: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("after:"):
        raise RequestError(f"The cursor {cursor!r:.80} was not issued by this server.")
    return text.removeprefix("after:")
