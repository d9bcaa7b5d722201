"""Shorten what waits for a slow reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.events import (
    Event,
    GapEvent,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    ToolProgressEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["coalesced", "gap", "is_raw_delta", "with_gaps", "without_droppable"]

_LONGEST: Final = 4096
"""Up to how many characters deltas are merged."""


def coalesced(events: list[Event]) -> list[Event]:
    """Merge neighbouring deltas of a call; let its latest progress stand for the earlier ones.

    What was merged has the id of its last part: whoever goes on after it misses nothing and gets
    nothing twice. Everything else is kept.
    """
    merged: list[Event] = []
    for event in _latest_progress(events):
        longer = _appended(merged[-1], event) if merged and event.droppable else None
        if longer is None:
            merged.append(event)
        else:
            merged[-1] = longer
    return merged


def without_droppable(events: Iterable[Event]) -> list[Event]:
    """Leave out what is for display only, and say where, and how many."""
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
    """Say which ids from `first` to `end` are missing, each hole as one gap."""
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
    """Say that events are missing, in the place of the last of them."""
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


def _appended(before: Event, delta: Event) -> Event | None:
    """Put two deltas together, if they are deltas of one text."""
    if before.origin != delta.origin or before.__class__ is not delta.__class__:
        return None
    if isinstance(before, NotifyStreamEvent) and isinstance(delta, NotifyStreamEvent):
        if (before.is_delta, before.tag, before.level) != (True, delta.tag, delta.level):
            return None
        return _longer(delta, "data", before.data, delta.data) if delta.is_delta else None
    if isinstance(before, RawResponseStreamEvent) and isinstance(delta, RawResponseStreamEvent):
        one, two = before.data, delta.data
        if not (is_raw_delta(one) and is_raw_delta(two) and _same_text(one, two)):
            return None
        whole = one["delta"] + two["delta"]
        return delta.replace(data={**two, "delta": whole}) if len(whole) <= _LONGEST else None
    return None


def _longer(delta: Event, name: str, before: str, after: str) -> Event | None:
    if len(before) + len(after) > _LONGEST:
        return None
    return delta.replace(**{name: before + after})


def is_raw_delta(data: Any) -> bool:
    """Whether a piece of a model's answer goes on with a text."""
    if not isinstance(data, dict):
        return False
    facts = cast("dict[str, Any]", data)
    kind = facts.get("type")
    return isinstance(kind, str) and kind.endswith(".delta") and isinstance(facts.get("delta"), str)


def _same_text(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        one[key] == two[key] for key in one if key not in {"delta", "sequence_number"}
    )
