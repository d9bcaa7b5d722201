"""What the parts of the adapter for Anthropic share: names, and reading what servers send."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

import anthropic

__all__ = ["NO_KEY", "PROVIDER", "an_object", "is_own_host", "json_object"]

PROVIDER = "anthropic"
"""Where an item's `provider_data` holds what only this API understands."""

NO_KEY = "none"
"""What servers without keys are given: the client insists on one."""


def is_own_host(url: str) -> bool:
    found = re.match(r"https?://(?:[^/@]*@)?([^/?#:]+)", url)
    return found is not None and f".{found[1].lower()}".endswith(".anthropic.com")


def an_object(value: object) -> dict[str, Any]:
    """Give a mapping, or the JSON of one of the client's objects, as a dictionary."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, anthropic.BaseModel):
        return value.to_dict(mode="json", warnings=False)
    return {}


def json_object(words: str) -> dict[str, Any] | None:
    try:
        value: object = json.loads(words)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
