"""The real AG-UI clients against our app, as far as they are installed.

All clients and scenarios: `python -m tests.conformance.ui.run`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents_tools.testing import AgUiStreamError, check_ag_ui
from tests.conformance.ui import ag_ui
from tests.ui.ag_ui_cases import BROKEN, GOOD

NEWEST = "ag-ui 1.0.0"
SHORT = (
    "tool",
    "nested",
    "multimodal",
    "deltas",
    "retry",
    "nested_approve",
    "cancel",
    "abort",
    "watch_nested",
    "again",
    "client_tool",
)


pytestmark = pytest.mark.external


def _needs(client: str) -> pytest.MarkDecorator:
    reason = ag_ui.missing(client)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "client", [pytest.param(client, marks=_needs(client)) for client in ag_ui.clients()]
)
async def test_a_real_client_reads_all_runs_without_a_warning(client: str) -> None:
    """The final conversation of the client matches the scenario."""
    problems = await ag_ui.check(client, SHORT)
    assert set(problems) == set(SHORT)
    assert {job: problem for job, problem in problems.items() if problem} == {}


def _text(frames: tuple[Any, ...]) -> str:
    return "".join(
        frame if isinstance(frame, str) and frame[:1] != "{" else f"data: {_json(frame)}\n\n"
        for frame in frames
    )


def _json(frame: Any) -> str:
    return frame if isinstance(frame, str) else json.dumps(frame)


@_needs(NEWEST)
@pytest.mark.timeout(120)
async def test_the_check_is_at_least_as_strict_as_the_newest_client() -> None:
    """A stream that passes the check must not fail at a client."""
    broken = {case.name: _text(case.frames) for case in BROKEN if case.frames}
    good = {name: _text(frames) for name, frames in GOOD.items()}
    told = await ag_ui.read_streams(NEWEST, {**broken, **good})

    def complains(name: str) -> bool:
        return bool(told[name]["complaints"] or told[name]["runs"][0]["failed"])

    assert [
        case.name for case in BROKEN if case.frames and complains(case.name) == case.quiet
    ] == []
    assert [name for name in GOOD if complains(name)] == []


def test_the_check_rejects_the_streams_of_the_table() -> None:
    """The same table of streams is used for the real client."""
    for case in BROKEN:
        with pytest.raises(AgUiStreamError):
            check_ag_ui(case.frames)
