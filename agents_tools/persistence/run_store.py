"""The run store: the logs of runs, their leases, and the messages to their holders.

A `LogStorage` writes and reads the rows of logs, the `StoreEngine` owns threads and leases, and
`RunStore` has the operations on runs.
"""

from __future__ import annotations

import json
import uuid
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from agents_tools.content.items import (
    ToolApprovalItem,
    ToolCallOutputItem,
    input_items,
    item_from_dict,
)
from agents_tools.errors import (
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
from agents_tools.persistence.conversation import REMOVED, conversation, input_event
from agents_tools.persistence.filter import EventFilter
from agents_tools.persistence.records import shown_event
from agents_tools.persistence.storage import (
    PostMessage,
    ReadSpan,
    RetainLogs,
    RunInfo,
)
from agents_tools.persistence.write_errors import (
    already_posted_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.content.items import Item
    from agents_tools.events.base import Event
    from agents_tools.persistence.protocol import RunStatus
    from agents_tools.persistence.storage import (
        LogStorage,
        RunMessage,
    )

from agents_tools.persistence.store_engine import StoreEngine, close_engine
from agents_tools.persistence.stored_log import StoredLog

__all__ = ["RunStore", "Session", "undecided_calls"]

_CANCELLED: Final = (
    "Not run: the user cancelled the run while this call waited for the decision of a person."
)
_ENDED: Final = frozenset({"ok", "error", "cancelled"})
_ORIGIN: Final = Origin(source=EventSource.ENVIRONMENT)
_USER: Final = Origin(source=EventSource.USER)
_RECORDS: Final = EventFilter(types=(RunRecordEvent.type,))
_APPROVALS: Final = EventFilter(types=(RunItemStreamEvent.type, RunRecordEvent.type))


class RunStore:
    """Stores the logs of runs, so that other processes can read, decide about and resume them.

    Use one of `MemoryRunStore`, `SQLiteRunStore`, `PostgresRunStore` and `RedisRunStore`, or pass a
    storage of your own. All methods can be called in any thread. Those that return a
    `PendingFuture` can be awaited, or used in synchronous code with `.result()`.

    Args:
        storage: Where the logs are stored.
        keep_display: Whether text deltas, progress and notifications stay in the log when a run
            ends. By default they are deleted then.

    Attributes:
        engine: The threads and leases of the store in this process.
    """

    def __init__(self, storage: LogStorage, *, keep_display: bool = False) -> None:
        self.engine = StoreEngine(storage, keep_display=keep_display)
        self._finalizer = weakref.finalize(self, close_engine, self.engine)

    @property
    def place(self) -> str:
        """The path or address of the store, without secrets."""
        return self.engine.storage.place

    @property
    def storage(self) -> LogStorage:
        """The storage of the logs."""
        return self.engine.storage

    def log(self, run_id: str, /) -> StoredLog:
        """Return a handle on the log of a run, to append to it or to read it."""
        return StoredLog(self.engine, run_id, store=self)

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
            logs = self.engine.storage.logs(session=session, status=status, limit=limit)
            return [info for info in logs if info.status is not None]

        return self.engine.submit_read(read)

    def logs(self) -> PendingFuture[list[RunInfo]]:
        """List all logs that hold events, oldest first, including those that are not of a run."""
        return self.engine.submit_read(self.engine.storage.logs)

    def run(self, run_id: str, /) -> PendingFuture[RunInfo | None]:
        """Return the summary of a run; `None` if there is no such run."""
        return self.engine.submit_read(lambda: self._info(run_id))

    def conversation(
        self, session: str, /, *, before: str | None = None
    ) -> PendingFuture[list[Event]]:
        """Return the messages, calls, outputs and summaries of a session, oldest first.

        Args:
            session: The session.
            before: Only the runs that were created before this one.
        """
        return self.engine.submit_read(
            lambda: self.engine.storage.conversation(session, before=before)
        )

    def session(self, id: str, /) -> Session:
        """Return the session with an id."""
        return Session(id, self)

    def approvals(self, run_id: str, /) -> PendingFuture[list[ToolApprovalItem]]:
        """Return the calls of a run that wait for the decision of a person.

        The `path` of an item has the ids of the calls around it.
        """
        return self.engine.submit_read(lambda: self._waiting_calls(run_id))

    def decide(
        self,
        run_id: str,
        call_id: str,
        approved: bool,
        *,
        path: Sequence[str] | None = None,
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
            path: The ids of the calls around it, empty for a call of the run itself; needed only if
                several waiting calls have its id.
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
        place = None if path is None else tuple(path)
        return self.engine.submit_read(lambda: self._decide(run_id, body, place))

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
        return self.engine.submit_read(lambda: self._cancel(run_id, call_id, reason))

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

        return self.engine.chain(begin, lambda _: None)

    def post(
        self, run_id: str, body: Mapping[str, Any], *, key: str | None = None
    ) -> PendingFuture[int]:
        """Add a message to the inbox of a run; the future has its number.

        It raises `UserKeyError` if there is no such run, and `EventConflictError` if the run has a
        message with this key.
        """
        return self.engine.chain(
            lambda: self._submit_message(run_id, body, key),
            lambda number: self._check_posted(run_id, number),
        )

    def _submit_message(
        self, run_id: str, body: Mapping[str, Any], key: str | None = None
    ) -> PendingFuture[int]:
        return self.engine.submit(PostMessage(name=run_id, body=json.dumps(body), key=key))

    def _check_posted(self, run_id: str, number: int) -> int:
        if not number:
            raise UserKeyError(f"Run {run_id!r} does not exist in {self.place}. Check the id.")
        return number

    def messages(self, run_id: str, /, after: int = 0) -> PendingFuture[list[RunMessage]]:
        """Return the messages to a run with larger numbers, in order."""
        return self.engine.submit_read(lambda: self.engine.storage.messages(run_id, after))

    def delete(self, run_id: str, /) -> PendingFuture[None]:
        """Delete the log of a run. A missing run is not an error.

        The future raises `RunInUseError` while another process holds the run.
        """
        return self.engine.delete(run_id)

    def retain(
        self,
        *,
        max_events: int | None = None,
        max_age: float | None = None,
        max_bytes: int | None = None,
    ) -> PendingFuture[int]:
        """Delete the oldest logs until the limits hold.

        Logs with a lease, and runs that wait for a person, are not deleted. A run whose process
        died has no lease.

        Args:
            max_events: The number of events to keep in all logs together.
            max_age: The largest age of the last event of a log, in seconds.
            max_bytes: The size of all events together, in bytes.

        Returns:
            A future with the number of deleted events.

        Raises:
            UserValueError: A limit is not a number from 0 on.
        """
        for name, limit in (
            ("max_events", max_events),
            ("max_age", max_age),
            ("max_bytes", max_bytes),
        ):
            if limit is None:
                continue
            if not isinstance(cast("object", limit), (int, float)) or not limit >= 0:
                raise UserValueError(f"retain({name}=) expects a number from 0 on, got {limit!r}.")
        return self.engine.submit(
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
        found = self.engine.storage.logs(names=[run_id])
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
                messages = self.engine.storage.messages(run_id, 0)
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
        return undecided_calls(self.engine.storage.read(run_id, ReadSpan(where=_APPROVALS)))

    def _waiting_calls(self, run_id: str) -> list[ToolApprovalItem]:
        posted = {
            (*message.body.get("path", ()), message.body.get("call_id"))
            for message in self.engine.storage.messages(run_id, 0)
            if message.body.get("type") == "decision"
        }
        waiting = self._undecided(run_id)
        info = self._info(run_id)
        if info is None or info.status in _ENDED:
            return []
        return [item for place, item in waiting.items() if place not in posted]

    def _decide(self, run_id: str, body: Mapping[str, Any], path: tuple[str, ...] | None) -> None:
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
            events = self.engine.storage.read(run_id, ReadSpan(where=_RECORDS))
            decisions = [event for event in events if _is_decision(event, call_id, place)]
            if decisions and decisions[-1].data.get("number") != number:
                raise already_posted_error(run_id, self.place)

    def _find_waiting(
        self, run_id: str, call_id: str, path: tuple[str, ...] | None
    ) -> ToolApprovalItem:
        events = self.engine.storage.read(run_id, ReadSpan(where=_APPROVALS))
        info = self._info(run_id)
        waiting = {} if info is None or info.status in _ENDED else undecided_calls(events)
        found = [
            item
            for item in waiting.values()
            if item.call_id == call_id and path in {None, item.path, (*item.path, call_id)}
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


def _is_decision(
    event: Event, call_id: str, path: tuple[str, ...] | None
) -> TypeGuard[RunRecordEvent]:
    """Return whether an event is the decision about a call."""
    return (
        isinstance(event, RunRecordEvent)
        and event.name == "approval_decided"
        and event.data.get("call_id") == call_id
        and path in {None, event.path, (*event.path, call_id)}
    )


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: an ordered list of runs under an id that the application chooses.

    Pass it as `Runner.run(..., session=...)`. A run continues the conversation of the earlier runs
    and becomes the last one. One run at a time is active in a session. The methods that change the
    conversation raise `RunInUseError` during a run.

    Args:
        id: The id, for example of a chat.
        store: The store of the runs.
    """

    id: str
    store: RunStore

    @property
    def session_id(self) -> str:
        """The id, by its name in openai-agents."""
        return self.id

    def events(self) -> PendingFuture[list[Event]]:
        """Return the messages, calls and outputs of all runs, oldest first."""
        return self.store.conversation(self.id)

    def runs(self) -> PendingFuture[list[RunInfo]]:
        """List the runs, oldest first. A change of the conversation is a run of its own."""
        return self.store.runs(session=self.id)

    async def get_items(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the conversation as JSON items, which can be the input of a run.

        Args:
            limit: The largest number of items; the last ones are returned. All by default.
        """
        items = conversation(await self.events())
        count = len(items) if limit is None else max(limit, 0)
        return [item.to_dict() for item in items[len(items) - min(count, len(items)) :]]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Append items to the conversation.

        Args:
            items: Items, their JSON forms, or messages such as `{"role": "user", "content": "…"}`.

        Raises:
            UserError: An element is not an item.
            RunInUseError: A run of the session is active.
        """
        events = [input_event(item) for item in input_items(items, "items")]
        if events:
            await self._change(lambda _: events)

    async def pop_item(self) -> dict[str, Any] | None:
        """Remove the last item of the conversation, and return it.

        The log keeps the item: only runs that start later do not see it. Remove the output of a
        call together with the call, which otherwise counts as a call without an output.

        Returns:
            The item as JSON; `None` if the conversation is empty.

        Raises:
            RunInUseError: A run of the session is active.
        """
        removed: list[dict[str, Any]] = []

        def remove(items: list[Item]) -> list[Event]:
            removed.extend(item.to_dict() for item in items[-1:])
            return [RunItemStreamEvent(REMOVED, item) for item in removed]

        await self._change(remove)
        return removed[0] if removed else None

    async def clear_session(self) -> None:
        """Delete the runs of the session, with their logs.

        Raises:
            RunInUseError: A run of the session is active.
        """
        for info in await self.runs():
            await self.store.delete(info.run_id)

    async def _change(self, change: Callable[[list[Item]], Sequence[Event]]) -> None:
        """Append the events that a function returns for the conversation, as a run of their own."""
        log = self.store.log(f"edit_{uuid.uuid4().hex}")
        try:
            await log.take(session=self.id)
            events = change(conversation(await self.events()))
            if not events:
                return
            data = {"run": "", "agent": "session", "kind": "edit", "session": self.id}
            run = [RunRecordEvent("run_created", data), *events, RunFinishedEvent("ok")]
            await log.append([event.stamped(event.origin or _ORIGIN, INVALID_ID) for event in run])
        finally:
            log.close()


def undecided_calls(events: Iterable[Event]) -> dict[tuple[str, ...], ToolApprovalItem]:
    """Return the calls that wait for a decision, by their path including the own id."""
    waiting: dict[tuple[str, ...], ToolApprovalItem] = {}
    open_calls: set[tuple[str, ...]] = set()  # they wait again if their cancelled run is resumed
    for stored in events:
        event = shown_event(stored)
        if isinstance(event, RunItemStreamEvent):
            place = (*event.path, str(event.item.get("call_id")))
            if event.name == "tool_approval_requested":
                item = cast("ToolApprovalItem", item_from_dict(event.item))
                object.__setattr__(item, "path", event.path)
                waiting[place] = item
            elif event.name == "tool_output" and place in open_calls:
                open_calls.discard(place)
            elif event.name in {"tool_output", "tool_approval_granted"}:
                waiting.pop(place, None)
        elif isinstance(event, RunRecordEvent):
            place = (*event.path, str(event.data.get("call_id")))
            if event.name == "approval_decided":
                waiting.pop(place, None)
            elif event.name == "call_result" and event.data.get("is_open"):
                open_calls.add(place)
    return waiting
