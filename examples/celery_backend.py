"""Run the bodies of tools as Celery tasks: write a `ToolBackend` of your own in 40 lines.

Run it: python examples/celery_backend.py (needs celery). The broker is in memory here, and the
worker is a thread. In production, pass `broker=` and `backend=` the addresses of your servers, and
start workers with `celery --app celery_backend worker`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from celery import Celery  # pyright: ignore[reportMissingTypeStubs]
from celery.contrib.testing import worker  # pyright: ignore[reportMissingTypeStubs]

from agents_tools import function_tool
from agents_tools.errors import ToolLostError
from agents_tools.execution import (
    BackendCapabilities,
    BackendHealth,
    CallEnvelope,
    CallEvent,
    execute,
    run_on,
)

app: Any = Celery("tools", broker="memory://", backend="cache+memory://")
app.conf.task_track_started = True  # so that a call that has begun is known


@function_tool
def render(scene: str) -> str:
    """Render a scene."""
    return f"{scene}.mp4"


tools = {"render": render}


# --8<-- [start:backend]
@app.task(name="agents_tools.call")
def run_call(envelope: dict[str, Any]) -> dict[str, Any]:
    """Run a call in a worker, and return its last message: the result."""

    async def last_message() -> CallEvent:
        call = CallEnvelope.from_dict(envelope)
        return [message async for message in execute(tools[call.tool], call)][-1]

    return asyncio.run(last_message()).to_dict()


class CeleryBackend:
    """Runs the bodies of tools in Celery workers. It sends results, and no events."""

    name = "celery"
    capabilities = BackendCapabilities(streaming=False)

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Send a call, unless it is known, and wait for its result."""
        task = app.AsyncResult(f"{envelope.call_id}/{envelope.attempt}")
        try:
            if not await self.has_call(envelope):
                await asyncio.to_thread(
                    run_call.apply_async, (envelope.to_dict(),), task_id=task.id
                )
            while not await asyncio.to_thread(task.ready):  # noqa: ASYNC110 - Celery has no event
                await asyncio.sleep(0.05)
            if not task.successful():  # the worker died, or the call was revoked
                raise ToolLostError(f"The outcome of tool {envelope.tool!r} is unknown.")
            yield CallEvent.from_dict(task.result)
        finally:
            if not task.ready():
                task.revoke(terminate=True)

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether a worker has begun a call. Celery does not know those that wait."""
        task = app.AsyncResult(f"{envelope.call_id}/{envelope.attempt}")
        return bool(await asyncio.to_thread(lambda: task.state) != "PENDING")

    async def cancel(self, call_id: str, reason: str = "") -> bool:  # noqa: ARG002
        """Revoke the first attempt of a call."""
        app.control.revoke(f"{call_id}/1", terminate=True)
        return True

    async def health(self) -> BackendHealth:
        """Ask the workers."""
        workers = len(await asyncio.to_thread(app.control.ping))
        return BackendHealth(ok=workers > 0, workers=workers)

    async def aclose(self) -> None:
        """Close the connections."""
        app.close()


# --8<-- [end:backend]


async def main() -> None:
    """Call a tool in a worker."""
    there = run_on(CeleryBackend())(render)  # an agent gets it as any tool: Agent(tools=[there])
    outcome = await there.call(None, '{"scene": "harbour"}')
    print(f"{outcome.status}: {outcome.output}")
    outcome = await there.call(None, '{"scene": 7, "frames": 2}')
    print(f"{outcome.status}: refused here, before anything is sent")


if __name__ == "__main__":
    start_worker: Any = getattr(worker, "start_worker")  # noqa: B009 - it has no types
    with start_worker(app, pool="threads", perform_ping_check=False):
        asyncio.run(main())
