"""The tools of the demonstration: one over a table of facts, two over the files of a project."""

from __future__ import annotations

import ast
import csv
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from agents_tools import (
    Event,
    NotifyStreamEvent,
    ToolError,
    ToolProgressEvent,
    function_tool,
    notify,
    streaming_tool,
)

HERE = Path(__file__).parent

Planet = Literal["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]


@function_tool
def weight_on(planet: Planet, mass_kg: Annotated[float, Field(gt=0)] = 70) -> str:
    """Tell what something weighs on another planet.

    Args:
        planet: The planet to weigh it on.
        mass_kg: Its mass in kilograms.
    """
    gravity = float(planets()[planet]["gravity_m_s2"])
    shown = mass_kg * gravity / float(planets()["Earth"]["gravity_m_s2"])
    return f"{mass_kg:g} kg on {planet} weigh {mass_kg * gravity:.0f} N; a scale shows {shown:.1f} kg."


@streaming_tool
def survey(folder: str = ".") -> Iterator[Event | str]:
    """Read the Python files of a project and its history, and sum up what is there.

    Args:
        folder: Where the project is.
    """
    files = sorted(python_files(Path(folder)))
    if not files:
        raise ToolError(f"There is no Python file in {folder!r}. Name a folder that has some.")
    yield NotifyStreamEvent(f"[1/2] reading {len(files)} Python files")
    lines, functions = 0, list[tuple[int, str]]()
    for done, file in enumerate(files, start=1):
        source = file.read_text(encoding="utf-8")
        lines += source.count("\n")
        functions += functions_of(file, source)
        yield ToolProgressEvent(done, total=len(files), message=file.name)
    yield NotifyStreamEvent("[2/2] reading the history")
    history = commits.invoke_sync(folder=folder)
    longest = "\n".join(f"  {length:4} lines  {name}" for length, name in sorted(functions)[:-4:-1])
    yield (
        f"{len(files)} files, {lines:,} lines, {len(functions):,} functions; {history}\n"
        f"The longest functions:\n{longest}"
    )


@function_tool
def commits(folder: str = ".") -> str:
    """Count the commits of a project.

    Args:
        folder: Where the project is.
    """
    command = ["git", "-C", folder, "log", "-20000", "--format=%an: %s"]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        notify("no git history here", level="warning")
        return "no history."
    subjects = log.splitlines()
    for subject in subjects[:3]:
        notify(subject)
    return f"{len(subjects)} commits."


@cache
def planets() -> dict[str, dict[str, str]]:
    """Give the row of each planet."""
    text = (HERE / "planets.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["planet"]: row for row in rows}


def python_files(folder: Path) -> Iterator[Path]:
    """Find the Python files of a project, without environments and what was built."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._" and name not in BUILT]
        yield from (Path(place, name) for name in names if name.endswith(".py"))


BUILT = {"build", "dist", "site", "venv", "node_modules"}


def functions_of(file: Path, source: str) -> list[tuple[int, str]]:
    """Give the length and the place of each function."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []
    return [
        (1 + (node.end_lineno or node.lineno) - node.lineno, f"{file}:{node.lineno} {node.name}")
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
