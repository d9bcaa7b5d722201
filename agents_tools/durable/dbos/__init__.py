"""Durable runs and queued calls on DBOS: one SQLite file, or PostgreSQL for many machines."""

from __future__ import annotations

from agents_tools.durable.dbos._backend import DBOSBackend, serve_worker
from agents_tools.durable.dbos._store import DBOSDurableStore

__all__ = ["DBOSBackend", "DBOSDurableStore", "serve_worker"]
