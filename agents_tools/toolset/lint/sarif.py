"""Findings in the Static Analysis Results Interchange Format, which code review tools show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools._package import __version__
from agents_tools.toolset.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.toolset.lint.finding import Finding

__all__ = ["to_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PLACE = re.compile(r"(.+):(\d+)")


def to_sarif(findings: Sequence[Finding], target: str) -> dict[str, Any]:
    """Return findings as a SARIF 2.1.0 log.

    Args:
        findings: The findings.
        target: What was checked; the place of findings without a file.
    """
    codes = list(RULES)
    rules = [
        {
            "id": rule.code,
            "shortDescription": {"text": rule.summary},
            "help": {"text": f"{rule.remedy} See {rule.anchor} in the documentation."},
            "defaultConfiguration": {"level": rule.level, "enabled": rule.default},
        }
        for rule in RULES.values()
    ]
    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": finding.level,
            "message": {"text": f"{finding.tool}: {finding.message}"},
            "locations": [_location(finding, target)],
        }
        for finding in findings
    ]
    driver = {"name": "agents-tools", "version": __version__, "rules": rules}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _location(finding: Finding, target: str) -> dict[str, Any]:
    logical = ".".join(filter(None, (finding.server, finding.tool)))
    names = [{"fullyQualifiedName": logical, "kind": "function"}]
    place = _PLACE.fullmatch(finding.place or "")
    file = place[1] if place else finding.place or target
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if place:
        physical["region"] = {"startLine": max(1, int(place[2]))}
    return {"physicalLocation": physical, "logicalLocations": names}


def _uri(file: str) -> str:
    """Return a path relative to the current folder where it can be, with forward slashes."""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return file if "://" in file else path.as_uri() if path.is_absolute() else path.as_posix()
