"""`python -m tests.soak`: run the campaigns, print a table, end with 1 when one found something."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.soak._process import Ran, run
from tests.soak._report import PAGE, as_json, row, written
from tests.soak.campaign import Budget, Campaign, Outcome, find, names

if TYPE_CHECKING:
    from collections.abc import Sequence

_MINUTES = 10.0
_SEED = 1


def main(args: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; give the exit code."""
    options = _options(args)
    if options.write and options.only:
        sys.stderr.write("--write puts the figures of all campaigns into the page: drop --only.\n")
        return 2
    campaigns = find(options.only)
    if options.list:
        _say(*(f"{one.name:<20} {one.about}" for one in campaigns))
        return 0
    _say(row("campaign", "cases", "seconds", "findings"))
    share = 60 * options.minutes / (sum(one.weight for one in campaigns) or 1)
    ran: list[Ran] = []
    for campaign in campaigns:
        seconds = options.seconds or round(share * campaign.weight, 1)
        ran += _run(campaign, Budget(seconds=seconds, seed=options.seed))
    _tell(ran, options.seed, options.json, write=options.write)
    return 1 if any(one.outcome.findings for one in ran) else 0


def _run(campaign: Campaign, budget: Budget) -> list[Ran]:
    reason = campaign.needs()
    if reason is not None:
        _say(row(campaign.name, "-", "-", "-") + f"  skipped: {reason}")
        return []
    ran = run(campaign, budget)
    outcome = ran.outcome
    _say(row(campaign.name, f"{outcome.cases:,}", ran.seconds, len(outcome.findings)))
    return [ran]


def _tell(ran: list[Ran], seed: int, to: Path | None, *, write: bool) -> None:
    for one in ran:
        _say_figures(one.campaign.name, one.outcome)
    for one in ran:
        _say_findings(one.outcome)
    told = as_json(ran, seed)
    if to is not None:
        to.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), told), encoding="utf-8")


def _say_figures(name: str, outcome: Outcome) -> None:
    _say("", name, *(f"  {figure}: {value}" for figure, value in outcome.figures.items()))


def _say_findings(outcome: Outcome) -> None:
    for finding in outcome.findings:
        _say("", f"FOUND {finding.where}: {finding.what}", f"  again: {finding.reproduce}")


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _options(args: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="time of all campaigns")
    parser.add_argument("--only", nargs="+", choices=names(), default=[], help="these alone")
    parser.add_argument("--seconds", type=float, help="time of each campaign, in place of shares")
    parser.add_argument("--seed", type=int, default=_SEED, help="of all choices")
    parser.add_argument("--list", action="store_true", help="name the campaigns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was seen there")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    return parser.parse_args(args)


if __name__ == "__main__":
    sys.exit(main())
