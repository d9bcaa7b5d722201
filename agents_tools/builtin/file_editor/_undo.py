"""The undo history: replaced bytes, stored in an unnamed temporary file."""

from __future__ import annotations

import contextlib
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["FileChange", "UndoHistory", "changed_region", "digest"]

_FILES = 1_000
_PIECE = 1 << 16


def digest(data: bytes) -> bytes:
    """Return a digest that identifies the content."""
    return sha256(data).digest()


def changed_region(old: bytes, new: bytes) -> tuple[int, int, int]:
    """Return the region where two contents differ: its start, and its end in each of them."""
    shortest = min(len(old), len(new))
    start = _common(old, new, shortest)
    rest = shortest - start
    tail = _common_end(old, new, rest)
    return start, len(old) - tail, len(new) - tail


def _common(old: bytes, new: bytes, most: int) -> int:
    at = 0
    while at < most and old[at : at + _PIECE] == new[at : at + _PIECE] and at + _PIECE <= most:
        at += _PIECE
    low, high = at, min(at + _PIECE, most)
    while low < high:
        middle = (low + high + 1) // 2
        if old[at:middle] == new[at:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: bytes, new: bytes, most: int) -> int:
    def equal(begin: int, end: int) -> bool:
        return old[len(old) - end : len(old) - begin] == new[len(new) - end : len(new) - begin]

    at = 0
    while at + _PIECE <= most and equal(at, at + _PIECE):
        at += _PIECE
    low, high = at, min(at + _PIECE, most)
    while low < high:
        middle = (low + high + 1) // 2
        if equal(at, middle):
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
        stored: The offset of the replaced bytes in the store.
        size: The number of replaced bytes.
        made: The directories that were created for the file, the outermost first.
    """

    existed: bool
    after: bytes
    start: int = 0
    end: int = 0
    stored: int | None = None
    size: int = 0
    made: tuple[str, ...] = ()


class _UndoStore:
    """Bytes in an unnamed file, which the system removes when the process ends."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._free: list[tuple[int, int]] = []  # (start, size) of the unused regions, sorted
        self.end = 0

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        self._free, self.end = [], 0
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def put(self, data: bytes) -> int:
        """Store bytes and return their offset.

        Raises:
            OSError: There is no room for them.
        """
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="agents-tools-undo-", buffering=0)  # noqa: SIM115 - closed with the store
        start = self._take(len(data))
        try:
            self._file.seek(start)
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        except BaseException:
            self.release(start, len(data))
            raise
        return start

    def get(self, start: int, size: int) -> bytes:
        """Return stored bytes.

        Raises:
            OSError: They cannot be read.
        """
        pieces: list[bytes] = []
        if self._file is not None:
            self._file.seek(start)
            while size and (piece := self._file.read(size)):
                pieces.append(piece)
                size -= len(piece)
        if size:
            raise OSError("the stored data of the change history is incomplete")
        return b"".join(pieces)

    def release(self, start: int, size: int) -> None:
        """Release a region for reuse."""
        free: list[tuple[int, int]] = []
        for begin, length in sorted([*self._free, (start, size)]):
            if free and sum(free[-1]) == begin:
                begin, length = free[-1][0], free.pop()[1] + length  # noqa: PLW2901 - joined
            free.append((begin, length))
        if free and sum(free[-1]) == self.end:
            self.end = free.pop()[0]
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.truncate(self.end)
        self._free = free

    def _take(self, size: int) -> int:
        for at, (start, length) in enumerate(self._free):
            if length >= size:
                rest = [(start + size, length - size)] if length > size else []
                self._free[at : at + 1] = rest
                return start
        start, self.end = self.end, self.end + size
        return start


class UndoHistory:
    """The last changes of each file.

    Only the replaced bytes are stored, in a private file that the system removes when the process
    ends. The oldest changes are dropped when a limit is exceeded.

    Args:
        count: The maximum number of changes for each file.
        size: The maximum number of bytes for all files.
    """

    def __init__(self, count: int, size: int) -> None:
        self._count = count
        self._size = size
        self._used = 0
        self._store = _UndoStore()
        self._changes: OrderedDict[Hashable, list[FileChange]] = OrderedDict()

    def __enter__(self) -> Self:
        """Return the history."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop the history and the stored bytes."""
        self.close()

    def close(self) -> None:
        """Drop the history and the stored bytes."""
        self._changes.clear()
        self._used = 0
        self._store.close()

    @property
    def size(self) -> int:
        """The size of the undo file in bytes."""
        return self._store.end

    def prepare(
        self, old: bytes | None, new: bytes, made: tuple[str, ...] = ()
    ) -> FileChange | None:
        """Store the bytes that a change will replace, or return `None` if they exceed the limit.

        Args:
            old: The content before; `None` for a new file.
            new: The content after.
            made: The directories that are created for the file.

        Raises:
            OSError: It cannot be stored.
        """
        if not self._count:
            return None
        if old is None:
            return FileChange(existed=False, after=digest(new), made=made)
        start, end, new_end = changed_region(old, new)
        size = end - start
        if size > self._size:
            return None
        return FileChange(
            existed=True,
            after=digest(new),
            start=start,
            end=new_end,
            stored=self._store.put(old[start:end]) if size else None,
            size=size,
        )

    def add(self, key: Hashable, change: FileChange | None) -> None:
        """Add a change to the history.

        Args:
            key: The key of the file.
            change: The change; `None` also drops the earlier changes of the file.
        """
        if change is None:
            self._forget(key)
            return
        changes = self._changes.setdefault(key, [])
        self._changes.move_to_end(key)
        changes.append(change)
        self._used += change.size
        if len(changes) > self._count:
            self.drop(changes.pop(0), counted=True)
        while self._used > self._size or len(self._changes) > _FILES:
            self._drop_oldest()

    def last(self, key: Hashable) -> FileChange | None:
        """Return the last change of a file."""
        changes = self._changes.get(key)
        return changes[-1] if changes else None

    def before(self, change: FileChange, data: bytes) -> bytes:
        """Return the content of a file before a change.

        Args:
            change: The change.
            data: The content now, which is the content after the change.

        Raises:
            OSError: The stored bytes cannot be read.
        """
        old = b"" if change.stored is None else self._store.get(change.stored, change.size)
        return data[: change.start] + old + data[change.end :]

    def taken_back(self, key: Hashable) -> None:
        """Remove the last change of a file from the history after it was undone."""
        changes = self._changes.get(key)
        if changes:
            self.drop(changes.pop(), counted=True)
            if not changes:
                del self._changes[key]

    def drop(self, change: FileChange | None, *, counted: bool = False) -> None:
        """Delete the stored bytes of a change.

        Args:
            change: The change, or `None`.
            counted: Whether it was added to the history.
        """
        if change is None:
            return
        if counted:
            self._used -= change.size
        if change.stored is not None:
            self._store.release(change.stored, change.size)

    def _forget(self, key: Hashable) -> None:
        for change in self._changes.pop(key, []):
            self.drop(change, counted=True)

    def _drop_oldest(self) -> None:
        key, changes = next(iter(self._changes.items()))
        self.drop(changes.pop(0), counted=True)
        if not changes:
            del self._changes[key]
