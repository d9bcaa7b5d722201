"""The timeouts of the requests on one connection, with one timer of the event loop for all."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from typing import Any

__all__ = ["RequestTimeout", "RequestTimeouts"]


class RequestTimeouts:
    """Ends requests that take too long.

    Nearly every request ends long before its timeout, so a timer for each one, as
    `asyncio.timeout` has, is set in vain. Here one timer is set for the earliest timeout. When it
    fires, it is set again for the earliest one of the requests that are then in flight.
    """

    def __init__(self) -> None:
        self._running: set[RequestTimeout] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, timeout: RequestTimeout) -> None:
        """Watch a request that begins."""
        self._running.add(timeout)
        self.schedule(timeout.when)

    def remove(self, timeout: RequestTimeout) -> None:
        """Stop watching a request."""
        self._running.discard(timeout)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """Cancel the timer as soon as no request is in flight, so that it does not outlive this."""
        self._is_closed = True
        if self._timer is not None and not self._running:
            self._timer.cancel()
            self._timer = None

    def schedule(self, when: float) -> None:
        """Set the timer, unless it fires before that time."""
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        # An empty context: the timer can outlive the call that sets it.
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(when, self._end_late_requests, context=Context())

    def _end_late_requests(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for timeout in [one for one in self._running if one.when <= now]:
            self._running.discard(timeout)
            timeout.expire()
        if self._running:
            self.schedule(min(one.when for one in self._running))


class RequestTimeout:
    """The timeout of one request, a context manager like `asyncio.timeout_at`.

    Args:
        owner: The timeouts of the connection.
        when: The time of the event loop at which the block ends with `TimeoutError`.

    Attributes:
        when: That time.
        expired: Whether it has come.
    """

    __slots__ = ("_before", "_context", "_owner", "_task", "expired", "when")

    def __init__(self, owner: RequestTimeouts, when: float) -> None:
        self.when = when
        self.expired = False
        self._owner = owner
        # The task is cancelled in this context, by which `drive` knows that it is a timeout of
        # the call itself.
        self._context = copy_context()
        task: Any = asyncio.current_task()
        self._task: Any = task
        self._before: int = task.cancelling()

    def reschedule(self, when: float) -> None:
        """Change the time, unless it has come."""
        if not self.expired:
            self.when = when
            self._owner.schedule(when)

    def expire(self) -> None:
        """Cancel the task of the request."""
        self.expired = True
        self._context.run(self._task.cancel)

    def __enter__(self) -> None:
        self._owner.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        self._owner.remove(self)
        task, self._task = self._task, None  # an error must not keep the task
        if self.expired and task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error
