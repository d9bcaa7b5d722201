"""A run store in an SQLite file, which the processes of one machine can share."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from agents_tools.errors import (
    EventStoreCorruptError,
    EventStoreError,
    EventStoreFullError,
    UserValueError,
)
from agents_tools.persistence.run_store import RunStore, Session
from agents_tools.persistence.stored_log import StoredLog
from agents_tools.persistence.stores.memory import MemoryRunStore
from agents_tools.persistence.stores.sql import TABLES, SQLStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.concurrency.future import PendingFuture

__all__ = [
    "SQLiteEventStore",
    "SQLiteRunStore",
    "SQLiteSession",
    "SQLiteStorage",
    "is_sqlite_file",
]

APPLICATION: Final = 0x6174524C
"""The SQLite application id of files with run logs."""
_EARLIER: Final = (0x61744556, 0x61744452)
"""The application ids of event stores and durable stores of release 0.1."""
_VERSION: Final = 1
_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_MIN_PAUSE: Final = 0.002
_MAX_PAUSE: Final = 0.1
"""The pause between two polls for changes of other processes, in seconds."""
_PAUSE_FACTOR: Final = 1.3

_BAD_VALUES: Final = (TypeError, ValueError)
"""The errors that values of an unexpected type in a damaged file raise."""
_NO_PERMISSION: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IN_USE: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_KIND: Final = 0xFF
"""The bits of an extended error code that hold the primary error code."""


class SQLiteRunStore(RunStore):
    """Stores runs in an SQLite file. Nothing has to be installed or started.

    ```python
    store = SQLiteRunStore("runs.db")
    config = RunConfig(store=store)
    result = await Runner.run(agent, "Book the trip.", run_id="trip-42", run_config=config)
    ```

    Several processes of one machine can use the file at once. A `-wal` and a `-shm` file are next
    to it while it is in use; the first one has the newest events.

    Args:
        path: The path of the file. It is created for its owner only, on a disk of this machine.
        create: Whether to create the file if it does not exist.
        read_only: Whether to open the file for reading only.
        keep_display: Whether text deltas, progress and notifications stay in the log when a run
            ends.
        timeout: How long to wait for a lock of another process, in seconds.
        lease_ttl: The time after which another process can continue a run whose process hangs, in
            seconds. A process that has ended is recognized at once.

    Raises:
        EventStoreError: The file does not exist, or another release has written it.
        EventStoreCorruptError: The file is damaged or not a run store.
        EventStoreFullError: The file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        keep_display: bool = False,
        timeout: float = 5.0,
        lease_ttl: float = 15.0,
    ) -> None:
        storage = SQLiteStorage(
            _checked_path(path), create, timeout, lease_ttl, read_only=read_only
        )
        super().__init__(storage, keep_display=keep_display)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.place


class SQLiteSession(Session):
    """A conversation in an SQLite file, or in memory.

    ```python
    session = SQLiteSession("chat-1", "runs.db")
    result = await Runner.run(agent, "Hello", session=session)
    ```

    It is `SQLiteRunStore(path).session(session_id)` under its name in openai-agents. Share one
    store if the program has several sessions.

    Args:
        session_id: The id, for example of a chat.
        db_path: The path of the file; see `SQLiteRunStore`. By default the conversation ends with
            the session object.

    Raises:
        EventStoreError: The errors of `SQLiteRunStore`.
    """

    def __init__(self, session_id: str, db_path: str | os.PathLike[str] = ":memory:") -> None:
        store = MemoryRunStore() if str(db_path) == ":memory:" else SQLiteRunStore(db_path)
        super().__init__(session_id, store)

    def close(self) -> None:
        """Close the store."""
        self.store.close()


class SQLiteEventStore(StoredLog):
    """One log in an SQLite file, as the store of an `EventStream`.

    The store that first appends, or reads `next_id`, holds the lease of the log until it is closed
    or its process ends. Other writers are refused; readers are not.

    Args:
        path: The path of the file; see `SQLiteRunStore`.
        sid: The name of the log.
        create: Whether to create the file if it does not exist.
        read_only: Whether to open the file for reading only. Another store can write to it.
        timeout: How long to wait for a lock of another process, in seconds.

    Raises:
        EventStoreError: The errors of `SQLiteRunStore`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        sid: str = "default",
        *,
        create: bool = True,
        read_only: bool = False,
        timeout: float = 5.0,
    ) -> None:
        self._run_store = SQLiteRunStore(
            path, create=create, read_only=read_only, keep_display=True, timeout=timeout
        )
        super().__init__(self._run_store.engine, sid, store=self._run_store)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._run_store.path

    def retain(
        self,
        *,
        max_events: int | None = None,
        max_age: float | None = None,
        max_bytes: int | None = None,
    ) -> PendingFuture[int]:
        """Delete the oldest logs until the limits hold; see `RunStore.retain`."""
        return self._run_store.retain(max_events=max_events, max_age=max_age, max_bytes=max_bytes)

    def close(self) -> None:
        """Close the log, all logs that `session` returned, and the file."""
        super().close()
        self._run_store.close()


class SQLiteStorage(SQLStorage):
    """The storage of an `SQLiteRunStore`.

    Args:
        path: The file.
        create: Whether to create the file if it does not exist.
        timeout: How long to wait for a lock of another process, in seconds.
        lease_ttl: The time after which a lease expires, in seconds.
        read_only: Whether writing is refused.
    """

    greatest = "max"

    def __init__(
        self, path: str, create: bool, timeout: float, lease_ttl: float, *, read_only: bool
    ) -> None:
        super().__init__(path, lease_ttl)
        self._timeout = timeout
        self._read_only = read_only
        self._sync: bool | None = None
        self._wake = threading.Event()
        self._watcher: Any = None
        self._seen: Any = None
        _check_file(path, missing_is_fine=create and not read_only)
        if create and not read_only:
            _create(path)
        with self._translated():
            if not read_only:
                self._check_tables()  # before anything is written
            connection = self._open("read" if read_only else "write")
            try:
                _migrate(connection, path, read_only=read_only)
            finally:
                connection.close()
        self._file = _file_identity(path)
        self._journal: tuple[int, int] | None = None

    # --- the database

    def connect(self, use: Literal["write", "read"]) -> Any:
        """Open a connection; see `SQLStorage.connect`.

        Raises:
            EventStoreError: The file was replaced, or the store is read-only.
        """
        self._check_replaced()
        if use == "write":
            if self._read_only:
                raise EventStoreError(
                    f"{self.place} is read-only. Open it without read_only=True to write.",
                    store=self.place,
                )
            self._sync = self._journal = None
        return self._open(use)

    def _open(self, use: Literal["write", "read"]) -> sqlite3.Connection:
        mode = "rw" if use == "write" else "ro"
        is_frozen = self._read_only and not os.access(Path(self.place).absolute().parent, os.W_OK)
        if is_frozen and not Path(f"{self.place}-wal").exists():
            mode = "ro&immutable=1"  # otherwise SQLite would create files next to it
        return self._connect(mode, _prepare_for_writing if use == "write" else None)

    def _connect(
        self, mode: str, prepare: Callable[[sqlite3.Connection, str], object] | None
    ) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(Path(self.place).absolute()))}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=self._timeout,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            if prepare is not None:
                prepare(connection, self.place)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_tables(self) -> None:
        """Refuse files of other programs and releases."""
        try:
            self._connect("ro", _has_tables).close()
        except sqlite3.OperationalError as error:
            if _kind_of(error) != sqlite3.SQLITE_READONLY:
                raise
            # The creation of the file was interrupted. Only a writer can undo what it has begun.
            self._connect("rw", _has_tables).close()

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement."""
        return connection.execute(statement, values)

    def execute_many(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row of values."""
        connection.executemany(statement, rows)

    def begin(self, connection: Any, *, sync: bool) -> None:
        """Begin a transaction of the only writer at a time."""
        self._check_replaced()
        journal = _file_identity(f"{self.place}-wal")
        if self._journal is not None and journal != self._journal:
            raise EventStoreError(
                f"{self.place}-wal was removed while the store was open; it had the newest "
                "events. These events were not stored. Close the store and open it again.",
                store=self.place,
            )
        if sync != self._sync:
            connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._sync = sync
        connection.execute("BEGIN IMMEDIATE")

    def commit(self, connection: Any) -> None:
        """Commit the transaction. Other processes poll for changes."""
        connection.execute("COMMIT")
        if self._journal is None:
            self._journal = _file_identity(f"{self.place}-wal")

    def free_space(self, connection: Any) -> None:
        """Make the file smaller. A full disk is not an error, because the pages are used again."""
        with contextlib.suppress(sqlite3.Error):
            # `execute` would end after the first page.
            connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(PASSIVE)")

    def discard(self, connection: Any) -> None:
        """Close a connection."""
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def now(self, connection: Any) -> float:
        """Return the time of this machine, which all processes share."""
        del connection
        return time.time()

    def translate(self, error: Exception) -> Exception:
        """Return the error of the store for an error of SQLite."""
        if isinstance(error, EventStoreError):
            return error
        if isinstance(error, sqlite3.Error):
            return _store_error(error, self.place, self._timeout)
        if isinstance(error, OverflowError):
            return EventStoreError(
                f"{self.place}: an event is too large to be stored ({error}).", store=self.place
            )
        if isinstance(error, _BAD_VALUES):
            return EventStoreCorruptError(
                f"{self.place} is damaged: it holds unexpected values ({error}). {_ADVICE}",
                store=self.place,
            )
        if isinstance(error, OSError):
            return EventStoreError(
                f"{self.place} cannot be used ({error.strerror or error}). Fix the cause and try "
                "again.",
                store=self.place,
            )
        return error

    def wait_for_change(self, seconds: float, /) -> bool:
        """Poll the change counter of SQLite, which changes when another connection writes."""
        deadline = time.monotonic() + seconds
        pause = _MIN_PAUSE
        with self._translated():
            if self._watcher is None:
                self._watcher, self._seen = self.connect("read"), None
            while time.monotonic() < deadline:
                version = self._watcher.execute("PRAGMA data_version").fetchone()
                if version != self._seen:
                    self._seen = version
                    return True
                if self._wake.wait(pause):
                    self._wake.clear()
                    return True
                pause = min(pause * _PAUSE_FACTOR, _MAX_PAUSE)
        return False

    def wake(self) -> None:
        """End the current or next `wait_for_change`."""
        self._wake.set()

    def close(self) -> None:
        """Close all connections; the writer last, because it moves the journal into the file."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            self.discard(watcher)
        super().close()

    def after_fork(self) -> None:
        """Forget the connections and the journal of the parent."""
        super().after_fork()
        _parent_connections.append(self._watcher)
        self._watcher = self._sync = self._journal = None
        self._wake = threading.Event()

    def _check_replaced(self) -> None:
        if _file_identity(self.place) != self._file:
            raise EventStoreError(
                f"{self.place} was removed or replaced while it was open. Earlier events are in "
                "the removed file. Close the store and open it again.",
                store=self.place,
            )


_parent_connections: Final[list[Any]] = []
"""Connections of a parent process. They are referenced here so that they are never closed."""

_ADVICE: Final = (
    "Nothing was changed. Recover readable events with the command `sqlite3 PATH .recover`, or "
    "continue with a backup or a new file."
)


def is_sqlite_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an SQLite database."""
    try:
        with Path(path).open("rb") as opened:
            return opened.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _checked_path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if text in {"", ":memory:"} or "\0" in text:
        raise UserValueError(
            f"SQLiteRunStore(path) is not the path of a file: got {text!r}. Use MemoryRunStore for "
            "runs in memory."
        )
    return text


def _create(path: str) -> None:
    """Create the file if it does not exist, readable by its owner only.

    SQLite gives the files next to it the same permissions.

    Raises:
        EventStoreFullError: The file cannot be created.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return  # keep the permissions of an existing file
    except OSError as error:
        raise EventStoreFullError(
            f"{path} cannot be created ({error.strerror}). Check that its directory is writable "
            "and that the disk has free space.",
            store=path,
        ) from error


def _check_file(path: str, *, missing_is_fine: bool) -> None:
    """Check a file before SQLite opens it, because SQLite would change some other files."""
    file = Path(path)
    if not file.parent.is_dir():
        raise EventStoreError(
            f"The directory of the store {path} does not exist. Create {file.parent} first.",
            store=path,
        )
    if not file.exists():
        if missing_is_fine:
            return
        raise EventStoreError(
            f"The store {path} does not exist. Check the path; SQLiteRunStore(path) creates it.",
            store=path,
        )
    if not file.is_file():
        raise EventStoreError(f"{path} is not a file. Pass the path of a file.", store=path)
    try:
        with file.open("rb") as opened:
            header = opened.read(_HEADER)
    except OSError as error:
        raise EventStoreError(
            f"{path} cannot be read ({error.strerror}). Check its permissions.", store=path
        ) from error
    if header and not header.startswith(_MAGIC):
        raise EventStoreCorruptError(
            f"{path} is not a run store: it is another kind of file, or damaged. {_ADVICE}",
            store=path,
        )
    if header and len(header) < _HEADER:
        raise EventStoreCorruptError(
            f"{path} is damaged: it ends after {len(header)} bytes. {_ADVICE}", store=path
        )


def _migrate(connection: sqlite3.Connection, path: str, *, read_only: bool) -> None:
    """Create the tables of a new file, and refuse files of other programs and releases."""
    if _has_tables(connection, path):
        return
    if read_only:
        raise EventStoreError(f"{path} is empty: it has no events yet.", store=path)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _has_tables(connection, path):  # another process can have created them meanwhile
            for statement in TABLES:
                connection.execute(statement.format(key="INTEGER PRIMARY KEY", bytes="BLOB"))
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    """Return whether a file has the tables of this release; `False` for an empty file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION:
        if version > _VERSION:
            raise EventStoreError(
                f"{path} was written by a later release of agents-tools: expected at most table "
                f"version {_VERSION}, got {version}. Nothing was changed. Update agents-tools to "
                "read it.",
                store=path,
            )
        return True
    if application in _EARLIER:
        raise EventStoreError(
            f"{path} was written by agents-tools 0.1, whose files this release cannot read. "
            "Nothing was changed. Pass the path of a new file.",
            store=path,
        )
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application or version or tables:
        raise EventStoreCorruptError(
            f"{path} is not a run store: it holds data of another program. {_ADVICE}", store=path
        )
    return False


def _prepare_for_writing(connection: sqlite3.Connection, path: str) -> None:
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise EventStoreError(
            f"{path} is in a directory where SQLite cannot share files between processes, for "
            "example a network directory. Move it to a local disk.",
            store=path,
        )
    for setting in ("secure_delete = ON", "journal_size_limit = 16777216", "fullfsync = ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")


def _store_error(error: sqlite3.Error, path: str, timeout: float) -> EventStoreError:
    """Return the error of the store for an error of SQLite, with its remedy."""
    kind = _kind_of(error)
    if kind == sqlite3.SQLITE_FULL:
        return EventStoreFullError(
            f"The disk of {path} is full. These events were not stored. Free disk space, for "
            "example with RunStore.retain, and try again.",
            store=path,
        )
    if kind in _NO_PERMISSION or kind == sqlite3.SQLITE_CANTOPEN:
        return EventStoreFullError(
            f"{path} cannot be written ({error}). These events were not stored. Allow this program "
            "to write to the file and its directory, or open it with read_only=True.",
            store=path,
        )
    if kind in _DAMAGED:
        return EventStoreCorruptError(f"{path} is damaged ({error}). {_ADVICE}", store=path)
    if kind in _IN_USE:
        return EventStoreError(
            f"{path} was locked by another program for more than {timeout:g} s. Stop the program "
            "that copies or changes it, or open the store with a larger timeout.",
            store=path,
        )
    return EventStoreError(
        f"{path} could not be read or written ({error}). No event was stored in part. Fix the "
        "cause and try again.",
        store=path,
    )


def _kind_of(error: sqlite3.Error) -> int:
    """Return the primary result code of an error of SQLite."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _KIND


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
