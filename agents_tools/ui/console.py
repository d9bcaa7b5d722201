"""Watch tools and agents on a terminal, in a log or in a notebook.

On a terminal a tree of agents and calls is drawn anew while they work, with bars, times and tokens;
elsewhere each change is a line. Everything goes to standard error, so that standard output stays
the program's own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from agents_tools._secrets import has_secrets
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events import RunFinishedEvent, RunStartedEvent, ToolStreamEndEvent
from agents_tools.stream._masking import Masker
from agents_tools.ui._run_views import RunView, choose_run_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Self, TextIO

    from agents_tools.events import Event

__all__ = ["Console", "View", "render"]

logger = logging.getLogger("agents_tools")

View: TypeAlias = Literal["auto", "live", "plain", "ndjson", "notebook", "none"]
"""How events are shown.

`auto`: `notebook` in a notebook, `live` on a terminal that can be drawn over and where Rich (the
extra `cli`) is there, else `plain`. `ndjson` writes each event as a line of JSON.
"""


class Console:
    """Shows the events that are published on it; usable as `RunConfig(event_stream=...)`.

    Args:
        view: How they are shown.
        file: Where they are shown; standard error by default.
        name: What runs, where its events do not say it.

    Raises:
        UserError: There is no such view.
    """

    def __init__(self, *, view: View = "auto", file: TextIO | None = None, name: str = "") -> None:
        self._shown = _view_of(view, file, name)
        self._begun = time.monotonic()
        self._status: str | None = None
        self._is_run = False
        self._closed = False
        self._is_open = False
        self._has_failed = False
        self._lock = threading.Lock()
        self._masker = Masker({})

    def publish(self, event: Event, /) -> None:
        """Show an event, without secrets; callable from any thread."""
        with self._lock:
            if self._closed:
                return
            if not self._is_open:
                self._is_open = True
                self._shown.open()
        self._note_status(event)
        if not (has_secrets() or self._masker.is_needed):
            self._show(event)
            return
        with self._masker.lock:
            for one in self._masker.clean(event):
                self._show(one)

    def _show(self, event: Event) -> None:
        try:
            self._shown.hear(event)
        except Exception as error:  # noqa: BLE001 - what is watched does not fail because of that
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
        """Leave what was shown as it is in the end; safe to call again.

        Args:
            status: How it ended, where the events have not said so.
        """
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            with self._masker.lock:
                for one in self._masker.release():
                    self._show(one)
            self._shown.close(self._status or status or "ok", time.monotonic() - self._begun)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close it, and tell how the block ended where the events have not."""
        self.close(_status_of(kind))


async def render(
    events: Any, *, view: View = "auto", file: TextIO | None = None, name: str = ""
) -> None:
    """Show events as they come, to their end.

    Args:
        events: A run (`Runner.run_streamed(...)`), the stream of a call (`tool.stream(...)`), an
            `EventStream`, or any iterable of events, asynchronous or not.
        view: How they are shown.
        file: Where they are shown; standard error by default.
        name: What runs, where its events do not say it.

    Raises:
        UserError: These are no events, or there is no such view.
        Exception: What reading the events raises, such as the error of the run.
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
        "console.render shows a run, the stream of a call, an EventStream or an iterable of "
        f"events, not {type(events).__name__}."
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
        raise UserValueError(f"view= is one of {', '.join(get_args(View))}, not {view!r:.60}.")
    if view == "notebook" or (view == "auto" and file is None and _in_notebook()):
        from agents_tools.ui._notebook import NotebookRun

        return NotebookRun(name)
    return choose_run_view(view, name, file if view != "ndjson" else file or sys.stderr)


def _in_notebook() -> bool:
    """Whether this is a notebook, whose pages show what IPython displays."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None
