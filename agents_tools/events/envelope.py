"""The envelope of events: where an event comes from, when, and its wire form."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.events.field_types import (
    TEXT,
    FieldType,
    field_error,
    is_integer,
    one_of,
    optional,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


__all__ = [
    "ENVELOPE_SCHEMA",
    "INVALID_ID",
    "ORIGIN_RULE",
    "WIRE_VERSION",
    "EventSource",
    "Origin",
    "decode_envelope",
    "decode_field",
    "encode_time",
    "micros_of",
]

INVALID_ID: Final = -1
"""The `id` of an event that is not stored in a stream."""

WIRE_VERSION: Final = 1
"""The version of the wire form that this release reads and writes."""


class EventSource(StrEnum):
    """The kind of participant that an event comes from."""

    AGENT = "agent"
    USER = "user"
    ENVIRONMENT = "environment"


class Origin:
    """The source of events. It is created once per call and shared by all events of the call.

    Args:
        tool_name: The name of the tool, if a tool emits the events.
        tool_call_id: The id of the tool call.
        path: The ids of the calls that contain the events, outermost first. An empty path means
            that the events belong to the conversation itself.
        source: The kind of participant that emits the events.
        sinks: The receivers that have already received events of this origin. They are neither
            compared nor serialized.
    """

    __slots__ = ("path", "sinks", "source", "tool_call_id", "tool_name")

    def __init__(
        self,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        path: tuple[str, ...] = (),
        source: EventSource = EventSource.AGENT,
        sinks: tuple[Callable[[Any], None], ...] = (),
    ) -> None:
        self.tool_name: Final = tool_name
        self.tool_call_id: Final = tool_call_id
        self.path: Final = path
        self.source: Final = source
        self.sinks: Final = sinks

    def __eq__(self, other: object) -> bool:
        """Compare by value."""
        if not isinstance(other, Origin):
            return NotImplemented
        return self is other or _origin_values(self) == _origin_values(other)

    def __hash__(self) -> int:
        """Hash by value."""
        return hash(_origin_values(self))

    def __repr__(self) -> str:
        """Return the fields, without the sinks."""
        values = (repr(value) for value in _origin_values(self)[:3])
        return f"Origin({', '.join(values)}, {self.source.value})"


_origin_values: Callable[[Origin], tuple[Any, ...]] = attrgetter(
    "tool_name",
    "tool_call_id",
    "path",
    "source",
)


_TEXT_OR_NULL: Final = {"type": ["string", "null"], "default": None}
_NUMBER_IN_STREAM: Final = {"type": "integer", "minimum": -1, "maximum": 2**63 - 1}
ENVELOPE_SCHEMA: Final[dict[str, Any]] = {
    "id": {**_NUMBER_IN_STREAM, "default": INVALID_ID},
    "seq": {**_NUMBER_IN_STREAM, "default": -1},
    "timestamp": {**_TEXT_OR_NULL, "format": "date-time"},
    "source": {"enum": [*(source.value for source in EventSource), None], "default": None},
    "cause": {**_NUMBER_IN_STREAM, "type": ["integer", "null"], "default": None},
    "path": {"type": "array", "items": {"type": "string"}, "default": []},
    "tool_name": _TEXT_OR_NULL,
    "tool_call_id": _TEXT_OR_NULL,
}
ORIGIN_RULE: Final[list[dict[str, Any]]] = [
    {"required": ["source"], "properties": {"source": {"type": "string"}}},
    {
        "properties": {
            "source": {"type": "null"},
            "path": {"maxItems": 0},
            "tool_name": {"type": "null"},
            "tool_call_id": {"type": "null"},
        },
    },
]
"""An event with a path, tool or call also has a source; an event that is not stamped has none."""


def decode_field(field_type: FieldType, value: object, at: str, member: str = "") -> Any:
    """Return the value of a field, decoded from its wire form and validated."""
    decoded = field_type.decode(value, at + member) if field_type.decode else value
    if not field_type.accepts(decoded):
        raise field_error(at + member, field_type.expected, value)
    return decoded


def decode_envelope(event: Any, data: Mapping[str, Any]) -> None:
    """Set the envelope of an event from its wire form."""
    kind = event.type
    event.id = decode_field(_STREAM_NUMBER, data.get("id", INVALID_ID), kind, ".id")
    event.seq = decode_field(_STREAM_NUMBER, data.get("seq", -1), kind, ".seq")
    cause = data.get("cause")
    event.cause = None if cause is None else decode_field(_CAUSE, cause, kind, ".cause")
    event.timestamp = _decode_time(data.get("timestamp"), kind)
    source = data.get("source")
    path = data.get("path", ())
    name = data.get("tool_name")
    call_id = data.get("tool_call_id")
    if source is None:
        if path or name is not None or call_id is not None:
            raise field_error(
                f"{kind}.source", f"one of {', '.join(EventSource)} with a path", None
            )
        decode_field(_PATH, path, kind, ".path")
        return
    event.origin = _origin(
        decode_field(_NAME, name, kind, ".tool_name"),
        decode_field(_NAME, call_id, kind, ".tool_call_id"),
        tuple(decode_field(_PATH, path, kind, ".path")),
        decode_field(_SOURCE, source, kind, ".source"),
    )


@lru_cache(maxsize=256)
def _origin(name: str | None, call_id: str | None, path: tuple[str, ...], source: str) -> Origin:
    """Return the origin that all events of a call share."""
    return Origin(name, call_id, path, EventSource(source))


_STREAM_NUMBER: Final = FieldType(
    "a whole number from -1 to 2**63 - 1",
    lambda value: is_integer(value) and -1 <= cast("int", value) < 2**63,
    _NUMBER_IN_STREAM,
)
_CAUSE: Final = optional(_STREAM_NUMBER)
_SOURCE: Final = optional(one_of(*EventSource))
_NAME: Final = optional(TEXT)
_PATH: Final = FieldType(
    "a list of strings",
    lambda value: (
        isinstance(value, (list, tuple))
        and all(isinstance(part, str) for part in cast("list[object]", value))
    ),
    {"type": "array", "items": {"type": "string"}},
)

_TIME_FORMAT: Final = "an ISO 8601 time from 1970 to 9999 with its offset from UTC"
_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, the last year of the four-digit form of ISO 8601."""


def encode_time(timestamp: float, kind: str) -> str | None:
    """Return a timestamp in ISO 8601, or `None` for 0.0, the time of an event not yet emitted."""
    if not 0.0 <= timestamp <= _LAST_SECOND:
        raise field_error(f"{kind}.timestamp", "seconds since 1970", timestamp)
    micros = micros_of(timestamp)
    if micros == 0:
        return None
    seconds, micros = divmod(micros, 1_000_000)
    return f"{_date_and_time(seconds)}.{micros:06d}+00:00"


@lru_cache(maxsize=4)
def _date_and_time(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))


def _decode_time(text: object, kind: str) -> float:
    if text is None:
        return 0.0
    from datetime import datetime

    at = ".timestamp"
    try:
        moment = datetime.fromisoformat(cast("str", text))
        timestamp = moment.timestamp()
    except (TypeError, ValueError, OverflowError):
        raise field_error(kind + at, _TIME_FORMAT, text) from None
    if moment.tzinfo is None or not 0.0 <= timestamp <= _LAST_SECOND:
        raise field_error(kind + at, _TIME_FORMAT, text)
    return timestamp


def micros_of(timestamp: float) -> int:
    """Return a timestamp in microseconds, or -1 if it is not finite."""
    return round(timestamp * 1e6) if isfinite(timestamp) else -1
