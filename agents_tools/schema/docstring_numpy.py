"""Normalize docstrings in the numpy style."""

from __future__ import annotations

import re

from agents_tools.schema.docstring_sections import (
    ATTRIBUTES,
    BULLET,
    HEAD_LIMIT,
    HEADINGS,
    IGNORED,
    PROSE,
    TYPE_MARK,
    SectionNormalizer,
    code_lines,
    count_while,
    indent_of,
    plain_names,
    section_title,
    split_dash,
)


class NumpyNormalizer(SectionNormalizer):
    """Normalizes sections below an underlined heading."""

    style = "numpy"
    hint = r"(?m)^[ \t]*[-=~^]{3}"

    def normalize(self, lines: list[str]) -> bool:
        """Fill `prose` and `sections`; return whether there is any section."""
        code = code_lines(lines)
        headings = [
            index
            for index in range(len(lines) - 1)
            if not code[index] and _is_underlined(lines, index)
        ]
        known = [index for index in headings if HEADINGS.get(section_title(lines[index]))]
        if not known:
            return False
        first = known[0]
        self.prose.extend(lines[:first])
        margin = indent_of(lines[first])  # a title further to the right stands inside an entry
        starts = [
            index for index in headings if index >= first and indent_of(lines[index]) <= margin
        ]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            self._section(lines, start, end)
        return True

    def _section(self, lines: list[str], start: int, end: int) -> None:
        kind = HEADINGS.get(section_title(lines[start]))
        indent = indent_of(lines[start])
        body = lines[start + 2 : end]
        inside = count_while(body, lambda line: not line or indent_of(line) >= indent)
        body, rest = body[:inside], body[inside:]
        if kind is None:
            self.prose += [*lines[start : start + 2], *body]
        elif kind == PROSE:
            self.prose += [section_title(lines[start]).capitalize() + ":"]
            self.prose += [line and "    " + line[indent:] for line in body]
        elif kind != IGNORED:
            title = "Attributes" if kind == ATTRIBUTES else "Parameters"
            self.sections += [title, "-" * len(title)]
            self.prose += ["", *self._entries(body)]
            self.sections.append("")
        self.prose += ["", *rest]

    def _entries(self, body: list[str]) -> list[str]:
        """Add the entries of a section; return the lines of prose after them."""
        indent = indent_of(next((line for line in body if line), ""))
        for index, line in enumerate(body):
            following = body[index + 1] if index + 1 < len(body) else ""
            if not line:
                self.sections.append("")
            elif indent_of(line) > indent:
                text = line[indent:].removeprefix("    ")
                self.sections.append("    " + (text if text.strip(" -") else TYPE_MARK + text))
            elif indent_of(line) < indent or (
                index and not body[index - 1] and not self._is_entry(line, following)
            ):
                return body[index:]
            else:
                self._entry(line.strip())
        return []

    @staticmethod
    def _is_entry(line: str, following: str) -> bool:
        head, colon, rest = line.strip().partition(":")
        if colon and not rest and HEADINGS.get(section_title(head)):
            return False  # a section of another style
        indented = indent_of(following) > indent_of(line) and not line.lstrip().startswith(".. ")
        return " : " in line or indented or bool(plain_names(head))

    def _entry(self, line: str) -> None:
        head, colon, type_text = re.sub(BULLET, "", line).partition(":")
        text = ""
        if head.rstrip().endswith(")"):  # "x (int): text"
            text = type_text
            head, _, type_text = head.rstrip()[:-1].partition("(")
        else:
            before, dash, after = split_dash(head)
            if dash and (not colon or plain_names(before)):  # "x -- text", also with a colon in it
                head, text, type_text = before, after + colon + type_text, ""
        names = [self._ascii(name) for name in plain_names(head.partition("=")[0])]
        self.sections.append(
            f"{', '.join(names) or head.strip()[:HEAD_LIMIT]} : {TYPE_MARK}{type_text.strip()}"
        )
        if text:
            self.sections.append("    " + text.strip())

    def _ascii(self, name: str) -> str:
        """Return a name in ASCII, because griffe reads no other names in this style."""
        if name.isascii():
            return name
        plain = "".join(char if char.isascii() else f"_{ord(char):x}_" for char in name)
        self.original_names[plain] = name
        return plain


def _is_underlined(lines: list[str], index: int) -> bool:
    title, line = lines[index].strip(), lines[index + 1].strip()
    if len(line) < 3 or line[0] not in "-=~^" or line.strip(line[0]):  # noqa: PLR2004 - a rule
        return False
    return title.strip("-=~^+| ") != ""
