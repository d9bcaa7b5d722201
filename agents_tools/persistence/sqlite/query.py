"""Read events from the tables, with the index that visits the fewest rows."""

from __future__ import annotations

from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agents_tools.persistence.sqlite.errors import corrupt_error
from agents_tools.persistence.sqlite.rows import event_of_row

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter

__all__ = ["Range", "count_events", "fetch_blob", "read_events", "stored_rows"]

Row: TypeAlias = tuple[int, int, str, "str | None"]
"""The id, the position, the body and the references to large texts of an event."""

_LAST: Final = (1 << 63) - 1
_MICRO: Final = 2e-6
"""The tolerance for times in a query, in seconds.

The stored JSON has whole microseconds; `EventFilter.accepts` compares the times of events exactly.
"""


class Range:
    """A range of ids and the order of reading.

    Args:
        after: The range has only larger ids.
        before: The range has only smaller ids.
        reverse: Whether to read the largest id first.
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
    """Return the events of a log that match the range and the filter.

    Raises:
        EventStoreCorruptError: An event cannot be read, or one is missing between two others.
    """
    log = connection.execute("SELECT log FROM log WHERE sid = ?", (sid,)).fetchone()
    events: list[Event] = []
    if log is None or (limit is not None and limit <= 0) or not _can_match(where):
        return events
    step = -1 if span.reverse else 1
    previous: int | None = None
    for number, position, body, large in stored_rows(connection, log[0], span, where):
        if where is None:
            if previous is not None and position != previous + step:
                raise _missing_events_error(path, sid, abs(position - previous) - 1, number)
            previous = position
        try:
            event = event_of_row(body, large, lambda digest: fetch_blob(connection, digest))
        except (LookupError, TypeError, ValueError) as error:
            raise corrupt_error(
                f"{path} is damaged: event {number} of session {sid!r}: {error}.", path
            ) from error
        if where is None or where.accepts(event):
            events.append(event)
            if len(events) == limit:
                break
    return events


def _can_match(where: EventFilter | None) -> bool:
    """Return whether an event can match.

    SQLite rejects a text with a lone surrogate and an integer of more than 64 bits as a parameter,
    and no stored event has one.
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
    """Return the number of events of a log in a range."""
    row: tuple[int] = connection.execute(
        "SELECT count(*) FROM event INDEXED BY event_id "
        "WHERE log = (SELECT log FROM log WHERE sid = ?) AND id > ? AND id < ?",
        (sid, span.after, span.before),
    ).fetchone()
    return row[0]


def stored_rows(
    connection: sqlite3.Connection, log: int, span: Range, where: EventFilter | None
) -> Iterator[Row]:
    """Return the rows that can match, in order.

    The conditions are wider than the filter, so check each event with `EventFilter.accepts`.
    """
    after, before = span.after, span.before
    if where is not None and (where.since is not None or where.until is not None):
        first, last = _id_range(connection, log, where)
        if first is None:
            return iter(())
        after, before = max(after, first - 1), min(before, last + 1)
    order = "DESC" if span.reverse else "ASC"
    results = [
        connection.execute(
            f"SELECT id, position, body, large FROM event INDEXED BY {index} "  # noqa: S608 - ours
            f"WHERE log = ? AND id > ? AND id < ?{conditions} ORDER BY id {order}",
            (log, after, before, *values),
        )
        for index, conditions, values in _queries(where)
    ]
    if len(results) == 1:
        return results[0]
    return merge(*results, key=itemgetter(0), reverse=span.reverse)


def fetch_blob(connection: sqlite3.Connection, digest: bytes) -> bytes:
    """Return a large text by its hash.

    Raises:
        LookupError: It is missing.
    """
    row = connection.execute("SELECT content FROM blob WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        raise LookupError(f"its large text {digest.hex()[:12]}… is missing")
    content: bytes = row[0]
    return content


def _queries(where: EventFilter | None) -> list[tuple[str, str, tuple[Any, ...]]]:
    """Return the queries for a filter: an index, further conditions and their values each.

    A filter with several types needs one query for each type, unless a narrower index fits.
    """
    if where is None:
        return [("event_id", "", ())]
    columns: list[tuple[str, Any]] = [
        ("cause", where.cause),
        ("call", where.tool_call_id),
        ("run", where.run_id),
        ("tool", where.tool_name),
        ("hidden", None if where.hidden is None else int(where.hidden)),
    ]
    equal = [(column, value) for column, value in columns if value is not None]
    conditions = "".join(f" AND {column} = ?" for column, _ in equal)
    values = tuple(value for _, value in equal)
    if where.sources is not None:
        conditions += f" AND source IN ({_placeholders(where.sources)})"
        values += tuple(str(source) for source in where.sources)
    indexed = next((column for column, _ in equal if column in {"cause", "call", "run"}), None)
    if where.types is None:
        return [(f"event_{indexed or 'id'}", conditions, values)]
    if indexed is not None:
        conditions += f" AND type IN ({_placeholders(where.types)})"
        return [(f"event_{indexed}", conditions, (*values, *where.types))]
    kinds = dict.fromkeys(where.types)
    return [("event_type", f"{conditions} AND type = ?", (*values, kind)) for kind in kinds]


def _id_range(
    connection: sqlite3.Connection, log: int, where: EventFilter
) -> tuple[int | None, int]:
    """Return the first and the last id in the time range of a filter.

    Events between them can be outside the time range, because a clock can go back.
    """
    since = -1.0 if where.since is None else where.since - _MICRO
    until = 1e300 if where.until is None else where.until + _MICRO
    first, last = connection.execute(
        "SELECT min(id), max(id) FROM event INDEXED BY event_time "
        "WHERE log = ? AND time >= ? AND time <= ?",
        (log, since, until),
    ).fetchone()
    return first, last


def _placeholders(values: tuple[object, ...]) -> str:
    return ", ".join("?" * len(values))


def _missing_events_error(path: str, sid: str, missing: int, number: int) -> Exception:
    count = f"{missing:,} events are" if missing > 1 else "an event is"
    return corrupt_error(
        f"{path} is damaged: {count} missing in session {sid!r} next to event {number}.", path
    )
