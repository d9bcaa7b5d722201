"""Wait for changes in another process, thread or task that sends no notification."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

BOUND = 30.0
"""Seconds: far more than what is waited for takes on a machine that is busy."""
TURNS = 100
PAUSE = 0.005


def until(condition: Callable[[], object], *, within: float = BOUND) -> None:
    """Wait until something is so in another process: a file that it writes, its own end.

    There is no notification, so the condition is polled, within a bound.
    """
    latest = time.monotonic() + within
    while not condition():
        assert time.monotonic() < latest, "it has not come within the bound"
        time.sleep(0.01)


async def comes(condition: Callable[[], object], *, within: float = BOUND) -> None:
    """Wait as `until` does while the event loop goes on: first a few of its turns, then pauses."""
    turns = 0
    async with asyncio.timeout(within):
        while not condition():
            turns += 1
            await asyncio.sleep(0 if turns < TURNS else PAUSE)
