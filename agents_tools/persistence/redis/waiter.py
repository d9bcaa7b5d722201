"""Wait for new events of several logs in one thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.concurrency.future import PendingFuture

__all__ = ["LogWaiter", "WatchedLog"]


class WatchedLog(Protocol):
    """A log with the id of its last event."""

    last: int


class LogWaiter:
    """Holds the waiting futures, and polls all their logs at once while there are any.

    Args:
        poll: Waits a limited time for an event of a log with a larger id than its value in the
            mapping. Returns the logs that have one, with their newest ids.
        wake: Ends the current or the next call of `poll`. It never blocks.
        stop: Ends the current call of `poll`, when the store is closed.
        closed_error: Returns the error for the futures that still wait at the end.
    """

    def __init__(
        self,
        poll: Callable[[Mapping[WatchedLog, int]], Mapping[WatchedLog, int]],
        wake: Callable[[], object],
        stop: Callable[[], object],
        closed_error: Callable[[], Exception],
    ) -> None:
        self._poll = poll
        self._wake = wake
        self._stop = stop
        self._closed_error = closed_error
        self._waiting: dict[WatchedLog, dict[PendingFuture[int], int]] = {}
        self._polled: Mapping[WatchedLog, int] | None = None
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False

    def add(self, log: WatchedLog, pending: PendingFuture[int], after: int) -> None:
        """Resolve a future when the log has an event with a larger id."""
        with self._condition:
            ended = self._ended
            if not ended:
                self._register(log, pending, after)
            polled = self._polled
        if ended:
            pending.fail(self._closed_error())
            return
        self.notify(log)  # the event can have come meanwhile
        if polled is not None and (log not in polled or polled[log] > after):
            self._wake()

    def _register(self, log: WatchedLog, pending: PendingFuture[int], after: int) -> None:
        self._waiting.setdefault(log, {})[pending] = after
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="agents-tools-redis-waiter", daemon=True
            )
            self._thread.start()
        self._condition.notify()

    def discard(self, log: WatchedLog, pending: PendingFuture[int]) -> None:
        """Remove a future that was cancelled."""
        with self._condition:
            waiting = self._waiting.get(log, {})
            waiting.pop(pending, None)
            if not waiting:
                self._waiting.pop(log, None)

    def notify(self, log: WatchedLog) -> None:
        """Resolve the futures that wait for events up to the last id of a log."""
        with self._condition:
            waiting = self._waiting.get(log, {})
            due = [pending for pending, after in waiting.items() if log.last > after]
            for pending in due:
                del waiting[pending]
            if not waiting:
                self._waiting.pop(log, None)
        for pending in due:
            pending.resolve(log.last)

    def end(self) -> None:
        """Fail the waiting futures and wait for the thread."""
        with self._condition:
            self._ended = True
            thread = self._thread
            left = [pending for waiting in self._waiting.values() for pending in waiting]
            self._waiting.clear()
            self._condition.notify()
        for pending in left:
            pending.fail(self._closed_error())
        if thread is None or thread is threading.current_thread():
            return
        while thread.is_alive():
            self._stop()
            thread.join(0.05)

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._waiting and not self._ended:
                    self._condition.wait()
                if self._ended:
                    return
                polled = {log: min(afters.values()) for log, afters in self._waiting.items()}
                self._polled = polled
            news = self._poll(polled)
            with self._condition:
                self._polled = None
            for log, last in news.items():
                log.last = max(log.last, last)
                self.notify(log)
