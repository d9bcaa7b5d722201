"""The backend that runs tools in worker processes, which can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import weakref
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.concurrency.fair_lock import LockTicket
from agents_tools.concurrency.future import call_on_loop
from agents_tools.errors import UserError, UserValueError
from agents_tools.execution.framing import FrameTooLargeError
from agents_tools.execution.ledger import Ledger
from agents_tools.execution.local import waited_too_long
from agents_tools.execution.pool import WorkerPool
from agents_tools.execution.protocol import (
    BackendCapabilities,
    BackendHealth,
    CallEvent,
    CallLog,
    is_result,
    result_payload,
)
from agents_tools.execution.tool_reference import addresses_of, main_program
from agents_tools.execution.worker_process import StartError, WorkerRecipe

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from typing import Self

    from agents_tools.events.kinds import CallStatus
    from agents_tools.execution.protocol import CallEnvelope, EventKind
    from agents_tools.execution.worker_process import WorkerProcess

__all__ = ["ProcessBackend"]

_CAPABILITIES: Final = BackendCapabilities(restarts=True)
_RESTARTS: Final = 2
"""The maximum number of times that an idempotent call is run again."""
_FALSE_STARTS: Final = 3
"""The maximum number of times that a worker dies before it reads the call."""
_FORWARDED: Final[Mapping[str, EventKind]] = {"event": "event", "heartbeat": "heartbeat"}
"""The kinds of messages from a worker that are sent to the caller, except results."""
_SLACK: Final = 0.02
"""The extra time for a worker to report the deadline itself, in seconds."""


class ProcessBackend:
    """Runs tools in worker processes, which can be killed at any time.

    Each worker imports the tools by name and runs one call at a time. It is a new interpreter
    without the file descriptors and with few of the environment variables of this process.
    Workers are started in advance, and replaced when they die, are killed, or reach `max_calls`.
    A call that is cancelled or exceeds its deadline has two seconds for its cleanup. A worker
    that is still busy then is killed with all processes that it has started. If this process
    dies, the workers end too.

    Values are sent as JSON; `ctx.context` is not sent. The output that tools print is written to
    the standard error of this process.

    Args:
        target: The tools: `"package.module"` for all tools of a module, `"package.module:name"`
            for a tool or a list of tools, tools from functions at the top level of a module, or
            several of these.
        workers: The number of workers, and so of calls that run at once.
        max_calls: The number of calls after which a worker is replaced.
        max_waiting: The number of calls that can wait for a worker; others are refused as
            `overloaded`.
        memory: The maximum address space of a worker, in bytes.
        environment: Environment variables for the workers, besides `HOME`, `LANG`, `PATH` and
            similar ones.
        name: The name of the backend.

    Raises:
        UserError: The target cannot be imported by name, a number is not positive, or the system
            has no POSIX processes.
    """

    def __init__(
        self,
        target: object,
        *,
        workers: int = 2,
        max_calls: int = 1_000,
        max_waiting: int = 1_000,
        memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        name: str = "processes",
    ) -> None:
        if sys.platform == "win32":
            raise UserError("ProcessBackend needs a POSIX system, got Windows. Use WSL.")
        numbers = {
            "workers": workers,
            "max_calls": max_calls,
            "max_waiting": max_waiting,
            "memory": memory,
        }
        for label, number in numbers.items():
            if number is not None and number < 1:
                raise UserValueError(
                    f"{label}= is invalid: expected a positive number, got {number!r}."
                )
        addresses = addresses_of(target)
        recipe = WorkerRecipe(
            addresses=addresses,
            main=main_program(addresses),
            memory=memory,
            environment=environment or {},
        )
        self._name = name
        self._max_waiting = max_waiting
        self._pool = WorkerPool(recipe, workers=workers, max_calls=max_calls)
        self._ledger = Ledger()
        self._calls: set[_ProcessCall] = set()
        self._finalizer = weakref.finalize(self, WorkerPool.abandon, self._pool)

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self._name

    @property
    def capabilities(self) -> BackendCapabilities:
        """The features of the backend."""
        return _CAPABILITIES

    def start(self) -> None:
        """Start the workers now instead of with the first call."""
        self._check_open()
        self._pool.start()

    async def __aenter__(self) -> Self:
        """Start the workers."""
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """End the workers."""
        await self.aclose()

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call; closing the generator cancels it.

        Raises:
            UserError: The backend was closed.
        """
        self._check_open()
        async with aclosing(self._ledger.once(envelope, lambda: self._run(envelope))) as events:
            async for message in events:
                yield message

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether a call is running here, or has ended recently."""
        return self._ledger.has_call(envelope)

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call. Its result is sent at once; the tool has two seconds for its cleanup."""
        calls = [call for call in list(self._calls) if call.id == call_id]
        for call in calls:
            call.cancel(reason)
        return bool(calls)

    async def health(self) -> BackendHealth:
        """Return the numbers of workers, running calls and waiting calls."""
        closed, waiting = self._pool.closed, self._pool.waiting
        return BackendHealth(
            ok=not closed,
            workers=self._pool.workers,
            busy=len(self._calls) - waiting,
            waiting=waiting,
            detail="closed" if closed else "",
        )

    async def aclose(self) -> None:
        """Cancel the running calls, and end the workers."""
        self._pool.closed = True
        for call in list(self._calls):
            call.cancel("the backend was closed")
        await self._pool.wait_closed()
        self._finalizer.detach()

    def _check_open(self) -> None:
        if self._pool.closed:
            raise UserError(f"The backend {self._name!r} was closed. Create another one.")

    async def _run(self, envelope: CallEnvelope) -> AsyncGenerator[CallEvent]:
        log = CallLog(envelope.call_id, envelope.attempt)
        yield log.create("accepted")
        if self._pool.waiting >= self._max_waiting:
            text = (
                f"Tool {envelope.tool!r} was not started: {self._pool.waiting} calls wait for a "
                f"worker of {self._name!r}. Try again later."
            )
            yield log.create("result", result_payload("overloaded", text))
            return
        call = _ProcessCall(self._pool, envelope, log)
        self._calls.add(call)
        try:
            async with aclosing(call.events()) as events:
                async for message in events:
                    yield message
        finally:
            self._calls.discard(call)


class _ProcessCall:
    """One call, which runs again on another worker if its worker dies."""

    def __init__(self, pool: WorkerPool, envelope: CallEnvelope, log: CallLog) -> None:
        self.id = envelope.call_id
        self._pool = pool
        self._envelope = envelope
        self._log = log
        self._ticket: LockTicket[WorkerProcess | StartError] = LockTicket()
        self._deadline = envelope.deadline
        self._cancelled: str | None = None
        self._timeout: asyncio.Timeout | None = None
        self._child: WorkerProcess | None = None
        self._death_reason = ""
        self._has_started = self._is_unread = self._is_over = False

    async def events(self) -> AsyncGenerator[CallEvent]:
        """Yield the messages about the call, up to its result."""
        restarts, false_starts = _RESTARTS if self._envelope.idempotent else 0, _FALSE_STARTS
        while True:
            async with aclosing(self._attempt()) as events:
                async for message in events:
                    yield message
            if self._is_over:
                return
            if self._is_unread and false_starts:
                false_starts -= 1
                continue
            if not restarts:
                break
            restarts -= 1
            self._log = CallLog(self._envelope.call_id, self._log.attempt + 1)
            self._has_started = False
            yield self._log.create(
                "restarted", {"reason": f"its worker died ({self._death_reason})"}
            )
        yield self._result(
            "lost",
            f"The worker of tool {self._envelope.tool!r} died ({self._death_reason}) while the "
            "call ran. Whether it took effect is not known.",
        )

    def cancel(self, reason: str) -> None:
        """Cancel the call. Can be called from any thread."""
        self._cancelled = reason or "its caller no longer waits for it"
        self._ticket.leave()
        call_on_loop(self._ticket.loop, self._end_wait)

    def _end_wait(self) -> None:
        if self._child is not None:
            self._child.interrupt()
        if self._timeout is not None:
            with contextlib.suppress(RuntimeError):  # its timeout has passed
                self._timeout.reschedule(0)

    async def _attempt(self) -> AsyncGenerator[CallEvent]:
        """Run the call on one worker; there is no result if the worker dies."""
        child = await self._acquire()
        if isinstance(child, CallEvent):
            yield child
            return
        result: CallEvent | None = None
        running, spent = True, False
        try:
            await self._send(child)
            if not self._has_started:
                self._has_started = True
                yield self._log.create("started")
            while result is None:
                message = await self._receive(child)
                if message is None:
                    self._death_reason, spent = await child.exit_reason(), True
                    self._is_unread = child.unread
                    break
                kind, payload = message.get("kind"), message.get("payload")
                if kind == "result" and is_result(payload):
                    result, running = self._log.create("result", payload), not message.get("clean")
                    spent = _is_out_of_memory(payload)
                elif isinstance(payload, dict) and isinstance(kind, str) and kind in _FORWARDED:
                    yield self._log.create(_FORWARDED[kind], cast("dict[str, Any]", payload))
                else:
                    self._death_reason, spent = "it sent an invalid message", True
                    self._is_unread = False
                    break
        except FrameTooLargeError as error:
            running, result = False, self._size_result(error)
        except TimeoutError:
            result = self._stop_result()
        finally:
            self._pool.release(child, running=running, spent=spent)
        if result is not None:
            self._is_over = True
            yield result

    async def _send(self, child: WorkerProcess) -> None:
        """Send the call to a worker.

        Raises:
            FrameTooLargeError: The call is too long.
            TimeoutError: The deadline has passed, or the call was cancelled.
        """
        rest = child.send_first_part({"call": self._envelope.again(self._log.attempt).to_dict()})
        if rest:
            async with self._time_limit():
                await child.send_rest(rest)

    async def _receive(self, child: WorkerProcess) -> dict[str, Any] | None:
        """Return the next message of a worker.

        Raises:
            TimeoutError: The deadline has passed, or the call was cancelled.
        """
        if self._cancelled is not None:
            raise TimeoutError
        self._child = child
        try:
            return await child.receive(until=self._until(_SLACK))
        finally:
            self._child = None

    @asynccontextmanager
    async def _time_limit(self, slack: float = _SLACK) -> AsyncGenerator[None]:
        """Raise `TimeoutError` in a block at the deadline, or when the call is cancelled."""
        if self._cancelled is not None:
            raise TimeoutError
        try:
            async with asyncio.timeout_at(self._until(slack)) as self._timeout:
                yield
        finally:
            self._timeout = None

    async def _acquire(self) -> WorkerProcess | CallEvent:
        """Return a worker; or the result of the call, if it ends before it gets one."""
        if self._pool.closed:
            self._cancelled = "the backend was closed"
            return self._stop_result()
        try:
            async with self._time_limit(0.0):
                child = await self._pool.acquire(self._ticket)
        except StartError as error:
            text = f"The worker of tool {self._envelope.tool!r} could not be started: {error}"
            return self._result("tool_error", text, kind="UserError")
        except TimeoutError:
            return self._stop_result()
        if child is None:
            return self._stop_result()
        if self._cancelled is not None:
            self._pool.release(child)
            return self._stop_result()
        return child

    def _until(self, slack: float) -> float | None:
        """Return the deadline on the clock of the event loop."""
        if self._deadline is None:
            return None
        return asyncio.get_running_loop().time() + self._deadline - time.time() + slack

    def _stop_result(self) -> CallEvent:
        """Return the result of a call that was cancelled, or whose deadline has passed."""
        self._is_over = True
        name = self._envelope.tool
        if self._cancelled is not None:
            text = f"The call of tool {name!r} was cancelled: {self._cancelled}."
            return self._result("cancelled", text)
        if not self._has_started:
            return self._log.create("result", waited_too_long(name))
        text = f"Tool {name!r} took longer than its deadline and was stopped."
        return self._result("timeout", text)

    def _size_result(self, error: FrameTooLargeError) -> CallEvent:
        return self._result(
            "invalid_args",
            f"The arguments of tool {self._envelope.tool!r} are too large to be sent: {error}. "
            "Nothing was run.",
        )

    def _result(self, status: CallStatus, message: str, kind: str | None = None) -> CallEvent:
        self._is_over = True
        return self._log.create("result", result_payload(status, message, kind=kind))


def _is_out_of_memory(payload: Mapping[str, Any]) -> bool:
    error: Mapping[str, Any] | None = payload.get("error")
    return error is not None and error.get("type") == "MemoryError"
