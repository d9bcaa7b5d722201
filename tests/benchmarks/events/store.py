"""How fast the store in a file is, compared with SQLite with one table.

`python -m tests.benchmarks.events.store` prints a row for each workload. The limit writes complete
rows: it makes no JSON, assigns no ids and keeps no index. With several producers, the limit is a
hand-written writer thread that commits all waiting rows in one transaction. Events have some 600
bytes of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import queue
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agents_tools.events import EventSource, MessageEvent, Origin
from agents_tools.persistence import SQLiteEventStore
from tests.benchmarks.tables import duration, markdown, times

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools.events import Event

__all__ = ["STORE_TITLES", "measured"]

STORE_TITLES = {
    "store_normal": "store events one by one, durable against kill -9, per event",
    "store_normal_32": "store events in appends of 32, durable against kill -9, per event",
    "store_sync_16": "16 producers, each waits for the sync of its event, per event",
    "store_sync_16x32": "16 producers, each waits for the sync of its 32 events, per event",
    "store_read": "read events back, per event",
    "store_reopen": "open a log of 100,000 events and read its last id",
    "store_reopen_writer": "the same, and become the writer",
}
"""What is timed; `measured` gives for each the seconds of one operation, and those of the limit."""

PRODUCERS = 16
BATCH = 32
PATIENCE = 120.0
_BODY = "x" * 600


def measured(name: str, count: int = 20_000) -> tuple[float, float]:
    """Time a workload with so many events; gives the seconds of one, and those of the limit."""
    with tempfile.TemporaryDirectory(prefix="agents-tools-") as folder:
        return _TIMED[name](Path(folder), count)


def _events(count: int) -> list[Event]:
    origin = Origin(source=EventSource.USER)
    return [
        MessageEvent("x" * 400).replace(timestamp=1.7e9 + n, seq=n, origin=origin)
        for n in range(count)
    ]


def _in_appends(size: int) -> Callable[[Path, int], tuple[float, float]]:
    def timed(folder: Path, count: int) -> tuple[float, float]:
        events = _events(count)
        with closing(SQLiteEventStore(folder / "events.db")) as store:
            begin = perf_counter()
            begun = [store.append(events[n : n + size]) for n in range(0, count, size)]
            begun[-1].result(PATIENCE)
            taken = perf_counter() - begin
        return taken / count, _limit(folder, "NORMAL", count, size)

    return timed


def _by_producers(size: int) -> Callable[[Path, int], tuple[float, float]]:
    def timed(folder: Path, count: int) -> tuple[float, float]:
        events = _events(size)
        rounds = max(1, count // PRODUCERS // size)
        with closing(SQLiteEventStore(folder / "events.db")) as store:
            taken = asyncio.run(_produced(lambda: store.append(events, durability="sync"), rounds))
        with closing(_GroupWriter(folder / "limit.db")) as limit:
            rows = [(1.7e9, "message_event", _BODY)] * size
            limit_taken = asyncio.run(_produced(lambda: limit.append(rows), rounds))
        count = rounds * PRODUCERS * size
        return taken / count, limit_taken / count

    return timed


class _GroupWriter:
    """A writer thread by hand: it commits all waiting rows in one synced transaction."""

    def __init__(self, path: Path) -> None:
        self._waiting: queue.SimpleQueue[tuple[Any, asyncio.Future[None]] | None]
        self._waiting = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(path,))
        self._thread.start()

    def append(self, rows: Sequence[tuple[Any, ...]]) -> asyncio.Future[None]:
        """Return a future that is done when the rows are on disk."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put((rows, done))
        return done

    def close(self) -> None:
        """End the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self, path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as limit:
            limit.execute("PRAGMA journal_mode = WAL")
            limit.execute("PRAGMA synchronous = FULL")
            limit.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, time, type, body)")
            while (first := self._waiting.get()) is not None:
                group = [first]
                while not self._waiting.empty() and (job := self._waiting.get()) is not None:
                    group.append(job)
                limit.execute("BEGIN IMMEDIATE")
                for rows, _ in group:
                    limit.executemany("INSERT INTO event (time, type, body) VALUES (?, ?, ?)", rows)
                limit.execute("COMMIT")
                done = [future for _, future in group]
                done[0].get_loop().call_soon_threadsafe(_set_all, done)


def _set_all(done: Sequence[asyncio.Future[None]]) -> None:
    for future in done:
        future.set_result(None)


async def _produced(append: Callable[[], Awaitable[Any]], rounds: int) -> float:
    async def produce() -> None:
        for _ in range(rounds):
            await append()

    begin = perf_counter()
    await asyncio.gather(*(produce() for _ in range(PRODUCERS)))
    return perf_counter() - begin


def _read(folder: Path, count: int) -> tuple[float, float]:
    _limit(folder, "NORMAL", count, BATCH)
    with closing(SQLiteEventStore(folder / "events.db")) as store:
        store.append(_events(count)).result(PATIENCE)
        begin = perf_counter()
        assert len(store.read().result(PATIENCE)) == count
        taken = perf_counter() - begin
    with closing(sqlite3.connect(folder / "limit.db")) as limit:
        begin = perf_counter()
        assert len(limit.execute("SELECT id, body FROM event ORDER BY id").fetchall()) == count
        return taken / count, (perf_counter() - begin) / count


def _reopened(*, writing: bool) -> Callable[[Path, int], tuple[float, float]]:
    def timed(folder: Path, count: int) -> tuple[float, float]:
        count = max(count, 100_000)
        _limit(folder, "NORMAL", count, 1_000)
        with closing(SQLiteEventStore(folder / "events.db")) as store:
            store.append(_events(count)).result(PATIENCE)
        begin = perf_counter()
        store = SQLiteEventStore(folder / "events.db")
        assert (store.next_id - 1 if writing else store.last_id) == count - 1
        taken = perf_counter() - begin
        store.close()
        begin = perf_counter()
        with closing(sqlite3.connect(folder / "limit.db")) as limit:
            assert limit.execute("SELECT max(id) FROM event").fetchone() == (count - 1,)
            return taken, perf_counter() - begin

    return timed


def _limit(folder: Path, synchronous: str, count: int, size: int) -> float:
    """Return the seconds that SQLite needs for a row, with a number of rows in a transaction."""
    with closing(sqlite3.connect(folder / "limit.db", isolation_level=None)) as limit:
        limit.execute("PRAGMA journal_mode = WAL")
        limit.execute(f"PRAGMA synchronous = {synchronous}")
        limit.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, time, type, body)")
        insert = "INSERT INTO event (id, time, type, body) VALUES (?, ?, ?, ?)"
        rows = [(n, 1.7e9 + n, "message_event", _BODY) for n in range(count)]
        begin = perf_counter()
        for first in range(0, count, size):
            limit.execute("BEGIN")
            limit.executemany(insert, rows[first : first + size])
            limit.execute("COMMIT")
        return (perf_counter() - begin) / count


_TIMED: dict[str, Callable[[Path, int], tuple[float, float]]] = {
    "store_normal": _in_appends(1),
    "store_normal_32": _in_appends(BATCH),
    "store_sync_16": _by_producers(1),
    "store_sync_16x32": _by_producers(BATCH),
    "store_read": _read,
    "store_reopen": _reopened(writing=False),
    "store_reopen_writer": _reopened(writing=True),
}


def main() -> None:
    """Time what the command line asks for; each in its fastest round."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.events.store")
    parser.add_argument("--only", nargs="+", choices=STORE_TITLES, default=list(STORE_TITLES))
    parser.add_argument("--count", type=int, default=20_000, help="how many events")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for name in options.only:
        rounds = [measured(name, options.count) for _ in range(options.rounds)]
        seconds, limit = min(one[0] for one in rounds), min(one[1] for one in rounds)
        ratio = f"{times(seconds / limit)} ({duration(seconds)})"
        rows.append((STORE_TITLES[name], ratio, f"{1 / seconds:,.0f}", f"{1 / limit:,.0f}"))
    print(markdown(("", "ratio to the limit", "per second", "limit, per second"), rows))


if __name__ == "__main__":
    main()
