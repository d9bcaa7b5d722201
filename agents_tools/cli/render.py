"""Show the events of a call on standard error: live on a terminal, otherwise as plain lines."""

from __future__ import annotations

import contextlib
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
from agents_tools.text.output import release_text
from agents_tools.ui._format import described, ended, noted, progressed, seconds
from agents_tools.ui._line_writer import LineWriter
from agents_tools.ui._terminal import is_lively
from agents_tools.ui.ndjson import json_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

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
    """Shows the events of a call and of its nested calls. Any thread can call `show`."""

    for_programs: bool
    """Whether a program reads the output, so that no other text is allowed next to it."""

    def open(self) -> None:
        """Show that the call is running, because it takes longer than a moment."""
        ...

    def show(self, event: Event) -> None:
        """Show an event."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Free the screen for a question while the block runs."""
        ...

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Show how the call ended, and return whether it was shown.

        Args:
            status: The status of the call.
            duration: The duration in seconds.
            problem: The error message, for views that programs read.
        """
        ...


def choose_view(wanted: str, name: str) -> CallView:
    """Return a view by name, or the best view for standard error.

    Args:
        wanted: `auto`, `live`, `plain`, `ndjson` or `none`.
        name: The name of the tool.
    """
    if wanted == "none":
        return SilentView()
    if wanted == "ndjson":
        return NdjsonView()
    if wanted == "live" or (wanted == "auto" and is_lively(sys.stderr)):
        try:
            from agents_tools.cli.live import LiveView
        except ModuleNotFoundError:  # Rich is not installed
            return PlainView(name)
        return LiveView(name)
    return PlainView(name)


class SilentView:
    """Shows nothing."""

    for_programs = False

    def open(self) -> None:
        """Show nothing."""

    def show(self, event: Event) -> None:
        """Show nothing."""

    def aside(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing."""
        return contextlib.nullcontext()

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Show nothing."""
        del status, duration, problem
        return False


class NdjsonView:
    """Writes each event as one line of JSON for `event_from_dict`."""

    for_programs = True

    def __init__(self) -> None:
        self._lines = LineWriter()

    def open(self) -> None:
        """Write nothing."""

    def show(self, event: Event) -> None:
        """Write an event."""
        self._lines.write(json_of(event).decode())

    def aside(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing."""
        return contextlib.nullcontext()

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Write the error message as an event, so that every line is valid JSON."""
        del duration
        if problem is not None:
            self.show(ErrorEvent(problem, kind=status))
        return True


class PlainView:
    """Writes one line per change, for logs and pipes."""

    for_programs = False

    def __init__(self, name: str) -> None:
        self._lines = LineWriter()
        self._calls = CallStates(name)
        self._name = release_text(name)
        self._has_output = False
        self._written: dict[str, tuple[ToolProgressEvent, float]] = {}

    def open(self) -> None:
        """Write nothing: a log needs no sign that the call is running."""

    def show(self, event: Event) -> None:
        """Write a line if something changed."""
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

    def aside(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing."""
        return contextlib.nullcontext()

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Write the final status if the tool has written anything."""
        del problem
        for call in self._calls.running.values():
            self._finish(call)
        if self._has_output:
            self._lines.write(f"{self._name}: {ended(status)} {seconds(duration)}")
        return self._has_output

    def _end(self, call: CallState, event: ToolStreamEndEvent) -> None:
        self._finish(call)
        self._calls.end(event)
        if call.depth:
            self._write(call, f"{ended(event.status)} {seconds(event.duration)}")

    def _finish(self, call: CallState) -> None:
        """Write the held text and progress of a call."""
        for line in call.rest():
            self._write(call, line)
        last, call.progress = call.progress, None
        if last is None:
            return
        written = self._written.pop(last.tool_call_id or "", None)
        if written is None or written[0] is not last:
            self._write_progress(call, last)

    def _is_news(self, event: ToolProgressEvent) -> bool:
        """Return whether progress deserves a line.

        It does for a new message, for another 10 %, or a second after the last line.
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
        self._has_output = True
        self._lines.write(f"{' > '.join(call.names)}: {text}")


def _tenth(event: ToolProgressEvent) -> int | None:
    return int(10 * event.current / event.total) if event.total else None
