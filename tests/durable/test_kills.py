"""Runs whose process is killed: at each boundary of each step, and in the middle of calls."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.durable.kills import Victims, check, chosen, victims
from tests.durable.lite import needs_dbos_on_sqlite
from tests.scale import IS_FULL

Spec: TypeAlias = Callable[[Path], str]
"""Names the store that a folder has."""


@pytest.fixture(
    params=[
        "local",
        pytest.param("sqlite", marks=needs_dbos_on_sqlite),
        pytest.param("postgresql", marks=pytest.mark.external("postgres")),
    ]
)
def spec(request: pytest.FixtureRequest) -> Spec:
    """Give each store in turn."""
    if request.param == "local":
        return lambda folder: f"local:{folder / 'runs.db'}"
    pytest.importorskip("dbos")
    if request.param == "sqlite":
        return lambda folder: f"dbos:sqlite:///{folder / 'runs.db'}"
    url = request.getfixturevalue("server")
    return lambda _: f"dbos:{url}"


@pytest.mark.scaled
@pytest.mark.requirement("F42")
@pytest.mark.timeout(900 if IS_FULL else 120)
@pytest.mark.parametrize(
    "at_once",
    [
        pytest.param(None, id="at once"),
        pytest.param(1, id="one by one", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_killed_at_any_moment_goes_on_and_does_nothing_twice(
    program: Victims, tmp_path: Path, spec: Spec, at_once: int | None
) -> None:
    """A call that was running is `lost`, a harmless one is made again, the rest stays."""
    is_slow = spec(tmp_path).startswith("dbos")  # a process takes longer to begin
    tmp_path = tmp_path / f"{at_once}"
    tmp_path.mkdir()
    whole = program.carry_on(spec(tmp_path), tmp_path, 0, at_once)
    assert whole is not None
    every = chosen(whole["moments"], finely=IS_FULL or not is_slow)
    if IS_FULL and not is_slow:
        every = list(range(1, len(whole["moments"]) + 1))
    elif at_once and not IS_FULL:
        every = every[2 :: 7 if is_slow else 4]
    elif is_slow and not IS_FULL:
        every = every[::3]
    ended, folder = whole, tmp_path
    for fatal in every:
        folder = tmp_path / f"{at_once} {fatal}"
        folder.mkdir()
        assert program.carry_on(spec(folder), folder, fatal, at_once) is None
        ended = program.carry_on(spec(folder), folder, 0, at_once) or {}
        check(folder, ended)
    again = program.carry_on(spec(folder), folder, 0, at_once)
    assert again == {**ended, "moments": ["claimed", "leaving", "left"]}
    assert len(whole["moments"]) > 50


@pytest.mark.timeout(900 if IS_FULL else 120)
@pytest.mark.parametrize("every", [1, 5] if IS_FULL else [5])
def test_a_run_that_is_killed_again_and_again_comes_to_its_end(
    program: Victims, tmp_path: Path, spec: Spec, every: int
) -> None:
    """Each process gets a little further, whatever the one before has left."""
    folder = tmp_path / f"again {every}"
    folder.mkdir()
    ended, fatal = None, 3
    while ended is None:
        ended = program.carry_on(spec(folder), folder, fatal)
        fatal += every
    check(folder, ended)


def test_only_one_process_carries_a_run_on(program: Victims, tmp_path: Path, spec: Spec) -> None:
    """Two that do the same would do it twice; the end of a process frees what it had."""
    os.mkfifo(tmp_path / "never")
    pid = program.begin("hold", spec(tmp_path), str(tmp_path))
    assert program.line() == {"held": True}
    with victims() as others:
        refused = others.carry_on(spec(tmp_path), tmp_path)
        assert refused is not None
        assert "carried on elsewhere" in refused["refused"]
        os.kill(pid, signal.SIGKILL)
        assert program.line() == "dead"
        ended = others.carry_on(spec(tmp_path), tmp_path)
        assert ended is not None
        assert ended["output"] == "All done."
