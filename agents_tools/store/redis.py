"""A store of events in a Redis server, for programs on several machines.

A log is a Redis stream whose entry ids are the ids of the events, so the server itself refuses an
id that is taken. One writer at a time holds a lease; anybody may read and wait.

What an acknowledged event survives is the server's to say. With `appendonly yes` it survives a
restart of the server, with `appendfsync always` the loss of power too; with snapshots alone it is
lost with what came after the last one, and the writer is told so when it goes on. `sync` asks a
server from 7.2 on to say when its disk has the event; an older one acknowledges as it is
configured, and where that is less than `appendfsync always` a warning says so once. Redis Cluster
is not supported.
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

from agents_tools.action import close_at_exit
from agents_tools.errors import (
    AgentsToolsError,
    EventStoreError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import INVALID_ID
from agents_tools.store._pending import Pending
from agents_tools.store._redis_batches import (
    Append,
    Job,
    Log,
    conflict,
    has_died,
    text_of,
)
from agents_tools.store._redis_listening import PATIENCE, Listening
from agents_tools.store._redis_reading import Reading
from agents_tools.store._redis_scripts import RELEASE, RESERVE
from agents_tools.store._redis_sending import Sending
from agents_tools.store._redis_told import address_of, refusal, without_password
from agents_tools.store._redis_waiter import Waiter
from agents_tools.store._worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.events import Event
    from agents_tools.store._filter import EventFilter
    from agents_tools.store._protocol import Durability, SessionInfo

__all__ = ["RedisEventStore"]

T = TypeVar("T")

logger = logging.getLogger("agents_tools")

BLOCK: Final = 1_000
"""Ids are reserved so many at a time."""

_AWAY: Final = (_redis.ConnectionError, _redis.TimeoutError, OSError)
"""What is raised while the server cannot be reached, or still loads its data."""


class RedisEventStore:
    """Keeps a log of events in Redis.

    Making one connects. While the server is away, writing and reading are tried again until
    `timeout`, and whoever waits goes on waiting; what was sent and not acknowledged is sent again
    and stored once.

    Args:
        url: Where the server is (`redis://host:6379/0`, `unix:///run/redis.sock`), or a client of
            the package `redis`, whose settings are used for connections of the store's own.
        sid: The name of the log.
        prefix: What the names of all keys begin with.
        maxlen: About how many events a log keeps; the oldest ones are dropped. All by default.
        ttl: After how many seconds without a new event a log is forgotten. Never by default.
        timeout: How long what was begun may take, in seconds.
        replicas: How many replicas have to have an event before it is acknowledged as `sync`.

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
        _server: _Server | None = None,
    ) -> None:
        for name, value in (("maxlen", maxlen), ("ttl", ttl), ("timeout", timeout)):
            if value is not None and not value > 0:
                raise UserValueError(f"RedisEventStore({name}=...) is above zero, not {value!r}.")
        self.sid = sid
        self._root = _server is None
        self._server = _server or _Server(url, prefix, maxlen, ttl, timeout, replicas)
        self._closed = False
        self._waiting: set[Pending[int]] = set()
        try:
            self._log = self._server.log(sid)
        except BaseException:
            if self._root:
                self._server.close()
            raise
        if self._root:
            close_at_exit(self)

    def __repr__(self) -> str:
        """Show the address and the log."""
        return f"<RedisEventStore {self.sid!r} at {self._server.address}>"

    @property
    def last_id(self) -> int:
        """The id of the newest event; -1 when there is none. The last known one while away."""
        self._refresh()
        return self._log.last

    @property
    def next_id(self) -> int:
        """The id that the next event is to have, beyond all that are stored or reserved."""
        self._refresh()
        return max(self._log.last, self._log.given) + 1

    def _refresh(self) -> None:
        if self._log.acked or self._is_shut():  # nobody else writes
            return
        asked = self._read(partial(self._server.reading.look, self._log))
        try:
            asked.result(min(1.0, self._server.timeout))
        except (TimeoutError, EventStoreError):
            logger.debug("%r could not be asked for its newest event.", self)

    def append(
        self,
        events: Sequence[Event],
        /,
        *,
        expect_seq: int | None = None,
        durability: Durability = "normal",
    ) -> Pending[int]:
        """Store events, all or none; begins at once."""
        pending: Pending[int] = Pending()
        try:
            written = [part for event in events for part in (event.id, json.dumps(event.to_dict()))]
        except AgentsToolsError as error:
            return Pending.failed(error)
        sync = durability == "sync"
        job = Append(self._log, written, expect_seq, sync, pending, self._server.deadline())
        if self._is_shut() or not self._server.writer.submit(job):
            return Pending.failed(self._is_closed())
        return pending

    def reserve(self, id: int, /) -> None:
        """Note that ids up to this one are given; the server is told of a block at a time."""
        log = self._log
        log.given = max(log.given, id)
        if id > log.reserved and not self._is_shut():
            log.reserved = (id // BLOCK + 1) * BLOCK
            self._server.writer.submit(
                Job(partial(self._server.reserve, log, log.reserved), self._server.deadline())
            )

    def read(
        self,
        after: int = -1,
        *,
        before: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        where: EventFilter | None = None,
    ) -> Pending[list[Event]]:
        """Give events in order of their ids."""
        return self._read(
            partial(self._server.reading.read, self._log, after, before, limit, reverse, where)
        )

    def wait(self, after: int, /) -> Pending[int]:
        """Wait for an event with a greater id, whoever stores it."""
        if self._is_shut():
            return Pending.failed(self._is_closed())
        if self._log.last > after:
            return Pending.now(self._log.last)
        waiter = self._server.waiter
        pending: Pending[int] = Pending(on_cancel=lambda: waiter.discard(self._log, pending))
        self._waiting.add(pending)
        pending.add_done_callback(self._waiting.discard)
        waiter.add(self._log, pending, after)
        return pending

    def session(self, sid: str, /) -> RedisEventStore:
        """Give another log of the same server."""
        if self._is_shut():
            raise self._is_closed()
        return RedisEventStore("", sid, _server=self._server)

    def sessions(self) -> Pending[list[SessionInfo]]:
        """List the logs that hold events, by name."""
        return self._read(self._server.reading.sessions)

    def delete(self, sid: str, /) -> Pending[None]:
        """Forget a log with all its events."""
        if self._is_shut():
            return Pending.failed(self._is_closed())
        job: Job[None] = Job(partial(self._server.delete, sid), self._server.deadline())
        if not self._server.writer.submit(job):
            return Pending.failed(self._is_closed())
        return job.pending

    def close(self) -> None:
        """Finish what was begun and let go of the log; of the connection too, if it is its own."""
        if self._server.process != os.getpid():  # threads and connections are those of the parent
            self._closed = True
        elif not self._closed:
            self._closed = True
            for pending in list(self._waiting):
                pending.fail(self._is_closed())
            if not self._root:
                job: Job[None] = Job(
                    partial(self._server.release, self._log), self._server.deadline()
                )
                if self._server.writer.submit(job):
                    with contextlib.suppress(EventStoreError):
                        job.pending.result()
        if self._root and self._server.process == os.getpid():
            self._server.close()

    def _read(self, work: Callable[[], T]) -> Pending[T]:
        job: Job[T] = Job(work, self._server.deadline())
        if self._is_shut() or not self._server.reader.submit(job):
            return Pending.failed(self._is_closed())
        return job.pending

    def _is_shut(self) -> bool:
        return self._closed or self._server.process != os.getpid()

    def _is_closed(self) -> EventStoreError:
        address = self._server.address
        text = f"The log {self.sid!r} at {address} is closed."
        if not self._closed and self._server.process != os.getpid():
            text = (
                f"The log {self.sid!r} at {address} belongs to process {self._server.process}, of "
                "which this one is a fork. Open it anew here, under another sid to write."
            )
        return EventStoreError(text, store=f"{address} {self.sid}")


class _Server:
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
        self.reading = Reading(self._client, prefix, self.address)
        self.sending = Sending(
            self._client,
            self.reading.names,
            [maxlen or 0, round(1_000 * ttl) if ttl else 0],
            replicas,
            timeout,
            self.address,
            _redis.ResponseError,
        )
        self._listener = _client(pool, max(timeout, 2 * PATIENCE / 1_000))
        self._logs: dict[str, Log] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._gone: Exception | None = None  # why the server was not reached the last time
        self.writer: Worker[Any] = Worker("agents-tools-redis-writer", self._write)
        self.reader: Worker[Any] = Worker("agents-tools-redis-reader", self._do_all)
        listening = Listening(self._client, self._listener, prefix, self.address, self._ending)
        self._ring = listening.ring
        self.waiter = Waiter(listening.ask, self._wake, listening.leave, self._is_closed)

    def deadline(self) -> float:
        """Give when what begins now has to be over."""
        return time.monotonic() + self.timeout

    def log(self, sid: str) -> Log:
        """Give what is known of a log, after a look at it."""
        with self._lock:
            log = self._logs.get(sid)
            if log is None or log.refused:
                log = self._logs[sid] = Log(sid, self._prefix)
        if not log.acked:
            self._tried(partial(self.reading.look, log), time.monotonic())
        return log

    def close(self) -> None:
        """Finish what was begun, let other writers in, and end the threads."""
        until = time.monotonic() + min(self.timeout, 2.0)
        for log in list(self._logs.values()):
            self.writer.submit(Job(partial(self.release, log), until))
        self.writer.end()
        self.reader.end()
        self._ending.set()
        self.waiter.end()
        self._client.connection_pool.disconnect()
        self._listener.connection_pool.disconnect()

    # --- what is asked, each in one attempt

    def delete(self, sid: str) -> None:
        """Forget a log."""
        log = self._logs.get(sid) or Log(sid, self._prefix)
        self._client.delete(*log.keys)
        self._client.srem(self.reading.names, sid)
        log.forget()

    def reserve(self, log: Log, id_: int) -> None:
        """Note that ids up to this one are given."""
        self._client.eval(RESERVE, 1, log.keys[1], id_)

    def release(self, log: Log) -> None:
        """Let another writer in at once."""
        if not log.refused and (log.acked or log.reserved != INVALID_ID):
            self._client.eval(RELEASE, 2, *log.keys[1:], log.token, max(log.given, log.last))
            log.renew()

    def _wake(self) -> None:
        self.writer.submit(Job(self._ring, self.deadline()))

    # --- doing what was handed in

    def _do_all(self, jobs: list[Job[Any]]) -> None:
        for job in jobs:
            if self._is_too_late(job):
                continue
            try:
                job.pending.resolve(self._tried(job.work, job.until))
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                job.pending.fail(error)

    def _tried(self, work: Callable[[], T], until: float) -> T:
        """Do something, again and again while the server is away."""
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
        appends: list[Append] = []
        for job in jobs:
            if isinstance(job, Append):
                appends.append(job)
                continue
            self._send(appends)
            appends = []
            self._do_all([job])
        self._send(appends)

    def _send(self, jobs: list[Append]) -> None:
        """Send batches until each has its answer; those that come too late fail."""
        delay = 0.01
        jobs = [job for job in jobs if not self._is_too_late(job)]
        while jobs:
            away: Exception | None = None
            try:
                replies = self.sending.send(jobs)
            except _AWAY as error:
                away, replies = error, [error] * len(jobs)
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                replies = [error] * len(jobs)
            self._gone = away
            answered = [self._is_settled(*pair) for pair in zip(jobs, replies, strict=True)]
            left = [job for job, done in zip(jobs, answered, strict=True) if not done]
            if len(left) == len(jobs):
                left = self._in_time(left, away, delay)
                delay = min(2 * delay, 0.5)
            jobs = left

    def _is_too_late(self, job: Job[Any] | Append) -> bool:
        """Let something fail that has waited too long for a server that is away."""
        if self._gone is None or time.monotonic() < job.until:
            return False
        job.pending.fail(self._away(self._gone))
        return True

    def _in_time(self, jobs: list[Append], away: Exception | None, delay: float) -> list[Append]:
        """Wait a moment, and give the batches that may be tried again then."""
        now = time.monotonic()
        first = next((n for n, job in enumerate(jobs) if now + delay < job.until), len(jobs))
        kept = jobs[first:]  # never one without those that were handed in later
        for job in jobs[:first]:
            job.log.given_up += 1
            job.pending.fail(self._away(away))
        if kept:
            time.sleep(delay)
        return kept

    # --- answers

    def _is_settled(self, job: Append, reply: Any) -> bool:
        """Tell whoever waits for a batch how it ended; `False` if it has to be sent again."""
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
            why = f"{self.address} has the events, but did not say in time that they are safe"
            job.pending.fail(EventStoreError(f"{why} ({facts[1]}).", store=self.address))
        self.waiter.seen(log)
        return True

    def _is_closed(self) -> EventStoreError:
        return EventStoreError(f"The store at {self.address} is closed.", store=self.address)

    def _away(self, error: Exception | None) -> EventStoreError:
        return EventStoreError(
            f"Redis at {self.address} could not be reached within {self.timeout:g} s "
            f"({error or 'no answer'}). Is it running, and is the address right?",
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
            "RedisEventStore takes an address such as 'redis://127.0.0.1:6379/0' or a redis.Redis, "
            f"not a value of type {type(url).__name__}."
        )
    try:
        return cast("Any", _redis.ConnectionPool).from_url(url)
    except ValueError as error:
        why = "" if "Port" in str(error) else f" ({error})"  # its port may be half a password
        raise UserValueError(
            f"{without_password(url)!r:.80} is no address of a Redis server, such as "
            f"redis://user:password@host:6379/0{why}. What is no letter or digit in a password "
            "is percent-encoded."
        ) from None


def _client(pool: Any, timeout: float) -> Any:
    """Make a client with the settings of a pool, and connections of its own."""
    given: dict[str, Any] = {
        **{name: value for name, value in pool.connection_kwargs.items() if "maint_" not in name},
        "decode_responses": False,
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "socket_connect_timeout": timeout,
        "socket_timeout": timeout,
    }
    made: Any = _redis.ConnectionPool(connection_class=pool.connection_class, **given)
    return _redis.Redis(connection_pool=made)
