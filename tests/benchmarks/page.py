"""`python -m tests.benchmarks.page`: measure everything, and put the figures on the pages of the docs.

A page has a pair of comments for each table, `<!-- figures: NAME -->` and `<!-- end -->`; what is
between them is replaced by what the program of that name prints, with its command and the versions
below it. Text around the figures is written by people.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.__main__ import NONE
from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.tables import markdown

__all__ = ["DIGESTS", "PAGE", "PAGES", "SECTIONS", "digest", "put"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
PAGES: Mapping[str, Path] = {"campaigns": ROOT / "docs" / "explanation" / "reliability.md"}
"""The page of each section that is on another one."""
_ALL = "--quick --subjects"
_PYTHON = "python -m tests.benchmarks"
SECTIONS: Mapping[str, str] = {
    "tools": f"{_PYTHON} {_ALL} agents-tools openai-agents fastmcp pydantic-ai-slim langchain-core"
    " --only tools",
    "runs": f"{_PYTHON} {_ALL} agents-tools openai-agents pydantic-ai-slim --only runs",
    "mcp": f"{_PYTHON} {_ALL} agents-tools mcp fastmcp --only mcp",
    "mcp-stress": f"{_PYTHON}.mcp.stress",
    "builtin": f"{_PYTHON} {_ALL} agents-tools openhands-tools --only builtin",
    "events": f"{_PYTHON} {_ALL} agents-tools openhands-tools langgraph --only events",
    "store": f"{_PYTHON}.events.store",
    "ui": f"{_PYTHON}.ui",
    "toolsets": f"{_PYTHON}.toolsets",
    "search": f"{_PYTHON}.search --subjects agents-tools fastmcp pydantic-ai-slim",
    "code-mode": f"{_PYTHON}.code_mode",
    "code-mode-bfcl": f"{_PYTHON}.code_mode.bfcl",
    "bfcl": f"{_PYTHON}.bfcl --subjects agents-tools openai-agents pydantic-ai-slim langchain-core"
    " fastmcp",
    "frameworks": f"{_PYTHON}.frameworks",
    "queue": f"{_PYTHON}.queue",
    "backend": f"{_PYTHON}.backend",
    "durable": f"{_PYTHON}.durable",
    "profiles": f"{_PYTHON}.profiles",
    "campaigns": "python -m tests.soak.report",
}
"""The command that prints the tables of each section."""
DIGESTS = (ROOT / "README.md", ROOT / "docs" / "comparison.md")
"""Pages that show a few of the figures: without the times, and what is compared first."""
_SHOWN = (
    ("import the decorator, CPU", "tools"),
    ("decorate and export, per tool", "tools"),
    ("call, 2 parameters", "tools"),
    ("call, models and unions", "tools"),
    ("answer with 100 models", "tools"),
    ("10,000 calls at once", "tools"),
    ("definitions of 5 tools", "tools"),
    ("run of an agent, per turn with one call", "runs"),
    ("turn with 1,000 tools", "runs"),
)


def digest(page: str) -> str:
    """Return a few rows of the page of figures, as other pages show them.

    Raises:
        KeyError: The page has not all of them.
    """
    tables = {name: _table(page, name) for name in ("tools", "runs")}
    subjects = list(tables["tools"][""])
    rows = [
        [what, *(_ratio(tables[name][what].get(subject, NONE)) for subject in subjects)]
        for what, name in _SHOWN
    ]
    return markdown(["", *subjects], rows)


def _table(page: str, name: str) -> dict[str, dict[str, str]]:
    """Read a table of the page: by its row, without what is in brackets there, and its column."""
    told = page.partition(f"<!-- figures: {name} -->")[2].partition("<!-- end -->")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in told.splitlines()
        if line.startswith("|")
    ]
    head = cells[0][1:]
    return {row[0].partition(" (")[0]: dict(zip(head, row[1:], strict=True)) for row in cells}


def _ratio(cell: str) -> str:
    return cell.partition(" (")[0]


def put(page: str, name: str, text: str) -> str:
    """Replace the figures of one section.

    Raises:
        ValueError: The page has no place for them.
    """
    begin, end = f"<!-- figures: {name} -->\n", "<!-- end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"The page has not exactly one place for the figures of {name!r}.")
    return pattern.sub(lambda _: f"{begin}\n{text.strip()}\n\n{end}", page)


def measured(name: str) -> str:
    """Run the program of a section and give its tables with what they were made by."""
    command = SECTIONS[name]
    arguments = [sys.executable, *shlex.split(command)[1:]]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"`{command}` failed with status {done.returncode}; see above.")
    return f"{done.stdout.strip()}\n\n```sh\n{command}\n```\n\n{_conditions_of(command)}"


def _conditions_of(command: str) -> str:
    named = [SUBJECTS[word] for word in shlex.split(command) if word in SUBJECTS]
    others = [
        f"{one.distribution} {_version(one.python, one.distribution)}"
        for one in named
        if one.distribution != "agents-tools"
    ]
    peers = ", compared with " + ", ".join(others) if others else ""
    cores = os.cpu_count()
    return (
        f"agents-tools {version('agents-tools')} on CPython {platform.python_version()}, "
        f"{cores} shared cores{peers}."
    )


def _version(python: Path, distribution: str) -> str:
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    done = subprocess.run([str(python), "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main() -> None:
    """Measure what the command line asks for, and write the page after each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--print", action="store_true", help="leave the page as it is")
    options = parser.parse_args()
    for name in options.only:
        print(f"Measuring {name} …", file=sys.stderr)
        text = measured(name)
        if options.print:
            print(text)
        else:
            page = PAGES.get(name, PAGE)
            page.write_text(put(page.read_text(), name, text))
    if not options.print:
        few = digest(PAGE.read_text())
        for page in DIGESTS:
            page.write_text(put(page.read_text(), "digest", few))


if __name__ == "__main__":
    main()
