"""`python -m tests.soak.report`: run every campaign at length, and print a table of the results.

The campaigns need `/proc`. A PostgreSQL server is started where its programs are installed.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from time import monotonic
from typing import TypeAlias

from tests.benchmarks.tables import markdown
from tests.durable.kills import kill_many, victims
from tests.durable.postgres import postgres, why_not
from tests.durable.victim import store_of
from tests.soak import (
    fuzz_arguments,
    fuzz_mcp,
    fuzz_records,
    fuzz_schemas,
    fuzz_ui,
    kills,
    leaks,
    points,
    races,
)
from tests.soak.campaign import Budget, Outcome

__all__ = ["CAMPAIGNS"]

Campaign: TypeAlias = Callable[[Budget], Outcome]

CAMPAIGNS: dict[str, tuple[Campaign, float, str]] = {
    "arguments": (fuzz_arguments.run, 40, "fuzzing: calls with generated arguments"),
    "mcp": (fuzz_mcp.run, 40, "fuzzing: MCP messages on stdio and HTTP"),
    "records": (fuzz_records.run, 20, "fuzzing: stored records and configuration files"),
    "schemas": (fuzz_schemas.run, 40, "fuzzing: signatures, docstrings and raw schemas"),
    "requests": (fuzz_ui.run, 40, "fuzzing: requests to the web endpoints"),
    "kills": (kills.run, 40, "kills of writers of events and of tools with processes"),
    "leaks": (leaks.measure, 120, "leaks: calls, runs, connections"),
    "points": (points.run, 60, "faults at every await: cancellations, deadlines, exceptions"),
    "races": (races.run, 60, "races: rounds of threads and event loops"),
}
"""The campaigns, each with its time in seconds and its title."""
KILLS = 200
RUNS = 20


def main() -> None:
    """Run all campaigns, and print the table; the exit status is 1 if one found something."""
    logging.lastResort = None  # the warnings that the campaigns provoke
    rows: list[list[str]] = []
    for run, seconds, title in CAMPAIGNS.values():
        print(f"Running {title} …", file=sys.stderr)
        begun = monotonic()
        outcome = run(Budget(seconds=seconds, seed=7))
        rows.append(_row(title, outcome.cases, len(outcome.findings), monotonic() - begun))
        for found in outcome.findings:
            print(f"{found.where}: {found.what}\n  {found.reproduce}", file=sys.stderr)
    rows.extend(_stores())
    print(markdown(["", "cases", "violations", "time"], rows))
    sys.exit(any(row[2] != "0" for row in rows))


def _stores() -> Iterator[list[str]]:
    """Kill processes with durable runs at random moments, with each store that can be started."""
    with tempfile.TemporaryDirectory() as place:
        yield _killed_runs("SQLite", f"sqlite:{Path(place, 'runs.db')}", Path(place, "sqlite"))
        if why_not():
            print(f"Without PostgreSQL: {why_not()}", file=sys.stderr)
            return
        with postgres() as url:
            yield _killed_runs("PostgreSQL", url, Path(place, "postgres"))


def _killed_runs(name: str, address: str, folder: Path) -> list[str]:
    title = f"kills of processes with {RUNS} runs, {name}"
    print(f"Running {title} …", file=sys.stderr)
    folder.mkdir()
    begun = monotonic()
    chance = Random(KILLS)  # noqa: S311 - chooses moments
    with victims() as program, store_of(address) as store:
        # It raises an AssertionError at the first run that is not as it must be.
        kill_many(program, address, folder, store, chance, rounds=KILLS, runs=RUNS)
    return _row(title, KILLS, 0, monotonic() - begun)


def _row(title: str, cases: int, found: int, seconds: float) -> list[str]:
    return [title, f"{cases:,}", str(found), f"{seconds:.0f} s"]


if __name__ == "__main__":
    main()
