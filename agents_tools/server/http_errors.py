"""The error that a handler raises to answer a request, and values of clients in its message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HttpError", "json_kind", "shown"]

_MAX_SHOWN = 100


class HttpError(Exception):
    """Raised to answer a request with `{"error": {"status", "message"}}`.

    Args:
        status: The HTTP status.
        message: The problem, its location and the remedy.
        headers: The headers of the response.
        **facts: Other fields of the error, for programs.
    """

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.facts = facts


def json_kind(value: object) -> str:
    """Return the name of the type of a JSON value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


def shown(value: object, length: int = _MAX_SHOWN) -> str:
    """Return a value of a client as it appears in a message: shortened and escaped."""
    return release_text(repr(release_text(str(value), to="program", limit=length)))
