"""The open file of a store: its write connection and the state of its logs."""

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
"""The number of ids that are reserved at a time. More are reserved if they are used up quickly."""


class SQLiteLog:
    """The state of one log in this process.

    Attributes:
        sid: The name.
        handles: The number of open stores of this process for the log.
        leased: Whether this process holds the lease. The attributes below, except `waiting`, are
            valid only then.
        key: The number of the log in the tables.
        last_id: The id of the last event.
        position: The position of the next event.
        unsettled: The pending appends of events with ids, with their largest id.
        reserved_id: The largest id that an event that is not stored uses.
        block_end: The largest id that is reserved in the file.
        is_reserving: Whether a request to reserve more ids is pending.
        waiting: The futures that wait for an event with an id larger than this.
    """

    def __init__(self, sid: str) -> None:
        self.sid = sid
        self.handles = 0
        self.leased = False
        self.key = 0
        self.last_id = INVALID_ID
        self.position = 0
        self.unsettled: dict[object, int] = {}
        self.reserved_id = INVALID_ID
        self.block_end = INVALID_ID
        self.is_reserving = False
        self.waiting: dict[PendingFuture[int], int] = {}

    @property
    def next_id(self) -> int:
        """The id of the next event, valid while this process holds the lease."""
        return max(self.last_id, self.reserved_id, *list(self.unsettled.values())) + 1

    def reset(self) -> None:
        """Reset the state: this process no longer holds the lease."""
        self.leased = False
        self.last_id = self.reserved_id = self.block_end = INVALID_ID
        self.position = 0
        self.is_reserving = False


class DatabaseFile:
    """The file of a store. Only the writer thread calls the methods that change it.

    Args:
        path: The path of the file.
        timeout: How long to wait for a lock of another process, in seconds.
        connection: The first connection, which is used for writing.
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
        self._file = _file_identity(path)
        self._journal: tuple[int, int] | None = None
        self._sync = False
        self._needs_checkpoint = False

    def check(self) -> None:
        """Check that the file is the one that was opened.

        Raises:
            EventStoreError: The file was removed or replaced.
        """
        if _file_identity(self.path) != self._file:
            raise EventStoreError(
                f"{self.path} was removed or replaced while it was open. Earlier events are in the "
                "removed file. Close the store and open it again.",
                store=self.path,
            )

    def open_connection(self, *, read_only: bool) -> sqlite3.Connection:
        """Open a connection and register it, so that a forked child does not use it."""
        connection = open_file(self.path, read_only=read_only, timeout=self.timeout)
        self._open.add(connection)
        return connection

    def close_connection(self, connection: sqlite3.Connection) -> None:
        """Close a connection."""
        self._open.discard(connection)
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def write_connection(self, *, sync: bool) -> sqlite3.Connection:
        """Return the connection for writing; `sync` survives a power failure.

        Raises:
            EventStoreError: The file is not the one that was opened.
        """
        self.check()
        if self._connection is None:
            self._connection = self.open_connection(read_only=False)
            self._sync, self._journal = False, None
        connection = self._connection
        self._check_journal()
        if self._needs_checkpoint:
            self._checkpoint(connection)
        if sync != self._sync:
            connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._sync = sync
        return connection

    def record_journal(self) -> None:
        """Record the identity of the journal file, which has the newest events after a commit."""
        if self._journal is None:
            self._journal = _file_identity(f"{self.path}-wal")

    def roll_back(self) -> None:
        """Roll back after an error. The next write first checks what is on disk."""
        self._needs_checkpoint = True
        connection = self._connection
        if connection is None:
            return
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if connection.in_transaction:
            self._connection = None
            self.close_connection(connection)

    def release(self, log: SQLiteLog) -> None:
        """Release the lease of a log, and store the largest used id."""
        try:
            if log.leased and log.position == 0 and log.reserved_id == INVALID_ID:
                self.write_connection(sync=False).execute(
                    "DELETE FROM log WHERE log = ?", (log.key,)
                )
            elif log.leased:
                self.write_connection(sync=False).execute(
                    "UPDATE log SET reserved = ?, writer = NULL WHERE log = ?",
                    (log.reserved_id, log.key),
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
            self.close_connection(connection)

    def after_fork(self) -> None:
        """Reset in a forked child, which must neither use nor close connections of its parent."""
        _parent_connections.extend(self._open)
        self._open = set()
        self._connection = None
        self.leases.forget()
        for log in self.logs.values():
            log.reset()
            log.waiting.clear()

    def _check_journal(self) -> None:
        """Check that the journal still exists. Otherwise commits would be lost."""
        journal = _file_identity(f"{self.path}-wal")
        if self._journal is not None and journal != self._journal:
            raise EventStoreError(
                f"{self.path}-wal was removed while the store was open; it had the newest events. "
                "These events were not stored. Close the store and open it again.",
                store=self.path,
            )

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Move the journal into the file and restart it, after a failed write.

        After a failed write or sync, the system can report parts of the journal as written that
        are not on disk. A checkpoint copies all committed events to the file and syncs it.
        """
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise EventStoreError(
                f"{self.path} could not be synchronized after a failed write: another process has "
                f"read from it for more than {self.timeout:g} s. These events were not stored.",
                store=self.path,
            )
        self._needs_checkpoint = False


_parent_connections: Final[list[Any]] = []
"""Connections of a parent process. They are referenced here so that they are never closed."""


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
