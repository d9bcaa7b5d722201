"""Wait for new events of several logs at once, in one thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.concurrency.future import PendingFuture

__all__ = ["LogWaiter", "WatchedLog"]


class WatchedLog(Protocol):
    """The attributes of a log that the waiter uses."""

    last: int


class LogWaiter:
    """Waits for new events for all waiting callers in one thread.

    Args:
        ask: Waits for an event after the id of each log, and returns the logs with new events
            and their newest ids. `wake` and `leave` interrupt it.
        wake: Interrupts the current or next `ask`; never waits.
        leave: Interrupts `ask` permanently.
        closed: Returns the error for callers that still wait at the end.
    """

    def __init__(
        self,
        ask: Callable[[Mapping[WatchedLog, int]], Mapping[WatchedLog, int]],
        wake: Callable[[], object],
        leave: Callable[[], object],
        closed: Callable[[], Exception],
    ) -> None:
        self._ask = ask
        self._wake = wake
        self._leave = leave
        self._closed = closed
        self._wanted: dict[WatchedLog, dict[PendingFuture[int], int]] = {}
        self._asked: Mapping[WatchedLog, int] | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False

    def add(self, log: WatchedLog, pending: PendingFuture[int], after: int) -> None:
        """Register a future for an event of a log with a larger id."""
        with self._changed:
            ended = self._ended
            if not ended:
                self._expect(log, pending, after)
            asked = self._asked
        if ended:
            pending.fail(self._closed())
            return
        self.seen(log)  # the event can exist already
        if asked is not None and (log not in asked or asked[log] > after):
            self._wake()

    def _expect(self, log: WatchedLog, pending: PendingFuture[int], after: int) -> None:
        self._wanted.setdefault(log, {})[pending] = after
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="agents-tools-redis-waiter", daemon=True
            )
            self._thread.start()
        self._changed.notify()

    def discard(self, log: WatchedLog, pending: PendingFuture[int]) -> None:
        """Remove a future whose caller has stopped waiting."""
        with self._changed:
            waiting = self._wanted.get(log, {})
            waiting.pop(pending, None)
            if not waiting:
                self._wanted.pop(log, None)

    def seen(self, log: WatchedLog) -> None:
        """Resolve the futures for the events that a log has now."""
        with self._changed:
            waiting = self._wanted.get(log, {})
            due = [pending for pending, after in waiting.items() if log.last > after]
            for pending in due:
                del waiting[pending]
            if not waiting:
                self._wanted.pop(log, None)
        for pending in due:
            pending.resolve(log.last)

    def end(self) -> None:
        """Stop waiting, and wait for the thread."""
        with self._changed:
            self._ended = True
            thread = self._thread
            left = [pending for waiting in self._wanted.values() for pending in waiting]
            self._wanted.clear()
            self._changed.notify()
        for pending in left:
            pending.fail(self._closed())
        if thread is None or thread is threading.current_thread():
            return
        while thread.is_alive():
            self._leave()
            thread.join(0.05)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._wanted and not self._ended:
                    self._changed.wait()
                if self._ended:
                    return
                asked = {log: min(afters.values()) for log, afters in self._wanted.items()}
                self._asked = asked
            news = self._ask(asked)
            with self._changed:
                self._asked = None
            for log, last in news.items():
                log.last = max(log.last, last)
                self.seen(log)
