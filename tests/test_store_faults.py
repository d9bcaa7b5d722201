"""Test the SQLite store when the process dies, the power or disk fails, or others interfere."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from agents_tools.errors import (
    EventConflictError,
    EventStoreError,
    EventStoreFullError,
    RunInUseError,
    UserValueError,
)
from agents_tools.events import Event, MessageEvent
from agents_tools.persistence import EventFilter, SQLiteEventStore, StoredLog
from tests.durable.postgres import postgres, why_not
from tests.redis_server import RedisServer
from tests.sqlite_faults import FULL, Step, failing_disk, has_disk
from tests.store_victim import opened
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from agents_tools.persistence import PendingFuture

needs_disk = pytest.mark.skipif(not has_disk(), reason="SQLite cannot be reached in this Python")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
PATIENCE = 45.0
SECTOR = 512


def message(number: int, length: int = 0) -> Event:
    return MessageEvent(f"{number} {'x' * length}")


def numbers(events: list[Event]) -> list[int]:
    return [int(str(getattr(event, "content", "")).split()[0]) for event in events]


# --- F35: the process dies ------------------------------------------------------------------------


class KilledWriters:
    """Starts writer processes and kills them."""

    def __init__(self) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.store_victim"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    @property
    def output(self) -> IO[str]:
        """Return the pipe with their output."""
        assert self._parent.stdout is not None
        return self._parent.stdout

    def start(self, *words: str) -> int:
        """Start a writer and return its pid."""
        assert self._parent.stdin is not None
        self._parent.stdin.write(" ".join(words) + "\n")
        self._parent.stdin.flush()
        return int(self.output.readline().split()[1])

    def kill(self, pid: int) -> list[str]:
        """Kill a writer and return its output until then."""
        os.kill(pid, signal.SIGKILL)
        return list(iter(self.output.readline, "dead\n"))

    def end(self) -> None:
        """End the process that starts the writers."""
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(PATIENCE)
        self.output.close()


@pytest.fixture(scope="module")
def writers() -> Iterator[KilledWriters]:
    """Yield writer processes to kill."""
    given = KilledWriters()
    try:
        yield given
    finally:
        given.end()


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """Start a PostgreSQL server, and return the address of its database."""
    if reason := why_not():
        pytest.skip(reason)
    with postgres() as url:
        yield url


@pytest.fixture
def redis_url() -> Iterator[str]:
    """Start a Redis server, and return its address."""
    server = RedisServer()
    try:
        yield server.url
    finally:
        server.remove()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.external("postgres")),
        pytest.param("redis", marks=pytest.mark.external("redis-server")),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the place of a store that several processes use."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    if request.param == "redis":
        return str(request.getfixturevalue("redis_url"))
    url: str = request.getfixturevalue("database")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS agents_tools_runs CASCADE")
    return url


def _kill_writers(writers: KilledWriters, place: str, times: int) -> None:
    chance = random.Random(35)  # noqa: S311 - no secret
    for seed in range(times):
        pid = writers.start("write", place, str(seed))
        acks = [writers.output.readline() for _ in range(chance.randrange(1, 30))]
        acks += writers.kill(pid)
        with opened(place) as store:
            for sid in ("one", "two"):
                _check_after_kill(store.log(sid), acks)
            if seed % 20 == 19:  # reading takes longer with each event
                for sid in ("one", "two"):
                    store.delete(sid).result(PATIENCE)


@pytest.mark.requirement("F35")
@needs_fork
@pytest.mark.timeout(120)
def test_a_killed_writer_loses_no_acknowledged_event(writers: KilledWriters, place: str) -> None:
    """No acknowledged event is lost, duplicated or torn, and no id is reused.

    The store is opened after each kill; its lease must be free at once.
    """
    _kill_writers(writers, place, 10)


@pytest.mark.requirement("F35")
@needs_fork
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_killed_writers_lose_no_acknowledged_event(
    writers: KilledWriters, place: str
) -> None:
    """The same at full size."""
    _kill_writers(writers, place, 200)


def _check_after_kill(log: StoredLog, acks: list[str]) -> None:
    words = [ack.split() for ack in acks if ack.startswith(f"ack {log.sid} ")]
    counted = [int(count) for _, _, count, _ in words] or [0]
    shown = [int(last) for *_, last in words] or [-1]
    events = log.read().result(PATIENCE)
    found = [str(getattr(event, "content", "")).split()[:2] for event in events]
    assert found == [[log.sid, str(n)] for n in range(len(events))]
    assert len(events) >= max(counted)
    assert log.next_id > max(shown)
    log.append([MessageEvent(f"{log.sid} {len(events)} again")]).result(PATIENCE)
    assert len(log.read().result(PATIENCE)) == len(events) + 1


def _suspend(pid: int, place: str) -> None:
    """Suspend a writer, but not inside a transaction of SQLite, which would lock the file."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        if "://" in place:
            return
        with closing(sqlite3.connect(place, timeout=0.1, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
            else:
                return


@pytest.mark.requirement("F35", "F38")
@needs_fork
def test_a_suspended_writer_cannot_append_after_its_lease_was_taken(
    writers: KilledWriters, place: str
) -> None:
    """It is suspended for longer than its lease, and continues when another one has written."""
    pid = writers.start("insist", place)
    acks = [writers.output.readline() for _ in range(3)]
    _suspend(pid, place)
    try:
        with opened(place) as store:
            log = store.log("run")
            with pytest.raises(RunInUseError, match=f"process {pid}"):
                log.append([MessageEvent("too early")]).result(PATIENCE)
            until(lambda: _stored(log.append([MessageEvent("new")])))
            os.kill(pid, signal.SIGCONT)
            lines = list(iter(writers.output.readline, "dead\n"))
            acks += [line for line in lines if line.startswith("ack")]
            assert lines[-1] == "refused LeaseLostError\n"
            log.append([MessageEvent("newer")]).result(PATIENCE)
            texts = [str(getattr(event, "content", "")) for event in log.read().result(PATIENCE)]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    old = texts[: texts.index("new")]
    assert texts[len(old) :] == ["new", "newer"]
    assert old == [f"old {number}" for number in range(len(old))]
    assert len(acks) <= len(old) <= len(acks) + 1  # one can have lost its reply


# --- F36: the power fails -------------------------------------------------------------------------


@pytest.mark.requirement("F36")
@needs_disk
@pytest.mark.timeout(600)
def test_the_log_opens_after_any_part_of_unsynced_writes_was_lost(
    tmp_path: Path, corpus_size: int
) -> None:
    """At any moment, with any part of the unsynced writes, in any order, torn at sectors.

    Events acknowledged as `sync` are present, and the stored events are a prefix of the written ones.
    """
    cases = 10_000 if corpus_size > 5_000 else 200
    path = tmp_path / "events.db"
    with failing_disk() as disk, closing(SQLiteEventStore(path)) as store:
        store.append([message(0)], durability="sync").result(PATIENCE)
        written = {name: (tmp_path / name).read_bytes() for name in _files(tmp_path)}
        disk.steps.clear()
        for n in range(1, 60, 2):
            durability = "sync" if n % 3 else "normal"
            last = store.append([message(n, 700), message(n + 1)], durability=durability).result(
                PATIENCE
            )
            if durability == "sync":
                disk.note(str(last))
            if n % 9 == 0:  # SQLite does this by itself every thousand pages
                with closing(sqlite3.connect(path)) as other:
                    other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        steps = list(disk.steps)
    model = _Power(written)
    chance = random.Random(36)  # noqa: S311 - no secret
    share, done = max(1, -(-cases // len(steps))), 0
    for step in steps:
        model.take(step)
        for _ in range(share if cases >= len(steps) else chance.random() < cases / len(steps)):
            files, read_only = model.loss(chance), chance.random() < 0.8
            _check_after_power_loss(
                files, model.acknowledged, tmp_path / "lost", read_only=read_only
            )
            done += 1
    assert done >= cases // 2


def _files(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.name.endswith((".db", "-wal"))]


class _Power:
    """The possible contents of a disk after a power failure: all synced and any unsynced data."""

    def __init__(self, synced: dict[str, bytes]) -> None:
        self._synced = {name: bytearray(data) for name, data in synced.items()}
        self._loose: dict[str, list[Step]] = defaultdict(list)
        self.acknowledged = 0

    def take(self, step: Step) -> None:
        """Apply a step."""
        if step.kind == "note":
            self.acknowledged = int(step.file)
        elif step.kind == "sync":
            for loose in self._loose.pop(step.file, ()):
                _apply(self._synced.setdefault(step.file, bytearray()), loose)
        else:
            self._loose[step.file].append(step)

    def loss(self, chance: random.Random) -> dict[str, bytes]:
        """Return possible contents of the files."""
        files = {name: bytearray(data) for name, data in self._synced.items()}
        for name, loose in self._loose.items():
            kept = [step for step in loose if chance.random() < 0.7]
            if chance.random() < 0.5:
                kept = loose[: chance.randrange(len(loose) + 1)]
            elif chance.random() < 0.5:
                chance.shuffle(kept)
            for step in kept:
                torn = _torn(step, chance) if chance.random() < 0.3 else [step]
                for part in torn:
                    _apply(files.setdefault(name, bytearray()), part)
        return {name: bytes(data) for name, data in files.items()}


def _torn(step: Step, chance: random.Random) -> list[Step]:
    """Split a write into sectors and leave some out."""
    if step.kind != "write":
        return []
    parts = range(0, len(step.data), SECTOR)
    return [
        Step("write", step.file, step.at + n, step.data[n : n + SECTOR])
        for n in parts
        if chance.random() < 0.5
    ]


def _apply(content: bytearray, step: Step) -> None:
    if step.kind == "truncate":
        del content[step.at :]
        return
    if len(content) < step.at:
        content.extend(bytes(step.at - len(content)))
    content[step.at : step.at + len(step.data)] = step.data


def _check_after_power_loss(
    files: dict[str, bytes], acknowledged: int, folder: Path, *, read_only: bool
) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with closing(SQLiteEventStore(folder / "events.db", read_only=read_only)) as store:
        found = store.read().result(PATIENCE)
        assert numbers(found) == list(range(len(found)))
        assert [event.id for event in found] == list(range(len(found)))
        assert len(found) > acknowledged
        assert store.next_id == len(found)


# --- F37: the disk is full or fails ---------------------------------------------------------------


@pytest.mark.requirement("F37")
@needs_disk
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "code",
    [FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_READONLY],
)
@pytest.mark.parametrize("for_long", [False, True], ids=["once", "until_repaired"])
def test_a_failing_write_tears_nothing_and_the_store_recovers(
    code: int, *, for_long: bool, tmp_path: Path, corpus_size: int
) -> None:
    """The i-th write, truncation or sync fails, for all i; then the disk works again."""
    total = _failing(tmp_path / "whole", code, at=1 << 30, for_long=False)
    every = 1 if corpus_size > 5_000 else 50
    for at in range(0, total, every):
        _failing(tmp_path / f"{at}", code, at=at, for_long=for_long)


def _failing(folder: Path, code: int, *, at: int, for_long: bool) -> int:
    """Write to a disk that fails at one step, and return the number of steps."""
    folder.mkdir()
    count = 0
    broken = True

    def fails(step: Step) -> int:
        nonlocal count
        count += 1
        return code if broken and (count - 1 == at or (for_long and count > at)) else 0

    kept: list[int] = []
    with failing_disk() as disk:
        disk.fails = fails
        try:
            store = SQLiteEventStore(folder / "events.db")
        except EventStoreError:
            broken = False
            store = SQLiteEventStore(folder / "events.db")
        with closing(store):
            for n in range(8):
                given = [message(2 * n, 300), message(2 * n + 1, 90_000 if n % 3 == 0 else 0)]
                durability = "sync" if n % 2 else "normal"
                if _stored(store.append(given, durability=durability)):
                    kept += [2 * n, 2 * n + 1]
                assert numbers(store.read().result(PATIENCE)) == kept
                if n == 4:
                    _stored(store.delete("never there"))
            broken = False
            assert store.append([message(99)], durability="sync").result(PATIENCE) == len(kept)
            assert numbers(store.read().result(PATIENCE)) == [*kept, 99]
        with closing(SQLiteEventStore(folder / "events.db")) as again:
            assert numbers(again.read().result(PATIENCE)) == [*kept, 99]
    return count


def _stored(pending: PendingFuture[Any]) -> bool:
    return _failure(pending) is None


def _failure(pending: PendingFuture[Any]) -> EventStoreError | UserValueError | None:
    try:
        pending.result(PATIENCE)
    except (EventStoreError, UserValueError) as error:
        return error
    return None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory with room for one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        made = subprocess.run(  # noqa: S603 - our own
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],  # noqa: S607
            check=False,
            capture_output=True,
        )
    except OSError:
        pytest.skip("needs permission to mount")
    if made.returncode:
        pytest.skip("needs permission to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607


@pytest.mark.requirement("F37")
def test_a_full_disk_refuses_appends_until_there_is_room(small_disk: Path) -> None:
    """On a real disk: refused events are not stored, acknowledged events are."""
    filler = small_disk / "filler"
    filler.write_bytes(bytes(300_000))
    with closing(SQLiteEventStore(small_disk / "events.db")) as store:
        kept = 0
        while (error := _failure(store.append([message(kept, 5_000)]))) is None:
            kept += 1
        assert isinstance(error, EventStoreFullError)
        assert error.store == store.path
        assert "is full" in str(error)
        assert numbers(store.read().result(PATIENCE)) == list(range(kept))
        filler.unlink()
        store.append([message(kept)]).result(PATIENCE)
    with closing(SQLiteEventStore(small_disk / "events.db")) as again:
        assert numbers(again.read().result(PATIENCE)) == list(range(kept + 1))


@pytest.mark.requirement("F37")
def test_a_store_in_a_read_only_directory_can_be_read(small_disk: Path) -> None:
    """The error for EROFS names the remedy."""
    path = small_disk / "events.db"
    with closing(SQLiteEventStore(path)) as store:
        store.append([message(0)]).result(PATIENCE)
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remount, check=True)  # noqa: S603
    with pytest.raises(EventStoreFullError, match="read_only=True"):
        SQLiteEventStore(path)
    with closing(SQLiteEventStore(path, read_only=True)) as store:
        assert numbers(store.read().result(PATIENCE)) == [0]


# --- F38: other processes -------------------------------------------------------------------------


@pytest.mark.requirement("F38")
@needs_fork
def test_a_second_process_is_refused_until_the_first_has_ended(
    writers: KilledWriters, tmp_path: Path
) -> None:
    """The error names the writer, reading is possible, and kill -9 frees the lease at once."""
    path = tmp_path / "events.db"
    os.mkfifo(f"{path}.never")
    pid = writers.start("hold", str(path))
    try:
        assert writers.output.readline() == "held\n"
        with closing(SQLiteEventStore(path, "held")) as store:
            with pytest.raises(EventConflictError, match=rf"process {pid} \(store_victim.py\)"):
                store.append([message(1)]).result(PATIENCE)
            assert store.next_id == len(store.read().result(PATIENCE))
            with pytest.raises(EventConflictError, match=f"process {pid}"):
                store.delete("held").result(PATIENCE)
            assert store.retain(max_events=0).result(PATIENCE) == 0
            store.session("free").append([message(0)]).result(PATIENCE)
            writers.kill(pid)
            pid = 0
            assert store.append([message(1)]).result(PATIENCE) >= 1
    finally:
        if pid:
            writers.kill(pid)


@pytest.mark.requirement("F38")
def test_a_second_store_of_the_same_process_is_refused(tmp_path: Path) -> None:
    """Two parts of a program must not overwrite each other; closing one frees the lease."""
    path = tmp_path / "events.db"
    with closing(SQLiteEventStore(path)) as one, closing(SQLiteEventStore(path)) as two:
        one.append([message(0)]).result(PATIENCE)
        with pytest.raises(EventConflictError, match=str(os.getpid())):
            two.append([message(1)]).result(PATIENCE)
        two.session("other").append([message(0)]).result(PATIENCE)
        one.close()
        assert two.append([message(1)]).result(PATIENCE) == 1


def test_a_fault_of_one_session_does_not_fail_the_appends_of_others(tmp_path: Path) -> None:
    """Appends that wait are stored together, but each one succeeds or fails for itself."""
    path = tmp_path / "events.db"
    with closing(SQLiteEventStore(path)) as store, closing(sqlite3.connect(path)) as program:
        faulty, sound = store.session("faulty"), store.session("sound")
        program.execute("BEGIN IMMEDIATE")
        first = store.append([message(0)])  # the writer waits with it for the other program
        pending = [
            faulty.append([message(0)]),
            sound.append([message(0)]),
            faulty.append([message(1).replace(cause=1 << 70)]),  # not an id
            sound.append([message(1)]),
            faulty.append([message(2)]),
        ]
        program.commit()
        assert first.result(PATIENCE) == 0
        failures = [_failure(one) for one in pending]
        assert failures[:2] == [None, None]
        assert "message_event.cause: expected a whole number" in str(failures[2])
        assert failures[3:] == [None, None]
        assert numbers(sound.read().result(PATIENCE)) == [0, 1]
        assert numbers(faulty.read().result(PATIENCE)) == [0, 2]


@pytest.mark.requirement("F38")
@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_share_connections(tmp_path: Path) -> None:
    """A child reads with its own connections; the lease stays with the parent."""
    path = tmp_path / "events.db"
    with closing(SQLiteEventStore(path)) as store:
        store.append([message(0)]).result(PATIENCE)
        pid = os.fork()
        if pid == 0:
            code = 1
            with contextlib.suppress(BaseException):
                code = _in_the_child(store)
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert store.append([message(1)]).result(PATIENCE) == 1
        assert numbers(store.read().result(PATIENCE)) == [0, 1]


def _in_the_child(store: SQLiteEventStore) -> int:
    assert numbers(store.read().result(PATIENCE)) == [0]
    with pytest.raises(EventConflictError, match=str(os.getppid())):
        store.append([message(1)]).result(PATIENCE)
    store.session("of the child").append([message(0)]).result(PATIENCE)
    return 0


@pytest.mark.requirement("F37")
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_removed_file_is_detected(tmp_path: Path, suffix: str) -> None:
    """Otherwise acknowledged events would be lost."""
    path = tmp_path / "events.db"
    with closing(SQLiteEventStore(path)) as store:
        store.append([message(0)]).result(PATIENCE)
        Path(f"{path}{suffix}").rename(tmp_path / "elsewhere")
        with pytest.raises(EventStoreError, match="removed"):
            store.append([message(1)]).result(PATIENCE)


# --- F39: the clock -------------------------------------------------------------------------------


@pytest.mark.requirement("F39")
def test_a_clock_that_is_set_back_does_not_change_the_order(tmp_path: Path) -> None:
    """The order follows the ids; filters by time still find the events."""
    day = 86_400.0
    times = [1.7e9 + n - (day if 10 <= n < 20 else 0) for n in range(30)]
    with closing(SQLiteEventStore(tmp_path / "events.db")) as store:
        events = [message(n).replace(timestamp=time) for n, time in enumerate(times)]
        for event in events:
            store.append([event]).result(PATIENCE)
        assert numbers(store.read().result(PATIENCE)) == list(range(30))
        for where in (
            EventFilter(since=1.7e9),
            EventFilter(until=1.7e9 - 1),
            EventFilter(since=1.7e9 - day + 12, until=1.7e9 + 4),
        ):
            meant = [n for n, event in enumerate(events) if where.accepts(event)]
            assert numbers(store.read(where=where).result(PATIENCE)) == meant
            newest = store.read(where=where, limit=2, reverse=True).result(PATIENCE)
            assert numbers(newest) == meant[::-1][:2]
