"""Find and replace text in the bytes of a file; unchanged lines keep their line ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents_tools.builtin.file_editor.atomic_write import check_cancelled
from agents_tools.builtin.file_editor.closest_match import near_misses
from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.builtin.file_editor.text_file import TextScan

__all__ = ["Edit", "insert", "replace"]

_PLACES = 20


@dataclass(frozen=True, slots=True)
class Edit:
    """The result of an edit of the body of a file.

    Attributes:
        body: The new body.
        places: The first and the last new line of the first places, in the new body.
        count: The number of places.
        last: The last new line.
    """

    body: bytes
    places: list[tuple[int, int]]
    count: int
    last: int


def replace(
    body: bytes, shape: TextScan, old: str, new: str, *, everywhere: bool, shown: str, limit: int
) -> Edit:
    r"""Replace a text that occurs once, or all its occurrences.

    `\\n` in the text matches LF and CRLF.

    Args:
        body: The body of the file.
        shape: The scan of the body.
        old: The text to replace.
        new: The replacement.
        everywhere: Replace all occurrences.
        shown: The path for messages.
        limit: The maximum size of the new body, in bytes.

    Raises:
        ToolError: The text is missing or ambiguous, or the new text cannot be stored or is too
            large.
    """
    old, new = _unified(old), _unified(new)
    if old == new:
        raise ToolError(
            "old_str and new_str are the same text; nothing was changed. (Line ends stay as they "
            "are in the file.)"
        )
    into = shape.form.encode(new, "new_str")
    wanted = _encoded(old, shape)
    if wanted and shape.crlf and shape.crlf == shape.ends and "\r" not in old + new:
        count = _count(body, _crlf(wanted), overlapping=not everywhere)
        if count == 1 or (count and everywhere):
            return _replaced(body, _crlf(wanted), _crlf(into), count, (shown, limit))
    mixed = bool(shape.crlf) and any(end in old + new for end in "\r\n")
    flat = body.replace(b"\r\n", b"\n") if mixed else body
    count = 0 if wanted is None else _count(flat, wanted, overlapping=not everywhere)
    if wanted is None or not count:
        raise ToolError(near_misses(body.replace(b"\r\n", b"\n"), shape.form, old, shown))
    if count > 1 and not everywhere:
        raise ToolError(_several(flat, wanted, count, shown))
    ends = _LineEndingMap(body) if mixed else None
    return _replaced(flat, wanted, into, count, (shown, limit), ends)


def insert(body: bytes, shape: TextScan, line: int, start: int, text: str) -> Edit:
    """Insert lines.

    Args:
        body: The body of the file.
        shape: The scan of the body.
        line: The line to insert after.
        start: The offset of the line after it.
        text: The lines. A line end at the end of the text belongs to its last line.

    Raises:
        ToolError: The text cannot be stored.
    """
    text = _unified(text)
    at_end = line == shape.lines
    lines = shape.form.encode(text.removesuffix("\n"), "new_str").split(b"\n")
    end = _end_at(body, start)
    added = end.join(lines)
    if not (at_end and shape.open_end):
        added += end
    else:
        added = end + added + (end if text.endswith("\n") else b"")
    last = line + len(lines)
    return Edit(body[:start] + added + body[start:], [(line + 1, last)], 1, last)


def _end_at(body: bytes, start: int) -> bytes:
    """Return the line end of the line before an offset, or else of the line after it."""
    at = body.rfind(b"\n", 0, start)
    at = at if at >= 0 else body.find(b"\n", start)
    return b"\r\n" if at > 0 and body[at - 1 : at] == b"\r" else b"\n"


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")


def _crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def _encoded(text: str, shape: TextScan) -> bytes | None:
    try:
        return text.encode(shape.form.codec)
    except UnicodeEncodeError:
        return None


def _count(body: bytes, wanted: bytes, *, overlapping: bool) -> int:
    """Count the places of a text, including overlapping ones if requested."""
    if not overlapping:
        return body.count(wanted)
    return sum(1 for _ in _places(body, wanted, 1, _MOST + 1))


def _places(body: bytes, wanted: bytes, step: int, most: int) -> Iterator[int]:
    """Yield the offsets of a text; continue each search `step` bytes after the previous match."""
    at = body.find(wanted)
    for number in range(most):
        if at < 0:
            return
        if number % _OFTEN == _OFTEN - 1:
            check_cancelled()
        yield at
        at = body.find(wanted, at + step)


_MOST = 10_000
_OFTEN = 4_096
"""Check for cancellation each time after this number of places."""


def _several(flat: bytes, wanted: bytes, count: int, shown: str) -> str:
    lines: list[str] = []
    line, before = 1, 0
    for at in _places(flat, wanted, 1, _MOST):
        line += flat.count(b"\n", before, at)
        before = at
        if not lines or lines[-1] != f"{line}":
            lines.append(f"{line}")
        if len(lines) > _PLACES:
            break
    times = f"more than {_MOST:,}" if count > _MOST else f"{count:,}"
    which = f"line{'s' * (len(lines) > 1)} {', '.join(lines[:_PLACES])}"
    more = " and more" if len(lines) > _PLACES else ""
    return (
        f"old_str is {times} times in {shown}, beginning in {which}{more}; "
        "nothing was changed. Add surrounding lines to old_str, or set replace_all."
    )


class _LineEndingMap:
    """The line ends of a body, by line number."""

    def __init__(self, body: bytes) -> None:
        ends = body.translate(_ONLY_ENDS).replace(b"\r\n", _CRLF)
        self._ends = ends.translate(None, b"x\r")

    def give(self, piece: bytes, first: int) -> bytes:
        """Return a piece of the flat body with its original line ends.

        Args:
            piece: The piece.
            first: The number of line ends before it.
        """
        count = piece.count(b"\n")
        own = self._ends[first : first + count]
        return _with_ends(piece, own)

    def like(self, piece: bytes, first: int, count: int) -> bytes:
        """Return new text with the line ends of the text it replaces; extra lines use the last.

        Args:
            piece: The text.
            first: The number of line ends before it.
            count: The number of line ends it replaces.
        """
        needed = piece.count(b"\n")
        if not needed:
            return piece
        own = self._ends[first : first + count][:needed]
        at = min(first, len(self._ends) - 1)
        own += (own[-1:] or self._ends[at : at + 1]) * (needed - len(own))
        return _with_ends(piece, own)


_CRLF = b"C"
_ONLY_ENDS = bytes(byte if byte in b"\r\n" else ord("x") for byte in range(256))


def _with_ends(piece: bytes, ends: bytes) -> bytes:
    if _CRLF not in ends:
        return piece
    if b"\n" not in ends:
        return _crlf(piece)
    out = bytearray()
    at = 0
    for number, end in enumerate(ends):
        if number % _OFTEN == _OFTEN - 1:
            check_cancelled()
        following = piece.index(b"\n", at)
        out += piece[at:following]
        out += b"\r\n" if end == _CRLF[0] else b"\n"
        at = following + 1
    return bytes(out + piece[at:])


def _replaced(
    flat: bytes,
    wanted: bytes,
    into: bytes,
    count: int,
    allowed: tuple[str, int],
    ends: _LineEndingMap | None = None,
) -> Edit:
    shown, limit = allowed
    size = len(flat) + count * (len(into) - len(wanted))
    if size > limit:
        raise ToolError(
            f"{shown} would have about {size:,} bytes, more than the {limit:,} that the editor "
            "works on; nothing was changed."
        )
    same, tail = _kept(wanted, into)
    more = into.count(b"\n") - wanted.count(b"\n")  # lines, for each place
    core = into[same : len(into) - tail].removesuffix(b"\n").count(b"\n")
    places: list[tuple[int, int]] = []
    line, before = 1, 0
    for place in _places(flat, wanted, len(wanted), min(count, _PLACES)):
        line += flat.count(b"\n", before, place + same)
        before = place + same
        first = line + more * len(places)
        places.append((first, first + core))
    last = places[-1][1]
    if count > len(places):
        begin = _last(flat, wanted, count) + same
        last = 1 + flat.count(b"\n", 0, begin) + more * (count - 1) + core
    if ends is None:
        return Edit(flat.replace(wanted, into), places, count, last)
    return Edit(_mixed(flat, wanted, into, (same, tail), ends), places, count, last)


def _last(flat: bytes, wanted: bytes, count: int) -> int:
    """Return the offset of the last occurrence that is replaced."""
    other = next((byte for byte in range(256) if byte not in wanted), 0)
    return flat.replace(wanted, bytes([other]) * len(wanted), count - 1).rfind(wanted)


def _mixed(
    flat: bytes, wanted: bytes, into: bytes, kept_ends: tuple[int, int], ends: _LineEndingMap
) -> bytes:
    """Replace all occurrences in a body with mixed line ends."""
    same, tail = kept_ends
    core = into[same : len(into) - tail]
    gone = wanted[same : len(wanted) - tail].count(b"\n")
    out = bytearray()
    at = before = 0  # in the flat body: the offset already written, and the line ends before it
    for place in _places(flat, wanted, len(wanted), len(flat)):
        kept = flat[at : place + same]
        first = before + kept.count(b"\n")
        out += ends.give(kept, before)
        out += ends.like(core, first, gone)
        at, before = place + len(wanted) - tail, first + gone
    out += ends.give(flat[at:], before)
    return bytes(out)


def _kept(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the numbers of equal whole lines at the start and at the end of two texts."""
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
