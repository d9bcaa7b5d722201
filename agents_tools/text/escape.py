"""Descriptions of untrusted values in error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.text.characters import escape_for_model
from agents_tools.text.secrets import mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MAIN_AT_WORKER", "describe_value", "shorten", "type_name"]

DESCRIPTION_LIMIT = 60
"""The maximum length of a text from `describe_value`, in characters."""
MAIN_AT_WORKER = "__agents_tools_main__"
"""The name of the main program's module in a worker process, which is not its `__main__`."""


def shorten(text: str, limit: int) -> str:
    """Truncate a text to at most `limit` characters, including the ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def describe_value(value: object) -> str:
    """Return a value in JSON notation for a message, in at most 60 characters.

    A value without a JSON form is described by its type. No method of the value's own class is
    called, so the function cannot fail. Secrets are masked, invisible characters are escaped, and
    long values are truncated.
    """
    try:
        notation = _notation(value)
    except RuntimeError:  # another thread is changing a container
        notation = f"<{type_name(type(value))}>"
    text = escape_for_model(mask(notation))
    if len(text) > DESCRIPTION_LIMIT and text.startswith('"'):
        return shorten(text, DESCRIPTION_LIMIT - 1) + '"'
    return shorten(text, DESCRIPTION_LIMIT)


_MAX_DEPTH = 4
_MAX_DIGITS = 64
_MAX_NOTATION = 4 * DESCRIPTION_LIMIT
"""Characters to write before truncation; more than are shown, because masking shortens texts."""
_MASKED_START = 1 << 16
_list: Any = list
_tuple: Any = tuple
_dict: Any = dict


def _notation(value: object) -> str:
    text = ""
    for piece in _pieces(value, _MAX_DEPTH):
        text += piece
        if len(text) > _MAX_NOTATION:
            return text + "…"
    return text


def _pieces(value: Any, depth: int) -> Iterator[str]:
    # Calls only methods of the built-in types: those of a subclass could fail or block.
    kind = type(cast("object", value))
    if value is None:
        yield "null"
    elif kind is bool:
        yield "true" if value else "false"
    elif issubclass(kind, str):
        yield _quote(str.__str__(value))
    elif issubclass(kind, int):
        yield _digits(value)
    elif issubclass(kind, float):
        yield _number(value)
    elif issubclass(kind, dict):
        yield from _members(_dict.items(value), depth)
    elif issubclass(kind, list):
        yield from _items(_list.__iter__(value), depth)
    elif issubclass(kind, tuple):
        yield from _items(_tuple.__iter__(value), depth)
    elif issubclass(kind, bytes):
        yield f"<{bytes.__len__(value):,} bytes>"
    else:
        yield f"<{type_name(kind)}>"


def _items(values: Iterator[Any], depth: int) -> Iterator[str]:
    yield "["
    separator = ""
    for value in values:
        if not depth:
            yield "…"
            break
        yield separator
        yield from _pieces(value, depth - 1)
        separator = ", "
    yield "]"


def _members(members: Iterable[tuple[Any, Any]], depth: int) -> Iterator[str]:
    yield "{"
    separator = ""
    for key, member in members:
        if not depth:
            yield "…"
            break
        yield separator
        yield from _pieces(key, 0)
        yield ": "
        yield from _pieces(member, depth - 1)
        separator = ", "
    yield "}"


def _quote(text: str) -> str:
    text = _mask_text(text)[:_MAX_NOTATION]
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def _mask_text(text: str) -> str:
    """Mask the start of a text, or the whole text if the start contains a secret."""
    start = text[:_MASKED_START]
    masked = mask(start)
    return masked if len(start) == len(text) or masked == start else mask(text)


def _digits(value: int) -> str:
    bits = int.bit_length(value)
    if bits <= _MAX_DIGITS * 4:
        return int.__repr__(value)
    return f"<integer of about {int(bits * 0.30103) + 1:,} digits>"


def _number(value: float) -> str:
    text = float.__repr__(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def type_name(kind: type) -> str:
    """Return the name of a type without calling its metaclass."""
    name: str = type.__dict__["__name__"].__get__(kind)
    module: object = type.__dict__["__module__"].__get__(kind)
    if type(module) is not str or module in _UNNAMED_MODULES:
        return name
    return f"{module}.{name}"


_UNNAMED_MODULES = frozenset({"builtins", "__main__", MAIN_AT_WORKER})
