"""What came over the wire, taken for what it should be or for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["an_object", "objects", "text_or_none"]


def an_object(value: object) -> dict[str, Any]:
    """Give a JSON object; an empty one if it is anything else."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Give a list of JSON objects; what is none in it becomes an empty one."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [an_object(item) for item in items]


def text_or_none(value: object) -> str | None:
    """Give a text; `None` if it is anything else."""
    return value if isinstance(value, str) else None
