"""Read from the file of a store, in a pool of threads with a connection each."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import EventStoreError
from agents_tools.persistence.sqlite.errors import translate_errors

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator

    from agents_tools.persistence.sqlite.connection import DatabaseFile

__all__ = ["Readers"]

T = TypeVar("T")
_THREADS: Final = 4
_NAME: Final = "agents-tools-store-reader"


class Readers:
    """Reads from the file of a store. All methods can be called in any thread.

    Args:
        database: The file to read.
    """

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database
        self._connections: deque[sqlite3.Connection] = deque()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    def submit(self, read: Callable[[sqlite3.Connection], T]) -> PendingFuture[T]:
        """Run a read in a thread of the pool."""
        if self._closed:
            return PendingFuture.failed(self._closed_error())
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, _NAME)
        try:
            return PendingFuture(self._threads.submit(self.run, read))
        except RuntimeError:  # closed concurrently, or the interpreter is shutting down
            return PendingFuture.failed(self._closed_error())

    def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read in the calling thread.

        Raises:
            EventStoreError: The file cannot be read, or is not the one that was opened.
        """
        with self.connection() as connection:
            return read(connection)

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """Yield a connection for reading, and return it to the pool afterwards."""
        database = self._database
        if self._closed:
            raise self._closed_error()
        database.check()
        with translate_errors(database.path, database.timeout):
            try:
                connection = self._connections.pop()
            except IndexError:
                connection = database.open_connection(read_only=True)
            try:
                yield connection
            finally:
                if self._is_closed():
                    database.close_connection(connection)
                else:
                    self._connections.append(connection)

    def close(self) -> None:
        """Wait for the running reads and close the connections."""
        self._closed = True
        if self._threads is not None:
            # A callback can close the store in one of these threads, which cannot wait for itself.
            self._threads.shutdown(wait=not threading.current_thread().name.startswith(_NAME))
        while self._connections:
            self._database.close_connection(self._connections.pop())

    def after_fork(self) -> None:
        """Reset after a fork: the child owns neither the threads nor the connections."""
        self._connections = deque()
        self._threads = None

    def _is_closed(self) -> bool:
        return self._closed

    def _closed_error(self) -> EventStoreError:
        return EventStoreError(
            f"The event store {self._database.path} is closed.", store=self._database.path
        )
