"""Event streams and the stores that keep their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.concurrency.future import (
        PendingFuture as PendingFuture,
    )
    from agents_tools.persistence.filter import (
        EventFilter as EventFilter,
    )
    from agents_tools.persistence.memory import (
        MemoryEventStore as MemoryEventStore,
    )
    from agents_tools.persistence.protocol import (
        Durability as Durability,
        EventStore as EventStore,
        SessionInfo as SessionInfo,
    )
    from agents_tools.persistence.redis.store import (
        RedisEventStore as RedisEventStore,
    )
    from agents_tools.persistence.sqlite.store import (
        SQLiteEventStore as SQLiteEventStore,
    )
    from agents_tools.persistence.unknown_event import (
        UnknownEvent as UnknownEvent,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agents_tools.concurrency.future": ("PendingFuture",),
        "filter": ("EventFilter",),
        "memory": ("MemoryEventStore",),
        "protocol": (
            "Durability",
            "EventStore",
            "SessionInfo",
        ),
        "redis.store": ("RedisEventStore",),
        "sqlite.store": ("SQLiteEventStore",),
        "unknown_event": ("UnknownEvent",),
    },
    requires={"redis.store": "pip install 'agents-tools[redis]'"},
)
