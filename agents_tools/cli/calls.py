"""What is known of the calls that run, from the events they have said."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agents_tools._text import safe_text

if TYPE_CHECKING:
    from agents_tools.events import (
        Event,
        NotifyStreamEvent,
        ToolProgressEvent,
    )

__all__ = ["CallState", "CallStates"]


class CallState:
    """What is known of one running call."""

    def __init__(self, name: str, names: tuple[str, ...], depth: int) -> None:
        self.name = name
        self.names = names
        self.depth = depth
        self.started = time.monotonic()
        self.progress: ToolProgressEvent | None = None
        self.tail = ""
        """The text of deltas whose line has not ended, as it came."""

    def told(self, event: NotifyStreamEvent) -> list[str]:
        """Give the lines that are complete with this event; `rest` gives what came before it."""
        if not event.is_delta:
            return safe_text(event.data).rstrip("\n").split("\n")
        # What acts on a terminal may come in two pieces: it is taken out when they are together.
        *lines, self.tail = (self.tail + event.data).split("\n")
        return [safe_text(line) for line in lines]

    def rest(self) -> list[str]:
        """Give the line that has not ended, if there is one."""
        tail, self.tail = safe_text(self.tail), ""
        return [tail] if tail else []


class CallStates:
    """The running calls by their ids, in the order in which they started."""

    def __init__(self, name: str) -> None:
        self.running: dict[str, CallState] = {}
        self._root = name

    def of(self, event: Event) -> CallState:
        """Give the call that an event comes from; it may have no start event."""
        key = event.tool_call_id or ""
        state = self.running.get(key)
        if state is None:
            above = [self.running[call].name for call in event.path[:-1] if call in self.running]
            name = safe_text(event.tool_name or self._root)
            state = CallState(name, (*above, name), max(0, len(event.path) - 1))
            self.running[key] = state
        return state

    def end(self, event: Event) -> CallState:
        """Forget a call."""
        state = self.of(event)
        self.running.pop(event.tool_call_id or "", None)
        return state
