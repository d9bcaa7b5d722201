"""Runs with fifty calls in the background whose process is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agents_tools.events import RunItemStreamEvent
from agents_tools.persistence.run_store import RunStore
from tests.durable.background import CALLS
from tests.durable.kills import Victims, chosen, effects_of, lines_of, was_open
from tests.durable.victim import run_of, store_of
from tests.scale import IS_FULL

Spec: TypeAlias = Callable[[Path], str]
"""Returns the address of the store of a folder."""

pytestmark = [
    pytest.mark.requirement("F42"),
    pytest.mark.scaled,
    pytest.mark.timeout(900 if IS_FULL else 120),
]


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.external("postgres"))]
)
def spec(request: pytest.FixtureRequest) -> Spec:
    """Return each kind of store in turn."""
    if request.param == "sqlite":
        return lambda folder: f"sqlite:{folder / 'runs.db'}"
    url = str(request.getfixturevalue("server"))
    return lambda _: url


@pytest.fixture
def store(spec: Spec, tmp_path: Path) -> Iterator[RunStore]:
    """Return the store of the folder of a test."""
    with store_of(spec(tmp_path)) as opened:
        yield opened


def run(program: Victims, spec: str, folder: Path, fatal: int = 0) -> dict[str, Any] | None:
    """Begin or continue the run of a folder; return its end, or `None` if it was killed."""
    program.begin("run_background", spec, str(folder), fatal)
    reports = program.rest()
    return reports[0] if reports else None


def check(folder: Path, ended: dict[str, Any], store: RunStore) -> set[str]:
    """Check that the model got each result once, and return the calls that are lost."""
    assert ended["output"] == "All done."
    assert ended["results"] == dict.fromkeys(CALLS, 1)
    for line in lines_of(folder, "effects"):
        assert set(line.get("results", {}).values()) <= {1}, line  # of a request to the model
    statuses: dict[str, str] = {}
    for event in store.log(run_of(str(folder))).read().result():
        if isinstance(event, RunItemStreamEvent) and event.name == "background_result":
            item: Any = event.item
            assert item["call_id"] not in statuses
            statuses[item["call_id"]] = item["status"]
    assert set(statuses) == set(CALLS)
    effects, lives = effects_of(folder), lines_of(folder, "killed")
    for call_id, tool in CALLS.items():
        cut = sum(was_open(life, call_id, "call_result") for life in lives)
        if tool == "send":
            assert effects[call_id] <= 1, call_id
            assert (statuses[call_id], effects[call_id]) == ("ok", 1) or cut, (call_id, lives)
        elif tool == "index":
            assert statuses[call_id] == "ok" or cut > 1, call_id  # it is run again once
        else:
            assert statuses[call_id] == "ok"  # the agent continues where it stopped
    assert set(Counter(statuses.values())) <= {"ok", "lost"}
    return {call_id for call_id, status in statuses.items() if status == "lost"}


def test_each_result_is_delivered_once_wherever_the_process_is_killed(
    program: Victims, tmp_path: Path, spec: Spec, store: RunStore
) -> None:
    """A finished result is kept, a repeatable call runs again, and another one is lost."""
    first = tmp_path / "background 0"
    first.mkdir()
    whole = run(program, spec(tmp_path), first)
    assert whole is not None
    assert check(first, whole, store) == set()
    moments = whole["moments"]
    assert len(moments) > 120
    fatal_ones = (
        range(1, len(moments) + 1)
        if IS_FULL
        else sorted(
            {
                *chosen(moments, every=8),
                *range(10, len(moments), 50),  # while most calls run
                *range(len(moments) - 16, len(moments), 4),  # while results are delivered
            }
        )
    )
    lost = set[str]()
    for fatal in fatal_ones:
        folder = tmp_path / f"background {fatal}"
        folder.mkdir()
        ended = run(program, spec(tmp_path), folder, fatal)
        ended = ended or run(program, spec(tmp_path), folder)
        assert ended is not None
        lost |= check(folder, ended, store)
    assert lost  # some kills hit calls that must not run twice


@pytest.mark.parametrize("every", [1, 7, 20] if IS_FULL else [20])
def test_each_result_is_delivered_once_however_often_the_process_is_killed(
    program: Victims, tmp_path: Path, spec: Spec, store: RunStore, every: int
) -> None:
    """Each process gets further than the one before."""
    folder = tmp_path / f"background again {every}"
    folder.mkdir()
    ended, fatal, kills = None, 9, 0
    while ended is None:
        ended = run(program, spec(tmp_path), folder, fatal)
        kills, fatal = kills + 1, fatal + every
    check(folder, ended, store)
    assert kills > 2
    assert run(program, spec(tmp_path), folder) == {**ended, "moments": []}
