"""The wire form of events: JSON objects with the envelope and the payload, and their schema.

`Event` calls these functions, so they know events only by their attributes.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from math import isfinite
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.field_types import (
    TEXT,
    FieldType,
    field_error,
    is_integer,
    nearest_name,
    one_of,
    optional,
    payload_fields,
    shorten_value,
)
from agents_tools.text.characters import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

__all__ = ["WIRE_VERSION", "class_schema", "decode_event", "encode_event", "micros_of"]

WIRE_VERSION: Final = 1
"""The version of the wire form that this release reads and writes."""

_NO_ORIGIN: Final = Origin()


def encode_event(event: Any) -> dict[str, Any]:
    """Return the wire form of an event: a new dictionary that can be serialized as JSON.

    Raises:
        UserTypeError: The class of the event does not define `type`.
        UserValueError: The payload holds a value without a JSON form, NaN included.
    """
    kind = event.type
    if not kind:
        raise UserTypeError(
            f"{event.__class__.__name__} has no wire form: it does not define `type`. "
            "Set the class attribute `type` to a unique name."
        )
    for name, field_type in _STREAM_FIELDS:
        value = getattr(event, name)
        if not field_type.accepts(value):
            raise field_error(f"{kind}.{name}", field_type.expected, value)
    origin = event.origin or _NO_ORIGIN
    wire: dict[str, Any] = {
        "v": WIRE_VERSION,
        "type": kind,
        "id": event.id,
        "seq": event.seq,
        "timestamp": _encode_time(event.timestamp, kind),
        "source": origin.source.value if event.origin else None,
        "cause": event.cause,
        "path": list(map(replace_surrogates, origin.path)),
        "tool_name": origin.tool_name and replace_surrogates(origin.tool_name),
        "tool_call_id": origin.tool_call_id and replace_surrogates(origin.tool_call_id),
    }
    for name, field_type, _ in payload_fields(event.__class__):
        value = getattr(event, name)
        if not field_type.accepts(value):
            raise field_error(f"{kind}.{name}", field_type.expected, value)
        encode = field_type.encode
        wire[name] = encode(value, f"{kind}.{name}") if encode else value
    return wire


def decode_event(cls: type[T], data: Mapping[str, Any]) -> T:
    """Create an event of a class from its wire form.

    Raises:
        UserValueError: A field is missing, unknown or invalid.
    """
    kind: str = cast("Any", cls).type
    fields = payload_fields(cls)
    if data.get("type") != kind:
        raise field_error(f"{kind}.type", repr(kind), data.get("type"))
    _check_keys(kind, data, {*_ENVELOPE_KEYS, *[one.name for one in fields]})
    payload: dict[str, Any] = {}
    for name, field_type, default in fields:
        if name in data:
            payload[name] = _decode_field(field_type, data[name], kind, f".{name}")
        elif default is None:
            raise UserValueError(
                f"{kind}.{name} is missing: expected {field_type.expected}. Add the field."
            )
    event = cls(**payload)
    _decode_envelope(event, data)
    return event


def class_schema(cls: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the wire form of one class."""
    properties: dict[str, Any] = {"v": {"const": WIRE_VERSION}, "type": {"const": cls.type}}
    properties |= deepcopy(_ENVELOPE_SCHEMA)
    required = ["v", "type"]
    for name, field_type, default in payload_fields(cls):
        properties[name] = deepcopy(dict(field_type.schema))
        if default is None:
            required.append(name)
        else:
            value = default()
            encode = field_type.encode
            encoded = encode(value, f"{cls.type}.{name}") if encode else value
            properties[name]["default"] = encoded
    return {
        "type": "object",
        "title": cls.__name__,
        "description": (cls.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        "anyOf": deepcopy(_ORIGIN_RULE),
    }


def micros_of(timestamp: float) -> int:
    """Return a timestamp in microseconds, or -1 if it is not finite."""
    return round(timestamp * 1e6) if isfinite(timestamp) else -1


# --- the envelope ---------------------------------------------------------------------------------

_TEXT_OR_NULL: Final = {"type": ["string", "null"], "default": None}
_NUMBER_IN_STREAM: Final = {"type": "integer", "minimum": -1, "maximum": 2**63 - 1}
_ENVELOPE_SCHEMA: Final[dict[str, Any]] = {
    "id": {**_NUMBER_IN_STREAM, "default": INVALID_ID},
    "seq": {**_NUMBER_IN_STREAM, "default": -1},
    "timestamp": {**_TEXT_OR_NULL, "format": "date-time"},
    "source": {"enum": [*(source.value for source in EventSource), None], "default": None},
    "cause": {**_NUMBER_IN_STREAM, "type": ["integer", "null"], "default": None},
    "path": {"type": "array", "items": {"type": "string"}, "default": []},
    "tool_name": _TEXT_OR_NULL,
    "tool_call_id": _TEXT_OR_NULL,
}
_ORIGIN_RULE: Final[list[dict[str, Any]]] = [
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

_ENVELOPE_KEYS: Final = frozenset(("v", "type", *_ENVELOPE_SCHEMA))


def _check_keys(kind: str, data: Mapping[str, Any], known: set[str]) -> None:
    if data.keys() <= known:
        return
    for key in data:
        if key not in known:
            near = nearest_name(key, known)
            raise UserValueError(f"{kind}: unknown field {shorten_value(key)}.{near}")


def _decode_field(field_type: FieldType, value: object, at: str, member: str = "") -> Any:
    """Return the value of a field, decoded from its wire form and validated."""
    decoded = field_type.decode(value, at + member) if field_type.decode else value
    if not field_type.accepts(decoded):
        raise field_error(at + member, field_type.expected, value)
    return decoded


def _decode_envelope(event: Any, data: Mapping[str, Any]) -> None:
    """Set the envelope of an event from its wire form."""
    kind = event.type
    event.id = _decode_field(_STREAM_NUMBER, data.get("id", INVALID_ID), kind, ".id")
    event.seq = _decode_field(_STREAM_NUMBER, data.get("seq", -1), kind, ".seq")
    cause = data.get("cause")
    event.cause = None if cause is None else _decode_field(_CAUSE, cause, kind, ".cause")
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
        _decode_field(_PATH, path, kind, ".path")
        return
    event.origin = _origin(
        _decode_field(_NAME, name, kind, ".tool_name"),
        _decode_field(_NAME, call_id, kind, ".tool_call_id"),
        tuple(_decode_field(_PATH, path, kind, ".path")),
        _decode_field(_SOURCE, source, kind, ".source"),
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
_STREAM_FIELDS: Final = (("id", _STREAM_NUMBER), ("seq", _STREAM_NUMBER), ("cause", _CAUSE))
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


def _encode_time(timestamp: float, kind: str) -> str | None:
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
