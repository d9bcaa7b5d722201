"""What a Redis server and its address are called, and what its errors mean for a log."""

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
        "Give user and password in the address: redis://user:password@host:6379/0.",
    ),
    (
        ("OutOfMemoryError", "OOM", "command not allowed when used"),
        EventStoreFullError,
        "Give it more memory (maxmemory), or bound the logs with maxlen= or ttl=.",
    ),
    (
        ("ReadOnlyError", "READONLY", "read only replica"),
        EventStoreFullError,
        "It is a replica: give the address of the server that it copies.",
    ),
    (
        ("NoPermissionError", "NOPERM"),
        EventStoreFullError,
        "Allow it to the user (ACL SETUSER), or give another one in the address.",
    ),
    (("MISCONF",), EventStoreFullError, "Look at the disk and the log of the server."),
    (("NOREPLICAS",), EventStoreFullError, "Look at its replicas."),
    (
        ("WRONGTYPE",),
        EventStoreCorruptError,
        "Something else writes under these keys: use another prefix=.",
    ),
    (("nknown command", "nknown Redis command"), EventStoreError, "It has to be Redis 5 or newer."),
)
"""What an error is known by, what it is here, and what helps."""


def refusal(error: Exception, address: str) -> EventStoreError:
    """Return the error for what a server refuses.

    Args:
        error: What the package `redis` has raised.
        address: The address of the server.
    """
    text = str(error)
    known = " ".join([*(kind.__name__ for kind in type(error).__mro__), text])
    for signs, kind, remedy in _REMEDIES:
        if any(sign in known for sign in signs):
            return kind(f"Redis at {address} refuses: {text} {remedy}", store=address)
    return EventStoreError(f"Redis at {address} refuses: {text}", store=address)


def address_of(settings: Mapping[str, Any], *, is_secure: bool) -> str:
    """Return where a server is, without who may use it.

    Args:
        settings: The settings of the connections.
        is_secure: Whether they use TLS.
    """
    if path := settings.get("path"):
        return f"unix://{path}"
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"{'rediss' if is_secure else 'redis'}://{host}:{port}/{settings.get('db') or 0}"


def without_password(url: str) -> str:
    """Return an address as it may be shown, whatever is wrong with it."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]
