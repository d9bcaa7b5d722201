"""The lease of a log: a file lock, so that only one process at a time writes to the log.

Each log locks one byte of a file next to the store. The kernel releases the locks of a process that
ends. File locks do not exclude other stores of the same process, so this module tracks the leases
of this process.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from hashlib import sha256
from typing import Any, Final

__all__ = ["LogLocks"]

_SUFFIX: Final = "-lease"
_lock = threading.Lock()
_files: Final[dict[str, _LockFile]] = {}
"""The lock files that this process has open.

Each is open only once, because closing any descriptor of a file releases all its locks.
"""


class LogLocks:
    """The leases that one open store holds.

    Args:
        path: The file of the store.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{os.path.realpath(path)}{_SUFFIX}"
        self._held: set[str] = set()

    def take(self, sid: str) -> bool:
        """Take the lease of a log; return `False` if another writer has it.

        Raises:
            OSError: The lock file cannot be written.
        """
        with _lock:
            if sid in self._held:
                return True
            file = _files.get(self._path)
            if file is None:
                file = _files[self._path] = _LockFile(self._path)
            try:
                taken = file.take(_lock_offset(sid))
            finally:
                if not file.held:
                    file.close()
                    del _files[self._path]
            if taken:
                self._held.add(sid)
            return taken

    def give_back(self, sid: str) -> None:
        """Release the lease of a log. A lease that this store does not hold is ignored."""
        with _lock:
            if sid not in self._held:
                return
            self._held.remove(sid)
            file = _files[self._path]
            file.give_back(_lock_offset(sid))
            if not file.held:
                file.close()
                del _files[self._path]

    def forget(self) -> None:
        """Drop all leases in a forked child, without releasing those of the parent."""
        self._held.clear()


class _LockFile:
    def __init__(self, path: str) -> None:
        mode = stat.S_IMODE(os.stat(path.removesuffix(_SUFFIX)).st_mode) & 0o666  # noqa: PTH116 - no Path needed
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, mode)
        self.held: set[int] = set()

    def take(self, offset: int) -> bool:
        if offset in self.held or not _lock_byte(self._file, offset):
            return False
        self.held.add(offset)
        return True

    def give_back(self, offset: int) -> None:
        self.held.discard(offset)
        with contextlib.suppress(OSError):
            _unlock_byte(self._file, offset)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)


def _lock_offset(sid: str) -> int:
    """Return the offset of the byte that a log locks.

    It comes from 55 bits of a hash, so two logs practically never share a byte.
    """
    return int.from_bytes(sha256(sid.encode("utf-8", "surrogatepass")).digest()[:7], "big") >> 1


if sys.platform == "win32":

    def _lock_byte(file: int, offset: int) -> bool:
        import msvcrt

        os.lseek(file, offset, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock_byte(file: int, offset: int) -> None:
        import msvcrt

        os.lseek(file, offset, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:

    def _lock_byte(file: int, offset: int) -> bool:
        fcntl = _fcntl()
        if fcntl is None:
            return True  # a platform without processes has no other writer
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock_byte(file: int, offset: int) -> None:
        if (fcntl := _fcntl()) is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, offset)

    def _fcntl() -> Any:
        try:
            import fcntl
        except ModuleNotFoundError:
            return None
        return fcntl


def _after_fork() -> None:
    """Reset in a forked child, because the locks belong to the parent."""
    global _lock  # noqa: PLW0603 - the parent can hold it at that moment
    _lock = threading.Lock()
    for file in _files.values():
        file.close()
    _files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
