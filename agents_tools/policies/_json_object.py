"""Splitting a JSON object into members without changing the text of their values."""

from __future__ import annotations

import json
import re
from typing import Any

from agents_tools.text.json_limits import check_bounds, check_keys

__all__ = ["NotAnObject", "members_of", "object_of"]


class NotAnObject(ValueError):  # noqa: N818 - named after the problem of the text
    """The text is not a JSON object that tools accept; the message states the reason."""


def members_of(args_json: Any) -> dict[str, str]:
    """Return the members of a JSON object as names and JSON text of the values.

    Empty text and `null` are read as an empty object, and a string that contains an object is read
    as that object, as in the arguments of tools.

    Args:
        args_json: The text.

    Raises:
        NotAnObject: The text is not a JSON object.
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
        check_keys(text, len(members))
        return members
    except (ValueError, IndexError, RecursionError) as error:
        raise NotAnObject(str(error)) from None


def object_of(members: dict[str, str]) -> str:
    """Return members as a JSON object."""
    return "{" + ",".join([f"{_quoted(name)}:{raw}" for name, raw in members.items()]) + "}"


_SPACE = " \t\r\n"
_BLANK = re.compile(r"[ \t\r\n]*")
_value_at = json.JSONDecoder().raw_decode
_quoted = json.encoder.encode_basestring_ascii


def _members(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    index = _skip(text, 1)
    if text[index] == "}":
        return _ended(members, text, index)
    while True:
        name, index = _value_at(text, index)
        if not isinstance(name, str):
            raise NotAnObject("expected a name in quotes")
        index = _skip(text, _after(text, _skip(text, index), ":"))
        start = index
        _, index = _value_at(text, index)
        members[name] = text[start:index]
        index = _skip(text, index)
        if text[index] == "}":
            return _ended(members, text, index)
        index = _skip(text, _after(text, index, ","))


def _ended(members: dict[str, str], text: str, index: int) -> dict[str, str]:
    if index + 1 != len(text):
        raise NotAnObject("expected nothing behind the object")
    return members


def _skip(text: str, index: int) -> int:
    found = _BLANK.match(text, index)
    return index if found is None else found.end()


def _after(text: str, index: int, mark: str) -> int:
    if text[index] != mark:
        raise NotAnObject(f"expected {mark!r}")
    return index + 1
