"""The pool of daemon threads in which sync functions run while the event loop continues."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import ToolOverloadedError, UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

__all__ = [
    "AbandonedJob",
    "ThreadException",
    "ThreadStats",
    "abandoned_jobs",
    "configure_threads",
    "run_in_thread",
    "thread_stats",
]

P = ParamSpec("P")
R = TypeVar("R")


class ThreadException(Exception):  # noqa: N818 - the reported exception can be a KeyboardInterrupt
    """A function in a thread raised an exception that cannot pass through an event loop.

    `SystemExit` and `KeyboardInterrupt` would end the loop, `CancelledError` would look like a
    cancellation of the caller, and `StopIteration` cannot leave a coroutine.

    Attributes:
        error: The exception that the function raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__} was raised in a worker thread.")
        self.error: BaseException = error


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStats:
    """A snapshot of the thread pool.

    Attributes:
        size: The maximum number of functions that run at once, without nested ones.
        running: The number of running functions whose callers wait for them.
        idle: The number of threads without work.
        abandoned: The number of running functions whose callers no longer wait for them.
        queued: The number of calls that wait for a thread.
    """

    size: int
    running: int
    idle: int
    abandoned: int
    queued: int


class AbandonedJob(NamedTuple):
    """A running function whose callers no longer wait for it."""

    name: str
    """The qualified name of the function."""
    seconds: float
    """How long ago the last caller stopped waiting, in seconds."""


async def run_in_thread(fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a sync function in a thread of the pool and return its result.

    The function gets a copy of the context variables of the caller. A thread cannot be stopped
    from outside: if the caller is cancelled, it continues at once and the function is abandoned.
    An abandoned function no longer counts against the size of the pool, but against a separate
    limit until it returns.

    A call from inside a running function gets an extra thread, because waiting for a thread that
    only its own caller can free would be a deadlock.

    Raises:
        ToolOverloadedError: Too many abandoned functions are running, or the system has no more
            threads. The function was not started.
        ThreadException: The function raised an exception that cannot pass through an event loop.
    """
    import asyncio

    future: PendingFuture[_Outcome] = PendingFuture()
    pool = _pool
    job = _ThreadJob((copy_context(), fn, args, kwargs, future))
    pool.submit(job)
    try:
        if future.done():
            await asyncio.sleep(0)  # otherwise a series of fast calls would block the loop
        returned, value = await future
    except BaseException:
        pool.leave(job)
        raise
    if returned:
        result: R = value
        return result
    try:
        if isinstance(value, Exception) and not isinstance(value, _NOT_RAISABLE):
            raise value
        raise ThreadException(value) from value
    finally:
        # The traceback of the error holds this frame, which must not hold the error.
        del future, value


def thread_stats() -> ThreadStats:
    """Return a snapshot of the thread pool."""
    return _pool.stats()


def abandoned_jobs() -> tuple[AbandonedJob, ...]:
    """Return the running functions whose callers no longer wait for them, oldest first."""
    return _pool.abandoned_jobs()


def configure_threads(*, size: int | None = None, abandoned: int | None = None) -> None:
    """Change the limits of the thread pool. Running functions are not affected.

    Args:
        size: The maximum number of functions that run at once; initially 64.
        abandoned: The number of running abandoned functions from which new calls are refused;
            initially 256.
    """
    _pool.configure(
        size=None if size is None else _positive("size", size),
        cap=None if abandoned is None else _positive("abandoned", abandoned),
    )


_QUEUED: Final = 0
_RUNNING: Final = 1
_ABANDONED: Final = 2
_DONE: Final = 3

_NOT_RAISABLE: Final = (StopIteration, StopAsyncIteration)
"""The kinds of `Exception` that cannot leave a coroutine."""

_Call: TypeAlias = (
    "tuple[Context, Callable[..., Any], tuple[Any, ...], dict[str, Any], PendingFuture[_Outcome]]"
)
_Outcome: TypeAlias = "tuple[bool, Any]"
"""True and the returned value, or False and the raised exception."""
_Inbox: TypeAlias = "SimpleQueue[_ThreadJob | None]"
"""The queue from which one thread gets its jobs; `None` ends the thread."""


class _ThreadJob:
    """One call of a function, from its submission until the function returns."""

    __slots__ = ("call", "nested", "parent", "since", "state")

    def __init__(self, call: _Call) -> None:
        self.call: _Call = call
        self.state = _QUEUED
        self.parent: _ThreadJob | None = None
        """The running function that waits for this one, if any."""
        self.nested = 0
        """The number of running calls that were made inside this one."""
        self.since = 0.0
        """The time at which the call was abandoned."""

    @property
    def name(self) -> str:
        fn: Any = getattr(self.call[1], "func", self.call[1])  # functools.partial
        return str(getattr(fn, "__qualname__", None) or type(fn).__qualname__)


_current_job: ContextVar[_ThreadJob | None] = ContextVar("agents_tools_inside_job", default=None)
"""The call of the pool that runs the current code."""


class _ThreadPool:
    """Threads, the calls that they run and the calls that wait for them.

    Each thread has its own inbox, and the thread that became idle last is used first. A call nested
    in a running one borrows its slot: `lent` counts the running calls that have nested ones. Nested
    calls have a separate queue and that many extra slots, so one of them can always run if all
    running calls wait for nested ones.

    The lock is reentrant because garbage collection can close a coroutine at any point, and closing
    one that waits for a thread calls `leave`.
    """

    def __init__(self, size: int, cap: int) -> None:
        self.lock = threading.RLock()
        self.size = size
        self.cap = cap
        self.busy = 0
        self.lent = 0
        self.idle: list[_Inbox] = []
        self.waiting: OrderedDict[_ThreadJob, None] = OrderedDict()
        self.waiting_nested: OrderedDict[_ThreadJob, None] = OrderedDict()
        self.abandoned: OrderedDict[_ThreadJob, None] = OrderedDict()
        self.numbers = count(1)

    # --- called by the waiting side

    def submit(self, job: _ThreadJob) -> None:
        """Hand the call to a thread, or put it into the queue."""
        parent = _current_job.get()
        with self.lock:
            if len(self.abandoned) >= self.cap:
                raise self._refusal(job)
            limit, queue = self.size, self.waiting
            if parent is not None and parent.state == _RUNNING:
                job.parent = parent
                parent.nested += 1
                if parent.nested == 1:
                    self.lent += 1
                limit, queue = limit + self.lent, self.waiting_nested
            if self.busy >= limit:
                queue[job] = None
                return
            self.busy += 1
            job.state = _RUNNING
            inbox = self.idle.pop() if self.idle else None
        if inbox is None:
            self._launch(job)
        else:
            inbox.put(job)

    def leave(self, job: _ThreadJob) -> None:
        """Remove a queued call, or mark a running one as abandoned."""
        with self.lock:
            if job.state == _QUEUED:
                self.waiting.pop(job, None)
                self.waiting_nested.pop(job, None)
                self._close(job)
                return
            if job.state != _RUNNING:
                return
            self._free_slot(job, _ABANDONED)
            job.since = time.monotonic()
            self.abandoned[job] = None
            successor = self._next()
        self._launch(successor)

    def stats(self) -> ThreadStats:
        with self.lock:
            return ThreadStats(
                size=self.size,
                running=self.busy,
                idle=len(self.idle),
                abandoned=len(self.abandoned),
                queued=len(self.waiting) + len(self.waiting_nested),
            )

    def abandoned_jobs(self) -> tuple[AbandonedJob, ...]:
        now = time.monotonic()
        with self.lock:
            jobs = list(self.abandoned)
            return tuple([AbandonedJob(job.name, now - job.since) for job in jobs])

    def configure(self, *, size: int | None = None, cap: int | None = None) -> None:
        """Change the limits, start calls that now fit, and end superfluous threads."""
        with self.lock:
            self.size = self.size if size is None else size
            self.cap = self.cap if cap is None else cap
            while self.idle and self.busy + len(self.idle) > self.size:
                self.idle.pop(0).put(None)
            successors: list[_ThreadJob] = []
            while (successor := self._next()) is not None:
                successors.append(successor)
        for successor in successors:
            self._launch(successor)

    # --- called by the threads

    def _work(self, inbox: _Inbox) -> None:
        while (job := inbox.get()) is not None:
            self._serve(job, inbox)

    def _serve(self, job: _ThreadJob, inbox: _Inbox) -> None:
        """Run the call, assign the thread its next job, then deliver the result.

        The result comes last because the caller often submits its next call at once.
        """
        context, fn, args, kwargs, future = job.call
        # If the caller has left since the call was handed over, the function is not called.
        outcome = None if job.state == _ABANDONED else context.run(_outcome, job, fn, args, kwargs)
        if self._finish(job, inbox) and outcome is not None:
            future.resolve(outcome)
        # The traceback of the error holds this frame, which must not hold the error.
        del future, outcome

    def _finish(self, job: _ThreadJob, inbox: _Inbox) -> bool:
        """Free the slot, put the next job into the inbox, and return whether the caller waits."""
        with self.lock:
            is_awaited = job.state == _RUNNING
            if is_awaited:
                self._free_slot(job, _DONE)
            else:
                self.abandoned.pop(job, None)
            self._close(job)
            successor = self._next()
            if successor is not None:
                inbox.put(successor)
            elif self.busy + len(self.idle) < self.size:
                self.idle.append(inbox)
            else:
                inbox.put(None)
        return is_awaited

    # --- called by both sides, with the lock held except for `_launch` and `_start_thread`

    def _next(self) -> _ThreadJob | None:
        """Return the call that can start now, if there is one."""
        if len(self.abandoned) >= self.cap:
            self._refuse_all()
        if self.waiting_nested and self.busy < self.size + self.lent:
            job, _ = self.waiting_nested.popitem(last=False)
        elif self.waiting and self.busy < self.size:
            job, _ = self.waiting.popitem(last=False)
        else:
            return None
        self.busy += 1
        job.state = _RUNNING
        return job

    def _free_slot(self, job: _ThreadJob, state: int) -> None:
        job.state = state
        self.busy -= 1
        if job.nested:
            self.lent -= 1
        self._close_nesting(job)

    def _close_nesting(self, job: _ThreadJob) -> None:
        parent, job.parent = job.parent, None
        if parent is None:
            return
        parent.nested -= 1
        if not parent.nested and parent.state == _RUNNING:
            self.lent -= 1

    def _close(self, job: _ThreadJob) -> None:
        """Drop all references, because contexts copied inside the call can keep the job alive."""
        job.state = _DONE
        del job.call
        self._close_nesting(job)

    def _refuse_all(self) -> None:
        for queue in (self.waiting_nested, self.waiting):
            while queue:
                job, _ = queue.popitem(last=False)
                self._refuse(job, self._refusal(job))

    def _refuse(self, job: _ThreadJob, error: ToolOverloadedError) -> None:
        future = job.call[4]
        self._close(job)
        future.resolve((False, error))

    def _refusal(self, job: _ThreadJob) -> ToolOverloadedError:
        oldest = next(iter(self.abandoned))
        seconds = time.monotonic() - oldest.since
        return ToolOverloadedError(
            f"{job.name} was not started: {len(self.abandoned)} abandoned calls, which is the "
            f"limit, still occupy their threads. The oldest is {oldest.name}, abandoned "
            f"{seconds:.0f} s ago. Make such functions end by themselves, for example by checking "
            "ctx.cancelled, or raise the limit with configure_threads(abandoned=…)."
        )

    def _launch(self, job: _ThreadJob | None) -> None:
        """Hand the call to an idle thread or to a new one."""
        while job is not None:
            with self.lock:
                inbox = self.idle.pop() if self.idle else None
            if inbox is not None:
                inbox.put(job)
                return
            job = self._start_thread(job)

    def _start_thread(self, job: _ThreadJob) -> _ThreadJob | None:
        """Start a thread for the job; if that fails, refuse the job and return the next one."""
        inbox: _Inbox = SimpleQueue()
        inbox.put(job)
        name = f"agents-tools-{next(self.numbers)}"
        try:
            threading.Thread(target=self._work, args=(inbox,), name=name, daemon=True).start()
        except RuntimeError as error:
            refusal = ToolOverloadedError(f"{job.name} was not started: {error}.")
        else:
            return None
        with self.lock:
            if job.state == _RUNNING:
                self._free_slot(job, _DONE)
            self.abandoned.pop(job, None)
            self._refuse(job, refusal)
            return self._next()


def _outcome(
    job: _ThreadJob, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Outcome:
    """Call the function in its context, and catch every exception so that the thread continues."""
    _current_job.set(job)
    try:
        return True, fn(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
        return False, error


def _positive(name: str, value: int) -> int:
    if type(value) is not int:
        raise UserTypeError(f"{name}= is invalid: expected an integer, got {type(value).__name__}.")
    if value < 1:
        raise UserValueError(f"{name}= is invalid: expected a positive integer, got {value}.")
    return value


_pool = _ThreadPool(size=64, cap=256)


def _reset_after_fork() -> None:
    """Create an empty pool in a forked process, which has none of the threads."""
    global _pool
    old, _pool = _pool, _ThreadPool(_pool.size, _pool.cap)
    # Another thread can have held the lock. If this is a thread of the pool, size 0 ends it.
    old.lock, old.size = threading.RLock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
