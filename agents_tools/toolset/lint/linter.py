"""Check tools for what models, providers and clients will misunderstand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.errors import UserError, UserValueError
from agents_tools.toolset.lint.behavior import check_annotations
from agents_tools.toolset.lint.descriptions import check_descriptions, check_pedantic
from agents_tools.toolset.lint.early_results import check_early_results
from agents_tools.toolset.lint.finding import Finding, Subject
from agents_tools.toolset.lint.names import duplicate_names, overlaps, similar_names, vague_names
from agents_tools.toolset.lint.rules import RULES
from agents_tools.toolset.lint.schemas import check_providers, check_schema
from agents_tools.toolset.lint.tokens import DEFAULT_BUDGET, check_tokens
from agents_tools.toolset.lint.values import check_values
from agents_tools.wire.project import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from agents_tools.toolset.lint.finding import Level, Tool

__all__ = ["lint_tools", "selected_rules"]

_CHECKS: tuple[Callable[[Subject], Iterator[tuple[str, str]]], ...] = (
    check_descriptions,
    check_schema,
    check_values,
    check_annotations,
)
_COMPARISONS: Mapping[str, Callable[[Sequence[Subject]], Iterator[tuple[Subject, str]]]] = {
    "vague-name": vague_names,
    "similar-names": similar_names,
    "overlap": overlaps,
}
"""The checks that compare tools, by the code of their rule."""


def lint_tools(
    tools: Sequence[Tool],
    providers: Sequence[str] = PROVIDERS,
    *,
    disable: Collection[str] = (),
    enable: Collection[str] = (),
    budget: int = DEFAULT_BUDGET,
) -> list[Finding]:
    """Return the problems of tools, in the order of the tools.

    Args:
        tools: The tools.
        providers: The names of the providers that the tools are for.
        disable: The codes of rules to leave out.
        enable: The codes of rules to add that are off by default.
        budget: The tokens of one definition above which it is reported.

    Raises:
        UserError: A code is unknown.
    """
    rules = selected_rules(disable=disable, enable=enable)
    found: list[Finding] = []
    for tool, level, message in duplicate_names(tools):
        found.append(_finding(tool, "duplicate-name", message, level=level))
    subjects: list[Subject] = []
    for tool in tools:
        try:
            tool.build()
        except UserError as error:
            found.append(_finding(tool, "declaration", str(error)))
            continue
        subject = Subject(tool)
        subjects.append(subject)
        found.extend(_findings(subject, providers, budget, rules))
    for code, check in _COMPARISONS.items():
        if code in rules:
            found.extend(_finding(subject.tool, code, text) for subject, text in check(subjects))
    return [finding for finding in found if finding.code in rules]


def selected_rules(*, disable: Collection[str], enable: Collection[str]) -> frozenset[str]:
    """Return the codes of the rules that apply.

    Args:
        disable: The codes of rules to leave out.
        enable: The codes of rules to add that are off by default.

    Raises:
        UserError: A code is unknown.
    """
    for code in (*disable, *enable):
        if code not in RULES:
            raise UserValueError(
                f"The rule {code!r:.60} is unknown: expected one of {', '.join(RULES)}."
            )
    wanted = {rule.code for rule in RULES.values() if rule.default} | set(enable)
    return frozenset(wanted - set(disable))


def _findings(
    subject: Subject, providers: Sequence[str], budget: int, rules: Collection[str]
) -> Iterator[Finding]:
    for check in _CHECKS:
        for code, message in check(subject):
            yield _finding(subject.tool, code, message)
    for code, message in check_providers(subject, providers):
        yield _finding(subject.tool, code, message)
    for code, message in check_tokens(subject, budget):
        yield _finding(subject.tool, code, message)
    if any(not RULES[code].default for code in rules):
        for code, message in check_pedantic(subject):
            yield _finding(subject.tool, code, message)
    for code, message, place in check_early_results(subject):
        yield _finding(subject.tool, code, message, place=place)


def _finding(
    tool: Tool,
    code: str,
    message: str,
    *,
    level: Level | None = None,
    place: str | None = None,
) -> Finding:
    return Finding(
        level=level or RULES[code].level,
        code=code,
        tool=tool.name,
        message=message,
        place=place or tool.origin.place,
        server=tool.origin.server,
    )
