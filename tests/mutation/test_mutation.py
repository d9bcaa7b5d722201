"""The runner of mutants itself: it finds the hole that is planted, and only that one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.mutation.__main__ import read_equivalents
from tests.mutation.mutants import find_mutants

_ROOT = Path(__file__).resolve().parents[2]

_MODULE = '''
"""A module under test."""


def clamp(number, *, low=0):
    """Give a number that is not too low, in words."""
    return "too low" if number < low else str(number)


async def close(log, things):
    try:
        for thing in things:
            log.append(thing)
    finally:
        log.append("closed")
'''

_TESTS = """
from {name} import clamp, close


def test_clamp():
    assert clamp(-1) == "too low"
    assert clamp(5) == "5"


async def test_close():
    log = []
    await close(log, ["a"])
    assert "a" in log
"""


def test_changes_of_every_kind_are_found() -> None:
    """One change each, named by what it does: the list of equivalents goes by these names."""
    tree = ast.parse(_MODULE)
    found = [f"{m.qualname}: {m.change}" for m in find_mutants(Path("module.py"), tree)]
    assert found == snapshot(
        [
            "clamp: default 0 -> 1 (kw_defaults 0)",
            "clamp: 'too low' if number < low else str(number) -> None in return 'too low' if number < low else str(number)",
            "clamp: number < low: Lt -> LtE",
            "close: removed: finally",
            "close: removed: log.append(thing)",
            "close: removed: log.append('closed')",
        ]
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the runner works by forks")
def test_what_no_test_sees_survives_and_what_one_sees_is_killed(tmp_path: Path) -> None:
    """The planted hole: no test asks for a number at the limit, nor for the last entry."""
    name = "mutation_subject"
    tmp_path.joinpath(f"{name}.py").write_text(_MODULE)
    tests = tmp_path / "test_subject.py"
    tests.write_text(_TESTS.format(name=name))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- mutants -->\nold\n<!-- end of mutants -->\nafter\n")
    answer = subprocess.run(  # noqa: S603 - this interpreter
        [
            *(sys.executable, "-m", "tests.mutation", "--module", name, "--tests", str(tests)),
            *("--write", str(page)),
        ],
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    lines = [line.split(" | ") for line in answer.stdout.splitlines() if " | " in line]
    lines = [f"{line[0].split()[0]}: {line[1]}" for line in lines]
    assert lines == snapshot(
        [
            "survived: default 0 -> 1 (kw_defaults 0)",
            "survived: number < low: Lt -> LtE",
            "survived: removed: finally",
            "survived: removed: log.append('closed')",
        ]
    )
    assert answer.returncode == 1
    written = page.read_text().splitlines()
    assert [written[0], written[1], written[-2], written[-1]] == [
        *("before", "<!-- mutants -->", "<!-- end of mutants -->", "after"),
    ]
    assert "| together | 6 | 2 | 4 | 33 % |" in written
    assert "old" not in written
    assert tmp_path.joinpath(f"{name}.py").read_text() == _MODULE


def test_each_equivalent_change_has_a_reason_and_is_still_there() -> None:
    """A list of exceptions that nobody keeps would hide holes: an entry names a real change."""
    import tomllib

    entries = tomllib.loads((_ROOT / "tests/mutation/equivalent.toml").read_text())["equivalent"]
    assert all(len(entry["why"]) > 10 for entry in entries)
    changes: set[tuple[str, str, str]] = set()
    for name in {entry["file"] for entry in entries}:
        file = _ROOT / name
        tree = ast.parse(file.read_text(encoding="utf-8"))
        changes |= {(name, m.qualname, m.change) for m in find_mutants(file, tree)}
    assert read_equivalents() <= changes
