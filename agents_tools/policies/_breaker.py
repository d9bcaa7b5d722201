"""Keeps calls away from a service that does not answer, until it does again."""

from __future__ import annotations

import threading
import time
import typing
from typing import Any

from agents_tools.errors import (
    MCPConnectionError,
    ToolCancelledError,
    ToolDeniedError,
    ToolLostError,
    ToolOverloadedError,
    UserTypeError,
    UserValueError,
)
from agents_tools.policies._change import Change, change_around, comes_from_body

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

    Faults = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], object]

__all__ = ["circuit_breaker"]

INFRASTRUCTURE: tuple[type[Exception], ...] = (
    ConnectionError,
    TimeoutError,  # `ToolTimeoutError` and `MCPTimeoutError` as well
    ToolLostError,
    MCPConnectionError,
)


def circuit_breaker(
    failures: int = 5, *, reset_after: float = 30.0, on: Faults = INFRASTRUCTURE
) -> Change:
    """Answer at once, without a call, while the service behind a tool is out of order.

    After so many failures in a row, calls are answered as overloaded and nothing is started.
    After `reset_after` seconds one call is let through, and another one after as long again if that
    hangs; once one gets an answer, all are let through. An error of the tool itself, such as
    `ValueError`, is an answer. Calls with bad arguments and cancelled or denied ones say nothing
    about the service.

    The tools that one `circuit_breaker(...)` is applied to share it: give those of one service the
    same.

    Args:
        failures: How many calls have to fail in a row.
        reset_after: How many seconds calls are kept away.
        on: Which errors mean that the service is out of order: classes, or a function of the
            error. By default lost connections, timeouts and lost calls.

    Raises:
        UserError: A bound is not positive, or `on` is neither.
    """
    if not isinstance(failures, int) or failures < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"circuit_breaker(...) takes a positive number of failures, not {failures!r}."
        )
    if not reset_after > 0:
        raise UserValueError(
            "circuit_breaker(reset_after=...) takes a positive number of seconds, "
            f"not {reset_after!r}."
        )
    breaker = _Breaker(failures, reset_after, _matcher(on))

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            turn = breaker.enter(context)
            if turn is None:
                return await inner(context, args_json)
            verdict: bool | None = None
            error: Exception | None = None
            try:
                value = await inner(context, args_json)
            except Exception as raised:
                error = raised
                verdict = breaker.judge(raised, context)
                raise
            else:
                verdict = True
                return value
            finally:
                breaker.leave(context, turn, error, works=verdict)
                del error  # or it would hold on to itself through this frame

        return call

    return change_around(f"circuit_breaker({failures})", wrap)


def _matcher(given: Any) -> Callable[[Exception], bool]:
    kinds = typing.cast("tuple[Any, ...]", given if isinstance(given, tuple) else (given,))
    if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return lambda error: isinstance(error, kinds)
    if not isinstance(given, (tuple, type)) and callable(given):
        return lambda error: bool(given(error))
    raise UserTypeError(
        f"circuit_breaker(on=...) takes exception classes or a function of the error, "
        f"not {given!r}."
    )


class _Turn(typing.NamedTuple):
    """What a call was let through for: results of an earlier period do not count in a later."""

    period: int
    probes: bool


class _Breaker:
    """Counts failures in a row. Calls may come from several threads and event loops."""

    def __init__(
        self, failures: int, reset_after: float, is_fault: Callable[[Exception], bool]
    ) -> None:
        self._most = failures
        self._pause = reset_after
        self._is_fault = is_fault
        self._failures = 0
        self._period = 0
        self._open_until: float | None = None
        self._probes: set[ToolContext[Any]] = set()
        self._why = ""
        self._lock = threading.Lock()

    def enter(self, context: ToolContext[Any]) -> _Turn | None:
        """Let a call through; `None` where it is part of one that was.

        Raises:
            ToolOverloadedError: The service is out of order.
        """
        with self._lock:
            if self._open_until is None:
                return _Turn(self._period, probes=False)
            if not self._probes.isdisjoint(context.ancestors):
                return None
            now = time.monotonic()
            if now < self._open_until:
                raise ToolOverloadedError(self._refusal(context.tool_name, self._open_until - now))
            self._open_until = now + self._pause  # if this one hangs, the next one tries then
            self._probes.add(next(context.ancestors))
            return _Turn(self._period, probes=True)

    def judge(self, error: Exception, context: ToolContext[Any]) -> bool | None:
        """Say whether an error shows that the service works; `None` if it shows nothing."""
        if not comes_from_body(error, context) or isinstance(
            error, (ToolDeniedError, ToolOverloadedError, ToolCancelledError)
        ):
            return None
        return not self._is_fault(error)

    def leave(
        self,
        context: ToolContext[Any],
        turn: _Turn,
        error: Exception | None,
        *,
        works: bool | None,
    ) -> None:
        """Take note of how a call ended."""
        with self._lock:
            if turn.probes:
                self._probes.discard(next(context.ancestors))
            if turn.period != self._period:
                return
            if works is None:
                if turn.probes:
                    self._open_until = time.monotonic()  # nobody knows yet: let another one try
                return
            if works:
                self._failures = 0
                if turn.probes:
                    self._open_until = None
                    self._period += 1
                return
            self._failures += 1
            if self._failures < self._most and not turn.probes:
                return
            self._period += 1
            self._open_until = time.monotonic() + self._pause
            self._why = type(error).__name__
            count = self._failures
        text = (
            f"{context.tool_name}: {count} calls in a row have failed ({self._why}); "
            f"there will be none for {self._pause:g} s."
        )
        _log().warning("%s", text)
        context.notify(text, level="warning")

    def _refusal(self, tool: str, left: float) -> str:
        again = "in a moment" if self._probes else f"in about {max(1, round(left))} s"
        return (
            f"Tool {tool!r} is out of order: its last {self._failures} calls failed "
            f"({self._why}). Nothing was started; try again {again}, or go on without it."
        )


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
