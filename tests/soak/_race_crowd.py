"""Many at once: threads, some with an event loop of their own, that begin together and all end."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["WITHIN", "Crowd", "RaceError", "StuckError", "hold"]

WITHIN = 30.0
"""Seconds for an operation that takes far less than one; a longer wait is a lost wakeup."""


class RaceError(AssertionError):
    """Something did not hold while many were at it."""


class StuckError(RaceError):
    """Somebody waits for what never comes."""


def hold(holds: object, what: str) -> None:
    """Check a guarantee.

    Raises:
        RaceError: It is violated.
    """
    if not holds:
        raise RaceError(what)


class Crowd:
    """Those that are to begin together.

    Args:
        within: How many seconds all of them may take; `WITHIN` by default.
    """

    def __init__(self, within: float | None = None) -> None:
        self._within = within or WITHIN
        self._threads: list[threading.Thread] = []
        self._failed: list[str] = []
        self._start = threading.Barrier(1)

    def thread(self, work: Callable[[], object]) -> None:
        """Run a function in a thread without an event loop."""

        def run() -> None:
            try:
                self._start.wait(self._within)
                work()
            except BaseException:  # noqa: BLE001 - raised again after all have ended
                self._failed.append(traceback.format_exc())

        name = f"race {len(self._threads)}"
        self._threads.append(threading.Thread(target=run, name=name, daemon=True))

    def loop(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine function in a thread with an event loop of its own."""

        async def bounded() -> None:
            async with asyncio.timeout(self._within):
                await work()

        self.thread(lambda: asyncio.run(bounded()))

    def run(self) -> None:
        """Let all begin, and wait for their ends.

        Raises:
            RaceError: One of them has failed.
            StuckError: One of them does not end.
        """
        self._start = threading.Barrier(len(self._threads))
        for thread in self._threads:
            thread.start()
        until = time.monotonic() + self._within + 5
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if stuck := [thread for thread in self._threads if thread.is_alive()]:
            raise StuckError(f"{len(stuck)} do not end:\n{_stacks(stuck)}")
        if late := [text for text in self._failed if "TimeoutError" in text]:
            raise StuckError(f"{len(late)} waited for ever:\n{late[0]}")
        if self._failed:
            raise RaceError(f"{len(self._failed)} failed:\n{self._failed[0]}")


def _stacks(threads: list[threading.Thread]) -> str:
    frames = sys._current_frames()
    return "\n".join(
        "".join([f"{thread.name}:\n", *traceback.format_stack(frames[thread.ident])[-_FRAMES:]])
        for thread in threads[:3]
        if thread.ident in frames
    )


_FRAMES = 8
