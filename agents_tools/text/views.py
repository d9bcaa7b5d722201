"""Decoded views of a text, as a reader or a program decodes it."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, TypeAlias

from agents_tools.text.characters import hidden_parts, is_plain

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator
    from re import Match, Pattern

__all__ = ["View", "views", "visible_views"]

View: TypeAlias = "tuple[str, array[int]]"
"""A decoded text, and the position of each of its characters, and of its end, in the text."""


def views(text: str) -> Iterator[View]:
    r"""Yield decoded views of a text; only those that differ from it.

    The views are without hidden characters, which cleaning removes; with percent-encoding decoded;
    with backslash escapes decoded, once and twice, as in JSON within JSON; and each of them without
    the line ends that wrap base64.
    """
    for base in _readable(text):
        if base is not None:
            yield base
        plain = text if base is None else base[0]
        for decode in (_percent_views, _backslash_views):
            for view in decode(plain):
                yield view if base is None else _compose(base, view)


def visible_views(text: str) -> Iterator[View]:
    """Yield the text without hidden characters, and with percent-encoding decoded.

    Its lines stay apart: joined with the next line, the value of an assignment would not end.
    """
    visible = _without_hidden(text)
    if visible is not None:
        yield visible
    decoded = _percent_view(text if visible is None else visible[0])
    if decoded is None:
        return
    if visible is not None:
        decoded = _compose(visible, decoded)
    yield decoded
    if (shown := _without_hidden(decoded[0])) is not None:
        yield _compose(decoded, shown)


def _percent_view(text: str) -> View | None:
    return _decode(text, _PERCENT, _decode_percent) if "%" in text else None


def _percent_views(text: str) -> Iterator[View]:
    if (view := _percent_view(text)) is not None:
        yield from _readable_views(view)


def _backslash_views(text: str) -> Iterator[View]:
    if "\\" not in text or (once := _decode(text, _BACKSLASH, _decode_escape)) is None:
        return
    yield from _readable_views(once)
    if "\\" in once[0] and (twice := _decode(once[0], _BACKSLASH, _decode_escape)) is not None:
        for view in _readable_views(twice):
            yield _compose(once, view)


def _readable_views(view: View) -> Iterator[View]:
    for inner in _readable(view[0]):
        yield view if inner is None else _compose(view, inner)


def _readable(text: str) -> Iterator[View | None]:
    """Yield `None` for the text itself, then it without hidden characters and wrapping."""
    yield None
    visible = _without_hidden(text)
    if visible is not None:
        yield visible
    shown = text if visible is None else visible[0]
    if "\n" in shown and (unwrapped := _decode(shown, _WRAP, _nothing)) is not None:
        yield unwrapped if visible is None else _compose(visible, unwrapped)


def _without_hidden(text: str) -> View | None:
    return None if is_plain(text) else _decode(text, hidden_parts(), _nothing)


def _compose(outer: View, inner: View) -> View:
    from array import array

    positions = outer[1]
    return inner[0], array("l", [positions[place] for place in inner[1]])


_PERCENT = re.compile("(?:%[0-9A-Fa-f]{2})+")
_BACKSLASH = re.compile(
    r"(?s)\\(?:u[0-9A-Fa-f]{4}|U00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)"
)
_WRAP = re.compile(
    r"\n(?<=[A-Za-z0-9+/_-]{40}\n)"  # the search for a literal `\n` is fast
    r"(?:[ \t]*[0-9]{1,7}[\t:]|[ \t>+-]{1,4}(?=[A-Za-z0-9/_]))?(?=[A-Za-z0-9+/_=-])"
)
"""The end of a line of base64, and the indentation, line number or mark before the next one."""


def _nothing(_: str) -> Iterator[tuple[str, int]]:
    return iter(())


def _decode(
    text: str, pattern: Pattern[str], decode: Callable[[str], Iterator[tuple[str, int]]]
) -> View | None:
    """Return the text with the matches of a pattern decoded; `None` if nothing matches."""
    from array import array

    pieces: list[str] = []
    positions = array("l")
    done = 0
    match: Match[str]
    for match in pattern.finditer(text):
        start, end = match.span()
        positions.extend(range(done, start))
        pieces.append(text[done:start])
        for char, size in decode(match[0]):
            pieces.append(char)
            positions.append(start)
            start += size
        done = end
    if not done:
        return None
    positions.extend(range(done, len(text) + 1))
    pieces.append(text[done:])
    return "".join(pieces), positions


def _decode_percent(run: str) -> Iterator[tuple[str, int]]:
    for char in bytes.fromhex(run.replace("%", "")).decode("utf-8", "surrogateescape"):
        yield char, 3 * len(char.encode("utf-8", "surrogateescape"))


def _decode_escape(escape: str) -> Iterator[tuple[str, int]]:
    yield _unescape(escape), len(escape)


@functools.lru_cache(maxsize=4096)
def _unescape(escape: str) -> str:
    if len(escape) > 2:  # noqa: PLR2004 - more than a backslash and a letter: a code
        return chr(int.from_bytes(bytes.fromhex(escape[2:])))
    return _ESCAPES.get(escape[1], escape[1])


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
