"""Search of the lines of one file."""

from __future__ import annotations

import codecs
import os
import stat
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents_tools.builtin.search.patterns import (
    check_regex,
    compile_regex,
    escape_regex,
    without_ends,
)
from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents_tools.builtin.paths import Root
    from agents_tools.builtin.search.search_context import SearchContext

__all__ = ["FileLines", "Hit", "Matcher", "search_file"]

LONGEST_SHOWN = 400
"""The number of characters shown of a line."""

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 24
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)

# The size and duration of one test step, during which no other thread of the program runs. Steps
# start small and grow while they are fast, since a slow pattern is not known in advance.
_SMALLEST = 1 << 6
_FAST = 0.005
_SLOW = 0.05
_OVERHEAD = 0.0001
_MOST_SECONDS = 1.0
_SHORT_LINE = 1 << 12


@dataclass(slots=True)
class Hit:
    """A matching line with its requested context lines."""

    number: int
    line: str
    before: list[str]
    after: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class FileLines:
    """The number of matching lines in a file, and the matches to show."""

    count: int = 0
    hits: list[Hit] = field(default_factory=list[Hit])
    binary: bool = False


class Matcher:
    """A pattern that is tested on lines, many at once if possible.

    Args:
        pattern: A regular expression, or a text.
        running: The search; checked for cancellation.
        literal: Whether the pattern is literal text.
        ignore_case: Whether to ignore case.

    Raises:
        PatternError: The pattern is not valid.
    """

    def __init__(
        self,
        pattern: str,
        running: SearchContext,
        *,
        literal: bool = False,
        ignore_case: bool = False,
    ) -> None:
        own = escape_regex(pattern) if literal else pattern
        check_regex(own)
        self._own = own
        self._flags = f"(?{'i' if ignore_case else ''}m)"
        self._test = compile_regex(f"{self._flags}{own}")
        self._of_pieces: dict[tuple[bool, bool], Callable[[str], bool]] = {}
        self._running = running
        self._step = _SMALLEST
        self._slowest = 0.0  # seconds for a character

    def found_in(self, line: str) -> bool:
        """Return whether a line matches; invalid bytes separate its parts and match nothing.

        Raises:
            ToolError: The line is long, and the pattern too slow for it.
        """
        pieces = _pieces(line)
        last = len(pieces) - 1
        if not last:
            return self._tested(line) if len(line) > _SHORT_LINE else self._test(line)
        return any(
            self._tested(piece) and self._found_in_piece(piece, (at > 0, at < last))
            for at, piece in enumerate(pieces)
        )

    def _found_in_piece(self, piece: str, missing: tuple[bool, bool]) -> bool:
        """Test a piece of a line, whose start or end may be missing."""
        if missing not in self._of_pieces:
            start, end = missing
            regex = without_ends(self._own, start=start, end=end)
            self._of_pieces[missing] = compile_regex(f"{self._flags}{regex}")
        return self._of_pieces[missing](piece)

    def may_be_in(self, text: str) -> bool:
        """Return whether any line of a text can match.

        Args:
            text: Whole lines, or a part of one that is very long.

        Raises:
            ToolError: A line is long, and the pattern too slow for it.
        """
        text = "\n".join(_pieces(text))
        start = 0
        while start < len(text):
            end = self._end_of_step(text, start)
            if self._tested(text[start:end]):
                return True
            start = end
        return False

    def _end_of_step(self, text: str, start: int) -> int:
        end = start + self._step
        if end >= len(text):
            return len(text)
        line_end = text.rfind("\n", start, end)
        if line_end < 0:
            line_end = text.find("\n", end)
        return line_end + 1 or len(text)

    def _tested(self, text: str) -> bool:
        """Test a text that can be longer than a step, after a check that it is fast enough."""
        self._running.check()
        step = 0
        while step < self._step < min(len(text), _BLOCK):
            step = self._step
            self._timed(text[:step])
        if len(text) > step and self._is_too_slow_for(text):
            self._slowest = 0.0  # a pause of the machine during one short test looks the same
            self._timed(text[: step or self._step])
        if len(text) > step and self._is_too_slow_for(text):
            raise ToolError(
                f"The pattern takes too long on {len(text):,} characters without a line end. Use a "
                "simpler pattern with smaller repetition counts, or exclude such files."
            )
        return self._timed(text)

    def _is_too_slow_for(self, text: str) -> bool:
        return len(text) * self._slowest > _MOST_SECONDS

    def _timed(self, text: str) -> bool:
        began = time.thread_time()  # not the time during which other processes ran
        found = self._test(text)
        took = time.thread_time() - began
        if took > _SLOW:
            self._step = max(self._step // 4, _SMALLEST)
        elif took < _FAST and not found and len(text) * 2 > self._step:
            self._step = min(self._step * 2, _BLOCK)
        if len(text) >= _SMALLEST // 2:
            self._slowest = max(self._slowest * 0.9, (took - _OVERHEAD) / len(text))
        return found


def _pieces(text: str) -> list[str]:
    """Split a text at invalid bytes and at carriage returns."""
    if text.isascii():
        return text.split("\r")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", _SEPARATE).decode()
    return text.split("\r")


_SEPARATE = "agents_tools.separate"


def _separate(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - only registered for encoding
    return "\r" * (error.end - error.start), error.end


codecs.register_error(_SEPARATE, _separate)


def search_file(
    root: Root,
    path: str,
    matcher: Matcher,
    running: SearchContext,
    *,
    keep: range = range(0),
    before: int = 0,
    after: int = 0,
) -> FileLines | None:
    """Search a file.

    Args:
        root: The workspace.
        path: The file, relative to it.
        matcher: What to look for.
        running: The search; checked for cancellation.
        keep: The range of matches to collect, from 0.
        before: The number of context lines before each match.
        after: The number of context lines after each match.

    Returns:
        The matches; `None` if it is not a file or cannot be read.
    """
    try:
        fd = root.open(path, _READ)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        search = _Search(matcher, running, keep, before, after)
        for text, whole in _texts(fd, running):
            if "\0" in text:
                return FileLines(binary=True)
            search.take(text, whole=whole)
        return search.found
    except OSError:
        return None
    finally:
        os.close(fd)


class _Search:
    """The state of one search while a file is read piece by piece."""

    def __init__(
        self, matcher: Matcher, running: SearchContext, keep: range, before: int, after: int
    ) -> None:
        self.found = FileLines()
        self._matcher = matcher
        self._running = running
        self._keep = keep
        self._before: deque[str] = deque(maxlen=before)
        self._after = after
        self._open: list[Hit] = []  # hits that still need context lines after them
        self._number = 0
        self._inside = False  # a line that began in the previous piece
        self._matched = False

    def take(self, text: str, *, whole: bool) -> None:
        """Search the next piece.

        Args:
            text: The piece.
            whole: Whether its last line ends with it.
        """
        if self._matcher.may_be_in(text):
            self._each_line(text)
        elif self._open or self._before.maxlen:
            self._each_line(text, matching=False)
        else:
            continued = self._inside
            self._number += text.count("\n") + (not text.endswith("\n")) - continued
            self._matched = self._matched and continued and not whole
        self._inside = not whole

    def _each_line(self, text: str, *, matching: bool = True) -> None:
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        for at, line in enumerate(lines):
            if not at % 256:
                self._running.check()
            self._line(line.removesuffix("\r"), matching=matching)

    def _line(self, line: str, *, matching: bool) -> None:
        if self._inside:  # a further part of a line that is counted already
            self._inside = False
            if self._matched:
                return
        else:
            self._number += 1
        self._matched = matching and self._matcher.found_in(line)
        if not self._matched:
            self._around(line)
            return
        hit = None
        if self.found.count in self._keep:
            hit = Hit(self._number, _cut_around(line, self._matcher), list(self._before))
            self.found.hits.append(hit)
        self.found.count += 1
        self._around(line)
        if hit is not None and self._after:
            self._open.append(hit)

    def _around(self, line: str) -> None:
        """Store a line as context of the hits next to it."""
        if not (self._open or self._before.maxlen):
            return
        kept = _cut(line)
        for hit in self._open:
            hit.after.append(kept)
        self._open = [hit for hit in self._open if len(hit.after) < self._after]
        self._before.append(kept)


def _texts(fd: int, running: SearchContext) -> Iterator[tuple[str, bool]]:
    """Yield a file as pieces of whole lines; only a very long line is split.

    Invalid bytes become lone surrogates.
    """
    block, decode = _sniffed(os.read(fd, _BLOCK))
    rest = b""
    while block:
        running.check()
        rest += decode(block)
        end = rest.rfind(b"\n") + 1
        whole = bool(end)
        if end or len(rest) > _LONGEST_LINE:
            end = end or len(rest)
            yield rest[:end].decode("utf-8", "surrogateescape"), whole
            rest = rest[end:]
        block = os.read(fd, _BLOCK)
    if rest:
        yield rest.decode("utf-8", "surrogateescape"), True


def _sniffed(block: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Strip the byte order mark, and return a function that converts the rest to UTF-8."""
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if block.startswith(mark):
            return block[len(mark) :], _from_utf16(name)
    return block.removeprefix(codecs.BOM_UTF8), bytes


def _from_utf16(name: str) -> Callable[[bytes], bytes]:
    decode = codecs.getincrementaldecoder(name)("replace").decode
    return lambda data: decode(data).encode()


def _cut(line: str) -> str:
    if len(line) > LONGEST_SHOWN:
        line = f"{line[:LONGEST_SHOWN]}… [{len(line):,} characters]"
    return _writable(line)


def _cut_around(line: str, matcher: Matcher) -> str:
    """Truncate a long line around its match."""
    if len(line) <= LONGEST_SHOWN:
        return _writable(line)
    for start in range(0, len(line), LONGEST_SHOWN // 2):
        part = line[start : start + LONGEST_SHOWN]
        if matcher.found_in(part):
            if not start:
                break
            more = "…" if start + LONGEST_SHOWN < len(line) else ""
            return _writable(f"…{part}{more} [{len(line):,} characters]")
    return _cut(line)


def _writable(line: str) -> str:
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
