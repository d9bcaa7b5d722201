"""Installs the wheel in fresh environments, one for each Python and extra, and goes through doors."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.release.doors import CORE, DOORS
from tests.release.venvs import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tests.release.venvs import Done

__all__ = ["BARE", "Result", "bare_faults", "extras", "lowest", "matrix"]

BARE = "(none)"
"""What an installation without extras is called."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one installation."""

    python: str
    extra: str
    faults: tuple[str, ...]


def extras() -> list[str]:
    """Return the extras that the package declares."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return sorted(tomllib.load(file)["project"]["optional-dependencies"])


def matrix(wheel: Path, pythons: dict[str, Path], only: Iterable[str] = ()) -> Iterator[Result]:
    """Install with no extra, with each alone and with all; give what does not work."""
    wanted = set(only)
    for version, python in pythons.items():
        for extra in [BARE, *extras()]:
            if not wanted or extra in wanted:
                yield Result(version, extra, _installed(wheel, python, extra, ()))


def lowest(wheel: Path, python: Path, only: Iterable[str] = ()) -> Iterator[Result]:
    """Do the same with the lowest versions that the package says it works with."""
    wanted = set(only)
    for extra in [BARE, *extras()]:
        if not wanted or extra in wanted:
            words = ("--resolution", "lowest-direct")
            yield Result("lowest", extra, _installed(wheel, python, extra, words))


def _installed(wheel: Path, python: Path, extra: str, words: tuple[str, ...]) -> tuple[str, ...]:
    what = str(wheel) if extra == BARE else f"{wheel}[{extra}]"
    with environment(python) as place:
        done = place.install("--quiet", *words, what)
        if done.code:
            return (f"it cannot be installed: {done.last}",)
        programs = {"the core": CORE} if extra == BARE else _doors(extra)
        faults = [
            f"{name}: exit {told.code}: {told.last}"
            for name, program in programs.items()
            if (told := place.run(program)).code
        ]
        if extra == BARE and not words:
            faults += bare_faults(place.run)
        return tuple(faults)


def _doors(extra: str) -> dict[str, str]:
    if extra != "all":
        return {extra: DOORS[extra]}
    with (ROOT / "pyproject.toml").open("rb") as file:
        (whole,) = tomllib.load(file)["project"]["optional-dependencies"]["all"]
    parts = whole.partition("[")[2].rstrip("]").split(",")
    return {part: DOORS[part] for part in parts}


def bare_faults(run: Callable[[str], Done]) -> list[str]:
    """Return the entry points that do not name the missing extra when none is installed."""
    faults: list[str] = []
    for extra, program in DOORS.items():
        told = run(program)
        # The last line is the error; its text may have more than one.
        last = told.err[told.err.rfind("\nagents_tools.") :]
        named = f"agents-tools[{extra}]" in (told.err if extra == "cli" else last)
        if told.code == 0:
            faults.append(f"{extra}: works without its extra, so its program shows nothing")
        elif not named or (extra != "cli" and not last.startswith("\nagents_tools.")):
            faults.append(f"{extra}: does not say what to install: {told.last}")
    return faults
