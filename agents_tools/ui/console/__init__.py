"""Show tools and agents on a terminal, in a log or in a notebook while they run.

A terminal shows a live tree of agents and calls with progress bars, times and tokens. Elsewhere,
each change is a line. The output goes to standard error, so that standard output is free for the
program.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events.kinds import RunFinishedEvent, RunStartedEvent, ToolStreamEndEvent
from agents_tools.persistence.stream.masking import EventMasker
from agents_tools.ui.console.text_views import RunView, choose_run_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Self, TextIO

    from agents_tools.events.base import Event

__all__ = ["Console", "View", "render"]

logger = logging.getLogger("agents_tools")

View: TypeAlias = Literal["auto", "live", "plain", "ndjson", "notebook", "none"]
"""How events are shown.

`auto` is `notebook` in a notebook, `live` on an interactive terminal if Rich (the extra `cli`) is
installed, and `plain` otherwise. `ndjson` writes each event as a line of JSON.
"""


class Console:
    """A sink that shows published events. Use it as `RunConfig(event_stream=...)`.

    Args:
        view: How events are shown.
        file: The output file; standard error by default.
        name: The name to show if the events have none.

    Raises:
        UserError: The view is unknown.
    """

    def __init__(self, *, view: View = "auto", file: TextIO | None = None, name: str = "") -> None:
        self._view = _view_of(view, file, name)
        self._started = time.monotonic()
        self._status: str | None = None
        self._is_run = False
        self._closed = False
        self._is_open = False
        self._has_failed = False
        self._lock = threading.Lock()
        self._masker = EventMasker({})

    def publish(self, event: Event, /) -> None:
        """Show an event with masked secrets, from any thread."""
        with self._lock:
            if self._closed:
                return
            if not self._is_open:
                self._is_open = True
                self._view.open()
        self._note_status(event)
        with self._masker.lock:
            for one in self._masker.masked(event):
                self._show(one)

    def _show(self, event: Event) -> None:
        try:
            self._view.show(event)
        except Exception as error:  # noqa: BLE001 - an error of the view must not stop the run
            if not self._has_failed:
                self._has_failed = True
                logger.warning("%r cannot be shown: %s", event, error)

    def _note_status(self, event: Event) -> None:
        if isinstance(event, RunFinishedEvent) and not event.path:
            self._status = event.status
        elif isinstance(event, RunStartedEvent) and not event.path:
            self._is_run, self._status = True, None
        elif isinstance(event, ToolStreamEndEvent) and len(event.path) == 1 and not self._is_run:
            self._status = event.status if self._status in {None, "ok"} else self._status

    def close(self, status: str | None = None) -> None:
        """Show the final state. It can be called again.

        Args:
            status: The status to show if the events have none.
        """
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            with self._masker.lock:
                for one in self._masker.release():
                    self._show(one)
            self._view.close(self._status or status or "ok", time.monotonic() - self._started)

    def __enter__(self) -> Self:
        """Return the console itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the console. Show how the block ended if the events have no status."""
        self.close(_status_of(kind))


async def render(
    events: object, *, view: View = "auto", file: TextIO | None = None, name: str = ""
) -> None:
    """Show events while they arrive, until the last one.

    Args:
        events: A run (`Runner.run_streamed(...)`), the stream of a call (`tool.stream(...)`), an
            `EventStream`, or any iterable of events, asynchronous or not.
        view: How events are shown.
        file: The output file; standard error by default.
        name: The name to show if the events have none.

    Raises:
        UserError: The value has no events, or the view is unknown.
        Exception: The exception that reading the events raises, such as the error of the run.
    """
    with Console(view=view, file=file, name=name) as console:
        async for event in _each(events):
            console.publish(event)


def _each(events: Any) -> AsyncIterator[Event]:
    for method in ("stream_events", "follow"):
        if callable(getattr(events, method, None)):
            return cast("AsyncIterator[Event]", getattr(events, method)())
    if hasattr(events, "__aiter__"):
        return cast("AsyncIterator[Event]", events)
    if hasattr(events, "__iter__") and not isinstance(events, str | bytes):
        return _replayed(events)
    raise UserTypeError(
        "console.render(events): expected a run, the stream of a call, an EventStream or an "
        f"iterable of events, got {type(events).__name__}."
    )


async def _replayed(events: Iterable[Event]) -> AsyncIterator[Event]:
    for event in events:
        yield event


def _status_of(kind: type[BaseException] | None) -> str | None:
    if kind is None:
        return None
    stopped = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
    return "cancelled" if issubclass(kind, stopped) else "error"


def _view_of(view: str, file: TextIO | None, name: str) -> RunView:
    if view not in get_args(View):
        raise UserValueError(
            f"view= is unknown: expected one of {', '.join(get_args(View))}, got {view!r:.60}."
        )
    if view == "notebook" or (view == "auto" and file is None and _in_notebook()):
        from agents_tools.ui.console.notebook import NotebookRun

        return NotebookRun(name)
    return choose_run_view(view, name, file if view != "ndjson" else file or sys.stderr)


def _in_notebook() -> bool:
    """Return whether the program runs in a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None
