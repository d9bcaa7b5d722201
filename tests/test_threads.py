"""Test the thread pool: parallel calls, abandoned functions, no delay of the loop or exit."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import functools
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools.concurrency import configure_threads, threads as _threads
from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.threads import (
    ThreadException,
    abandoned_jobs,
    run_in_thread,
    thread_stats,
)
from agents_tools.errors import ToolOverloadedError, UserTypeError, UserValueError
from agents_tools.mcp import call_async_from_sync
from tests.waiting import BOUND, comes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
PATIENCE = BOUND


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[_threads._ThreadPool]:
    """Provide a pool of its own for each test, and check that the pool is empty at the end."""
    fresh = _threads._ThreadPool(size=64, cap=256)
    monkeypatch.setattr(_threads, "_pool", fresh)
    yield fresh
    fresh.configure(size=0)  # idle threads end now, the others after their function
    stats = fresh.stats()
    assert (stats.running, stats.idle, stats.queued) == (0, 0, 0)
    assert fresh.lent == 0


class Gate:
    """A synchronous function that signals its start and returns when it is released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.threads: list[threading.Thread] = []

    def __call__(self, value: Any = None) -> Any:
        """Return the value once the gate is released."""
        self.threads.append(threading.current_thread())
        self.entered.set()
        assert self.opened.wait(PATIENCE)
        return value

    async def begun(self) -> None:
        """Wait until the function runs, without blocking the loop."""
        await asyncio.to_thread(self.entered.wait, PATIENCE)
        assert self.entered.is_set()


async def assert_cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel the task and check that it ends as cancelled."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def abandon(gate: Gate) -> None:
    """Start the gate in a thread and abandon it there."""
    task = asyncio.create_task(run_in_thread(gate))
    await gate.begun()
    await assert_cancelled(task)


def run_script(source: str, *, within: float = BOUND) -> subprocess.CompletedProcess[str]:
    """Run a program in a subprocess, with every warning as an error."""
    return subprocess.run(  # noqa: S603 - its own interpreter, with a text from this file
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
        cwd=ROOT,
    )


async def test_arguments_are_passed_and_the_result_is_returned() -> None:
    """Positional and keyword arguments, even one named `fn`, belong to the function."""

    def join(a: str, /, *rest: str, fn: str) -> str:
        return "-".join([a, *rest, fn])

    assert await run_in_thread(join, "a", "b", fn="c") == "a-b-c"


async def test_the_function_runs_in_a_daemon_thread_of_the_pool() -> None:
    """A thread that is not a daemon would delay the exit of the process."""
    thread = await run_in_thread(threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert thread.name.startswith("agents-tools-")


async def test_sequential_calls_share_one_thread() -> None:
    """A thread is idle again before its caller receives the result."""
    idents = {await run_in_thread(threading.get_ident) for _ in range(50)}
    assert len(idents) == 1


async def test_64_blocking_calls_run_in_parallel() -> None:
    """A barrier for 64 opens only when 64 functions have reached it."""
    barrier = threading.Barrier(64, timeout=PATIENCE)
    async with asyncio.timeout(PATIENCE):
        places = await asyncio.gather(*[run_in_thread(barrier.wait) for _ in range(64)])
    assert sorted(places) == list(range(64))


async def test_calls_beyond_the_pool_size_wait() -> None:
    """Never more than `size` run at once, all 1,000 end, and a pool of one runs them in order."""
    configure_threads(size=8)
    lock, running, most = threading.Lock(), 0, 0

    def work(n: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return n

    results = await asyncio.gather(*[run_in_thread(work, n) for n in range(1000)])
    assert results == list(range(1000))
    assert most <= 8
    assert thread_stats().idle <= 8


async def test_waiting_calls_start_in_the_order_they_were_made() -> None:
    """Any other order could starve a call."""
    configure_threads(size=1)
    order: list[int] = []
    await asyncio.gather(*[run_in_thread(order.append, n) for n in range(100)])
    assert order == list(range(100))


async def test_the_loop_runs_while_functions_block() -> None:
    gate = Gate()
    task = asyncio.create_task(run_in_thread(gate, "done"))
    await gate.begun()
    assert not task.done()
    gate.opened.set()
    async with asyncio.timeout(PATIENCE):
        assert await task == "done"


async def test_context_variables_are_copied_into_the_function() -> None:
    """The function sees the variables of the caller; its own changes stay local."""
    var = ContextVar[str]("var")
    var.set("caller")

    def look_and_set() -> str:
        seen = var.get()
        var.set("function")
        return seen

    assert await run_in_thread(look_and_set) == "caller"
    assert await run_in_thread(look_and_set) == "caller"
    assert var.get() == "caller"


@pytest.mark.requirement("F4")
async def test_a_cancelled_caller_continues_at_once_and_the_function_is_counted() -> None:
    """A function past its deadline cannot be stopped, but it is abandoned and listed."""
    gate = Gate()
    task = asyncio.create_task(run_in_thread(gate))
    await gate.begun()
    await assert_cancelled(task)

    assert not gate.opened.is_set()
    stats = thread_stats()
    assert (stats.running, stats.abandoned) == (0, 1)
    (job,) = abandoned_jobs()
    assert job.name == "Gate"
    assert job.seconds >= 0
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)
    assert abandoned_jobs() == ()


@pytest.mark.requirement("F4")
async def test_a_timeout_ends_at_its_deadline() -> None:
    """The caller does not wait until the function returns."""
    gate = Gate()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await run_in_thread(gate)
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)


async def test_an_abandoned_function_frees_its_slot_for_the_next_call() -> None:
    """Functions that hang must not exhaust the pool."""
    configure_threads(size=1)
    gate = Gate()
    task = asyncio.create_task(run_in_thread(gate))
    await gate.begun()
    waiting = asyncio.create_task(run_in_thread(threading.get_ident))
    await asyncio.sleep(0)
    assert thread_stats().queued == 1
    await assert_cancelled(task)
    async with asyncio.timeout(PATIENCE):
        assert await waiting != gate.threads[0].ident
    gate.opened.set()
    gate.threads[0].join(PATIENCE)
    assert not gate.threads[0].is_alive()  # its slot had been taken
    assert thread_stats().idle == 1


async def test_an_abandoned_thread_rejoins_a_pool_with_a_free_slot() -> None:
    """The next call can reuse the thread."""
    configure_threads(size=1)
    gate = Gate()
    await abandon(gate)
    gate.opened.set()
    await comes(lambda: thread_stats().idle == 1)
    assert thread_stats().abandoned == 0
    assert await run_in_thread(threading.get_ident) == gate.threads[0].ident


async def test_over_the_limit_of_abandoned_functions_no_call_is_started() -> None:
    """Otherwise a tool that always hangs would fill the process with threads."""
    configure_threads(abandoned=2)
    gates = [Gate(), Gate()]
    for gate in gates:
        await abandon(gate)
    started: list[int] = []
    with pytest.raises(
        ToolOverloadedError, match=r"append was not started: 2 abandoned calls.* Gate"
    ):
        await run_in_thread(started.append, 1)
    assert started == []

    gates[0].opened.set()
    await comes(lambda: thread_stats().abandoned == 1)
    await run_in_thread(started.append, 2)
    assert started == [2]
    gates[1].opened.set()
    await comes(lambda: thread_stats().abandoned == 0)


async def test_waiting_calls_are_refused_when_the_limit_is_reached() -> None:
    """Otherwise they would wait for threads that never return, or start even more threads."""
    configure_threads(size=1, abandoned=1)
    gate = Gate()
    running = asyncio.create_task(run_in_thread(gate))
    await gate.begun()
    started: list[int] = []
    waiting = asyncio.create_task(run_in_thread(started.append, 1))
    await asyncio.sleep(0)
    await assert_cancelled(running)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ToolOverloadedError):
            await waiting
    assert started == []
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)


async def test_a_call_cancelled_while_it_waits_is_never_started() -> None:
    """A call without a caller must have no effect."""
    configure_threads(size=1)
    gate = Gate()
    running = asyncio.create_task(run_in_thread(gate))
    await gate.begun()
    started: list[int] = []
    waiting = asyncio.create_task(run_in_thread(started.append, 1))
    await asyncio.sleep(0)
    await assert_cancelled(waiting)
    stats = thread_stats()
    assert (stats.queued, stats.abandoned) == (0, 0)
    gate.opened.set()
    await running
    await run_in_thread(started.append, 2)
    assert started == [2]


async def test_a_call_cancelled_before_its_thread_wakes_up_is_never_started(
    pool: _threads._ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller can leave between the handover of a call and the wake-up of the thread."""
    started: list[int] = []
    handed: list[Any] = []
    monkeypatch.setattr(pool, "_launch", handed.append)
    task = asyncio.create_task(run_in_thread(started.append, 1))
    await asyncio.sleep(0)
    assert len(handed) == 1
    await assert_cancelled(task)
    assert thread_stats().abandoned == 1
    monkeypatch.undo()
    pool._launch(handed[0])
    await comes(lambda: pool.stats().abandoned == 0)
    assert started == []
    pool.configure(size=0)


async def test_a_result_that_arrives_on_cancellation_leaves_no_abandoned_function() -> None:
    """The function has returned, so there is nothing to count."""
    finished = threading.Event()
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
    task = asyncio.create_task(run_in_thread(finished.set))
    await asyncio.sleep(0)
    assert finished.wait(PATIENCE)
    until_done = time.monotonic() + PATIENCE
    while thread_stats().running and time.monotonic() < until_done:
        pass  # the loop must not receive the result yet
    await assert_cancelled(task)
    assert thread_stats().abandoned == 0
    await run_in_thread(abs, -1)  # same thread, so the late result has arrived
    assert complaints == []


async def test_nested_calls_finish_in_a_full_pool() -> None:
    """Each of the 64 waits for a nested call; without extra threads they would deadlock."""
    barrier = threading.Barrier(64, timeout=PATIENCE)

    def outer(n: int) -> int:
        barrier.wait()
        return asyncio.run(run_in_thread(inner, n))

    def inner(n: int) -> int:
        return asyncio.run(run_in_thread(abs, -n))

    async with asyncio.timeout(PATIENCE * 2):
        results = await asyncio.gather(*[run_in_thread(outer, n) for n in range(64)])
    assert results == list(range(64))
    assert thread_stats().idle <= 64


@pytest.mark.parametrize("through", [call_async_from_sync, run_sync])
async def test_calls_nested_through_the_bridge_finish_in_a_pool_of_one(
    through: Callable[..., Any],
) -> None:
    """The nested call is made on the bridge thread; only the context identifies its origin."""
    configure_threads(size=1)

    def nested(depth: int) -> int:
        return 0 if depth == 0 else 1 + through(run_in_thread, nested, depth - 1)

    async with asyncio.timeout(PATIENCE):
        assert await run_in_thread(nested, 5) == 5


async def test_many_nested_calls_of_one_function_share_one_extra_slot() -> None:
    """Nesting must not bypass the size of the pool."""
    configure_threads(size=1)
    gate = Gate()

    async def fan_out() -> None:
        await asyncio.gather(*[run_in_thread(gate) for _ in range(100)])

    def outer() -> None:
        asyncio.run(fan_out())

    task = asyncio.create_task(run_in_thread(outer))
    await gate.begun()
    await comes(lambda: thread_stats().queued == 99)
    assert thread_stats().running == 2
    gate.opened.set()
    async with asyncio.timeout(PATIENCE):
        await task


async def test_a_nested_call_of_an_abandoned_function_waits() -> None:
    """Its caller no longer has a slot to lend."""
    configure_threads(size=1)
    gate = Gate()
    results: list[int] = []

    def outer() -> None:
        gate()
        results.append(run_sync(run_in_thread, abs, -7))

    task = asyncio.create_task(run_in_thread(outer))
    await gate.begun()
    await assert_cancelled(task)
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)
    assert results == [7]


async def test_an_abandoned_function_returns_the_slot_it_lent() -> None:
    """Abandoning a function during a nested call must not enlarge the pool."""
    configure_threads(size=1)
    gate = Gate()
    task = asyncio.create_task(run_in_thread(run_sync, run_in_thread, gate))
    await gate.begun()
    stats = thread_stats()
    assert (stats.running, stats.size) == (2, 1)
    await assert_cancelled(task)
    waiting = asyncio.create_task(run_in_thread(abs, -1))
    await asyncio.sleep(0)
    stats = thread_stats()
    assert (stats.running, stats.queued, stats.abandoned) == (1, 1, 1)
    gate.opened.set()
    async with asyncio.timeout(PATIENCE):
        assert await waiting == 1
    await comes(lambda: thread_stats().abandoned == 0)


@pytest.mark.requirement("F44")
def test_two_event_loops_in_two_threads_share_the_pool() -> None:
    """Each loop gets its own results; a barrier across both shows that both are served."""
    barrier = threading.Barrier(16, timeout=PATIENCE)
    results: dict[int, list[str]] = {}

    def work(tag: str) -> str:
        barrier.wait()
        return tag

    async def main(loop: int) -> None:
        for turn in range(20):
            calls = [run_in_thread(work, f"{loop}/{turn}/{n}") for n in range(8)]
            results.setdefault(loop, []).extend(await asyncio.gather(*calls))

    threads = [threading.Thread(target=asyncio.run, args=(main(loop),)) for loop in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE * 2)
    expected = {
        loop: [f"{loop}/{turn}/{n}" for turn in range(20) for n in range(8)] for loop in range(2)
    }
    assert results == expected


class Unprintable(Exception):  # noqa: N818 - the name is exact
    """An exception whose `str` fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.requirement("F9", "F10")
@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        Unprintable(),
        MemoryError(),
        RecursionError(),
        ExceptionGroup("group", [ValueError("x")]),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_exception_is_raised_where_the_call_is_awaited(error: Exception) -> None:
    """The same exception object arrives, and the thread can run the next call."""
    with pytest.raises(type(error)) as caught:
        await run_in_thread(_raise, error)
    assert caught.value is error
    assert await run_in_thread(abs, -1) == 1
    assert thread_stats().idle == 1


@pytest.mark.requirement("F9")
@pytest.mark.parametrize(
    "error",
    [
        StopIteration("x"),
        StopAsyncIteration(),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        BaseException("x"),
        BaseExceptionGroup("group", [SystemExit(1)]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_exceptions_that_would_break_a_loop_are_wrapped(error: BaseException) -> None:
    """Raised unchanged, they end the loop, hang it or look like a cancellation."""
    with pytest.raises(ThreadException) as caught:
        await run_in_thread(_raise, error)
    assert caught.value.error is error
    assert caught.value.__cause__ is error
    assert type(error).__name__ in str(caught.value)
    assert await run_in_thread(abs, -1) == 1
    assert thread_stats().idle == 1


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
async def test_a_failed_call_leaves_no_reference_cycle(kind: type[BaseException]) -> None:
    """Arguments and errors must be freed at once and not by a later collection."""

    class Payload:
        pass

    def fail(_: Payload) -> None:
        raise kind

    async def call() -> weakref.ref[Payload]:
        payload = Payload()
        try:
            await run_in_thread(fail, payload)
        except (ValueError, ThreadException):
            return weakref.ref(payload)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        ref = await call()
        await comes(lambda: ref() is None)
    finally:
        gc.enable()


async def test_an_idle_thread_references_neither_argument_nor_result() -> None:
    """A large result would otherwise live until the next call of the thread."""

    class Payload:
        pass

    payload = Payload()
    ref = weakref.ref(payload)

    def same(value: Payload) -> Payload:
        return value

    assert await run_in_thread(same, payload) is payload
    del payload
    await comes(lambda: ref() is None)


def test_a_result_for_a_closed_loop_is_dropped_silently() -> None:
    """A program that ends properly must not print a traceback from a thread."""
    done = run_script(
        """
import asyncio, threading
from agents_tools.concurrency.threads import run_in_thread, thread_stats, _pool
opened, entered = threading.Event(), threading.Event()
def work():
    entered.set()
    opened.wait(5)
    return asyncio
async def leave_by_cancel():
    task = asyncio.create_task(run_in_thread(work))
    while not entered.is_set():
        await asyncio.sleep(0)
asyncio.run(leave_by_cancel())
assert thread_stats().abandoned == 1

entered.clear()
loop = asyncio.new_event_loop()
waiting = run_in_thread(work)
async def step():
    waiting.send(None)
loop.run_until_complete(step())
assert entered.wait(5)
loop.close()
assert thread_stats().running == 1
opened.set()
while thread_stats().running or thread_stats().abandoned:
    pass
waiting.close()
print(thread_stats().idle)
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


@pytest.mark.requirement("F8")
def test_a_process_exits_while_a_tool_hangs() -> None:
    """A function that hangs must not block the exit."""
    source = """
import asyncio, threading, time
from agents_tools.concurrency.threads import run_in_thread
entered = threading.Event()
def hang():
    entered.set()
    threading.Event().wait()
async def main():
    task = asyncio.create_task(run_in_thread(hang))
    while not entered.is_set():
        await asyncio.sleep(0)
asyncio.run(main())
print("ended")
"""
    done = run_script(source)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


@pytest.mark.requirement("F44")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_has_a_working_pool() -> None:
    """The child inherits the records of the parent but none of its threads."""
    done = run_script(
        """
import asyncio, os, sys, threading, warnings
from agents_tools.concurrency import threads as _threads
from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.threads import configure_threads, run_in_thread, thread_stats
configure_threads(size=2)

def use():
    assert asyncio.run(run_in_thread(abs, -3)) == 3
    assert run_sync(run_in_thread, abs, -4) == 4
    stats = thread_stats()
    assert (stats.size, stats.running, stats.queued, stats.abandoned) == (2, 0, 0, 0), stats

def child(before=lambda: None):
    warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            before()
            use()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

use()
print("idle threads", child())

async def busy():
    opened = threading.Event()
    calls = [asyncio.create_task(run_in_thread(opened.wait, 5)) for _ in range(3)]
    await asyncio.sleep(0)
    assert thread_stats().queued == 1
    # A loop runs in this thread, so the child uses another one.
    def before():
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        asyncio.events._set_running_loop(None)
    print("busy threads", child(before))
    print("in another thread", await asyncio.to_thread(child))
    opened.set()
    assert await asyncio.gather(*calls) == [True] * 3
    print("from a tool", await run_in_thread(child))
asyncio.run(busy())

locked, leave = threading.Event(), threading.Event()
def hold():
    with _threads._pool.lock:
        locked.set()
        leave.wait(5)
thread = threading.Thread(target=hold)
thread.start()
locked.wait(5)
print("lock held", child())
leave.set()
thread.join()
use()

def fork_and_return():
    # The thread of the pool is all that the child has: as it ends, so must the child.
    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(5)
    pid = os.fork()
    if pid:
        leave.set()
        holder.join()
    return pid
locked.clear()
leave.clear()
sys.stdout.flush()
pid = asyncio.run(run_in_thread(fork_and_return))
print("returned", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    )
    assert done.stderr == ""
    assert done.stdout == (
        "idle threads 0\nbusy threads 0\nin another thread 0\nfrom a tool 0\nlock held 0\n"
        "returned 0\n"
    )
    assert done.returncode == 0


async def test_a_system_without_free_threads_reports_overload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing was run, so the call can be retried; waiting calls must not hang."""
    configure_threads(size=1)
    refused: list[str] = []

    def refuse(self: threading.Thread) -> None:
        refused.append(self.name)
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ToolOverloadedError, match=r"abs was not started: can't start new"):
            await run_in_thread(abs, -1)
    assert len(refused) == 1
    assert await run_in_thread(abs, -1) == 1


async def test_calls_waiting_for_a_thread_that_cannot_start_are_answered(
    pool: _threads._ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a running thread, nothing would process the queue again."""
    configure_threads(size=1)
    gate = Gate()
    running = asyncio.create_task(run_in_thread(gate))
    await gate.begun()
    waiting = [asyncio.create_task(run_in_thread(abs, -n)) for n in range(3)]
    await asyncio.sleep(0)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        await assert_cancelled(running)
        async with asyncio.timeout(PATIENCE):
            answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ToolOverloadedError] * 3
    assert (pool.busy, thread_stats().queued) == (0, 0)
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)


async def test_resizing_the_pool_starts_waiting_calls_or_ends_threads() -> None:
    """The limits can change while the program runs."""
    configure_threads(size=1)
    gate = Gate()
    calls = [asyncio.create_task(run_in_thread(gate)) for _ in range(4)]
    await asyncio.sleep(0)
    stats = thread_stats()
    assert (stats.running, stats.queued) == (1, 3)
    configure_threads(size=4)
    stats = thread_stats()
    assert (stats.running, stats.queued) == (4, 0)
    gate.opened.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*calls)
    assert thread_stats().idle == 4
    configure_threads(size=2)
    assert thread_stats().idle == 2
    await comes(lambda: sum(thread.is_alive() for thread in gate.threads) == 2)


@pytest.mark.parametrize("name", ["size", "abandoned"])
def test_an_invalid_limit_is_refused(name: str) -> None:
    """A pool without threads would block the first call forever."""
    with pytest.raises(UserValueError, match=f"{name}= is invalid: expected a positive integer"):
        configure_threads(**{name: 0})
    for value in (True, 2.0, "8"):
        with pytest.raises(UserTypeError, match=f"{name}= is invalid: expected an integer"):
            configure_threads(**{name: value})  # pyright: ignore[reportArgumentType]
    assert (thread_stats().size, _threads._pool.cap) == (64, 256)


async def test_an_abandoned_partial_is_listed_by_its_function() -> None:
    """The reader searches for this name in the code."""
    gate = Gate()

    def read_page(url: str) -> None:
        gate()

    task = asyncio.create_task(run_in_thread(functools.partial(read_page, "u")))
    await gate.begun()
    await assert_cancelled(task)
    assert abandoned_jobs()[0].name.endswith("read_page")
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)


async def test_a_caller_closed_by_the_collector_inside_the_pool_does_not_deadlock(
    pool: _threads._ThreadPool,
) -> None:
    """A collection can run anywhere, even while the same thread has the lock of the pool."""
    gate = Gate()
    waiting = run_in_thread(gate)
    waiting.send(None)
    await gate.begun()
    with pool.lock:
        waiting.close()
    assert thread_stats().abandoned == 1
    gate.opened.set()
    await comes(lambda: thread_stats().abandoned == 0)


async def test_random_cancellations_leave_consistent_counters() -> None:
    """However cancellations and results interleave, the pool is intact afterwards."""
    configure_threads(size=4)
    done: list[int] = []

    def work(n: int) -> None:
        if n % 3 == 0:
            run_sync(run_in_thread, done.append, n)
        else:
            done.append(n)

    for turn in range(30):
        tasks = [asyncio.create_task(run_in_thread(work, n)) for n in range(20)]
        for _ in range(turn % 7):
            await asyncio.sleep(0)
        for task in tasks[turn % 3 :: 2]:
            task.cancel()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*tasks, return_exceptions=True)
    await comes(lambda: thread_stats().abandoned == 0 and thread_stats().running == 0)
    stats = thread_stats()
    assert stats.queued == 0
    assert 1 <= stats.idle <= 4
    assert await run_in_thread(abs, -1) == 1


def test_importing_the_pool_does_not_import_asyncio() -> None:
    """Importing the package must stay fast."""
    done = run_script(
        "import sys, agents_tools.concurrency.threads, agents_tools.concurrency.bridge; print('asyncio' in sys.modules)"
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
