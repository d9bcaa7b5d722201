"""Writes JSON for clients: whatever a model or a tool has put into it, every reader takes it."""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

__all__ = ["written"]

_DEEPEST = 100
_SURROGATES = re.compile("[\ud800-\udfff]")


def written(value: Any) -> bytes:
    """Give a value as JSON.

    JSON has no word for numbers that are not finite: they become null. Half of a surrogate pair
    becomes U+FFFD, and what is nested too deep an ellipsis. What has no JSON form at all is named
    by its type.

    Args:
        value: The value.
    """
    from pydantic_core import to_json

    try:
        return to_json(value, inf_nan_mode="null")
    except (ValueError, RecursionError):  # what pydantic raises is a ValueError
        return json.dumps(_plain(value, 0), separators=(",", ":"), allow_nan=False).encode()


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_plain(str(key), depth): _plain(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in cast("list[Any]", value)]
    return f"({type(value).__name__}, without a JSON form)"
