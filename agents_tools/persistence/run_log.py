"""The log of one run, as the process that drives the run writes it and reads it again.

`RunLog` publishes the events of a run to a stream over its log. `Replay` finds in the events of an
earlier process what does not have to be done again. The page about the run log lists the records.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.content.items import (
    ToolApprovalItem,
    input_items,
    item_from_dict,
    item_of_event,
)
from agents_tools.errors import EventStoreError, UserError
from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.kinds import (
    MessageEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunRecordEvent,
    SummaryEvent,
    ToolStreamStartEvent,
)
from agents_tools.persistence.filter import EventFilter
from agents_tools.persistence.records import shown_event
from agents_tools.persistence.stream import EventStream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agents_tools.content.items import Item
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import RecordName
    from agents_tools.persistence.run_store import RunStore
    from agents_tools.persistence.storage import RunMessage
    from agents_tools.persistence.stored_log import StoredLog

__all__ = ["Replay", "RunLog", "RunReplay"]

_log = logging.getLogger("agents_tools")

_RECORDS: Final = EventFilter(types=(RunRecordEvent.type,))
_ANSWER_ITEMS: Final = frozenset(
    {"message_output_created", "reasoning_item_created", "tool_called"}
)


class RunLog:
    """The log of one run, with the lease that lets this process write it.

    Args:
        store: The store.
        run_id: The run.
        session: The session that the run is part of.
        facts: More data of the `run_created` record, such as the `owner`.
        path: The ids of the calls around the run, if it has a log of its own although it runs
            inside a call. They are removed from the paths of its events.

    Attributes:
        run_id: The id of the run.
        replay: The records of an earlier process; empty for a new run.
        stream: The events of the run; `None` until `open`.
        is_complete: Whether the run has ended with a result, so that nothing is written any more.
        secrets: Values that are masked in the log, by name, in addition to the registered ones.
        on_open: Called when the stream is open.
        last_id: The id of the last event.
        last_end: The last end of the run, or its last stop.
        has_failed: Whether the end was not stored.
        summaries: The summaries in the earlier runs of the session; empty until `conversation`.
        depth: The number of calls around the run.
        cancellations: The numbers of the messages that cancel the run.
        cancelled_calls: The numbers of the messages that cancel a call without an output, by its
            id.
    """

    def __init__(
        self,
        store: RunStore,
        run_id: str,
        *,
        session: str | None = None,
        facts: Mapping[str, Any] | None = None,
        path: tuple[str, ...] = (),
    ) -> None:
        self.run_id = run_id
        self.session = session
        self.facts: Mapping[str, Any] = facts or {}
        self.replay = Replay(())
        self.stream: EventStream | None = None
        self.is_complete = False
        self.store = store
        self.depth = len(path)
        self.cancellations: list[int] = []
        self.cancelled_calls: dict[str, int] = {}
        self.secrets: Mapping[str, str] | None = None
        self.on_open: Callable[[], object] | None = None
        self.last_id = INVALID_ID
        self.last_end: RunFinishedEvent | None = None
        self.has_failed = False
        self.summaries: list[SummaryEvent] = []
        self._early: list[Event] = []
        self._stored: StoredLog | None = None
        self._has_lease = self._is_abandoned = False
        self._seq = 0  # the first sequence number of this process
        self._thread = threading.local()

    # --- the lease

    async def open(self) -> Replay:
        """Take the lease of the run, and return the records of an earlier process.

        A run that has ended with a result is only read.

        Raises:
            RunInUseError: Another process drives the run, or another run of the session.
        """
        stored = self._stored = self.store.log(self.run_id)
        info = await self.store.run(self.run_id)
        if info is not None:
            self.session = await self._recorded_session(stored)
            self.is_complete = info.status == "ok"
        if not self.is_complete:
            await stored.take(session=self.session, is_exclusive=True)
            self._has_lease = True
        events = await stored.read_all()
        self.replay = Replay(events)
        self._seq = 1 + max((event.seq for event in events), default=-1)
        if self.is_complete:
            self._early.clear()
            return self.replay
        self.stream = EventStream(stored, sid=self.run_id, keep="run", secrets=self.secrets)
        if self.on_open is not None:
            self.on_open()
        early, self._early = self._early, []
        for event in early:
            self.publish(event)
        return self.replay

    async def _recorded_session(self, stored: StoredLog) -> str | None:
        """Return the session whose history a recorded run has read."""
        first = await stored.read(limit=1, where=_RECORDS)
        if not first or not isinstance(first[0], RunRecordEvent):
            return None
        data = first[0].data
        return cast("str | None", data.get("session")) if data.get("reads_session") else None

    async def is_handed_over(self) -> bool:
        """Return whether another process continues the run: it was abandoned, or lost its lease."""
        if self.last_end is not None:
            return False
        if self._is_abandoned or not self._has_lease or self._stored is None:
            return self._is_abandoned
        try:
            return not await self._stored.has_lease()
        except EventStoreError as error:
            _log.warning("The lease of run %s cannot be checked: %s", self.run_id, error)
            return False

    def abandon(self) -> None:
        """Write nothing more, so that another process can continue the run."""
        self.is_complete = self._is_abandoned = True

    async def close(self) -> None:
        """Write what is pending, and release the lease.

        Raises:
            EventStoreError: An event could not be stored.
        """
        stored, self._stored = self._stored, None
        stream, self.stream = self.stream, None
        self.is_complete = True
        try:
            if stream is not None:
                await stream.aclose()
        except EventStoreError:
            self.has_failed = True
            raise
        finally:
            if stored is not None:
                try:
                    if self._has_lease:
                        await stored.release()
                finally:
                    stored.close()

    # --- writing

    def publish(self, event: Event) -> None:
        """Write an event of the run; also in threads, and never waiting."""
        if self.is_complete:
            return
        if self.stream is None:
            self._early.append(event)
            return
        if self.depth and event.origin is not None:
            origin = event.origin
            event = event.replace(
                origin=Origin(
                    origin.tool_name,
                    origin.tool_call_id,
                    origin.path[self.depth :],
                    origin.source,
                )
            )
        original = getattr(self._thread, "original", None)
        if event.__class__ is ToolStreamStartEvent:
            event = _with_json_form(event)
            original = None if original is None else _with_json_form(original)
        if self._seq and event.seq >= 0:
            event = event.replace(seq=event.seq + self._seq)
        try:
            published = self.stream.publish_restorable(event, original or event)
            self.last_id = published.id
            if isinstance(published, RunFinishedEvent) and not published.path:
                self.last_end = published
        except UserError as error:
            _log.warning("An event of run %s was not stored: %s", self.run_id, error)

    @contextmanager
    def restoring(self, original: Event) -> Generator[None]:
        """Store the event that the block emits with its secrets, which only resuming restores.

        Args:
            original: The event before its secrets were masked for the readers.
        """
        self._thread.original = original
        try:
            yield
        finally:
            self._thread.original = None

    def publish_hidden(self, event: Event) -> None:
        """Write an event that readers of the run do not receive, so that it can be resumed."""
        original = getattr(self._thread, "original", None)
        if original is not None:
            event = original.replace(origin=event.origin, seq=event.seq, timestamp=event.timestamp)
            self._thread.original = None
        if event.durable or isinstance(event, RunRecordEvent):
            self.record("hidden_event", {"event": event.to_dict()}, event.path)

    def record(self, name: RecordName, data: Mapping[str, Any], path: tuple[str, ...] = ()) -> None:
        """Write a record.

        Args:
            name: The name of the record.
            data: The content, as JSON.
            path: The ids of the calls around the run that it is about.
        """
        event = RunRecordEvent(name, data)
        self.publish(event.replace(origin=Origin(path=path, source=EventSource.ENVIRONMENT)))

    def group(self) -> AbstractContextManager[None]:
        """Store the events of the block all or none."""
        return nullcontext() if self.stream is None else self.stream.group()

    async def flush(self) -> None:
        """Wait until all events so far would survive the end of this process.

        Raises:
            EventStoreError: An event could not be stored.
        """
        if self.stream is not None:
            await self.stream.flush()

    # --- the session

    async def conversation(self) -> list[Event]:
        """Return the conversation of the earlier runs of the session."""
        if self.session is None:
            return []
        events = await self.store.conversation(self.session, before=self.run_id)
        self.summaries = [event for event in events if isinstance(event, SummaryEvent)]
        return events

    async def end_interrupted_runs(self) -> None:
        """End the runs of the session that have not ended: this run has their open calls now.

        They wait for a person, or their process has ended.
        """
        for info in await self.store.runs(session=self.session):
            if info.status not in {"running", "interrupted"} or info.run_id == self.run_id:
                continue
            other = self.store.log(info.run_id)
            try:
                await other.take()
                end = RunFinishedEvent("cancelled", error=f"Continued by run {self.run_id}.")
                await other.append([end.stamped(Origin(), -1)])
            finally:
                other.close()

    # --- messages

    async def next_messages(self, after: int) -> list[RunMessage]:
        """Wait for messages to the run with larger numbers, and return them.

        Without any, the log is closed.
        """
        messages: list[RunMessage] = []
        while self._stored is not None and not messages:
            last = await self._stored.wait_message(after)
            messages = await self._stored.messages(after)
            after = last  # an earlier process has handled and deleted those up to this one
        return messages

    async def pending_messages(self) -> list[RunMessage]:
        """Return the messages to the run that were not handled yet."""
        return [] if self._stored is None else await self._stored.messages()

    def consume(self, number: int) -> None:
        """Delete a message together with the next event that is stored."""
        if self.stream is not None:
            self.stream.consume(number)


def _with_json_form(event: Event) -> Event:
    """Return the start of a call without arguments if they have no JSON form.

    The arguments of a model can have NaN, or be nested deeper than those of events.
    """
    try:
        event.to_dict()
    except UserError:
        return cast("ToolStreamStartEvent", event).replace(input_args={})
    return event


@dataclass(slots=True)
class RunReplay:
    """The records of one run: of the outermost one, or of one inside a call.

    Attributes:
        responses: The data of the `model_response` records with the items, by turn.
        outputs: The output items, by call id.
        results: The data of the `call_result` records, by call id.
        begun: How often a call was begun, by call id.
        remote: Where a call continues outside of its process, by call id.
        incomplete: The items of the calls that were begun while the model wrote them, and whose
            response is not recorded, by call id.
        sent: The messages that were sent before a turn, by turn.
        summaries: The summaries that were made for a turn, by turn.
        answered: The calls in the background whose results were sent.
        requested: The items of the requests for approval, by call id.
        requests: The data of the `approval_requested` records, by call id.
        decisions: The data of the `approval_decided` records, by call id.
        created: The data of the `run_created` record; `None` if the run has no record.
    """

    responses: dict[int, dict[str, Any]] = field(default_factory=dict[int, "dict[str, Any]"])
    outputs: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    results: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    begun: defaultdict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    remote: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    incomplete: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    sent: defaultdict[int, list[Item]] = field(
        default_factory=lambda: defaultdict[int, "list[Item]"](list)
    )
    summaries: defaultdict[int, list[SummaryEvent]] = field(
        default_factory=lambda: defaultdict[int, "list[SummaryEvent]"](list)
    )
    answered: set[str] = field(default_factory=set[str])
    requested: dict[str, ToolApprovalItem] = field(default_factory=dict[str, ToolApprovalItem])
    requests: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    decisions: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    created: Mapping[str, Any] | None = None
    _items: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])
    _inputs: int = 0

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The items after the last response: all calls, in a program, which asks no model."""
        return self._items

    def read_item(self, event: RunItemStreamEvent[Any]) -> None:
        """Read the event of an item."""
        item = event.item
        call_id = str(item.get("call_id"))
        if event.name in _ANSWER_ITEMS:
            self._items.append(item)
        elif event.name in {"tool_output", "background_result"}:
            if self.results.get(call_id, {}).get("is_open"):
                del self.results[call_id]
            elif event.name == "tool_output":
                self.outputs.setdefault(call_id, item)
            else:
                self.answered.add(call_id)
                self.read_input(cast("Item", item_of_event(event)))
        elif event.name == "tool_approval_requested":
            self.requested[call_id] = cast("ToolApprovalItem", item_from_dict(item))
        elif event.name == "input":
            self.read_input(cast("Any", item_from_dict(item)))

    def read_input(self, item: Item) -> None:
        """Read a message: a part of the input, or one that was sent later."""
        if self._inputs > 0:
            self._inputs -= 1
        else:
            self.sent[len(self.responses) + 1].append(item)

    def read_summary(self, event: SummaryEvent) -> None:
        """Read a summary, which was made before the response of the turn was requested."""
        self.summaries[len(self.responses) + 1].append(event)

    def read_record(self, name: RecordName, data: Mapping[str, Any]) -> None:
        """Read a record."""
        call_id = str(data.get("call_id"))
        match name:
            case "run_created":
                self.created = data
                self._inputs = int(data["input_events"])
            case "model_response":
                self.responses[int(data["turn"])] = {**data, "items": self._items}
                self._items = []
                self.incomplete.clear()
            case "call_begun":
                self.begun[call_id] += 1
                if "item" in data:
                    self.incomplete[call_id] = data["item"]
            case "call_remote":
                self.remote[call_id] = data["reference"]
            case "call_result" if data.get("is_dropped"):
                self.incomplete.pop(call_id, None)
                self.begun.pop(call_id, None)  # another call of the response can have its id
            case "call_result":
                self.results[call_id] = data
            case "approval_requested":
                self.requests[call_id] = data
                self.decisions.pop(call_id, None)  # it was not usable, so the person is asked again
            case "approval_decided":
                self.decisions.setdefault(call_id, data)
            case _:
                pass


class Replay:
    """The records in the events of a log.

    Args:
        events: All events of the log, with the secrets restored.

    Attributes:
        created: The data of the first record; `None` for a new run.
        status: The status with which the run has ended or stopped; `None` while it runs.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.created: Mapping[str, Any] | None = None
        self.status: str | None = None
        self._runs: dict[str, RunReplay] = {}
        self._current: dict[tuple[str, ...], RunReplay] = {}
        for event in events:
            self._read(shown_event(event))

    def of(self, run: str) -> RunReplay:
        """Return the records of a run.

        Args:
            run: The place of the run: empty for the outermost one.
        """
        return self._runs.get(run) or RunReplay()

    def at(self, path: tuple[str, ...]) -> RunReplay:
        """Return the records of the last run with a path."""
        return self._current.setdefault(path, RunReplay())

    def _read(self, event: Event) -> None:
        if isinstance(event, RunRecordEvent):
            self._read_record(event)
            return
        run = self._current.get(event.path)
        if run is None:
            return
        if isinstance(event, RunItemStreamEvent):
            run.read_item(cast("RunItemStreamEvent[Any]", event))
        elif isinstance(event, MessageEvent):
            run.read_input(input_items([{"role": event.role, "content": event.content}])[0])
        elif isinstance(event, SummaryEvent):
            run.read_summary(event)
        elif isinstance(event, RunFinishedEvent) and not event.path:
            self.status = event.status

    def _read_record(self, event: RunRecordEvent) -> None:
        data = event.data
        if event.name == "run_created":
            if not event.path:
                self.created = data
            run = self._runs.setdefault(str(data["run"]), RunReplay())
            self._current[event.path] = run
        known = self._current.get(event.path)
        if known is not None:
            known.read_record(event.name, data)
