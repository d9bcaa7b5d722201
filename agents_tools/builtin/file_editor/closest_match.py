"""Explain why a text was not found in a file: show the closest match and how it differs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from agents_tools.text.characters import escape_for_model
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor.text_file import TextFormat

__all__ = ["near_misses"]

_NUMBERED = re.compile(r"^ *\d+(?:\t|[|:→] ?)")
_WORD = re.compile(r"\w+")
_SHOWN = 3
_LINES = 400_000
_LOOK_ALIKES = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u2032": "'", "`": "'", '"': "'",
    "\u201c": "'", "\u201d": "'", "\u201e": "'", "\u2033": "'",
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-",
    "\u2026": "...", "\u200b": "", "\u200c": "", "\u200d": "", "\ufeff": "", "\u00ad": "",
})  # fmt: skip


def near_misses(body: bytes, form: TextFormat, old: str, shown: str) -> str:
    """Return a message that a text is not in a file, with the closest match.

    Args:
        body: The body of the file, with LF line ends.
        form: How it is stored.
        old: The text to find.
        shown: The path for the message.
    """
    head = f"old_str is not in {shown}; nothing was changed."
    advice = "Copy it from a view of the file, exactly and without line numbers."
    text = form.decode(body)
    if not text:
        return f"{head} The file is empty."
    hint = _by_form(text, old) or _by_lines(text, old)
    return f"{head} {hint or advice}"


def _by_form(text: str, old: str) -> str:
    """Look for the text with a common mistake corrected."""
    lines = old.split("\n")
    bare = [_NUMBERED.sub("", line) for line in lines]
    if all(_NUMBERED.match(line) for line in lines if line.strip()) and "\n".join(bare) in text:
        place = _line_of(text, "\n".join(bare))
        return f"Line {place} matches without the line numbers at the start of the lines."
    plain = old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\'", "'")
    if plain != old and plain in text:
        place = _line_of(text, plain)
        return (
            f'Line {place} matches without the backslashes: escapes such as \\n or \\" are not '
            "interpreted. Write the characters themselves."
        )
    stripped = old.strip()
    if stripped and stripped != old and stripped in text:
        place = _line_of(text, stripped)
        return (
            f"Line {place} matches without the whitespace at the start and end of old_str. "
            "Use the whitespace of the file."
        )
    return ""


def _line_of(text: str, wanted: str) -> int:
    return text.count("\n", 0, text.index(wanted)) + 1


def _by_lines(text: str, old: str) -> str:
    """Look for lines that nearly match those of the text."""
    lines = text.split("\n")[:_LINES]
    wanted = old.strip("\n").split("\n")
    begins = _votes(lines, wanted)
    if not begins:
        return _by_words(lines, wanted)
    return "Nearest:" + "".join(_compared(lines, wanted, begin) for begin in begins)


def _votes(lines: list[str], wanted: list[str]) -> list[int]:
    """Return the start lines, from 0, where most lines of the text match."""
    offsets: defaultdict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(wanted):
        if key := _key(line):
            offsets[key].append(at)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for at in offsets.get(_key(line), ())[:_SHOWN]:
            votes[number - at] += 1
    needed = max(1, len(wanted) // 2)
    best = max(votes.values(), default=0)
    if best < needed:
        return []
    return sorted(begin for begin, count in votes.items() if count == best)[:_SHOWN]


def _key(line: str) -> str:
    """Return a line with everything normalized that is easily confused."""
    if not line.isascii():
        line = unicodedata.normalize("NFKC", line)
    return "".join(line.translate(_LOOK_ALIKES).split()).casefold()


def _compared(lines: list[str], wanted: list[str], begin: int) -> str:
    for at, line in enumerate(wanted):
        number = begin + at
        there = lines[number] if 0 <= number < len(lines) else None
        if there != line:
            if there is None:
                return f"\nline {max(begin, 0) + 1}: the file ends before the end of old_str."
            return (
                f"\nline {number + 1}: {_difference(there, line)}\n"
                f"  file:    {_quoted(there)}\n  old_str: {_quoted(line)}"
            )
    return f"\nline {begin + 1}: all lines are there, but the empty lines around them differ."


def _difference(there: str, line: str) -> str:
    if there.rstrip() == line.rstrip():
        return "the whitespace at the end of the line differs."
    if there.strip() == line.strip():
        return (
            f"the indentation differs: the file has {_indentation(there)}, "
            f"old_str {_indentation(line)}."
        )
    if "".join(there.split()) == "".join(line.split()):
        return "the whitespace inside the line differs."
    if there.casefold() == line.casefold():
        return "upper and lower case differ."
    if unicodedata.normalize("NFC", there) == unicodedata.normalize("NFC", line):
        return "accents are encoded differently; copy the line from the file."
    if _key(there) == _key(line):
        return "quotes, dashes or other characters that look alike differ."
    return "the text differs."


def _indentation(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    tabs, spaces = indent.count("\t"), indent.count(" ")
    if not indent:
        return "none"
    parts = [f"{n} {word}{'s' * (n > 1)}" for n, word in ((tabs, "tab"), (spaces, "space")) if n]
    return " and ".join(parts) or "other whitespace"


def _quoted(line: str) -> str:
    text = escape_for_model(line.replace("\t", "\\t"))
    return f"«{shorten(text, 200)}»"


def _by_words(lines: list[str], wanted: list[str]) -> str:
    """Look for the line that shares most words with the longest line of the text."""
    longest = max(range(len(wanted)), key=lambda at: len(wanted[at]))
    words = set(_WORD.findall(wanted[longest]))
    if not words:
        return ""
    best, number = 0.0, 0
    for at, line in enumerate(lines):
        if any(word in line for word in words):
            own = set(_WORD.findall(line[:2_000]))
            alike = len(words & own) / len(words | own)
            if alike > best:
                best, number = alike, at
    if best < 0.3:  # noqa: PLR2004 - a weaker match does not help
        return ""
    return "Nearest:" + _compared(lines, [wanted[longest]], number)
