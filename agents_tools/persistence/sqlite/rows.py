"""Convert events to rows: their JSON, the columns for queries, and separately stored large texts.

The `body` of a row is the wire form of its event, so each row can be read alone. A text of more
than 64 KiB is stored once, under its hash. The column `large` holds the references to such texts.
They are never in the body, so that no payload can be mistaken for a reference.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from pydantic_core import from_json, to_json

from agents_tools.persistence.unknown_event import event_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.base import Event

__all__ = ["COLUMNS", "LARGE", "Blob", "EventRow", "event_of_row", "event_to_row"]

LARGE: Final = 1 << 16
"""Texts with more bytes than this are stored separately."""

_PREVIEW: Final = 200
_PAYLOAD_STARTS: Final = 10
"""The number of fields of the wire form before the payload."""

Blob: TypeAlias = tuple[bytes, bytes]
"""The hash of a large text, and the text."""

COLUMNS: Final = (
    *("log", "id", "position", "time", "type", "source", "cause", "call", "tool", "run"),
    *("hidden", "size", "body", "large"),
)
"""The columns of an event, in the order in which they are written."""


class EventRow(NamedTuple):
    """A row without the values that depend on the log: the key, the id and the position."""

    id: int
    columns: tuple[Any, ...]
    """The values of the columns between `position` and `size`."""
    size: int
    body_tail: str
    """The part of the body after the id."""
    large: str | None
    blobs: tuple[Blob, ...]

    def to_values(self, log: int, id: int, position: int) -> tuple[Any, ...]:
        """Return the values of `COLUMNS` for this id and position."""
        _, columns, size, body_tail, large, _ = self
        return (log, id, position, *columns, size, f'{{"id":{id},{body_tail}', large)


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
        wire.get("tool_call_id"),
        wire.get("tool_name"),
        _text_or_none(wire.get("run_id")),
        1 if getattr(event, "hidden", False) is True else 0,
    )
    body = to_json(wire)
    size = len(body)
    if size <= LARGE:
        return EventRow(event.id, columns, size, body[1:].decode(), None, ())
    body, large, blobs = _without_large(wire)
    return EventRow(event.id, columns, size, body[1:].decode(), large, blobs)


def event_of_row(body: str, large: str | None, fetch: Callable[[bytes], bytes]) -> Event:
    """Return the event of a row.

    Args:
        body: The wire form.
        large: The references to large texts in it, as JSON.
        fetch: Returns a large text by its hash.

    Raises:
        ValueError: The body is not a JSON object.
    """
    wire = from_json(body)
    if not isinstance(wire, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as for other bad JSON
    if large is not None:
        _restore(cast("dict[str, Any]", wire), large, fetch)
    return event_of(cast("dict[str, Any]", wire))


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


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
