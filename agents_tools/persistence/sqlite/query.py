"""Read events from the tables with the most selective index."""

from __future__ import annotations

from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agents_tools.persistence.sqlite.errors import damaged
from agents_tools.persistence.sqlite.rows import event_of_row

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter

__all__ = ["Range", "count_events", "fetch_blob", "read_events", "stored_rows"]

Row: TypeAlias = tuple[int, int, str, "str | None"]
"""Id, position, body, and the places of large texts."""

_LAST: Final = (1 << 63) - 1
_MICRO: Final = 2e-6
"""The tolerance for times, which are stored in microseconds and compared exactly after the read."""


class Range:
    """A range of ids and its order.

    Args:
        after: Only larger ids.
        before: Only smaller ids.
        reverse: Whether the largest id comes first.
    """

    __slots__ = ("after", "before", "reverse")

    def __init__(
        self, after: int = -1, before: int | None = None, *, reverse: bool = False
    ) -> None:
        self.after = min(max(after, -1), _LAST)
        self.before = _LAST if before is None else min(max(before, -1), _LAST)
        self.reverse = reverse


def read_events(
    connection: sqlite3.Connection,
    path: str,
    sid: str,
    span: Range,
    limit: int | None,
    where: EventFilter | None,
) -> list[Event]:
    """Return the matching events of a log.

    Raises:
        EventStoreCorruptError: An event cannot be read or is missing.
    """
    log = connection.execute("SELECT log FROM log WHERE sid = ?", (sid,)).fetchone()
    events: list[Event] = []
    if log is None or (limit is not None and limit <= 0) or not _may_be(where):
        return events
    step = -1 if span.reverse else 1
    previous: int | None = None
    for number, position, body, large in stored_rows(connection, log[0], span, where):
        if where is None:
            if previous is not None and position != previous + step:
                raise _incomplete(path, sid, abs(position - previous) - 1, number)
            previous = position
        try:
            event = event_of_row(body, large, lambda digest: fetch_blob(connection, digest))
        except (LookupError, TypeError, ValueError) as error:
            raise damaged(
                f"{path} is damaged: event {number} of session {sid!r}: {error}.", path
            ) from error
        if where is None or where.accepts(event):
            events.append(event)
            if len(events) == limit:
                break
    return events


def _may_be(where: EventFilter | None) -> bool:
    """Return whether any event can match the filter.

    Rows contain no lone surrogates and no longer ids.
    """
    if where is None:
        return True
    texts = (where.tool_call_id, where.tool_name, where.run_id, *(where.types or ()))
    try:
        for text in texts:
            str(text).encode()
    except UnicodeEncodeError:
        return False
    return where.cause is None or abs(where.cause) <= _LAST


def count_events(connection: sqlite3.Connection, sid: str, span: Range) -> int:
    """Count the events of a log with these ids."""
    found: tuple[int] = connection.execute(
        "SELECT count(*) FROM event INDEXED BY event_id "
        "WHERE log = (SELECT log FROM log WHERE sid = ?) AND id > ? AND id < ?",
        (sid, span.after, span.before),
    ).fetchone()
    return found[0]


def stored_rows(
    connection: sqlite3.Connection, log: int, span: Range, where: EventFilter | None
) -> Iterator[Row]:
    """Yield candidate rows in order; the caller applies the filter."""
    after, before = span.after, span.before
    if where is not None and (where.since is not None or where.until is not None):
        first, last = _ids_at(connection, log, where)
        if first is None:
            return iter(())
        after, before = max(after, first - 1), min(before, last + 1)
    order = "DESC" if span.reverse else "ASC"
    found = [
        connection.execute(
            f"SELECT id, position, body, large FROM event INDEXED BY {index} "  # noqa: S608 - ours
            f"WHERE log = ? AND id > ? AND id < ?{conditions} ORDER BY id {order}",
            (log, after, before, *values),
        )
        for index, conditions, values in _searches(where)
    ]
    if len(found) == 1:
        return found[0]
    return merge(*found, key=itemgetter(0), reverse=span.reverse)


def fetch_blob(connection: sqlite3.Connection, digest: bytes) -> bytes:
    """Return a large text.

    Raises:
        LookupError: It is missing.
    """
    found = connection.execute("SELECT content FROM blob WHERE digest = ?", (digest,)).fetchone()
    if found is None:
        raise LookupError(f"its large text {digest.hex()[:12]}… is missing")
    content: bytes = found[0]
    return content


def _searches(where: EventFilter | None) -> list[tuple[str, str, tuple[Any, ...]]]:
    """Return the indexes to scan, with their conditions.

    With several types, one scan for each.
    """
    if where is None:
        return [("event_id", "", ())]
    equal: list[tuple[str, Any]] = [
        ("cause", where.cause),
        ("call", where.tool_call_id),
        ("run", where.run_id),
        ("tool", where.tool_name),
        ("hidden", None if where.hidden is None else int(where.hidden)),
    ]
    equal = [(column, value) for column, value in equal if value is not None]
    conditions = "".join(f" AND {column} = ?" for column, _ in equal)
    values = tuple(value for _, value in equal)
    if where.sources is not None:
        conditions += f" AND source IN ({_marks(where.sources)})"
        values += tuple(str(source) for source in where.sources)
    narrow = next((column for column, _ in equal if column in {"cause", "call", "run"}), None)
    if where.types is None:
        return [(f"event_{narrow or 'id'}", conditions, values)]
    if narrow is not None:
        conditions += f" AND type IN ({_marks(where.types)})"
        return [(f"event_{narrow}", conditions, (*values, *where.types))]
    kinds = dict.fromkeys(where.types)
    return [("event_type", f"{conditions} AND type = ?", (*values, kind)) for kind in kinds]


def _ids_at(connection: sqlite3.Connection, log: int, where: EventFilter) -> tuple[int | None, int]:
    """Return the smallest and the largest id in a time range; ids between can be outside it.

    Clocks can run backwards.
    """
    since = -1.0 if where.since is None else where.since - _MICRO
    until = 1e300 if where.until is None else where.until + _MICRO
    first, last = connection.execute(
        "SELECT min(id), max(id) FROM event INDEXED BY event_time "
        "WHERE log = ? AND time >= ? AND time <= ?",
        (log, since, until),
    ).fetchone()
    return first, last


def _marks(values: tuple[object, ...]) -> str:
    return ", ".join("?" * len(values))


def _incomplete(path: str, sid: str, missing: int, number: int) -> Exception:
    count = f"{missing:,} events are" if missing > 1 else "an event is"
    return damaged(
        f"{path} is damaged: {count} missing in session {sid!r} next to event {number}.", path
    )
