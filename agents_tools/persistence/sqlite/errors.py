"""What SQLite reports, as errors of a store that say what helps."""

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
    "Nothing was changed. What can still be read comes with: "
    "agents-tools events export PATH --salvage; then go on with a backup or a new file."
)

MISREAD: Final = (TypeError, UnicodeDecodeError)
"""What comes of values in a file that are of another kind than those that are written to it."""

_NO_RIGHT: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IN_USE: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_KIND: Final = 0xFF
"""The part of an extended error code that tells its kind."""


def explained(error: Exception, path: str, timeout: float = 0.0) -> EventStoreError:
    """Return the error of the store that stands for an error of SQLite, or one of `MISREAD`."""
    if isinstance(error, MISREAD):
        return damaged(f"{path} is damaged: it holds what was never written ({error}).", path)
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _KIND
    if kind == sqlite3.SQLITE_FULL:
        return EventStoreFullError(
            f"There is no room left for {path}: nothing of this was stored. Free some, and it "
            "goes on; SQLiteEventStore.retain drops what is old.",
            store=path,
        )
    if kind in _NO_RIGHT:
        return EventStoreFullError(
            f"{path} may not be written ({error}): nothing of this was stored. Give this program "
            "the right to write to the file and its folder, or open it with read_only=True.",
            store=path,
        )
    if kind in _DAMAGED:
        return damaged(f"{path} is damaged ({error}).", path)
    if kind in _IN_USE:
        return EventStoreError(
            f"Another program holds {path} for more than {timeout:g} s. End what copies or changes "
            "it, or open it with a greater timeout.",
            store=path,
        )
    if kind == sqlite3.SQLITE_CANTOPEN:
        return EventStoreFullError(
            f"{path} cannot be opened for writing ({error}). Give this program the right to write "
            "to the file and its folder, or open it with read_only=True.",
            store=path,
        )
    return EventStoreError(
        f"{path} could not be read or written ({error}). Nothing was stored in part; once the "
        "cause is gone, it goes on.",
        store=path,
    )


def damaged(what: str, path: str) -> EventStoreCorruptError:
    """Return the error for a file that is not as it was written."""
    return EventStoreCorruptError(f"{what} {SALVAGE}", store=path)


@contextmanager
def explaining(path: str, timeout: float = 0.0) -> Generator[None]:
    """Raise what SQLite raises in the block as an error of the store."""
    try:
        yield
    except (sqlite3.Error, *MISREAD) as error:
        raise explained(error, path, timeout) from error
