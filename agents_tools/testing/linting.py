"""Fail a test if the linter finds problems in tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.testing.fakes import listed
from agents_tools.toolset.lint.linter import lint_tools
from agents_tools.toolset.lint.tokens import DEFAULT_BUDGET
from agents_tools.wire.project import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agents_tools.toolset.lint.finding import Finding

__all__ = ["LintError", "assert_no_findings"]


class LintError(AssertionError):
    """The linter has found problems in tools.

    Attributes:
        findings: The problems.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        lines = [f"- {one.tool}: {one.message} [{one.code}]" for one in findings]
        super().__init__("\n".join([f"The linter has {len(findings)} finding(s):", *lines]))
        self.findings = tuple(findings)


def assert_no_findings(
    tools: object,
    *,
    providers: Sequence[str] = PROVIDERS,
    disable: Collection[str] = (),
    enable: Collection[str] = (),
    budget: int = DEFAULT_BUDGET,
) -> None:
    """Check that the linter finds nothing in tools, as `agents-tools check --strict` does.

    Args:
        tools: A tool, or tools.
        providers: The names of the providers that the tools are for.
        disable: The codes of rules to leave out.
        enable: The codes of rules to add that are off by default.
        budget: The tokens of one definition above which it is reported.

    Raises:
        LintError: A rule has found something.
        UserError: A code is unknown.
    """
    found = lint_tools(listed(tools), providers, disable=disable, enable=enable, budget=budget)
    if found:
        raise LintError(found)
