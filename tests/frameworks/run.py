"""Runs the suite in every framework, each in an environment of its own where it needs one.

`python -m tests.frameworks.run [names] [--make | --only-make] [--write PAGE]`
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FRAMEWORKS", "QUIET", "ROOT", "Finding", "Framework", "examined", "table"]

ROOT = Path(__file__).resolve().parents[2]
_LIMIT = 120
"""Seconds that one framework may take."""


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework, and where it is installed.

    Attributes:
        name: Its name, as its adapter is called.
        packages: What to install; the first one gives the version.
        environment: The name of its own environment; `None` for that of the project.
    """

    name: str
    packages: tuple[str, ...]
    environment: str | None

    @property
    def python(self) -> Path:
        """The interpreter that has it."""
        if self.environment is None:
            return Path(sys.executable)
        folder = ROOT / ".frameworks" / self.environment
        return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def missing(self) -> str | None:
        """Why it cannot be examined; `None` if it can."""
        if self.environment is not None:
            if self.python.exists():
                return None
            return f"no environment: python -m tests.frameworks.run {self.name} --make"
        try:
            importlib.metadata.version(self.packages[0])
        except importlib.metadata.PackageNotFoundError:
            return f"{self.packages[0]} is not installed"
        return None

    def make(self) -> None:
        """Make its environment, or bring it up to date."""
        if self.environment is None:
            return
        folder = self.python.parent.parent
        if not self.python.exists():
            _uv("venv", "--python", sys.executable, str(folder))
        own = ("-e", f"{ROOT}[schema]", "pytest")
        _uv("pip", "install", "--python", str(self.python), "-U", *self.packages, *own)


def _uv(*arguments: str) -> None:
    program = Path(sys.executable).with_name("uv")
    subprocess.run([str(program), *arguments], check=True)  # noqa: S603 - arguments from here


def _frameworks() -> dict[str, Framework]:
    text = Path(__file__).with_name("requirements.json").read_text(encoding="utf-8")
    return {
        name: Framework(name, tuple(given["packages"]), given["environment"])
        for name, given in json.loads(text).items()
    }


FRAMEWORKS = _frameworks()
"""All of them, by name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the suite found in one framework.

    Attributes:
        framework: The framework.
        version: Its version.
        ours: The cases of our tools, by check: `[name, passed, detail]`.
        own: Those of its own tools; `None` where it makes none of functions.
    """

    framework: str
    version: str
    ours: dict[str, list[list[Any]]]
    own: dict[str, list[list[Any]]] | None

    @property
    def faults(self) -> list[str]:
        """What our tools do not pass."""
        return [
            f"{check}: {name}: {detail}"
            for check, cases in self.ours.items()
            for name, passed, detail in cases
            if passed is False
        ]


def examined(framework: Framework) -> Finding:
    """Run the suite in a framework, in a process of its own.

    Raises:
        RuntimeError: The process failed, or took too long.
    """
    program = [str(framework.python), "-c", _PROGRAM, framework.name, framework.packages[0]]
    try:
        done = subprocess.run(  # noqa: S603 - a program from here
            program,
            cwd=ROOT,
            env={**os.environ, **QUIET},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{framework.name} took longer than {_LIMIT} s") from error
    if done.returncode != 0:
        raise RuntimeError(f"{framework.name} failed:\n{done.stderr[-2_000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Finding(framework.name, found["version"], found["ours"], found.get("own"))


_PROGRAM = """
import importlib.metadata, sys
sys.path.insert(0, "")
from tests.frameworks import suite
suite.main(sys.argv[1], version=importlib.metadata.version(sys.argv[2]))
"""

QUIET = {
    "AGNO_TELEMETRY": "false",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONWARNINGS": "ignore",
    "PYTHONIOENCODING": "utf-8",
}
"""Nothing is to be sent anywhere."""


# --- the table

_COLUMNS = {
    "arguments": ("values",),
    "results as JSON": ("structured",),
    "bad arguments": ("bad_input",),
    "failures": ("failures",),
    "generators": ("generators",),
    "cancellation": ("cancel",),
}
"""What is compared, by the heading of its column."""


def table(findings: list[Finding]) -> str:
    """Return the page that compares our tools with those that the frameworks create."""
    rows = [_row(finding) for finding in sorted(findings, key=lambda one: one.framework)]
    heads = ["framework", *_COLUMNS, "everything else"]
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]
    return _HEAD + "\n".join(lines) + "\n" + _notes(findings)


def _row(finding: Finding) -> list[str]:
    cells = [f"{finding.framework} {finding.version}"]
    for checks in _COLUMNS.values():
        own = "—" if finding.own is None else _score(finding.own, checks)
        cells.append(f"**{_score(finding.ours, checks)}** / {own}")
    compared = {check for checks in _COLUMNS.values() for check in checks}
    rest = tuple(check for check in finding.ours if check not in compared)
    return [*cells, f"**{_score(finding.ours, rest)}**"]


def _score(cases: dict[str, list[list[Any]]], checks: tuple[str, ...]) -> str:
    counted = [passed for check in checks for _, passed, _ in cases[check] if passed is not None]
    return f"{sum(counted)} of {len(counted)}"


_HEAD = """# Tools in other frameworks, measured

<!-- Written by `python -m tests.frameworks.run --write`; change it there. -->

This page compares tools of this library with the frameworks' own tools. The same eleven typed
functions are tools of an agent of each framework with a scripted model: once with `@function_tool`
and `to_<framework>`, once with the framework's own decorator. Each cell has the number of passed
cases: **agents_tools** / the framework's own tool.

- **arguments**: a model with a dataclass, a date, an enum and a time, defaults, `None`, `*args` and
  positional-only parameters arrive with the declared types.
- **results as JSON**: a dictionary reaches the model as JSON.
- **bad arguments**: eight invalid calls do not reach the function, and the error names the place.
- **failures**: a function that raises does not end the run, and the model receives the reason.
- **generators**: for a function that yields progress, the model receives only the result.
- **cancellation**: when the run is cancelled, the `finally` block of the function has run.
- **everything else**: progress in `listen()` and in the framework's own stream, images, policies,
  broken JSON, concurrent calls, class-based tools, and the framework's tools used in this library.
  Cases that a framework has no feature for are not counted.

"""


def _notes(findings: list[Finding]) -> str:
    said = [f"- {one.framework}: {fault}" for one in findings for fault in one.faults]
    return (
        "\nCases that tools of this library do not pass:\n\n" + "\n".join(said) + "\n"
        if said
        else ""
    )


def main() -> None:
    """Examine the frameworks that are named, or all; print or write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="frameworks; all by default")
    parser.add_argument("--make", action="store_true", help="make or update the environments")
    parser.add_argument("--only-make", action="store_true", help="make them, and run nothing")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table there")
    given = parser.parse_args()
    findings: list[Finding] = []
    for name in given.names or FRAMEWORKS:
        framework = FRAMEWORKS[name.replace("-", "_")]
        if given.make or given.only_make:
            framework.make()
        if given.only_make:
            continue
        if (reason := framework.missing) is not None:
            _say(f"{framework.name}: left out ({reason})")
            continue
        finding = examined(framework)
        findings.append(finding)
        _say(f"{framework.name} {finding.version}: {len(finding.faults)} faults")
        for fault in finding.faults:
            _say(f"  {fault}")
    if given.only_make:
        return
    page = table(findings)
    if given.write is None:
        _say(page[page.index("| framework") :])
    else:
        given.write.write_text(page, encoding="utf-8")
    sys.exit(any(finding.faults for finding in findings))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
