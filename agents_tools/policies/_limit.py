"""Limits for the use of a tool: parallel calls, calls per second, calls per run."""

from __future__ import annotations

import threading
import typing
from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import Any

from agents_tools.concurrency.limiter import Limiter, LimiterFull, RateLimit
from agents_tools.errors import ToolDeniedError, ToolOverloadedError, UserValueError
from agents_tools.policies._policy import with_parentheses
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run

__all__ = ["exclusive", "limit"]


@with_parentheses
def limit(
    *,
    concurrent: int | None = None,
    per_second: float | None = None,
    burst: int | None = None,
    calls: int | None = None,
    queue: int = 100,
) -> Policy:
    """Limit the use of a tool.

    Args:
        concurrent: The maximum number of parallel calls; further calls wait.
        per_second: The maximum number of calls per second, evenly spaced.
        burst: How many of these calls can start at once after a pause; one by default.
        calls: The maximum number of calls in one run; without a run, in total. Further calls are
            denied.
        queue: The maximum number of waiting calls. Further calls fail at once with the status
            `overloaded`.

    Raises:
        UserError: No limit is set, or a limit is not positive.
    """
    bounds: dict[str, float | None] = {
        "concurrent": concurrent,
        "per_second": per_second,
        "calls": calls,
    }
    if all(bound is None for bound in bounds.values()):
        raise UserValueError("limit(...) has no limit. Pass concurrent=, per_second= or calls=.")
    for name, bound in bounds.items():
        if bound is not None and not (isinstance(bound, (int, float)) and bound > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"limit({name}=...) is not valid: expected a positive number, got {bound!r}."
            )
    for name, number in {"concurrent": concurrent, "calls": calls, "burst": burst}.items():
        if number is not None and not isinstance(number, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"limit({name}=...) is not valid: expected an integer, got {number!r}."
            )
    if burst is not None and (per_second is None or burst < 1):
        raise UserValueError(
            f"limit(burst=...) is not valid: expected a positive integer together with "
            f"per_second=, got burst={burst!r} and per_second={per_second!r}."
        )
    if type(queue) is not int or queue < 0:
        raise UserValueError(
            f"limit(queue=...) is not valid: expected an integer, at least 0, got {queue!r}."
        )
    rate = None if per_second is None else RateLimit(per_second, burst or 1)
    limiter = _CallLimiter(concurrent, rate, queue)
    budget = None if calls is None else _Budget(calls)

    shown = ", ".join(f"{name}={bound:g}" for name, bound in bounds.items() if bound is not None)
    return _Limit(f"limit({shown})", limiter, budget)


class _Limit(Policy):
    needs_arguments = False

    def __init__(self, name: str, limiter: _CallLimiter, budget: _Budget | None) -> None:
        self.name = name
        self._limiter = limiter
        self._budget = budget

    async def around(self, call: Call, call_next: Run) -> Any:
        if self._budget is not None:
            self._budget.take(call)
        async with self._limiter.slot(call):
            return await call_next(call)


@with_parentheses
def exclusive() -> Policy:
    """Run each call of a tool alone: no other call of the turn runs at the same time.

    Calls in the background, which earlier turns have started, continue.

    Raises:
        UserError: The tool has the policy `background`.
    """
    return _Exclusive("exclusive()", _CallLimiter(1, None, 1_000_000), None)


class _Exclusive(_Limit):
    def apply(self, tool: Any) -> Any:
        if tool.stack.at_end is not None:
            raise UserValueError(
                f"Tool {tool.name!r} cannot have the policies exclusive() and background(): a call "
                "in the background runs next to other calls. Remove one of them."
            )
        own = {**tool.metadata.get("agents_tools", {}), "exclusive": True}
        return super().apply(tool.with_(metadata={**tool.metadata, "agents_tools": own}))


class _Budget:
    """Counts the calls of each run; the least recently used runs are dropped."""

    _RUNS = 400

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._used: OrderedDict[str | None, int] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, call: Call) -> None:
        """Count one call.

        Raises:
            ToolDeniedError: The run has no calls left.
        """
        run = call.run_id
        with self._lock:
            used = self._used.pop(run, 0)
            self._used[run] = min(used + 1, self._calls)
            if len(self._used) > self._RUNS:
                self._used.popitem(last=False)
        if used >= self._calls:
            times = "once" if self._calls == 1 else f"{self._calls} times"
            raise ToolDeniedError(
                f"Tool {call.tool_name!r} can be called {times}, and no call is left. "
                "Continue without it."
            )


class _CallLimiter:
    """Limits parallel calls and calls per second."""

    def __init__(self, concurrent: int | None, rate: RateLimit | None, queue: int) -> None:
        self._limiter = Limiter(concurrent, rate, queue)
        self._holders: set[Call] = set()

    @asynccontextmanager
    async def slot(self, call: Call) -> AsyncGenerator[None]:
        """Hold a slot; a call inside a call that holds one shares it.

        Raises:
            ToolOverloadedError: Too many calls wait.
        """
        if not self._holders.isdisjoint(call.ancestors):
            yield
            return
        try:
            await self._limiter.acquire()
        except LimiterFull as full:
            raise ToolOverloadedError(
                f"Tool {call.tool_name!r} is overloaded: {full.waiting} calls are already waiting. "
                "The call was not started. Try again later."
            ) from None
        holder = next(call.ancestors)
        self._holders.add(holder)
        try:
            yield
        finally:
            self._holders.discard(holder)
            self._limiter.release()
