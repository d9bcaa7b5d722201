"""List the files of a workspace through descriptors, so that no link or race leads outside."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from agents_tools.builtin.search.ignore import GIT, IgnoreFiles, IgnoreRules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents_tools.builtin.paths import Root

__all__ = ["WalkFilter", "shown_path", "walk"]

_DIRECTORY = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


def shown_path(path: str) -> str:
    """Return a path as valid Unicode text."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def walk(
    root: Root,
    base: str,
    *,
    hidden: bool,
    no_ignore: bool,
    check: Callable[[], None],
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """List the files beneath a directory; links are neither listed nor followed.

    Args:
        root: The workspace.
        base: The directory, relative to it and without links; `.` for itself.
        hidden: Whether names that begin with a dot are listed.
        no_ignore: Whether files that ignore rules leave out are listed.
        check: Called repeatedly; raises when the listing must end.

    Yields:
        The path of a file relative to the workspace, and its entry; use the entry immediately.
    """
    start = "" if base == "." else f"{base}/"
    files = IgnoreFiles(root, check)
    above = IgnoreRules(files) if no_ignore else IgnoreRules.above(files, base)
    pending = [(start, above)]
    while pending:
        check()
        directory, rules = pending.pop()
        inherits = no_ignore or directory == start  # `above` has read the rules of the start
        for entry, is_dir, own in _listed(root, directory, rules, inherits=inherits):
            path = f"{directory}{entry.name}"
            if own.leaves_out(path, entry.name, is_dir=is_dir, hidden=hidden):
                continue
            if is_dir:
                pending.append((f"{path}/", own))
            else:
                yield path, entry


def _listed(
    root: Root, directory: str, rules: IgnoreRules, *, inherits: bool
) -> Iterator[tuple[os.DirEntry[str], bool, IgnoreRules]]:
    """Yield each entry of a directory, whether it is a directory, and the rules."""
    try:
        fd = root.open(directory or ".", _DIRECTORY)
    except (OSError, ValueError):
        return  # removed, unreadable, or not a directory anymore
    try:
        with os.scandir(fd) as found:
            entries = list(found)
        if not inherits:
            rules = rules.inside(directory, {entry.name for entry in entries})
        for entry in entries:
            is_dir = _is_directory(entry)
            if is_dir is not None and entry.name != GIT:
                yield entry, is_dir, rules
    except OSError:
        return
    finally:
        os.close(fd)


def _is_directory(entry: os.DirEntry[str]) -> bool | None:
    """Return whether an entry is a directory; `None` for links and special files."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return True
        return False if entry.is_file(follow_symlinks=False) else None
    except OSError:
        return None


class WalkFilter:
    """Tests whether `walk` would list a path.

    Args:
        root: The workspace.
        base: The directory to list.
        hidden: Whether names that begin with a dot are listed.
        no_ignore: Whether files that ignore rules leave out are listed.
        check: Called repeatedly; raises when the listing must end.

    Attributes:
        rescues: Whether a rule of the directory or a parent can include hidden entries again.
        overrides: Whether a rule of a parent can include entries that the directory excludes.
    """

    def __init__(
        self,
        root: Root,
        base: str,
        *,
        hidden: bool,
        no_ignore: bool,
        check: Callable[[], None],
    ) -> None:
        self._hidden = hidden
        self._no_ignore = no_ignore
        self._start = "" if base == "." else f"{base}/"
        self._files = IgnoreFiles(root, check)
        rules = IgnoreRules(self._files) if no_ignore else IgnoreRules.above(self._files, base)
        self.rescues = rules.rescues
        self.overrides = rules.overrides_below(self._start)
        self._inside: dict[str, IgnoreRules | None] = {self._start: rules}

    @property
    def cut(self) -> bool:
        """Return whether the ignore rules exceeded a limit."""
        return self._files.cut

    def __call__(self, path: str) -> bool:
        """Return whether `walk` would list a file, by its path relative to the workspace."""
        directory, name = posixpath.split(path)
        return self._admits(self._rules(f"{directory}/" if directory else ""), path, name)

    def _admits(
        self, rules: IgnoreRules | None, path: str, name: str, *, is_dir: bool = False
    ) -> bool:
        if rules is None or name == GIT:
            return False
        return not rules.leaves_out(path, name, is_dir=is_dir, hidden=self._hidden)

    def _rules(self, directory: str) -> IgnoreRules | None:
        """Return the rules of a directory; `None` if the directory itself is excluded."""
        missing: list[str] = []
        while directory not in self._inside:
            if not directory.startswith(self._start):
                return None
            missing.append(directory)
            directory = directory[: directory.rfind("/", 0, -1) + 1]
        rules = self._inside[directory]
        for below in reversed(missing):
            path = below.removesuffix("/")
            if not self._admits(rules, path, posixpath.basename(path), is_dir=True):
                rules = None
            elif rules is not None and not self._no_ignore:
                rules = rules.inside(below)
            self._inside[below] = rules
        return rules
