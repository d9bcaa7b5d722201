"""The records of tasks: each task is a run of the run store, with one call."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.kinds import RunFinishedEvent, RunRecordEvent, ToolProgressEvent
from agents_tools.mcp._coerce import an_object
from agents_tools.persistence.filter import EventFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.run_store import RunStore
    from agents_tools.persistence.storage import RunInfo
    from agents_tools.persistence.stored_log import StoredLog

__all__ = ["ENDED", "TaskLog", "TaskRecord", "TaskRecords"]

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_KIND = "mcp_task"
"""The kind of the runs, which no other program resumes."""
_PREFIX = "task_"
_STATUS: Final = {"ok": "completed", "error": "failed", "cancelled": "cancelled"}
_RUN_STATUS: Final = {status: name for name, status in _STATUS.items()}
_STATE: Final = EventFilter(
    types=(RunRecordEvent.type, ToolProgressEvent.type, RunFinishedEvent.type)
)
_NEWEST = 50
"""The number of events that are read to find the state of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """The state of a task.

    Attributes:
        id: The id of the task.
        owner: The principal that created it.
        tool: The name of the tool.
        created: The time of its creation, in seconds since 1970.
        updated: The time of the last change, in seconds since 1970.
        ttl: How long it is kept from its creation, in seconds.
        status: `working`, `input_required`, `completed`, `failed` or `cancelled`.
        message: The last status message.
        requests: The requests for input that wait for a response, by their names.
        result: The result of the call.
        error: The error of the protocol with which the call has failed.
        is_orphaned: Whether it has not ended, and no process runs it.
    """

    id: str
    owner: str | None
    tool: str
    created: float
    updated: float
    ttl: float
    status: str = "working"
    message: str | None = None
    requests: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    is_orphaned: bool = False

    @property
    def is_expired(self) -> bool:
        """Whether it is no longer kept."""
        return time.time() > self.created + self.ttl


class TaskLog:
    """The log of a task that this process runs.

    Args:
        log: The log, whose lease this process holds.
    """

    def __init__(self, log: StoredLog) -> None:
        self.id = log.sid
        self._log = log
        self._number = 0

    async def store_message(self, message: str) -> None:
        """Store a status message, which is deleted when the task ends."""
        await self._append([ToolProgressEvent(0, message=message)])

    async def store_requests(self, requests: Mapping[str, Any]) -> None:
        """Store the requests for input that wait for a response."""
        await self._append([RunRecordEvent("input_requested", {"requests": requests})])

    async def store_end(
        self, status: str, result: dict[str, Any] | None, error: dict[str, Any] | None
    ) -> None:
        """Store the end of the task; its lease ends."""
        output = {"result": result, "error": error}
        end = RunFinishedEvent(_RUN_STATUS[status], output=output)
        messages = await self._log.messages()
        await self._append([end], consumed=[message.number for message in messages])

    async def next_messages(self) -> list[Mapping[str, Any]]:
        """Wait for messages of other processes, and return them."""
        await self._log.wait_message(self._number)
        messages = await self._log.messages(self._number)
        self._number = max([self._number, *(message.number for message in messages)])
        return [message.body for message in messages]

    async def begin(self, events: Sequence[Event]) -> None:
        """Store the first records."""
        await self._append(events)

    async def close(self) -> None:
        """Release the lease."""
        try:
            await self._log.release()
        finally:
            self._log.close()

    async def _append(self, events: Sequence[Event], consumed: Sequence[int] = ()) -> None:
        stamped = [event.stamped(_ORIGIN, INVALID_ID) for event in events]
        await self._log.append(stamped, durability="sync", consumed=consumed)


_ORIGIN: Final = Origin(source=EventSource.ENVIRONMENT)


class TaskRecords:
    """The tasks in a run store.

    Args:
        store: The store.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store

    async def create(
        self, tool: str, arguments: Mapping[str, Any], owner: str | None, ttl: float
    ) -> TaskLog:
        """Create a task with an id that cannot be guessed, and store that its call begins."""
        task_id = _PREFIX + secrets.token_urlsafe(24)
        log = await self.take(task_id)
        facts = {"created": time.time(), "ttl": ttl}
        created = {
            "run": "",
            "agent": tool,
            "kind": _KIND,
            "session": None,
            "owner": owner,
            "facts": facts,
            "input_events": 0,
        }
        begun = {"call_id": task_id, "arguments": dict(arguments)}
        try:
            await log.begin([RunRecordEvent("run_created", created)])
            await log.begin([RunRecordEvent("call_begun", begun)])
        except BaseException:
            await log.close()
            raise
        return log

    async def take(self, task_id: str) -> TaskLog:
        """Take the lease of a task, to run or to end it.

        Raises:
            RunInUseError: Another process runs it.
        """
        log = self.store.log(task_id)
        try:
            await log.take(is_exclusive=True)
        except BaseException:
            log.close()
            raise
        return TaskLog(log)

    async def find(self, task_id: str) -> TaskRecord | None:
        """Return the current state of a task; `None` if there is none with this id."""
        if not task_id.startswith(_PREFIX):
            return None  # other runs of the store are not tasks
        info = await self.store.run(task_id)
        if info is None or info.kind != _KIND:
            return None
        log = self.store.log(task_id)
        try:
            events = await log.read(reverse=True, limit=_NEWEST, where=_STATE)
        finally:
            log.close()
        return _record(info, events)

    async def arguments(self, task_id: str) -> dict[str, Any]:
        """Return the arguments of the call of a task."""
        log = self.store.log(task_id)
        try:
            events = await log.read_all(where=EventFilter(types=(RunRecordEvent.type,)))
        finally:
            log.close()
        for event in events:
            if isinstance(event, RunRecordEvent) and event.name == "call_begun":
                return an_object(event.data.get("arguments"))
        return {}

    async def all(self) -> list[TaskRecord]:
        """Return all tasks, oldest first, without what their calls have stored."""
        infos = await self.store.runs()
        return [_record(info, []) for info in infos if info.kind == _KIND]

    async def send(self, task_id: str, responses: Mapping[str, Any]) -> None:
        """Send responses to the process that runs a task."""
        await self.store.post(task_id, {"type": "input_responses", "responses": dict(responses)})


def _record(info: RunInfo, newest_first: Sequence[Event]) -> TaskRecord:
    """Return the state of a task from its events."""
    message: str | None = None
    requests: dict[str, Any] | None = None
    output: dict[str, Any] = {}
    for event in newest_first:
        if isinstance(event, ToolProgressEvent):
            message = message or event.message
        elif isinstance(event, RunFinishedEvent):
            output = an_object(event.output)
        elif isinstance(event, RunRecordEvent) and event.name == "input_requested":
            requests = an_object(event.data.get("requests")) if requests is None else requests
    status = _STATUS.get(str(info.status), "input_required" if requests else "working")
    has_ended = status in ENDED
    return TaskRecord(
        id=info.run_id,
        owner=info.owner,
        tool=info.agent or "",
        created=float(info.facts.get("created") or info.started or 0.0),
        updated=info.updated or time.time(),
        ttl=float(info.facts.get("ttl") or 0.0),
        status=status,
        message=None if has_ended else message,
        requests={} if has_ended else requests or {},
        result=output.get("result"),
        error=output.get("error"),
        is_orphaned=info.is_orphaned and not has_ended,
    )
