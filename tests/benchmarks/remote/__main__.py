"""Time calls and events of a remote tool beside the engine; prints a table, or JSON.

Events are timed beside two engines: one whose events carry what those of the library do, and a
bare one whose events carry a time alone, the least that can be sent.

Run as `python -m tests.benchmarks.remote [--batches N] [--json]`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tests.benchmarks.remote import engine, ours
from tests.benchmarks.tables import duration, markdown, times
from tests.benchmarks.timing import Measure, by_turns

if TYPE_CHECKING:
    from collections.abc import Generator

SIDES = {"engine": engine, "ours": ours}
WARM = 30
TICKS = 20
STEPS = 2_000


async def call(connection: Any, number: int) -> float:
    """Time a call that says nothing before its answer."""
    start = perf_counter()
    for _ in range(number):
        assert await connection.echo("hello") == "hello"
    return perf_counter() - start


async def event(connection: Any, number: int, prefix: str = "") -> float:
    """Time the way of an event that goes alone: the middle of some."""
    calls = [await connection.events(f"{prefix}ticks", TICKS) for _ in range(number)]
    return sum(map(statistics.median, calls))


async def stream(connection: Any, number: int, prefix: str = "") -> float:
    """Time a call that says much at once."""
    start = perf_counter()
    for _ in range(number):
        assert len(await connection.events(f"{prefix}steps", STEPS)) == STEPS
    return perf_counter() - start


WORKLOADS = {
    "remote_call": (call, call, 20),
    "remote_event": (event, event, 1),
    "remote_event_bare": (event, partial(event, prefix="bare_"), 1),
    "remote_stream_2000": (stream, stream, 1),
    "remote_stream_2000_bare": (stream, partial(stream, prefix="bare_"), 1),
}
"""What is timed of the library, what of the engine, and how often at once."""
TITLES = {
    "remote_call": "a call (limit: the SDK alone)",
    "remote_event": "one event (limit: an event of the same size)",
    "remote_event_bare": "the same (limit: an event with one number)",
    "remote_stream_2000": "a call with 2,000 events (limit: events of the same size)",
    "remote_stream_2000_bare": "the same (limit: events with one number)",
}


@contextlib.contextmanager
def _served(side: str) -> Generator[str]:
    command = [sys.executable, "-m", f"tests.benchmarks.remote.{side}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


async def measure(batches: int) -> dict[str, Measure]:
    """Time all workloads, both sides by turns."""
    with _served("engine") as limit_url, _served("ours") as url:
        async with engine.connect(limit_url) as limit, ours.connect(url) as subject:
            for connection in (limit, subject):
                await call(connection, WARM)
                await connection.events("ticks", 5)
            found: dict[str, Measure] = {}
            for name, (ours_does, engine_does, size) in WORKLOADS.items():

                async def one(work: Any, connection: Any, size: int = size) -> float:
                    return await work(connection, size) / size

                found[name] = await by_turns(
                    lambda _, work=ours_does, one=one: one(work, subject),
                    lambda _, work=engine_does, one=one: one(work, limit),
                    batches=batches,
                    single=True,
                )
            return found


def main() -> None:
    """Time, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batches", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.batches))
    if options.json:
        print(json.dumps({name: one.to_dict() for name, one in found.items()}, indent=2))
        return
    rows = [
        (
            TITLES[name],
            f"{times(one.ratio)} ({duration(one.seconds)})",
            times(one.paired),
        )
        for name, one in found.items()
    ]
    print(markdown(("", "fastest calls", "median of pairs"), rows))


if __name__ == "__main__":
    main()
