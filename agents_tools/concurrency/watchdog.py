"""Detection of code that blocks the event loop."""

from __future__ import annotations

import inspect
import logging
import sys
import threading
import traceback
import typing
from dataclasses import dataclass
from typing import Any, Self

from agents_tools.concurrency.future import call_on_loop
from agents_tools.errors import UserTypeError, UserValueError

if typing.TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["BlockedLoop", "watch_loop"]

_log = logging.getLogger("agents_tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedLoop:
    """A report that the event loop is blocked.

    Attributes:
        seconds: How long the loop has been blocked, in seconds.
        stack: The stack of its thread, as in a traceback, innermost frame last.
    """

    seconds: float
    stack: str


class watch_loop:  # noqa: N801 - used like a function: `async with watch_loop(): ...`
    """Watch the running event loop, and report code that blocks it.

    An `async def` tool that calls `time.sleep` or computes for long stops everything else on the
    loop, timeouts included. It cannot be interrupted, but the report shows its location.

    ```python
    async with watch_loop(limit=0.5):
        ...
    ```

    Args:
        limit: The time that the loop can be blocked without a report, in seconds.
        report: A sync function that is called with a `BlockedLoop` in the watching thread, once
            each time the loop is blocked. If it raises, the error is logged. By default a warning
            with the stack is logged.

    Raises:
        UserError: `limit` is not positive, or `report` is async.
    """

    def __init__(
        self, limit: float = 1.0, *, report: Callable[[BlockedLoop], Any] | None = None
    ) -> None:
        if not limit > 0:
            raise UserValueError(
                f"watch_loop(...) expects a positive number of seconds, got {limit!r}."
            )
        if inspect.iscoroutinefunction(report):
            raise UserTypeError(
                "watch_loop(report=...) expects a sync function, got an async one. It runs in a "
                "thread, because the event loop is blocked."
            )
        self._limit = limit
        self._report = report or _log_blocked
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> Self:
        """Start watching the running loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        self._stop.clear()
        self._thread = threading.Thread(
            target=self._watch,
            args=(loop, threading.get_ident()),
            name="agents_tools-watchdog",
            daemon=True,
        )
        self._thread.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop watching."""
        self._stop.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        while not self._stop.wait(self._limit / 4):
            answered = threading.Event()
            if not call_on_loop(loop, answered.set):
                return
            waited = 0.0
            while not answered.wait(self._limit) and not self._stop.is_set():
                waited += self._limit
                if waited == self._limit:
                    self._report_blocked(ident, waited)

    def _report_blocked(self, ident: int, seconds: float) -> None:
        frames = sys._current_frames()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public equivalent
        frame = frames.get(ident)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        try:
            self._report(BlockedLoop(seconds=seconds, stack=stack))
        except Exception:  # noqa: BLE001 - the thread must continue to watch
            _log.exception("The report= function of watch_loop(...) failed.")


def _log_blocked(blocked: BlockedLoop) -> None:
    _log.warning(
        "The event loop has not answered for %.1f seconds. Make the tool a plain `def`, which "
        "runs in a thread, or use an async library. It is blocked here:\n%s",
        blocked.seconds,
        blocked.stack,
    )
