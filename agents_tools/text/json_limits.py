"""Limits for JSON text from a model or a peer, checked before the text is parsed."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "JsonFault",
    "JsonLimits",
    "check_bounds",
    "check_keys",
    "check_size",
    "configure_json_limits",
    "json_functions",
    "parse_object",
    "safe_length",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLimits:
    """The limits for a JSON text.

    Attributes:
        size: The length of the text in characters; default 1,048,576.
        depth: The levels of nested arrays and objects; default 64.
        nodes: The number of values, without keys; default 100,000.
        digits: The digits of one number; default 4,300, Python's limit for integers.
    """

    size: int = 1 << 20
    depth: int = 64
    nodes: int = 100_000
    digits: int = 4_300


_limits = JsonLimits()


class _SafeLength:
    """The length up to which a text needs no check, because it cannot exceed any limit.

    Attributes:
        value: The number of characters.
    """

    __slots__ = ("value",)

    def __init__(self, limits: JsonLimits) -> None:
        self.update(limits)

    def update(self, limits: JsonLimits) -> None:
        """Compute the length for new limits."""
        self.value = min(limits.size, limits.digits, limits.nodes, 2 * limits.depth + 1)


safe_length = _SafeLength(_limits)


class JsonFault(ValueError):  # noqa: N818 - distinguishes it from a syntax error
    """A JSON text exceeds a limit or repeats a key.

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
        The previous limits.
    """
    global _limits
    previous, _limits = _limits, limits
    safe_length.update(limits)
    return previous


def check_bounds(text: str, limits: JsonLimits | None = None) -> None:
    """Raise `JsonFault` if a text exceeds a limit.

    Counting characters is fast and rules out most violations; only a text that could exceed a
    limit is examined further. The syntax is not checked, so text that is not JSON can pass.

    Args:
        text: The JSON text.
        limits: The limits; by default those of the process.
    """
    limits = limits or _limits
    size = len(text)
    check_size(size, limits)
    if text.count("[") + text.count("{") > limits.depth:
        _check_depth(text, limits.depth)
    if size > limits.digits:
        _check_digits(text, limits.digits)
    if size > limits.nodes:
        _check_nodes(text, limits.nodes)


def check_size(size: int, limits: JsonLimits | None = None) -> None:
    """Raise `JsonFault` if a text with this number of characters is too large."""
    limits = limits or _limits
    if size > limits.size:
        message = f"the text has {size:,} characters; at most {limits.size:,} are accepted"
        raise JsonFault("too_large", message)


def check_keys(text: str, known: int = 0) -> None:
    """Raise `JsonFault` if an object in the text repeats a key.

    Every key has a colon. A text with no more colons than it has different keys repeats none. Of
    the members with the same key, the parser keeps only the last, so a text that repeats a key has
    fewer colons after it was parsed and written again.

    Args:
        text: The JSON text.
        known: The number of different keys that the caller knows of.
    """
    colons = text.count(":")
    if colons <= known:
        return
    from_json, to_json = json_functions()
    try:
        # An escaped colon in a string is written as a colon, which could replace a lost one.
        if "\\u" not in text and to_json(from_json(text)).count(b":") == colons:
            return
    except ValueError:
        return  # not JSON, or nested too deeply: the validator reports the error
    import json

    try:
        json.JSONDecoder(object_pairs_hook=_check_distinct).decode(text)
    except JsonFault:
        raise
    except (ValueError, RecursionError):
        return  # not JSON, or nested too deeply: the validator reports the error


@functools.cache  # an import statement takes as long as a validation
def json_functions() -> tuple[Callable[[str], Any], Callable[..., bytes]]:
    """Return the functions that read and write JSON; their package is loaded at the first use."""
    from pydantic_core import from_json, to_json

    return from_json, to_json


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
        message = f"the text has about {nodes:,} values; at most {limit:,} are accepted"
        raise JsonFault("too_many_values", message)


def _check_digits(text: str, limit: int) -> None:
    if re.search(rf"(?<![0-9])[0-9]{{{limit + 1}}}", _STRING.sub("", text)):
        message = f"a number has more than {limit:,} digits"
        raise JsonFault("number_too_long", message)


def _check_distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        _raise_duplicate([key for key, _ in pairs])


def _raise_duplicate(keys: list[str]) -> NoReturn:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise JsonFault("duplicate_key", f'the key "{key[:60]}" occurs twice in one object')
        seen.add(key)
    raise AssertionError


def parse_object(text: object) -> dict[str, Any] | None:
    """Return a JSON object as JSON values; `None` if the text is not one that tools accept.

    Empty text and `null` are read as an empty object, and a string that contains an object is read
    as that object.

    Args:
        text: The text.
    """
    if isinstance(text, (bytes, bytearray)):
        text = bytes(text).decode(errors="surrogateescape")
    if text is None:
        return {}
    if not isinstance(text, str):
        return None
    if not text.strip():
        return {}
    try:
        check_bounds(text)
        value: Any = json_functions()[0](text)
        check_keys(text, len(cast("Any", value)) if isinstance(value, dict) else 0)
    except (TypeError, ValueError):  # half of a surrogate pair raises TypeError
        return None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return parse_object(value)
    if value is None:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
