"""Test the Redis event store with a real server: acknowledged events survive failures."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools import Agent, RunConfig, Runner
from agents_tools.errors import (
    EventConflictError,
    EventStoreCorruptError,
    EventStoreError,
    EventStoreFullError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import Event, MessageEvent, NotifyStreamEvent
from agents_tools.persistence import RedisEventStore, RedisRunStore, StoredLog
from agents_tools.persistence.stream import EventStream
from agents_tools.testing import ScriptedModel
from tests.redis_server import RedisServer
from tests.waiting import until

redis = pytest.importorskip("redis", reason="the extra redis is not installed")

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.external("redis-server")


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    """Return a server that all tests of this file share."""
    server = RedisServer()
    yield server
    server.remove()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Return a server that a test can stop."""
    server = RedisServer("--appendfsync", "always")
    yield server
    server.remove()


def message(text: str, id_: int = -1) -> Event:
    """Return a message event."""
    return MessageEvent(text).replace(id=id_)


def client_of(store: RedisEventStore) -> Any:
    """Return the client with which a store sends its requests."""
    return store._engine.storage._client  # type: ignore[attr-defined] # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def texts(store: StoredLog) -> list[str]:
    """Return the texts of the messages in a log."""
    return [event.content for event in store.read().result(10) if isinstance(event, MessageEvent)]


def error_of(pending: Any) -> BaseException:
    """Return the error that a pending operation fails with."""
    with pytest.raises(EventStoreError):
        pending.result(10)
    error: BaseException = pending.error()
    return error


@pytest.mark.requirement("F38")
def test_a_second_writer_of_the_same_log_is_refused(shared: RedisServer) -> None:
    """Two writers that assign the same ids must not overwrite each other."""
    first, second = RedisEventStore(shared.url, "two"), RedisEventStore(shared.url, "two")
    with contextlib.closing(first), contextlib.closing(second):
        first.append([message("a")]).result(10)
        error = error_of(second.append([message("b")]))
        assert isinstance(error, EventConflictError)
        assert f"is in use by process {os.getpid()}" in str(error)
        assert texts(second) == ["a"]
        first.close()
        with contextlib.closing(RedisEventStore(shared.url, "two")) as third:
            third.append([message("c")]).result(10)
            assert isinstance(error_of(second.append([message("d", 1)])), EventConflictError)
            assert texts(third) == ["a", "c"]


@pytest.mark.requirement("F38")
def test_the_server_refuses_an_id_that_already_exists(shared: RedisServer) -> None:
    """This includes a writer that opened the log before the other writer did."""
    early = RedisEventStore(shared.url, "ids")
    with contextlib.closing(early), contextlib.closing(RedisEventStore(shared.url, "ids")) as late:
        late.append([message("a"), message("b")]).result(10)
        late.close()
        error = error_of(early.append([message("c", 1)]))
        assert isinstance(error, EventConflictError)
        assert "already beyond the id 1: expected at least 2" in str(error)
        assert early.append([message("c")]).result(10) == 2


@pytest.mark.requirement("F38")
def test_the_lease_of_a_killed_process_is_taken_over(shared: RedisServer) -> None:
    """After kill -9 the next process continues at once where the other one stopped."""
    writer = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", DYING, shared.url], cwd=ROOT, check=False, timeout=15
    )
    assert writer.returncode == -signal.SIGKILL
    with contextlib.closing(RedisEventStore(shared.url, "dying")) as store:
        assert texts(store) == ["a", "b"]
        assert store.next_id > 5
        store.append([message("c")]).result(10)
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
def test_no_acknowledged_event_is_lost_or_duplicated_when_the_server_restarts(
    server: RedisServer, kill: bool
) -> None:
    """A writer and a reader that waits for events continue across the restart."""
    store, watcher = RedisEventStore(server.url), RedisEventStore(server.url)
    with contextlib.closing(store), contextlib.closing(watcher):
        acknowledged: list[int] = []
        stopping = threading.Event()

        def write() -> None:
            while not stopping.is_set() or len(acknowledged) < 200:
                pending = [store.append([message(str(n))]) for n in range(5)]
                acknowledged.extend(one.result(15) for one in pending)

        seen: list[int] = []

        def follow() -> None:
            while threads[0].is_alive() or len(seen) < len(acknowledged):
                last = seen[-1] if seen else -1
                with contextlib.suppress(TimeoutError):
                    watcher.wait(last).result(0.1)
                    seen.extend(event.id for event in watcher.read(last).result(15))

        threads = [threading.Thread(target=write), threading.Thread(target=follow)]
        threads[0].start()
        until(lambda: len(acknowledged) > 50)
        threads[1].start()
        server.stop(kill=kill)
        server.start()
        before = len(acknowledged)
        until(lambda: len(acknowledged) > before + 50)
        stopping.set()
        for thread in threads:
            thread.join()
        assert acknowledged == list(range(len(acknowledged)))
        assert [event.id for event in store.read().result(10)] == acknowledged
        assert seen == acknowledged


@pytest.mark.requirement("F37")
def test_requests_to_a_stopped_server_fail_within_the_timeout_and_name_its_address(
    server: RedisServer,
) -> None:
    """The store works again once the server is back."""
    store = RedisEventStore(server.url, timeout=0.3)
    with contextlib.closing(store):
        store.append([message("a")]).result(10)
        server.stop()
        for pending in (store.append([message("b")]), store.read(), store.sessions()):
            error = error_of(pending)
            assert isinstance(error, EventStoreError)
            assert error.store == f"unix://{server.socket}"
            assert "could not be reached within 0.3 s" in str(error)
        assert store.last_id == 0
        waiting = store.wait(0)
        server.start()
        store.append([message("c")]).result(10)
        assert waiting.result(10) == 1
        assert texts(store) == ["a", "c"]


@pytest.mark.requirement("F35")
def test_a_batch_whose_reply_was_lost_is_stored_once(
    shared: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after the server has stored the events."""
    store = RedisEventStore(shared.url, "lost answer")
    with contextlib.closing(store):
        store.append([message("a")]).result(10)
        original = client_of(store).pipeline
        broken: list[int] = []

        def failing_pipeline(**options: Any) -> Any:
            pipe = original(**options)
            execute = pipe.execute

            def execute_and_fail(**options: Any) -> Any:
                replies = execute(**options)
                if not broken:
                    broken.append(1)
                    raise redis.ConnectionError("the answer was lost")
                return replies

            pipe.execute = execute_and_fail
            return pipe

        monkeypatch.setattr(client_of(store), "pipeline", failing_pipeline)
        pending = [store.append([message(text)]) for text in "bcd"]
        assert [one.result(10) for one in pending] == [1, 2, 3]
        assert broken
        assert texts(store) == ["a", "b", "c", "d"]


@pytest.mark.requirement("F35")
def test_a_batch_reported_as_failed_but_stored_does_not_hide_the_next_batch(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch is stored under an id of its own."""
    store = RedisEventStore(server.url, timeout=0.2)
    with contextlib.closing(store):
        store.append([message("a")]).result(10)
        original = client_of(store).pipeline
        drop_replies = True

        def failing_pipeline(**options: Any) -> Any:
            pipe = original(**options)
            execute = pipe.execute

            def execute_and_fail(**options: Any) -> Any:
                replies = execute(**options)
                if drop_replies:
                    raise redis.ConnectionError("the answer was lost")
                return replies

            pipe.execute = execute_and_fail
            return pipe

        monkeypatch.setattr(client_of(store), "pipeline", failing_pipeline)
        assert "could not be reached" in str(error_of(store.append([message("b")])))
        drop_replies = False
        assert store.append([message("c")]).result(10) == 2
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
def test_another_process_follows_a_stream_across_a_server_restart(server: RedisServer) -> None:
    """With keep="all" display events also reach the reader, in order and once each."""
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
def test_lost_events_on_the_server_are_detected(shared: RedisServer) -> None:
    """After a restart that lost the last events, the store must not reuse their ids."""
    store = RedisEventStore(shared.url, "forgotten")
    with contextlib.closing(store), contextlib.closing(shared.client()) as client:
        store.append([message("a")]).result(10)
        client.delete(*client.keys("agents_tools:*:forgotten"))
        for _ in range(2):
            assert "has lost acknowledged events" in str(error_of(store.append([message("b")])))
        assert texts(store) == []
    with contextlib.closing(RedisEventStore(shared.url, "forgotten")) as store:
        assert store.append([message("c")]).result(10) == 0


@pytest.mark.requirement("F37")
def test_a_full_server_raises_its_own_error() -> None:
    """The stored events stay readable."""
    server = RedisServer("--maxmemory", "2mb", "--maxmemory-policy", "noeviction")
    try:
        with contextlib.closing(RedisEventStore(server.url)) as store:
            error: BaseException | None = None
            for n in range(100):
                pending = store.append([message(f"{n} {'x' * 100_000}"), message("y")])
                try:
                    pending.result(10)
                except EventStoreError as raised:
                    error = raised
                    break
            assert isinstance(error, EventStoreFullError)
            assert store.read().result(10)[-1] == message("y", store.last_id)
    finally:
        server.remove()


@pytest.mark.requirement("F35")
def test_a_foreign_entry_raises_an_error_that_names_it(shared: RedisServer) -> None:
    """The error of a damaged log names the damaged entry, and the store does not change it."""
    with (
        contextlib.closing(shared.client()) as client,
        contextlib.closing(RedisEventStore(shared.url, "foreign")) as store,
    ):
        client.xadd("agents_tools:events:foreign", {"other": "thing"}, "4-0")
        error = error_of(store.read())
        assert isinstance(error, EventStoreCorruptError)
        assert "The entry 4-0 of 'agents_tools:events:foreign'" in str(error)
        client.set("agents_tools:events:foreign", "text")
        assert isinstance(error_of(store.read()), EventStoreCorruptError)


def test_a_log_can_have_a_ttl(shared: RedisServer) -> None:
    """A log that is never deleted must not stay on the server forever."""
    limited = RedisEventStore(shared.url, "limited", ttl=60)
    with contextlib.closing(limited), contextlib.closing(shared.client()) as client:
        limited.append([message("x" * 100_000)]).result(10)
        for part in ("events", "state", "blobs"):
            assert 0 < client.pttl(f"agents_tools:{part}:limited") <= 60_000
        client.delete(*client.keys("agents_tools:*:limited"))  # as the server does then
        assert "limited" not in [one.sid for one in limited.sessions().result(10)]


def test_the_names_of_deleted_logs_are_dropped(shared: RedisServer) -> None:
    """The server deletes the keys of a log after its ttl, but not its name in lists of names."""
    agent = Agent("Clerk", model=ScriptedModel(["Done."]))
    with contextlib.closing(shared.client()) as client:
        store = RedisRunStore(shared.url, prefix="brief", ttl=60)
        with contextlib.closing(store):
            config = RunConfig(store=store)
            Runner.run_sync(agent, "Go.", run_id="run-1", session="talk", run_config=config)
            client.delete(*client.keys("brief:*:run-1"))
            assert store.runs(session="talk").result(10) == []
            left = {key.decode().split(":")[1] for key in client.keys("brief:*")}
            assert left == {"seq", "writer"}


def test_keys_of_release_0_1_are_refused_and_unchanged(shared: RedisServer) -> None:
    """Its logs have another form, so writing to them would damage them."""
    with contextlib.closing(shared.client()) as client:
        client.sadd("old:logs", "chat")
        client.xadd("old:log:chat", {"event": "{}"}, "1-0")
        before = {key: client.dump(key) for key in client.keys("old:*")}
        with pytest.raises(EventStoreError, match=r"written by agents-tools 0\.1.*another prefix="):
            RedisRunStore(shared.url, prefix="old")
        assert {key: client.dump(key) for key in client.keys("old:*")} == before


def test_the_store_accepts_an_existing_client(shared: RedisServer) -> None:
    """Its settings are used, with any `decode_responses`; the store does not close it."""
    with contextlib.closing(
        redis.Redis(unix_socket_path=str(shared.socket), decode_responses=True)
    ) as client:
        with contextlib.closing(RedisEventStore(client, "given")) as store:
            store.append([message("ä")]).result(10)
            assert texts(store) == ["ä"]
        assert client.ping()


def test_wrong_settings_are_refused_when_the_store_is_created(shared: RedisServer) -> None:
    """The error names the address but not the user or the password."""
    with pytest.raises(EventStoreError, match="could not be reached") as caught:
        RedisEventStore("redis://user:hunter2@127.0.0.1:1/3", timeout=0.5)
    assert caught.value.store == "redis://127.0.0.1:1/3"
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UserValueError, match="expected an address such as redis://"):
        RedisEventStore("http://127.0.0.1")
    with pytest.raises(UserTypeError, match=r"got a builtins\.int"):
        RedisEventStore(6379)
    with pytest.raises(UserValueError, match=r"RedisRunStore\(ttl=\): expected a number above 0"):
        RedisEventStore(shared.url, ttl=0)


def test_a_server_that_does_not_fsync_is_logged_once(
    shared: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether `sync` survives a power failure depends on the configuration of the server."""
    with contextlib.closing(RedisEventStore(shared.url, "unsafe")) as store:
        for text in "ab":
            store.append([message(text)], durability="sync").result(10)
    warned = [
        record for record in caplog.records if "can be lost in a power failure" in record.message
    ]
    version = tuple(map(int, shared.client().info("server")["redis_version"].split(".")[:2]))
    assert len(warned) == (1 if version < (7, 2) else 0)


def test_missing_acknowledgements_of_replicas_are_reported(shared: RedisServer) -> None:
    """The events are stored, but it is unknown whether they are safe."""
    store = RedisEventStore(shared.url, "replicas", replicas=1, timeout=0.4)
    with contextlib.closing(store):
        assert "did not confirm the sync in time" in str(
            error_of(store.append([message("a")], durability="sync"))
        )
        store.append([message("b")]).result(10)
        assert texts(store) == ["a", "b"]


def test_waiting_for_one_log_does_not_delay_waiting_for_another(shared: RedisServer) -> None:
    """All waits share a thread, and a later one must take effect at once."""
    reader, writer = RedisEventStore(shared.url, "first"), RedisEventStore(shared.url, "second")
    with contextlib.closing(reader), contextlib.closing(writer):
        first = reader.wait(-1)
        writer.append([message("a")]).result(10)
        second = reader.session("second").wait(-1)
        assert second.result(3) == 0
        third = reader.session("second").wait(0)
        writer.append([message("b")]).result(10)
        assert third.result(3) == 1
        assert not first.done()
        assert first.cancel()


def test_closing_ends_all_threads_and_connections(shared: RedisServer) -> None:
    with contextlib.closing(shared.client()) as client:
        before = len(client.client_list())
        store = RedisEventStore(shared.url, "closing")
        waiting = store.wait(-1)
        store.append([message("a")]).result(10)
        assert waiting.result(10) == 0
        left = store.wait(5)
        store.close()
        assert isinstance(left.error(), EventStoreError)
        until(lambda: len(client.client_list()) == before)
    names = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("agents-tools-store") for name in names)


@pytest.mark.requirement("D53")
def test_a_log_can_be_closed_and_opened_again(shared: RedisServer) -> None:
    """Two stores write to one log alternately, and neither is refused when it returns."""
    roots = [RedisEventStore(shared.url, f"root {name}") for name in "ab"]
    for turn in range(4):
        log = roots[turn % 2].session("by turns")
        for part in "xy":
            log.append([message(f"{turn}{part}")]).result(10)
        log.close()
    log = roots[0].session("by turns")
    assert texts(log) == [f"{turn}{part}" for turn in range(4) for part in "xy"]
    for root in roots:
        root.close()


@pytest.mark.requirement("D19")
def test_closing_the_store_ends_waits_on_its_other_logs(shared: RedisServer) -> None:
    """Without this they would wait forever."""
    root = RedisEventStore(shared.url, "waited for")
    log = root.session("waited for, too")
    pending = log.wait(-1)
    root.close()
    for one in (pending, log.wait(-1)):
        assert "closed" in str(error_of(one))


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
def test_error_messages_contain_no_password(url: str) -> None:
    """An invalid address is reported without its user and password."""
    with pytest.raises(UserValueError) as caught:
        RedisEventStore(url)
    assert "s3c" not in str(caught.value)
    assert "redis://user:password@host" in str(caught.value)


def test_an_error_names_the_rediss_scheme_of_an_address() -> None:
    with pytest.raises(EventStoreError, match=r"rediss://127.0.0.1:1/0 could not be reached"):
        RedisEventStore("rediss://u:s3cret@127.0.0.1:1/0", timeout=0.1)


def test_an_asyncio_client_is_refused(shared: RedisServer) -> None:
    """The store uses threads of its own and cannot await a client."""
    from redis.asyncio import Redis

    with pytest.raises(UserTypeError, match=r"got a redis\.asyncio"):
        RedisEventStore(Redis(unix_socket_path=str(shared.socket)))


@pytest.mark.requirement("F37")
def test_all_requests_to_a_hanging_server_fail_within_the_timeout(server: RedisServer) -> None:
    """Requests whose timeout has passed are not tried one after the other."""
    store = RedisEventStore(server.url, timeout=0.3)
    store.append([message("a")]).result(10)
    assert server._process is not None
    server._process.send_signal(signal.SIGSTOP)
    try:
        pending: list[Any] = [store.read() for _ in range(60)]
        pending += [store.append([message("b")]) for _ in range(60)]
        for one in pending:  # 120 attempts would exceed the timeout of the test
            assert "could not be reached" in str(error_of(one))
        store.close()
    finally:
        server._process.send_signal(signal.SIGCONT)


@pytest.mark.requirement("D11")
def test_a_request_that_arrives_late_is_refused(shared: RedisServer) -> None:
    """Its writer has given it up, and has written other events since."""
    store = RedisEventStore(shared.url, "late")
    with contextlib.closing(store), contextlib.closing(shared.client()) as other:
        store.append([message("a")]).result(10)
        sent: list[tuple[Any, ...]] = []
        client = client_of(store)
        original = client.pipeline

        def recording_pipeline(**options: Any) -> Any:
            pipe = original(**options)
            evalsha = pipe.evalsha
            pipe.evalsha = lambda *words: (sent.append(words), evalsha(*words))[1]
            return pipe

        client.pipeline = recording_pipeline
        store.append([message("b")]).result(10)
        store.append([message("c")]).result(10)
        [script, count, prefix, writer, number, *rest] = sent[0]
        assert other.evalsha(script, count, prefix, writer, number, *rest)[0] == b"ok"  # repeated
        other.hdel(f"{prefix}:writer:{writer}", number)
        assert other.evalsha(script, count, prefix, writer, number, *rest) == [b"late"]
        assert texts(store) == ["a", "b", "c"]


@pytest.mark.requirement("S20")
def test_errors_of_the_server_include_a_remedy(server: RedisServer) -> None:
    """Wrong password, missing rights and a read-only replica have different remedies."""
    admin = redis.Redis(unix_socket_path=str(server.socket))
    store = RedisEventStore(server.url, timeout=2)
    with contextlib.closing(store), admin:
        store.append([message("a")]).result(10)
        admin.execute_command(
            "ACL", "SETUSER", "reader", "on", ">s3cret", "~*", "+hmget", "+xrange", "+type"
        )
        url = server.url.replace("://", "://reader:s3cret@")
        reader = RedisEventStore(url, timeout=2)
        refused = error_of(reader.append([message("b")]))
        reader.close()
        assert isinstance(refused, EventStoreFullError)
        assert "Grant the permission (ACL SETUSER)" in str(refused)
        with pytest.raises(EventStoreError, match="Pass the user and the password") as caught:
            RedisEventStore(server.url.replace("://", "://reader:wr0ng@"), timeout=2)
        assert "wr0ng" not in str(caught.value)
        admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        refused = error_of(store.append([message("b")]))
        assert isinstance(refused, EventStoreFullError)
        assert "Pass the address of its primary server" in str(refused)
        admin.execute_command("REPLICAOF", "NO", "ONE")
        assert texts(store) == ["a"]


@pytest.mark.requirement("F44")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_reads_and_the_parent_keeps_the_lease(shared: RedisServer) -> None:
    """Threads and connections stay with the parent; the child has its own."""
    store = RedisEventStore(shared.url, "forked")
    store.append([message("a")]).result(10)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        result = f"{error_of(store.append([message('b')]))} {texts(store)}"
        store.close()
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        result = file.read()
    os.waitpid(child, 0)
    assert f"is in use by process {os.getpid()}" in result
    assert result.endswith("['a']")
    store.append([message("c")]).result(10)
    assert texts(store) == ["a", "c"]
    store.close()


PAUSED = """
import sys
from agents_tools.events import MessageEvent
from agents_tools.persistence import RedisEventStore

store = RedisEventStore(sys.argv[1], "paused", lease_ttl=0.6)
store.append([MessageEvent("first", "user")]).result(10)
print("written", flush=True)
sys.stdin.readline()
try:
    store.append([MessageEvent("late", "user")]).result(10)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.mark.requirement("D11")
def test_a_paused_writer_is_refused_after_its_lease_was_taken_over(server: RedisServer) -> None:
    """A process that was paused longer than its lease must not write after the new owner."""

    def is_taken() -> bool:
        with contextlib.suppress(EventConflictError):
            return new.append([message("second")]).result(10) == 1
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
        output, _ = old.communicate("go on\n", timeout=30)
        assert output.startswith("LeaseLostError")
        assert texts(new) == ["first", "second"]
