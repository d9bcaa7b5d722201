"""What .gitignore, .ignore, .rgignore and .git/info/exclude leave out, as ripgrep reads them."""

from __future__ import annotations

import functools
import os
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agents_tools.builtin._search.patterns import (
    PatternError,
    as_bytes_text,
    compile_regex,
    glob_to_regex,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from agents_tools._paths import Root

__all__ = ["GIT", "Rules", "read_file"]

GIT = ".git"
_MOST_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class _Rule:
    matches: Callable[[str], bool]
    wanted: bool
    only_directories: bool


class _RuleFile:
    """The rules of one file: the last one that matches decides."""

    def __init__(self, text: str) -> None:
        found = [_rule(line) for line in text.split("\n")]
        rules = [pair for pair in found if pair is not None]
        self._rules = [rule for rule, _ in reversed(rules)]
        self.rescues = any(rule.wanted for rule in self._rules)
        self._any = _one_of([regex for _, regex in rules])

    def decide(self, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether a path is wanted; `None` where no rule is about it."""
        if not self._any(path):
            return None
        for rule in self._rules:
            if (is_dir or not rule.only_directories) and rule.matches(path):
                return rule.wanted
        return None


def _one_of(regexes: list[str]) -> Callable[[str], bool]:
    """Give one test in front of all rules: most paths match none of them."""
    if not regexes:
        return lambda _: False
    try:
        return compile_regex(rf"(?s)\A(?:{'|'.join(regexes)})\z")
    except PatternError:  # too large to be one pattern
        return lambda _: True


def _rule(line: str) -> tuple[_Rule, str] | None:
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
        return _Rule(compile_regex(rf"(?s)\A(?:{regex})\z"), wanted, only_directories), regex
    except PatternError:
        return None


@functools.lru_cache(maxsize=256)
def _rules_of(content: bytes) -> _RuleFile:
    lines: list[str] = []
    for line in content.split(b"\n"):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            break  # as ripgrep: what follows is not read
    return _RuleFile("\n".join(lines))


_Chain = tuple[tuple[int, _RuleFile], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that hold for what is in one directory: those of it and of those above.

    Attributes:
        root: The workspace; no file above it is read.
        own: Files of one kind each, from the strongest; the nearest of a kind comes first. With
            each: how long the path of its directory is.
        rescues: Whether a rule may bring back what is hidden.
    """

    root: Root
    own: tuple[_Chain, _Chain, _Chain, _Chain] = ((), (), (), ())
    rescues: bool = False

    @classmethod
    def above(cls, root: Root, directory: str) -> Rules:
        """Give the rules that hold in a directory, with those of it.

        Args:
            root: The workspace.
            directory: Relative to it, without links; `.` for itself.
        """
        rules = cls(root).inside("")
        path = ""
        for name in [] if directory == "." else directory.split("/"):
            path = f"{path}{name}/"
            rules = rules.inside(path)
        return rules

    def inside(self, directory: str, names: Container[str] | None = None) -> Rules:
        """Give the rules for a directory below, with those that it brings along.

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
            content = read_file(self.root, path) if there[kind] else None
            if content:
                found = _rules_of(content)
                chains[kind] = ((len(os.fsencode(directory)), found), *chains[kind])
                rescues = rescues or found.rescues
        return replace(self, own=(chains[0], chains[1], chains[2], chains[3]), rescues=rescues)

    def _is_there(self, path: str) -> bool:
        try:
            self.root.stat(path)
        except (OSError, ValueError):
            return False
        return True

    def leaves_out(self, path: str, name: str, *, is_dir: bool, hidden: bool) -> bool:
        """Tell whether something in the directory is left out.

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
                decided = file.decide(path[length:], is_dir=is_dir)
                if decided is not None:
                    yield decided


def read_file(root: Root, path: str, limit: int = _MOST_BYTES) -> bytes | None:
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
