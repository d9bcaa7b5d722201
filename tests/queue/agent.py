"""A run with a store whose tool runs in a queue: `python -m tests.queue.agent QUEUE_URL FOLDER`.

The process is killed while the call runs, and started again. At its end it prints the statuses of
the calls.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from agents_tools import Agent, RunConfig, Runner
from agents_tools.content import ToolCallOutputItem
from agents_tools.execution import run_on
from agents_tools.persistence import SQLiteRunStore
from agents_tools.persistence.queue import DBOSBackend
from agents_tools.testing import ScriptedModel, tool_call
from tests.queue.worker import charge


async def main(url: str, folder: str) -> None:
    """Begin the run, or continue it."""
    store = SQLiteRunStore(Path(folder) / "runs.db")
    request = tool_call("charge", folder=folder, until=str(Path(folder) / "go"))
    # A run that continues does not ask the model again for the call that it has begun.
    answers = ["done"] if (Path(folder) / "effects").exists() else [request, "done"]
    async with DBOSBackend(url, silence=4.0) as backend:
        agent = Agent("Clerk", tools=[run_on(backend)(charge)], model=ScriptedModel(answers))
        result = await Runner.run(
            agent, "Charge it.", run_id="order", run_config=RunConfig(store=store)
        )
    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    sys.stdout.write(json.dumps([[item.status, item.output] for item in outputs]) + "\n")
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
