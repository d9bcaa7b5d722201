"""Records of a run log that contain the events of runs that readers do not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.events.envelope import INVALID_ID
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.events.registry import event_from_dict

if TYPE_CHECKING:
    from agents_tools.events.base import Event

__all__ = ["shown_event"]


def shown_event(event: Event) -> Event:
    """Return the event inside a `hidden_event` record; other events as they are."""
    if isinstance(event, RunRecordEvent) and event.name == "hidden_event":
        return event_from_dict(cast("dict[str, Any]", {**event.data["event"], "id": INVALID_ID}))
    return event
