"""Find the runs of a log from their start and end events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents_tools.cli.errors import CommandError
from agents_tools.events.kinds import RunFinishedEvent, RunStartedEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence import RunInfo

__all__ = ["BOUNDS", "RecordedRun", "run_called", "runs_of", "when"]

BOUNDS = (RunStartedEvent.type, RunFinishedEvent.type)
"""The types of the events that mark the start and the end of runs."""


@dataclass(slots=True, kw_only=True)
class RecordedRun:
    """One run of a session, including its continuation after an approval.

    Attributes:
        id: The id of the run.
        agent: The name of the agent.
        status: The final status; `unfinished` without an end event, `orphaned` if the process of a
            run has ended.
        started: The time of the start, in seconds since 1970.
        ended: The time of the end, in seconds since 1970.
        log: The log with its events.
        first: The id of the first event.
        last: The id of the last event; `None` if the end is unknown.
        events: The number of events.
        error: The error that ended the run.
    """

    id: str
    agent: str
    status: str
    started: float
    ended: float | None
    log: RunInfo
    first: int = 0
    last: int | None = None
    events: int = 0
    error: str | None = None

    @property
    def duration(self) -> float | None:
        """The duration in seconds; 0 if the clock was set back."""
        return None if self.ended is None else max(0.0, self.ended - self.started)

    def has(self, event: Event) -> bool:
        """Return whether an event of the log is part of the run."""
        return event.id >= self.first and (self.last is None or event.id <= self.last)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON."""
        return {
            "id": self.id,
            "agent": self.agent,
            "status": self.status,
            "started": when(self.started),
            "duration": self.duration,
            "events": self.events,
            "error": self.error,
        }


def runs_of(events: Iterable[Event], log: RunInfo) -> list[RecordedRun]:
    """Find the runs in a log; runs inside of calls are part of the outer run."""
    runs: list[RecordedRun] = []
    for event in events:
        if isinstance(event, RunStartedEvent) and not event.path:
            _begin(runs, event, log)
        if runs and runs[-1].has(event):
            runs[-1].events += 1
        if event.path:
            continue
        if isinstance(event, RunFinishedEvent) and runs:
            runs[-1].status, runs[-1].error = event.status, event.error
            runs[-1].ended, runs[-1].last = event.timestamp, event.id
    return runs


def _begin(runs: list[RecordedRun], event: RunStartedEvent, log: RunInfo) -> None:
    if runs and runs[-1].id == event.run_id and runs[-1].status == "interrupted":
        runs[-1].status, runs[-1].ended, runs[-1].last = "unfinished", None, None
        return
    if runs and runs[-1].last is None:
        runs[-1].last = event.id - 1
    runs.append(
        RecordedRun(
            id=event.run_id or f"run at event {event.id}",
            agent=event.agent or "?",
            status="unfinished",
            started=event.timestamp,
            ended=None,
            log=log,
            first=event.id,
        )
    )


def run_called(runs: Sequence[RecordedRun], name: str) -> RecordedRun:
    """Return the run with this id, or the only run whose id begins with it."""
    exact = [run for run in runs if run.id == name]
    found = exact or [run for run in runs if run.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    why = "there is no run" if not found else f"{len(found)} runs have an id that begins with"
    hint = f"Runs: {', '.join(run.id for run in runs[:10])}." if runs else None
    raise CommandError(f"{why} {name!r} in this session.", hint=hint)


def when(timestamp: float | None) -> str | None:
    """Return a time as text, in UTC; `None` if it is not a valid time."""
    if not timestamp:
        return None
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
