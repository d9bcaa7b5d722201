"""A process that takes the calls of a queue of DBOS and runs them."""

from __future__ import annotations

import asyncio
import contextvars
import json
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, WorkflowSerializationFormat

from agents_tools.errors import UserError, UserValueError
from agents_tools.execution.local import tools_by_name, unknown_tool
from agents_tools.execution.protocol import CallEnvelope, CallLog, ended
from agents_tools.execution.worker_call import NOT_HERE, Execution
from agents_tools.persistence.durable.dbos.engine import Engine, checked_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from agents_tools.execution import CallEvent
    from agents_tools.tool.tool import FunctionTool

__all__ = ["HEARTBEAT", "STREAM", "call", "queue_name", "serve_worker"]

STREAM: Final = "events"
HEARTBEAT: Final = 2.0
"""After how many seconds of silence a worker gives a sign of life."""
_LOOK: Final = 0.5
"""How often a worker looks whether a call that runs is still wanted, in seconds."""


class _QueueWorker:
    """What this process serves."""

    def __init__(self, tools: dict[str, FunctionTool[..., Any]], context: Any) -> None:
        self.tools = tools
        self.context = context


_serving: dict[str, _QueueWorker] = {}


async def serve_worker(
    tools: Iterable[Any],
    database_url: str,
    *,
    queue: str = "tools",
    concurrency: int = 8,
    name: str | None = None,
    context: object = NOT_HERE,
    ready: Callable[..., Any] | None = None,
) -> None:
    """Take the calls of a queue and run them, until this is cancelled.

    ```python
    asyncio.run(serve_worker([search, render], "postgresql://agents@db.internal/runs"))
    ```

    Args:
        tools: The tools, lists in it opened.
        database_url: The database that a `DBOSBackend` puts its calls in.
        queue: Which of its queues.
        concurrency: How many calls run here at once.
        name: The name of this worker among all. One that is started again under its name settles
            what the one before has left behind; of no two with the same name may both run.
        context: The worker's own object, for tools that take a context.
        ready: Called when it takes calls.

    Raises:
        UserError: Two tools have the same name, or something given cannot work.
        DurableStoreError: The database cannot be used.
    """
    if concurrency < 1:
        raise UserValueError(f"concurrency= takes a positive number, not {concurrency!r}.")
    url = checked_url("serve_worker", database_url)
    place = queue_name(queue)
    if _serving:
        raise UserError("A worker needs a process of its own: this one has one already.")
    executor = None if name is None else f"agents-tools-worker-{name}"
    _serving[place] = _QueueWorker(tools_by_name(tools), context)
    engine = Engine(url, launched=False, executor=executor, queues=(place,))
    try:
        await engine.ready()
        await engine.do(
            DBOS.register_queue_async(
                place,
                worker_concurrency=concurrency,
                polling_interval_sec=0.05,
                on_conflict="always_update",
            )
        )
        if ready is not None:
            ready()
        await asyncio.get_running_loop().create_future()  # for ever
    finally:
        await engine.aclose()
        _serving.pop(place, None)


def queue_name(queue: str) -> str:
    """Return what DBOS calls a queue."""
    return f"agents_tools.{queue}"


@DBOS.workflow(name="agents_tools.call", serialization_type=WorkflowSerializationFormat.PORTABLE)
async def call(queue: str, given: dict[str, Any], restarted: bool) -> None:
    """Run one call; a step as a whole, for what it says is not to be said again."""
    await DBOS.run_step_async({"name": "agents_tools.call"}, _serve, queue, given, restarted)


async def _serve(queue: str, given: dict[str, Any], restarted: bool) -> None:
    """Write what is to be said about a call to the stream of its workflow."""
    envelope = CallEnvelope.from_dict(given)
    status = await DBOS.get_workflow_status_async(DBOS.workflow_id or "")
    is_left_behind = status is not None and (status.recovery_attempts or 0) > 1
    worker = _serving.get(queue)
    told = _QueueReport()
    task = asyncio.create_task(
        _tell(told, worker, envelope, restarted=restarted, left_behind=is_left_behind),
        context=contextvars.Context(),
    )
    watch = asyncio.create_task(_watch(told, DBOS.workflow_id or ""))
    try:
        while (said := await told.next()) is not None:
            await DBOS.write_stream_async(
                STREAM, said, serialization_type=WorkflowSerializationFormat.PORTABLE
            )
        await task
    finally:
        watch.cancel()
        task.cancel()
        await asyncio.wait({task, watch})


class _QueueReport:
    """What was said and is not written yet: all of it at once, for a write takes long."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self._over = False
        self.execution: Execution | None = None

    def say(self, event: CallEvent) -> None:
        """Let an event be written."""
        self._events.append(event.to_dict())
        self._news.set()

    def end(self) -> None:
        """Nothing more will be said."""
        self._over = True
        self._news.set()

    async def next(self) -> str | None:
        """Return the next events as JSON text; `None` at the end."""
        await self._news.wait()
        self._news.clear()
        events, self._events = self._events, []
        if self._over and events:
            self._news.set()
        return json.dumps(events) if events else None


async def _tell(
    told: _QueueReport,
    worker: _QueueWorker | None,
    envelope: CallEnvelope,
    *,
    restarted: bool,
    left_behind: bool,
) -> None:
    try:
        events = _events(told, worker, envelope, restarted=restarted, left_behind=left_behind)
        async with aclosing(events):
            async for event in events:
                told.say(event)
    finally:
        told.end()


async def _events(
    told: _QueueReport,
    worker: _QueueWorker | None,
    envelope: CallEnvelope,
    *,
    restarted: bool,
    left_behind: bool,
) -> AsyncGenerator[CallEvent]:
    attempt = envelope.attempt
    if left_behind:
        attempt += 1
    log = CallLog(envelope.call_id, attempt)
    if left_behind and not envelope.idempotent:
        message = (
            f"The worker of tool {envelope.tool!r} ended while the call ran. Whether it took "
            "effect is not known."
        )
        yield log.create("result", ended("lost", message))
        return
    yield log.create("restarted" if restarted or left_behind else "accepted")
    tool = None if worker is None else worker.tools.get(envelope.tool)
    if worker is None or tool is None:
        yield log.create(
            "result", unknown_tool(envelope.tool, () if worker is None else worker.tools)
        )
        return
    told.execution = Execution(
        tool, envelope.again(attempt), context=worker.context, heartbeat=HEARTBEAT, log=log
    )
    async with aclosing(told.execution.events()) as events:
        async for event in events:
            yield event


async def _watch(told: _QueueReport, workflow_id: str) -> None:
    """Cancel a call that no one wants any more."""
    while True:
        await asyncio.sleep(_LOOK)
        status = None
        with suppress(Exception):  # the database may be away for a moment; the call goes on
            status = await DBOS.get_workflow_status_async(workflow_id)
        if status is not None and status.status == "CANCELLED" and told.execution is not None:
            told.execution.cancel("nobody waits for it any more")
            return
