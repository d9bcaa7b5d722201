"""The tracebacks of failed calls and runs, for the developer of the tools."""

from __future__ import annotations

import linecache
import traceback
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools.errors import AgentsToolsError
from agents_tools.events.kinds import ToolStreamEndEvent
from agents_tools.events.listener import add_global_listener
from agents_tools.playground.target_state import is_own, short_place
from agents_tools.text.output import release_text
from agents_tools.tool.call import RunScope, current_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agents_tools.events.base import Event

__all__ = ["Tracebacks"]

_MAX_RUNS = 100
_MAX_ERRORS = 50
"""The largest number of errors of one run."""
_MAX_FRAMES = 50
_AROUND = 2
"""The lines of source before and after the line of a frame."""
_EXPECTED = {"invalid_args", "denied", "overloaded"}
"""The statuses of calls whose errors have no frames of the tool."""


class Tracebacks:
    """Keeps the errors of the runs of this process, in memory.

    Args:
        on_error: Called with each error.
    """

    def __init__(self, on_error: Callable[[BaseException], object] | None = None) -> None:
        self._on_error = on_error
        self._errors: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()
        self._stop: Callable[[], None] | None = None

    def start(self) -> None:
        """Start to receive the errors of calls."""
        self._stop = add_global_listener(self._receive)

    def close(self) -> None:
        """Stop receiving errors."""
        if self._stop is not None:
            self._stop()

    def of_run(self, run_id: str) -> list[dict[str, Any]]:
        """Return the errors of a run as JSON, oldest first.

        Each one has the `path` of its call and its `errors`: the exception and those that it was
        raised from, with `type`, `message` and `frames`.
        """
        return list(self._errors.get(run_id, ()))

    def add(self, run_id: str, path: Sequence[str], error: BaseException) -> None:
        """Add the error of a call, or of the run if the path is empty.

        An error of the library that no code of the user is part of is left out: its message says
        everything.
        """
        described = [_described(one) for one in _chain(error)]
        is_own_error = any(frame["own"] for one in described for frame in one["frames"])
        if not is_own_error and isinstance(error, AgentsToolsError):
            return
        known = self._errors.setdefault(run_id, [])
        if any(one["errors"] == described for one in known):  # it has ended the run, too
            return
        if len(known) < _MAX_ERRORS:
            known.append({"path": list(path), "errors": described})
        while len(self._errors) > _MAX_RUNS:
            self._errors.popitem(last=False)
        if self._on_error is not None:
            self._on_error(error)

    def forget(self, run_id: str) -> None:
        """Delete the errors of a run."""
        self._errors.pop(run_id, None)

    def _receive(self, event: Event) -> None:
        call = current_call()
        if not isinstance(event, ToolStreamEndEvent) or event.status in _EXPECTED or call is None:
            return
        outcome = call.outcome
        if call.path != event.path or outcome is None or outcome.error is None:
            return
        scopes = [one.run_id for one in call.ancestors if isinstance(one, RunScope)]
        if scopes and scopes[-1] is not None:
            self.add(scopes[-1], event.path, outcome.error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return an error and those it was raised from; without those of the library around them."""
    shown: BaseException | None = error
    while shown is not None:
        before = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
        if before is None or not isinstance(shown, AgentsToolsError):
            yield shown
        shown = before


def _described(error: BaseException) -> dict[str, Any]:
    """Return an error as JSON, with the frames from the first one of the user on."""
    frames = [_frame(frame) for frame in traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]]
    first = next((number for number, frame in enumerate(frames) if frame["own"]), 0)
    return {
        "type": type(error).__qualname__,
        "message": release_text(str(error), patterns=True),
        "frames": frames[first:],
    }


def _frame(frame: traceback.FrameSummary) -> dict[str, Any]:
    """Return a frame as JSON; `own` frames have source, from the line `first` on."""
    line, own = frame.lineno or 0, is_own(frame.filename)
    first = max(1, line - _AROUND)
    source = linecache.getlines(frame.filename)[first - 1 : line + _AROUND] if own else []
    while source and not source[-1].strip():
        source.pop()
    return {
        "file": release_text(short_place(frame.filename)),
        "path": release_text(str(Path(frame.filename).absolute())),
        "line": line,
        "function": frame.name,
        "own": own,
        "first": first,
        "source": [release_text(text.rstrip("\n"), patterns=True) for text in source],
    }
