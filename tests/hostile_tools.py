"""Tools that do what tools should not, for worker processes to import."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

from agents_tools import ToolContext, function_tool, notify, policies, register_secret
from tests import isolated_tools


@function_tool
async def cancel_itself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "never"


@function_tool
async def cancel_everything() -> str:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)
    return "never"


@function_tool
async def leave_politely() -> str:
    raise SystemExit(4)


@function_tool
async def secret_number() -> dict[str, Any]:
    register_secret("1234567890")
    return {"number": 1234567890, "list": ["a 1234567890", 7]}


class Broken:
    """A value that is written once, and not a second time."""

    def __init__(self) -> None:
        self.read = 0

    def __str__(self) -> str:
        self.read += 1
        if self.read > 1:
            raise ValueError("I was read before")
        return "broken"


@function_tool
async def broken_value() -> Any:
    return Broken()


@function_tool
def fork_and_crash(folder: str) -> str:
    """Leave a copy of the process behind that has all of its descriptors, and crash."""
    if os.fork() == 0:
        (Path(folder) / "child").write_text(str(os.getpid()))
        time.sleep(600)
        os._exit(0)
    while not (Path(folder) / "child").exists():
        time.sleep(0.001)
    os._exit(3)


@function_tool
def close_all_descriptors() -> str:
    os.closerange(3, 1000)
    return "closed"


@function_tool
def say_to_owner(what: str) -> str:
    """Write into the connection of the worker, as code that has run wild does."""
    number = next(n for n in range(3, 100) if _is_of_owner(n))
    body = MESSAGES[what]
    length = (1 << 32) - 1 if what == "too long" else len(body)
    os.write(number, struct.pack(">I", length) + body)
    time.sleep(600)
    return "never"


def _is_of_owner(number: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(number)) as sock:
            peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    except OSError:  # it is no socket
        return False
    return struct.unpack("3i", peer)[0] == os.getppid()


def _result(**payload: Any) -> bytes:
    whole = {"status": "ok", "output": "", "error": None, "metadata": None, **payload}
    return json.dumps({"said": "result", "payload": whole, "clean": True}).encode()


RESULTS: dict[str, dict[str, Any]] = {
    "no status": {"status": ["ok"]},
    "another status": {"status": "fine"},
    "no output": {"output": None},
    "no blocks": {"output": [3]},
    "no error": {"error": "broken"},
    "no metadata": {"metadata": [1]},
}
MESSAGES = {
    "too long": b"",
    "no JSON": b"no JSON",
    "nothing": b"{}",
    "a kind that is none": b'{"said": ["event"], "payload": {}}',
    "an event that is none": b'{"said": "event", "payload": 7}',
    "no status": _result(status=["ok"]),
    "unknown blocks": _result(output=[{"type": 7}]),
}


@policies.isolate()
@function_tool
def alone() -> dict[str, int]:
    return {"pid": os.getpid(), "parent": os.getppid()}


@function_tool
async def nested_isolation() -> dict[str, int]:
    return await alone.invoke()


hang_below = policies.isolate()(isolated_tools.hold_the_interpreter)


@function_tool
async def nested_hang(folder: str) -> str:
    return await hang_below.invoke(folder=folder)


@function_tool
async def note(log: str) -> int:
    with open(log, "a") as file:  # noqa: ASYNC230, PTH123 - a line in a local file
        file.write("ran\n")
    return len(Path(log).read_text().splitlines())  # noqa: ASYNC240


@function_tool(failure_error_function=None)
async def try_again(log: str, context: ToolContext[Any]) -> str:
    notify(f"attempt {context.attempt}")
    if await note.invoke(log=log) < 3:
        raise ConnectionError("not yet")
    return f"attempt {context.attempt}"
