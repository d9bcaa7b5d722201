"""One open file of a store: the connection that writes, and the state of its logs."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import EventStoreError
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.sqlite.lock import LogLocks
from agents_tools.persistence.sqlite.schema import open_file

if TYPE_CHECKING:
    from agents_tools.concurrency.future import PendingFuture

__all__ = ["BLOCK", "DatabaseFile", "SQLiteLog"]

BLOCK: Final = 1_024
"""The number of ids that are reserved at first. It grows if they are used up quickly."""


class SQLiteLog:
    """The state of one log in this process.

    Attributes:
        sid: Its name.
        handles: The number of open stores of this process for it.
        leased: Whether this process writes to it; the other attributes are valid only then.
        key: Its number in the tables.
        last_id: The id of its last event.
        position: The position of its next event.
        begun: Pending appends, with their largest assigned id.
        asked: The largest id in use for an event that is not stored.
        block: The largest id that is reserved in the file.
        asking: Whether a reservation is pending.
        waiting: The futures that wait for an event with a larger id.
    """

    def __init__(self, sid: str) -> None:
        self.sid = sid
        self.handles = 0
        self.leased = False
        self.key = 0
        self.last_id = INVALID_ID
        self.position = 0
        self.begun: dict[object, int] = {}
        self.asked = INVALID_ID
        self.block = INVALID_ID
        self.asking = False
        self.waiting: dict[PendingFuture[int], int] = {}

    @property
    def next_id(self) -> int:
        """The id of the next event, while this process writes to the log."""
        return max(self.last_id, self.asked, *list(self.begun.values())) + 1

    def reset(self) -> None:
        """Reset the state."""
        self.leased = False
        self.last_id = self.asked = self.block = INVALID_ID
        self.position = 0
        self.asking = False


class DatabaseFile:
    """The database file. Only the writer thread changes it.

    Args:
        path: The file.
        timeout: How long to wait for other programs, in seconds.
        connection: A connection for writing; `None` for a read-only store.
    """

    def __init__(self, path: str, timeout: float, connection: sqlite3.Connection | None) -> None:
        self.path = path
        self.timeout = timeout
        self.leases = LogLocks(path)
        self.logs: dict[str, SQLiteLog] = {}
        self._connection = connection
        self._open: set[sqlite3.Connection] = set()
        if connection is not None:
            self._open.add(connection)
        self._file = _identity(path)
        self._journal: tuple[int, int] | None = None
        self._sync = False
        self._doubtful = False

    def check(self) -> None:
        """Check that the file is the one that was opened.

        Raises:
            EventStoreError: The file was removed or replaced.
        """
        if _identity(self.path) != self._file:
            raise EventStoreError(
                f"{self.path} was removed or replaced while it was open. Earlier events are in the "
                "removed file. Close the store and open it again.",
                store=self.path,
            )

    def open(self, *, read_only: bool) -> sqlite3.Connection:
        """Open a connection and register it, so that a forked child does not use it."""
        connection = open_file(self.path, read_only=read_only, timeout=self.timeout)
        self._open.add(connection)
        return connection

    def shut(self, connection: sqlite3.Connection) -> None:
        """Close a connection."""
        self._open.discard(connection)
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def ready_to_write(self, *, sync: bool) -> sqlite3.Connection:
        """Return the connection for writing with a durability.

        Raises:
            EventStoreError: The file is not the one that was opened.
        """
        self.check()
        if self._connection is None:
            self._connection = self.open(read_only=False)
            self._sync, self._journal = False, None
        connection = self._connection
        self._check_journal()
        if self._doubtful:
            self._rewrite(connection)
        if sync != self._sync:
            connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._sync = sync
        return connection

    def committed(self) -> None:
        """Remember the journal file, which has the newest events from now on."""
        if self._journal is None:
            self._journal = _identity(f"{self.path}-wal")

    def roll_back(self) -> None:
        """Roll back after an error, which leaves the state of the disk unknown."""
        self._doubtful = True
        connection = self._connection
        if connection is None:
            return
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if connection.in_transaction:
            self._connection = None
            self.shut(connection)

    def release(self, log: SQLiteLog) -> None:
        """Release the lease of a log, and store which ids are used."""
        try:
            if log.leased and log.position == 0 and log.asked == INVALID_ID:
                self.ready_to_write(sync=False).execute("DELETE FROM log WHERE log = ?", (log.key,))
            elif log.leased:
                self.ready_to_write(sync=False).execute(
                    "UPDATE log SET reserved = ?, writer = NULL WHERE log = ?", (log.asked, log.key)
                )
        finally:
            log.leased = False
            self.leases.give_back(log.sid)

    def close(self) -> None:
        """Release the leases of all logs, and close the file."""
        for log in list(self.logs.values()):
            with contextlib.suppress(sqlite3.Error, EventStoreError):
                self.release(log)
        connection, self._connection = self._connection, None
        if connection is not None:
            self.shut(connection)

    def after_fork(self) -> None:
        """Reset in a forked child, which must not use or even close connections of its parent."""
        _kept_open.extend(self._open)
        self._open = set()
        self._connection = None
        self.leases.forget()
        for log in self.logs.values():
            log.reset()
            log.waiting.clear()

    def _check_journal(self) -> None:
        """Check that the journal still exists. Otherwise commits would be lost."""
        journal = _identity(f"{self.path}-wal")
        if self._journal is not None and journal != self._journal:
            raise EventStoreError(
                f"{self.path}-wal was removed while the store was open; it had the newest events. "
                "These events were not stored. Close the store and open it again.",
                store=self.path,
            )

    def _rewrite(self, connection: sqlite3.Connection) -> None:
        """Restart the journal after a failure.

        After a failed write or sync, the cache can contain a part of the journal that is not on
        disk. Therefore the whole journal is copied to the file, which is synced.
        """
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise EventStoreError(
                f"{self.path} could not be synchronized after a failed write: another process has "
                f"read from it for more than {self.timeout:g} s. These events were not stored.",
                store=self.path,
            )
        self._doubtful = False


_kept_open: Final[list[Any]] = []
"""Connections of a parent process. They are referenced here so that they are never closed."""


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
