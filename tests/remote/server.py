"""A server: `python -m tests.remote.server '{"port": 0, ...}'` serves tools and prints its address.

Tools and tests communicate through files.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from agents_tools import (
    NotifyStreamEvent,
    ToolAnnotations,
    ToolContext,
    ToolProgressEvent,
    function_tool,
    streaming_tool,
)
from agents_tools.mcp import serve_async
from tests.waiting import comes


def note_run(folder: str) -> None:
    """Note that a body runs, and its process."""
    with (Path(folder) / "ran").open("a") as file:
        file.write(f"{os.getpid()}\n")


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def whoami() -> dict[str, Any]:
    """Return the process."""
    return {"pid": os.getpid()}


@streaming_tool
async def recite(folder: str, lines: int = 3) -> AsyncGenerator[Any]:
    """Note the run, send a line, and send the others when a file is there."""
    note_run(folder)
    yield ToolProgressEvent(0, total=lines)
    for number in range(lines):
        yield NotifyStreamEvent(f"line {number}")
        if number == 0:
            await comes((Path(folder) / "go").exists)
    yield f"{lines} lines"


@function_tool(annotations=ToolAnnotations(idempotentHint=True))
async def steady(folder: str, ctx: ToolContext) -> str:
    """Wait forever at the first run."""
    first = not (Path(folder) / "ran").exists()
    note_run(folder)
    ctx.notify("first" if first else "again")
    if first:
        await asyncio.Event().wait()
    return "done"


@function_tool
async def wait(folder: str) -> str:
    """Wait forever, and note the cancellation."""
    (Path(folder) / "began").touch()
    try:
        await asyncio.Event().wait()
    finally:
        (Path(folder) / "cleaned").touch()
    return "never"


@function_tool
async def hang(folder: str, seconds: float) -> str:
    """Block the event loop of the server."""
    (Path(folder) / "began").touch()
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return "slept"


TOOLS = [add, whoami, recite, steady, wait, hang]


def ready(url: str) -> None:
    """Print the address for the test."""
    print(url, flush=True)  # noqa: T201 - for the test


async def main(options: dict[str, Any]) -> None:
    """Serve until a signal ends it."""
    given: dict[str, Any] = {
        "port": 0,
        "auth": False,
        "max_concurrency": 2_000,
        **options,
    }
    await serve_async(TOOLS, "http", on_ready=ready, **given)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}))
