"""Durable runs on DBOS: one SQLite file, or PostgreSQL for many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.persistence.durable.dbos.store import DBOSDurableStore as DBOSDurableStore

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {"store": ("DBOSDurableStore",)},
    requires={"store": "pip install 'agents-tools[dbos]'"},
)
