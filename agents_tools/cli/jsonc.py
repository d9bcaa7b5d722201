"""Change single members of a JSON text, and keep its comments, order and layout."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["remove_member", "set_member"]

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,:\[\]{}"/]+')


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemberPlace:
    """The places of a member in the text: its key and its value."""

    name: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObjectPlace:
    """The places of an object in the text: its braces and its members."""

    start: int
    end: int
    members: tuple[_MemberPlace, ...]

    def find(self, name: str) -> _MemberPlace | None:
        """Return the member with a name; the last one counts, as for a parser."""
        return next((one for one in reversed(self.members) if one.name == name), None)


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return a text in which the member at a path has a value; missing objects are added.

    Args:
        text: JSON with comments and trailing commas; an empty text is an empty object.
        path: The names of the members from the root on.
        value: The JSON value.

    Raises:
        ValueError: The text cannot be read, or a member on the path is not an object.
    """
    if not text.strip():
        text = "{}\n"
    unit = _indent_unit(text)
    found = _object_at(text, _skip(text, 0))
    for depth, name in enumerate(path):
        member = found.find(name)
        is_last = depth == len(path) - 1
        if member is None or is_last:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            shown = _formatted(value, unit, depth + 1)
            if member is not None:
                return text[: member.value] + shown + text[member.end :]
            added = f"{json.dumps(name, ensure_ascii=False)}: {shown}"
            return _inserted(text, found, added, unit, depth)
        found = _object_at(text, member.value)
    return text


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return a text without the member at a path; the same text if there is none.

    Args:
        text: JSON with comments and trailing commas.
        path: The names of the members from the root on.

    Raises:
        ValueError: The text cannot be read, or a member on the path is not an object.
    """
    if not text.strip():
        return text
    found = _object_at(text, _skip(text, 0))
    for name in path[:-1]:
        member = found.find(name)
        if member is None:
            return text
        found = _object_at(text, member.value)
    member = found.find(path[-1])
    return text if member is None else _removed(text, found, member)


def _formatted(value: Any, unit: str, depth: int) -> str:
    """Return a value as text, its lines indented for their depth in the document."""
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"\n{unit * depth}".join(lines)


def _inserted(text: str, found: _ObjectPlace, added: str, unit: str, depth: int) -> str:
    """Add a member at the end of an object."""
    inner, outer = f"\n{unit * (depth + 1)}", f"\n{unit * depth}"
    content = text[: found.end].rstrip()
    if not found.members:
        return f"{content}{inner}{added}{outer}{text[found.end :]}"
    last = found.members[-1].end
    has_comma = text[_skip(text, last)] == ","
    comma = "" if has_comma else ","
    return f"{text[:last]}{comma}{content[last:]}{inner}{added}{outer}{text[found.end :]}"


def _removed(text: str, found: _ObjectPlace, member: _MemberPlace) -> str:
    """Remove a member, its comma, and its lines."""
    position = found.members.index(member)
    after = _skip(text, member.end)
    end = after + 1 if text[after] == "," else member.end
    line_end = re.compile(r"[ \t]*\r?\n").match(text, end)
    start = len(text[: member.start].rstrip(" \t"))
    if line_end is not None and text[start - 1 : start] == "\n":
        end = line_end.end()
    else:
        start = member.start
    before = text[:start]
    if text[after] != "," and position > 0:  # the member before it becomes the last one
        comma = _skip(text, found.members[position - 1].end)
        before = text[:comma] + text[comma + 1 : start]
    return before + text[end:]


def _indent_unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found is not None else "  "


# --- places


def _skip(text: str, at: int) -> int:
    """Return the next place that is neither blank nor a comment."""
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _object_at(text: str, at: int) -> _ObjectPlace:
    if text[at : at + 1] != "{":
        raise ValueError(f"expected an object at character {at}")
    members: list[_MemberPlace] = []
    place = _skip(text, at + 1)
    while text[place : place + 1] != "}":
        key = _SCALAR.match(text, place)
        colon = -1 if key is None else _skip(text, key.end())
        if key is None or text[colon : colon + 1] != ":":
            raise ValueError(f"expected a member at character {place}")
        value = _skip(text, colon + 1)
        end = _end_of(text, value)
        members.append(_MemberPlace(name=json.loads(key[0]), start=place, value=value, end=end))
        place = _skip(text, end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
    return _ObjectPlace(start=at, end=place, members=tuple(members))


def _end_of(text: str, at: int) -> int:
    """Return the end of the value that starts at a place."""
    depth = 0
    while True:
        at = _skip(text, at)
        char = text[at : at + 1]
        if char in {"{", "["}:
            depth += 1
            at += 1
        elif char in {"}", "]"}:
            depth -= 1
            at += 1
        elif depth and char in {",", ":"}:
            at += 1
        elif (found := _SCALAR.match(text, at)) is not None:
            at = found.end()
        else:
            raise ValueError(f"expected a value at character {at}")
        if depth == 0:
            return at
