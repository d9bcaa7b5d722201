"""Input for a program: lines of text and named keys."""

from __future__ import annotations

__all__ = ["END_OF_INPUT", "key_named", "typed"]

END_OF_INPUT = b"\x04"
_LONGEST_LINE = 4000
"""The maximum bytes of a line that a terminal accepts at once; it drops the rest."""

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
    r"""Return the bytes of a key.

    Args:
        text: `C-c`, `C-d`, `C-z`, any other `C-` with a letter or one of `[\]^_`, or the name of
            a key: `Enter`, `Tab`, `Escape`, `Backspace`, `Space`, `Up`, `Down`, `Left`, `Right`,
            `Home`, `End`, `PageUp`, `PageDown`.

    Returns:
        The bytes; `None` if it is not the name of a key.
    """
    name = text.strip().lower()
    letter = name.removeprefix("c-") if name.startswith("c-") else name.removeprefix("^")
    if len(letter) == 1 and letter != name:
        code = ord(letter.upper()) - 0x40
        if 0 < code < 0x20:  # noqa: PLR2004 - the control characters
            return bytes([code])
    return _KEYS.get(name)


def typed(text: str, *, by_line: bool) -> bytes:
    """Return the bytes of an input: those of a key, or a line with its end.

    Args:
        text: The input.
        by_line: Whether the terminal is in line mode. Too long lines are then split into
            pieces.
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
