"""Timelines of events for the trace viewer of a browser."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools.events.kinds import (
    GapEvent,
    NotifyStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.output import release_json

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from agents_tools.events.base import Event

__all__ = ["chrome_trace", "write_chrome_trace"]

_MICRO = 1_000_000
_PROCESS = 1


def write_chrome_trace(path: str | os.PathLike[str], events: Iterable[Event]) -> Path:
    """Write a timeline to a file for Perfetto or `chrome://tracing`.

    Recent versions of Chrome open the latter after you allow it on `chrome://chrome-urls`.

    Args:
        path: The file; an existing one is overwritten.
        events: The events, in order.

    Returns:
        The file.
    """
    target = Path(path)
    target.write_text(json.dumps(chrome_trace(events), ensure_ascii=False), encoding="utf-8")
    return target


def chrome_trace(events: Iterable[Event]) -> dict[str, Any]:
    """Return a timeline of events, in which each run, model response and call is a bar.

    Operations that run at the same time have separate lanes, below the lane of the operation that
    contains them. Messages, artifacts and attempts are marks on the bar of their call; progress is
    a curve. The bar of an unfinished operation ends with the last event, with the status `running`.

    Args:
        events: The events in order, from a listener, a stream or a store.

    Returns:
        An object in the Trace Event Format, with times in microseconds since the first event.
    """
    drawing = _TimelineDrawing()
    for event in events:
        drawing.take(event)
    bars = release_json(drawing.finished(), to="program")
    return {"traceEvents": bars, "displayTimeUnit": "ms"}


@dataclass(slots=True, eq=False)
class _Bar:
    name: str
    kind: str
    path: tuple[str, ...]
    start: float
    lane: int
    details: dict[str, Any] = field(default_factory=dict[str, Any])


class _TimelineDrawing:
    """Converts events to marks of the Trace Event Format."""

    def __init__(self) -> None:
        self._marks: list[dict[str, Any]] = []
        self._open: list[_Bar] = []
        self._lanes: list[list[_Bar]] = []
        self._requested: dict[tuple[str, ...], float] = {}
        self._first: float | None = None
        self._last = 0.0

    def take(self, event: Event) -> None:
        """Add an event."""
        if event.timestamp:
            if self._first is None:
                self._first = event.timestamp
            self._last = max(self._last, self._time(event))
        original = event  # type checkers lose the payload type of a matched item
        match event:
            case RunStartedEvent():
                details = {"run_id": event.run_id}
                self._begin(event.agent or "agent", "run", event, details)
                self._requested[event.path] = self._time(event)
            case RunFinishedEvent():
                self._requested.pop(event.path, None)
                more = {"usage": dict(event.usage)} if event.usage else {}
                self._end("run", event, {"status": event.status, "error": event.error, **more})
            case ToolStreamStartEvent():
                self._begin(event.tool_name or "tool", "call", event, dict(event.input_args))
            case ToolStreamEndEvent():
                self._end("call", event, {"status": event.status})
            case RunItemStreamEvent(name=name):
                self._item(name, original)
            case _:
                self._mark(event)

    def _item(self, name: str, event: Event) -> None:
        """Draw a model response, from the time of its request to its arrival."""
        if name in {"tool_output", "background_result", "output_refused"}:
            self._requested[event.path] = self._time(event)
        elif name in {"message_output_created", "reasoning_item_created", "tool_called"}:
            since = self._requested.pop(event.path, None)
            runs = (bar for bar in self._open if (bar.kind, bar.path) == ("run", event.path))
            run = next(runs, None)
            if since is not None and run is not None:
                self._draw(
                    _Bar("model", "model", event.path, since, run.lane), self._time(event), {}
                )

    def _mark(self, event: Event) -> None:
        match event:
            case NotifyStreamEvent():
                if not event.is_delta:
                    self._instant(event.data, event, {"level": event.level, "tag": event.tag})
            case ToolArtifactEvent():
                self._instant(f"artifact {event.name}", event, {"mime_type": event.mime_type})
            case ToolAttemptEvent():
                self._instant(f"attempt {event.attempt} failed", event, {"error": event.error})
            case GapEvent():
                self._instant(f"{event.dropped} events left out", event, {})
            case ToolProgressEvent():
                name = f"{event.tool_name or 'progress'} {event.tool_call_id or ''}".strip()
                shown = {"progress": event.current}
                self._marks.append({**self._place(event), "ph": "C", "name": name, "args": shown})
            case _:
                pass

    def finished(self) -> list[dict[str, Any]]:
        """End the open bars, and return all marks."""
        for bar in reversed(self._open):
            self._draw(bar, self._last, {"status": "running"})
        names = [self._named("process_name", 0, "agents_tools")]
        for number, bars in enumerate(self._lanes):
            names.append(self._named("thread_name", number, bars[0].name))
        return names + self._marks

    # --- bars

    def _begin(self, name: str, kind: str, event: Event, details: dict[str, Any]) -> None:
        bar = _Bar(name, kind, event.path, self._time(event), 0, details)
        bar.lane = self._lane_for(bar)
        self._lanes[bar.lane].append(bar)
        self._open.append(bar)

    def _lane_for(self, bar: _Bar) -> int:
        """Return the lane of the enclosing bar if it is free, otherwise another free lane."""
        above = next((one for one in reversed(self._open) if _is_in(bar, one)), None)
        busy: dict[int, _Bar] = {}
        for one in self._open:
            busy[one.lane] = one  # the innermost of each lane
        if above is not None and busy[above.lane] is above:
            return above.lane
        first = 0 if above is None else above.lane + 1
        for lane in range(first, len(self._lanes)):
            if lane not in busy:
                return lane
        self._lanes.append([])
        return len(self._lanes) - 1

    def _end(self, kind: str, event: Event, details: dict[str, Any]) -> None:
        for bar in reversed(self._open):
            if (bar.kind, bar.path) == (kind, event.path):
                self._open.remove(bar)
                self._draw(bar, self._time(event), details)
                return

    def _draw(self, bar: _Bar, end: float, details: dict[str, Any]) -> None:
        shown = {
            key: value for key, value in {**bar.details, **details}.items() if value is not None
        }
        self._marks.append(
            {
                "ph": "X",
                "name": bar.name,
                "cat": bar.kind,
                "pid": _PROCESS,
                "tid": bar.lane,
                "ts": bar.start,
                "dur": max(0.0, end - bar.start),
                "args": shown,
            }
        )

    def _instant(self, name: str, event: Event, details: dict[str, Any]) -> None:
        shown = {key: value for key, value in details.items() if value is not None}
        self._marks.append({**self._place(event), "ph": "i", "s": "t", "name": name, "args": shown})

    def _place(self, event: Event) -> dict[str, Any]:
        lanes = (bar.lane for bar in reversed(self._open) if bar.path == event.path)
        return {"pid": _PROCESS, "tid": next(lanes, 0), "ts": self._time(event)}

    def _named(self, what: str, lane: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "pid": _PROCESS, "tid": lane, "name": what, "args": {"name": name}}

    def _time(self, event: Event) -> float:
        first = event.timestamp if self._first is None else self._first
        return round(max(0.0, event.timestamp - first) * _MICRO, 1)


def _is_in(bar: _Bar, other: _Bar) -> bool:
    """Return whether another bar encloses a bar."""
    above = bar.path[:-1] if bar.kind == "call" else bar.path
    return above[: len(other.path)] == other.path and other is not bar
