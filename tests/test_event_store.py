"""The store in memory keeps what every store promises; so does what stores give back."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

import agents_tools.persistence
from agents_tools.concurrency.future import batched_wakeups
from agents_tools.errors import UserTypeError
from agents_tools.events import TEXT, Event, MessageEvent, field
from agents_tools.persistence import EventFilter, MemoryEventStore, PendingFuture
from agents_tools.testing import EventStoreContract, StoreLawError

BOUND = 45.0


@pytest.mark.requirement("D9", "D11", "D52", "F23")
class TestMemoryEventStore(EventStoreContract):
    """The contract, in memory."""

    def make_store(self) -> MemoryEventStore:
        return MemoryEventStore()


class _Forgetful(MemoryEventStore):
    """A store that gives ids and keeps nothing."""

    def read(self, *_args: Any, **_options: Any) -> PendingFuture[Any]:
        return PendingFuture.now([])


def test_a_store_that_breaks_a_promise_is_told_which():
    """The author of a store reads what was expected and what came."""

    class Broken(EventStoreContract):
        def make_store(self) -> MemoryEventStore:
            return _Forgetful()

    with pytest.raises(StoreLawError, match=r"the events: expected \[MessageEvent.* got \[\]"):
        Broken().test_events_come_back_equal_and_in_order()


def test_what_is_stored_does_not_change_with_what_was_given():
    """A payload may be used again by whoever made it."""
    store = MemoryEventStore()
    content = ["a"]
    store.append([MessageEvent(content)]).result()
    content.append("b")
    (event,) = store.read().result()
    assert isinstance(event, MessageEvent)
    assert event.content == ["a"]


def test_stores_are_imported_when_they_are_asked_for():
    """A store that needs another package costs nothing where it is not used."""
    assert "RedisEventStore" in agents_tools.persistence.__all__
    assert issubclass(agents_tools.persistence.UnknownEvent, Event)
    with pytest.raises(AttributeError, match="has no attribute 'PaperEventStore'"):
        _ = agents_tools.persistence.PaperEventStore


def test_a_filter_refuses_a_bare_text():
    """It would be taken letter by letter."""
    with pytest.raises(UserTypeError, match=r"EventFilter.types is a string"):
        EventFilter(types="message_event")  # type: ignore[arg-type]


def test_a_result_is_waited_for_in_a_thread():
    """The thread goes on as soon as the result is there."""
    pending: PendingFuture[int] = PendingFuture()
    with pytest.raises(TimeoutError):
        pending.result(0)
    threading.Timer(0.01, pending.resolve, [5]).start()
    assert pending.result(BOUND) == 5
    assert pending.done()
    assert not pending.resolve(6)
    assert not pending.fail(ValueError())
    assert pending.result() == 5


async def test_a_result_is_awaited():
    """From whatever thread it comes; a failure is raised."""
    loop = asyncio.get_running_loop()
    pending: PendingFuture[int] = PendingFuture()
    loop.run_in_executor(None, pending.resolve, 5)
    assert await pending == 5
    failing: PendingFuture[int] = PendingFuture()
    loop.run_in_executor(None, failing.fail, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await failing
    assert str(failing.error()) == "no"


async def test_a_cancelled_task_leaves_the_work_alone_unless_it_can_be_given_up():
    """What is being stored is stored; what is only waited for is not waited for any more."""
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


def test_those_who_want_to_be_told_are_told_once():
    """At once where it is done already."""
    told: list[PendingFuture[int]] = []
    pending: PendingFuture[int] = PendingFuture()
    pending.add_done_callback(told.append)
    assert told == []
    pending.resolve(1)
    pending.add_done_callback(told.append)
    assert told == [pending, pending]


def test_a_future_is_wrapped():
    """For stores that work with executors."""
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


def test_whoever_waits_for_a_loop_that_is_gone_hurts_nobody():
    """The work is done in another thread, and goes on."""
    pending: PendingFuture[int] = PendingFuture()

    async def leave() -> None:
        task = asyncio.ensure_future(_awaited(pending))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(leave())
    assert pending.resolve(1)


def test_a_callback_that_raises_keeps_nobody_from_being_told(caplog: pytest.LogCaptureFixture):
    """Those who are told later are told; whoever settles it does not get the error of another."""

    def fail(_: object) -> None:
        raise RuntimeError("on purpose")

    told: list[PendingFuture[int]] = []
    pending: PendingFuture[int] = PendingFuture()
    pending.add_done_callback(fail)
    pending.add_done_callback(told.append)
    assert pending.resolve(1)
    pending.add_done_callback(fail)
    pending.add_done_callback(told.append)
    assert told == [pending, pending]
    assert caplog.text.count("RuntimeError: on purpose") == 2


async def test_tasks_that_are_told_together_are_woken_by_one_call():
    """Each call that wakes a loop from another thread costs as much as the whole of an event."""
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


def test_waiting_again_and_again_leaves_nothing_behind():
    """A result that takes long may be looked for many times."""
    pending: PendingFuture[int] = PendingFuture()
    for _ in range(10):
        with pytest.raises(TimeoutError):
            pending.result(0)
    assert not pending._callbacks


def test_an_event_of_a_class_that_is_not_registered_is_kept_in_memory_too():
    """As in a file: it comes back as what is known of it."""

    class UnregisteredEvent(Event):
        type = "unregistered_for_this_test"
        text: str = field(TEXT)

    store = MemoryEventStore()
    store.append([UnregisteredEvent("hello")]).result()
    (event,) = store.read().result()
    assert isinstance(event, agents_tools.persistence.UnknownEvent)
    assert event.to_dict()["text"] == "hello"
