"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

BOUND = 10.0


def until(condition: Callable[[], object], *, within: float = BOUND) -> None:
    """Wait until something is so in another process: a file that it writes, its own end.

    Nothing of that is told here, so it has to be looked at, again and again within a bound.
    """
    latest = time.monotonic() + within
    while not condition():
        assert time.monotonic() < latest, "it has not come within the bound"
        time.sleep(0.01)
