"""Runs that survive the end of their process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.persistence.durable.dbos.store import DBOSDurableStore as DBOSDurableStore
    from agents_tools.persistence.durable.local import (
        LocalDurableStore as LocalDurableStore,
    )
    from agents_tools.persistence.durable.store import (
        DurableRun as DurableRun,
        DurableStep as DurableStep,
        DurableStore as DurableStore,
        DurableStoreError as DurableStoreError,
        RunInUseError as RunInUseError,
        RunStatus as RunStatus,
        StepLostError as StepLostError,
        StoredRun as StoredRun,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "store": (
            "DurableRun",
            "DurableStep",
            "DurableStore",
            "DurableStoreError",
            "StoredRun",
            "RunInUseError",
            "RunStatus",
            "StepLostError",
        ),
        "dbos.store": ("DBOSDurableStore",),
        "local": ("LocalDurableStore",),
    },
    requires={
        "dbos.store": "pip install 'agents-tools[dbos]'",
    },
)
