"""What a call says while it works, on standard error: live on a terminal, else in plain lines."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Protocol

from agents_tools.cli.call_state import CallState, CallStates
from agents_tools.events.kinds import (
    ErrorEvent,
    NotifyStreamEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.escape import safe_text
from agents_tools.ui._format import described, ended, noted, progressed, seconds
from agents_tools.ui._line_writer import LineWriter
from agents_tools.ui._terminal import is_lively

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import CallStatus

__all__ = [
    "CallView",
    "NdjsonView",
    "PlainView",
    "SilentView",
    "choose_view",
]


class CallView(Protocol):
    """Shows the events of one call and of those it makes. Any thread may call `hear`."""

    for_programs: bool
    """Whether prose beside what it writes would disturb its reader."""

    def open(self) -> None:
        """Show that the call runs: it takes longer than a moment."""
        ...

    def hear(self, event: Event) -> None:
        """Show an event."""
        ...

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Show how the call ended, and give whether it was shown.

        Args:
            status: How it ended.
            duration: How long it took, in seconds.
            problem: What went wrong, for views that programs read.
        """
        ...


def choose_view(wanted: str, name: str) -> CallView:
    """Return the view that was asked for, or that suits standard error.

    Args:
        wanted: `auto`, `live`, `plain`, `ndjson` or `none`.
        name: The tool that is called.
    """
    if wanted == "none":
        return SilentView()
    if wanted == "ndjson":
        return NdjsonView()
    if wanted == "live" or (wanted == "auto" and is_lively(sys.stderr)):
        try:
            from agents_tools.cli.live import LiveView
        except ModuleNotFoundError:  # Rich is not there
            return PlainView(name)
        return LiveView(name)
    return PlainView(name)


class SilentView:
    """Shows nothing."""

    for_programs = False

    def open(self) -> None:
        """Show nothing."""

    def hear(self, event: Event) -> None:
        """Show nothing."""

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Show nothing."""
        del status, duration, problem
        return False


class NdjsonView:
    """Writes each event as one line of JSON, in the form that `event_from_dict` reads."""

    for_programs = True

    def __init__(self) -> None:
        self._lines = LineWriter()

    def open(self) -> None:
        """Write nothing."""

    def hear(self, event: Event) -> None:
        """Write an event."""
        self._lines.write(json.dumps(event.to_dict(), separators=(",", ":")))

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Write what went wrong, as an event too: the lines stay readable for a program."""
        del duration
        if problem is not None:
            self.hear(ErrorEvent(problem, kind=status))
        return True


class PlainView:
    """Writes one line per change, for logs and pipes."""

    for_programs = False

    def __init__(self, name: str) -> None:
        self._lines = LineWriter()
        self._calls = CallStates(name)
        self._name = safe_text(name)
        self._spoke = False
        self._written: dict[str, tuple[ToolProgressEvent, float]] = {}

    def open(self) -> None:
        """Write nothing: a log is read later."""

    def hear(self, event: Event) -> None:
        """Write a line, if something changed."""
        call = self._calls.of(event)
        match event:
            case ToolStreamStartEvent():
                if call.depth:
                    self._write(call, "started")
            case ToolStreamEndEvent():
                self._end(call, event)
            case NotifyStreamEvent():
                for line in [] if event.is_delta else call.rest():
                    self._write(call, line)
                for line in call.add_text(event):
                    self._write(call, noted(event, line))
            case ToolProgressEvent():
                call.progress = event
                if self._is_news(event):
                    self._write_progress(call, event)
            case _:
                if text := described(event):
                    self._write(call, text)

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Return how long it took, if the tool has said anything at all."""
        del problem
        for call in self._calls.running.values():
            self._finish(call)
        if self._spoke:
            self._lines.write(f"{self._name}: {ended(status)} {seconds(duration)}")
        return self._spoke

    def _end(self, call: CallState, event: ToolStreamEndEvent) -> None:
        self._finish(call)
        self._calls.end(event)
        if call.depth:
            self._write(call, f"{ended(event.status)} {seconds(event.duration)}")

    def _finish(self, call: CallState) -> None:
        """Write what was held back."""
        for line in call.rest():
            self._write(call, line)
        last, call.progress = call.progress, None
        if last is None:
            return
        written = self._written.pop(last.tool_call_id or "", None)
        if written is None or written[0] is not last:
            self._write_progress(call, last)

    def _is_news(self, event: ToolProgressEvent) -> bool:
        """Return whether progress is worth a line.

        A new message, another tenth, or a second later.
        """
        before = self._written.get(event.tool_call_id or "")
        if before is None:
            return True
        last, when = before
        if event.message != last.message:
            return True
        return _tenth(event) != _tenth(last) or time.monotonic() - when >= 1

    def _write_progress(self, call: CallState, event: ToolProgressEvent) -> None:
        self._written[event.tool_call_id or ""] = event, time.monotonic()
        self._write(call, progressed(event))

    def _write(self, call: CallState, text: str) -> None:
        self._spoke = True
        self._lines.write(f"{' > '.join(call.names)}: {text}")


def _tenth(event: ToolProgressEvent) -> int | None:
    return int(10 * event.current / event.total) if event.total else None
