"""An event store in an SQLite file."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import EventStoreError, UserValueError
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.protocol import SessionInfo
from agents_tools.persistence.sqlite.batch import AppendRequest, ReserveRequest
from agents_tools.persistence.sqlite.connection import BLOCK, DatabaseFile, SQLiteLog
from agents_tools.persistence.sqlite.query import Range, count_events, read_events
from agents_tools.persistence.sqlite.readers import Readers
from agents_tools.persistence.sqlite.retention import Deletion, Retention
from agents_tools.persistence.sqlite.rows import event_to_row
from agents_tools.persistence.sqlite.schema import open_file
from agents_tools.persistence.sqlite.watch import DatabaseWatch
from agents_tools.persistence.sqlite.writer import DatabaseJob, DatabaseWriter

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter
    from agents_tools.persistence.protocol import Durability

__all__ = ["SQLiteEventStore"]

T = TypeVar("T")


class SQLiteEventStore:
    """An event store in an SQLite file: many sessions, each with one writer and many readers.

    The store that first appends to a session, or reads its `next_id`, holds the lease of the
    session until it is closed or its process ends. Other writers are refused; readers are not.

    `expect_seq` counts all events that were ever appended to a session, including those that
    `retain` has deleted.

    Args:
        path: The path of the file. Three more files are next to it while it is in use: `-wal` with
            the newest events, and `-shm` and `-lease`, which you can delete afterwards.
        sid: The name of the log.
        create: Whether to create the file if it does not exist.
        read_only: Whether to open the file for reading only. Another store can write to it.
        timeout: How long to wait for a lock of another process, in seconds.

    Raises:
        EventStoreError: The file does not exist, or a later release has written it.
        EventStoreCorruptError: The file is damaged or not an event store.
        EventStoreFullError: The file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        sid: str = "default",
        *,
        create: bool = True,
        read_only: bool = False,
        timeout: float = 5.0,
        _parent: SQLiteEventStore | None = None,
    ) -> None:
        _check_name(sid)
        self.sid = sid
        self._parent = _parent
        self._closed = False
        if _parent is None:
            self._shared = _SharedDatabase(
                _checked_path(path), create, timeout, read_only=read_only
            )
            self._finalizer = weakref.finalize(self, _close_database, self._shared)
        else:
            self._shared = _parent._shared  # noqa: SLF001 - of this class
        self._log = self._shared.log(sid)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._shared.database.path

    @property
    def last_id(self) -> int:
        """The id of the newest stored event; -1 if there is none."""
        if self._log.leased or self._is_closed():
            return self._log.last_id
        return self._shared.readers.run(self._stored_ids)[0]

    @property
    def next_id(self) -> int:
        """The id of the next event. Reading it makes this store the writer, if possible."""
        if self._is_closed():
            return self._log.next_id
        if not self._log.leased and not self._shared.writer.is_current_thread:
            reserving: PendingFuture[int] = PendingFuture()
            with contextlib.suppress(EventStoreError, TimeoutError):
                self._shared.put(ReserveRequest(log=self._log, pending=reserving))
                reserving.result(self._shared.database.timeout)
        if self._log.leased:
            return self._log.next_id
        return max(self._shared.readers.run(self._stored_ids)) + 1

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> PendingFuture[int]:
        """Store events, all or none. Writing begins at once, in one batch with waiting appends.

        Args:
            events: The events. Those without an id get the next ids.
            expect_seq: The number of events that the log must hold before.
            durability: `normal` survives the end of the process, `sync` also a power failure.
        """
        pending: PendingFuture[int] = PendingFuture()
        try:
            rows = [event_to_row(event) for event in events]
            self._check_open()
            job = AppendRequest(
                log=self._log,
                rows=rows,
                expected=expect_seq,
                sync=durability == "sync",
                pending=pending,
                size=sum([row.size for row in rows]),
            )
            if rows and rows[-1].id != INVALID_ID:
                self._log.unsettled[job] = rows[-1].id
            self._shared.put(job)
        except Exception as error:  # noqa: BLE001 - raised by the future
            pending.fail(error)
        return pending

    def reserve(self, id: int, /) -> None:
        """Mark ids up to this one as used. Ids are reserved in blocks, ahead of use.

        The first block is written when the store gets the lease, for example in `next_id`.
        """
        log = self._log
        log.reserved_id = max(log.reserved_id, id)
        if log.reserved_id + BLOCK // 2 > log.block_end and not log.is_reserving:
            log.is_reserving = True
            try:
                self._check_open()
                self._shared.put(ReserveRequest(log=log, pending=PendingFuture()))
            except EventStoreError:
                log.is_reserving = False

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> PendingFuture[list[Event]]:
        """Return events in the order of their ids. A thread of the store reads them.

        An event whose class is not registered is returned as an `UnknownEvent` with its `type`.

        Args:
            after: Return only events with larger ids.
            before: Return only events with smaller ids.
            limit: The largest number of events.
            reverse: Whether to return the newest events first. `limit` then keeps the newest.
            where: The filter for events.
        """
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        path, sid = self.path, self.sid
        span = Range(after, before, reverse=reverse)
        return self._shared.readers.submit(
            lambda connection: read_events(connection, path, sid, span, limit, where)
        )

    def count(self, after: int = -1, *, before: int | None = None) -> PendingFuture[int]:
        """Return the number of events between two ids, both excluded, without reading them."""
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        sid, span = self.sid, Range(after, before)
        return self._shared.readers.submit(lambda connection: count_events(connection, sid, span))

    def wait(self, after: int, /) -> PendingFuture[int]:
        """Wait for an event with a larger id, from any process. The future can be cancelled."""
        try:
            self._check_open()
            return self._shared.wait(self._log, after, self._stored_ids)
        except EventStoreError as error:
            return PendingFuture.failed(error)

    def session(self, sid: str, /) -> SQLiteEventStore:
        """Return another log of the same file."""
        self._check_open()
        return SQLiteEventStore(self.path, sid, _parent=self._parent or self)

    def sessions(self) -> PendingFuture[list[SessionInfo]]:
        """List the logs that hold events, sorted by name."""
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._shared.readers.submit(_sessions)

    def delete(self, sid: str, /) -> PendingFuture[None]:
        """Delete a log and free its space. This fails while another process writes to it."""
        return self._submit_steps(Deletion(self._shared.database, sid).step, lambda: None)

    def retain(
        self,
        *,
        max_events: int | None = None,
        max_age: float | None = None,
        max_bytes: int | None = None,
    ) -> PendingFuture[int]:
        """Delete old events from all logs of the file, and free their space.

        Logs that are not open are deleted first, as a whole: those whose newest event is too old,
        and then those with the oldest last event, until the limits are met. From open logs, the
        oldest events are deleted. Logs that another process writes to are not changed.

        Args:
            max_events: The number of events to keep in all logs together.
            max_age: The largest age of an event, in seconds.
            max_bytes: The largest size of the JSON of all events, in bytes.

        Returns:
            A future with the number of deleted events.
        """
        work = Retention(
            self._shared.database, max_events=max_events, max_age=max_age, max_bytes=max_bytes
        )
        return self._submit_steps(work.step, lambda: work.deleted)

    def close(self) -> None:
        """Finish pending writes and close the log. The original store also closes the file."""
        if self._parent is None:
            self._finalizer()
        elif not self._is_closed():
            self._closed = True
            self._shared.release(self._log)

    def _submit_steps(
        self, step: Callable[[sqlite3.Connection], bool], result: Callable[[], T]
    ) -> PendingFuture[T]:
        pending: PendingFuture[T] = PendingFuture()
        try:
            self._check_open()
            self._shared.put(DatabaseJob(step=step, pending=pending, result=result))
        except EventStoreError as error:
            pending.fail(error)
        return pending

    def _stored_ids(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Return the last id and the largest reserved id in the file."""
        row: tuple[int, int] | None = connection.execute(
            "SELECT last_id, reserved FROM log WHERE sid = ?", (self.sid,)
        ).fetchone()
        return row or (INVALID_ID, INVALID_ID)

    def _is_closed(self) -> bool:
        return self._closed or self._shared.closed

    def _check_open(self) -> None:
        if self._is_closed():
            raise self._closed_error()

    def _closed_error(self) -> EventStoreError:
        return EventStoreError(
            f"Session {self.sid!r} in {self.path} is closed. Open it again with "
            "SQLiteEventStore(path, sid).",
            store=self.path,
        )


class _SharedDatabase:
    """The state that the stores of one open file share.

    Args:
        path: The file.
        create: Whether to create the file.
        timeout: How long to wait for a lock of another process, in seconds.
        read_only: Whether writing is refused.
    """

    def __init__(self, path: str, create: bool, timeout: float, *, read_only: bool) -> None:
        connection = open_file(path, create=create, read_only=read_only, timeout=timeout)
        self.database = DatabaseFile(path, timeout, connection)
        self.read_only = read_only
        self.closed = False
        self._lock = threading.RLock()
        self.readers = Readers(self.database)
        self.writer = DatabaseWriter(self.database, self._resolve_waits)
        self._watch = DatabaseWatch(self.readers, self._needs_watch, self._check_waits)
        _open_databases.add(self)

    def put(self, job: AppendRequest | ReserveRequest | DatabaseJob) -> None:
        """Submit a job to the writer.

        Raises:
            EventStoreError: The store is closed or read-only.
        """
        if self.read_only:
            raise EventStoreError(
                f"{self.database.path} is read-only. Open it without read_only=True to write.",
                store=self.database.path,
            )
        self.writer.put(job)

    def log(self, sid: str) -> SQLiteLog:
        """Return the shared state of a log and count one more store."""
        with self._lock:
            log = self.database.logs.get(sid)
            if log is None:
                log = self.database.logs[sid] = SQLiteLog(sid)
            log.handles += 1
            return log

    def release(self, log: SQLiteLog) -> None:
        """Remove a store from a log. The last one releases the lease."""
        with self._lock:
            log.handles -= 1
            if log.handles:
                return
            self.database.logs.pop(log.sid, None)
            waiting = list(log.waiting)
            log.waiting.clear()
        self._fail_waits(waiting)
        if not self.writer.has_started:
            return
        releasing: PendingFuture[None] = PendingFuture()

        def release_lease(connection: sqlite3.Connection) -> bool:
            del connection
            self.database.release(log)
            return False

        with contextlib.suppress(EventStoreError):
            self.put(DatabaseJob(step=release_lease, pending=releasing))
            if not self.writer.is_current_thread:
                releasing.result()

    def wait(
        self, log: SQLiteLog, after: int, look: Callable[[sqlite3.Connection], tuple[int, int]]
    ) -> PendingFuture[int]:
        """Wait for an event with a larger id."""
        pending: PendingFuture[int] = PendingFuture(
            on_cancel=lambda: self._discard_wait(log, pending)
        )
        with self._lock:
            if log.leased and log.last_id > after:
                return PendingFuture.now(log.last_id)
            log.waiting[pending] = after
        if not log.leased:
            try:
                last = self.readers.run(look)[0]
            except EventStoreError:
                self._discard_wait(log, pending)
                raise
            if last > after:
                self._discard_wait(log, pending)
                return PendingFuture.now(last)
            self._watch.start()
        if self.closed:
            self._fail_waits([pending])
        return pending

    def close(self) -> None:
        """Finish pending writes, fail the pending waits and close the file."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            logs = list(self.database.logs.values())
            waiting = [pending for log in logs for pending in log.waiting]
        _open_databases.discard(self)
        self._watch.close()
        self.readers.close()
        self.writer.close()
        self._fail_waits(waiting)

    def after_fork(self) -> None:
        """Reset in a forked child process."""
        self._lock = threading.RLock()
        self.database.after_fork()
        self.readers.after_fork()
        self.writer.after_fork()
        self._watch.after_fork()

    def _resolve_waits(self, log: SQLiteLog, last: int) -> None:
        """Resolve the waits for events of a log up to this id."""
        with self._lock:
            due = [pending for pending, after in log.waiting.items() if last > after]
            for pending in due:
                del log.waiting[pending]
        for pending in due:
            pending.resolve(last)

    def _needs_watch(self) -> bool:
        """Return whether a future waits for events of another process."""
        with self._lock:
            return any(log.waiting and not log.leased for log in self.database.logs.values())

    def _check_waits(self) -> None:
        """Check whether another process has stored events that a future waits for."""
        with self._lock:
            logs = [log for log in self.database.logs.values() if log.waiting and not log.leased]
        try:
            stored = dict(self.readers.run(_last_ids)) if logs else {}
        except EventStoreError as error:
            for log in logs:
                with self._lock:
                    waiting = list(log.waiting)
                    log.waiting.clear()
                self._fail_waits(waiting, error)
            return
        for log in logs:
            self._resolve_waits(log, stored.get(log.sid, INVALID_ID))

    def _discard_wait(self, log: SQLiteLog, pending: PendingFuture[int]) -> None:
        with self._lock:
            log.waiting.pop(pending, None)

    def _fail_waits(
        self, waiting: Iterable[PendingFuture[int]], error: EventStoreError | None = None
    ) -> None:
        path = self.database.path
        for pending in waiting:
            closed = EventStoreError(f"The event store {path} is closed.", store=path)
            pending.fail(error or closed)


def _close_database(shared: _SharedDatabase) -> None:
    """Close a file whose stores were garbage-collected.

    This can run in a thread of the store itself, which must not wait for the other threads.
    """
    if threading.current_thread().name.startswith("agents-tools-store"):
        threading.Thread(target=shared.close, name="agents-tools-store-end", daemon=True).start()
    else:
        shared.close()


def _sessions(connection: sqlite3.Connection) -> list[SessionInfo]:
    rows = connection.execute(
        "SELECT sid, next_position - first_position, first, last, last_id, size FROM log "
        "WHERE sid IS NOT NULL AND next_position > first_position ORDER BY sid"
    )
    return [
        SessionInfo(sid=str(sid), events=events, first=first, last=last, last_id=last_id, size=size)
        for sid, events, first, last, last_id, size in map(_check_numbers, rows)
    ]


def _check_numbers(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Raise `TypeError` if a row of a damaged file has a value that is not a number."""
    for value in row[1:]:
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"{value!r:.40} for a number")
    return row


def _last_ids(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return connection.execute("SELECT sid, last_id FROM log WHERE sid IS NOT NULL").fetchall()


def _check_name(sid: str) -> None:
    try:
        sid.encode()
    except UnicodeEncodeError:
        raise UserValueError(
            f"sid is invalid: expected valid Unicode, got {sid!r}. Remove the lone surrogate."
        ) from None


def _checked_path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if text in {"", ":memory:"} or "\0" in text:
        raise UserValueError(
            f"SQLiteEventStore(path): expected the path of a file, got {text!r}. Use "
            "MemoryEventStore for events in memory."
        )
    return text


_open_databases: Final[weakref.WeakSet[_SharedDatabase]] = weakref.WeakSet()


def _after_fork() -> None:
    for shared in list(_open_databases):
        shared.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
