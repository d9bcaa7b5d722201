"""Report the output of a running command as events of the call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agents_tools.builtin.terminal.ansi import AnsiCleaner
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext

__all__ = ["LiveOutput"]

_EVERY = 0.05
_ENOUGH = 4096
_MOST = 1 << 20
_QUIET = 0.2


class LiveOutput:
    """Emits output as plain text each 50 ms or each 4 KiB, up to 1 MiB.

    An incomplete line, such as a prompt, is emitted after a short time without output.

    Args:
        context: The context of the call; `None` without subscribers.
    """

    def __init__(self, context: ToolContext[Any] | None) -> None:
        self._context = context if context is not None and call_of(context).listening else None
        self._cleaner = AnsiCleaner()
        self._waiting = ""
        self._emitted = 0
        self._line = ""
        self._latest = 0.0
        self._received = 0.0

    @property
    def due(self) -> float:
        """The seconds until the next event is due."""
        if self._context is None:
            return 60.0
        now = time.monotonic()
        if self._waiting:
            return max(0.0, self._latest + _EVERY - now)
        if self._cleaner.line != self._line:
            return max(0.0, self._received + _QUIET - now)
        return 60.0

    def add(self, data: bytes) -> None:
        """Add output."""
        if self._context is None or self._emitted > _MOST:
            return
        self._received = time.monotonic()
        self._settle(self._cleaner.feed(data))
        if len(self._waiting) >= _ENOUGH or self._received - self._latest >= _EVERY:
            self._emit()

    def tick(self) -> None:
        """Emit the text that is due."""
        if self._context is None or self.due > 0:
            return
        if not self._waiting:
            self._settle("", line=self._cleaner.line)
        self._emit()

    def finish(self) -> None:
        """Emit the rest."""
        if self._context is not None:
            self._settle(self._cleaner.feed(b"", last=True))
            self._emit()

    def _settle(self, text: str, line: str | None = None) -> None:
        """Queue text to emit, without the start of a line that was emitted before."""
        new = text if line is None else line
        if not new:
            return
        if self._line:
            same = new.startswith(self._line)
            new = new[len(self._line) :] if same else f"\n{new}"
        self._line = "" if line is None else line
        self._waiting += new

    def _emit(self) -> None:
        text, self._waiting = self._waiting, ""
        if not text or self._context is None or self._emitted > _MOST:
            return
        self._latest = time.monotonic()
        self._emitted += len(text)
        if self._emitted > _MOST:
            text += "\n[the rest of the output is not shown live]\n"
        self._context.notify(text, is_delta=True, tag="stdout")
