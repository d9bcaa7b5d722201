"""Where the events come from that the command line shows: the file of a store, or what is left."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from agents_tools._text import safe_text, shorten
from agents_tools.cli.errors import CommandError
from agents_tools.errors import EventStoreError
from agents_tools.store import EventFilter, SQLiteEventStore
from agents_tools.store._protocol import SessionInfo

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from agents_tools.events import Event
    from agents_tools.store._sqlite_salvage import Salvaged

__all__ = ["Source", "chosen", "opened", "salvaged"]

_MOST_NAMED = 10


class Source(Protocol):
    """Sessions with events."""

    def sessions(self) -> list[SessionInfo]:
        """List them by name."""
        ...

    def events(self, sid: str, *types: str) -> list[Event]:
        """Give the events of one of them, of these types only if any are given."""
        ...

    def count(self, sid: str, first: int, last: int | None) -> int:
        """Count the events from one id to another, or to the end."""
        ...


@contextmanager
def opened(path: str) -> Generator[Source]:
    """Open the file of a store for reading; what goes wrong ends the command."""
    try:
        store = SQLiteEventStore(path, read_only=True)
        try:
            yield _Stored(store)
        finally:
            store.close()
    except EventStoreError as error:
        raise CommandError(str(error).replace(" PATH ", f" {path} ")) from error


def salvaged(path: str) -> tuple[Source, list[str]]:
    """Read what is left of the file of a store; also gives what could not be read."""
    from agents_tools.store._sqlite_salvage import salvage

    try:
        found = salvage(path)
    except EventStoreError as error:
        raise CommandError(str(error)) from error
    return _Left(found), found.problems


def chosen(source: Source, path: str, session: str | None) -> SessionInfo:
    """Give the session that is meant: the one named, or the only one."""
    known = source.sessions()
    names = ", ".join(shorten(safe_text(one.sid), 60) for one in known[:_MOST_NAMED])
    names += ", …" if len(known) > _MOST_NAMED else ""
    if session is not None:
        for one in known:
            if session in {one.sid, safe_text(one.sid)}:
                return one
        hint = f"There are: {names}." if known else "It is empty."
        raise CommandError(f"there is no session {session!r} in {path}.", hint=hint)
    if not known:
        raise CommandError(f"there are no events in {path}.")
    if len(known) > 1:
        raise CommandError(f"{path} has {len(known):,} sessions; name one.", hint=names)
    return known[0]


class _Stored:
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


class _Left:
    def __init__(self, found: Salvaged) -> None:
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
