"""The thread that writes to the file of a store. It commits waiting requests together."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agents_tools.concurrency.future import batched_wakeups
from agents_tools.errors import EventStoreError
from agents_tools.persistence.sqlite.batch import AppendRequest, Batch, ReserveRequest, fail_request
from agents_tools.persistence.sqlite.errors import BAD_VALUE_ERRORS, store_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.persistence.sqlite.connection import DatabaseFile, SQLiteLog

__all__ = ["DatabaseJob", "DatabaseWriter"]

_MAX_ROWS: Final = 4_096
_MAX_BYTES: Final = 16 << 20
_GROUP_WAIT: Final = 0.0003
"""How long to wait for as many requests as in the last synced transaction, in seconds.

A sync takes about as long, so waiting for callers that append again saves syncs.
"""


@dataclass(slots=True, kw_only=True, eq=False)
class DatabaseJob:
    """A job that uses the write connection outside the shared transactions.

    Attributes:
        step: Does a part of the job and returns whether there is more to do.
        pending: The future of the caller.
        result: Returns the result for the future after the last step.
    """

    step: Callable[[sqlite3.Connection], bool]
    pending: PendingFuture[Any]
    result: Callable[[], Any] = lambda: None


Job: TypeAlias = AppendRequest | ReserveRequest | DatabaseJob


class DatabaseWriter:
    """Writes to a file, in a thread that starts with the first job.

    Args:
        database: The file and the state of its logs.
        on_stored: Called with each log that has new events, and its last id.
    """

    def __init__(self, database: DatabaseFile, on_stored: Callable[[SQLiteLog, int], None]) -> None:
        self._database = database
        self._on_stored = on_stored
        self._jobs: deque[Job] = deque()
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._group_size = 0  # the size of the last transaction, if it was synced
        self._notify_at = 1  # the number of waiting jobs that wakes the thread

    def put(self, job: Job) -> None:
        """Queue a job.

        Raises:
            EventStoreError: The store is closed.
        """
        with self._condition:
            if self._closing:
                raise EventStoreError(
                    f"The event store {self._database.path} is closed.", store=self._database.path
                )
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="agents-tools-store-writer", daemon=True
                )
                self._thread.start()
            if len(self._jobs) >= self._notify_at:
                self._condition.notify()

    @property
    def has_started(self) -> bool:
        """Return whether a job was ever queued."""
        return self._thread is not None

    @property
    def is_current_thread(self) -> bool:
        """Return whether the caller runs in the writer thread, which must not wait for itself."""
        return self._thread is threading.current_thread()

    def close(self) -> None:
        """Finish the queued jobs, close the file and end the thread."""
        with self._condition:
            first, self._closing = not self._closing, True
            self._condition.notify()
            thread = self._thread
        if thread is None:
            if first:
                self._database.close()
        elif not self.is_current_thread:
            thread.join()

    # --- in the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while jobs := self._next_jobs():
            first = jobs[0]
            if isinstance(first, DatabaseJob):
                self._run_step(first)
            else:
                self._commit([job for job in jobs if not isinstance(job, DatabaseJob)])
        self._database.close()

    def _next_jobs(self) -> list[Job]:
        """Wait for jobs; return those to commit together, or none after `close`."""
        with self._condition:
            if len(self._jobs) < self._group_size and not self._closing:
                self._notify_at = self._group_size
                self._condition.wait(_GROUP_WAIT)
                self._notify_at = 1
            while not self._jobs and not self._closing:
                self._condition.wait()
            group: list[Job] = []
            rows = size = 0
            while self._jobs and rows < _MAX_ROWS and size < _MAX_BYTES:
                job = self._jobs[0]
                if isinstance(job, DatabaseJob):
                    return group or [self._jobs.popleft()]
                group.append(self._jobs.popleft())
                rows += len(job.rows) if isinstance(job, AppendRequest) else 1
                size += job.size
            return group

    def _commit(self, jobs: Sequence[AppendRequest | ReserveRequest]) -> None:
        """Commit jobs together; if that fails, one by one.

        After the first of a log that fails alone, the others of this log fail with the same error,
        because later events must not be stored without earlier ones. If the whole file cannot be
        written, all others fail, because each of them could wait for a lock.
        """
        error = self._try_commit(jobs)
        self._group_size = len(jobs) if any(job.sync for job in jobs) else 0
        if error is None:
            return
        if len(jobs) == 1:
            fail_request(jobs[0], error)
            return
        errors: dict[SQLiteLog, Exception] = {}
        file_error: Exception | None = None
        for job in jobs:
            error = file_error or errors.get(job.log) or self._try_commit([job])
            if error is None:
                continue
            fail_request(job, error)
            errors[job.log] = error
            if isinstance(error.__cause__, (sqlite3.OperationalError, OSError)):
                file_error = error

    def _try_commit(self, jobs: Sequence[AppendRequest | ReserveRequest]) -> Exception | None:
        try:
            batch = self._write_batch(jobs)
        except Exception as error:  # noqa: BLE001 - raised by the futures
            return error
        with batched_wakeups():
            for log, last in batch.update_logs():
                self._on_stored(log, last)
            batch.resolve()
        return None

    def _write_batch(self, jobs: Sequence[AppendRequest | ReserveRequest]) -> Batch:
        database = self._database
        batch = Batch(database)
        try:
            connection = database.write_connection(sync=any(job.sync for job in jobs))
            connection.execute("BEGIN IMMEDIATE")
            try:
                for job in jobs:
                    batch.add(connection, job)
                batch.write(connection)
                connection.execute("COMMIT")
                database.record_journal()
            except BaseException:
                database.roll_back()
                raise
        except (sqlite3.Error, *BAD_VALUE_ERRORS) as error:
            raise store_error(error, database.path, database.timeout) from error
        except OSError as error:
            raise EventStoreError(
                f"{database.path} cannot be written ({error.strerror or error}). These events were "
                "not stored. Fix the cause and try again.",
                store=database.path,
            ) from error
        except OverflowError as error:
            raise EventStoreError(
                f"{database.path}: an event is too large to be stored ({error}).",
                store=database.path,
            ) from error
        return batch

    def _run_step(self, work: DatabaseJob) -> None:
        """Run one step of a job, and queue the job again if there is more."""
        try:
            more = work.step(self._database.write_connection(sync=True))
        except (sqlite3.Error, *BAD_VALUE_ERRORS) as error:
            self._database.roll_back()
            work.pending.fail(store_error(error, self._database.path, self._database.timeout))
        except Exception as error:  # noqa: BLE001 - raised by the future
            self._database.roll_back()
            work.pending.fail(error)
        else:
            if more:
                with self._condition:
                    self._jobs.append(work)
            else:
                work.pending.resolve(work.result())

    def after_fork(self) -> None:
        """Reset in a forked child, which has neither the thread nor its jobs."""
        self._jobs.clear()
        self._condition = threading.Condition()
        self._thread = None
        self._group_size, self._notify_at = 0, 1
