"""The cost of a piece of work, in units that the machine itself sets.

Seconds say nothing on a machine that is slow, shared or busy. What is counted is the processor time
of this thread, in runs of a loop that is measured on the same machine right after it, and without
garbage collection.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_ROUNDS = 3
_STEPS = 200_000
"""The length of the loop that takes one unit."""
_SAMPLE = 20
"""A loop of this part of a unit is enough to see that a block is far below its bound."""


@contextmanager
def at_most(units: int) -> Generator[None]:
    """Fail when the block costs more than this many units; one is about 10 ms of a fast machine.

    The bounds are far above what the work costs, and far below what it costs when its time grows
    faster than its input.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        begun = time.thread_time()
        yield
        took = time.thread_time() - begun
        if took <= units * _SAMPLE * _time_of(_STEPS // _SAMPLE) / 2:
            return
        unit = min(_time_of(_STEPS) for _ in range(_ROUNDS))
    finally:
        if collects:
            gc.enable()
    assert took <= units * unit, f"it took {took / unit:.0f} units, not {units} at most"


def _time_of(steps: int) -> float:
    begun = time.thread_time()
    total = 0
    for number in range(steps):
        total += number
    return time.thread_time() - begun
