"""Read from the file of a store in a few threads with their own connections."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import EventStoreError
from agents_tools.persistence.sqlite.errors import explaining

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator

    from agents_tools.persistence.sqlite.connection import DatabaseFile

__all__ = ["Readers"]

T = TypeVar("T")
_THREADS: Final = 4
_NAME: Final = "agents-tools-store-reader"


class Readers:
    """Reads from a file, for callers in any thread.

    Args:
        place: The file.
    """

    def __init__(self, place: DatabaseFile) -> None:
        self._place = place
        self._connections: deque[sqlite3.Connection] = deque()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    def begin(self, read: Callable[[sqlite3.Connection], T]) -> PendingFuture[T]:
        """Read in a separate thread."""
        if self._closed:
            return PendingFuture.failed(self._is_closed())
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, _NAME)
        try:
            return PendingFuture(self._threads.submit(self.look, read))
        except RuntimeError:  # closed in this moment, or the interpreter ends
            return PendingFuture.failed(self._is_closed())

    def look(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read in this thread.

        Raises:
            EventStoreError: The file cannot be read, or is not the one that was opened.
        """
        with self.connection() as connection:
            return read(connection)

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """Borrow a connection for reading."""
        place = self._place
        if self._closed:
            raise self._is_closed()
        place.check()
        with explaining(place.path, place.timeout):
            try:
                connection = self._connections.pop()
            except IndexError:
                connection = place.open(read_only=True)
            try:
                yield connection
            finally:
                if self._is_over():
                    place.shut(connection)
                else:
                    self._connections.append(connection)

    def close(self) -> None:
        """Finish pending reads, and close the connections."""
        self._closed = True
        if self._threads is not None:
            # A reader thread can call `close` from a callback and must not wait for itself.
            self._threads.shutdown(wait=not threading.current_thread().name.startswith(_NAME))
        while self._connections:
            self._place.shut(self._connections.pop())

    def after_fork(self) -> None:
        """Reset after a fork: the child owns neither the threads nor the connections."""
        self._connections = deque()
        self._threads = None

    def _is_over(self) -> bool:
        return self._closed

    def _is_closed(self) -> EventStoreError:
        return EventStoreError(
            f"The event store {self._place.path} is closed.", store=self._place.path
        )
