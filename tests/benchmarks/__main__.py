"""`python -m tests.benchmarks`: time the library and its peers, print a table, keep the figures.

Each peer is installed once, into an environment of its own under `.bench/`. All figures go to
`.bench/results.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from time import monotonic
from typing import Any

from tests.benchmarks import tokens
from tests.benchmarks.builtin import BUILTIN_IMPORTS, BUILTIN_TIMED, BUILTIN_TITLES, together
from tests.benchmarks.events import EVENT_ROWS, EVENT_TIMED
from tests.benchmarks.mcp import MCP_TIMED
from tests.benchmarks.subjects import BENCH, MCP, SUBJECTS, Subject
from tests.benchmarks.tables import duration, markdown, times
from tests.benchmarks.timing import BUDGET_SECONDS
from tests.benchmarks.worker import TIMED

PYDANTIC = "from pydantic import BaseModel, TypeAdapter, create_model, Field"
HEAVY = (
    *("anthropic", "click", "httpx", "litellm", "mcp", "openai", "rich", "starlette"),
    *("anyio", "asyncio", "griffe", "json", "pydantic", "pydantic_core"),
)
NONE = "not measured"
MCP_IMPORT = "mcp_import"
IMPORT, WEIGHT = "import", "weight"
"""The import of the decorator; what tools keep in memory, and the tokens of their definitions."""
UI = "ui"
"""Stands for all of the streams to the web, which no peer has."""
RUNS = ("turn", "late_turn", "turn_of_many", "cancelled")
GROUPS = {
    "tools": (IMPORT, WEIGHT, *(name for name in TIMED if name not in RUNS)),
    "runs": RUNS,
    "mcp": (*MCP_TIMED, MCP_IMPORT),
    "builtin": tuple(BUILTIN_TITLES),
    "events": tuple(EVENT_TIMED),
}
"""Words that stand for many workloads."""
CHOICES = tuple(
    dict.fromkeys([*GROUPS, *(name for group in GROUPS.values() for name in group), UI])
)
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
    "mcp_result_5mb": "MCP result of 5 MB over stdio",
    "mcp_result_20mb": "MCP result of 20 MB over stdio",
    "mcp_result_5mb_http": "MCP result of 5 MB over HTTP",
    "mcp_progress_2000": "MCP call with 2,000 progress reports over stdio",
    "mcp_progress_2000_cpu": "MCP call with 2,000 progress reports over stdio, CPU of the client",
    **EVENT_ROWS,
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--only", nargs="+", choices=CHOICES, help="time these workloads alone")
    parser.add_argument("--quick", action="store_true", help="fewer batches, smaller catalogue")
    options = parser.parse_args()
    asked: list[str] = options.only or [*GROUPS, UI]
    only = [name for one in asked for name in GROUPS.get(one, (one,))]
    if UI in only:
        quick = ["--quick"] if options.quick else []
        subprocess.run([sys.executable, "-m", "tests.benchmarks.ui", *quick], check=True)
    if only == [UI]:
        return
    results = measure(options.subjects, only, quick=options.quick)
    BENCH.mkdir(exist_ok=True)
    (BENCH / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    print("\n\n".join(filter(None, [table(results), builtin_table(results)])))


def measure(subjects: list[str], only: list[str], *, quick: bool) -> dict[str, Any]:
    """Time what each subject has of these workloads, in environments that are made for it."""
    for name in subjects:
        SUBJECTS[name].install()
    results: dict[str, Any] = {}
    for name in subjects:
        subject = SUBJECTS[name]
        print(f"Timing {name} …", file=sys.stderr)
        results[name] = report = _tools(subject, only, quick=quick)
        _add(report, _client(subject, only, quick=quick))
        _add(report, _events(subject, only, quick=quick))
    for name, builtin in _builtin(subjects, only, quick=quick).items():
        _add(results[name], builtin)
    return results


def table(results: dict[str, Any]) -> str:
    """Lay the figures out as Markdown: multiples of the limit, and what one operation took."""
    rows: list[list[str]] = []
    for name, title in TITLES.items():
        figures = [report["workloads"].get(name) for report in results.values()]
        if any(figures):
            rows.append([title, *map(_cell, figures)])
        if name.startswith("mcp_call") and any(figures):
            rows.append([f"{title}, median", *map(_median, figures)])
        if name in {IMPORT, MCP_IMPORT} and any(figures):
            rows.append(["heavy modules loaded by the import", *map(_loaded, figures)])
    for key, title in (("decorated", "memory, decorated"), ("built", "memory, built")):
        if any("memory" in report for report in results.values()):
            kept = [report.get("memory", {}).get(key) for report in results.values()]
            cells = (NONE if one is None else f"{one / 1024:.1f} KB" for one in kept)
            rows.append([f"{title}, per tool", *cells])
    if any("tokens" in report for report in results.values()):
        counts = [report.get("tokens") for report in results.values()]
        rows.append(["definitions of 5 tools", *(f"{n} tokens" if n else NONE for n in counts)])
    return markdown(["", *results], rows) if rows else ""


def builtin_table(results: dict[str, Any]) -> str:
    """Format the medians of class-based and built-in tools, with ratios to the first subject.

    The columns of the others have their time as a multiple of that of the first subject.
    """
    measured = {
        name: report["workloads"]
        for name, report in results.items()
        if any(report["workloads"].get(title) for title in BUILTIN_TITLES)
    }
    if not measured:
        return ""
    first, *others = measured
    beside = [f"{name} / {first}" for name in others]
    rows: list[list[str]] = []
    for name, title in BUILTIN_TITLES.items():
        figures = [workloads.get(name) for workloads in measured.values()]
        if any(figures):
            ratios = [_beside(figure, figures[0]) for figure in figures[1:]]
            rows.append([title, *map(_median, figures), *ratios])
        if name in BUILTIN_IMPORTS and any(figures):
            rows.append(
                [
                    "heavy modules loaded by the import",
                    *map(_loaded, figures),
                    *("" for _ in others),
                ]
            )
    return markdown(["", *measured, *beside], rows)


def _beside(figure: dict[str, Any] | None, first: dict[str, Any] | None) -> str:
    if figure is None or first is None:
        return NONE
    return times(figure["median"] / first["median"])


def _cell(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return NONE
    return f"{times(figure['ratio'])} ({duration(figure['seconds'])})"


def _median(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return NONE
    median, least = figure["median"], figure["limit_median"]
    return _cell({"seconds": median, "ratio": median / least})


def _loaded(figure: dict[str, Any] | None) -> str:
    return NONE if figure is None else " ".join(figure["heavy"]) or "none"


def _tools(subject: Subject, only: list[str], *, quick: bool) -> dict[str, Any]:
    """Time the tools of a subject, where it has any."""
    if subject.adapter is None:
        return {}
    names = [name for name in only if name in TIMED]
    report: dict[str, Any] = {"workloads": {}}
    if names or WEIGHT in only:
        scale = ["--batches", "10", "--size", "200"] if quick else []
        weigh = ["--weigh"] if WEIGHT in only else []
        report = _work(subject, "tests.benchmarks.worker", [*scale, *weigh], names)
    if WEIGHT in only:
        report["tokens"] = tokens.count(report.pop("definitions"))
    if IMPORT in only:
        report["workloads"][IMPORT] = _import(subject, subject.statement, PYDANTIC, quick=quick)
    return report


def _client(subject: Subject, only: list[str], *, quick: bool) -> dict[str, Any]:
    """Time the MCP client of a subject, where it has one, in a process of its own."""
    report: dict[str, Any] = {"workloads": {}}
    if subject.client is None:
        return report
    names = [name for name in only if name in MCP_TIMED]
    if names:
        scale = ["--batches", "10"] if quick else []
        report = _work(subject, "tests.benchmarks.mcp.worker", scale, names)
    if MCP_IMPORT in only:
        figure = _import(subject, subject.client_statement, MCP, quick=quick)
        report["workloads"][MCP_IMPORT] = figure
    return report


def _events(subject: Subject, only: list[str], *, quick: bool) -> dict[str, Any]:
    """Time the events of a subject, where it has any, in a process of its own."""
    names = [name for name in only if name in EVENT_TIMED]
    if subject.events is None or not names:
        return {"workloads": {}}
    scale = ["--batches", "10"] if quick else []
    return _work(subject, "tests.benchmarks.events.worker", scale, names)


def _builtin(subjects: list[str], only: list[str], *, quick: bool) -> dict[str, dict[str, Any]]:
    """Time the class-based and built-in tools of the subjects that have any, by turns."""
    chosen = [SUBJECTS[name] for name in subjects if SUBJECTS[name].builtin]
    reports: dict[str, dict[str, Any]] = {one.distribution: {"workloads": {}} for one in chosen}
    names = [name for name in BUILTIN_TIMED if name in only]
    if names and chosen:
        print("Timing class-based and built-in tools …", file=sys.stderr)
        reports = together.measure(chosen, names, batches=10 if quick else 50)
    for name in BUILTIN_IMPORTS:
        if name not in only:
            continue
        for one in chosen:
            statement = one.classes_statement if name == "class_import" else one.builtin_statement
            figure = _import(one, statement, PYDANTIC, quick=quick)
            reports[one.distribution]["workloads"][name] = figure
    return reports


def _add(report: dict[str, Any], more: dict[str, Any]) -> None:
    for key in ("workloads", "versions"):
        report[key] = report.get(key, {}) | more.get(key, {})
    if "python" in more:
        report["python"] = more["python"]


def _work(subject: Subject, worker: str, scale: list[str], names: list[str]) -> dict[str, Any]:
    command = [str(subject.python), "-m", worker, subject.distribution, *scale]
    done = subprocess.run(
        [*command, "--only", *names],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **subject.environment},
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _import(subject: Subject, statement: str, limit: str, *, quick: bool) -> dict[str, Any]:
    """Time an import in fresh processes, by turns with the limit's, by the CPU each took."""
    times = 3 if quick else 10
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    stop = monotonic() + BUDGET_SECONDS
    while not pairs or (len(pairs) < times and monotonic() < stop):
        pairs.append((_once(subject, limit), _once(subject, statement)))
    least = min(one["seconds"] for one, _ in pairs)
    seconds = min(own["seconds"] for _, own in pairs)
    return pairs[0][1] | {
        "seconds": seconds,
        "limit": least,
        "ratio": seconds / least,
        "median": statistics.median(own["seconds"] for _, own in pairs),
        "limit_median": statistics.median(one["seconds"] for one, _ in pairs),
    }


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
    compiled |= subject.environment
    done = subprocess.run(
        [str(subject.python), "-c", code], check=True, stdout=subprocess.PIPE, env=compiled
    )
    once: dict[str, Any] = json.loads(done.stdout)
    return once


if __name__ == "__main__":
    main()
