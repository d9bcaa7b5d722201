"""Write whole lines to a stream whose reader can close it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["LineWriter"]


class LineWriter:
    """Writes lines to a stream until its reader closes it.

    Args:
        stream: The output stream; by default the current standard error.

    Attributes:
        gone: Whether the stream is closed.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self.gone = self._stream is None  # closed before the program began
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write a whole line and flush it."""
        with self._lock:
            if self.gone or self._stream is None:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                self.gone = True  # the program continues: only its output is lost
