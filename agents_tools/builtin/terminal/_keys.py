"""What is typed into a program: lines of text, and keys by their names."""

from __future__ import annotations

__all__ = ["END_OF_INPUT", "key_named", "typed"]

END_OF_INPUT = b"\x04"
_LONGEST_LINE = 4000
"""Bytes of one line that a terminal takes at once; of longer ones it would drop the rest."""

_KEYS = {
    "backspace": b"\x7f",
    "down": b"\x1b[B",
    "end": b"\x1b[F",
    "enter": b"\n",
    "escape": b"\x1b",
    "home": b"\x1b[H",
    "left": b"\x1b[D",
    "pagedown": b"\x1b[6~",
    "pageup": b"\x1b[5~",
    "right": b"\x1b[C",
    "space": b" ",
    "tab": b"\t",
    "up": b"\x1b[A",
}


def key_named(text: str) -> bytes | None:
    r"""Return what a key sends.

    Args:
        text: `C-c`, `C-d`, `C-z`, any other `C-` with a letter or one of `[\]^_`, or the name of
            a key: `Enter`, `Tab`, `Escape`, `Backspace`, `Space`, `Up`, `Down`, `Left`, `Right`,
            `Home`, `End`, `PageUp`, `PageDown`.

    Returns:
        The bytes; `None` for what is no key.
    """
    name = text.strip().lower()
    letter = name.removeprefix("c-") if name.startswith("c-") else name.removeprefix("^")
    if len(letter) == 1 and letter != name:
        code = ord(letter.upper()) - 0x40
        if 0 < code < 0x20:  # noqa: PLR2004 - the control characters
            return bytes([code])
    return _KEYS.get(name)


def typed(text: str, *, by_line: bool) -> bytes:
    """Return what is sent for an input: that of a key, or a line with its end.

    Args:
        text: The input.
        by_line: Whether the terminal hands over whole lines. One that is longer than it takes is
            then handed over in pieces.
    """
    key = key_named(text)
    if key is not None:
        return key
    data = text.encode("utf-8", "replace")
    if not data.endswith(b"\n"):
        data += b"\n"
    if not by_line or len(data) <= _LONGEST_LINE:
        return data
    return b"".join(_pieces(line) for line in data.splitlines(keepends=True))


def _pieces(line: bytes) -> bytes:
    starts = range(0, len(line), _LONGEST_LINE)
    return END_OF_INPUT.join(line[start : start + _LONGEST_LINE] for start in starts)
