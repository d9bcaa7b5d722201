"""A circuit breaker: no calls to a service while it is unavailable."""

from __future__ import annotations

import math
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
from agents_tools.policies._policy import check_function, with_parentheses
from agents_tools.text.secrets import library_logger
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run

    Faults = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], object]

__all__ = ["circuit_breaker"]

INFRASTRUCTURE: tuple[type[Exception], ...] = (
    ConnectionError,
    TimeoutError,  # `ToolTimeoutError` and `MCPTimeoutError` as well
    ToolLostError,
    MCPConnectionError,
)


@with_parentheses
def circuit_breaker(
    failures: int = 5, *, reset_after: float = 30.0, on: Faults = INFRASTRUCTURE
) -> Policy:
    """Reject calls at once while the service behind a tool is unavailable.

    After a number of consecutive failures the circuit opens: calls fail with the status
    `overloaded` and the tool is not called. After `reset_after` seconds one call is allowed as a
    probe; if it hangs, another one is allowed after the same time. The circuit closes when a probe
    gets a response. An error of the tool itself, such as `ValueError`, counts as a response.
    Calls with invalid arguments and cancelled or denied calls do not count.

    All tools that one `circuit_breaker(...)` object is applied to share its state. Use one object
    for the tools of one service.

    Args:
        failures: The number of consecutive failures that opens the circuit.
        reset_after: The seconds until a probe is allowed; with `math.inf`, none ever is.
        on: The errors that count as failures: classes, or a sync function of the error. By default
            lost connections, timeouts and lost calls.

    Raises:
        UserError: A number is not positive, or `on` has a wrong type.
    """
    if not isinstance(failures, int) or failures < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            "circuit_breaker(failures=...) is not valid: expected a positive integer, got "
            f"{failures!r}."
        )
    if not isinstance(reset_after, (int, float)) or not reset_after > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            "circuit_breaker(reset_after=...) is not valid: expected a positive number of seconds, "
            f"got {reset_after!r}."
        )
    return _CircuitBreaker(failures, _Breaker(failures, reset_after, _matcher(on)))


class _CircuitBreaker(Policy):
    needs_arguments = False

    def __init__(self, failures: int, breaker: _Breaker) -> None:
        self.name = f"circuit_breaker({failures})"
        self._breaker = breaker

    async def around(self, call: Call, call_next: Run) -> Any:
        attempt = self._breaker.enter(call)
        if attempt is None:
            return await call_next(call)
        is_working: bool | None = None
        error: Exception | None = None
        try:
            value = await call_next(call)
        except Exception as raised:
            error = raised
            is_working = self._breaker.is_working(raised, call)
            raise
        else:
            is_working = True
            return value
        finally:
            self._breaker.leave(call, attempt, error, is_working=is_working)
            del error  # breaks the reference cycle error -> frame -> error


def _matcher(on: Any) -> Callable[[Exception], bool]:
    kinds = typing.cast("tuple[Any, ...]", on if isinstance(on, tuple) else (on,))
    if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return lambda error: isinstance(error, kinds)
    if not isinstance(on, (tuple, type)) and callable(on):
        check_function("circuit_breaker(on=...)", on, "error", can_be_async=False)
        return lambda error: bool(on(error))
    raise UserTypeError(
        "circuit_breaker(on=...) is not valid: expected exception classes or a function of the "
        f"error, got {on!r}."
    )


class _BreakerAttempt(typing.NamedTuple):
    """A call that was allowed. Its result counts only in the period in which it started."""

    period: int
    is_probe: bool


class _Breaker:
    """Counts consecutive failures. Calls can come from several threads and event loops."""

    def __init__(
        self, failures: int, reset_after: float, is_fault: Callable[[Exception], bool]
    ) -> None:
        self._max_failures = failures
        self._reset_after = reset_after
        self._is_fault = is_fault
        self._failures = 0
        self._period = 0
        self._open_until: float | None = None
        self._probes: set[Call] = set()
        self._last_error = ""
        self._lock = threading.Lock()

    def enter(self, call: Call) -> _BreakerAttempt | None:
        """Allow a call; return `None` if it is part of a probe and does not count itself.

        Raises:
            ToolOverloadedError: The circuit is open.
        """
        with self._lock:
            if self._open_until is None:
                return _BreakerAttempt(self._period, is_probe=False)
            if not self._probes.isdisjoint(call.ancestors):
                return None
            now = time.monotonic()
            if now < self._open_until:
                raise ToolOverloadedError(self._rejection(call.tool_name, self._open_until - now))
            self._open_until = now + self._reset_after  # the next probe, if this one hangs
            self._probes.add(next(call.ancestors))
            return _BreakerAttempt(self._period, is_probe=True)

    def is_working(self, error: Exception, call: Call) -> bool | None:
        """Return whether the service responded; `None` if the error does not show that."""
        if not call.comes_from_function(error) or isinstance(
            error, (ToolDeniedError, ToolOverloadedError, ToolCancelledError)
        ):
            return None
        return not self._is_fault(error)

    def leave(
        self,
        call: Call,
        attempt: _BreakerAttempt,
        error: Exception | None,
        *,
        is_working: bool | None,
    ) -> None:
        """Take note of how a call ended."""
        with self._lock:
            if attempt.is_probe:
                self._probes.discard(next(call.ancestors))
            if attempt.period != self._period:
                return
            if is_working is None:
                if attempt.is_probe:
                    self._open_until = time.monotonic()  # no result, so the next call is a probe
                return
            if is_working:
                self._failures = 0
                if attempt.is_probe:
                    self._open_until = None
                    self._period += 1
                return
            self._failures += 1
            if self._failures < self._max_failures and not attempt.is_probe:
                return
            self._period += 1
            self._open_until = time.monotonic() + self._reset_after
            self._last_error = type(error).__name__
            count = self._failures
        text = (
            f"{call.tool_name}: {count} consecutive calls failed ({self._last_error}); "
            f"calls are rejected for {self._reset_after:g} s."
        )
        library_logger().warning("%s", text)
        call.notify(text, level="warning")

    def _rejection(self, tool: str, left: float) -> str:
        remedy = "Continue without it."
        if left < math.inf:
            when = "in a moment" if self._probes else f"in about {max(1, round(left))} s"
            remedy = f"Try again {when}, or continue without it."
        return (
            f"Tool {tool!r} is unavailable: its last {self._failures} calls failed "
            f"({self._last_error}). The call was not started. {remedy}"
        )
