"""A cache for results; equal calls at the same time share one execution."""

from __future__ import annotations

import threading
import time
import typing
from collections import OrderedDict
from typing import Any

from agents_tools.concurrency.future import PendingFuture
from agents_tools.content.outputs import as_tool_result
from agents_tools.errors import (
    ToolCancelledError,
    ToolDeniedError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserTypeError,
    UserValueError,
)
from agents_tools.policies._policy import check_function, with_parentheses
from agents_tools.policies._scope import EVERYWHERE, CallScope, weak_getter
from agents_tools.schema.json_schema import copy_json
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    import types
    from collections.abc import Callable, Hashable, Mapping

    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.policy import Run

__all__ = ["cache"]


@with_parentheses
def cache(
    ttl: float | None = None,
    *,
    max_entries: int = 1_000,
    shared: bool = False,
    key: Callable[[ToolContext[Any], Mapping[str, Any]], Any] | None = None,
) -> Policy:
    """Reuse the result of an earlier call with equal arguments.

    Only results are cached, never errors. Equal calls at the same time share one execution; if it
    is cancelled, one of the waiting calls takes over. A call that gets its result from the cache
    does not run the tool and emits no events of its own; its
    `CallOutcome.metadata["agents_tools"]["cache"]` is `hit` or `shared`. All calls get the same
    object, not copies. Iterators are not cached, because they can be read only once.

    Results are cached per run, including the runs inside it. Without a run, they are cached for
    calls with the same application context object.

    Args:
        ttl: The seconds until a result expires; never by default.
        max_entries: The maximum number of results of each tool, for all runs together. The least
            recently used result is dropped first.
        shared: Whether all runs share results, also those of different users.
        key: A function of the context and the arguments that returns a hashable cache key, or
            `None` to bypass the cache; sync or async. By default, the canonical arguments and the
            hidden ones are the key.

    Raises:
        UserError: A number is not positive, or `key` is not a function of two arguments.
    """
    if ttl is not None and not (isinstance(ttl, (int, float)) and ttl > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"cache(ttl=...) is not valid: expected a positive number of seconds, got {ttl!r}."
        )
    if not isinstance(max_entries, int) or max_entries < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            "cache(max_entries=...) is not valid: expected a positive integer, got "
            f"{max_entries!r}."
        )
    if key is not None:
        check_function("cache(key=...)", key, "context", "arguments")

    return _Cache(ttl, max_entries, key, shared=shared)


class _Cache(Policy):
    name = "cache()"

    def __init__(self, ttl: float | None, max_entries: int, key: Any, *, shared: bool) -> None:
        self._ttl = ttl
        self._max_entries = max_entries
        self._key = key
        self._shared = shared
        self._store = _CacheStore(ttl, max_entries)

    def apply(self, tool: Any) -> Any:
        # One cache per tool, because equal arguments mean different things for different tools.
        own = _Cache(self._ttl, self._max_entries, self._key, shared=self._shared)
        return tool.with_(policy=own)

    async def around(self, call: Call, call_next: Run) -> Any:
        key = await self._cache_key(call)
        if key is None or call.resumed is not None:
            return await call_next(call)
        scope = EVERYWHERE if self._shared else CallScope.of(call)
        return await self._store.result((scope, key), call, call_next)

    async def _cache_key(self, call: Call) -> Hashable | None:
        """Return the cache key of a call; `None` if it bypasses the cache."""
        if self._key is None:
            return _canonical_json({**call.arguments, **call.hidden})
        key = self._key(call.context, copy_json(call.arguments))
        if hasattr(key, "__await__"):
            key = await key
        try:
            hash(key)
        except TypeError:
            raise UserTypeError(
                f"The key function of cache() on tool {call.tool_name!r} returned a value that "
                "is not hashable: expected for example a string, a number or a tuple, got "
                f"{type_with_article(key)}."
            ) from None
        return None if key is None else ("key", key)


class _CacheEntry(typing.NamedTuple):
    value: Any
    expires: float | None
    scope: CallScope
    instance: Callable[[], object]  # the object whose method returned the value


class _CacheStore:
    """Results, and executions in progress. Calls can come from several event loops."""

    def __init__(self, ttl: float | None, max_entries: int) -> None:
        self._ttl = ttl
        self._max_entries = max_entries
        self._entries: OrderedDict[Hashable, _CacheEntry] = OrderedDict()
        self._in_flight: dict[Hashable, _InFlight] = {}
        self._lock = threading.Lock()

    async def result(
        self,
        request: tuple[CallScope, Hashable],
        call: Call,
        call_next: Run,
    ) -> Any:
        """Return the result of a call: a stored one, that of an equal call, or a new one."""
        instance = call.tool.bound_to
        scope = request[0]
        key = (scope.name, id(instance), request[1])
        while True:
            with self._lock:
                entry = self._look_up(key, scope, instance)
                flight = None if entry is not None else self._in_flight.get(key)
                if entry is None and flight is None:
                    self._in_flight[key] = _InFlight(call)
            if entry is not None:
                return _with_note(call, "hit", entry.value)
            if flight is None:
                return await self._lead(key, (scope, instance), call, call_next)
            if not flight.join(call):
                return await call_next(call)
            await flight.wait(call)
            if flight.state == "returned":
                return _with_note(call, "shared", flight.value)
            if flight.state == "single":
                return await call_next(call)
            if flight.error is not None:
                if not flight.leader.comes_from_function(flight.error):
                    call.reject_arguments(flight.error)
                error = flight.error.with_traceback(flight.traceback)
                del flight  # breaks a reference cycle through the frames of the error
                try:
                    raise error
                finally:
                    del error

    def _look_up(self, key: Hashable, scope: CallScope, instance: object) -> _CacheEntry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        is_expired = entry.expires is not None and time.monotonic() >= entry.expires
        if is_expired or entry.instance() is not instance or not entry.scope.is_same(scope):
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry

    async def _lead(
        self,
        key: Hashable,
        owner: tuple[CallScope, object],
        call: Call,
        call_next: Run,
    ) -> Any:
        """Run a call for all calls that wait for its result."""
        entry: _CacheEntry | None = None
        flight = self._in_flight[key]
        try:
            value = await call_next(call)
        except Exception as error:
            if _applies_to_all(error, call):
                flight.fail(error)
            raise
        else:
            if _is_iterator(value):
                flight.state = "single"
            else:
                flight.state, flight.value = "returned", value
                if not _is_failure(value):
                    expires = None if self._ttl is None else time.monotonic() + self._ttl
                    entry = _CacheEntry(value, expires, owner[0], weak_getter(owner[1]))
            return value
        finally:
            with self._lock:
                del self._in_flight[key]
                if entry is not None:
                    self._entries[key] = entry
                    self._entries.move_to_end(key)
                    if len(self._entries) > self._max_entries:
                        self._entries.popitem(last=False)
            flight.end()
            del flight  # breaks a reference cycle through the frames of the error


class _InFlight:
    """An execution that other calls wait for.

    Attributes:
        leader: The call that runs the tool.
        state: How the execution ended. `returned` and `failed` apply to all waiting calls. After
            `single`, each of them runs the tool itself. After `left`, one of them takes over.
        value: The result, if the state is `returned`.
        error: The error, if the state is `failed`.
        traceback: The traceback of the error before other calls raised it again.
    """

    _leaders: typing.ClassVar[dict[Call, int]] = {}  # calls -> executions they run
    _waits: typing.ClassVar[dict[Call, _InFlight]] = {}
    _lock = threading.Lock()  # protects both

    def __init__(self, leader: Call) -> None:
        self.leader = leader
        self.state: typing.Literal["returned", "failed", "single", "left"] = "left"
        self.value: Any = None
        self.error: Exception | None = None
        self.traceback: types.TracebackType | None = None
        self._ended: PendingFuture[None] = PendingFuture()
        call = next(leader.ancestors)
        with self._lock:
            self._leaders[call] = self._leaders.get(call, 0) + 1

    def fail(self, error: Exception) -> None:
        """Set an error that applies to all waiting calls."""
        self.state, self.error, self.traceback = "failed", error, error.__traceback__

    def join(self, call: Call) -> bool:
        """Register a waiting call; return `False` if the wait would be a deadlock.

        That is the case if the execution itself waits for a call around the new one.
        """
        above = set(call.ancestors)
        with self._lock:
            if not self._leaders.keys().isdisjoint(above) and self._depends_on(above):
                return False
            self._waits[call] = self
            return True

    def _depends_on(self, above: set[Call]) -> bool:
        """Return whether the execution ends only after one of these calls."""
        seen: set[int] = set()
        flights = [self]
        while flights:
            flight = flights.pop()
            leader = next(flight.leader.ancestors)
            if leader in above:
                return True
            if id(flight) not in seen:
                seen.add(id(flight))
                flights += [other for one, other in self._waits.items() if leader in one.ancestors]
        return False

    async def wait(self, call: Call) -> None:
        """Wait until the execution ends; the call has to be registered with `join`."""
        try:
            await self._ended
        finally:
            with self._lock:
                self._waits.pop(call, None)

    def end(self) -> None:
        """Wake the waiting calls."""
        call = next(self.leader.ancestors)
        with self._lock:
            self._leaders[call] -= 1
            if not self._leaders[call]:
                del self._leaders[call]
        self._ended.resolve(None)


def _with_note(call: Call, how: str, value: Any) -> Any:
    call.note("cache", how)
    return value


def _applies_to_all(error: Exception, leader: Call) -> bool:
    """Return whether the error applies to equal calls as well.

    A timeout does, unless it came from the deadline of the leader.
    """
    if isinstance(error, (ToolDeniedError, ToolOverloadedError, ToolCancelledError)):
        return False
    if isinstance(error, ToolTimeoutError) and leader.deadline is not None:
        return time.monotonic() < leader.deadline
    return True


def _is_failure(value: Any) -> bool:
    result = as_tool_result(value)
    return result is not None and result.is_error


def _is_iterator(value: Any) -> bool:
    result = as_tool_result(value)
    parts = (value,) if result is None else (result.content, result.structured)
    return any(hasattr(part, "__next__") or hasattr(part, "__anext__") for part in parts)


def _canonical_json(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON text that does not depend on their order."""
    import json

    return json.dumps(arguments, sort_keys=True, separators=(",", ":"))
