"""The store in a file: what every store promises, and what a file adds to it."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from agents_tools.errors import (
    EventStoreCorruptError,
    EventStoreError,
    UserValueError,
)
from agents_tools.events import (
    TEXT,
    Event,
    EventSource,
    FieldType,
    MessageEvent,
    NullEvent,
    Origin,
    RunStartedEvent,
    ToolArtifactEvent,
    field,
)
from agents_tools.events.base import stamp
from agents_tools.persistence import EventFilter, EventStore, SQLiteEventStore, UnknownEvent
from agents_tools.persistence.sqlite.query import Range, stored_rows
from agents_tools.persistence.sqlite.recovery import salvage
from agents_tools.persistence.sqlite.schema import APPLICATION, MIGRATIONS
from agents_tools.testing import EventStoreContract

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 45.0
ROOT = Path(__file__).parents[1]


@pytest.mark.requirement("D9", "D11", "D52", "D53", "F23", "F38")
class TestContract(EventStoreContract):
    """What every store promises, of a file."""

    lasting = True

    @pytest.fixture(autouse=True)
    def _in(self, tmp_path: Path) -> None:
        self._path = tmp_path / "events.db"

    def make_store(self) -> SQLiteEventStore:
        """Give an empty store."""
        return SQLiteEventStore(self._path)

    def reopen(self, store: EventStore) -> SQLiteEventStore:
        """Open it again."""
        store.close()
        return self.make_store()


class TestContractOfManySessions(TestContract):
    """The same, of a session that is not the first one."""

    def make_store(self) -> SQLiteEventStore:
        """Give an empty store."""
        return SQLiteEventStore(self._path, "another ü")


class TestContractOfTwoStores(TestContract):
    """The same where a reader has opened the file for itself, as another process does."""

    @pytest.mark.requirement("F23")
    def test_waiting_sees_what_another_writes(self) -> None:
        """A reader waits for the writer of another process."""
        with (
            closing(self.make_store()) as writer,
            closing(SQLiteEventStore(self._path, read_only=True)) as reader,
        ):
            for number in range(20):
                waiting = reader.wait(number - 1)
                writer.append([said(str(number))]).result(PATIENCE)
                assert waiting.result(PATIENCE) == number
            assert texts(reader) == [str(number) for number in range(20)]


def said(text: str, **envelope: Any) -> Event:
    return MessageEvent(text).replace(**envelope)


def texts(store: SQLiteEventStore, **options: Any) -> list[str]:
    events = store.read(**options).result(PATIENCE)
    return [cast("MessageEvent", event).content for event in events]


def put(store: SQLiteEventStore, *events: Event, **options: Any) -> int:
    return store.append(events, **options).result(PATIENCE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give where a store may be."""
    return tmp_path / "events.db"


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.requirement("F35")
def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path) -> None:
    """Whoever mistypes a path loses nothing."""
    for content in (b"Dear diary,\n" * 50, b"SQLite format 3\0 and no more"):
        path.write_bytes(content)
        for read_only in (False, True):
            with pytest.raises(EventStoreCorruptError, match="Nothing was changed") as raised:
                SQLiteEventStore(path, read_only=read_only)
            assert raised.value.store == str(path)
        assert path.read_bytes() == content
        assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.requirement("F35")
def test_a_file_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    """SQLite is everywhere; its files look alike from outside."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text)")
    content = path.read_bytes()
    with pytest.raises(EventStoreCorruptError, match="another program"):
        SQLiteEventStore(path)
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """A file made by `mktemp` is as good as none."""
    path.touch()
    with closing(SQLiteEventStore(path)) as store:
        assert put(store, said("a")) == 0


def test_a_file_that_is_not_there_is_not_made_unless_asked(path: Path) -> None:
    """A reader with a wrong path is told so."""
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(EventStoreError, match=r"The event store .* does not exist"):
            SQLiteEventStore(path, **cast("Any", options))
    with pytest.raises(EventStoreError, match="The directory of the event store"):
        SQLiteEventStore(path / "deeper" / "events.db")
    with pytest.raises(EventStoreError, match="is not a file"):
        SQLiteEventStore(path.parent)
    for text in ("", ":memory:"):
        with pytest.raises(UserValueError, match="MemoryEventStore"):
            SQLiteEventStore(text)
    assert not path.exists()


def test_a_store_of_an_earlier_release_is_brought_up_to_date(path: Path) -> None:
    """Updating the library must not cost the history; reading alone changes nothing."""
    wire = {**said("old").to_dict(), "id": 4}
    with closing(sqlite3.connect(path)) as old:
        old.executescript(MIGRATIONS[0])
        old.execute("INSERT INTO log (sid, last_id, next_position) VALUES ('default', 4, 1)")
        old.execute(
            "INSERT INTO event (log, id, position, time, type, hidden, size, body) "
            "VALUES (1, 4, 0, 0, 'message_event', 0, 10, ?)",
            (json.dumps(wire),),
        )
        old.execute(f"PRAGMA application_id = {APPLICATION}")
        old.execute("PRAGMA user_version = 1")
        old.commit()
    with pytest.raises(EventStoreError, match="without read_only"):
        SQLiteEventStore(path, read_only=True)
    with closing(SQLiteEventStore(path)) as store:
        assert texts(store) == ["old"]
        assert put(store, said("new"), said("x" * 100_000)) == 6
    with closing(SQLiteEventStore(path, read_only=True)) as store:
        assert texts(store, limit=2) == ["old", "new"]


def test_a_store_of_a_later_release_is_refused_and_left_alone(path: Path) -> None:
    """Writing to tables that one does not know would destroy them."""
    SQLiteEventStore(path).close()
    with closing(sqlite3.connect(path)) as later:
        later.execute("PRAGMA user_version = 1000")
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(EventStoreError, match=r"later release.*Update agents-tools"):
            SQLiteEventStore(path, read_only=read_only)
    assert path.read_bytes() == content


@pytest.mark.requirement("F35")
def test_a_missing_event_is_noticed_by_whoever_reads_or_writes(path: Path) -> None:
    """A hole is never passed over in silence."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, *[said(str(n)) for n in range(10)])
    with closing(sqlite3.connect(path)) as damage:
        damage.execute("DELETE FROM event WHERE id = 4")
        damage.commit()
    with closing(SQLiteEventStore(path)) as store:
        with pytest.raises(EventStoreCorruptError, match=r"an event is missing.*next to event 5"):
            store.read().result(PATIENCE)
        with pytest.raises(EventStoreCorruptError, match=r"missing at the end.*--salvage"):
            put(store, said("more"))
        assert texts(store, before=4) == ["0", "1", "2", "3"]


@pytest.mark.requirement("F35")
def test_a_damaged_page_is_reported_and_the_rest_is_salvaged(path: Path) -> None:
    """Nothing is changed, and what can be read can be had."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, *[said(f"{n} " + "x" * 500) for n in range(200)])
        put(store.session("other"), said("whole"))
    content = bytearray(path.read_bytes())
    place = content.index(b'"content":"100 ') // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    path.write_bytes(content)
    with (
        closing(SQLiteEventStore(path, read_only=True)) as store,
        pytest.raises(EventStoreCorruptError, match=r"damaged.*Nothing was changed"),
    ):
        store.read().result(PATIENCE)
    found = salvage(str(path))
    assert found.problems
    assert [event.id for event in found.events["default"]][:50] == list(range(50))
    assert 180 < len(found.events["default"]) < 200
    assert len(found.events["other"]) == 1
    assert path.read_bytes() == content


@pytest.mark.requirement("F35")
def test_events_are_salvaged_from_a_file_whose_tables_are_gone(path: Path) -> None:
    """Each row has its event whole."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, *[said(f"{n}") for n in range(20)])
    content = bytearray(path.read_bytes())
    content[:4096] = bytes(4096)
    path.write_bytes(content)
    found = salvage(str(path))
    assert [cast("MessageEvent", one).content for one in found.events["salvaged"]] == [
        str(n) for n in range(20)
    ]


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.requirement("S31")
def test_a_large_text_is_kept_once_and_comes_back(path: Path) -> None:
    """A file that is edited ten times is not stored ten times; no payload is a reference."""
    text = "ä" * 500_000
    block = [{"type": "text", "text": text}, {"large": [[0, "text", "content"]]}]
    odd = {"$blob": "0" * 64, "large": "x" * 70_000, "numbers": list(range(30_000))}
    events = [
        MessageEvent(text),
        MessageEvent(text),
        MessageEvent(block),
        MessageEvent([odd, odd]),
        ToolArtifactEvent("image", data=bytes(range(256)) * 1_000),
    ]
    with closing(SQLiteEventStore(path)) as store:
        put(store, *events)
        found = store.read().result(PATIENCE)
        assert found == [event.replace(id=n) for n, event in enumerate(events)]
        where = EventFilter(text="ÄÄÄ")
        assert [event.id for event in store.read(where=where).result(PATIENCE)] == [0, 1, 2]
    assert path.stat().st_size < 2 * len(text.encode()) + 1_500_000


@pytest.mark.requirement("S31")
def test_a_payload_may_hold_whatever_the_tables_do(path: Path) -> None:
    """Names that mean something to the store are data within a payload."""
    names = {"v": 9, "type": "x", "id": 5, "body": "'; DROP TABLE event; --", "large": None}
    with closing(SQLiteEventStore(path, "'; DROP TABLE log; --")) as store:
        put(store, MessageEvent([names]))
        assert store.read().result(PATIENCE) == [MessageEvent([names]).replace(id=0)]
        assert store.read(where=EventFilter(tool_name="' OR 1=1")).result(PATIENCE) == []


class StrangeEvent(Event):
    """Belongs to a program that registered it; this one did not."""

    type = "acme.strange_event"
    durable = True

    what: str = field(TEXT)


@pytest.mark.requirement("D25")
def test_an_event_of_an_unknown_type_is_given_as_what_it_is(path: Path) -> None:
    """A plugin that is not installed here must not make a log unreadable."""
    strange = stamp(StrangeEvent("odd"), Origin("t", "c", ("c",)), 7).replace(cause=3)
    with closing(SQLiteEventStore(path)) as store:
        put(store, said("a"), strange, said("b"))
        events = store.read().result(PATIENCE)
        unknown = events[1]
        assert isinstance(unknown, UnknownEvent)
        assert unknown.to_dict() == strange.replace(id=1).to_dict()
        assert (unknown.id, unknown.seq, unknown.cause, unknown.path) == (1, 7, 3, ("c",))
        assert (unknown.type, unknown.durable) == ("acme.strange_event", False)
        assert "register_event" in unknown.problem
        for where in (EventFilter(types=("acme.strange_event",)), EventFilter(text="ODD")):
            assert store.read(where=where).result(PATIENCE) == [unknown]
        put(store, unknown.replace(id=-1))
        assert store.read(after=2).result(PATIENCE)[0].to_dict()["what"] == "odd"


@pytest.mark.requirement("F35")
def test_ids_of_events_that_were_not_stored_are_not_given_again_after_a_crash(path: Path) -> None:
    """Someone has seen them; a resumed page would take another event for them."""
    program = """
import os, sys
from agents_tools.events import MessageEvent
from agents_tools.persistence import SQLiteEventStore
store = SQLiteEventStore(sys.argv[1])
first = store.next_id
for number in range(first, 5_000):
    store.reserve(number)
store.append([MessageEvent("a")]).result(10)
os._exit(9)
"""
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", program, str(path)], cwd=ROOT, timeout=PATIENCE, check=False
    )
    assert done.returncode == 9
    with closing(SQLiteEventStore(path)) as store:
        assert store.last_id == 5_000
        assert (next_id := store.next_id) > 5_000
    with closing(SQLiteEventStore(path)) as store:
        assert store.next_id == next_id  # closed in good order: nothing is skipped


# --- finding --------------------------------------------------------------------------------------


@pytest.mark.requirement("D52")
@pytest.mark.parametrize(
    ("where", "index"),
    [
        (None, "event_id"),
        (EventFilter(types=("run_started_event",)), "event_type"),
        (EventFilter(types=("run_started_event", "null_event")), "event_type"),
        (EventFilter(cause=3), "event_cause"),
        (EventFilter(tool_call_id="call_1", types=("null_event",)), "event_call"),
        (EventFilter(run_id="run_1", sources=(EventSource.USER,)), "event_run"),
        (EventFilter(since=5.0), "event_time"),
        (EventFilter(until=5.0, hidden=False), "event_time"),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_events_are_found_by_an_index_in_order(
    path: Path, where: EventFilter | None, index: str, *, reverse: bool
) -> None:
    """A search costs what it finds, not what there is; no search sorts."""
    SQLiteEventStore(path).close()
    asked: list[str] = []
    with closing(sqlite3.connect(path)) as connection:
        connection.set_trace_callback(asked.append)
        list(stored_rows(connection, 1, Range(5, 100, reverse=reverse), where))
        connection.set_trace_callback(None)
        plans = [
            row[3]
            for statement in asked
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert any(f"INDEX {index} (log=?" in plan for plan in plans), plans
    assert not any("SCAN" in plan or "B-TREE" in plan for plan in plans), plans


@pytest.mark.requirement("D52")
def test_several_types_come_in_one_order(path: Path) -> None:
    """Each type is walked through by itself."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, *[(said("m"), NullEvent(), RunStartedEvent())[n % 3] for n in range(60)])
        where = EventFilter(types=("run_started_event", "message_event", "message_event"))
        for reverse in (False, True):
            found = store.read(after=9, where=where, limit=9, reverse=reverse).result(PATIENCE)
            ids = [n for n in range(10, 60) if n % 3 != 1]
            assert [event.id for event in found] == (ids[::-1] if reverse else ids)[:9]


def test_readers_go_on_while_the_writer_writes(path: Path) -> None:
    """A reader sees whole appends, and each keeps its pace."""
    with (
        closing(SQLiteEventStore(path)) as store,
        closing(SQLiteEventStore(path, read_only=True)) as reader,
    ):
        put(store, said("0"))
        enough = threading.Event()
        counts: list[int] = []

        def read() -> None:
            while not enough.is_set():
                counts.append(len(texts(reader)))

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for n in range(100):
                put(store, *[said(str(n))] * 4)
        finally:
            enough.set()
            thread.join()
        assert all(count % 4 == 1 for count in counts)
        assert counts == sorted(counts)


# --- room -----------------------------------------------------------------------------------------


def filled(path: Path, sessions: int, each: int) -> SQLiteEventStore:
    store = SQLiteEventStore(path)
    for number in range(sessions):
        log = store.session(f"s{number}")
        events = [said("x" * 1_000, timestamp=1e9 + number * 1e6 + n) for n in range(each)]
        put(log, *events, MessageEvent(f"{number % 2}" * 100_000).replace(timestamp=1e9))
        log.close()
    return store


@pytest.mark.requirement("D53")
def test_a_deleted_session_gives_its_room_back(path: Path) -> None:
    """What is deleted is gone from the disk; what others need of it stays."""
    with closing(filled(path, 4, 1_000)) as store:
        large = path.stat().st_size
        for sid in ("s0", "s1", "s3"):
            store.delete(sid).result(PATIENCE)
        assert [one.sid for one in store.sessions().result(PATIENCE)] == ["s2"]
        assert path.stat().st_size < large / 2
        last = store.session("s2").read(limit=1, reverse=True).result(PATIENCE)[0]
        assert cast("MessageEvent", last).content == "0" * 100_000
        with closing(sqlite3.connect(path)) as inside:
            assert inside.execute("SELECT count(*) FROM blob").fetchone() == (1,)
            assert inside.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.requirement("D53")
@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"max_events": 250}, {"s2": 101, "s3": 101}),
        ({"max_bytes": 150_000}, {}),
        ({"max_bytes": 450_000}, {"s2": 101, "s3": 101}),
        ({"max_age": 1e8}, {}),
        ({"max_events": 0}, {}),
        ({}, {"s0": 101, "s1": 101, "s2": 101, "s3": 101}),
    ],
)
def test_old_sessions_are_dropped_as_a_whole(
    path: Path, limits: dict[str, Any], kept: dict[str, int]
) -> None:
    """Half a conversation is worth nothing; the one that was quiet for longest goes first."""
    with closing(filled(path, 4, 100)) as store:
        deleted = store.retain(**limits).result(PATIENCE)
        left = {one.sid: one.events for one in store.sessions().result(PATIENCE)}
        assert left == kept
        assert deleted == 404 - sum(kept.values())


def test_the_limit_holds_after_a_closed_session_was_deleted(path: Path) -> None:
    """The events of a deleted session are removed later and do not count as the oldest ones."""
    filled(path, 1, 3_000).close()
    with closing(SQLiteEventStore(path)) as store:
        put(store.session("open"), *[said(str(n)) for n in range(5_000)])
        store.retain(max_events=1_000).result(PATIENCE)
        assert {one.sid: one.events for one in store.sessions().result(PATIENCE)} == {"open": 1_000}


@pytest.mark.requirement("D53")
def test_a_session_in_use_loses_its_oldest_events_only(path: Path) -> None:
    """It goes on with its ids, and `expect_seq` counts what was dropped, too."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, *[said(str(n), timestamp=1e9) for n in range(5_000)])
        assert store.retain(max_events=10).result(PATIENCE) == 4_990
        assert texts(store) == [str(n) for n in range(4_990, 5_000)]
        assert put(store, said("next", timestamp=time()), expect_seq=5_000) == 5_000
        assert store.retain(max_age=3600).result(PATIENCE) == 10
        put(store, said("and on"))
        assert store.retain(max_age=3600).result(PATIENCE) == 0  # it has no time
        assert [one.events for one in store.sessions().result(PATIENCE)] == [2]
    with closing(SQLiteEventStore(path)) as store:
        assert put(store, said("and so on")) == 5_002
        assert texts(store) == ["next", "and on", "and so on"]


@pytest.mark.requirement("D53")
def test_deleting_goes_on_after_a_crash(path: Path) -> None:
    """A session that was half deleted does not come back, and its room is given back later."""
    with closing(filled(path, 2, 10)):
        pass
    with closing(sqlite3.connect(path)) as crash:
        crash.execute("UPDATE log SET sid = NULL WHERE sid = 's0'")
        crash.commit()
    with closing(SQLiteEventStore(path)) as store:
        assert [one.sid for one in store.sessions().result(PATIENCE)] == ["s1"]
        store.delete("s1").result(PATIENCE)
        with closing(sqlite3.connect(path)) as inside:
            for table in ("event", "log", "blob", "blob_use"):
                assert inside.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608 - ours


# --- handles --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.append([said("a")]),
        lambda store: store.delete("default"),
        lambda store: store.retain(max_events=1),
    ],
    ids=["append", "delete", "retain"],
)
def test_a_store_for_reading_refuses_to_write(
    path: Path, act: Callable[[SQLiteEventStore], Any]
) -> None:
    """A viewer cannot break what it shows."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, said("a"))
    with closing(SQLiteEventStore(path, read_only=True)) as store:
        with pytest.raises(EventStoreError, match="read_only=True"):
            act(store).result(PATIENCE)
        store.reserve(7)
        assert (store.last_id, store.next_id) == (0, 1)


def test_a_closed_store_still_knows_where_it_was(path: Path) -> None:
    """What is closed in good order leaves nothing behind that was only looked at."""
    store = SQLiteEventStore(path)
    put(store, said("a"))
    looked_at = store.session("looked at")
    assert looked_at.next_id == 0
    looked_at.close()
    store.close()
    assert (store.last_id, store.next_id) == (0, 1)
    with closing(sqlite3.connect(path)) as inside:
        assert inside.execute("SELECT sid, writer FROM log").fetchall() == [("default", None)]


def test_a_store_that_is_dropped_lets_go_of_its_file(path: Path) -> None:
    """What was begun is stored all the same; nobody else is kept out."""
    store = SQLiteEventStore(path)
    pending = store.append([said("a")])
    del store
    assert pending.result(PATIENCE) == 0
    with closing(SQLiteEventStore(path)) as again:
        assert put(again, said("b")) == 1


def test_a_program_that_ends_has_stored_what_it_began(path: Path) -> None:
    """Nobody has to close a store for its events to be safe."""
    program = """
import sys
from agents_tools.events import MessageEvent
from agents_tools.persistence import SQLiteEventStore
store = SQLiteEventStore(sys.argv[1])
for number in range(1_000):
    store.append([MessageEvent(str(number))])
"""
    command = [sys.executable, "-c", program, str(path)]
    subprocess.run(command, cwd=ROOT, timeout=PATIENCE, check=True)  # noqa: S603 - our own
    with closing(SQLiteEventStore(path)) as store:
        assert texts(store) == [str(n) for n in range(1_000)]


def test_a_session_may_be_closed_where_its_events_are_acknowledged(path: Path) -> None:
    """A callback runs in the thread that writes; closing must not wait for that thread there."""
    with closing(SQLiteEventStore(path)) as store:
        log = store.session("short")
        closed = threading.Event()

        def close(_: object) -> None:
            log.close()
            closed.set()

        log.append([said("a")]).add_done_callback(close)
        assert closed.wait(PATIENCE)
        assert texts(store.session("short")) == ["a"]


@pytest.mark.requirement("F37")
def test_a_callback_that_raises_does_no_harm(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It must not be taken for a disk that failed, and its events not be stored again."""

    def fail(_: object) -> None:
        raise RuntimeError("on purpose")

    with closing(SQLiteEventStore(path)) as store:
        store.wait(-1).add_done_callback(fail)
        begun = [store.append([said(str(n))]) for n in range(50)]
        for pending in begun[:-1]:
            pending.add_done_callback(fail)
        assert begun[-1].result(PATIENCE) == 49
        put(store, said("50"))
        assert texts(store) == [str(n) for n in range(51)]
    assert "on purpose" in caplog.text


@pytest.mark.requirement("F38")
def test_a_writer_that_came_in_between_is_noticed(path: Path) -> None:
    """The lease file was removed, and somebody else took the lease of a new one."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, said("a"))
        with closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE log SET next_position = 7")
            other.commit()
        with pytest.raises(EventStoreError, match=r"-lease|missing"):
            put(store, said("b"))
        assert store.count().result(PATIENCE) == 1


def test_names_of_sessions_are_any_text(path: Path) -> None:
    """Half of a surrogate pair is no text."""
    with closing(SQLiteEventStore(path)) as store:
        for sid in ("", "a\x00b", "../x", "ü" * 1_000):
            assert put(store.session(sid), said(sid)) == 0
        assert len(store.sessions().result(PATIENCE)) == 4
        with pytest.raises(UserValueError, match="expected valid Unicode"):
            store.session("\ud800")


@pytest.mark.requirement("S11")
@pytest.mark.skipif(os.name == "nt", reason="rights are other things there")
def test_nobody_else_may_read_what_is_made(path: Path) -> None:
    """The file and those beside it; the rights of a file that is there are left alone."""
    before = os.umask(0)
    try:
        with closing(SQLiteEventStore(path)) as store:
            put(store, said("a"), durability="sync")
            files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-lease")]
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        path.chmod(0o640)
        with closing(SQLiteEventStore(path)) as store:
            put(store, said("b"))
            assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)


@pytest.mark.requirement("F35")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE log SET size = '[]'",
        "UPDATE log SET first = 'long ago', sid = x'fffe'",
        "UPDATE log SET next_position = 'x'",
        "UPDATE log SET writer = '5'",
        'UPDATE log SET writer = \'{"pid": {}, "program": 5, "since": 1e300}\'',
        "UPDATE event SET position = 'x'",
        "UPDATE event SET size = x'00'",
        "UPDATE event SET body = x'ff', id = 'x' WHERE id = 0",
        "UPDATE event SET body = CAST(x'fffe' AS TEXT)",
    ],
)
def test_a_file_with_values_of_other_kinds_gives_errors_of_a_store_only(
    path: Path, damage: str
) -> None:
    """Whoever made it, and whatever is asked of it; salvaging copes with it."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, said("a"), said("b"))
    with closing(sqlite3.connect(path)) as other:
        other.execute(damage)
        other.commit()
    with closing(SQLiteEventStore(path)) as one, closing(SQLiteEventStore(path)) as two:
        for ask in (
            one.sessions,
            one.read,
            lambda: one.read(where=EventFilter(text="a")),
            lambda: one.append([said("c")]),
            lambda: two.append([said("d")]),
            lambda: one.retain(max_events=1),
            lambda: one.delete("default"),
        ):
            with contextlib.suppress(EventStoreError):
                ask().result(PATIENCE)
    assert salvage(str(path)).events is not None


def test_what_no_row_can_have_is_not_found(path: Path) -> None:
    """Numbers and texts come from outside: none of them is an error, or SQL, or a pattern."""
    with closing(SQLiteEventStore(path)) as store:
        put(store, said("100 percent"), said("under_score"))
        for where in (
            EventFilter(cause=1 << 70),
            EventFilter(run_id="\ud800"),
            EventFilter(types=("x' OR '1'='1",)),
            EventFilter(tool_call_id="' OR 1=1 --"),
            EventFilter(text="%"),
            EventFilter(text="under-score"),
        ):
            assert store.read(where=where).result(PATIENCE) == []
        assert store.read(1 << 80).result(PATIENCE) == []
        assert len(store.read(-(1 << 80), before=1 << 80).result(PATIENCE)) == 2
        assert store.count(-1, before=1 << 80).result(PATIENCE) == 2


@pytest.mark.requirement("F20")
def test_what_has_no_json_form_fails_in_what_is_pending(path: Path) -> None:
    """Whatever an event of somebody's own raises; the others are stored."""

    class OddEvent(Event):
        type = "odd_for_this_test"
        text: str = field(FieldType("a text", lambda _: True, {}, encode=_odd))

    half = said("a").replace(origin=Origin("tool", "\udc80", ("\udc80",)))
    with closing(SQLiteEventStore(path)) as store:
        with pytest.raises(ZeroDivisionError):
            store.append([OddEvent("x")]).result(PATIENCE)
        with pytest.raises(UserValueError, match="message_event has no JSON form"):
            store.append([half]).result(PATIENCE)
        assert put(store, said("b")) == 0


def _odd(value: Any, at: str) -> Any:
    raise ZeroDivisionError(f"{value} at {at}")


def test_a_store_may_be_closed_where_events_were_read(path: Path) -> None:
    """A callback runs in the thread that reads; closing must not wait for that thread there."""
    store = SQLiteEventStore(path)
    put(store, said("a"))
    closed = threading.Event()
    reading = threading.Event()

    def read(connection: sqlite3.Connection) -> None:
        del connection
        reading.wait(PATIENCE)

    def close(_: object) -> None:
        store.close()
        closed.set()

    pending = store._shared.readers.submit(read)
    pending.add_done_callback(close)  # while it is still reading: called in that thread
    reading.set()
    assert closed.wait(PATIENCE)
    with closing(SQLiteEventStore(path)) as again:
        assert texts(again) == ["a"]
