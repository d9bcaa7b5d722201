"""The one thread that writes to the file of a store: whatever waits is committed together."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agents_tools.concurrency.future import batched_wakeups
from agents_tools.errors import EventStoreError
from agents_tools.persistence.sqlite.batch import AppendRequest, Batch, ReserveRequest, give_up
from agents_tools.persistence.sqlite.errors import MISREAD, explained

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.persistence.sqlite.connection import DatabaseFile, SQLiteLog

__all__ = ["DatabaseJob", "DatabaseWriter"]

_MOST_ROWS: Final = 4_096
_MOST_BYTES: Final = 16 << 20
_GATHER: Final = 0.0003
"""Seconds to wait for as many synced jobs as in the last batch; a sync takes about as long."""


@dataclass(slots=True, kw_only=True, eq=False)
class DatabaseJob:
    """Something else to do with the connection, alone.

    Attributes:
        step: Does a part of it; whether there is more to do.
    """

    step: Callable[[sqlite3.Connection], bool]
    pending: PendingFuture[Any]
    result: Callable[[], Any] = lambda: None


Job: TypeAlias = AppendRequest | ReserveRequest | DatabaseJob


class DatabaseWriter:
    """Writes to a file, in a thread that begins with the first job.

    Args:
        place: The file and the state of its logs.
        stored: Told of each log that has new events, and of its last id.
    """

    def __init__(self, place: DatabaseFile, stored: Callable[[SQLiteLog, int], None]) -> None:
        self._place = place
        self._stored = stored
        self._jobs: deque[Job] = deque()
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._together = 0  # how many were synced together the last time
        self._wanted = 1  # how many jobs the thread waits for

    def put(self, job: Job) -> None:
        """Begin with a job, after those that came before.

        Raises:
            EventStoreError: The store is closed.
        """
        with self._news:
            if self._closing:
                raise EventStoreError(
                    f"The event store {self._place.path} is closed.", store=self._place.path
                )
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="agents-tools-store-writer", daemon=True
                )
                self._thread.start()
            if len(self._jobs) >= self._wanted:
                self._news.notify()

    @property
    def has_begun(self) -> bool:
        """Return whether there was anything to do yet."""
        return self._thread is not None

    @property
    def is_here(self) -> bool:
        """Return whether this is the writer thread, which must not wait for itself."""
        return self._thread is threading.current_thread()

    def close(self) -> None:
        """Finish pending jobs, close the file and end the thread."""
        with self._news:
            first, self._closing = not self._closing, True
            self._news.notify()
            thread = self._thread
        if thread is None:
            if first:
                self._place.close()
        elif not self.is_here:
            thread.join()

    # --- in the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while jobs := self._next():
            first = jobs[0]
            if isinstance(first, DatabaseJob):
                self._do(first)
            else:
                self._commit([job for job in jobs if not isinstance(job, DatabaseJob)])
        self._place.close()

    def _next(self) -> list[Job]:
        """Wait for jobs, and return those to commit together; return none after `close`."""
        with self._news:
            if len(self._jobs) < self._together and not self._closing:
                self._wanted = (
                    self._together
                )  # callers that were resolved together can return together
                self._news.wait(_GATHER)
                self._wanted = 1
            while not self._jobs and not self._closing:
                self._news.wait()
            taken: list[Job] = []
            rows = size = 0
            while self._jobs and rows < _MOST_ROWS and size < _MOST_BYTES:
                job = self._jobs[0]
                if isinstance(job, DatabaseJob):
                    return taken or [self._jobs.popleft()]
                taken.append(self._jobs.popleft())
                rows += len(job.drafts) if isinstance(job, AppendRequest) else 1
                size += job.size
            return taken

    def _commit(self, jobs: Sequence[AppendRequest | ReserveRequest]) -> None:
        """Commit jobs together; if that fails, one by one up to the first that fails."""
        failed = self._failure(jobs)
        self._together = len(jobs) if any(job.sync for job in jobs) else 0
        if failed is None:
            return
        if len(jobs) > 1:
            failed = None
        for job in jobs:
            failed = failed or self._failure([job])
            if failed is not None:
                give_up(job, failed)

    def _failure(self, jobs: Sequence[AppendRequest | ReserveRequest]) -> Exception | None:
        try:
            batch = self._stored_together(jobs)
        except Exception as error:  # noqa: BLE001 - raised by the futures
            return error
        with batched_wakeups():
            for log, last in batch.settle():
                self._stored(log, last)
            batch.tell()
        return None

    def _stored_together(self, jobs: Sequence[AppendRequest | ReserveRequest]) -> Batch:
        place = self._place
        batch = Batch(place)
        try:
            connection = place.ready_to_write(sync=any(job.sync for job in jobs))
            connection.execute("BEGIN IMMEDIATE")
            try:
                for job in jobs:
                    batch.add(connection, job)
                batch.write(connection)
                connection.execute("COMMIT")
                place.committed()
            except BaseException:
                place.roll_back()
                raise
        except (sqlite3.Error, *MISREAD) as error:
            raise explained(error, place.path, place.timeout) from error
        except OSError as error:
            raise EventStoreError(
                f"{place.path} cannot be written ({error.strerror or error}). Nothing of this was "
                "stored. Fix the cause and try again.",
                store=place.path,
            ) from error
        except OverflowError as error:
            raise EventStoreError(
                f"{place.path}: an event is too large to be stored ({error}).", store=place.path
            ) from error
        return batch

    def _do(self, work: DatabaseJob) -> None:
        """Do a part of the work; the rest follows the jobs that wait now."""
        try:
            more = work.step(self._place.ready_to_write(sync=True))
        except (sqlite3.Error, *MISREAD) as error:
            self._place.roll_back()
            work.pending.fail(explained(error, self._place.path, self._place.timeout))
        except Exception as error:  # noqa: BLE001 - raised by the future
            self._place.roll_back()
            work.pending.fail(error)
        else:
            if more:
                with self._news:
                    self._jobs.append(work)
            else:
                work.pending.resolve(work.result())

    def after_fork(self) -> None:
        """Reset in a forked child, which has neither the thread nor its jobs."""
        self._jobs.clear()
        self._news = threading.Condition()
        self._thread = None
        self._together, self._wanted = 0, 1
