"""Gives equal calls the result of the first, and lets those at the same time wait for it."""

from __future__ import annotations

import contextlib
import threading
import time
import typing
from collections import OrderedDict
from typing import Any

from agents_tools._records import Policy
from agents_tools.errors import (
    ToolCancelledError,
    ToolDeniedError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserTypeError,
    UserValueError,
)
from agents_tools.outputs import result_of
from agents_tools.policies._change import Change
from agents_tools.policies._members import NotAnObject, members_of
from agents_tools.policies._places import EVERYWHERE, Place, hold

if typing.TYPE_CHECKING:
    import asyncio
    import types
    from collections.abc import Callable, Hashable, Mapping

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["cache"]


def cache(
    ttl: float | None = None,
    *,
    max_entries: int = 1_000,
    shared: bool = False,
    key: Callable[[ToolContext[Any], Mapping[str, Any]], Any] | None = None,
) -> Change:
    """Give a call the result of an earlier one with equal arguments.

    Only results are kept, never errors. Equal calls at the same time share one execution; when
    the one that runs it is cancelled, the next takes over. A call that got its result in this way
    runs nothing and says nothing; its `CallOutcome.metadata["agents_tools"]["cache"]` is `hit`
    or `shared`. The value itself is given again, not a copy. Iterators are not kept: they can be
    read once.

    Results are kept for one run, with the runs inside it. Outside a run they are kept for calls
    with the same object as application context.

    Args:
        ttl: How many seconds a result is good for; for ever by default.
        max_entries: How many results are kept for each tool, all runs together; the least recently
            used one gives way.
        shared: Whether all runs share results, whoever they are made for.
        key: What makes two calls equal, instead of all their arguments: a function of the context
            and the arguments as they were sent. It gives something hashable, or `None` for a call
            that is not to be answered from the cache. Sync or async.

    Raises:
        UserError: A bound is not positive.
    """
    if ttl is not None and not ttl > 0:
        raise UserValueError(f"cache(ttl=...) takes a positive number of seconds, not {ttl!r}.")
    if not isinstance(max_entries, int) or max_entries < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"cache(max_entries=...) takes a positive whole number, not {max_entries!r}."
        )

    def change(tool: Any) -> Any:
        # Each tool has a store of its own: what equal arguments mean differs between tools.
        keeper = _Keeper(ttl, max_entries, key, shared=shared)
        return tool.with_(policy=Policy(name="cache()", wrap=keeper.around))

    return Change("cache()", change)


class _Keeper:
    """The cache of one tool."""

    def __init__(self, ttl: float | None, most: int, key: Any, *, shared: bool) -> None:
        self._key = key
        self._shared = shared
        self._store = _Store(ttl, most)

    def around(self, inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            name = await self._name(context, args_json)
            if name is None or context.resumed is not None:
                return await inner(context, args_json)
            place = EVERYWHERE if self._shared else Place.of(context)
            return await self._store.give((place, name), inner, context, args_json)

        return call

    async def _name(self, context: ToolContext[Any], args_json: str) -> Hashable | None:
        """Name what is asked for; `None` if the call has to be run."""
        try:
            members = members_of(args_json)
        except NotAnObject:
            return None  # the tool says what is wrong with it
        if self._key is None:
            return _written(members)
        found = self._key(context, {name: _value(raw) for name, raw in members.items()})
        if hasattr(found, "__await__"):
            found = await found
        try:
            hash(found)
        except TypeError:
            raise UserTypeError(
                f"The key function of cache() on tool {context.tool_name!r} gave a "
                f"{type(found).__name__}, which is not hashable. Let it give text, a number or a "
                "tuple of them."
            ) from None
        return None if found is None else ("key", found)


class _Entry(typing.NamedTuple):
    value: Any
    until: float | None
    place: Place
    instance: Callable[[], object]  # whose method gave it


class _Store:
    """Results, and executions that others wait for. Calls may come from several event loops."""

    def __init__(self, ttl: float | None, most: int) -> None:
        self._ttl = ttl
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._flights: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()

    async def give(
        self, asked: tuple[Place, Hashable], inner: Call, context: ToolContext[Any], args_json: str
    ) -> Any:
        instance = None if context.tool is None else context.tool.bound_to
        place = asked[0]
        name = (place.name, id(instance), asked[1])
        while True:
            with self._lock:
                entry = self._look_up(name, place, instance)
                flight = None if entry is not None else self._flights.get(name)
                if entry is None and flight is None:
                    self._flights[name] = _Flight(context)
            if entry is not None:
                return _marked(context, "hit", entry.value)
            if flight is None:
                return await self._lead(name, (place, instance), inner, context, args_json)
            if not flight.join(context):
                return await inner(context, args_json)
            await flight.wait(context)
            if flight.state == "given":
                return _marked(context, "shared", flight.value)
            if flight.state == "single":
                return await inner(context, args_json)
            if flight.error is not None:
                context.validated |= flight.leader.validated
                error = flight.error.with_traceback(flight.traceback)
                del flight  # frames of the error must not keep it
                try:
                    raise error
                finally:
                    del error

    def _look_up(self, name: Hashable, place: Place, instance: object) -> _Entry | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        late = entry.until is not None and time.monotonic() >= entry.until
        if late or entry.instance() is not instance or not entry.place.is_same(place):
            del self._entries[name]
            return None
        self._entries.move_to_end(name)
        return entry

    async def _lead(
        self,
        name: Hashable,
        home: tuple[Place, object],
        inner: Call,
        context: ToolContext[Any],
        args_json: str,
    ) -> Any:
        """Run the call, for all that wait for it."""
        entry: _Entry | None = None
        flight = self._flights[name]
        try:
            value = await inner(context, args_json)
        except Exception as error:
            if _concerns_all(error, context):
                flight.fail(error)
            raise
        else:
            if _is_read_once(value):
                flight.state = "single"
            else:
                flight.state, flight.value = "given", value
                if not _is_failure(value):
                    until = None if self._ttl is None else time.monotonic() + self._ttl
                    entry = _Entry(value, until, home[0], hold(home[1]))
            return value
        finally:
            with self._lock:
                del self._flights[name]
                if entry is not None:
                    self._entries[name] = entry
                    self._entries.move_to_end(name)
                    if len(self._entries) > self._most:
                        self._entries.popitem(last=False)
            flight.land()
            del flight  # it holds the error, whose frames hold this one


class _Flight:
    """One execution that other calls wait for.

    Attributes:
        leader: The call that runs it.
        state: How it ended: `given` and `failed` hold for all; after `single` each runs by itself,
            and after `left` one of those that wait takes over.
        error: What holds for all, if it failed.
        traceback: That of the error before others raised it as well.
    """

    _leaders: typing.ClassVar[dict[ToolContext[Any], int]] = {}  # and how many each leads
    _waits: typing.ClassVar[dict[ToolContext[Any], _Flight]] = {}
    _lock = threading.Lock()  # of both

    def __init__(self, leader: ToolContext[Any]) -> None:
        self.leader = leader
        self.state: typing.Literal["given", "failed", "single", "left"] = "left"
        self.value: Any = None
        self.error: Exception | None = None
        self.traceback: types.TracebackType | None = None
        self._own_lock = threading.Lock()
        self._landed = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        call = next(leader.ancestors)
        with self._lock:
            self._leaders[call] = self._leaders.get(call, 0) + 1

    def fail(self, error: Exception) -> None:
        """Note an error that holds for all."""
        self.state, self.error, self.traceback = "failed", error, error.__traceback__

    def join(self, context: ToolContext[Any]) -> bool:
        """Line up to wait; `False` if it would never end, because it waits for the call itself."""
        above = set(context.ancestors)
        with self._lock:
            if not self._leaders.keys().isdisjoint(above) and self._needs(above):
                return False
            self._waits[context] = self
            return True

    def _needs(self, above: set[ToolContext[Any]]) -> bool:
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

    async def wait(self, context: ToolContext[Any]) -> None:
        """Wait until it has ended; the call has joined."""
        import asyncio

        loop = asyncio.get_running_loop()
        landed: asyncio.Future[None] = loop.create_future()
        place = (loop, landed)
        try:
            with self._own_lock:
                if self._landed:
                    return
                self._waiting.append(place)
            await landed
        finally:
            with self._lock:
                self._waits.pop(context, None)
            with self._own_lock:
                if place in self._waiting:
                    self._waiting.remove(place)

    def land(self) -> None:
        """Tell those that wait that it has ended."""
        call = next(self.leader.ancestors)
        with self._lock:
            self._leaders[call] -= 1
            if not self._leaders[call]:
                del self._leaders[call]
        with self._own_lock:
            self._landed = True
            waiting, self._waiting = self._waiting, []
        for loop, landed in waiting:
            with contextlib.suppress(RuntimeError):  # that loop is closed, and nobody waits in it
                loop.call_soon_threadsafe(_wake, landed)


def _wake(landed: asyncio.Future[None]) -> None:
    if not landed.done():
        landed.set_result(None)


def _marked(context: ToolContext[Any], how: str, value: Any) -> Any:
    context.validated = True
    context.note("cache", how)
    return value


def _concerns_all(error: Exception, leader: ToolContext[Any]) -> bool:
    """Whether equal calls would have failed as well, for all that is known."""
    if isinstance(error, (ToolDeniedError, ToolOverloadedError, ToolCancelledError)):
        return False
    if isinstance(error, ToolTimeoutError) and leader.deadline is not None:
        return time.monotonic() < leader.deadline
    return True


def _is_failure(value: Any) -> bool:
    result = result_of(value)
    return result is not None and result.is_error


def _is_read_once(value: Any) -> bool:
    result = result_of(value)
    given = (value,) if result is None else (result.content, result.structured)
    return any(hasattr(one, "__next__") or hasattr(one, "__anext__") for one in given)


def _written(members: Mapping[str, str]) -> str:
    """Write arguments the same way however they were written."""
    import json

    values = {name: _value(raw) for name, raw in members.items()}
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _value(raw: str) -> Any:
    import json

    return json.loads(raw)
