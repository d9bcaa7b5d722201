"""Encode events as server-sent events, and parse the ids that clients send back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agents_tools.ui.ndjson import json_of

if TYPE_CHECKING:
    from agents_tools.events.base import Event

__all__ = ["frame_of", "parse_event_id"]


def frame_of(event: Event, run_id: str = "") -> bytes:
    """Return an event as one frame.

    Raises:
        UserError: The event has no JSON form.
    """
    data = json_of(event)
    id_line = ""
    if event.id >= 0:
        id_line = f"id: {run_id}:{event.id}\n" if run_id else f"id: {event.id}\n"
    return b"%sevent: %s\ndata: %s\n\n" % (id_line.encode(), event.type.encode(), data)


def parse_event_id(text: str, run_id: str) -> int | None:
    """Parse the event id of a client: `<run id>:<n>`, or `n` alone.

    Returns:
        The id of the last event that the client has; `None` if it is not an id of this run.
    """
    before, mark, digits = text.strip().rpartition(":")
    if mark and before != run_id:
        return None
    return int(digits) if _NUMBER.fullmatch(digits) is not None else None


_NUMBER = re.compile(r"-1|[0-9]{1,18}")
