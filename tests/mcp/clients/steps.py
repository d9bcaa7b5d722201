"""What every client written in Python does, and how it tells of it.

A client is a program: `python -m tests.mcp.clients.NAME TARGET STEPS`, run by the interpreter of the
environment where its library is. The target is an address, or the command of a server as JSON. Each
step is a call; files named after what its progress says are left in the folder `heard`. A step with
`cancel` is cancelled when a file in that folder shows that it has begun, and one with `leave` is
given up then. On stdout comes a report in JSON, in the words of the protocol.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

BOUND = 30.0

Progress = Callable[..., Any]
Call = Callable[[str, dict[str, Any], Progress], Awaitable[Any]]


def target() -> str | list[str]:
    """Return the address, or the command, of the server."""
    given = sys.argv[1]
    return given if given.startswith("http") else json.loads(given)


async def report(version: Any, tools: list[Any], call: Call) -> None:
    """Run the steps and write the report."""
    calls = [await _answer(call, step) for step in json.loads(sys.argv[2])]
    listed = [wire(tool) for tool in tools]
    print(json.dumps({"version": str(version), "tools": listed, "calls": calls}), flush=True)  # noqa: T201


def wire(record: Any) -> Any:
    """Return an SDK object as protocol JSON."""
    return record.model_dump(by_alias=True, mode="json", exclude_none=True)


async def _answer(call: Call, step: dict[str, Any]) -> dict[str, Any]:
    seen: list[Any] = []

    async def progress(done: float, total: float | None = None, message: str | None = None) -> None:
        seen.append([done, total, message])
        if "heard" in step:
            (Path(step["heard"]) / str(message)).touch()

    name, arguments = step["name"], step.get("arguments", {})
    for end in ("cancel", "leave"):
        if end in step:
            return await _given_up(call(name, arguments, progress), Path(step[end]), end)
    try:
        result = await call(name, arguments, progress)
    except Exception as error:  # noqa: BLE001 - whatever its library raises is its answer
        return {"error": f"{type(error).__name__}: {error}", "progress": seen}
    return {"result": wire(result), "progress": seen}


async def _given_up(call: Awaitable[Any], folder: Path, end: str) -> dict[str, Any]:
    """Cancel a running call; return whether the server noticed while it was connected."""
    task = asyncio.ensure_future(call)
    await _comes(folder / "began")
    task.cancel()
    await asyncio.wait({task})
    return {"cancelled": end == "cancel" and await _comes(folder / "cancelled")}


async def _comes(file: Path) -> bool:
    for _ in range(int(BOUND / 0.02)):
        if file.exists():  # noqa: ASYNC240 - it takes no time
            return True
        await asyncio.sleep(0.02)
    return False
