"""The leases of logs: one writer at a time, with a lock that the kernel releases at process end.

Each log locks one byte of a file next to the store. The locks belong to the process, so the leases
within this process are recorded here as well.
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
"""The open lock files of this process, each open once: a close releases all locks of a file."""


class LogLocks:
    """The leases of one open store.

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
                taken = file.take(_place_of(sid))
            finally:
                if not file.held:
                    file.close()
                    del _files[self._path]
            if taken:
                self._held.add(sid)
            return taken

    def give_back(self, sid: str) -> None:
        """Release the lease of a log."""
        with _lock:
            if sid not in self._held:
                return
            self._held.remove(sid)
            file = _files[self._path]
            file.give_back(_place_of(sid))
            if not file.held:
                file.close()
                del _files[self._path]

    def forget(self) -> None:
        """Forget all leases in a forked child; they belong to the parent."""
        self._held.clear()


class _LockFile:
    def __init__(self, path: str) -> None:
        mode = stat.S_IMODE(os.stat(path.removesuffix(_SUFFIX)).st_mode) & 0o666  # noqa: PTH116 - as text
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, mode)
        self.held: set[int] = set()

    def take(self, place: int) -> bool:
        if place in self.held or not _lock_byte(self._file, place):
            return False
        self.held.add(place)
        return True

    def give_back(self, place: int) -> None:
        self.held.discard(place)
        with contextlib.suppress(OSError):
            _unlock_byte(self._file, place)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)


def _place_of(sid: str) -> int:
    """Return the byte of a log, from a hash without realistic collisions."""
    return int.from_bytes(sha256(sid.encode("utf-8", "surrogatepass")).digest()[:7], "big") >> 1


if sys.platform == "win32":

    def _lock_byte(file: int, place: int) -> bool:
        import msvcrt

        os.lseek(file, place, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock_byte(file: int, place: int) -> None:
        import msvcrt

        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:

    def _lock_byte(file: int, place: int) -> bool:
        fcntl = _fcntl()
        if fcntl is None:
            return True  # this platform has no other processes
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock_byte(file: int, place: int) -> None:
        if (fcntl := _fcntl()) is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)

    def _fcntl() -> Any:
        try:
            import fcntl
        except ModuleNotFoundError:
            return None
        return fcntl


def _after_fork() -> None:
    """Reset in a forked child; the locks belong to the parent."""
    global _lock  # noqa: PLW0603 - another thread of the parent can have held it
    _lock = threading.Lock()
    for file in _files.values():
        file.close()
    _files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
