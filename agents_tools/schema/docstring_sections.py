"""The base class of the docstring normalizers, and their shared functions.

A normalizer passes text to griffe that contains two characters of the private use area of
Unicode. `TYPE_MARK` in front of a type makes griffe return the type as it was written; otherwise
griffe compiles it, and warns if it is not Python. `COLON_MARK` stands for a colon inside a type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

DocstringStyle = Literal["google", "numpy", "sphinx"]

TYPE_MARK = "\ue000"
COLON_MARK = "\ue001"

PARAMETERS, ATTRIBUTES, IGNORED, PROSE = "parameters", "attributes", "ignored", "prose"

HEADINGS: dict[str, str] = {
    title: kind
    for kind, titles in {
        PARAMETERS: "arg, args, argument, arguments, param, params, parameter, parameters, "
        "keyword args, keyword argument, keyword arguments, keyword params, keyword parameters, "
        "keyword-only arguments, kwargs, optional args, optional arguments, optional parameters, "
        "optional keyword arguments, other args, other arguments, other keyword arguments, "
        "other params, other parameters, positional arguments, required arguments, "
        "required parameters",
        ATTRIBUTES: "attribute, attributes",
        IGNORED: "example, examples, example usage, exceptions, raise, raises, receive, receives, "
        "reference, references, return, returns, return type, return value, return values, "
        "see also, throws, todo, type args, type arguments, type params, type parameters, warns, "
        "yield, yields",
        PROSE: "attention, caution, danger, important, note, notes, tip, warning, warnings",
    }.items()
    for title in titles.split(", ")
}


class SectionNormalizer:
    """Separates the sections of one style from the prose, and rewrites them for griffe.

    Attributes:
        prose: The lines outside of sections.
        sections: The lines of the sections, as griffe expects them.
        original_names: The original parameter names by the names in `sections`.
    """

    style: DocstringStyle
    hint: str
    """A pattern that every docstring with sections of the style matches."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.prose: list[str] = []
        self.sections: list[str] = []
        self.original_names: dict[str, str] = {}

    def normalize(self, lines: list[str]) -> bool:
        """Fill `prose` and `sections`; return whether there is any section."""
        raise NotImplementedError


HEAD_LIMIT = 500
"""The longest text, in characters, that is searched for names or roles."""
BULLET = r"^[-*+•][ \t]+"
_AND = r",|/|\band\b"
_ROLE = r":[\w:]*:`~?([^`]*)`|\b[CLIB]\{([^{}]*)\}"  # and epydoc's C{int}


def plain_names(text: str) -> list[str]:
    """Return the names in `x`, `*args`, `` `x` ``, `x, y` or `x and y`; none for other texts."""
    if text.isidentifier():
        return [text]
    if len(text) > HEAD_LIMIT:
        return []
    parts = (part.strip(" \t*`'\"") for part in re.split(_AND, text.replace("\\", "")))
    names = [part for part in parts if part.strip(".")]
    return names if all(map(str.isidentifier, names)) else []


def split_dash(entry: str) -> tuple[str, str, str]:
    """Split an entry at its first dash, as `str.partition` does."""
    if "- " not in entry and entry.isascii():
        return entry, "", ""
    for dash in (" -- ", " \N{EN DASH} ", " \N{EM DASH} ", " - "):
        before, separator, after = entry.partition(dash)
        if separator:
            return before, separator, after
    return entry, "", ""


def section_title(line: str) -> str:
    """Return the text of a heading without its markup, in lower case."""
    return line.strip(" \t*_#:").casefold()


def code_lines(lines: list[str]) -> list[bool]:
    """Return whether each line is code: between fences, below a `::`, or in a doctest."""
    flags = [False] * len(lines)
    if not any("::" in line or ">>>" in line or "```" in line for line in lines):
        return flags
    fences = [index for index, line in enumerate(lines) if line.lstrip().startswith("```")]
    for start, end in zip(fences[::2], fences[1::2], strict=False):
        flags[start : end + 1] = [True] * (end + 1 - start)
    literal: int | None = None  # the indent of the line that ended with "::"
    doctest = False
    for index, line in enumerate(lines):
        if not line:
            doctest = False
            continue
        indent = indent_of(line)
        doctest = doctest or line.startswith(">>>", indent)
        if literal is not None and indent <= literal:
            literal = None
        flags[index] = flags[index] or doctest or literal is not None
        if not flags[index] and line.endswith("::"):
            literal = indent
    return flags


def without_roles(text: str) -> str:
    """Return a text with roles such as ":class:`int`" replaced by their content."""
    return re.sub(_ROLE, r"\1\2", text) if len(text) <= HEAD_LIMIT else text


def unmask(text: str) -> str:
    """Remove `TYPE_MARK` from a text, and restore its colons."""
    return text.replace(TYPE_MARK, "").replace(COLON_MARK, ":")


def indent_of(line: str) -> int:
    """Return the number of characters that a line is indented by."""
    return len(line) - len(line.lstrip())


def count_while(lines: list[str], inside: Callable[[str], bool]) -> int:
    """Return the number of lines before the first one for which `inside` is false."""
    return next((index for index, line in enumerate(lines) if not inside(line)), len(lines))
