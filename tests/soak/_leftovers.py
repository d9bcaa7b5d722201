"""The resources of a process that must be released: tasks, threads, descriptors, processes."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from agents_tools.concurrency.supervisor import abandoned_tasks
from agents_tools.concurrency.threads import thread_stats

__all__ = ["Held", "descendants", "held", "resident", "settled"]

Held = dict[str, set[str]]
"""What is held, by kind; each thing by its name."""

_PATIENCE = 5.0
_POOLED = ("agents-tools", "asyncio_", "AnyIO worker", "pytest_timeout", "ThreadPoolExecutor")
_DESCRIPTORS = Path("/proc/self/fd")


def held() -> Held:
    """Return the resources of this process, without those of a pool."""
    pool = thread_stats()
    return {
        "tasks": {repr(task) for task in _tasks()},
        "threads": {
            f"{thread.name} {thread.ident}"
            for thread in threading.enumerate()
            if not thread.name.startswith(_POOLED)
        },
        "descriptors": set(_descriptors()),
        "processes": {f"{pid} {line}" for pid, line in descendants(os.getpid()).items()},
        "calls in threads": {f"{n} of {pool.running}" for n in range(pool.running)}
        | {f"abandoned {n}" for n in range(pool.abandoned)},
        "abandoned tasks": {repr(task) for task in abandoned_tasks()},
    }


async def settled(before: Held) -> Held:
    """Wait until no more is held than before, within a bound; give what is still held beyond."""
    until = time.monotonic() + _PATIENCE
    while True:
        gc.collect()
        now = held()
        left = {kind: now[kind] - before[kind] for kind in now}
        left = {
            kind: things
            for kind, things in left.items()
            if things and len(now[kind]) > len(before[kind])
        }
        if not left or time.monotonic() > until:
            return left
        await asyncio.sleep(0.01)


def descendants(pid: int) -> dict[int, str]:
    """Return the running descendants of a process, each with its command line."""
    found: dict[int, str] = {}
    below = _children(pid)
    while below:
        for one in below:
            with suppress(OSError):
                state = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[0]
                line = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ")
                if state not in {"Z", "X"}:
                    found[one] = line.decode("utf-8", "replace").strip()
        below = [child for one in below for child in _children(one)]
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in thread.read_text().split()]
    return found


def resident() -> int:
    """Return the memory of this process in bytes; 0 if it is unknown."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _tasks() -> set[asyncio.Task[object]]:
    with suppress(RuntimeError):
        return asyncio.all_tasks() - {asyncio.current_task()}  # pyright: ignore[reportReturnType]
    return set()


def _descriptors() -> list[str]:
    found: list[str] = []
    with suppress(OSError):
        for entry in _DESCRIPTORS.iterdir():
            with suppress(OSError):  # the one that lists the folder is gone by now
                found.append(f"{entry.name} {entry.readlink()}")
    return found
