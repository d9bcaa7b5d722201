"""Time one subject and the limit, in the subject's own environment; prints JSON.

Run as `python -m tests.benchmarks.worker NAME [--batches N] [--size N] [--only [WORKLOAD ...]] [--weigh]`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib
import itertools
import json
import os
import platform
import statistics
import sys
import tracemalloc
from importlib.metadata import version
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tests.benchmarks import limit, workloads
from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.timing import Measure, by_turns, calls

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

EVENTS = 10_000
CONCURRENT = 10_000
MANY = 1_000


class Worker:
    """Times the workloads of one subject, each a method of its own."""

    def __init__(self, subject: Any, *, batches: int, size: int) -> None:
        self.subject = subject
        self.batches = batches
        self.size = size

    async def decorate(self) -> Measure:
        """Make a tool of each function; the limit goes on to build its schema."""
        return await self._building(self.subject.decorate)

    async def build(self) -> Measure:
        """Create tools and their definitions for a model."""
        return await self._building(lambda fs: self.subject.definitions(self.subject.decorate(fs)))

    async def call_simple(self) -> Measure:
        """Call a tool of two parameters."""
        return await self._calling("simple")

    async def call_medium(self) -> Measure:
        """Call a tool of eight parameters with bounds."""
        return await self._calling("medium")

    async def call_complex(self) -> Measure:
        """Call a tool that takes models, a dataclass and unions."""
        return await self._calling("complex")

    async def call_threaded(self) -> Measure:
        """Call a plain function, which runs in a thread."""
        with _on_one_core():
            return await self._calling(
                "threaded", least=limit.threaded_caller, batches=4 * self.batches
            )

    async def call_inline(self) -> Measure | None:
        """Call a plain function on the event loop, where the subject offers that."""
        if not hasattr(self.subject, "inline_caller"):
            return None
        function, arguments = workloads.function("threaded"), workloads.ARGUMENTS["threaded"]
        return await by_turns(
            calls(self.subject.inline_caller(function), arguments),
            calls(limit.inline_caller(function), arguments),
            batches=self.batches,
        )

    async def result(self) -> Measure:
        """Call a tool that answers with a hundred models."""
        return await self._calling(
            "items", caller=self.subject.answerer, least=limit.rendering_caller
        )

    async def stream(self) -> Measure | None:
        """Run a tool that says 10,000 things, where the subject's tools can speak."""
        if not hasattr(self.subject, "stream"):
            return None

        async def subject(_: int) -> float:
            start = perf_counter()
            came = await self.subject.stream(EVENTS)
            taken = perf_counter() - start
            if came < EVENTS:
                sys.exit(f"{came} of {EVENTS} events were delivered")
            return taken / EVENTS

        async def least(_: int) -> float:
            start = perf_counter()
            async for _event in limit.stream(EVENTS):
                pass
            return (perf_counter() - start) / EVENTS

        return await by_turns(subject, least, batches=self.batches, single=True)

    async def concurrent(self) -> Measure:
        """Call a tool that waits 10 ms, 10,000 times at once; the limit only sleeps."""
        call = self.subject.caller(self._tool("sleep"))

        async def subject(_: int) -> float:
            start = perf_counter()
            await asyncio.gather(*(call("{}") for _ in range(CONCURRENT)))
            return perf_counter() - start

        async def least(_: int) -> float:
            start = perf_counter()
            await limit.sleeps(CONCURRENT)
            return perf_counter() - start

        return await by_turns(subject, least, batches=self.batches, single=True)

    async def turn(self) -> Measure | None:
        """Run an agent whose model calls one tool again and again: what a turn takes."""
        return await self._turning(1, slice(5, 25))

    async def late_turn(self) -> Measure | None:
        """Time turn 400 of a run; the limit is its turn 10."""
        return await self._turning(1, slice(390, 410), beside=slice(5, 25))

    async def turn_of_many(self) -> Measure | None:
        """Time a turn of an agent with 1,000 tools; the limit is a turn with one."""
        return await self._turning(MANY, slice(5, 25), beside=slice(5, 25))

    async def _turning(
        self, tools: int, turns: slice, *, beside: slice | None = None
    ) -> Measure | None:
        if not hasattr(self.subject, "turns"):
            return None
        function, arguments = workloads.function("simple"), workloads.ARGUMENTS["simple"]
        many = self.subject.decorate(workloads.catalogue(tools))  # the first is a simple one
        few = many[:1]
        count = turns.stop + 5

        async def subject(_: int) -> float:
            return _median_gap((await self.subject.turns(many, arguments, count))[turns])

        async def least(_: int) -> float:
            if beside is None:
                return _median_gap((await limit.turns(function, arguments, count))[turns])
            return _median_gap((await self.subject.turns(few, arguments, count))[beside])

        return await by_turns(subject, least, batches=self.batches, single=True)

    async def cancelled(self) -> Measure | None:
        """Cancel a run: the time until its tool sees it; the limit is a bare task."""
        if not hasattr(self.subject, "turns"):
            return None
        seen: list[float] = []
        inside = asyncio.Event()

        async def wait() -> str:
            """Wait for ever."""
            inside.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append(perf_counter())
                raise
            return ""

        tools = self.subject.decorate([wait])

        async def timed(work: Any) -> float:
            inside.clear()
            task = asyncio.ensure_future(work)
            await inside.wait()
            start = perf_counter()
            task.cancel()
            await asyncio.wait({task})
            return seen.pop() - start

        return await by_turns(
            lambda _: timed(self.subject.turns(tools, "{}", 1)),
            lambda _: timed(wait()),
            batches=self.batches,
            single=True,
        )

    def memory(self) -> dict[str, float]:
        """Return the bytes that one tool of the catalogue keeps: decorated, and built."""
        self.subject.definitions(self.subject.decorate(workloads.catalogue(10)))  # imports
        functions = workloads.catalogue(self.size)
        gc.collect()
        tracemalloc.start()
        tools = self.subject.decorate(functions)
        gc.collect()
        decorated, _ = tracemalloc.get_traced_memory()
        self.subject.definitions(tools)
        gc.collect()
        built, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {"decorated": decorated / self.size, "built": built / self.size}

    def definitions(self) -> list[Any]:
        """Return the definitions of five tools, whose tokens are counted."""
        kinds = ["simple", "medium", "complex", "simple", "medium"]
        told: list[Any] = self.subject.definitions(
            self.subject.decorate(workloads.functions(kinds))
        )
        return [
            {key: tool.get(key) for key in ("name", "description", "parameters")} for tool in told
        ]

    def _tool(self, kind: str) -> Any:
        (tool,) = self.subject.decorate([workloads.function(kind)])
        return tool

    async def _calling(
        self,
        kind: str,
        *,
        caller: Callable[[Any], Callable[[str], Awaitable[Any]]] | None = None,
        least: Callable[[Callable[..., Any]], Callable[[str], Awaitable[Any]]] = limit.caller,
        batches: int | None = None,
    ) -> Measure:
        arguments = workloads.ARGUMENTS[kind]
        return await by_turns(
            calls((caller or self.subject.caller)(self._tool(kind)), arguments),
            calls(least(workloads.function(kind)), arguments),
            batches=batches or self.batches,
        )

    async def _building(self, build: Callable[[list[Any]], list[Any]]) -> Measure:
        def timed(make: Callable[[list[Any]], list[Any]]) -> Callable[[int], Awaitable[float]]:
            async def batch(_: int) -> float:
                functions = workloads.catalogue(self.size)
                gc.collect()
                start = perf_counter()
                make(functions)
                return (perf_counter() - start) / self.size

            return batch

        return await by_turns(
            timed(build), timed(limit.definitions), batches=self.batches, single=True
        )


def _median_gap(moments: list[float]) -> float:
    return statistics.median(after - before for before, after in itertools.pairwise(moments))


@contextlib.contextmanager
def _on_one_core() -> Generator[None]:
    """Keep the process on one core, where the system allows it.

    Otherwise a hop between threads takes once 20 and once 100 microseconds, as the scheduler likes.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


TIMED = (  # building comes last: what a framework then keeps makes later work slower
    "call_simple",
    "call_medium",
    "call_complex",
    "call_threaded",
    "call_inline",
    "result",
    "stream",
    "concurrent",
    "turn",
    "late_turn",
    "turn_of_many",
    "cancelled",
    "decorate",
    "build",
)


async def measure(worker: Worker, names: list[str]) -> dict[str, Any]:
    """Run the workloads named and give their figures as JSON."""
    figures: dict[str, Any] = {}
    for name in names:
        figure: Measure | None = await getattr(worker, name)()
        figures[name] = figure and figure.to_dict()
        print(f"  {name}", file=sys.stderr, flush=True)
    return figures


def main() -> None:
    """Time the subject and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=[name for name, one in SUBJECTS.items() if one.adapter])
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--only", nargs="*", choices=TIMED, default=list(TIMED))
    parser.add_argument("--weigh", action="store_true", help="memory and definitions as well")
    options = parser.parse_args()
    adapter = importlib.import_module(str(SUBJECTS[options.subject].adapter))
    worker = Worker(adapter, batches=options.batches, size=options.size)
    distributions = (options.subject, "pydantic", "pydantic_core")
    report = {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in distributions},
        "workloads": asyncio.run(measure(worker, options.only)),
    }
    if options.weigh:
        report |= {"memory": worker.memory(), "definitions": worker.definitions()}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
