"""Supervision of cancelled tasks until they end."""

from __future__ import annotations

import time
import typing
from dataclasses import dataclass
from typing import Any

if typing.TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

__all__ = ["GRACE", "AbandonedTask", "abandoned_tasks", "cancel_tasks", "finish", "supervise"]

GRACE = 2.0
"""The time for the cleanup of a cancelled call, in seconds; then it counts as abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedTask:
    """A call that is still running after its cancellation and the time for its cleanup."""

    name: str
    """The name of the tool."""
    since: float
    """The time of its cancellation, in seconds on the clock of `time.monotonic()`."""


_supervised: dict[asyncio.Task[Any], AbandonedTask] = {}


def abandoned_tasks() -> tuple[AbandonedTask, ...]:
    """Return the calls that still run after their cancellation and the time for cleanup."""
    limit = time.monotonic() - GRACE
    return tuple(job for job in list(_supervised.values()) if job.since <= limit)


def supervise(
    task: asyncio.Task[Any], *, name: str, grace: float = GRACE, since: float | None = None
) -> None:
    """Keep a reference to a cancelled task until it ends, and log it if it takes too long."""
    if task.done():
        _retrieve_exception(task)
        return
    now = time.monotonic()
    job = _supervised[task] = AbandonedTask(name=name, since=now if since is None else since)
    report = task.get_loop().call_later(max(0.0, job.since + grace - now), _report, job)

    def on_end(task: asyncio.Task[Any]) -> None:
        report.cancel()
        _supervised.pop(task, None)
        _retrieve_exception(task)

    task.add_done_callback(on_end)


async def finish(task: asyncio.Task[Any], *, name: str, grace: float = GRACE) -> bool:
    """Wait at most `grace` seconds for a task; supervise it if it is still running then.

    Returns:
        Whether the task has ended.
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


async def cancel_tasks(tasks: Sequence[asyncio.Future[Any]], *, name: str) -> None:
    """Cancel the tasks that still run, and wait for their cleanup up to the grace period.

    Args:
        tasks: The tasks.
        name: The name of the tool or agent whose tasks they are.
    """
    import asyncio

    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        try:
            await asyncio.wait(running, timeout=GRACE)
        finally:
            for task in running:
                supervise(typing.cast("asyncio.Task[Any]", task), name=name)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # marks the exception as retrieved


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task that is never awaited, so that asyncio does not warn."""
    if not task.cancelled():
        task.exception()


def _report(job: AbandonedTask) -> None:
    import logging

    logging.getLogger("agents_tools").warning(
        "A call of tool %r is still running %.1f seconds after it was cancelled.",
        job.name,
        time.monotonic() - job.since,
    )
