"""Coalesce display events for a slow reader: merge deltas, drop the oldest, and mark the gaps.

`Channel`, `listen` and the readers of an `EventStream` use these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.events.envelope import INVALID_ID
from agents_tools.events.kinds import (
    GapEvent,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    ToolArtifactEvent,
    ToolProgressEvent,
)

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.events.envelope import Origin

__all__ = ["coalesce", "count_events", "drop_display_events", "gap_after", "is_raw_delta"]

_MAX_DELTA: Final = 4096
"""The largest length of a merged delta, in characters. It bounds the memory of a full queue."""


def coalesce(events: list[Event]) -> list[Event]:
    """Merge the deltas of a text, and keep only the latest progress event of each call.

    A merged event has the place of its first part and the `id` of its last one, so a reader of a
    stream that resumes after it misses nothing and gets nothing twice. Other events stay as they
    are.
    """
    merged: list[Event] = []
    last: dict[Origin | None, int] = {}  # the index of the last event of each origin
    for event in _with_latest_progress(events):
        before = _index_before(event, merged, last) if event.droppable else None
        longer = None if before is None else _join(merged[before], event)
        if before is not None and longer is not None:
            merged[before] = longer
            continue
        if isinstance(event, GapEvent):
            last.clear()  # text on both sides of a gap must not be merged: some is missing between
        last[event.origin] = len(merged)
        merged.append(event)
    return merged


def drop_display_events(events: list[Event], size: int) -> tuple[list[Event], int]:
    """Drop the oldest display events until `size` events are left.

    Artifacts are dropped last. Gaps do not count.

    Returns:
        The remaining events, with a `GapEvent` where events were dropped, and the number of
        dropped events.
    """
    surplus = count_events(events) - size
    droppable = [index for index, event in enumerate(events) if event.droppable]
    droppable.sort(key=lambda index: isinstance(events[index], ToolArtifactEvent))
    dropped = set(droppable[: max(surplus, 0)])
    left: list[Event] = []
    for index, event in enumerate(events):
        missing = 1 if index in dropped else event.dropped if isinstance(event, GapEvent) else 0
        if not missing:
            left.append(event)
        elif left and isinstance(left[-1], GapEvent):
            left[-1] = gap_after(left[-1].dropped + missing, event)
        else:
            left.append(gap_after(missing, event))
    return left, len(dropped)


def count_events(events: list[Event]) -> int:
    """Return the number of events, without gaps."""
    return sum(not isinstance(event, GapEvent) for event in events)


def gap_after(dropped: int, last: Event) -> GapEvent:
    """Return the event that replaces dropped events, at the position of the last one."""
    return GapEvent(dropped).replace(id=last.id, seq=last.seq, timestamp=last.timestamp)


def is_raw_delta(data: Any) -> bool:
    """Return whether the data of a raw response event is a text delta."""
    if not isinstance(data, dict):
        return False
    fields = cast("dict[str, Any]", data)
    kind = fields.get("type")
    return (
        isinstance(kind, str) and kind.endswith(".delta") and isinstance(fields.get("delta"), str)
    )


def _with_latest_progress(events: list[Event]) -> list[Event]:
    """Return the events without progress events that a later one of the same call replaces."""
    latest: dict[Origin, Event] = {
        event.origin: event
        for event in events
        if isinstance(event, ToolProgressEvent) and event.origin is not None
    }
    if not latest:
        return events
    return [
        event
        for event in events
        if not isinstance(event, ToolProgressEvent)
        or event.origin is None
        or latest[event.origin] is event
    ]


def _index_before(event: Event, merged: list[Event], last: dict[Origin | None, int]) -> int | None:
    """Return the index of the event that an event can be merged with.

    An event of a stream can be merged only with its neighbour, so that the ids of the merged events
    increase. An event without id and origin is not merged, because its call is unknown.
    """
    index = last.get(event.origin)
    if event.id == INVALID_ID:
        return None if event.origin is None else index
    return index if index == len(merged) - 1 else None


def _join(before: Event, delta: Event) -> Event | None:
    """Return two deltas of the same text as one; `None` if they cannot be merged."""
    if before.__class__ is not delta.__class__:
        return None
    if isinstance(before, NotifyStreamEvent) and isinstance(delta, NotifyStreamEvent):
        if (before.is_delta, before.tag, before.level) != (True, delta.tag, delta.level):
            return None
        text = before.data + delta.data
        is_short = delta.is_delta and len(text) <= _MAX_DELTA
        return before.replace(data=text, id=delta.id) if is_short else None
    if isinstance(before, RawResponseStreamEvent) and isinstance(delta, RawResponseStreamEvent):
        one, two = before.data, delta.data
        if not (is_raw_delta(one) and is_raw_delta(two) and _is_same_text(one, two)):
            return None
        text = one["delta"] + two["delta"]
        data = {**two, "delta": text}
        return before.replace(data=data, id=delta.id) if len(text) <= _MAX_DELTA else None
    return None


def _is_same_text(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        one[key] == two[key] for key in one if key not in {"delta", "sequence_number"}
    )
