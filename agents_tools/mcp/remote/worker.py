"""What a server does for backends: calls with all that they say, each of them run once."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.execution import Ledger, execute
from agents_tools.mcp._progress_meta import PROGRESS_EVENTS
from agents_tools.mcp.remote.protocol import content_of, outcome_meta, record_of, size_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from typing import TypeAlias

    from agents_tools.execution import CallEnvelope, CallEvent
    from agents_tools.mcp.remote.protocol import CallOrder
    from agents_tools.tool.tool import FunctionTool

    Record: TypeAlias = list[Any]
    """One event of a call as it travels: its place, its kind, its time, what it says."""
    Send: TypeAlias = Callable[[int, list[Record]], Awaitable[None]]
    """Sends events: how many batches there were with this one, and the events."""
    Tell: TypeAlias = Callable[[FunctionTool[..., Any], Exception], str | None]
    """Gives what a caller is told of an error of a tool; `None` for what the tool says itself."""

__all__ = ["ToolWorker"]

_AHEAD, _FAR = 256, 1 << 20
"""Events that a call may be ahead of the connection that they are sent on, and their characters."""
_KEPT, _MOST = 4_096, 16 << 20
"""Events that wait for the result where there is no way for them before, and their characters."""
_LAZY = 0.05
"""Seconds that the news of a call's beginning waits for something that is worth a message."""
_BURST = 0.0005
"""Seconds: events that follow each other faster are sent together."""
_OPENING = frozenset({"accepted", "started"})
_HIDDEN = "What went wrong is told at the worker alone."
_ERRORS = {"error_event": "message", "tool_attempt_event": "error", "run_finished_event": "error"}
"""Where the events of the library have the text of an error."""


class ToolWorker:
    """Makes the calls of backends.

    Backends of somebody else hear of a call its progress, notifications, artifacts and events of
    the application's own types; those of the application hear everything that is said below it.
    They also have applied the policies of a tool already, which are left out here where they say
    so.

    Args:
        own: Whether the backends are the application's own.
        errors: Whether the texts of errors are told, as for results.
    """

    def __init__(self, *, own: bool, errors: Literal["hide", "show"]) -> None:
        self._own = own
        self._hide = errors == "hide"
        self._ledger = Ledger()
        self._hidden: dict[str, _HiddenCall] = {}

    async def perform(
        self,
        tool: FunctionTool[..., Any],
        order: CallOrder,
        *,
        context: Any,
        whose: str | None,
        tell: Tell,
        send: Send | None,
    ) -> dict[str, Any]:
        """Make a call, or follow the same one where it runs or was run, and give its result.

        Args:
            tool: The tool.
            order: The call.
            context: The application's object for the call.
            whose: Who calls: no one gets the answer to a call of somebody else.
            tell: Returns what the caller is told of an error.
            send: Sends events; `None` where there is no way for them before the result.
        """
        given = order.envelope
        envelope = replace(given, principal=whose or given.principal, bare=given.bare and self._own)
        known = envelope
        if whose is not None and given.principal is not None:  # one caller may act for several
            known = replace(known, principal=f"{whose}\0{given.principal}")
        if order.restart:  # it runs again although the call is the same
            known = replace(known, call_id=f"{envelope.call_id}~{order.restart}")

        def run() -> AsyncGenerator[CallEvent]:
            hidden = self._hidden.get(tool.name)
            if hidden is None or hidden.given is not tool:
                hidden = self._hidden[tool.name] = _HiddenCall(tool, tell)
            return hidden.run(envelope, context=context, heartbeat=order.heartbeat)

        said = self._ledger.once(known, run)
        waiting, seq, last = await self._sent(
            said, _StoredReport() if send is None else _OutgoingReports(send)
        )
        return {
            "resultType": "complete",
            "content": content_of(last.payload),
            "isError": last.payload["status"] != "ok",
            "_meta": outcome_meta(seq, last, waiting),
        }

    async def _sent(
        self, events: AsyncGenerator[CallEvent], outgoing: _OutgoingReports | _StoredReport
    ) -> tuple[list[Record], int, CallEvent]:
        """Send what a call says; give what was not sent, and the end with its place."""
        seq = 0
        last: CallEvent | None = None
        try:
            async with aclosing(events):
                async for event in events:
                    if event.kind == "result":
                        last = event
                        break
                    payload = self._passed(event) if event.kind == "event" else event.payload
                    if payload is None:
                        continue
                    record = record_of(seq, event, payload)
                    seq += 1
                    await outgoing.say(record, size_of(payload))
            if last is None:
                raise RuntimeError("a call has ended without a result")
            return await outgoing.rest(), seq, last
        finally:
            outgoing.cancel()

    def _passed(self, told: CallEvent) -> Mapping[str, Any] | None:
        """Return of an event what a backend may hear; `None` for what stays here."""
        event = told.payload
        kind = event.get("type")
        if kind in PROGRESS_EVENTS:
            return event
        if not self._own:
            return None if kind in _own_types() else event
        place = _ERRORS.get(cast("Any", kind))
        if self._hide and place is not None and event.get(place):
            return {**event, place: _HIDDEN}
        return event


class _OutgoingReports:
    """Sends events: one that comes alone at once, and of many all that came meanwhile together.

    Args:
        send: Sends some.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[Record] = []
        self._size = 0
        self._number = 0
        self._sent = 0.0  # when the last message had left
        self._stopped = False
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._room = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_LAZY, self._hurry)

    async def say(self, record: Record, size: int) -> None:
        """Take one event; wait where too much is on its way."""
        if self._failure is not None:
            raise self._failure
        self._waiting.append(record)
        self._size += size
        if record[1] in _OPENING:
            return  # a quick call that says nothing needs no message before its result
        if self._task is None and self._loop.time() - self._sent > _BURST:
            await self._send_all()
            return
        self._hurry()
        while (len(self._waiting) >= _AHEAD or self._size >= _FAR) and not self._stopped:
            self._room.clear()
            await self._room.wait()

    def stop(self) -> None:
        """Begin no message any more."""
        self._stopped = True
        self._timer.cancel()

    async def rest(self) -> list[Record]:
        """Begin no message any more; give what was not sent, when the last one has left."""
        self.stop()
        if self._task is not None:
            await self._task
        if self._failure is not None:
            raise self._failure
        return self._waiting

    def cancel(self) -> None:
        """Send nothing more."""
        self.stop()
        if self._task is not None:
            self._task.cancel()

    def _hurry(self) -> None:
        """See that what waits is sent, by a task beside."""
        if self._task is None and self._waiting and not self._stopped:
            self._task = asyncio.create_task(self._flush(), name="events of a call")

    async def _flush(self) -> None:
        try:
            while self._waiting and not self._stopped:
                await self._send_all()
        except Exception as error:  # noqa: BLE001 - raised where the next event is said
            self._failure = error
            self._stopped = True
        finally:
            self._task = None
            self._room.set()

    async def _send_all(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        self._number += 1
        self._room.set()
        await self._send(self._number, waiting)
        self._sent = self._loop.time()


class _StoredReport:
    """Keeps events for the result, where there is no way for them before; old ones give way."""

    def __init__(self) -> None:
        self._waiting: list[Record] = []
        self._size = 0

    async def say(self, record: Record, size: int) -> None:
        """Take one event."""
        self._waiting.append(record)
        self._size += size
        if len(self._waiting) > _KEPT or self._size > _MOST:
            self._make_room()

    async def rest(self) -> list[Record]:
        """Return what is left of them; their places tell what is not."""
        return self._waiting

    def cancel(self) -> None:
        """Let go of them."""
        self._waiting = []

    def _make_room(self) -> None:
        half = max(len(self._waiting) // 2, 1)
        opening = [one for one in self._waiting[:half] if one[1] in _OPENING]
        self._waiting = [*opening, *self._waiting[half:]]
        self._size = sum(size_of(one[3]) for one in self._waiting if len(one) > _NO_PAYLOAD)


_NO_PAYLOAD = 3
"""The length of a record that says nothing beside its kind and its time."""


class _HiddenCall:
    """A tool whose callers are told of an error what they may know.

    Args:
        tool: The tool as it was given.
        tell: Returns what they are told.
    """

    def __init__(self, tool: FunctionTool[..., Any], tell: Tell) -> None:
        self.given = tool
        self._tool = tool.with_(failure_error_function=self._failed)
        self._tell = tell

    async def run(
        self, envelope: CallEnvelope, *, context: Any, heartbeat: float
    ) -> AsyncGenerator[CallEvent]:
        """Run a call; its result comes without what its caller may not know."""
        texts: list[str] = []
        _texts.set(texts)  # the task of the call takes it along
        events = execute(self._tool, envelope, context=context, heartbeat=heartbeat)
        async with aclosing(events):
            async for event in events:
                error = event.payload.get("error") if event.kind == "result" else None
                if error and texts:
                    told = {**event.payload, "error": {**error, "message": texts[-1]}}
                    yield replace(event, payload=told)
                else:
                    yield event

    def _failed(self, context: Any, error: Exception) -> Any:
        from agents_tools.tool.failure import default_tool_error_function

        text = self._tell(self.given, error)
        texts = _texts.get()
        if text is not None and texts is not None:
            texts.append(text)
        own = self.given.failure_error_function or default_tool_error_function
        if text is None or own is not default_tool_error_function:
            return own(context, error)
        return text


_texts: ContextVar[list[str] | None] = ContextVar("agents_tools_told_errors", default=None)
"""What the caller of the call that runs here is told of its error."""


def _own_types() -> frozenset[str]:
    """Return the types of events that are the library's own."""
    global _types  # noqa: PLW0603 - made when first asked for
    if not _types:
        from agents_tools.events import kinds as events

        classes = (getattr(events, name) for name in events.__all__)
        _types = frozenset(
            kind for one in classes if isinstance(kind := getattr(one, "type", None), str) and kind
        )
    return _types


_types: frozenset[str] = frozenset()
