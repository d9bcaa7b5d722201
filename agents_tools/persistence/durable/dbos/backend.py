"""A backend whose calls wait in a queue of DBOS for workers on any machine."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
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
    ended,
)
from agents_tools.persistence.durable.dbos.engine import VERSION, Engine, checked_url
from agents_tools.persistence.durable.dbos.worker import HEARTBEAT, STREAM, queue_name, serve_worker

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.execution import CallEnvelope

__all__ = ["DBOSBackend", "serve_worker"]

_CAPABILITIES: Final = BackendCapabilities(delivery="at_least_once", heartbeat=True, restarts=True)
_RESTARTS: Final = 1
_LATE: Final = 2.0
"""Seconds that a worker has to say itself that a deadline has passed."""


class DBOSBackend:
    """Puts calls in a queue in the database of DBOS; workers on any machine take them.

    A worker is a process that runs `serve_worker`. A call that is in the queue stays there when
    no one serves it. One whose worker falls silent is `lost`; if trusted code says that it is
    idempotent, it is put in the queue once more. The answer of a call is kept in the database:
    whoever asks for the same call again gets the same answer.

    Args:
        database_url: The database: `sqlite:///path`, or `postgresql://…` for several machines.
        queue: Which of its queues.
        silence: After how many seconds without a sign of life a worker is given up.
        launched: Whether the application launches DBOS itself, on the same database.

    Raises:
        UserError: Something given cannot work.
    """

    def __init__(
        self,
        database_url: str,
        *,
        queue: str = "tools",
        silence: float = 15.0,
        launched: bool = False,
    ) -> None:
        if not silence >= 2 * HEARTBEAT:
            raise UserValueError(
                f"DBOSBackend(silence=...) takes {2 * HEARTBEAT:g} seconds or more: a worker gives "
                f"a sign of life every {HEARTBEAT:g}."
            )
        self._engine = Engine(checked_url("DBOSBackend", database_url), launched=launched)
        self._queue = queue_name(queue)
        self._name = f"dbos:{queue}"
        self._silence = silence
        self._launched = launched
        self._calls: dict[str, list[_Submitted]] = {}
        self._closed = False
        self._empty = asyncio.Event()

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def capabilities(self) -> BackendCapabilities:
        """What it can do."""
        return _CAPABILITIES

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Put a call in the queue, and give what its worker says; see `ToolBackend.submit`.

        Raises:
            UserError: The backend was closed.
            DurableStoreError: The database cannot be used.
        """
        if self._closed:
            raise UserError(f"The backend {self._name!r} was closed and takes no more calls.")
        await self._engine.ready()
        call = _Submitted(envelope)
        self._calls.setdefault(envelope.call_id, []).append(call)
        try:
            async with aclosing(self._attempts(call)) as events:
                async for said in events:
                    yield said
        finally:
            self._calls[envelope.call_id].remove(call)
            if not self._calls[envelope.call_id]:
                del self._calls[envelope.call_id]
            if not self._calls:
                self._empty.set()

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; its result says so."""
        calls = self._calls.get(call_id, [])
        for call in calls:
            call.cancel(reason)
        return bool(calls)

    async def health(self) -> BackendHealth:
        """Return how many calls run and wait, those of other callers included."""
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
        """Cancel the calls that were put in here, and take no more."""
        self._closed = True
        for calls in list(self._calls.values()):
            for call in calls:
                call.cancel("the backend was closed")
        if self._calls:
            self._empty.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LATE):
                    await self._empty.wait()
        await self._engine.aclose()

    # --- a call

    async def _attempts(self, call: _Submitted) -> AsyncGenerator[CallEvent]:
        restarts = _RESTARTS if call.envelope.idempotent else 0
        restarted = False
        while True:
            async with aclosing(self._attempt(call, restarted=restarted)) as events:
                async for said in events:
                    yield said
            if call.is_over:
                return
            if not restarts:
                break
            restarts -= 1
            restarted = True
            call.log = CallLog(call.envelope.call_id, call.log.attempt + 1)
        message = (
            f"The worker of tool {call.envelope.tool!r} fell silent while the call ran. Whether "
            "it took effect is not known."
        )
        yield call.result(ended("lost", message))

    async def _attempt(self, call: _Submitted, *, restarted: bool) -> AsyncGenerator[CallEvent]:
        """Yield what one worker says, until the result, or until it says nothing more."""
        workflow_id = _id_of(call.envelope, call.log.attempt)
        await self._engine.do(self._enqueue(workflow_id, call, restarted=restarted))
        heard = self._engine.begin(_listen(workflow_id, call.begin()))
        try:
            while not call.is_over:
                said = await call.next(self._silence)
                if said is None:
                    return
                yield said
        finally:
            heard.cancel()
            if not call.was_answered and len(self._calls[call.envelope.call_id]) == 1:
                await self._engine.do(DBOS.cancel_workflow_async(workflow_id))

    async def _enqueue(self, workflow_id: str, call: _Submitted, *, restarted: bool) -> None:
        options: Any = {
            "queue_name": self._queue,
            "workflow_name": "agents_tools.call",
            "workflow_id": workflow_id,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
            "app_version": VERSION,
        }
        given = call.envelope.again(call.log.attempt).to_dict()
        await DBOS.enqueue_workflow_with_options_async(options, self._queue, given, restarted)


_OVER: Final = object()
_CANCEL: Final = object()


class _Submitted:
    """A call as its caller sees it."""

    def __init__(self, envelope: CallEnvelope) -> None:
        self.envelope = envelope
        self.log = CallLog(envelope.call_id, envelope.attempt)
        self.is_over = False
        self.was_answered = False
        self._started = False
        self._loop = asyncio.get_running_loop()
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        self._ready: list[CallEvent] = []
        self._reason = ""

    def begin(self) -> Callable[[Any], None]:
        """Begin an attempt; give what takes, in any thread, what is read from its stream."""
        self._started = False
        heard = self._heard = asyncio.Queue[Any]()
        return lambda what: _put(self._loop, heard, what)

    def cancel(self, reason: str) -> None:
        """Return the call up."""
        self._reason = reason
        _put(self._loop, self._heard, _CANCEL)

    def result(self, payload: dict[str, Any]) -> CallEvent:
        """End the call with what no worker said."""
        self.is_over = True
        return self.log.create("result", payload)

    async def next(self, silence: float) -> CallEvent | None:
        """Return the next event; `None` where the worker is to be given up."""
        while not self._ready:
            try:
                async with asyncio.timeout(self._patience(silence)):
                    heard = await self._heard.get()
            except TimeoutError:
                return self._late()
            if heard is _CANCEL:
                why = f": {self._reason}" if self._reason else "."
                name = self.envelope.tool
                told = ended("cancelled", f"The call of tool {name!r} was cancelled{why}")
                return self.result(told)
            if heard is _OVER:
                return None
            self._ready += map(CallEvent.from_dict, json.loads(heard))
        said = self._ready.pop(0)
        self.log = CallLog(said.call_id, said.attempt, first=said.seq + 1)
        self._started = True
        self.is_over = self.was_answered = said.kind == "result"
        return said

    def _patience(self, silence: float) -> float | None:
        """Return how long to wait for the next event: in the queue, until the deadline."""
        deadline = self.envelope.deadline
        left = None if deadline is None else max(0.0, deadline + _LATE - time.time())
        if not self._started:
            return left
        return silence if left is None else min(silence, left)

    def _late(self) -> CallEvent | None:
        deadline = self.envelope.deadline
        if deadline is None or time.time() < deadline:
            return None
        name = self.envelope.tool
        if not self._started:
            return self.result(waited_too_long(name))
        return self.result(ended("timeout", f"The deadline of tool {name!r} has passed."))


def _put(loop: asyncio.AbstractEventLoop, heard: asyncio.Queue[Any], what: Any) -> None:
    call_on_loop(loop, heard.put_nowait, what)


def _id_of(envelope: CallEnvelope, attempt: int) -> str:
    text = json.dumps([envelope.tool, envelope.arguments])
    digest = sha256(text.encode()).hexdigest()[:16]
    call_id = quote(envelope.call_id, safe="", errors="surrogatepass")
    return f"agents_tools.call/{call_id}/{attempt}/{digest}"


async def _listen(workflow_id: str, hear: Callable[[Any], None]) -> None:
    """Hand on what is written to the stream of a call, up to its end."""
    try:
        stream = DBOS.read_stream_async(workflow_id, STREAM, polling_interval_sec=0.05)
        async with aclosing(stream):
            async for text in stream:
                hear(text)
    finally:
        hear(_OVER)
