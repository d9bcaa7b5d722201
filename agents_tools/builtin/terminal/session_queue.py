"""Serialize calls from many threads on one session."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from agents_tools.tool.context import ToolContext

__all__ = ["SessionQueue", "SessionTurn"]


class SessionTurn:
    """The place of one call in the queue.

    Attributes:
        cancelled: Whether the call was cancelled.
        on_cancel: Wakes the call during its turn.
    """

    def __init__(self, context: ToolContext[Any] | None) -> None:
        self.context = context
        self.cancelled = False
        self.on_cancel: Callable[[], None] | None = None
        self.ready = threading.Event()

    @property
    def abandoned(self) -> bool:
        """Return whether the tool call was cancelled."""
        return self.context is not None and self.context.cancelled

    def cancel(self) -> None:
        """Cancel the call."""
        self.cancelled = True
        self.ready.set()
        if (on_cancel := self.on_cancel) is not None:
            on_cancel()


class SessionQueue:
    """A queue of calls; the first call has its turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[SessionTurn] = deque()

    @contextlib.contextmanager
    def take(self, context: ToolContext[Any] | None) -> Generator[SessionTurn]:
        """Wait for the turn of a call; a cancelled call returns immediately.

        Args:
            context: The context of the call; `None` for a direct call.
        """
        turn = SessionTurn(context)
        with self._lock:
            self._queue.append(turn)
            if self._queue[0] is turn:
                turn.ready.set()
        try:
            turn.ready.wait()
            yield turn
        finally:
            with self._lock:
                self._queue.remove(turn)
                if self._queue:
                    self._queue[0].ready.set()

    def cancel_abandoned(self) -> None:
        """Cancel the abandoned calls; without any, cancel the running call if it has no context.

        A running call with an active context continues: the cancelled call has ended already.
        """
        with self._lock:
            found = [turn for turn in self._queue if turn.abandoned]
            if not found and self._queue and self._queue[0].context is None:
                found = [self._queue[0]]
        for turn in found:
            turn.cancel()

    def cancel_all(self) -> None:
        """Cancel every call."""
        with self._lock:
            found = list(self._queue)
        for turn in found:
            turn.cancel()
