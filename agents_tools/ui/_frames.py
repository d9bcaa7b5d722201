"""One event as one server-sent event, and the place in a stream that its id says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agents_tools.ui.ndjson import json_of

if TYPE_CHECKING:
    from agents_tools.events import Event

__all__ = ["frame_of", "read_place"]


def frame_of(event: Event, run_id: str = "") -> bytes:
    """Give an event as one frame.

    Raises:
        UserError: It has no JSON form.
    """
    data = json_of(event)
    place = ""
    if event.id >= 0:
        place = f"id: {run_id}:{event.id}\n" if run_id else f"id: {event.id}\n"
    return b"%sevent: %s\ndata: %s\n\n" % (place.encode(), event.type.encode(), data)


def read_place(given: str, run_id: str) -> int | None:
    """Read the place in a stream that a client gives: `<run id>:<n>`, or `n` alone.

    Returns:
        The id of the last event that the client has; `None` where it is none of this run.
    """
    before, mark, digits = given.strip().rpartition(":")
    if mark and before != run_id:
        return None
    return int(digits) if _NUMBER.fullmatch(digits) is not None else None


_NUMBER = re.compile(r"-1|[0-9]{1,18}")
