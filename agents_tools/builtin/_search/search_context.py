"""One search that runs: when it has to end, and what it tells meanwhile."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from agents_tools.errors import ToolCancelledError, ToolError
from agents_tools.tool.context import current_context

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SearchContext"]

EVERY = 0.5
"""How many seconds are between two reports of progress."""


class SearchContext:
    """One call of a search tool.

    Args:
        timeout: After how many seconds it has to end.
    """

    def __init__(self, timeout: float) -> None:
        self.context: Any = current_context()
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._told = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = False
        self._kill: Callable[[], None] | None = None

    @property
    def left(self) -> float:
        """How many seconds there are."""
        return self._deadline - time.monotonic()

    @property
    def left_alone(self) -> bool:
        """Return whether no one waits for it any more."""
        return self._stopped or (self.context is not None and self.context.cancelled)

    def check(self) -> None:
        """Go on, if the search may.

        Raises:
            ToolCancelledError: Nobody waits for it any more.
            ToolError: It has taken too long.
        """
        if self.left_alone:
            raise ToolCancelledError("The search was interrupted.")
        if self.left <= 0:
            raise self.too_long()

    def too_long(self) -> ToolError:
        """Return what says that the search takes too long."""
        return ToolError(
            f"The search takes too long (more than {self._timeout:g} seconds) and was ended. "
            "Search a smaller directory, or use a simpler pattern."
        )

    def tell(self, done: int, total: int | None, message: str) -> None:
        """Report progress, unless that was done a moment ago."""
        now = time.monotonic()
        if self.context is not None and now - self._told >= EVERY:
            self._told = now
            self.context.progress(done, total, message)

    def stop(self) -> None:
        """End the search; called from another thread."""
        with self._lock:
            self._stopped = True
            if self._kill is not None:
                self._kill()

    def killed_by(self, kill: Callable[[], None] | None) -> None:
        """Return what ends the program that the search waits for; `None` when it waits for none."""
        with self._lock:
            self._kill = kill
            if kill is not None and self._stopped:
                kill()
