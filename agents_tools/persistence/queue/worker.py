"""A process that takes calls from a queue of DBOS and runs them."""

from __future__ import annotations

import asyncio
import contextvars
import math
import signal
import threading
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, WorkflowSerializationFormat

from agents_tools.concurrency.future import call_on_loop
from agents_tools.errors import UserError, UserValueError
from agents_tools.execution.local import tools_by_name, unknown_tool
from agents_tools.execution.protocol import CallEnvelope, CallLog, result_payload
from agents_tools.execution.worker_call import NOT_HERE, Execution
from agents_tools.persistence.queue import messages
from agents_tools.persistence.queue.engine import Engine, checked_url

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from agents_tools.execution import CallEvent
    from agents_tools.tool.tool import FunctionTool

__all__ = ["HEARTBEAT", "WORKFLOW", "queue_name", "serve_worker"]

WORKFLOW: Final = "agents_tools.call"
HEARTBEAT: Final = 2.0
"""The time without events after which a worker sends a heartbeat, in seconds."""
_CHECK_INTERVAL: Final = 0.5
"""The time between two checks for calls that were cancelled, in seconds."""
_MARGIN: Final = 3.0
"""The time that handed over calls have for their cleanup, in seconds."""
_MAX_WAITING: Final = 1_000
"""The number of messages of a call that can wait for the database."""


async def serve_worker(
    tools: Iterable[Any],
    database_url: str,
    *,
    queue: str = "tools",
    concurrency: int = 8,
    drain: float = 25.0,
    context: object = NOT_HERE,
    ready: Callable[..., Any] | None = None,
) -> None:
    """Take calls from a queue and run them until the process receives SIGTERM.

    ```python
    asyncio.run(serve_worker([search, render], "postgresql://agents@db.internal/runs"))
    ```

    After SIGTERM, the worker takes no more calls, finishes those that run, and returns. Calls that
    still run after `drain` seconds, or at a second SIGTERM, are cancelled and handed to the other
    workers: those run an idempotent call again, and report any other call as `lost`. Cancelling
    `serve_worker` ends it at once.

    Args:
        tools: The tools; nested lists are flattened.
        database_url: The database of the `DBOSBackend`.
        queue: The name of the queue.
        concurrency: The maximum number of calls that run here at once.
        drain: The time that running calls have after SIGTERM, in seconds. Keep it below the time
            after which your supervisor kills the process (30 seconds in Kubernetes).
        context: The worker's own object, for tools that accept a context.
        ready: Called when the worker takes calls.

    Raises:
        UserError: Two tools have the same name, or an option is invalid.
        QueueError: The database cannot be used.
    """
    if concurrency < 1:
        raise UserValueError(
            f"concurrency= is invalid: expected a positive number, got {concurrency!r}."
        )
    if not 0 <= drain < math.inf:
        raise UserValueError(f"drain= is invalid: expected seconds from 0 on, got {drain!r}.")
    url = checked_url("serve_worker", database_url)
    place = queue_name(queue)
    if _serving:
        raise UserError("A worker needs a process of its own: this one has one already.")
    worker = _serving[place] = _QueueWorker(place, tools_by_name(tools), context)
    engine = Engine(url, launched=False, queues=(place,))
    try:
        with _until_terminated() as terminated:
            await engine.ready()
            await engine.do(
                DBOS.register_queue_async(
                    place,
                    worker_concurrency=concurrency,
                    polling_interval_sec=0.05,
                    on_conflict="always_update",
                )
            )
            checking = engine.begin(worker.check_for_cancelled())
            try:
                if ready is not None:
                    ready()
                await terminated.wait()
                terminated.clear()
                await _drain(engine, worker, drain, terminated)
            finally:
                checking.cancel()
    finally:
        await engine.aclose()
        _serving.pop(place, None)


def queue_name(queue: str) -> str:
    """Return the name of a queue in DBOS."""
    return f"agents_tools.{queue}"


@contextmanager
def _until_terminated() -> Generator[asyncio.Event]:
    """Set an event at each SIGTERM; only the main thread can receive signals."""
    terminated = asyncio.Event()
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield terminated
        return
    try:
        loop.add_signal_handler(signal.SIGTERM, terminated.set)
    except NotImplementedError:  # the event loops of Windows
        yield terminated
        return
    try:
        yield terminated
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _drain(
    engine: Engine, worker: _QueueWorker, seconds: float, hurry: asyncio.Event
) -> None:
    """Take no more calls, and wait for those that run; hand over the rest after a time limit."""
    stopping = asyncio.ensure_future(engine.stop(seconds + _MARGIN))
    hurrying = asyncio.ensure_future(hurry.wait())
    handed_over: set[str] = set()
    try:
        await asyncio.wait(
            {stopping, hurrying}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        while not stopping.done():
            ids = [one for one in worker.running_ids if one not in handed_over]
            handed_over.update(ids)
            if ids:
                with suppress(Exception):  # without the database, callers notice the silence
                    await engine.do(DBOS.resume_workflows_async(ids, queue_name=worker.queue))
                worker.cancel(ids, "its worker was stopped")
            await asyncio.wait({stopping}, timeout=_CHECK_INTERVAL)
    finally:
        hurrying.cancel()
        worker.cancel(worker.running_ids, "its worker was stopped")


class _QueueWorker:
    """The calls that run in this process."""

    def __init__(self, queue: str, tools: dict[str, FunctionTool[..., Any]], context: Any) -> None:
        self.queue = queue
        self.tools = tools
        self.context = context
        self._running: dict[str, tuple[asyncio.AbstractEventLoop, Execution]] = {}

    @property
    def running_ids(self) -> list[str]:
        """The workflows whose bodies run."""
        return list(self._running)

    @contextmanager
    def running(self, workflow_id: str, execution: Execution) -> Generator[None]:
        """Make a call known while it runs."""
        self._running[workflow_id] = asyncio.get_running_loop(), execution
        try:
            yield
        finally:
            del self._running[workflow_id]

    def cancel(self, workflow_ids: Iterable[str], reason: str) -> None:
        """Cancel calls, from any thread."""
        for workflow_id in workflow_ids:
            found = self._running.get(workflow_id)
            if found is not None:
                loop, execution = found
                call_on_loop(loop, execution.cancel, reason)

    async def check_for_cancelled(self) -> None:
        """Cancel calls that nobody waits for, with one query for all of them."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            ids = self.running_ids
            if ids:
                with suppress(Exception):  # the database can be unavailable for a moment
                    cancelled = await DBOS.list_workflows_async(
                        workflow_ids=ids, status="CANCELLED", load_input=False, load_output=False
                    )
                    self.cancel((one.workflow_id for one in cancelled), "its caller has left")


_serving: dict[str, _QueueWorker] = {}
"""The queue of this process; a process serves one."""


@DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
async def _call(queue: str, call: dict[str, Any], attempts: int) -> None:
    """Run one call as a single step, because its messages must not be written again."""
    await DBOS.run_step_async({"name": WORKFLOW}, _serve, queue, call, attempts)


async def _serve(queue: str, call: dict[str, Any], attempts: int) -> None:
    """Run a call and write the messages about it to the stream of its workflow.

    The first message is written before the body starts. DBOS refuses it if the workflow was given
    to another worker meanwhile, so that a call with no message has not begun anywhere, and a call
    with a message has begun and its worker is gone.
    """
    worker = _serving[queue]
    workflow_id = DBOS.workflow_id or ""
    envelope = CallEnvelope.from_dict(call)
    execution = await _begin(worker, envelope, await messages.read(workflow_id), attempts)
    if execution is not None:
        with worker.running(workflow_id, execution):
            await _run(execution)


async def _begin(
    worker: _QueueWorker, envelope: CallEnvelope, earlier: list[CallEvent], attempts: int
) -> Execution | None:
    """Write the first message of an attempt; return `None` for a call that does not run here.

    Args:
        worker: The worker.
        envelope: The call.
        earlier: The messages of a worker that is gone.
        attempts: The maximum number of times that an idempotent call is begun.
    """
    tool = worker.tools.get(envelope.tool)
    if earlier:
        last = earlier[-1]
        if last.kind == "result":
            return None
        is_repeatable = envelope.idempotent and last.attempt - envelope.attempt < attempts - 1
        if tool is None or not is_repeatable:
            log = CallLog(envelope.call_id, last.attempt, first=last.seq + 1)
            await messages.write([log.create("result", worker_lost(envelope.tool))])
            return None
        envelope = envelope.again(last.attempt + 1)
    log = CallLog(envelope.call_id, envelope.attempt)
    opening = log.create("restarted" if earlier else "accepted")
    if tool is None:
        missing = unknown_tool(envelope.tool, worker.tools)
        await messages.write([opening, log.create("result", missing)])
        return None
    await messages.write([opening])
    return Execution(tool, envelope, context=worker.context, heartbeat=HEARTBEAT, log=log)


async def _run(execution: Execution) -> None:
    """Run the body of a call and write its messages."""
    outbox = _Outbox()
    # The body must not see the context variables of the workflow.
    task = asyncio.create_task(outbox.fill(execution), context=contextvars.Context())
    try:
        while (batch := await outbox.next()) is not None:
            await messages.write(batch)
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})


def worker_lost(tool: str) -> dict[str, Any]:
    """Return the payload of the `result` of a call whose worker ended or is silent."""
    return result_payload(
        "lost",
        f"The worker of tool {tool!r} stopped responding while the call ran. It is unknown "
        "whether the call took effect.",
    )


class _Outbox:
    """Messages that are not written yet. A write takes long, so all of them are written at once."""

    def __init__(self) -> None:
        self._messages: list[CallEvent] = []
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_over = False

    async def fill(self, execution: Execution) -> None:
        """Run a call and collect its messages."""
        try:
            async with aclosing(execution.events()) as events:
                async for message in events:
                    self._messages.append(message)
                    self._changed.set()
                    while len(self._messages) >= _MAX_WAITING:
                        self._has_room.clear()
                        await self._has_room.wait()
        finally:
            self._is_over = True
            self._changed.set()

    async def next(self) -> list[CallEvent] | None:
        """Return the next messages; `None` at the end."""
        await self._changed.wait()
        if not self._is_over:
            self._changed.clear()
        batch, self._messages = self._messages, []
        self._has_room.set()
        return batch or None
