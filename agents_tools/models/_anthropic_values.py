"""Shared constants and value conversions of the Anthropic adapter."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

import anthropic

from agents_tools.text.characters import replace_escaped_surrogates, replace_surrogates

__all__ = ["NO_KEY", "PROVIDER", "an_object", "is_own_host", "json_object"]

PROVIDER = "anthropic"
"""The key in `provider_data` of an item for data that only this API understands."""

NO_KEY = "none"
"""The key for servers without keys: the client requires a key."""


def is_own_host(url: str) -> bool:
    """Return whether a URL belongs to Anthropic."""
    match = re.match(r"https?://(?:[^/@]*@)?([^/?#:]+)", url)
    return match is not None and f".{match[1].lower()}".endswith(".anthropic.com")


def an_object(value: object) -> dict[str, Any]:
    """Return a mapping, or the JSON of one of the client's objects, as a dictionary."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, anthropic.BaseModel):
        return value.to_dict(mode="json", warnings=False)
    return {}


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, in valid Unicode; `None` for any other text."""
    try:
        value: object = json.loads(replace_escaped_surrogates(replace_surrogates(text).encode()))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
