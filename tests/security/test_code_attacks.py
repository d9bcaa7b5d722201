"""Attacks on the sandbox of code mode: each one is contained, for a known reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.code_attacks import ATTACKS, CANARY

pytest.importorskip("pydantic_monty")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all programs in a process with a memory limit, and return their outcomes."""
    canary = tmp_path_factory.mktemp("canary") / "canary.txt"
    canary.write_text(CANARY)
    before = sorted(canary.parent.iterdir())
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, str(Path(__file__).with_name("code_attacks.py")), str(canary)],
        capture_output=True,
        text=True,
        env={**os.environ, "CANARY": CANARY},
        cwd=canary.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert canary.read_text() == CANARY
    assert sorted(canary.parent.iterdir()) == before
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_contained(outcomes: dict[str, str], name: str) -> None:
    """The process survives, nothing is read or changed, and the model gets the reason."""
    output = outcomes[name]
    assert ATTACKS[name][1].replace("{{", "{").replace("}}", "}") in output
    assert CANARY not in output
    assert len(output) <= 20_500
