"""Every campaign at length: rare orders and small leaks need more cases than `make test` has time for."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.soak import (
    fuzz_arguments,
    fuzz_mcp,
    fuzz_records,
    fuzz_schemas,
    fuzz_ui,
    kills,
    leaks,
    points,
    races,
)
from tests.soak.campaign import Budget, Outcome

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

CAMPAIGNS: dict[str, tuple[Callable[[Budget], Outcome], float]] = {
    "arguments": (fuzz_arguments.run, 40),
    "mcp": (fuzz_mcp.run, 40),
    "records": (fuzz_records.run, 20),
    "schemas": (fuzz_schemas.run, 40),
    "requests": (fuzz_ui.run, 40),
    "kills": (kills.run, 40),
    "leaks": (leaks.measure, 120),
    "points": (points.run, 60),
    "races": (races.run, 60),
}
"""The campaigns, each with its time in seconds."""


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_long_campaign_finds_nothing(name: str) -> None:
    """Each finding is a violated guarantee."""
    run, seconds = CAMPAIGNS[name]
    outcome = run(Budget(seconds=seconds, seed=7))
    assert outcome.findings == []
    assert outcome.cases > 0
