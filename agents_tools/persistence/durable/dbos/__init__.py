"""Durable runs and queued calls on DBOS: one SQLite file, or PostgreSQL for many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.persistence.durable.dbos.backend import (
        DBOSBackend as DBOSBackend,
        serve_worker as serve_worker,
    )
    from agents_tools.persistence.durable.dbos.store import DBOSDurableStore as DBOSDurableStore

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "backend": ("DBOSBackend", "serve_worker"),
        "store": ("DBOSDurableStore",),
    },
    requires={
        "backend": "pip install 'agents-tools[dbos]'",
        "store": "pip install 'agents-tools[dbos]'",
    },
)
