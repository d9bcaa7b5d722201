"""Test channels and streams at their limits: exactly full, empty or at the maximum."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import UserDict
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools.errors import UserTypeError
from agents_tools.events import (
    Event,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    Origin,
    RawResponseStreamEvent,
    ToolProgressEvent,
)
from agents_tools.events.channel import Channel
from agents_tools.events.coalesce import coalesce, drop_display_events
from agents_tools.persistence import MemoryEventStore
from agents_tools.persistence.stream import EventStream, subscription as _subscription
from agents_tools.persistence.stream.log import _fill_gaps
from agents_tools.persistence.stream.size_limit import (
    LARGEST,
    _remaining_size,
    _shorten,
    limit_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHIN = 5.0
"""Seconds that anything here may take at most."""


async def run_pending_tasks(count: int = 20) -> None:
    """Yield to the event loop often enough for all tasks to reach their next wait."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_sender_waits_for_room_once_the_channel_is_full() -> None:
    """An event pushed after that would evict an earlier one."""
    channel = Channel(2, patience=WITHIN)
    channel.push(NotifyStreamEvent("one"))
    await asyncio.wait_for(channel.wait_for_room(), WITHIN)
    channel.push(NotifyStreamEvent("two"))
    assert channel.should_wait()
    waiting = asyncio.ensure_future(channel.wait_for_room())
    await run_pending_tasks()
    assert not waiting.done()
    seen: list[Any] = [await anext(channel)]
    await asyncio.wait_for(waiting, WITHIN)
    channel.close()
    seen += [event async for event in channel]
    assert [event.data for event in seen] == ["one", "two"]
    assert channel.dropped == 0


def test_the_stream_uses_the_given_or_the_stored_session_id() -> None:
    """Covers a stream without a store, with a store, and with a store that already has this id."""
    store = MemoryEventStore(sid="a")
    assert EventStream(sid="x").sid == "x"
    assert EventStream(store).sid == "a"
    assert EventStream(store, sid="a").store is store
    other = EventStream(store, sid="b")
    assert other.sid == "b"
    assert other.store is not None
    assert other.store.sid == "b"


async def test_the_events_of_a_group_are_stored_although_the_block_raises() -> None:
    """They are stored at once, not with the next event."""
    store = MemoryEventStore()

    def publish_and_fail(stream: EventStream) -> None:
        with stream.group():
            stream.publish(NotifyStreamEvent("one"))
            raise ValueError("broken")

    async with EventStream(store, keep="all") as stream:
        with pytest.raises(ValueError, match="broken"):
            publish_and_fail(stream)
        async with asyncio.timeout(5):
            assert await store.wait(-1) == 0


def test_an_async_on_error_is_rejected() -> None:
    """It would never run."""

    async def report(*facts: Any) -> None:
        del facts

    with pytest.raises(UserTypeError, match=r"on_error=.*expected a sync function"):
        EventStream(on_error=report)


async def test_an_exception_in_a_callback_is_stored_and_passed_to_on_error() -> None:
    """The stream continues, and `errors` has the exception."""
    summarize: list[Any] = []
    stream = EventStream(on_error=lambda *facts: summarize.append(facts))

    def fail(event: Event) -> None:
        raise ValueError("no")

    stream.subscribe("shaky", fail)
    published = stream.publish(MessageEvent("hello"))
    await stream.aclose()
    [error] = stream.errors
    assert isinstance(error, ValueError)
    assert summarize[0][:2] == (error, published)
    assert "shaky" in summarize[0][2]


async def test_events_published_after_close_are_dropped_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run does not fail because its stream is closed, and it does not fill the log either."""
    stream = EventStream()
    await stream.aclose()
    origin = Origin("t", "c", ("c",))
    for text in ("one", "two"):
        stream.publish(NotifyStreamEvent(text).stamped(origin, 1))
    assert stream.last_id == -1
    assert caplog.text.count("is closed: events of runs that continue are dropped") == 1


async def test_text_held_back_by_the_secret_filter_is_released_on_close() -> None:
    """The beginning of a secret that never completes is ordinary text."""
    stream = EventStream(secrets={"key": "violet-tulip"})
    origin = Origin("t", "c", ("c",))
    for seq, text in enumerate(("it is ", "vi")):
        stream.publish(NotifyStreamEvent(text, is_delta=True).stamped(origin, seq))
    following = stream.follow()
    stream.close()
    seen = [event async for event in following]
    text = "".join(one.data for one in seen if isinstance(one, NotifyStreamEvent))
    assert text == "it is vi"


@pytest.mark.parametrize("most", [1, 2, 5])
async def test_a_sender_waits_once_a_reader_has_max_pending_unread_events(most: int) -> None:
    stream = EventStream()
    following = stream.follow(max_pending=most)
    stream.publish(MessageEvent("first"))
    await asyncio.wait_for(anext(following), WITHIN)

    async def send() -> None:
        for number in range(10):
            await stream.send(MessageEvent(str(number)))

    sending = asyncio.ensure_future(send())
    await run_pending_tasks(200)
    assert not sending.done()
    assert stream.last_id == most
    seen = [await asyncio.wait_for(anext(following), WITHIN) for _ in range(10)]
    await asyncio.wait_for(sending, WITHIN)
    assert [event.id for event in seen] == list(range(1, 11))
    await stream.aclose()


async def test_a_sender_continues_at_once_when_the_reader_leaves() -> None:
    """The sender must not wait for its own slow polling interval."""
    stream = EventStream()
    following = stream.follow(max_pending=1)
    stream.publish(MessageEvent("first"))
    await asyncio.wait_for(anext(following), WITHIN)
    sending = asyncio.ensure_future(stream.send(MessageEvent("second")))
    await run_pending_tasks(50)
    assert not sending.done()
    await following.aclose()
    await run_pending_tasks(50)
    assert sending.done()
    await stream.aclose()


@pytest.mark.parametrize("names", ["ba", "cab"])
async def test_subscribers_are_called_in_the_order_of_their_names(names: str) -> None:
    """The effect of an event must not depend on which subscriber registered first."""
    stream = EventStream()
    order: list[str] = []
    for name in names:
        stream.subscribe(name, lambda event, name=name: order.append(name))
    await run_pending_tasks()
    stream.publish(MessageEvent("hello"))
    await asyncio.wait_for(stream.aclose(), WITHIN)
    assert order == sorted(names)


@pytest.mark.parametrize("most", [1, 3])
async def test_a_callback_is_detached_after_max_failures_in_a_row(most: int) -> None:
    """A success resets the count."""
    stream = EventStream()
    calls: list[str] = []

    def shaky(event: Event) -> None:
        text = getattr(event, "content", "")
        calls.append(text)
        if text == "bad":
            raise ValueError(text)

    stream.subscribe("shaky", shaky, max_failures=most)
    before = ["bad"] * (most - 1) + ["good"]
    for text in [*before, *["bad"] * most, "unheard"]:
        stream.publish(MessageEvent(text))
    await stream.aclose()
    assert [text for text in calls if text] == [*before, *["bad"] * most]
    assert len(stream.errors) == 2 * most - 1


class CustomMapping(UserDict[str, Any]):
    """A mapping that is not a dict."""


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        (None, 16),
        (12, 16),
        ("abc", 19),
        (b"abcd", 20),
        ([], 16),
        (["abc", 1, None, b"ab"], 16 + 19 + 16 + 16 + 18),
        (("abc",), 16 + 19),
        ({"key": "abc", "other": [1]}, 16 + (16 + 3) + (16 + 5) + 19 + (16 + 16)),
        ({1: 2}, 16 + 16),
        (CustomMapping(key="abc"), 16 + 19 + 19),
        (object(), 16),
    ],
)
def test_the_size_of_a_value_counts_its_texts_and_its_items(value: Any, weight: int) -> None:
    """Items have a fixed cost, so that a million zeros are over the limit, just as a long text."""
    assert _remaining_size(value, 10_000, 0) == 10_000 - weight


def test_measuring_the_size_stops_at_the_limit() -> None:
    """Refusing a payload of any size costs no more than accepting one of the maximum size."""
    counted: list[int] = []

    class Counted(list[int]):
        def __iter__(self) -> Iterator[Any]:
            for number in range(1_000):
                counted.append(number)
                yield [number]

    assert _remaining_size(Counted(), 100, 0) < 0
    assert len(counted) <= 5


def test_an_event_at_the_size_limit_is_unchanged() -> None:
    """One character more, and the event is cut to a short beginning and its length."""
    for event in (NotifyStreamEvent("x" * LARGEST), MessageEvent("hello")):
        assert limit_size(event) is event
    cut: Any = limit_size(NotifyStreamEvent("x" * (LARGEST + 1)))
    assert cut.data.startswith("x" * 65_536 + "… (16,711,681 characters left out: an event has at")
    assert len(cut.data) < 65_700
    fits = LARGEST - len("assistant") - 16 * 20
    whole = MessageEvent("x" * fits, role="assistant")
    assert limit_size(whole) is whole
    assert limit_size(MessageEvent("x" * (LARGEST + 1), role="assistant")) != whole


def with_id(number: int, event: Event) -> Event:
    """Return the event with an id, as a stream assigns it."""
    return event.replace(id=number)


def summarize(events: list[Event]) -> list[Any]:
    """Return for each event its id and its text, its progress or its number of missing events."""
    facts = ("data", "content", "current", "dropped")
    return [
        (event.id, next(getattr(event, fact) for fact in facts if hasattr(event, fact)))
        for event in events
    ]


def test_each_hole_in_the_ids_becomes_one_gap() -> None:
    """Covers holes before, between and after; the gap has the id of the last missing event."""
    events = [with_id(number, MessageEvent(str(number))) for number in (3, 4, 7)]
    assert summarize(_fill_gaps(events, 1, 10)) == [
        (2, 2),
        (3, "3"),
        (4, "4"),
        (6, 2),
        (7, "7"),
        (9, 2),
    ]
    assert summarize(_fill_gaps(events, 3, 8)) == [(3, "3"), (4, "4"), (6, 2), (7, "7")]
    assert summarize(_fill_gaps(events[:2], 3, 5)) == [(3, "3"), (4, "4")]
    assert summarize(_fill_gaps([], 4, 6)) == [(5, 2)]
    assert _fill_gaps([], 4, 4) == []


def test_a_gap_has_the_timestamp_of_its_neighbor() -> None:
    """A reader that sorts by time finds the gap in the right place."""
    near = MessageEvent("x").replace(id=5, timestamp=12.5)
    assert [event.timestamp for event in _fill_gaps([near], 3, 8)] == [12.5, 12.5, 12.5]
    shown = NotifyStreamEvent("x").replace(id=5, timestamp=12.5)
    assert [event.timestamp for event in drop_display_events([shown], 0)[0]] == [12.5]


def test_only_deltas_of_the_same_event_class_are_merged() -> None:
    """Events of an application's own subclass stay separate."""

    class Note(NotifyStreamEvent):
        pass

    one, two = (kind("a", is_delta=True) for kind in (NotifyStreamEvent, Note))
    assert len(coalesce([with_id(0, one), with_id(1, two)])) == 2


def test_dropped_display_events_leave_one_gap() -> None:
    """The count of an earlier gap is added to it."""
    show = [with_id(number, NotifyStreamEvent(str(number))) for number in range(3)]
    keep = [with_id(3, MessageEvent("keep"))]
    gap = [with_id(6, GapEvent(3))]
    last = [with_id(7, NotifyStreamEvent("7"))]
    left, dropped = drop_display_events([*show, *keep, *gap, *last], 0)
    assert summarize(left) == [(2, 3), (3, "keep"), (7, 4)]
    assert dropped == 4
    assert summarize(drop_display_events(keep, 0)[0]) == [(3, "keep")]


def test_only_deltas_and_progress_of_the_same_call_are_merged() -> None:
    """Deltas are merged up to 4,096 characters; only the latest progress of a call remains."""
    one, two = Origin("t", "c1", ("c1",)), Origin("t", "c2", ("c2",))

    def delta(id: int, text: str, origin: Origin = one, **more: Any) -> Event:
        return with_id(id, NotifyStreamEvent(text, is_delta=True, **more).stamped(origin, id))

    def progress(id: int, much: float, origin: Origin | None = one) -> Event:
        event = ToolProgressEvent(much)
        return with_id(id, event if origin is None else event.stamped(origin, id))

    assert summarize(coalesce([delta(0, "a"), delta(1, "b"), delta(2, "c", two)])) == [
        (1, "ab"),
        (2, "c"),
    ]
    assert len(coalesce([delta(0, "a"), delta(1, "b", tag="x")])) == 2
    assert len(coalesce([delta(0, "a"), delta(1, "b", level="error")])) == 2
    whole = with_id(1, NotifyStreamEvent("b").stamped(one, 1))
    assert len(coalesce([delta(0, "a"), whole])) == 2
    assert len(coalesce([whole, delta(2, "a")])) == 2
    assert len(coalesce([delta(0, "a" * 4_000), delta(1, "b" * 96)])) == 1
    assert len(coalesce([delta(0, "a" * 4_000), delta(1, "b" * 97)])) == 2
    steps = [progress(0, 1), progress(1, 1, two), progress(2, 2), progress(3, 3)]
    assert summarize(coalesce(steps)) == [(1, 1), (3, 3)]
    assert len(coalesce([progress(0, 1, None), progress(1, 2, None)])) == 2


@pytest.mark.parametrize(
    ("two", "merged"),
    [
        ({}, True),
        ({"sequence_number": 9}, True),
        ({"call_id": "other"}, False),
        ({"more": 1}, False),
        ({"type": "response.output_text.done"}, False),
        ({"type": None}, False),
        ({"delta": ["b"]}, False),
    ],
)
def test_raw_deltas_are_merged_only_within_one_output_of_the_model(
    two: dict[str, Any], merged: bool
) -> None:
    """A model can stream the deltas of several outputs interleaved."""
    first = {"type": "x.delta", "delta": "a", "call_id": "c", "sequence_number": 8}
    second = {**first, "delta": "b", **two}
    events = [
        with_id(number, RawResponseStreamEvent(data)) for number, data in enumerate((first, second))
    ]
    done: list[Any] = coalesce(events)
    assert [one.data for one in done] == (
        [{**second, "delta": "ab"}] if merged else [first, second]
    )
    assert done[-1].id == 1


def test_a_payload_that_contains_itself_is_measured_and_cut() -> None:
    """It cannot be written as JSON, but publishing it must not raise."""
    ring: list[Any] = ["x" * 70_000]
    ring.append(ring)
    assert _remaining_size(ring, LARGEST, 0) < LARGEST
    cut = _shorten(ring, 0)
    assert cut[0].startswith("x" * 65_536 + "…")


async def test_an_exception_in_an_async_callback_is_passed_to_on_error() -> None:
    """`on_error` receives the exception, the event and a text with the subscriber's name."""
    summarize: list[Any] = []
    stream = EventStream(on_error=lambda *facts: summarize.append(facts))

    async def fail(event: Event) -> None:
        raise ValueError("no")

    stream.subscribe("shaky", fail)
    published = stream.publish(MessageEvent("hello"))
    await asyncio.wait_for(stream.aclose(), WITHIN)
    [(error, event, origin)] = summarize
    assert isinstance(error, ValueError)
    assert event == published
    assert "shaky" in origin
    assert list(stream.errors) == [error]


# -- callbacks in threads ----------------------------------------------------------------------

FOREVER = 1e6
"""Seconds: a wait as long as this never ends within a test."""


def threads_of(name: str) -> list[threading.Thread]:
    """Return the threads that call a callback."""
    return [thread for thread in threading.enumerate() if thread.name == f"events-{name}"]


def test_unsubscribing_waits_for_the_running_callback() -> None:
    """The caller can then release the resources that the callback uses."""
    started, pause = threading.Event(), threading.Event()
    ended: list[Event] = []

    def slow(event: Event) -> None:
        started.set()
        while subscription.active:
            pause.wait(0.001)
        pause.wait(0.02)
        ended.append(event)

    with EventStream() as stream:
        subscription = stream.subscribe("a", slow, "x")
        published = stream.publish(MessageEvent("hello"))
        assert started.wait(WITHIN)
        stream.unsubscribe("a", "x")
        assert ended == [published]


def test_a_callback_that_unsubscribes_itself_does_not_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Covers a callback in its own thread and an awaitable that runs on a loop."""
    monkeypatch.setattr(_subscription, "_CALLBACK_TIMEOUT", FOREVER)
    monkeypatch.setattr(_subscription, "_LOOP_TIMEOUT", FOREVER)
    received: list[Any] = []

    def unsubscribe_now(event: Event) -> None:
        stream.unsubscribe("a", "plain")
        received.append("plain")

    def return_awaitable(event: Event) -> Any:
        async def unsubscribe_in_loop() -> None:
            stream.unsubscribe("a", "awaited")
            received.append("awaited")

        return unsubscribe_in_loop()

    with EventStream() as stream:
        plain = stream.subscribe("a", unsubscribe_now, "plain")
        awaited = stream.subscribe("a", return_awaitable, "awaited")
        stream.publish(MessageEvent("hello"))
        for one in (plain, awaited):
            one.drained.result(WITHIN)
    assert sorted(received) == ["awaited", "plain"]


def test_an_idle_thread_ends_and_a_new_one_handles_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This works any number of times, whenever the next event comes."""
    monkeypatch.setattr(_subscription, "_IDLE_TIMEOUT", 0.001)
    received: queue.SimpleQueue[int] = queue.SimpleQueue()
    with EventStream() as stream:
        stream.subscribe("a", lambda event: received.put(event.id), "x")
        for number in range(60):
            published = stream.publish(MessageEvent("hello"))
            assert received.get(timeout=WITHIN) == published.id
            if number % 2:
                for thread in threads_of("a/x"):
                    thread.join(WITHIN)
                assert not threads_of("a/x")


@pytest.mark.parametrize("way", ["unsubscribe", "close"])
def test_an_idle_thread_ends_with_its_subscription(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for the idle timeout."""
    monkeypatch.setattr(_subscription, "_IDLE_TIMEOUT", FOREVER)
    received: queue.SimpleQueue[int] = queue.SimpleQueue()
    stream = EventStream()
    subscription = stream.subscribe("a", lambda event: received.put(event.id), "x")
    stream.publish(MessageEvent("hello"))
    assert received.get(timeout=WITHIN) == 0
    [thread] = threads_of("a/x")
    if way == "unsubscribe":
        stream.unsubscribe("a", "x")
    else:
        stream.close(timeout=WITHIN)
    subscription.drained.result(WITHIN)
    thread.join(WITHIN)
    assert not thread.is_alive()
    stream.close()


def test_a_subscription_without_any_event_can_be_closed() -> None:
    """Its thread has not been started, so nothing else can resolve `drained`."""
    stream = EventStream()
    subscription = stream.subscribe("a", lambda event: None, "x")
    stream.unsubscribe("a", "x")
    subscription.drained.result(WITHIN)
    assert not subscription.active
    stream.close(timeout=WITHIN)


def test_a_thread_that_cannot_start_is_started_with_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operating system limits the number of threads; the event waits and is not lost."""
    received: queue.SimpleQueue[int] = queue.SimpleQueue()
    refusals = iter([True])

    class Refused(threading.Thread):
        def start(self) -> None:
            if next(refusals, False):
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(_subscription, "Thread", Refused)
    with EventStream() as stream:
        stream.subscribe("a", lambda event: received.put(event.id), "x")
        stream.publish(MessageEvent("one"))
        [error] = stream.errors
        assert "can't start new thread" in str(error)
        stream.publish(MessageEvent("two"))
        assert [received.get(timeout=WITHIN) for _ in range(2)] == [0, 1]


def test_a_callback_that_fails_sometimes_stays_subscribed() -> None:
    """Only failures in a row count; an event is not delivered a second time after a failure."""
    received: queue.SimpleQueue[int] = queue.SimpleQueue()

    def shaky(event: Event) -> None:
        received.put(event.id)
        if event.id % 2:
            raise ValueError(event.id)

    with EventStream() as stream:
        subscription = stream.subscribe("a", shaky, "x", max_failures=2)
        for _ in range(8):
            stream.publish(MessageEvent("hello"))
        assert [received.get(timeout=WITHIN) for _ in range(8)] == list(range(8))
        assert subscription.active
    assert len(stream.errors) == 4


# -- events in memory --------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 16, 63, 100])
def test_the_window_bounds_the_events_in_memory(window: int) -> None:
    """The slack is a quarter of the window or 16 events, so that trimming is rare."""
    stream = EventStream(window=window)
    most = 0
    for number in range(1, 3 * window + 60):
        stream.publish(NotifyStreamEvent("x", is_delta=True))
        kept = sum(not isinstance(event, GapEvent) for event in stream.get_events())
        assert min(number, window) <= kept
        most = max(most, kept)
    assert most == window + max(window // 4, 16) - 1
    stream.close()


@pytest.mark.parametrize("most", [1, 15, 16, 17, 32, 33, 100])
async def test_a_reader_that_senders_wait_for_misses_nothing(most: int) -> None:
    """Its unread events stay in memory even if the window is smaller."""
    stream = EventStream(window=1)
    following = stream.follow(max_pending=most)
    stream.publish(NotifyStreamEvent("x"))
    await asyncio.wait_for(anext(following), WITHIN)
    for _ in range(most):
        stream.publish(NotifyStreamEvent("x"))
    stream.close()
    async with asyncio.timeout(WITHIN):
        seen = [event async for event in following]
    assert [(event.id, isinstance(event, GapEvent)) for event in seen] == [
        (number, False) for number in range(1, most + 1)
    ]


async def test_a_reader_beyond_max_pending_does_not_keep_events_in_memory() -> None:
    """Senders no longer wait for it, so memory must not grow with its backlog."""
    stream = EventStream(window=1)
    following = stream.follow(max_pending=20)
    stream.publish(NotifyStreamEvent("x"))
    await asyncio.wait_for(anext(following), WITHIN)
    for _ in range(500):
        stream.publish(NotifyStreamEvent("x", is_delta=True))
    kept = [event for event in stream.get_events() if not isinstance(event, GapEvent)]
    assert len(kept) < 40
    await following.aclose()
    await stream.aclose()


async def test_unread_events_of_a_blocking_reader_stay_in_memory() -> None:
    """This starts with its very next event, even the first one; events it has read are released."""
    stream = EventStream(window=1)
    following = stream.follow(max_pending=10)
    seen: list[int] = []
    for number in range(400):
        stream.publish(MessageEvent(str(number)))
        if number >= 60:
            seen.append((await asyncio.wait_for(anext(following), WITHIN)).id)
    assert seen == list(range(340))
    kept = [event.id for event in stream.get_events() if not isinstance(event, GapEvent)]
    assert 60 <= len(kept) < 120
    await following.aclose()
    await stream.aclose()


async def test_a_reader_that_drops_events_does_not_keep_them_in_memory() -> None:
    """Only the backlog of readers that senders wait for is kept."""
    stream = EventStream(window=1)
    following = stream.follow(policy="drop_oldest", max_pending=400)
    stream.publish(NotifyStreamEvent("x"))
    await asyncio.wait_for(anext(following), WITHIN)
    for _ in range(300):
        stream.publish(NotifyStreamEvent("x", is_delta=True))
    kept = [event for event in stream.get_events() if not isinstance(event, GapEvent)]
    assert len(kept) < 40
    await following.aclose()
    await stream.aclose()


async def test_the_store_is_read_in_pages() -> None:
    """Reading a long conversation from its start must not load all of it into memory."""
    limits: list[Any] = []

    class Watched(MemoryEventStore):
        def read(self, *args: Any, **options: Any) -> Any:
            limits.append(options.get("limit"))
            return super().read(*args, **options)

    store = Watched()
    stream = EventStream(store, window=1)
    for number in range(2500):
        stream.publish(MessageEvent(str(number)))
    await stream.flush()
    limits.clear()
    following = stream.follow()
    async with asyncio.timeout(4 * WITHIN):
        seen = [(await anext(following)).id for _ in range(2500)]
    assert seen == list(range(2500))
    assert len(limits) >= 2
    assert set(limits) == {1000}
    await following.aclose()
    await stream.aclose()


# -- backpressure ------------------------------------------------------------------------------


async def test_senders_run_at_the_speed_of_a_callback_in_a_thread() -> None:
    received: list[int] = []
    stream = EventStream()
    stream.subscribe("a", lambda event: received.append(event.id), "x", max_pending=2)
    async with asyncio.timeout(4 * WITHIN):
        for _ in range(30):
            await stream.send(MessageEvent("x"))
        await stream.aclose()
    assert received == list(range(30))


@pytest.mark.parametrize("in_a_loop", [True, False])
def test_unsubscribing_blocks_an_event_loop_only_briefly(
    in_a_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsubscribing waits for a callback in a thread, but the loop has other tasks to run."""
    short, long = "_LOOP_TIMEOUT", "_CALLBACK_TIMEOUT"
    monkeypatch.setattr(_subscription, short if in_a_loop else long, 0.01)
    monkeypatch.setattr(_subscription, long if in_a_loop else short, FOREVER)
    started, release = threading.Event(), threading.Event()

    def slow(event: Event) -> None:
        started.set()
        release.wait(WITHIN)

    async def unsubscribe_in_a_loop() -> None:
        stream.unsubscribe("a", "x")

    stream = EventStream()
    subscription = stream.subscribe("a", slow, "x")
    stream.publish(MessageEvent("hello"))
    assert started.wait(WITHIN)
    if in_a_loop:
        asyncio.run(unsubscribe_in_a_loop())
    else:
        stream.unsubscribe("a", "x")
    assert not release.is_set()
    assert not subscription.drained.done()
    release.set()
    subscription.drained.result(WITHIN)
    stream.close(timeout=WITHIN)
