"""Runs the tests of frameworks that need their own environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.frameworks.run import FRAMEWORKS

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "harness" / "elsewhere"
SHARED = [FOLDER / "calls.py", FOLDER / "agents.py"]
"""What tools of ours have to bear in all of them, and what their agents have to do as tools."""
OWN = [path for name in FRAMEWORKS if (path := FOLDER / f"{name}.py").exists()]
"""The tests of one framework alone, in a file of its name."""

_OPTIONS = [
    "-q",
    "-rfE",
    "--no-header",
    "--noconftest",  # ours needs what these environments do not have
    "--rootdir=.",
    "-c",
    os.devnull,
    "-p",
    "no:cacheprovider",
    "-p",
    "no:logging",  # it keeps errors, and with them generators that should end
]


@pytest.mark.external
@pytest.mark.timeout(150)
@pytest.mark.parametrize("own", OWN, ids=lambda path: path.stem)
def test_in_the_environment_of_the_framework(own: Path) -> None:
    """Agents of other frameworks are tools here, and our tools do there what only they can."""
    framework = FRAMEWORKS[own.stem]
    if framework.missing is not None:
        pytest.skip(framework.missing)
    ran = subprocess.run(  # noqa: S603 - our own program
        [framework.python, "-m", "pytest", *_OPTIONS, *SHARED, own],
        cwd=ROOT,
        env={
            **os.environ,
            "AGENTS_TOOLS_FRAMEWORK": framework.name,
            "AGNO_TELEMETRY": "false",
            "OTEL_SDK_DISABLED": "true",
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=140,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6_000:]}\n{ran.stderr[-2_000:]}"
