"""The pool of daemon threads in which sync functions run while the event loop goes on."""

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

from agents_tools.errors import ToolOverloadedError, UserTypeError, UserValueError

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable
    from contextvars import Context

__all__ = [
    "AbandonedJob",
    "ThreadRaised",
    "ThreadStats",
    "abandoned_jobs",
    "configure_threads",
    "run_in_thread",
    "thread_stats",
]

P = ParamSpec("P")
R = TypeVar("R")


class ThreadRaised(Exception):  # noqa: N818 - it reports what was raised, which may be no error
    """A function in a thread raised what cannot pass through an event loop as it is.

    `SystemExit` and `KeyboardInterrupt` would end the loop, `CancelledError` would look like a
    cancellation of the caller, and `StopIteration` cannot leave a coroutine.

    Attributes:
        error: What the function raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__} was raised in a worker thread.")
        self.error: BaseException = error


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStats:
    """What the threads are doing at one moment.

    Attributes:
        size: How many functions may run at once, not counting nested ones.
        running: How many functions run and are waited for.
        idle: How many threads wait for work.
        abandoned: How many functions go on though nobody waits for them any more.
        queued: How many calls wait for a thread.
    """

    size: int
    running: int
    idle: int
    abandoned: int
    queued: int


class AbandonedJob(NamedTuple):
    """A function that goes on in its thread though nobody waits for it any more."""

    name: str
    """The qualified name of the function."""
    seconds: float
    """How long ago the last one who waited for it left."""


async def run_in_thread(fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a sync function in a thread of the pool and give back what it returns.

    The function sees the context variables of the caller. A thread cannot be stopped from
    outside: when the caller is cancelled, the caller goes on at once and the function is
    abandoned. It then no longer takes one of the places of the pool, but counts against a limit
    of its own until it returns.

    A call made from within a running function never waits for a place that only its own caller
    could free: it is given an extra thread.

    Raises:
        ToolOverloadedError: Too many abandoned functions still run, or the system has no thread
            left. The function was not started.
        ThreadRaised: The function raised something that cannot pass through an event loop.
    """
    import asyncio

    future: Future[_Outcome] = asyncio.get_running_loop().create_future()
    pool = _pool
    job = _Job((copy_context(), fn, args, kwargs, future))
    pool.submit(job)
    try:
        returned, value = await future
    except BaseException:
        pool.leave(job)
        raise
    if returned:
        result: R = value
        return result
    try:
        if isinstance(value, Exception) and not isinstance(value, _UNFIT):
            raise value
        raise ThreadRaised(value) from value
    finally:
        # The traceback of the error holds this frame, which must not hold the error.
        del future, value


def thread_stats() -> ThreadStats:
    """Tell what the threads of the pool are doing now."""
    return _pool.stats()


def abandoned_jobs() -> tuple[AbandonedJob, ...]:
    """List the functions that go on though nobody waits for them, the oldest first."""
    return _pool.left_behind()


def configure_threads(*, size: int | None = None, abandoned: int | None = None) -> None:
    """Change the limits of the pool, at any time; what is running goes on.

    Args:
        size: How many functions may run at once (64 unless changed).
        abandoned: How many abandoned functions may still run before new calls are refused (256
            unless changed).
    """
    _pool.configure(
        size=None if size is None else _positive("size", size),
        cap=None if abandoned is None else _positive("abandoned", abandoned),
    )


_QUEUED: Final = 0
_RUNNING: Final = 1
_LEFT: Final = 2
_DONE: Final = 3

_UNFIT: Final = (StopIteration, StopAsyncIteration)
"""The kinds of `Exception` that cannot leave a coroutine."""

_Call: TypeAlias = (
    "tuple[Context, Callable[..., Any], tuple[Any, ...], dict[str, Any], Future[_Outcome]]"
)
_Outcome: TypeAlias = "tuple[bool, Any]"
"""True and what the function returned, or False and what it raised."""
_Inbox: TypeAlias = "SimpleQueue[_Job | None]"
"""Where one thread gets its work; None tells it to end."""


class _Job:
    """One call of a function, from the moment it is asked for until the function returned."""

    __slots__ = ("call", "nested", "parent", "since", "state")

    def __init__(self, call: _Call) -> None:
        self.call: _Call = call
        self.state = _QUEUED
        self.parent: _Job | None = None
        """The running function that waits for this one, if any."""
        self.nested = 0
        """How many calls made from within this one have not ended."""
        self.since = 0.0
        """When it was abandoned."""

    @property
    def name(self) -> str:
        fn: Any = getattr(self.call[1], "func", self.call[1])  # functools.partial
        return str(getattr(fn, "__qualname__", None) or type(fn).__qualname__)


_inside: ContextVar[_Job | None] = ContextVar("agents_tools_inside_job", default=None)
"""The call of the pool in whose context the present code runs."""


class _Pool:
    """Threads, the calls that they run and the calls that wait for them.

    Each thread has an inbox of its own, and the one that became idle last is used first. A call
    nested in a running one borrows its place: `lent` counts the running calls that have nested
    ones, and nested calls, which have a queue of their own, may use that many places more.
    So there is always room for one of them when everything that runs waits for one.

    The lock is reentrant because a garbage collection may close a coroutine at any point, and
    closing one that waits for a thread leads to `leave`.
    """

    def __init__(self, size: int, cap: int) -> None:
        self.lock = threading.RLock()
        self.size = size
        self.cap = cap
        self.busy = 0
        self.lent = 0
        self.idle: list[_Inbox] = []
        self.waiting: OrderedDict[_Job, None] = OrderedDict()
        self.waiting_nested: OrderedDict[_Job, None] = OrderedDict()
        self.abandoned: OrderedDict[_Job, None] = OrderedDict()
        self.numbers = count(1)

    # What the side that waits calls.

    def submit(self, job: _Job) -> None:
        """Hand the call to a thread, or let it wait for one."""
        parent = _inside.get()
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

    def leave(self, job: _Job) -> None:
        """Note that nobody waits for the call any more."""
        with self.lock:
            if job.state == _QUEUED:
                self.waiting.pop(job, None)
                self.waiting_nested.pop(job, None)
                self._close(job)
                return
            if job.state != _RUNNING:
                return
            self._free_place(job, _LEFT)
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

    def left_behind(self) -> tuple[AbandonedJob, ...]:
        now = time.monotonic()
        with self.lock:
            jobs = list(self.abandoned)
            return tuple([AbandonedJob(job.name, now - job.since) for job in jobs])

    def configure(self, *, size: int | None = None, cap: int | None = None) -> None:
        """Change the limits; start what now may start, and end the threads that are too many."""
        with self.lock:
            self.size = self.size if size is None else size
            self.cap = self.cap if cap is None else cap
            while self.idle and self.busy + len(self.idle) > self.size:
                self.idle.pop(0).put(None)
            successors: list[_Job] = []
            while (successor := self._next()) is not None:
                successors.append(successor)
        for successor in successors:
            self._launch(successor)

    # What a thread does.

    def _work(self, inbox: _Inbox) -> None:
        while (job := inbox.get()) is not None:
            self._serve(job, inbox)

    def _serve(self, job: _Job, inbox: _Inbox) -> None:
        """Run the call, find the thread's next work, then tell whoever waits.

        In this order, because the one who waits often asks for the next call at once.
        """
        context, fn, args, kwargs, future = job.call
        # Somebody may have left since the call was handed over: then it is not begun.
        outcome = None if job.state == _LEFT else context.run(_outcome, job, fn, args, kwargs)
        if self._finish(job, inbox) and outcome is not None:
            _deliver(future, outcome)
        # The traceback of an error leads back to this frame, which must not lead to the error.
        del future, outcome

    def _finish(self, job: _Job, inbox: _Inbox) -> bool:
        """Give the place back and leave the next work in the inbox; tell if anybody waits."""
        with self.lock:
            wanted = job.state == _RUNNING
            if wanted:
                self._free_place(job, _DONE)
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
        return wanted

    # What both use, with the lock held, except `_launch` and `_start_thread`.

    def _next(self) -> _Job | None:
        """Take the call that may start now, if there is one."""
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

    def _free_place(self, job: _Job, state: int) -> None:
        job.state = state
        self.busy -= 1
        if job.nested:
            self.lent -= 1
        self._close_nesting(job)

    def _close_nesting(self, job: _Job) -> None:
        parent, job.parent = job.parent, None
        if parent is None:
            return
        parent.nested -= 1
        if not parent.nested and parent.state == _RUNNING:
            self.lent -= 1

    def _close(self, job: _Job) -> None:
        """Let go of everything: contexts copied inside the call may keep the job for long."""
        job.state = _DONE
        del job.call
        self._close_nesting(job)

    def _refuse_all(self) -> None:
        for queue in (self.waiting_nested, self.waiting):
            while queue:
                job, _ = queue.popitem(last=False)
                self._refuse(job, self._refusal(job))

    def _refuse(self, job: _Job, error: ToolOverloadedError) -> None:
        future = job.call[4]
        self._close(job)
        _deliver(future, (False, error))

    def _refusal(self, job: _Job) -> ToolOverloadedError:
        oldest = next(iter(self.abandoned))
        seconds = time.monotonic() - oldest.since
        return ToolOverloadedError(
            f"{job.name} was not started: {len(self.abandoned)} calls that nobody waits for any "
            f"more still hold their threads, which is the limit. The oldest is {oldest.name}, "
            f"abandoned {seconds:.0f} s ago. Make such functions end by themselves, for example "
            "by looking at ctx.cancelled, or raise the limit with configure_threads(abandoned=…)."
        )

    def _launch(self, job: _Job | None) -> None:
        """Give the call to an idle thread or to a new one."""
        while job is not None:
            with self.lock:
                inbox = self.idle.pop() if self.idle else None
            if inbox is not None:
                inbox.put(job)
                return
            job = self._start_thread(job)

    def _start_thread(self, job: _Job) -> _Job | None:
        """Start a thread with this work; if there is none to be had, say what may start now."""
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
                self._free_place(job, _DONE)
            self.abandoned.pop(job, None)
            self._refuse(job, refusal)
            return self._next()


def _outcome(
    job: _Job, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Outcome:
    """Call the function in its context; nothing that it raises may end the thread."""
    _inside.set(job)
    try:
        return True, fn(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
        return False, error


def _deliver(future: Future[_Outcome], outcome: _Outcome) -> None:
    try:
        future.get_loop().call_soon_threadsafe(_settle, future, outcome)
    except RuntimeError:
        return  # The loop has closed meanwhile: nobody waits.


def _settle(future: Future[_Outcome], outcome: _Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _positive(name: str, value: int) -> int:
    if type(value) is not int:
        raise UserTypeError(f"{name} must be a whole number, not {type(value).__name__}.")
    if value < 1:
        raise UserValueError(f"{name} must be at least 1, not {value}.")
    return value


_pool = _Pool(size=64, cap=256)


def _start_anew() -> None:
    """Begin with an empty pool in a forked process, which has none of the threads."""
    global _pool
    old, _pool = _pool, _Pool(_pool.size, _pool.cap)
    # Another thread may have held the lock. If this is a thread of the pool, it is to end.
    old.lock, old.size = threading.RLock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
