"""Our tools in every installed framework; `python -m tests.frameworks.run --make` installs them."""

from __future__ import annotations

import pytest

from tests.frameworks.run import FRAMEWORKS, Finding, examined, table


@pytest.mark.external
@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_our_tools_pass_in_the_framework(name: str) -> None:
    """Arguments, failures, progress, cancellation and policies work in each framework."""
    framework = FRAMEWORKS[name]
    if framework.missing is not None:
        pytest.skip(framework.missing)
    assert examined(framework).faults == []


def test_the_table_lists_failures() -> None:
    """A page that hides failures would be an advertisement."""
    checks = ("values", "structured", "bad_input", "failures", "generators", "cancel")
    good = {check: [["one", True, ""], ["two", None, "no place"]] for check in checks}
    bad = {**good, "progress": [["one", False, "nothing heard"]]}
    page = table([Finding("zeta", "2", good, None), Finding("alpha", "1", bad, good)])
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[-2].startswith("| alpha 1 | **1 of 1** / 1 of 1 |")
    assert rows[-2].endswith("| **0 of 1** |")
    assert rows[-1].startswith("| zeta 2 | **1 of 1** / — |")
    assert "- alpha: progress: one: nothing heard" in page
