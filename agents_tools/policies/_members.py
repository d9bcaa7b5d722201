"""Takes the JSON object of a call apart into its members, whose text stays as it was written."""

from __future__ import annotations

import json
import re
from typing import Any

from agents_tools._json import check_bounds, check_keys, may_hold_more_keys

__all__ = ["NotAnObject", "members_of", "object_of"]


class NotAnObject(ValueError):  # noqa: N818 - says what the text is
    """The text is no JSON object, or one that no tool accepts; the message says why."""


def members_of(args_json: Any) -> dict[str, str]:
    """Give the members of a JSON object: names, and values as text.

    What tools read as an object is one: empty text, `null`, and an object in a string.

    Args:
        args_json: The text.

    Raises:
        NotAnObject: It is none.
    """
    if isinstance(args_json, (bytes, bytearray)):
        args_json = bytes(args_json).decode(errors="surrogateescape")
    text = args_json.strip(_SPACE) if isinstance(args_json, str) else ""
    if text in {"", "null"}:
        return {}
    try:
        check_bounds(text)
        if text.startswith('"'):
            return members_of(json.loads(text))
        if not text.startswith("{"):
            raise NotAnObject("expected one JSON object")
        members = _members(text)
        if may_hold_more_keys(text, len(members)):
            check_keys(text)
        return members
    except (ValueError, IndexError, RecursionError) as error:
        raise NotAnObject(str(error)) from None


def object_of(members: dict[str, str]) -> str:
    """Write members as a JSON object."""
    return "{" + ",".join([f"{_quoted(name)}:{raw}" for name, raw in members.items()]) + "}"


_SPACE = " \t\r\n"
_BLANK = re.compile(r"[ \t\r\n]*")
_value_at = json.JSONDecoder().raw_decode
_quoted = json.encoder.encode_basestring_ascii


def _members(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    place = _skip(text, 1)
    if text[place] == "}":
        return _ended(members, text, place)
    while True:
        name, place = _value_at(text, place)
        if not isinstance(name, str):
            raise NotAnObject("expected a name in quotes")
        place = _skip(text, _after(text, _skip(text, place), ":"))
        start = place
        _, place = _value_at(text, place)
        members[name] = text[start:place]
        place = _skip(text, place)
        if text[place] == "}":
            return _ended(members, text, place)
        place = _skip(text, _after(text, place, ","))


def _ended(members: dict[str, str], text: str, place: int) -> dict[str, str]:
    if place + 1 != len(text):
        raise NotAnObject("expected nothing behind the object")
    return members


def _skip(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return place if found is None else found.end()


def _after(text: str, place: int, mark: str) -> int:
    if text[place] != mark:
        raise NotAnObject(f"expected {mark!r}")
    return place + 1
