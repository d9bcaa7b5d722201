"""The tools of the demonstration: two over a table of facts, two over the files of a project."""

from __future__ import annotations

import ast
import csv
import io
import os
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import shorten
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

Planet = Literal["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]


@function_tool
def weigh(planet: Planet, mass_kg: Annotated[float, Field(gt=0)] = 70) -> str:
    """Tell what something weighs on a planet.

    Args:
        planet: Where to weigh it.
        mass_kg: Its mass in kilograms.
    """
    gravity = float(facts()[planet]["gravity_m_s2"])
    return f"{mass_kg:g} kg weigh {mass_kg * gravity:.0f} newtons on {planet}."


@streaming_tool
def drop(height_m: Annotated[float, Field(gt=0, le=1000)] = 100) -> Iterator[Event | str]:
    """Drop a stone on every planet and measure how long it falls.

    Args:
        height_m: From how high, in metres.
    """
    yield NotifyStreamEvent(f"letting it go at {height_m:g} m")
    times: dict[str, float] = {}
    for done, (planet, row) in enumerate(facts().items(), start=1):
        yield ToolProgressEvent(done - 1, total=len(facts()), message=planet)
        times[planet] = seconds_of_fall(height_m, float(row["gravity_m_s2"]))
    yield ToolProgressEvent(len(facts()), total=len(facts()))
    first, last = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    yield (
        f"A stone falls {height_m:g} m in {times[first]:.2f} s on {first} "
        f"and in {times[last]:.2f} s on {last}."
    )


@streaming_tool
def survey(folder: str = "examples") -> Iterator[Event | str]:
    """Read the Python files of a project and its history, and sum up what is there.

    Args:
        folder: Where the project is.
    """
    files = sorted(python_files(Path(folder)))
    if not files:
        raise ToolError(f"There is no Python file in {folder!r}. Name a folder that has some.")
    yield NotifyStreamEvent(f"[1/2] reading {len(files)} Python files")
    total = Counter[str]()
    imported = Counter[str]()
    for done, file in enumerate(files, start=1):
        source = file.read_text(encoding="utf-8", errors="replace")
        total += counts_of(source)
        imported.update(imports_of(source))
        yield ToolProgressEvent(done, total=len(files))
    yield NotifyStreamEvent("[2/2] reading the history")
    history = commits.invoke_sync(folder=folder)
    most = ", ".join(f"{name} ({count})" for name, count in imported.most_common(3))
    yield (
        f"{len(files)} files, {total['lines']:,} lines, {total['comments']:,} comments, "
        f"{total['functions']:,} functions. {history}\nImported by most files: {most}."
    )


@function_tool
def commits(folder: str = ".") -> str:
    """Count the commits of a project.

    Args:
        folder: Where the project is.
    """
    command = ["git", "-C", folder, "log", "-10000", "--format=%as %s"]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        notify("there is no git history here", level="warning")
        return "No history."
    subjects = log.splitlines()
    for subject in subjects[:3]:
        notify(shorten(subject, 72, placeholder=" …"))
    return f"{len(subjects)} commits."


@cache
def facts() -> dict[str, dict[str, str]]:
    """Return the row of each planet."""
    text = Path(__file__).with_name("planets.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["planet"]: row for row in rows}


def seconds_of_fall(height: float, gravity: float, step: float = 2e-6) -> float:
    """Follow a fall without air, step by step."""
    time = speed = 0.0
    while height > 0:
        speed += gravity * step
        height -= speed * step
        time += step
    return time


def python_files(folder: Path) -> Iterator[Path]:
    """Find the Python files of a project, but not those of environments and builds."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._" and name not in NOT_OURS]
        yield from (Path(place, name) for name in names if name.endswith(".py"))


NOT_OURS = {"build", "dist", "node_modules", "site", "venv"}


def counts_of(source: str) -> Counter[str]:
    """Count lines, comments and functions."""
    count = Counter(lines=source.count("\n"))
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            count["comments"] += token.type == tokenize.COMMENT
            count["functions"] += token.type == tokenize.NAME and token.string == "def"
    except (tokenize.TokenError, SyntaxError):
        pass  # not every file is finished
    return count


def imports_of(source: str) -> set[str]:
    """Return the names of the modules that a file imports."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return set()
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return found | {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) if node.module
    }
