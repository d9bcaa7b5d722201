"""Waiting for new events of several logs at once, in one thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.concurrency.future import PendingFuture

__all__ = ["LogWaiter", "WatchedLog"]


class WatchedLog(Protocol):
    """A log, as far as whoever waits has to know it."""

    last: int


class LogWaiter:
    """Holds who waits, and asks for all of them at once while somebody does.

    Args:
        ask: Waits a while for a log to have an event beyond the id that stands beside it, and
            gives the logs that have, with their newest ids. It ends early after `wake`, and when
            it is told to `leave`.
        wake: Ends what `ask` is doing now or does next; never waits.
        leave: Ends what `ask` is doing for good.
        closed: Returns the error for those who wait at the end.
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
        """Let somebody wait for an event of a log with a greater id."""
        with self._changed:
            ended = self._ended
            if not ended:
                self._expect(log, pending, after)
            asked = self._asked
        if ended:
            pending.fail(self._closed())
            return
        self.seen(log)  # it may have come meanwhile
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
        """Forget somebody who has given up."""
        with self._changed:
            waiting = self._wanted.get(log, {})
            waiting.pop(pending, None)
            if not waiting:
                self._wanted.pop(log, None)

    def seen(self, log: WatchedLog) -> None:
        """Tell those who waited for what a log has now."""
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
