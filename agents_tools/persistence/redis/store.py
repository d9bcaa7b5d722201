"""An event store in a Redis server, for programs on several machines.

A log is a Redis stream whose entry ids are the ids of the events, so the server itself refuses
duplicate ids. One writer at a time holds a lease; any process can read and wait.

The settings of the server decide which failures an event survives. With `appendonly yes` it
survives a restart of the server, with `appendfsync always` also a power failure. With snapshots
only, events after the last snapshot are lost, and the writer gets an error when it continues.
With `sync`, a server from version 7.2 on confirms that the event is on disk. An older server
confirms it according to its settings, and a warning is logged once if they are weaker than
`appendfsync always`. Redis Cluster is not supported.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import redis as _redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry

from agents_tools.classes.action import close_at_exit
from agents_tools.concurrency.future import PendingFuture
from agents_tools.concurrency.worker_thread import WorkerThread
from agents_tools.errors import (
    AgentsToolsError,
    EventStoreError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.redis.batches import (
    RedisAppend,
    RedisLog,
    WriteJob,
    conflict,
    has_died,
    text_of,
)
from agents_tools.persistence.redis.errors import address_of, refusal, without_password
from agents_tools.persistence.redis.listener import PATIENCE, RedisListener
from agents_tools.persistence.redis.reader import RedisReader
from agents_tools.persistence.redis.scripts import RELEASE, RESERVE
from agents_tools.persistence.redis.sender import RedisSender
from agents_tools.persistence.redis.waiter import LogWaiter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter
    from agents_tools.persistence.protocol import Durability, SessionInfo

__all__ = ["RedisEventStore"]

T = TypeVar("T")

logger = logging.getLogger("agents_tools")

BLOCK: Final = 1_000
"""The number of ids that are reserved at a time."""

_AWAY: Final = (_redis.ConnectionError, _redis.TimeoutError, OSError)
"""The errors that mean that the server cannot be reached, or is still loading its data."""


class RedisEventStore:
    """An event store in Redis.

    The constructor connects to the server. While the server is unreachable, reads and writes are
    retried until `timeout`, and `wait` continues. Events that were sent without an acknowledgement
    are sent again and stored once.

    Args:
        url: The address of the server (`redis://host:6379/0`, `unix:///run/redis.sock`), or a
            client of the package `redis`. The store opens its own connections with its settings.
        sid: The name of the log.
        prefix: The prefix of all keys.
        maxlen: The approximate number of events that a log keeps. The oldest are dropped. By
            default, all are kept.
        ttl: The seconds without a new event after which a log is deleted. Never by default.
        timeout: The time limit of an operation, in seconds.
        replicas: The number of replicas that must have an event before `sync` is acknowledged.

    Raises:
        EventStoreError: The server cannot be reached.
    """

    def __init__(
        self,
        url: str | Any,
        sid: str = "default",
        *,
        prefix: str = "agents_tools",
        maxlen: int | None = None,
        ttl: float | None = None,
        timeout: float = 10.0,
        replicas: int = 0,
        _server: _RedisServer | None = None,
    ) -> None:
        for name, value in (("maxlen", maxlen), ("ttl", ttl), ("timeout", timeout)):
            if value is not None and not value > 0:
                raise UserValueError(
                    f"RedisEventStore({name}=): expected a number above 0, got {value!r}."
                )
        self.sid = sid
        self._root = _server is None
        self._server = _server or _RedisServer(url, prefix, maxlen, ttl, timeout, replicas)
        self._closed = False
        self._waiting: set[PendingFuture[int]] = set()
        try:
            self._log = self._server.log(sid)
        except BaseException:
            if self._root:
                self._server.close()
            raise
        if self._root:
            close_at_exit(self)

    def __repr__(self) -> str:
        """Return the name of the log and the address of the server."""
        return f"<RedisEventStore {self.sid!r} at {self._server.address}>"

    @property
    def last_id(self) -> int:
        """The id of the newest event; -1 if there is none.

        While the server is unreachable, this is the last known id.
        """
        self._refresh()
        return self._log.last

    @property
    def next_id(self) -> int:
        """The id of the next event, larger than all stored and reserved ids."""
        self._refresh()
        return max(self._log.last, self._log.given) + 1

    def _refresh(self) -> None:
        if self._log.acked or self._is_shut():  # this store is the writer
            return
        refresh = self._read(partial(self._server.reading.look, self._log))
        try:
            refresh.result(min(1.0, self._server.timeout))
        except (TimeoutError, EventStoreError):
            logger.debug("%r could not read its newest id.", self)

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> PendingFuture[int]:
        """Store events, all or none. Writing begins at once."""
        pending: PendingFuture[int] = PendingFuture()
        try:
            written = [part for event in events for part in (event.id, json.dumps(event.to_dict()))]
        except AgentsToolsError as error:
            return PendingFuture.failed(error)
        sync = durability == "sync"
        job = RedisAppend(self._log, written, expect_seq, sync, pending, self._server.deadline())
        if self._is_shut() or not self._server.writer.submit(job):
            return PendingFuture.failed(self._is_closed())
        return pending

    def reserve(self, id: int, /) -> None:
        """Mark ids up to this one as used. The server reserves a block of ids at a time."""
        log = self._log
        log.given = max(log.given, id)
        if id > log.reserved and not self._is_shut():
            log.reserved = (id // BLOCK + 1) * BLOCK
            self._server.writer.submit(
                WriteJob(partial(self._server.reserve, log, log.reserved), self._server.deadline())
            )

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> PendingFuture[list[Event]]:
        """Return events in the order of their ids."""
        return self._read(
            partial(self._server.reading.read, self._log, after, before, limit, reverse, where)
        )

    def wait(self, after: int, /) -> PendingFuture[int]:
        """Wait for an event with a larger id, from any process."""
        if self._is_shut():
            return PendingFuture.failed(self._is_closed())
        if self._log.last > after:
            return PendingFuture.now(self._log.last)
        waiter = self._server.waiter
        pending: PendingFuture[int] = PendingFuture(
            on_cancel=lambda: waiter.discard(self._log, pending)
        )
        self._waiting.add(pending)
        pending.add_done_callback(self._waiting.discard)
        waiter.add(self._log, pending, after)
        return pending

    def session(self, sid: str, /) -> RedisEventStore:
        """Return another log of the same server."""
        if self._is_shut():
            raise self._is_closed()
        return RedisEventStore("", sid, _server=self._server)

    def sessions(self) -> PendingFuture[list[SessionInfo]]:
        """List the logs that hold events, sorted by name."""
        return self._read(self._server.reading.sessions)

    def delete(self, sid: str, /) -> PendingFuture[None]:
        """Delete a log with all its events."""
        if self._is_shut():
            return PendingFuture.failed(self._is_closed())
        job: WriteJob[None] = WriteJob(partial(self._server.delete, sid), self._server.deadline())
        if not self._server.writer.submit(job):
            return PendingFuture.failed(self._is_closed())
        return job.pending

    def close(self) -> None:
        """Finish pending writes and close the log; the original store closes the connection."""
        # In a fork, the threads and connections belong to the parent.
        if self._server.process != os.getpid():
            self._closed = True
        elif not self._closed:
            self._closed = True
            for pending in list(self._waiting):
                pending.fail(self._is_closed())
            if not self._root:
                job: WriteJob[None] = WriteJob(
                    partial(self._server.release, self._log), self._server.deadline()
                )
                if self._server.writer.submit(job):
                    with contextlib.suppress(EventStoreError):
                        job.pending.result()
        if self._root and self._server.process == os.getpid():
            self._server.close()

    def _read(self, work: Callable[[], T]) -> PendingFuture[T]:
        job: WriteJob[T] = WriteJob(work, self._server.deadline())
        if self._is_shut() or not self._server.reader.submit(job):
            return PendingFuture.failed(self._is_closed())
        return job.pending

    def _is_shut(self) -> bool:
        return self._closed or self._server.process != os.getpid()

    def _is_closed(self) -> EventStoreError:
        address = self._server.address
        text = f"The log {self.sid!r} at {address} is closed."
        if not self._closed and self._server.process != os.getpid():
            text = (
                f"The log {self.sid!r} at {address} belongs to process {self._server.process}, and "
                "this process is its fork. Open the log again here; use another sid to write."
            )
        return EventStoreError(text, store=f"{address} {self.sid}")


class _RedisServer:
    """The connection of a store and its logs to a server."""

    def __init__(
        self,
        url: Any,
        prefix: str,
        maxlen: int | None,
        ttl: float | None,
        timeout: float,
        replicas: int,
    ) -> None:
        pool = _pool_of(url)
        is_secure = issubclass(pool.connection_class, _redis.SSLConnection)
        self.address = address_of(pool.connection_kwargs, is_secure=is_secure)
        self.process = os.getpid()
        self.timeout = timeout
        self._prefix = prefix
        self._client = _client(pool, timeout)
        self.reading = RedisReader(self._client, prefix, self.address)
        self.sending = RedisSender(
            self._client,
            self.reading.names,
            [maxlen or 0, round(1_000 * ttl) if ttl else 0],
            replicas,
            timeout,
            self.address,
            _redis.ResponseError,
        )
        self._listener = _client(pool, max(timeout, 2 * PATIENCE / 1_000))
        self._logs: dict[str, RedisLog] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._gone: Exception | None = None  # why the last attempt did not reach the server
        self.writer: WorkerThread[Any] = WorkerThread("agents-tools-redis-writer", self._write)
        self.reader: WorkerThread[Any] = WorkerThread("agents-tools-redis-reader", self._do_all)
        listening = RedisListener(self._client, self._listener, prefix, self.address, self._ending)
        self._ring = listening.ring
        self.waiter = LogWaiter(listening.ask, self._wake, listening.leave, self._is_closed)

    def deadline(self) -> float:
        """Return the deadline of an operation that begins now."""
        return time.monotonic() + self.timeout

    def log(self, sid: str) -> RedisLog:
        """Return the state of a log, read from the server if this store is not its writer."""
        with self._lock:
            log = self._logs.get(sid)
            if log is None or log.refused:
                log = self._logs[sid] = RedisLog(sid, self._prefix)
        if not log.acked:
            self._tried(partial(self.reading.look, log), time.monotonic())
        return log

    def close(self) -> None:
        """Finish pending writes, release the leases and end the threads."""
        until = time.monotonic() + min(self.timeout, 2.0)
        for log in list(self._logs.values()):
            self.writer.submit(WriteJob(partial(self.release, log), until))
        self.writer.end()
        self.reader.end()
        self._ending.set()
        self.waiter.end()
        self._client.connection_pool.disconnect()
        self._listener.connection_pool.disconnect()

    # --- operations, each in one attempt

    def delete(self, sid: str) -> None:
        """Delete a log."""
        log = self._logs.get(sid) or RedisLog(sid, self._prefix)
        self._client.delete(*log.keys)
        self._client.srem(self.reading.names, sid)
        log.forget()

    def reserve(self, log: RedisLog, id_: int) -> None:
        """Reserve ids up to this one."""
        self._client.eval(RESERVE, 1, log.keys[1], id_)

    def release(self, log: RedisLog) -> None:
        """Release the lease, so that another writer need not wait for its end."""
        if not log.refused and (log.acked or log.reserved != INVALID_ID):
            self._client.eval(RELEASE, 2, *log.keys[1:], log.token, max(log.given, log.last))
            log.renew()

    def _wake(self) -> None:
        self.writer.submit(WriteJob(self._ring, self.deadline()))

    # --- work of the threads

    def _do_all(self, jobs: list[WriteJob[Any]]) -> None:
        for job in jobs:
            if self._is_too_late(job):
                continue
            try:
                job.pending.resolve(self._tried(job.work, job.until))
            except Exception as error:  # noqa: BLE001 - raised by the future
                job.pending.fail(error)

    def _tried(self, work: Callable[[], T], until: float) -> T:
        """Run an operation, and retry it while the server is unreachable."""
        delay = 0.01
        while True:
            try:
                done = work()
            except _redis.AuthenticationError as error:
                raise self._refusal(error) from error
            except _AWAY as error:
                self._gone = error
                if time.monotonic() + delay >= until:
                    raise self._away(error) from error
            except _redis.RedisError as error:
                raise self._refusal(error) from error
            else:
                self._gone = None
                return done
            time.sleep(delay)
            delay = min(2 * delay, 0.5)

    def _write(self, jobs: list[Any]) -> None:
        appends: list[RedisAppend] = []
        for job in jobs:
            if isinstance(job, RedisAppend):
                appends.append(job)
                continue
            self._send(appends)
            appends = []
            self._do_all([job])
        self._send(appends)

    def _send(self, jobs: list[RedisAppend]) -> None:
        """Send batches until each is acknowledged. Those past their deadline fail."""
        delay = 0.01
        jobs = [job for job in jobs if not self._is_too_late(job)]
        while jobs:
            away: Exception | None = None
            try:
                replies = self.sending.send(jobs)
            except _AWAY as error:
                away, replies = error, [error] * len(jobs)
            except Exception as error:  # noqa: BLE001 - raised by the future
                replies = [error] * len(jobs)
            self._gone = away
            answered = [self._is_settled(*pair) for pair in zip(jobs, replies, strict=True)]
            left = [job for job, done in zip(jobs, answered, strict=True) if not done]
            if len(left) == len(jobs):
                left = self._in_time(left, away, delay)
                delay = min(2 * delay, 0.5)
            jobs = left

    def _is_too_late(self, job: WriteJob[Any] | RedisAppend) -> bool:
        """Fail a job whose deadline has passed while the server is unreachable."""
        if self._gone is None or time.monotonic() < job.until:
            return False
        job.pending.fail(self._away(self._gone))
        return True

    def _in_time(
        self, jobs: list[RedisAppend], away: Exception | None, delay: float
    ) -> list[RedisAppend]:
        """Wait, and return the batches that can be sent again."""
        now = time.monotonic()
        first = next((n for n, job in enumerate(jobs) if now + delay < job.until), len(jobs))
        kept = jobs[first:]  # the order of the batches must not change
        for job in jobs[:first]:
            job.log.given_up += 1
            job.pending.fail(self._away(away))
        if kept:
            time.sleep(delay)
        return kept

    # --- replies

    def _is_settled(self, job: RedisAppend, reply: Any) -> bool:
        """Resolve the future of a batch; return `False` if the batch must be sent again."""
        if isinstance(reply, Exception):
            if isinstance(reply, NoScriptError):
                self.sending.forget_script()
                return False
            if isinstance(reply, _AWAY) and not isinstance(reply, _redis.AuthenticationError):
                return False
            job.pending.fail(self._refusal(reply))
            return True
        log = job.log
        code, *facts = (text_of(part) for part in reply)
        if code == "gap":
            return False
        if code == "held" and has_died(facts[0]):
            log.stolen = facts[0]
            return False
        if code not in {"ok", "unsafe"}:
            log.refused = log.refused or code in {"taken", "lost"}
            job.pending.fail(conflict(log, self.address, code, facts))
            return True
        log.acked += 1
        log.last = max(log.last, int(facts[0]))
        if code == "ok":
            job.pending.resolve(log.last)
        else:
            why = f"{self.address} has the events, but did not confirm their durability in time"
            job.pending.fail(EventStoreError(f"{why} ({facts[1]}).", store=self.address))
        self.waiter.seen(log)
        return True

    def _is_closed(self) -> EventStoreError:
        return EventStoreError(f"The store at {self.address} is closed.", store=self.address)

    def _away(self, error: Exception | None) -> EventStoreError:
        return EventStoreError(
            f"Redis at {self.address} could not be reached within {self.timeout:g} s "
            f"({error or 'no reply'}). Check the address and that the server is running.",
            store=self.address,
        )

    def _refusal(self, error: Exception) -> Exception:
        return refusal(error, self.address) if isinstance(error, _redis.RedisError) else error


def _pool_of(url: Any) -> Any:
    if not isinstance(url, str):
        pool = getattr(url, "connection_pool", None)
        if isinstance(pool, _redis.ConnectionPool):
            return cast("Any", pool)
        raise UserTypeError(
            "RedisEventStore(url): expected an address such as 'redis://127.0.0.1:6379/0' or a "
            f"redis.Redis, got a {type(url).__module__}.{type(url).__qualname__}."
        )
    try:
        return cast("Any", _redis.ConnectionPool).from_url(url)
    except ValueError as error:
        why = (
            "" if "Port" in str(error) else f" ({error})"
        )  # the error can quote a part of the password
        raise UserValueError(
            "RedisEventStore(url): expected an address such as redis://user:password@host:6379/0, "
            f"got {without_password(url)!r:.80}{why}. Percent-encode special characters in the "
            "password."
        ) from None


def _client(pool: Any, timeout: float) -> Any:
    """Return a client with the settings of a pool and connections of its own."""
    settings: dict[str, Any] = {
        **{name: value for name, value in pool.connection_kwargs.items() if "maint_" not in name},
        "decode_responses": False,
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "socket_connect_timeout": timeout,
        "socket_timeout": timeout,
    }
    own_pool: Any = _redis.ConnectionPool(connection_class=pool.connection_class, **settings)
    return _redis.Redis(connection_pool=own_pool)
