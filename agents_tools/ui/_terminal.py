"""What the stream that is written to can show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["can_show", "is_lively", "is_terminal", "marks"]


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads the stream."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def is_lively(stream: TextIO) -> bool:
    """Whether what was written on the stream can be drawn over."""
    return is_terminal(stream) and os.environ.get("TERM", "") not in {"dumb", "unknown"}


def can_show(text: str, stream: TextIO) -> bool:
    """Whether the encoding of the stream has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def marks(stream: TextIO) -> tuple[str, str]:
    """Give the marks of success and failure that the stream can show."""
    return ("✓", "✗") if can_show("✓✗", stream) else ("ok", "!!")
