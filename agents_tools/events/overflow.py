"""Shorten a full queue of events: merge deltas, drop display events and mark the gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import GapEvent, NotifyStreamEvent

__all__ = ["count_events", "gap_after", "shorten_queue"]

_MAX_DELTA: Final = 4096
"""The largest length of a merged delta, in characters. It bounds the memory of a full queue."""


def shorten_queue(events: list[Event], size: int) -> tuple[list[Event], int]:
    """Merge events, and then drop the oldest droppable ones until `size` are left.

    Artifacts are dropped last. Gaps do not count.

    Returns:
        The remaining events, with a `GapEvent` where events were dropped, and the number of
        dropped events.
    """
    from agents_tools.events.kinds import GapEvent, ToolArtifactEvent

    events = _merge(events)
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
    from agents_tools.events.kinds import GapEvent

    return sum(not isinstance(event, GapEvent) for event in events)


def gap_after(dropped: int, last: Event) -> GapEvent:
    """Return the event that replaces dropped events, at the position of the last one."""
    from agents_tools.events.kinds import GapEvent

    return GapEvent(dropped).replace(seq=last.seq, timestamp=last.timestamp)


def _merge(events: list[Event]) -> list[Event]:
    """Merge adjacent deltas of a call, and keep only its latest progress event."""
    from agents_tools.events.kinds import GapEvent, NotifyStreamEvent, ToolProgressEvent

    merged: list[Event | None] = []
    last: dict[tuple[str, ...], int] = {}  # the index of the last event of each call
    progress: dict[tuple[str, ...], int] = {}
    for event in events:
        call = event.path
        if isinstance(event, NotifyStreamEvent) and event.is_delta and call in last:
            longer = _append_delta(merged[last[call]], event)
            if longer is not None:
                merged[last[call]] = longer
                continue
        elif isinstance(event, ToolProgressEvent) and event.origin:
            if call in progress:
                merged[progress[call]] = None
            progress[call] = len(merged)
        elif isinstance(event, GapEvent):
            last.clear()  # text on both sides of a gap must not be merged: some is missing between
        if event.origin:
            last[call] = len(merged)
        merged.append(event)
    return [event for event in merged if event is not None]


def _append_delta(before: Event | None, delta: NotifyStreamEvent) -> NotifyStreamEvent | None:
    """Return both deltas as one with the envelope of the first; `None` if they do not fit."""
    from agents_tools.events.kinds import NotifyStreamEvent

    if (
        isinstance(before, NotifyStreamEvent)
        and before.is_delta
        and (before.tag, before.level) == (delta.tag, delta.level)
        and len(before.data) + len(delta.data) <= _MAX_DELTA
    ):
        return before.replace(data=before.data + delta.data)
    return None
