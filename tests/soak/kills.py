"""Kills: programs end at random moments, and what was promised before holds after it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.soak._kill_kinds import KILLS, Kill
from tests.soak._rounds import in_turn
from tests.soak.campaign import Budget, Outcome

__all__ = ["run"]


def run(budget: Budget, kills: Mapping[str, Kill] = KILLS) -> Outcome:
    """Kill programs of these kinds in turn until the budget is used."""
    return in_turn(budget, kills, unit="kills", again=_again)


def _again(name: str, seed: int) -> str:
    return (
        "python -c 'import random; from tests.soak._kill_kinds import KILLS; "
        f'KILLS["{name}"](random.Random({seed}))\''
    )
