"""The undo history: the replaced bytes of the last changes, in memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["FileChange", "UndoHistory", "changed_region", "digest"]

_FILES = 1_000


def digest(data: bytes) -> bytes:
    """Return a digest that identifies the content."""
    return sha256(data).digest()


def changed_region(old: bytes, new: bytes) -> tuple[int, int, int]:
    """Return the region where two contents differ: its start, and its end in each of them."""
    shortest = min(len(old), len(new))
    start = _most_equal(shortest, lambda low, high: old[low:high] == new[low:high])
    tail = _most_equal(
        shortest - start,
        lambda low, high: (
            old[len(old) - high : len(old) - low] == new[len(new) - high : len(new) - low]
        ),
    )
    return start, len(old) - tail, len(new) - tail


def _most_equal(most: int, are_equal: Callable[[int, int], bool]) -> int:
    """Return how many bytes are equal, by halving: comparing slices is the fast part."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if are_equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The data to undo one change of a file.

    Attributes:
        existed: Whether the file existed before.
        after: The digest of the content after the change.
        start: The start of the changed region.
        end: The end of the region in the content after the change.
        replaced: The replaced bytes.
        made: The directories that were created for the file, the outermost first.
    """

    existed: bool
    after: bytes
    start: int = 0
    end: int = 0
    replaced: bytes = b""
    made: tuple[str, ...] = ()

    def before(self, data: bytes) -> bytes:
        """Return the content before the change for the content after it."""
        return data[: self.start] + self.replaced + data[self.end :]


class UndoHistory:
    """The last changes of each file. The oldest ones are dropped when a limit is exceeded.

    Args:
        count: The maximum number of changes for each file.
        most: The maximum number of replaced bytes for all files.

    Attributes:
        size: The number of replaced bytes.
    """

    def __init__(self, count: int, most: int) -> None:
        self.size = 0
        self._count = count
        self._most = most
        self._changes: OrderedDict[Hashable, list[FileChange]] = OrderedDict()

    def close(self) -> None:
        """Drop the history."""
        self._changes.clear()
        self.size = 0

    def prepare(
        self, old: bytes | None, new: bytes, made: tuple[str, ...] = ()
    ) -> FileChange | None:
        """Return a change, or `None` if it exceeds the limits.

        Args:
            old: The content before; `None` for a new file.
            new: The content after.
            made: The directories that are created for the file.
        """
        if not self._count:
            return None
        if old is None:
            return FileChange(existed=False, after=digest(new), made=made)
        start, end, new_end = changed_region(old, new)
        if end - start > self._most:
            return None
        return FileChange(
            existed=True, after=digest(new), start=start, end=new_end, replaced=old[start:end]
        )

    def add(self, key: Hashable, change: FileChange | None) -> None:
        """Add a change to the history.

        Args:
            key: The key of the file.
            change: The change; `None` drops the earlier changes of the file.
        """
        if change is None:
            while self.last(key) is not None:
                self.drop_last(key)
            return
        changes = self._changes.setdefault(key, [])
        self._changes.move_to_end(key)
        changes.append(change)
        self.size += len(change.replaced)
        if len(changes) > self._count:
            self._drop(key, 0)
        while self.size > self._most or len(self._changes) > _FILES:
            self._drop(next(iter(self._changes)), 0)

    def last(self, key: Hashable) -> FileChange | None:
        """Return the last change of a file."""
        changes = self._changes.get(key)
        return changes[-1] if changes else None

    def drop_last(self, key: Hashable) -> None:
        """Drop the last change of a file, for example because it was undone."""
        self._drop(key, -1)

    def _drop(self, key: Hashable, at: int) -> None:
        changes = self._changes[key]
        self.size -= len(changes.pop(at).replaced)
        if not changes:
            del self._changes[key]
