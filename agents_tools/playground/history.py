"""The history of runs in an event store, so that it survives a restart of the server."""

from __future__ import annotations

import logging
import re
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.errors import EventStoreError
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import ActionEvent, ObservationEvent
from agents_tools.persistence import EventFilter
from agents_tools.playground.results import summary_of
from agents_tools.text.output import release_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence import EventStore, PendingFuture
    from agents_tools.playground.results import ResultView

__all__ = ["HistoryRecord", "RunHistory", "new_id"]

logger = logging.getLogger("agents_tools.playground")

_BEGUN, _ENDED = "playground.begun", "playground.ended"
_ABOUT = "about."
"""The prefix of the name of a run's summary log. The log with its events has the id as name."""
_ID = re.compile(r"play_[0-9a-f]{32}")
_RESULTS = EventFilter(types=("run_item_stream_event", "run_finished_event"))
_ABANDONED = 3_600.0
"""The seconds after which a log without a summary is regarded as abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """The summary of a run, without its events.

    Attributes:
        id: The id of the run.
        kind: Whether a tool or an agent ran.
        name: The name of the tool or agent.
        given: The arguments of the tool, or the input of the agent; secrets are masked.
        is_masked: Whether secrets were masked.
        generation: The generation of the target.
        started: The time of the start, in seconds since 1970.
        status: The status of the run.
        duration: The duration in seconds; `None` until the run has ended.
        summary: The beginning of the result.
    """

    id: str
    kind: Literal["tool", "agent"]
    name: str
    given: Any
    generation: int
    started: float
    status: str = "running"
    duration: float | None = None
    summary: str = ""
    is_masked: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "status": self.status,
            "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="milliseconds"),
            "duration": self.duration,
            "arguments" if self.kind == "tool" else "input": self.given,
            "summary": self.summary,
            "generation": self.generation,
        }


class RunHistory:
    """The newest runs in an event store.

    A run has two logs in the store: its events, and a short summary. Logs of other programs in the
    same store are not changed.

    Args:
        store: The store.
        keep: The number of runs to keep.
        keep_bytes: The largest total size in bytes. The newest run is always kept.
    """

    def __init__(self, store: EventStore, *, keep: int = 500, keep_bytes: int = 256 << 20) -> None:
        self.store = store
        self._keep = keep
        self._keep_bytes = keep_bytes
        self._records: dict[str, HistoryRecord] = {}

    async def open(self) -> None:
        """Read the runs of earlier servers."""
        infos = await self.store.sessions()
        noted = {info.sid for info in infos}
        found = [
            await self._read(info.sid.removeprefix(_ABOUT))
            for info in infos
            if info.sid.startswith(_ABOUT) and _ID.fullmatch(info.sid.removeprefix(_ABOUT))
        ]
        for record in sorted(filter(None, found), key=lambda record: record.started):
            self._records.setdefault(record.id, record)
        for info in infos:
            is_run = _ID.fullmatch(info.sid) and f"{_ABOUT}{info.sid}" not in noted
            if is_run and (info.last or 0.0) < time.time() - _ABANDONED:
                self._watch(self.store.delete(info.sid))

    async def look(self, id: str, status: str) -> HistoryRecord | None:
        """Read the record of a run again, because another server can have changed it.

        Args:
            id: The id of the run.
            status: The status according to its events.
        """
        found = await self._read(id)
        if found is not None and id in self._records:
            self._records[id] = replace(found, status=status)
        return self._records.get(id)

    async def _read(self, id: str) -> HistoryRecord | None:
        """Read the record of a run; return `None` if its log cannot be read."""
        log = self.store.session(_ABOUT + id)
        try:
            return _record(id, await log.read())
        except (EventStoreError, ValueError, TypeError) as error:
            logger.warning("The record of run %s cannot be read: %s", id, error)
            return None
        finally:
            log.close()

    def page(self, limit: int, before: str | None) -> tuple[list[HistoryRecord], bool]:
        """Return runs, newest first, and whether there are older ones.

        Args:
            limit: How many at most.
            before: Only those that are older than this one.
        """
        newest = list(reversed(self._records.values()))
        if before is not None:
            ids = [record.id for record in newest]
            newest = newest[ids.index(before) + 1 :] if before in ids else []
        return newest[:limit], len(newest) > limit

    def get(self, id: str) -> HistoryRecord | None:
        """Return a run."""
        return self._records.get(id)

    def begin(
        self, id: str, kind: Literal["tool", "agent"], name: str, given: Any, generation: int
    ) -> HistoryRecord:
        """Record the start of a run."""
        masked = release_json(given, to="program", patterns=True)
        record = HistoryRecord(
            id=id,
            kind=kind,
            name=name,
            given=masked,
            is_masked=masked != given,
            generation=generation,
            started=time.time(),
        )
        self._records[id] = record
        told = {
            "kind": kind,
            "name": name,
            "given": masked,
            "masked": record.is_masked,
            "generation": generation,
        }
        self._write(id, ActionEvent(kind=_BEGUN, action=told, hidden=True))
        return record

    def end(self, id: str, status: str, duration: float | None, result: ResultView) -> None:
        """Record that a run has ended or waits for approvals."""
        record = self._records.get(id)
        if record is None:
            return
        record = replace(record, status=status, duration=duration, summary=summary_of(result))
        self._records[id] = record
        told = {"status": status, "duration": duration, "summary": record.summary}
        self._write(id, ObservationEvent(kind=_ENDED, observation=told, hidden=True))

    def resume(self, id: str) -> None:
        """Record that a run continues."""
        self._records[id] = replace(self._records[id], status="running", duration=None)

    async def events(
        self, id: str, after: int = -1, *, limit: int | None = None, results: bool = False
    ) -> list[Event]:
        """Read the events of a run.

        Args:
            id: The run.
            after: Only events with greater ids.
            limit: How many at most.
            results: Only events with results.
        """
        log = self.store.session(id)
        try:
            return await log.read(after, limit=limit, where=_RESULTS if results else None)
        finally:
            log.close()

    async def forget(self, ids: Iterable[str]) -> None:
        """Delete runs and all their events."""
        pending: list[PendingFuture[None]] = []
        for run_id in ids:
            if self._records.pop(run_id, None) is not None:
                pending += [self.store.delete(run_id), self.store.delete(_ABOUT + run_id)]
        for one in pending:
            await one

    async def superfluous(self) -> list[str]:
        """Return the runs beyond the limits, oldest first."""
        sizes = {
            info.sid: info.size
            for info in await self.store.sessions()
            if _ID.fullmatch(info.sid.removeprefix(_ABOUT))
        }
        over = len(self._records) - self._keep
        size = sum(sizes.values())
        found: list[str] = []
        for record in list(self._records.values())[:-1]:
            if over <= 0 and size <= self._keep_bytes:
                break
            if record.status != "running":
                found.append(record.id)
                over -= 1
                size -= sizes.get(record.id, 0) + sizes.get(_ABOUT + record.id, 0)
        return found

    def _write(self, id: str, event: Event) -> None:
        log = self.store.session(_ABOUT + id)
        stamped = event.stamped(Origin(source=EventSource.ENVIRONMENT), 0)
        self._watch(log.append([stamped]))

    def _watch(self, pending: PendingFuture[Any]) -> None:
        def look(done: PendingFuture[Any]) -> None:
            if (error := done.error()) is not None:
                logger.warning("The history cannot be written: %s", error)

        pending.add_done_callback(look)


def new_id() -> str:
    """Return a new id for a run."""
    return f"play_{uuid.uuid4().hex}"


def _record(id: str, events: Sequence[Event]) -> HistoryRecord | None:
    """Return the record of a run from its summary log; a run that was cut off is lost."""
    record: HistoryRecord | None = None
    for event in events:
        if isinstance(event, ActionEvent) and event.kind == _BEGUN:
            told = event.action
            record = HistoryRecord(
                id=id,
                kind="agent" if told.get("kind") == "agent" else "tool",
                name=str(told.get("name")),
                given=told.get("given"),
                is_masked=bool(told.get("masked")),
                generation=int(told.get("generation") or 0),
                started=event.timestamp or 0.0,
            )
        elif record is not None and isinstance(event, ObservationEvent) and event.kind == _ENDED:
            told = event.observation
            record = replace(
                record,
                status=str(told.get("status")),
                duration=told.get("duration"),
                summary=str(told.get("summary") or ""),
            )
    return record
