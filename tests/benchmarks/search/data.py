"""Tools, and requests with the names of the right tools."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.bfcl.cases import DATA_SET, json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Query", "Tool", "bfcl", "live_steps", "live_tools", "many"]

Tool = dict[str, Any]
"""A name, a description, a JSON Schema (`parameters`) and the name of a server, which can be empty."""
Query = tuple[str, str]
"""A request and the name of the right tool."""

CALLED = (
    *("simple_python", "simple_java", "simple_javascript", "multiple", "parallel"),
    *("parallel_multiple", "live_simple", "live_multiple", "live_parallel"),
    "live_parallel_multiple",
)
"""The categories with right answers."""
POOLS = (*CALLED, "irrelevance", "live_irrelevance", "live_relevance")


def bfcl() -> tuple[list[Tool], list[Query]]:
    """Return all definitions of BFCL, and the requests that one function answers."""
    data = _folder()
    found: dict[tuple[str, str], Tool] = {}
    queries: list[Query] = []
    for category in POOLS:
        name = f"BFCL_v4_{category}.json"
        answers = data / "possible_answer" / name
        right = (
            {one["id"]: one["ground_truth"] for one in _lines(answers)}
            if category in CALLED
            else {}
        )
        for entry in _lines(data / name):
            for function in entry["function"]:
                _add(found, function)
            names = {called for call in right.get(entry["id"], ()) for called in call}
            if len(names) == 1:
                queries.append((entry["question"][0][-1]["content"], names.pop()))
    for file in sorted((data / "multi_turn_func_doc").glob("*.json")):
        for function in _lines(file):
            _add(found, function)
    return list(found.values()), queries


def _add(found: dict[tuple[str, str], Tool], function: dict[str, Any]) -> None:
    name, description = function["name"], function["description"]
    parameters = json_schema(function["parameters"])
    tool = {"name": name, "description": description, "parameters": parameters, "server": ""}
    found.setdefault((name, description), tool)


def _folder() -> Path:
    DATA_SET.install()
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    command = [str(DATA_SET.python), "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) / "bfcl_eval" / "data"


def _lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def live_tools(file: Path) -> list[Tool]:
    """Return the tools of LiveMCPBench.

    Args:
        file: Its `tools.json`.
    """
    return [
        {
            "name": tool["name"],
            "description": tool.get("description") or "",
            "parameters": tool.get("inputSchema") or {},
            "server": f"{server['name']} {name} {part.get('server_name') or ''}",
            "annotations": tool.get("annotations"),
        }
        for server in json.loads(file.read_text(encoding="utf-8"))
        for name, part in server["tools"].items()
        for tool in part["tools"]
    ]


def live_steps(file: Path, tools: list[Tool]) -> list[Query]:
    """Return the steps of annotated tasks of LiveMCPBench with their tools.

    Args:
        file: The annotated tasks.
        tools: The tools.
    """
    known = {tool["name"] for tool in tools}
    queries: list[Query] = []
    for task in json.loads(file.read_text(encoding="utf-8")):
        notes = task["Annotator Metadata"]
        steps, names = list(_numbered(notes["Steps"])), list(_numbered(notes["Tools"]))
        if len(steps) == len(names):
            queries += [pair for pair in zip(steps, names, strict=True) if pair[1] in known]
    return queries


def _numbered(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if line.strip():
            yield re.sub(r"^\s*\d+[.)]\s*", "", line).strip()


def many(tools: list[Tool], number: int) -> list[Tool]:
    """Return a number of tools with different names.

    Args:
        tools: The tools to repeat.
        number: The number.
    """
    return [
        {**tools[at % len(tools)], "name": f"{tools[at % len(tools)]['name']}_{at}"}
        for at in range(number)
    ]
