"""Open files beneath a directory; no path, link or race can lead outside.

Paths are never compared as text. A `Root` has a descriptor of its directory and resolves each name
from there: with `openat2` and RESOLVE_BENEATH (Linux 5.6), or component by component without
following links; a link is read and its target is resolved in the same way.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from agents_tools.errors import ToolError, UserValueError
from agents_tools.text.characters import escape_for_model, safe_text
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

__all__ = [
    "DEFAULT_PROTECTED",
    "ConfinedWorkspace",
    "PathNotAllowed",
    "Root",
    "WorkspacePath",
    "one_line",
]

DEFAULT_PROTECTED = (
    ".agents_tools",
    ".mcp.json",
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/modules",
    ".git/worktrees",
    ".husky",
    ".envrc",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".gemini/settings.json",
)
"""Files that are executed or decide what is executed later: tools can read but not write them.

Git, direnv, editors and other agents run commands from them when a person commits, enters the
directory or opens it.
"""

_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
"""The entries by which git recognizes a directory of any name as a repository."""
_OPERATIONS = frozenset({"rebase-apply", "rebase-merge", "sequencer"})
"""The entries with the commands of an operation that git continues later, which only git writes.

They are not in the list above, because commands of a sandbox run git.
"""
_EXECUTED = (
    frozenset({"commondir", "config", "config.worktree", "hooks", "modules", "worktrees"})
    | _OPERATIONS
)
"""The entries of a repository that decide what git executes."""
_MAX_LINKS = 40
_MAX_PATH = 4096


class PathNotAllowed(ToolError, ValueError):  # noqa: N818 - names the state of the path
    """A path that a tool must not use; the message contains the reason and a remedy."""


class _Outside(PathNotAllowed):
    """A path that leads out of its directory."""


class Root:
    """A directory that confines everything opened through it.

    Args:
        path: The directory.

    Raises:
        UserError: There is no such directory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        real = os.path.realpath(path)
        try:
            self._fd = os.open(real, os.O_RDONLY | _DIRECTORY | _CLOEXEC)
        except OSError as error:
            raise UserValueError(
                f"The workspace {os.fspath(path)!r} cannot be used: {error.strerror}. "
                "Pass an existing directory."
            ) from None
        self.path = Path(real)

    def __repr__(self) -> str:
        """Return the directory as text."""
        return f"Root({str(self.path)!r})"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the descriptor."""
        self.close()

    def __del__(self) -> None:
        """Close the descriptor."""
        self.close()

    def close(self) -> None:
        """Close the descriptor; nothing can be opened afterwards."""
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)

    def check_exists(self) -> None:
        """Raise an error if the directory was removed: another one at its path is not opened.

        Raises:
            PathNotAllowed: The directory was removed.
        """
        if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
            raise PathNotAllowed(
                f"The workspace {str(self.path)!r} was removed or replaced by another directory "
                "while it was in use. Work in the terminal, or create the tools again."
            )

    @property
    def fd(self) -> int:
        """The descriptor of the directory itself."""
        return self._fd

    def open(self, path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open a path beneath the directory.

        Links are followed as long as they stay beneath it.

        Args:
            path: Relative to the directory, `.` for itself.
            flags: As for `os.open`.
            mode: The permissions of a new file.

        Returns:
            A descriptor; the caller closes it.

        Raises:
            PathNotAllowed: The path leads outside.
            OSError: It cannot be opened.
        """
        _check_text(path)
        if _openat2 is not None:
            try:
                return _openat2(self._fd, path, flags | _CLOEXEC, mode)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
        return self._walk(
            path, flags | _CLOEXEC, mode
        )  # also resolves absolute links that stay beneath

    def open_parent(self, path: str, *, make: bool = False) -> tuple[int, str]:
        """Open the parent directory of a path, resolving links, except for the last name.

        Args:
            path: Relative to the directory.
            make: Create missing directories.

        Returns:
            A descriptor of the directory, which the caller closes, and the name in it.

        Raises:
            PathNotAllowed: The path leads outside, or has no last name.
            OSError: The directory cannot be opened or made.
        """
        _check_text(path)
        head, name = os.path.split(path.rstrip("/"))
        if name in {"", ".", ".."}:
            raise PathNotAllowed(f"{_display_path(path)} is not the path of a file.")
        if make:
            self._make(head)
        return self.open(head or ".", os.O_RDONLY | _DIRECTORY), name

    def stat(self, path: str, *, follow: bool = True) -> os.stat_result:
        """Return the status of a path beneath the directory.

        Args:
            path: Relative to the directory.
            follow: Whether a link at the end is followed.

        Raises:
            PathNotAllowed: The path leads outside.
            OSError: It does not exist.
        """
        if follow or path in {"", "."}:
            fd = self.open(path, _PATH)
            try:
                return os.fstat(fd)
            finally:
                os.close(fd)
        parent, name = self.open_parent(path)
        try:
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)

    def resolve(self, path: str) -> str:
        """Return a path without links, relative to the directory.

        Args:
            path: Relative to the directory; it and its parents do not have to exist.

        Raises:
            PathNotAllowed: The path leads outside.
        """
        _check_text(path)
        with _Walk(self) as walk:
            last = walk.to_the_last(path, follow=True, missing=True)
            return "/".join([*walk.names, *([] if last == "." else [last])]) or "."

    def _make(self, path: str) -> None:
        made = ""
        for part in [part for part in path.split("/") if part not in {"", "."}]:
            made = f"{made}/{part}" if made else part
            try:
                os.close(self.open(made, os.O_RDONLY | _DIRECTORY))
            except FileNotFoundError:
                parent, name = self.open_parent(made)
                try:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=parent)
                finally:
                    os.close(parent)

    def _walk(self, path: str, flags: int, mode: int) -> int:
        """Open a path without `openat2`: component by component, resolving links here."""
        with _Walk(self) as walk:
            exclusive = flags & os.O_CREAT and flags & os.O_EXCL
            follow = path.endswith("/") or not (flags & _NOFOLLOW or exclusive)
            name = walk.to_the_last(path, follow=follow)
            if path.endswith(("/", "/.")):
                flags |= _DIRECTORY
            return os.open(name, flags | _NOFOLLOW, mode, dir_fd=walk.fd)


class _Walk:
    """The resolution of one path, directory by directory, each kept open while needed."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._fds: list[int] = []
        self.names: list[str] = []
        self._links = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._back_to_root()

    @property
    def fd(self) -> int:
        """The current directory."""
        return self._fds[-1] if self._fds else self._root.fd

    def to_the_last(self, path: str, *, follow: bool, missing: bool = False) -> str:
        """Go to the directory of the last component, and return that component.

        Args:
            path: Relative to the root.
            follow: Whether a link at the end is resolved as well.
            missing: Continue by name if a directory does not exist.
        """
        pending = path.split("/")[::-1]
        last = "."
        while pending:
            part = pending.pop()
            if part in {"", "."}:
                continue
            last = "."
            if part == "..":
                self._up(path)
            elif (follow or any(pending)) and (target := self._link(part)) is not None:
                pending += self._parts_of(target, path)[::-1]
            elif any(further not in {"", "."} for further in pending):
                self._down(part, missing=missing)
            else:
                last = part
        return last

    def _up(self, path: str) -> None:
        if not self.names:
            raise _outside_error(path, self._root)
        self.names.pop()
        if len(self._fds) > len(self.names):
            os.close(self._fds.pop())

    def _down(self, name: str, *, missing: bool) -> None:
        if len(self._fds) == len(self.names):  # otherwise a parent is missing already
            try:
                flags = _PATH | _DIRECTORY | _NOFOLLOW | _CLOEXEC
                self._fds.append(os.open(name, flags, dir_fd=self.fd))
            except FileNotFoundError:
                if not missing:
                    raise
        self.names.append(name)

    def _link(self, name: str) -> str | None:
        if len(self._fds) != len(self.names):
            return None
        try:
            target = os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return None
            raise
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return target

    def _parts_of(self, target: str, path: str) -> list[str]:
        if not target.startswith("/"):
            return target.split("/")
        own = self._root.path.parts
        parts = _parts(target)
        if parts[: len(own)] != own:
            raise _outside_error(path, self._root)
        self._back_to_root()  # and resolve the target from there
        return list(parts[len(own) :])

    def _back_to_root(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
        self.names.clear()


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """The location of a path in a workspace.

    Attributes:
        root: The directory that contains it.
        path: The path from there, `.` for the directory itself.
        shown: The path as shown in messages.
    """

    root: Root
    path: str
    shown: str

    def open(self, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open it; see `Root.open`."""
        with self._as_given():
            return self.root.open(self.path, flags, mode)

    def open_parent(self, *, make: bool = False) -> tuple[int, str]:
        """Open the directory it is in; see `Root.open_parent`."""
        with self._as_given():
            return self.root.open_parent(self.path, make=make)

    def stat(self, *, follow: bool = True) -> os.stat_result:
        """Return its status; see `Root.stat`."""
        with self._as_given():
            return self.root.stat(self.path, follow=follow)

    def resolve(self) -> str:
        """Return its path without links; see `Root.resolve`."""
        with self._as_given():
            return self.root.resolve(self.path)

    @contextlib.contextmanager
    def _as_given(self) -> Generator[None, None, None]:
        """Use the path of the caller in error messages."""
        try:
            yield
        except _Outside:
            raise _outside_error(self.shown, self.root) from None


class ConfinedWorkspace:
    """The directories that tools may work in.

    Args:
        working_dir: The base of relative paths; the current directory by default.
        also: Further directories, reached by absolute paths.
        protected: Names that tools can read but not write, since they decide what is executed
            later.

    Raises:
        UserError: One of the directories does not exist.
    """

    def __init__(
        self,
        working_dir: str | os.PathLike[str] | None = None,
        *,
        also: Sequence[str | os.PathLike[str]] = (),
        protected: Sequence[str] = DEFAULT_PROTECTED,
    ) -> None:
        given = [os.fspath(one) for one in (working_dir or ".", *also)]
        self.roots = tuple(Root(one) for one in given)
        self.protected = tuple(protected)
        self._spellings = [
            (root, Path(spelling).parts)
            for root, one in zip(self.roots, given, strict=True)
            for spelling in dict.fromkeys((str(root.path), os.path.abspath(one)))  # noqa: PTH100
        ]

    def __repr__(self) -> str:
        """Return the directories as text."""
        return f"Workspace({', '.join(repr(str(root.path)) for root in self.roots)})"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the descriptors."""
        self.close()

    def close(self) -> None:
        """Close the descriptors of the directories."""
        for root in self.roots:
            root.close()

    @property
    def working_dir(self) -> Path:
        """The base of relative paths."""
        return self.roots[0].path

    def locate(self, path: str | os.PathLike[str]) -> WorkspacePath:
        """Return the location of a path in the workspace without opening it.

        Args:
            path: Absolute, or relative to the working directory.

        Raises:
            PathNotAllowed: It is outside the workspace, or not a valid path, or the directory was
                removed.
        """
        text = os.fspath(path)
        _check_text(text)
        if not text.startswith("/"):
            self.roots[0].check_exists()
            return WorkspacePath(self.roots[0], text, _display_path(text))
        for candidate in (text, os.path.realpath(text)):
            parts = _parts(candidate)
            for root, own in self._spellings:
                if parts[: len(own)] == own and not _goes_above(parts[len(own) :]):
                    root.check_exists()
                    return WorkspacePath(
                        root, "/".join(parts[len(own) :]) or ".", _display_path(text)
                    )
        raise _outside_error(text, *self.roots)

    def open_writable_parent(self, place: WorkspacePath, *, make: bool = False) -> tuple[int, str]:
        """Open the directory of a file to write, resolving links to the file.

        Args:
            place: The location of the file, which does not have to exist.
            make: Create missing directories.

        Returns:
            A descriptor of the directory, which the caller closes, and the name in it. The entry
            can change at any time: open it without following links.

        Raises:
            PathNotAllowed: The path leads outside, or the file is protected.
            OSError: The directory cannot be opened or made.
        """
        resolved = place.resolve()
        self._check_protected(resolved, place.shown)
        if any(_normalized_name(name).startswith(".git") for name in self.protected):
            _check_repository(place.root, resolved, place.shown)
        parent, name = place.root.open_parent(resolved, make=make)
        try:
            self._check_protected(f"{_path_below(place.root, parent)}/{name}", place.shown)
        except PathNotAllowed:
            os.close(parent)
            raise
        return parent, name

    def _check_protected(self, path: str, shown: str) -> None:
        """Raise an error for a protected path, its content, or a file in place of its directory."""
        parts = [_normalized_name(part) for part in path.split("/")]
        for name in self.protected:
            own = [_normalized_name(part) for part in name.split("/")]
            inside = any(parts[at : at + len(own)] == own for at in range(len(parts)))
            if inside or any(parts[-count:] == own[:count] for count in range(1, len(own))):
                raise _protected_error(shown, f"{name} is")


def _protected_error(shown: str, what: str) -> PathNotAllowed:
    return PathNotAllowed(
        f"{shown} is read-only: {what} protected, because it decides what is "
        "executed later. Ask a person to change it."
    )


def _check_repository(root: Root, path: str, shown: str) -> None:
    """Raise an error for files that git executes, and for files that would create a repository."""
    parts = path.split("/")
    for depth, part in enumerate(parts):
        name = _normalized_name(part)
        own = "HEAD" if name == "head" else name
        if own not in _EXECUTED | _REPOSITORY:
            continue
        try:
            directory = root.open("/".join(parts[:depth]) or ".", _PATH | _DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            there = {one for one in _EXECUTED | _REPOSITORY if _is_in(directory, one)}
        finally:
            os.close(directory)
        made = own in _REPOSITORY - there and there & _EXECUTED
        if there | {own} >= _REPOSITORY and (own in _EXECUTED or made):
            raise _protected_error(shown, f"{part} in a git repository (HEAD, objects and refs) is")


def _is_in(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


def _goes_above(parts: Sequence[str]) -> bool:
    """Return whether a path, as written, leaves the directory that it starts from."""
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _normalized_name(name: str) -> str:
    """Return a name as the most lenient file system compares it."""
    name = unicodedata.normalize("NFKC", safe_text(name)).casefold()
    return name.split(":")[0].rstrip(". ") or name


def _path_below(root: Root, directory: int) -> str:
    """Return the path of an open directory from a root, if the system reports it."""
    own, path = _path_of(root.fd), _path_of(directory)
    if own is None or path is None:
        return ""
    return path.removeprefix(own.rstrip("/"))


def _check_text(path: str) -> None:
    if not path:
        raise PathNotAllowed("The path is empty. Pass the path of a file or directory.")
    if "\0" in path:
        raise PathNotAllowed(f"The path {_display_path(path)} contains a NUL character.")
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise PathNotAllowed(f"The path {_display_path(path)} contains a lone surrogate.") from None
    if len(encoded) >= _MAX_PATH:
        raise PathNotAllowed(
            f"The path {_display_path(path)} is too long (at most {_MAX_PATH:,} bytes)."
        )


def _parts(path: str) -> tuple[str, ...]:
    """Return the parts of an absolute path; several slashes at its start count as one."""
    return Path("/" + path.lstrip("/")).parts


def _outside_error(path: str, *roots: Root) -> PathNotAllowed:
    allowed = " and ".join(str(root.path) for root in roots)
    return _Outside(f"{_display_path(path)} is outside the workspace. Use a path in {allowed}.")


def one_line(text: str) -> str:
    """Escape a name to one line, so that it cannot imitate other output."""
    text = escape_for_model(text)
    return text if text.isprintable() else text.translate(_BREAKS)


_BREAKS = str.maketrans(
    {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)


def _display_path(path: str) -> str:
    return shorten(one_line(path), 200)


# --- system calls

_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_PATH = getattr(os, "O_PATH", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))


def _path_of(fd: int) -> str | None:
    """Return the real path of an open directory, if the system reports it."""
    if sys.platform == "darwin":
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0").decode()
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - as text, as it is
    except OSError:
        return None


class _OpenFlags(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_SYS_OPENAT2 = 437
_RESOLVE = 0x08 | 0x02  # RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS


def _find_openat2() -> Callable[[int, str, int, int], int] | None:
    """Return a function that opens by `openat2`, if this system has the call."""
    if sys.platform != "linux":
        return None
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long

    def openat2(directory: int, path: str, flags: int, mode: int) -> int:
        how = _OpenFlags(flags, mode if flags & os.O_CREAT else 0, _RESOLVE)
        name = os.fsencode(path)
        number = 0
        for _ in range(_MAX_LINKS):
            fd = syscall(
                ctypes.c_long(_SYS_OPENAT2),
                ctypes.c_long(directory),
                name,
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if fd >= 0:
                return int(fd)
            number = ctypes.get_errno()
            if number not in {errno.EAGAIN, errno.EINTR}:  # a concurrent rename
                break
        raise OSError(number, os.strerror(number), path)

    try:
        os.close(openat2(_AT_FDCWD, ".", os.O_RDONLY | _DIRECTORY | _CLOEXEC, 0))
    except OSError:
        return None
    return openat2


_AT_FDCWD = -100
_openat2 = _find_openat2()
