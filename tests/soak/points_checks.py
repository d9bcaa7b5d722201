"""Looks at what is left when a scenario is over: tasks, threads, files, processes, complaints."""

from __future__ import annotations

import gc
import io
import logging
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents_tools import Event
from agents_tools.events import RunStartedEvent
from agents_tools.testing import EventLawError, check_events

__all__ = ["Belongings", "Complaints", "complaints", "faults_of_events"]

_POOLS = ("agents-tools", "asyncio_", "AnyIO worker", "pytest_timeout", "MainThread")
_GRACE = 2.0


class Complaints(logging.Handler):
    """What was written, logged or warned of while nobody should have had a reason to.

    Attributes:
        said: What it was.
        logged: What the package itself has logged, which it may where a fault is the user's.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        self.logged: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take what is logged."""
        into = self.logged if record.name.startswith("agents_tools") else self.said
        error = record.exc_info[1] if record.exc_info else None
        into.append(f"{record.getMessage()} {error or ''}".strip())

    def of_loop(self, _: Any, context: dict[str, Any]) -> None:
        """Take what an event loop complains of."""
        self.said.append(f"the loop: {context.get('message')}: {context.get('exception')!r}")


@contextmanager
def complaints() -> Generator[Complaints]:
    """Collect the output, log records and warnings inside the block."""
    heard = Complaints()
    root, before = logging.getLogger(), (sys.stderr, sys.unraisablehook, threading.excepthook)
    level = root.level
    root.addHandler(heard)
    sys.stderr = written = io.StringIO()
    sys.unraisablehook = lambda one: heard.said.append(
        f"unraisable: {one.exc_value!r} {one.object!r}"
    )
    threading.excepthook = lambda one: heard.said.append(f"a thread: {one.exc_value!r}")
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield heard
            gc.collect(1)
        heard.said += [f"{one.category.__name__}: {one.message}" for one in warned]
        if written.getvalue():
            heard.said.append(f"on stderr: {written.getvalue()[-300:]}")
    finally:
        root.removeHandler(heard)
        root.setLevel(level)
        sys.stderr, sys.unraisablehook, threading.excepthook = before


class Belongings:
    """What this process has at one moment: threads, open files and child processes."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._files = _files()
        self._children = _children()

    def new(self) -> Iterator[str]:
        """Yield what has come since, and does not go within a moment."""
        until = time.monotonic() + _GRACE
        while found := list(self.found()):
            if time.monotonic() >= until:
                yield from found
                return
            time.sleep(0.005)

    def found(self) -> Iterator[str]:
        """Yield what has come since and is there now."""
        for thread in set(threading.enumerate()) - self._threads:
            if not thread.name.startswith(_POOLS):
                yield f"the thread {thread.name} is left"
        for name, target in _files() - self._files:
            yield f"the file {name} is left open: {target}"
        for pid in _children() - self._children:
            yield f"the process {pid} is left"


def _files() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return found
    for entry in folder.iterdir():
        try:
            found.add((entry.name, str(entry.readlink())))
        except OSError:
            continue  # that of the listing itself
    return found


def _children() -> set[str]:
    found: set[str] = set()
    for entry in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(entry.read_text().split())
        except OSError:
            continue
    return found


def faults_of_events(events: list[Event]) -> Iterator[str]:
    """Yield which law of events is broken; calls that belong to no run are told apart."""
    runs, groups = 0, dict[object, list[Event]]()
    for event in events:
        runs += isinstance(event, RunStartedEvent) and not event.path
        groups.setdefault(runs or event.path[:1], []).append(event)
    for group in groups.values():
        try:
            check_events(group)
        except EventLawError as error:
            yield str(error)
