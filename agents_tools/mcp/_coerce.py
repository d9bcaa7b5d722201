"""Coerce JSON values from the network to the expected type, or to an empty value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["an_object", "objects", "text_or_none"]


def an_object(value: object) -> dict[str, Any]:
    """Return a value as a JSON object; an empty one if it is not an object."""
    # Parsed JSON has no other mappings, and the check for those costs as much as the rest.
    if isinstance(value, (dict, Mapping)):
        return dict(cast("Mapping[str, Any]", value))
    return {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return a list of JSON objects; other items become empty objects."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [an_object(item) for item in items]


def text_or_none(value: object) -> str | None:
    """Return a string; `None` for any other value."""
    return value if isinstance(value, str) else None
