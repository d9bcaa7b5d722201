"""The cost of storing runs: `python -m tests.benchmarks.durable`.

A run has many turns, each with a response of the model and a call: two steps. For comparison there
are the same run without a store, and steps of DBOS alone in a workflow.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from agents_tools import Agent, RunConfig, Runner, function_tool
from agents_tools.persistence import MemoryRunStore, PostgresRunStore, RunStore, SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call
from tests.benchmarks.tables import markdown
from tests.durable.postgres import postgres, why_not

TURNS = 100
STEPS = 2 * TURNS


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def run(store: RunStore | None, name: str) -> float:
    """Return the steps per second of one run."""
    answers = [tool_call("add", a=n, b=1, call_id=f"c{n}") for n in range(TURNS)]
    agent = Agent("Adder", tools=[add], model=ScriptedModel([*answers, "done"]))
    start = time.perf_counter()
    await Runner.run(agent, "add", run_id=name, run_config=RunConfig(store=store), max_turns=None)
    return STEPS / (time.perf_counter() - start)


async def best_of(store: RunStore | None) -> float:
    """Return the best of three runs, after one that opens everything."""
    best = max([await run(store, f"run {n}") for n in range(4)][1:])
    if store is not None:
        await store.aclose()
    return best


async def bare_steps(url: str) -> float:
    """Measure the steps of DBOS itself."""
    from dbos import DBOS

    @DBOS.step(name="bench.add")
    async def step(a: int) -> int:
        return a + 1

    @DBOS.workflow(name="bench.run")
    async def workflow() -> float:
        start = time.perf_counter()
        for n in range(STEPS):
            await step(n)
        return STEPS / (time.perf_counter() - start)

    config: Any = {"name": "bench", "system_database_url": url, "log_level": "CRITICAL"}
    DBOS(config=config)
    DBOS.launch()
    try:
        return max([await workflow() for _ in range(3)])
    finally:
        DBOS.destroy()


async def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = {
            "no store": await best_of(None),
            "`MemoryRunStore`": await best_of(MemoryRunStore()),
            "`SQLiteRunStore`": await best_of(SQLiteRunStore(place / "runs.db")),
        }
        if not why_not():
            with postgres() as url:
                rows["`PostgresRunStore`"] = await best_of(PostgresRunStore(url))
        rows["steps of DBOS alone, SQLite"] = await bare_steps(f"sqlite:///{place / 'bare.db'}")
    print(markdown(("", "steps per second"), [(name, f"{one:,.0f}") for name, one in rows.items()]))


if __name__ == "__main__":
    asyncio.run(main())
