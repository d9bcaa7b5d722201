"""Views of a run in lines, and the choice of a view for a stream."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools._text import shorten
from agents_tools.events import (
    Event,
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
from agents_tools.ui._lines import Lines
from agents_tools.ui._run_tree import (
    Node,
    RunTree,
    arguments_shown,
    costs,
    ended_in_words,
    is_retry,
    retried,
)
from agents_tools.ui._terminal import is_lively
from agents_tools.ui._words import described, noted, progressed, seconds

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import TextIO

    from agents_tools.usage import Usage

__all__ = ["NdjsonRun", "PlainRun", "QuietRun", "RunView", "choose_run_view"]


class RunView(Protocol):
    """Shows the events of a run. Any thread may call `hear`."""

    def open(self) -> None:
        """Show that the run goes on: it takes longer than a moment."""
        ...

    def hear(self, event: Event) -> None:
        """Show an event."""
        ...

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Take what one answer of a model has used.

        Args:
            path: The place of the agent that asked.
            usage: What it used.
        """
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Leave the screen to a question for as long as the block runs."""
        ...

    def close(self, status: str, duration: float) -> None:
        """Show how the run ended: `ok`, `interrupted`, `error`, `timeout` or `cancelled`."""
        ...


def choose_run_view(wanted: str, agent: str = "", stream: TextIO | None = None) -> RunView:
    """Give the view that was asked for, or that suits a stream.

    Args:
        wanted: `auto`, `live`, `plain`, `ndjson` or `none`.
        agent: The name of the agent that runs, where it is known.
        stream: Where it goes; standard error by default.
    """
    if wanted == "none":
        return QuietRun()
    if wanted == "ndjson":
        return NdjsonRun(stream)
    if wanted == "live" or (wanted == "auto" and is_lively(stream or sys.stderr)):
        try:
            from agents_tools.ui._live_run import LiveRun
        except ModuleNotFoundError:  # Rich is not there
            return PlainRun(agent, stream)
        return LiveRun(agent, stream)
    return PlainRun(agent, stream)


class QuietRun:
    """Shows nothing."""

    def open(self) -> None:
        """Show nothing."""

    def hear(self, event: Event) -> None:
        """Show nothing."""

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Show nothing."""

    def aside(self) -> AbstractContextManager[None]:
        """Leave the screen as it is."""
        return contextlib.nullcontext()

    def close(self, status: str, duration: float) -> None:
        """Show nothing."""


class NdjsonRun(QuietRun):
    """Writes each event as one line of JSON, as `event_from_dict` reads it.

    Args:
        stream: Where the lines go; standard output, as it is now, by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._lines = Lines(sys.stdout if stream is None else stream)

    @property
    def gone(self) -> bool:
        """Whether the reader has gone."""
        return self._lines.gone

    def hear(self, event: Event) -> None:
        """Write an event."""
        self._lines.write(json.dumps(event.to_dict(), separators=(",", ":")))


class PlainRun(QuietRun):
    """Writes one line per change, for logs and pipes.

    Args:
        agent: The agent that runs, where that is known.
        stream: Where the lines go; standard error by default.
    """

    def __init__(self, agent: str = "", stream: TextIO | None = None) -> None:
        self._tree = RunTree(agent)
        self._lines = Lines(stream)
        self._lock = RLock()
        self._shown: dict[tuple[str, ...], tuple[ToolProgressEvent, float]] = {}

    def hear(self, event: Event) -> None:
        """Write a line, if something changed."""
        with self._lock:
            held = self._tree.at(event.path, event.tool_name).held
            node = self._tree.hear(event)
            match event:
                case RunItemStreamEvent():
                    self._tell_item(cast("RunItemStreamEvent[Any]", event), node, held)
                case NotifyStreamEvent():
                    lines = node.lines_of(event)
                    self._tree.say(node, event, lines)
                    for line in lines:
                        self._write(node, noted(event, line))
                case ToolProgressEvent():
                    self._tell_progress(node, event)
                case ToolStreamStartEvent() if not node.by_model:
                    self._write(node, f"called with {arguments_shown(node.arguments)}")
                case ToolStreamEndEvent() if not node.by_model:
                    self._tell_end(node)
                case RawResponseStreamEvent():
                    if is_retry(event):
                        self._write(node, retried(event.data))
                case _ if not isinstance(event, _SHOWN_OTHERWISE):
                    if text := described(event):
                        self._write(node, text)
                case _:
                    pass

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Count it, for the end."""
        self._tree.count(path, usage)

    def close(self, status: str, duration: float) -> None:
        """Say how the run ended."""
        with self._lock:
            self._tree.close(status, duration)
            root = self._tree.root
            for node in self._tree.by_path.values():
                self._rest(node)
            if root.name:  # else each call has said so
                self._write(root, f"{ended_in_words(status)} {self._costs(root)}")

    def _tell_item(self, event: RunItemStreamEvent[Any], node: Node, held: str) -> None:
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
            self._write(node, "the answer was not of the type asked for; asking again")
        elif kind in {"function_call_output", "tool_call_output"}:
            self._tell_end(node)

    def _tell_end(self, node: Node) -> None:
        """Write how a call ended, once."""
        if node.is_told:
            return
        node.is_told = True
        self._rest(node)
        said = ended_in_words(node.status)
        result = shorten(" ".join(node.result.split()), 200)
        self._write(node, f"{said} {self._costs(node)}" + (f": {result}" if result else ""))

    def _tell_progress(self, node: Node, event: ToolProgressEvent) -> None:
        """Write progress, at most once a second for each call, but its completion at once."""
        shown = self._shown.get(node.path)
        news = shown is None or time.monotonic() - shown[1] >= 1
        if shown is not None and event.current == event.total:
            news = news or shown[0].current != shown[0].total
        if news:
            self._shown[node.path] = event, time.monotonic()
            self._write(node, progressed(event))

    def _rest(self, node: Node) -> None:
        """Write what was held back of a call that has ended."""
        for line in node.rest():
            self._write(node, line)
        shown = self._shown.pop(node.path, None)
        if shown is not None and node.progress is not shown[0] and node.progress is not None:
            self._write(node, progressed(node.progress))

    def _costs(self, node: Node) -> str:
        used = costs(self._tree.usage(node), requests=not node.path)
        return ", ".join([seconds(node.took), *used])

    def _write(self, node: Node, text: str) -> None:
        self._lines.write(f"{' > '.join(self._tree.names(node))}: {text}")


_SHOWN_OTHERWISE = (
    MessageEvent,
    NullEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
