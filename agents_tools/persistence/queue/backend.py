"""A backend whose calls wait in a queue of DBOS for workers on any machine."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from dbos import DBOS, WorkflowSerializationFormat

from agents_tools.concurrency.future import call_on_loop
from agents_tools.errors import UserError, UserValueError
from agents_tools.execution.local import waited_too_long
from agents_tools.execution.protocol import (
    BackendCapabilities,
    BackendHealth,
    CallEvent,
    CallLog,
    result_payload,
)
from agents_tools.persistence.queue import messages
from agents_tools.persistence.queue.engine import VERSION, Engine, checked_url
from agents_tools.persistence.queue.worker import HEARTBEAT, WORKFLOW, queue_name, worker_lost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from concurrent.futures import Future
    from typing import Self, TypeAlias

    from agents_tools.execution import CallEnvelope

    Claim: TypeAlias = tuple[str | None, int | None]
    """The worker that has taken a call, and the time at which it did."""

__all__ = ["DBOSBackend"]

_CAPABILITIES: Final = BackendCapabilities(
    delivery="at_least_once", heartbeat=True, restarts=True, detach=True
)
_GRACE: Final = 2.0
"""The time that a worker has to report a passed deadline itself, in seconds."""
_MAX_WAITING: Final = 100
_PAUSE: Final = 0.05
"""The number of rows that can wait for a slow caller, and the seconds between two looks."""
_CHECK_INTERVAL: Final = 1.0
"""The time between two checks for calls that were taken from the queue, in seconds."""


class DBOSBackend:
    """Puts calls into a queue in the database of DBOS; workers on any machine run them.

    A worker is a process that runs `serve_worker`. A call waits in the queue until a worker takes
    it, or until its deadline.

    - If a worker dies after it has taken a call and before it has begun it, another worker takes
      the call.
    - If the worker of a call that has begun is silent for `silence` seconds, the call is `lost`,
      unless trusted code declares that it is idempotent: then another worker runs it again.
    - The result of a call is stored in the database. If the same call is submitted again, also by
      another process, it returns the same result and does not run again.

    Args:
        database_url: The database: `postgresql://…`, or `sqlite:///path` for a single machine.
        queue: The name of the queue.
        silence: The time without a message after which a worker counts as dead, in seconds. It
            begins when the worker takes the call from the queue.
        attempts: The maximum number of times that an idempotent call is begun.
        launched: Whether the application launches DBOS itself, on the same database.

    Raises:
        UserError: An option is invalid.
    """

    def __init__(
        self,
        database_url: str,
        *,
        queue: str = "tools",
        silence: float = 15.0,
        attempts: int = 3,
        launched: bool = False,
    ) -> None:
        if not silence >= 2 * HEARTBEAT:
            raise UserValueError(
                f"DBOSBackend: silence= expects {2 * HEARTBEAT:g} seconds or more, got "
                f"{silence!r:.60}. A worker sends a heartbeat every {HEARTBEAT:g} seconds."
            )
        if type(attempts) is not int or attempts < 1:
            raise UserValueError(
                f"DBOSBackend: attempts= expects a whole number from 1 on, got {attempts!r:.60}."
            )
        self._engine = Engine(checked_url("DBOSBackend", database_url), launched=launched)
        self._queue = queue_name(queue)
        self._name = f"dbos:{queue}"
        self._silence = silence
        self._attempts = attempts
        # PostgreSQL sends notifications; with SQLite, other processes are only seen by asking.
        self._polling = 0.05 if database_url.startswith("sqlite") else 1.0
        self._calls: dict[str, list[_QueuedCall]] = {}
        self._watching: Future[None] | None = None
        self._closed = False
        self._empty = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Return the backend; the database is opened when it is first needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the backend."""
        await self.aclose()

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self._name

    @property
    def capabilities(self) -> BackendCapabilities:
        """The features of the backend."""
        return _CAPABILITIES

    async def submit(
        self,
        envelope: CallEnvelope,
        /,
        *,
        is_detached: Callable[[], Awaitable[bool]] | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Put a call into the queue and yield the messages about it; see `ToolBackend.submit`.

        Args:
            envelope: The call.
            is_detached: Whether the call continues when the generator is closed early, because
                another process will submit it; see `DetachableBackend`.

        Raises:
            UserError: The backend was closed.
            QueueError: The database cannot be used.
        """
        if self._closed:
            raise UserError(f"The backend {self._name!r} was closed. Create another one.")
        await self._engine.ready()
        call = _QueuedCall(envelope, self._silence)
        calls = self._calls.setdefault(call.workflow_id, [])
        calls.append(call)
        try:
            await self._engine.do(self._enqueue(call))
            if self._watching is None or self._watching.done():
                self._watching = self._engine.begin(self._watch_queue())
            async with aclosing(self._messages(call)) as stream:
                async for message in stream:
                    yield message
        finally:
            calls.remove(call)
            if not calls:
                del self._calls[call.workflow_id]
                is_kept = call.is_answered or (is_detached is not None and await is_detached())
                if not is_kept:
                    await self._engine.do(DBOS.cancel_workflow_async(call.workflow_id))
            if not self._calls:
                self._empty.set()

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether the database has a call; see `ToolBackend.has_call`.

        Raises:
            QueueError: The database cannot be used.
        """
        await self._engine.ready()
        found = await self._engine.do(
            DBOS.list_workflows_async(
                workflow_ids=[_workflow_id(envelope)], load_input=False, load_output=False
            )
        )
        return bool(found)

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; its result has the status `cancelled`."""
        found = [
            call
            for calls in list(self._calls.values())
            for call in list(calls)
            if call.envelope.call_id == call_id
        ]
        for call in found:
            call.cancel(reason)
        return bool(found)

    async def health(self) -> BackendHealth:
        """Return how many calls run and wait, including those of other callers."""
        if self._closed:
            return BackendHealth(ok=False, detail="closed")
        await self._engine.ready()
        found = await self._engine.do(
            DBOS.list_queued_workflows_async(queue_name=self._queue, load_input=False)
        )
        busy = [one for one in found if one.status == "PENDING"]
        return BackendHealth(
            ok=True,
            workers=len({one.executor_id for one in busy}),
            busy=len(busy),
            waiting=len(found) - len(busy),
            detail="workers: those that have a call",
        )

    async def aclose(self) -> None:
        """Cancel the calls that were submitted here, and accept no more calls."""
        self._closed = True
        if self._calls:
            self._empty.clear()
            for calls in list(self._calls.values()):
                for call in list(calls):
                    call.cancel("the backend was closed")
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._empty.wait()
        if self._watching is not None:
            self._watching.cancel()
        await self._engine.aclose()

    async def _enqueue(self, call: _QueuedCall) -> None:
        options: Any = {
            "queue_name": self._queue,
            "workflow_name": WORKFLOW,
            "workflow_id": call.workflow_id,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
            "app_version": VERSION,
        }
        arguments = (self._queue, call.envelope.to_dict(), self._attempts)
        await DBOS.enqueue_workflow_with_options_async(options, *arguments)

    async def _messages(self, call: _QueuedCall) -> AsyncGenerator[CallEvent]:
        """Yield the messages about a call; give it to another worker if its worker is silent."""
        endings = 0
        reading = self._engine.begin(call.read(self._polling))
        try:
            while not call.is_over:
                message = await call.next()
                if message is not None:
                    yield message
                    continue
                has_ended = call.has_ended_stream
                endings += has_ended
                if not (has_ended and await self._engine.do(_is_active(call))):
                    if (call.is_begun and not call.envelope.idempotent) or endings > self._attempts:
                        yield call.end(worker_lost(call.envelope.tool))
                        return
                    await self._engine.do(self._give_back(call))
                if has_ended:
                    reading = self._engine.begin(call.read(self._polling))
        finally:
            reading.cancel()

    async def _give_back(self, call: _QueuedCall) -> None:
        """Put a call into the queue again, unless another worker has taken it meanwhile."""
        status = await DBOS.get_workflow_status_async(call.workflow_id)
        is_elsewhere = (
            status is not None
            and status.status == "PENDING"
            and call.claim
            not in {
                None,
                (status.executor_id, status.dequeued_at),
            }
        )
        if status is not None and status.status != "ENQUEUED" and not is_elsewhere:
            await DBOS.resume_workflow_async(call.workflow_id, queue_name=self._queue)
        call.wait_for_worker()

    async def _watch_queue(self) -> None:
        """Tell the calls that wait when a worker takes them, with one query for all of them."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            ids = [
                workflow_id
                for workflow_id, calls in list(self._calls.items())
                if any(call.is_waiting for call in list(calls))
            ]
            if not ids:
                continue
            with suppress(Exception):  # the database can be unavailable for a moment
                statuses = await DBOS.list_workflows_async(
                    workflow_ids=ids, status="PENDING", load_input=False, load_output=False
                )
                for status in statuses:
                    for call in list(self._calls.get(status.workflow_id, ())):
                        call.taken((status.executor_id, status.dequeued_at))


class _QueuedCall:
    """A call as its caller sees it.

    Args:
        envelope: The call.
        silence: The time without a message after which its worker counts as dead, in seconds.

    Attributes:
        is_begun: Whether a worker has begun the call: it has sent a message.
        is_waiting: Whether no worker is known to have the call.
        is_over: Whether the call has a result.
        is_answered: Whether the result comes from a worker.
        has_ended_stream: Whether there will be no more messages: DBOS has ended the workflow.
        claim: The worker that has the call, if it sent no message yet.
    """

    def __init__(self, envelope: CallEnvelope, silence: float) -> None:
        self.envelope = envelope
        self.workflow_id = _workflow_id(envelope)
        self.is_begun = self.is_over = self.is_answered = self.has_ended_stream = False
        self.is_waiting = True
        self.claim: Claim | None = None
        self._silence = silence
        self._log = CallLog(envelope.call_id, envelope.attempt)
        self._place: tuple[int, int] = (-1, -1)
        self._rows = 0
        self._latest = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.Queue[list[CallEvent] | Claim | _Signal] = asyncio.Queue()
        self._ready: list[CallEvent] = []
        self._reason = ""

    async def read(self, polling: float) -> None:
        """Read the messages from the database; runs in the loop of the engine."""
        self.has_ended_stream = False
        try:
            stream = messages.follow(self.workflow_id, first=self._rows, polling=polling)
            async with aclosing(stream):
                async for row in stream:
                    self._rows += 1
                    self._put(row)
                    while self._inbox.qsize() >= _MAX_WAITING:  # noqa: ASYNC110 - of another loop
                        await asyncio.sleep(_PAUSE)
        finally:
            self._put("ended")

    def taken(self, claim: Claim) -> None:
        """Note that a worker has the call; the silence limit counts from the first note."""
        self._put(claim)

    def cancel(self, reason: str) -> None:
        """Cancel the call."""
        self._reason = reason
        self._put("cancel")

    def wait_for_worker(self) -> None:
        """Note that the call waits for a worker again."""
        self.is_waiting, self.claim = True, None
        self._latest = time.monotonic()

    def end(self, payload: dict[str, Any]) -> CallEvent:
        """End the call with a result that does not come from a worker."""
        self.is_over = True
        return self._log.create("result", payload)

    async def next(self) -> CallEvent | None:
        """Return the next message; `None` if the worker is silent or the workflow has ended.

        A message that was stored twice, because the connection of the worker was lost while DBOS
        wrote it, is returned once.
        """
        while not self._ready:
            try:
                async with asyncio.timeout(self._patience()):
                    item = await self._inbox.get()
            except TimeoutError:
                if not self._is_late():
                    return None
                return self.end(self._timeout())
            if isinstance(item, list):
                self._ready += [one for one in item if (one.attempt, one.seq) > self._place]
                if self._ready:
                    self._place = (self._ready[-1].attempt, self._ready[-1].seq)
            elif isinstance(item, tuple):
                if self.claim != item and not (self.is_begun and not self.is_waiting):
                    self.claim, self.is_waiting = item, False
                    self._latest = time.monotonic()
            elif item == "cancel":
                suffix = f": {self._reason}" if self._reason else "."
                text = f"The call of tool {self.envelope.tool!r} was cancelled{suffix}"
                return self.end(result_payload("cancelled", text))
            else:
                self.has_ended_stream = True
                return None
        message = self._ready.pop(0)
        self._log = CallLog(message.call_id, message.attempt, first=message.seq + 1)
        self._latest = time.monotonic()
        self.is_begun, self.is_waiting, self.claim = True, False, None
        self.is_over = self.is_answered = message.kind == "result"
        return message

    def _patience(self) -> float | None:
        """Return how long to wait for the next message, in seconds; `None` for no limit."""
        limits: list[float] = []
        if self.envelope.deadline is not None:
            limits.append(self.envelope.deadline + _GRACE - time.time())
        if not self.is_waiting:
            limits.append(self._latest + self._silence - time.monotonic())
        return max(0.0, min(limits)) if limits else None

    def _is_late(self) -> bool:
        deadline = self.envelope.deadline
        return deadline is not None and time.time() >= deadline

    def _timeout(self) -> dict[str, Any]:
        name = self.envelope.tool
        if not self.is_begun:
            return waited_too_long(name)
        return result_payload("timeout", f"The deadline of tool {name!r} has passed.")

    def _put(self, item: list[CallEvent] | Claim | _Signal) -> None:
        call_on_loop(self._loop, self._inbox.put_nowait, item)


_Signal = Literal["cancel", "ended"]


async def _is_active(call: _QueuedCall) -> bool:
    status = await DBOS.get_workflow_status_async(call.workflow_id)
    return status is not None and status.status in {"ENQUEUED", "PENDING"}


def _workflow_id(envelope: CallEnvelope) -> str:
    text = json.dumps([envelope.tool, envelope.arguments])
    digest = sha256(text.encode()).hexdigest()[:16]
    call_id = quote(envelope.call_id, safe="", errors="surrogatepass")
    return f"{WORKFLOW}/{call_id}/{envelope.attempt}/{digest}"
