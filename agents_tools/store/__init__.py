"""Where events are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.store._filter import EventFilter
from agents_tools.store._memory import MemoryEventStore
from agents_tools.store._pending import Pending
from agents_tools.store._protocol import Durability, EventStore, SessionInfo

if TYPE_CHECKING:
    from agents_tools.store._unknown import UnknownEvent
    from agents_tools.store.redis import RedisEventStore
    from agents_tools.store.sqlite import SQLiteEventStore

__all__ = [
    "Durability",
    "EventFilter",
    "EventStore",
    "MemoryEventStore",
    "Pending",
    "RedisEventStore",
    "SQLiteEventStore",
    "SessionInfo",
    "UnknownEvent",
]

_LATE = {
    "RedisEventStore": "redis",
    "SQLiteEventStore": "sqlite",
    "UnknownEvent": "_unknown",
}


def __getattr__(name: str) -> Any:
    """Import a store, and what goes with it, when it is first asked for.

    Raises:
        UserError: The extra that it needs is not installed.
    """
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "redis":
            raise
        from agents_tools.errors import UserError

        raise UserError(
            f"{name} needs the package redis: pip install 'agents-tools[redis]'. SQLiteEventStore "
            "needs nothing."
        ) from error
