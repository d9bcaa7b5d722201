"""Kills: programs end at random moments, and what was promised before holds after it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.soak._kill_kinds import KILLS, Kill
from tests.soak._rounds import in_turn
from tests.soak.campaign import Budget, Campaign, Outcome

__all__ = ["CAMPAIGN", "run"]


def run(budget: Budget, kills: Mapping[str, Kill] = KILLS) -> Outcome:
    """Kill programs of these kinds in turn until the budget is used."""
    return in_turn(budget, kills, unit="kills", again=_again)


def _again(name: str, seed: int) -> str:
    return (
        "python -c 'import random; from tests.soak._kill_kinds import KILLS; "
        f'KILLS["{name}"](random.Random({seed}))\''
    )


def _needs() -> str | None:
    return None if hasattr(os, "fork") else "the victims are made with fork"


CAMPAIGN = Campaign(
    name="kills",
    about=(
        "Writers, durable runs, servers, workers and programs with shells are killed at random "
        "moments: what was acknowledged is there, calls end as they should, no process is left."
    ),
    weight=2,
    run=run,
    needs=_needs,
)
