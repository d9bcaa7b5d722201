"""Makes a tool of every function of the corpus and reports what became of them.

    python -m tests.corpus.run [--json] [GROUP ...]

The status is 1 when an exception other than `UserError` came out, when anything was warned about,
or when fewer than 98 of 100 documented parameters are described.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents_tools import UserError, function_tool
from tests.corpus.functions import GROUPS, functions
from tests.corpus.oracle import documented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["MINIMUM_SHARE", "Report", "main", "measure"]

MINIMUM_SHARE = 0.98
"""Of the parameters that a docstring describes, how many must be described in the schema."""


@dataclass(slots=True)
class Report:
    """What became of the functions of one group, or of all.

    Attributes:
        functions: How many were tried.
        built: How many became a tool with a schema.
        refused: How many were refused with a `UserError`, by reason.
        foreign: The functions that let another exception out, with the exception.
        warned: The functions that made anything warn, with the warning.
        documented: How many parameters of built tools the docstring describes, by the oracle.
        described: How many of those the schema describes: by a text, or by the type alone that
            the docstring gives to a parameter without an annotation.
        silent: The documented parameters that the schema says nothing about.
        unannotated: How many parameters of built tools have no annotation.
        typed: How many of those have a type in the schema, taken from the docstring.
    """

    functions: int = 0
    built: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    foreign: list[str] = field(default_factory=list[str])
    warned: list[str] = field(default_factory=list[str])
    documented: int = 0
    described: int = 0
    silent: list[str] = field(default_factory=list[str])
    unannotated: int = 0
    typed: int = 0

    @property
    def share(self) -> float:
        """The share of documented parameters that are described."""
        return self.described / self.documented if self.documented else 1.0

    @property
    def passed(self) -> bool:
        """Whether the promises hold."""
        return not self.foreign and not self.warned and self.share >= MINIMUM_SHARE

    def add(self, other: Report) -> None:
        """Count another report in."""
        for item in dataclasses.fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


def measure(corpus: Iterable[tuple[str, str, Callable[..., Any]]]) -> dict[str, Report]:
    """Make a tool of each function; report by group."""
    reports: dict[str, Report] = {}
    for group, name, function in corpus:
        report = reports.setdefault(group, Report())
        report.functions += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            schema = _schema(name, function, report)
        report.warned += [f"{name}: {warning.message}" for warning in caught]
        if schema is not None:
            report.built += 1
            _count_parameters(name, function, schema, report)
    return reports


def main(arguments: list[str] | None = None) -> int:
    """Run the corpus from the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    known = [group.name for group in GROUPS]
    parser.add_argument("group", nargs="*", choices=[*known, []], help="only these groups")
    options = parser.parse_args(arguments)
    reports = measure(functions(*options.group))
    total = Report()
    for report in reports.values():
        total.add(report)
    sys.stdout.write((_as_json if options.json else _as_text)(reports, total) + "\n")
    return 0 if total.passed else 1


def _schema(name: str, function: Callable[..., Any], report: Report) -> dict[str, Any] | None:
    try:
        return function_tool(function).params_json_schema
    except UserError as error:
        report.refused[_reason(str(error))] += 1
    except Exception as error:  # noqa: BLE001 - to be reported, whatever it is
        report.foreign.append(f"{name}: {type(error).__name__}: {error}")
    return None


def _reason(message: str) -> str:
    known = next((words for phrase, words in _REASONS.items() if phrase in message), None)
    return known or re.sub(r"'[^']*'|\([^()]*\)", "…", message)[:100]


_REASONS = {
    "generator function": "is a generator function (streaming_tool takes it)",
    "has no JSON form": "a parameter has a type without a JSON form",
    "cannot be resolved": "an annotation cannot be resolved",
    "cannot be read": "an annotation cannot be read",
    "no readable signature": "has no readable signature",
    "is a builtin": "has no readable signature",
}
_VARIADIC = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
_TYPE_KEYWORDS = {"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type"}


def _count_parameters(
    name: str, function: Callable[..., Any], schema: dict[str, Any], report: Report
) -> None:
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    parameters = {
        parameter.name: parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in properties and parameter.kind not in _VARIADIC
    }
    doc: object = function.__doc__
    typed: set[str] = set()
    for parameter in parameters.values():
        if parameter.annotation is parameter.empty:
            report.unannotated += 1
            if properties[parameter.name].keys() & _TYPE_KEYWORDS:
                typed.add(parameter.name)
    report.typed += len(typed)
    for parameter in sorted(documented(doc if isinstance(doc, str) else None, parameters)):
        report.documented += 1
        if "description" in properties[parameter] or parameter in typed:
            report.described += 1
        else:
            report.silent.append(f"{name}: {parameter}")


def _as_json(reports: dict[str, Report], total: Report) -> str:
    figures = {
        name: {item.name: getattr(report, item.name) for item in dataclasses.fields(report)}
        | {"share": round(report.share, 4)}
        for name, report in {**reports, "total": total}.items()
    }
    return json.dumps(figures, indent=2)


def _as_text(reports: dict[str, Report], total: Report) -> str:
    lines = [
        f"{'group':<17}{'functions':>10}{'built':>8}{'refused':>9}{'documented':>12}{'share':>8}"
    ]
    lines += [
        f"{name:<17}{report.functions:>10}{report.built:>8}{report.refused.total():>9}"
        f"{report.documented:>12}{report.share:>8.1%}"
        for name, report in {**reports, "all": total}.items()
    ]
    lines += ["", f"built                    {total.built} of {total.functions}"]
    lines += [f"refused with UserError   {total.refused.total()}"]
    lines += [f"  {count:>6}  {reason}" for reason, count in total.refused.most_common()]
    lines += [f"foreign exceptions       {len(total.foreign)}", *_shown(total.foreign)]
    lines += [f"warnings                 {len(total.warned)}", *_shown(total.warned)]
    lines += [
        f"documented parameters    {total.documented} ({total.share:.2%} described)",
        *_shown(total.silent),
        f"unannotated parameters   {total.unannotated}, typed by the docstring {total.typed}",
    ]
    return "\n".join(lines)


def _shown(names: list[str], limit: int = 20) -> list[str]:
    more = [f"          … and {len(names) - limit} more"] if len(names) > limit else []
    return [f"          {name}" for name in names[:limit]] + more


if __name__ == "__main__":
    sys.exit(main())
