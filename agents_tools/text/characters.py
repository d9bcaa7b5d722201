"""Cleaning of text: control characters, escape sequences, invisible characters, surrogates."""

from __future__ import annotations

import functools
import re

__all__ = [
    "escape_for_model",
    "hidden_parts",
    "is_plain",
    "replace_escaped_surrogates",
    "replace_surrogates",
    "safe_text",
    "unfinished_start",
]


def is_plain(text: str) -> bool:
    """Return whether a text needs no cleaning; the check is fast."""
    if len(text) > _SHORT:  # three times as fast as `isprintable`
        try:
            return not text.encode("latin-1").translate(None, _PLAIN_LATIN)
        except UnicodeEncodeError:
            pass
    return text.isprintable() or text.replace("\n", " ").replace("\t", " ").isprintable()


_SHORT = 200
_PLAIN_LATIN = bytes([*range(ord(" "), 0x7F), *range(0xA0, 0x100)]) + b"\n\t"


def safe_text(text: str) -> str:
    r"""Remove the characters of a text that a terminal would execute or that mislead a reader.

    Removed are control characters except tab and newline, whole terminal escape sequences
    (colors, links, clipboard and device strings), bidirectional overrides, isolates and marks,
    and zero-width characters. Two halves of a surrogate pair are joined, and a lone surrogate is
    replaced with U+FFFD. A device string without an end loses only its first characters, so that
    it cannot hide the text that follows.

    Safe text is returned unchanged, so `safe_text` can be applied more than once.
    """
    if is_plain(text):
        return text
    return hidden_parts().sub("", replace_surrogates(text))


def escape_for_model(text: str) -> str:
    r"""Escape the characters that are invisible to a model or cannot be sent to it.

    The characters that `safe_text` removes become escapes (`\x1b`, `\u202e`), so the model sees
    them. Surrogates are handled as by `safe_text`, so the text can always be encoded. Newlines,
    tabs and `\r\n` are kept, and so are the joiners inside words and emoji.
    """
    if is_plain(text):
        return text
    return _invisible().sub(_escape, replace_surrogates(text))


def replace_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs in a text, and replace lone surrogates with U+FFFD.

    The result can be encoded in every Unicode encoding. JSON can represent lone surrogates, and
    Python uses them for bytes of file names that are not valid UTF-8.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def replace_escaped_surrogates(data: bytes) -> bytes:
    r"""Replace the escapes of lone surrogates in JSON with `\ufffd`.

    The escapes are valid JSON, but parsers that keep text in UTF-8 refuse the whole document.
    """
    if _SURROGATE_ESCAPE.search(data) is None:  # four times as fast as two searches with `in`
        return data
    return _escapes().sub(lambda match: match[0] if match[1] is None else b"\\ufffd", data)


_SURROGATE_ESCAPE = re.compile(rb"\\u[dD]")


def unfinished_start(text: str) -> int:
    """Return the index of a sequence or surrogate pair that the end of a text cuts, or its length.

    A sequence that is longer than 256 characters is taken as text that never ends.
    """
    found = _unfinished().search(text)
    return len(text) if found is None else found.start()


# Character by character: C0 without tab and newline, DEL and C1; Arabic letter mark, Mongolian
# vowel separator; zero-width characters and bidirectional marks; bidirectional embeddings and
# overrides; word joiner, invisible operators, isolates and old format controls; byte order mark;
# interlinear annotation; tags, which carry hidden ASCII.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = (
    "\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)


@functools.cache
def hidden_parts() -> re.Pattern[str]:
    """Return the pattern of the parts of a text that `safe_text` removes."""
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


@functools.cache
def _escapes() -> re.Pattern[bytes]:
    high, low = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
    return re.compile(rb"(?s)\\(?:" + high + rb"\\" + low + rb"|(" + high + rb"|" + low + rb")|.)")


@functools.cache
def _unfinished() -> re.Pattern[str]:
    return re.compile(
        r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x90\x98\x9c-\x9f]{0,256}\x1b?\Z"
        r"|(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,256}\Z"
        r"|\x1b[ -/]{0,256}\Z"
        r"|[\ud800-\udbff]\Z"
    )


@functools.cache
def _invisible() -> re.Pattern[str]:
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
