"""Translate errors of SQLite to errors of the store, with a remedy."""

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

__all__ = ["BAD_VALUE_ERRORS", "SALVAGE", "corrupt_error", "store_error", "translate_errors"]

SALVAGE: Final = (
    "Nothing was changed. Run agents-tools events export PATH --salvage to recover readable "
    "events, then continue with a backup or a new file."
)

BAD_VALUE_ERRORS: Final = (TypeError, UnicodeDecodeError)
"""The errors that values of an unexpected type in a damaged file raise."""

_NO_PERMISSION: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IN_USE: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_KIND: Final = 0xFF
"""The bits of an extended error code that hold the primary error code."""


def store_error(error: Exception, path: str, timeout: float = 0.0) -> EventStoreError:
    """Return the store error for an error of SQLite or one of `BAD_VALUE_ERRORS`."""
    if isinstance(error, BAD_VALUE_ERRORS):
        return corrupt_error(f"{path} is damaged: it holds unexpected values ({error}).", path)
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _KIND
    if kind == sqlite3.SQLITE_FULL:
        return EventStoreFullError(
            f"The disk of {path} is full. These events were not stored. Free disk space, for "
            "example with SQLiteEventStore.retain, and try again.",
            store=path,
        )
    if kind in _NO_PERMISSION:
        return EventStoreFullError(
            f"{path} cannot be written ({error}). These events were not stored. Allow this program "
            "to write to the file and its directory, or open it with read_only=True.",
            store=path,
        )
    if kind in _DAMAGED:
        return corrupt_error(f"{path} is damaged ({error}).", path)
    if kind in _IN_USE:
        return EventStoreError(
            f"{path} was locked by another program for more than {timeout:g} s. Stop the program "
            "that copies or changes it, or open the store with a larger timeout.",
            store=path,
        )
    if kind == sqlite3.SQLITE_CANTOPEN:
        return EventStoreFullError(
            f"{path} cannot be opened for writing ({error}). Allow this program to write to the "
            "file and its directory, or open it with read_only=True.",
            store=path,
        )
    return EventStoreError(
        f"{path} could not be read or written ({error}). No event was stored in part. Fix the "
        "cause and try again.",
        store=path,
    )


def corrupt_error(problem: str, path: str) -> EventStoreCorruptError:
    """Return the error for a damaged file, with the command that recovers its events."""
    return EventStoreCorruptError(f"{problem} {SALVAGE}", store=path)


@contextmanager
def translate_errors(path: str, timeout: float = 0.0) -> Generator[None]:
    """Raise the errors of SQLite in the block as errors of the store."""
    try:
        yield
    except (sqlite3.Error, *BAD_VALUE_ERRORS) as error:
        raise store_error(error, path, timeout) from error
