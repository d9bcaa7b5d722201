"""Channels and streams at the edges: exactly full, exactly empty, exactly at the limit."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import UserDict
from typing import TYPE_CHECKING, Any

import pytest

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
from agents_tools.persistence import MemoryEventStore
from agents_tools.persistence.stream import EventStream, subscription as _subscription
from agents_tools.persistence.stream.coalesce import coalesce, with_gaps, without_droppable
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


async def turns(count: int = 20) -> None:
    """Let all tasks go as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_writer_waits_for_room_as_soon_as_the_channel_is_full() -> None:
    """Not one event later: what is pushed then would push out an earlier one."""
    channel = Channel(2, patience=WITHIN)
    channel.push(NotifyStreamEvent("one"))
    await asyncio.wait_for(channel.wait_for_room(), WITHIN)
    channel.push(NotifyStreamEvent("two"))
    assert channel.should_wait()
    waiting = asyncio.ensure_future(channel.wait_for_room())
    await turns()
    assert not waiting.done()
    seen: list[Any] = [await anext(channel)]
    await asyncio.wait_for(waiting, WITHIN)
    channel.close()
    seen += [event async for event in channel]
    assert [event.data for event in seen] == ["one", "two"]
    assert channel.dropped == 0


def test_a_stream_has_the_name_it_is_given() -> None:
    """Without a store, with one, and with one that is called so already."""
    store = MemoryEventStore(sid="a")
    assert EventStream(sid="x").sid == "x"
    assert EventStream(store).sid == "a"
    assert EventStream(store, sid="a").store is store
    other = EventStream(store, sid="b")
    assert other.sid == "b"
    assert other.store is not None
    assert other.store.sid == "b"


async def test_what_a_callback_raises_is_kept_and_told() -> None:
    """The stream goes on; whoever looks later finds what went wrong."""
    told: list[Any] = []
    stream = EventStream(on_error=lambda *what: told.append(what))

    def fail(event: Event) -> None:
        raise ValueError("no")

    stream.subscribe("shaky", fail)
    published = stream.publish(MessageEvent("hello"))
    await stream.aclose()
    [error] = stream.errors
    assert isinstance(error, ValueError)
    assert told[0][:2] == (error, published)
    assert "shaky" in told[0][2]


async def test_what_a_run_says_after_the_end_is_dropped_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run does not fail because nobody listens any more, and the log is not filled by it."""
    stream = EventStream()
    await stream.aclose()
    origin = Origin("t", "c", ("c",))
    for text in ("one", "two"):
        stream.publish(NotifyStreamEvent(text).stamped(origin, 1))
    assert stream.last_id == -1
    assert caplog.text.count("is closed: events of runs that continue are dropped") == 1


async def test_what_was_held_back_is_said_at_the_end() -> None:
    """The beginning of a secret that did not come is text like any other."""
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
async def test_a_sender_waits_as_soon_as_a_reader_is_as_far_behind_as_it_may_be(most: int) -> None:
    """Neither an event earlier nor one later."""
    stream = EventStream()
    following = stream.follow(max_pending=most)
    stream.publish(MessageEvent("first"))
    await asyncio.wait_for(anext(following), WITHIN)

    async def send() -> None:
        for number in range(10):
            await stream.send(MessageEvent(str(number)))

    sending = asyncio.ensure_future(send())
    await turns(200)
    assert not sending.done()
    assert stream.last_id == most
    seen = [await asyncio.wait_for(anext(following), WITHIN) for _ in range(10)]
    await asyncio.wait_for(sending, WITHIN)
    assert [event.id for event in seen] == list(range(1, 11))
    await stream.aclose()


async def test_a_sender_goes_on_at_once_when_the_reader_leaves() -> None:
    """It looks again by itself only now and then: nobody is to wait for that."""
    stream = EventStream()
    following = stream.follow(max_pending=1)
    stream.publish(MessageEvent("first"))
    await asyncio.wait_for(anext(following), WITHIN)
    sending = asyncio.ensure_future(stream.send(MessageEvent("second")))
    await turns(50)
    assert not sending.done()
    await following.aclose()
    await turns(50)
    assert sending.done()
    await stream.aclose()


@pytest.mark.parametrize("names", ["ba", "cab"])
async def test_those_who_wait_are_told_in_the_order_of_their_names(names: str) -> None:
    """What one event does must not hang on who came first: two are put in order as well."""
    stream = EventStream()
    order: list[str] = []
    for name in names:
        stream.subscribe(name, lambda event, name=name: order.append(name))
    await turns()
    stream.publish(MessageEvent("hello"))
    await asyncio.wait_for(stream.aclose(), WITHIN)
    assert order == sorted(names)


@pytest.mark.parametrize("most", [1, 3])
async def test_a_callback_that_keeps_failing_is_called_just_so_often(most: int) -> None:
    """A success in between begins the count anew."""
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


class Words(UserDict[str, Any]):
    """A mapping that is no dictionary."""


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
        (Words(key="abc"), 16 + 19 + 19),
        (object(), 16),
    ],
)
def test_what_a_value_weighs(value: Any, weight: int) -> None:
    """Its texts, and a little for each value: so that neither a text nor a million zeros pass."""
    assert _remaining_size(value, 10_000, 0) == 10_000 - weight


def test_weighing_ends_when_there_is_nothing_left() -> None:
    """A payload of any size costs no more to refuse than one of the largest size to accept."""
    counted: list[int] = []

    class Counted(list[int]):
        def __iter__(self) -> Iterator[Any]:
            for number in range(1_000):
                counted.append(number)
                yield [number]

    assert _remaining_size(Counted(), 100, 0) < 0
    assert len(counted) <= 5


def test_an_event_at_the_limit_is_left_as_it_is() -> None:
    """One character more, and it is cut; a short beginning and the length are kept."""
    for event in (NotifyStreamEvent("x" * LARGEST), MessageEvent("hello")):
        assert limit_size(event) is event
    cut: Any = limit_size(NotifyStreamEvent("x" * (LARGEST + 1)))
    assert cut.data.startswith("x" * 65_536 + "… (16,711,681 characters left out: an event has at")
    assert len(cut.data) < 65_700
    fits = LARGEST - len("assistant") - 16 * 20
    whole = MessageEvent("x" * fits, role="assistant")
    assert limit_size(whole) is whole
    assert limit_size(MessageEvent("x" * (LARGEST + 1), role="assistant")) != whole


def at(number: int, event: Event) -> Event:
    """Give an event an id, as a stream does."""
    return event.replace(id=number)


def told(events: list[Event]) -> list[Any]:
    """Say of each event what it is: its text, its progress, or how many are missing, with ids."""
    facts = ("data", "content", "current", "dropped")
    return [
        (event.id, next(getattr(event, fact) for fact in facts if hasattr(event, fact)))
        for event in events
    ]


def test_each_hole_in_the_ids_is_one_gap() -> None:
    """Before, between and after; with the id of the last that is missing."""
    events = [at(number, MessageEvent(str(number))) for number in (3, 4, 7)]
    assert told(with_gaps(events, 1, 10)) == [
        (2, 2),
        (3, "3"),
        (4, "4"),
        (6, 2),
        (7, "7"),
        (9, 2),
    ]
    assert told(with_gaps(events, 3, 8)) == [(3, "3"), (4, "4"), (6, 2), (7, "7")]
    assert told(with_gaps(events[:2], 3, 5)) == [(3, "3"), (4, "4")]
    assert told(with_gaps([], 4, 6)) == [(5, 2)]
    assert with_gaps([], 4, 4) == []


def test_a_gap_has_the_time_of_what_stands_next_to_it() -> None:
    """A reader that sorts by time finds it in its place."""
    near = MessageEvent("x").replace(id=5, timestamp=12.5)
    assert [event.timestamp for event in with_gaps([near], 3, 8)] == [12.5, 12.5, 12.5]
    shown = NotifyStreamEvent("x").replace(id=5, timestamp=12.5)
    assert [event.timestamp for event in without_droppable([shown])] == [12.5]


def test_only_pieces_of_one_kind_are_merged() -> None:
    """An application may have notes of a class of its own: they stay what they are."""

    class Note(NotifyStreamEvent):
        pass

    one, two = (kind("a", is_delta=True) for kind in (NotifyStreamEvent, Note))
    assert len(coalesce([at(0, one), at(1, two)])) == 2


def test_what_is_for_display_leaves_one_gap_in_its_place() -> None:
    """A gap that was there counts for as many as it says."""
    show = [at(number, NotifyStreamEvent(str(number))) for number in range(3)]
    keep = [at(3, MessageEvent("keep"))]
    gap = [at(6, GapEvent(3))]
    last = [at(7, NotifyStreamEvent("7"))]
    left = without_droppable([*show, *keep, *gap, *last])
    assert told(left) == [(2, 3), (3, "keep"), (7, 4)]
    assert told(without_droppable(keep)) == [(3, "keep")]


def test_only_what_goes_on_is_merged() -> None:
    """Deltas of one text by one call, up to 4,096 characters; the latest progress of each call."""
    one, two = Origin("t", "c1", ("c1",)), Origin("t", "c2", ("c2",))

    def delta(id: int, text: str, origin: Origin = one, **more: Any) -> Event:
        return at(id, NotifyStreamEvent(text, is_delta=True, **more).stamped(origin, id))

    def progress(id: int, much: float, origin: Origin | None = one) -> Event:
        event = ToolProgressEvent(much)
        return at(id, event if origin is None else event.stamped(origin, id))

    assert told(coalesce([delta(0, "a"), delta(1, "b"), delta(2, "c", two)])) == [
        (1, "ab"),
        (2, "c"),
    ]
    assert len(coalesce([delta(0, "a"), delta(1, "b", tag="x")])) == 2
    assert len(coalesce([delta(0, "a"), delta(1, "b", level="error")])) == 2
    whole = at(1, NotifyStreamEvent("b").stamped(one, 1))
    assert len(coalesce([delta(0, "a"), whole])) == 2
    assert len(coalesce([whole, delta(2, "a")])) == 2
    assert len(coalesce([delta(0, "a" * 4_000), delta(1, "b" * 96)])) == 1
    assert len(coalesce([delta(0, "a" * 4_000), delta(1, "b" * 97)])) == 2
    steps = [progress(0, 1), progress(1, 1, two), progress(2, 2), progress(3, 3)]
    assert told(coalesce(steps)) == [(1, 1), (3, 3)]
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
def test_only_pieces_of_one_answer_are_merged(two: dict[str, Any], merged: bool) -> None:
    """What a model writes comes in pieces of several texts at once."""
    first = {"type": "x.delta", "delta": "a", "call_id": "c", "sequence_number": 8}
    second = {**first, "delta": "b", **two}
    events = [
        at(number, RawResponseStreamEvent(data)) for number, data in enumerate((first, second))
    ]
    done: list[Any] = coalesce(events)
    assert [one.data for one in done] == (
        [{**second, "delta": "ab"}] if merged else [first, second]
    )
    assert done[-1].id == 1


def test_a_payload_that_holds_itself_is_weighed_and_cut() -> None:
    """It has no form in JSON, but it must not end the one who publishes it either."""
    ring: list[Any] = ["x" * 70_000]
    ring.append(ring)
    assert _remaining_size(ring, LARGEST, 0) < LARGEST
    cut = _shorten(ring, 0)
    assert cut[0].startswith("x" * 65_536 + "…")


async def test_an_asynchronous_callback_that_fails_is_told_like_any_other() -> None:
    """With its error, its event and its name."""
    told: list[Any] = []
    stream = EventStream(on_error=lambda *what: told.append(what))

    async def fail(event: Event) -> None:
        raise ValueError("no")

    stream.subscribe("shaky", fail)
    published = stream.publish(MessageEvent("hello"))
    await asyncio.wait_for(stream.aclose(), WITHIN)
    [(error, event, who)] = told
    assert isinstance(error, ValueError)
    assert event == published
    assert "shaky" in who
    assert list(stream.errors) == [error]


# -- callbacks in threads ----------------------------------------------------------------------

FOREVER = 1e6
"""Seconds: who waits as long as that in a test has waited for the wrong thing."""


def threads_of(name: str) -> list[threading.Thread]:
    """Give the threads that call a callback."""
    return [thread for thread in threading.enumerate() if thread.name == f"events-{name}"]


def test_unsubscribing_waits_for_the_callback_that_runs() -> None:
    """What it uses may be taken away afterwards."""
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


def test_a_callback_that_unsubscribes_itself_does_not_wait_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither in its own thread, nor in the loop that an awaitable of it runs on."""
    monkeypatch.setattr(_subscription, "_CALLBACK_TIMEOUT", FOREVER)
    monkeypatch.setattr(_subscription, "_LOOP_TIMEOUT", FOREVER)
    heard: list[Any] = []

    def at_once(event: Event) -> None:
        stream.unsubscribe("a", "plain")
        heard.append("plain")

    def later(event: Event) -> Any:
        async def leave() -> None:
            stream.unsubscribe("a", "awaited")
            heard.append("awaited")

        return leave()

    with EventStream() as stream:
        plain = stream.subscribe("a", at_once, "plain")
        awaited = stream.subscribe("a", later, "awaited")
        stream.publish(MessageEvent("hello"))
        for one in (plain, awaited):
            one.drained.result(WITHIN)
    assert sorted(heard) == ["awaited", "plain"]


def test_a_thread_with_nothing_to_do_ends_and_another_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often, and whenever the next event comes."""
    monkeypatch.setattr(_subscription, "_IDLE_TIMEOUT", 0.001)
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    with EventStream() as stream:
        stream.subscribe("a", lambda event: heard.put(event.id), "x")
        for number in range(60):
            published = stream.publish(MessageEvent("hello"))
            assert heard.get(timeout=WITHIN) == published.id
            if number % 2:
                for thread in threads_of("a/x"):
                    thread.join(WITHIN)
                assert not threads_of("a/x")


@pytest.mark.parametrize("way", ["unsubscribe", "close"])
def test_a_thread_that_waits_for_events_ends_with_its_subscription(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, not when it has waited long enough."""
    monkeypatch.setattr(_subscription, "_IDLE_TIMEOUT", FOREVER)
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    stream = EventStream()
    subscription = stream.subscribe("a", lambda event: heard.put(event.id), "x")
    stream.publish(MessageEvent("hello"))
    assert heard.get(timeout=WITHIN) == 0
    [thread] = threads_of("a/x")
    if way == "unsubscribe":
        stream.unsubscribe("a", "x")
    else:
        stream.close(timeout=WITHIN)
    subscription.drained.result(WITHIN)
    thread.join(WITHIN)
    assert not thread.is_alive()
    stream.close()


def test_a_subscription_that_has_heard_nothing_ends_as_well() -> None:
    """There is no thread yet that could say so."""
    stream = EventStream()
    subscription = stream.subscribe("a", lambda event: None, "x")
    stream.unsubscribe("a", "x")
    subscription.drained.result(WITHIN)
    assert not subscription.active
    stream.close(timeout=WITHIN)


def test_a_thread_that_cannot_be_started_is_started_with_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process may have as many as it can have: nothing is lost for that."""
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    refusals = iter([True])

    class Refused(threading.Thread):
        def start(self) -> None:
            if next(refusals, False):
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(_subscription, "Thread", Refused)
    with EventStream() as stream:
        stream.subscribe("a", lambda event: heard.put(event.id), "x")
        stream.publish(MessageEvent("one"))
        [error] = stream.errors
        assert "can't start new thread" in str(error)
        stream.publish(MessageEvent("two"))
        assert [heard.get(timeout=WITHIN) for _ in range(2)] == [0, 1]


def test_a_callback_that_fails_now_and_then_is_kept() -> None:
    """Only failures in a row count, and what it was called with is over."""
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()

    def shaky(event: Event) -> None:
        heard.put(event.id)
        if event.id % 2:
            raise ValueError(event.id)

    with EventStream() as stream:
        subscription = stream.subscribe("a", shaky, "x", max_failures=2)
        for _ in range(8):
            stream.publish(MessageEvent("hello"))
        assert [heard.get(timeout=WITHIN) for _ in range(8)] == list(range(8))
        assert subscription.active
    assert len(stream.errors) == 4


# -- what is kept in memory --------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 16, 63, 100])
def test_what_is_kept_in_memory_is_the_window_and_little_more(window: int) -> None:
    """Never less than was asked for; a quarter more, or sixteen, so that it is tidied seldom."""
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
    """However small the window is: what it may still ask for stays, up to the last event."""
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


async def test_a_reader_that_is_too_far_behind_keeps_nothing_for_the_others() -> None:
    """Nobody waits for it any more, so memory does not grow with it."""
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


async def test_what_a_late_reader_must_not_miss_is_kept_from_its_place_on() -> None:
    """Its very next event, even if that is the first there was; what it has read is let go."""
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


async def test_a_reader_that_takes_gaps_keeps_nothing() -> None:
    """Only readers that senders wait for are waited for by the memory."""
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


async def test_a_store_is_read_by_the_page() -> None:
    """A conversation of years is not brought into memory for one who reads it from the start."""
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


# -- who waits for whom ------------------------------------------------------------------------


async def test_senders_go_on_as_a_callback_in_a_thread_goes_on() -> None:
    """They are as fast as it is, and no slower."""
    heard: list[int] = []
    stream = EventStream()
    stream.subscribe("a", lambda event: heard.append(event.id), "x", max_pending=2)
    async with asyncio.timeout(4 * WITHIN):
        for _ in range(30):
            await stream.send(MessageEvent("x"))
        await stream.aclose()
    assert heard == list(range(30))


@pytest.mark.parametrize("in_a_loop", [True, False])
def test_a_loop_stands_still_for_a_moment_only(
    in_a_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsubscribing waits for a callback in a thread; a loop has others to serve."""
    short, long = "_LOOP_TIMEOUT", "_CALLBACK_TIMEOUT"
    monkeypatch.setattr(_subscription, short if in_a_loop else long, 0.01)
    monkeypatch.setattr(_subscription, long if in_a_loop else short, FOREVER)
    started, release = threading.Event(), threading.Event()

    def slow(event: Event) -> None:
        started.set()
        release.wait(WITHIN)

    async def within_a_loop() -> None:
        stream.unsubscribe("a", "x")

    stream = EventStream()
    subscription = stream.subscribe("a", slow, "x")
    stream.publish(MessageEvent("hello"))
    assert started.wait(WITHIN)
    if in_a_loop:
        asyncio.run(within_a_loop())
    else:
        stream.unsubscribe("a", "x")
    assert not release.is_set()
    assert not subscription.drained.done()
    release.set()
    subscription.drained.result(WITHIN)
    stream.close(timeout=WITHIN)
