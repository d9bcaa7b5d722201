"""Open a run store by its path or address."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents_tools.persistence.run_store import RunStore

__all__ = ["open_run_store"]


def open_run_store(place: str | os.PathLike[str], *, read_only: bool = False) -> RunStore:
    """Open the run store at a path or address.

    Args:
        place: The path of an SQLite file, or an address that begins with `postgresql://`,
            `postgres://`, `redis://`, `rediss://` or `unix://` (Redis).
        read_only: Whether to open a file for reading only.

    Raises:
        EventStoreError: The store cannot be opened.
        MissingExtraError: The driver of the database is not installed.
    """
    text = os.fspath(place)
    if text.startswith(("postgresql://", "postgres://")):
        from agents_tools.persistence import PostgresRunStore

        return PostgresRunStore(text)
    if text.startswith(("redis://", "rediss://", "unix://")):
        from agents_tools.persistence import RedisRunStore

        return RedisRunStore(text)
    from agents_tools.persistence import SQLiteRunStore

    return SQLiteRunStore(text, create=not read_only, read_only=read_only)
