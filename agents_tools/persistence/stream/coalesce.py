"""Merge or drop display events that wait for a slow reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.events.kinds import (
    GapEvent,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    ToolProgressEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.events.base import Event

__all__ = ["coalesce", "gap", "is_raw_delta", "with_gaps", "without_droppable"]

_MAX_DELTA: Final = 4096
"""The largest length of a merged delta, in characters."""


def coalesce(events: list[Event]) -> list[Event]:
    """Merge adjacent deltas of a call, and keep only its latest progress event.

    A merged event has the id of its last part, so a reader that resumes after it misses nothing
    and gets nothing twice. Other events stay as they are.
    """
    merged: list[Event] = []
    for event in _latest_progress(events):
        longer = _append_delta(merged[-1], event) if merged and event.droppable else None
        if longer is None:
            merged.append(event)
        else:
            merged[-1] = longer
    return merged


def without_droppable(events: Iterable[Event]) -> list[Event]:
    """Replace display events by gaps that count them."""
    left: list[Event] = []
    dropped = 0
    last: Event | None = None
    for event in events:
        if event.droppable or isinstance(event, GapEvent):
            dropped += event.dropped if isinstance(event, GapEvent) else 1
            last = event
            continue
        if last is not None:
            left.append(gap(dropped, last.id, last))
        dropped, last = 0, None
        left.append(event)
    if last is not None:
        left.append(gap(dropped, last.id, last))
    return left


def with_gaps(events: list[Event], first: int, end: int) -> list[Event]:
    """Return the events with a gap event for each range of missing ids.

    Args:
        events: The events with ids from `first` to `end`.
        first: The first id.
        end: The id after the last one.
    """
    if len(events) == end - first:
        return events
    complete: list[Event] = []
    for event in events:
        if event.id > first:
            complete.append(gap(event.id - first, event.id - 1, event))
        complete.append(event)
        first = event.id + 1
    if end > first:
        complete.append(gap(end - first, end - 1, events[-1] if events else None))
    return complete


def gap(dropped: int, id: int, near: Event | None) -> GapEvent:
    """Return the event that replaces dropped events, with the id of the last one."""
    if near is None:
        return GapEvent(dropped).replace(id=id)
    return GapEvent(dropped).replace(id=id, timestamp=near.timestamp)


def _latest_progress(events: list[Event]) -> list[Event]:
    latest: dict[tuple[str, ...], int] = {}
    for event in events:
        if isinstance(event, ToolProgressEvent) and event.path:
            latest[event.path] = event.id
    if not latest:
        return events
    return [
        event
        for event in events
        if not isinstance(event, ToolProgressEvent) or latest.get(event.path, event.id) == event.id
    ]


def _append_delta(before: Event, delta: Event) -> Event | None:
    """Return two deltas of the same text as one; `None` if they cannot be merged."""
    if before.origin != delta.origin or before.__class__ is not delta.__class__:
        return None
    if isinstance(before, NotifyStreamEvent) and isinstance(delta, NotifyStreamEvent):
        if (before.is_delta, before.tag, before.level) != (True, delta.tag, delta.level):
            return None
        return _extend(delta, "data", before.data, delta.data) if delta.is_delta else None
    if isinstance(before, RawResponseStreamEvent) and isinstance(delta, RawResponseStreamEvent):
        one, two = before.data, delta.data
        if not (is_raw_delta(one) and is_raw_delta(two) and _same_text(one, two)):
            return None
        whole = one["delta"] + two["delta"]
        return delta.replace(data={**two, "delta": whole}) if len(whole) <= _MAX_DELTA else None
    return None


def _extend(delta: Event, name: str, before: str, after: str) -> Event | None:
    if len(before) + len(after) > _MAX_DELTA:
        return None
    return delta.replace(**{name: before + after})


def is_raw_delta(data: Any) -> bool:
    """Return whether the data of a raw response event is a text delta."""
    if not isinstance(data, dict):
        return False
    fields = cast("dict[str, Any]", data)
    kind = fields.get("type")
    return (
        isinstance(kind, str) and kind.endswith(".delta") and isinstance(fields.get("delta"), str)
    )


def _same_text(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        one[key] == two[key] for key in one if key not in {"delta", "sequence_number"}
    )
