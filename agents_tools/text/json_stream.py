"""Read the members of one JSON object while its text arrives in pieces."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from agents_tools.text.json_limits import JsonFault, check_size

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonObjectReader", "JsonPart", "Member", "TextPiece"]


@dataclass(frozen=True, slots=True)
class Member:
    """A complete member of the object.

    Attributes:
        key: The key.
        text: The key and the value as JSON text.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The next part of a string; the first one is empty and comes before the first character.

    Attributes:
        key: The key of the member whose value is the string.
        text: The characters, decoded.
    """

    key: str
    text: str


JsonPart: TypeAlias = Member | TextPiece


class JsonObjectReader:
    """Reads a JSON object from pieces of its text, each character once.

    Only the top level is read. The values of the other members are returned as they are written,
    without a check of their syntax, because they are validated where they are used.

    Args:
        is_streamed: Whether the string of a member is returned in parts, by its key. A value of
            this member that is not a string is returned as a whole.
    """

    def __init__(self, is_streamed: Callable[[str], bool]) -> None:
        self._is_streamed = is_streamed
        self._size = 0
        self._state: Callable[[str, int], int] = self._before_object
        self._held = ""  # an escape sequence that is not complete yet
        self._raw: list[str] = []  # the text of the current key or value
        self._raw_key = ""
        self._key = ""
        self._keys = set[str]()
        self._depth = 0
        self._is_in_string = False
        self._parts: list[JsonPart] = []

    def push(self, piece: str) -> list[JsonPart]:
        """Add a piece of the text, and return the parts that it completes, in order.

        Raises:
            ValueError: The text is not a JSON object.
            JsonFault: It exceeds the limit of the size, or repeats a key.
        """
        self._size += len(piece)
        check_size(self._size)
        text, self._held = self._held + piece, ""
        parts: list[JsonPart] = []
        self._parts = parts
        at = 0
        while at < len(text):
            at = self._state(text, at)
        return parts

    # Each state reads from an index on, and returns the index at which the next one continues.

    def _before_object(self, text: str, at: int) -> int:
        return self._expect("{", self._before_first_key, text, at)

    def _before_first_key(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if text[at : at + 1] == "}":
            self._state = self._after_object
            return at + 1
        return self._before_key(text, at)

    def _before_key(self, text: str, at: int) -> int:
        self._raw = ['"']
        return self._expect('"', self._in_key, text, at)

    def _in_key(self, text: str, at: int) -> int:
        at = self._copy_string(text, at)
        if at < len(text) and text[at] == '"':
            self._raw_key = "".join(self._raw) + '"'
            self._key = cast("str", json.loads(self._raw_key))
            if self._key in self._keys:
                raise JsonFault("duplicate_key", f'the key "{self._key[:60]}" occurs twice')
            self._keys.add(self._key)
            self._state = self._before_colon
            at += 1
        return at

    def _before_colon(self, text: str, at: int) -> int:
        return self._expect(":", self._before_value, text, at)

    def _before_value(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at == len(text):
            return at
        if text[at] == '"' and self._is_streamed(self._key):
            self._parts.append(TextPiece(self._key, ""))
            self._state = self._in_text
            return at + 1
        self._raw, self._depth, self._is_in_string = [], 0, False
        self._state = self._in_value
        return at

    def _in_value(self, text: str, at: int) -> int:
        if self._is_in_string:
            at = self._copy_string(text, at)
            if at < len(text) and text[at] == '"':
                self._raw.append('"')
                self._is_in_string = False
                at += 1
            return at
        match = _STRUCTURE.search(text, at)
        if match is None:
            self._raw.append(text[at:])
            return len(text)
        end, found = match.start(), match[0]
        if self._depth == 0 and found in ",}":
            self._raw.append(text[at:end])
            value = "".join(self._raw).rstrip(_SPACE)
            self._parts.append(Member(self._key, f"{self._raw_key}:{value}"))
            self._end_member(found)
        else:
            self._raw.append(text[at : end + 1])
            self._is_in_string = found == '"'
            self._depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found, 0)
            if self._depth < 0:
                raise ValueError("a bracket is closed that is not open")
        return end + 1

    def _in_text(self, text: str, at: int) -> int:
        match = cast("re.Match[str]", _PLAIN.match(text, at))
        if match[0]:
            self._parts.append(TextPiece(self._key, match[0]))
        at = match.end()
        if at == len(text):
            return at
        if text[at] == '"':
            self._state = self._after_text
            return at + 1
        if text[at] != "\\":
            raise ValueError("a control character is not escaped")
        escape = text[at : at + _escape_length(text, at)]
        if len(escape) < _escape_length(text, at):
            self._held = escape
            return len(text)
        character: str = _SHORT_ESCAPES.get(escape) or json.loads(f'"{escape}"')
        if "\ud800" <= character[0] <= "\udfff":
            raise ValueError("half of a surrogate pair is escaped")
        self._parts.append(TextPiece(self._key, character))
        return at + len(escape)

    def _after_text(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at < len(text):
            self._end_member(text[at])
            at += 1
        return at

    def _after_object(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at < len(text):
            raise ValueError("text follows the object")
        return at

    def _end_member(self, found: str) -> None:
        if found not in ",}":
            raise ValueError("expected a comma or a closing brace")
        self._state = self._before_key if found == "," else self._after_object

    def _expect(self, character: str, state: Callable[[str, int], int], text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at == len(text):
            return at
        if text[at] != character:
            raise ValueError(f"expected {character}")
        self._state = state
        return at + 1

    def _copy_string(self, text: str, at: int) -> int:
        """Copy the inside of a string up to its end, without decoding it."""
        match = cast("re.Match[str]", _INSIDE_STRING.match(text, at))
        self._raw.append(match[0])
        at = match.end()
        if text[at:] == "\\":  # the character that it escapes is in the next piece
            self._held = "\\"
            at += 1
        return at


_SPACE = " \t\n\r"
_SPACES = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(r'["\[\]{},]')
_INSIDE_STRING = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_SHORT_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\", "\\t": "\t"}
_HIGH_SURROGATES = ("d8", "d9", "da", "db")


def _escape_length(text: str, at: int) -> int:
    """Return the length of an escape sequence: of a surrogate pair, both halves."""
    if text[at + 1 : at + 2] != "u":
        return 2
    return 12 if text[at + 2 : at + 4].lower() in _HIGH_SURROGATES else 6


def _skip_space(text: str, at: int) -> int:
    return cast("re.Match[str]", _SPACES.match(text, at)).end()
