"""Protect names in a workspace: a command sees them but cannot change, create or replace them.

A mount point cannot be renamed or removed, so each directory in the path of a protected name is
mounted on itself. A missing name gets a temporary empty placeholder. If that fails, its directory
is mounted read-only, or the command is not started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from agents_tools.builtin.bubblewrap import Mount
from agents_tools.builtin.paths import PathNotAllowed
from agents_tools.concurrency import processes
from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.builtin.paths import Root

__all__ = ["Protection"]


class Protection:
    """The mounts that protect names in some directories, and the placeholders for them.

    Args:
        roots: The writable directories.
        names: Paths in them.
        descriptors: Whether the mounts use descriptors.

    Attributes:
        mounts: The mounts, in order.
        links: Names that are links, which cannot be mount points and are not protected.
        read_only: Directories mounted read-only, because a name in them cannot be mounted.

    Raises:
        UserError: A name cannot be protected.
    """

    def __init__(
        self, roots: Sequence[Root], names: Sequence[str], *, descriptors: bool = True
    ) -> None:
        self.mounts: list[Mount] = []
        self.links: list[str] = []
        self.read_only: list[str] = []
        self._fds: list[int] = []
        self._placeholders: list[_Placeholder] = []
        self._seen: dict[str, int | None] = {}
        """The index of the mount of a path; `None` for a link."""
        self._descriptors = descriptors
        try:
            with _lock:
                for root in roots:
                    for name in names:
                        self._protect(root, name)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the placeholders."""
        self.close()

    @property
    def says(self) -> str:
        """A description of the unprotected and read-only names; empty if there are none."""
        said: list[str] = []
        if self.links:
            said.append(f"Not protected, because they are links: {', '.join(self.links)}.")
        if self.read_only:
            names = ", ".join(self.read_only)
            said.append(f"Cannot be written, because names in them cannot be protected: {names}.")
        return " ".join(said)

    @property
    def fds(self) -> list[int]:
        """The descriptors of the mounts."""
        return self._fds

    def close_fds(self) -> None:
        """Close the descriptors after the mounts were created."""
        while self._fds:
            os.close(self._fds.pop())

    def close(self) -> None:
        """Remove the placeholders that are unused and unchanged."""
        self.close_fds()
        with _lock:
            while self._placeholders:
                self._placeholders.pop().release()

    def _protect(self, root: Root, name: str) -> None:
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            last = depth == len(parts)
            try:
                more = self._mount(root, path, self._get(root, path, last), last=last)
            except (OSError, PathNotAllowed) as error:
                self._seal(root, "/".join(parts[: depth - 1]), path, error)
                return
            if not more:
                return

    def _get(self, root: Root, path: str, last: bool) -> int:
        """Open an entry or create its placeholder; other processes can do the same concurrently."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                return _open(root, path)
            with contextlib.suppress(FileExistsError):
                return self._place(root, path, last)
        raise OSError(errno.EAGAIN, "it is created and removed repeatedly")

    def _seal(self, root: Root, above: str, path: str, error: Exception) -> None:
        """Make the parent directory read-only, since an entry in it cannot be mounted."""
        target = str(root.path / above)
        number = error.errno if isinstance(error, OSError) else None
        if _out_of_reach(root, above, number):
            return
        at = self._seen.get(target)
        if at is not None:
            self.mounts[at] = replace(self.mounts[at], writable=False)
        elif above or number not in {errno.EACCES, errno.EPERM}:
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise UserValueError(
                f"{root.path / path} cannot be protected from commands: {said}. "
                "Remove the cause, or omit the name from protected=."
            ) from None
        if target not in self.read_only:
            self.read_only.append(target)

    def _mount(self, root: Root, path: str, fd: int, *, last: bool) -> bool:
        """Mount an entry on itself, and return whether there is more to protect in it."""
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, fd)
            target = str(root.path / path)
            mode = os.fstat(fd).st_mode
            known = self._seen.get(target) is not None
            if stat.S_ISLNK(mode):
                if target not in self._seen:
                    self.links.append(target)
                    self._seen[target] = None
                return False
            self._hold(root, path, fd)
            passable = not last and stat.S_ISDIR(mode) and not self._is_placeholder(fd)
            if not known:
                self._seen[target] = len(self.mounts)
                source = fd if self._descriptors else target
                self.mounts.append(Mount(target, source, writable=passable))
                if self._descriptors:
                    self._fds.append(fd)
                    undo.pop_all()
            return passable

    def _place(self, root: Root, path: str, last: bool) -> int:
        """Create a placeholder: a file if git expects a file, otherwise a directory.

        Git ignores empty directories, so a commit of the command does not contain it.
        """
        parent, name = root.open_parent(path)
        of_git = path.startswith(".git/") and "." in name[1:]
        try:
            if last and (of_git or name in _CONTENT):
                fd = _make_file(parent, name)
            else:
                fd = _make_directory(parent, name)
        finally:
            os.close(parent)
        _in_use[_identity(fd)] = 0
        processes.remove_at_exit(root.path / path, only_empty=True)
        return fd

    def _is_placeholder(self, fd: int) -> bool:
        return _identity(fd) in _in_use

    def _hold(self, root: Root, path: str, fd: int) -> None:
        key = _identity(fd)
        if key in _in_use and key not in {held.key for held in self._placeholders}:
            parent, name = root.open_parent(path)
            _in_use[key] += 1
            self._placeholders.append(_Placeholder(key, parent, name, str(root.path / path)))


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """An empty entry created by this module, used by one or more commands."""

    key: tuple[int, int]
    parent: int
    name: str
    path: str

    def release(self) -> None:
        """Remove it after the last use if it is unchanged."""
        try:
            _in_use[self.key] -= 1
            if _in_use[self.key] == 0:
                del _in_use[self.key]
                with contextlib.suppress(OSError):
                    self._remove()
                processes.cancel_removal(self.path)
        finally:
            os.close(self.parent)

    def _remove(self) -> None:
        now = os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        if (now.st_dev, now.st_ino) != self.key:
            return
        if stat.S_ISDIR(now.st_mode):
            os.rmdir(self.name, dir_fd=self.parent)  # only if it is empty
        elif self._is_untouched(now.st_size):
            os.unlink(self.name, dir_fd=self.parent)

    def _is_untouched(self, size: int) -> bool:
        content = _CONTENT.get(self.name, b"")
        if size != len(content):
            return False
        fd = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.parent)
        try:
            return os.read(fd, size + 1) == content
        finally:
            os.close(fd)


_ATTEMPTS = 20
_CONTENT = {"config": b"", "commondir": b".\n"}
"""Names without a dot that are files, with their content: git rejects an empty `commondir`, and
this content has the same effect as no file."""
_lock = threading.Lock()
_in_use: dict[tuple[int, int], int] = {}
"""The number of commands that use a placeholder: its removal would remove their mounts."""


def _make_file(parent: int, name: str) -> int:
    content = _CONTENT.get(name, b"")
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o644 if content else 0o600, dir_fd=parent)
    try:
        os.write(fd, content)
    except OSError:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=parent)
        raise
    return fd


def _make_directory(parent: int, name: str) -> int:
    os.mkdir(name, 0o700, dir_fd=parent)
    try:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)
        raise


def _open(root: Root, path: str) -> int:
    return root.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)


def _out_of_reach(root: Root, path: str, number: int | None) -> bool:
    """Return whether the command cannot do it either, since it has the rights of this process.

    In its own directory, a command could change the permissions first.
    """
    if number == errno.EROFS:
        return True
    if number != errno.EACCES or os.geteuid() == 0:
        return False
    with contextlib.suppress(OSError, PathNotAllowed):
        return root.stat(path or ".").st_uid != os.geteuid()
    return False


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
