"""The live view of a call: its output, and the state of the terminal after it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from agents_tools.cli.live import LiveView
from agents_tools.events import (
    Event,
    EventSource,
    NotifyStreamEvent,
    Origin,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from tests.cli.conftest import FIXTURE

OUTER = Origin("outer", "1", ("1",), EventSource.ENVIRONMENT)
INNER = Origin("in\x07ner", "2", ("1", "2"), EventSource.ENVIRONMENT)


def drawn(*events: Event) -> list[str]:
    """Return the lines that the view draws below the log after these events."""
    view = LiveView("outer")
    for event in events:
        view.show(event)
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    console.print(view)
    view.close("ok", 1.0, None)
    file = console.file
    assert isinstance(file, io.StringIO)
    return [" ".join(line.split()[1:-2]) for line in file.getvalue().splitlines()]


def test_running_calls_are_drawn_with_their_progress() -> None:
    """The view shows running calls, nested calls, and the progress of each."""
    started = [ToolStreamStartEvent({}).stamped(origin, 0) for origin in (OUTER, INNER)]
    progress = ToolProgressEvent(3, message="reading").stamped(INNER, 1)
    assert drawn(*started, progress) == ["outer", "inner 3 reading"]
    end = ToolStreamEndEvent("ok", 0.1).stamped(INNER, 2)
    assert drawn(*started, progress, end) == ["outer"]


def test_the_line_that_is_being_streamed_is_drawn() -> None:
    """A delta is shown before its line has ended."""
    delta = NotifyStreamEvent("half a li", is_delta=True).stamped(OUTER, 0)
    assert drawn(delta) == ["outer half a li"]


def test_terminal_sequences_are_removed_even_when_split() -> None:
    """A tool can forward the output of a model in parts of a few characters."""
    pieces = [
        NotifyStreamEvent(text, is_delta=True).stamped(OUTER, 0) for text in ("a\x1b[3", "1mb")
    ]
    assert drawn(*pieces) == ["outer ab"]


def test_a_tool_without_a_start_event_is_drawn_too() -> None:
    """`enable_bracketing=False` hides the start event, not the tool."""
    assert drawn() == ["outer"]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_ctrl_c_on_a_terminal_restores_the_cursor(tmp_path: Path) -> None:
    """Otherwise the prompt would have no cursor."""
    marker = tmp_path / "marker"
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "agents_tools.cli", "call", FIXTURE, "sleep_long"]
    process = subprocess.Popen(  # noqa: S603 - our own
        [*command, f"marker={marker}"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TERM": "xterm", "NO_COLOR": ""},
    )
    os.close(theirs)
    output = b""
    until = time.monotonic() + 30
    while b"\x1b[?25l" not in output and time.monotonic() < until:  # the live view hides it
        output += os.read(ours, 1000)
    process.send_signal(signal.SIGINT)
    try:
        while chunk := os.read(ours, 1000):
            output += chunk
    except OSError:  # Linux reports the end of the terminal in this way
        pass
    os.close(ours)
    assert process.wait(timeout=30) == 130
    assert b"cancelling; press Ctrl-C again to stop at once" in output
    assert output.rindex(b"\x1b[?25h") > output.rindex(b"\x1b[?25l")
    assert "cancelled after" in output.decode()
    assert marker.read_text() == "cleaned up"
