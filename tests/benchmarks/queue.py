"""The throughput of a queue with 1 to 4 workers: `python -m tests.benchmarks.queue`.

The workers run on this machine, over PostgreSQL. The calls of the first row wait, as calls of
other services do; those of the second row use a CPU, so the CPUs of the machine limit them.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents_tools.persistence.queue import DBOSBackend
from tests.benchmarks.tables import markdown
from tests.durable.postgres import postgres
from tests.queue.running import Workers, call_of, status_of

CONCURRENCY = 4
COUNT = 80
FLEETS = (1, 2, 3, 4)


async def throughput(url: str, queue: str, tool: str, arguments: dict[str, Any]) -> float:
    """Return the calls per second, after a first call that opens everything."""
    async with DBOSBackend(url, queue=queue) as backend:

        async def one(number: int) -> None:
            call = call_of(tool, {**arguments, "number": number})
            status = await status_of(backend, call)
            assert status == "ok", status

        await one(-1)
        start = time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(COUNT)))
        return COUNT / (time.perf_counter() - start)


def measured(url: str, folder: Path) -> dict[str, list[float]]:
    """Return the calls per second of each kind of call, by the number of workers."""
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "a call that waits 500 ms": ("double", {"folder": str(folder), "seconds": 0.5}),
        "a call that uses a CPU for 100 ms": ("spin", {"milliseconds": 100}),
    }
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for fleet in FLEETS:
        workers = Workers(url)
        try:
            for worker in [
                workers.start_soon(queue=f"fleet{fleet}", concurrency=CONCURRENCY)
                for _ in range(fleet)
            ]:
                workers.wait_until_ready(worker)
            for kind, (tool, arguments) in kinds.items():
                found[kind].append(asyncio.run(throughput(url, f"fleet{fleet}", tool, arguments)))
        finally:
            workers.end()
    return found


def main() -> None:
    """Print the table."""
    with TemporaryDirectory() as folder, postgres() as url:
        found = measured(url, Path(folder))
    rows = [
        [kind, f"{rates[0]:.3g}/s", *(f"{rate / rates[0]:.2f}x" for rate in rates[1:])]
        for kind, rates in found.items()
    ]
    head = ["", "1 worker", *(f"{fleet} workers" for fleet in FLEETS[1:])]
    print(markdown(head, rows))
    print()
    print(f"{COUNT} calls at once, {CONCURRENCY} calls per worker.")


if __name__ == "__main__":
    main()
