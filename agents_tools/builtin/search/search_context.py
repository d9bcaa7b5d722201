"""The state of a running search: deadline, cancellation and progress."""

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
"""The seconds between two progress reports."""


class SearchContext:
    """The context of one call of a search tool.

    Args:
        timeout: The maximum duration in seconds.
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
        """The remaining seconds."""
        return self._deadline - time.monotonic()

    @property
    def left_alone(self) -> bool:
        """Return whether the call was cancelled."""
        return self._stopped or (self.context is not None and self.context.cancelled)

    def check(self) -> None:
        """Raise an error if the search must end.

        Raises:
            ToolCancelledError: The call was cancelled.
            ToolError: It has taken too long.
        """
        if self.left_alone:
            raise ToolCancelledError("The search was interrupted.")
        if self.left <= 0:
            raise self.too_long()

    def too_long(self) -> ToolError:
        """Return the error for a search that exceeded its timeout."""
        return ToolError(
            f"The search takes too long (more than {self._timeout:g} seconds) and was ended. "
            "Search a smaller directory, or use a simpler pattern."
        )

    def tell(self, done: int, total: int | None, message: str) -> None:
        """Report progress at most once per interval."""
        now = time.monotonic()
        if self.context is not None and now - self._told >= EVERY:
            self._told = now
            self.context.progress(done, total, message)

    def stop(self) -> None:
        """Stop the search; called from another thread."""
        with self._lock:
            self._stopped = True
            if self._kill is not None:
                self._kill()

    def killed_by(self, kill: Callable[[], None] | None) -> None:
        """Set the function that kills the program of the search; `None` while no program runs."""
        with self._lock:
            self._kill = kill
            if kill is not None and self._stopped:
                kill()
