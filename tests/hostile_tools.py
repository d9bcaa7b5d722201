"""Tools that do what tools should not, for worker processes to import."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from agents_tools import function_tool, policies, register_secret
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
async def secret_number() -> dict[str, int]:
    register_secret("1234567890")
    return {"number": 1234567890, "other": 7}


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
    """Write to the owner's socket, as code that has run wild does."""
    body = {
        "list": b"[1, 2]",
        "text": b"no JSON",
        "deep": b"[" * 100_000,
        "number": b"7",
        "empty object": b"{}",
        "no kind": b'{"said": {"v": 1}, "clean": true}',
        "error is text": json.dumps(_result(error="broken")).encode(),
        "nothing": json.dumps(_result(status=None, output=None)).encode(),
        "blocks": json.dumps(_result(output=[{"type": 7}, 3])).encode(),
        "metadata": json.dumps(_result(metadata=[1], failed=True)).encode(),
    }.get(what, b"")
    head = struct.pack(">I", (1 << 32) - 1 if what == "too long" else len(body))
    sock = socket.socket(fileno=os.dup(int(sys.argv_of_worker)))  # type: ignore[attr-defined]
    sock.setblocking(True)
    sock.sendall(head + body)
    sock.detach()
    time.sleep(60)
    return "never"


def _result(**payload: Any) -> dict[str, Any]:
    whole = {"status": "ok", "output": "", "error": None, "metadata": None, **payload}
    said = {"v": 1, "call_id": "c", "attempt": 1, "seq": 1, "kind": "result", "time": 0.0}
    return {"said": {**said, "payload": whole}, "clean": True}


@policies.isolate()
@function_tool
def alone() -> dict[str, int]:
    return {"pid": os.getpid(), "parent": os.getppid()}


@function_tool
async def nested_isolation() -> dict[str, int]:
    return await alone.invoke()


@policies.isolate()
@function_tool
def hang_below(folder: str) -> str:
    return isolated_tools.hold_the_interpreter.invoke_sync(folder=folder)


@function_tool
async def nested_hang(folder: str) -> str:
    return await hang_below.invoke(folder=folder)


@function_tool
def measure(text: str) -> int:
    return len(text)


@function_tool
def background_thread() -> int:
    """Leave a thread running that is none of a pool."""
    threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
    return os.getpid()
