"""Finds and replaces text in the bytes of a file; lines that stay keep their line ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents_tools.builtin.file_editor._near import near_misses
from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor._text_file import Shape

__all__ = ["Edit", "insert", "replace"]

_PLACES = 20


@dataclass(frozen=True, slots=True)
class Edit:
    """What an edit makes of the body of a file.

    Attributes:
        body: The new body.
        places: For each place, the first and the last line that is new, in the new body.
    """

    body: bytes
    places: list[tuple[int, int]]


def replace(body: bytes, shape: Shape, old: str, new: str, *, everywhere: bool, shown: str) -> Edit:
    r"""Replace a text that is there once, or everywhere.

    `\\n` in the text stands for the line end of the place, be it LF or CRLF.

    Args:
        body: The body of the file.
        shape: What is known of it.
        old: The text.
        new: What takes its place.
        everywhere: Replace it wherever it is.
        shown: The file, for messages.

    Raises:
        ToolError: It is not there, or several times, or the new text cannot be stored.
    """
    old, new = _unified(old), _unified(new)
    if old == new:
        raise ToolError(
            "old_str and new_str are the same text; nothing was changed. (Line ends stay as they "
            "are in the file.)"
        )
    into = shape.form.encode(new, "new_str")
    wanted = _encoded(old, shape)
    if shape.crlf and shape.crlf == shape.ends and "\r" not in old + new:
        found = _places(body, _crlf(wanted or b"\n"), overlapping=not everywhere)
        if wanted and found and (everywhere or len(found) == 1):
            return _replaced(body, found, _crlf(wanted), _crlf(into), None)
    flat = body.replace(b"\r\n", b"\n") if shape.crlf else body
    found = [] if wanted is None else _places(flat, wanted, overlapping=not everywhere)
    if wanted is None or not found:
        raise ToolError(near_misses(flat, shape.form, old, shown))
    if len(found) > 1 and not everywhere:
        raise ToolError(_several(flat, found, shown))
    ends = _Ends(body, flat) if shape.crlf else None
    return _replaced(flat, found, wanted, into, ends)


def insert(body: bytes, shape: Shape, line: int, start: int, text: str) -> Edit:
    """Insert lines.

    Args:
        body: The body of the file.
        shape: What is known of it.
        line: After which line.
        start: Where the line after it begins.
        text: The lines. A line end at the end of the text is that of its last line.

    Raises:
        ToolError: The text cannot be stored.
    """
    text = _unified(text)
    last = line == shape.lines
    lines = shape.form.encode(text.removesuffix("\n"), "new_str").split(b"\n")
    end = _end_at(body, start)
    added = end.join(lines)
    if not (last and shape.open_end):
        added += end
    else:
        added = end + added + (end if text.endswith("\n") else b"")
    return Edit(body[:start] + added + body[start:], [(line + 1, line + len(lines))])


def _end_at(body: bytes, start: int) -> bytes:
    """Give the line end that a line before, or else after, a place has."""
    at = body.rfind(b"\n", 0, start)
    at = at if at >= 0 else body.find(b"\n", start)
    return b"\r\n" if at > 0 and body[at - 1 : at] == b"\r" else b"\n"


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")


def _crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def _encoded(text: str, shape: Shape) -> bytes | None:
    try:
        return text.encode(shape.form.codec)
    except UnicodeEncodeError:
        return None


def _places(body: bytes, wanted: bytes, *, overlapping: bool) -> list[int]:
    found: list[int] = []
    at = body.find(wanted)
    while at >= 0:
        found.append(at)
        at = body.find(wanted, at + (1 if overlapping else len(wanted)))
        if overlapping and len(found) > _MOST:
            break
    return found


_MOST = 10_000


def _several(flat: bytes, found: list[int], shown: str) -> str:
    lines: list[str] = []
    line, before = 1, 0
    for at in found[:_PLACES]:
        line += flat.count(b"\n", before, at)
        before = at
        lines.append(f"{line}")
    count = f"more than {_MOST:,}" if len(found) > _MOST else f"{len(found):,}"
    more = f" and {len(found) - _PLACES:,} more" if len(found) > _PLACES else ""
    return (
        f"old_str is {count} times in {shown}, beginning in lines {', '.join(lines)}{more}; "
        "nothing was changed. Give more of the lines around the one meant, or set replace_all."
    )


class _Ends:
    """Which line ends a body has, by the number of the line."""

    def __init__(self, body: bytes, flat: bytes) -> None:
        self._crlf = [b"\r" if match[0] != b"\n" else b"" for match in _END.finditer(body)]
        self._flat = flat

    def give(self, piece: bytes, first: int) -> bytes:
        """Give a piece of the flat body its line ends back.

        Args:
            piece: The piece.
            first: How many line ends are before it.
        """
        count = piece.count(b"\n")
        if not count:
            return piece
        own = self._crlf[first : first + count]
        if b"" not in own:
            return piece.replace(b"\n", b"\r\n")
        if b"\r" not in own:
            return piece
        parts = piece.split(b"\n")
        return (
            b"".join(part + end + b"\n" for part, end in zip(parts[:-1], own, strict=True))
            + parts[-1]
        )

    def like(self, piece: bytes, first: int, count: int) -> bytes:
        """Give new text the line ends of what it replaces, and for more lines the last of these.

        Args:
            piece: The text.
            first: How many line ends are before it.
            count: How many line ends it replaces.
        """
        needed = piece.count(b"\n")
        own = self._crlf[first : first + count][:needed]
        neighbour = self._crlf[min(first, len(self._crlf) - 1)]
        own += [own[-1] if own else neighbour] * (needed - len(own))
        parts = piece.split(b"\n")
        return (
            b"".join(part + end + b"\n" for part, end in zip(parts[:-1], own, strict=True))
            + parts[-1]
        )


_END = re.compile(rb"\r?\n")


def _replaced(
    flat: bytes, found: list[int], wanted: bytes, into: bytes, ends: _Ends | None
) -> Edit:
    same, tail = _kept(wanted, into)
    out: list[bytes] = []
    places: list[tuple[int, int]] = []
    at = before = 0  # in the flat body: how far it is written, and how many line ends that has
    line = 1  # in the new body
    for place in found:
        begin, end = place + same, place + len(wanted) - tail
        kept, core = flat[at:begin], into[same : len(into) - tail]
        kept_ends, gone = kept.count(b"\n"), flat.count(b"\n", begin, end)
        first = before + kept_ends
        out.append(ends.give(kept, before) if ends else kept)
        out.append(ends.like(core, first, gone) if ends else core)
        line += kept_ends
        places.append((line, line + core.removesuffix(b"\n").count(b"\n")))
        line += core.count(b"\n")
        at, before = end, first + gone
    out.append(ends.give(flat[at:], before) if ends else flat[at:])
    return Edit(b"".join(out), places)


def _kept(old: bytes, new: bytes) -> tuple[int, int]:
    """Say how much whole lines at the start and at the end of two texts are the same."""
    ours, theirs = old.split(b"\n"), new.split(b"\n")
    most = min(len(ours), len(theirs)) - 1
    first = 0
    while first < most and ours[first] == theirs[first]:
        first += 1
    last = 0
    while last < most - first and ours[-1 - last] == theirs[-1 - last]:
        last += 1
    head = sum(len(one) + 1 for one in ours[:first])
    tail = sum(len(one) + 1 for one in ours[len(ours) - last :])
    return head, tail
