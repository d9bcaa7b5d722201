"""A worker: `python -m tests.remote.worker '{"port": 0, ...}'` serves tools and prints its address.

Tools and tests tell each other things through files.
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
    ToolError,
    ToolProgressEvent,
    function_tool,
    streaming_tool,
)
from agents_tools.mcp import serve_async
from agents_tools.testing import BACKEND_TOOLS
from tests.waiting import comes


def note_run(folder: str) -> None:
    """Note that a body runs, and in which process."""
    with (Path(folder) / "ran").open("a") as file:
        file.write(f"{os.getpid()}\n")


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def whoami() -> dict[str, Any]:
    """Say which process this is."""
    return {"pid": os.getpid()}


@streaming_tool
async def recite(folder: str, lines: int = 3) -> AsyncGenerator[Any]:
    """Note that it runs, say a line, and say the others when a file is there."""
    note_run(folder)
    yield ToolProgressEvent(0, total=lines)
    for number in range(lines):
        yield NotifyStreamEvent(f"line {number}")
        if number == 0:
            await comes((Path(folder) / "go").exists)
    yield f"{lines} lines"


@function_tool(annotations=ToolAnnotations(idempotentHint=True))
async def steady(folder: str, ctx: ToolContext) -> str:
    """Do what may be done twice: hang at the first attempt."""
    note_run(folder)
    ctx.notify(f"attempt {ctx.attempt}")
    if ctx.attempt == 1:
        await asyncio.Event().wait()
    return f"attempt {ctx.attempt}"


@function_tool
async def wait(folder: str) -> str:
    """Wait without an end, and note how that ended."""
    (Path(folder) / "began").touch()
    try:
        await asyncio.Event().wait()
    finally:
        (Path(folder) / "cleaned").touch()
    return "never"


@function_tool
async def hang(folder: str, seconds: float) -> str:
    """Block the whole worker: no event loop of its own runs meanwhile."""
    (Path(folder) / "began").touch()
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return "slept"


@function_tool
def fail(how: str) -> str:
    """Fail."""
    if how == "told":
        raise ToolError("The kettle is empty.")
    raise RuntimeError("the password is hunter2")


TOOLS = [add, whoami, recite, steady, wait, hang, fail, *BACKEND_TOOLS]


def ready(url: str) -> None:
    """Tell the test where it is."""
    print(url, flush=True)  # noqa: T201 - tells the test where it is


async def main(options: dict[str, Any]) -> None:
    """Serve until a signal ends it."""
    given: dict[str, Any] = {
        "port": 0,
        "auth": False,
        "worker": True,
        "max_concurrency": 2_000,
        **options,
    }
    await serve_async(TOOLS, "http", on_ready=ready, **given)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}))
