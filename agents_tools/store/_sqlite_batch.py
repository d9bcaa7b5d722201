"""What one transaction stores: the appends of several callers, each in full or not at all."""

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
from agents_tools.events import INVALID_ID
from agents_tools.store._sqlite_errors import damaged
from agents_tools.store._sqlite_place import BLOCK
from agents_tools.store._sqlite_rows import COLUMNS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from agents_tools.store._pending import Pending
    from agents_tools.store._sqlite_place import Log, Place
    from agents_tools.store._sqlite_rows import Draft

__all__ = ["Append", "Batch", "Reserve", "give_up", "who_writes"]

_LARGEST_BLOCK: Final = 1 << 16
_LAST: Final = (1 << 63) - 1
_LOOKED_AT: Final = 1_000
"""How many events at the end of a log are looked at when its writer begins."""

_ROW: Final = f"({', '.join('?' * len(COLUMNS))})"
_INSERT: Final = {
    rows: f"INSERT INTO event ({', '.join(COLUMNS)}) VALUES {', '.join([_ROW] * rows)}"  # noqa: S608 - ours
    for rows in (512, 64, 8, 1)
}
"""Many rows in one statement: the other threads of the program are asked but once to step back."""


@dataclass(slots=True, kw_only=True, eq=False)
class Append:
    """Events to be stored in a log, all or none."""

    log: Log
    drafts: Sequence[Draft]
    expected: int | None
    sync: bool
    pending: Pending[int]
    size: int


@dataclass(slots=True, kw_only=True, eq=False)
class Reserve:
    """The lease of a log is to be taken, and a block of ids set aside."""

    log: Log
    pending: Pending[int]
    drafts: None = None
    expected: None = None
    sync: bool = False
    size: int = 0


@dataclass(slots=True, kw_only=True)
class _State:
    """How a log will be after the transaction; `begun` is its position before."""

    key: int
    last_id: int
    position: int
    begun: int
    block: int
    first: float | None = None
    last: float | None = None
    size: int = 0


class Batch:
    """Collects what is to be stored.

    Args:
        place: The file.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._states: dict[Log, _State] = {}
        self._values: list[Any] = []
        self._blobs: dict[bytes, bytes] = {}
        self._uses: list[tuple[bytes, int, int]] = []
        self._done: list[tuple[Append | Reserve, int]] = []
        self._refused: list[tuple[Append | Reserve, EventStoreError]] = []

    def add(self, connection: sqlite3.Connection, job: Append | Reserve) -> None:
        """Give the events of a job their places; refuse it if they cannot have them."""
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
        """Write all of it, within a transaction that is open."""
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
        told = connection.executemany(
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
        if told.rowcount != len(self._states):
            self._forget()

    def _forget(self) -> NoReturn:
        """Somebody else wrote to a log although this process has the lease: look at it anew."""
        for log in self._states:
            log.leased = False
        raise EventConflictError(
            f"Another writer has come between in {self._place.path}: was its -lease file removed? "
            "Nothing of this was stored.",
            store=self._place.path,
        )

    def settle(self) -> Iterator[tuple[Log, int]]:
        """Take over how the logs are now; gives those with new events."""
        for log, state in self._states.items():
            grown = not log.leased or state.last_id > log.last_id
            log.key, log.last_id, log.position = state.key, state.last_id, state.position
            log.block = state.block
            log.asking = False
            log.leased = True
            if grown:
                yield log, state.last_id

    def tell(self) -> None:
        """Tell those who wait."""
        for job, last in self._done:
            job.log.begun.pop(job, None)
            job.pending.resolve(last)
        for job, error in self._refused:
            give_up(job, error)

    # --- places -----------------------------------------------------------------------------------

    def _state_of(self, connection: sqlite3.Connection, log: Log) -> _State:
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

    def _place_all(self, log: Log, state: _State, job: Append) -> None:
        """Give events their ids and positions."""
        drafts, expected, size = job.drafts, job.expected, job.size
        if expected is not None and expected != state.position:
            raise EventConflictError(
                f"Session {log.sid!r} in {self._place.path} holds {state.position:,} events where "
                f"{expected:,} were expected: somebody else has written to it. Read what is new "
                "and try again.",
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
            state.first = state.first or drafts[0].columns[0] or None  # 0 is no time
            state.last = drafts[-1].columns[0] or state.last
            state.size += size
        self._values += values
        self._blobs |= blobs
        self._uses += uses

    def _taken(self, log: Log, number: int, next_id: int) -> EventConflictError:
        return EventConflictError(
            f"Session {log.sid!r} in {self._place.path} is beyond the id {number} already; "
            f"the next one is {next_id}.",
            store=self._place.path,
        )


def give_up(job: Append | Reserve, error: Exception) -> None:
    """Tell whoever waits for a job that it failed."""
    job.log.asking = False
    job.log.begun.pop(job, None)
    job.pending.fail(error)


def _lease(connection: sqlite3.Connection, place: Place, log: Log) -> _State:
    """Become the writer of a log, within a transaction that is open.

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


def _block_for(log: Log, state: _State) -> int:
    """Say how far ids are to be set aside: ahead of those in use by half a block at least."""
    used = max(log.asked, state.last_id)
    if used + BLOCK // 2 <= state.block:
        return state.block
    fast = used > state.block > INVALID_ID  # they were used up before this was written
    return min(used + (_LARGEST_BLOCK if fast else BLOCK), _LAST - 1)


def _introduction() -> str:
    program = Path(sys.argv[0]).name if sys.argv else ""
    return json.dumps({"pid": os.getpid(), "program": program[:200], "since": time()})


def who_writes(connection: sqlite3.Connection, path: str, sid: str) -> str:
    from datetime import UTC, datetime

    from agents_tools._text import safe_text

    found = connection.execute("SELECT writer FROM log WHERE sid = ?", (sid,)).fetchone()
    who = "another process"
    if found is not None and found[0] is not None:
        with suppress(LookupError, TypeError, ValueError, OverflowError, OSError):  # as it is told
            told = json.loads(found[0])
            since = datetime.fromtimestamp(told["since"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            name = safe_text(str(told["program"])) or "python"
            who = f"process {int(told['pid'])} ({name}), since {since}"
    return (
        f"Session {sid!r} in {path} is being written by {who}. Only one may write to a session at "
        "a time: end that one, use another session, or open the store with read_only=True."
    )
