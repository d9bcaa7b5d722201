"""Convert the terminal output of programs to plain text."""

from __future__ import annotations

import codecs
import re

__all__ = ["AnsiCleaner", "clean", "unfinished"]

LONGEST = 4096
"""The number of characters of a line that can still be overwritten."""

_BODY = r"[^\x07\x18\x1a\x1b\n]{0,4096}"
_TOKEN = re.compile(
    r"(?P<plain>[^\x00-\x08\x0b-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<numbers>[0-?]{0,64})[ -/]{0,8}(?P<final>[@-~])"
    rf"|\x1b[\]PX^_]{_BODY}(?:[\x07\x18\x1a]|\x1b\\)"
    r"|\x1b(?:[ -/]{1,8}[0-~]|[0-OQ-WYZ`-~\\])"
    r"|\x1b[\[\]PX^_]?"
    r"|(?P<control>[\x00-\x08\x0b-\x1f\x7f-\x9f])"
)
"""A run of text; a control sequence; a string for a device; other escapes; a control."""

_UNFINISHED = re.compile(
    rf"\x1b(?:\[[0-?]{{0,64}}[ -/]{{0,8}}|[\]PX^_]{_BODY}\x1b?|[ -/]{{0,8}})?\Z"
)
_LONGEST_UNFINISHED = 4099
_FORWARD, _BACK, _COLUMN, _ERASE, _ERASE_DOWN = "C", "D", "G", "K", "J"


class AnsiCleaner:
    """Interprets terminal output as a terminal does, and returns the resulting text.

    Carriage returns, backspaces and sequences that move within a line or erase it are applied.
    Other escape sequences and control characters are removed. Invalid UTF-8 becomes U+FFFD. Tabs
    and long lines stay.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._line = ""
        self._column = 0
        self._done: list[str] = []

    @property
    def line(self) -> str:
        """The current line, which has not ended."""
        return self._line

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Process the next bytes.

        Args:
            data: The bytes; characters and sequences may be split between calls.
            last: Whether these are the last bytes.

        Returns:
            The text that cannot change anymore; after the last bytes, the rest.
        """
        text = self._held + self._decoder.decode(data, last)
        self._held = ""
        if not last and (
            match := _UNFINISHED.search(text, max(0, len(text) - _LONGEST_UNFINISHED))
        ):
            self._held = match[0]
            text = text[: match.start()]
        for match in _TOKEN.finditer(text):
            if (plain := match["plain"]) is not None:
                self._write(plain)
            elif match["control"] == "\r":
                self._column = 0
            elif match["control"] == "\b":
                self._column = max(0, self._column - 1)
            elif (final := match["final"]) is not None:
                self._move(final, match["numbers"])
        if last:
            self._done.append(self._line)
            self._line, self._column = "", 0
        settled = "".join(self._done)
        self._done.clear()
        return settled

    def _write(self, text: str) -> None:
        end = text.rfind("\n") + 1
        if end:
            first, rest = text.find("\n") + 1, text[end:]
            self._put(text[: first - 1])
            self._done += [self._line, text[first - 1 : end]]
            self._line, self._column = "", 0
            text = rest
        self._put(text)

    def _put(self, text: str) -> None:
        """Write a text without line ends at the cursor."""
        start = 0
        while start < len(text):
            if not self._line and not self._column and len(text) - start >= LONGEST:
                whole = start + (len(text) - start) // LONGEST * LONGEST
                self._done.append(text[start:whole])
                start = whole
                continue
            piece = text[start : start + LONGEST - self._column]
            start += len(piece)
            before = self._line[: self._column].ljust(self._column)
            self._column += len(piece)
            self._line = before + piece + self._line[self._column :]
            if self._column == LONGEST:
                self._done.append(self._line)
                self._line, self._column = "", 0

    def _move(self, final: str, numbers: str) -> None:
        count = int(numbers) if numbers.isdecimal() and len(numbers) <= 6 else 0  # noqa: PLR2004 - columns
        if final == _FORWARD:
            self._column = min(LONGEST - 1, self._column + max(1, count))
        elif final == _BACK:
            self._column = max(0, self._column - max(1, count))
        elif final == _COLUMN:
            self._column = min(LONGEST - 1, max(1, count) - 1)
        elif final in {_ERASE, _ERASE_DOWN} and count == 0:
            self._line = self._line[: self._column]
        elif final == _ERASE and count == 1:
            blank = " " * min(len(self._line), self._column + 1)
            self._line = blank + self._line[len(blank) :]
        elif final == _ERASE:
            self._line = ""


def clean(data: bytes) -> str:
    """Return the plain text of complete output.

    Args:
        data: The terminal output.
    """
    return AnsiCleaner().feed(data, last=True)


def unfinished(data: bytes) -> int:
    """Return the length of an incomplete character or sequence at the end.

    Args:
        data: The output so far.
    """
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:  # noqa: PLR2004 - the first byte of a character
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4  # noqa: PLR2004 - its length
            if size > back:
                return back
        if not 0x80 <= byte < 0xC0:  # noqa: PLR2004 - a byte that continues a character
            break
    tail = data[-_LONGEST_UNFINISHED:].decode("latin-1")
    match = _UNFINISHED.search(tail)
    return len(match[0]) if match else 0
