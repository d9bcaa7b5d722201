"""Convert events to their wire form and back, and publish its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast, get_args

from agents_tools.errors import UserValueError
from agents_tools.events.base import REQUIRED, Event, RichEvent, decoders
from agents_tools.events.envelope import ENVELOPE_SCHEMA, ORIGIN_RULE, WIRE_VERSION
from agents_tools.events.field_types import field_error, nearest_name, shorten_value
from agents_tools.events.kinds import AnyEvent

__all__ = [
    "event_from_dict",
    "event_json_schema",
    "event_to_dict",
    "register_decoder",
    "register_event",
]

_EventT = TypeVar("_EventT", bound=Event)
_RichEventT = TypeVar("_RichEventT", bound=RichEvent[Any])

_classes: Final[dict[str, type[Event]]] = {}


def register_event(cls: type[_EventT]) -> type[_EventT]:
    """Register a class of events for `event_from_dict`; usable as a decorator.

    Raises:
        UserValueError: The class has no `type`, or another class has the same type.
    """
    known = _classes.setdefault(cls.type, cls) if cls.type else None
    if known is not cls:
        why = f"{known.__name__} has the same type {cls.type!r}" if known else "it has no `type`"
        raise UserValueError(
            f"{cls.__name__} cannot be registered: {why}. "
            "Set the class attribute `type` to a unique name."
        )
    return cls


def register_decoder(cls: type[_RichEventT], decode: Callable[[_RichEventT], object]) -> None:
    """Register the function that creates `value` of these events from their payload.

    Raises:
        UserValueError: Another decoder is already registered for the class.
    """
    if decoders.setdefault(cls.type, decode) is not decode:
        raise UserValueError(
            f"{cls.__name__} already has a decoder. Register each decoder only once."
        )


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return the wire form of an event, like `event.to_dict()`."""
    return event.to_dict()


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """Create an event from its wire form.

    Raises:
        UserValueError: The type is unknown, the version is not supported, or a field is missing,
            unknown or invalid.
    """
    if not isinstance(cast("object", data), Mapping):
        raise field_error("event", "an object", data)
    version = data.get("v")
    if version.__class__ is not int or version != WIRE_VERSION:
        raise UserValueError(
            f"event.v: expected version {WIRE_VERSION} of the wire form, "
            f"got {shorten_value(version)}. Read the event with a release that supports it.",
        )
    name = data.get("type")
    cls = _classes.get(name) if isinstance(name, str) else None
    if cls is None:
        raise UserValueError(
            f"event.type: unknown event type {shorten_value(name)}.{nearest_name(name, _classes)} "
            "Register your own classes with register_event.",
        )
    return cls.from_dict(data)


def event_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the wire form of all registered events."""
    classes = list(_classes.values())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": f"An event of agents_tools on the wire, version {WIRE_VERSION}.",
        "oneOf": [{"$ref": f"#/$defs/{cls.__name__}"} for cls in classes],
        "$defs": {cls.__name__: _class_schema(cls) for cls in classes},
    }


def _class_schema(cls: type[Event]) -> dict[str, Any]:
    from copy import deepcopy

    properties: dict[str, Any] = {"v": {"const": WIRE_VERSION}, "type": {"const": cls.type}}
    properties |= deepcopy(ENVELOPE_SCHEMA)
    required = ["v", "type"]
    for slot, field_type in cls.__event_payload__:
        properties[slot.name] = deepcopy(dict(field_type.schema))
        if slot.default is REQUIRED:
            required.append(slot.name)
        else:
            properties[slot.name]["default"] = slot.default
    return {
        "type": "object",
        "title": cls.__name__,
        "description": (cls.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        "anyOf": deepcopy(ORIGIN_RULE),
    }


for _cls in get_args(AnyEvent):
    register_event(getattr(_cls, "__origin__", _cls))
