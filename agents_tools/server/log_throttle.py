"""Keep clients from filling the log of a server with messages that repeat."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable

__all__ = ["LogThrottle", "throttled_server_logs"]

_ACCEPT_FAILED = "socket.accept()"


class LogThrottle:
    """Counts messages by kind, and drops those beyond a number in a period.

    Args:
        limit: The number of messages of a kind that are logged in a period.
        period: The length of a period in seconds. It begins with the first message of the kind.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        *,
        limit: int = 20,
        period: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._period = period
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[Hashable, tuple[float, int]] = {}

    def admit(self, kind: Hashable) -> int | None:
        """Return the number of dropped messages to report, or `None` to drop this message too."""
        now = self._clock()
        with self._lock:
            begin, count = self._kinds.get(kind, (now, 0))
            dropped = 0
            if now - begin >= self._period:
                dropped = max(0, count - self._limit)
                begin, count = now, 0
            self._kinds[kind] = (begin, count + 1)
        return dropped if count < self._limit else None

    def note(self, kind: Hashable) -> str | None:
        """Return the note about dropped messages for the end of a message, or `None` to drop it."""
        dropped = self.admit(kind)
        if dropped is None:
            return None
        return f" ({dropped:,} similar messages were not logged.)" if dropped else ""


class _ThrottleFilter(logging.Filter):
    """Drops repeated messages about faulty requests and connections that cannot be accepted."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = LogThrottle()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        text = str(record.msg)
        is_of_client = record.name == "uvicorn.error" and record.levelno <= logging.WARNING
        if not is_of_client and not text.startswith(_ACCEPT_FAILED):
            return True
        note = self._throttle.note(text.partition("\n")[0])
        if note:
            record.msg = f"{text}{note}"
        return note is not None


@contextlib.contextmanager
def throttled_server_logs() -> Generator[None]:
    """Throttle the messages that a client can cause in the logs of uvicorn and asyncio."""
    throttle = _ThrottleFilter()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for one in loggers:
        one.addFilter(throttle)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(throttle)
