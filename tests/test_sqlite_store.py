"""Test the SQLite event store: the contract of every store, and the behavior of its file."""

from __future__ import annotations

import contextlib
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from agents_tools import Agent, RunConfig, Runner
from agents_tools.errors import (
    EventStoreCorruptError,
    EventStoreError,
    LeaseLostError,
    RunInUseError,
    UserValueError,
)
from agents_tools.events import (
    Event,
    EventSource,
    MessageEvent,
    Origin,
    ToolArtifactEvent,
)
from agents_tools.events.base import event_class
from agents_tools.persistence import (
    EventFilter,
    EventStore,
    SQLiteEventStore,
    SQLiteRunStore,
    StoredLog,
    UnknownEvent,
)
from agents_tools.persistence.stores.sqlite import SQLiteStorage
from agents_tools.testing import EventStoreContract, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 45.0
ROOT = Path(__file__).parents[1]


@pytest.mark.requirement("D9", "D11", "D52", "D53", "F23", "F38")
class TestContract(EventStoreContract):
    """The contract of every store, with a file."""

    lasting = True

    @pytest.fixture(autouse=True)
    def _in(self, tmp_path: Path) -> None:
        self._path = tmp_path / "events.db"

    def make_store(self) -> SQLiteEventStore:
        """Return an empty store."""
        return SQLiteEventStore(self._path)

    def reopen(self, store: EventStore) -> SQLiteEventStore:
        """Open the same log again."""
        store.close()
        return self.make_store()


class TestContractOfManySessions(TestContract):
    """The same contract for a session that is not the first one."""

    def make_store(self) -> SQLiteEventStore:
        """Return an empty store."""
        return SQLiteEventStore(self._path, "another ü")


class TestContractOfTwoStores(TestContract):
    """The same contract with a second reader of the file, as in another process."""

    @pytest.mark.requirement("F23")
    def test_waiting_sees_what_another_writes(self) -> None:
        """A reader waits for the writer of another process."""
        with (
            closing(self.make_store()) as writer,
            closing(SQLiteEventStore(self._path, read_only=True)) as reader,
        ):
            for number in range(20):
                waiting = reader.wait(number - 1)
                writer.append([message(str(number))]).result(PATIENCE)
                assert waiting.result(PATIENCE) == number
            assert texts(reader) == [str(number) for number in range(20)]


def message(text: str, **envelope: Any) -> Event:
    return MessageEvent(text).replace(**envelope)


def texts(store: StoredLog, **options: Any) -> list[str]:
    events = store.read(**options).result(PATIENCE)
    return [cast("MessageEvent", event).content for event in events]


def append(store: StoredLog, *events: Event, **options: Any) -> int:
    return store.append(events, **options).result(PATIENCE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a store that does not exist yet."""
    return tmp_path / "events.db"


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.requirement("F35")
def test_a_file_of_another_format_is_refused_and_unchanged(path: Path) -> None:
    """A mistyped path must not destroy a file."""
    for content in (b"Dear diary,\n" * 50, b"SQLite format 3\0 and no more"):
        path.write_bytes(content)
        for read_only in (False, True):
            with pytest.raises(EventStoreCorruptError, match="Nothing was changed") as raised:
                SQLiteEventStore(path, read_only=read_only)
            assert raised.value.store == str(path)
        assert path.read_bytes() == content
        assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.requirement("F35")
def test_a_database_of_another_program_is_refused_and_unchanged(path: Path) -> None:
    """SQLite files of other programs look the same from outside."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text)")
    content = path.read_bytes()
    with pytest.raises(EventStoreCorruptError, match="another program"):
        SQLiteEventStore(path)
    assert path.read_bytes() == content


def test_an_event_without_an_id_does_not_stop_the_store(path: Path) -> None:
    """Its append fails; the thread that writes continues for the others."""
    event = MessageEvent("hello")
    with closing(SQLiteEventStore(path)) as store:
        with pytest.raises(UserValueError):
            store.append([event.replace(id=cast("Any", None))]).result(10)
        store.append([event]).result(10)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """A file created by `mktemp` counts as missing."""
    path.touch()
    with closing(SQLiteEventStore(path)) as store:
        assert append(store, message("a")) == 0


def test_a_missing_file_is_created_only_on_request(path: Path) -> None:
    """A reader with a wrong path gets an error."""
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(EventStoreError, match=r"The store .* does not exist"):
            SQLiteEventStore(path, **cast("Any", options))
    with pytest.raises(EventStoreError, match="The directory of the store"):
        SQLiteEventStore(path / "deeper" / "events.db")
    with pytest.raises(EventStoreError, match="is not a file"):
        SQLiteEventStore(path.parent)
    for text in ("", ":memory:"):
        with pytest.raises(UserValueError, match="MemoryRunStore"):
            SQLiteEventStore(text)
    assert not path.exists()


@pytest.mark.parametrize("application", [0x61744556, 0x61744452], ids=["events", "durable"])
def test_a_file_of_release_0_1_is_refused_and_unchanged(path: Path, application: int) -> None:
    """Its tables differ, so reading or writing them would damage the history."""
    with closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE log (sid TEXT)")
        old.execute(f"PRAGMA application_id = {application}")
        old.execute("PRAGMA user_version = 2")
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(EventStoreError, match=r"written by agents-tools 0\.1.*a new file"):
            SQLiteEventStore(path, read_only=read_only)
    assert path.read_bytes() == content
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_store_of_a_later_release_is_refused_and_unchanged(path: Path) -> None:
    """Writing to tables of an unknown version would damage them."""
    SQLiteEventStore(path).close()
    with closing(sqlite3.connect(path)) as later:
        later.execute("PRAGMA user_version = 1000")
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(EventStoreError, match=r"later release.*Update agents-tools"):
            SQLiteEventStore(path, read_only=read_only)
    assert path.read_bytes() == content


@pytest.mark.requirement("F35")
def test_a_damaged_page_is_reported_with_the_command_that_recovers_the_rest(path: Path) -> None:
    """The file is not changed, and the other logs stay readable."""
    with closing(SQLiteEventStore(path)) as store:
        append(store, *[message(f"{n} " + "x" * 500) for n in range(200)])
        append(store.session("other"), message("whole"))
    content = bytearray(path.read_bytes())
    place = content.index(b'"content":"100 ') // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    path.write_bytes(content)
    with (
        closing(SQLiteEventStore(path, read_only=True)) as store,
        pytest.raises(EventStoreCorruptError, match=r"damaged.*Nothing was changed.*\.recover"),
    ):
        store.read().result(PATIENCE)
    with closing(SQLiteEventStore(path, "other", read_only=True)) as store:
        assert texts(store) == ["whole"]
    assert path.read_bytes() == content


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.requirement("S31")
def test_a_large_text_is_stored_once_and_restored(path: Path) -> None:
    """Ten edits of a file do not store its text ten times, and readers get the full payload."""
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
        append(store, *events)
        found = store.read().result(PATIENCE)
        assert found == [event.replace(id=n) for n, event in enumerate(events)]
        where = EventFilter(text="ÄÄÄ")
        assert [event.id for event in store.read(where=where).result(PATIENCE)] == [0, 1, 2]
    assert path.stat().st_size < 2 * len(text.encode()) + 1_500_000


@pytest.mark.requirement("S31")
def test_a_payload_can_contain_names_that_the_store_uses(path: Path) -> None:
    """Such names are only data within a payload."""
    names = {"v": 9, "type": "x", "id": 5, "body": "'; DROP TABLE event; --", "large": None}
    with closing(SQLiteEventStore(path, "'; DROP TABLE log; --")) as store:
        append(store, MessageEvent([names]))
        assert store.read().result(PATIENCE) == [MessageEvent([names]).replace(id=0)]
        assert store.read(where=EventFilter(tool_name="' OR 1=1")).result(PATIENCE) == []


@event_class
class StrangeEvent(Event):
    """An event type that another program registered and this one did not."""

    type = "acme.strange_event"
    durable = True

    what: str


@pytest.mark.requirement("D25")
def test_an_event_of_an_unknown_type_is_returned_as_a_generic_event(path: Path) -> None:
    """A plugin that is not installed here must not make a log unreadable."""
    strange = StrangeEvent("odd").stamped(Origin("t", "c", ("c",)), 7).replace(cause=3)
    with closing(SQLiteEventStore(path)) as store:
        append(store, message("a"), strange, message("b"))
        events = store.read().result(PATIENCE)
        unknown = events[1]
        assert isinstance(unknown, UnknownEvent)
        assert unknown.to_dict() == strange.replace(id=1).to_dict()
        assert (unknown.id, unknown.seq, unknown.cause, unknown.path) == (1, 7, 3, ("c",))
        assert (unknown.type, unknown.durable) == ("acme.strange_event", False)
        assert "register_event" in unknown.problem
        assert pickle.loads(pickle.dumps(unknown)) == unknown  # noqa: S301 - made right here
        for where in (EventFilter(types=("acme.strange_event",)), EventFilter(text="ODD")):
            assert store.read(where=where).result(PATIENCE) == [unknown]
        append(store, unknown.replace(id=-1))
        assert store.read(after=2).result(PATIENCE)[0].to_dict()["what"] == "odd"


@pytest.mark.requirement("F35")
def test_ids_of_unstored_events_are_not_reused_after_a_crash(path: Path) -> None:
    """Clients have seen them, so a resumed page would mistake another event for them."""
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
        assert store.next_id == next_id  # closed properly: no id is skipped


# --- searching ------------------------------------------------------------------------------------


@pytest.mark.requirement("D52")
@pytest.mark.parametrize(
    ("where", "index"),
    [
        (None, "sqlite_autoindex_event_1"),
        (EventFilter(types=("run_started_event",)), "event_type"),
        (EventFilter(types=("run_started_event", "null_event")), "sqlite_autoindex_event_1"),
        (EventFilter(cause=3), "event_cause"),
        (EventFilter(tool_call_id="call_1", types=("null_event",)), "event_call"),
        (EventFilter(run_id="run_1", sources=(EventSource.USER,)), "sqlite_autoindex_event_1"),
        (EventFilter(since=5.0, hidden=False), "sqlite_autoindex_event_1"),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_filtered_reads_use_an_index_and_return_events_in_order(
    path: Path,
    where: EventFilter | None,
    index: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    reverse: bool,
) -> None:
    """No query sorts, so a read with a limit stops at it."""
    asked: list[str] = []
    connect = SQLiteStorage.connect

    def traced(self: SQLiteStorage, use: Literal["write", "read"]) -> Any:
        connection = connect(self, use)
        if use == "read":
            connection.set_trace_callback(asked.append)
        return connection

    with closing(SQLiteEventStore(path)) as store:
        append(store, message("a"))
        monkeypatch.setattr(SQLiteStorage, "connect", traced)
        store.read(5, before=100, reverse=reverse, where=where, limit=3).result(PATIENCE)
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as connection:
        plans = [
            row[3]
            for statement in asked
            if " FROM event " in statement
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert plans
    assert any(f"INDEX {index} (log=?" in plan for plan in plans), plans
    assert not any("SCAN" in plan or "B-TREE" in plan for plan in plans), plans


def test_readers_continue_while_the_writer_writes(path: Path) -> None:
    """A reader sees only complete appends, at its own pace."""
    with (
        closing(SQLiteEventStore(path)) as store,
        closing(SQLiteEventStore(path, read_only=True)) as reader,
    ):
        append(store, message("0"))
        enough = threading.Event()
        counts: list[int] = []

        def read() -> None:
            while not enough.is_set():
                counts.append(len(texts(reader)))

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for n in range(100):
                append(store, *[message(str(n))] * 4)
        finally:
            enough.set()
            thread.join()
        assert all(count % 4 == 1 for count in counts)
        assert counts == sorted(counts)


# --- disk space -----------------------------------------------------------------------------------


def filled(path: Path, sessions: int, each: int) -> SQLiteEventStore:
    store = SQLiteEventStore(path)
    for number in range(sessions):
        log = store.session(f"s{number}")
        events = [message("x" * 1_000, timestamp=1e9 + number * 1e6 + n) for n in range(each)]
        append(log, *events, MessageEvent(f"{number % 2}" * 100_000).replace(timestamp=1e9))
        log.close()
    return store


@pytest.mark.requirement("D53")
def test_deleting_a_session_frees_its_disk_space(path: Path) -> None:
    """Deleted data is removed from the disk; texts shared with other sessions stay."""
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
        ({"max_bytes": 450_000}, {"s2": 101, "s3": 101}),
        ({"max_bytes": 250_000}, {"s3": 101}),
        ({"max_age": 1e8}, {}),
        ({"max_events": 0}, {}),
        ({}, {"s0": 101, "s1": 101, "s2": 101, "s3": 101}),
    ],
)
def test_retention_deletes_whole_old_sessions(
    path: Path, limits: dict[str, Any], kept: dict[str, int]
) -> None:
    """The session that was inactive for longest is deleted first."""
    with closing(filled(path, 4, 100)) as store:
        deleted = store.retain(**limits).result(PATIENCE)
        left = {one.sid: one.events for one in store.sessions().result(PATIENCE)}
        assert left == kept
        assert deleted == 404 - sum(kept.values())


# --- read-only and closed stores ------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.append([message("a")]),
        lambda store: store.delete("default"),
        lambda store: store.retain(max_events=1),
    ],
    ids=["append", "delete", "retain"],
)
def test_a_read_only_store_refuses_to_write(
    path: Path, act: Callable[[SQLiteEventStore], Any]
) -> None:
    """A viewer must not be able to damage a log."""
    with closing(SQLiteEventStore(path)) as store:
        append(store, message("a"))
    with closing(SQLiteEventStore(path, read_only=True)) as store:
        with pytest.raises(EventStoreError, match="read_only=True"):
            act(store).result(PATIENCE)
        store.reserve(7)
        assert (store.last_id, store.next_id) == (0, 1)


def test_a_closed_store_still_reports_its_position(path: Path) -> None:
    """Closing removes the temporary files of a reader."""
    store = SQLiteEventStore(path)
    append(store, message("a"))
    looked_at = store.session("looked at")
    assert looked_at.next_id == 0
    looked_at.close()
    store.close()
    assert (store.last_id, store.next_id) == (0, 1)
    with closing(sqlite3.connect(path)) as inside:
        assert inside.execute("SELECT name, holder FROM log").fetchall() == [("default", None)]


def test_a_dropped_store_releases_its_file(path: Path) -> None:
    """Pending appends are still stored, and other writers are not blocked."""
    store = SQLiteEventStore(path)
    pending = store.append([message("a")])
    del store
    assert pending.result(PATIENCE) == 0
    with closing(SQLiteEventStore(path)) as again:
        assert append(again, message("b")) == 1


def test_pending_appends_are_stored_when_the_program_exits(path: Path) -> None:
    """Events are safe without closing the store."""
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


def test_a_session_can_be_closed_in_an_append_callback(path: Path) -> None:
    """The callback runs in the writer thread, so closing must not wait for that thread."""
    with closing(SQLiteEventStore(path)) as store:
        log = store.session("short")
        closed = threading.Event()

        def close(_: object) -> None:
            log.close()
            closed.set()

        log.append([message("a")]).add_done_callback(close)
        assert closed.wait(PATIENCE)
        assert texts(store.session("short")) == ["a"]


@pytest.mark.requirement("F37")
def test_a_callback_that_raises_does_not_affect_the_store(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It must not count as a disk failure that makes the store append the events again."""

    def fail(_: object) -> None:
        raise RuntimeError("on purpose")

    with closing(SQLiteEventStore(path)) as store:
        store.wait(-1).add_done_callback(fail)
        begun = [store.append([message(str(n))]) for n in range(50)]
        for pending in begun[:-1]:
            pending.add_done_callback(fail)
        assert begun[-1].result(PATIENCE) == 49
        append(store, message("50"))
        assert texts(store) == [str(n) for n in range(51)]
    assert "on purpose" in caplog.text


@pytest.mark.requirement("F38")
def test_a_writer_that_took_over_in_between_is_detected(path: Path) -> None:
    """A process that was suspended for longer than its lease must not write afterwards."""
    with closing(SQLiteEventStore(path)) as store:
        append(store, message("a"))
        with closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE log SET epoch = epoch + 1")
            other.commit()
        with pytest.raises(LeaseLostError, match="has taken the lease of 'default'"):
            append(store, message("b"))
        assert texts(store) == ["a"]


def test_an_append_without_the_lease_uses_no_id(path: Path) -> None:
    with closing(SQLiteEventStore(path)) as second:
        with closing(SQLiteEventStore(path)) as first:
            append(first, message("a"))
            with pytest.raises(RunInUseError):
                append(second, message("b", id=500))
        assert second.next_id == 1


def test_session_names_can_be_any_text(path: Path) -> None:
    """An unpaired surrogate is not valid text."""
    with closing(SQLiteEventStore(path)) as store:
        for sid in ("", "a\x00b", "../x", "ü" * 1_000):
            assert append(store.session(sid), message(sid)) == 0
        assert len(store.sessions().result(PATIENCE)) == 4
        with pytest.raises(UserValueError, match="not valid Unicode"):
            store.session("\ud800")


@pytest.mark.requirement("S11")
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX file modes")
def test_new_files_are_readable_only_by_their_owner(path: Path) -> None:
    """This includes the files next to the database; permissions of existing files are unchanged."""
    before = os.umask(0)
    try:
        with closing(SQLiteEventStore(path)) as store:
            append(store, message("a"), durability="sync")
            files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        path.chmod(0o640)
        with closing(SQLiteEventStore(path)) as store:
            append(store, message("b"))
            assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)


@pytest.mark.requirement("F35")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE log SET size = '[]'",
        "UPDATE log SET started = 'long ago', name = x'fffe'",
        "UPDATE log SET appended = 'x', epoch = x'00'",
        "UPDATE log SET last_id = 'x', message = 'x'",
        "UPDATE log SET holder = '5', expires = 1e300",
        'UPDATE log SET holder = \'{"pid": {}, "program": 5, "since": 1e300}\', expires = 1e300',
        "UPDATE log SET holder = x'ff', expires = 'x'",
        "UPDATE event SET size = x'00'",
        "UPDATE event SET large = '[[5]]'",
        "UPDATE event SET body = x'ff', id = 'x' WHERE id = 0",
        "UPDATE event SET body = CAST(x'fffe' AS TEXT)",
    ],
)
def test_a_file_with_values_of_wrong_types_raises_only_store_errors(
    path: Path, damage: str
) -> None:
    """A damaged file must not crash a program that only expects errors of the store."""
    with closing(SQLiteEventStore(path)) as store:
        append(store, message("a"), message("b"))
    with closing(sqlite3.connect(path)) as other:
        other.execute(damage)
        other.commit()
    with closing(SQLiteEventStore(path)) as one, closing(SQLiteEventStore(path)) as two:
        for ask in (
            one.sessions,
            one.read,
            lambda: one.read(where=EventFilter(text="a")),
            lambda: one.append([message("c")]),
            lambda: two.append([message("d")]),
            lambda: one.retain(max_events=1),
            lambda: one.delete("default"),
        ):
            with contextlib.suppress(EventStoreError):
                ask().result(PATIENCE)


def test_values_that_no_row_can_have_match_nothing(path: Path) -> None:
    """Numbers and texts from outside must not act as an error, SQL or a pattern."""
    with closing(SQLiteEventStore(path)) as store:
        append(store, message("100 percent"), message("under_score"))
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


@pytest.mark.requirement("F20")
def test_an_event_without_a_json_form_fails_its_own_append(path: Path) -> None:
    """This holds for any exception of a custom event; the other events are stored."""

    @event_class
    class OddEvent(Event):
        type = "odd_for_this_test"
        text: str

        def to_dict(self) -> dict[str, Any]:
            raise ZeroDivisionError

    half = message("a").replace(origin=Origin("tool", "\udc80", ("\udc80",)))
    with closing(SQLiteEventStore(path)) as store:
        with pytest.raises(ZeroDivisionError):
            store.append([OddEvent("x")]).result(PATIENCE)
        assert append(store, half) == 0  # a lone surrogate becomes U+FFFD
        assert append(store, message("b")) == 1


def test_a_store_can_be_closed_in_a_read_callback(path: Path) -> None:
    """The callback runs in the reader thread, so closing must not wait for that thread."""
    store = SQLiteEventStore(path)
    append(store, message("a"))
    closed = threading.Event()
    reading = threading.Event()

    def read() -> None:
        reading.wait(PATIENCE)

    def close(_: object) -> None:
        store.close()
        closed.set()

    pending = store._engine.submit_read(read)
    pending.add_done_callback(close)  # called in the reader thread, while it reads
    reading.set()
    assert closed.wait(PATIENCE)
    with closing(SQLiteEventStore(path)) as again:
        assert texts(again) == ["a"]


async def test_a_closed_store_leaves_only_its_file(path: Path) -> None:
    """The newest events are in the file itself, so that it can be copied."""
    store = SQLiteRunStore(path)
    agent = Agent("Ada", model=ScriptedModel(["Hello."]))
    await Runner.run(agent, "Hi.", run_config=RunConfig(store=store))
    assert await store.runs()
    await store.aclose()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
