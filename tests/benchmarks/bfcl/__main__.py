"""`python -m tests.benchmarks.bfcl`: send correct and broken calls, and count what happens."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema_rs import validator_for

from tests.benchmarks.bfcl import cases
from tests.benchmarks.bfcl.faults import KINDS
from tests.benchmarks.bfcl.judge import REPAIRABLE, Report, calls_of, judged
from tests.benchmarks.subjects import SUBJECTS, Subject
from tests.benchmarks.tables import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.benchmarks.bfcl.cases import Case
    from tests.benchmarks.bfcl.faults import Fault

LIBRARIES = ("agents-tools", "openai-agents", "pydantic-ai-slim", "langchain-core", "fastmcp")
SHOWN = 20
"""How many calls the report shows of those that miss one goal."""

Calls = list[tuple["Case", list["Fault"], list[dict[str, Any]]]]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bfcl")
    parser.add_argument("--subjects", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--details", action="store_true", help="a table of faults for each library")
    parser.add_argument("--report", type=Path, help="write refused gold calls and misses to a file")
    options = parser.parse_args()
    calls = _calls()
    reports: dict[str, Report] = {}
    for name in options.subjects:
        reports[name] = _measured(SUBJECTS[name], calls)
    print(summary(reports))
    if options.details:
        for name, report in reports.items():
            print(f"\n{name}:\n\n{_details(report)}")
    if options.report:
        lines = [line for name, one in reports.items() for line in _written(name, one)]
        options.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _calls() -> Calls:
    """Return the calls to send for each gold call of the data set."""
    cases.DATA_SET.install()
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    command = [str(cases.DATA_SET.python), "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    data = Path(done.stdout.strip()) / "bfcl_eval" / "data"
    return [
        (case, *calls_of(case, breakable=validator_for(case.schema).is_valid(case.arguments)))
        for case in cases.cases(data)
    ]


def _measured(subject: Subject, calls: Calls) -> Report:
    subject.install()
    print(f"Calling the tools of {subject.distribution} …", file=sys.stderr)
    tools = [{"name": case.tool, "schema": case.schema, "calls": sent} for case, _, sent in calls]
    done = subprocess.run(
        [str(subject.python), "-m", "tests.benchmarks.bfcl.worker", subject.distribution],
        input=json.dumps(tools),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **subject.environment},
    )
    answers = json.loads(done.stdout)["answers"]
    return judged(
        (case, found, given) for (case, found, _), given in zip(calls, answers, strict=True)
    )


def summary(reports: dict[str, Report]) -> str:
    """Lay the totals out, with a column for each library."""
    columns = [_totals(report) for report in reports.values()]
    rows = [[title, *(column[title] for column in columns)] for title in columns[0]]
    return markdown([cases.RELEASE, *reports], rows)


def _totals(report: Report) -> dict[str, str]:
    gold = report.gold
    broken, ran = report.broken.total(), report.ran.total()
    misspelled = report.broken["misspelled"]
    repairable = sum(report.broken[kind] for kind in REPAIRABLE)
    return {
        f"gold calls accepted, of {gold:,}": _share(gold - len(report.refused), gold),
        "the same, without the parameters that can be left out": _share(
            gold - len(report.least_refused), gold
        ),
        f"broken calls that ran, of {broken:,}": f"{ran:,}",
        "errors that name the place": _share(report.placed.total(), broken - ran),
        f"misspelled keys answered with the right one, of {misspelled:,}": _share(
            report.named.total(), misspelled
        ),
        f"calls repaired in one step, of {repairable:,}": _share(
            report.repaired.total(), repairable
        ),
    }


def _details(report: Report) -> str:
    """Lay the figures of one library out, with a row for each kind of fault."""
    rows = [
        [
            kind,
            f"{report.broken[kind]:,}",
            f"{report.ran[kind]:,}",
            _share(report.placed[kind], report.broken[kind] - report.ran[kind]),
            _share(report.named[kind], report.broken[kind]) if kind == "misspelled" else "",
            _share(report.repaired[kind], report.broken[kind]) if kind in REPAIRABLE else "",
        ]
        for kind in KINDS
    ]
    head = ["fault", "broken calls", "ran", "name the place", "right key", "repaired"]
    return markdown(head, rows)


def _share(part: int, whole: int) -> str:
    """Return a share in percent, rounded down, so that only all of them are 100 %."""
    return f"{part * 1000 // whole / 10:.1f} %" if whole else "none"


def _written(name: str, report: Report) -> Iterable[str]:
    yield f"# {name}: {len(report.refused):,} gold calls refused"
    for case, text in report.refused.items():
        hint = "" if case in report.least_refused else " (accepted without its optional parameters)"
        yield f"\n{case}{hint}\n{text}"
    for goal, calls in report.missed.items():
        yield f"\n# {name}: {goal}, missed by {len(calls):,} calls; the first:"
        for call in calls[:SHOWN]:
            yield f"\n{call}"


if __name__ == "__main__":
    main()
