"""Counts of what a library did with correct and with broken calls."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.benchmarks.bfcl.faults import Fault, faults

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.benchmarks.bfcl.cases import Case
    from tests.benchmarks.bfcl.worker import Answer

__all__ = ["REPAIRABLE", "Report", "calls_of", "judged"]

REPAIRABLE = ("enum", "extra", "misspelled")
"""Faults whose error can hold all that is needed to repair the call."""


@dataclass(slots=True)
class Report:
    """What one library did.

    Attributes:
        gold: The gold calls.
        refused: The gold calls that did not run, with the text of the error.
        least_refused: The same for the gold calls with the least arguments.
        broken: The broken calls of each kind of fault.
        ran: Those that ran.
        placed: Those whose error names the place.
        named: Those whose error pairs the misspelled key with the right one.
        repaired: Those that the fixer repaired in one step.
        missed: For each goal, the calls that miss it, with the text of the error.
    """

    gold: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])
    least_refused: dict[str, str] = field(default_factory=dict[str, str])
    broken: Counter[str] = field(default_factory=Counter[str])
    ran: Counter[str] = field(default_factory=Counter[str])
    placed: Counter[str] = field(default_factory=Counter[str])
    named: Counter[str] = field(default_factory=Counter[str])
    repaired: Counter[str] = field(default_factory=Counter[str])
    missed: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def calls_of(case: Case, *, breakable: bool) -> tuple[list[Fault], list[dict[str, Any]]]:
    """Return the faults of a case, and the arguments of its calls: those of the gold call are first.

    Args:
        case: The gold call.
        breakable: Whether it matches its schema, so that a fault alone makes it wrong.
    """
    found = list(faults(case)) if breakable else []
    return found, [case.arguments, case.least, *(fault.arguments for fault in found)]


def judged(answered: Iterable[tuple[Case, list[Fault], list[Answer]]]) -> Report:
    """Count what a library did with the calls of `calls_of`."""
    report = Report()
    for case, found, (gold, least, *broken) in answered:
        report.gold += 1
        if not gold["ran"]:
            report.refused[case.id] = gold["text"]
        if not least["ran"]:
            report.least_refused[case.id] = least["text"]
        for fault, answer in zip(found, broken, strict=True):
            _count(report, case, fault, answer)
    return report


def _count(report: Report, case: Case, fault: Fault, answer: Answer) -> None:
    kind = fault.kind
    report.broken[kind] += 1
    checks = [
        ("refused", not answer["ran"], Counter[str]()),
        ("place", _names_place(answer["text"], fault), report.placed),
    ]
    if answer["ran"]:
        report.ran[kind] += 1
        checks = checks[:1]
    if kind == "misspelled":
        checks.append(("right name", _pairs(answer, case, fault), report.named))
    if kind in REPAIRABLE:
        checks.append(("repair", _is_repaired(answer, case, fault), report.repaired))
    for goal, is_met, counts in checks:
        counts[kind] += is_met
        if not is_met:
            call = f"{case.id} {list(fault.path)} {json.dumps(fault.arguments, ensure_ascii=False)}"
            report.missed.setdefault(f"{kind}: {goal}", []).append(f"{call}\n{answer['text']}")


def _names_place(text: str, fault: Fault) -> bool:
    keys = [fault.key, fault.right] if fault.kind == "misspelled" else [fault.key]
    return any(_names(text, key) for key in keys)


def _names(text: str, key: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text) is not None


def _pairs(answer: Answer, case: Case, fault: Fault) -> bool:
    """Return whether a line pairs the misspelled key with the right one and with no other key."""
    if answer["ran"]:
        return False
    schema = case.schema
    for step in fault.path[:-1]:
        schema = schema["items"] if isinstance(step, int) else schema["properties"][step]
    around = {str(step) for step in fault.path}
    others = schema["properties"].keys() - around - {fault.right}
    return any(
        _names(line, fault.key)
        and _names(line, fault.right)
        and not any(_names(line, other) for other in others)
        for line in answer["text"].splitlines()
    )


def _is_repaired(answer: Answer, case: Case, fault: Fault) -> bool:
    repaired = answer["repaired"]
    if repaired is None or fault.kind != "enum" or fault.right:
        return repaired == case.arguments
    holder: Any = repaired
    wanted: Any = case.arguments
    for step in fault.path[:-1]:
        holder, wanted = holder[step], wanted[step]
    holder[fault.path[-1]] = wanted[fault.path[-1]]  # any value of the enumeration will do
    return repaired == case.arguments
