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
import socket
import threading
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import redis as _redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry

from agents_tools.action import close_at_exit
from agents_tools.errors import (
    AgentsToolsError,
    EventStoreCorruptError,
    EventStoreError,
    EventStoreFullError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import INVALID_ID
from agents_tools.store._pending import Pending
from agents_tools.store._protocol import SessionInfo
from agents_tools.store._redis_batches import (
    Append,
    Job,
    Log,
    conflict,
    has_died,
    is_confirmed,
    text_of,
    unsafe,
)
from agents_tools.store._redis_scripts import APPEND, RELEASE, RESERVE
from agents_tools.store._redis_waiter import Waiter
from agents_tools.store._unknown import event_of
from agents_tools.store._worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.events import Event
    from agents_tools.store._filter import EventFilter
    from agents_tools.store._protocol import Durability

__all__ = ["RedisEventStore"]

T = TypeVar("T")

logger = logging.getLogger("agents_tools")

LEASE: Final = 30_000
"""How long a writer that says nothing more keeps others out, in milliseconds."""
BLOCK: Final = 1_000
"""Ids are reserved so many at a time."""
PAGE: Final = 1_000
"""Events are read so many at a time."""
PATIENCE: Final = 5_000
"""How long one request waits for new events, in milliseconds; then it is made again."""

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
        if self._log.acked or self._closed:  # nobody else writes
            return
        asked = self._read(partial(self._server.look, self._log))
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
        if self._closed or not self._server.writer.submit(job):
            return Pending.failed(self._is_closed())
        return pending

    def reserve(self, id: int, /) -> None:
        """Note that ids up to this one are given; the server is told of a block at a time."""
        log = self._log
        log.given = max(log.given, id)
        if id > log.reserved and not self._closed:
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
            partial(self._server.read, self._log, after, before, limit, reverse, where)
        )

    def wait(self, after: int, /) -> Pending[int]:
        """Wait for an event with a greater id, whoever stores it."""
        if self._closed:
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
        if self._closed:
            raise self._is_closed()
        return RedisEventStore("", sid, _server=self._server)

    def sessions(self) -> Pending[list[SessionInfo]]:
        """List the logs that hold events, by name."""
        return self._read(self._server.sessions)

    def delete(self, sid: str, /) -> Pending[None]:
        """Forget a log with all its events."""
        if self._closed:
            return Pending.failed(self._is_closed())
        job: Job[None] = Job(partial(self._server.delete, sid), self._server.deadline())
        if not self._server.writer.submit(job):
            return Pending.failed(self._is_closed())
        return job.pending

    def close(self) -> None:
        """Finish what was begun and let go of the log; of the connection too, if it is its own."""
        if not self._closed:
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
        if self._root:
            self._server.close()

    def _read(self, work: Callable[[], T]) -> Pending[T]:
        job: Job[T] = Job(work, self._server.deadline())
        if self._closed or not self._server.reader.submit(job):
            return Pending.failed(self._is_closed())
        return job.pending

    def _is_closed(self) -> EventStoreError:
        address = self._server.address
        return EventStoreError(
            f"The log {self.sid!r} at {address} is closed.", store=f"{address} {self.sid}"
        )


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
        pool = getattr(url, "connection_pool", None) or _pool_of(url)
        self.address = _address(pool.connection_kwargs)
        self.timeout = timeout
        self._prefix = prefix
        self._trim = [maxlen or 0, round(1_000 * ttl) if ttl else 0]
        self._replicas = replicas
        self._token = f"{uuid.uuid4().hex}@{socket.gethostname()}:{os.getpid()}"
        self._stolen = ""
        self._client = _client(pool, timeout)
        self._listener = _client(pool, max(timeout, 2 * PATIENCE / 1_000))
        self._heard = "0-0"
        self._script = ""
        self._confirm: list[tuple[Any, ...]] | None = None
        self._logs: dict[str, Log] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self.writer: Worker[Any] = Worker("agents-tools-redis-writer", self._write)
        self.reader: Worker[Any] = Worker("agents-tools-redis-reader", self._do_all)
        self.waiter = Waiter(self._ask, self._wake, self._leave)

    def deadline(self) -> float:
        """Give when what begins now has to be over."""
        return time.monotonic() + self.timeout

    def log(self, sid: str) -> Log:
        """Give what is known of a log, after a look at it."""
        with self._lock:
            log = self._logs.get(sid)
            if log is None:
                log = self._logs[sid] = Log(sid, self._prefix)
        if not log.acked:
            self._tried(partial(self.look, log), time.monotonic())
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

    def look(self, log: Log) -> None:
        """Learn how far a log is."""
        last, reserved = self._client.hmget(log.keys[1], "last", "reserved")
        log.last = int(last or INVALID_ID)
        log.given = max(log.given, log.last, int(reserved or INVALID_ID))

    def read(
        self,
        log: Log,
        after: int,
        before: int | None,
        limit: int | None,
        reverse: bool,
        where: EventFilter | None,
    ) -> list[Event]:
        """Read events, a page at a time."""
        found: list[Event] = []
        low, high = max(after, INVALID_ID) + 2, _LAST if before is None else before
        while low <= high and (limit is None or len(found) < limit):
            count = PAGE if limit is None or where is not None else min(PAGE, limit - len(found))
            if reverse:
                page = self._client.xrevrange(log.keys[0], f"{high}-0", f"{low}-0", count)
            else:
                page = self._client.xrange(log.keys[0], f"{low}-0", f"{high}-0", count)
            events = [self._event(log, *entry) for entry in page]
            found += events if where is None else filter(where.accepts, events)
            if len(page) < count:
                break
            low, high = (low, events[-1].id) if reverse else (events[-1].id + 2, high)
        return found if limit is None else found[: max(limit, 0)]

    def _event(self, log: Log, place: bytes, fields: dict[bytes, bytes]) -> Event:
        id_ = int(place.partition(b"-")[0]) - 1
        try:
            wire = json.loads(fields[b"event"])
            return event_of({**wire, "id": id_})
        except (KeyError, TypeError, ValueError) as error:
            raise EventStoreCorruptError(
                f"The entry {place.decode()} of {log.keys[0]!r} at {self.address} is no event "
                f"({error}). Something else writes there; use another prefix.",
                store=self.address,
            ) from None

    def sessions(self) -> list[SessionInfo]:
        """List the logs that hold events."""
        sids = sorted(name.decode() for name in self._client.smembers(self._names))
        pipe = self._client.pipeline(transaction=False)
        for sid in sids:
            key = Log(sid, self._prefix).keys[0]
            pipe.xlen(key)
            pipe.xrange(key, count=1)
            pipe.xrevrange(key, count=1)
            pipe.memory_usage(key)
        replies = pipe.execute()
        found: list[SessionInfo] = []
        for place, sid in enumerate(sids):
            events, first, last, size = replies[4 * place : 4 * place + 4]
            if events:
                log = Log(sid, self._prefix)
                ends = [self._event(log, *entries[0]) for entries in (first, last)]
                found.append(
                    SessionInfo(
                        sid=sid,
                        events=events,
                        first=ends[0].timestamp,
                        last=ends[1].timestamp,
                        last_id=ends[1].id,
                        size=size or 0,
                    )
                )
        return found

    def delete(self, sid: str) -> None:
        """Forget a log."""
        log = self._logs.get(sid) or Log(sid, self._prefix)
        self._client.delete(*log.keys)
        self._client.srem(self._names, sid)
        log.forget()

    def reserve(self, log: Log, id_: int) -> None:
        """Note that ids up to this one are given."""
        self._client.eval(RESERVE, 1, log.keys[1], id_)

    def release(self, log: Log) -> None:
        """Let another writer in at once."""
        if log.acked or log.reserved != INVALID_ID:
            self._client.eval(RELEASE, 2, *log.keys[1:], self._token, max(log.given, log.last))

    @property
    def _names(self) -> str:
        return f"{self._prefix}:logs"

    # --- waiting

    def _ask(self, asked: Mapping[Any, int]) -> dict[Any, int]:
        streams = {log.keys[0]: f"{after + 1}-0" for log, after in asked.items()}
        try:
            answer = self._listener.xread(
                {self._bell: self._heard, **streams}, count=1, block=PATIENCE
            )
            heard = {key.decode(): entries[-1][0].decode() for key, entries in answer or ()}
            self._heard = heard.get(self._bell, self._heard)
            news = [log for log in asked if log.keys[0] in heard]
            pages = [self._listener.xrevrange(log.keys[0], count=1) for log in news]
            return {log: _id_of(page[0]) for log, page in zip(news, pages, strict=True) if page}
        except Exception as error:  # noqa: BLE001 - whoever waits goes on waiting, whatever it is
            if not self._ending.wait(0.1):
                logger.debug("Waiting at %s is begun anew: %s", self.address, error)
            return {}

    @property
    def _bell(self) -> str:
        return f"{self._prefix}:bell:{self._token}"

    def _wake(self) -> None:
        self.writer.submit(Job(self._ring, self.deadline()))

    def _ring(self) -> None:
        pipe = self._client.pipeline(transaction=False)
        pipe.xadd(self._bell, {"": ""}, maxlen=1)
        pipe.expire(self._bell, 60)
        pipe.execute()

    def _leave(self) -> None:
        self._listener.connection_pool.disconnect()

    # --- doing what was handed in

    def _do_all(self, jobs: list[Job[Any]]) -> None:
        for job in jobs:
            try:
                job.pending.resolve(self._tried(job.work, job.until))
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                job.pending.fail(error)

    def _tried(self, work: Callable[[], T], until: float) -> T:
        """Do something, again and again while the server is away."""
        delay = 0.01
        while True:
            try:
                return work()
            except _redis.AuthenticationError as error:
                raise self._refusal(error) from error
            except _AWAY as error:
                if time.monotonic() + delay >= until:
                    raise self._away(error) from error
            except _redis.RedisError as error:
                raise self._refusal(error) from error
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
        while jobs:
            away: Exception | None = None
            try:
                replies = self._sent(jobs)
            except _AWAY as error:
                away, replies = error, [error] * len(jobs)
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                replies = [error] * len(jobs)
            answered = [self._is_settled(*pair) for pair in zip(jobs, replies, strict=True)]
            left = [job for job, done in zip(jobs, answered, strict=True) if not done]
            if len(left) == len(jobs):
                left = self._in_time(left, away, delay)
                delay = min(2 * delay, 0.5)
            jobs = left

    def _in_time(self, jobs: list[Append], away: Exception | None, delay: float) -> list[Append]:
        """Wait a moment, and give the batches that may be tried again then."""
        now = time.monotonic()
        kept = [job for job in jobs if now + delay < job.until]
        for job in jobs:
            if job not in kept:
                job.log.unsure = True
                job.pending.fail(self._away(away))
        if kept:
            time.sleep(delay)
        return kept

    def _sent(self, jobs: list[Append]) -> list[Any]:
        """Send batches at once, and give the answers."""
        script = self._script or self._loaded()
        for log in {job.log: None for job in jobs if job.log.unsure}:
            self._make_sure(log)
        confirm = self._how_to_confirm() if any(job.sync for job in jobs) else []
        numbers: dict[Log, int] = {}
        pipe = self._client.pipeline(transaction=False)
        for job in jobs:
            log = job.log
            number = numbers[log] = numbers.get(log, log.acked) + 1
            expected = "" if job.expect_seq is None else job.expect_seq
            facts = [self._token, self._stolen, LEASE, number, log.acked, expected, *self._trim]
            facts += [log.sid, log.given, *job.written]
            pipe.evalsha(script, 4, *log.keys, self._names, *facts)
        for command in confirm:
            pipe.execute_command(*command)
        replies = pipe.execute(raise_on_error=False)
        answers = replies[: len(jobs)]
        for command, reply in zip(confirm, replies[len(jobs) :], strict=True):
            if not is_confirmed(command, reply):
                answers = [
                    unsafe(job, answer, reply) for job, answer in zip(jobs, answers, strict=True)
                ]
        return answers

    def _loaded(self) -> str:
        self._script = self._client.script_load(APPEND)
        return self._script

    def _make_sure(self, log: Log) -> None:
        """Learn whether the server has a batch of which it was not heard any more."""
        writer, batch, last = self._client.hmget(log.keys[1], "writer", "batch", "last")
        if writer == self._token.encode():
            log.acked = max(log.acked, int(batch))
            log.last = max(log.last, int(last))
        log.unsure = False

    def _how_to_confirm(self) -> list[tuple[Any, ...]]:
        """Give what asks the server whether events are safe, after they were sent."""
        if self._confirm is None:
            within = round(1_000 * self.timeout / 2)
            commands: list[tuple[Any, ...]] = []
            if not self._is_always_safe():
                commands.append(("WAITAOF", 1, 0, within))
            if self._replicas:
                commands.append(("WAIT", self._replicas, within))
            self._confirm = commands
        return self._confirm

    def _is_always_safe(self) -> bool:
        """Whether nothing has to be asked, or nothing can be."""
        try:
            found = self._client.config_get("append*")
            settings = {text_of(key): text_of(value) for key, value in found.items()}
            version = text_of(self._client.info("server")["redis_version"])
        except _redis.ResponseError as error:  # a server whose settings may not be seen
            logger.warning("Whether %s keeps events is not known: %s", self.address, error)
            return True
        on = settings.get("appendonly") == "yes"
        if on and settings.get("appendfsync") == "always":
            return True
        if on and tuple(map(int, version.split(".")[:2])) >= _CONFIRMS:
            return False
        logger.warning(
            "Events for %s are to be 'sync', and may be lost with the power of the server: it "
            "has appendonly=%s, appendfsync=%s, and is version %s. Set appendfsync always.",
            *(self.address, settings.get("appendonly"), settings.get("appendfsync"), version),
        )
        return True

    # --- answers

    def _is_settled(self, job: Append, reply: Any) -> bool:
        """Tell whoever waits for a batch how it ended; `False` if it has to be sent again."""
        if isinstance(reply, Exception):
            if isinstance(reply, NoScriptError):
                self._script = ""
                return False
            if isinstance(reply, _AWAY) and not isinstance(reply, _redis.AuthenticationError):
                return False
            job.pending.fail(self._refusal(reply))
            return True
        code, *facts = (text_of(part) for part in reply)
        if code == "gap":
            return False
        if code == "held" and has_died(facts[0]):
            self._stolen = facts[0]
            return False
        if code not in {"ok", "unsafe"}:
            job.pending.fail(conflict(job.log, self.address, code, facts))
            return True
        log = job.log
        log.acked += 1
        log.last = max(log.last, int(facts[0]))
        if code == "ok":
            job.pending.resolve(log.last)
        else:
            why = f"{self.address} has the events, but did not say in time that they are safe"
            job.pending.fail(EventStoreError(f"{why} ({facts[1]}).", store=self.address))
        self.waiter.seen(log)
        return True

    def _away(self, error: Exception | None) -> EventStoreError:
        return EventStoreError(
            f"Redis at {self.address} could not be reached within {self.timeout:g} s "
            f"({error or 'no answer'}). Is it running, and is the address right?",
            store=self.address,
        )

    def _refusal(self, error: Exception) -> Exception:
        if not isinstance(error, _redis.RedisError):
            return error
        text = str(error)
        kind = EventStoreError
        if text.startswith(_FULL):
            kind = EventStoreFullError
        elif "WRONGTYPE" in text:
            kind = EventStoreCorruptError
        return kind(f"Redis at {self.address} refuses: {text}", store=self.address)


_LAST: Final = 2**53
_CONFIRMS: Final = (7, 2)
"""The version of Redis that says when its disk has something."""
_FULL: Final = (
    "OOM",
    "MISCONF",
    "READONLY",
    "NOPERM",
    "NOREPLICAS",
    "command not allowed when used",
)


def _pool_of(url: Any) -> Any:
    if not isinstance(url, str):
        raise UserTypeError(
            "RedisEventStore takes an address such as 'redis://127.0.0.1:6379/0' or a redis.Redis, "
            f"not a value of type {type(url).__name__}."
        )
    try:
        return cast("Any", _redis.ConnectionPool).from_url(url)
    except ValueError as error:
        raise UserValueError(f"{url!r:.80} is no address of a Redis server: {error}") from None


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


def _address(settings: Mapping[str, Any]) -> str:
    """Say where a server is, without who may use it."""
    if path := settings.get("path"):
        return f"unix://{path}"
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"redis://{host}:{port}/{settings.get('db') or 0}"


def _id_of(entry: Any) -> int:
    return int(entry[0].partition(b"-")[0]) - 1
