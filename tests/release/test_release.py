"""What is published installs, says what it lacks, and holds nothing that is nobody's business."""

from __future__ import annotations

import sqlite3
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
def test_what_is_built_holds_what_it_should_and_nothing_else(wheel: Path) -> None:
    """Its files, its metadata, and no name of the machine that it was built on."""
    assert faults_of(wheel) == []


@pytest.mark.external
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("tests/test_it.py", b"", "the wheel has tests/test_it.py"),
        ("agents_tools/__pycache__/a.cpython-311.pyc", b"", "__pycache__"),
        ("agents_tools/notes.txt", b"", "the wheel has agents_tools/notes.txt"),
        ("agents_tools/extra.py", f"HERE = '{ROOT}/x'".encode(), "names "),
    ],
)
def test_what_should_not_be_there_is_found(
    wheel: Path, tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    """A look that cannot find is worth nothing."""
    spoilt = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(spoilt, "w") as new:
        for one in old.namelist():
            if not one.endswith("py.typed"):
                new.writestr(one, old.read(one))
        new.writestr(name, content)
    faults = faults_of(spoilt)
    assert any(told in fault for fault in faults), faults
    assert "the wheel has no agents_tools/py.typed" in faults


@pytest.mark.external
@pytest.mark.timeout(240)
def test_the_wheel_works_alone_and_names_the_extras_that_are_missing(
    wheel: Path,
) -> None:
    """In an empty environment, where nothing of this folder is seen."""
    with environment(next(iter(pythons().values()))) as place:
        done = place.install("--quiet", wheel)
        assert done.code == 0, done.last
        told = place.run(CORE)
        assert told.code == 0, told.last
        for extra in ("cli", "mcp", "redis", "ui", "langgraph", "strands"):
            told = place.run(DOORS[extra])
            assert told.code, extra
            assert f"agents-tools[{extra}]" in told.err.strip().splitlines()[-1], told.last


def test_each_extra_has_a_program() -> None:
    """One without would be published unseen."""
    assert set(extras()) == set(DOORS) | NAMELESS


def test_the_version_is_the_same_everywhere() -> None:
    """The package cannot ask for its own while it is imported: that would take too long."""
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
def test_licenses_are_told_apart(said: list[str], *, permissive: bool) -> None:
    """What is not known to be free counts as not free."""
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
def test_an_audit_that_could_not_ask_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence would look like a clean bill."""
    done, faults, unseen = ANSWERS[name]
    answer: Callable[..., Done] = lambda *_, **__: done  # noqa: E731 - stands for a service
    monkeypatch.setattr(auditing, "uv", answer)
    audit = auditing.audited({"a": "1"})
    assert audit.faults == faults
    assert unseen in "".join(audit.unseen)
    assert bool(audit.unseen) is bool(unseen)


def test_an_sqlite_that_dbos_cannot_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database runs and may be written to: to look at that would be to look in vain."""
    pytest.importorskip("dbos")
    from agents_tools.persistence.durable import DurableStoreError
    from agents_tools.persistence.durable.dbos import engine as _engine

    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    for version, told in (((3, 11), "may be written to"), ((3, 12), "SQLite 3.42")):
        monkeypatch.setattr(_engine, "sys", SimpleNamespace(version_info=version))
        with (
            pytest.raises(DurableStoreError, match=told),
            _engine.explaining("sqlite:///runs.db"),
        ):
            raise OSError("NOT NULL constraint failed")
    with (
        pytest.raises(DurableStoreError, match="may be written to"),
        _engine.explaining("postgresql://me@db.internal/runs"),
    ):
        raise OSError("it is away")
