"""Show a call on a terminal: its output lines, and below them the running calls."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from agents_tools.cli.call_state import CallState, CallStates
from agents_tools.events.kinds import (
    NotifyStreamEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.output import release_text
from agents_tools.ui._format import described, ended, progressed, seconds
from agents_tools.ui._terminal import can_show, marks

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.events.base import Event
    from agents_tools.events.kinds import CallStatus

__all__ = ["LiveView"]

_LEVELS = {
    "debug": "dim",
    "info": "",
    "success": "green",
    "warning": "yellow",
    "error": "red",
}
_ROWS = 12
"""The number of running calls shown at once."""


class LiveView:
    """Shows a call with spinners and bars. Its lines and its final status stay on the terminal."""

    for_programs = False

    def __init__(self, name: str) -> None:
        self._console = Console(stderr=True, highlight=False, emoji=False, markup=False)
        self._calls = CallStates(name)
        self._name = release_text(name)
        self._root = CallState(self._name, (self._name,), 0)  # for a tool without a start event
        # Checked now: while Rich draws, it replaces standard error.
        self._marks = marks(sys.stderr)
        self._spinner = "dots" if can_show("⠋", sys.stderr) else "line"
        self._lock = threading.Lock()  # guards the calls; never held while the console is used
        self._live: Live | None = None
        self._has_output = False
        self._is_aside = False
        self._spinners: dict[CallState, Spinner] = {}

    def open(self) -> None:
        """Show the spinner."""
        if self._live is None and not self._is_aside:
            self._live = Live(
                self,
                console=self._console,
                transient=True,
                refresh_per_second=10,
                vertical_overflow="crop",
            )
            self._live.start()

    def show(self, event: Event) -> None:
        """Show an event. A closed terminal must not disturb the tool."""
        with contextlib.suppress(OSError, ValueError):
            with self._lock:
                call = self._calls.of(event)
                lines = self._lines_of(call, event)
            if lines or isinstance(event, ToolProgressEvent):
                self.open()
            for line in lines:
                self._has_output = True
                self._console.print(line, soft_wrap=True)

    @contextlib.contextmanager
    def aside(self) -> Generator[None]:
        """Remove the running calls from the screen while the block asks a question."""
        live, self._live = self._live, None
        self._is_aside = True
        if live is not None:
            live.stop()
        try:
            yield
        finally:
            self._is_aside = False
            self.open()

    def close(self, status: CallStatus, duration: float, problem: str | None) -> bool:
        """Show the last lines and the final status, if anything was shown before."""
        del problem
        with contextlib.suppress(OSError, ValueError):
            with self._lock:
                rest = [_line(call, text) for call in self._running for text in call.rest()]
            shown = self._live is not None
            if self._live is not None:
                self._live.stop()
            for line in rest:
                self._console.print(line, soft_wrap=True)
            shown = shown or self._has_output
            if shown:
                self._console.print(self._ending(self._name, 0, status, duration))
            return shown
        return False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the running calls. Rich calls this ten times a second."""
        del console
        with self._lock:
            rows = self._running[-min(_ROWS, max(1, options.max_height - 1)) :]
            yield Group(*(self._row(call) for call in rows))

    @property
    def _running(self) -> list[CallState]:
        return list(self._calls.running.values()) or [self._root]

    def _lines_of(self, call: CallState, event: Event) -> list[Text]:
        match event:
            case ToolStreamStartEvent():
                return []
            case ToolStreamEndEvent():
                self._calls.end(event)
                self._spinners.pop(call, None)
                lines = [_line(call, text) for text in call.rest()]
                if call.depth:
                    lines.append(self._ending(call.name, call.depth, event.status, event.duration))
                return lines
            case NotifyStreamEvent():
                style = _style_of(event)
                before = [] if event.is_delta else [_line(call, text) for text in call.rest()]
                return before + [_line(call, text, style) for text in call.add_text(event)]
            case ToolProgressEvent():
                call.progress = event
                return []
            case _:
                text = described(event)
                return [_line(call, text, "dim")] if text else []

    def _row(self, call: CallState) -> Table:
        row = Table.grid(padding=(0, 1))
        spinner = self._spinners.setdefault(call, Spinner(self._spinner, style="cyan"))
        cells: list[Spinner | ProgressBar | Text] = [spinner, Text(call.name, "bold")]
        progress = call.progress
        if progress is not None:
            if progress.total:
                cells.append(
                    ProgressBar(total=progress.total, completed=progress.current, width=24)
                )
            cells.append(Text(progressed(progress)))
        if call.tail:
            cells.append(Text(release_text(call.tail)[-80:], "dim"))
        cells.append(Text(seconds(time.monotonic() - call.started), "dim"))
        for cell in cells:
            row.add_column(no_wrap=True, overflow="ellipsis" if isinstance(cell, Text) else "crop")
        row.add_row(*cells)
        return row if not call.depth else _indented(row, call.depth)

    def _ending(self, name: str, depth: int, status: CallStatus, duration: float) -> Text:
        good, bad = self._marks
        mark = Text(good, "green") if status == "ok" else Text(bad, "red")
        text = seconds(duration) if status == "ok" else f"{ended(status)} {seconds(duration)}"
        return Text.assemble("  " * depth, mark, " ", (name, "bold"), " ", (text, "dim"))


def _line(call: CallState, text: str, style: str = "") -> Text:
    before = Text("  " * call.depth)
    if call.depth:
        before.append(f"{call.name}: ", "dim")
    return before.append(text, style)


def _style_of(event: NotifyStreamEvent) -> str:
    if event.level == "info" and event.tag in _LEVELS:
        return _LEVELS[event.tag]
    return _LEVELS.get(event.level, "")


def _indented(row: Table, depth: int) -> Table:
    outer = Table.grid()
    outer.add_column(width=2 * depth)
    outer.add_column()
    outer.add_row("", row)
    return outer
