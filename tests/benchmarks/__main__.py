"""`python -m tests.benchmarks`: time the library and its peers, print a table, keep the figures.

Each peer is installed once, into an environment of its own under `.bench/`. All figures go to
`.bench/results.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from tests.benchmarks import tokens
from tests.benchmarks.mcp import MCP_TIMED
from tests.benchmarks.subjects import BENCH, MCP, SUBJECTS, Subject
from tests.benchmarks.worker import TIMED

PYDANTIC = "from pydantic import BaseModel, TypeAdapter, create_model, Field"
HEAVY = (
    *("anthropic", "click", "httpx", "mcp", "openai", "rich", "starlette"),
    *("anyio", "asyncio", "griffe", "json", "pydantic", "pydantic_core"),
)
NONE = "not measured"
MCP_IMPORT = "mcp_import"
CHOICES = (*TIMED, *MCP_TIMED, MCP_IMPORT)
TITLES = {
    "import": "import the decorator, CPU (limit: names of pydantic)",
    "decorate": "decorate, per tool (limit: build)",
    "build": "decorate and export, per tool",
    "call_simple": "call, 2 parameters",
    "call_medium": "call, 8 parameters",
    "call_complex": "call, models and unions",
    "call_threaded": "call, plain function in a thread",
    "call_inline": "call, plain function inline",
    "result": "answer with 100 models",
    "stream": "stream, per event (limit: bare generator)",
    "concurrent": "10,000 calls at once (limit: sleeps)",
    "turn": "run of an agent, per turn with one call",
    "late_turn": "turn 400 of a run (limit: its turn 10)",
    "turn_of_many": "turn with 1,000 tools (limit: with one)",
    "cancelled": "cancel a run until its tool sees it (limit: a task)",
    "mcp_import": "import the MCP client, CPU (limit: the SDK's)",
    "mcp_call_memory": "MCP call, server in the process (limit: client of the SDK)",
    "mcp_call_stdio": "MCP call over stdio",
    "mcp_call_http": "MCP call over HTTP",
    "mcp_connect_8": "start 8 MCP servers and list (limit: all at once)",
    "mcp_list_1000": "list 1,000 MCP tools over stdio",
    "mcp_result_5mb": "MCP answer of 5 MB over stdio",
    "mcp_result_20mb": "MCP answer of 20 MB over stdio",
    "mcp_result_5mb_http": "MCP answer of 5 MB over HTTP",
    "mcp_progress_2000": "MCP call with 2,000 reports over stdio",
    "mcp_progress_2000_cpu": "MCP call with 2,000 reports over stdio, CPU of the client",
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--only", nargs="+", choices=CHOICES, help="time these workloads alone")
    parser.add_argument("--quick", action="store_true", help="fewer batches, smaller catalogue")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.subjects:
        subject = SUBJECTS[name]
        subject.install()
        print(f"Timing {name} …", file=sys.stderr)
        results[name] = report = _tools(subject, options.only, quick=options.quick)
        client = _client(subject, options.only, quick=options.quick)
        report["workloads"] = report.get("workloads", {}) | client.pop("workloads", {})
        report["versions"] = report.get("versions", {}) | client.get("versions", {})
    BENCH.mkdir(exist_ok=True)
    (BENCH / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    print(table(results))


def table(results: dict[str, Any]) -> str:
    """Lay the figures out as Markdown: multiples of the limit, and what one operation took."""
    rows = [["", *results], ["---"] + ["---:"] * len(results)]
    for name, title in TITLES.items():
        figures = [report["workloads"].get(name) for report in results.values()]
        if any(figures):
            rows.append([title, *map(_cell, figures)])
        if name.startswith("mcp_call") and any(figures):
            rows.append([f"{title}, median", *map(_median, figures)])
        if name in {"import", MCP_IMPORT} and any(figures):
            rows.append(["heavy modules loaded by it", *map(_loaded, figures)])
    for key, title in (("decorated", "memory, decorated"), ("built", "memory, built")):
        if any("memory" in report for report in results.values()):
            kept = [report.get("memory", {}).get(key) for report in results.values()]
            cells = (NONE if one is None else f"{one / 1024:.1f} KB" for one in kept)
            rows.append([f"{title}, per tool", *cells])
    if any("tokens" in report for report in results.values()):
        counts = [report.get("tokens") for report in results.values()]
        rows.append(["definitions of 5 tools", *(f"{n} tokens" if n else NONE for n in counts)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return NONE
    return f"{figure['ratio']:.3g}x ({_time(figure['seconds'])})"


def _median(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return NONE
    median, least = figure["median"], figure["limit_median"]
    return _cell({"seconds": median, "ratio": median / least})


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _loaded(figure: dict[str, Any] | None) -> str:
    return NONE if figure is None else " ".join(figure["heavy"]) or "none"


def _tools(subject: Subject, only: list[str] | None, *, quick: bool) -> dict[str, Any]:
    """Time the tools of a subject, where it has any."""
    names = [name for name in only or () if name in TIMED]
    if subject.adapter is None or (only and not names):
        return {}
    scale = ["--batches", "10", "--size", "200"] if quick else []
    report = _work(subject, "tests.benchmarks.worker", scale, names)
    if not only:
        report["workloads"]["import"] = _import(subject, subject.statement, PYDANTIC, quick=quick)
        report["tokens"] = tokens.count(report.pop("definitions"))
    return report


def _client(subject: Subject, only: list[str] | None, *, quick: bool) -> dict[str, Any]:
    """Time the MCP client of a subject, where it has one, in a process of its own."""
    report: dict[str, Any] = {"workloads": {}}
    if subject.client is None:
        return report
    names = [name for name in only or () if name in MCP_TIMED]
    if names or not only:
        scale = ["--batches", "10"] if quick else []
        report = _work(subject, "tests.benchmarks.mcp.worker", scale, names)
    if not only or MCP_IMPORT in only:
        figure = _import(subject, subject.client_statement, MCP, quick=quick)
        report["workloads"][MCP_IMPORT] = figure
    return report


def _work(subject: Subject, worker: str, scale: list[str], names: list[str]) -> dict[str, Any]:
    command = [str(subject.python), "-m", worker, subject.distribution, *scale]
    only = ["--only", *names] if names else []
    done = subprocess.run([*command, *only], check=True, stdout=subprocess.PIPE)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _import(subject: Subject, statement: str, limit: str, *, quick: bool) -> dict[str, Any]:
    """Time an import in fresh processes, by turns with the limit's, by the CPU each took."""
    times = 3 if quick else 10
    pairs = [(_once(subject, limit), _once(subject, statement)) for _ in range(times)]
    least = min(one["seconds"] for one, _ in pairs)
    seconds = min(own["seconds"] for _, own in pairs)
    return pairs[0][1] | {"seconds": seconds, "limit": least, "ratio": seconds / least}


def _once(subject: Subject, statement: str) -> dict[str, Any]:
    code = f"""
import sys, time
start = time.process_time()
{statement}
seconds = time.process_time() - start
heavy = [name for name in {HEAVY} if name in sys.modules]
modules = len(sys.modules)
import json
print(json.dumps({{"seconds": seconds, "modules": modules, "heavy": heavy}}))
"""
    compiled = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [str(subject.python), "-c", code], check=True, stdout=subprocess.PIPE, env=compiled
    )
    once: dict[str, Any] = json.loads(done.stdout)
    return once


if __name__ == "__main__":
    main()
