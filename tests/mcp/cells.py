"""A plugin of pytest that writes the outcomes of tests marked with `cell` to a file.

`python -m pytest -p tests.mcp.cells`, with the path of the file in `AGENTS_TOOLS_CELLS`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

__all__ = ["FILE", "pytest_runtest_logreport", "pytest_runtest_setup", "pytest_sessionfinish"]

FILE = "AGENTS_TOOLS_CELLS"
_outcomes: dict[str, list[list[str]]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Add the cells of a test to its report, also if the test is skipped."""
    item.user_properties += [("cell", list(mark.args)) for mark in item.iter_markers("cell")]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the cells of a test with its outcome: row, column, detail, outcome."""
    if report.when == "call" or not report.passed:
        _outcomes[report.nodeid] = [
            [*(*map(str, cell), "")[:3], report.outcome]
            for name, cell in report.user_properties
            if name == "cell" and isinstance(cell, list)
        ]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file."""
    if not hasattr(session.config, "workerinput"):
        Path(os.environ[FILE]).write_text(json.dumps(_outcomes), encoding="utf-8")
