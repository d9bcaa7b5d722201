"""The registered classes of events: read any event, and publish the schema of all events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast, dataclass_transform, get_args

from agents_tools.errors import UserValueError
from agents_tools.events.base import Event, event_class
from agents_tools.events.codec import WIRE_VERSION, class_schema, decode_event, encode_event
from agents_tools.events.field_types import (
    field_error,
    nearest_name,
    payload_fields,
    shorten_value,
)
from agents_tools.events.kinds import AnyEvent

__all__ = ["event_from_dict", "event_json_schema", "event_to_dict", "register_event"]

EventT = TypeVar("EventT", bound=Event)

_classes: Final[dict[str, type[Event]]] = {}


@dataclass_transform(frozen_default=True, eq_default=False)
def register_event(cls: type[EventT]) -> type[EventT]:
    """Create a class of events from annotated fields, and register it for `event_from_dict`.

    ::

        @register_event
        class ThoughtEvent(Event):
            type = "thought_event"

            text: str
            depth: int = 1

    The class becomes a slotted dataclass. Fields can be of the types str, bool, int, float, dict,
    list, Any (a JSON value), a Literal of strings, and of these with None.

    Raises:
        UserValueError: The class has no `type`, another class has the same type, or a field has
            the name of an attribute of `Event`.
        UserTypeError: The type of a field is unknown or has no wire form.
    """
    if "__dataclass_fields__" not in vars(cls):
        cls = event_class(cls)
    payload_fields(cls)  # raises errors where the class is written
    return _register(cls)


def _register(cls: type[EventT]) -> type[EventT]:
    known = _classes.setdefault(cls.type, cls) if cls.type else None
    if known is not cls:
        why = f"{known.__name__} has the same type {cls.type!r}" if known else "it has no `type`"
        raise UserValueError(
            f"{cls.__name__} cannot be registered: {why}. "
            "Set the class attribute `type` to a unique name."
        )
    return cls


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return the wire form of an event, like `event.to_dict()`."""
    return encode_event(event)


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
    return decode_event(cls, data)


def event_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the wire form of all registered events."""
    classes = list(_classes.values())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": f"An event of agents_tools on the wire, version {WIRE_VERSION}.",
        "oneOf": [{"$ref": f"#/$defs/{cls.__name__}"} for cls in classes],
        "$defs": {cls.__name__: class_schema(cls) for cls in classes},
    }


for _cls in get_args(AnyEvent):
    _register(getattr(_cls, "__origin__", _cls))
