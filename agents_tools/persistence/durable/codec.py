"""The JSON text that a durable store writes: without registered secrets, which reading puts back.

In the place of a secret stands a mark that tells which of the registered ones it was, by 24 bits of
a digest: too few to guess it from, enough to tell it from others. Where it is not registered when
the mark is read, `***` is read. What only looks like a mark, because somebody has seen one, is read
as it was written.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserTypeError
from agents_tools.persistence.durable.store import DurableStoreError
from agents_tools.text.secrets import registered_forms

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read", "written"]

_MARK = "\ue000agents-tools secret {}\ue001"
_BEGIN = "\ue000"
_NO_MARK = "\ue000\ue001"
"""What stands for a character that a mark begins with."""
_MARKS = re.compile("\ue000(?:agents-tools secret ([0-9a-f]{6}))?\ue001")
_UNKNOWN = "***"


def written(key: str, value: Any) -> str:
    """Write a JSON value.

    Raises:
        UserTypeError: It is none.
    """
    try:
        # ASCII alone: a model may write half of a surrogate pair, which databases do not take.
        return json.dumps(_hidden(value), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserTypeError(f"Step {key!r} gave what has no JSON form: {error}.") from error


def read(text: str, *, store: str) -> Any:
    """Read what `written` gave, with the secrets that are registered now.

    Raises:
        DurableStoreError: It is something else.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DurableStoreError(
            f"What {store} has of a run is damaged ({error}). Go on with a backup, or begin a new "
            "run.",
            store=store,
        ) from error
    return _shown(value) if "\\ue000" in text else value


def _hidden(value: Any) -> Any:
    """Copy a JSON value with a mark in the place of each registered secret, in keys as well."""
    texts = sorted({form[0] for form in registered_forms()}, key=len, reverse=True)

    def hide(text: str) -> str:
        text = text.replace(_BEGIN, _NO_MARK)
        for secret in texts:
            if secret in text:
                text = text.replace(secret, _MARK.format(_print_of(secret)))
        return text

    return _mapped(value, hide)


def _shown(value: Any) -> Any:
    """Undo `_hidden`, as far as the secrets are registered."""
    prints: dict[str, set[str]] = {}
    for text, _, _ in registered_forms():
        prints.setdefault(_print_of(text), set()).add(text)

    def secret_of(match: re.Match[str]) -> str:
        if match[1] is None:
            return _BEGIN
        found = prints.get(match[1], set())
        return next(iter(found)) if len(found) == 1 else _UNKNOWN

    def show(text: str) -> str:
        return _MARKS.sub(secret_of, text) if _BEGIN in text else text

    return _mapped(value, show)


def _print_of(text: str) -> str:
    return sha256(b"agents-tools durable\0" + text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {change(key): _mapped(member, change) for key, member in members}
    if isinstance(value, list | tuple):
        return [_mapped(item, change) for item in cast("list[Any]", value)]
    return value
