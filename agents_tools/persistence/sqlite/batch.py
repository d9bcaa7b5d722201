"""One transaction: the appends of several callers, each stored completely or not at all."""

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
from agents_tools.persistence.sqlite.errors import damaged
from agents_tools.persistence.sqlite.rows import COLUMNS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.persistence.sqlite.connection import DatabaseFile, SQLiteLog
    from agents_tools.persistence.sqlite.rows import EventRow

__all__ = ["AppendRequest", "Batch", "ReserveRequest", "give_up", "who_writes"]

_LARGEST_BLOCK: Final = 1 << 16
_LAST: Final = (1 << 63) - 1
_LOOKED_AT: Final = 1_000
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
    drafts: Sequence[EventRow]
    expected: int | None
    sync: bool
    pending: PendingFuture[int]
    size: int


@dataclass(slots=True, kw_only=True, eq=False)
class ReserveRequest:
    """A request to take the lease of a log and to reserve a block of ids."""

    log: SQLiteLog
    pending: PendingFuture[int]
    drafts: None = None
    expected: None = None
    sync: bool = False
    size: int = 0


@dataclass(slots=True, kw_only=True)
class _State:
    """The state of a log after the transaction; `begun` is its position before."""

    key: int
    last_id: int
    position: int
    begun: int
    block: int
    first: float | None = None
    last: float | None = None
    size: int = 0


class Batch:
    """Collects the rows of a transaction.

    Args:
        place: The file.
    """

    def __init__(self, place: DatabaseFile) -> None:
        self._place = place
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
            if job.drafts is not None:
                self._place_all(job.log, state, job)
        except EventStoreError as error:
            self._refused.append((job, error))
            return
        if job.log.asked > INVALID_ID or job.drafts is None:
            state.block = _block_for(job.log, state)
        self._states[job.log] = state
        self._done.append((job, state.last_id))

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all rows within an open transaction."""
        values, done = self._values, 0
        most = connection.getlimit(SQLITE_LIMIT_VARIABLE_NUMBER)
        for rows, statement in _INSERT.items():
            count = rows * len(COLUMNS)
            while len(values) - done >= count and count <= most:
                connection.execute(statement, values[done : done + count])
                done += count
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
                    *(one.key, one.begun),
                )
                for one in self._states.values()
            ],
        )
        if updated.rowcount != len(self._states):
            self._forget()

    def _forget(self) -> NoReturn:
        """Report that another process wrote to a log although this one has the lease."""
        for log in self._states:
            log.leased = False
        raise EventConflictError(
            f"Another process has written to {self._place.path} in spite of the lease. These "
            "events were not stored. Do not remove the -lease file while the store is open.",
            store=self._place.path,
        )

    def settle(self) -> Iterator[tuple[SQLiteLog, int]]:
        """Update the state of the logs, and return those with new events."""
        for log, state in self._states.items():
            grown = not log.leased or state.last_id > log.last_id
            log.key, log.last_id, log.position = state.key, state.last_id, state.position
            log.block = state.block
            log.asking = False
            log.leased = True
            if grown:
                yield log, state.last_id

    def tell(self) -> None:
        """Resolve the futures of the jobs."""
        for job, last in self._done:
            job.log.begun.pop(job, None)
            job.pending.resolve(last)
        for job, error in self._refused:
            give_up(job, error)

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
                begun=log.position,
                block=log.block,
            )
        return _lease(connection, self._place, log)

    def _place_all(self, log: SQLiteLog, state: _State, job: AppendRequest) -> None:
        """Assign ids and positions to events."""
        drafts, expected, size = job.drafts, job.expected, job.size
        if expected is not None and expected != state.position:
            raise EventConflictError(
                f"Session {log.sid!r} in {self._place.path} has another writer: expected "
                f"{expected:,} events, got {state.position:,}. Read the new events and try again.",
                store=self._place.path,
            )
        values: list[Any] = []
        blobs: dict[bytes, bytes] = {}
        uses: list[tuple[bytes, int, int]] = []
        key, last, position = state.key, state.last_id, state.position
        for draft in drafts:
            number = draft.id
            if number == INVALID_ID:
                number = max(last, log.asked) + 1
            if not last < number < _LAST:
                raise self._taken(log, number, max(last, log.asked) + 1)
            last = number
            values += draft.row(key, number, position)
            position += 1
            for digest, content in draft.blobs:
                blobs[digest] = content
                uses.append((digest, key, number))
        if drafts:
            state.last_id, state.position = last, position
            state.first = (
                state.first or drafts[0].columns[0] or None
            )  # 0 means that the event has no time
            state.last = drafts[-1].columns[0] or state.last
            state.size += size
        self._values += values
        self._blobs |= blobs
        self._uses += uses

    def _taken(self, log: SQLiteLog, number: int, next_id: int) -> EventConflictError:
        return EventConflictError(
            f"Session {log.sid!r} in {self._place.path} is already beyond the id {number}: "
            f"expected at least {next_id}. Append only new events.",
            store=self._place.path,
        )


def give_up(job: AppendRequest | ReserveRequest, error: Exception) -> None:
    """Fail the future of a job."""
    job.log.asking = False
    job.log.begun.pop(job, None)
    job.pending.fail(error)


def _lease(connection: sqlite3.Connection, place: DatabaseFile, log: SQLiteLog) -> _State:
    """Take the lease of a log within an open transaction.

    Raises:
        EventConflictError: Another process, or another store of this one, is.
        EventStoreCorruptError: Events are missing at its end.
    """
    if not place.leases.take(log.sid):
        raise EventConflictError(who_writes(connection, place.path, log.sid), store=place.path)
    connection.execute("INSERT OR IGNORE INTO log (sid) VALUES (?)", (log.sid,))
    connection.execute("UPDATE log SET writer = ? WHERE sid = ?", (_introduction(), log.sid))
    key, last_id, first, position, reserved = connection.execute(
        "SELECT log, last_id, first_position, next_position, reserved FROM log WHERE sid = ?",
        (log.sid,),
    ).fetchone()
    end = connection.execute(
        "SELECT id, position FROM event WHERE log = ? ORDER BY id DESC LIMIT ?", (key, _LOOKED_AT)
    ).fetchall()
    count = min(position - first, _LOOKED_AT)
    whole = [row[1] for row in end] == list(range(position - 1, position - 1 - count, -1))
    if not whole or (end and end[0][0] != last_id):
        raise damaged(
            f"{place.path} is damaged: events are missing at the end of session {log.sid!r}.",
            place.path,
        )
    log.asked = max(log.asked, reserved)
    return _State(key=key, last_id=last_id, position=position, begun=position, block=reserved)


def _block_for(log: SQLiteLog, state: _State) -> int:
    """Return the id up to which ids are reserved: at least half a block ahead of the used ones."""
    used = max(log.asked, state.last_id)
    if used + BLOCK // 2 <= state.block:
        return state.block
    fast = used > state.block > INVALID_ID  # the reserved ids were used up before this write
    return min(used + (_LARGEST_BLOCK if fast else BLOCK), _LAST - 1)


def _introduction() -> str:
    program = Path(sys.argv[0]).name if sys.argv else ""
    return json.dumps({"pid": os.getpid(), "program": program[:200], "since": time()})


def who_writes(connection: sqlite3.Connection, path: str, sid: str) -> str:
    """Return the error message for a session that another process is writing."""
    from datetime import UTC, datetime

    from agents_tools.text.escape import safe_text

    row = connection.execute("SELECT writer FROM log WHERE sid = ?", (sid,)).fetchone()
    who = "another process"
    if row is not None and row[0] is not None:
        with suppress(
            LookupError, TypeError, ValueError, OverflowError, OSError
        ):  # the stored text can be damaged
            writer = json.loads(row[0])
            since = datetime.fromtimestamp(writer["since"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            name = safe_text(str(writer["program"])) or "python"
            who = f"process {int(writer['pid'])} ({name}), since {since}"
    return (
        f"Session {sid!r} in {path} is being written by {who}. Only one can write to a session at "
        "a time: stop it, use another session, or open the store with read_only=True."
    )
