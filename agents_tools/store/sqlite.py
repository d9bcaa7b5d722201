"""Keeps events in a file, with SQLite."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agents_tools.errors import EventStoreError, UserValueError
from agents_tools.events import INVALID_ID
from agents_tools.store._pending import Pending
from agents_tools.store._protocol import SessionInfo
from agents_tools.store._sqlite_batch import Append, Reserve
from agents_tools.store._sqlite_keep import Deletion, Retention
from agents_tools.store._sqlite_place import BLOCK, Log, Place
from agents_tools.store._sqlite_query import Range, count_events, read_events
from agents_tools.store._sqlite_readers import Readers
from agents_tools.store._sqlite_rows import drafted
from agents_tools.store._sqlite_schema import open_file
from agents_tools.store._sqlite_watch import Watch
from agents_tools.store._sqlite_writer import Work, Writer

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from agents_tools.events import Event
    from agents_tools.store._filter import EventFilter
    from agents_tools.store._protocol import Durability

__all__ = ["SQLiteEventStore"]

T = TypeVar("T")


class SQLiteEventStore:
    """Keeps events in a file: many sessions in one, each with one writer and any readers.

    A session is leased by the store that first appends to it, or asks for its `next_id`, until it
    is closed or its process ends, in whatever way. Another writer is refused; readers are not.

    `expect_seq` counts all events that were ever appended to a session, also those that
    `retain` has deleted since.

    Args:
        path: The file; it is made if it is not there. Three others lie beside it while it is in
            use: `-wal` has the newest events, `-shm` and `-lease` may be deleted afterwards.
        sid: The name of the log.
        create: Whether to make the file.
        read_only: Whether to read only, what another store may be writing.
        timeout: How long to wait for other programs that hold the file, in seconds.

    Raises:
        EventStoreError: The file is not there, or was written by a later release.
        EventStoreCorruptError: It is another kind of file, or damaged.
        EventStoreFullError: It may not be written.
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
            self._shared = _Shared(_checked_path(path), create, timeout, read_only=read_only)
            self._finalizer = weakref.finalize(self, _end, self._shared)
        else:
            self._shared = _parent._shared  # noqa: SLF001 - of this class
        self._log = self._shared.log(sid)

    @property
    def path(self) -> str:
        """The file."""
        return self._shared.place.path

    @property
    def last_id(self) -> int:
        """The id of the newest event that is stored; -1 when there is none."""
        if self._log.leased or self._is_closed():
            return self._log.last_id
        return self._shared.readers.look(self._stored_ids)[0]

    @property
    def next_id(self) -> int:
        """The id that the next event is to have; whoever asks becomes the writer, if it can."""
        if self._is_closed():
            return self._log.next_id
        if not self._log.leased and not self._shared.writer.is_here:
            reserving: Pending[int] = Pending()
            with contextlib.suppress(EventStoreError, TimeoutError):
                self._shared.put(Reserve(log=self._log, pending=reserving))
                reserving.result(self._shared.place.timeout)
        if self._log.leased:
            return self._log.next_id
        return max(self._shared.readers.look(self._stored_ids)) + 1

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> Pending[int]:
        """Store events, all or none; begins at once, together with what waits by then.

        Args:
            events: The events; those without an id get the next ones.
            expect_seq: How many events the log has to hold before.
            durability: `normal` survives the end of the process, `sync` the loss of power.
        """
        pending: Pending[int] = Pending()
        try:
            drafts = [drafted(event) for event in events]
            self._check_open()
            job = Append(
                log=self._log,
                drafts=drafts,
                expected=expect_seq,
                sync=durability == "sync",
                pending=pending,
                size=sum([draft.size for draft in drafts]),
            )
            if drafts and drafts[-1].id != INVALID_ID:
                self._log.begun[job] = drafts[-1].id
            self._shared.put(job)
        except Exception as error:  # noqa: BLE001 - whoever waits for the outcome gets it
            pending.fail(error)
        return pending

    def reserve(self, id: int, /) -> None:
        """Note that ids up to this one are given; they are set aside by blocks, ahead of use.

        The first block is written when the session is leased, which asking for `next_id` does.
        """
        log = self._log
        log.asked = max(log.asked, id)
        if log.asked + BLOCK // 2 > log.block and not log.asking:
            log.asking = True
            try:
                self._check_open()
                self._shared.put(Reserve(log=log, pending=Pending()))
            except EventStoreError:
                log.asking = False

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> Pending[list[Event]]:
        """Give events in order of their ids, in a thread of the store.

        An event whose class is not registered here comes as an `UnknownEvent`, with its own `type`.

        Args:
            after: Only those with greater ids.
            before: Only those with smaller ids.
            limit: How many at most.
            reverse: Newest first; `limit` then means the newest ones.
            where: Which ones.
        """
        if self._is_closed():
            return Pending.failed(self._closed_error())
        path, sid = self.path, self.sid
        span = Range(after, before, reverse=reverse)
        return self._shared.readers.begin(
            lambda connection: read_events(connection, path, sid, span, limit, where)
        )

    def count(self, after: int = -1, *, before: int | None = None) -> Pending[int]:
        """Count the events between two ids, both excluded, without reading them."""
        if self._is_closed():
            return Pending.failed(self._closed_error())
        sid, span = self.sid, Range(after, before)
        return self._shared.readers.begin(lambda connection: count_events(connection, sid, span))

    def wait(self, after: int, /) -> Pending[int]:
        """Wait for an event with a greater id, whichever process stores it; may be cancelled."""
        try:
            self._check_open()
            return self._shared.wait(self._log, after, self._stored_ids)
        except EventStoreError as error:
            return Pending.failed(error)

    def session(self, sid: str, /) -> SQLiteEventStore:
        """Give another log of the same file."""
        self._check_open()
        return SQLiteEventStore(self.path, sid, _parent=self._parent or self)

    def sessions(self) -> Pending[list[SessionInfo]]:
        """List the logs that hold events, by name."""
        if self._is_closed():
            return Pending.failed(self._closed_error())
        return self._shared.readers.begin(_sessions)

    def delete(self, sid: str, /) -> Pending[None]:
        """Delete a log and give back its room; refused while another process writes to it."""
        return self._work(Deletion(self._shared.place, sid).step, lambda: None)

    def retain(
        self,
        *,
        max_events: int | None = None,
        max_age: float | None = None,
        max_bytes: int | None = None,
    ) -> Pending[int]:
        """Delete what is old from all logs of the file, and give back its room.

        Logs that nobody has open go first, as a whole: those whose newest event is too old, then,
        while there is too much, the one that was quiet for longest. Of the others the oldest
        events go. A log that another process writes to is left as it is.

        Args:
            max_events: How many events to keep in all.
            max_age: How old an event may be, in seconds.
            max_bytes: How many bytes the JSON of the events may take.

        Returns:
            How many events were deleted.
        """
        work = Retention(
            self._shared.place, max_events=max_events, max_age=max_age, max_bytes=max_bytes
        )
        return self._work(work.step, lambda: work.deleted)

    def close(self) -> None:
        """Store what was begun and let go of the log; the first store lets go of the file."""
        if self._parent is None:
            self._finalizer()
        elif not self._is_closed():
            self._closed = True
            self._shared.leave(self._log)

    # --- inside -----------------------------------------------------------------------------------

    def _work(
        self, step: Callable[[sqlite3.Connection], bool], result: Callable[[], T]
    ) -> Pending[T]:
        pending: Pending[T] = Pending()
        try:
            self._check_open()
            self._shared.put(Work(step=step, pending=pending, result=result))
        except EventStoreError as error:
            pending.fail(error)
        return pending

    def _stored_ids(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Give the last id and the greatest one that is set aside, as the file has them."""
        found: tuple[int, int] | None = connection.execute(
            "SELECT last_id, reserved FROM log WHERE sid = ?", (self.sid,)
        ).fetchone()
        return found or (INVALID_ID, INVALID_ID)

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


class _Shared:
    """What the stores of one opened file share.

    Args:
        path: The file.
        create: Whether to make it.
        timeout: How long to wait for other programs, in seconds.
        read_only: Whether nothing may be written.
    """

    def __init__(self, path: str, create: bool, timeout: float, *, read_only: bool) -> None:
        connection = open_file(path, create=create, read_only=read_only, timeout=timeout)
        self.place = Place(path, timeout, connection)
        self.read_only = read_only
        self.closed = False
        self._lock = threading.RLock()
        self.readers = Readers(self.place)
        self.writer = Writer(self.place, self._stored)
        self._watch = Watch(self.readers, self._is_waited_for, self._look)
        _all.add(self)

    def put(self, job: Append | Reserve | Work) -> None:
        """Hand a job to the writer.

        Raises:
            EventStoreError: The store is closed, or may only read.
        """
        if self.read_only:
            raise EventStoreError(
                f"{self.place.path} was opened with read_only=True: nothing can be written to it.",
                store=self.place.path,
            )
        self.writer.put(job)

    def log(self, sid: str) -> Log:
        """Give what is known of a log, to one more store."""
        with self._lock:
            log = self.place.logs.get(sid)
            if log is None:
                log = self.place.logs[sid] = Log(sid)
            log.handles += 1
            return log

    def leave(self, log: Log) -> None:
        """Let a store go; the last one of a log gives its lease back."""
        with self._lock:
            log.handles -= 1
            if log.handles:
                return
            self.place.logs.pop(log.sid, None)
            waiting = list(log.waiting)
            log.waiting.clear()
        self._fail(waiting)
        if not self.writer.has_begun:
            return
        releasing: Pending[None] = Pending()

        def release(connection: sqlite3.Connection) -> bool:
            del connection
            self.place.release(log)
            return False

        with contextlib.suppress(EventStoreError):
            self.put(Work(step=release, pending=releasing))
            if not self.writer.is_here:
                releasing.result()

    def wait(
        self, log: Log, after: int, look: Callable[[sqlite3.Connection], tuple[int, int]]
    ) -> Pending[int]:
        """Wait for an event with a greater id."""
        pending: Pending[int] = Pending(on_cancel=lambda: self._give_up(log, pending))
        with self._lock:
            if log.leased and log.last_id > after:
                return Pending.now(log.last_id)
            log.waiting[pending] = after
        if not log.leased:
            try:
                last = self.readers.look(look)[0]
            except EventStoreError:
                self._give_up(log, pending)
                raise
            if last > after:
                self._give_up(log, pending)
                return Pending.now(last)
            self._watch.begin()
        if self.closed:
            self._fail([pending])
        return pending

    def close(self) -> None:
        """Store what was begun, release whoever waits, and let go of the file."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            logs = list(self.place.logs.values())
            waiting = [pending for log in logs for pending in log.waiting]
        _all.discard(self)
        self._watch.close()
        self.readers.close()
        self.writer.close()
        self._fail(waiting)

    def after_fork(self) -> None:
        """Start anew in a child process."""
        self._lock = threading.RLock()
        self.place.after_fork()
        self.readers.after_fork()
        self.writer.after_fork()
        self._watch.after_fork()

    def _stored(self, log: Log, last: int) -> None:
        """Wake those who wait for events of a log: it has some up to this id."""
        with self._lock:
            due = [pending for pending, after in log.waiting.items() if last > after]
            for pending in due:
                del log.waiting[pending]
        for pending in due:
            pending.resolve(last)

    def _is_waited_for(self) -> bool:
        """Whether somebody waits for what another process may store."""
        with self._lock:
            return any(log.waiting and not log.leased for log in self.place.logs.values())

    def _look(self) -> None:
        """See whether another process stored what is waited for."""
        with self._lock:
            logs = [log for log in self.place.logs.values() if log.waiting and not log.leased]
        try:
            stored = dict(self.readers.look(_last_ids)) if logs else {}
        except EventStoreError as error:
            for log in logs:
                with self._lock:
                    waiting = list(log.waiting)
                    log.waiting.clear()
                self._fail(waiting, error)
            return
        for log in logs:
            self._stored(log, stored.get(log.sid, INVALID_ID))

    def _give_up(self, log: Log, pending: Pending[int]) -> None:
        with self._lock:
            log.waiting.pop(pending, None)

    def _fail(self, waiting: Iterable[Pending[int]], error: EventStoreError | None = None) -> None:
        path = self.place.path
        for pending in waiting:
            closed = EventStoreError(f"The event store {path} is closed.", store=path)
            pending.fail(error or closed)


def _end(shared: _Shared) -> None:
    """Close what nobody holds any more.

    A thread of the store may be the one that finds out, anywhere; it must not wait for the others.
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
        for sid, events, first, last, last_id, size in map(_checked, rows)
    ]


def _checked(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse what a log of a sound file does not say of itself."""
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
            f"{sid!r} cannot name a session: it has half of a character in it."
        ) from None


def _checked_path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if text in {"", ":memory:"} or "\0" in text:
        raise UserValueError(
            f"{text!r} is no path of a file. Events that need not last are for MemoryEventStore."
        )
    return text


_all: Final[weakref.WeakSet[_Shared]] = weakref.WeakSet()


def _after_fork() -> None:
    for shared in list(_all):
        shared.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
