"""Further attempts for a call whose body raised."""

from __future__ import annotations

import threading
import time
import typing
from typing import Any

from agents_tools.context import enter_scope, leave_scope
from agents_tools.errors import (
    AgentsToolsError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserValueError,
)
from agents_tools.events import ToolAttemptEvent
from agents_tools.policies._change import Change, change_around, comes_from_body
from agents_tools.policies._places import Places

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["retry"]


def retry(
    attempts: int = 3,
    *,
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
    backoff: float | Callable[[int], float] = 0.5,
    max_delay: float = 30.0,
    idempotent: bool | None = None,
    budget: float | None = None,
) -> Change:
    """Call again when the body raises.

    Only what the body of the tool raised is repeated: never bad arguments, a refusal or a
    cancellation. The library's own errors are repeated only where `on` names them. A call that
    timed out or was lost may have taken effect, so it is repeated only for an idempotent tool. A
    tool becomes one by handing `ctx.idempotency_key`, which is the same for all attempts, to a
    service that knows such keys.

    Args:
        attempts: How often the tool is called at most, the first time included.
        on: Which exceptions are worth another try.
        backoff: Seconds before the second attempt, doubled for each further one and shortened
            at random by up to a half; or a function from the number of the attempt that failed
            (1, 2 …) to the seconds to wait.
        max_delay: The longest wait, in seconds.
        idempotent: Whether a second call does no harm where the first took effect; by default
            what the tool's annotations say, unless they are those of a server.
        budget: How many further attempts there may be for the calls of one run, as a share of
            these, so that a service in trouble is not asked even more; 0.1 is usual. The first
            ten of a run are always granted.

    Raises:
        UserError: `attempts` is no positive whole number, or `budget` is not positive.
    """
    if not isinstance(attempts, int) or attempts < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(f"retry(...) takes a positive number of attempts, not {attempts!r}.")
    if budget is not None and not budget > 0:
        raise UserValueError(f"retry(budget=...) takes a positive share, not {budget!r}.")
    named = on if isinstance(on, tuple) else (on,)
    allowances = None if budget is None else Places(lambda: _Allowance(budget))

    def worth_it(error: Exception, context: ToolContext[Any]) -> bool:
        if not comes_from_body(error, context) or not isinstance(error, named):
            return False
        if isinstance(error, (ToolTimeoutError, ToolLostError)):
            return _is_idempotent(context) if idempotent is None else idempotent
        if isinstance(error, ToolOverloadedError):
            return True
        if isinstance(error, AgentsToolsError):
            return any(kind is not Exception and isinstance(error, kind) for kind in named)
        return True

    def delay_after(attempt: int) -> float:
        import random

        if callable(backoff):
            return min(max_delay, max(0.0, backoff(attempt)))
        full = min(max_delay, backoff * 2.0 ** min(attempt - 1, 60))
        return full * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            import asyncio

            first = context
            allowance = None if allowances is None else allowances.of(context)
            if allowance is not None:
                allowance.count()
            for attempt in range(1, attempts + 1):
                if attempt > 1:
                    context = first.again(attempt)
                scope = enter_scope(context)
                try:
                    return await inner(context, args_json)
                except Exception as error:
                    first.validated |= context.validated
                    if attempt == attempts or not worth_it(error, context):
                        raise
                    delay = delay_after(attempt)
                    if context.deadline is not None and (
                        time.monotonic() + delay >= context.deadline
                    ):
                        raise
                    if allowance is not None and not allowance.take():
                        raise
                    first.note("attempts", attempt + 1)
                    if context.listening:
                        context.emit(
                            ToolAttemptEvent(
                                attempt=attempt, error=type(error).__name__, delay=delay
                            )
                        )
                finally:
                    leave_scope(scope)
                await asyncio.sleep(delay)
            raise AssertionError

        return call

    return change_around(f"retry({attempts})", wrap)


def _is_idempotent(context: ToolContext[Any]) -> bool:
    """Whether trusted code says that a second call does no harm; a server's word is a hint."""
    tool = context.tool
    if tool is None or tool.annotations is None or tool.origin.server is not None:
        return False
    return tool.annotations.idempotent or tool.annotations.read_only


class _Allowance:
    """How many further attempts the calls of one run may have. Threads may share it."""

    _ALWAYS = 10

    def __init__(self, share: float) -> None:
        self._share = share
        self._calls = 0
        self._taken = 0
        self._lock = threading.Lock()

    def count(self) -> None:
        """Count one call."""
        with self._lock:
            self._calls += 1

    def take(self) -> bool:
        """Take one further attempt, if there is one left."""
        with self._lock:
            if self._taken >= max(self._ALWAYS, self._share * self._calls):
                return False
            self._taken += 1
            return True
