"""Builds the wheel and the source distribution, and looks at what is in them."""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import socket
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.release.venvs import ROOT, Done, run, uv

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BuildError", "build", "build_wheel", "faults_of", "faults_of_tools", "rebuilt_faults"]

_EPOCH = "1580601600"
"""2 February 2020: the earliest day that every archive format can tell; the builder's own."""
_STATIC = {
    f"agents_tools/playground/static/{name}"
    for name in ("app.js", "app.json", "index.html", "style.css")
} | {
    f"agents_tools/ui/client/{name}"
    for name in (
        *("client.js", "react.js", "standalone.js", "style.css", "package.json"),
        *("ag-ui.js", "ag-ui.d.ts", "ai-sdk.js", "ai-sdk.d.ts", "copilotkit.js"),
        *("copilotkit.d.ts", "arguments.d.ts", "snapshots.d.ts"),
        *("client.d.ts", "live_run.d.ts", "protocol.d.ts", "react.d.ts", "requests.d.ts"),
        *("standalone.d.ts", "stream.d.ts", "tree.d.ts"),
    )
}
_NEEDED = (
    "LICENSE",
    "Makefile",
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
    "SECURITY.md",
    "agents_tools/__init__.py",
    "tests/conftest.py",
    "docs/index.md",
    "mkdocs.yml",
    "tools/playground/package.json",
    "examples/demo/__main__.py",
)
_JUNK = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv[^/]*|node_modules|\.DS_Store|[^/]*\.py[co]|"
    r"[^/]*\.orig|[^/]*~|\.[a-z]+_cache|\.hypothesis|site|dist)(/|$)"
)
_SIZES = {".whl": 3 << 20, ".gz": 6 << 20}


class BuildError(Exception):
    """It cannot be built; the message is what the builder said."""


def build(target: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """Build the source distribution and from it the wheel; give the wheel and the other.

    Raises:
        BuildError: It cannot be built.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = _built(source, Path(folder))
        if done.code:
            raise BuildError(done.last)
        target.mkdir(parents=True, exist_ok=True)
        for old in target.glob("agents_tools-*"):
            old.unlink()
        for made in Path(folder).glob("agents_tools-*"):
            shutil.copy2(made, target / made.name)
    (wheel,) = target.glob("*.whl")
    (source_distribution,) = target.glob("*.tar.gz")
    return wheel, source_distribution


def build_wheel(target: Path) -> Path:
    """Build the wheel alone, from what is here; that takes half the time.

    Raises:
        BuildError: It cannot be built.
    """
    done = _built(ROOT, target, "--wheel")
    if done.code:
        raise BuildError(done.last)
    (wheel,) = target.glob("*.whl")
    return wheel


def _built(source: Path, target: Path, *words: str) -> Done:
    env = {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", _EPOCH)}
    return uv("build", "--quiet", *words, "--out-dir", target, source, env=env)


def rebuilt_faults(wheel: Path, source: Path) -> list[str]:
    """Build again, elsewhere and from what was unpacked: the bytes have to be the same."""
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        again = build(Path(folder) / "again")
        faults += [
            f"{one.name} has other bytes when it is built again"
            for one, other in zip((wheel, source), again, strict=True)
            if _digest(one) != _digest(other)
        ]
        unpacked = _unpacked(source, Path(folder))
        from_source = build(Path(folder) / "from", unpacked)
        if _digest(wheel) != _digest(from_source[0]):
            faults.append("the wheel that is built from the source distribution is another one")
        direct = Path(folder) / "direct"
        done = _built(ROOT, direct, "--wheel")
        if done.code:
            faults.append(f"the wheel cannot be built directly: {done.last}")
        elif _digest(direct / wheel.name) != _digest(wheel):
            faults.append("the wheel that is built from the repository is another one")
    return faults


def _unpacked(source: Path, folder: Path) -> Path:
    with tarfile.open(source) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (root,) = (folder / "unpacked").iterdir()
    return root


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- what is in them


def faults_of(wheel: Path, source: Path | None = None) -> list[str]:
    """Look at the files and at the metadata; give what is wrong."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    faults = _files_of_wheel(packed)
    faults += _faults_of("the wheel", wheel, packed)
    if source is not None:
        faults += _faults_of_source(source)
    (metadata,) = (data for name, data in packed.items() if name.endswith("/METADATA"))
    return faults + _metadata(metadata.decode())


def _faults_of_source(source: Path) -> list[str]:
    whole: dict[str, bytes] = {}
    faults: list[str] = []
    with tarfile.open(source) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                faults.append(f"{member.name} of the source is no plain file")
            else:
                whole[member.name.partition("/")[2]] = file.read()
    needed = {*_NEEDED, *_tracked()} - set(whole)
    faults += [f"the source has no {name}" for name in sorted(needed)]
    return faults + _faults_of("the source", source, whole)


def _faults_of(where: str, path: Path, files: Mapping[str, bytes]) -> list[str]:
    faults = [f"{where} has {name}" for name in files if _JUNK.search(name)]
    if path.stat().st_size > _SIZES[path.suffix]:
        faults.append(f"{path.name} is larger than {_SIZES[path.suffix] >> 20} MiB")
    return faults + _paths_in(where, files)


def _files_of_wheel(packed: Mapping[str, bytes]) -> list[str]:
    own = {name for name in packed if name.startswith("agents_tools/")}
    notes = {name for name in packed if ".dist-info/" in name}
    faults = [f"the wheel has {name}" for name in sorted(set(packed) - own - notes)]
    others = {name for name in own if not name.endswith(".py")}
    wanted = {"agents_tools/py.typed", *_STATIC}
    faults += [f"the wheel has {name}" for name in sorted(others - wanted)]
    faults += [f"the wheel has no {name}" for name in sorted(wanted - others)]
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "agents_tools").rglob("*.py")}
    faults += [f"the wheel has no {name}" for name in sorted(here - own)]
    if not any(name.endswith("/licenses/LICENSE") for name in notes):
        faults.append("the wheel has no license")
    return faults


def _tracked() -> set[str]:
    """Return the tracked files that the source distribution must contain; empty without git."""
    done = run("git", "-C", ROOT, "ls-files", "-z", limit=30) if (ROOT / ".git").exists() else None
    if done is None or done.code:
        return set()
    names = {name for name in done.out.split("\0") if name and (ROOT / name).is_file()}
    return {name for name in names if not name.startswith(".")}


def _paths_in(where: str, files: Mapping[str, bytes]) -> list[str]:
    """Look for names of this machine and of its package index."""
    names = {str(ROOT), str(Path.home()), socket.gethostname(), *_indexes()}
    marks = {name.encode() for name in names if len(name) >= 5}
    if os.environ.get("CI_PROJECT_DIR"):
        marks.add(os.environ["CI_PROJECT_DIR"].encode())
    faults: list[str] = []
    for mark in sorted(marks):
        pattern = re.compile(rb"(?<![\w.-])" + re.escape(mark) + rb"(?![\w.-])")
        faults += [
            f"{where}: {name} names {mark.decode()}"
            for name, data in files.items()
            if pattern.search(data)
        ]
    return faults


def _indexes() -> set[str]:
    """Return the hosts of packages here, other than the public one."""
    told = [
        os.environ.get(name, "") for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
    ]
    hosts = {match[1] for one in told if (match := re.match(r"https?://(?:[^@/]*@)?([^/:]+)", one))}
    return hosts - {"pypi.org", "127.0.0.1", "localhost"}


def _metadata(text: str) -> list[str]:
    found = email.message_from_string(text)
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    faults = [
        f"the metadata has no {name}"
        for name in (
            "Summary",
            "License-Expression",
            "License-File",
            "Requires-Python",
            "Keywords",
            "Description-Content-Type",
            "Author",
        )
        if not found[name]
    ]
    if found["Version"] != project["version"]:
        faults.append(f"the version is {found['Version']}, not {project['version']}")
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", project["version"]):
        faults.append(f"{project['version']} is no version of a release")
    if set(found.get_all("Provides-Extra") or ()) != set(project["optional-dependencies"]):
        faults.append("the extras are not those of pyproject.toml")
    faults += [
        f"a dependency is no released package: {one}"
        for one in found.get_all("Requires-Dist") or ()
        if "@" in one
    ]
    faults += [
        f"a link that a package index cannot resolve: {one}"
        for one in re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", str(found.get_payload()))
    ]
    return faults


# --- what others say


def faults_of_tools(wheel: Path, source: Path) -> tuple[list[str], list[str]]:
    """Ask twine and check-wheel-contents; give the faults, and who could not be asked."""
    faults: list[str] = []
    absent: list[str] = []
    for words in (
        ("twine", "check", "--strict", wheel, source),
        ("check-wheel-contents", "--toplevel", "agents_tools", wheel),
    ):
        told = uv("tool", "run", "--quiet", *words)
        if told.code and re.search(r"resolve|[Cc]onnect|fetch|not installed", told.last):
            absent.append(f"{words[0]}: {told.last.splitlines()[0]}")
        elif told.code:
            faults.append(f"{words[0]}: {told.last}")
    return faults, absent
