"""Render files and directories for a model."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents_tools.builtin.paths import one_line
from agents_tools.text.characters import escape_for_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.builtin.file_editor.text_file import ByteSource, TextScan

__all__ = ["NumberedText", "image_type", "image_url", "listing", "size_text", "snippets"]

LINE_LIMIT = 2_000
"""The number of characters shown of a line."""
_ENOUGH = LINE_LIMIT * 4
"""The maximum size of these characters in bytes, in any encoding."""
_PER_DIRECTORY = 200
_ENTRIES = 1_000
_READ = 100_000
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def size_text(size: int) -> str:
    """Return a size as readable text."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 10 * 1_000**power:
            return f"{size / 1_000**power:,.1f} {unit}"
    return f"{size:,} bytes"


@dataclass(frozen=True, slots=True)
class NumberedText:
    """A text that reads only the lines to show.

    Attributes:
        shape: The scan of the text.
        body: Its bytes.
    """

    shape: TextScan
    body: ByteSource

    def numbered(self, first: int, last: int, limit: int) -> str:
        """Return lines with their numbers; if they are too long, only the first and last of them.

        Args:
            first: The first line.
            last: The last line.
            limit: The maximum number of characters.
        """
        head, following = self._forward(first, last, limit)
        if following > last:
            return "".join(head)
        head, following = self._forward(first, last, limit * 2 // 3)
        tail = self._backward(following, last, limit // 3)
        until = last - len(tail)
        if until < following:
            return "".join([*head, *tail])
        count = until - following + 1
        notice = (
            f"[{count:,} line{'s' * (count > 1)} not shown: {following} to {until}. See more with "
            f"view_range, for example [{following}, {min(until, following + 199)}].]\n"
        )
        return "".join([*head, notice, *tail])

    def _forward(self, line: int, last: int, limit: int) -> tuple[list[str], int]:
        """Return lines up to a limit, at least one, and the number of the next line."""
        shown: list[str] = []
        begin = self.shape.start(line, self.body)
        data, at, window = b"", 0, limit * 4 + _ENOUGH
        while line <= last:
            if at + _ENOUGH >= len(data) and begin + len(data) < self.body.size:
                begin, at = begin + at, 0
                data = self.body.read(begin, window)
            end = data.find(b"\n", at)
            following = end + 1 if end >= 0 else self.shape.start(line + 1, self.body) - begin
            text = self._line(line, data[at : min(following, at + _ENOUGH + 1)], following - at)
            if shown and len(text) > limit:
                break
            shown.append(text)
            limit -= len(text)
            line, at = line + 1, following
        return shown, line

    def _backward(self, first: int, last: int, limit: int) -> list[str]:
        """Return the last lines that fit in a limit, starting at `first` or later."""
        start, end = self.shape.start(first, self.body), self.shape.start(last + 1, self.body)
        begin = max(start, end - limit * 4)
        pieces = self.body.read(begin, end - begin).split(b"\n")
        if not pieces[-1]:
            pieces.pop()
        if begin > start:
            del pieces[:1]  # its start is missing
        shown: list[str] = []
        for line, piece in zip(range(last, first - 1, -1), reversed(pieces), strict=False):
            text = self._line(line, piece, len(piece))
            limit -= len(text)
            if limit < 0:
                break
            shown.append(text)
        return shown[::-1]

    def _line(self, number: int, data: bytes, whole: int) -> str:
        text = self.shape.form.decode_start(data, _ENOUGH)
        text = text.removesuffix("\n").removesuffix("\r")
        if len(text) > LINE_LIMIT or whole > _ENOUGH:
            text = f"{text[:LINE_LIMIT]}… [cut here: the line has {whole:,} bytes]"
        return f"{number:6}\t{escape_for_model(text)}\n"


def snippets(
    text: NumberedText, places: Sequence[tuple[int, int]], *, around: int = 3, limit: int = 6_000
) -> list[str]:
    """Return changed lines with their surrounding lines, each line once.

    Args:
        text: The text.
        places: The first and the last line of each change, in order.
        around: The number of surrounding lines on each side.
        limit: The maximum number of characters of each snippet.
    """
    pieces: list[tuple[int, int]] = []
    for first, last in places:
        begin, end = max(1, first - around), min(text.shape.lines, last + around)
        if pieces and begin <= pieces[-1][1] + 1:
            begin, end = pieces[-1][0], max(end, pieces.pop()[1])
        if end >= begin:
            pieces.append((begin, end))
    return [text.numbered(begin, end, limit) for begin, end in pieces]


def image_type(head: bytes) -> str | None:
    """Return the image type for the first bytes of a file, or `None` if it is not an image."""
    for mark, kind in _IMAGES:
        if head.startswith(mark):
            return kind
    return "image/webp" if head.startswith(b"RIFF") and head[8:12] == b"WEBP" else None


def image_url(data: bytes, kind: str) -> str:
    """Return an image as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def listing(fd: int) -> tuple[list[str], int]:
    """List a directory two levels deep, without hidden entries.

    Args:
        fd: The directory.

    Returns:
        One line for each entry, and the number of omitted hidden entries.
    """
    lines: list[str] = []
    names, hidden, more = _names(fd)
    for at, (name, mark) in enumerate(names):
        if len(lines) >= _ENTRIES:
            more += len(names) - at
            break
        lines.append(one_line(name) + mark)
        if mark == "/":
            below, hidden_below = _below(fd, name)
            lines += below
            hidden += hidden_below
    return lines + _and_more(more, ""), hidden


def _below(fd: int, name: str) -> tuple[list[str], int]:
    try:
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    except OSError as error:
        return [f"  [cannot be read: {error.strerror}]"], 0
    try:
        names, hidden, more = _names(inner)
    finally:
        os.close(inner)
    more += max(0, len(names) - _PER_DIRECTORY)
    lines = [f"  {one_line(name)}{mark}" for name, mark in names[:_PER_DIRECTORY]]
    return lines + _and_more(more, "  "), hidden


def _names(fd: int) -> tuple[list[tuple[str, str]], int, int]:
    """Return the visible names in a directory, and the numbers of hidden and of unread entries."""
    names: list[tuple[str, str]] = []
    hidden = unread = 0
    with os.scandir(fd) as entries:
        for number, entry in enumerate(entries):
            if number >= _READ:
                unread += 1
            elif entry.name.startswith("."):
                hidden += 1
            else:
                names.append((entry.name, _mark(entry)))
    return sorted(names), hidden, unread


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""


def _and_more(count: int, indent: str) -> list[str]:
    return [f"{indent}[and {count:,} more]"] if count else []
