"""Write the requests of several callers in one transaction, each request all or none."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from time import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agents_tools.errors import EventConflictError, EventStoreError
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.sqlite.connection import BLOCK
from agents_tools.persistence.sqlite.errors import corrupt_error
from agents_tools.persistence.sqlite.rows import COLUMNS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.persistence.sqlite.connection import DatabaseFile, SQLiteLog
    from agents_tools.persistence.sqlite.rows import EventRow

__all__ = ["AppendRequest", "Batch", "ReserveRequest", "fail_request", "writer_conflict_message"]

_LARGEST_BLOCK: Final = 1 << 16
_LAST: Final = (1 << 63) - 1
_CHECKED_EVENTS: Final = 1_000
"""The number of events at the end of a log that a new writer checks."""

_ROW: Final = f"({', '.join('?' * len(COLUMNS))})"
_INSERT: Final = {
    rows: f"INSERT INTO event ({', '.join(COLUMNS)}) VALUES {', '.join([_ROW] * rows)}"  # noqa: S608 - ours
    for rows in (512, 64, 8, 1)
}
"""Statements for several rows. Each statement releases the GIL only once."""


@dataclass(slots=True, kw_only=True, eq=False)
class AppendRequest:
    """A request to store events in a log, all or none."""

    log: SQLiteLog
    rows: Sequence[EventRow]
    expected: int | None
    sync: bool
    pending: PendingFuture[int]
    size: int


@dataclass(slots=True, kw_only=True, eq=False)
class ReserveRequest:
    """A request to take the lease of a log and to reserve a block of ids."""

    log: SQLiteLog
    pending: PendingFuture[int]
    rows: None = None
    expected: None = None
    sync: bool = False
    size: int = 0


@dataclass(slots=True, kw_only=True)
class _State:
    """The state of a log after the transaction. `old_position` is the position before it."""

    key: int
    last_id: int
    position: int
    old_position: int
    block: int
    first: float | None = None
    last: float | None = None
    size: int = 0


class Batch:
    """Collects the rows of a transaction.

    Args:
        database: The file to write.
    """

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database
        self._states: dict[SQLiteLog, _State] = {}
        self._values: list[Any] = []
        self._blobs: dict[bytes, bytes] = {}
        self._uses: list[tuple[bytes, int, int]] = []
        self._done: list[tuple[AppendRequest | ReserveRequest, int]] = []
        self._refused: list[tuple[AppendRequest | ReserveRequest, EventStoreError]] = []

    def add(self, connection: sqlite3.Connection, job: AppendRequest | ReserveRequest) -> None:
        """Assign ids and positions to the events of a job, or refuse the job."""
        try:
            state = self._state_of(connection, job.log)
            if job.rows is not None:
                self._assign_positions(job.log, state, job)
        except EventStoreError as error:
            self._refused.append((job, error))
            return
        if job.log.reserved_id > INVALID_ID or job.rows is None:
            state.block = _block_for(job.log, state)
        self._states[job.log] = state
        self._done.append((job, state.last_id))

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all rows within an open transaction."""
        values, written = self._values, 0
        most = connection.getlimit(SQLITE_LIMIT_VARIABLE_NUMBER)
        for rows, statement in _INSERT.items():
            count = rows * len(COLUMNS)
            while len(values) - written >= count and count <= most:
                connection.execute(statement, values[written : written + count])
                written += count
        if self._blobs:
            connection.executemany("INSERT OR IGNORE INTO blob VALUES (?, ?)", self._blobs.items())
            connection.executemany("INSERT OR IGNORE INTO blob_use VALUES (?, ?, ?)", self._uses)
        updated = connection.executemany(
            "UPDATE log SET last_id = ?, next_position = ?, reserved = max(reserved, ?), "
            "first = coalesce(first, ?), last = coalesce(?, last), size = size + ? "
            "WHERE log = ? AND next_position = ?",
            [
                (
                    *(one.last_id, one.position, one.block, one.first, one.last, one.size),
                    *(one.key, one.old_position),
                )
                for one in self._states.values()
            ],
        )
        if updated.rowcount != len(self._states):
            self._raise_lost_lease()

    def _raise_lost_lease(self) -> NoReturn:
        """Raise the error for a log that another process wrote to despite the lease."""
        for log in self._states:
            log.leased = False
        raise EventConflictError(
            f"Another process has written to {self._database.path} without holding the "
            "lease. These events were not stored. Do not remove the -lease file while the store "
            "is open.",
            store=self._database.path,
        )

    def update_logs(self) -> Iterator[tuple[SQLiteLog, int]]:
        """Update the state of the logs, and yield those with new events and their last ids."""
        for log, state in self._states.items():
            has_new = not log.leased or state.last_id > log.last_id
            log.key, log.last_id, log.position = state.key, state.last_id, state.position
            log.block_end = state.block
            log.is_reserving = False
            log.leased = True
            if has_new:
                yield log, state.last_id

    def resolve(self) -> None:
        """Resolve the futures of the jobs."""
        for job, last in self._done:
            job.log.unsettled.pop(job, None)
            job.pending.resolve(last)
        for job, error in self._refused:
            fail_request(job, error)

    # --- ids and positions ------------------------------------------------------------------------

    def _state_of(self, connection: sqlite3.Connection, log: SQLiteLog) -> _State:
        state = self._states.get(log)
        if state is not None:
            return state
        if log.leased:
            return _State(
                key=log.key,
                last_id=log.last_id,
                position=log.position,
                old_position=log.position,
                block=log.block_end,
            )
        return _acquire_lease(connection, self._database, log)

    def _assign_positions(self, log: SQLiteLog, state: _State, job: AppendRequest) -> None:
        """Assign ids and positions to events."""
        rows, expected, size = job.rows, job.expected, job.size
        if expected is not None and expected != state.position:
            raise EventConflictError(
                f"Session {log.sid!r} in {self._database.path} has another writer: expected "
                f"{expected:,} events, got {state.position:,}. Read the new events and try again.",
                store=self._database.path,
            )
        values: list[Any] = []
        blobs: dict[bytes, bytes] = {}
        uses: list[tuple[bytes, int, int]] = []
        key, last, position = state.key, state.last_id, state.position
        for row in rows:
            number = row.id
            if number == INVALID_ID:
                number = max(last, log.reserved_id) + 1
            if not last < number < _LAST:
                raise self._id_conflict(log, number, max(last, log.reserved_id) + 1)
            last = number
            values += row.to_values(key, number, position)
            position += 1
            for digest, content in row.blobs:
                blobs[digest] = content
                uses.append((digest, key, number))
        if rows:
            state.last_id, state.position = last, position
            state.first = (
                state.first or rows[0].columns[0] or None
            )  # 0 means that the event has no time
            state.last = rows[-1].columns[0] or state.last
            state.size += size
        self._values += values
        self._blobs |= blobs
        self._uses += uses

    def _id_conflict(self, log: SQLiteLog, number: int, next_id: int) -> EventConflictError:
        return EventConflictError(
            f"Session {log.sid!r} in {self._database.path} is already beyond the id {number}: "
            f"expected at least {next_id}. Append only new events.",
            store=self._database.path,
        )


def fail_request(job: AppendRequest | ReserveRequest, error: Exception) -> None:
    """Fail the future of a job."""
    job.log.is_reserving = False
    job.log.unsettled.pop(job, None)
    job.pending.fail(error)


def _acquire_lease(
    connection: sqlite3.Connection, database: DatabaseFile, log: SQLiteLog
) -> _State:
    """Take the lease of a log within an open transaction.

    Raises:
        EventConflictError: Another process, or another store of this one, has the lease.
        EventStoreCorruptError: Events are missing at the end of the log.
    """
    if not database.leases.take(log.sid):
        raise EventConflictError(
            writer_conflict_message(connection, database.path, log.sid), store=database.path
        )
    connection.execute("INSERT OR IGNORE INTO log (sid) VALUES (?)", (log.sid,))
    connection.execute("UPDATE log SET writer = ? WHERE sid = ?", (_writer_info(), log.sid))
    key, last_id, first, position, reserved = connection.execute(
        "SELECT log, last_id, first_position, next_position, reserved FROM log WHERE sid = ?",
        (log.sid,),
    ).fetchone()
    end = connection.execute(
        "SELECT id, position FROM event WHERE log = ? ORDER BY id DESC LIMIT ?",
        (key, _CHECKED_EVENTS),
    ).fetchall()
    count = min(position - first, _CHECKED_EVENTS)
    is_complete = [row[1] for row in end] == list(range(position - 1, position - 1 - count, -1))
    if not is_complete or (end and end[0][0] != last_id):
        raise corrupt_error(
            f"{database.path} is damaged: events are missing at the end of session {log.sid!r}.",
            database.path,
        )
    log.reserved_id = max(log.reserved_id, reserved)
    return _State(
        key=key, last_id=last_id, position=position, old_position=position, block=reserved
    )


def _block_for(log: SQLiteLog, state: _State) -> int:
    """Return the id up to which ids are reserved: at least half a block ahead of the used ones."""
    used = max(log.reserved_id, state.last_id)
    if used + BLOCK // 2 <= state.block:
        return state.block
    fast = used > state.block > INVALID_ID  # the reserved ids were used up before this write
    return min(used + (_LARGEST_BLOCK if fast else BLOCK), _LAST - 1)


def _writer_info() -> str:
    """Return the description of this process that a refused writer reports."""
    program = Path(sys.argv[0]).name if sys.argv else ""
    return json.dumps({"pid": os.getpid(), "program": program[:200], "since": time()})


def writer_conflict_message(connection: sqlite3.Connection, path: str, sid: str) -> str:
    """Return the error message for a session that another process is writing."""
    from datetime import UTC, datetime

    from agents_tools.text.output import release_text

    row = connection.execute("SELECT writer FROM log WHERE sid = ?", (sid,)).fetchone()
    who = "another process"
    if row is not None and row[0] is not None:
        with suppress(
            LookupError, TypeError, ValueError, OverflowError, OSError
        ):  # the stored text can be damaged
            writer = json.loads(row[0])
            since = datetime.fromtimestamp(writer["since"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            name = release_text(str(writer["program"])) or "python"
            who = f"process {int(writer['pid'])} ({name}), since {since}"
    return (
        f"Session {sid!r} in {path} is being written by {who}. Only one can write to a session at "
        "a time: stop it, use another session, or open the store with read_only=True."
    )
