"""Bounds on how much a tool is used: at once, in a second, in a run."""

from __future__ import annotations

import heapq
import threading
import time
import typing
from collections import OrderedDict, deque
from contextlib import asynccontextmanager
from typing import Any

from agents_tools._records import Policy
from agents_tools.errors import ToolDeniedError, ToolOverloadedError, UserValueError
from agents_tools.policies._change import Change, change_around, marked

if typing.TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools._records import Call
    from agents_tools.context import ToolContext
    from agents_tools.tool import FunctionTool

__all__ = ["exclusive", "limit"]


def limit(
    *,
    concurrent: int | None = None,
    per_second: float | None = None,
    burst: int | None = None,
    calls: int | None = None,
    queue: int = 100,
) -> Change:
    """Bound how much a tool is used.

    Args:
        concurrent: How many calls run at once; further ones wait their turn.
        per_second: How many calls start in a second, evenly spaced.
        burst: How many of those may start at once after a pause; one by default.
        calls: How many calls one run may make; outside a run, how many there may be in all.
            A call too many is denied.
        queue: How many calls may wait. A call that finds no place is answered at once: the
            tool is overloaded, nothing was started.

    Raises:
        UserError: Nothing is bounded, or a bound is not positive.
    """
    bounds: dict[str, float | None] = {
        "concurrent": concurrent,
        "per_second": per_second,
        "calls": calls,
    }
    if all(bound is None for bound in bounds.values()):
        raise UserValueError("limit(...) bounds nothing: give concurrent=, per_second= or calls=.")
    for name, bound in bounds.items():
        if bound is not None and not bound > 0:
            raise UserValueError(f"limit({name}=...) takes a positive number, not {bound!r}.")
    for name, number in {"concurrent": concurrent, "calls": calls, "burst": burst}.items():
        if number is not None and not isinstance(number, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(f"limit({name}=...) takes a whole number, not {number!r}.")
    if burst is not None and (per_second is None or burst < 1):
        raise UserValueError(
            f"limit(burst={burst!r}) says how many calls may start at once: give a positive "
            "number, and per_second= beside it."
        )
    pace = None if per_second is None else _Pace(per_second, burst or 1)
    gate = _Gate(concurrent, pace, queue)
    budget = None if calls is None else _Budget(calls)

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            if budget is not None:
                budget.spend(context)
            async with gate.held(context):
                return await inner(context, args_json)

        return call

    shown = ", ".join(f"{name}={bound:g}" for name, bound in bounds.items() if bound is not None)
    return change_around(f"limit({shown})", wrap)


def exclusive() -> Change:
    """Let a tool run alone: no other call of the same turn runs beside it, nor one of its own."""
    gate = _Gate(1, None, 1_000_000)

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            async with gate.held(context):
                return await inner(context, args_json)

        return call

    policy = Policy(name="exclusive()", wrap=wrap)

    def change(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
        return marked(tool, exclusive=True).with_(policy=policy)

    return Change("exclusive()", change)


class _Budget:
    """Counts the calls of each run; of the runs, the latest hundreds."""

    _RUNS = 400

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._used: OrderedDict[str | None, int] = OrderedDict()
        self._lock = threading.Lock()

    def spend(self, context: ToolContext[Any]) -> None:
        """Count one call, or deny it.

        Raises:
            ToolDeniedError: The run has made all its calls.
        """
        run = context.run_id
        with self._lock:
            used = self._used.pop(run, 0)
            self._used[run] = min(used + 1, self._calls)
            if len(self._used) > self._RUNS:
                self._used.popitem(last=False)
        if used >= self._calls:
            times = "once" if self._calls == 1 else f"{self._calls} times"
            raise ToolDeniedError(
                f"Tool {context.tool_name!r} may be called {times}; that is used up. "
                "Go on without it."
            )


class _Gate:
    """Lets calls through one by one: at most so many at once, at most so many in a second.

    Calls may come from several event loops; whoever leaves hands its place to the first in line.
    """

    def __init__(self, concurrent: int | None, pace: _Pace | None, queue: int) -> None:
        self._free = concurrent
        self._pace = pace
        self._queue = queue
        self._waiting: deque[tuple[Any, Any]] = deque()
        self._spaced = 0
        self._lock = threading.Lock()
        self._holders: set[ToolContext[Any]] = set()

    @asynccontextmanager
    async def held(self, context: ToolContext[Any]) -> AsyncGenerator[None]:
        """Hold a place; a call that runs inside one that holds it shares that."""
        if not self._holders.isdisjoint(context.ancestors):
            yield
            return
        await self._enter(context.tool_name)
        holder = next(context.ancestors)
        self._holders.add(holder)
        try:
            yield
        finally:
            self._holders.discard(holder)
            self._leave()

    async def _enter(self, tool: str) -> None:
        """Wait for a place, and for the time to start."""
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            turn = self._place_or_turn(loop, tool)
        if turn is not None:
            try:
                await turn
            except BaseException:
                with self._lock:
                    given = turn.done() and not turn.cancelled()
                    if not given and (loop, turn) in self._waiting:
                        self._waiting.remove((loop, turn))
                if given:
                    self._leave()
                raise
        if self._pace is not None:
            try:
                await self._spacing(self._pace, tool)
            except BaseException:
                self._leave()
                raise

    def _place_or_turn(self, loop: Any, tool: str) -> Any:
        if self._free is None:
            return None
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return None
        if len(self._waiting) >= self._queue:
            raise _overloaded(tool, len(self._waiting))
        turn = loop.create_future()
        self._waiting.append((loop, turn))
        return turn

    async def _spacing(self, pace: _Pace, tool: str) -> None:
        import asyncio

        now = time.monotonic()
        with self._lock:
            start = pace.take(now, may_wait=self._spaced < self._queue)
            if start is None:
                raise _overloaded(tool, self._spaced)
            self._spaced += 1
        try:
            if start > now:
                await asyncio.sleep(start - now)
        except BaseException:
            with self._lock:
                pace.give_back(start)
            raise
        finally:
            with self._lock:
                self._spaced -= 1

    def _leave(self) -> None:
        """Give the place to the first in line."""
        if self._free is None:
            return
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if turn.cancelled() or loop.is_closed():
                    continue
                try:
                    loop.call_soon_threadsafe(self._hand_over, turn)
                except RuntimeError:  # the loop was closed just now
                    continue
                return
            self._free += 1

    def _hand_over(self, turn: Any) -> None:
        if turn.done():
            self._leave()  # it was cancelled on the way: on to the next
        else:
            turn.set_result(None)


class _Pace:
    """The times at which calls start: so many in a second, so many of them at once."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._gap = 1.0 / per_second
        self._ahead = (burst - 1) * self._gap
        self._next = 0.0
        self._freed: list[float] = []  # a heap of times that nobody wants any more

    def take(self, now: float, *, may_wait: bool) -> float | None:
        """Give the next time; `None` if it is later than now and the call may not wait."""
        while self._freed and self._freed[0] < now:
            heapq.heappop(self._freed)
        start = self._freed[0] if self._freed else max(now, self._next - self._ahead)
        if start > now and not may_wait:
            return None
        if self._freed:
            return heapq.heappop(self._freed)
        self._next = max(now, self._next) + self._gap
        return start

    def give_back(self, start: float) -> None:
        """Let another call have a time that was taken."""
        heapq.heappush(self._freed, start)


def _overloaded(tool: str, waiting: int) -> ToolOverloadedError:
    return ToolOverloadedError(
        f"Tool {tool!r} is overloaded: {waiting} calls are waiting already. "
        "Nothing was started; try again later."
    )
