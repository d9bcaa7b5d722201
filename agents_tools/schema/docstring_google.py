"""Normalize docstrings in the Google style."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agents_tools.schema.docstring_sections import (
    ATTRIBUTES,
    BULLET,
    COLON_MARK,
    HEADINGS,
    IGNORED,
    PARAMETERS,
    PROSE,
    TYPE_MARK,
    SectionNormalizer,
    code_lines,
    count_while,
    indent_of,
    plain_names,
    section_title,
    split_dash,
    without_roles,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_BRACKET_OR_COLON = r"[(\[{:}\])]"
_WIDE_COLON = "\N{FULLWIDTH COLON}"


class GoogleNormalizer(SectionNormalizer):
    """Normalizes indented sections below a heading, and lists of parameters without a heading."""

    style = "google"
    hint = f":|--|{_WIDE_COLON}"

    def normalize(self, lines: list[str]) -> bool:
        """Fill `prose` and `sections`; return whether there is any section."""
        lines = [self._with_ascii_colon(line) for line in lines]
        code = code_lines(lines)
        index = 0
        has_sections = False
        while index < len(lines):
            kind, start, end = (None, 0, 0) if code[index] else self._section(lines, index)
            if kind is None:
                self.prose.append(lines[index])
                index += 1
                continue
            has_sections = True
            if kind != IGNORED:
                self.sections.append("Attributes:" if kind == ATTRIBUTES else "Args:")
                self.sections += [*self._entries(lines[start:end]), ""]
            self.prose.append("")
            index = end
        return has_sections

    def _with_ascii_colon(self, line: str) -> str:
        """Return a line with `:` for a Chinese or Japanese colon after a heading or a name."""
        head, colon, text = line.partition(_WIDE_COLON)
        title = re.sub(BULLET, "", head.strip())
        names = plain_names(_before_type(title))
        is_entry = section_title(title) in HEADINGS or not self.names.isdisjoint(names)
        return f"{head}: {text}".rstrip() if colon and is_entry else line

    def _section(self, lines: list[str], index: int) -> tuple[str | None, int, int]:
        """Return the kind of the section that starts on a line, and the start and end of its body.

        The kind is `None` if no section starts there.
        """
        line = lines[index]
        if ":" not in line and " -" not in line:
            return None, 0, 0
        title, colon, rest = line.strip().strip("*_#").lstrip(":").partition(":")
        kind = HEADINGS.get(section_title(title)) if colon else None
        start = index + 1
        while not rest and start < len(lines) and not lines[start]:
            start += 1
        if kind in {None, PROSE} or start == len(lines):
            if self._starts_list(lines, index):
                self._drop_heading()
                return PARAMETERS, index, self._end_of_list(lines, index)
            return None, 0, 0
        indent = indent_of(line)
        if indent_of(lines[start]) > indent:
            inside = count_while(lines[start:], lambda line: not line or indent_of(line) > indent)
            return kind, start, start + inside
        if rest.strip("*_ "):
            return None, 0, 0
        if kind == IGNORED:  # the paragraph right below
            inside = count_while(lines[start:], bool) if start == index + 1 else 0
            return (kind, start, start + inside) if inside else (None, 0, 0)
        if self._is_entry(lines, start):
            return kind, start, self._end_of_list(lines, start)
        if index == 0 and _head(re.sub(BULLET, "", lines[start])):
            # A docstring that starts with its heading was dedented to it, entries included.
            return kind, start, len(lines)
        return None, 0, 0

    def _starts_list(self, lines: list[str], index: int) -> bool:
        """Return whether a list of parameters without a known heading starts on a line."""
        above = lines[index - 1] if index else "the summary"
        line = lines[index].lstrip()
        is_separate = (
            not above
            or above.endswith((":", _WIDE_COLON))
            or re.match(BULLET, line)
            or " -- " in line
        )
        return bool(is_separate) and self._is_entry(lines, index)

    def _drop_heading(self) -> None:
        """Remove the line above a list if it only introduces the list."""
        while self.prose and not self.prose[-1]:
            self.prose.pop()
        if (
            len(self.prose) > 1
            and not self.prose[-2]
            and self.prose[-1].endswith((":", _WIDE_COLON))
        ):
            self.prose.pop()

    def _end_of_list(self, lines: list[str], start: int) -> int:
        """Return the index of the line after a list that is not indented."""
        indent = indent_of(lines[start])
        index = start + 1
        while index < len(lines):
            line, above = lines[index], lines[index - 1]
            if line and indent_of(line) <= indent and not self._is_entry(lines, index):
                is_continuation = above and indent_of(line) == indent and line.lstrip()[0].islower()
                if not is_continuation or _head(line.strip()):
                    break
            index += 1
        return index

    def _is_entry(self, lines: list[str], index: int) -> bool:
        """Return whether a line is an entry with a text about an existing parameter."""
        line = lines[index]
        entry = re.sub(BULLET, "", line.strip())
        head = _head(entry)
        if head is None or self.names.isdisjoint(plain_names(_before_type(head))):
            return False
        following = lines[index + 1] if index + 1 < len(lines) else ""
        return len(entry) > len(head) + 1 or indent_of(following) > indent_of(line)

    @staticmethod
    def _entries(body: list[str]) -> Iterator[str]:
        indent = indent_of(body[0])
        entry_indent = 0  # the indent of the lines that belong to the entry
        for index, line in enumerate(body):
            level = indent_of(line)
            if not line:
                yield ""
            elif level > indent:
                entry_indent = min(entry_indent or level, level)
                yield " " * (8 + level - entry_indent) + line.strip()
            else:
                entry = re.sub(BULLET, "", line.strip())
                head = _head(entry)
                entry_indent = 0
                if head is not None:
                    yield "    " + _normalize_entry(entry, head)
                else:  # a line of text that is not indented
                    yield ("        " if index else "    ") + entry


def _normalize_entry(entry: str, head: str) -> str:
    """Return an entry in the form `name (type): text`."""
    text = entry[len(head) :].lstrip(" :-\N{EN DASH}\N{EM DASH}")
    head = without_roles(head.strip())
    if "(" not in head and "{" in head:  # "x {int}: text"
        head = head.replace("{", "(", 1).removesuffix("}") + ")"
    return f"{head.replace('(', '(' + TYPE_MARK, 1).replace(':', COLON_MARK)}: {text}"


def _head(entry: str) -> str | None:
    """Return the part before the text of an entry: `x`, `*args`, `x (int)`, `x, y`."""
    head, dash, _ = split_dash(entry)
    if not dash or not plain_names(_before_type(head)):
        head = entry[: _colon(entry)]
        if len(head) == len(entry) and not head.endswith(")"):
            return None
    return head if plain_names(_before_type(head)) else None


def _colon(entry: str) -> int:
    """Return the index of the first colon outside of brackets, or the length of the entry."""
    depth = 0
    for match in re.finditer(_BRACKET_OR_COLON, entry):
        char = match[0]
        if char == ":" and depth <= 0:
            return match.start()
        depth += (char in "([{") - (char in ")]}")
    return len(entry)


def _before_type(head: str) -> str:
    return head.partition("(")[0].partition("{")[0]
