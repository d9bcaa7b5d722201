"""The run store: the logs of runs, their leases, and the messages to their holders.

`RunStore` is the one implementation of threads, leases, waiting and views for all kinds of storage.
A `LogStorage` only writes and reads rows.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar, cast

from agents_tools.concurrency.future import PendingFuture, batched_wakeups
from agents_tools.content.items import ToolApprovalItem, ToolCallOutputItem, item_from_dict
from agents_tools.errors import (
    EventStoreError,
    LeaseLostError,
    RunInUseError,
    UserKeyError,
    UserValueError,
)
from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.kinds import (
    MessageEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunRecordEvent,
)
from agents_tools.persistence.filter import EventFilter
from agents_tools.persistence.lease import LeaseHolder
from agents_tools.persistence.protocol import SessionInfo
from agents_tools.persistence.records import shown_event
from agents_tools.persistence.rows import event_to_row
from agents_tools.persistence.storage import (
    AppendRows,
    DeleteLog,
    LogPosition,
    PostMessage,
    ReadSpan,
    ReleaseLease,
    RenewLeases,
    RetainLogs,
    RunInfo,
    TakeLease,
)
from agents_tools.persistence.write_errors import (
    already_posted_error,
    run_in_use_error,
    stale_lease_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from agents_tools.events.base import Event
    from agents_tools.persistence.protocol import Durability, RunStatus
    from agents_tools.persistence.rows import EventRow
    from agents_tools.persistence.storage import (
        LogStorage,
        RunMessage,
        WriteRequest,
    )

__all__ = ["RunStore", "Session", "StoredLog", "undecided_calls"]

S = TypeVar("S")
T = TypeVar("T")

_BLOCK: Final = 1_024
"""The number of ids that are reserved at a time for events that are not stored."""
_MAX_ROWS: Final = 4_096
_MAX_BYTES: Final = 16 << 20
_READERS: Final = 4
_GROUP_WAIT: Final = 0.0003
"""How long to wait for as many requests as in the last synced write, in seconds.

A sync takes about as long, so waiting for callers that append again saves syncs.
"""
_CHECK_INTERVAL: Final = 0.5
"""How often waiting readers are checked even if no change was reported, in seconds."""
_CANCELLED: Final = (
    "Not run: the user cancelled the run while this call waited for the decision of a person."
)
_ENDED: Final = frozenset({"ok", "error", "cancelled"})
_ORIGIN: Final = Origin(source=EventSource.ENVIRONMENT)
_USER: Final = Origin(source=EventSource.USER)
_RECORDS: Final = EventFilter(types=(RunRecordEvent.type,))
_APPROVALS: Final = EventFilter(types=(RunItemStreamEvent.type, RunRecordEvent.type))

logger = logging.getLogger("agents_tools")


class RunStore:
    """Stores the logs of runs, so that other processes can read, decide about and resume them.

    Use one of `MemoryRunStore`, `SQLiteRunStore`, `PostgresRunStore` and `RedisRunStore`, or pass a
    storage of your own. All methods can be called in any thread. Those that return a
    `PendingFuture` can be awaited, or used in synchronous code with `.result()`.

    Args:
        storage: Where the logs are stored.
        keep_display: Whether text deltas, progress and notifications stay in the log when a run
            ends. By default they are deleted then.
    """

    def __init__(self, storage: LogStorage, *, keep_display: bool = False) -> None:
        self._engine = _StoreEngine(storage, keep_display=keep_display)
        self._finalizer = weakref.finalize(self, _close_engine, self._engine)

    @property
    def place(self) -> str:
        """The path or address of the store, without secrets."""
        return self._engine.storage.place

    @property
    def storage(self) -> LogStorage:
        """The storage of the logs."""
        return self._engine.storage

    def log(self, run_id: str, /) -> StoredLog:
        """Return a handle on the log of a run, to append to it or to read it."""
        return StoredLog(self, run_id)

    def runs(
        self,
        *,
        session: str | None = None,
        status: RunStatus | None = None,
        limit: int | None = None,
    ) -> PendingFuture[list[RunInfo]]:
        """List runs, oldest first.

        Args:
            session: Only the runs of this session.
            status: Only runs with this status.
            limit: The largest number of runs; the newest ones are listed.
        """

        def read() -> list[RunInfo]:
            logs = self._engine.storage.logs(session=session, status=status, limit=limit)
            return [info for info in logs if info.status is not None]

        return self._engine.submit_read(read)

    def logs(self) -> PendingFuture[list[RunInfo]]:
        """List all logs that hold events, oldest first, including those that are not of a run."""
        return self._engine.submit_read(self._engine.storage.logs)

    def run(self, run_id: str, /) -> PendingFuture[RunInfo | None]:
        """Return the summary of a run; `None` if there is no such run."""
        return self._engine.submit_read(lambda: self._info(run_id))

    def conversation(
        self, session: str, /, *, before: str | None = None
    ) -> PendingFuture[list[Event]]:
        """Return the messages, calls and outputs of the runs of a session, oldest first.

        Args:
            session: The session.
            before: Only the runs that were created before this one.
        """
        return self._engine.submit_read(
            lambda: self._engine.storage.conversation(session, before=before)
        )

    def session(self, id: str, /) -> Session:
        """Return the session with an id."""
        return Session(id, self)

    def approvals(self, run_id: str, /) -> PendingFuture[list[ToolApprovalItem]]:
        """Return the calls of a run that wait for the decision of a person.

        The `path` of an item has the ids of the calls around it.
        """
        return self._engine.submit_read(lambda: self._waiting_calls(run_id))

    def decide(
        self,
        run_id: str,
        call_id: str,
        approved: bool,
        *,
        path: Sequence[str] = (),
        message: str | None = None,
        arguments: Mapping[str, Any] | str | None = None,
        always: bool = False,
    ) -> PendingFuture[None]:
        """Record the decision of a person about a call, from any process.

        The process that holds the run executes the decision. If no process holds it,
        `Runner.resume` does.

        Args:
            run_id: The run.
            call_id: The call.
            approved: Whether the call runs.
            path: The ids of the calls around it; needed only if several waiting calls have its id.
            message: The reason for a rejection, which the model receives.
            arguments: Other arguments for the call, as a mapping or JSON text.
            always: Whether later calls of the tool in this run need no approval.

        Returns:
            A future that is done when the decision would survive the end of this process. It raises
            `UserKeyError` if no such call waits, and `EventConflictError` if another decision was
            recorded first.
        """
        body = {
            "type": "decision",
            "call_id": call_id,
            "approved": approved,
            "message": message,
            "arguments": arguments if isinstance(arguments, str | None) else json.dumps(arguments),
            "always": always,
        }
        return self._engine.submit_read(lambda: self._decide(run_id, body, tuple(path)))

    def cancel(
        self, run_id: str, call_id: str | None = None, *, reason: str = ""
    ) -> PendingFuture[None]:
        """Cancel a run, or one call of it, from any process.

        The process that holds the run cancels it. A run that no process holds is ended at once, and
        the cancellation of a call waits there until the run is resumed. A run that has ended stays
        as it is.

        Args:
            run_id: The run.
            call_id: The call; by default the run is cancelled.
            reason: The reason, for people.

        Returns:
            A future that is done when the cancellation would survive the end of this process. It
            raises `UserKeyError` if there is no such run.
        """
        return self._engine.submit_read(lambda: self._cancel(run_id, call_id, reason))

    def send(self, run_id: str, text: str, /) -> PendingFuture[None]:
        """Send a message of the user to a run, which its model receives before the next request.

        The future raises `UserKeyError` if there is no such run, and `UserValueError` if the run
        has ended.
        """
        body = {"type": "message", "text": text}

        def begin() -> PendingFuture[int]:
            info = self._info(run_id)
            if info is not None and info.status in _ENDED:
                raise UserValueError(
                    f"The message was not sent: run {run_id!r} has ended. Start another run with "
                    "it, in the same session."
                )
            return self.post(run_id, body)

        return self._engine.chain(begin, lambda _: None)

    def post(
        self, run_id: str, body: Mapping[str, Any], *, key: str | None = None
    ) -> PendingFuture[int]:
        """Add a message to the inbox of a run; the future has its number.

        It raises `UserKeyError` if there is no such run, and `EventConflictError` if the run has a
        message with this key.
        """
        return self._engine.chain(
            lambda: self._submit_message(run_id, body, key),
            lambda number: self._check_posted(run_id, number),
        )

    def _submit_message(
        self, run_id: str, body: Mapping[str, Any], key: str | None = None
    ) -> PendingFuture[int]:
        return self._engine.submit(PostMessage(name=run_id, body=json.dumps(body), key=key))

    def _check_posted(self, run_id: str, number: int) -> int:
        if not number:
            raise UserKeyError(f"Run {run_id!r} does not exist in {self.place}. Check the id.")
        return number

    def messages(self, run_id: str, /, after: int = 0) -> PendingFuture[list[RunMessage]]:
        """Return the messages to a run with larger numbers, in order."""
        return self._engine.submit_read(lambda: self._engine.storage.messages(run_id, after))

    def delete(self, run_id: str, /) -> PendingFuture[None]:
        """Delete the log of a run. A missing run is not an error.

        The future raises `RunInUseError` while another process holds the run.
        """
        return self._engine.delete(run_id)

    def retain(
        self,
        *,
        max_events: int | None = None,
        max_age: float | None = None,
        max_bytes: int | None = None,
    ) -> PendingFuture[int]:
        """Delete the oldest logs until the limits hold.

        Logs with a lease, and runs that wait for a person, are not deleted.

        Args:
            max_events: The number of events to keep in all logs together.
            max_age: The largest age of the last event of a log, in seconds.
            max_bytes: The size of all events together, in bytes.

        Returns:
            A future with the number of deleted events.
        """
        return self._engine.submit(
            RetainLogs(max_events=max_events, max_age=max_age, max_bytes=max_bytes)
        )

    def close(self) -> None:
        """Finish pending writes, release all leases and close the store. It can be called again."""
        self._finalizer()

    async def aclose(self) -> None:
        """Close the store without blocking the event loop."""
        from asyncio import to_thread

        await to_thread(self.close)

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the store."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the store."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        await self.aclose()

    def __repr__(self) -> str:
        """Return the place of the store."""
        return f"{type(self).__name__}({self.place!r})"

    def _info(self, run_id: str) -> RunInfo | None:
        found = self._engine.storage.logs(names=[run_id])
        return found[0] if found and found[0].status is not None else None

    # --- cancellation

    def _cancel(self, run_id: str, call_id: str | None, reason: str) -> None:
        """Send a cancellation, and end the run if no process receives it."""
        info = self._info(run_id)
        if info is not None and info.status in _ENDED:
            return
        body = {"type": "cancel", "call_id": call_id, "reason": reason}
        self._check_posted(run_id, self._submit_message(run_id, body).result())
        if call_id is not None:
            return
        log = self.log(run_id)
        try:
            is_run = log.take(is_exclusive=True).result().is_run
            info = self._info(run_id)
            if is_run and info is not None and info.status not in _ENDED:
                messages = self._engine.storage.messages(run_id, 0)
                events = [
                    *self._open_outputs(run_id),
                    *filter(None, map(_sent_message, messages)),
                    RunFinishedEvent("cancelled", error=reason or None),
                ]
                log.append(
                    [event.stamped(event.origin or _ORIGIN, INVALID_ID) for event in events],
                    durability="sync",
                    consumed=[message.number for message in messages],
                ).result()
        except RunInUseError:
            return  # its process receives the message
        finally:
            log.close()

    def _open_outputs(self, run_id: str) -> Iterator[Event]:
        """Yield the outputs of the calls that wait for a person in the outermost run."""
        for item in self._undecided(run_id).values():
            if item.path:
                continue
            output = ToolCallOutputItem(
                call_id=item.call_id,
                name=item.name,
                output=_CANCELLED,
                status="cancelled",
                agent=item.agent,
            )
            yield RunRecordEvent("call_result", {"call_id": item.call_id, "is_open": True})
            yield RunItemStreamEvent("tool_output", output.to_dict())

    # --- approvals

    def _undecided(self, run_id: str) -> dict[tuple[str, ...], ToolApprovalItem]:
        return undecided_calls(self._engine.storage.read(run_id, ReadSpan(where=_APPROVALS)))

    def _waiting_calls(self, run_id: str) -> list[ToolApprovalItem]:
        posted = {
            (*message.body.get("path", ()), message.body.get("call_id"))
            for message in self._engine.storage.messages(run_id, 0)
            if message.body.get("type") == "decision"
        }
        waiting = self._undecided(run_id)
        info = self._info(run_id)
        if info is None or info.status in _ENDED:
            return []
        return [item for place, item in waiting.items() if place not in posted]

    def _decide(self, run_id: str, body: Mapping[str, Any], path: tuple[str, ...]) -> None:
        """Post a decision, unless there is another one."""
        call_id = str(body["call_id"])
        item = self._find_waiting(run_id, call_id, path)
        place = (*item.path, call_id)
        key = f"decision/{json.dumps(place)}"
        body = {**body, "path": list(item.path), "shown": item.arguments}
        number = self._check_posted(run_id, self._submit_message(run_id, body, key).result())
        # The run can have received another decision since the call was read as waiting. That one
        # is in the log, because its key would have refused this message before.
        if place not in self._undecided(run_id):
            events = self._engine.storage.read(run_id, ReadSpan(where=_RECORDS))
            decisions = [event for event in events if _is_decision(event, call_id, place)]
            if decisions and decisions[-1].data.get("number") != number:
                raise already_posted_error(run_id, self.place)

    def _find_waiting(self, run_id: str, call_id: str, path: tuple[str, ...]) -> ToolApprovalItem:
        events = self._engine.storage.read(run_id, ReadSpan(where=_APPROVALS))
        info = self._info(run_id)
        waiting = {} if info is None or info.status in _ENDED else undecided_calls(events)
        found = [
            item
            for item in waiting.values()
            if item.call_id == call_id and path in {(), item.path, (*item.path, call_id)}
        ]
        if len(found) == 1:
            return found[0]
        if not found and any(_is_decision(event, call_id, path) for event in events):
            raise already_posted_error(run_id, self.place)
        if found:
            raise UserValueError(
                f"{len(found)} waiting calls of run {run_id!r} have the id {call_id!r}: expected "
                "one. Pass path=, the ids of the calls around it."
            )
        raise UserKeyError(
            f"No call {call_id!r} of run {run_id!r} waits for a decision. "
            "RunStore.approvals(run_id) lists the waiting calls."
        )


def _sent_message(message: RunMessage) -> Event | None:
    """Return the event of a message of the user that the run has not received."""
    if message.body.get("type") != "message":
        return None
    return MessageEvent(str(message.body.get("text")), role="user").replace(origin=_USER)


def _is_decision(event: Event, call_id: str, path: tuple[str, ...]) -> TypeGuard[RunRecordEvent]:
    """Return whether an event is the decision about a call."""
    return (
        isinstance(event, RunRecordEvent)
        and event.name == "approval_decided"
        and event.data.get("call_id") == call_id
        and path in {(), event.path, (*event.path, call_id)}
    )


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: an ordered list of runs under an id that the application chooses.

    Pass it as `Runner.run(..., session=...)`. A run continues the conversation of the earlier runs
    and becomes the last one. One run at a time is active in a session.

    Args:
        id: The id, for example of a chat.
        store: The store of the runs.
    """

    id: str
    store: RunStore

    def events(self) -> PendingFuture[list[Event]]:
        """Return the messages, calls and outputs of all runs, oldest first."""
        return self.store.conversation(self.id)

    def runs(self) -> PendingFuture[list[RunInfo]]:
        """List the runs, oldest first."""
        return self.store.runs(session=self.id)


def undecided_calls(events: Iterable[Event]) -> dict[tuple[str, ...], ToolApprovalItem]:
    """Return the calls that wait for a decision, by their path including the own id."""
    waiting: dict[tuple[str, ...], ToolApprovalItem] = {}
    for stored in events:
        event = shown_event(stored)
        if isinstance(event, RunItemStreamEvent):
            place = (*event.path, str(event.item.get("call_id")))
            if event.name == "tool_approval_requested":
                item = cast("ToolApprovalItem", item_from_dict(event.item))
                object.__setattr__(item, "path", event.path)
                waiting[place] = item
            elif event.name in {"tool_output", "tool_approval_granted"}:
                waiting.pop(place, None)
        elif isinstance(event, RunRecordEvent) and event.name == "approval_decided":
            waiting.pop((*event.path, str(event.data.get("call_id"))), None)
    return waiting


class StoredLog:
    """A handle on one log of a store. The first append takes the lease of the log.

    It implements `EventStore`, so an `EventStream` can write and read it. Handles of one store on
    the same log share the lease, which ends when the last one is closed or the run ends.

    Attributes:
        sid: The name of the log: the id of the run.
    """

    def __init__(self, store: RunStore, sid: str) -> None:
        _check_name(sid)
        self.sid = sid
        self._store = store  # keeps the store open while a handle exists
        self._engine = store._engine  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._engine.check_open()
        self._state = self._engine.log_state(sid)
        self._closed = False

    @property
    def last_id(self) -> int:
        """The id of the newest stored event; -1 if there is none."""
        if self._state.epoch or self._is_closed():
            return self._state.last_id
        return self._engine.read_here(lambda: self._engine.storage.position(self.sid)).last_id

    @property
    def next_id(self) -> int:
        """The id of the next event. Reading it takes the lease, if it is free."""
        if self._can_take():
            with contextlib.suppress(EventStoreError, TimeoutError):
                self.take().result(self._engine.storage.lease_ttl)
        if self._state.epoch or self._is_closed():
            return self._state.next_id
        position = self._engine.read_here(lambda: self._engine.storage.position(self.sid))
        return max(position.last_id, position.reserved) + 1

    def _can_take(self) -> bool:
        """Return whether to take the lease without an explicit request.

        A lease that was lost is not taken again: the log has events that this store has not seen.
        """
        state = self._state
        if state.epoch or self._is_closed() or isinstance(state.failure, LeaseLostError):
            return False
        return not self._engine.is_writer_thread

    @property
    def epoch(self) -> int:
        """The epoch of the lease that this store holds; 0 if it holds none."""
        return self._state.epoch

    def take(
        self, *, session: str | None = None, is_exclusive: bool = False
    ) -> PendingFuture[LogPosition]:
        """Take the lease, so that this store can append.

        Args:
            session: The session that the run becomes a part of.
            is_exclusive: Whether another handle of this store with the lease is refused as well.

        Returns:
            A future with the end of the log. It raises `RunInUseError` if another process holds the
            run, or another run of the session is active.
        """
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.take(self._state, session, is_exclusive=is_exclusive)

    def release(self) -> PendingFuture[None]:
        """Release the lease, so that another process can continue the run."""
        return self._engine.release(self._state)

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
        consumed: Sequence[int] = (),
    ) -> PendingFuture[int]:
        """Store events, all or none. Writing begins at once, in one batch with waiting appends.

        Args:
            events: The events. Those without an id get the next ids.
            expect_seq: The number of events that were ever appended to the log before.
            durability: `normal` survives the end of the process, `sync` also a power failure.
            consumed: The numbers of messages that are deleted with this append.
        """
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        try:
            rows = [event_to_row(event) for event in events]
        except Exception as error:  # noqa: BLE001 - raised by the future
            return PendingFuture.failed(error)
        return self._engine.append(
            self._state, rows, expect_seq, sync=durability == "sync", consumed=consumed
        )

    def reserve(self, id: int, /) -> None:
        """Mark ids up to this one as used. Ids are reserved in blocks, ahead of use."""
        if not self._is_closed():
            self._engine.reserve(self._state, id)

    def read(
        self,
        after: int = INVALID_ID,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> PendingFuture[list[Event]]:
        """Return events in the order of their ids. Marks of secrets are read as `***`.

        Args:
            after: Only events with larger ids.
            before: Only events with smaller ids.
            limit: The largest number of events.
            reverse: Whether the newest events come first. `limit` then keeps the newest.
            where: The filter for events.
        """
        span = ReadSpan(after=after, before=before, limit=limit, reverse=reverse, where=where)
        return self._read(span)

    def read_all(self, *, where: EventFilter | None = None) -> PendingFuture[list[Event]]:
        """Return all events, with the registered secrets restored, to resume a run.

        Args:
            where: The filter for events.
        """
        return self._read(ReadSpan(where=where, restore=True))

    def _read(self, span: ReadSpan) -> PendingFuture[list[Event]]:
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.submit_read(lambda: self._engine.storage.read(self.sid, span))

    def wait(self, after: int, /) -> PendingFuture[int]:
        """Wait for an event with a larger id, from any process. The future can be cancelled."""
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.wait(self._state, after, is_message=False)

    def wait_message(self, after: int, /) -> PendingFuture[int]:
        """Wait for a message with a larger number, from any process."""
        if self._is_closed():
            return PendingFuture.failed(self._closed_error())
        return self._engine.wait(self._state, after, is_message=True)

    def messages(self, after: int = 0, /) -> PendingFuture[list[RunMessage]]:
        """Return the messages to the run with larger numbers."""
        return self._engine.submit_read(lambda: self._engine.storage.messages(self.sid, after))

    def session(self, sid: str, /) -> StoredLog:
        """Return a handle on another log of the same store."""
        return StoredLog(self._store, sid)

    def sessions(self) -> PendingFuture[list[SessionInfo]]:
        """List the logs that hold events, sorted by name."""

        def read() -> list[SessionInfo]:
            infos = sorted(self._engine.storage.logs(), key=lambda info: info.run_id)
            return [
                SessionInfo(
                    sid=info.run_id,
                    events=info.events,
                    first=info.started,
                    last=info.updated,
                    last_id=info.last_id,
                    size=info.size,
                )
                for info in infos
            ]

        return self._engine.submit_read(read)

    def delete(self, sid: str, /) -> PendingFuture[None]:
        """Delete a log with all its events. This fails while another process writes to it."""
        return self._engine.delete(sid)

    def close(self) -> None:
        """Finish pending writes, and release the lease if no other handle of the store needs it."""
        if not self._is_closed():
            self._closed = True
            self._engine.close_log(self._state)

    def _is_closed(self) -> bool:
        return self._closed or self._engine.closed

    def _closed_error(self) -> EventStoreError:
        place = self._engine.storage.place
        return EventStoreError(
            f"The log {self.sid!r} in {place} is closed. Open it again.", store=place
        )


class _LogState:
    """The state of one log in this process.

    Attributes:
        name: The name.
        handles: The number of open handles.
        epoch: The epoch of the lease that this process holds; 0 if it holds none.
        last_id: The id of the last event; up to date with a lease, as the next two.
        reserved: The largest id that an event that is not stored uses.
        block: The largest id that is reserved in the storage.
        unsettled: The largest ids of pending appends.
        session: The session of the run.
        waiting: The futures that wait for an event, with the id that has to be exceeded.
        message_waits: The futures that wait for a message, with the number.
        last_message: The number of the last message that is known.
        failure: The error of the last attempt to take the lease, or of its loss, until the lease
            is taken again.
        is_run: Whether the log is the log of a run, with a lease.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.handles = 0
        self.session: str | None = None
        self.waiting: dict[PendingFuture[int], int] = {}
        self.message_waits: dict[PendingFuture[int], int] = {}
        self.last_message = 0
        self.failure: EventStoreError | None = None
        self.unsettled: dict[object, int] = {}
        self.taking: PendingFuture[LogPosition] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the log, which was deleted."""
        self.end_lease()
        self.last_id = self.reserved = INVALID_ID

    def end_lease(self) -> None:
        """Forget the lease. A closed log still reports its end."""
        self.epoch = 0
        self.block = INVALID_ID
        self.taking = None
        self.is_reserving = self.is_run = False

    def begin(self, position: LogPosition) -> None:
        """Hold the lease from now on."""
        self.failure = None
        self.epoch, self.last_id = position.epoch, position.last_id
        self.block = position.reserved
        self.reserved = max(self.reserved, position.reserved)
        self.last_message = max(self.last_message, position.message)
        self.is_run = position.is_run

    def lose(self, error: EventStoreError) -> None:
        """Forget a lease that another process has taken; appends raise this error."""
        self.end_lease()
        self.failure = error

    @property
    def next_id(self) -> int:
        """The id of the next event, valid with a lease."""
        return max(self.last_id, self.reserved, *list(self.unsettled.values())) + 1


class _Job:
    """A request with the future of its caller."""

    __slots__ = ("pending", "request", "rows", "size", "state")

    def __init__(
        self,
        request: WriteRequest | None,
        pending: PendingFuture[Any],
        *,
        state: _LogState | None = None,
        rows: int = 0,
        size: int = 0,
    ) -> None:
        self.request = request
        self.pending = pending
        self.state = state
        self.rows = rows
        self.size = size


class _StoreEngine:
    """The threads and the in-process state of a store.

    Requests are written in order by one thread, several together. If the storage waits for nothing,
    they are written in the thread of the caller.
    """

    def __init__(self, storage: LogStorage, *, keep_display: bool) -> None:
        self.storage = storage
        self.closed = False
        self.keep_display = keep_display
        self._logs: dict[str, _LogState] = {}
        self._reset()
        _engines.add(self)

    def _reset(self) -> None:
        self.holder = LeaseHolder.create()
        self._lock = threading.RLock()
        self._write_lock = threading.RLock()
        self._condition = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._writer: threading.Thread | None = None
        self._group_size = 0
        self._notify_at = 1
        self._readers: ThreadPoolExecutor | None = None
        self._watch: threading.Thread | None = None
        self._watch_condition = threading.Condition()
        self._renewer: threading.Thread | None = None
        self._renewer_wake = threading.Event()

    def check_open(self) -> None:
        """Raise `EventStoreError` if the store is closed."""
        if self.closed:
            raise self.closed_error()

    def closed_error(self) -> EventStoreError:
        """Return the error of a closed store."""
        place = self.storage.place
        return EventStoreError(f"The store {place} is closed. Open it again.", store=place)

    def log_state(self, name: str) -> _LogState:
        """Return the state of a log, with one more handle."""
        with self._lock:
            state = self._logs.get(name)
            if state is None:
                state = self._logs[name] = _LogState(name)
            state.handles += 1
            return state

    def close_log(self, state: _LogState) -> None:
        """Remove a handle. The last one releases the lease and fails the waiting futures."""
        with self._lock:
            state.handles -= 1
            if state.handles:
                return
            if self._logs.get(state.name) is state:
                del self._logs[state.name]
            waiting = [*state.waiting, *state.message_waits]
            state.waiting.clear()
            state.message_waits.clear()
        for pending in waiting:
            pending.fail(self._log_closed(state))
        if state.epoch or state.taking is not None:
            released = self.release(state)
            if not self.is_writer_thread:
                with contextlib.suppress(EventStoreError, TimeoutError):
                    released.result(self.storage.lease_ttl)

    def _log_closed(self, state: _LogState) -> EventStoreError:
        place = self.storage.place
        return EventStoreError(f"The log {state.name!r} in {place} was closed.", store=place)

    # --- requests

    @property
    def is_writer_thread(self) -> bool:
        """Return whether the caller runs in the writer thread, which must not wait for itself."""
        return self._writer is threading.current_thread()

    def submit(self, request: WriteRequest) -> PendingFuture[Any]:
        """Write a request."""
        pending: PendingFuture[Any] = PendingFuture()
        self._put(_Job(request, pending))
        return pending

    def take(
        self, state: _LogState, session: str | None = None, *, is_exclusive: bool = False
    ) -> PendingFuture[LogPosition]:
        """Take the lease of a log, once for all its handles."""
        with self._lock:
            if is_exclusive and (state.epoch or state.taking is not None):
                error = run_in_use_error(state.name, self.storage.place, self.holder)
                return PendingFuture.failed(error)
            if state.epoch:
                return PendingFuture.now(self._own_position(state))
            if state.taking is not None:
                return state.taking
            pending: PendingFuture[LogPosition] = PendingFuture()
            state.taking = pending
            state.session = session or state.session
        request = TakeLease(
            name=state.name,
            holder=self.holder,
            ttl=self.storage.lease_ttl,
            session=state.session,
        )
        self._put(_Job(request, pending, state=state))
        self._start_renewing()
        return pending

    def _own_position(self, state: _LogState) -> LogPosition:
        return LogPosition(
            epoch=state.epoch,
            last_id=state.last_id,
            reserved=state.reserved,
            message=state.last_message,
        )

    def release(self, state: _LogState) -> PendingFuture[None]:
        """Release the lease of a log, after the pending appends."""
        pending: PendingFuture[None] = PendingFuture()
        self._put(_Job(None, pending, state=state))
        return pending

    def append(
        self,
        state: _LogState,
        rows: Sequence[EventRow],
        expected: int | None,
        *,
        sync: bool,
        consumed: Sequence[int],
    ) -> PendingFuture[int]:
        """Append rows, and take the lease before if needed."""
        if not state.epoch:
            if isinstance(state.failure, LeaseLostError):
                return PendingFuture.failed(state.failure)
            self.take(state)
        pending: PendingFuture[int] = PendingFuture()
        request = AppendRows(
            name=state.name,
            epoch=0,  # that of the lease, when the request is written
            rows=rows,
            expected=expected,
            sync=sync,
            consumed=consumed,
        )
        job = _Job(
            request, pending, state=state, rows=len(rows), size=sum(row.size for row in rows)
        )
        if rows and rows[-1].id != INVALID_ID:
            state.unsettled[job] = rows[-1].id
        self._put(job)
        return pending

    def reserve(self, state: _LogState, id: int) -> None:
        """Reserve ids up to this one, and more of them ahead."""
        state.reserved = max(state.reserved, id)
        if state.reserved + _BLOCK // 2 > state.block and not state.is_reserving:
            state.is_reserving = True
            self.append(state, (), None, sync=False, consumed=())

    def delete(self, name: str) -> PendingFuture[None]:
        """Delete a log; handles of this store lose their lease."""
        return self.submit(DeleteLog(name=name, holder=self.holder))

    def _put(self, job: _Job) -> None:
        if self.closed:
            job.pending.fail(self.closed_error())
            return
        if self.storage.is_immediate:
            with self._write_lock:
                self._write([job])
            return
        with self._condition:
            self._jobs.append(job)
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._run_writer, name="agents-tools-store-writer", daemon=True
                )
                self._writer.start()
            if len(self._jobs) >= self._notify_at:
                self._condition.notify()

    # --- the writer thread

    def _run_writer(self) -> None:
        while jobs := self._next_jobs():
            self._write(jobs)

    def _next_jobs(self) -> list[_Job]:
        """Wait for jobs; return those to write together, or none after `close`."""
        with self._condition:
            if len(self._jobs) < self._group_size and not self.closed:
                self._notify_at = self._group_size
                self._condition.wait(_GROUP_WAIT)
                self._notify_at = 1
            while not self._jobs and not self.closed:
                self._condition.wait()
            group: list[_Job] = []
            rows = size = 0
            while self._jobs and rows < _MAX_ROWS and size < _MAX_BYTES:
                job = self._jobs[0]
                # A lease has to be there before the appends under it are prepared.
                if group and isinstance(job.request, TakeLease):
                    break
                group.append(self._jobs.popleft())
                rows += job.rows + 1
                size += job.size
                if isinstance(job.request, TakeLease):
                    break
            return group

    def _write(self, jobs: list[_Job]) -> None:
        """Write jobs, and resolve their futures."""
        with self._write_lock:
            done = self._apply(jobs)
        with batched_wakeups():
            for job, result in done:
                self._resolve(job, result)

    def _apply(self, jobs: Sequence[_Job]) -> list[tuple[_Job, Any]]:
        """Write jobs; return them with their results or errors."""
        done: list[tuple[_Job, Any]] = []
        written: list[tuple[_Job, WriteRequest]] = []
        for job in jobs:
            try:
                request = self._prepare(job)
            except EventStoreError as error:
                done.append((job, error))
                continue
            if request is None:
                done.append((job, None))
            else:
                written.append((job, request))
        is_sync = any(isinstance(one, AppendRows) and one.sync for _, one in written)
        self._group_size = len(jobs) if is_sync else 0
        if written:
            try:
                results = self.storage.write([request for _, request in written])
            except Exception as error:  # noqa: BLE001 - raised by the futures
                results = [error] * len(written)
            for (job, request), result in zip(written, results, strict=True):
                self._update(job, request, result)
                done.append((job, result))
        return done

    def _prepare(self, job: _Job) -> WriteRequest | None:
        """Return the request of a job, complete with the state of its log; `None` for no request.

        Raises:
            EventStoreError: The store does not hold the lease.
        """
        request, state = job.request, job.state
        if state is None:
            return request
        if request is None:
            return self._release_request(state)
        if not isinstance(request, AppendRows):
            return request
        if not state.epoch:
            raise state.failure or self._no_lease(state)
        created = next((row.created for row in request.rows if row.created), None)
        state.is_run = state.is_run or created is not None
        status = next((row.status for row in reversed(request.rows) if row.status), None)
        if not state.is_run:
            status = None
        return replace(
            request,
            epoch=state.epoch,
            known_id=state.last_id,
            used=state.reserved,
            reserved=self._block_for(state, request.rows),
            created=created,
            status=status,
            drop_display=status not in {None, "interrupted"} and not self.keep_display,
        )

    def _block_for(self, state: _LogState, rows: Sequence[EventRow]) -> int:
        """Return the id up to which ids are reserved: at least half a block ahead of use."""
        if state.reserved == INVALID_ID:
            return INVALID_ID
        used = max(state.reserved, state.last_id, rows[-1].id if rows else INVALID_ID)
        return state.block if used + _BLOCK // 2 <= state.block else used + _BLOCK

    def _release_request(self, state: _LogState) -> ReleaseLease | None:
        if not state.epoch:
            return None
        request = ReleaseLease(name=state.name, epoch=state.epoch, reserved=state.reserved)
        state.end_lease()
        return request

    def _no_lease(self, state: _LogState) -> LeaseLostError:
        return stale_lease_error(state.name, self.storage.place)

    def _update(self, job: _Job, request: WriteRequest, result: Any) -> None:
        """Update the state of the log of a job."""
        state = job.state
        if isinstance(request, DeleteLog) and not isinstance(result, Exception):
            deleted = self._logs.get(request.name)
            if deleted is not None:
                deleted.reset()
        if state is None:
            return
        state.unsettled.pop(job, None)
        if isinstance(request, TakeLease):
            state.taking = None
            if isinstance(result, LogPosition):
                state.begin(result)
            elif isinstance(result, EventStoreError):
                state.failure = result
        elif isinstance(request, AppendRows):
            state.is_reserving = False
            if isinstance(result, LeaseLostError):
                state.lose(result)
            elif not isinstance(result, Exception):
                state.block = max(state.block, request.reserved)
                state.last_id = max(state.last_id, int(result))

    def _resolve(self, job: _Job, result: Any) -> None:
        """Resolve the future of a job, and those that wait for what it has written."""
        state, request = job.state, job.request
        if isinstance(result, Exception):
            job.pending.fail(result)
            return
        if isinstance(request, AppendRows) and state is not None:
            self._resolve_waits(state.waiting, state.last_id)
            status = next((row.status for row in reversed(request.rows) if row.status), None)
            if status is not None and state.is_run:
                state.end_lease()
        elif isinstance(request, PostMessage):
            receiver = self._logs.get(request.name)
            if receiver is not None:
                receiver.last_message = max(receiver.last_message, result)
                self._resolve_waits(receiver.message_waits, receiver.last_message)
        job.pending.resolve(result)

    # --- reads

    def submit_read(self, read: Callable[[], T]) -> PendingFuture[T]:
        """Read in a thread; in the thread of the caller if the storage waits for nothing."""
        if self.closed:
            return PendingFuture.failed(self.closed_error())
        if self.storage.is_immediate:
            try:
                return PendingFuture.now(read())
            except Exception as error:  # noqa: BLE001 - raised by the future
                return PendingFuture.failed(error)
        with self._lock:
            if self._readers is None:
                self._readers = ThreadPoolExecutor(_READERS, "agents-tools-store-reader")
            readers = self._readers
        try:
            return PendingFuture(readers.submit(read))
        except RuntimeError:  # closed concurrently, or the interpreter is shutting down
            return PendingFuture.failed(self.closed_error())

    def read_here(self, read: Callable[[], T]) -> T:
        """Read in the thread of the caller."""
        self.check_open()
        return read()

    def chain(
        self, begin: Callable[[], PendingFuture[S]], finish: Callable[[S], T]
    ) -> PendingFuture[T]:
        """Return a future with the result of a future that a read returns."""
        done: PendingFuture[T] = PendingFuture()

        def end(pending: PendingFuture[S]) -> None:
            try:
                done.resolve(finish(pending.result()))
            except BaseException as error:  # noqa: BLE001 - raised by the future
                done.fail(error)

        def begun(pending: PendingFuture[PendingFuture[S]]) -> None:
            try:
                pending.result().add_done_callback(end)
            except BaseException as error:  # noqa: BLE001 - raised by the future
                done.fail(error)

        self.submit_read(begin).add_done_callback(begun)
        return done

    # --- waiting

    def wait(self, state: _LogState, after: int, *, is_message: bool) -> PendingFuture[int]:
        """Wait for an event or a message with a larger number."""
        waits = state.message_waits if is_message else state.waiting
        pending: PendingFuture[int] = PendingFuture(on_cancel=lambda: waits.pop(pending, None))
        with self._lock:
            known = state.last_message if is_message else state.last_id
            if state.epoch and known > after:
                return PendingFuture.now(known)
            waits[pending] = after
        if self.storage.is_immediate:
            self._check_waits([state])
        elif is_message or not state.epoch:
            self._start_watching()
            self.submit_read(partial(self._check_waits, [state]))
        if self.closed:
            pending.fail(self.closed_error())
        return pending

    def _resolve_waits(self, waits: dict[PendingFuture[int], int], last: int) -> None:
        if not waits:
            return
        with self._lock:
            due = [pending for pending, after in waits.items() if last > after]
            for pending in due:
                waits.pop(pending, None)
        for pending in due:
            pending.resolve(last)

    def _watched(self) -> list[_LogState]:
        with self._lock:
            return [
                state
                for state in self._logs.values()
                if state.message_waits or (state.waiting and not state.epoch)
            ]

    def _check_waits(self, states: Sequence[_LogState]) -> None:
        """Resolve the futures whose events or messages another store has written."""
        if not states:
            return
        try:
            found = self.storage.positions([state.name for state in states])
        except EventStoreError as error:
            for state in states:
                self._fail_waits(state, error)
            return
        for state in states:
            position = found.get(state.name)
            if position is not None:
                state.last_message = max(state.last_message, position.message)
                self._resolve_waits(state.message_waits, state.last_message)
                if not state.epoch:
                    self._resolve_waits(state.waiting, position.last_id)

    def _fail_waits(self, state: _LogState, error: Exception) -> None:
        with self._lock:
            waiting = [*state.waiting, *state.message_waits]
            state.waiting.clear()
            state.message_waits.clear()
        for pending in waiting:
            pending.fail(error)

    def _start_watching(self) -> None:
        with self._watch_condition:
            if self.closed:
                return
            if self._watch is None:
                self._watch = threading.Thread(
                    target=self._run_watch, name="agents-tools-store-watch", daemon=True
                )
                self._watch.start()
            self._watch_condition.notify()

    def _run_watch(self) -> None:
        while self._has_waits():
            self._check_waits(self._watched())
            if not self._watched():
                continue
            try:
                self.storage.wait_for_change(_CHECK_INTERVAL)
            except EventStoreError as error:
                for state in self._watched():
                    self._fail_waits(state, error)

    def _has_waits(self) -> bool:
        """Wait until a future waits for another process; return `False` if the store is closed."""
        with self._watch_condition:
            while not self.closed and not self._watched():
                self._watch_condition.wait()
            return not self.closed

    # --- leases

    def _start_renewing(self) -> None:
        if self.storage.is_immediate:
            return
        with self._lock:
            if self._renewer is None and not self.closed:
                self._renewer = threading.Thread(
                    target=self._run_renewer, name="agents-tools-store-leases", daemon=True
                )
                self._renewer.start()

    def _run_renewer(self) -> None:
        while not self._renewer_wake.wait(self.storage.lease_ttl / 3) and not self.closed:
            with self._lock:
                leases = {state.name: state.epoch for state in self._logs.values() if state.epoch}
            if leases:
                request = RenewLeases(leases=leases, ttl=self.storage.lease_ttl)
                self.submit(request).add_done_callback(self._renewed)

    def _renewed(self, pending: PendingFuture[Any]) -> None:
        error = pending.error()
        if error is not None:
            logger.warning("The leases of %s were not renewed: %s", self.storage.place, error)
            return
        for name in pending.result():
            state = self._logs.get(name)
            if state is not None and state.epoch:
                state.lose(self._no_lease(state))

    # --- closing

    def close(self) -> None:
        """Write what is pending, release the leases and end the threads."""
        with self._lock:
            if self.closed:
                return
            states = list(self._logs.values())
        for state in states:
            if state.epoch or state.taking is not None:
                self.release(state)
        with self._condition, self._watch_condition:
            self.closed = True
            self._condition.notify_all()
            self._watch_condition.notify_all()
        self._renewer_wake.set()
        self.storage.wake()
        _engines.discard(self)
        for thread in (self._writer, self._watch, self._renewer):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        if self._readers is not None:
            here = threading.current_thread().name.startswith("agents-tools-store-reader")
            self._readers.shutdown(wait=not here)
        self.storage.close()
        for state in states:
            self._fail_waits(state, self.closed_error())

    def after_fork(self) -> None:
        """Reset in a forked child, which has neither the threads nor the leases."""
        self.storage.after_fork()
        self._reset()
        for state in self._logs.values():
            state.reset()
            state.waiting.clear()
            state.message_waits.clear()


def _close_engine(engine: _StoreEngine) -> None:
    """Close a store. A finalizer can run in a thread of the store, which must not join others."""
    if threading.current_thread().name.startswith("agents-tools-store"):
        threading.Thread(target=engine.close, name="agents-tools-close", daemon=True).start()
    else:
        engine.close()


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise UserValueError(f"The name of a log is not a string: got {name!r:.60}.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserValueError(
            f"The name of a log is not valid Unicode: got {name!r:.60}. Remove the lone surrogate."
        ) from None


_engines: Final[weakref.WeakSet[_StoreEngine]] = weakref.WeakSet()


def _after_fork() -> None:
    for engine in list(_engines):
        engine.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
