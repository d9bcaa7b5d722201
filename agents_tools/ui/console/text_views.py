"""Views that show a run as lines, and the choice of a view for a stream."""

from __future__ import annotations

import contextlib
import sys
import time
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.events.kinds import (
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.escape import shorten
from agents_tools.ui._format import described, noted, progressed, seconds
from agents_tools.ui._line_writer import LineWriter
from agents_tools.ui._terminal import is_lively
from agents_tools.ui.console.run_tree import (
    Node,
    RunTree,
    arguments_shown,
    costs,
    ended_in_words,
    is_retry,
    retried,
)
from agents_tools.ui.ndjson import json_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import TextIO

    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Event

__all__ = ["NdjsonRun", "PlainRun", "QuietRun", "RunView", "choose_run_view"]


class RunView(Protocol):
    """A view that shows the events of a run. Any thread can call `show`."""

    def open(self) -> None:
        """Start to show the run."""
        ...

    def show(self, event: Event) -> None:
        """Show an event."""
        ...

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Add the usage of one model response.

        Args:
            path: The path of the agent that called the model.
            usage: The usage of the response.
        """
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Free the screen for a question while the block runs."""
        ...

    def close(self, status: str, duration: float) -> None:
        """Show the status of the run: `ok`, `interrupted`, `error`, `timeout` or `cancelled`."""
        ...


def choose_run_view(wanted: str, agent: str = "", stream: TextIO | None = None) -> RunView:
    """Return a view by name, or the best view for a stream.

    Args:
        wanted: `auto`, `live`, `plain`, `ndjson` or `none`.
        agent: The name of the agent, if it is known.
        stream: The output stream; standard error by default.
    """
    if wanted == "none":
        return QuietRun()
    if wanted == "ndjson":
        return NdjsonRun(stream)
    if wanted == "live" or (wanted == "auto" and is_lively(stream or sys.stderr)):
        try:
            from agents_tools.ui.console.rich_view import RichRun
        except ModuleNotFoundError:  # Rich is not installed
            return PlainRun(agent, stream)
        return RichRun(agent, stream)
    return PlainRun(agent, stream)


class QuietRun:
    """A view that shows nothing."""

    def open(self) -> None:
        """Show nothing."""

    def show(self, event: Event) -> None:
        """Show nothing."""

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Show nothing."""

    def aside(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing."""
        return contextlib.nullcontext()

    def close(self, status: str, duration: float) -> None:
        """Show nothing."""


class NdjsonRun(QuietRun):
    """A view that writes each event as one line of JSON for `event_from_dict`.

    Args:
        stream: The output stream; by default the current standard output.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._lines = LineWriter(sys.stdout if stream is None else stream)

    @property
    def gone(self) -> bool:
        """Return whether the reader has closed the stream."""
        return self._lines.gone

    def show(self, event: Event) -> None:
        """Write an event."""
        self._lines.write(json_of(event).decode())


class PlainRun(QuietRun):
    """A view that writes one line per change, for logs and pipes.

    Args:
        agent: The name of the agent, if it is known.
        stream: The output stream; standard error by default.
    """

    def __init__(self, agent: str = "", stream: TextIO | None = None) -> None:
        self._tree = RunTree(agent)
        self._lines = LineWriter(stream)
        self._lock = RLock()
        self._last_progress: dict[tuple[str, ...], tuple[ToolProgressEvent, float]] = {}

    def show(self, event: Event) -> None:
        """Write a line if the event changes the state of a call."""
        with self._lock:
            held = self._tree.at(event.path, event.tool_name).held
            node = self._tree.update(event)
            match event:
                case RunItemStreamEvent():
                    self._write_item(cast("RunItemStreamEvent[Any]", event), node, held)
                case NotifyStreamEvent():
                    lines = node.lines_of(event)
                    self._tree.add_lines(node, event, lines)
                    for line in lines:
                        self._write(node, noted(event, line))
                case ToolProgressEvent():
                    self._write_progress(node, event)
                case ToolStreamStartEvent() if not node.by_model:
                    self._write(node, f"called with {arguments_shown(node.arguments)}")
                case ToolStreamEndEvent() if not node.by_model:
                    self._write_end(node)
                case RawResponseStreamEvent():
                    if is_retry(event):
                        self._write(node, retried(event.data))
                case _ if not isinstance(event, _SHOWN_ELSEWHERE):
                    if text := described(event):
                        self._write(node, text)
                case _:
                    pass

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Add the usage to the totals at the end."""
        self._tree.count(path, usage)

    def close(self, status: str, duration: float) -> None:
        """Write the status of the run."""
        with self._lock:
            self._tree.close(status, duration)
            root = self._tree.root
            for node in self._tree.by_path.values():
                self._write_held(node)
            if root.name:  # without an agent, each call has its own last line
                self._write(root, f"{ended_in_words(status)} {self._costs(root)}")

    def _write_item(self, event: RunItemStreamEvent[Any], node: Node, held: str) -> None:
        kind = event.item.get("type")
        if kind in {"function_call", "tool_call"}:
            if held:
                above = self._tree.at(event.path)
                for line in held.rstrip("\n").split("\n"):
                    self._write(above, line)
            self._write(node, f"called with {arguments_shown(node.arguments)}")
        elif event.name == "tool_approval_requested":
            self._write(node, f"waits for approval: {arguments_shown(node.arguments)}")
        elif event.name == "output_refused":
            self._write(node, "the answer did not have the output type; trying again")
        elif event.item.get("in_background"):
            self._write(node, "continues in the background")
        elif kind in {"function_call_output", "tool_call_output"}:
            self._write_end(node)

    def _write_end(self, node: Node) -> None:
        """Write the status of a call, once."""
        if node.is_reported:
            return
        node.is_reported = True
        self._write_held(node)
        status = ended_in_words(node.status)
        result = shorten(" ".join(node.result.split()), 200)
        self._write(node, f"{status} {self._costs(node)}" + (f": {result}" if result else ""))

    def _write_progress(self, node: Node, event: ToolProgressEvent) -> None:
        """Write progress at most once a second for each call, and its completion at once."""
        last = self._last_progress.get(node.path)
        is_due = last is None or time.monotonic() - last[1] >= 1
        if last is not None and event.current == event.total:
            is_due = is_due or last[0].current != last[0].total
        if is_due:
            self._last_progress[node.path] = event, time.monotonic()
            self._write(node, progressed(event))

    def _write_held(self, node: Node) -> None:
        """Write the held text and progress of a call that has ended."""
        for line in node.rest():
            self._write(node, line)
        last = self._last_progress.pop(node.path, None)
        if last is not None and node.progress is not last[0] and node.progress is not None:
            self._write(node, progressed(node.progress))

    def _costs(self, node: Node) -> str:
        used = costs(self._tree.usage(node), requests=not node.path)
        return ", ".join([seconds(node.took), *used])

    def _write(self, node: Node, text: str) -> None:
        self._lines.write(f"{' > '.join(self._tree.names(node))}: {text}")


_SHOWN_ELSEWHERE = (
    MessageEvent,
    NullEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
