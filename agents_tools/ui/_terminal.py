"""Find out what an output stream can show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["can_show", "is_lively", "is_terminal", "marks"]


def is_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a terminal."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def is_lively(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can redraw lines."""
    return is_terminal(stream) and os.environ.get("TERM", "") not in {"dumb", "unknown"}


def can_show(text: str, stream: TextIO) -> bool:
    """Return whether the encoding of the stream has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def marks(stream: TextIO) -> tuple[str, str]:
    """Return the marks of success and failure that the stream can show."""
    return ("✓", "✗") if can_show("✓✗", stream) else ("ok", "!!")
