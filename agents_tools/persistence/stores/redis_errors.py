"""Translate errors of a Redis server, and format its address without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import EventStoreCorruptError, EventStoreError, EventStoreFullError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["address_of", "refusal_error", "without_password"]

_REMEDIES: Final[tuple[tuple[tuple[str, ...], type[EventStoreError], str], ...]] = (
    (
        ("AuthenticationError", "NOAUTH", "WRONGPASS"),
        EventStoreError,
        "Pass the user and the password in the address: redis://user:password@host:6379/0.",
    ),
    (
        ("OutOfMemoryError", "OOM", "command not allowed when used"),
        EventStoreFullError,
        "Give the server more memory (maxmemory), or delete old logs with retain() or ttl=.",
    ),
    (
        ("ReadOnlyError", "READONLY", "read only replica"),
        EventStoreFullError,
        "The server is a replica. Pass the address of its primary server.",
    ),
    (
        ("NoPermissionError", "NOPERM"),
        EventStoreFullError,
        "Grant the permission (ACL SETUSER), or pass another user in the address.",
    ),
    (("MISCONF",), EventStoreFullError, "Check the disk and the log of the server."),
    (("NOREPLICAS",), EventStoreFullError, "Check the replicas of the server."),
    (
        ("WRONGTYPE",),
        EventStoreCorruptError,
        "Another program writes to these keys. Use another prefix=.",
    ),
    (("nknown command", "nknown Redis command"), EventStoreError, "Use Redis 5 or later."),
)
"""For each kind of error: class names or parts of its text, the store error, and the remedy."""


def refusal_error(error: Exception, address: str) -> EventStoreError:
    """Return the store error for a command that the server refused.

    Args:
        error: The error that the package `redis` raised.
        address: The address of the server.
    """
    text = str(error).rstrip(".")
    searched = " ".join([*(kind.__name__ for kind in type(error).__mro__), text])
    for markers, kind, remedy in _REMEDIES:
        if any(marker in searched for marker in markers):
            return kind(f"Redis at {address} refused a command: {text}. {remedy}", store=address)
    return EventStoreError(f"Redis at {address} refused a command: {text}.", store=address)


def address_of(settings: Mapping[str, Any], *, is_secure: bool) -> str:
    """Return the address of a server without user and password.

    Args:
        settings: The settings of the connections.
        is_secure: Whether the connections use TLS.
    """
    if path := settings.get("path"):
        return f"unix://{path}"
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"{'rediss' if is_secure else 'redis'}://{host}:{port}/{settings.get('db') or 0}"


def without_password(url: str) -> str:
    """Return an address without its credentials, also if it is invalid."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]
