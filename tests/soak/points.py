"""Faults at every await: what is cancelled, overtaken or struck at any point leaves nothing behind.

`python -m tests.soak.points CASE` plays one case again and shows what is wrong with it.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from tests.soak.campaign import Budget, Figures, Finding, Outcome
from tests.soak.points_calls import CALLS
from tests.soak.points_drive import Case
from tests.soak.points_far import FAR
from tests.soak.points_play import Played, play
from tests.soak.points_policies import POLICIES
from tests.soak.points_runs import RUNS
from tests.soak.points_served import SERVED
from tests.soak.points_stage import ANYWHERE, KINDS, Scenario
from tests.soak.points_streams import STREAMS

__all__ = ["SCENARIOS", "cases_of", "run_scenarios"]

SCENARIOS: list[Scenario] = [*CALLS, *POLICIES, *STREAMS, *RUNS, *SERVED, *FAR]

_AT_MOST = 3
"""How many cases of one scenario with the same broken promise are told."""


def run(budget: Budget) -> Outcome:
    """Play as many cases as there is time for."""
    return run_scenarios(SCENARIOS, budget)


def run_scenarios(scenarios: Sequence[Scenario], budget: Budget) -> Outcome:
    """Play cases of these scenarios, in turn, in an order that the seed gives."""
    until = time.monotonic() + budget.seconds
    chance = random.Random(budget.seed)  # noqa: S311 - chooses cases, hides nothing
    tally = Tally()
    findings: list[Finding] = []
    waiting = [
        (scenario, _cases(scenario, chance.getrandbits(64), tally)) for scenario in scenarios
    ]
    chance.shuffle(waiting)
    for number in count():
        if not waiting or time.monotonic() >= until:
            break
        for scenario, cases in list(waiting):
            if number % scenario.every or time.monotonic() >= until:
                continue
            found = next(cases, None)
            if found is None:
                waiting.remove((scenario, cases))
            else:
                findings += found
    gc.collect()
    return Outcome(cases=tally.cases, findings=findings, figures=tally.figures())


def _cases(scenario: Scenario, seed: int, tally: Tally) -> Iterator[list[Finding]]:
    """Play all cases of a scenario one by one, in an order of the seed's, and yield findings."""
    seen, faults = _counted(scenario)
    cases = list(cases_of(scenario, seen))
    tally.scenarios += 1
    tally.points += sum(seen.counts) + len(seen.places)
    tally.possible += len(cases)
    yield [_finding(scenario, None, fault) for fault in faults]
    random.Random(seed).shuffle(cases)  # noqa: S311 - as above
    for case in cases:
        yield list(tally.take(scenario, case, play(scenario, case)))


class Tally:
    """What was seen of the cases so far."""

    def __init__(self) -> None:
        self.scenarios = 0
        self.points = 0
        self.possible = 0
        self.cases = 0
        self.struck = 0
        self.broken = 0
        self.longest = 0.0
        self._told = Counter[tuple[str, str]]()

    def figures(self) -> Figures:
        """Return their figures."""
        return {
            "scenarios": self.scenarios,
            "points_seen": self.points,
            "cases_possible": self.possible,
            "cases_struck": self.struck,
            "cases_broken": self.broken,
            "longest_case_ms": round(1000 * self.longest),
        }

    def take(self, scenario: Scenario, case: Case, played: Played) -> Iterator[Finding]:
        """Count a case, and yield what is to be told of it."""
        self.cases += 1
        self.struck += played.struck
        self.broken += bool(played.faults)
        self.longest = max(self.longest, played.seconds)
        for fault in played.faults:
            kind = (scenario.name, fault.partition(":")[0])
            self._told[kind] += 1
            if self._told[kind] <= _AT_MOST:
                yield _finding(scenario, case, fault)


def _counted(scenario: Scenario) -> tuple[Played, list[str]]:
    """Play a scenario without a fault: once to have all loaded, and once to count."""
    play(scenario)
    seen = play(scenario)
    return seen, seen.faults


def cases_of(scenario: Scenario, seen: Played) -> Iterator[Case]:
    """Yield all cases of a scenario that has as many points as were seen."""
    name = scenario.name
    for at in range(1, seen.counts[0] + 1):
        for mode in ("deadline", "both", "all"):
            yield Case(name, mode, 0, at)
        for more in ("1", "2", "3"):
            yield Case(name, "twice", 0, at, more)
    for task, waits in enumerate(seen.counts):
        for at in range(1, waits + 1):
            yield Case(name, "rest", task, at)
            yield Case(name, "wake", task, at)
    for at, (_, body) in enumerate(seen.places, start=1):
        for kind in KINDS if body else ANYWHERE:
            yield Case(name, "error", 0, at, kind)


def _finding(scenario: Scenario, case: Case | None, fault: str) -> Finding:
    return Finding(
        what=fault,
        where=scenario.name if case is None else str(case),
        reproduce=f"python -m tests.soak.points '{scenario.name if case is None else case}'",
    )


def main(written: str) -> int:
    """Play the case that is written there, or all of the scenario of that name."""
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    if written in by_name:
        found = run_scenarios([by_name[written]], Budget(seconds=600, seed=1))
        lines = [f"{one.where}: {one.what}" for one in found.findings]
        sys.stdout.write(f"{found.figures}\n")
    else:
        case = Case.read(written)
        _counted(by_name[case.scenario])
        played = play(by_name[case.scenario], case)
        lines = played.faults
        sys.stdout.write(f"struck: {played.struck}, {played.seconds:.3f} s\n")
    sys.stdout.write("\n".join([*lines, "nothing is wrong" if not lines else ""]).strip() + "\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
