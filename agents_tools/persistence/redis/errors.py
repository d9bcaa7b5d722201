"""Convert errors of a Redis server, and format its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import EventStoreCorruptError, EventStoreError, EventStoreFullError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["address_of", "refusal", "without_password"]

_REMEDIES: Final[tuple[tuple[tuple[str, ...], type[EventStoreError], str], ...]] = (
    (
        ("AuthenticationError", "NOAUTH", "WRONGPASS"),
        EventStoreError,
        "Put user and password in the address: redis://user:password@host:6379/0.",
    ),
    (
        ("OutOfMemoryError", "OOM", "command not allowed when used"),
        EventStoreFullError,
        "Increase its memory (maxmemory), or limit the logs with maxlen= or ttl=.",
    ),
    (
        ("ReadOnlyError", "READONLY", "read only replica"),
        EventStoreFullError,
        "It is a replica: pass the address of its primary server.",
    ),
    (
        ("NoPermissionError", "NOPERM"),
        EventStoreFullError,
        "Allow the command for the user (ACL SETUSER), or use another user in the address.",
    ),
    (("MISCONF",), EventStoreFullError, "Check the disk and the log file of the server."),
    (("NOREPLICAS",), EventStoreFullError, "Check its replicas."),
    (
        ("WRONGTYPE",),
        EventStoreCorruptError,
        "Another program uses these keys: use another prefix=.",
    ),
    (("nknown command", "nknown Redis command"), EventStoreError, "Update it to Redis 5 or newer."),
)
"""The patterns of each error, its class in this package, and the remedy."""


def refusal(error: Exception, address: str) -> EventStoreError:
    """Return the store error for an error reply of the server.

    Args:
        error: The exception of the package `redis`.
        address: The address of the server.
    """
    text = str(error)
    known = " ".join([*(kind.__name__ for kind in type(error).__mro__), text])
    for signs, kind, remedy in _REMEDIES:
        if any(sign in known for sign in signs):
            return kind(f"Redis at {address} refuses: {text} {remedy}", store=address)
    return EventStoreError(f"Redis at {address} refuses: {text}", store=address)


def address_of(settings: Mapping[str, Any], *, is_secure: bool) -> str:
    """Return the address of a server without credentials.

    Args:
        settings: The settings of the connections.
        is_secure: Whether they use TLS.
    """
    if path := settings.get("path"):
        return f"unix://{path}"
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"{'rediss' if is_secure else 'redis'}://{host}:{port}/{settings.get('db') or 0}"


def without_password(url: str) -> str:
    """Return an address without its password, also if the address is invalid."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]
