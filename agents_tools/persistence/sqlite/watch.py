"""Detect events that other processes store, by polling the change counter of SQLite."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from agents_tools.errors import EventStoreError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from agents_tools.persistence.sqlite.readers import Readers

__all__ = ["DatabaseWatch"]

_MIN_PAUSE: Final = 0.002
_MAX_PAUSE: Final = 0.1
"""The pause between two polls, in seconds: the shortest after a change, and the longest.

A poll costs about ten microseconds.
"""
_PAUSE_FACTOR: Final = 1.3


class DatabaseWatch:
    """Polls a file for changes by other processes while a future waits for them.

    Args:
        readers: The readers of the file.
        is_needed: Returns whether a future waits for events of another process.
        on_change: Called in the thread of the watch when the file has changed or cannot be read.
    """

    def __init__(
        self, readers: Readers, is_needed: Callable[[], bool], on_change: Callable[[], object]
    ) -> None:
        self._readers = readers
        self._is_needed = is_needed
        self._on_change = on_change
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def start(self) -> None:
        """Start polling, because a future waits. Ignored after `close`."""
        with self._condition:
            if self._closing:
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="agents-tools-store-watch", daemon=True
                )
                self._thread.start()
            self._condition.notify()

    def close(self) -> None:
        """Stop polling and wait for the thread."""
        with self._condition:
            self._closing = True
            self._condition.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork(self) -> None:
        """Reset in a forked child, which does not have the thread."""
        self._condition = threading.Condition()
        self._thread = None

    def _run(self) -> None:
        while self._wait_until_needed():
            try:
                with self._readers.connection() as connection:
                    self._poll(connection.execute)
            except EventStoreError:
                self._on_change()  # it reads the file itself and gets the error
                with self._condition:
                    self._condition.wait(_MAX_PAUSE)

    def _poll(self, execute: Callable[[str], sqlite3.Cursor]) -> None:
        """Poll on one connection while a future waits.

        `data_version` only changes when another connection writes.
        """
        pause, seen = _MIN_PAUSE, None
        while self._is_needed() and not self._closing:
            version = execute("PRAGMA data_version").fetchone()
            if version != seen:
                pause, seen = _MIN_PAUSE, version
                self._on_change()
            with self._condition:
                if not self._closing:
                    self._condition.wait(pause)
            pause = min(pause * _PAUSE_FACTOR, _MAX_PAUSE)

    def _wait_until_needed(self) -> bool:
        """Wait until a future waits; return `False` after `close`."""
        with self._condition:
            while not self._closing and not self._is_needed():
                self._condition.wait()
            return not self._closing
