"""A run store in memory, whose logs end with the process."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from agents_tools.errors import EventStoreError
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.rows import DisplayRow, event_of_row, facts_of
from agents_tools.persistence.run_store import RunStore
from agents_tools.persistence.storage import (
    AppendRows,
    DeleteLog,
    LogPosition,
    PostMessage,
    ReleaseLease,
    RenewLeases,
    RetainLogs,
    RunInfo,
    RunMessage,
    TakeLease,
)
from agents_tools.persistence.stored_log import StoredLog
from agents_tools.persistence.write_errors import (
    already_posted_error,
    append_conflict_error,
    id_conflict_error,
    run_in_use_error,
    session_in_use_error,
    stale_lease_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.lease import LeaseHolder
    from agents_tools.persistence.protocol import RunStatus
    from agents_tools.persistence.rows import EventRow, RunSummary
    from agents_tools.persistence.storage import ReadSpan, WriteRequest

__all__ = ["MemoryEventStore", "MemoryRunStore", "MemoryStorage"]

_PLACE = "memory"


class MemoryRunStore(RunStore):
    """Stores runs in memory. They end with the process.

    Args:
        keep_display: Whether text deltas, progress and notifications stay in the log when a run
            ends.
    """

    def __init__(self, *, keep_display: bool = False) -> None:
        super().__init__(MemoryStorage(), keep_display=keep_display)

    def __repr__(self) -> str:
        """Return the constructor call."""
        return "MemoryRunStore()"


class MemoryEventStore(StoredLog):
    """One log in memory, as the store of an `EventStream`.

    Args:
        sid: The name of the log.
    """

    def __init__(self, sid: str = "default") -> None:
        self._run_store = MemoryRunStore(keep_display=True)
        super().__init__(self._run_store.engine, sid, store=self._run_store)

    def close(self) -> None:
        """Close the log and all logs that `session` returned."""
        super().close()
        self._run_store.close()


@dataclass(slots=True, eq=False)
class _Log:
    rows: list[EventRow | DisplayRow] = field(default_factory=list["EventRow | DisplayRow"])
    ids: list[int] = field(default_factory=list[int])
    last_id: int = INVALID_ID
    appended: int = 0
    reserved: int = INVALID_ID
    epoch: int = 0
    holder: LeaseHolder | None = None
    session: str | None = None
    run: RunSummary | None = None
    status: RunStatus | None = None
    messages: dict[int, PostMessage] = field(default_factory=dict[int, "PostMessage"])
    last_message: int = 0
    started: float | None = None
    updated: float | None = None
    size: int = 0


class MemoryStorage:
    """The storage of a `MemoryRunStore`."""

    place = _PLACE
    is_immediate = True
    lease_ttl = 60.0

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._lock = threading.RLock()

    # --- writing

    def write(self, requests: Sequence[WriteRequest], /) -> Sequence[Any]:
        """Apply requests; see `LogStorage.write`."""
        results: list[Any] = []
        with self._lock:
            for request in requests:
                try:
                    results.append(self._apply(request))
                except EventStoreError as error:
                    results.append(error)
        return results

    def _apply(self, request: WriteRequest) -> Any:
        match request:
            case TakeLease():
                return self._take(request)
            case ReleaseLease():
                return self._release(request)
            case RenewLeases(leases=leases):
                return [name for name, epoch in leases.items() if not self._has(name, epoch)]
            case AppendRows():
                return self._append(request)
            case PostMessage():
                return self._post(request)
            case DeleteLog(name=name, holder=holder):
                log = self._logs.get(name)
                if log is not None and log.holder not in {None, holder}:
                    raise run_in_use_error(name, _PLACE, log.holder)
                self._logs.pop(name, None)
                return None
            case RetainLogs():
                return self._retain(request)

    def _has(self, name: str, epoch: int) -> bool:
        log = self._logs.get(name)
        return log is not None and log.epoch == epoch and log.holder is not None

    def _take(self, request: TakeLease) -> LogPosition:
        log = self._logs.get(request.name)
        if log is not None and log.holder not in {None, request.holder}:
            raise run_in_use_error(request.name, _PLACE, log.holder)
        if request.session is not None:
            for name, other in self._logs.items():
                if other.session == request.session and other.holder and name != request.name:
                    raise session_in_use_error(request.session, name, _PLACE, other.holder)
        if log is None:
            log = self._logs[request.name] = _Log()
        log.epoch += 1
        log.holder = request.holder
        log.session = request.session or log.session
        if log.status == "interrupted":
            log.status = "running"
        return _position(log)

    def _release(self, request: ReleaseLease) -> None:
        if not self._has(request.name, request.epoch):
            return
        log = self._logs[request.name]
        log.holder = None
        log.reserved = request.reserved
        if not log.appended and log.reserved == INVALID_ID and not log.messages:
            del self._logs[request.name]

    def _append(self, request: AppendRows) -> int:
        if not self._has(request.name, request.epoch):
            raise stale_lease_error(request.name, _PLACE)
        log = self._logs[request.name]
        if request.expected not in {None, log.appended}:
            raise append_conflict_error(request.name, _PLACE, request.expected, log.appended)
        rows = [row for row in request.rows if not request.known_id < row.id <= log.last_id]
        ids: list[int] = []
        last = log.last_id
        for row in rows:
            next_id = max(last, request.used) + 1
            number = row.id if row.id != INVALID_ID else next_id
            if number <= last:
                raise id_conflict_error(request.name, _PLACE, number, next_id)
            ids.append(number)
            last = number
        log.rows += rows
        log.ids += ids
        log.last_id = last
        log.appended += len(ids)
        log.reserved = max(log.reserved, request.reserved)
        log.size += sum(row.size for row in rows)
        for row in rows:
            log.started = log.started or row.time or None
            log.updated = row.time or log.updated
        for number in request.consumed:
            log.messages.pop(number, None)
        if request.created is not None:
            log.run, log.status = request.created, "running"
            log.session = request.created.session or log.session
        if request.status is not None:
            log.status, log.holder = request.status, None
        if request.drop_display:
            kept = [n for n, row in enumerate(log.rows) if not row.is_display]
            log.rows = [log.rows[n] for n in kept]
            log.ids = [log.ids[n] for n in kept]
            log.size = sum(row.size for row in log.rows)
        return last

    def _post(self, request: PostMessage) -> int:
        log = self._logs.get(request.name)
        if log is None:
            return 0
        if request.key is not None and any(one.key == request.key for one in log.messages.values()):
            raise already_posted_error(request.name, _PLACE)
        log.last_message += 1
        log.messages[log.last_message] = request
        return log.last_message

    def _retain(self, request: RetainLogs) -> int:
        events = sum(len(log.ids) for log in self._logs.values())
        size = sum(log.size for log in self._logs.values())
        deleted = 0
        oldest = sorted(self._logs.items(), key=lambda pair: pair[1].updated or 0.0)
        for name, log in oldest:
            is_old = (
                request.max_age is not None and (log.updated or 0.0) < time.time() - request.max_age
            )
            is_full = (request.max_events is not None and events > request.max_events) or (
                request.max_bytes is not None and size > request.max_bytes
            )
            if log.holder is None and log.status != "interrupted" and (is_old or is_full):
                del self._logs[name]
                events, size, deleted = (
                    events - len(log.ids),
                    size - log.size,
                    deleted + len(log.ids),
                )
        return deleted

    # --- reading

    def read(self, name: str, span: ReadSpan, /) -> list[Event]:
        """Return events of a log; see `LogStorage.read`."""
        with self._lock:
            log = self._logs.get(name)
            if log is None:
                return []
            first = bisect_right(log.ids, span.after)
            end = len(log.ids) if span.before is None else bisect_left(log.ids, span.before)
            pairs = list(zip(log.ids[first:end], log.rows[first:end], strict=True))
        if span.reverse:
            pairs.reverse()
        events: list[Event] = []
        for number, row in pairs:
            if len(events) == span.limit:
                break
            event = _event(number, row, restore=span.restore)
            if span.where is None or span.where.accepts(event):
                events.append(event)
        return events

    def conversation(self, session: str, /, *, before: str | None = None) -> list[Event]:
        """Return the conversation of a session; see `LogStorage.conversation`."""
        with self._lock:
            logs = list(self._logs.values())
            if before is not None:
                names = list(self._logs)
                logs = logs[: names.index(before)] if before in self._logs else []
            pairs = [
                pair
                for log in logs
                if log.session == session
                for pair in zip(log.ids, log.rows, strict=True)
            ]
        return [_event(number, row, restore=True) for number, row in pairs if row.is_conversation]

    def position(self, name: str, /) -> LogPosition:
        """Return the end of a log."""
        with self._lock:
            log = self._logs.get(name)
            return LogPosition() if log is None else _position(log)

    def positions(self, names: Iterable[str], /) -> Mapping[str, LogPosition]:
        """Return the ends of the logs that exist among these names."""
        with self._lock:
            return {name: _position(self._logs[name]) for name in names if name in self._logs}

    def messages(self, name: str, after: int, /) -> list[RunMessage]:
        """Return the messages to a run."""
        with self._lock:
            log = self._logs.get(name)
            posted = {} if log is None else dict(log.messages)
        return [
            RunMessage(number=number, body=from_json(one.body))
            for number, one in posted.items()
            if number > after
        ]

    def logs(
        self,
        *,
        names: Sequence[str] | None = None,
        session: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> list[RunInfo]:
        """Return the logs that hold events, oldest first."""
        with self._lock:
            infos = [
                _info(name, log)
                for name, log in self._logs.items()
                if log.ids
                and (names is None or name in names)
                and session in {None, log.session}
                and status in {None, log.status}
            ]
        infos.sort(key=lambda info: (info.started or 0.0, info.run_id))
        return infos if limit is None else infos[max(len(infos) - limit, 0) :]

    def wait_for_change(self, seconds: float, /) -> bool:
        """Return at once: there is no other process."""
        del seconds
        return False

    def wake(self) -> None:
        """Do nothing: no method waits."""

    def close(self) -> None:
        """Release the memory."""
        self._logs = {}

    def after_fork(self) -> None:
        """Reset in a forked child: another thread of the parent can have been writing."""
        self._lock = threading.RLock()
        for log in self._logs.values():
            log.holder = None
            complete = min(len(log.ids), len(log.rows))
            del log.ids[complete:], log.rows[complete:]
            log.last_id = log.ids[-1] if log.ids else INVALID_ID


def _event(number: int, row: EventRow | DisplayRow, *, restore: bool) -> Event:
    if isinstance(row, DisplayRow):
        return row.event
    blobs = dict(row.blobs)
    return event_of_row(row.body(number), row.large, blobs.__getitem__, restore=restore)


def _position(log: _Log) -> LogPosition:
    return LogPosition(
        epoch=log.epoch,
        last_id=log.last_id,
        reserved=log.reserved,
        message=log.last_message,
        is_run=log.run is not None,
    )


def _info(name: str, log: _Log) -> RunInfo:
    run = log.run
    return RunInfo(
        run_id=name,
        session=log.session,
        agent=None if run is None else run.agent,
        kind=None if run is None else run.kind,
        owner=None if run is None else run.owner,
        facts={} if run is None else facts_of(run.facts),
        status=log.status,
        is_orphaned=log.status == "running" and log.holder is None,
        started=log.started,
        updated=log.updated,
        last_id=log.last_id,
        events=len(log.ids),
        size=log.size,
    )
