"""Describe the structure of JSON values, and read parts of them by path."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from agents_tools.errors import UserValueError

__all__ = ["json_part", "json_structure"]

_MAX_DEPTH: Final = 6
_MAX_KEYS: Final = 30
_SAMPLED: Final = 1_000
"""The number of items of a list whose keys and types are compared."""
_STEP: Final = re.compile(
    r"\.?(?P<key>[^.\[\]]+)|\[(?P<start>(?:-?\d{1,9})?)(?P<slice>:(?P<end>(?:-?\d{1,9})?))?\]"
    r'|\["(?P<quoted>[^"]*)"\]'
)


def json_structure(value: Any, depth: int = _MAX_DEPTH) -> str:
    """Return the structure of a JSON value, such as `{orders: 1,000 x {id: int, note?: str}}`.

    A key with `?` is not in every object of a list.

    Args:
        value: The value.
        depth: The number of levels that are shown.
    """
    if isinstance(value, dict):
        return _structure_of_objects([cast("dict[str, Any]", value)], depth)
    if not isinstance(value, list):
        return _scalar(value)
    items = cast("list[Any]", value)
    if not items or depth <= 0:
        return f"list of {len(items):,}"
    return f"{len(items):,} x {_structure_of_all(items[:_SAMPLED], depth - 1)}"


def _scalar(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _structure_of_all(values: list[Any], depth: int) -> str:
    """Return the structures of several values, the same ones once."""
    objects = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
    lists = [cast("list[Any]", value) for value in values if isinstance(value, list)]
    parts = sorted({_scalar(value) for value in values if not isinstance(value, (dict, list))})
    if lists:
        joined = [item for items in lists for item in items][:_SAMPLED]
        inner = _structure_of_all(joined, depth - 1) if joined and depth > 0 else ""
        parts.append(f"list[{inner}]" if inner else "list")
    if objects:
        parts.append(_structure_of_objects(objects, depth))
    return " | ".join(parts)


def _structure_of_objects(objects: list[dict[str, Any]], depth: int) -> str:
    keys = dict.fromkeys(key for one in objects for key in one)
    if depth <= 0 or not keys:
        return "{}" if not keys else "{...}"
    shown: list[str] = []
    for key in list(keys)[:_MAX_KEYS]:
        values = [one[key] for one in objects if key in one]
        inner = (
            json_structure(values[0], depth - 1)
            if len(objects) == 1
            else _structure_of_all(values, depth - 1)
        )
        shown.append(f"{key}{'' if len(values) == len(objects) else '?'}: {inner}")
    if len(keys) > _MAX_KEYS:
        shown.append(f"... {len(keys) - _MAX_KEYS:,} more keys")
    return f"{{{', '.join(shown)}}}"


def json_part(value: Any, path: str) -> Any:
    """Return a part of a JSON value.

    Args:
        value: The value.
        path: Keys, indexes and slices, such as `orders[0].id`, `orders[10:20]` or, for one field of
            each item, `orders[:].id`. A key with other characters is written `["the key"]`.

    Raises:
        UserValueError: The path is not valid, or there is no such part.
    """
    steps: list[re.Match[str]] = []
    end = 0
    while end < len(path):
        step = _STEP.match(path, end)
        if step is None or (step["start"] == "" and step["slice"] is None and step["key"] is None):
            raise UserValueError(
                f"The path {path!r:.80} is not valid at {path[end:]!r:.40}: expected keys, indexes "
                "and slices such as 'orders[0].id', 'orders[10:20]' or 'orders[:].id'."
            )
        steps.append(step)
        end = step.end()
    return _part(value, steps, path)


def _part(value: Any, steps: list[re.Match[str]], path: str) -> Any:
    for number, step in enumerate(steps):
        if step["slice"] is not None and isinstance(value, list):
            start, end = (int(step[name]) if step[name] else None for name in ("start", "end"))
            items = cast("list[Any]", value)[start:end]
            rest = steps[number + 1 :]
            return [_part(item, rest, path) for item in items] if rest else items
        key = step["quoted"] if step["quoted"] is not None else step["key"]
        try:
            value = value[int(step["start"])] if key is None else _member(value, key)
        except (LookupError, TypeError, ValueError):
            so_far = path[: step.start()] or "the result"
            raise UserValueError(
                f"The path {path!r:.80} leads nowhere at {step[0]!r:.40}: {so_far:.60} is "
                f"{json_structure(value, 1):.300}."
            ) from None
    return value


def _member(value: Any, key: str) -> Any:
    if not isinstance(value, dict):
        raise KeyError(key)
    return cast("dict[str, Any]", value)[key]
