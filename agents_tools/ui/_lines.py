"""Whole lines on a stream whose reader may go away."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["Lines"]


class Lines:
    """Lines on a stream; whoever reads them may go away.

    Args:
        stream: Where they go; standard error, as it is now, by default.

    Attributes:
        gone: Whether the reader has gone.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self.gone = self._stream is None  # closed before the program began
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write a line at once, and whole."""
        with self._lock:
            if self.gone or self._stream is None:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                self.gone = True  # what is told of goes on: it is not its business
