"""Sees tasks to their end after nobody waits for them any more."""

from __future__ import annotations

import time
import typing
from dataclasses import dataclass
from typing import Any

if typing.TYPE_CHECKING:
    import asyncio

__all__ = ["GRACE", "AbandonedTask", "abandoned_tasks", "finish", "supervise"]

GRACE = 2.0
"""Seconds that a cancelled call has for its cleanup before it is reported as abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedTask:
    """A call that goes on, though it was cancelled and its grace is over."""

    name: str
    """The tool's name."""
    since: float
    """When it was cancelled, on the clock of `time.monotonic()`."""


_supervised: dict[asyncio.Task[Any], AbandonedTask] = {}


def abandoned_tasks() -> tuple[AbandonedTask, ...]:
    """List the calls that still run after their cancellation and its grace."""
    limit = time.monotonic() - GRACE
    return tuple(job for job in list(_supervised.values()) if job.since <= limit)


def supervise(
    task: asyncio.Task[Any], *, name: str, grace: float = GRACE, since: float | None = None
) -> None:
    """Keep hold of a cancelled task until it ends, and report it when it outlives its grace."""
    if task.done():
        _take(task)
        return
    now = time.monotonic()
    job = _supervised[task] = AbandonedTask(name=name, since=now if since is None else since)
    report = task.get_loop().call_later(max(0.0, job.since + grace - now), _report, job)

    def ended(task: asyncio.Task[Any]) -> None:
        report.cancel()
        _supervised.pop(task, None)
        _take(task)

    task.add_done_callback(ended)


async def finish(task: asyncio.Task[Any], *, name: str, grace: float = GRACE) -> bool:
    """Wait for a task, for `grace` seconds at most; supervise it if it goes on.

    Returns:
        Whether it has ended.
    """
    import asyncio

    since = time.monotonic()
    try:
        if not task.done():
            await asyncio.wait({task}, timeout=grace)
    finally:
        if not task.done():
            supervise(task, name=name, grace=grace, since=since)
    return task.done()


def _take(task: asyncio.Task[Any]) -> None:
    """Look at the exception of a task that nobody waits for, so that asyncio does not warn."""
    if not task.cancelled():
        task.exception()


def _report(job: AbandonedTask) -> None:
    import logging

    logging.getLogger("agents_tools").warning(
        "A call of tool %r goes on, %.1f seconds after it was cancelled.",
        job.name,
        time.monotonic() - job.since,
    )
