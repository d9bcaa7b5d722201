"""The cost of a piece of work, in units that the machine itself sets.

Seconds say nothing on a machine that is slow, shared or busy. What is counted is the processor time
of this thread, in runs of a loop that is measured on the same machine right after it, and without
the garbage of the tests before it.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_ROUNDS = 3


@contextmanager
def at_most(units: int) -> Generator[None]:
    """Fail when the block costs more than this many units; one is about 10 ms of a fast machine.

    The bounds are far above what the work costs, and far below what it costs when its time grows
    faster than its input.
    """
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        begun = time.thread_time()
        yield
        took = time.thread_time() - begun
        unit = min(_unit() for _ in range(_ROUNDS))
    finally:
        if collects:
            gc.enable()
    assert took <= units * unit, f"it took {took / unit:.0f} units, not {units} at most"


def _unit() -> float:
    begun = time.thread_time()
    total = 0
    for number in range(200_000):
        total += number
    return time.thread_time() - begun
