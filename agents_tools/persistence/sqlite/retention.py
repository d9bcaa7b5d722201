"""Delete logs and old events in steps, and return their pages to the disk."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agents_tools.errors import EventConflictError
from agents_tools.persistence.sqlite.batch import who_writes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from agents_tools.persistence.sqlite.connection import DatabaseFile

__all__ = ["Deletion", "Retention"]

_PART: Final = 2_000
"""The number of events deleted in one transaction, so that the writer continues in between."""
_PAGES: Final = 2_000


class _LogFacts(NamedTuple):
    key: int
    sid: str
    last: float | None
    events: int
    size: int


class Deletion:
    """Deletes one log.

    Args:
        place: The file.
        sid: The name of the log.
    """

    def __init__(self, place: DatabaseFile, sid: str) -> None:
        self._place = place
        self._sid: str | None = sid
        self._sweep = _Sweep()

    def step(self, connection: sqlite3.Connection) -> bool:
        """Do a part; whether there is more to do."""
        if self._sid is None:
            return self._sweep.step(connection)
        sid, self._sid = self._sid, None
        with _TemporaryLease(self._place, sid) as free:
            if not free:
                why = who_writes(connection, self._place.path, sid)
                raise EventConflictError(why, store=self._place.path)
            _doom(connection, self._place, sid)
        return True


class Retention:
    """Deletes events above the limits of age, number or size; idle logs as a whole first.

    Args:
        place: The file.
        max_events: The maximum number of events.
        max_age: The maximum age of an event, in seconds; events without a time have no age.
        max_bytes: The maximum total size of the events.
    """

    def __init__(
        self,
        place: DatabaseFile,
        *,
        max_events: int | None,
        max_age: float | None,
        max_bytes: int | None,
    ) -> None:
        self._place = place
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._oldest = None if max_age is None else time() - max_age
        self._sweep = _Sweep()
        self._parts: list[Callable[[sqlite3.Connection], bool]] = [
            self._doom_logs,
            self._drop_old,
            self._drop_most,
            self._sweep.step,
        ]
        self.deleted = 0

    def step(self, connection: sqlite3.Connection) -> bool:
        """Do a part; whether there is more to do."""
        if not self._parts[0](connection):
            del self._parts[0]
        return bool(self._parts)

    def _doom_logs(self, connection: sqlite3.Connection) -> bool:
        logs = _logs(connection)
        events, size = sum(log.events for log in logs), sum(log.size for log in logs)
        for log in logs:
            old = self._oldest is not None and log.last is not None and log.last < self._oldest
            if not old and not self._exceeded(events, size):
                continue
            known = self._place.logs.get(log.sid)
            if known is not None and known.handles:
                continue
            with _TemporaryLease(self._place, log.sid) as free:
                if free:
                    _doom(connection, self._place, log.sid)
                    events, size = events - log.events, size - log.size
                    self.deleted += log.events
        return False

    def _drop_old(self, connection: sqlite3.Connection) -> bool:
        """Drop old events from the remaining logs, which are not sorted by time."""
        if self._oldest is None:
            return False
        for log in _logs(connection):
            first_kept = _first_kept(connection, log.key, self._oldest)
            found = connection.execute(
                "SELECT id FROM event WHERE log = ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?",
                (log.key, first_kept, _PART),
            ).fetchone()
            end = first_kept if found is None else found[0]
            with _TemporaryLease(self._place, log.sid) as free:
                if free:
                    self.deleted += _drop(connection, log.key, end)
                    if found is not None:
                        return True
        return False

    def _drop_most(self, connection: sqlite3.Connection) -> bool:
        """Drop the events that were stored first until the rest is within the limits."""
        logs = {log.key: log for log in _logs(connection)}
        events = sum(log.events for log in logs.values())
        size = sum(log.size for log in logs.values())
        ends: dict[int, int] = {}
        oldest = connection.execute("SELECT log, id, size FROM event ORDER BY n LIMIT ?", (_PART,))
        for key, number, taken in oldest.fetchall():
            if not self._exceeded(events, size):
                break
            if key in logs:
                events, size = events - 1, size - taken
                ends[key] = number + 1
        dropped = 0
        for key, end in ends.items():
            with _TemporaryLease(self._place, logs[key].sid) as free:
                if free:
                    dropped += _drop(connection, key, end)
        self.deleted += dropped
        return dropped > 0 and self._exceeded(events, size)

    def _exceeded(self, events: int, size: int) -> bool:
        return (self._max_events is not None and events > self._max_events) or (
            self._max_bytes is not None and size > self._max_bytes
        )


class _TemporaryLease:
    """Takes the lease of a log temporarily, if no other process writes to it."""

    def __init__(self, place: DatabaseFile, sid: str) -> None:
        self._leases = place.leases
        self._sid = sid
        known = place.logs.get(sid)
        self._ours = known is not None and known.leased

    def __enter__(self) -> bool:
        return self._leases.take(self._sid)

    def __exit__(self, *exc: object) -> None:
        if not self._ours:
            self._leases.give_back(self._sid)


class _Sweep:
    """Deletes the events of deleted logs, then returns pages to the disk."""

    def step(self, connection: sqlite3.Connection) -> bool:
        gone = connection.execute("SELECT log FROM log WHERE sid IS NULL LIMIT 1").fetchone()
        if gone is not None:
            found = connection.execute(
                "SELECT id FROM event WHERE log = ? ORDER BY id LIMIT 1 OFFSET ?", (gone[0], _PART)
            ).fetchone()
            _drop(connection, gone[0], found[0] if found else (1 << 63) - 1)
            if found is None:
                connection.execute("DELETE FROM log WHERE log = ? AND sid IS NULL", (gone[0],))
            return True
        connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
        if connection.execute("PRAGMA freelist_count").fetchone()[0]:
            return True
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return False


def _logs(connection: sqlite3.Connection) -> list[_LogFacts]:
    """Return the logs with events, the least recently written first, independent of clocks."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT log, sid, last, next_position - first_position, size FROM log "
        "WHERE sid IS NOT NULL AND next_position > first_position ORDER BY "
        "(SELECT n FROM event WHERE event.log = log.log ORDER BY id DESC LIMIT 1)"
    ).fetchall()
    for row in rows:
        if not isinstance(row[1], str):
            raise TypeError(f"{row[1]!r:.40} for the name of a session")
    return [_LogFacts(*row) for row in rows]


def _first_kept(connection: sqlite3.Connection, log: int, oldest: float) -> int:
    """Return the id up to which all events are old.

    An event without a time is as old as the next one.
    """
    in_time = "INDEXED BY event_time WHERE log = ? AND time"
    young = connection.execute(f"SELECT min(id) FROM event {in_time} >= ?", (log, oldest))  # noqa: S608 - ours
    old = connection.execute(
        f"SELECT max(id) FROM event {in_time} > 0 AND time < ?",  # noqa: S608 - ours
        (log, oldest),
    )
    last_old = old.fetchone()[0]
    first_young = young.fetchone()[0]
    if last_old is None:
        return 0
    return int(last_old + 1 if first_young is None else min(last_old + 1, first_young))


def _doom(connection: sqlite3.Connection, place: DatabaseFile, sid: str) -> None:
    """Mark a log as deleted; its events are deleted afterwards."""
    connection.execute("UPDATE log SET sid = NULL WHERE sid = ?", (sid,))
    known = place.logs.get(sid)
    if known is not None:
        known.reset()


def _drop(connection: sqlite3.Connection, log: int, end: int) -> int:
    """Delete the events of a log before an id, with large texts that become unused."""
    connection.execute("BEGIN IMMEDIATE")
    large = connection.execute(
        "SELECT DISTINCT digest FROM blob_use WHERE log = ? AND id < ?", (log, end)
    ).fetchall()
    size = connection.execute(
        "SELECT coalesce(sum(size), 0) FROM event WHERE log = ? AND id < ?", (log, end)
    ).fetchone()[0]
    count = connection.execute("DELETE FROM event WHERE log = ? AND id < ?", (log, end)).rowcount
    connection.execute("DELETE FROM blob_use WHERE log = ? AND id < ?", (log, end))
    connection.executemany(
        "DELETE FROM blob WHERE digest = :digest "
        "AND NOT EXISTS (SELECT 1 FROM blob_use WHERE digest = :digest)",
        [{"digest": digest} for (digest,) in large],
    )
    first = connection.execute(
        "SELECT position, time FROM event WHERE log = ? ORDER BY id LIMIT 1", (log,)
    ).fetchone()
    connection.execute(
        "UPDATE log SET first_position = coalesce(?, next_position), first = ?, size = size - ? "
        "WHERE log = ?",
        (*(first or (None, None)), size, log),
    )
    connection.execute("COMMIT")
    return count
