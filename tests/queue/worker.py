"""A worker process of a queue: `python -m tests.queue.worker URL '{"queue": "tools", …}'`.

With `"dies": true` it kills itself after it has taken a call and before it has begun it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from agents_tools import (
    NotifyStreamEvent,
    ToolAnnotations,
    ToolContext,
    function_tool,
    streaming_tool,
)
from agents_tools.persistence.queue import messages, serve_worker
from agents_tools.testing import BACKEND_TOOLS
from tests.waiting import comes

IDEMPOTENT = ToolAnnotations(idempotentHint=True)


def note(folder: str, line: str) -> None:
    """Append a line to the file of effects, in one write."""
    file = os.open(Path(folder) / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


@function_tool(annotations=IDEMPOTENT)
async def double(folder: str, number: int, seconds: float = 0.02) -> int:
    """Double a number, and note it."""
    note(folder, f"{number} {os.getpid()}")
    await asyncio.sleep(seconds)
    return number * 2


@function_tool
async def charge(folder: str, until: str) -> str:
    """Take effect once, when a file is there."""
    note(folder, f"begin {os.getpid()}")
    await comes(Path(until).exists)
    note(folder, f"end {os.getpid()}")
    return "charged"


@streaming_tool
async def steady(folder: str, ctx: ToolContext) -> AsyncGenerator[Any]:
    """Wait forever at the first attempt."""
    note(folder, str(os.getpid()))
    yield NotifyStreamEvent(f"attempt {ctx.attempt}")
    if ctx.attempt == 1:
        await asyncio.Event().wait()
    yield f"attempt {ctx.attempt}"


@function_tool
async def wait(folder: str) -> str:
    """Wait forever, and note the cancellation."""
    note(folder, str(os.getpid()))
    try:
        await asyncio.Event().wait()
    finally:
        note(folder, "cancelled")
    return "never"


@function_tool(annotations=IDEMPOTENT)
def spin(number: int, milliseconds: int = 30) -> int:
    """Use the CPU."""
    import time

    end = time.process_time() + milliseconds / 1000
    while time.process_time() < end:
        pass
    return number


TOOLS = [double, charge, steady, wait, spin, *BACKEND_TOOLS]


async def die(_: object) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Serve until a signal ends the process."""
    options: dict[str, Any] = {"concurrency": 64, **json.loads(sys.argv[2])}
    if options.pop("dies", False):
        messages.write = die  # type: ignore[assignment]
    asyncio.run(
        serve_worker(
            TOOLS,
            sys.argv[1],
            ready=lambda: sys.stdout.write("ready\n") and sys.stdout.flush(),
            **options,
        )
    )


if __name__ == "__main__":
    main()
