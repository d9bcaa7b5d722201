"""Recover events from a copy of a damaged file. The file itself is not changed."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.errors import EventStoreError
from agents_tools.persistence.sqlite.errors import BAD_VALUE_ERRORS
from agents_tools.persistence.sqlite.query import fetch_blob
from agents_tools.persistence.sqlite.rows import LARGE, event_of_row
from agents_tools.persistence.unknown_event import event_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.events.base import Event

__all__ = ["RecoveredEvents", "salvage"]

_MAX_DOUBLINGS: Final = 40
"""How often to double the distance when searching for the next readable row."""
_ROW: Final = "SELECT n, log, id, body, large FROM event NOT INDEXED WHERE n >= ? ORDER BY n"
_BODY: Final = re.compile(rb'\{"id":\d+,"v":\d+,"type":"')


@dataclass(slots=True)
class RecoveredEvents:
    """The events that could be read from a file.

    Attributes:
        events: The events of each session, in order.
        problems: Descriptions of the parts that could not be read.
    """

    events: dict[str, list[Event]] = field(default_factory=dict[str, "list[Event]"])
    problems: list[str] = field(default_factory=list[str])


def salvage(path: str) -> RecoveredEvents:
    """Read all readable events from the file of a store.

    Raises:
        EventStoreError: The file does not exist.
    """
    file = Path(path)
    if not file.is_file():
        raise EventStoreError(f"The file {path} does not exist.", store=path)
    recovered = RecoveredEvents()
    with tempfile.TemporaryDirectory(prefix="agents-tools-") as folder:
        copy = Path(folder) / "copy.db"
        _copy(file, copy)
        if (journal := Path(f"{path}-wal")).is_file():
            _copy(journal, Path(f"{copy}-wal"))
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                _read_tables(connection, recovered)
        except (sqlite3.Error, *BAD_VALUE_ERRORS) as error:
            recovered.problems.append(f"the tables cannot be read ({error})")
        if not recovered.events:
            _scan_bytes([file, journal], recovered)
    for events in recovered.events.values():
        events.sort(key=lambda event: event.id)
    return recovered


def _copy(file: Path, copy: Path) -> None:
    """Copy a file, readable by this user only."""
    copy.touch(0o600)
    shutil.copyfile(file, copy)


def _read_tables(connection: sqlite3.Connection, recovered: RecoveredEvents) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = _text
    try:
        rows = connection.execute("SELECT log, sid FROM log NOT INDEXED WHERE sid IS NOT NULL")
        names: dict[int, str] = {log: str(sid) for log, sid in rows}
    except sqlite3.Error as error:
        names = {}
        recovered.problems.append(f"the names of the sessions cannot be read ({error})")
    for log, number, body, large in _rows(connection, recovered):
        try:
            event = _event(connection, body, large)
        except (sqlite3.Error, LookupError, TypeError, ValueError) as error:
            recovered.problems.append(f"event {number}: {error}")
            event = _without_large(body)
        if event is not None:
            recovered.events.setdefault(names.get(log, f"session {log}"), []).append(event)


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "replace")


def _event(connection: sqlite3.Connection, body: Any, large: Any) -> Event | None:
    return event_of_row(body, large, lambda digest: fetch_blob(connection, digest))


def _rows(
    connection: sqlite3.Connection, recovered: RecoveredEvents
) -> Iterator[tuple[int, int, Any, Any]]:
    """Yield all readable rows in order."""
    after = 0
    while True:
        try:
            for n, *row in connection.execute(_ROW, (after,)):
                yield cast("tuple[int, int, Any, Any]", tuple(row))
                after = n + 1
        except sqlite3.Error as error:
            recovered.problems.append(f"rows from {after} on cannot be read ({error})")
        else:
            return
        next_row = _readable_from(connection, after)
        if next_row is None:
            return
        after = next_row


def _readable_from(connection: sqlite3.Connection, bad: int) -> int | None:
    """Return the first readable row after one that cannot be read."""

    def is_readable(n: int) -> bool:
        try:
            return connection.execute(f"{_ROW} LIMIT 1", (n,)).fetchone() is not None
        except sqlite3.Error:
            return False

    good = next((n for k in range(_MAX_DOUBLINGS) if is_readable(n := bad + (1 << k))), None)
    while good is not None and good - bad > 1:
        middle = (good + bad) // 2
        if is_readable(middle):
            good = middle
        else:
            bad = middle
    return good


def _without_large(body: object) -> Event | None:
    """Return the event with the beginnings of its large texts; `None` if it is not JSON."""
    try:
        wire = json.loads(cast("str", body))
    except (TypeError, ValueError):
        return None
    return event_of(cast("dict[str, Any]", wire)) if isinstance(wire, dict) else None


def _scan_bytes(files: list[Path], recovered: RecoveredEvents) -> None:
    """Search the bytes of the files for events whose JSON is complete within one page."""
    seen: dict[int, Event] = {}
    decoder = json.JSONDecoder()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        for match in _BODY.finditer(content):
            text = content[match.start() : match.start() + LARGE].decode("utf-8", "replace")
            try:
                wire, _ = decoder.raw_decode(text)
            except ValueError:
                continue
            event = event_of(cast("dict[str, Any]", wire))
            seen.setdefault(event.id, event)
    if seen:
        recovered.events["salvaged"] = list(seen.values())
        recovered.problems.append(
            "events were recovered from the bytes of the file; their sessions are unknown"
        )
