"""Durable runs in one file of this machine, which several processes may share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from agents_tools.errors import UserValueError
from agents_tools.persistence.durable.codec import read, written
from agents_tools.persistence.durable.lock import LogLocks
from agents_tools.persistence.durable.store import (
    DurableRun,
    DurableStep,
    DurableStoreError,
    RunInUseError,
    StepLostError,
    StoredRun,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from typing import Self

    from agents_tools.persistence.durable.store import RunStatus

__all__ = ["LocalDurableStore"]

T = TypeVar("T")

_APPLICATION: Final = 0x61744452
_VERSION: Final = 1
_TABLES: Final = (
    """
    CREATE TABLE run (
        run_id TEXT PRIMARY KEY,
        status TEXT NOT NULL,
        agent TEXT NOT NULL,
        begun REAL NOT NULL,
        changed REAL NOT NULL,
        start TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE step (
        run_id TEXT NOT NULL,
        key TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        value TEXT,
        PRIMARY KEY (run_id, key)
    )
    """,
)
"""What came to no end yet has no value."""


class LocalDurableStore:
    """Keeps runs in an SQLite file; nothing needs to be installed or started.

    ```python
    store = LocalDurableStore("runs.db")
    config = RunConfig(durable=store)
    result = await Runner.run(agent, "Book the trip.", run_id="trip-42", run_config=config)
    ```

    What is kept survives the end of the process, whatever ends it. A run belongs to one process at
    a time, by a lock that the kernel frees when that process ends. Secrets that are registered are
    not written; what is read gets them back where the same ones are registered.

    Args:
        path: The file; made, for its owner alone, if it is not there. Its folder has to be on a
            disk of this machine.
        durability: What a step has to survive before the run continues: `normal` the end of the
            process, `sync` the loss of power as well.
        timeout: How long to wait for other programs that hold the file, in seconds.

    Raises:
        DurableStoreError: The file cannot be made or opened, or is something else.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["normal", "sync"] = "normal",
        timeout: float = 10.0,
    ) -> None:
        if durability not in {"normal", "sync"}:
            raise UserValueError(
                "LocalDurableStore(durability=...) takes 'normal' or 'sync', "
                f"not {durability!r:.40}."
            )
        self._path = os.fspath(path)
        self._timeout = timeout
        self._open = _opened(self._path, durability, timeout)
        self._leases = LogLocks(self._path)
        self._mine: set[str] = set()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="agents-tools-durable")
        self._closed = False

    def __repr__(self) -> str:
        """Show where it is."""
        return f"LocalDurableStore({self._path!r})"

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    async def claim(self, run_id: str, /) -> StoredRun:
        """Become the one who carries a run on; see `DurableStore.claim`."""
        self._take(run_id)
        try:
            return await self._do(self._read, run_id)
        except BaseException:
            self._give_back(run_id)
            raise

    async def begin(self, run_id: str, start: Mapping[str, Any], /) -> None:
        """Keep where a claimed run begins; see `DurableStore.begin`."""
        self._check_claimed(run_id)
        text, agent, now = written("start", start), str(start["agent"]), time.time()
        await self._do(
            self._write,
            "INSERT INTO run VALUES (?, 'running', ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET "
            "status = 'running', agent = excluded.agent, changed = excluded.changed, "
            "start = excluded.start",
            (run_id, agent, now, now, text),
        )

    async def step(
        self,
        run_id: str,
        key: str,
        fn: Callable[[], Awaitable[Any]],
        /,
        *,
        again: bool = False,
    ) -> Any:
        """Return what a step gave, or perform it; see `DurableStore.step`."""
        self._check_claimed(run_id)
        known = await self._do(self._mark, run_id, key, again)
        if known is not None:
            return read(known, store=self._path)
        value = await fn()
        await self._do(
            self._write,
            "UPDATE step SET value = ? WHERE run_id = ? AND key = ?",
            (written(key, value), run_id, key),
        )
        return value

    async def leave(self, run_id: str, status: RunStatus | None, /) -> None:
        """Let others carry a claimed run on; see `DurableStore.leave`."""
        try:
            if status is not None:
                await self._do(
                    self._write,
                    "UPDATE run SET status = ?, changed = ? WHERE run_id = ?",
                    (status, time.time(), run_id),
                )
        finally:
            self._give_back(run_id)

    async def runs(self) -> list[DurableRun]:
        """List the runs, those first that were begun first."""
        rows = await self._do(
            self._all, "SELECT run_id, status, agent, begun, changed FROM run ORDER BY begun, rowid"
        )
        return [
            DurableRun(run_id=run_id, status=status, agent=agent, begun=begun, changed=changed)
            for run_id, status, agent, begun, changed in rows
        ]

    async def delete(self, run_id: str, /) -> None:
        """Forget a run; see `DurableStore.delete`."""
        self._take(run_id)
        try:
            await self._do(self._forget, run_id)
        finally:
            self._give_back(run_id)

    async def aclose(self) -> None:
        """Let go of the file; runs that still continue fail at their next step."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        for run_id in list(self._mine):
            self._give_back(run_id)
        await asyncio.shield(asyncio.wrap_future(self._pool.submit(self._open.close)))
        self._pool.shutdown(wait=False)

    # --- who carries a run on

    def _take(self, run_id: str) -> None:
        self._check_open()
        try:
            with self._lock:  # of two threads, one
                taken = run_id not in self._mine and self._leases.take(run_id)
                if taken:
                    self._mine.add(run_id)
        except OSError as error:
            raise DurableStoreError(
                f"The lock file of {self._path} cannot be written ({error.strerror}). Give this "
                "program the right to write to its folder.",
                store=self._path,
            ) from error
        if not taken:
            raise RunInUseError(
                f"Run {run_id!r} of {self._path} is being carried on elsewhere. Wait for its end, "
                "or for the end of the process that has it.",
                store=self._path,
            )

    def _check_claimed(self, run_id: str) -> None:
        if run_id not in self._mine and not self._closed:
            raise DurableStoreError(
                f"Run {run_id!r} was not claimed: {self._path} keeps nothing of it.",
                store=self._path,
            )

    def _give_back(self, run_id: str) -> None:
        self._mine.discard(run_id)
        self._leases.give_back(run_id)

    # --- in the thread of the store

    async def _do(self, work: Callable[..., T], *given: Any) -> T:
        """Do something in the thread of the store; it is done even if no one waits any more."""
        self._check_open()
        future = asyncio.wrap_future(self._pool.submit(self._explained, work, *given))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(future)

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise DurableStoreError(
                f"The store {self._path} belongs to the process that this one was forked from. "
                "Open one here.",
                store=self._path,
            )
        if self._closed:
            raise DurableStoreError(
                f"The store {self._path} was closed. Open it again to go on.", store=self._path
            )

    def _explained(self, work: Callable[..., T], *given: Any) -> T:
        with _explaining(self._path, self._timeout):
            return work(*given)

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        self._open.execute(statement, values)

    def _all(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self._open.execute(statement, values).fetchall()

    def _read(self, run_id: str) -> StoredRun:
        start = self._all("SELECT start FROM run WHERE run_id = ?", (run_id,))
        steps = self._all("SELECT key, attempts, value FROM step WHERE run_id = ?", (run_id,))
        return StoredRun(
            start=read(start[0][0], store=self._path) if start else None,
            steps={
                key: DurableStep(
                    done=value is not None,
                    value=None if value is None else read(value, store=self._path),
                    attempts=attempts,
                )
                for key, attempts, value in steps
            },
        )

    def _mark(self, run_id: str, key: str, again: bool) -> str | None:
        """Note that a step begins, and give nothing; or give what it gave before."""
        rows = self._all("SELECT value FROM step WHERE run_id = ? AND key = ?", (run_id, key))
        if rows and rows[0][0] is not None:
            return str(rows[0][0])
        if rows and not again:
            raise StepLostError(
                f"Step {key!r} of run {run_id!r} was begun before, and nothing is known of its "
                "end.",
                store=self._path,
            )
        self._write(
            "INSERT INTO step VALUES (?, ?, 1, NULL) ON CONFLICT (run_id, key) DO UPDATE SET "
            "attempts = attempts + 1",
            (run_id, key),
        )
        return None

    def _forget(self, run_id: str) -> None:
        self._write("BEGIN IMMEDIATE", ())
        try:
            self._write("DELETE FROM step WHERE run_id = ?", (run_id,))
            self._write("DELETE FROM run WHERE run_id = ?", (run_id,))
            self._write("COMMIT", ())
        except BaseException:
            if self._open.in_transaction:
                self._write("ROLLBACK", ())
            raise


def _opened(path: str, durability: str, timeout: float) -> sqlite3.Connection:
    _make(path)
    with _explaining(path, timeout):
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=timeout, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            _check(connection, path)
            _check_mode(connection, path)
            connection.execute(
                f"PRAGMA synchronous = {'FULL' if durability == 'sync' else 'NORMAL'}"
            )
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def _check_mode(connection: sqlite3.Connection, path: str) -> None:
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise DurableStoreError(
            f"{path} is in a folder that several programs cannot share as SQLite needs it; "
            "network folders are such. Keep it on a disk of this machine.",
            store=path,
        )


def _make(path: str) -> None:
    with contextlib.suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise
        except OSError as error:
            raise DurableStoreError(
                f"{path} cannot be made ({error.strerror}). LocalDurableStore takes the path of a "
                f"file; its folder {Path(path).absolute().parent} has to be there, and writable.",
                store=path,
            ) from error


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Make the tables of a new file; refuse one that is something else.

    Raises:
        DurableStoreError: It is another kind of file, or of a later release.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        _make_tables(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _make_tables(connection: sqlite3.Connection, path: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == _APPLICATION:
        if version != _VERSION:
            raise DurableStoreError(
                f"{path} was written by another release of agents-tools (its tables have version "
                f"{version}, this release knows {_VERSION}). Nothing was changed.",
                store=path,
            )
        return
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise DurableStoreError(
            f"{path} is no store of runs: another program keeps its data in it. Nothing was "
            "changed. Give LocalDurableStore a file of its own.",
            store=path,
        )
    for table in _TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")


@contextlib.contextmanager
def _explaining(path: str, timeout: float) -> Generator[None]:
    """Raise what SQLite raises in the block as an error that says what helps."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        helps = _REMEDIES.get(kind, "Nothing was stored in part; once the cause is gone, it works.")
        raise DurableStoreError(
            f"{path} could not be read or written ({error}). {helps.format(timeout=timeout)}",
            store=path,
        ) from error


_REMEDIES: Final = {
    sqlite3.SQLITE_FULL: "Free some room, and it goes on.",
    sqlite3.SQLITE_BUSY: "Another program held it for more than {timeout:g} s.",
    sqlite3.SQLITE_NOTADB: "It is another kind of file. Give LocalDurableStore a file of its own.",
    sqlite3.SQLITE_CORRUPT: "It is damaged. Go on with a backup or a new file.",
    sqlite3.SQLITE_CANTOPEN: "Give this program the right to write to the file and its folder.",
    sqlite3.SQLITE_READONLY: "Give this program the right to write to the file and its folder.",
}
