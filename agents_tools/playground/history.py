"""The runs that were made, in a store of events, so that they outlive the server."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools._secrets import mask_json
from agents_tools._text import safe_text, shorten
from agents_tools.events import (
    ActionEvent,
    EventSource,
    ObservationEvent,
    Origin,
    RunFinishedEvent,
    ToolStreamStartEvent,
)
from agents_tools.store import EventFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.events import Event
    from agents_tools.store import EventStore, Pending

__all__ = ["History", "Record", "Result", "new_id", "plain_blocks", "result_of"]

logger = logging.getLogger("agents_tools.playground")

_BEGUN, _ENDED = "playground.begun", "playground.ended"
_ABOUT = "about."
"""What the log about a run is called: this and the id of the run, whose own log has its events."""
_ID = re.compile(r"play_[0-9a-f]{32}")
_LONGEST_SUMMARY = 120
_LONGEST_VALUE = 1 << 20
"""Bytes."""
_RESULTS = EventFilter(
    types=("run_item_stream_event", "run_finished_event", "tool_stream_start_event")
)
_CHANGED = "[A person changed the arguments before this ran, to: "
"""What the model reads before the result of such a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of a run without its events.

    Attributes:
        id: Its id.
        kind: Whether a tool or an agent ran.
        name: Which one.
        given: The arguments of the tool, or the input of the agent; secrets are masked.
        is_masked: Whether there were any.
        generation: Which generation of the target.
        started: When it began, in seconds since 1970.
        status: Where it is.
        duration: How long it took, in seconds; `None` while it has not ended.
        summary: The beginning of its result.
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
        """Give it as JSON."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a run, as its events say.

    Attributes:
        blocks: What the model got, as content blocks.
        is_text: Whether that was one text.
        value: The result as JSON.
        error: Why it failed.
        usage: What it used.
        call_status: How the call ended, for a run of a tool.
        arguments: What it was called with, where a person has changed that.
    """

    blocks: Sequence[Mapping[str, Any]] = field(default_factory=list[dict[str, Any]])
    is_text: bool = True
    value: Any = None
    error: str | None = None
    usage: Mapping[str, Any] | None = None
    call_status: str = "ok"
    arguments: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON; of a value that is too long for a page, nothing."""
        return {
            "model": [dict(block) for block in self.blocks],
            "value": self.value if _is_short(self.value) else None,
            "error": self.error,
            "usage": None if self.usage is None else dict(self.usage),
        }


def plain_blocks(result: Result) -> list[dict[str, Any]]:
    """Give what the tool itself gave, without what a person's changes add to it."""
    first, *rest = [dict(block) for block in result.blocks] or [{}]
    if result.arguments is None:
        return [first, *rest] if result.blocks else []
    text = str(first["text"])
    try:
        _, end = json.JSONDecoder().raw_decode(text, len(_CHANGED))
    except ValueError:  # shortened
        return [first, *rest]
    if not result.is_text:
        return rest
    return [{**first, "text": text[end:].removeprefix("]\n")}, *rest]


class History:
    """The runs that were made, the newest ones of which are kept.

    A run has two logs in the store: its events, and a short one about it. What another program
    keeps in the same store is left alone.

    Args:
        store: Where they are kept.
        keep: How many.
        keep_bytes: How much they may take together; the newest is kept whatever it takes.
    """

    def __init__(self, store: EventStore, *, keep: int = 500, keep_bytes: int = 256 << 20) -> None:
        self.store = store
        self._keep = keep
        self._keep_bytes = keep_bytes
        self._records: dict[str, Record] = {}

    async def open(self) -> None:
        """Read what earlier servers have left."""
        infos = await self.store.sessions()
        known = [info.sid for info in infos if info.sid.startswith(_ABOUT)]
        found: list[Record] = []
        for sid in known:
            log = self.store.session(sid)
            record = _record(sid.removeprefix(_ABOUT), await log.read())
            log.close()
            if record is not None:
                found.append(record)
        for record in sorted(found, key=lambda record: record.started):
            self._records.setdefault(record.id, record)
        left = {info.sid for info in infos if _ID.fullmatch(info.sid)} - set(self._records)
        for sid in left:  # the server ended before it had noted what ran
            self._watch(self.store.delete(sid))

    def page(self, limit: int, before: str | None) -> tuple[list[Record], bool]:
        """Give runs, newest first, and whether there are older ones.

        Args:
            limit: How many at most.
            before: Only those that are older than this one.
        """
        newest = list(reversed(self._records.values()))
        if before is not None:
            ids = [record.id for record in newest]
            newest = newest[ids.index(before) + 1 :] if before in ids else []
        return newest[:limit], len(newest) > limit

    def get(self, id: str) -> Record | None:
        """Give a run."""
        return self._records.get(id)

    def begin(
        self, id: str, kind: Literal["tool", "agent"], name: str, given: Any, generation: int
    ) -> Record:
        """Note that a run begins."""
        masked = mask_json(given)
        record = Record(
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

    def end(self, id: str, status: str, duration: float | None, result: Result) -> None:
        """Note that a run has ended, or waits for approvals."""
        record = self._records.get(id)
        if record is None:
            return
        record = replace(record, status=status, duration=duration, summary=_summary(result))
        self._records[id] = record
        told = {"status": status, "duration": duration, "summary": record.summary}
        self._write(id, ObservationEvent(kind=_ENDED, observation=told, hidden=True))

    def resume(self, id: str) -> None:
        """Note that a run goes on."""
        self._records[id] = replace(self._records[id], status="running", duration=None)

    async def events(
        self, id: str, after: int = -1, *, limit: int | None = None, results: bool = False
    ) -> list[Event]:
        """Read the events of a run.

        Args:
            id: The run.
            after: Only events with greater ids.
            limit: How many at most.
            results: Only those that tell results.
        """
        log = self.store.session(id)
        try:
            return await log.read(after, limit=limit, where=_RESULTS if results else None)
        finally:
            log.close()

    async def forget(self, ids: Iterable[str]) -> None:
        """Delete runs, with all their events."""
        pending: list[Pending[None]] = []
        for run_id in ids:
            if self._records.pop(run_id, None) is not None:
                pending += [self.store.delete(run_id), self.store.delete(_ABOUT + run_id)]
        for one in pending:
            await one

    async def superfluous(self) -> list[str]:
        """Give the runs that are more than are kept, oldest first."""
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

    def _watch(self, pending: Pending[Any]) -> None:
        def look(done: Pending[Any]) -> None:
            if (error := done.error()) is not None:
                logger.warning("The history cannot be written: %s", error)

        pending.add_done_callback(look)


def new_id() -> str:
    """Give an id for a run."""
    return f"play_{uuid.uuid4().hex}"


def result_of(kind: Literal["tool", "agent"], events: Iterable[Event]) -> Result:
    """Give what came of a run.

    Args:
        kind: Whether a tool or an agent ran.
        events: Its events, those at least that tell results.
    """
    result = Result()
    called: Mapping[str, Any] | None = None
    for event in events:
        if isinstance(event, ToolStreamStartEvent) and len(event.path) == 1:
            called = event.input_args
        if event.path:
            continue
        if isinstance(event, RunFinishedEvent):
            result = replace(
                result, value=event.output, error=event.error, usage=cast("Any", event.usage)
            )
            if kind == "agent" and event.output is not None:
                text = event.output
                blocks = [{"type": "text", "text": text if isinstance(text, str) else str(text)}]
                result = replace(result, blocks=blocks)
        elif kind == "tool" and getattr(event, "name", "") == "tool_output":
            result = _with_output(result, cast("Any", event).item)
    if result.blocks and str(result.blocks[0].get("text")).startswith(_CHANGED):
        result = replace(result, arguments=called)
    return result


def _with_output(result: Result, item: Mapping[str, Any]) -> Result:
    output: Any = item.get("output")
    is_text = isinstance(output, str)
    blocks = [{"type": "text", "text": output}] if is_text else list(output or ())
    status = str(item.get("status") or "ok")
    return replace(result, blocks=blocks, is_text=is_text, call_status=status)


def _is_short(value: Any) -> bool:
    from pydantic_core import to_json

    return len(to_json(value)) <= _LONGEST_VALUE


def _summary(result: Result) -> str:
    texts = [str(block["text"]) for block in result.blocks if "text" in block]
    text = " ".join(texts) if texts else (result.error or "")
    if not text and result.blocks:
        text = ", ".join(str(block.get("type")) for block in result.blocks)
    return safe_text(shorten(" ".join(text.split()), _LONGEST_SUMMARY))


def _record(id: str, events: Sequence[Event]) -> Record | None:
    """Make the record of what the log about a run says; one that was cut off is lost."""
    record: Record | None = None
    for event in events:
        if isinstance(event, ActionEvent) and event.kind == _BEGUN:
            told = event.action
            record = Record(
                id=id,
                kind="agent" if told.get("kind") == "agent" else "tool",
                name=str(told.get("name")),
                given=told.get("given"),
                is_masked=bool(told.get("masked")),
                generation=int(told.get("generation") or 0),
                started=event.timestamp or 0.0,
                status="lost",
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
