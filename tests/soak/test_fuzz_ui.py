"""The campaign of made-up requests finds nothing, and finds what was broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools.server import application as _application, run_manager as _runs
from tests.soak import fuzz_ui
from tests.soak._made_cases import Cases
from tests.soak.campaign import Budget

SHORT = Budget(seconds=2, seed=7)
LONG = Budget(seconds=10, seed=7)


@pytest.mark.requirement("S24", "S25")
def test_made_up_requests_are_answered() -> None:
    """No request is answered with a status from 500 on, or with the run of another user."""
    outcome = fuzz_ui.run(SHORT)

    assert outcome.findings == []
    assert outcome.cases > 50


def test_an_app_that_breaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is not the usual one is where apps have died."""

    def checking(text: str, *_limits: Any) -> None:
        if '"approved"' in text:
            raise LookupError("planted")

    monkeypatch.setattr(_application, "check_bounds", checking)

    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_ui.run(LONG).findings

    assert "500" in finding.what
    assert "sends MadeRequest(" in finding.reproduce


def test_a_run_that_others_can_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who knows the name of a run must not be told of it for that."""
    monkeypatch.setattr(_runs, "_may_see", lambda _run: True)

    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_ui.run(LONG).findings

    assert fuzz_ui.CANARY in finding.what
