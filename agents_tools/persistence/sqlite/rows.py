"""Events as rows: their JSON, the indexed columns, and large texts stored separately.

A row contains the whole wire form of its event as `body`, so each row can be read alone. Texts of
more than 64 KiB are stored once, under their hash. Their places in the body are in a separate
column, so no content of a payload can be mistaken for a reference.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from pydantic_core import from_json, to_json

from agents_tools.errors import UserValueError
from agents_tools.persistence.unknown_event import event_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.base import Event

__all__ = ["COLUMNS", "LARGE", "Blob", "EventRow", "drafted", "event_of_row"]

LARGE: Final = 1 << 16
"""Texts with more bytes than this are stored separately."""

_PREVIEW: Final = 200
_PAYLOAD_STARTS: Final = 10
"""How many fields of the wire form come before the payload."""

Blob: TypeAlias = tuple[bytes, bytes]
"""The hash of a large text, and the text."""

COLUMNS: Final = (
    *("log", "id", "position", "time", "type", "source", "cause", "call", "tool", "run"),
    *("hidden", "size", "body", "large"),
)
"""The columns of an event, in the order in which they are written."""


class EventRow(NamedTuple):
    """An event that is ready to be stored, without its place in the log."""

    id: int
    columns: tuple[Any, ...]
    """The columns between `position` and `size`."""
    size: int
    rest: str
    """The body after the id."""
    large: str | None
    blobs: tuple[Blob, ...]

    def row(self, log: int, id: int, position: int) -> tuple[Any, ...]:
        """Return the row of the event at this place."""
        _, columns, size, rest, large, _ = self
        return (log, id, position, *columns, size, f'{{"id":{id},{rest}', large)


def drafted(event: Event) -> EventRow:
    """Convert an event to a row.

    Raises:
        UserValueError: It has no JSON form.
    """
    wire = event.to_dict()
    del wire["id"]
    columns = (
        event.timestamp,
        event.type,
        wire.get("source"),
        event.cause,
        event.tool_call_id,
        event.tool_name,
        _text_or_none(wire.get("run_id")),
        1 if getattr(event, "hidden", False) is True else 0,
    )
    try:
        body = to_json(wire)
    except ValueError as error:  # a lone surrogate in its envelope
        raise UserValueError(f"{event.type} has no JSON form: {error}.") from None
    size = len(body)
    if size <= LARGE:
        return EventRow(event.id, columns, size, body[1:].decode(), None, ())
    body, large, blobs = _without_large(wire)
    return EventRow(event.id, columns, size, body[1:].decode(), large, blobs)


def event_of_row(body: str, large: str | None, fetch: Callable[[bytes], bytes]) -> Event:
    """Return the event of a row.

    Args:
        body: Its wire form.
        large: The places of large texts in it.
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
    places: list[list[Any]] = []
    blobs: dict[bytes, bytes] = {}

    def keep(content: bytes, kind: str, path: tuple[str | int, ...]) -> None:
        digest = sha256(content).digest()
        blobs[digest] = content
        places.append([digest.hex(), kind, *path])

    def walk(value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, str):
            if len(value) <= LARGE // 4 or len(content := value.encode()) <= LARGE:
                return value
            keep(content, "text", path)
            return value[:_PREVIEW]
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {key: walk(member, (*path, key)) for key, member in members.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [walk(item, (*path, n)) for n, item in enumerate(items)]
        return value

    kept = cast("dict[str, Any]", walk(wire, ()))
    body = to_json(kept)
    if len(body) > LARGE:
        for name in list(kept)[_PAYLOAD_STARTS - 1 :]:
            if len(content := to_json(kept[name])) > LARGE:
                keep(content, "json", (name,))
                kept[name] = None
        body = to_json(kept)
    return body, json.dumps(places) if places else None, tuple(blobs.items())


def _restore(wire: dict[str, Any], large: str, fetch: Callable[[bytes], bytes]) -> None:
    """Insert large texts; whole fields first, because texts can belong inside them."""
    places = cast("list[list[Any]]", json.loads(large))
    for digest, kind, *path in sorted(places, key=lambda place: place[1]):
        content = fetch(bytes.fromhex(digest))
        inside: Any = wire
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = from_json(content) if kind == "json" else content.decode()


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
