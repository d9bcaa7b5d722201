"""Names in a workspace that a command sees, but cannot change, create or replace.

What is mounted cannot be renamed or removed, so every directory on the way to such a name is
mounted on itself. A name that does not exist gets an empty placeholder meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from agents_tools._paths import PathRefused
from agents_tools.builtin._bubblewrap import Mount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools._paths import Root

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
    """

    def __init__(
        self, roots: Sequence[Root], names: Sequence[str], *, descriptors: bool = True
    ) -> None:
        self.mounts: list[Mount] = []
        self.links: list[str] = []
        self._fds: list[int] = []
        self._placeholders: list[_Placeholder] = []
        self._seen: set[str] = set()
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
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the placeholders away."""
        self.close()

    @property
    def fds(self) -> list[int]:
        """The descriptors that the mounts name."""
        return self._fds

    def close_fds(self) -> None:
        """Close the descriptors: the mounts are made."""
        while self._fds:
            os.close(self._fds.pop())

    def close(self) -> None:
        """Take the placeholders away that nobody else uses and nobody has touched."""
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
                fd = _open(root, path) if _exists(root, path) else self._place(root, path, last)
            except (OSError, PathRefused):
                return  # nor can the command make it: it has no more rights than this process
            if not self._mount(root, path, fd, last=last):
                return

    def _mount(self, root: Root, path: str, fd: int, *, last: bool) -> bool:
        """Mount it on itself, and say whether there is more to protect in there."""
        target = str(root.path / path)
        mode = os.fstat(fd).st_mode
        known = target in self._seen
        self._seen.add(target)
        if stat.S_ISLNK(mode):
            if not known:
                self.links.append(target)
            os.close(fd)
            return False
        self._hold(root, path, fd)
        passable = not last and stat.S_ISDIR(mode) and not self._is_placeholder(fd)
        if known or not self._descriptors:
            os.close(fd)
        else:
            self._fds.append(fd)
        if not known:
            source = fd if self._descriptors else target
            self.mounts.append(Mount(target, source, writable=passable))
        return passable

    def _place(self, root: Root, path: str, last: bool) -> int:
        """Make what is missing: a file where a file is expected, otherwise a directory."""
        parent, name = root.open_parent(path)
        try:
            if last and ("." in name[1:] or name == "config"):
                flags = os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(name, flags, 0o600, dir_fd=parent))
            else:
                os.mkdir(name, 0o700, dir_fd=parent)
        finally:
            os.close(parent)
        fd = _open(root, path)
        _in_use[_identity(fd)] = 0
        return fd

    def _is_placeholder(self, fd: int) -> bool:
        return _identity(fd) in _in_use

    def _hold(self, root: Root, path: str, fd: int) -> None:
        key = _identity(fd)
        if key in _in_use and key not in {held.key for held in self._placeholders}:
            _in_use[key] += 1
            parent, name = root.open_parent(path)
            self._placeholders.append(_Placeholder(key, parent, name))


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """Something empty that was made here, used by one or more commands."""

    key: tuple[int, int]
    parent: int
    name: str

    def release(self) -> None:
        """Take it away after the last one, if it is still what it was."""
        try:
            _in_use[self.key] -= 1
            if _in_use[self.key] == 0:
                del _in_use[self.key]
                with contextlib.suppress(OSError):
                    self._remove()
        finally:
            os.close(self.parent)

    def _remove(self) -> None:
        now = os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        if (now.st_dev, now.st_ino) != self.key:
            return
        if stat.S_ISDIR(now.st_mode):
            os.rmdir(self.name, dir_fd=self.parent)  # an empty one only
        elif now.st_size == 0:
            os.unlink(self.name, dir_fd=self.parent)


_lock = threading.Lock()
_in_use: dict[tuple[int, int], int] = {}
"""How many commands use a placeholder: with the name, their mounts on it would go."""


def _open(root: Root, path: str) -> int:
    return root.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)


def _exists(root: Root, path: str) -> bool:
    try:
        root.stat(path, follow=False)
    except FileNotFoundError:
        return False
    return True


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
