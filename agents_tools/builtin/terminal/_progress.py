"""Says what a command writes while it runs, as events of the call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agents_tools.builtin.terminal._ansi import AnsiCleaner

if TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext

__all__ = ["LiveOutput"]

_EVERY = 0.05
_ENOUGH = 4096
_MOST = 1 << 20
_QUIET = 0.2


class LiveOutput:
    """Plain text of an output, in pieces: each 50 ms, or each 4 KiB, and at most 1 MiB.

    A line that has not ended is said when nothing follows for a moment, as prompts are.

    Args:
        context: The call; `None` where no one listens.
    """

    def __init__(self, context: ToolContext[Any] | None) -> None:
        self._context = context if context is not None and context.listening else None
        self._cleaner = AnsiCleaner()
        self._waiting = ""
        self._said = 0
        self._line = ""
        self._latest = 0.0
        self._heard = 0.0

    @property
    def due(self) -> float:
        """How many seconds there are until something is to be said."""
        if self._context is None:
            return 60.0
        now = time.monotonic()
        if self._waiting:
            return max(0.0, self._latest + _EVERY - now)
        if self._cleaner.line != self._line:
            return max(0.0, self._heard + _QUIET - now)
        return 60.0

    def hear(self, data: bytes) -> None:
        """Take what was written."""
        if self._context is None or self._said > _MOST:
            return
        self._heard = time.monotonic()
        self._settle(self._cleaner.feed(data))
        if len(self._waiting) >= _ENOUGH or self._heard - self._latest >= _EVERY:
            self._say()

    def tick(self) -> None:
        """Return what is due."""
        if self._context is None or self.due > 0:
            return
        if not self._waiting:
            self._settle("", line=self._cleaner.line)
        self._say()

    def finish(self) -> None:
        """Say the rest."""
        if self._context is not None:
            self._settle(self._cleaner.feed(b"", last=True))
            self._say()

    def _settle(self, text: str, line: str | None = None) -> None:
        """Put text in line to be said, without the beginning of a line that has been said."""
        new = text if line is None else line
        if not new:
            return
        if self._line:
            same = new.startswith(self._line)
            new = new[len(self._line) :] if same else f"\n{new}"
        self._line = "" if line is None else line
        self._waiting += new

    def _say(self) -> None:
        text, self._waiting = self._waiting, ""
        if not text or self._context is None or self._said > _MOST:
            return
        self._latest = time.monotonic()
        self._said += len(text)
        if self._said > _MOST:
            text += "\n[no more of the output is shown live]\n"
        self._context.notify(text, is_delta=True, tag="stdout")
