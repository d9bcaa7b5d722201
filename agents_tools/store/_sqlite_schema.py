"""Opening the file of a store: its tables, their versions, and files that are something else."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agents_tools.errors import EventStoreError, EventStoreFullError
from agents_tools.store._sqlite_errors import damaged, explaining

__all__ = ["APPLICATION", "MIGRATIONS", "open_file"]

APPLICATION: Final = 0x61744556
"""What SQLite calls the application id of a file: it tells ours from those of other programs."""

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
"""What makes each version of the tables of the one before; the first is made of nothing.

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
        create: Whether to make the file if it is not there.
        read_only: Whether nothing is to be written to it.
        timeout: How long to wait for other programs, in seconds.

    Raises:
        EventStoreCorruptError: It is another kind of file, or damaged; it was not changed.
        EventStoreError: It is not there, or of a later release.
    """
    _check_file(path, missing_is_fine=create and not read_only)
    if create and not read_only:
        _make(path)
    mode = "ro" if read_only else "rw"
    with explaining(path, timeout):
        connection = _connect(path, mode, timeout)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            _bring_up_to_date(connection, path, read_only=read_only)
            if not read_only:
                _prepare_for_writing(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _make(path: str) -> None:
    """Make the file if it is not there, for its owner alone; the files beside it are likewise.

    Raises:
        EventStoreFullError: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return  # those who may read it were chosen by somebody
    except OSError as error:
        raise EventStoreFullError(
            f"{path} cannot be made ({error.strerror}). Give this program the right to write to "
            "its folder, and room for it.",
            store=path,
        ) from error


def _connect(path: str, mode: str, timeout: float) -> sqlite3.Connection:
    """Connect to the file as it is."""
    writable = os.access(Path(path).absolute().parent, os.W_OK)
    if mode == "ro" and not writable and not Path(f"{path}-wal").exists():
        mode = "ro&immutable=1"  # SQLite would want to put its own files beside it
    return sqlite3.connect(
        f"file:{quote(str(Path(path).absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=timeout,
        check_same_thread=False,
    )


def _check_file(path: str, *, missing_is_fine: bool) -> None:
    """Look at a file before SQLite does: it would change some that are not ours."""
    file = Path(path)
    if not file.parent.is_dir():
        raise EventStoreError(
            f"There is no folder {file.parent} for the event store {path}. Make it first.",
            store=path,
        )
    if not file.exists():
        if missing_is_fine:
            return
        raise EventStoreError(
            f"There is no event store {path}. SQLiteEventStore(path) makes one.", store=path
        )
    if not file.is_file():
        raise EventStoreError(f"{path} is no file. Give the path of one.", store=path)
    try:
        with file.open("rb") as opened:
            header = opened.read(_HEADER)
    except OSError as error:
        raise EventStoreError(
            f"{path} cannot be read ({error.strerror}). Give this program the right to read it.",
            store=path,
        ) from error
    if header and not header.startswith(_MAGIC):
        raise damaged(f"{path} is no event store: it is another kind of file, or damaged.", path)
    if header and len(header) < _HEADER:
        raise damaged(f"{path} is damaged: it ends after {len(header)} bytes.", path)


def _bring_up_to_date(connection: sqlite3.Connection, path: str, *, read_only: bool) -> None:
    version = _version(connection, path)
    if version == len(MIGRATIONS):
        return
    if read_only:
        if version == 0:
            raise EventStoreError(f"{path} is empty: there are no events in it yet.", store=path)
        raise EventStoreError(
            f"{path} was written by an earlier release. Open it once without read_only, which "
            "brings it up to date.",
            store=path,
        )
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in MIGRATIONS[_version(connection, path) :]:  # another may have been faster
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
    """Give the version of the tables; 0 if there are none yet."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION:
        if version > len(MIGRATIONS):
            raise EventStoreError(
                f"{path} was written by a later release of agents-tools (its tables have version "
                f"{version}, this release knows {len(MIGRATIONS)}). Nothing was changed. Update "
                "agents-tools to read it.",
                store=path,
            )
        return int(version)
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application or version or tables:
        raise damaged(f"{path} is no event store: another program keeps its data in it.", path)
    return 0


def _prepare_for_writing(connection: sqlite3.Connection, path: str) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise EventStoreError(
            f"{path} is in a folder that several programs cannot share as SQLite needs it; network "
            "folders are such. Keep it on a disk of this machine.",
            store=path,
        )
    for setting in ("synchronous = NORMAL", "secure_delete = ON", "journal_size_limit = 16777216"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
