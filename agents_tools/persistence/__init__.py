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
    from agents_tools.persistence.open_store import (
        open_run_store as open_run_store,
    )
    from agents_tools.persistence.protocol import (
        Durability as Durability,
        EventStore as EventStore,
        RunStatus as RunStatus,
        SessionInfo as SessionInfo,
    )
    from agents_tools.persistence.run_store import (
        RunStore as RunStore,
        Session as Session,
    )
    from agents_tools.persistence.storage import (
        LogStorage as LogStorage,
        RunInfo as RunInfo,
        RunMessage as RunMessage,
    )
    from agents_tools.persistence.stored_log import (
        StoredLog as StoredLog,
    )
    from agents_tools.persistence.stores.memory import (
        MemoryEventStore as MemoryEventStore,
        MemoryRunStore as MemoryRunStore,
    )
    from agents_tools.persistence.stores.postgres import (
        PostgresRunStore as PostgresRunStore,
    )
    from agents_tools.persistence.stores.redis import (
        RedisEventStore as RedisEventStore,
        RedisRunStore as RedisRunStore,
    )
    from agents_tools.persistence.stores.sqlite import (
        SQLiteEventStore as SQLiteEventStore,
        SQLiteRunStore as SQLiteRunStore,
        SQLiteSession as SQLiteSession,
    )
    from agents_tools.persistence.unknown_event import (
        UnknownEvent as UnknownEvent,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agents_tools.concurrency.future": ("PendingFuture",),
        "filter": ("EventFilter",),
        "open_store": ("open_run_store",),
        "protocol": (
            "Durability",
            "EventStore",
            "RunStatus",
            "SessionInfo",
        ),
        "run_store": ("RunStore", "Session"),
        "stored_log": ("StoredLog",),
        "storage": (
            "LogStorage",
            "RunInfo",
            "RunMessage",
        ),
        "stores.memory": ("MemoryEventStore", "MemoryRunStore"),
        "stores.postgres": ("PostgresRunStore",),
        "stores.redis": ("RedisEventStore", "RedisRunStore"),
        "stores.sqlite": ("SQLiteEventStore", "SQLiteRunStore", "SQLiteSession"),
        "unknown_event": ("UnknownEvent",),
    },
    requires={
        "stores.postgres": "pip install 'agents-tools[postgres]'",
        "stores.redis": "pip install 'agents-tools[redis]'",
    },
)
