"""Runs with a program in code mode whose process is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools.persistence.run_store import RunStore
from tests.durable.kills import Victims, chosen, effects_of, lines_of
from tests.durable.victim import store_of
from tests.scale import IS_FULL

pytest.importorskip("pydantic_monty")

pytestmark = [pytest.mark.scaled, pytest.mark.timeout(900 if IS_FULL else 120)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """Return the store of the folder of a test."""
    with store_of(spec_of(tmp_path)) as opened:
        yield opened


def spec_of(folder: Path) -> str:
    """Return the address of the store of a folder."""
    return f"sqlite:{folder / 'runs.db'}"


def run(program: Victims, spec: str, folder: Path, fatal: int = 0) -> dict[str, Any] | None:
    """Begin or continue the run of a folder; return its end, or `None` if it was killed."""
    program.begin("run_program", spec, str(folder), fatal)
    reports = program.rest()
    return reports[0] if reports else None


def check(folder: Path, ended: dict[str, Any]) -> int:
    """Check that nothing has run twice, and return the number of lost calls."""
    printed, _, last = ended["output"].partition("\n")
    assert printed == "Posted."
    result = json.loads(last)
    names = {f"user {number}" for number in range(3)}
    assert set(result["paid"]) == names
    lost = _lost(result)
    assert ended["usage"]["tool_calls"] == 12 - len(lost)  # an unknown payment has no stamp
    effects = effects_of(folder)
    tools = _tools(folder)
    for call_id, count in effects.items():
        most = {"look": 1_000, "stamp": 2}.get(tools[call_id], 1)
        assert count <= most, (call_id, tools[call_id])
    paid = [call_id for call_id, tool in tools.items() if tool == "pay"]
    assert len(paid) >= 3 - len(lost)
    for name, text in result["paid"].items():
        assert text in {f"Paid {name}. Stamped {name}.", "unknown"}
    return len(lost)


def _lost(result: dict[str, Any]) -> list[str]:
    return [name for name, text in result["paid"].items() if text == "unknown"]


def _tools(folder: Path) -> dict[str, str]:
    """Return the tools of the calls that had an effect, by call id."""
    return {
        line["key"].replace("/", ":").rpartition(":")[2]: line["tool"]
        for line in lines_of(folder, "effects")
        if "key" in line
    }


def test_a_program_continues_wherever_its_process_is_killed(
    program: Victims, tmp_path: Path, store: RunStore
) -> None:
    """Finished calls are not repeated; a call that was running is repeated or unknown."""
    first = tmp_path / "program 0"
    first.mkdir()
    whole = run(program, spec_of(tmp_path), first)
    assert whole is not None
    assert check(first, whole) == 0
    moments = whole["moments"]
    assert len(moments) > 50
    fatal_ones = range(1, len(moments) + 1) if IS_FULL else chosen(moments, every=6)
    lost = 0
    for fatal in fatal_ones:
        folder = tmp_path / f"program {fatal}"
        folder.mkdir()
        ended = run(program, spec_of(tmp_path), folder, fatal)
        ended = ended or run(program, spec_of(tmp_path), folder)
        assert ended is not None
        lost += check(folder, ended)
    assert lost or not IS_FULL


@pytest.mark.parametrize("every", [1, 5, 11] if IS_FULL else [11])
def test_a_program_continues_however_often_its_process_is_killed(
    program: Victims, tmp_path: Path, store: RunStore, every: int
) -> None:
    """Each process gets further than the one before."""
    folder = tmp_path / f"program again {every}"
    folder.mkdir()
    ended, fatal, kills = None, 9, 0
    while ended is None:
        ended = run(program, spec_of(tmp_path), folder, fatal)
        kills, fatal = kills + 1, fatal + every
    check(folder, ended)
    assert kills > 2
    assert run(program, spec_of(tmp_path), folder) == {**ended, "moments": []}
