"""Makes environments of their own, with uv, and runs programs in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = ["ROOT", "Done", "Environment", "environment", "pythons", "run", "uv"]

ROOT = Path(__file__).resolve().parents[2]
_OLDEST = (3, 11)
_TELL = "import sys; print('%d.%d' % sys.version_info[:2])"
_LIMIT = 600
"""Seconds that one program may take."""


@dataclass(frozen=True, slots=True)
class Done:
    """A program that has ended: its exit code, and what it said."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """What it said last, to tell why it failed."""
        return (self.err or self.out).strip()[-1_500:]


def run(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = _LIMIT,
) -> Done:
    """Run a program to its end; one that takes too long has the exit code 124."""
    try:
        done = subprocess.run(  # noqa: S603 - words from here
            [str(word) for word in words],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Done(124, "", f"{words[0]} took longer than {limit:.0f} s")
    return Done(done.returncode, done.stdout, done.stderr)


def uv(*words: str | Path, **options: Mapping[str, str]) -> Done:
    """Run the uv that is installed next to this interpreter."""
    beside = Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv")
    program = str(beside) if beside.exists() else shutil.which("uv")
    if program is None:
        return Done(127, "", "uv is not installed: pip install uv")
    return run(program, *words, env=options.get("env"))


def pythons() -> dict[str, Path]:
    """Return the supported interpreters of this machine, by version."""
    found: dict[str, Path] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    places = [Path(sys.executable), *sorted(pyenv.glob("versions/*/bin/python"), reverse=True)]
    named = (shutil.which(f"python3.{minor}") for minor in range(_OLDEST[1], 30))
    for place in [*places, *(Path(one) for one in named if one)]:
        told = run(place, "-c", _TELL, limit=30)
        version = told.out.strip()
        if told.code == 0 and tuple(map(int, version.split("."))) >= _OLDEST:
            found.setdefault(version, place)
    return dict(sorted(found.items(), key=lambda one: int(one[0].split(".")[1])))


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, and an empty folder next to it in which programs run."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def install(self, *words: str | Path) -> Done:
        """Install packages into it."""
        return uv("pip", "install", "--python", self.python, *words)

    def run(self, program: str, *, limit: float = 120) -> Done:
        """Run a Python program in it, which sees nothing of this folder and of the user's own."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        (place / "program.py").write_text(program, encoding="utf-8")
        env = {"HOME": str(place), "XDG_STATE_HOME": str(place), "PYTHONWARNINGS": "default"}
        # Isolated, so that the package comes from the environment and from nowhere else.
        return run(self.python, "-I", "program.py", cwd=place, env=env, limit=limit)


@contextmanager
def environment(python: Path) -> Generator[Environment]:
    """Make an environment for an interpreter; it is gone afterwards.

    Raises:
        RuntimeError: It cannot be made.
    """
    with tempfile.TemporaryDirectory(prefix="agents-tools-release-") as folder:
        made = uv("venv", "--quiet", "--python", python, Path(folder) / "env")
        if made.code:
            raise RuntimeError(f"no environment for {python}: {made.last}")
        yield Environment(Path(folder))
