"""Waiting for events that other processes store: a look at a counter of SQLite now and then."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from agents_tools.errors import EventStoreError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from agents_tools.persistence.sqlite.readers import Readers

__all__ = ["DatabaseWatch"]

_SHORTEST: Final = 0.002
_LONGEST: Final = 0.1
"""Seconds between two looks: some ten microseconds each, ten times a second when it is quiet."""
_SLOWER: Final = 1.3


class DatabaseWatch:
    """Watches for changes by other processes while a caller waits for them.

    Args:
        readers: Where to look.
        wanted: Returns whether a caller waits for events of another process.
        changed: Called in the thread of the watch after a possible change.
    """

    def __init__(
        self, readers: Readers, wanted: Callable[[], bool], changed: Callable[[], object]
    ) -> None:
        self._readers = readers
        self._wanted = wanted
        self._changed = changed
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def begin(self) -> None:
        """Start to watch, because a caller waits."""
        with self._news:
            if self._closing:
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="agents-tools-store-watch", daemon=True
                )
                self._thread.start()
            self._news.notify()

    def close(self) -> None:
        """Look out no more."""
        with self._news:
            self._closing = True
            self._news.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork(self) -> None:
        """Start again in a child, which has no thread."""
        self._news = threading.Condition()
        self._thread = None

    def _run(self) -> None:
        while self._is_wanted():
            try:
                with self._readers.connection() as connection:
                    self._look_out(connection.execute)
            except EventStoreError:
                self._changed()  # the callee reports the error
                with self._news:
                    self._news.wait(_LONGEST)

    def _look_out(self, execute: Callable[[str], sqlite3.Cursor]) -> None:
        """Poll the change counter of one connection while callers wait."""
        pause, seen = _SHORTEST, None
        while self._wanted() and not self._closing:
            version = execute("PRAGMA data_version").fetchone()
            if version != seen:
                pause, seen = _SHORTEST, version
                self._changed()
            with self._news:
                if not self._closing:
                    self._news.wait(pause)
            pause = min(pause * _SLOWER, _LONGEST)

    def _is_wanted(self) -> bool:
        """Wait for a waiting caller; return `False` after `close`."""
        with self._news:
            while not self._closing and not self._wanted():
                self._news.wait()
            return not self._closing
