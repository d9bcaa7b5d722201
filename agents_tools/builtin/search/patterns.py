r"""Patterns of models and repositories, compiled by a linear-time engine.

Regular expressions and globs become patterns of Rust's `regex`, which is part of pydantic. Python's
`re` is never used on them, since a short pattern can run for hours: pathspec, which translates the
globs, needs 0.05 s for `*a*a*a*a*a*ab` and 40 letters, and 16 times as long for two more `*a`.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic

from pydantic_core import SchemaError, SchemaValidator, core_schema
from typing_extensions import TypeVar

from agents_tools.errors import ToolError
from agents_tools.text.characters import escape_for_model
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

__all__ = [
    "LruCache",
    "PatternError",
    "as_bytes_text",
    "as_line",
    "check_regex",
    "compile_regex",
    "escape_regex",
    "glob_to_regex",
    "path_filter",
    "without_ends",
]

ValueT = TypeVar("ValueT")


class PatternError(ToolError):
    """An invalid pattern; the message names the place and the reason."""


class LruCache(Generic[ValueT]):
    """A cache of the most recently used values, limited by their total size.

    Args:
        room: The maximum total size.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._lock = threading.Lock()
        self._items: OrderedDict[Hashable, tuple[ValueT, int]] = OrderedDict()

    def get(self, key: Hashable, size: int, make: Callable[[], ValueT]) -> ValueT:
        """Return the value of a key; create it if it is missing.

        Args:
            key: The key.
            size: The size of the value; values larger than the room are not cached.
            make: Creates the value.
        """
        with self._lock:
            if (item := self._items.get(key)) is not None:
                self._items.move_to_end(key)
                return item[0]
        value = make()
        with self._lock:
            if size <= self._room and key not in self._items:
                self._items[key] = value, size
                self._used += size
            while self._used > self._room:
                _, (_, freed) = self._items.popitem(last=False)
                self._used -= freed
        return value


def compile_regex(pattern: str) -> Callable[[str], bool]:
    """Return a function that searches a text for a pattern.

    The pattern is not cached, since a short pattern can take megabytes.

    Args:
        pattern: In the syntax of Rust's `regex`.

    Raises:
        PatternError: The pattern is not valid.
    """
    began = time.perf_counter()
    try:
        return _compiled(pattern)
    except (SchemaError, ValueError) as error:
        raise PatternError(_reason(pattern, str(error))) from None
    finally:
        _engine.worked(time.perf_counter() - began)


def _compiled(pattern: str) -> Callable[[str], bool]:
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    return SchemaValidator(schema).isinstance_python


class _Engine:
    """Evicts large patterns from the engine, which caches up to 64 patterns of any size.

    The compile time estimates their size; small dummy patterns replace the large ones.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._names = itertools.count()

    def worked(self, seconds: float) -> None:
        """Add the compile time of a pattern, and evict patterns above the limit."""
        self._seconds += seconds
        if self._seconds > _MOST_SECONDS_KEPT:
            self._seconds = 0.0
            for _ in range(_KEPT_BY_ENGINE):
                _compiled(f"{next(self._names)}")


_MOST_SECONDS_KEPT = 0.1
_KEPT_BY_ENGINE = 64
_engine = _Engine()


def _reason(pattern: str, text: str) -> str:
    """Return the message of the engine for the pattern, with its marker below the place."""
    lines = text.splitlines()
    wanted = next((n for n, line in enumerate(lines) if "SchemaError:" in line), None)
    if wanted is None:
        return f"The pattern {_quoted(pattern)} is not valid: it contains a lone surrogate."
    said = "\n".join([lines[wanted].split("SchemaError: ", 1)[-1], *lines[wanted + 1 :]])
    return f"The pattern is not valid: {shorten(escape_for_model(said.strip()), 2_000)}"


def _quoted(text: str) -> str:
    safe = text.encode("utf-8", "replace").decode("utf-8")
    return f"'{shorten(as_line(safe), 100)}'"


def as_line(text: str) -> str:
    """Escape a name or a line so that it stays a single line."""
    return escape_for_model(text).translate(_LINE_ENDS)


_LINE_ENDS = {
    ord(end): escaped
    for end, escaped in {"\n": "\\n", "\r": "\\r", "\u2028": "\\u2028", "\u2029": "\\u2029"}.items()
}


def escape_regex(text: str) -> str:
    """Return a pattern that matches a literal text."""
    return "".join(f"\\{char}" if char in _META else char for char in text)


_META = frozenset("\\.+*?()|[]{}^$#&-~")


# --- regular expressions, searched line by line


def check_regex(pattern: str) -> None:
    """Raise an error for constructs that have no meaning in a search line by line.

    Args:
        pattern: The pattern of the model.

    Raises:
        PatternError: The pattern is not valid, contains a line end as a character, or matches the
            start or end of the whole text.
    """
    sizes = _Sizes()
    for at, in_class in _places(pattern):
        here = pattern[at]
        fault = _UNFIT.get(here) or sizes.fault_of(pattern, at, in_class=in_class)
        if here == "\\":
            fault = fault or _escape_fault(pattern[at + 1 : at + 12], in_class=in_class)
        elif here == "(" and not in_class and _switches_lines_off(pattern[at + 1 : at + 16]):
            fault = "the flag m cannot be switched off: ^ and $ are the ends of each line"
        if fault:
            raise PatternError(
                f"The pattern {_quoted(pattern)} is not supported at character {at + 1}: {fault}."
            )
    compile_regex(pattern)


def _places(pattern: str) -> Iterator[tuple[int, bool]]:
    """Yield the offset of each character or escape, and whether it is in a class."""
    at, depth = 0, 0
    while at < len(pattern):
        here = pattern[at]
        yield at, depth > 0
        if here == "[":
            depth += 1
            at += _length_of_class_start(pattern, at) - 1
        elif here == "]" and depth:
            depth -= 1
        at += 2 if here == "\\" else 1


def without_ends(pattern: str, *, start: bool, end: bool) -> str:
    """Return a pattern for a piece of a line with the same matches as in the whole line.

    Args:
        pattern: A pattern that passed `check_regex`.
        start: Whether the start of the line is missing, so that `^` matches nowhere.
        end: Whether the end of the line is missing, so that `$` matches nowhere.
    """
    missing = "^" * start + "$" * end
    chars = list(pattern)
    for at, in_class in _places(pattern):
        if chars[at] in missing and not in_class:
            chars[at] = _NOWHERE
    return "".join(chars)


_NOWHERE = "(?:[a&&b])"
_MOST_REPEATED = 5_000


class _Sizes:
    """Counts the steps of counted and nested repetitions."""

    def __init__(self) -> None:
        self._groups = [0]
        self._last = 1

    def fault_of(self, pattern: str, at: int, *, in_class: bool) -> str | None:
        """Process the next character, and return the reason if it exceeds the limit."""
        here = pattern[at]
        if in_class:
            return None
        if here == "(":
            self._groups.append(0)
        elif here == ")" and len(self._groups) > 1:
            self._add(max(1, self._groups.pop()))
        elif here == "{":
            times = _most_times(pattern[at + 1 : at + 24])
            self._groups[-1] += self._last * (times - 1)
            self._last *= times
            if self._last > _MOST_REPEATED:
                return f"the repetition expands to more than {_MOST_REPEATED:,} steps"
        elif here not in "}*+?|,0123456789":
            self._add(1)
        return None

    def _add(self, size: int) -> None:
        self._groups[-1] += size
        self._last = size


def _most_times(counts: str) -> int:
    """Return the largest count of `2}`, `2,}` or `2,5}`, or 1 if it is not a count."""
    numbers = [part for part in counts.partition("}")[0].split(",") if part.strip().isdecimal()]
    return max([1, *(int(number) for number in numbers)])


_LINE_END = "it never matches, since lines are searched one by one, without their ends"
_NUL = "files with NUL are binary and are not searched"
_ENDS = "lines are searched one by one: use ^ and $ for the start and the end of a line"
_UNFIT = {"\n": _LINE_END, "\r": _LINE_END, "\0": _NUL}
_CODES = {0x0A: _LINE_END, 0x0D: _LINE_END, 0x00: _NUL}


def _escape_fault(rest: str, *, in_class: bool) -> str | None:
    """Return the fault of an escape, if any; `rest` is the text after its backslash."""
    if in_class:  # one of several alternatives, which never occurs
        return None
    if rest[:1] in {"n", "r"}:
        return _LINE_END
    if rest[:1] in {"A", "z"}:
        return _ENDS
    if rest[:1] in {"x", "u", "U"}:
        digits = rest[1 : 1 + {"x": 2, "u": 4, "U": 8}[rest[0]]]
        if rest[1:2] == "{":
            digits = rest[2:].partition("}")[0]
        try:
            return _CODES.get(int(digits, 16))
        except ValueError:
            return None
    return None


def _length_of_class_start(pattern: str, at: int) -> int:
    """Return the length of `[`, an optional `^`, and a following literal `]`."""
    length = 2 if pattern.startswith("[^", at) else 1
    return length + pattern.startswith("]", at + length)


def _switches_lines_off(group: str) -> bool:
    if not group.startswith("?"):
        return False
    flags = group[1:]
    for end, char in enumerate(flags):
        if char in ":)":
            return "m" in flags[:end].partition("-")[2]
        if not (char.isalpha() or char == "-"):
            return False
    return False


# --- globs


def path_filter(glob: str) -> Callable[[str], bool]:
    """Return a function that matches relative paths against a glob.

    As with ripgrep's `--glob`, a glob without a slash matches names at any depth; with a slash it
    matches the path from the start. A leading `!` excludes the matches and their contents.

    Args:
        glob: The glob; a trailing `/` matches everything inside the directory.

    Raises:
        PatternError: The glob is not valid.
    """
    others = glob.startswith("!")
    text = glob[1:] if others else glob
    anchored = text.startswith(("/", "./"))
    text = text[text.index("/") + 1 :] if anchored else text
    inside = text.endswith("/") and not text.endswith("\\/")
    text = text.removesuffix("/") if inside else text
    if not text:
        raise PatternError(f"The glob {_quoted(glob)} is empty. Use for example '**/*.py'.")
    if not anchored and "/" not in text:
        text = f"**/{text}"
    regex = glob_to_regex(text, shown=glob)
    if others:
        matches = compile_regex(_anchored(f"(?:{regex}){'/.*' if inside else '(?:/.*)?'}"))
        return lambda path: not matches(path)
    return compile_regex(_anchored(f"(?:{regex})/.*" if inside else regex))


def _anchored(regex: str) -> str:
    return rf"(?s)\A(?:{regex})\z"


def as_bytes_text(path: str) -> str:
    """Return a path with one character for each of its bytes.

    Git and ripgrep match names by bytes: `?` is one byte.
    """
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def glob_to_regex(glob: str, *, shown: str | None = None) -> str:
    r"""Translate a glob in ripgrep's dialect to a pattern for whole paths.

    `*` and `?` stay within a name, `**` between slashes crosses them, `[a-z]` and `[!a-z]` are
    classes, `{a,b}` are alternatives, and a backslash escapes the next character.

    Args:
        glob: The glob.
        shown: The glob in error messages.

    Raises:
        PatternError: A class or a choice is not closed, the glob ends with a backslash, or it has
            too many alternatives.
    """
    try:
        patterns = [_translated(one) for one in _alternatives(glob)]
    except _GlobFault as fault:
        raise PatternError(f"The glob {_quoted(shown or glob)} is not valid: {fault}.") from None
    return "|".join(dict.fromkeys(patterns))


class _GlobFault(Exception):  # noqa: N818 - a reason, which becomes a part of the error
    """The reason why a glob is not valid."""


def _alternatives(glob: str) -> list[str]:
    """Return the globs without braces that a glob stands for."""
    whole, text = [""], ""
    choice: list[str] = []
    is_open = False
    for part in _glob_tokens(glob):
        if part == "{":
            if is_open:
                raise _GlobFault("a '{' is inside another")
            is_open = True
            whole, choice, text = [one + text for one in whole], [], ""
        elif part == "," and is_open:
            choice.append(text)
            text = ""
        elif part == "}":
            if not is_open:
                raise _GlobFault("a '}' has no '{'; use '\\}' for the character")
            is_open = False
            choice.append(text)
            size = sum(map(len, whole)) * len(choice) + sum(map(len, choice)) * len(whole)
            if size > _MOST_CHARACTERS or len(whole) * len(choice) > _MOST_ALTERNATIVES:
                raise _GlobFault("it has too many alternatives")
            whole, text = [one + chosen for one in whole for chosen in choice], ""
        else:
            text += part
    if is_open:
        raise _GlobFault("a '{' is not closed; use '\\{' for the character")
    return [one + text for one in whole]


_MOST_CHARACTERS, _MOST_ALTERNATIVES = 1 << 16, 2_100


def _glob_tokens(glob: str) -> Iterator[str]:
    """Yield each class, each escaped character and each other character."""
    at, last = 0, glob.rfind("]")
    while at < len(glob):
        end = at + (2 if glob[at] == "\\" else 1)
        if glob[at] == "[":
            start = end + (glob[end : end + 1] in {"!", "^"})
            start += glob[start : start + 1] == "]"
            if start <= last:
                end = glob.index("]", start) + 1
        yield glob[at:end]
        at = end


def _translated(glob: str) -> str:
    """Return the pattern for a glob without braces, by the rules of `.gitignore`."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if glob[-1:].isspace() and not glob.endswith("\\ "):  # otherwise it would be removed
        rest = glob[:-1]
        is_escaped = (len(rest) - len(rest.rstrip("\\"))) % 2
        glob = f"{rest[:-1] if is_escaped else rest}[{glob[-1]}]"
    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(f"/{glob}")
    except ValueError:
        raise _GlobFault("it ends with a backslash") from None
    if regex is None:
        raise _GlobFault("a '[' is not closed; use '\\[' for the character")
    if regex in _SPECIAL:
        return _SPECIAL[regex]
    # The pattern of pathspec for `a` also matches the content of a directory `a`. Here it must not:
    # each entry is tested by itself, and an excluded directory is not entered. That for `a/**` ends
    # with a slash.
    regex = regex.removeprefix("^")
    regex = regex.removesuffix(_ENTRY) if regex.endswith(_ENTRY) else f"{regex}.+"
    return _CLASS.sub(_class_for_rust, regex)


_ENTRY = "(?:(?P<ps_d>/)|$)"
_SPECIAL = {".": ".*", "/": ".+/.+", "(?P<ps_d>/)": ".*"}
_CLASS = re.compile(r"\\.|\[(\^?)(\]?[^\]]*)\]", re.DOTALL)


def _class_for_rust(found: re.Match[str]) -> str:
    r"""Escape the characters of a class: for Rust, `[`, `&&` and `--` are operators in it."""
    if found[0] == "[^/]" or found[0].startswith("\\"):
        return found[0]
    inside = found[2].replace("\\\\", "\\")
    ranges: list[str] = []
    at = 0
    while at < len(inside):
        low = high = inside[at]
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            high = inside[at + 2]
            at += 2
        if high < low:
            raise _GlobFault(f"the range {low}-{high} is empty")
        ranges.append(f"{escape_regex(low)}-{escape_regex(high)}")
        at += 1
    return f"[{found[1]}{''.join(ranges)}]"
