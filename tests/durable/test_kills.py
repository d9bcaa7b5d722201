"""Runs whose process is killed: around each write, in the middle of calls, and at random times."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from agents_tools.persistence.run_store import RunStore
from tests.durable.kills import Victims, check, check_many, chosen, kill_many, victims
from tests.durable.victim import store_of
from tests.scale import IS_FULL

Spec: TypeAlias = Callable[[Path], str]
"""Returns the address of the store of a folder."""


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


@pytest.mark.scaled
@pytest.mark.requirement("F42")
@pytest.mark.timeout(900 if IS_FULL else 120)
@pytest.mark.parametrize(
    "at_once",
    [
        pytest.param(None, id="parallel calls"),
        pytest.param(1, id="one call at a time", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_killed_around_any_write_continues_and_repeats_nothing(
    program: Victims, tmp_path: Path, spec: Spec, store: RunStore, at_once: int | None
) -> None:
    """A call that was running is `lost`, a repeatable one runs again, and the rest is recorded."""
    first = tmp_path / f"{at_once} 0"
    first.mkdir()
    whole = program.run_once(spec(tmp_path), first, 0, at_once)
    assert whole is not None
    moments = whole["moments"]
    fatal_ones = list(range(1, len(moments) + 1)) if IS_FULL else chosen(moments, every=5)
    for fatal in fatal_ones:
        folder = tmp_path / f"{at_once} {fatal}"
        folder.mkdir()
        ended = program.run_once(spec(tmp_path), folder, fatal, at_once)
        ended = ended or program.run_once(spec(tmp_path), folder, 0, at_once)
        assert ended is not None
        check(folder, ended, store)
    again = program.run_once(spec(tmp_path), first, 0, at_once)
    assert again == {**whole, "moments": []}
    assert len(moments) > 25


@pytest.mark.timeout(900 if IS_FULL else 120)
@pytest.mark.parametrize("every", [1, 5] if IS_FULL else [5])
def test_a_run_that_is_killed_again_and_again_ends(
    program: Victims, tmp_path: Path, spec: Spec, store: RunStore, every: int
) -> None:
    """Each process gets further than the one before."""
    folder = tmp_path / f"again {every}"
    folder.mkdir()
    ended, fatal = None, 3
    while ended is None:
        ended = program.run_once(spec(tmp_path), folder, fatal)
        fatal += every
    check(folder, ended, store)


def test_one_process_at_a_time_drives_a_run(program: Victims, tmp_path: Path, spec: Spec) -> None:
    """Two of them would run its calls twice. The end of a process frees its runs at once."""
    os.mkfifo(tmp_path / "never")
    pid = program.begin("hold", spec(tmp_path), str(tmp_path))
    assert program.line() == {"held": True}
    with victims() as others:
        refused = others.run_once(spec(tmp_path), tmp_path)
        assert refused is not None
        assert "is in use by process" in refused["refused"]
        os.kill(pid, signal.SIGKILL)
        assert program.rest() == []
        ended = others.run_once(spec(tmp_path), tmp_path)
        assert ended is not None
        assert ended["output"] == "All done."


@pytest.mark.requirement("F42")
@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(6, marks=pytest.mark.timeout(120)),
        pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_many_runs_of_a_process_survive_kills_at_random_times(
    program: Victims, tmp_path: Path, spec: Spec, store: RunStore, rounds: int
) -> None:
    """No call runs twice, no confirmed event is lost, and each run ends or is cancelled."""
    folder = tmp_path / f"many {rounds}"
    folder.mkdir()
    chance = Random(rounds)  # noqa: S311 - chooses moments
    hits = kill_many(program, spec(tmp_path), folder, store, chance, rounds=rounds, runs=20)
    assert hits > rounds // 3


@pytest.mark.requirement("F42")
@pytest.mark.timeout(120)
@pytest.mark.external("postgres")
def test_a_process_on_another_machine_takes_over_when_the_lease_expires(
    program: Victims, tmp_path: Path, server: str
) -> None:
    """It cannot know whether the process of the first machine has ended."""
    folder = tmp_path / "machines"
    folder.mkdir()
    spec = f"{server}#0.6"
    with store_of(server) as store:
        chance = Random(5)  # noqa: S311 - as above
        hits = kill_many(program, spec, folder, store, chance, rounds=4, runs=8, machines=True)
    assert hits > 1


@pytest.mark.requirement("F42")
@pytest.mark.timeout(120)
@pytest.mark.external("postgres")
def test_a_suspended_process_cannot_write_after_another_has_taken_over(
    program: Victims, tmp_path: Path, server: str
) -> None:
    """A machine that sleeps and wakes up must not continue runs that are driven elsewhere."""
    folder = tmp_path / "suspended"
    folder.mkdir()
    names = [f"suspended {number}" for number in range(8)]
    spec = f"{server}#0.6"
    with victims() as others, store_of(server) as store:
        pid = program.begin("run_many", spec, str(folder), names, "sleeper")
        assert program.line() == "begun"
        while len([run for run in store.runs().result() if run.run_id in names]) < len(names):
            pass
        os.kill(pid, signal.SIGSTOP)
        others.begin("run_many", spec, str(folder), names, "other")
        (_, ended) = others.rest()
        os.kill(pid, signal.SIGCONT)
        assert len([one for one in program.rest() if isinstance(one, dict)]) == 1
        check_many(folder, {name: ended[name] for name in names}, store, set())
