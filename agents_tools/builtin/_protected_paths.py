"""Names in a workspace that a command sees, but cannot change, create or replace.

What is mounted cannot be renamed or removed, so every directory on the way to such a name is
mounted on itself. A name that does not exist gets an empty placeholder meanwhile. Where that cannot
be done, the directory above cannot be written at all, or nothing is started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from agents_tools.builtin._bubblewrap import Mount
from agents_tools.builtin._paths import PathNotAllowed
from agents_tools.concurrency import process_reaper as _guardian
from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.builtin._paths import Root

__all__ = ["Protection"]


class Protection:
    """The mounts that protect names in some directories, and the placeholders for them.

    Args:
        roots: The directories that can be written.
        names: Paths in them.
        descriptors: Whether mounts are given by descriptor.

    Attributes:
        mounts: In the order they are made.
        links: Names that are links, which nothing can be mounted on: they are not protected.
        read_only: Directories that cannot be written, because a name in them cannot be mounted.

    Raises:
        UserError: A name can be protected in no way.
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
        """Where in the mounts a path is; `None` is that of a link."""
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
        """Take the placeholders away."""
        self.close()

    @property
    def says(self) -> str:
        """What is not as it should be, in plain words; empty where all is."""
        said: list[str] = []
        if self.links:
            said.append(f"Not protected, because they are links: {', '.join(self.links)}.")
        if self.read_only:
            names = ", ".join(self.read_only)
            said.append(f"Cannot be written, because names in them cannot be protected: {names}.")
        return " ".join(said)

    @property
    def fds(self) -> list[int]:
        """The descriptors that the mounts name."""
        return self._fds

    def close_fds(self) -> None:
        """Close the descriptors: the mounts are made."""
        while self._fds:
            os.close(self._fds.pop())

    def close(self) -> None:
        """Take the placeholders away that no one else uses and no one has touched."""
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
        """Open what is there, or what is made in its place; others may do the same meanwhile."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                return _open(root, path)
            with contextlib.suppress(FileExistsError):
                return self._place(root, path, last)
        raise OSError(errno.EAGAIN, "it comes and goes")

    def _seal(self, root: Root, above: str, path: str, error: Exception) -> None:
        """Keep the directory above from being written, as what is in there cannot be mounted."""
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
                "Remove the cause, or give names to protect that leave it out."
            ) from None
        if target not in self.read_only:
            self.read_only.append(target)

    def _mount(self, root: Root, path: str, fd: int, *, last: bool) -> bool:
        """Mount it on itself, and say whether there is more to protect in there."""
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
        """Make what is missing: a file where git expects one of its own, otherwise a directory.

        An empty directory is nothing to git: what a command adds and commits is without it.
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
        _guardian.clear(root.path / path, only_empty=True)
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
    """Something empty that was made here, used by one or more commands."""

    key: tuple[int, int]
    parent: int
    name: str
    path: str

    def release(self) -> None:
        """Take it away after the last one, if it is still what it was."""
        try:
            _in_use[self.key] -= 1
            if _in_use[self.key] == 0:
                del _in_use[self.key]
                with contextlib.suppress(OSError):
                    self._remove()
                _guardian.cleared(self.path)
        finally:
            os.close(self.parent)

    def _remove(self) -> None:
        now = os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        if (now.st_dev, now.st_ino) != self.key:
            return
        if stat.S_ISDIR(now.st_mode):
            os.rmdir(self.name, dir_fd=self.parent)  # an empty one only
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
"""Names without a dot that are files, and what git has to find in there: an empty `commondir` is an
error, and this one says what is so without it."""
_lock = threading.Lock()
_in_use: dict[tuple[int, int], int] = {}
"""How many commands use a placeholder: with the name, their mounts on it would go."""


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
    """Return whether a command cannot do it either: it has no more rights than this process.

    What one may not do in a directory of one's own, one may allow oneself.
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
