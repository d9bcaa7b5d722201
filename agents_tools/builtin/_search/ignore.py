"""What .gitignore, .ignore, .rgignore and .git/info/exclude leave out, as ripgrep reads them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agents_tools.builtin._search.patterns import (
    LruCache,
    PatternError,
    as_bytes_text,
    compile_regex,
    glob_to_regex,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from agents_tools.builtin._paths import Root

__all__ = ["GIT", "IgnoreFiles", "IgnoreRules", "read_file"]

GIT = ".git"

# What is read of the rules of a repository. What is behind is passed over: it may leave out less.
_MOST_BYTES = 1 << 18  # of one file
_MOST_RULES = 2_000
_LONGEST_RULE = 1 << 12
_MOST_CHARS = 1 << 17  # of the patterns that hold in one directory: all of them are kept compiled
_MOST_BYTES_OF_ALL = 1 << 23  # in one search
_MOST_RULES_OF_ALL = 100_000

# Rules are tested several at once, as most paths match none of them.
_AT_ONCE = 64
_LONGEST_AT_ONCE = 1 << 13

# How many bytes a pattern takes when it is compiled, at least and for each of its characters.
_BYTES, _BYTES_EACH = 16_000, 300
_compiled: LruCache[Callable[[str], bool]] = LruCache(48 << 20)


def _test_of(regex: str, otherwise: bool) -> Callable[[str], bool]:
    """Return what tells whether a whole path matches; `otherwise` if the pattern is too large."""

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
    """Some rules that follow each other, from the last one, and what one of them matches."""

    rules: tuple[_Rule, ...]
    regex: str


class _RuleFile:
    """The rules of one file: the last one that matches decides."""

    def __init__(self, content: bytes, check: Callable[[], None]) -> None:
        self.cut = len(content) > _MOST_BYTES
        if self.cut:  # half a rule may mean much more than the whole
            content = content[: content.rfind(b"\n", 0, _MOST_BYTES) + 1]
        self.chars = 0
        rules: list[_Rule] = []
        for line in content.split(b"\n"):
            check()
            try:
                rule = _rule(line.decode())
            except UnicodeDecodeError:
                break  # as ripgrep: what follows is not read
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
        """Return whether a path is wanted; `None` where no rule is about it."""
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
    """Read one line; a line that means nothing is passed over."""
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
    """The files with rules that one search reads, and how much of them there may be.

    Args:
        root: The workspace; no file above it is read.
        check: Called again and again; raises when the search has to end.

    Attributes:
        cut: Whether there was more than is read.
    """

    def __init__(self, root: Root, check: Callable[[], None]) -> None:
        self.root = root
        self.check = check
        self.cut = False
        self._bytes = _MOST_BYTES_OF_ALL
        self._rules = _MOST_RULES_OF_ALL

    def read(self, path: str) -> _RuleFile | None:
        """Read the rules of a file; none where it cannot be read, or too much was read before."""
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
        """Return whether the rules of a file can hold together with others."""
        held = sum(other.chars for chain in chains for _, other in chain)
        fits = held + file.chars <= _MOST_CHARS
        self.cut = self.cut or not fits
        return fits


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold for what is in one directory: those of it and of those above.

    Attributes:
        files: What reads them.
        own: Files of one kind each, from the strongest; the nearest of a kind comes first. With
            each: how long the path of its directory is.
        rescues: Whether a rule may bring back what is hidden.
    """

    files: IgnoreFiles
    own: tuple[_Chain, _Chain, _Chain, _Chain] = ((), (), (), ())
    rescues: bool = False

    @classmethod
    def above(cls, files: IgnoreFiles, directory: str) -> IgnoreRules:
        """Return the rules that hold in a directory, with those of it.

        Args:
            files: What reads them.
            directory: Relative to the workspace, without links; `.` for itself.
        """
        rules = cls(files).inside("")
        path = ""
        for name in [] if directory == "." else directory.split("/"):
            path = f"{path}{name}/"
            rules = rules.inside(path)
        return rules

    def inside(self, directory: str, names: Container[str] | None = None) -> IgnoreRules:
        """Return the rules for a directory below, with those that it brings along.

        Args:
            directory: Relative to the workspace, with a slash at its end; empty for itself.
            names: What is in it, if that is known already.
        """
        kinds = (".rgignore", ".ignore", ".gitignore", GIT)
        there = [names is None or name in names for name in kinds]
        if not any(there):
            return self
        repository = there[3] and self._is_there(f"{directory}{GIT}")
        paths = [f"{directory}{name}" for name in kinds[:3]] + [f"{directory}{GIT}/info/exclude"]
        there[3] = repository
        chains = list(self.own)
        if repository:  # its rules begin here
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
        """Return whether a rule from above a directory may bring back what one in it leaves out.

        Rules of one kind cannot: those in the directory come first. `.git/info/exclude` is no
        reason, as it begins a repository, in which no `.gitignore` from above holds.
        """
        own = len(os.fsencode(directory))
        stronger = (*self.own[0], *self.own[1])
        return any(length < own and file.rescues for length, file in stronger)

    def leaves_out(self, path: str, name: str, *, is_dir: bool, hidden: bool) -> bool:
        """Return whether something in the directory is left out.

        Args:
            path: Relative to the workspace.
            name: The last part of the path.
            is_dir: Whether it is a directory.
            hidden: Whether names that begin with a dot are wanted.
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
    """Read a small file beneath a directory; nothing where it cannot be read.

    Args:
        root: The directory.
        path: Relative to it.
        limit: What is behind so many bytes is not read.
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
