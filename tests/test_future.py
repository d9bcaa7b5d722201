"""The future with which threads and event loops wait for each other."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from agents_tools.concurrency.future import LoopReference, batched_wakeups, call_on_loop
from agents_tools.persistence import PendingFuture

BOUND = 30.0


def test_a_thread_can_wait_for_a_result():
    """The thread resumes as soon as the result is set."""
    pending: PendingFuture[int] = PendingFuture()
    with pytest.raises(TimeoutError):
        pending.result(0)
    threading.Timer(0.01, pending.resolve, [5]).start()
    assert pending.result(BOUND) == 5
    assert pending.done()
    assert not pending.resolve(6)
    assert not pending.fail(ValueError())
    assert pending.result() == 5


async def test_a_result_can_be_awaited():
    """It can be set in any thread; a failure is raised."""
    loop = asyncio.get_running_loop()
    pending: PendingFuture[int] = PendingFuture()
    loop.run_in_executor(None, pending.resolve, 5)
    assert await pending == 5
    failing: PendingFuture[int] = PendingFuture()
    loop.run_in_executor(None, failing.fail, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await failing
    assert str(failing.error()) == "no"


async def test_cancelling_an_awaiting_task_only_cancels_cancellable_work():
    """A write in progress completes; a wait that can be cancelled ends."""
    given_up: list[str] = []
    work: PendingFuture[int] = PendingFuture()
    waiting: PendingFuture[int] = PendingFuture(on_cancel=lambda: given_up.append("waiting"))
    for pending in (work, waiting):
        task = asyncio.ensure_future(_awaited(pending))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert given_up == ["waiting"]
    assert not work.done()
    assert work.resolve(1)
    with pytest.raises(CancelledError):
        waiting.result()
    assert not waiting.cancel()


async def _awaited(pending: PendingFuture[Any]) -> Any:
    return await pending


def test_done_callbacks_are_called_once():
    """Immediately if the future is already done."""
    called: list[PendingFuture[int]] = []
    pending: PendingFuture[int] = PendingFuture()
    pending.add_done_callback(called.append)
    assert called == []
    pending.resolve(1)
    pending.add_done_callback(called.append)
    assert called == [pending, pending]


def test_a_concurrent_future_can_be_wrapped():
    """For stores that use executors."""
    good, bad, cancelled = Future[int](), Future[int](), Future[int]()
    pending = [PendingFuture(one) for one in (good, bad, cancelled)]
    good.set_result(1)
    bad.set_exception(ValueError("no"))
    cancelled.cancel()
    assert pending[0].result(BOUND) == 1
    with pytest.raises(ValueError, match="no"):
        pending[1].result(BOUND)
    with pytest.raises(CancelledError):
        pending[2].result(BOUND)


def test_a_waiter_on_a_closed_loop_does_not_affect_the_work():
    """The work runs in another thread and completes."""
    pending: PendingFuture[int] = PendingFuture()

    async def leave() -> None:
        task = asyncio.ensure_future(_awaited(pending))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(leave())
    assert pending.resolve(1)


def test_a_callback_that_raises_does_not_prevent_other_callbacks(caplog: pytest.LogCaptureFixture):
    """Later callbacks run, and the thread that sets the result does not get the error."""

    def fail(_: object) -> None:
        raise RuntimeError("on purpose")

    called: list[PendingFuture[int]] = []
    pending: PendingFuture[int] = PendingFuture()
    pending.add_done_callback(fail)
    pending.add_done_callback(called.append)
    assert pending.resolve(1)
    pending.add_done_callback(fail)
    pending.add_done_callback(called.append)
    assert called == [pending, pending]
    assert caplog.text.count("RuntimeError: on purpose") == 2


async def test_tasks_of_one_loop_are_woken_by_one_call():
    """Waking a loop from another thread costs as much as storing the event."""
    loop = asyncio.get_running_loop()
    pendings: list[PendingFuture[int]] = [PendingFuture() for _ in range(100)]
    tasks = [asyncio.create_task(_awaited(pending)) for pending in pendings]
    await asyncio.sleep(0)
    calls: list[Any] = []
    wake = loop.call_soon_threadsafe

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return wake(*args, **options)

    def settle() -> None:
        with batched_wakeups(), batched_wakeups():
            for number, pending in enumerate(pendings):
                pending.resolve(number)

    loop.call_soon_threadsafe = counted  # type: ignore[method-assign]
    thread = threading.Thread(target=settle)
    try:
        thread.start()
        assert await asyncio.gather(*tasks) == list(range(100))
        assert len(calls) == 1
    finally:
        loop.call_soon_threadsafe = wake  # type: ignore[method-assign]
        thread.join()


def test_repeated_waits_leave_no_waiters_behind():
    """A slow result can be polled many times."""
    pending: PendingFuture[int] = PendingFuture()
    for _ in range(10):
        with pytest.raises(TimeoutError):
            pending.result(0)
    assert not pending._callbacks


async def test_a_wait_with_a_timeout_leaves_the_future_unset() -> None:
    """The wait ends; the operation does not."""
    pending: PendingFuture[int] = PendingFuture()
    assert not await pending.wait(0)
    assert not pending.wait_in_thread(0)
    assert pending.can_be_set()
    assert not pending._callbacks
    asyncio.get_running_loop().call_soon(pending.resolve, 1)
    assert await pending.wait(BOUND)
    assert await pending.wait()
    assert pending.wait_in_thread()


async def test_cancelling_the_only_waiting_task_cancels_its_future() -> None:
    """Otherwise a resource would be handed over to a task that has left."""
    turn: PendingFuture[str] = PendingFuture(loop=asyncio.get_running_loop())
    task = asyncio.ensure_future(_awaited(turn))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not turn.can_be_set()
    assert not turn.resolve("a resource")


async def test_a_result_that_arrives_with_the_cancellation_can_be_passed_on() -> None:
    """`cancel` returns whether it was first."""
    turn: PendingFuture[str] = PendingFuture(loop=asyncio.get_running_loop())
    task = asyncio.ensure_future(_awaited(turn))
    await asyncio.sleep(0)
    assert turn.resolve("a resource")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not turn.cancel()
    assert turn.result() == "a resource"


def test_a_future_of_a_closed_loop_refuses_its_result() -> None:
    """So that the next in line gets it."""
    loop = asyncio.new_event_loop()
    turn: PendingFuture[str] = PendingFuture(loop=loop)
    reference = LoopReference(loop)
    assert turn.can_be_set()
    assert reference.call(lambda: None)
    loop.close()
    assert not turn.can_be_set()
    assert not turn.resolve("a resource")
    assert not turn.done()
    assert not reference.call(lambda: None)
    assert not call_on_loop(loop, print)


def test_a_loop_that_continues_in_another_thread_is_woken() -> None:
    """The thread in which the wait began no longer runs the loop."""
    loop = asyncio.new_event_loop()
    pending: PendingFuture[int] = PendingFuture()
    task = loop.create_task(_awaited(pending))
    loop.run_until_complete(asyncio.sleep(0))
    results: list[int] = []
    started = threading.Event()

    async def run() -> None:
        started.set()
        results.append(await task)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert started.wait(BOUND)
    assert pending.resolve(7)
    thread.join(BOUND)
    loop.close()
    assert results == [7]


FORK = """
import os, threading
from agents_tools.concurrency import future

held, end = threading.Event(), threading.Event()

def hold():
    with future._lock:
        held.set()
        end.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    pending = future.PendingFuture()
    threading.Thread(target=pending.resolve, args=(1,)).start()
    os._exit(pending.result() - 1)
end.set()
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_can_use_futures() -> None:
    """Another thread of the parent can hold the lock during the fork."""
    program = [sys.executable, "-W", "ignore", "-c", FORK]
    assert subprocess.run(program, check=False, timeout=BOUND).returncode == 0  # noqa: S603
