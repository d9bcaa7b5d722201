"""Marks that replace registered secrets in stored JSON.

A mark identifies its secret by 24 bits of a digest: too few to guess the secret, enough to find it
among the registered ones. Text that only looks like a mark is stored so that it is read unchanged.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from agents_tools.text.forms import MASK
from agents_tools.text.secrets import has_secrets, mask_encoded, registered_forms

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MARK", "MARK_BYTES", "hide_secrets", "show_secrets"]

T = TypeVar("T")

MARK: Final = "\ue000"
"""The character that every mark begins with."""
MARK_BYTES: Final = MARK.encode()
_TEMPLATE: Final = "\ue000agents-tools secret {}\ue001"
_ESCAPED: Final = "\ue000\ue001"
"""The stored form of a character that marks begin with."""
_MARKS: Final = re.compile("\ue000(?:agents-tools secret ([0-9a-f]{6}))?\ue001")


def hide_secrets(value: T) -> T:
    """Return a JSON value with a mark in place of each registered secret, in keys as well."""
    secrets = registered_forms() if has_secrets() else ()
    texts = sorted({form[0] for form in secrets}, key=len, reverse=True)

    def hide(text: str) -> str:
        if MARK in text:
            text = text.replace(MARK, _ESCAPED)
        if texts:
            text = mask_encoded(text)  # forms that reading could not restore
        for secret in texts:
            if secret in text:
                text = text.replace(secret, _TEMPLATE.format(_digest(secret)))
        return text

    return cast("T", _mapped(value, hide))


def show_secrets(value: T, *, restore: bool) -> T:
    """Return a stored JSON value without marks.

    Args:
        value: The stored value.
        restore: Whether a mark becomes its secret if that is registered. Otherwise, and by default,
            it becomes `***`.
    """
    secrets: dict[str, set[str]] = {}
    if restore:
        for text, _, _ in registered_forms():
            secrets.setdefault(_digest(text), set()).add(text)

    def secret_of(match: re.Match[str]) -> str:
        if match[1] is None:
            return MARK
        found = secrets.get(match[1], set())
        return next(iter(found)) if len(found) == 1 else MASK

    def show(text: str) -> str:
        return _MARKS.sub(secret_of, text) if MARK in text else text

    return cast("T", _mapped(value, show))


def _digest(text: str) -> str:
    return sha256(b"agents-tools durable\0" + text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with changed texts and keys; the same object if nothing changes."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        pairs = [(change(key), _mapped(member, change)) for key, member in members.items()]
        same = all(
            key is old and member is members[old]
            for (key, member), old in zip(pairs, members, strict=True)
        )
        return members if same else dict(pairs)
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        changed = [_mapped(item, change) for item in items]
        return items if all(map(_is, changed, items)) else changed
    return value


def _is(one: object, other: object) -> bool:
    return one is other
