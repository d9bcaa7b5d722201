"""A run store in a Redis server, which many machines can share.

The settings of the server decide which failures an event survives. With `appendonly yes` it
survives a restart of the server, with `appendfsync always` also a power failure. With snapshots
only, events after the last snapshot are lost, and the writer gets an error when it continues.
With `sync`, a server from version 7.2 on confirms that the event is on disk. An older server
confirms it according to its settings, and a warning is logged once if they are weaker than
`appendfsync always`. Redis Cluster is not supported.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import redis as _redis
from pydantic_core import from_json
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry

from agents_tools.errors import (
    EventStoreCorruptError,
    EventStoreError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.lease import LeaseHolder
from agents_tools.persistence.rows import column_text, event_of_row, facts_of
from agents_tools.persistence.run_store import RunStore
from agents_tools.persistence.storage import (
    AppendRows,
    DeleteLog,
    LogPosition,
    PostMessage,
    ReleaseLease,
    RenewLeases,
    RetainLogs,
    RunInfo,
    RunMessage,
    TakeLease,
)
from agents_tools.persistence.stored_log import StoredLog
from agents_tools.persistence.stores.redis_errors import (
    address_of,
    refusal_error,
    without_password,
)
from agents_tools.persistence.stores.redis_script import DROP_SCRIPT, SCRIPT
from agents_tools.persistence.write_errors import (
    already_posted_error,
    append_conflict_error,
    id_conflict_error,
    run_in_use_error,
    session_in_use_error,
    stale_lease_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.events.base import Event
    from agents_tools.persistence.protocol import RunStatus
    from agents_tools.persistence.storage import ReadSpan, WriteRequest

__all__ = ["RedisEventStore", "RedisRunStore", "RedisStorage"]

T = TypeVar("T")
_Entry: TypeAlias = tuple[int, dict[bytes, bytes]]
"""The id of an event, and the fields of its entry in the stream."""

_PAGE: Final = 1_000
_LAST: Final = 2**53
"""The largest id: the numbers of Lua are exact only up to here."""
_WAITAOF_VERSION: Final = (7, 2)
"""The first version of Redis with WAITAOF, which waits until events are on disk."""
_UNREACHABLE: Final = (_redis.ConnectionError, _redis.TimeoutError, OSError)
"""The errors that mean that the server cannot be reached, or is still loading its data."""

logger = logging.getLogger("agents_tools")


class RedisRunStore(RunStore):
    """Stores runs in a Redis server, for several web servers and workers.

    The constructor connects to the server, and fails at once if that is not possible. Later, while
    the server is unreachable, requests are repeated until `timeout`, and waiting continues. A write
    whose reply was lost is repeated and stored once. Requires `pip install 'agents-tools[redis]'`.

    Args:
        url: The address (`redis://host:6379/0`, `unix:///run/redis.sock`), or a client of the
            package `redis`. The store opens its own connections with its settings.
        prefix: The prefix of all keys.
        keep_display: Whether text deltas, progress and notifications stay in the log when a run
            ends.
        ttl: The seconds without a new event after which the server deletes a log, also that of a
            run that waits for a person. Never by default.
        timeout: How long to try a request, in seconds.
        lease_ttl: The time after which another process can continue a run whose process has ended
            or hangs, in seconds. A process of this machine that has ended is recognized at once.
        replicas: The number of replicas that must have an event before `sync` is acknowledged.

    Raises:
        EventStoreError: The server cannot be reached, or release 0.1 has written the keys.
        UserError: An argument is not valid.
    """

    def __init__(
        self,
        url: str | Any,
        *,
        prefix: str = "agents_tools",
        keep_display: bool = False,
        ttl: float | None = None,
        timeout: float = 10.0,
        lease_ttl: float = 15.0,
        replicas: int = 0,
    ) -> None:
        for name, value in (("ttl", ttl), ("timeout", timeout), ("lease_ttl", lease_ttl)):
            if value is not None and not value > 0:
                raise UserValueError(
                    f"RedisRunStore({name}=): expected a number above 0, got {value!r}."
                )
        storage = RedisStorage(url, prefix, ttl, timeout, lease_ttl, replicas)
        super().__init__(storage, keep_display=keep_display)


class RedisEventStore(StoredLog):
    """One log in a Redis server, as the store of an `EventStream`.

    The store that first appends, or reads `next_id`, holds the lease of the log until it is closed
    or its process ends. Other writers are refused; readers are not.

    Args:
        url: The address, or a client of the package `redis`; see `RedisRunStore`.
        sid: The name of the log.
        prefix: The prefix of all keys.
        ttl: The seconds without a new event after which the server deletes the log. Never by
            default.
        timeout: How long to try a request, in seconds.
        lease_ttl: The time after which a lease that is not renewed expires, in seconds.
        replicas: The number of replicas that must have an event before `sync` is acknowledged.

    Raises:
        EventStoreError: The errors of `RedisRunStore`.
    """

    def __init__(
        self,
        url: str | Any,
        sid: str = "default",
        *,
        prefix: str = "agents_tools",
        ttl: float | None = None,
        timeout: float = 10.0,
        lease_ttl: float = 15.0,
        replicas: int = 0,
    ) -> None:
        self._run_store = RedisRunStore(
            url,
            prefix=prefix,
            keep_display=True,
            ttl=ttl,
            timeout=timeout,
            lease_ttl=lease_ttl,
            replicas=replicas,
        )
        super().__init__(self._run_store.engine, sid, store=self._run_store)

    def retain(
        self,
        *,
        max_events: int | None = None,
        max_age: float | None = None,
        max_bytes: int | None = None,
    ) -> PendingFuture[int]:
        """Delete the oldest logs until the limits hold; see `RunStore.retain`."""
        return self._run_store.retain(max_events=max_events, max_age=max_age, max_bytes=max_bytes)

    def close(self) -> None:
        """Close the log, all logs that `session` returned, and the connections."""
        super().close()
        self._run_store.close()


class RedisStorage:
    """The storage of a `RedisRunStore`.

    Args:
        url: The address, or a client.
        prefix: The prefix of all keys.
        ttl: The seconds without a new event after which a log is deleted; `None` for never.
        timeout: How long to try a request, in seconds.
        lease_ttl: The time after which a lease expires, in seconds.
        replicas: The number of replicas that must confirm a `sync` append.
    """

    is_immediate = False

    def __init__(
        self,
        url: Any,
        prefix: str,
        ttl: float | None,
        timeout: float,
        lease_ttl: float,
        replicas: int,
    ) -> None:
        self._given_pool = _pool_of(url)
        is_secure = issubclass(self._given_pool.connection_class, _redis.SSLConnection)
        self.place = address_of(self._given_pool.connection_kwargs, is_secure=is_secure)
        self.lease_ttl = lease_ttl
        self._prefix = prefix
        self._ttl = round(1_000 * ttl) if ttl else 0
        self._timeout = timeout
        self._replicas = replicas
        self._confirm: list[tuple[Any, ...]] | None = None
        self._script = ""
        self._connect()
        try:
            self._check_release()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        self._client = _client(self._given_pool, self._timeout)
        self._listener: Any = None
        self._token = uuid.uuid4().hex
        self._number = 0
        self._acknowledged: dict[tuple[str, int], int] = {}
        """The last id of each log that the server has acknowledged, by name and epoch."""

    def _check_release(self) -> None:
        """Refuse the keys of release 0.1, without changing them."""
        names = self._key("logs")
        if self._retry(lambda: _text(self._client.type(names)), is_first=True) == "set":
            raise EventStoreError(
                f"The keys {self._prefix}:* at {self.place} were written by agents-tools 0.1, "
                "whose logs this release cannot read. Nothing was changed. Pass another prefix=.",
                store=self.place,
            )

    def _key(self, *parts: str) -> str:
        return ":".join((self._prefix, *parts))

    # --- writing

    def write(self, requests: Sequence[WriteRequest], /) -> Sequence[Any]:
        """Apply requests, each with one call of the script; see `LogStorage.write`."""
        results: list[Any] = []
        group: list[WriteRequest] = []
        for request in requests:
            if isinstance(request, RetainLogs):  # it depends on the results of the others
                results += self._write(group)
                results.append(self._retain(request))
                group = []
            else:
                group.append(request)
        return results + self._write(group)

    def _write(self, requests: Sequence[WriteRequest]) -> list[Any]:
        """Send requests, and repeat those without a reply until the time limit."""
        calls = [_Call(self._arguments(request), request) for request in requests]
        until, delay = time.monotonic() + self._timeout, 0.01
        while waiting := [call for call in calls if call.result is _MISSING]:
            problem = self._attempt(waiting)
            if problem is None:
                continue
            if time.monotonic() + delay >= until:
                error = self._unreachable_error(problem)
                for call in waiting:
                    call.result = error
                break
            time.sleep(delay)
            delay = min(2 * delay, 0.5)
        return [call.result for call in calls]

    def _attempt(self, calls: Sequence[_Call]) -> Exception | None:
        """Send calls once. Returns the error if the server cannot be reached."""
        for call in calls:
            if not call.number:
                self._number += 1
                call.number = self._number
        try:
            replies: list[Any] = self._send(calls)
        except _redis.AuthenticationError as error:
            replies = [error] * len(calls)
        except _UNREACHABLE as error:
            replies = [error] * len(calls)
        except _redis.RedisError as error:
            replies = [error] * len(calls)
        problem: Exception | None = None
        for call, reply in zip(calls, replies, strict=True):
            if isinstance(reply, NoScriptError):
                self._script = ""
                # An earlier attempt whose reply was lost is recognized by its number.
                call.number = call.number if call.is_uncertain else 0
            elif isinstance(reply, _UNREACHABLE) and not isinstance(
                reply, _redis.AuthenticationError
            ):
                problem, call.is_uncertain = cast("Exception", reply), True
            elif isinstance(reply, _redis.RedisError):
                call.result = refusal_error(reply, self.place)
            else:
                self._settle(call, reply)
        return problem

    def _send(self, calls: Sequence[_Call]) -> list[Any]:
        script = self._script
        if not script:
            script = self._script = self._client.script_load(SCRIPT)
        is_sync = any(isinstance(one.request, AppendRows) and one.request.sync for one in calls)
        confirm = self._confirm_commands() if is_sync else []
        pipe = self._client.pipeline(transaction=False)
        for call in calls:
            operation, *arguments = call.arguments
            if isinstance(call.request, TakeLease | DeleteLog):
                arguments += call.ended
            pipe.evalsha(script, 0, self._prefix, self._token, call.number, operation, *arguments)
        for command in confirm:
            pipe.execute_command(*command)
        replies = pipe.execute(raise_on_error=False)
        results = replies[: len(calls)]
        for command, reply in zip(confirm, replies[len(calls) :], strict=True):
            if not _is_confirmed(command, reply):
                results = [
                    _unconfirmed(call, result, reply)
                    for call, result in zip(calls, results, strict=True)
                ]
        return results

    def _arguments(self, request: WriteRequest) -> list[Any]:
        """Return the operation, the name and the arguments of the script."""
        match request:
            case TakeLease(name=name, holder=holder, ttl=ttl, session=session):
                return ["take", name, holder.to_json(), ttl, column_text(session) or ""]
            case ReleaseLease(name=name, epoch=epoch, reserved=reserved):
                return ["release", name, epoch, reserved]
            case RenewLeases(leases=leases, ttl=ttl):
                pairs = [part for name, epoch in leases.items() for part in (epoch, name)]
                return ["renew", "", ttl, *pairs]
            case AppendRows():
                return self._append_arguments(request)
            case PostMessage(name=name, body=body, key=key):
                return ["post", name, body, *([] if key is None else [key])]
            case DeleteLog(name=name, holder=holder):
                return ["delete", name, holder.to_json()]
            case RetainLogs():
                raise NotImplementedError  # `write` handles it

    def _append_arguments(self, request: AppendRows) -> list[Any]:
        rows: list[Any] = []
        blobs: list[Any] = []
        for row in request.rows:
            stamp = repr(row.time) if row.time else ""
            flags = [int(row.is_conversation), int(row.is_display)]
            rows += [row.id, row.body_tail, row.large or "", *flags, row.size, stamp]
            blobs += [part for blob in row.blobs for part in blob]
        facts: list[Any] = []
        if request.created is not None:
            for name, value in request.created._asdict().items():
                facts += [] if value is None else [name, value]
        status = request.status or ("running" if request.created is not None else "")
        expected = "" if request.expected is None else request.expected
        return [
            *("append", request.name, request.epoch),
            *(self._acknowledged.get((request.name, request.epoch), INVALID_ID), expected),
            *(request.used, request.reserved, self._ttl, status, int(request.drop_display)),
            *(request.known_id, len(facts), *facts),
            *(len(request.consumed), *request.consumed),
            *(len(blobs), *blobs),
            *(len(rows), *rows),
        ]

    def _settle(self, call: _Call, reply: Sequence[Any]) -> None:
        """Set the result of a call, or let it be repeated without the leases of ended processes."""
        code, *facts = (_text(part) for part in reply)
        request = call.request
        if code in {"held", "session"}:
            holder = LeaseHolder.from_json(facts[0])
            if holder is None or (holder.has_ended() and facts[0] not in call.ended):
                call.ended.append(facts[0])
                call.number = 0
                return
        call.result = self._result(request, code, facts)

    def _result(self, request: WriteRequest, code: str, facts: list[str]) -> Any:
        name = "" if isinstance(request, RenewLeases | RetainLogs) else request.name
        match code:
            case "ok" | "unconfirmed":
                return self._success(request, code, facts)
            case "held":
                return run_in_use_error(name, self.place, LeaseHolder.from_json(facts[0]))
            case "session":
                session = cast("TakeLease", request).session or ""
                holder = LeaseHolder.from_json(facts[0])
                return session_in_use_error(session, facts[1], self.place, holder)
            case "stale":
                return stale_lease_error(name, self.place)
            case "count":
                expected = cast("AppendRows", request).expected
                return append_conflict_error(name, self.place, expected, int(facts[0]))
            case "id":
                return id_conflict_error(name, self.place, int(facts[0]), int(facts[1]))
            case "posted":
                return already_posted_error(name, self.place)
            case "lost":
                return EventStoreError(
                    f"{name!r} at {self.place} has lost acknowledged events: it ends with event "
                    f"{facts[0]}. The server was restarted without its last events, or the log was "
                    "deleted. No more events are written to it. Open it again to continue with the "
                    "remaining events.",
                    store=self.place,
                )
            case _:
                return EventStoreError(
                    f"{self.place} received a request about {name!r} too late. It was not applied. "
                    "Try again.",
                    store=self.place,
                )

    def _success(self, request: WriteRequest, code: str, facts: list[str]) -> Any:
        match request:
            case TakeLease(name=name):
                epoch, last_id, reserved, message = map(int, facts[:4])
                self._acknowledged[name, epoch] = last_id
                return LogPosition(
                    epoch=epoch,
                    last_id=last_id,
                    reserved=reserved,
                    message=message,
                    is_run=facts[4] == "1",
                )
            case AppendRows(name=name, epoch=epoch):
                self._acknowledged[name, epoch] = int(facts[0])
                if request.status is not None:
                    del self._acknowledged[name, epoch]
                if code == "ok" or not request.sync:
                    return int(facts[0])
                return EventStoreError(
                    f"{self.place} has stored the events, but did not confirm the sync in time "
                    f"({facts[1]}).",
                    store=self.place,
                )
            case PostMessage():
                return int(facts[0])
            case RenewLeases():
                return facts
            case ReleaseLease(name=name, epoch=epoch):
                self._acknowledged.pop((name, epoch), None)
                return None
            case _:
                return None

    def _retain(self, request: RetainLogs) -> Any:
        """Delete the oldest logs, each one atomically."""
        try:
            now = self._retry(self._now)
            logs = self._states_of(None, None, None)
        except EventStoreError as error:
            return error
        logs = sorted(logs, key=lambda log: (log.updated, log.sequence))
        events, size = sum(log.events for log in logs), sum(log.size for log in logs)
        deleted = 0
        for log in logs:
            is_old = request.max_age is not None and log.updated < now - request.max_age
            is_full = (request.max_events is not None and events > request.max_events) or (
                request.max_bytes is not None and size > request.max_bytes
            )
            if not (is_old or is_full) or log.status == "interrupted" or log.is_held(now):
                continue
            [result] = self._write([DeleteLog(name=log.name, holder=_NO_HOLDER)])
            if not isinstance(result, Exception):
                events, size, deleted = events - log.events, size - log.size, deleted + log.events
        return deleted

    def _confirm_commands(self) -> list[tuple[Any, ...]]:
        """Return the commands that confirm a `sync` append after it was sent."""
        if self._confirm is None:
            wait_ms = round(1_000 * self._timeout / 2)
            commands: list[tuple[Any, ...]] = []
            if not self._needs_no_confirm():
                commands.append(("WAITAOF", 1, 0, wait_ms))
            if self._replicas:
                commands.append(("WAIT", self._replicas, wait_ms))
            self._confirm = commands
        return self._confirm

    def _needs_no_confirm(self) -> bool:
        """Return whether WAITAOF is not necessary, or not possible."""
        try:
            config = self._client.config_get("append*")
            settings = {_text(key): _text(value) for key, value in config.items()}
            version = _text(self._client.info("server")["redis_version"])
        except _redis.ResponseError as error:  # this user cannot read the settings
            logger.warning("Cannot check whether %s stores events on disk: %s", self.place, error)
            return True
        on = settings.get("appendonly") == "yes"
        if on and settings.get("appendfsync") == "always":
            return True
        if on and tuple(map(int, version.split(".")[:2])) >= _WAITAOF_VERSION:
            return False
        logger.warning(
            "Events with durability='sync' can be lost in a power failure of %s: it has "
            "appendonly=%s, appendfsync=%s and version %s. Set appendfsync always.",
            *(self.place, settings.get("appendonly"), settings.get("appendfsync"), version),
        )
        return True

    # --- reading

    def read(self, name: str, span: ReadSpan, /) -> list[Event]:
        """Return events of a log; see `LogStorage.read`."""
        events: list[Event] = []
        if span.limit is not None and span.limit <= 0:
            return events
        for page in self._pages(name, span.after, span.before, span.limit, reverse=span.reverse):
            for entry in page:
                event = self._event(name, entry, restore=span.restore)
                if span.where is None or span.where.accepts(event):
                    events.append(event)
                    if len(events) == span.limit:
                        return events
        return events

    def _pages(
        self, name: str, after: int, before: int | None, limit: int | None, *, reverse: bool
    ) -> Iterator[list[_Entry]]:
        key = self._key("events", name)
        low: int = min(max(after, INVALID_ID), _LAST) + 2
        high: int = _LAST if before is None else min(before, _LAST)
        count = _PAGE if limit is None else min(max(limit, 100), _PAGE)
        while low <= high:
            ends = f"{low}-0", f"{high}-0"
            page: list[Any] = self._retry(partial(self._page, key, *ends, count, reverse=reverse))
            entries: list[_Entry] = [(_id_of(entry), fields) for entry, fields in page]
            yield entries
            if len(page) < count:
                return
            if reverse:
                high = entries[-1][0]
            else:
                low = entries[-1][0] + 2

    def _page(self, key: str, low: str, high: str, count: int, *, reverse: bool) -> Any:
        if reverse:
            return self._client.xrevrange(key, high, low, count)
        return self._client.xrange(key, low, high, count)

    def _event(self, name: str, entry: _Entry, *, restore: bool) -> Event:
        number, fields = entry

        def fetch(digest: bytes) -> bytes:
            content = self._retry(lambda: self._client.hget(self._key("blobs", name), digest))
            if content is None:
                raise LookupError(f"its large text {digest.hex()[:12]}… is missing")
            return cast("bytes", content)

        try:
            body = f'{{"id":{number},{fields[b"e"].decode()}'
            large = fields[b"l"].decode() or None
            return event_of_row(body, large, fetch, restore=restore)
        except (LookupError, TypeError, ValueError) as error:
            raise EventStoreCorruptError(
                f"The entry {number + 1}-0 of {self._key('events', name)!r} at {self.place} is not "
                f"an event ({error}). Another program writes to this key: use another prefix=.",
                store=self.place,
            ) from None

    def conversation(self, session: str, /, *, before: str | None = None) -> list[Event]:
        """Return the conversation of a session; see `LogStorage.conversation`."""
        names: list[str] = self._retry(lambda: self._names(None, column_text(session), None))
        if before is not None:
            order = self._retry(
                lambda: [self._client.zscore(self._key("logs"), one) for one in (*names, before)]
            )
            limit = order.pop()
            names = [
                name for name, at in zip(names, order, strict=True) if limit and at and at < limit
            ]
        return [
            self._event(name, entry, restore=True)
            for name in names
            for page in self._pages(name, INVALID_ID, None, None, reverse=False)
            for entry in page
            if entry[1].get(b"c") == b"1"
        ]

    def position(self, name: str, /) -> LogPosition:
        """Return the end of a log."""
        return self.positions([name]).get(name) or LogPosition()

    def positions(self, names: Iterable[str], /) -> Mapping[str, LogPosition]:
        """Return the ends of the logs that exist among these names."""
        wanted = list(names)

        def read() -> list[Any]:
            pipe = self._client.pipeline(transaction=False)
            for name in wanted:
                fields = ("epoch", "last", "reserved", "message", "agent")
                pipe.hmget(self._key("state", name), *fields)
            return cast("list[Any]", pipe.execute())

        return {
            name: LogPosition(
                epoch=int(epoch),
                last_id=int(last or INVALID_ID),
                reserved=int(reserved or INVALID_ID),
                message=int(message or 0),
                is_run=agent is not None,
            )
            for name, (epoch, last, reserved, message, agent) in zip(
                wanted, self._retry(read), strict=True
            )
            if epoch is not None
        }

    def messages(self, name: str, after: int, /) -> list[RunMessage]:
        """Return the messages to a run."""
        inbox = self._retry(lambda: self._client.hgetall(self._key("inbox", name)))
        bodies = {int(field[1:]): body for field, body in inbox.items() if field.startswith(b"m")}
        return [
            RunMessage(number=number, body=from_json(bodies[number]))
            for number in sorted(bodies)
            if number > after
        ]

    def logs(
        self,
        *,
        names: Sequence[str] | None = None,
        session: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> list[RunInfo]:
        """Return the logs that hold events, oldest first."""
        session = column_text(session)
        now = self._retry(self._now)
        states = self._states_of(names, session, status)
        found = [
            state
            for state in sorted(states, key=lambda state: (state.started, state.sequence))
            if state.events and session in {None, state.session} and status in {None, state.status}
        ]
        newest = found if limit is None else found[max(len(found) - limit, 0) :]
        return [state.info(now) for state in newest]

    def _names(
        self, names: Sequence[str] | None, session: str | None, status: str | None
    ) -> list[str]:
        """Return the names of the logs that can have these properties."""
        if names is not None:
            return list(names)
        if session is not None:
            found = self._client.zrange(self._key("session", session), 0, -1)
        elif status is not None:
            found = self._client.smembers(self._key("status", status))
        else:
            found = self._client.zrange(self._key("logs"), 0, -1)
        return [_text(name) for name in found]

    def _states_of(
        self, names: Sequence[str] | None, session: str | None, status: str | None
    ) -> list[_StateFields]:
        """Return the states of logs; the names of those that the server has deleted are dropped."""
        listed = self._retry(lambda: self._names(names, session, status))
        states = self._retry(lambda: self._states(listed))
        if names is None and len(states) < len(listed):
            deleted = list({*listed} - {state.name for state in states})
            with contextlib.suppress(_redis.RedisError):  # this user can only read
                for at in range(0, len(deleted), _PAGE):
                    self._client.eval(DROP_SCRIPT, 0, self._prefix, *deleted[at : at + _PAGE])
        return states

    def _states(self, names: Sequence[str]) -> list[_StateFields]:
        pipe = self._client.pipeline(transaction=False)
        for name in names:
            pipe.hgetall(self._key("state", name))
        return [
            _StateFields(name, {_text(field): _text(value) for field, value in fields.items()})
            for name, fields in zip(names, pipe.execute(), strict=True)
            if fields
        ]

    def _now(self) -> float:
        seconds, micros = self._client.time()
        return float(seconds) + float(micros) / 1e6

    def _retry(self, read: Callable[[], T], *, is_first: bool = False) -> T:
        """Read, and try again while the server cannot be reached.

        Args:
            read: Sends the commands.
            is_first: Whether the server has never been reached. The address can be wrong, so only
                a server that loads its data is tried again.
        """
        until, delay = time.monotonic() + self._timeout, 0.01
        while True:
            try:
                return read()
            except _redis.AuthenticationError as error:
                raise refusal_error(error, self.place) from error
            except _UNREACHABLE as error:
                if is_first and not isinstance(error, _redis.BusyLoadingError):
                    raise self._unreachable_error(error, is_first=True) from error
                if time.monotonic() + delay >= until:
                    raise self._unreachable_error(error) from error
            except _redis.RedisError as error:
                raise refusal_error(error, self.place) from error
            time.sleep(delay)
            delay = min(2 * delay, 0.5)

    # --- waiting

    def wait_for_change(self, seconds: float, /) -> bool:
        """Wait for a message that another process publishes when it writes."""
        try:
            if self._listener is None:
                self._listener = self._client.pubsub(ignore_subscribe_messages=True)
                self._listener.subscribe(self._key("changes"))
                self._listener.get_message(timeout=seconds)
                return True  # changes before the subscription are not published
            return self._listener.get_message(timeout=seconds) is not None
        except (*_UNREACHABLE, _redis.RedisError) as error:
            logger.debug("Waiting for events at %s failed and is retried: %s", self.place, error)
            self._drop_listener()
            time.sleep(min(seconds, 0.1))
            return False

    def _drop_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def wake(self) -> None:
        """Do nothing: `wait_for_change` returns after a short time."""

    def close(self) -> None:
        """Close all connections."""
        self._drop_listener()
        self._client.connection_pool.disconnect()

    def after_fork(self) -> None:
        """Open own connections. Those of the parent stay open."""
        _parent_objects.append((self._client, self._listener))
        self._connect()

    def _unreachable_error(self, error: Exception, *, is_first: bool = False) -> EventStoreError:
        limit = "" if is_first else f" within {self._timeout:g} s"
        why = str(error).rstrip(".")
        return EventStoreError(
            f"Redis at {self.place} could not be reached{limit} ({why}). "
            "Check the address and that the server is running.",
            store=self.place,
        )


class _Call:
    """A request with its arguments, its number and its result.

    `is_uncertain` is set if the server can have applied it although there was no reply.
    """

    __slots__ = ("arguments", "ended", "is_uncertain", "number", "request", "result")

    def __init__(self, arguments: list[Any], request: WriteRequest) -> None:
        self.arguments = arguments
        self.request = request
        self.number = 0
        self.is_uncertain = False
        self.ended: list[str] = []
        """The holders whose processes have ended."""
        self.result: Any = _MISSING


class _StateFields:
    """The state of a log in the server."""

    def __init__(self, name: str, fields: Mapping[str, str]) -> None:
        self.name = name
        self.fields = fields
        self.sequence = int(fields.get("seq", 0))
        self.events = int(fields.get("events", 0))
        self.size = int(fields.get("size", 0))
        self.started = float(fields.get("started", 0))
        self.updated = float(fields.get("updated", 0))
        self.session = fields.get("session")
        self.status: RunStatus | None = cast("Any", fields.get("status"))

    def is_held(self, now: float) -> bool:
        """Return whether a process has the lease."""
        holder = self.fields.get("holder")
        if holder is None or float(self.fields.get("expires", 0)) < now:
            return False
        found = LeaseHolder.from_json(holder)
        return found is not None and not found.has_ended()

    def info(self, now: float) -> RunInfo:
        """Return the summary of the log."""
        return RunInfo(
            run_id=self.name,
            session=self.session,
            agent=self.fields.get("agent"),
            kind=self.fields.get("kind"),
            owner=self.fields.get("owner"),
            facts=facts_of(self.fields.get("facts")),
            status=self.status,
            is_orphaned=self.status == "running" and not self.is_held(now),
            started=self.started or None,
            updated=self.updated or None,
            last_id=int(self.fields.get("last", INVALID_ID)),
            events=self.events,
            size=self.size,
        )


_MISSING: Final = object()
_NO_HOLDER: Final = LeaseHolder(machine="", pid=0, started=0, token="", program="", since=0)
_parent_objects: Final[list[Any]] = []
"""Clients of a parent process. They are referenced here so that they are never closed."""


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _id_of(entry: bytes) -> int:
    return int(entry.partition(b"-")[0]) - 1


def _is_confirmed(command: tuple[Any, ...], reply: Any) -> bool:
    """Return whether a reply confirms its command."""
    if isinstance(reply, Exception):
        return False
    confirmed: int = reply[0] if command[0] == "WAITAOF" else reply
    return confirmed >= command[1]


def _unconfirmed(call: _Call, result: Any, reply: Any) -> Any:
    """Return the result of a stored append that the disk or the replicas did not confirm."""
    is_sync = isinstance(call.request, AppendRows) and call.request.sync
    if isinstance(result, Exception) or not is_sync or result[0] != b"ok":
        return result
    return ["unconfirmed", result[1], repr(reply)]


def _pool_of(url: Any) -> Any:
    if not isinstance(url, str):
        pool = getattr(url, "connection_pool", None)
        if isinstance(pool, _redis.ConnectionPool):
            return cast("Any", pool)
        raise UserTypeError(
            "RedisRunStore(url): expected an address such as 'redis://127.0.0.1:6379/0' or a "
            f"redis.Redis, got a {type(url).__module__}.{type(url).__qualname__}."
        )
    try:
        return cast("Any", _redis.ConnectionPool).from_url(url)
    except ValueError as error:
        why = (
            "" if "Port" in str(error) else f" ({error})"
        )  # the error can quote a part of the password
        raise UserValueError(
            "RedisRunStore(url): expected an address such as redis://user:password@host:6379/0, "
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
