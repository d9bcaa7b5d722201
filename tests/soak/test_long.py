"""Every campaign at length: rare orders and small leaks need more cases than `make test` has time for."""

from __future__ import annotations

import sys

import pytest

from tests.soak.campaign import Budget
from tests.soak.report import CAMPAIGNS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_long_campaign_finds_nothing(name: str) -> None:
    """Each finding is a violated guarantee."""
    run, seconds, _ = CAMPAIGNS[name]
    outcome = run(Budget(seconds=seconds, seed=7))
    assert outcome.findings == []
    assert outcome.cases > 0
