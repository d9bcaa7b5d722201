"""The history of the playground: a view of the runs in a store."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import EventStoreError
from agents_tools.events.kinds import MessageEvent
from agents_tools.persistence.filter import EventFilter
from agents_tools.playground.attachments import blocks_of, files_of, text_of
from agents_tools.playground.results import result_of, summary_of
from agents_tools.text.forms import MASK
from agents_tools.text.json_limits import parse_object
from agents_tools.text.output import release_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.content.outputs import ContentBlock
    from agents_tools.events.base import Event
    from agents_tools.playground.attachments import File
    from agents_tools.server.run_manager import ActiveRun, RunManager

__all__ = ["HistoryRecord", "RunHistory", "facts_of_run", "new_id"]

_KEY = "playground"
"""The name of the data that the playground stores with a run."""
_RESULTS = EventFilter(types=("run_item_stream_event", "run_finished_event"))
_LAST_EVENTS = 4
"""The number of events at the end of a run that contain its result."""
_INPUTS = EventFilter(types=("message_event", "run_item_stream_event"))
_FIRST_EVENTS = 20
"""The number of events at the start of a run that contain its input."""
_ENDS = frozenset({"ok", "error", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """The summary of a run, without its events.

    Attributes:
        id: The id of the run.
        kind: Whether a tool or an agent ran.
        name: The name of the tool or agent.
        given: The arguments of the tool, or the text for the agent; secrets are masked.
        files: The facts about the files for the agent.
        is_masked: Whether secrets were masked.
        session: The id of the conversation that the run is part of.
        changes: The attributes of the agent that were replaced for the run, by their names.
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
    files: Sequence[File] = ()
    session: str | None = None
    changes: Mapping[str, str] = field(default_factory=dict[str, str])

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
            "files": list(self.files),
            "summary": self.summary,
            "generation": self.generation,
            "session": self.session,
            "changes": dict(self.changes),
        }


class RunHistory:
    """The runs of a store, as the playground shows them.

    Args:
        runs: The runs.
        keep: The number of runs to keep; `None` for a store of another program, where nothing is
            deleted.
        keep_bytes: The largest total size in bytes. The newest run is always kept.
    """

    def __init__(
        self, runs: RunManager, *, keep: int | None = 500, keep_bytes: int = 256 << 20
    ) -> None:
        self._runs = runs
        self._keep = keep
        self._keep_bytes = keep_bytes
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._summaries: dict[str, tuple[int, str, str]] = {}

    async def page(self, limit: int, before: str | None) -> tuple[list[HistoryRecord], bool]:
        """Return runs, newest first, and whether there are older ones.

        Args:
            limit: The largest number of runs.
            before: Only runs that are older than this one.
        """
        runs = (await self._runs.list(limit + 1, before=before))[::-1]
        return [await self.record(run) for run in runs[:limit]], len(runs) > limit

    async def session(self, id: str, limit: int) -> tuple[list[HistoryRecord], bool]:
        """Return the newest runs of a conversation, oldest first, and whether there are older ones.

        Args:
            id: The id of the session.
            limit: The largest number of runs.
        """
        runs = await self._runs.list(limit + 1, thread_id=id)
        return [await self.record(run) for run in runs[-limit:]], len(runs) > limit

    async def get(self, id: str) -> HistoryRecord | None:
        """Return a run; `None` if there is none with this id."""
        run = await self._runs.find(id)
        return None if run is None else await self.record(run)

    async def record(self, run: ActiveRun) -> HistoryRecord:
        """Return the record of a run."""
        facts: Mapping[str, Any] = run.meta.get(_KEY) or await self._facts_of_other(run)
        status, summary = await self._result(run)
        has_ended = run.status in _ENDS and run.ended is not None
        return HistoryRecord(
            id=run.id,
            kind=run.kind,
            name=run.agent_name,
            given=facts.get("given", {} if run.kind == "tool" else ""),
            is_masked=bool(facts.get("masked", True)),
            generation=int(facts.get("generation") or 0),
            started=run.started,
            status=status,
            duration=round((run.ended or 0.0) - run.started, 6) if has_ended else None,
            summary=summary,
            session=run.thread_id,
            changes=facts.get("changes") or {},
            files=facts.get("files") or (),
        )

    async def _facts_of_other(self, run: ActiveRun) -> Mapping[str, Any]:
        """Return the input of a run that another program has started, from its log."""
        known = self._facts.get(run.id)
        if known is not None:
            return known
        try:
            events = await self._inputs(run.id)
        except EventStoreError:
            return {}
        given: Any = {} if run.kind == "tool" else ""
        files: list[File] = []
        if run.kind == "agent":
            content = _content_of(events)
            given, files = text_of(content), files_of(content)
        else:
            for event in events:
                if getattr(event, "name", "") == "tool_called":
                    given = parse_object(cast("Any", event).item["arguments"]) or {}
                    break
        facts = {"given": given, "masked": MASK in str(given), "files": files}
        if events:
            self._facts[run.id] = facts
        return facts

    async def _inputs(self, id: str) -> list[Event]:
        log = self._runs.store.log(id)
        try:
            return await log.read(limit=_FIRST_EVENTS, where=_INPUTS)
        finally:
            log.close()

    async def files(self, id: str) -> list[ContentBlock]:
        """Return the files of the message that started a run, with their data.

        Args:
            id: The id of the run.
        """
        return blocks_of(_content_of(await self._inputs(id)))

    async def _result(self, run: ActiveRun) -> tuple[str, str]:
        """Return the status of a run and the beginning of its result."""
        if run.status not in _ENDS:
            return run.status, ""
        known = self._summaries.get(run.id)
        if known is None or known[0] != run.last_id:
            last = run.last_id
            result = result_of(run.kind, await self.events(run.id, limit=_LAST_EVENTS))
            failed = run.status == "ok" and run.kind == "tool" and result.call_status != "ok"
            known = last, "error" if failed else run.status, summary_of(result)
            self._summaries[run.id] = known
        return known[1:]

    async def events(self, id: str, *, limit: int | None = None) -> list[Event]:
        """Read the events of a run with its results, in order.

        Args:
            id: The id of the run.
            limit: The number of events at the end of the run; all by default.
        """
        log = self._runs.store.log(id)
        try:
            events = await log.read(reverse=True, limit=limit, where=_RESULTS)
        finally:
            log.close()
        return events[::-1]

    async def surplus(self) -> list[str]:
        """Return the ids of the oldest runs that have ended and exceed the limits."""
        if self._keep is None:
            return []
        infos = await self._runs.store.runs()
        size = sum(info.size for info in infos)
        count = len(infos)
        surplus: list[str] = []
        for info in infos[:-1]:
            if count <= self._keep and size <= self._keep_bytes:
                break
            if info.status in _ENDS:
                surplus.append(info.run_id)
                count, size = count - 1, size - info.size
        return surplus

    async def forget(self, ids: Iterable[str]) -> None:
        """Delete runs that are not running, with all their events."""
        for run_id in ids:
            run = await self._runs.find(run_id)
            if run is not None:
                if run.status in {"interrupted", "orphaned"}:
                    await run.cancel("The run was deleted.")
                await self._runs.delete(run)
            self._facts.pop(run_id, None)
            self._summaries.pop(run_id, None)


def new_id() -> str:
    """Return a new id for a run."""
    return f"play_{uuid.uuid4().hex}"


def _content_of(events: Iterable[Event]) -> object:
    """Return the content of the first message of a run."""
    messages = (one for one in events if isinstance(one, MessageEvent) and not one.path)
    return next((message.content for message in messages), "")


def facts_of_run(
    given: Any,
    generation: int,
    changes: Mapping[str, str] | None = None,
    files: Sequence[File] = (),
) -> tuple[dict[str, Any], bool]:
    """Return the data that the playground stores with a run, and whether it has masked secrets.

    Args:
        given: The arguments of the tool, or the input of the agent.
        generation: The generation of the target.
        changes: The attributes of the agent that are replaced for the run.
        files: The facts about the files of the input.
    """
    masked = release_json(given, to="program", patterns=True)
    is_masked = masked != given
    facts = {"given": masked, "masked": is_masked, "generation": generation}
    if changes:
        facts["changes"] = release_json(dict(changes), to="program", patterns=True)
    if files:
        facts["files"] = list(files)
    return {_KEY: facts}, is_masked
