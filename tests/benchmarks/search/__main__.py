"""`python -m tests.benchmarks.search`: search with each library, and count the hits."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.search.data import Query, Tool, bfcl, live_steps, live_tools, many
from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.tables import duration, markdown

LIMIT = 5
MANY = 10_000
TITLES = {
    "agents-tools": "agents_tools",
    "fastmcp": "FastMCP, BM25",
    "pydantic-ai-slim": "pydantic-ai, keywords",
}
TIMED = {"agents-tools": 2_000, "fastmcp": 40, "pydantic-ai-slim": 40}
"""How many queries are timed; the peers look at every tool in every query."""


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.search")
    parser.add_argument("--subjects", nargs="+", choices=list(TITLES), default=list(TITLES))
    for option, variable in (
        ("--live-tools", "LIVE_MCP_TOOLS"),
        ("--live-tasks", "LIVE_MCP_TASKS"),
    ):
        known = os.environ.get(variable)
        parser.add_argument(option, type=Path, default=Path(known) if known else None)
    options = parser.parse_args()
    tools, queries = bfcl()
    sets = [(f"BFCL, {len(queries):,} requests, {len(tools):,} definitions", tools, queries)]
    everything = tools
    if options.live_tools and options.live_tasks:
        live = live_tools(options.live_tools)
        steps = live_steps(options.live_tasks, live)
        sets.append((f"LiveMCPBench, {len(steps)} steps, {len(live)} tools", live, steps))
        everything = [*tools, *live]
    head = ["", *(f"{name}: {part}" for name, _, _ in sets for part in ("first", "top five"))]
    rows: list[list[str]] = []
    for subject in options.subjects:
        row = [TITLES[subject]]
        for _, pool, asked in sets:
            row += _hits(subject, pool, asked)
        some = queries[:: max(1, len(queries) // TIMED[subject])]
        taken = _answers(subject, many(everything, MANY), some)["seconds"]
        rows.append([*row, duration(taken)])
    print(markdown([*head, f"a query over {MANY:,} tools"], rows))


def _hits(subject: str, tools: list[Tool], queries: list[Query]) -> list[str]:
    names = _answers(subject, tools, queries)["names"]
    pairs = [(found, right) for found, (_, right) in zip(names, queries, strict=True)]
    first = sum(found[:1] == [right] for found, right in pairs)
    top = sum(right in found for found, right in pairs)
    return [f"{first / len(queries):.1%}", f"{top / len(queries):.1%}"]


def _answers(subject: str, tools: list[Tool], queries: list[Query]) -> dict[str, Any]:
    peer = SUBJECTS[subject]
    peer.install()
    print(f"Searching {len(tools):,} tools with {subject} …", file=sys.stderr)
    texts = [text for text, _ in queries]
    asked = {"subject": subject, "tools": tools, "queries": texts, "limit": LIMIT}
    done = subprocess.run(
        [str(peer.python), "-m", "tests.benchmarks.search.worker"],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **peer.environment},
    )
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


if __name__ == "__main__":
    main()
