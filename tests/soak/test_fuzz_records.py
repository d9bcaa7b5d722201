"""The campaign of damaged records finds nothing, and finds what was broken on purpose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents_tools import Usage
from agents_tools.agents import RunState
from agents_tools.mcp import pins
from tests.soak import fuzz_records
from tests.soak._made_cases import Cases
from tests.soak.campaign import Budget

SHORT = Budget(seconds=2, seed=7)


@pytest.mark.requirement("S31", "S25")
def test_damaged_records_are_read_or_refused_in_words() -> None:
    """Stores, files and other machines give anything; what is read can be written again."""
    outcome = fuzz_records.run(SHORT)

    assert outcome.findings == []
    assert outcome.cases > 100
    assert {"Event: read", "RunState: read", "event store: refused"} <= outcome.figures.keys()


def _trusts_the_text(text: bytes) -> Any:
    return RunState.from_dict(json.loads(text))


def _trusts_the_figures(data: Any) -> Any:
    return Usage(**data)


def _trusts_the_file(_path: Any, text: str) -> Any:
    return json.loads(text)["servers"]


@pytest.mark.parametrize(
    ("place", "name", "planted", "kinds"),
    [
        (RunState, "from_json", _trusts_the_text, {"RunState as text"}),
        (Usage, "from_dict", _trusts_the_figures, {"Usage", "ModelResponse", "RunState"}),
        (pins, "_parse", _trusts_the_file, {"pins file"}),
    ],
    ids=["state", "usage", "pins"],
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, planted: Any, kinds: set[str]
) -> None:
    """A campaign that cannot find is worth nothing."""
    monkeypatch.setattr(place, name, planted)

    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_records.run(SHORT).findings

    assert finding.where in kinds
    assert "it raised" in finding.what or "cannot be written again" in finding.what
