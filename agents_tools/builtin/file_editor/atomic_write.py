"""Read and replace one file in an open directory without losing concurrent changes.

`turn` serializes the editors of one process. `flock` locks the file against editors in other
processes from the last check until the rename. A race remains: if a program ignores that lock and
writes between the check and the rename, or keeps writing to the file it had open, its data is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents_tools.errors import ToolError
from agents_tools.tool.context import current_context

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = [
    "NO_WAIT",
    "FileVersion",
    "changed_meanwhile",
    "check_cancelled",
    "check_regular",
    "open_regular",
    "read_file",
    "remove_file",
    "turn",
    "write_file",
]

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_KINDS = (
    (stat.S_ISDIR, "a directory; view lists it"),
    (stat.S_ISFIFO, "a named pipe, not a file"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
    (stat.S_ISLNK, "a link that changed while it was followed; try again"),
)
_LOCK_SECONDS = 1.0
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The state of a file, compared without reading it."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileVersion:
        """Create the version from the status of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def check_cancelled() -> None:
    """Raise an error if the call was cancelled or has timed out.

    Raises:
        ToolCancelledError: The call was cancelled.
        ToolTimeoutError: Its deadline has passed.
    """
    context = current_context()
    if context is not None:
        context.check()


_turns: weakref.WeakValueDictionary[tuple[int, int, str], threading.Lock]
_turns = weakref.WeakValueDictionary()
_making = threading.Lock()


@contextlib.contextmanager
def turn(name: str, parent: int) -> Generator[None, None, None]:
    """Lock a file against other editors in this process.

    Args:
        name: The name of the file.
        parent: The directory it is in.
    """
    directory = os.fstat(parent)
    key = directory.st_dev, directory.st_ino, name.casefold()
    with _making:
        lock = _turns.get(key)
        if lock is None:
            lock = _turns[key] = threading.Lock()
    while not lock.acquire(timeout=0.2):
        check_cancelled()
    try:
        yield
    finally:
        lock.release()


def check_regular(found: os.stat_result, shown: str) -> None:
    """Raise an error unless the path is a regular file.

    Raises:
        ToolError: It is a directory, a device, a pipe or a socket.
    """
    if not stat.S_ISREG(found.st_mode):
        kind = next((kind for test, kind in _KINDS if test(found.st_mode)), "no file")
        raise ToolError(f"{shown} is {kind}.")


def open_regular(name: str, parent: int, shown: str) -> tuple[int, os.stat_result]:
    """Open a file for reading without blocking and without following a link.

    Args:
        name: Its name.
        parent: The directory it is in.
        shown: The path for error messages.

    Raises:
        ToolError: It is not a file.
        OSError: It cannot be opened.
    """
    check_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), shown)
    fd = os.open(name, os.O_RDONLY | NO_WAIT | _NOFOLLOW, dir_fd=parent)
    try:
        found = os.fstat(fd)
        check_regular(found, shown)
    except BaseException:
        os.close(fd)
        raise
    return fd, found


def read_file(name: str, parent: int, shown: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Return the whole content and the status of a file.

    Raises:
        ToolError: It is not a file, is larger than the limit, or was changed during the read.
        OSError: It cannot be read.
    """
    fd, found = open_regular(name, parent, shown)
    with open(fd, "rb", buffering=0) as file:  # noqa: PTH123 - by descriptor
        if found.st_size > limit:
            raise ToolError(
                f"{shown} has {found.st_size:,} bytes, more than the {limit:,} that the editor "
                "works on. Use a command in the terminal instead."
            )
        data = file.read(found.st_size + 1) or b""
        while len(data) < found.st_size and (more := file.read(found.st_size - len(data))):
            data += more
        if len(data) != found.st_size or FileVersion.of(os.fstat(fd)) != FileVersion.of(found):
            raise changed_meanwhile(shown)
    return data, found


def changed_meanwhile(shown: str) -> ToolError:
    """Create the error for a file that has changed since it was read."""
    return ToolError(f"{shown} was changed by another program; nothing was done. View it again.")


def write_file(
    name: str,
    parent: int,
    data: bytes,
    shown: str,
    read: tuple[os.stat_result, bytes] | None,
) -> os.stat_result:
    """Write a file atomically.

    The content goes to a temporary file, is synced, and is renamed only if the target is still
    the file that was read. Owner and permissions stay.

    Args:
        name: The name of the file.
        parent: The directory it is in.
        data: The new content.
        shown: The path for error messages.
        read: The status and content from the read; `None` to create a new file.

    Returns:
        The new status of the file.

    Raises:
        ToolError: The file has changed since the read, is read-only, or already exists.
        OSError: The content could not be written; nothing has changed.
    """
    if read is not None:
        _check_permission(name, parent, read[0], shown)
    with _temporary(parent, 0o666 if read is None else 0o600) as (fd, beside):
        _write_all(fd, data)
        if read is not None:
            _copy_rights(name, parent, fd, read[0])
        os.fsync(fd)
        if read is None:
            _place_new(beside, name, parent, shown)
        else:
            with _locked(name, parent):
                _check_same(name, parent, shown, *read)
                os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
        with contextlib.suppress(OSError):
            os.fsync(parent)
        return os.fstat(fd)


def remove_file(name: str, parent: int, shown: str, found: os.stat_result, data: bytes) -> None:
    """Remove a file if it is still the one that was read.

    Raises:
        ToolError: It has changed since the read.
        OSError: It cannot be removed.
    """
    with _locked(name, parent):
        _check_same(name, parent, shown, found, data)
        os.unlink(name, dir_fd=parent)


@contextlib.contextmanager
def _locked(name: str, parent: int) -> Generator[None, None, None]:
    """Lock a file against editors in other processes; continue without the lock if it fails."""
    fd = -1
    try:
        with contextlib.suppress(OSError):  # a later check reports problems with the file
            fd = os.open(name, os.O_RDONLY | NO_WAIT | _NOFOLLOW, dir_fd=parent)
            _lock(fd)
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _lock(fd: int) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    end = time.monotonic() + _LOCK_SECONDS  # other programs can hold the lock for long
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return
            time.sleep(0.005)
        else:
            return


@contextlib.contextmanager
def _temporary(parent: int, mode: int) -> Generator[tuple[int, str], None, None]:
    """Create a temporary file in a directory and remove it afterwards unless it was renamed."""
    beside = f".{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
    fd = os.open(beside, flags, mode, dir_fd=parent)
    try:
        yield fd, beside
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=parent)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _check_permission(name: str, parent: int, found: os.stat_result, shown: str) -> None:
    """Raise an error for a read-only file: a rename would bypass its permissions."""
    able = bool(found.st_mode & 0o222)
    if able and os.access in os.supports_effective_ids:
        able = os.access(name, os.W_OK, dir_fd=parent, effective_ids=True)
    if not able:
        mode = stat.S_IMODE(found.st_mode)
        raise ToolError(
            f"{shown} is read-only (mode {mode:o}); nothing was changed. "
            "To edit it, change its permissions first."
        )


def _copy_rights(name: str, parent: int, fd: int, found: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            _copy_attributes(name, parent, fd)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))  # last: a change of owner clears bits


def _copy_attributes(name: str, parent: int, fd: int) -> None:
    source = os.open(name, os.O_RDONLY | NO_WAIT | _NOFOLLOW, dir_fd=parent)
    try:
        for attribute in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(fd, attribute, os.getxattr(source, attribute))
    finally:
        os.close(source)


def _check_same(name: str, parent: int, shown: str, found: os.stat_result, data: bytes) -> None:
    """Raise an error if the file has changed since the read. Times alone are too coarse."""
    try:
        if FileVersion.of(os.stat(name, dir_fd=parent, follow_symlinks=False)) != FileVersion.of(
            found
        ):
            raise changed_meanwhile(shown)
        now, again = read_file(name, parent, shown, len(data))
    except FileNotFoundError:
        raise changed_meanwhile(shown) from None
    if now != data or FileVersion.of(again) != FileVersion.of(found):
        raise changed_meanwhile(shown)


def _place_new(beside: str, name: str, parent: int, shown: str) -> None:
    """Rename a new file to its name unless a file with that name exists by now."""
    try:
        try:
            os.link(beside, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
            os.close(os.open(name, flags, 0o600, dir_fd=parent))  # reserves the name
            os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
    except FileExistsError:
        raise ToolError(
            f"{shown} was created by another program; nothing was done. View it."
        ) from None
