"""Retries for calls that failed."""

from __future__ import annotations

import threading
import time
import typing
from typing import Any

from agents_tools.errors import (
    AgentsToolsError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.kinds import ToolAttemptEvent
from agents_tools.policies._policy import check_function, with_parentheses
from agents_tools.policies._scope import CallScopes
from agents_tools.tool.call import enter_scope, leave_scope
from agents_tools.tool.policy import Policy
from agents_tools.tool.records import is_idempotent

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run

__all__ = ["retry"]


@with_parentheses
def retry(
    attempts: int = 3,
    *,
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
    backoff: float | Callable[[int], float] = 0.5,
    max_delay: float = 30.0,
    idempotent: bool | None = None,
    budget: float | None = None,
) -> Policy:
    """Repeat a call when the function of the tool raises.

    Only errors of the function itself are retried, never invalid arguments, a denied call or a
    cancellation. The library's own errors are retried only if `on` names them. A call that timed
    out or was lost possibly took effect, so it is retried only for an idempotent tool. To make a
    tool idempotent, pass `ctx.idempotency_key` to a service that supports such keys; the key is the
    same for all attempts.

    Args:
        attempts: The maximum number of calls, including the first one.
        on: The exceptions to retry.
        backoff: Seconds before the second attempt, doubled for each further one and shortened
            at random by up to a half; or a sync function from the number of the attempt that failed
            (1, 2 …) to the seconds to wait.
        max_delay: The longest wait, in seconds.
        idempotent: Whether a second call has no further effect. By default the annotations of the
            tool decide, unless they come from a server.
        budget: The maximum number of retries of a run, as a share of its calls; 0.1 is usual. It
            prevents overloading a service in trouble. The first ten retries of a run are always
            allowed.

    Raises:
        UserError: An option is not valid.
    """
    if type(attempts) is not int or attempts < 1:
        raise UserValueError(
            f"retry(attempts=...) is not valid: expected a positive integer, got {attempts!r}."
        )
    if budget is not None and not budget > 0:
        raise UserValueError(
            f"retry(budget=...) is not valid: expected a positive number, got {budget!r}."
        )
    errors: tuple[Any, ...] = on if isinstance(on, tuple) else (on,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in errors):
        raise UserTypeError(
            "retry(on=...) is not valid: expected an exception class or a tuple of them, got "
            f"{on!r}."
        )
    _check_seconds("max_delay", max_delay)
    if callable(backoff):
        check_function("retry(backoff=...)", backoff, "attempt", can_be_async=False)
    else:
        _check_seconds("backoff", backoff)
    rules = _RetryRules(
        attempts=attempts,
        errors=errors,
        backoff=backoff,
        max_delay=max_delay,
        idempotent=idempotent,
    )
    budgets = None if budget is None else CallScopes(lambda: _RetryBudget(budget))

    return _Retry(rules, budgets)


def _check_seconds(option: str, value: object) -> None:
    if not isinstance(value, (int, float)) or not value >= 0:  # a NaN is not
        raise UserValueError(
            f"retry({option}=...) is not valid: expected seconds, at least 0, got {value!r}."
        )


class _Retry(Policy):
    needs_arguments = False

    def __init__(self, rules: _RetryRules, budgets: CallScopes[_RetryBudget] | None) -> None:
        self.name = f"retry({rules.attempts})"
        self._rules = rules
        self._budgets = budgets

    async def around(self, call: Call, call_next: Run) -> Any:
        budget = None if self._budgets is None else self._budgets.of(call)
        return await _call_with_retries(call, call_next, self._rules, budget)


class _RetryRules(typing.NamedTuple):
    """The options of one `retry` policy."""

    attempts: int
    errors: tuple[type[Exception], ...]
    backoff: float | Callable[[int], float]
    max_delay: float
    idempotent: bool | None

    def should_retry(self, error: Exception, call: Call) -> bool:
        """Return whether a call that raised this error is repeated."""
        if not call.comes_from_function(error) or not isinstance(error, self.errors):
            return False
        if isinstance(error, (ToolTimeoutError, ToolLostError)):
            return is_idempotent(call.tool) if self.idempotent is None else self.idempotent
        if isinstance(error, ToolOverloadedError):
            return True
        if isinstance(error, AgentsToolsError):
            return any(kind is not Exception and isinstance(error, kind) for kind in self.errors)
        return True

    def delay_after(self, attempt: int) -> float:
        """Return the seconds to wait after an attempt that failed."""
        import random

        if callable(self.backoff):
            return min(self.max_delay, max(0.0, self.backoff(attempt)))
        full = min(self.max_delay, self.backoff * 2.0 ** min(attempt - 1, 60))
        return full * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing


async def _call_with_retries(
    call: Call,
    call_next: Run,
    rules: _RetryRules,
    budget: _RetryBudget | None,
) -> Any:
    import asyncio

    first = call
    if budget is not None:
        budget.count_call()
    for attempt in range(1, rules.attempts + 1):
        if attempt > 1:
            call = first.again(attempt)
        scope = enter_scope(call)
        try:
            return await call_next(call)
        except Exception as error:
            if attempt == rules.attempts or not rules.should_retry(error, call):
                raise
            delay = rules.delay_after(attempt)
            if call.deadline is not None and time.monotonic() + delay >= call.deadline:
                raise
            if budget is not None and not budget.take_retry():
                raise
            first.note("attempts", attempt + 1)
            if call.listening:
                call.emit(
                    ToolAttemptEvent(attempt=attempt, error=type(error).__name__, delay=delay)
                )
        finally:
            leave_scope(scope)
        await asyncio.sleep(delay)
    raise AssertionError


class _RetryBudget:
    """The number of retries that the calls of one run can use. It is thread-safe."""

    _ALWAYS_ALLOWED = 10

    def __init__(self, share: float) -> None:
        self._share = share
        self._calls = 0
        self._retries = 0
        self._lock = threading.Lock()

    def count_call(self) -> None:
        """Count one call."""
        with self._lock:
            self._calls += 1

    def take_retry(self) -> bool:
        """Use one retry, and return whether one was left."""
        with self._lock:
            if self._retries >= max(self._ALWAYS_ALLOWED, self._share * self._calls):
                return False
            self._retries += 1
            return True
