"""Read the sessions of a run store, their runs and their events."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents_tools.cli.errors import CommandError
from agents_tools.cli.events_runs import BOUNDS, RecordedRun, runs_of
from agents_tools.errors import EventStoreError
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.persistence import EventFilter, open_run_store
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.events.base import Event
    from agents_tools.persistence import RunInfo, RunStore

__all__ = ["StoredEvents", "StoredSession", "chosen", "opened"]

_MOST_NAMED = 10
_PAUSE = 1.0
"""How long one wait for new events lasts, in seconds; the end of a run is checked after it."""


@dataclass(slots=True)
class StoredSession:
    """A session with its logs, oldest first. A log without a session is a session of its own."""

    name: str
    logs: list[RunInfo] = field(default_factory=list["RunInfo"])

    @property
    def first(self) -> float | None:
        """The time of the first event."""
        return min((log.started for log in self.logs if log.started), default=None)

    @property
    def last(self) -> float | None:
        """The time of the last event."""
        return max((log.updated for log in self.logs if log.updated), default=None)


class StoredEvents:
    """The sessions of an open store.

    Args:
        store: The store.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def sessions(self) -> list[StoredSession]:
        """Return the sessions in order of their names."""
        found: dict[str, StoredSession] = {}
        for info in self._store.logs().result():
            name = info.run_id if info.session is None else info.session
            found.setdefault(name, StoredSession(name)).logs.append(info)
        return [found[name] for name in sorted(found)]

    def events(self, log: RunInfo) -> list[Event]:
        """Return the events of a log, without the internal records."""
        events = self._store.log(log.run_id).read().result()
        return [event for event in events if not isinstance(event, RunRecordEvent)]

    def runs(self, session: StoredSession) -> list[RecordedRun]:
        """Return the runs of a session, oldest first."""
        return [run for log in session.logs for run in self._runs_of(log)]

    def _runs_of(self, log: RunInfo) -> list[RecordedRun]:
        if log.status is None:
            return runs_of(self.events(log), log)
        where = EventFilter(types=BOUNDS)
        bounds = self._store.log(log.run_id).read(where=where).result()
        error = next((run.error for run in reversed(runs_of(bounds, log)) if run.error), None)
        has_ended = log.status not in {"running", "interrupted"}
        return [
            RecordedRun(
                id=log.run_id,
                agent=log.agent or "?",
                status="orphaned" if log.is_orphaned else log.status,
                started=log.started or 0.0,
                ended=log.updated if has_ended else None,
                log=log,
                events=log.events,
                error=error,
            )
        ]

    def events_of(self, session: StoredSession, run: RecordedRun | None) -> list[Event]:
        """Return the events of a run; of all runs of the session if the run is `None`."""
        if run is None:
            return [event for log in session.logs for event in self.events(log)]
        return [event for event in self.events(run.log) if run.has(event)]

    def follow(self, log: RunInfo) -> Generator[Event]:
        """Yield the events of a log, and wait for new ones until its run ends."""
        handle, last = self._store.log(log.run_id), -1
        while True:
            info = self._store.run(log.run_id).result()
            has_ended = info is not None and info.status != "running"
            events = handle.read(last).result()
            for event in events:
                last = event.id
                if not isinstance(event, RunRecordEvent):
                    yield event
            if has_ended:
                return
            waiting = handle.wait(last)
            try:
                waiting.result(_PAUSE)
            except TimeoutError:
                waiting.cancel()


@contextmanager
def opened(place: str) -> Generator[StoredEvents]:
    """Open the store at a path or address for reading.

    Raises:
        CommandError: The store cannot be read.
    """
    try:
        with open_run_store(place, read_only=True) as store:
            yield StoredEvents(store)
    except EventStoreError as error:
        raise CommandError(str(error).replace(" PATH ", f" {place} ")) from error


def chosen(source: StoredEvents, place: str, session: str | None) -> StoredSession:
    """Return the session with this name, or the only session."""
    known = source.sessions()
    names = ", ".join(release_text(one.name, limit=60) for one in known[:_MOST_NAMED])
    names += ", …" if len(known) > _MOST_NAMED else ""
    if session is not None:
        for one in known:
            if session in {one.name, release_text(one.name)}:
                return one
        hint = f"Sessions: {names}." if known else "It is empty."
        raise CommandError(f"no session {session!r} in {place}.", hint=hint)
    if not known:
        raise CommandError(f"no events in {place}.")
    if len(known) > 1:
        raise CommandError(f"{place} has {len(known):,} sessions; name one.", hint=names)
    return known[0]
