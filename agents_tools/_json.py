"""Bounds on JSON text from a model or a peer, checked before objects are built from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = [
    "JsonFault",
    "JsonLimits",
    "check_bounds",
    "check_keys",
    "configure_json_limits",
    "harmless",
    "may_hold_more_keys",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLimits:
    """How large a JSON text may be.

    Attributes:
        size: Characters of the whole text; default 1 MiB.
        depth: Levels of nested arrays and objects; default 64.
        nodes: Values in all, keys not counted; default 100,000.
        digits: Digits of one number; default 4,300, Python's own limit for integers.
    """

    size: int = 1 << 20
    depth: int = 64
    nodes: int = 100_000
    digits: int = 4_300


_limits = JsonLimits()
_USUAL_DEPTH = 64


class _Harmless:
    """How long a text may be that cannot break a limit.

    Attributes:
        flat: Where the types of the values rule out deep nesting.
        nested: Where they do not.
    """

    __slots__ = ("flat", "nested")

    def __init__(self, limits: JsonLimits) -> None:
        self.update(limits)

    def update(self, limits: JsonLimits) -> None:
        """Take over other limits."""
        flat = min(limits.size, limits.digits, limits.nodes)
        self.nested = min(flat, 2 * limits.depth + 1)
        self.flat = flat if limits.depth >= _USUAL_DEPTH else self.nested


harmless = _Harmless(_limits)


class JsonFault(ValueError):  # noqa: N818 - a fault of the text, told apart from a syntax error
    """A text breaks a limit or repeats a key.

    Attributes:
        kind: `too_large`, `too_deep`, `too_many_values`, `number_too_long` or `duplicate_key`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def configure_json_limits(limits: JsonLimits) -> JsonLimits:
    """Set the limits for the arguments of every tool in this process.

    Args:
        limits: The new limits.

    Returns:
        The limits that held before.
    """
    global _limits
    before, _limits = _limits, limits
    harmless.update(limits)
    return before


def check_bounds(text: str, limits: JsonLimits | None = None) -> None:
    """Raise a `JsonFault` when the text breaks a limit.

    Counting characters rules most faults out at the speed of C; only a text that could hold a
    fault is looked at closely. Syntax is not checked: a text that is no JSON may pass.

    Args:
        text: The JSON text.
        limits: The limits; the process-wide ones by default.
    """
    limits = limits or _limits
    size = len(text)
    if size > limits.size:
        message = f"the text has {size:,} characters; at most {limits.size:,} are accepted"
        raise JsonFault("too_large", message)
    if text.count("[") + text.count("{") > limits.depth:
        _check_depth(text, limits.depth)
    if size > limits.digits:
        _check_digits(text, limits.digits)
    if size > limits.nodes:
        _check_nodes(text, limits.nodes)


def may_hold_more_keys(text: str, count: int) -> bool:
    """Whether the objects in a text, which is JSON, might hold more keys than so many.

    A key ends in a quote and a colon; in a text such a pair has a backslash before it, so that
    counting pairs may count too many, but never too few.
    """
    if text.count('":') > count or " :" in text:
        return True
    # Other space before a colon is rare, and a single character is found ten times as fast.
    for space in "\n\t\r":  # noqa: SIM110 - every nested call comes through here
        if space in text and space + ":" in text:
            return True
    return False


def check_keys(text: str) -> None:
    """Raise a `JsonFault` when an object in the text repeats a key."""
    import json

    try:
        json.JSONDecoder(object_pairs_hook=_distinct).decode(text)
    except JsonFault:
        raise
    except (ValueError, RecursionError):
        return  # no JSON, or too deep for it: the validator says what is wrong


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


def _check_depth(text: str, limit: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(_STRING.sub("", text)):
        depth += 1 if match[0] in "[{" else -1
        if depth > limit:
            message = f"arrays and objects are nested more than {limit} levels deep"
            raise JsonFault("too_deep", message)


def _check_nodes(text: str, limit: int) -> None:
    bare = _STRING.sub("", text)
    nodes = bare.count("[") + bare.count("{") + bare.count(",") + 1
    if nodes > limit:
        message = f"the text holds about {nodes:,} values; at most {limit:,} are accepted"
        raise JsonFault("too_many_values", message)


def _check_digits(text: str, limit: int) -> None:
    if re.search(rf"(?<![0-9])[0-9]{{{limit + 1}}}", _STRING.sub("", text)):
        message = f"a number has more than {limit:,} digits"
        raise JsonFault("number_too_long", message)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        _repeated([key for key, _ in pairs])


def _repeated(keys: list[str]) -> NoReturn:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise JsonFault("duplicate_key", f'the key "{key[:60]}" is given twice in one object')
        seen.add(key)
    raise AssertionError
