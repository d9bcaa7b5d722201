"""The published package installs, reports missing extras, and contains no private data."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents_tools import __version__
from tests.release import auditing
from tests.release.building import build_wheel, faults_of
from tests.release.doors import CORE, DOORS, NAMELESS
from tests.release.installing import extras
from tests.release.venvs import ROOT, Done, environment, pythons


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.mark.external
@pytest.mark.timeout(180)
def test_the_wheel_contains_only_the_expected_files(wheel: Path) -> None:
    """Its files, its metadata, and no name of the build machine."""
    assert faults_of(wheel) == []


@pytest.mark.external
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tests/test_it.py", b"", "the wheel has tests/test_it.py"),
        ("agents_tools/__pycache__/a.cpython-311.pyc", b"", "__pycache__"),
        ("agents_tools/notes.txt", b"", "the wheel has agents_tools/notes.txt"),
        ("agents_tools/extra.py", f"HERE = '{ROOT}/x'".encode(), "names "),
    ],
)
def test_unexpected_content_is_found(
    wheel: Path, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """The check must be able to fail."""
    spoilt = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(spoilt, "w") as new:
        for one in old.namelist():
            if not one.endswith("py.typed"):
                new.writestr(one, old.read(one))
        new.writestr(name, content)
    faults = faults_of(spoilt)
    assert any(message in fault for fault in faults), faults
    assert "the wheel has no agents_tools/py.typed" in faults


@pytest.mark.external
@pytest.mark.timeout(240)
def test_the_wheel_works_alone_and_names_the_extras_that_are_missing(
    wheel: Path,
) -> None:
    """It runs in an empty environment, without access to the source tree."""
    with environment(next(iter(pythons().values()))) as place:
        done = place.install("--quiet", wheel)
        assert done.code == 0, done.last
        result = place.run(CORE)
        assert result.code == 0, result.last
        for extra in ("cli", "mcp", "redis", "ui", "langgraph", "strands"):
            result = place.run(DOORS[extra])
            assert result.code, extra
            assert f"agents-tools[{extra}]" in result.err.strip().splitlines()[-1], result.last


def test_each_extra_has_a_program() -> None:
    """An extra without a program would be published untested."""
    assert set(extras()) == set(DOORS) | NAMELESS


def test_the_version_is_the_same_everywhere() -> None:
    """The package cannot query its own metadata during import, as that takes too long."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == __version__


@pytest.mark.parametrize(
    ("said", "permissive"),
    [
        (["MIT"], True),
        (["Apache-2.0 OR BSD-2-Clause"], True),
        (["License :: OSI Approved :: MIT License"], True),
        (["BSD-3-Clause", "License :: OSI Approved :: BSD License"], True),
        (["Apache Software License"], True),
        (["MPL-2.0"], True),
        (["GPL-3.0-only"], False),
        (["MIT", "License :: OSI Approved :: GNU General Public License (GPL)"], False),
        (["AGPL-3.0"], False),
        (["Proprietary"], False),
        ([], False),
    ],
)
def test_licenses_are_classified(said: list[str], *, permissive: bool) -> None:
    """An unknown license counts as not free."""
    assert auditing.is_permissive(said) is permissive


ANSWERS: dict[str, tuple[Done, list[str], str]] = {
    "found": (
        Done(
            1,
            '{"dependencies": [{"name": "a", "version": "1", "vulns": '
            '[{"id": "GHSA-1", "fix_versions": ["2"]}]}, {"name": "b", "version": "1", "vulns": []}]}',
            "",
        ),
        ["a 1: GHSA-1; mended in 2"],
        "",
    ),
    "unknown": (
        Done(0, '{"dependencies": [{"name": "a", "skip_reason": "not found on the index"}]}', ""),
        [],
        "a: not found on the index",
    ),
    "away": (
        Done(1, "", "requests.exceptions.ConnectionError: Max retries exceeded with url: /a"),
        [],
        "the service for vulnerabilities cannot be asked here (ConnectionError)",
    ),
    "not installed": (Done(127, "", "uv is not installed: pip install uv"), [], "uv is not"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_audit_without_network_reports_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No output would look like a clean result."""
    done, faults, unseen = ANSWERS[name]
    answer: Callable[..., Done] = lambda *_, **__: done  # noqa: E731 - stands for a service
    monkeypatch.setattr(auditing, "uv", answer)
    audit = auditing.audited({"a": "1"})
    assert audit.faults == faults
    assert unseen in "".join(audit.unseen)
    assert bool(audit.unseen) is bool(unseen)


def test_an_sqlite_that_dbos_cannot_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The original error would lead users to look for a fault in the database file."""
    pytest.importorskip("dbos")
    from agents_tools.persistence.queue import QueueError, engine as _engine

    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    for version, message in (((3, 11), "running and writable"), ((3, 12), "SQLite 3.42")):
        monkeypatch.setattr(_engine, "sys", SimpleNamespace(version_info=version))
        with (
            pytest.raises(QueueError, match=message),
            _engine.explaining("sqlite:///runs.db", QueueError),
        ):
            raise OSError("NOT NULL constraint failed")
    with (
        pytest.raises(QueueError, match="running and writable"),
        _engine.explaining("postgresql://me@db.internal/runs", QueueError),
    ):
        raise OSError("it is away")


def test_the_classifiers_claim_only_what_the_whole_check_runs_on() -> None:
    """A claim without a run is a guess."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    whole = workflow.partition("  whole:\n")[2].partition("- run: .ci/run\n")[0]
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert sorted(named) == sorted(re.findall(r"^ +(3\.\d+)$", whole, re.MULTILINE))
    assert project["requires-python"] == f">={named[0]}"
    systems = [one for one in project["classifiers"] if one.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert "runs-on: ubuntu-latest" in whole


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_suite_needs_only_pip(tmp_path: Path) -> None:
    """A newcomer does not wait for the frameworks, servers and clients of `make test-all`."""
    words = ["make", "--dry-run", "--directory", str(ROOT), f"VENV={tmp_path / 'venv'}", "test"]
    # Without the options of the `make` that runs the suite.
    inherited = {"AGAIN", "ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "PIP"}
    own = {key: value for key, value in os.environ.items() if key not in inherited}
    done = subprocess.run(  # noqa: S603 - our own words
        words, capture_output=True, text=True, timeout=60, check=True, env=own
    )
    assert done.stdout.count("-m pip") == 2  # pip itself, and the package with its group `test`
    assert "--group test\n" in done.stdout
    assert "-m pytest" in done.stdout
    for more in ("npm", "node", "tests.frameworks", "tests.mcp", "chromium", "apt-get", "git "):
        assert more not in done.stdout
