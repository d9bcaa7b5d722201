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
from tests.benchmarks.subjects import BENCH, SUBJECTS, Subject
from tests.benchmarks.worker import TIMED

PYDANTIC = "from pydantic import BaseModel, TypeAdapter, create_model, Field"
HEAVY = (
    *("anthropic", "click", "httpx", "mcp", "openai", "rich", "starlette"),
    *("anyio", "asyncio", "griffe", "json", "pydantic", "pydantic_core"),
)
NONE = "not measured"
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
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--only", nargs="+", choices=TIMED, help="time these workloads alone")
    parser.add_argument("--quick", action="store_true", help="fewer batches, smaller catalogue")
    options = parser.parse_args()
    scale = ["--batches", "10", "--size", "200"] if options.quick else []
    only = ["--only", *options.only] if options.only else []
    results: dict[str, Any] = {}
    for name in options.subjects:
        subject = SUBJECTS[name]
        subject.install()
        print(f"Timing {name} …", file=sys.stderr)
        results[name] = report = _work(subject, scale + only)
        if not only:
            report["workloads"]["import"] = _import(subject, 3 if options.quick else 10)
            report["tokens"] = tokens.count(report.pop("definitions"))
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
        if name == "import" and any(figures):
            loaded = [
                " ".join(report["workloads"]["import"]["heavy"]) for report in results.values()
            ]
            rows.append(["heavy modules loaded by it", *(names or "none" for names in loaded)])
    for key, title in (("decorated", "memory, decorated"), ("built", "memory, built")):
        if all("memory" in report for report in results.values()):
            kept = [report["memory"][key] / 1024 for report in results.values()]
            rows.append([f"{title}, per tool", *(f"{one:.1f} KB" for one in kept)])
    if all("tokens" in report for report in results.values()):
        counts = [report["tokens"] for report in results.values()]
        rows.append(["definitions of 5 tools", *(f"{n} tokens" if n else NONE for n in counts)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return NONE
    seconds, ratio = figure["seconds"], figure["ratio"]
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{ratio:.3g}x ({seconds / size:.3g} {unit})"
    return f"{ratio:.3g}x ({seconds * 1e6:.3g} µs)"


def _work(subject: Subject, arguments: list[str]) -> dict[str, Any]:
    command = [str(subject.python), "-m", "tests.benchmarks.worker", subject.distribution]
    done = subprocess.run([*command, *arguments], check=True, stdout=subprocess.PIPE)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _import(subject: Subject, times: int) -> dict[str, Any]:
    """Time the import in fresh processes, by turns with pydantic's, by the CPU each took."""
    pairs = [(_once(subject, PYDANTIC), _once(subject, subject.statement)) for _ in range(times)]
    least = min(pydantic["seconds"] for pydantic, _ in pairs)
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
