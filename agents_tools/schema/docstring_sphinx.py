"""Normalize docstrings in the Sphinx style."""

from __future__ import annotations

import re

from agents_tools.schema.docstring_sections import (
    IGNORED,
    TYPE_MARK,
    SectionNormalizer,
    code_lines,
    indent_of,
    plain_names,
    without_roles,
)

_ROLE_TEXT = r"[\w:]*`"
_FIELD = r"[ \t]*[:@](?P<kind>[a-z]+)(?P<args>(?:[^:]|:[\w:]*:`[^`]*`)*):(?P<text>.*)"
_OPEN_FIELD = r"[ \t]*[:@](?P<kind>[a-z]+)[ \t]+(?P<name>\S+)[ \t]+(?P<text>[^:]*)$"
_FIELDS: dict[str, str] = {
    name: kind
    for kind, names in {
        "param": "param parameter arg argument key keyword kwarg kwparam",
        "type": "type paramtype kwtype",
        "var": "var ivar cvar",
        IGNORED: "return returns rtype raise raises except exception yield yields ytype vartype "
        "meta see since version author todo bug change",
    }.items()
    for name in names.split()
}


class SphinxNormalizer(SectionNormalizer):
    """Normalizes fields: `:param x: text`, and epydoc's `@param x: text`."""

    style = "sphinx"
    hint = r"(?m)^[ \t]*[:@][a-z]"

    def normalize(self, lines: list[str]) -> bool:
        """Fill `prose` and `sections`; return whether there is any section."""
        code = code_lines(lines)
        inside: int | None = None  # the indent of the field that is open
        has_sections = keeps_lines = False
        for index, line in enumerate(lines):
            indent = indent_of(line)
            if not code[index] and (kind := self._field(line)):
                inside, has_sections, keeps_lines = indent, True, kind != IGNORED
            elif inside is not None and (
                not line
                or indent > inside
                or (indent == inside and lines[index - 1] and not _is_field(line))
            ):
                if keeps_lines:
                    rest = line[inside:]
                    self.sections.append(TYPE_MARK + rest if rest.startswith(":") else rest)
            else:
                if inside is not None:
                    self.prose.append("")
                inside = None
                self.prose.append(line)
        return has_sections

    def _field(self, line: str) -> str | None:
        """Add a field if the line starts one; return its kind, or `None`."""
        if line.lstrip()[:1] not in {":", "@"}:
            return None
        match = re.match(_FIELD, line)
        if match is None:
            return self._open_field(line)
        kind = _FIELDS.get(match["kind"]) if _is_field(line) else None
        args = without_roles(match["args"]).strip()
        if kind in {None, IGNORED}:
            return kind
        names, type_text = self._names_and_type(args) if args else ([], "")
        text = match["text"].strip()
        if not names:  # ":param x what it is: and more"
            first, _, rest = args.partition(" ")
            names, text = plain_names(first), f"{rest}: {text}"
        for name in names:
            if kind == "type":
                self.sections.append(f":type {name}: {TYPE_MARK}{text}")
                continue
            if type_text:
                self.sections.append(f":type {name}: {TYPE_MARK}{type_text}")
            self.sections.append(f":{kind} {name}: {text}")
        return kind if names else None

    def _names_and_type(self, args: str) -> tuple[list[str], str]:
        """Return the parameter names and the type in the part between the colons of a field."""
        args = args.partition("=")[0]  # ":param x=None: text"
        if names := plain_names(args):
            return names, ""
        if args.endswith(")"):  # ":param x (int): text"
            head, _, type_text = args[:-1].partition("(")
            return plain_names(head), type_text
        first, *between = args.split()
        if not between:
            return [], ""
        last = between.pop()
        if last.lstrip("*") not in self.names and first.lstrip("*") in self.names:
            if between:
                return [], ""
            first, last = last, first  # ":param x int: text"
        return plain_names(last), " ".join([first, *between])

    def _open_field(self, line: str) -> str | None:
        """Add a field without its second colon, ":param x text", if the parameter exists."""
        match = re.match(_OPEN_FIELD, line)
        if match is None or _FIELDS.get(match["kind"]) != "param":
            return None
        names = plain_names(match["name"])
        if not names or not self.names.issuperset(names):
            return None
        self.sections.extend(f":param {name}: {match['text']}" for name in names)
        return "param"


def _is_field(line: str) -> bool:
    """Return whether a line is a field, and not text or a role such as ":keyword:`None`"."""
    match = re.match(_FIELD, line)
    return match is not None and bool(match["args"] or not re.match(_ROLE_TEXT, match["text"]))
