"""The state of running calls, derived from their events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import NotifyStreamEvent, ToolProgressEvent

__all__ = ["CallState", "CallStates"]


class CallState:
    """The state of one running call."""

    def __init__(self, name: str, names: tuple[str, ...], depth: int) -> None:
        self.name = name
        self.names = names
        self.depth = depth
        self.started = time.monotonic()
        self.progress: ToolProgressEvent | None = None
        self.tail = ""
        """The raw text of deltas that is not a complete line yet."""

    def add_text(self, event: NotifyStreamEvent) -> list[str]:
        """Add the text of an event and return the lines that it completes."""
        if not event.is_delta:
            return release_text(event.data).rstrip("\n").split("\n")
        # A control sequence may be split between two deltas, so only whole lines are cleaned.
        *lines, self.tail = (self.tail + event.data).split("\n")
        return [release_text(line) for line in lines]

    def rest(self) -> list[str]:
        """Return and clear the incomplete line, if there is one."""
        tail, self.tail = release_text(self.tail), ""
        return [tail] if tail else []


class CallStates:
    """The running calls by their ids, in the order in which they started."""

    def __init__(self, name: str) -> None:
        self.running: dict[str, CallState] = {}
        self._root = name

    def of(self, event: Event) -> CallState:
        """Return the call of an event, which may have no start event."""
        key = event.tool_call_id or ""
        state = self.running.get(key)
        if state is None:
            above = [self.running[call].name for call in event.path[:-1] if call in self.running]
            name = release_text(event.tool_name or self._root)
            state = CallState(name, (*above, name), max(0, len(event.path) - 1))
            self.running[key] = state
        return state

    def end(self, event: Event) -> CallState:
        """Remove a call and return it."""
        state = self.of(event)
        self.running.pop(event.tool_call_id or "", None)
        return state
