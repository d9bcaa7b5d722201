"""One attempt of a call at a worker: its request, what comes of it, and how it ends."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from agents_tools.concurrency.future import call_on_loop
from agents_tools.concurrency.supervisor import finish
from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPTimeoutError,
    ModelBehaviorError,
    ToolLostError,
)
from agents_tools.execution import CallEnvelope, CallEvent
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.remote.protocol import (
    CallReport,
    begun,
    ended,
    events_in,
    ordinary,
    outcome_in,
    result_in,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

__all__ = ["RemoteCall", "WorkerCall", "event_of"]

_MARGIN = 0.25
"""Seconds after the deadline in which a worker may still say itself how the call ended."""
_WAITING, _HEAVIEST = 4_096, 32 << 20
"""Events of one call that wait for their reader, and their characters; then old ones give way."""
_OPENING = frozenset({"accepted", "started"})
_REFUSED = frozenset({401, 403})
_SERVER_FAULT = 500
"""From here on an HTTP status says that something broke: nobody knows what was run."""


_ASKED = (
    "The server asks something before it answers, and nobody can be asked on the way of a backend. "
    "Use its tools with MCPToolManager."
)


class WorkerCall:
    """A call, whichever attempt of it is in flight.

    Attributes:
        flight: The attempt.
        cancelled: Why it was cancelled, if it was.
    """

    def __init__(self) -> None:
        self.flight: RemoteCall | None = None
        self.cancelled = ""

    def cancel(self, reason: str) -> None:
        """End it, from any thread."""
        self.cancelled = f"The call was cancelled: {reason or 'nobody waits for it'}."
        if self.flight is not None:
            self.flight.cancel()


class RemoteCall:
    """One attempt of a call: its request, what came of it so far, and how it ended.

    Iterating over it gives the events; after the last one `result` gives the end.

    Args:
        envelope: The call.
        call: Whose attempt it is.
        restart: How often the call was sent before, to workers that were lost.
        max_time: Seconds that it may take in all.
        send: Makes the request.

    Attributes:
        lost: Whether the worker was lost.
        reason: Why.
    """

    def __init__(
        self,
        envelope: CallEnvelope,
        call: WorkerCall,
        *,
        restart: int,
        max_time: float,
        send: Callable[[RemoteCall], Awaitable[dict[str, Any]]],
    ) -> None:
        self.lost = False
        self.reason = ""
        self._envelope = envelope
        self._call = call
        self._max_time = max_time
        self._first = self._next = min(restart, 1)
        self._told: deque[CallReport] = deque()
        self._size = 0
        self._opened: set[str] = set()
        self._seen = -1
        self._dropped = 0
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._last: CallReport | None = None
        self._task = self._loop.create_task(self._fly(send), name=f"call of {envelope.tool}")
        self._task.add_done_callback(self._landed)

    def __aiter__(self) -> RemoteCall:
        return self

    async def __anext__(self) -> CallEvent:
        while True:
            if self._dropped and not (self._told and self._told[0].kind in _OPENING):
                return self._gap()
            if self._told:
                told = self._told.popleft()
                self._size -= told.size
                self._next = max(self._next, self._first + told.seq)
                return self._event(told.kind, told.payload, told.time)
            if self._task.done():
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    def _landed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # looked at, also where nobody reads to the end
        self._news.set()

    def heard(self, report: Mapping[str, Any]) -> None:
        """Take a report of progress; called on the loop of the connection."""
        if asyncio.get_running_loop() is self._loop:
            self._hear(report)
            return
        call_on_loop(self._loop, self._hear, report)

    def _hear(self, report: Mapping[str, Any]) -> None:
        events = events_in(report.get("_meta"), self._envelope)
        self._take(ordinary(report, self._seen + 1) if events is None else events)
        self._news.set()

    def cancel(self) -> None:
        """End the request, from any thread."""
        call_on_loop(self._loop, self._task.cancel)

    async def land(self) -> None:
        """End the request if it is still made, which cancels the call at its worker."""
        if not self._task.done():
            self._task.cancel()
        await finish(self._task, name=self._envelope.tool)

    def result(self) -> CallEvent:
        """Return how the attempt ended; raise what is no fault of the call."""
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error
        last = self._last
        if last is None or (self._call.cancelled and last.payload.get("status") == "lost"):
            why = self._call.cancelled or "The call was cancelled."
            last = CallReport(
                seq=-1, kind="result", time=time.time(), payload=ended("cancelled", why)
            )
        self._next = max(self._next, self._first + last.seq)
        return self._event("result", last.payload, last.time)

    def _take(self, events: Iterable[CallReport]) -> None:
        for told in events:
            if told.seq <= self._seen:
                continue  # it was here before
            self._seen = told.seq
            if told.kind in _OPENING:
                if told.kind in self._opened:
                    continue  # a call begins once
                self._opened.add(told.kind)
            self._told.append(told)
            self._size += told.size
            while len(self._told) > _WAITING or (self._size > _HEAVIEST and len(self._told) > 3):  # noqa: PLR2004 - the opening and what is new
                self._make_room()

    def _make_room(self) -> None:
        """Leave out the older half of what waits; what opens a call stays."""
        waiting = list(self._told)
        half = len(waiting) // 2 + 1
        kept = [told for told in waiting[:half] if told.kind in _OPENING]
        self._told = deque([*kept, *waiting[half:]])
        self._size = sum(told.size for told in self._told)
        self._dropped += half - len(kept)

    def _gap(self) -> CallEvent:
        from agents_tools.events.kinds import GapEvent

        gap, self._dropped = GapEvent(self._dropped).to_dict(), 0
        return self._event("event", gap, time.time())

    def _event(self, kind: Any, payload: Mapping[str, Any], at: float) -> CallEvent:
        number, self._next = self._next, self._next + 1
        return event_of(self._envelope, number, kind, payload, at)

    # --- the request

    async def _fly(self, send: Callable[[RemoteCall], Awaitable[dict[str, Any]]]) -> None:
        envelope, left = self._envelope, self._max_time
        if envelope.deadline is not None:
            left = min(left, envelope.deadline - time.time())
            if left <= 0:
                self._end("timeout", "The deadline of the call had passed; nothing was run.")
                return
        began = time.monotonic()
        try:
            async with asyncio.timeout(left + _MARGIN):
                raw = await send(self)
        except MCPTimeoutError as error:
            over = time.monotonic() - began >= left
            self._end("timeout" if over else "lost", str(error))
        except TimeoutError:
            self._end("timeout", "The worker had not answered at the deadline; the call was ended.")
        except ToolLostError as error:
            self._end("lost", str(error))
        except MCPConnectionError as error:
            denied = error.code in _REFUSED
            self._end("denied" if denied else "overloaded", f"{error} Nothing was run.")
        except MCPError as error:
            if (error.code or 0) >= _SERVER_FAULT:
                self._end("lost", f"{error} Whether the call took effect is not known.")
            else:
                self._end("tool_error", str(error), kind="MCPProtocolError")
        except ModelBehaviorError as error:
            self._end("invalid_args", str(error))
        else:
            self._came(raw)

    def _came(self, raw: dict[str, Any]) -> None:
        found = outcome_in(raw, self._envelope)
        if found is None and raw.get("resultType") == "input_required":
            self._end("tool_error", _ASKED)
            return
        if found is None:
            events, self._last = begun() if self._seen < 0 else [], result_in(raw)
        else:
            events, self._last = found
        self._take(events)
        payload = self._last.payload
        self.lost = payload.get("status") == "lost"
        self.reason = str(an_object(payload.get("error")).get("message", ""))

    def _end(self, status: Any, why: str, *, kind: str | None = None) -> None:
        self.lost = status == "lost"
        self.reason = why
        payload = ended(status, why, kind=kind)
        self._last = CallReport(seq=-1, kind="result", time=time.time(), payload=payload)


def event_of(
    envelope: CallEnvelope,
    seq: int,
    kind: Any,
    payload: Mapping[str, Any],
    at: float | None = None,
) -> CallEvent:
    """Make an event of a call; it is said now where no one knows better."""
    return CallEvent(
        call_id=envelope.call_id,
        attempt=envelope.attempt,
        seq=seq,
        kind=kind,
        time=time.time() if at is None else at,
        payload=payload,
    )
