"""The rules of .gitignore, .ignore, .rgignore and .git/info/exclude, as ripgrep reads them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agents_tools.builtin.search.patterns import (
    LruCache,
    PatternError,
    as_bytes_text,
    compile_regex,
    glob_to_regex,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from agents_tools.builtin.paths import Root

__all__ = ["GIT", "IgnoreFiles", "IgnoreRules", "read_file"]

GIT = ".git"

# Limits on the rules of a repository. Rules past a limit are ignored, so more files are listed.
_MOST_BYTES = 1 << 18  # of one file
_MOST_RULES = 2_000
_LONGEST_RULE = 1 << 12
_MOST_CHARS = 1 << 17  # of the patterns for one directory, all of which stay compiled
_MOST_BYTES_OF_ALL = 1 << 23  # in one search
_MOST_RULES_OF_ALL = 100_000

# Rules are tested in groups, since most paths match none of them.
_AT_ONCE = 64
_LONGEST_AT_ONCE = 1 << 13

# Bytes of a compiled pattern: the minimum, and for each of its characters.
_BYTES, _BYTES_EACH = 16_000, 300
_compiled: LruCache[Callable[[str], bool]] = LruCache(48 << 20)


def _test_of(regex: str, otherwise: bool) -> Callable[[str], bool]:
    """Return a function that matches a whole path; too large patterns return `otherwise`."""

    def make() -> Callable[[str], bool]:
        try:
            return compile_regex(rf"(?s)\A(?:{regex})\z")
        except PatternError:
            return lambda _: otherwise

    return _compiled.get(regex, _BYTES + _BYTES_EACH * len(regex), make)


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: str
    wanted: bool
    only_directories: bool


@dataclass(frozen=True, slots=True)
class _CombinedPattern:
    """Consecutive rules, the last one first, and a pattern that matches if one of them does."""

    rules: tuple[_Rule, ...]
    regex: str


class _RuleFile:
    """The rules of one file: the last one that matches decides."""

    def __init__(self, content: bytes, check: Callable[[], None]) -> None:
        self.cut = len(content) > _MOST_BYTES
        if self.cut:  # a truncated rule can match more than the whole one
            content = content[: content.rfind(b"\n", 0, _MOST_BYTES) + 1]
        self.chars = 0
        rules: list[_Rule] = []
        for line in content.split(b"\n"):
            check()
            try:
                rule = _rule(line.decode())
            except UnicodeDecodeError:
                break  # as ripgrep does: ignore the rest
            if len(line) > _LONGEST_RULE or len(rules) == _MOST_RULES:
                self.cut = True
                break
            if rule is None:
                continue
            self.chars += len(rule.regex)
            if self.chars > _MOST_CHARS:
                self.chars -= len(rule.regex)
                self.cut = True
                break
            rules.append(rule)
        self.count = len(rules)
        self.rescues = any(rule.wanted for rule in rules)
        self._several = list(_grouped(rules[::-1]))

    def decide(self, path: str, check: Callable[[], None], *, is_dir: bool) -> bool | None:
        """Return whether a path is included; `None` if no rule matches it."""
        for several in self._several:
            check()
            if not _test_of(several.regex, otherwise=True)(path):
                continue
            for rule in several.rules:
                if is_dir or not rule.only_directories:
                    check()
                    if _test_of(rule.regex, otherwise=False)(path):
                        return rule.wanted
        return None


def _grouped(rules: list[_Rule]) -> Iterator[_CombinedPattern]:
    group: list[_Rule] = []
    size = 0
    for rule in rules:
        if group and (len(group) == _AT_ONCE or size + len(rule.regex) > _LONGEST_AT_ONCE):
            yield _CombinedPattern(tuple(group), "|".join(one.regex for one in group))
            group, size = [], 0
        group.append(rule)
        size += len(rule.regex) + 1
    if group:
        yield _CombinedPattern(tuple(group), "|".join(one.regex for one in group))


def _rule(line: str) -> _Rule | None:
    """Parse one line; return `None` for a line without a rule."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    if not line:
        return None
    wanted = anchored = False
    if line.startswith(("\\!", "\\#")):
        line = line[1:]
    else:
        wanted = line.startswith("!")
        line = line.removeprefix("!") if wanted else line
        anchored = line.startswith("/")
        line = line.removeprefix("/")
    only_directories = line.endswith("/")
    line = line.removesuffix("/")
    if not anchored and "/" not in line and line != "**":
        line = f"**/{line}"
    if line.endswith("/**"):
        line += "/*"
    try:
        regex = glob_to_regex(line.encode().decode("latin-1"))
    except PatternError:
        return None
    return _Rule(regex, wanted, only_directories)


_Chain = tuple[tuple[int, _RuleFile], ...]
_parsed: LruCache[_RuleFile] = LruCache(1 << 20)


class IgnoreFiles:
    """Reads the ignore files of one search, within limits.

    Args:
        root: The workspace; no file above it is read.
        check: Called repeatedly; raises when the search must end.

    Attributes:
        cut: Whether a limit was exceeded.
    """

    def __init__(self, root: Root, check: Callable[[], None]) -> None:
        self.root = root
        self.check = check
        self.cut = False
        self._bytes = _MOST_BYTES_OF_ALL
        self._rules = _MOST_RULES_OF_ALL

    def read(self, path: str) -> _RuleFile | None:
        """Read the rules of a file; return `None` if it is unreadable or a limit is reached."""
        content = read_file(self.root, path, _MOST_BYTES + 1)
        if not content:
            return None
        self._bytes -= len(content)
        if self._bytes < 0 or self._rules < 0:
            self.cut = True
            return None
        found = _parsed.get(content, len(content), lambda: _RuleFile(content, self.check))
        self._rules -= found.count
        self.cut = self.cut or found.cut
        return found

    def room_for(self, file: _RuleFile, chains: list[_Chain]) -> bool:
        """Return whether the rules of a file fit in the limit together with others."""
        held = sum(other.chars for chain in chains for _, other in chain)
        fits = held + file.chars <= _MOST_CHARS
        self.cut = self.cut or not fits
        return fits


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules for the entries of one directory: its own and those of its parents.

    Attributes:
        files: The reader of ignore files.
        own: One chain for each kind of file, the strongest kind first; in a chain, the nearest
            file first, with the length of the path of its directory.
        rescues: Whether a rule can include hidden entries again.
    """

    files: IgnoreFiles
    own: tuple[_Chain, _Chain, _Chain, _Chain] = ((), (), (), ())
    rescues: bool = False

    @classmethod
    def above(cls, files: IgnoreFiles, directory: str) -> IgnoreRules:
        """Return the rules for a directory, including its own.

        Args:
            files: The reader of ignore files.
            directory: Relative to the workspace, without links; `.` for itself.
        """
        rules = cls(files).inside("")
        path = ""
        for name in [] if directory == "." else directory.split("/"):
            path = f"{path}{name}/"
            rules = rules.inside(path)
        return rules

    def inside(self, directory: str, names: Container[str] | None = None) -> IgnoreRules:
        """Return the rules for a subdirectory, including its own.

        Args:
            directory: Relative to the workspace, with a slash at its end; empty for itself.
            names: The names of its entries, if known.
        """
        kinds = (".rgignore", ".ignore", ".gitignore", GIT)
        there = [names is None or name in names for name in kinds]
        if not any(there):
            return self
        repository = there[3] and self._is_there(f"{directory}{GIT}")
        paths = [f"{directory}{name}" for name in kinds[:3]] + [f"{directory}{GIT}/info/exclude"]
        there[3] = repository
        chains = list(self.own)
        if repository:  # a repository ignores the rules of its parents
            chains[2] = chains[3] = ()
        rescues = self.rescues
        for kind, path in enumerate(paths):
            found = self.files.read(path) if there[kind] else None
            if found is not None and self.files.room_for(found, chains):
                chains[kind] = ((len(os.fsencode(directory)), found), *chains[kind])
                rescues = rescues or found.rescues
        return replace(self, own=(chains[0], chains[1], chains[2], chains[3]), rescues=rescues)

    def _is_there(self, path: str) -> bool:
        try:
            self.files.root.stat(path)
        except (OSError, ValueError):
            return False
        return True

    def overrides_below(self, directory: str) -> bool:
        """Return whether a rule of a parent can include what a rule of the directory excludes.

        Rules of the same kind cannot: those of the directory come first. `.git/info/exclude` cannot
        either: it belongs to a new repository, which ignores each `.gitignore` of its parents.
        """
        own = len(os.fsencode(directory))
        stronger = (*self.own[0], *self.own[1])
        return any(length < own and file.rescues for length, file in stronger)

    def leaves_out(self, path: str, name: str, *, is_dir: bool, hidden: bool) -> bool:
        """Return whether an entry of the directory is excluded.

        Args:
            path: Relative to the workspace.
            name: The last part of the path.
            is_dir: Whether it is a directory.
            hidden: Whether names that begin with a dot are included.
        """
        decided = None
        if any(self.own):
            spelled = as_bytes_text(path)
            decided = next(self._decisions(spelled, is_dir=is_dir), None)
        if decided is None:
            return not hidden and name.startswith(".")
        return not decided

    def _decisions(self, path: str, *, is_dir: bool) -> Iterator[bool]:
        for chain in self.own:
            for length, file in chain:
                decided = file.decide(path[length:], self.files.check, is_dir=is_dir)
                if decided is not None:
                    yield decided


def read_file(root: Root, path: str, limit: int) -> bytes | None:
    """Return the start of a file beneath a directory, or `None` if it cannot be read.

    Args:
        root: The directory.
        path: Relative to it.
        limit: The maximum number of bytes to read.
    """
    try:
        fd = root.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb") as file:
        try:
            return file.read(limit) if stat.S_ISREG(os.fstat(fd).st_mode) else None
        except OSError:
            return None
