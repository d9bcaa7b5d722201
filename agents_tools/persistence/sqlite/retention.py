"""Delete logs and old events, a part at a time, and free their disk space."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agents_tools.errors import EventConflictError
from agents_tools.persistence.sqlite.batch import writer_conflict_message

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from agents_tools.persistence.sqlite.connection import DatabaseFile

__all__ = ["Deletion", "Retention"]

_PART: Final = 2_000
"""The number of events to delete in one transaction. Other jobs can run in between."""
_PAGES: Final = 2_000
"""The number of pages to free at a time."""


class _LogSummary(NamedTuple):
    key: int
    sid: str
    last: float | None
    events: int
    size: int


class Deletion:
    """Deletes one log.

    Args:
        database: The file of the log.
        sid: The name of the log.
    """

    def __init__(self, database: DatabaseFile, sid: str) -> None:
        self._database = database
        self._sid: str | None = sid
        self._cleanup = _Cleanup()

    def step(self, connection: sqlite3.Connection) -> bool:
        """Do a part of the work and return whether there is more to do."""
        if self._sid is None:
            return self._cleanup.step(connection)
        sid, self._sid = self._sid, None
        with _TemporaryLease(self._database, sid) as free:
            if not free:
                why = writer_conflict_message(connection, self._database.path, sid)
                raise EventConflictError(why, store=self._database.path)
            _detach_log(connection, self._database, sid)
        return True


class Retention:
    """Deletes events until the limits are met: first whole logs that are not open, then events.

    Args:
        database: The file of the logs.
        max_events: The number of events to keep in all logs together.
        max_age: The largest age of an event, in seconds. Events without a time have no age.
        max_bytes: The largest size of the JSON of all events, in bytes.
    """

    def __init__(
        self,
        database: DatabaseFile,
        *,
        max_events: int | None,
        max_age: float | None,
        max_bytes: int | None,
    ) -> None:
        self._database = database
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._min_time = None if max_age is None else time() - max_age
        self._cleanup = _Cleanup()
        self._held: set[int] = set()
        """The keys of the logs that another writer holds."""
        self._parts: list[Callable[[sqlite3.Connection], bool]] = [
            self._delete_logs,
            self._delete_old,
            self._delete_excess,
            self._cleanup.step,
        ]
        self.deleted = 0

    def step(self, connection: sqlite3.Connection) -> bool:
        """Do a part of the work and return whether there is more to do."""
        if not self._parts[0](connection):
            del self._parts[0]
        return bool(self._parts)

    def _delete_logs(self, connection: sqlite3.Connection) -> bool:
        logs = _logs(connection)
        events, size = sum(log.events for log in logs), sum(log.size for log in logs)
        for log in logs:
            is_old = (
                self._min_time is not None and log.last is not None and log.last < self._min_time
            )
            if not is_old and not self._exceeded(events, size):
                continue
            state = self._database.logs.get(log.sid)
            if state is not None and state.handles:
                continue
            with _TemporaryLease(self._database, log.sid) as free:
                if free:
                    _detach_log(connection, self._database, log.sid)
                    events, size = events - log.events, size - log.size
                    self.deleted += log.events
        return False

    def _delete_old(self, connection: sqlite3.Connection) -> bool:
        """Delete old events from the remaining logs."""
        if self._min_time is None:
            return False
        for log in _logs(connection):
            old_end = _old_end(connection, log.key, self._min_time)
            part_end = connection.execute(
                "SELECT id FROM event WHERE log = ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?",
                (log.key, old_end, _PART),
            ).fetchone()
            end = old_end if part_end is None else part_end[0]
            with _TemporaryLease(self._database, log.sid) as free:
                if free:
                    self.deleted += _delete_events(connection, log.key, end)
                    if part_end is not None:
                        return True
        return False

    def _delete_excess(self, connection: sqlite3.Connection) -> bool:
        """Delete the events that were stored first, until the limits are met.

        Events of logs that another writer holds are skipped.
        """
        logs = {log.key: log for log in _logs(connection)}
        events = sum(log.events for log in logs.values())
        size = sum(log.size for log in logs.values())
        ends: dict[int, int] = {}
        for key, number, event_size in _oldest_events(connection, self._held):
            if not self._exceeded(events, size):
                break
            events, size = events - 1, size - event_size
            ends[key] = number + 1
        deleted = 0
        for key, end in ends.items():
            with _TemporaryLease(self._database, logs[key].sid) as free:
                if free:
                    deleted += _delete_events(connection, key, end)
                else:
                    self._held.add(key)
        self.deleted += deleted
        has_skipped = not self._held.isdisjoint(ends)
        return has_skipped or (deleted > 0 and self._exceeded(events, size))

    def _exceeded(self, events: int, size: int) -> bool:
        return (self._max_events is not None and events > self._max_events) or (
            self._max_bytes is not None and size > self._max_bytes
        )


class _TemporaryLease:
    """A context that holds the lease of a log; its value is whether the lease is free."""

    def __init__(self, database: DatabaseFile, sid: str) -> None:
        self._leases = database.leases
        self._sid = sid
        state = database.logs.get(sid)
        self._is_leased = state is not None and state.leased

    def __enter__(self) -> bool:
        return self._leases.take(self._sid)

    def __exit__(self, *exc: object) -> None:
        if not self._is_leased:
            self._leases.give_back(self._sid)


class _Cleanup:
    """Deletes the events of detached logs, then returns free pages to the file system."""

    def step(self, connection: sqlite3.Connection) -> bool:
        detached = connection.execute("SELECT log FROM log WHERE sid IS NULL LIMIT 1").fetchone()
        if detached is not None:
            part_end = connection.execute(
                "SELECT id FROM event WHERE log = ? ORDER BY id LIMIT 1 OFFSET ?",
                (detached[0], _PART),
            ).fetchone()
            _delete_events(connection, detached[0], part_end[0] if part_end else (1 << 63) - 1)
            if part_end is None:
                connection.execute("DELETE FROM log WHERE log = ? AND sid IS NULL", (detached[0],))
            return True
        connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
        if connection.execute("PRAGMA freelist_count").fetchone()[0]:
            return True
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return False


def _logs(connection: sqlite3.Connection) -> list[_LogSummary]:
    """Return the logs that hold events, in the order in which their last events were stored.

    The order does not depend on the times of events, because clocks can differ.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT log, sid, last, next_position - first_position, size FROM log "
        "WHERE sid IS NOT NULL AND next_position > first_position ORDER BY "
        "(SELECT n FROM event WHERE event.log = log.log ORDER BY id DESC LIMIT 1)"
    ).fetchall()
    for row in rows:
        if not isinstance(row[1], str):
            raise TypeError(f"the name of a session is {row[1]!r:.40}")
    return [_LogSummary(*row) for row in rows]


def _oldest_events(connection: sqlite3.Connection, without: set[int]) -> list[tuple[int, int, int]]:
    """Return the log, id and size of the events that were stored first, except for some logs."""
    excluded = ", ".join(map(str, without))
    return connection.execute(  # a detached log can still have events
        "SELECT log, id, size FROM event WHERE log IN (SELECT log FROM log WHERE sid NOT NULL) "  # noqa: S608 - numbers of this file
        f"AND log NOT IN ({excluded}) ORDER BY n LIMIT ?",
        (_PART,),
    ).fetchall()


def _old_end(connection: sqlite3.Connection, log: int, min_time: float) -> int:
    """Return the id before which all events are old.

    An event without a time is as old as the next event. An old event after a newer one is kept.
    """
    times = "INDEXED BY event_time WHERE log = ? AND time"
    new = connection.execute(f"SELECT min(id) FROM event {times} >= ?", (log, min_time))  # noqa: S608 - ours
    old = connection.execute(
        f"SELECT max(id) FROM event {times} > 0 AND time < ?",  # noqa: S608 - ours
        (log, min_time),
    )
    last_old = old.fetchone()[0]
    first_new = new.fetchone()[0]
    if last_old is None:
        return 0
    return int(last_old + 1 if first_new is None else min(last_old + 1, first_new))


def _detach_log(connection: sqlite3.Connection, database: DatabaseFile, sid: str) -> None:
    """Make a log invisible. `_Cleanup` deletes its events afterwards."""
    connection.execute("UPDATE log SET sid = NULL WHERE sid = ?", (sid,))
    state = database.logs.get(sid)
    if state is not None:
        state.reset()


def _delete_events(connection: sqlite3.Connection, log: int, end: int) -> int:
    """Delete the events of a log before an id, and large texts that no other event uses.

    Returns:
        The number of deleted events.
    """
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
