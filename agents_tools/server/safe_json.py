"""Serialize any value of a model or a tool as JSON that every client can parse."""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

__all__ = ["written"]

_MAX_DEPTH = 100
_SURROGATES = re.compile("[\ud800-\udfff]")


def written(value: Any) -> bytes:
    """Return a value as JSON.

    Numbers that are not finite become null, lone surrogates become U+FFFD, and values that are
    nested too deep become an ellipsis. Values without a JSON form are replaced by their type.

    Args:
        value: The value.
    """
    from pydantic_core import to_json

    try:
        return to_json(value, inf_nan_mode="null")
    except (ValueError, RecursionError):  # pydantic's error is a ValueError
        return json.dumps(_plain(value, 0), separators=(",", ":"), allow_nan=False).encode()


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_plain(str(key), depth): _plain(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in cast("list[Any]", value)]
    return f"({type(value).__name__}, without a JSON form)"
