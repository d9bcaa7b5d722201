"""All run stores keep the contract of run stores."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest

from agents_tools.events import MessageEvent
from agents_tools.persistence import (
    MemoryRunStore,
    PendingFuture,
    PostgresRunStore,
    RedisRunStore,
    RunStore,
    SQLiteRunStore,
)
from agents_tools.testing import RunStoreContract
from tests.durable.postgres import postgres, why_not
from tests.redis_server import RedisServer
from tests.waiting import until

pytestmark = pytest.mark.timeout(60)


@pytest.mark.requirement("D9", "D11", "D52", "D53", "F23", "F38", "S31")
class TestMemoryRunStore(RunStoreContract):
    """The contract, in memory."""

    is_shared: ClassVar[bool] = False

    def make_run_store(self, **options: Any) -> RunStore:
        """Return an empty store."""
        options.pop("lease_ttl", None)
        return MemoryRunStore(**options)


@pytest.mark.requirement("D9", "D11", "D52", "D53", "F23", "F38", "S31")
class TestSQLiteRunStore(RunStoreContract):
    """The contract, with a file."""

    @pytest.fixture(autouse=True)
    def _in(self, tmp_path: Path) -> None:
        self._folder = tmp_path

    def make_run_store(self, **options: Any) -> RunStore:
        """Return an empty store."""
        return SQLiteRunStore(self._folder / f"{uuid.uuid4().hex}.db", **options)

    def open_again(self, store: RunStore, **options: Any) -> RunStore:
        """Open the file once more."""
        return SQLiteRunStore(store.place, **options)


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    """Start a Redis server, and return its address."""
    server = RedisServer()
    try:
        yield server.url
    finally:
        server.remove()


@pytest.mark.external("redis-server")
@pytest.mark.requirement("D9", "D11", "D52", "D53", "F23", "F38", "S31")
class TestRedisRunStore(RunStoreContract):
    """The contract, with a Redis server."""

    @pytest.fixture(autouse=True)
    def _with(self, redis_url: str) -> None:
        self._url = redis_url
        self._prefix = ""

    def make_run_store(self, **options: Any) -> RunStore:
        """Return a store with keys of its own."""
        self._prefix = uuid.uuid4().hex
        return RedisRunStore(self._url, prefix=self._prefix, **options)

    def open_again(self, store: RunStore, **options: Any) -> RunStore:
        """Connect once more."""
        del store
        return RedisRunStore(self._url, prefix=self._prefix, **options)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """Start a PostgreSQL server, and return the address of its database."""
    if reason := why_not():
        pytest.skip(reason)
    with postgres() as url:
        yield url


@pytest.mark.external("postgres")
@pytest.mark.requirement("D9", "D11", "D52", "D53", "F23", "F38", "S31")
class TestPostgresRunStore(RunStoreContract):
    """The contract, with a server."""

    @pytest.fixture(autouse=True)
    def _with(self, database: str) -> None:
        self._url = database

    def make_run_store(self, **options: Any) -> RunStore:
        """Return an empty store."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS agents_tools_runs CASCADE")
        return PostgresRunStore(self._url, **options)

    def open_again(self, store: RunStore, **options: Any) -> RunStore:
        """Connect once more."""
        del store
        return PostgresRunStore(self._url, **options)

    def test_processes_that_send_messages_to_each_other_do_not_block_each_other(self) -> None:
        """Each transaction locks the rows of several logs, in the order of the requests."""
        with self.make_run_store() as one, self.open_again(one) as two:
            logs = {"a": one.log("a"), "b": two.log("b")}
            for log in logs.values():
                log.append([MessageEvent("first")]).result(20)
            pending: list[PendingFuture[int]] = []
            for _ in range(1_000):
                pending += [logs["a"].append([MessageEvent("x")]), one.post("b", {})]
                pending += [logs["b"].append([MessageEvent("x")]), two.post("a", {})]
            for done in pending:
                done.result(20)
            assert [len(log.read().result(20)) for log in logs.values()] == [1_001, 1_001]
            assert [len(log.messages().result(20)) for log in logs.values()] == [1_000, 1_000]

    @pytest.mark.requirement("F42")
    def test_a_process_suspended_while_it_sends_does_not_keep_its_locks(self) -> None:
        """A session in the middle of a pipeline is not idle for the server: no time limit ends it."""
        with (
            self.make_run_store(lease_ttl=0.5) as store,
            closing(psycopg.connect(self._url, application_name="agents-tools")) as suspended,
        ):
            log = store.log("run")
            log.append([MessageEvent("first")]).result(20)
            store.close()
            suspended.execute("BEGIN")
            suspended.pgconn.enter_pipeline_mode()
            suspended.pgconn.send_query_params(
                b"UPDATE agents_tools_runs.log SET epoch = epoch", None
            )
            suspended.pgconn.send_flush_request()
            suspended.pgconn.flush()
            with self.open_again(store, lease_ttl=0.5) as other:
                until(lambda: self._waits_for_client(suspended.info.backend_pid))
                other.log("run").append([MessageEvent("second")]).result(20)
                assert len(other.log("run").read().result(20)) == 2

    def _waits_for_client(self, pid: int) -> bool:
        with psycopg.connect(self._url) as connection:
            row = connection.execute(
                "SELECT state = 'active' AND wait_event = 'ClientRead' FROM pg_stat_activity "
                "WHERE pid = %s",
                (pid,),
            ).fetchone()
        return row == (True,)

    def test_a_broken_connection_loses_and_repeats_nothing(self) -> None:
        """The store asks the server whether the transaction was committed, and tries again."""
        with self.make_run_store() as store, psycopg.connect(self._url, autocommit=True) as admin:
            log = store.log("run")
            log.append([MessageEvent("first")]).result(20)
            pending: list[PendingFuture[int]] = []
            for number in range(40):
                pending += [log.append([MessageEvent(f"{number} {n}")]) for n in range(5)]
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'agents-tools'"
                )
                assert log.read(limit=1).result(20)
            assert [one.result(20) for one in pending] == list(range(1, 201))
            texts = [str(getattr(event, "content", "")) for event in log.read().result(20)]
            assert texts == ["first", *(f"{number} {n}" for number in range(40) for n in range(5))]
