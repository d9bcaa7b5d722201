"""Events in Redis, with a real server: what is acknowledged stays, whatever happens to either."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools.errors import (
    EventConflictError,
    EventStoreCorruptError,
    EventStoreError,
    EventStoreFullError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import Event, MessageEvent, NotifyStreamEvent
from agents_tools.persistence import PendingFuture, RedisEventStore
from agents_tools.persistence.redis.batches import RedisAppend
from agents_tools.persistence.stream import EventStream
from agents_tools.testing.stores import EventStoreContract
from tests.programs import find
from tests.waiting import until

redis = pytest.importorskip("redis", reason="the extra redis is not installed")

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.external("redis-server")


class Server:
    """A redis-server of the tests' own, in a directory of its own, behind a socket file."""

    def __init__(self, *settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self.socket = self.folder / "socket"
        self.url = f"unix://{self.socket}"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        given = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        kept = ["--appendonly", "yes", "--save", "", *self._settings]
        self._process = subprocess.Popen(  # noqa: S603 - the server of the test
            [str(find("redis-server")), *given, *kept], stdout=subprocess.DEVNULL
        )
        until(self._answers)

    def _answers(self) -> bool:
        with (
            contextlib.suppress(redis.RedisError),
            redis.Redis(unix_socket_path=str(self.socket)) as client,
        ):
            return bool(client.ping())
        return False

    def stop(self, *, kill: bool = False) -> None:
        """End it: orderly, or as a crash would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._process.wait()
            self._process = None

    def client(self) -> Any:
        """Give a client of the test's own."""
        return redis.Redis(unix_socket_path=str(self.socket))

    def remove(self) -> None:
        """End it and leave nothing behind."""
        self.stop()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """Give a server that all tests of this file share."""
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server that a test may stop."""
    server = Server("--appendfsync", "always")
    yield server
    server.remove()


def said(text: str, id_: int = -1) -> Event:
    """Give an event."""
    return MessageEvent(text).replace(id=id_)


def texts(store: RedisEventStore) -> list[str]:
    """Give what a log says."""
    return [event.content for event in store.read().result(10) if isinstance(event, MessageEvent)]


def fails(pending: Any) -> BaseException:
    """Give why something fails."""
    with pytest.raises(EventStoreError):
        pending.result(10)
    error: BaseException = pending.error()
    return error


@pytest.mark.requirement("D11", "D52", "D53", "D9", "F23", "F38")
class TestRedisEventStore(EventStoreContract):
    """What every store promises."""

    lasting = True
    server: Server
    made = 0

    @pytest.fixture(autouse=True)
    def _with_server(self, shared: Server) -> None:
        type(self).server = shared

    def make_store(self) -> RedisEventStore:
        """Give a store whose keys nobody else has."""
        TestRedisEventStore.made += 1
        return RedisEventStore(self.server.url, prefix=f"contract{self.made}")

    def reopen(self, store: Any) -> RedisEventStore:
        """Open the log again, after its program has gone."""
        store.close()
        return RedisEventStore(self.server.url, store.sid, prefix=f"contract{self.made}")


@pytest.mark.requirement("F38")
def test_a_second_program_that_writes_is_refused(shared: Server) -> None:
    """Two writers with the same ids must not overwrite each other."""
    first, second = RedisEventStore(shared.url, "two"), RedisEventStore(shared.url, "two")
    with contextlib.closing(first), contextlib.closing(second):
        first.append([said("a")]).result(10)
        error = fails(second.append([said("b")]))
        assert isinstance(error, EventConflictError)
        assert f"has another writer: {os.uname().nodename}:{os.getpid()}" in str(error)
        assert texts(second) == ["a"]
        first.close()
        with contextlib.closing(RedisEventStore(shared.url, "two")) as third:
            third.append([said("c")]).result(10)
            assert isinstance(fails(second.append([said("d", 1)])), EventConflictError)
            assert texts(third) == ["a", "c"]


@pytest.mark.requirement("F38")
def test_an_id_that_is_taken_is_refused_by_the_server_itself(shared: Server) -> None:
    """Also to a writer that began before the other one was there."""
    early = RedisEventStore(shared.url, "ids")
    with contextlib.closing(early), contextlib.closing(RedisEventStore(shared.url, "ids")) as late:
        late.append([said("a"), said("b")]).result(10)
        late.close()
        error = fails(early.append([said("c", 1)]))
        assert isinstance(error, EventConflictError)
        assert "already has the id 1: expected at least 2" in str(error)
        assert early.append([said("c")]).result(10) == 2


@pytest.mark.requirement("F38")
def test_the_lease_of_a_program_that_died_is_taken_over(shared: Server) -> None:
    """After kill -9 the next process goes on at once, where the other one stopped."""
    writer = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", DYING, shared.url], cwd=ROOT, check=False, timeout=15
    )
    assert writer.returncode == -signal.SIGKILL
    with contextlib.closing(RedisEventStore(shared.url, "dying")) as store:
        assert texts(store) == ["a", "b"]
        assert store.next_id > 5
        store.append([said("c")]).result(10)
        assert texts(store) == ["a", "b", "c"]


DYING = """
import os, signal, sys
from agents_tools.events import MessageEvent
from agents_tools.persistence import RedisEventStore

store = RedisEventStore(sys.argv[1], "dying")
store.reserve(5)
store.append([MessageEvent("a"), MessageEvent("b")], durability="sync").result(10)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.requirement("F35", "D11")
@pytest.mark.parametrize("kill", [False, True])
def test_nothing_acknowledged_is_lost_or_doubled_when_the_server_restarts(
    server: Server, kill: bool
) -> None:
    """A writer and a watcher go on as if nothing had happened."""
    store, watcher = RedisEventStore(server.url), RedisEventStore(server.url)
    with contextlib.closing(store), contextlib.closing(watcher):
        acknowledged: list[int] = []
        going = threading.Event()

        def write() -> None:
            while not going.is_set() or len(acknowledged) < 200:
                pending = [store.append([said(str(n))]) for n in range(5)]
                acknowledged.extend(one.result(15) for one in pending)

        seen: list[int] = []

        def watch() -> None:
            while threads[0].is_alive() or len(seen) < len(acknowledged):
                last = seen[-1] if seen else -1
                with contextlib.suppress(TimeoutError):
                    watcher.wait(last).result(0.1)
                    seen.extend(event.id for event in watcher.read(last).result(15))

        threads = [threading.Thread(target=write), threading.Thread(target=watch)]
        threads[0].start()
        until(lambda: len(acknowledged) > 50)
        threads[1].start()
        server.stop(kill=kill)
        server.start()
        before = len(acknowledged)
        until(lambda: len(acknowledged) > before + 50)
        going.set()
        for thread in threads:
            thread.join()
        assert acknowledged == list(range(len(acknowledged)))
        assert [event.id for event in store.read().result(10)] == acknowledged
        assert seen == acknowledged


@pytest.mark.requirement("F37")
def test_what_is_begun_while_the_server_is_away_fails_in_time_with_its_address(
    server: Server,
) -> None:
    """A dead server is told, not waited for without end; afterwards all works again."""
    store = RedisEventStore(server.url, timeout=0.3)
    with contextlib.closing(store):
        store.append([said("a")]).result(10)
        server.stop()
        for pending in (store.append([said("b")]), store.read(), store.sessions()):
            error = fails(pending)
            assert isinstance(error, EventStoreError)
            assert error.store == f"unix://{server.socket}"
            assert "could not be reached within 0.3 s" in str(error)
        assert store.last_id == 0
        waiting = store.wait(0)
        server.start()
        store.append([said("c")]).result(10)
        assert waiting.result(10) == 1
        assert texts(store) == ["a", "c"]


@pytest.mark.requirement("F35")
def test_a_batch_whose_answer_was_lost_is_stored_once(
    shared: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks behind the server's back, after the events were stored."""
    store = RedisEventStore(shared.url, "lost answer")
    with contextlib.closing(store):
        store.append([said("a")]).result(10)
        whole = store._server._client.pipeline  # pyright: ignore[reportPrivateUsage]
        broken: list[int] = []

        def breaking(**options: Any) -> Any:
            pipe = whole(**options)
            execute = pipe.execute

            def executed(**how: Any) -> Any:
                replies = execute(**how)
                if not broken:
                    broken.append(1)
                    raise redis.ConnectionError("the answer was lost")
                return replies

            pipe.execute = executed
            return pipe

        monkeypatch.setattr(store._server._client, "pipeline", breaking)  # pyright: ignore[reportPrivateUsage]
        pending = [store.append([said(text)]) for text in "bcd"]
        assert [one.result(10) for one in pending] == [1, 2, 3]
        assert broken
        assert texts(store) == ["a", "b", "c", "d"]


@pytest.mark.requirement("F35")
def test_a_batch_that_failed_though_it_was_stored_does_not_hide_the_next(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes after an answer that never came is stored, and under an id of its own."""
    store = RedisEventStore(server.url, timeout=0.2)
    with contextlib.closing(store):
        store.append([said("a")]).result(10)
        whole = store._server._client.pipeline  # pyright: ignore[reportPrivateUsage]
        deaf = True

        def breaking(**options: Any) -> Any:
            pipe = whole(**options)
            execute = pipe.execute

            def executed(**how: Any) -> Any:
                replies = execute(**how)
                if deaf:
                    raise redis.ConnectionError("the answer was lost")
                return replies

            pipe.execute = executed
            return pipe

        monkeypatch.setattr(store._server._client, "pipeline", breaking)  # pyright: ignore[reportPrivateUsage]
        assert "could not be reached" in str(fails(store.append([said("b")])))
        deaf = False
        assert store.append([said("c")]).result(10) == 2
        assert texts(store) == ["a", "b", "c"]


WATCHING = """
import sys
from agents_tools.events import event_to_dict
from agents_tools.persistence import RedisEventStore
from agents_tools.persistence.stream import EventStream
import asyncio

async def main():
    store = RedisEventStore(sys.argv[1], "watched", timeout=15)
    async with EventStream(store, read_only=True) as stream:
        async for event in stream.follow():
            print(event.id, event.type, getattr(event, "data", ""), flush=True)
            if getattr(event, "data", "") == "the end":
                break
    store.close()

asyncio.run(main())
"""


@pytest.mark.requirement("F23", "D53")
@pytest.mark.timeout(120)
def test_a_stream_is_watched_from_another_process_even_across_a_restart(server: Server) -> None:
    """With keep="all" also what is only shown reaches the watcher, in order and once."""
    store = RedisEventStore(server.url, "watched", timeout=15)
    with contextlib.closing(store), EventStream(store, keep="all") as stream:
        stream.publish(MessageEvent("before"))
        with subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", WATCHING, server.url],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as watcher:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == "0 message_event \n"
            for n in range(1, 21):
                stream.publish(NotifyStreamEvent(f"{n}"))
            seen = [watcher.stdout.readline() for _ in range(20)]
            server.stop()
            for n in range(21, 41):
                stream.publish(NotifyStreamEvent(f"{n}"))
            server.start()
            stream.publish(NotifyStreamEvent("the end"))
            seen += watcher.stdout.readlines()
        assert watcher.returncode == 0
        assert seen == [
            *(f"{n} notify_stream_event {n}\n" for n in range(1, 41)),
            "41 notify_stream_event the end\n",
        ]
        stream.flush(10)
        assert not stream.errors


@pytest.mark.requirement("F35")
def test_a_server_that_forgot_is_noticed(shared: Server) -> None:
    """A restart without the last events must not be papered over with new ones."""
    store = RedisEventStore(shared.url, "forgotten")
    with contextlib.closing(store), contextlib.closing(shared.client()) as client:
        store.append([said("a")]).result(10)
        client.delete(*client.keys("agents_tools:*:forgotten"))
        for _ in range(2):
            assert "has lost what it had acknowledged" in str(fails(store.append([said("b")])))
        assert texts(store) == []


@pytest.mark.requirement("F37")
def test_a_full_server_takes_nothing_and_says_so() -> None:
    """No room is an error of its own; what was there stays."""
    server = Server("--maxmemory", "2mb", "--maxmemory-policy", "noeviction")
    try:
        with contextlib.closing(RedisEventStore(server.url)) as store:
            error: BaseException | None = None
            for _ in range(100):
                pending = store.append([said("x" * 100_000), said("y")])
                try:
                    pending.result(10)
                except EventStoreError as raised:
                    error = raised
                    break
            assert isinstance(error, EventStoreFullError)
            assert store.read().result(10)[-1] == said("y", store.last_id)
    finally:
        server.remove()


@pytest.mark.requirement("F35")
def test_a_foreign_entry_is_named_and_left_alone(shared: Server) -> None:
    """A damaged log is told where it is damaged."""
    with (
        contextlib.closing(shared.client()) as client,
        contextlib.closing(RedisEventStore(shared.url, "foreign")) as store,
    ):
        client.xadd("agents_tools:log:foreign", {"other": "thing"}, "4-0")
        error = fails(store.read())
        assert isinstance(error, EventStoreCorruptError)
        assert "The entry 4-0 of 'agents_tools:log:foreign'" in str(error)
        client.set("agents_tools:log:foreign", "text")
        assert isinstance(fails(store.read()), EventStoreCorruptError)


def test_a_log_may_be_bounded_and_may_be_forgotten_after_a_while(shared: Server) -> None:
    """A log that nobody deletes must not grow without end."""
    bounded = RedisEventStore(shared.url, "bounded", maxlen=100, ttl=60)
    with contextlib.closing(bounded), contextlib.closing(shared.client()) as client:
        bounded.append([said(str(n)) for n in range(1_000)]).result(10)
        bounded.append([said("last")], expect_seq=1_000).result(10)
        assert len(texts(bounded)) < 300
        assert texts(bounded)[-1] == "last"
        assert 0 < client.pttl("agents_tools:log:bounded") <= 60_000
        assert 0 < client.pttl("agents_tools:state:bounded") <= 60_000


def test_a_client_may_be_given(shared: Server) -> None:
    """Its settings are used, whatever it decodes; it stays the caller's own."""
    with contextlib.closing(
        redis.Redis(unix_socket_path=str(shared.socket), decode_responses=True)
    ) as client:
        with contextlib.closing(RedisEventStore(client, "given")) as store:
            store.append([said("ä")]).result(10)
            assert texts(store) == ["ä"]
        assert client.ping()


def test_what_cannot_work_is_refused_at_once(shared: Server) -> None:
    """The message names the place, and never who may use it."""
    with pytest.raises(EventStoreError, match="could not be reached") as caught:
        RedisEventStore("redis://user:hunter2@127.0.0.1:1/3", timeout=0.5)
    assert caught.value.store == "redis://127.0.0.1:1/3"
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UserValueError, match="expected an address such as redis://"):
        RedisEventStore("http://127.0.0.1")
    with pytest.raises(UserTypeError, match=r"got a builtins\.int"):
        RedisEventStore(6379)
    with pytest.raises(
        UserValueError, match=r"RedisEventStore\(maxlen=\): expected a number above 0"
    ):
        RedisEventStore(shared.url, maxlen=0)


def test_an_unsafe_server_is_told_of_once(shared: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Honesty: what `sync` means is the server's to say."""
    with contextlib.closing(RedisEventStore(shared.url, "unsafe")) as store:
        for text in "ab":
            store.append([said(text)], durability="sync").result(10)
    warned = [
        record for record in caplog.records if "can be lost in a power failure" in record.message
    ]
    version = tuple(map(int, shared.client().info("server")["redis_version"].split(".")[:2]))
    assert len(warned) == (1 if version < (7, 2) else 0)


def test_replicas_that_do_not_answer_are_told(shared: Server) -> None:
    """Honesty: the events are there, and whether they are safe is not known."""
    store = RedisEventStore(shared.url, "replicas", replicas=1, timeout=0.4)
    with contextlib.closing(store):
        assert "did not confirm their durability in time" in str(
            fails(store.append([said("a")], durability="sync"))
        )
        store.append([said("b")]).result(10)
        assert texts(store) == ["a", "b"]


def test_waiting_for_one_log_does_not_keep_another_waiting(shared: Server) -> None:
    """All that wait share a thread, and one that comes later is heard at once."""
    reader, writer = RedisEventStore(shared.url, "first"), RedisEventStore(shared.url, "second")
    with contextlib.closing(reader), contextlib.closing(writer):
        first = reader.wait(-1)
        until(lambda: reader._server.waiter._asked is not None)  # pyright: ignore[reportPrivateUsage]
        second = reader.session("second").wait(-1)
        writer.append([said("a")]).result(10)
        assert second.result(3) == 0  # the request that was under way would have gone on for longer
        assert not first.done()
        assert first.cancel()


def test_closing_leaves_no_thread_and_no_connection(shared: Server) -> None:
    """A store is made for a session and gone with it."""
    with contextlib.closing(shared.client()) as client:
        before = len(client.client_list())
        store = RedisEventStore(shared.url, "closing")
        waiting = store.wait(-1)
        store.append([said("a")]).result(10)
        assert waiting.result(10) == 0
        left = store.wait(5)
        store.close()
        assert isinstance(left.error(), EventStoreError)
        until(lambda: len(client.client_list()) == before)
    names = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("agents-tools-redis") for name in names)


@pytest.mark.requirement("D53")
def test_a_log_may_be_left_and_taken_up_again(shared: Server) -> None:
    """Two programs write to one log by turns; who comes back is not taken for somebody else."""
    roots = [RedisEventStore(shared.url, f"root {name}") for name in "ab"]
    for turn in range(4):
        log = roots[turn % 2].session("by turns")
        for part in "xy":
            log.append([said(f"{turn}{part}")]).result(10)
        log.close()
    log = roots[0].session("by turns")
    assert texts(log) == [f"{turn}{part}" for turn in range(4) for part in "xy"]
    for root in roots:
        root.close()


@pytest.mark.requirement("D19")
def test_closing_the_store_ends_those_who_wait_for_its_other_logs(shared: Server) -> None:
    """Nobody waits for ever for what cannot come any more."""
    root = RedisEventStore(shared.url, "waited for")
    log = root.session("waited for, too")
    pending = log.wait(-1)
    root.close()
    for one in (pending, log.wait(-1)):
        assert "closed" in str(fails(one))


@pytest.mark.requirement("S20")
@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cret@host:port/0",
        "redis://u:s3c/ret@host/0",
        "http://u:s3cret@host",
        "u:s3cret@h",
    ],
)
def test_a_password_is_in_no_message(url: str) -> None:
    """An address that is wrong is told without who may use it."""
    with pytest.raises(UserValueError) as caught:
        RedisEventStore(url)
    assert "s3c" not in str(caught.value)
    assert "redis://user:password@host" in str(caught.value)


def test_an_address_with_tls_is_told_as_that() -> None:
    """The message names the address as it was meant."""
    with pytest.raises(EventStoreError, match=r"rediss://127.0.0.1:1/0 could not be reached"):
        RedisEventStore("rediss://u:s3cret@127.0.0.1:1/0", timeout=0.1)


def test_a_client_for_event_loops_is_refused(shared: Server) -> None:
    """The store has threads of its own, and cannot use it."""
    from redis.asyncio import Redis

    with pytest.raises(UserTypeError, match=r"got a redis\.asyncio"):
        RedisEventStore(Redis(unix_socket_path=str(shared.socket)))


@pytest.mark.requirement("F37")
def test_all_that_waits_for_a_server_that_stands_still_fails_in_time(server: Server) -> None:
    """What waited as long as it may is not tried one after the other."""
    store = RedisEventStore(server.url, timeout=0.3)
    store.append([said("a")]).result(10)
    assert server._process is not None  # pyright: ignore[reportPrivateUsage]
    server._process.send_signal(signal.SIGSTOP)  # pyright: ignore[reportPrivateUsage]
    try:
        pending: list[Any] = [store.read() for _ in range(60)]
        pending += [store.append([said("b")]) for _ in range(60)]
        for one in pending:  # 120 attempts would take longer than the test may
            assert "could not be reached" in str(fails(one))
        store.close()
    finally:
        server._process.send_signal(signal.SIGCONT)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.requirement("D11")
def test_a_batch_is_not_doubled_when_the_one_before_it_was_given_up(
    shared: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are stored and neither was answered; the second one is sent again, as itself."""
    store = RedisEventStore(shared.url, "given up")
    with contextlib.closing(store):
        store.append([said("a")]).result(10)
        inner = store._server  # pyright: ignore[reportPrivateUsage]
        whole, sent = inner.sending.send, list[int]()

        def broken(jobs: list[RedisAppend]) -> list[Any]:
            replies = whole(jobs)
            sent.append(len(jobs))
            if len(sent) == 1:
                raise redis.ConnectionError("the answer was lost")
            return replies

        monkeypatch.setattr(inner.sending, "send", broken)
        written = [json.dumps(said(text).to_dict()) for text in "bc"]
        log, now = store._log, time.monotonic()  # pyright: ignore[reportPrivateUsage]
        jobs = [
            RedisAppend(log, [-1, text], None, False, PendingFuture(), now + patience)
            for text, patience in zip(written, (0, 10), strict=True)
        ]
        inner._send(jobs)  # pyright: ignore[reportPrivateUsage]
        assert sent == [2, 1]
        assert "could not be reached" in str(fails(jobs[0].pending))
        assert jobs[1].pending.result(10) == 2
        store.append([said("d")]).result(10)
        assert texts(store) == ["a", "b", "c", "d"]


@pytest.mark.requirement("S20")
def test_what_a_server_refuses_says_what_helps(server: Server) -> None:
    """Password, rights and role are told apart, and each has its remedy."""
    admin = redis.Redis(unix_socket_path=str(server.socket))
    store = RedisEventStore(server.url, timeout=2)
    with contextlib.closing(store), admin:
        store.append([said("a")]).result(10)
        admin.execute_command(
            "ACL", "SETUSER", "reader", "on", ">s3cret", "~*", "+hmget", "+xrange"
        )
        url = server.url.replace("://", "://reader:s3cret@")
        reader = RedisEventStore(url, timeout=2)
        refused = fails(reader.append([said("b")]))
        reader.close()
        assert isinstance(refused, EventStoreFullError)
        assert "Allow the command for the user (ACL SETUSER)" in str(refused)
        with pytest.raises(EventStoreError, match="Put user and password") as caught:
            RedisEventStore(server.url.replace("://", "://reader:wr0ng@"), timeout=2)
        assert "wr0ng" not in str(caught.value)
        admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        refused = fails(store.append([said("b")]))
        assert isinstance(refused, EventStoreFullError)
        assert "pass the address of its primary server" in str(refused)
        admin.execute_command("REPLICAOF", "NO", "ONE")
        assert texts(store) == ["a"]


@pytest.mark.requirement("F44")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_is_told_to_open_its_own(shared: Server) -> None:
    """Threads and connections stay with the parent, and nothing waits for them."""
    store = RedisEventStore(shared.url, "forked")
    store.append([said("a")]).result(10)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = [str(fails(one)) for one in (store.append([said("b")]), store.read())]
        store.close()
        os.write(writing, " ".join(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        told = file.read()
    os.waitpid(child, 0)
    assert told.count(f"belongs to process {os.getpid()}") == 2
    store.append([said("c")]).result(10)
    assert texts(store) == ["a", "c"]
    store.close()


PAUSED = """
import sys
from agents_tools.events import MessageEvent
from agents_tools.persistence import RedisEventStore
from agents_tools.persistence.redis import sender

sender.LEASE = 300
store = RedisEventStore(sys.argv[1], "paused")
store.append([MessageEvent("first", "user")]).result(10)
print("written", flush=True)
sys.stdin.readline()
try:
    store.append([MessageEvent("late", "user")]).result(10)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.mark.requirement("D11")
def test_a_writer_that_was_paused_finds_its_log_taken_over(server: Server) -> None:
    """A process that slept longer than its lease writes nothing behind the back of another."""

    def is_taken() -> bool:
        with contextlib.suppress(EventConflictError):
            return new.append([said("second")]).result(10) == 1
        return False

    new = RedisEventStore(server.url, "paused")
    with (
        contextlib.closing(new),
        subprocess.Popen(  # noqa: S603 - the program above
            [sys.executable, "-c", PAUSED, server.url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as old,
    ):
        assert old.stdout is not None
        assert old.stdout.readline() == "written\n"
        old.send_signal(signal.SIGSTOP)
        try:
            until(is_taken)
        finally:
            old.send_signal(signal.SIGCONT)
        told, _ = old.communicate("go on\n", timeout=30)
        assert told.startswith("EventConflictError")
        assert texts(new) == ["first", "second"]
