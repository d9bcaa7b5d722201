"""Open the file of a store: create and migrate its tables, and refuse other files."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agents_tools.errors import EventStoreError, EventStoreFullError
from agents_tools.persistence.sqlite.errors import corrupt_error, translate_errors

__all__ = ["APPLICATION", "MIGRATIONS", "open_file"]

APPLICATION: Final = 0x61744556
"""The SQLite application id, which distinguishes event stores from files of other programs."""

MIGRATIONS: Final = (
    """
    CREATE TABLE log (
        log INTEGER PRIMARY KEY,
        sid TEXT UNIQUE,
        last_id INTEGER NOT NULL DEFAULT -1,
        first_position INTEGER NOT NULL DEFAULT 0,
        next_position INTEGER NOT NULL DEFAULT 0,
        reserved INTEGER NOT NULL DEFAULT -1,
        first REAL,
        last REAL,
        size INTEGER NOT NULL DEFAULT 0,
        writer TEXT
    );
    CREATE TABLE event (
        n INTEGER PRIMARY KEY,
        log INTEGER NOT NULL,
        id INTEGER NOT NULL,
        position INTEGER NOT NULL,
        time REAL NOT NULL,
        type TEXT NOT NULL,
        source TEXT,
        cause INTEGER,
        call TEXT,
        tool TEXT,
        run TEXT,
        hidden INTEGER NOT NULL,
        size INTEGER NOT NULL,
        body TEXT NOT NULL,
        large TEXT
    );
    CREATE UNIQUE INDEX event_id ON event (log, id);
    CREATE INDEX event_type ON event (log, type, id);
    CREATE INDEX event_time ON event (log, time, id);
    CREATE INDEX event_call ON event (log, call, id) WHERE call IS NOT NULL;
    CREATE INDEX event_cause ON event (log, cause, id) WHERE cause IS NOT NULL;
    CREATE INDEX event_run ON event (log, run, id) WHERE run IS NOT NULL;
    """,
    """
    CREATE TABLE blob (digest BLOB PRIMARY KEY, content BLOB NOT NULL);
    CREATE TABLE blob_use (
        digest BLOB NOT NULL,
        log INTEGER NOT NULL,
        id INTEGER NOT NULL,
        PRIMARY KEY (log, id, digest)
    ) WITHOUT ROWID;
    CREATE INDEX blob_use_digest ON blob_use (digest);
    """,
)
"""The scripts that create each version of the tables from the previous one.

A `log` without a `sid` is being deleted.
"""

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100


def open_file(
    path: str, *, create: bool = False, read_only: bool = False, timeout: float = 5.0
) -> sqlite3.Connection:
    """Open the file of a store, with the tables of this release.

    Args:
        path: The file.
        create: Whether to create the file if it does not exist.
        read_only: Whether to open the file for reading only.
        timeout: How long to wait for a lock of another process, in seconds.

    Raises:
        EventStoreCorruptError: The file is damaged or not an event store. It was not changed.
        EventStoreError: The file does not exist, or a later release has written it.
    """
    _check_file(path, missing_is_fine=create and not read_only)
    if create and not read_only:
        _create(path)
    mode = "ro" if read_only else "rw"
    with translate_errors(path, timeout):
        connection = _connect(path, mode, timeout)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            _migrate(connection, path, read_only=read_only)
            if not read_only:
                _prepare_for_writing(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


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


def _connect(path: str, mode: str, timeout: float) -> sqlite3.Connection:
    """Connect to the file without changing it."""
    writable = os.access(Path(path).absolute().parent, os.W_OK)
    if mode == "ro" and not writable and not Path(f"{path}-wal").exists():
        mode = "ro&immutable=1"  # otherwise SQLite would create files next to it
    return sqlite3.connect(
        f"file:{quote(str(Path(path).absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=timeout,
        check_same_thread=False,
    )


def _check_file(path: str, *, missing_is_fine: bool) -> None:
    """Check a file before SQLite opens it, because SQLite would change some other files."""
    file = Path(path)
    if not file.parent.is_dir():
        raise EventStoreError(
            f"The directory of the event store {path} does not exist. Create {file.parent} first.",
            store=path,
        )
    if not file.exists():
        if missing_is_fine:
            return
        raise EventStoreError(
            f"The event store {path} does not exist. SQLiteEventStore(path) creates it.", store=path
        )
    if not file.is_file():
        raise EventStoreError(f"{path} is not a file. Pass the path of a file.", store=path)
    try:
        with file.open("rb") as opened:
            header = opened.read(_HEADER)
    except OSError as error:
        raise EventStoreError(
            f"{path} cannot be read ({error.strerror}). Check its permissions.",
            store=path,
        ) from error
    if header and not header.startswith(_MAGIC):
        raise corrupt_error(
            f"{path} is not an event store: it is another kind of file, or damaged.", path
        )
    if header and len(header) < _HEADER:
        raise corrupt_error(f"{path} is damaged: it ends after {len(header)} bytes.", path)


def _migrate(connection: sqlite3.Connection, path: str, *, read_only: bool) -> None:
    version = _version(connection, path)
    if version == len(MIGRATIONS):
        return
    if read_only:
        if version == 0:
            raise EventStoreError(f"{path} is empty: it has no events yet.", store=path)
        raise EventStoreError(
            f"{path} was written by an earlier release. Open it once without read_only=True to "
            "migrate it.",
            store=path,
        )
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, path)  # another process can have migrated it meanwhile
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str) -> int:
    """Return the version of the tables; 0 if there are none yet."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION:
        if version > len(MIGRATIONS):
            raise EventStoreError(
                f"{path} was written by a later release of agents-tools: expected at most table "
                f"version {len(MIGRATIONS)}, got {version}. Nothing was changed. Update "
                "agents-tools to read it.",
                store=path,
            )
        return int(version)
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application or version or tables:
        raise corrupt_error(
            f"{path} is not an event store: it holds data of another program.", path
        )
    return 0


def _prepare_for_writing(connection: sqlite3.Connection, path: str) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise EventStoreError(
            f"{path} is in a directory where SQLite cannot share files between processes, for "
            "example a network directory. Move it to a local disk.",
            store=path,
        )
    for setting in ("synchronous = NORMAL", "secure_delete = ON", "journal_size_limit = 16777216"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
