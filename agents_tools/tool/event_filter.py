"""Removal of confidential values from the events of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.events.field_types import payload_fields
from agents_tools.text.output import release_json, release_text

if TYPE_CHECKING:
    from agents_tools.events.base import Event

__all__ = ["mask_event", "without_content"]


def without_content(event: Event) -> list[Event]:
    """Return an event that starts or ends a call or run without its content, or no event.

    It replaces an event whose filter failed. Subscribers wait for the end of every call, so start
    and end events are delivered in any case.
    """
    from agents_tools.events.kinds import RunFinishedEvent, ToolStreamEndEvent, ToolStreamStartEvent

    match event:
        case ToolStreamStartEvent():
            return [event.replace(input_args={})]
        case RunFinishedEvent():
            return [event.replace(output=None, error=None)]
        case ToolStreamEndEvent():
            return [event]
        case _:
            return []


def mask_event(event: Event) -> Event:
    """Return an event with the registered secrets in its texts masked.

    An event with an origin was masked by the call that emitted it, and is returned unchanged.
    """
    if event.origin is not None:
        return event
    changes: dict[str, Any] = {}
    for field in payload_fields(event.__class__):
        value = getattr(event, field.name)
        if isinstance(value, str):
            changes[field.name] = release_text(value, to="program")
        elif isinstance(value, (dict, list)):
            changes[field.name] = release_json(value, to="program", patterns=True)
    return event.replace(**changes) if changes else event
