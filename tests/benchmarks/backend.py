"""What it costs to run a tool elsewhere: `python -m tests.benchmarks.backend`.

Beside each figure stands that of a bare echo process: asyncio, a socket pair, JSON frames, and
nothing else.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from agents_tools.execution import LocalBackend, ProcessBackend, run_on
from agents_tools.execution.framing import FrameReader, encode
from tests import isolated_tools as tools
from tests.benchmarks.tables import duration, markdown

CALLS = 1_000
ARGUMENTS = '{"a": 1, "b": 2}'

ECHO = """
import asyncio, socket, sys
from agents_tools.execution.framing import FrameReader, encode
async def main():
    sock, frames = socket.socket(fileno=int(sys.argv[1])), FrameReader()
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(sock, 65536):
        frames.feed(data)
        while (message := frames.next()) is not None:
            await loop.sock_sendall(sock, encode(message))
asyncio.run(main())
"""


async def median_of(call: Callable[[], Awaitable[object]]) -> float:
    """Return the median duration in seconds."""
    for _ in range(50):
        await call()
    taken: list[float] = []
    for _ in range(CALLS):
        start = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


async def bare_echo() -> float:
    """Measure the least that a hop to another process costs."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", ECHO, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as process:  # noqa: ASYNC220
            theirs.close()
            ours.setblocking(False)
            loop, frames = asyncio.get_running_loop(), FrameReader()

            async def echo() -> None:
                await loop.sock_sendall(ours, encode({"call": {"arguments": ARGUMENTS}}))
                while frames.next() is None:
                    frames.feed(await loop.sock_recv(ours, 65536))

            taken = await median_of(echo)
            ours.close()
            process.wait()
    return taken


async def start_time() -> float:
    """Measure from the first call of a backend to its answer, in seconds."""
    taken: list[float] = []
    for _ in range(9):
        async with ProcessBackend(tools.ALL, workers=1) as backend:
            start = time.perf_counter()
            await run_on(backend)(tools.add).invoke(a=1, b=2)
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


async def main() -> None:
    """Measure and print."""
    tool = tools.add
    direct = await median_of(lambda: tool.on_invoke_tool(None, ARGUMENTS))
    there = run_on(LocalBackend(tools.ALL))(tool)
    local = await median_of(lambda: there.on_invoke_tool(None, ARGUMENTS))
    async with ProcessBackend(tools.ALL) as backend:
        isolated = run_on(backend)(tool)
        process = await median_of(lambda: isolated.on_invoke_tool(None, ARGUMENTS))
    echo = await bare_echo()
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)  # noqa: ASYNC221
    python = time.perf_counter() - start
    rows = {
        "a call in a thread of this process": direct,
        "a call through `LocalBackend`": local,
        "a call through `ProcessBackend`": process,
        "an echo over a socket pair, written by hand": echo,
        "from starting a `ProcessBackend` to its first result": await start_time(),
        "from starting Python with asyncio to its end": python,
    }
    print(markdown(("", "median"), [(what, duration(one)) for what, one in rows.items()]))


if __name__ == "__main__":
    asyncio.run(main())
