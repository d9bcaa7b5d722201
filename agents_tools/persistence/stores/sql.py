"""The storage of run logs in an SQL database: one implementation for SQLite and PostgreSQL."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar, cast

from pydantic_core import from_json

from agents_tools.errors import (
    EventConflictError,
    EventStoreCorruptError,
    EventStoreError,
    UserValueError,
)
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.lease import LeaseHolder
from agents_tools.persistence.rows import COLUMNS, column_text, event_of_row, facts_of
from agents_tools.persistence.storage import (
    AppendRows,
    DeleteLog,
    LogPosition,
    PostMessage,
    ReleaseLease,
    RenewLeases,
    RetainLogs,
    RunInfo,
    RunMessage,
    TakeLease,
)
from agents_tools.persistence.write_errors import (
    already_posted_error,
    append_conflict_error,
    id_conflict_error,
    run_in_use_error,
    session_in_use_error,
    stale_lease_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter
    from agents_tools.persistence.rows import EventRow
    from agents_tools.persistence.storage import ReadSpan, WriteRequest

__all__ = ["SQLStorage"]

_LAST: Final = (1 << 63) - 1
_PAGE: Final = 1_000
_MICRO: Final = 2e-6
"""The tolerance for times in a query, in seconds: stored times have whole microseconds."""

TABLES: Final = (
    """
    CREATE TABLE log (
        log {key},
        name TEXT NOT NULL UNIQUE,
        session TEXT,
        agent TEXT,
        kind TEXT,
        owner TEXT,
        facts TEXT,
        status TEXT,
        last_id BIGINT NOT NULL DEFAULT -1,
        appended BIGINT NOT NULL DEFAULT 0,
        events BIGINT NOT NULL DEFAULT 0,
        size BIGINT NOT NULL DEFAULT 0,
        reserved BIGINT NOT NULL DEFAULT -1,
        message BIGINT NOT NULL DEFAULT 0,
        started DOUBLE PRECISION,
        updated DOUBLE PRECISION,
        epoch BIGINT NOT NULL DEFAULT 0,
        holder TEXT,
        expires DOUBLE PRECISION
    )
    """,
    "CREATE INDEX log_session ON log (session) WHERE session IS NOT NULL",
    "CREATE INDEX log_status ON log (status) WHERE status IS NOT NULL",
    """
    CREATE TABLE event (
        log BIGINT NOT NULL,
        id BIGINT NOT NULL,
        time DOUBLE PRECISION NOT NULL,
        type TEXT NOT NULL,
        source TEXT,
        cause BIGINT,
        call TEXT,
        tool TEXT,
        run TEXT,
        hidden SMALLINT NOT NULL,
        display SMALLINT NOT NULL,
        root SMALLINT NOT NULL,
        size BIGINT NOT NULL,
        body TEXT NOT NULL,
        large TEXT,
        PRIMARY KEY (log, id)
    )
    """,
    "CREATE INDEX event_type ON event (log, type, id)",
    "CREATE INDEX event_call ON event (log, call, id) WHERE call IS NOT NULL",
    "CREATE INDEX event_cause ON event (log, cause, id) WHERE cause IS NOT NULL",
    "CREATE INDEX event_display ON event (log, id) WHERE display = 1",
    "CREATE TABLE blob (digest {bytes} PRIMARY KEY, content {bytes} NOT NULL)",
    """
    CREATE TABLE blob_use (
        log BIGINT NOT NULL,
        id BIGINT NOT NULL,
        digest {bytes} NOT NULL,
        PRIMARY KEY (log, id, digest)
    )
    """,
    "CREATE INDEX blob_use_digest ON blob_use (digest)",
    """
    CREATE TABLE message (
        log BIGINT NOT NULL,
        number BIGINT NOT NULL,
        key TEXT,
        body TEXT NOT NULL,
        PRIMARY KEY (log, number)
    )
    """,
    "CREATE UNIQUE INDEX message_key ON message (log, key) WHERE key IS NOT NULL",
)
"""The tables of version 1, with the types that differ between databases."""

_INSERT: Final = (
    f"INSERT INTO event ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
)
_INFO: Final = (
    "SELECT name, session, agent, kind, owner, facts, status, holder, expires, started, updated, "
    "last_id, events, size FROM log"
)


S = TypeVar("S", bound="SQLStorage")
T = TypeVar("T")
P = ParamSpec("P")


def _retried(read: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Let a method for reading try again after an error that can pass."""

    @wraps(read)
    def retried(storage: S, /, *args: P.args, **options: P.kwargs) -> T:
        return storage.retry(lambda: read(storage, *args, **options))

    return retried


class SQLStorage(ABC):
    """The storage of run logs in an SQL database.

    A subclass connects to a database and translates its errors. All statements have `?` for
    parameters.

    Args:
        place: The path or address, without secrets.
        lease_ttl: The time after which a lease that is not renewed expires, in seconds.
    """

    is_immediate = False
    value_errors: tuple[type[Exception], ...] = (ValueError, OverflowError)
    """The errors of the database for a value that it cannot store."""
    passing_errors: tuple[type[Exception], ...] = ()
    """The errors of the database that can pass: collisions, and broken connections."""
    patience = 0.0
    """How long to try again after such an error, in seconds."""
    for_update = ""
    """The clause that locks the rows of a query until the end of the transaction."""

    def __init__(self, place: str, lease_ttl: float) -> None:
        if not isinstance(cast("object", lease_ttl), (int, float)) or not lease_ttl > 0:
            raise UserValueError(
                f"lease_ttl= expects a number of seconds above 0, got {lease_ttl!r:.60}."
            )
        self.place = place
        self.lease_ttl = lease_ttl
        self._writer: Any = None
        self._pool: deque[Any] = deque()
        self._pool_lock = threading.Lock()
        self._closed = False

    # --- the database

    @abstractmethod
    def connect(self, use: Literal["write", "read"]) -> Any:
        """Open a connection that `execute` accepts."""

    @abstractmethod
    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement, and return its cursor."""

    @abstractmethod
    def execute_many(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row of values."""

    @abstractmethod
    def begin(self, connection: Any, *, sync: bool) -> None:
        """Begin a transaction; with `sync`, it has to survive a power failure."""

    @abstractmethod
    def commit(self, connection: Any) -> None:
        """Commit the transaction, and wake other processes that wait for a change."""

    def has_committed(self, error: Exception) -> bool:
        """Return whether a transaction was committed although there was an error."""
        del error
        return False

    @abstractmethod
    def discard(self, connection: Any) -> None:
        """Close a connection, also a broken one."""

    @abstractmethod
    def translate(self, error: Exception) -> Exception:
        """Return the `EventStoreError` for an error of the database; other errors as they are."""

    @abstractmethod
    def now(self, connection: Any) -> float:
        """Return the time that leases are compared with, the same for all processes."""

    def free_space(self, connection: Any) -> None:  # noqa: B027 - optional
        """Return the space of deleted logs, if the database does not do so by itself."""

    def lock_text(self, connection: Any, text: str) -> None:  # noqa: B027 - optional
        """Let no other transaction continue that locks the same text.

        A database with one writer at a time needs no such lock.
        """

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except Exception as error:
            translated = self.translate(error)
            if translated is error:
                raise
            raise translated from error

    # --- writing

    def write(self, requests: Sequence[WriteRequest], /) -> Sequence[Any]:
        """Apply requests in one transaction; see `LogStorage.write`.

        If the database cannot store a value, each request is applied in a transaction of its own,
        because the other ones can succeed.
        """
        try:
            return self.retry(lambda: self._write(requests))
        except EventStoreError as error:
            if len(requests) == 1 or not isinstance(error.__cause__, self.value_errors):
                return [error] * len(requests)
        results: list[Any] = []
        for request in requests:
            try:
                results += self.retry(partial(self._write, [request]))
            except EventStoreError as error:
                results.append(error)
        return results

    def retry(self, act: Callable[[], T]) -> T:
        """Return the result of a function, and try again after an error that can pass."""
        until, delay = time.monotonic() + self.patience, 0.01
        while True:
            try:
                return act()
            except EventStoreError as error:
                is_late = time.monotonic() + delay >= until
                if is_late or not isinstance(error.__cause__, self.passing_errors):
                    raise
            time.sleep(delay)
            delay = min(2 * delay, 0.5)

    def _write(self, requests: Sequence[WriteRequest]) -> list[Any]:
        results: list[Any] = []
        sync = any(isinstance(one, AppendRows) and one.sync for one in requests)
        with self._translated():
            if self._writer is None:
                self._writer = self.connect("write")
            connection = self._writer
            try:
                self.begin(connection, sync=sync)
                self._lock_logs(connection, requests)
                for group in _groups(requests):
                    results += self._apply(connection, group)
                self.commit(connection)
                if any(isinstance(one, DeleteLog | RetainLogs) for one in requests):
                    self.free_space(connection)
            except BaseException as error:
                self._writer = None
                self.discard(connection)
                if not isinstance(error, Exception) or not self.has_committed(error):
                    raise
        return results

    def _lock_logs(self, connection: Any, requests: Sequence[WriteRequest]) -> None:
        """Lock several logs in one order, so that processes do not block each other."""
        names = {one.name for one in requests if not isinstance(one, RenewLeases | RetainLogs)}
        if self.for_update and len(names) > 1:
            self.execute(
                connection,
                f"SELECT log FROM log WHERE name IN ({_placeholders([*names])}) ORDER BY name"
                f"{self.for_update}",
                [*names],
            )

    def _apply(self, connection: Any, group: Sequence[WriteRequest]) -> Sequence[Any]:
        """Apply a request, or several appends to one log; return their results or errors."""
        try:
            if isinstance(group[0], AppendRows):
                return self._append(connection, cast("Sequence[AppendRows]", group))
            return [self._apply_one(connection, group[0])]
        except EventStoreError as error:
            return [error] * len(group)  # refused before anything was written

    def _apply_one(self, connection: Any, request: WriteRequest) -> Any:
        match request:
            case TakeLease():
                return self._take(connection, request)
            case ReleaseLease():
                return self._release(connection, request)
            case RenewLeases():
                return self._renew(connection, request)
            case AppendRows():
                return self._append(connection, [request])[0]
            case PostMessage():
                return self._post(connection, request)
            case DeleteLog():
                return self._delete(connection, request)
            case RetainLogs():
                return self._retain(connection, request)

    def _take(self, connection: Any, request: TakeLease) -> LogPosition:
        now = self.now(connection)
        name, session = request.name, column_text(request.session)
        if session is not None:
            self.lock_text(connection, session)
            others = self.execute(
                connection,
                "SELECT name, holder, expires FROM log WHERE session = ? AND name <> ? "
                "AND holder IS NOT NULL",
                (session, name),
            ).fetchall()
            for other, holder, expires in others:
                active = self._active_holder(holder, expires, now)
                if active is not None:
                    raise session_in_use_error(session, other, self.place, active)
        self.execute(
            connection, "INSERT INTO log (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (name,)
        )
        key, holder, expires, *position = self.execute(
            connection,
            "SELECT log, holder, expires, epoch, last_id, reserved, message, agent FROM log "
            f"WHERE name = ?{self.for_update}",
            (name,),
        ).fetchone()
        active = self._active_holder(holder, expires, now)
        if active is not None and active.token != request.holder.token:
            raise run_in_use_error(name, self.place, active)
        self.execute(
            connection,
            "UPDATE log SET epoch = epoch + 1, holder = ?, expires = ?, "
            "session = coalesce(?, session), "
            "status = CASE WHEN status = 'interrupted' THEN 'running' ELSE status END "
            "WHERE log = ?",
            (request.holder.to_json(), now + request.ttl, session, key),
        )
        return _position(position[0] + 1, *position[1:])

    def _active_holder(
        self, holder: str | None, expires: float | None, now: float
    ) -> LeaseHolder | None:
        """Return the holder of a lease that is not free."""
        if holder is None or (expires or 0.0) < now:
            return None
        found = LeaseHolder.from_json(holder)
        return None if found is None or found.has_ended() else found

    def _release(self, connection: Any, request: ReleaseLease) -> None:
        self.execute(
            connection,
            "UPDATE log SET holder = NULL, expires = NULL, "
            "reserved = ? WHERE name = ? AND epoch = ?",
            (request.reserved, request.name, request.epoch),
        )
        self.execute(
            connection,
            "DELETE FROM log WHERE name = ? AND appended = 0 AND reserved = -1 AND message = 0 "
            "AND holder IS NULL",
            (request.name,),
        )

    greatest = "greatest"
    """The function that returns the largest of its arguments."""

    def _renew(self, connection: Any, request: RenewLeases) -> list[str]:
        expires = self.now(connection) + request.ttl
        return [
            name
            for name, epoch in request.leases.items()
            if not self.execute(
                connection,
                "UPDATE log SET expires = ? WHERE name = ? AND epoch = ? AND holder IS NOT NULL",
                (expires, name, epoch),
            ).rowcount
        ]

    def _append(self, connection: Any, requests: Sequence[AppendRows]) -> list[Any]:
        """Append to one log; only a single request can do more than append."""
        request = requests[-1]
        found = self.execute(
            connection,
            "SELECT log, last_id, appended FROM log "
            f"WHERE name = ? AND epoch = ? AND holder IS NOT NULL{self.for_update}",
            (request.name, request.epoch),
        ).fetchone()
        if found is None:
            raise stale_lease_error(request.name, self.place)
        key, last, appended = found
        results: list[Any] = []
        rows: list[EventRow] = []
        values: list[tuple[Any, ...]] = []
        for one in requests:
            try:
                new, last = self._numbered(one, key, last, appended + len(rows))
            except EventConflictError as error:
                results.append(error)
                continue
            rows += [row for row, _ in new]
            values += [value for _, value in new]
            results.append(last)
        if all(isinstance(result, EventConflictError) for result in results):
            return results
        if values:
            self.execute_many(connection, _INSERT, values)
            self._store_blobs(connection, key, rows, values)
        self._update_log(connection, key, last, request, rows)
        for number in request.consumed:
            self.execute(
                connection, "DELETE FROM message WHERE log = ? AND number = ?", (key, number)
            )
        if request.drop_display:
            self._delete_events(connection, key, "display = 1")
        return results

    def _numbered(
        self, request: AppendRows, key: int, last: int, appended: int
    ) -> tuple[list[tuple[EventRow, tuple[Any, ...]]], int]:
        """Return the new rows of a request with their values, and the last id.

        Raises:
            EventConflictError: The log is not in the expected state.
        """
        if request.expected not in {None, appended}:
            raise append_conflict_error(request.name, self.place, request.expected, appended)
        new: list[tuple[EventRow, tuple[Any, ...]]] = []
        stored = last
        for row in request.rows:
            if request.known_id < row.id <= stored:
                continue
            next_id = max(last, request.used) + 1
            number = row.id if row.id != INVALID_ID else next_id
            if not last < number < _LAST:
                raise id_conflict_error(request.name, self.place, number, next_id)
            new.append((row, row.to_values(key, number)))
            last = number
        return new, int(last)

    def _update_log(
        self,
        connection: Any,
        key: int,
        last: int,
        request: AppendRows,
        rows: Sequence[EventRow],
    ) -> None:
        created = request.created
        times = [row.time for row in rows if row.time]
        changes = [
            "last_id = ?",
            "appended = appended + ?",
            "events = events + ?",
            "size = size + ?",
            f"reserved = {self.greatest}(reserved, ?)",
            "started = coalesce(started, ?)",
            "updated = coalesce(?, updated)",
        ]
        values: list[Any] = [
            *(last, len(rows), len(rows), sum(row.size for row in rows), request.reserved),
            *((times[0], times[-1]) if times else (None, None)),
        ]
        if created is not None:
            changes.append(
                "session = coalesce(?, session), agent = ?, kind = ?, owner = ?, facts = ?"
            )
            values += created
        if created is not None or request.status is not None:
            changes.append("status = ?")
            values.append(request.status or "running")
        if request.status is not None:
            changes.append("holder = NULL, expires = NULL")
        self.execute(
            connection,
            f"UPDATE log SET {', '.join(changes)} WHERE log = ?",
            (*values, key),
        )

    def _store_blobs(
        self,
        connection: Any,
        key: int,
        rows: Sequence[EventRow],
        values: Sequence[tuple[Any, ...]],
    ) -> None:
        blobs = [blob for row in rows for blob in row.blobs]
        if not blobs:
            return
        self.execute_many(
            connection,
            "INSERT INTO blob (digest, content) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
            blobs,
        )
        uses = {
            (key, value[1], digest)
            for row, value in zip(rows, values, strict=True)
            for digest, _ in row.blobs
        }
        self.execute_many(
            connection, "INSERT INTO blob_use (log, id, digest) VALUES (?, ?, ?)", sorted(uses)
        )

    def _post(self, connection: Any, request: PostMessage) -> int:
        found = self.execute(
            connection,
            f"SELECT log, message FROM log WHERE name = ?{self.for_update}",
            (request.name,),
        ).fetchone()
        if found is None:
            return 0
        key, number = found[0], found[1] + 1
        text = column_text(request.key)
        if text is not None:
            known = self.execute(
                connection, "SELECT 1 FROM message WHERE log = ? AND key = ?", (key, text)
            ).fetchone()
            if known is not None:
                raise already_posted_error(request.name, self.place)
        self.execute(
            connection,
            "INSERT INTO message (log, number, key, body) VALUES (?, ?, ?, ?)",
            (key, number, text, request.body),
        )
        self.execute(connection, "UPDATE log SET message = ? WHERE log = ?", (number, key))
        return int(number)

    def _delete(self, connection: Any, request: DeleteLog) -> None:
        found = self.execute(
            connection,
            f"SELECT log, holder, expires FROM log WHERE name = ?{self.for_update}",
            (request.name,),
        ).fetchone()
        if found is None:
            return
        active = self._active_holder(found[1], found[2], self.now(connection))
        if active is not None and active.token != request.holder.token:
            raise run_in_use_error(request.name, self.place, active)
        self._delete_log(connection, found[0])

    def _retain(self, connection: Any, request: RetainLogs) -> int:
        now = self.now(connection)
        logs = self.execute(
            connection,
            "SELECT log, holder, expires, status, updated, events, size FROM log "
            f"ORDER BY coalesce(updated, 0), log{self.for_update}",
        ).fetchall()
        events, size = sum(log[5] for log in logs), sum(log[6] for log in logs)
        deleted = 0
        for key, holder, expires, status, updated, count, bytes_ in logs:
            is_old = request.max_age is not None and (updated or 0.0) < now - request.max_age
            is_full = (request.max_events is not None and events > request.max_events) or (
                request.max_bytes is not None and size > request.max_bytes
            )
            if not (is_old or is_full) or status == "interrupted":
                continue
            if self._active_holder(holder, expires, now) is None:
                self._delete_log(connection, key)
                events, size, deleted = events - count, size - bytes_, deleted + count
        return deleted

    def _delete_log(self, connection: Any, key: int) -> None:
        self._delete_events(connection, key, "1 = 1")
        for table in ("message", "log"):
            self.execute(connection, f"DELETE FROM {table} WHERE log = ?", (key,))

    def _delete_events(self, connection: Any, key: int, condition: str) -> None:
        """Delete events of a log, and the large texts that no other event uses."""
        count, size = self.execute(
            connection,
            f"SELECT count(*), coalesce(sum(size), 0) FROM event WHERE log = ? AND {condition}",
            (key,),
        ).fetchone()
        if not count:
            return
        doomed = f"SELECT id FROM event WHERE log = ? AND {condition}"
        digests = self.execute(
            connection,
            f"SELECT DISTINCT digest FROM blob_use WHERE log = ? AND id IN ({doomed})",
            (key, key),
        ).fetchall()
        if digests:
            self.execute(
                connection,
                f"DELETE FROM blob_use WHERE log = ? AND id IN ({doomed})",
                (key, key),
            )
            self.execute_many(
                connection,
                "DELETE FROM blob WHERE digest = ? AND NOT EXISTS "
                "(SELECT 1 FROM blob_use WHERE blob_use.digest = blob.digest)",
                digests,
            )
        self.execute(
            connection,
            f"DELETE FROM event WHERE log = ? AND {condition}",
            (key,),
        )
        self.execute(
            connection,
            "UPDATE log SET events = events - ?, size = size - ? WHERE log = ?",
            (count, size, key),
        )

    # --- reading

    @contextmanager
    def reading(self) -> Generator[Any]:
        """Yield a connection for reading, and return it to the pool afterwards."""
        with self._translated():
            with self._pool_lock:
                connection = self._pool.pop() if self._pool else None
            if connection is None:
                connection = self.connect("read")
            try:
                yield connection
            except BaseException:
                self.discard(connection)
                raise
            with self._pool_lock:
                if not self._closed:
                    self._pool.append(connection)
                    return
            self.discard(connection)

    @_retried
    def read(self, name: str, span: ReadSpan, /) -> list[Event]:
        """Return events of a log; see `LogStorage.read`."""
        where, events = span.where, list[Any]()
        after = min(max(span.after, -1), _LAST)
        before = _LAST if span.before is None else min(max(span.before, -1), _LAST)
        if (span.limit is not None and span.limit <= 0) or not _can_match(where):
            return events
        condition, values = _condition(where)
        order = "DESC" if span.reverse else "ASC"
        with self.reading() as connection:
            found = self.execute(connection, "SELECT log FROM log WHERE name = ?", (name,))
            row = found.fetchone()
            while row is not None:
                missing = _PAGE if span.limit is None else span.limit - len(events)
                page = self.execute(
                    connection,
                    "SELECT id, body, large FROM event WHERE log = ? AND id > ? AND id < ?"
                    f"{condition} ORDER BY id {order} LIMIT ?",
                    (row[0], after, before, *values, min(missing, _PAGE)),
                ).fetchall()
                for number, body, large in page:
                    event = self._event(connection, name, number, body, large, restore=span.restore)
                    if where is None or where.accepts(event):
                        events.append(event)
                if len(page) < min(missing, _PAGE) or len(events) == span.limit:
                    break
                if span.reverse:
                    before = page[-1][0]
                else:
                    after = page[-1][0]
        return events

    def _event(
        self,
        connection: Any,
        name: str,
        number: int,
        body: str,
        large: str | None,
        *,
        restore: bool,
    ) -> Event:
        def fetch(digest: bytes) -> bytes:
            row = self.execute(
                connection, "SELECT content FROM blob WHERE digest = ?", (digest,)
            ).fetchone()
            if row is None:
                raise LookupError(f"its large text {digest.hex()[:12]}… is missing")
            return bytes(row[0])

        try:
            return event_of_row(body, large, fetch, restore=restore)
        except (LookupError, TypeError, ValueError) as error:
            raise EventStoreCorruptError(
                f"{self.place} is damaged: event {number} of {name!r} cannot be read ({error}). "
                "Nothing was changed. Continue with a backup.",
                store=self.place,
            ) from error

    @_retried
    def conversation(self, session: str, /, *, before: str | None = None) -> list[Event]:
        """Return the conversation of a session; see `LogStorage.conversation`."""
        earlier, values = "", [column_text(session)]
        if before is not None:
            earlier = "AND log.log < (SELECT log FROM log WHERE name = ?) "
            values.append(before)
        with self.reading() as connection:
            rows = self.execute(
                connection,
                "SELECT log.name, event.id, event.body, event.large FROM log "
                "JOIN event ON event.log = log.log "
                "WHERE log.session = ? AND event.root = 1 "
                f"{earlier}ORDER BY log.log, event.id",
                values,
            ).fetchall()
            return [
                self._event(connection, name, number, body, large, restore=True)
                for name, number, body, large in rows
            ]

    def position(self, name: str, /) -> LogPosition:
        """Return the end of a log."""
        return self.positions([name]).get(name) or LogPosition()

    @_retried
    def positions(self, names: Iterable[str], /) -> Mapping[str, LogPosition]:
        """Return the ends of the logs that exist among these names."""
        wanted = list(names)
        with self.reading() as connection:
            rows = self.execute(
                connection,
                "SELECT name, epoch, last_id, reserved, message, agent FROM log "
                f"WHERE name IN ({_placeholders(wanted)})",
                wanted,
            ).fetchall()
            return {name: _position(*position) for name, *position in rows}

    @_retried
    def messages(self, name: str, after: int, /) -> list[RunMessage]:
        """Return the messages to a run."""
        with self.reading() as connection:
            rows = self.execute(
                connection,
                "SELECT number, body FROM message WHERE log = (SELECT log FROM log WHERE name = ?) "
                "AND number > ? ORDER BY number",
                (name, after),
            ).fetchall()
        return [RunMessage(number=number, body=from_json(body)) for number, body in rows]

    @_retried
    def logs(
        self,
        *,
        names: Sequence[str] | None = None,
        session: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> list[RunInfo]:
        """Return the logs that hold events, oldest first."""
        conditions, values = ["events > 0"], list[Any]()
        if names is not None:
            conditions.append(f"name IN ({_placeholders(names)})")
            values += names
        if session is not None:
            conditions.append("session = ?")
            values.append(column_text(session))
        if status is not None:
            conditions.append("status = ?")
            values.append(status)
        order = "ORDER BY coalesce(started, 0) DESC, log DESC"
        statement = f"{_INFO} WHERE {' AND '.join(conditions)} {order}"
        if limit is not None:
            statement += " LIMIT ?"
            values.append(limit)
        with self.reading() as connection:
            now = self.now(connection)
            rows = self.execute(connection, statement, values).fetchall()
            return [self._info(row, now) for row in reversed(rows)]

    def _info(self, row: Sequence[Any], now: float) -> RunInfo:
        name, session, agent, kind, owner, facts, status, *lease, started, updated = row[:-3]
        holder, expires = lease
        is_free = self._active_holder(holder, expires, now) is None
        return RunInfo(
            run_id=name,
            session=session,
            agent=agent,
            kind=kind,
            owner=owner,
            facts=facts_of(facts),
            status=status,
            is_orphaned=status == "running" and is_free,
            started=started,
            updated=updated,
            last_id=row[-3],
            events=row[-2],
            size=row[-1],
        )

    def close(self) -> None:
        """Close all connections."""
        with self._pool_lock:
            self._closed = True
            connections = [*self._pool, self._writer]
            self._pool.clear()
            self._writer = None
        for connection in connections:
            if connection is not None:
                self.discard(connection)

    def after_fork(self) -> None:
        """Forget the connections, which belong to the parent."""
        _parent_connections.extend([self._writer, *self._pool])
        self._writer = None
        self._pool = deque()
        self._pool_lock = threading.Lock()


def _position(epoch: Any, last_id: Any, reserved: Any, message: Any, agent: Any) -> LogPosition:
    """Return the end of a log.

    Raises:
        ValueError: A column has a value of another type, because the file is damaged.
    """
    return LogPosition(
        epoch=int(epoch),
        last_id=int(last_id),
        reserved=int(reserved),
        message=int(message),
        is_run=agent is not None,
    )


_parent_connections: Final[list[Any]] = []
"""Connections of a parent process. They are referenced here so that they are never closed."""


def _groups(requests: Sequence[WriteRequest]) -> Iterator[Sequence[WriteRequest]]:
    """Split requests so that appends to one log that do nothing else are together."""
    group: list[WriteRequest] = []
    for request in requests:
        if group and not _can_join(group[-1], request):
            yield group
            group = []
        group.append(request)
    if group:
        yield group


def _can_join(before: WriteRequest, request: WriteRequest) -> bool:
    if not isinstance(before, AppendRows) or not isinstance(request, AppendRows):
        return False
    if (before.name, before.epoch) != (request.name, request.epoch):
        return False
    return _is_plain(before) and _is_plain(request)


def _is_plain(request: AppendRows) -> bool:
    return not (request.consumed or request.created or request.status or request.drop_display)


def _condition(where: EventFilter | None) -> tuple[str, list[Any]]:
    """Return the condition for a filter, which can accept more events than the filter."""
    if where is None:
        return "", []
    parts: list[str] = []
    values: list[Any] = []
    columns: list[tuple[str, Any]] = [
        ("cause = ?", where.cause),
        ("call = ?", column_text(where.tool_call_id)),
        ("run = ?", column_text(where.run_id)),
        ("tool = ?", column_text(where.tool_name)),
        ("hidden = ?", None if where.hidden is None else int(where.hidden)),
        ("time >= ?", None if where.since is None else where.since - _MICRO),
        ("time <= ?", None if where.until is None else where.until + _MICRO),
    ]
    for condition, value in columns:
        if value is not None:
            parts.append(condition)
            values.append(value)
    for column, options in (("source", where.sources), ("type", where.types)):
        if options is not None:
            parts.append(f"{column} IN ({_placeholders(options)})")
            values += [str(option) for option in options]
    return "".join(f" AND {part}" for part in parts), values


def _can_match(where: EventFilter | None) -> bool:
    """Return whether an event can match: no stored event has a text that is not valid Unicode."""
    if where is None:
        return True
    texts = (where.tool_call_id, where.tool_name, where.run_id, *(where.types or ()))
    try:
        for text in texts:
            str(text).encode()
    except UnicodeEncodeError:
        return False
    if where.types == () or where.sources == ():
        return False
    return where.cause is None or abs(where.cause) <= _LAST


def _placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
