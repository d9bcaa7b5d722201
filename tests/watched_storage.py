"""A storage of runs whose writes a test can observe, delay or let fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agents_tools.errors import EventStoreError
from agents_tools.persistence.run_store import RunStore
from agents_tools.persistence.storage import AppendRows, LogStorage, WriteRequest
from agents_tools.persistence.stores.sqlite import SQLiteStorage

__all__ = ["FailingWrites", "WatchedStorage", "watched_store"]

Moment = Callable[[Sequence[AppendRows]], None]


class WatchedStorage:
    """A storage that calls functions of a test around each write of events.

    Args:
        storage: The storage.
        before: Is called before a write, with its appends.
        after: Is called after it, before the store learns of its success.
    """

    def __init__(
        self, storage: LogStorage, *, before: Moment | None = None, after: Moment | None = None
    ) -> None:
        self._storage = storage
        self.before = before
        self.after = after

    def write(self, requests: Sequence[WriteRequest], /) -> Sequence[Any]:
        """Apply requests, and call the functions of the test."""
        appends = [one for one in requests if isinstance(one, AppendRows) and one.rows]
        if appends and self.before is not None:
            self.before(appends)
        results = self._storage.write(requests)
        if appends and self.after is not None:
            self.after(appends)
        return results

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the storage."""
        return getattr(self._storage, name)


class FailingWrites:
    """A moment at which writes fail: the first `count` ones succeed."""

    def __init__(self, count: int = 0) -> None:
        self.left = count
        self.failures = 0

    def __call__(self, appends: Sequence[AppendRows]) -> None:
        """Raise an error like that of a full disk."""
        self.left -= 1
        if self.left < 0:
            self.failures += 1
            raise EventStoreError("The disk is full.", store="test")


def watched_store(
    path: Path, *, before: Moment | None = None, after: Moment | None = None
) -> RunStore:
    """Return a store in an SQLite file whose writes call functions of the test."""
    storage: Any = SQLiteStorage(str(path), True, 5.0, 15.0, read_only=False)
    watched: Any = WatchedStorage(storage, before=before, after=after)
    return RunStore(watched)
