"""Shorten JSON texts at the boundaries of their items."""

from __future__ import annotations

import json
from typing import Any, Final, cast

__all__ = ["shorten_json"]

_CHARACTERS: Final = 40
"""The number of characters that a string can have for each item that a list can have."""
_SHORT: Final = 160
"""The number of further characters that each string can have."""
_ATTEMPTS: Final = 4
"""How often a larger number of items is tried after one that fits."""


def shorten_json(text: str, room: int) -> str | None:
    """Return a JSON text that fits, with notes on the items, keys and characters left out.

    Lists, objects and long strings keep their beginning and their end.

    Args:
        text: The text.
        room: The maximum number of characters.

    Returns:
        A shorter JSON text; `None` if the text is not a list or an object, or has too many levels
        to fit.
    """
    if text[:1] not in {"[", "{"}:
        return None
    from pydantic_core import from_json

    try:
        value: Any = from_json(text)
    except ValueError:
        return None
    shortest, fits, too_many = None, 0, max(16, _longest(value) * room // len(text) * 2)
    while shortest is None and too_many > 1:
        fits = too_many // 2
        shortest = _text_with(value, fits, room)
        too_many = too_many if shortest is not None else fits
    for _ in range(_ATTEMPTS):
        count = (fits + too_many) // 2
        longer = _text_with(value, count, room) if fits < count < too_many else None
        shortest, fits, too_many = (
            (shortest, fits, count) if longer is None else (longer, count, too_many)
        )
    return shortest


def _longest(value: Any) -> int:
    """Return the number of items that the longest list, object or string needs."""
    longest, left = 1, [value]
    while left:
        one: Any = left.pop()
        if isinstance(one, str):
            longest = max(longest, len(one) // _CHARACTERS)
            continue
        children: list[Any] = list(cast("Any", one).values() if isinstance(one, dict) else one)
        longest = max(longest, len(children))
        left += [child for child in children if isinstance(child, (list, dict, str))]
    return longest


def _text_with(value: Any, count: int, room: int) -> str | None:
    shorter = _shorten_value(value, count)
    try:
        text = json.dumps(shorter, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number that is too large for a float
        return None
    return text if len(text) <= room else None


def _shorten_value(value: Any, count: int) -> Any:
    """Return a value whose lists and objects have at most so many items, besides the notes."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) <= count:
            return [_shorten_value(item, count) for item in items]
        start, end = _ends(items, count)
        left_out = f"… {len(items) - count:,} of {len(items):,} items omitted …"
        return [
            *(_shorten_value(item, count) for item in start),
            left_out,
            *(_shorten_value(item, count) for item in end),
        ]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        keys = list(fields)
        if len(keys) <= count:
            return {key: _shorten_value(field, count) for key, field in fields.items()}
        start, end = _ends(keys, count)
        note = {"…": f"{len(keys) - count:,} of {len(keys):,} keys omitted"}
        return {
            **{key: _shorten_value(fields[key], count) for key in start},
            **note,
            **{key: _shorten_value(fields[key], count) for key in end},
        }
    length = _SHORT + count * _CHARACTERS
    if isinstance(value, str) and len(value) > length:
        start, end = _ends(value, length)
        return f"{start}… {len(value) - length:,} of {len(value):,} characters omitted …{end}"
    return value


def _ends(items: Any, count: int) -> tuple[Any, Any]:
    """Return the first two thirds and the last third of so many items."""
    tail = count // 3
    return items[: count - tail], items[len(items) - tail :]
