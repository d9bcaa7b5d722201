"""Time one client and that of the SDK, in the environment of its subject; prints JSON.

Run as `python -m tests.benchmarks.mcp.worker NAME [--batches N] [--only WORKLOAD ...]`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import logging
import platform
import subprocess
import sys
from importlib.metadata import version
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from tests.benchmarks.mcp import MCP_TIMED, limit, server
from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.timing import Measure, by_turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

SERVER = [sys.executable, "-P", server.__file__]
STDIO = [*SERVER, "stdio"]
ECHO = json.dumps({"text": "hello", "times": 2})
WARM = 20
"""Calls before the first that counts."""
CALLS = 20
"""Calls for each batch of other workloads: one is timed at a time."""
SERVERS = 8
TOOLS = 1_000
REPORTS = 2_000
MEGABYTE = 1_000_000


class Worker:
    """Times the workloads of one client, each a method of its own."""

    def __init__(self, client: Any, *, batches: int) -> None:
        self.client = client
        self.batches = batches

    async def call_memory(self) -> Measure:
        """Call a tool of a server in this process."""
        return await self._calling(lambda client: client.memory(server.build()))

    async def call_stdio(self) -> Measure:
        """Call a tool of a server that was started."""
        return await self._calling(lambda client: client.stdio(STDIO))

    async def call_http(self) -> Measure:
        """Call a tool of a server that runs."""
        with _http_server() as url:
            return await self._calling(lambda client: client.http(url))

    async def connect_8(self) -> Measure:
        """Start eight servers and list their tools; the limit starts them at once."""
        commands = [STDIO] * SERVERS
        return await by_turns(
            lambda _: _connecting(self.client.connect_all(commands)),
            lambda _: _connecting(limit.connect_all_at_once(commands)),
            batches=self.batches,
            single=True,
        )

    async def list_1000(self) -> Measure:
        """List 1,000 tools, timed from the request."""

        async def listing(client: Any) -> float:
            async with client.stdio([*STDIO, str(TOOLS)]) as connection:
                taken = perf_counter() - connection.asked
                _check("tools", len(connection.names), TOOLS)
            return taken

        return await by_turns(
            lambda _: listing(self.client),
            lambda _: listing(limit),
            batches=self.batches,
            single=True,
        )

    async def result_5mb(self) -> Measure:
        """Call a tool that answers with 5 MB of text."""
        return await self._answering(lambda client: client.stdio(STDIO), 5)

    async def result_20mb(self) -> Measure:
        """Call a tool that answers with 20 MB of text."""
        return await self._answering(lambda client: client.stdio(STDIO), 20)

    async def result_5mb_http(self) -> Measure:
        """Call a tool that answers with 5 MB of text over HTTP."""
        with _http_server() as url:
            return await self._answering(lambda client: client.http(url), 5)

    async def progress_2000(self) -> Measure:
        """Call a tool that reports its progress 2,000 times; all are delivered."""
        return await self._reporting(perf_counter)

    async def progress_2000_cpu(self) -> Measure:
        """The same by the CPU it takes here: the server is what one waits for most."""
        return await self._reporting(process_time)

    async def _calling(self, connect: Callable[[Any], Any]) -> Measure:
        async def echo(connection: Any) -> float:
            start = perf_counter()
            await connection.call("echo", ECHO)
            return perf_counter() - start

        return await self._connected(connect, echo, warm=WARM, batches=CALLS * self.batches)

    async def _reporting(self, clock: Callable[[], float]) -> Measure:
        arguments = json.dumps({"count": REPORTS})

        async def reports(connection: Any) -> float:
            start = clock()
            came = await connection.progress("steps", arguments, REPORTS)
            taken = clock() - start
            _check("reports", came, REPORTS)
            return taken

        return await self._connected(lambda client: client.stdio(STDIO), reports)

    async def _answering(self, connect: Callable[[Any], Any], megabytes: int) -> Measure:
        count = megabytes * MEGABYTE // len(server.LINE.encode())
        arguments = json.dumps({"count": count})

        async def lines(connection: Any) -> float:
            start = perf_counter()
            text = await connection.call("lines", arguments)
            taken = perf_counter() - start
            _check("characters", len(text), count * len(server.LINE))
            return taken

        return await self._connected(connect, lines)

    async def _connected(
        self,
        connect: Callable[[Any], Any],
        operation: Callable[[Any], Awaitable[float]],
        *,
        warm: int = 1,
        batches: int | None = None,
    ) -> Measure:
        """Time an operation on two connections that are open all the while, one at a time."""
        async with connect(self.client) as subject, connect(limit) as least:
            for _ in range(warm):
                await operation(subject)
                await operation(least)
            return await by_turns(
                lambda _: operation(subject),
                lambda _: operation(least),
                batches=batches or self.batches,
                single=True,
            )


async def _connecting(connecting: contextlib.AbstractAsyncContextManager[int]) -> float:
    """Return the seconds until the tools are listed; closing the servers does not count."""
    start = perf_counter()
    async with connecting as tools:
        taken = perf_counter() - start
        _check("tools", tools, SERVERS * len(server.TOOLS))
    return taken


def _check(what: str, came: int, expected: int) -> None:
    if came != expected:
        sys.exit(f"{came:,} of {expected:,} {what} came")


@contextlib.contextmanager
def _http_server() -> Generator[str]:
    """Start the server in a process of its own and give its address."""
    with subprocess.Popen([*SERVER, "http"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def measure(worker: Worker, names: list[str]) -> dict[str, Any]:
    """Run the workloads named and give their figures as JSON."""
    figures: dict[str, Any] = {}
    for name in names:
        figure: Measure = await getattr(worker, name.removeprefix("mcp_"))()
        figures[name] = figure.to_dict()
        print(f"  {name}", file=sys.stderr, flush=True)
    return figures


def main() -> None:
    """Time the client and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=[name for name, one in SUBJECTS.items() if one.client])
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--only", nargs="*", choices=MCP_TIMED)
    options = parser.parse_args()
    logging.disable(logging.INFO)  # some of what is timed writes a line for each request
    subject = SUBJECTS[options.subject]
    worker = Worker(importlib.import_module(str(subject.client)), batches=options.batches)
    report = {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in (options.subject, "mcp", "pydantic_core")},
        "workloads": asyncio.run(measure(worker, options.only or list(MCP_TIMED))),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
