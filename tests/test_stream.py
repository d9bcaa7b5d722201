"""Test what an event stream guarantees to publishers and readers."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agents_tools import Agent, RunConfig, Runner, function_tool
from agents_tools.classes.event_types import CmdOutputObservation, CmdRunAction
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.events import (
    ActionEvent,
    Event,
    EventSource,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    ObservationEvent,
    Origin,
    RawResponseStreamEvent,
    RunStartedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
)
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence import EventFilter, MemoryEventStore, MemoryRunStore
from agents_tools.persistence.stream import EventStream, EventStreamSubscriber
from agents_tools.testing import ScriptedModel, tool_call
from tests.waiting import comes, until

BOUND = 10.0
CALL = Origin("crawl", "call_1", ("call_1",), EventSource.ENVIRONMENT)


def message(text: str = "hello") -> MessageEvent:
    return MessageEvent(text, role="assistant")


def notification(text: str, **fields: Any) -> NotifyStreamEvent:
    return NotifyStreamEvent(text, **fields).stamped(CALL, 1)


def ids(events: Any) -> list[int]:
    return [event.id for event in events]


def texts(events: Any) -> list[Any]:
    return [getattr(event, "content", None) or getattr(event, "data", None) for event in events]


async def read_all(stream: EventStream, **options: Any) -> list[Event]:
    async with asyncio.timeout(BOUND):
        return [event async for event in stream.follow(**options)]


async def read_some(count: int, follower: Any) -> list[Event]:
    async with asyncio.timeout(BOUND):
        return [await anext(follower) for _ in range(count)]


class RecordingCallback:
    """A callback that collects its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def ids(self) -> list[int]:
        return ids(self.events)


# --- publishing -----------------------------------------------------------------------------------


@pytest.mark.requirement("D9", "D10", "D22")
def test_publish_returns_a_copy_with_an_id_and_a_timestamp():
    """The event of the publisher is not changed."""
    stream = EventStream()
    event = message()
    before = time.time()
    first, second = stream.publish(event), stream.publish(event)
    assert (event.id, event.timestamp) == (INVALID_ID, 0.0)
    assert (first.id, second.id) == (0, 1)
    assert before <= first.timestamp <= second.timestamp
    assert first.to_dict()["timestamp"].endswith("+00:00")
    assert stream.last_id == 1


@pytest.mark.requirement("D10")
def test_the_timestamp_of_an_event_is_preserved():
    """It is the time at which the event was created, not published."""
    assert EventStream().publish(message().replace(timestamp=5.0)).timestamp == 5.0


def test_following_from_an_id_that_is_a_text_is_refused():
    """The id of a request is a string until the application converts it."""
    expected = "after= expects the id of an event, a whole number from -1 on, got '5'"
    wrong: Any = "5"
    with pytest.raises(UserTypeError, match=expected):
        EventStream().follow(wrong)
    with pytest.raises(UserTypeError, match=expected):
        EventStream().subscribe("web", print, after=wrong)


@pytest.mark.requirement("D51")
def test_publishing_an_event_that_has_an_id_is_refused():
    """A subscriber that publishes its events again would cause an endless loop."""
    stream = EventStream()
    published = stream.publish(message())
    with pytest.raises(ValueError, match="already has an id"):
        stream.publish(published)
    with pytest.raises(UserValueError, match="already has an id"):
        stream.add_event(published, EventSource.USER)
    assert stream.last_id == 0


@pytest.mark.requirement("D51")
async def test_sending_an_event_that_has_an_id_is_refused():
    """`send` has the same check as `publish`."""
    async with EventStream() as stream:
        with pytest.raises(UserValueError):
            await stream.send(await stream.send(message()))


@pytest.mark.requirement("D9", "D15")
def test_ids_are_dense_with_several_publishers():
    """4 threads with 300 events each produce the ids 0 to 1199, delivered in that order."""
    received = RecordingCallback()
    with EventStream() as stream:
        stream.subscribe("main", received)
        threads = [
            threading.Thread(target=lambda: [stream.publish(message()) for _ in range(300)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert received.ids == list(range(1200))


@pytest.mark.requirement("D8", "D24", "D26")
def test_an_action_is_wrapped_in_an_event():
    """The event has the source and the cause of the action."""
    stream = EventStream()
    action = stream.add_event(CmdRunAction(command="ls"), EventSource.AGENT)
    answer = stream.add_event(
        CmdOutputObservation.from_text("a b", command="ls"), "environment", cause=action.id
    )
    assert isinstance(action, ActionEvent)
    assert isinstance(answer, ObservationEvent)
    assert action.value == CmdRunAction(command="ls")
    assert (action.source, answer.source) == (EventSource.AGENT, EventSource.ENVIRONMENT)
    assert list(stream.get_events(filter=EventFilter(cause=action.id))) == [answer]


@pytest.mark.requirement("D8", "D23")
def test_add_event_sets_the_source():
    """The path and the tool of the event stay the same."""
    stream = EventStream()
    event = stream.add_event(notification("x"), EventSource.USER)
    assert (event.source, event.path, event.tool_name) == (EventSource.USER, ("call_1",), "crawl")
    assert stream.add_event(NullEvent(), "agent").source is EventSource.AGENT


def test_add_event_refuses_other_objects_and_unknown_sources():
    """The error names the accepted values."""
    stream = EventStream()
    with pytest.raises(UserTypeError, match="an Event, an Action or an Observation, got str"):
        stream.add_event("hello", EventSource.USER)  # type: ignore[arg-type]
    with pytest.raises(UserValueError, match="agent, user, environment, got 'me'"):
        stream.add_event(message(), "me")


@pytest.mark.requirement("D3", "D14", "F21")
def test_publishing_does_not_wait_for_a_slow_callback():
    """Other subscribers receive all events meanwhile."""
    released, entered = threading.Event(), threading.Event()

    def slow(event: Event) -> None:
        entered.set()
        assert released.wait(BOUND)

    received = RecordingCallback()
    with EventStream() as stream:
        stream.subscribe("a", slow)
        stream.subscribe("b", received)
        for _ in range(5000):
            stream.publish(message())
        assert entered.wait(BOUND)
        until(lambda: len(received.events) == 5000)
        assert received.ids == list(range(5000))
        released.set()


# --- subscribing ----------------------------------------------------------------------------------


@pytest.mark.requirement("D7")
def test_the_subscriber_names_are_stable():
    """Programs compare them with strings."""
    assert {one.name: one.value for one in EventStreamSubscriber} == {
        "AGENT_CONTROLLER": "agent_controller",
        "RESOLVER": "openhands_resolver",
        "SERVER": "server",
        "RUNTIME": "runtime",
        "MEMORY": "memory",
        "MAIN": "main",
        "TEST": "test",
    }


@pytest.mark.requirement("D1", "D4")
def test_two_subscribers_receive_the_same_event():
    """Each callback receives the events published after its subscription."""
    one, two = RecordingCallback(), RecordingCallback()
    with EventStream() as stream:
        stream.publish(message("before"))
        stream.subscribe(EventStreamSubscriber.SERVER, one, "x")
        stream.subscribe(EventStreamSubscriber.MAIN, two, "x")
        event = stream.publish(message("after"))
    assert one.events == two.events == [event]


@pytest.mark.requirement("D6")
def test_a_subscriber_can_have_several_callbacks():
    """Their ids distinguish them; a duplicate id is refused."""
    one, two = RecordingCallback(), RecordingCallback()
    with EventStream() as stream:
        stream.subscribe("main", one, "one")
        stream.subscribe("main", two, "two")
        stream.subscribe("other", two, "one")
        with pytest.raises(ValueError, match="'main' already has a callback 'one'"):
            stream.subscribe("main", one, "one")
        first = stream.subscribe("main", one)
        assert first.callback_id != stream.subscribe("main", one).callback_id
        stream.publish(message())
    assert len(one.events) == 3
    assert len(two.events) == 2


@pytest.mark.requirement("D5", "D16")
def test_nothing_is_delivered_after_unsubscribe():
    """This holds while other threads publish."""
    stream = EventStream()
    received = RecordingCallback()
    going = threading.Event()

    def publish() -> None:
        while not going.is_set():
            stream.publish(message())

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        for n in range(10):
            received = RecordingCallback()
            stream.subscribe("main", received, str(n))
            until(lambda received=received: received.events)
            stream.unsubscribe("main", str(n))
            count = len(received.events)
            last = stream.last_id
            until(lambda last=last: stream.last_id > last + 10)
            assert len(received.events) == count
    finally:
        going.set()
        thread.join()
        stream.close()


@pytest.mark.requirement("D5", "D16", "F21")
def test_a_callback_can_unsubscribe_itself_and_others():
    received = RecordingCallback()
    with EventStream() as stream:

        def once(event: Event) -> None:
            received(event)
            stream.unsubscribe("a", "once")
            stream.unsubscribe("b", "other")

        stream.subscribe("a", once, "once")
        stream.subscribe("b", RecordingCallback(), "other")
        for _ in range(100):
            stream.publish(message())
        until(lambda: received.events)
        stream.publish(message())
    assert received.ids == [0]


@pytest.mark.requirement("D5")
async def test_an_async_callback_can_unsubscribe_itself():
    received = RecordingCallback()
    async with EventStream() as stream:

        async def once(event: Event) -> None:
            received(event)
            stream.unsubscribe("a", "once")

        stream.subscribe("a", once, "once")
        for _ in range(100):
            stream.publish(message())
    assert received.ids == [0]


@pytest.mark.requirement("D20")
def test_unsubscribing_unknown_ids_is_only_logged(caplog: pytest.LogCaptureFixture):
    """Cleaning up twice is not an error."""
    stream = EventStream()
    stream.subscribe("main", RecordingCallback(), "one")
    stream.unsubscribe("main", "one")
    stream.unsubscribe("main", "one")
    stream.unsubscribe("nobody", "x")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "nobody/x" in caplog.text


@pytest.mark.requirement("D13")
async def test_callbacks_are_called_in_the_order_of_the_subscriber_names():
    """The order of subscribing does not matter."""
    order: list[tuple[int, str]] = []

    def callback(name: str) -> Any:
        async def call(event: Event) -> None:
            order.append((event.id, name))

        return call

    names = ["server", "agent_controller", "main", "memory"]
    async with EventStream() as stream:
        for name in names:
            stream.subscribe(name, callback(name))
        for n in range(3):
            stream.publish(message())
            await asyncio.wait_for(comes(lambda n=n: len(order) == 4 * (n + 1)), BOUND)
    assert order == [(n, name) for n in range(3) for name in sorted(names)]


@pytest.mark.requirement("D14")
async def test_an_async_callback_runs_on_the_loop_of_its_subscriber():
    """Its events are handled one after the other, even if it awaits in between."""
    loops: set[asyncio.AbstractEventLoop] = set()
    order: list[tuple[int, str]] = []

    async def callback(event: Event) -> None:
        loops.add(asyncio.get_running_loop())
        order.append((event.id, "begin"))
        await asyncio.sleep(0)
        order.append((event.id, "end"))

    async with EventStream() as stream:
        stream.subscribe("main", callback)
        await asyncio.to_thread(lambda: [stream.publish(message()) for _ in range(20)])
    assert loops == {asyncio.get_running_loop()}
    assert order == [(n, what) for n in range(20) for what in ("begin", "end")]


@pytest.mark.requirement("D4")
def test_an_async_callback_without_a_loop_runs_in_the_background():
    """A script without a loop can use one, too."""
    received: list[int] = []

    async def callback(event: Event) -> None:
        await asyncio.sleep(0)
        received.append(event.id)

    with EventStream() as stream:
        stream.subscribe("main", callback)
        stream.subscribe("main", functools.partial(callback))
        for _ in range(3):
            stream.publish(message())
    assert Counter(received) == {0: 2, 1: 2, 2: 2}


@pytest.mark.requirement("D53")
def test_a_subscriber_can_start_with_earlier_events():
    """It receives the stored events first, then the new ones, and none twice."""
    received = RecordingCallback()
    with EventStream() as stream:
        for _ in range(5):
            stream.publish(message())
        stream.subscribe("main", received, after=1)
        for _ in range(5):
            stream.publish(message())
    assert received.ids == list(range(2, 10))


@pytest.mark.requirement("D46")
def test_a_subscriber_can_filter_its_events():
    """For example, it can exclude hidden events."""
    received = RecordingCallback()
    with EventStream() as stream:
        stream.subscribe("main", received, where=EventFilter(hidden=False, types=("action_event",)))
        stream.publish(message())
        stream.publish(ActionEvent("A", {}, hidden=True))
        stream.publish(ActionEvent("B", {}))
    assert received.ids == [2]


def test_invalid_arguments_of_subscribe_are_refused():
    """The error names the accepted values."""
    stream = EventStream()
    with pytest.raises(UserTypeError, match="expected a function"):
        stream.subscribe("main", None)  # type: ignore[arg-type]
    with pytest.raises(UserValueError, match="block, coalesce, drop_oldest"):
        stream.follow(policy="wait")  # type: ignore[arg-type]
    with pytest.raises(UserValueError, match="max_pending"):
        stream.subscribe("main", RecordingCallback(), max_pending=0)
    with pytest.raises(UserValueError, match="max_failures"):
        stream.subscribe("main", RecordingCallback(), max_failures=0)
    with pytest.raises(UserValueError, match="window"):
        EventStream(window=0)
    with pytest.raises(UserValueError, match="keep"):
        EventStream(keep="some")  # type: ignore[arg-type]


# --- following ------------------------------------------------------------------------------------


@pytest.mark.requirement("D15", "D53")
async def test_a_follower_reads_earlier_and_new_events():
    """The switch from replay to live has no gap and no duplicate."""
    stream = EventStream()
    for _ in range(300):
        stream.publish(message())
    async with stream.follow() as follower:
        before = await read_some(100, follower)
        for _ in range(300):
            stream.publish(message())
        after = await read_some(500, follower)
    assert ids(before + after) == list(range(600))
    await stream.aclose()


@pytest.mark.requirement("F23")
async def test_a_follower_resumes_after_an_id():
    """A reader that was disconnected misses nothing and gets nothing twice."""
    stream = EventStream()
    for _ in range(10):
        stream.publish(message())
    await stream.aclose()
    assert ids(await read_all(stream, after=6)) == [7, 8, 9]
    assert ids(await read_all(stream, after=9)) == []
    assert ids(await read_all(stream, after=99)) == []


@pytest.mark.requirement("D53")
async def test_older_events_come_from_the_store_and_lost_ones_leave_a_gap():
    """Each hole is reported once, with the number of missing events."""
    store = MemoryEventStore()
    stream = EventStream(store, window=4)
    for n in range(100):
        stream.publish(message(str(n)) if n % 10 == 3 else notification(str(n)))
    await stream.aclose()
    events = await read_all(stream)
    here = events[0:2]
    assert [(type(one).__name__, one.id) for one in here] == [("GapEvent", 2), ("MessageEvent", 3)]
    assert isinstance(here[0], GapEvent)
    assert here[0].dropped == 3
    missing = sum(one.dropped for one in events if isinstance(one, GapEvent))
    assert missing + sum(not isinstance(one, GapEvent) for one in events) == 100
    assert ids(events) == sorted(set(ids(events)))
    assert events[-1].id == 99


@pytest.mark.requirement("D11")
async def test_keep_all_stores_display_events_too():
    """A recording can contain display events."""
    store = MemoryEventStore()
    async with EventStream(store, keep="all", window=4) as stream:
        for n in range(50):
            stream.publish(notification(str(n)))
    assert ids(await read_all(stream)) == list(range(50))
    assert ids(await store.read()) == list(range(50))


@pytest.mark.requirement("D15")
async def test_a_reader_that_is_far_behind_misses_only_display_events():
    """Durable events, starts and ends are delivered however small the window is."""
    stream = EventStream(window=10)
    follower = stream.follow()
    end = ToolStreamEndEvent("ok").stamped(CALL, 2)
    for n in range(1000):
        stream.publish(
            end if n % 100 == 7 else message() if n % 100 == 50 else notification(str(n))
        )
    await stream.aclose()
    async with asyncio.timeout(BOUND):
        events = [event async for event in follower]
    kept = [one.id for one in events if not one.droppable and not isinstance(one, GapEvent)]
    assert kept == [n for n in range(1000) if n % 100 in {7, 50}]
    missing = sum(one.dropped for one in events if isinstance(one, GapEvent))
    assert missing + sum(not isinstance(one, GapEvent) for one in events) == 1000


async def test_two_tasks_cannot_share_a_follower():
    """Each event would go to only one of them."""
    stream = EventStream()
    follower = stream.follow()
    first = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    with pytest.raises(UserError, match="Two tasks read the same follower"):
        await anext(follower)
    stream.publish(message())
    assert (await first).id == 0
    await stream.aclose()


async def test_a_cancelled_reader_misses_nothing():
    """The same follower continues where it was, even if it was reading from the store."""
    store = MemoryEventStore()
    stream = EventStream(store, window=1)
    for _ in range(30):
        stream.publish(message())
    follower = stream.follow()
    reading = asyncio.ensure_future(anext(follower))
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    first = await anext(follower)
    waiting_for = asyncio.ensure_future(_all(follower))
    await asyncio.sleep(0)
    await stream.aclose()
    assert [first.id, *ids(await waiting_for)] == list(range(30))


async def _all(follower: Any) -> list[Event]:
    async with asyncio.timeout(BOUND):
        return [event async for event in follower]


@pytest.mark.requirement("F19")
async def test_a_follower_can_be_closed_early():
    """Covers `aclose`, the end of its block, and closing it while it waits."""
    stream = EventStream()
    follower = stream.follow()
    waiting = asyncio.ensure_future(_all(follower))
    await asyncio.sleep(0)
    await follower.aclose()
    assert await waiting == []
    async with stream.follow() as other:
        stream.publish(message())
        assert (await anext(other)).id == 0
    with pytest.raises(StopAsyncIteration):
        await anext(other)
    await stream.aclose()


# --- slow readers ---------------------------------------------------------------------------------


@pytest.mark.requirement("F21")
async def test_senders_wait_for_a_blocking_follower():
    """An endless source runs at the speed of its slowest blocking reader, and nothing is lost."""
    stream = EventStream(window=16)
    follower = stream.follow(max_pending=4)
    got = [await _first(stream, follower)]

    async def send() -> None:
        for _ in range(500):
            await stream.send(notification("x"))

    sender = asyncio.ensure_future(send())
    while len(got) < 501:
        got += await read_some(1, follower)
        assert stream.last_id - got[-1].id <= 4 + 2
    await sender
    assert ids(got) == list(range(501))
    await stream.aclose()


async def _first(stream: EventStream, follower: Any) -> Event:
    stream.publish(notification("first"))
    return (await read_some(1, follower))[0]


@pytest.mark.requirement("F21")
async def test_senders_wait_for_a_blocking_callback():
    """Only the block policy slows a tool down."""
    release, entered = asyncio.Event(), asyncio.Event()
    received: list[int] = []

    async def slow(event: Event) -> None:
        received.append(event.id)
        entered.set()
        await release.wait()

    async with EventStream() as stream:
        stream.subscribe("main", slow, max_pending=3)
        sent = 0

        async def send() -> None:
            nonlocal sent
            for _ in range(50):
                await stream.send(message())
                sent += 1

        sender = asyncio.ensure_future(send())
        await entered.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert sent <= 4
        release.set()
        await asyncio.wait_for(sender, BOUND)
    assert received == list(range(50))


async def test_a_reader_that_sends_does_not_wait_for_itself():
    """A follower or a callback that publishes would otherwise deadlock."""
    async with EventStream() as stream:
        answered = asyncio.Event()

        async def answer(event: Event) -> None:
            if event.id == 0:
                for _ in range(20):
                    await stream.send(message())
                answered.set()

        stream.subscribe("main", answer, max_pending=2)
        stream.publish(message())
        await asyncio.wait_for(answered.wait(), BOUND)
        follower = stream.follow(max_pending=2)
        await read_some(1, follower)
        async with asyncio.timeout(BOUND):
            for _ in range(20):
                await stream.send(message())
        await follower.aclose()


@pytest.mark.requirement("F21")
async def test_a_sender_is_released_when_the_slow_reader_leaves():
    """The reader can unsubscribe, be closed or be garbage collected."""
    stream = EventStream()
    follower = stream.follow(max_pending=1)
    await _first(stream, follower)

    async def send() -> None:
        for _ in range(5):
            await stream.send(message())

    sender = asyncio.create_task(send())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not sender.done()
    del follower
    gc.collect()
    await asyncio.wait_for(sender, BOUND)
    await stream.aclose()


async def test_the_coalesce_policy_merges_display_events():
    """The reader gets the latest progress and one text for many deltas; the rest is unchanged."""
    async with EventStream() as stream:
        follower = stream.follow(policy="coalesce")
        for text in ("a", "b", "c"):
            stream.publish(notification(text, is_delta=True))
        stream.publish(ToolProgressEvent(1, 3).stamped(CALL, 1))
        stream.publish(message())
        stream.publish(ToolProgressEvent(2, 3).stamped(CALL, 1))
        for text in ("x", "y"):
            data = {"type": "response.output_text.delta", "delta": text}
            stream.publish(RawResponseStreamEvent(data))
        stream.publish(RawResponseStreamEvent({"type": "other.delta", "delta": "z"}))
        events = await read_some(5, follower)
        await follower.aclose()
    assert [(one.id, one.type) for one in events] == [
        (2, "notify_stream_event"),
        (4, "message_event"),
        (5, "tool_progress_event"),
        (7, "raw_response_event"),
        (8, "raw_response_event"),
    ]
    assert events[0] == notification("abc", is_delta=True).replace(
        id=2, timestamp=events[0].timestamp
    )
    assert isinstance(events[3], RawResponseStreamEvent)
    assert events[3].data == {"type": "response.output_text.delta", "delta": "xy"}


@pytest.mark.requirement("F21")
async def test_the_drop_oldest_policy_drops_display_events():
    """A gap has the number of dropped events; durable events stay."""
    async with EventStream() as stream:
        follower = stream.follow(policy="drop_oldest", max_pending=3)
        stream.publish(notification("0"))
        stream.publish(message("1"))
        for n in range(2, 10):
            stream.publish(notification(str(n)))
        events = await read_some(6, follower)
        await follower.aclose()
    assert [(one.id, one.type) for one in events] == [
        (0, "gap_event"),
        (1, "message_event"),
        (6, "gap_event"),
        *[(n, "notify_stream_event") for n in (7, 8, 9)],
    ]
    assert [one.dropped for one in events if isinstance(one, GapEvent)] == [1, 5]


# --- reading the history --------------------------------------------------------------------------


@pytest.fixture(params=["memory", "stored", "partly stored"])
def history(request: pytest.FixtureRequest) -> EventStream:
    """Return a closed stream with 30 events in memory, in a store or in both."""
    stream = {
        "memory": EventStream,
        "stored": functools.partial(EventStream, MemoryEventStore(), keep="all", window=1),
        "partly stored": functools.partial(EventStream, MemoryEventStore(), keep="all", window=10),
    }[request.param]()
    with stream:
        for n in range(30):
            event = ActionEvent("A", {"n": n}, hidden=n % 7 == 0) if n % 3 else message(f"No {n}")
            stream.add_event(
                event.replace(timestamp=1000.0 + n), EventSource.USER if n % 2 else "agent"
            )
    return stream


@pytest.mark.requirement("D12", "D52")
def test_a_range_of_the_history_can_be_read(history: EventStream):
    """Ranges of ids include both ends and can be read in both directions."""
    assert ids(history.get_events()) == list(range(30))
    assert ids(history.get_events(5, 9)) == [5, 6, 7, 8, 9]
    assert ids(history.get_events(25)) == [25, 26, 27, 28, 29]
    assert ids(history.get_events(reverse=True, limit=4)) == [29, 28, 27, 26]
    assert ids(history.get_events(3, 22, reverse=True)) == list(range(22, 2, -1))
    assert ids(history.get_events(limit=0)) == []
    assert ids(history.get_events(28, 99)) == [28, 29]


@pytest.mark.requirement("D46", "D52")
def test_the_history_can_be_filtered(history: EventStream):
    """Filters are type, source, time, text and visibility."""

    def found(**criteria: Any) -> list[int]:
        where = EventFilter(**criteria)
        backwards = ids(history.get_events(filter=where, reverse=True))
        assert backwards == ids(history.get_events(filter=where))[::-1]
        return ids(history.get_events(filter=where))

    assert found(types=("message_event",)) == list(range(0, 30, 3))
    assert found(sources=(EventSource.USER,)) == list(range(1, 30, 2))
    assert found(since=1010.0, until=1012.0) == [10, 11, 12]
    assert found(text="no 1") == [12, 15, 18]
    assert found(hidden=True) == [7, 14, 28]
    assert ids(history.get_events(5, 20, filter=EventFilter(text="no"), limit=2)) == [6, 9]


@pytest.mark.requirement("D2", "D11", "D53")
def test_a_stream_can_be_reopened():
    """Its events are equal, and the ids continue."""
    store = MemoryEventStore("one")
    with EventStream(store, user_id="ann") as stream:
        assert (stream.sid, stream.user_id, stream.store) == ("one", "ann", store)
        events = [stream.publish(message(str(n))) for n in range(3)]
        stream.publish(notification("not stored"))
    again = EventStream(store)
    assert again.last_id == 2
    assert list(again.get_events()) == events
    assert again.publish(message()).id == 4
    again.close()


@pytest.mark.requirement("D2", "D53")
def test_each_session_has_its_own_log():
    """A store has many sessions; a stream without a name gets a generated one."""
    store = MemoryEventStore()
    with EventStream(store, sid="a") as one, EventStream(store, sid="b") as two:
        one.publish(message("of a"))
        two.publish(message("of b"))
    assert texts(EventStream(store, sid="b").get_events()) == ["of b"]
    assert sorted(info.sid for info in store.sessions().result()) == ["a", "b"]
    assert EventStream().sid != EventStream().sid


@pytest.mark.requirement("D44")
async def test_the_conversation_of_a_stream_is_read_without_its_other_events():
    """`read` returns durable events outside of calls, with those that are not stored yet."""
    store = MemoryEventStore()
    async with EventStream(store) as stream:
        stream.publish(message("mine").stamped(Origin(), 3))
        stream.publish(message("inner").stamped(CALL, 4))
        stream.publish(notification("display"))
        stream.publish(message("later").stamped(Origin(), 9))
        assert texts(await stream.read()) == ["mine", "later"]
        await stream.flush()
        assert texts(await store.read()) == ["mine", "inner", "later"]


@pytest.mark.requirement("D44")
async def test_a_run_in_a_session_can_also_be_published_to_a_stream():
    """The stream has the events that its readers see; the session has its own log of the run."""
    store, runs = MemoryEventStore(), MemoryRunStore()
    model = ScriptedModel([tool_call("ask", question="What?"), "That is it."])
    async with EventStream(store) as stream:
        config = RunConfig(event_stream=stream, store=runs)
        clerk = Agent("Clerk", tools=[ask], model=model)
        await Runner.run(clerk, "hello", session="chat", run_config=config)
        stored = await store.read()
        assert [_describe(event) for event in stored] == [
            *("run_started_event", "user", "tool_called", "tool_output"),
            *("message_output_created", "run_finished_event"),
        ]
        conversation = await runs.conversation("chat")
        described = [_describe(event) for event in conversation]
        assert described == [_describe(event) for event in stored[1:-1]]
    again = Agent("Clerk", model=ScriptedModel(["Yes."]))
    result = await Runner.run(again, "again", session=runs.session("chat"))
    assert len(result.to_input_list()) == 6


@pytest.mark.requirement("D44")
async def test_a_run_inside_a_tool_can_have_a_session_of_its_own():
    """Its conversation is in that session, and not in the one of the outer run."""
    runs = MemoryRunStore()

    @function_tool
    async def consult(question: str) -> str:
        """Ask an expert."""
        expert = Agent("Expert", model=ScriptedModel(["Forty-two."]))
        result = await Runner.run(expert, question, session="inner")
        return str(result.final_output)

    model = ScriptedModel([tool_call("consult", question="What?"), "It is 42."])
    clerk = Agent("Clerk", tools=[consult], model=model)
    await Runner.run(clerk, "hello", session="outer", run_config=RunConfig(store=runs))
    assert [_describe(event) for event in await runs.conversation("inner")] == [
        "user",
        "message_output_created",
    ]
    assert [_describe(event) for event in await runs.conversation("outer")] == [
        *("user", "tool_called", "tool_output", "message_output_created"),
    ]


@function_tool
async def ask(question: str) -> str:
    """Ask somebody."""
    return f"{question} Nobody knows."


def _describe(event: Event) -> str:
    """Return the role of a message, the name of an item, or the type of another event."""
    return getattr(event, "role", None) or getattr(event, "name", None) or event.type


# --- read-only streams ----------------------------------------------------------------------------


@pytest.mark.requirement("F23", "D53")
async def test_a_read_only_stream_follows_another_writer():
    """It replays the log and then continues live; events that were not stored are a gap."""
    store = MemoryEventStore()
    writer = EventStream(store)
    writer.publish(message("0"))
    reader = EventStream(store.session(store.sid), read_only=True)
    received = RecordingCallback()
    reader.subscribe("main", received)
    follower = reader.follow()
    writer.publish(notification("1"))
    writer.publish(notification("2"))
    writer.publish(message("3"))
    events = await read_some(3, follower)
    assert [(one.id, one.type) for one in events] == [
        (0, "message_event"),
        (2, "gap_event"),
        (3, "message_event"),
    ]
    assert reader.last_id == 3
    with pytest.raises(UserError, match="is read-only"):
        reader.publish(message())
    await follower.aclose()
    await reader.aclose()
    assert received.ids == [2, 3]
    await writer.aclose()


async def test_a_read_only_stream_reads_on_after_a_gap():
    """Its events in memory are fewer than their ids, so an id is no index."""
    store = MemoryEventStore()
    writer = EventStream(store)
    reader = EventStream(store.session(store.sid), read_only=True)
    follower = reader.follow()
    for number in range(5):
        writer.publish(message(str(number)))
        writer.publish(notification("not stored"))
        events = await read_some(1 if number == 0 else 2, follower)
        assert events[-1].id == 2 * number
    await follower.aclose()
    await reader.aclose()
    await writer.aclose()


async def test_a_read_only_stream_ends_with_its_store():
    """Its readers would otherwise wait forever."""
    store = MemoryEventStore()
    reader = EventStream(store, read_only=True)
    reading = asyncio.ensure_future(read_all(reader))
    await asyncio.sleep(0)
    store.append([message()]).result()
    store.close()
    assert ids(await reading) == [0]
    assert reader.closed
    with pytest.raises(UserValueError, match="no store to read from"):
        EventStream(read_only=True)


def test_a_read_only_stream_catches_up_with_a_long_log():
    """Reading many pages does not recurse deeply."""
    store = MemoryEventStore()
    received = RecordingCallback()
    with EventStream(store, read_only=True, window=20_000) as reader:
        reader.subscribe("main", received)
        for _ in range(20):
            store.append([message() for _ in range(500)])
        until(lambda: reader.last_id == 9999)
    assert received.ids == list(range(10_000))


# --- closing --------------------------------------------------------------------------------------


@pytest.mark.requirement("D18", "D19")
def test_closing_delivers_the_published_events():
    """All events arrive in order, and no thread is left."""
    before = set(threading.enumerate())
    received = RecordingCallback()
    with EventStream() as stream:
        for n in range(5):
            stream.subscribe(f"s{n}", received)
        for _ in range(500):
            stream.publish(message())
    assert sorted(received.ids) == sorted(list(range(500)) * 5)
    until(lambda: not set(threading.enumerate()) - before)


@pytest.mark.requirement("D19")
async def test_closing_in_a_loop_delivers_the_published_events():
    """This includes async callbacks and followers."""
    received = RecordingCallback()

    async def callback(event: Event) -> None:
        await asyncio.sleep(0)
        received(event)

    async with EventStream() as stream:
        stream.subscribe("main", callback)
        reading = asyncio.ensure_future(read_all(stream))
        await asyncio.sleep(0)
        for _ in range(100):
            stream.publish(message())
    assert received.ids == list(range(100))
    assert ids(await reading) == list(range(100))


@pytest.mark.requirement("D19")
async def test_closing_without_draining_stops_at_once():
    """Queued events are dropped, including those that a follower has already fetched."""
    received = RecordingCallback()

    async def callback(event: Event) -> None:
        received(event)
        await asyncio.sleep(0)

    stream = EventStream()
    stream.subscribe("main", callback)
    follower = stream.follow()
    for _ in range(100):
        stream.publish(message())
    assert (await read_some(1, follower))[0].id == 0
    await stream.aclose(drain=False)
    count = len(received.events)
    assert count < 100
    assert await _all(follower) == []
    assert len(received.events) == count


@pytest.mark.requirement("D19", "F21")
def test_closing_has_a_timeout():
    """A callback that hangs must not block forever."""
    release, entered = threading.Event(), threading.Event()
    received = RecordingCallback()

    def hang(event: Event) -> None:
        entered.set()
        received(event)
        assert release.wait(BOUND)

    stream = EventStream()
    stream.subscribe("main", hang)
    for _ in range(3):
        stream.publish(message())
    assert entered.wait(BOUND)
    stream.close(timeout=0.01)
    assert received.ids == [0]
    release.set()


@pytest.mark.requirement("D19", "F21")
async def test_closing_in_a_loop_has_a_timeout():
    """The hanging callback receives no further event; durable events are stored."""
    release = asyncio.Event()
    received = RecordingCallback()

    async def hang(event: Event) -> None:
        received(event)
        await release.wait()

    store = MemoryEventStore()
    stream = EventStream(store)
    stream.subscribe("main", hang)
    for _ in range(3):
        stream.publish(message())
    await asyncio.sleep(0)
    await stream.aclose(timeout=0.01)
    release.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert received.ids == [0]
    assert ids(await store.read()) == [0, 1, 2]


@pytest.mark.requirement("D19")
async def test_a_closed_stream_accepts_no_events():
    """Events of a run are dropped, so that the run does not fail; other callers get an error."""
    stream = EventStream()
    published = stream.publish(message())
    await stream.aclose()
    await stream.aclose()
    stream.close()
    assert stream.closed
    for refused in (
        lambda: stream.publish(message()),
        lambda: stream.add_event(message(), "user"),
        lambda: stream.subscribe("main", RecordingCallback()),
    ):
        with pytest.raises(UserError, match="is closed"):
            refused()
    with pytest.raises(UserError, match="is closed"):
        await stream.send(message())
    late = stream.publish(message("late").stamped(Origin(), 7))
    assert late.id == INVALID_ID
    assert list(stream.get_events()) == [published]


@pytest.mark.requirement("D18", "D19")
def test_a_callback_can_close_the_stream():
    """It does not wait for itself."""
    received = RecordingCallback()
    stream = EventStream()
    closed = threading.Event()

    def close(event: Event) -> None:
        received(event)
        stream.close()
        closed.set()

    for _ in range(3):
        stream.publish(message())
    stream.subscribe("main", close, after=-1)
    assert closed.wait(BOUND)
    until(lambda: received.ids == [0, 1, 2])


@pytest.mark.requirement("D18")
def test_a_stream_without_references_is_collected():
    """Its threads and tasks keep neither the stream nor its callbacks alive."""
    before = set(threading.enumerate())
    stream = EventStream(MemoryEventStore())
    stream.subscribe("main", RecordingCallback())
    stream.publish(message())
    del stream
    gc.collect()
    until(lambda: not set(threading.enumerate()) - before)


# --- properties -----------------------------------------------------------------------------------

_KINDS = st.sampled_from(["durable", "bracket", "note", "delta", "progress"])
_EVENTS = st.lists(st.tuples(_KINDS, st.integers(0, 2)), max_size=60)


def _make_event(kind: str, call: int, n: int) -> Event:
    made: dict[str, Event] = {
        "durable": MessageEvent(str(n)),
        "bracket": RunStartedEvent(str(n)),
        "note": NotifyStreamEvent(f"<{n}>"),
        "delta": NotifyStreamEvent(f"{n},", is_delta=True),
        "progress": ToolProgressEvent(n),
    }
    return made[kind].stamped(Origin("t", str(call), (str(call),)), n)


def _text(events: list[Event], call: int) -> str:
    """Return the concatenated deltas of a call."""
    return "".join(
        one.data
        for one in events
        if isinstance(one, NotifyStreamEvent) and one.is_delta and one.path == (str(call),)
    )


@pytest.mark.requirement("D15")
@given(_EVENTS, st.integers(1, 7), st.integers(1, 20), st.integers(-1, 60))
def test_coalescing_drops_only_older_progress(
    kinds: list[tuple[str, int]], max_pending: int, window: int, after: int
):
    """The texts, the order and all other events stay the same."""
    stream = EventStream(MemoryEventStore(), keep="all", window=window)
    original = [stream.publish(_make_event(kind, call, n)) for n, (kind, call) in enumerate(kinds)]
    stream.close()
    merged = asyncio.run(read_all(stream, policy="coalesce", max_pending=max_pending, after=after))
    original = original[after + 1 :]
    assert ids(merged) == sorted(set(ids(merged)))
    assert not any(isinstance(one, GapEvent) for one in merged)
    for call in range(3):
        assert _text(merged, call) == _text(original, call)
    plain = {"durable", "bracket", "note"}
    kept = [one for one in original if kinds[one.id][0] in plain]
    assert [one for one in merged if kinds[one.id][0] in plain] == kept
    for call in range(3):
        progress = [one for one in original if kinds[one.id] == ("progress", call)]
        assert [one for one in merged if kinds[one.id] == ("progress", call)][-1:] == progress[-1:]


@pytest.mark.requirement("F23")
@given(_EVENTS, st.data())
def test_a_coalesced_stream_can_be_resumed_after_any_event(
    kinds: list[tuple[str, int]], data: st.DataObject
):
    """Resuming by the id of the last received event neither loses nor repeats text."""
    stream = EventStream()
    original = [stream.publish(_make_event(kind, call, n)) for n, (kind, call) in enumerate(kinds)]
    stream.close()
    first = asyncio.run(read_all(stream, policy="coalesce"))
    cut = data.draw(st.integers(0, len(first)))
    last = first[cut - 1].id if cut else -1
    second = asyncio.run(read_all(stream, policy="coalesce", after=last))
    for call in range(3):
        assert _text(first[:cut] + second, call) == _text(original, call)


@pytest.mark.requirement("D15", "F21")
@given(_EVENTS, st.integers(1, 9), st.sampled_from([1, 5, 100]), st.booleans())
def test_every_event_is_delivered_or_counted_in_a_gap(
    kinds: list[tuple[str, int]], max_pending: int, window: int, stored: bool
):
    """Gaps count exactly the missing events, and only display events are missing."""
    stream = EventStream(MemoryEventStore() if stored else None, window=window)
    follower = stream.follow(policy="drop_oldest", max_pending=max_pending)
    original = [stream.publish(_make_event(kind, call, n)) for n, (kind, call) in enumerate(kinds)]
    stream.close()
    events = asyncio.run(_all(follower))
    arrived = [one for one in events if not isinstance(one, GapEvent)]
    assert ids(events) == sorted(set(ids(events)))
    missing = sum(one.dropped for one in events if isinstance(one, GapEvent))
    assert missing + len(arrived) == len(original)
    assert [one for one in arrived if not one.droppable] == [
        one for one in original if not one.droppable
    ]
    before = -1
    for one in events:  # each gap covers the ids since the previous event
        assert one.id - before == (one.dropped if isinstance(one, GapEvent) else 1)
        before = one.id


@pytest.mark.requirement("D53")
@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 30), st.booleans())
@settings(max_examples=30)
def test_replay_and_live_events_join_for_any_reader(steps: list[int], window: int, stored: bool):
    """A reader gets every id from its start on exactly once, however the window moves."""

    async def run() -> None:
        store = MemoryEventStore() if stored else None
        async with EventStream(store, keep="all", window=window) as stream:
            readers: list[tuple[int, asyncio.Task[list[Event]]]] = []
            for step in steps:
                after = max(-1, stream.last_id - 2 * step)
                reader = stream.follow(after=after)
                readers.append((after, asyncio.create_task(_all(reader))))
                for _ in range(step):
                    stream.publish(message())
                if step % 2:
                    await asyncio.sleep(0)
        for after, reading in readers:
            events = await reading
            reached = after + 1
            for one in events:
                reached += one.dropped if isinstance(one, GapEvent) else 1
                assert one.id == reached - 1
                assert not (stored and isinstance(one, GapEvent))
            assert reached == stream.last_id + 1

    asyncio.run(run())
