"""Races: many threads and event loops use one thing at once, and each gets what is its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tests.soak._race_crowd import StuckError
from tests.soak._race_kinds import RACES, Race
from tests.soak._rounds import in_turn
from tests.soak.campaign import Budget, Outcome

__all__ = ["run"]

_INTERVAL = 1e-5
"""Seconds after which another thread has its turn: as often as Python can, to meet more orders."""


def run(budget: Budget, races: Mapping[str, Race] = RACES) -> Outcome:
    """Run these races in turn until the budget is used."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_INTERVAL)
    try:  # the threads of those that are stuck are still there: that ends it
        return in_turn(budget, races, unit="calls or events", again=_again, ends=StuckError)
    finally:
        sys.setswitchinterval(usual)


def _again(name: str, seed: int) -> str:
    return (
        "python -c 'import sys, random; from tests.soak._race_kinds import RACES; "
        f'sys.setswitchinterval({_INTERVAL}); [RACES["{name}"](random.Random({seed})) '
        "for _ in range(100)]'"
    )
