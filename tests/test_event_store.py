"""MemoryEventStore keeps the store contract, and the futures that stores return."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

import agents_tools.persistence
from agents_tools.concurrency.future import batched_wakeups
from agents_tools.errors import UserTypeError
from agents_tools.events import Event, MessageEvent
from agents_tools.events.base import event_class
from agents_tools.persistence import EventFilter, MemoryEventStore, PendingFuture
from agents_tools.testing import EventStoreContract, StoreLawError

BOUND = 45.0


@pytest.mark.requirement("D9", "D11", "D52", "F23")
class TestMemoryEventStore(EventStoreContract):
    """The contract, in memory."""

    def make_store(self) -> MemoryEventStore:
        return MemoryEventStore()


class _LossyStore(MemoryEventStore):
    """A store that returns ids and stores nothing."""

    def read(self, *_args: Any, **_options: Any) -> PendingFuture[Any]:
        return PendingFuture.now([])


def test_the_contract_names_the_rule_that_a_store_breaks():
    """The author of a store reads the expected and the actual result."""

    class Broken(EventStoreContract):
        def make_store(self) -> MemoryEventStore:
            return _LossyStore()

    with pytest.raises(StoreLawError, match=r"the events: expected \[MessageEvent.* got \[\]"):
        Broken().test_events_come_back_equal_and_in_order()


def test_changing_a_payload_later_does_not_change_the_stored_event():
    """Callers can reuse the payload."""
    store = MemoryEventStore()
    content = ["a"]
    store.append([MessageEvent(content)]).result()
    content.append("b")
    (event,) = store.read().result()
    assert isinstance(event, MessageEvent)
    assert event.content == ["a"]


def test_stores_are_imported_lazily():
    """A store that needs another package costs nothing unless it is used."""
    assert "RedisEventStore" in agents_tools.persistence.__all__
    assert issubclass(agents_tools.persistence.UnknownEvent, Event)
    with pytest.raises(AttributeError, match="has no attribute 'PaperEventStore'"):
        _ = agents_tools.persistence.PaperEventStore


def test_a_filter_refuses_a_bare_string():
    """Its characters would be taken as types."""
    with pytest.raises(UserTypeError, match=r"EventFilter.types is a string"):
        EventFilter(types="message_event")  # type: ignore[arg-type]


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


async def _awaited(pending: PendingFuture[int]) -> int:
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


def test_an_event_of_an_unregistered_class_is_stored_in_memory_too():
    """As in a file, it is read back as a generic event."""

    @event_class
    class UnregisteredEvent(Event):
        type = "unregistered_for_this_test"
        text: str

    store = MemoryEventStore()
    store.append([UnregisteredEvent("hello")]).result()
    (event,) = store.read().result()
    assert isinstance(event, agents_tools.persistence.UnknownEvent)
    assert event.to_dict()["text"] == "hello"
