"""Convert events to rows: their JSON, the columns for queries, and separately stored large texts.

The `body` of a row is the wire form of its event, so each row can be read alone. A text of more
than 64 KiB is stored once, under its hash. The column `large` holds the references to such texts.
They are never in the body, so that no payload can be mistaken for a reference.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast, get_args

from pydantic_core import from_json, to_json

from agents_tools.events.kinds import RunFinishedEvent, RunRecordEvent
from agents_tools.persistence.marks import MARK, MARK_BYTES, hide_secrets, show_secrets
from agents_tools.persistence.protocol import RunStatus
from agents_tools.persistence.unknown_event import event_of
from agents_tools.text.secrets import has_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.base import Event

__all__ = [
    "COLUMNS",
    "LARGE",
    "Blob",
    "DisplayRow",
    "EventRow",
    "RunSummary",
    "column_text",
    "event_of_row",
    "event_to_row",
    "facts_of",
]

LARGE: Final = 1 << 16
"""Texts with more bytes than this are stored separately."""

_PREVIEW: Final = 200
_ENVELOPE: Final = 256
"""The estimated size of an event without its text."""
_PAYLOAD_STARTS: Final = 10
"""The number of fields of the wire form before the payload."""

Blob: TypeAlias = tuple[bytes, bytes]
"""The hash of a large text, and the text."""

COLUMNS: Final = (
    *("log", "id", "time", "type", "source", "cause", "call", "tool", "run", "hidden", "display"),
    *("root", "size", "body", "large"),
)
"""The columns of an event, in the order in which they are written."""


class RunSummary(NamedTuple):
    """The columns of a log that belongs to a run."""

    session: str | None
    agent: str
    kind: str | None
    owner: str | None
    facts: str | None
    """JSON of the application."""


class EventRow(NamedTuple):
    """A row without the values that depend on the log: the key of the log and the id."""

    id: int
    columns: tuple[Any, ...]
    """The values of the columns between `id` and `size`."""
    size: int
    body_tail: str
    """The part of the body after the id."""
    large: str | None
    blobs: tuple[Blob, ...]
    created: RunSummary | None = None
    """The run that the event begins."""
    status: RunStatus | None = None
    """The status with which the event ends its run."""

    @property
    def is_display(self) -> bool:
        """Whether the event is deleted when its run ends."""
        return bool(self.columns[-2])

    @property
    def is_conversation(self) -> bool:
        """Whether the event is part of the conversation of its log."""
        return bool(self.columns[-1])

    @property
    def time(self) -> float:
        """The time of the event; 0 if it has none."""
        return float(self.columns[0])

    def body(self, id: int) -> str:
        """Return the wire form with this id."""
        return f'{{"id":{id},{self.body_tail}'

    def to_values(self, log: int, id: int) -> tuple[Any, ...]:
        """Return the values of `COLUMNS` for this log and id."""
        return (log, id, *self.columns, self.size, self.body(id), self.large)


class DisplayRow:
    """The row of a display event in memory, which is not converted to JSON.

    It has the attributes of an `EventRow` that a storage in memory uses. The size is an estimate.

    Args:
        event: The event, with its id.
    """

    __slots__ = ("event", "id", "size", "time")

    is_display = True
    is_conversation = False
    created = None
    status = None

    def __init__(self, event: Event) -> None:
        self.event = event
        self.id = event.id
        self.time = event.timestamp
        content: Any = getattr(event, "data", None)
        if isinstance(content, dict):
            content = cast("dict[str, Any]", content).get("delta")
        self.size = _ENVELOPE + (len(content) if isinstance(content, str | bytes) else 0)


def event_to_row(event: Event) -> EventRow:
    """Convert an event to a row.

    Raises:
        UserValueError: The event has no JSON form.
    """
    wire = event.to_dict()
    del wire["id"]
    columns = (
        event.timestamp,
        event.type,
        wire.get("source"),
        event.cause,
        column_text(wire.get("tool_call_id")),
        column_text(wire.get("tool_name")),
        column_text(wire.get("run_id")),
        1 if getattr(event, "hidden", False) is True else 0,
        1 if event.droppable else 0,
        1 if event.durable and not event.path else 0,
    )
    if has_secrets():
        wire = hide_secrets(wire)
    body = to_json(wire)
    if MARK_BYTES in body and not has_secrets():
        wire = hide_secrets(wire)  # text that looks like a mark
        body = to_json(wire)
    created, status, size = _created(event), _end_status(event), len(body)
    large: str | None = None
    blobs: tuple[Blob, ...] = ()
    if size > LARGE:
        body, large, blobs = _without_large(wire)
    return EventRow(event.id, columns, size, body[1:].decode(), large, blobs, created, status)


def _created(event: Event) -> RunSummary | None:
    """Return the summary of the run that an event begins; runs inside a call have none."""
    if not isinstance(event, RunRecordEvent) or event.name != "run_created" or event.path:
        return None
    data = event.data
    return RunSummary(
        column_text(data.get("session")),
        column_text(data.get("agent")) or "",
        column_text(data.get("kind")),
        column_text(data.get("owner")),
        json.dumps(hide_secrets(data["facts"])) if data.get("facts") else None,
    )


def facts_of(text: str | None) -> dict[str, Any]:
    """Return the stored data of the application, without marks of secrets."""
    if text is None:
        return {}
    return cast("dict[str, Any]", show_secrets(from_json(text), restore=False))


def _end_status(event: Event) -> RunStatus | None:
    """Return the status with which an event ends its run."""
    if not isinstance(event, RunFinishedEvent) or event.path:
        return None
    return cast("RunStatus", event.status) if event.status in get_args(RunStatus) else "error"


def event_of_row(
    body: str, large: str | None, fetch: Callable[[bytes], bytes], *, restore: bool = False
) -> Event:
    """Return the event of a row.

    Args:
        body: The wire form.
        large: The references to large texts in it, as JSON.
        fetch: Returns a large text by its hash.
        restore: Whether marks become the registered secrets. By default they become `***`.

    Raises:
        ValueError: The body is not a JSON object.
    """
    value = from_json(body)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as for other bad JSON
    wire = cast("dict[str, Any]", value)
    if large is not None:
        _restore(wire, large, fetch)
    if MARK in body or large is not None:
        wire = show_secrets(wire, restore=restore)
    return event_of(wire)


# --- large texts ----------------------------------------------------------------------------------


def _without_large(wire: dict[str, Any]) -> tuple[bytes, str | None, tuple[Blob, ...]]:
    """Move large texts out of a wire form, and then large fields if that is not enough."""
    references: list[list[Any]] = []
    blobs: dict[bytes, bytes] = {}

    def store(content: bytes, kind: str, path: tuple[str | int, ...]) -> None:
        digest = sha256(content).digest()
        blobs[digest] = content
        references.append([digest.hex(), kind, *path])

    def walk(value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, str):
            if len(value) <= LARGE // 4 or len(content := value.encode()) <= LARGE:
                return value
            store(content, "text", path)
            return value[:_PREVIEW]
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {key: walk(member, (*path, key)) for key, member in members.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [walk(item, (*path, n)) for n, item in enumerate(items)]
        return value

    small = cast("dict[str, Any]", walk(wire, ()))
    body = to_json(small)
    if len(body) > LARGE:
        for name in list(small)[_PAYLOAD_STARTS - 1 :]:
            if len(content := to_json(small[name])) > LARGE:
                store(content, "json", (name,))
                small[name] = None
        body = to_json(small)
    return body, json.dumps(references) if references else None, tuple(blobs.items())


def _restore(wire: dict[str, Any], large: str, fetch: Callable[[bytes], bytes]) -> None:
    """Insert large texts; whole fields first, because texts can belong inside them."""
    references = cast("list[list[Any]]", json.loads(large))
    for digest, kind, *path in sorted(references, key=lambda reference: reference[1]):
        content = fetch(bytes.fromhex(digest))
        parent: Any = wire
        for step in path[:-1]:
            parent = parent[step]
        parent[path[-1]] = from_json(content) if kind == "json" else content.decode()


def column_text(value: object) -> str | None:
    """Return a text as it is in a column for queries. PostgreSQL cannot store NUL characters."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else None
