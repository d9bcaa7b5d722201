"""Makes foreign text safe to show to a person, to send to a model or to quote in a message."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, cast

from agents_tools._secrets import mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["describe_value", "escape_for_model", "safe_text", "shorten", "type_name"]

DESCRIPTION_LIMIT = 60
"""The most characters that `describe_value` gives."""


def safe_text(text: str) -> str:
    r"""Take out of a text what could act on a terminal or mislead the eye of a person.

    Gone are control characters except tab and newline, terminal escape sequences as a whole
    (colours, links, clipboard and device strings), bidirectional overrides, isolates and marks,
    and characters of no width. A lone surrogate becomes U+FFFD. A device string that never ends
    loses its first characters and stays as plain text: nothing that follows can be hidden in it.

    Safe text comes back as it is, so that `safe_text` may be applied anywhere and twice.
    """
    if _is_plain(text):
        return text
    return _unsafe().sub(_replacement, text)


def escape_for_model(text: str) -> str:
    r"""Write out what a model could not see, or what could not be sent to it.

    The characters that `safe_text` removes appear as escapes (`\x1b`, `\u202e`, `\ud800`), so
    that a model knows of them and the text can always be encoded. Line ends of any kind stay, and
    so do the joiners inside of words and emoji.
    """
    if _is_plain(text):
        return text
    return _hidden().sub(_escape, text)


def shorten(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters, an ellipsis included."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def describe_value(value: object) -> str:
    """Describe a value the way JSON would write it, in at most 60 characters, for a message.

    What has no JSON form is named by its type. No method of the value is called, so that nothing
    can fail; what is secret is masked, what is invisible is written out and what is long is cut.
    """
    try:
        written = _written(value)
    except RuntimeError:  # a container that another thread is changing
        written = f"<{type_name(type(value))}>"
    text = escape_for_model(mask(written))
    if len(text) > DESCRIPTION_LIMIT and text.startswith('"'):
        return shorten(text, DESCRIPTION_LIMIT - 1) + '"'
    return shorten(text, DESCRIPTION_LIMIT)


def _is_plain(text: str) -> bool:
    # Most texts are, and nothing else says so as fast.
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


# Character by character: C0 without tab and newline, DEL and C1; Arabic letter mark, Mongolian
# vowel separator; zero-width characters and bidirectional marks; bidirectional embeddings and
# overrides; word joiner, invisible operators, isolates and old format controls; byte order mark;
# interlinear annotation; surrogates; tags, which carry hidden ASCII.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_UNSEEN = (
    "\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)


@functools.cache
def _unsafe() -> re.Pattern[str]:
    # Everything matched starts with an unsafe character and the last alternative takes any of
    # them, hence what is left over is safe. A device string may not contain the start of another
    # one, which keeps the search for its end from looking at any character twice.
    string_start = r"(?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f])"
    string_end = r"(?:[\x07\x18\x1a\x9c]|\x1b\\)"
    inside = r"[^\x07\x18\x1a\x1b\x90\x98\x9c-\x9f]*+"
    return re.compile(
        rf"{string_start}{inside}{string_end}"
        r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?+"
        r"|\x1b[ -/]*+[0-~]?+"
        rf"|[{_CONTROLS}{_UNSEEN}]"
    )


def _replacement(match: re.Match[str]) -> str:
    return "\ufffd" if "\ud800" <= match[0] <= "\udfff" else ""


@functools.cache
def _hidden() -> re.Pattern[str]:
    seen = rf"[^\x00-\x9f{_UNSEEN}]"
    joined = rf"(?<={seen})[\u200c\u200d](?={seen})"
    return re.compile(rf"(?!{joined}|\r\n)[{_CONTROLS}{_UNSEEN}]")


def _escape(match: re.Match[str]) -> str:
    if match[0] == "\r":
        return "\\r"
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004 - what two hexadecimal digits can say
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits


_DEEPEST = 4
_DIGITS = 64
_ROOM = 4 * DESCRIPTION_LIMIT
"""Characters to write before cutting; more than are shown, as masking makes texts shorter."""
_ENOUGH = 1 << 16
_list: Any = list
_tuple: Any = tuple
_dict: Any = dict


def _written(value: object) -> str:
    text = ""
    for piece in _pieces(value, _DEEPEST):
        text += piece
        if len(text) > _ROOM:
            return text + "…"
    return text


def _pieces(value: Any, depth: int) -> Iterator[str]:
    # Asks `type()` and calls the methods of the built-in types, never those of a subclass.
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
    text = _masked(text)[:_ROOM]
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def _masked(text: str) -> str:
    """Mask the start of a text; all of it where the start holds a secret."""
    start = text[:_ENOUGH]
    masked = mask(start)
    return masked if len(start) == len(text) or masked == start else mask(text)


def _digits(value: int) -> str:
    bits = int.bit_length(value)
    if bits <= _DIGITS * 4:
        return int.__repr__(value)
    return f"<integer of about {int(bits * 0.30103) + 1:,} digits>"


def _number(value: float) -> str:
    text = float.__repr__(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def type_name(kind: type) -> str:
    """Give the name of a type, without asking its metaclass."""
    name: str = type.__dict__["__name__"].__get__(kind)
    module: object = type.__dict__["__module__"].__get__(kind)
    if type(module) is not str or module in {"builtins", "__main__"}:
        return name
    return f"{module}.{name}"
