"""Escaping of untrusted text for terminals, models and error messages."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, cast

from agents_tools.text.secrets import mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["describe_value", "escape_for_model", "safe_text", "shorten", "type_name"]

DESCRIPTION_LIMIT = 60
"""The maximum length of a text from `describe_value`, in characters."""


def safe_text(text: str) -> str:
    r"""Remove the characters of a text that a terminal would execute or that mislead a reader.

    Removed are control characters except tab and newline, whole terminal escape sequences
    (colors, links, clipboard and device strings), bidirectional overrides, isolates and marks,
    and zero-width characters. A lone surrogate is replaced with U+FFFD. A device string without
    an end loses only its first characters, so that it cannot hide the text that follows.

    Safe text is returned unchanged, so `safe_text` can be applied more than once.
    """
    if _is_plain(text):
        return text
    return _unsafe().sub(_replacement, text)


def escape_for_model(text: str) -> str:
    r"""Escape the characters that are invisible to a model or cannot be sent to it.

    The characters that `safe_text` removes become escapes (`\x1b`, `\u202e`, `\ud800`), so the
    model sees them and the text can always be encoded. Newlines, tabs and `\r\n` are kept, and so
    are the joiners inside words and emoji.
    """
    if _is_plain(text):
        return text
    return _hidden().sub(_escape, text)


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


def _is_plain(text: str) -> bool:
    # Most texts are plain, and `isprintable` is the fastest check.
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


# Character by character: C0 without tab and newline, DEL and C1; Arabic letter mark, Mongolian
# vowel separator; zero-width characters and bidirectional marks; bidirectional embeddings and
# overrides; word joiner, invisible operators, isolates and old format controls; byte order mark;
# interlinear annotation; surrogates; tags, which carry hidden ASCII.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = (
    "\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)


@functools.cache
def _unsafe() -> re.Pattern[str]:
    # Every match starts with an unsafe character, and the last alternative matches any of them,
    # so the remaining text is safe. A device string cannot contain the start of another one, so
    # the search for its end never reads a character twice.
    string_start = r"(?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f])"
    string_end = r"(?:[\x07\x18\x1a\x9c]|\x1b\\)"
    inside = r"[^\x07\x18\x1a\x1b\x90\x98\x9c-\x9f]*+"
    return re.compile(
        rf"{string_start}{inside}{string_end}"
        r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?+"
        r"|\x1b[ -/]*+[0-~]?+"
        rf"|[{_CONTROLS}{_INVISIBLE}]"
    )


def _replacement(match: re.Match[str]) -> str:
    return "\ufffd" if "\ud800" <= match[0] <= "\udfff" else ""


@functools.cache
def _hidden() -> re.Pattern[str]:
    visible = rf"[^\x00-\x9f{_INVISIBLE}]"
    joined = rf"(?<={visible})[\u200c\u200d](?={visible})"
    return re.compile(rf"(?!{joined}|\r\n)[{_CONTROLS}{_INVISIBLE}]")


def _escape(match: re.Match[str]) -> str:
    if match[0] == "\r":
        return "\\r"
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004 - two hexadecimal digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits


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
        yield _quoted(str.__str__(value))
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


def _quoted(text: str) -> str:
    text = _masked(text)[:_MAX_NOTATION]
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def _masked(text: str) -> str:
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
    if type(module) is not str or module in {"builtins", "__main__"}:
        return name
    return f"{module}.{name}"
