"""Convert SQLite errors to errors of the store with a remedy."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from agents_tools.errors import (
    EventStoreCorruptError,
    EventStoreError,
    EventStoreFullError,
)

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["MISREAD", "SALVAGE", "damaged", "explained", "explaining"]

SALVAGE: Final = (
    "Nothing was changed. Export the readable events with: "
    "agents-tools events export PATH --salvage; then continue with a backup or a new file."
)

MISREAD: Final = (TypeError, UnicodeDecodeError)
"""The exceptions caused by values of an unexpected type in a file."""

_NO_RIGHT: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IN_USE: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_KIND: Final = 0xFF
"""The mask for the primary code of an extended error code."""


def explained(error: Exception, path: str, timeout: float = 0.0) -> EventStoreError:
    """Return the store error for an error of SQLite or of `MISREAD`."""
    if isinstance(error, MISREAD):
        return damaged(f"{path} is damaged: it contains an unexpected value ({error}).", path)
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _KIND
    if kind == sqlite3.SQLITE_FULL:
        return EventStoreFullError(
            f"The disk of {path} is full: the events were not stored. Free space and try again; "
            "SQLiteEventStore.retain deletes old events.",
            store=path,
        )
    if kind in _NO_RIGHT:
        return EventStoreFullError(
            f"{path} is not writable ({error}): the events were not stored. Make the file and its "
            "directory writable, or open it with read_only=True.",
            store=path,
        )
    if kind in _DAMAGED:
        return damaged(f"{path} is damaged ({error}).", path)
    if kind in _IN_USE:
        return EventStoreError(
            f"{path} was locked by another program for more than {timeout:g} s. Stop that program, "
            "or open the store with a larger timeout.",
            store=path,
        )
    if kind == sqlite3.SQLITE_CANTOPEN:
        return EventStoreFullError(
            f"{path} cannot be opened for writing ({error}). Make the file and its directory "
            "writable, or open it with read_only=True.",
            store=path,
        )
    return EventStoreError(
        f"{path} could not be read or written ({error}). Nothing was stored partially. Fix the "
        "cause and try again.",
        store=path,
    )


def damaged(what: str, path: str) -> EventStoreCorruptError:
    """Return the error for a damaged file."""
    return EventStoreCorruptError(f"{what} {SALVAGE}", store=path)


@contextmanager
def explaining(path: str, timeout: float = 0.0) -> Generator[None]:
    """Convert SQLite errors in the block to errors of the store."""
    try:
        yield
    except (sqlite3.Error, *MISREAD) as error:
        raise explained(error, path, timeout) from error
