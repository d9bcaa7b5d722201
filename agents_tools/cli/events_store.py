"""Read events from the file of a store, or recover them from a damaged file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from agents_tools.cli.errors import CommandError
from agents_tools.errors import EventStoreError
from agents_tools.persistence import EventFilter, SQLiteEventStore
from agents_tools.persistence.protocol import SessionInfo
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.sqlite.recovery import RecoveredEvents

__all__ = ["StoredEvents", "chosen", "opened", "salvaged"]

_MOST_NAMED = 10


class StoredEvents(Protocol):
    """A source of sessions with events."""

    def sessions(self) -> list[SessionInfo]:
        """Return the sessions in order of their names."""
        ...

    def events(self, sid: str, *types: str) -> list[Event]:
        """Return the events of a session; with types, only the events of these types."""
        ...

    def count(self, sid: str, first: int, last: int | None) -> int:
        """Return the number of events from one id to another, or to the end."""
        ...


@contextmanager
def opened(path: str) -> Generator[StoredEvents]:
    """Open the file of a store for reading.

    Raises:
        CommandError: The file cannot be read.
    """
    try:
        store = SQLiteEventStore(path, read_only=True)
        try:
            yield _StoreFile(store)
        finally:
            store.close()
    except EventStoreError as error:
        raise CommandError(str(error).replace(" PATH ", f" {path} ")) from error


def salvaged(path: str) -> tuple[StoredEvents, list[str]]:
    """Return the readable events of a damaged file, and the problems found."""
    from agents_tools.persistence.sqlite.recovery import salvage

    try:
        found = salvage(path)
    except EventStoreError as error:
        raise CommandError(str(error)) from error
    return _RecoveredStore(found), found.problems


def chosen(source: StoredEvents, path: str, session: str | None) -> SessionInfo:
    """Return the session with this name, or the only session."""
    known = source.sessions()
    names = ", ".join(release_text(one.sid, limit=60) for one in known[:_MOST_NAMED])
    names += ", …" if len(known) > _MOST_NAMED else ""
    if session is not None:
        for one in known:
            if session in {one.sid, release_text(one.sid)}:
                return one
        hint = f"Sessions: {names}." if known else "It is empty."
        raise CommandError(f"no session {session!r} in {path}.", hint=hint)
    if not known:
        raise CommandError(f"no events in {path}.")
    if len(known) > 1:
        raise CommandError(f"{path} has {len(known):,} sessions; name one.", hint=names)
    return known[0]


class _StoreFile:
    def __init__(self, store: SQLiteEventStore) -> None:
        self._store = store

    def sessions(self) -> list[SessionInfo]:
        return self._store.sessions().result()

    def events(self, sid: str, *types: str) -> list[Event]:
        where = EventFilter(types=types) if types else None
        return self._store.session(sid).read(where=where).result()

    def count(self, sid: str, first: int, last: int | None) -> int:
        before = None if last is None else last + 1
        return self._store.session(sid).count(first - 1, before=before).result()


class _RecoveredStore:
    def __init__(self, found: RecoveredEvents) -> None:
        self._events = found.events

    def sessions(self) -> list[SessionInfo]:
        return [_described(sid, self._events[sid]) for sid in sorted(self._events)]

    def events(self, sid: str, *types: str) -> list[Event]:
        return [event for event in self._events[sid] if not types or event.type in types]

    def count(self, sid: str, first: int, last: int | None) -> int:
        return sum(
            event.id >= first and (last is None or event.id <= last) for event in self._events[sid]
        )


def _described(sid: str, events: Sequence[Event]) -> SessionInfo:
    return SessionInfo(
        sid=sid,
        events=len(events),
        first=events[0].timestamp,
        last=events[-1].timestamp,
        last_id=events[-1].id,
        size=0,
    )
