"""Iterate over the events of a stream, in memory and in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.persistence.stream.log import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.events.base import Event
    from agents_tools.persistence import EventFilter
    from agents_tools.persistence.stream.log import EventLog

__all__ = ["newest_first", "oldest_first"]


def oldest_first(
    log: EventLog, start: int, stop: int, where: EventFilter | None
) -> Iterator[Event]:
    """Yield the events from `start` to `stop`, both included. Blocks while the store reads."""
    at = max(start, 0)
    while at <= stop:
        events = log.recent(at, PAGE)
        if events is None:
            events, at = log.read_older(at, where, gaps=False).result()
        elif events:
            at = events[-1].id + 1
        else:
            return
        yield from _filter_events(events, start, stop, where)


def newest_first(
    log: EventLog, start: int, stop: int, where: EventFilter | None
) -> Iterator[Event]:
    """Yield the events from `stop` back to `start`, both included. Blocks while it reads."""
    first = log.first_id
    recent = log.recent(first) or []
    unsaved = [event for event in log.unsaved() if event.id < first]
    yield from _filter_events(reversed(recent), start, stop, where)
    yield from _filter_events(reversed(unsaved), start, stop, where)
    before = min([first, stop + 1, *(event.id for event in unsaved)])
    while log.store is not None and before > start:
        page = log.store.read(
            start - 1, before=before, limit=PAGE, reverse=True, where=where
        ).result()
        yield from page
        before = page[-1].id if len(page) == PAGE else start


def _filter_events(
    events: Iterable[Event], start: int, stop: int, where: EventFilter | None
) -> Iterator[Event]:
    for event in events:
        if start <= event.id <= stop and (where is None or where.accepts(event)):
            yield event
