"""`python -m tests.mutation`: tries mutants of modules, and prints what became of them."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.mutation.judge import Judge, Order, Verdict, named
from tests.mutation.selection import APART, tests_of

_ROOT = Path(__file__).resolve().parents[2]
_BEGIN, _END = "<!-- mutants -->", "<!-- end of mutants -->"
_EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants that the arguments ask for; give 1 when some survived."""
    asked = _parser().parse_args(arguments)
    tests = asked.tests or tests_of(asked.module)
    order = Order(
        modules=tuple(asked.module),
        sample=asked.sample,
        seed=asked.seed,
        seconds=asked.seconds,
        within=asked.within,
        only=frozenset(asked.only),
        equivalent=frozenset() if asked.equivalents else read_equivalents(),
    )
    verdicts: list[Verdict] = []

    def said(verdict: Verdict) -> None:
        verdicts.append(verdict)
        if verdict.outcome in asked.show:
            print(line_of(verdict), flush=True)  # noqa: T201

    judge = Judge(order, said)
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += [
        "--inline-snapshot=disable",
        f"--rootdir={_ROOT}",
        f"-c{_ROOT / 'pyproject.toml'}",
        *(f"--deselect={test}" for test in APART),
        *tests,
    ]
    code = pytest.main(options, plugins=[judge])
    if code and not verdicts:
        return int(code)
    print(table(verdicts, judge.lost))  # noqa: T201
    if asked.write is not None:
        write(asked.write, verdicts)
    return int(any(verdict.outcome == "survived" for verdict in verdicts))


def read_equivalents(file: Path = _EQUIVALENT) -> frozenset[tuple[str, str, str]]:
    """Read the changes that mean the same."""
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("equivalent", [])
    return frozenset((entry["file"], entry["where"], entry["change"]) for entry in entries)


def line_of(verdict: Verdict) -> str:
    """Say one verdict in a line."""
    mutant = verdict.mutant
    place = f"{named(mutant.file)}:{mutant.line}"
    return f"{verdict.outcome:9} {place} {mutant.qualname} | {mutant.change} | {verdict.detail}"


def table(verdicts: list[Verdict], lost: list[str]) -> str:
    """Sum up by module; the score is the share of the tried mutants that some test saw."""
    sums = _sums(verdicts)
    heads = ("killed", "timeout", "survived", "equivalent", "unreached", "error")
    lines = ["", f"{'module':40} {'mutants':>8} " + " ".join(f"{h:>10}" for h in heads) + "  score"]
    for name, counts in sums.items():
        score = f"{_score(counts):5.1f} %" if _tried(counts) else "  -"
        cells = " ".join(f"{counts[h]:>10}" for h in heads)
        lines.append(f"{name:40} {counts.total():>8} {cells}  {score}")
    lines += [f"left out, it fails by itself: {test}" for test in lost]
    return "\n".join(lines)


def write(page: Path, verdicts: list[Verdict]) -> None:
    """Put the sums between the markers of a page.

    Raises:
        SystemExit: The page has no such markers.
    """
    before, found, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not (found and ended):
        raise SystemExit(f"{page} has no lines {_BEGIN} and {_END}")
    sums = _sums(verdicts)
    rows = [f"| `{name}` | {_cells(counts)} |" for name, counts in sums.items()]
    total = sum(sums.values(), Counter[str]())
    head = ["| module | tried | seen | not seen | score |", "|---|---:|---:|---:|---:|"]
    lines = [_BEGIN, "", *head, *rows, f"| together | {_cells(total)} |", "", _END]
    page.write_text(before + "\n".join(lines) + after, encoding="utf-8")


def _cells(counts: Counter[str]) -> str:
    score = f"{_score(counts):.0f} %" if _tried(counts) else ""
    return f"{_tried(counts)} | {_seen(counts)} | {counts['survived']} | {score}"


def _sums(verdicts: list[Verdict]) -> dict[str, Counter[str]]:
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        sums[named(verdict.mutant.file)][verdict.outcome] += 1
    return sums


def _seen(counts: Counter[str]) -> int:
    return counts["killed"] + counts["timeout"]


def _tried(counts: Counter[str]) -> int:
    return _seen(counts) + counts["survived"]


def _score(counts: Counter[str]) -> float:
    return 100 * _seen(counts) / _tried(counts)


def _place(text: str) -> tuple[str, int]:
    file, _, line = text.rpartition(":")
    return file, int(line)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", action="append", required=True, help="dotted name; repeatable")
    parser.add_argument("--tests", action="append", help="test files; else the module's own")
    parser.add_argument("--sample", type=int, help="so many mutants of each module; else all")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--seconds", type=float, default=10.0, help="of tests for each mutant")
    parser.add_argument("--within", default="", help="only functions whose name contains this")
    parser.add_argument(
        "--only", action="append", default=[], type=_place, metavar="FILE:LINE", help="repeatable"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    parser.add_argument("--equivalents", action="store_true", help="try the equivalent ones too")
    parser.add_argument("--show", action="append", help="outcomes to print; else survived, timeout")
    parser.set_defaults(show=["survived", "timeout", "unreached", "error"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
