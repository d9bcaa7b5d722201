"""Rounds of cases in turn, until the time is used: how races and kills are run."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from tests.soak.campaign import Budget, Figures, Finding, Outcome

__all__ = ["Case", "in_turn"]

Case = Callable[[Random], int]
"""Tries something with the choices given, and says how often; raises if it is broken."""

_SHOWN = 6_000


def in_turn(
    budget: Budget,
    cases: Mapping[str, Case],
    *,
    unit: str,
    again: Callable[[str, int], str],
    ends: type[Exception] | None = None,
) -> Outcome:
    """Run each case in turn, again and again, until the time is used.

    Args:
        budget: The time, and the seed.
        cases: The cases by name; one that has found something is not run again.
        unit: What they count.
        again: Gives the program that runs a case with a seed.
        ends: What ends all of it when a case raises it.
    """
    begun = time.monotonic()
    rounds: Counter[str] = Counter()
    tries: Counter[str] = Counter()
    findings: dict[str, Finding] = {}
    over = False
    while not over:
        number = max(rounds.values(), default=0)
        for name in [name for name in cases if name not in findings]:
            seed = budget.seed * 1_000_003 + number
            rounds[name] += 1
            try:
                tries[name] += cases[name](Random(seed))  # noqa: S311 - no secret
            except Exception as error:  # noqa: BLE001 - whatever it is has not held
                shown = "".join(traceback.format_exception(error))[-_SHOWN:]
                findings[name] = Finding(what=shown, where=name, reproduce=again(name, seed))
                over = ends is not None and isinstance(error, ends)
            over = over or time.monotonic() - begun > budget.seconds
            if over:
                break
        over = over or len(findings) == len(cases)
    figures: Figures = {
        name: f"{rounds[name]:,} rounds, {tries[name]:,} {unit}" for name in cases if rounds[name]
    }
    return Outcome(cases=sum(tries.values()), findings=list(findings.values()), figures=figures)
