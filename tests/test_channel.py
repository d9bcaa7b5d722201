"""The channel of events and the `listen` block."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agents_tools import listen
from agents_tools.errors import UserError, UserTypeError
from agents_tools.events import (
    ActionEvent,
    Event,
    GapEvent,
    NotifyStreamEvent,
    Origin,
    RawResponseStreamEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    bind,
    channel as _channel,
    wakeup as _wakeup,
)
from agents_tools.events.base import stamp
from agents_tools.events.channel import Channel
from agents_tools.events.listener import Listener, current_listeners
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

CALL = Origin("tool", "call", ("call",))
OTHER = Origin("tool", "other", ("other",))
PATIENT = 60.0
"""A patience that no test sees the end of."""


def note(number: int, origin: Origin = CALL) -> NotifyStreamEvent:
    """Make a display event that tells its number."""
    return stamp(NotifyStreamEvent(str(number)), origin, number)


def delta(text: str, seq: int, origin: Origin = CALL, **payload: Any) -> NotifyStreamEvent:
    """Make a piece of a text."""
    return stamp(NotifyStreamEvent(text, is_delta=True, **payload), origin, seq)


def start(seq: int) -> ToolStreamStartEvent:
    """Make an event that may not be lost."""
    return stamp(ToolStreamStartEvent({}), CALL, seq)


def told(events: Iterable[Event]) -> list[int | str]:
    """Sum events up: notes by their number, gaps as "gap n", others by class."""
    return [
        int(event.data)
        if isinstance(event, NotifyStreamEvent) and not event.is_delta
        else event.data
        if isinstance(event, NotifyStreamEvent)
        else f"gap {event.dropped}"
        if isinstance(event, GapEvent)
        else event.__class__.__name__.removeprefix("Tool").removesuffix("Event")
        for event in events
    ]


async def rest(channel: Channel | Listener) -> list[Event]:
    """Read to the end."""
    async with asyncio.timeout(30):
        return [event async for event in channel]


def pushed(*events: Event, maxsize: int) -> list[Event]:
    """Push events into a channel that nobody reads, and then read it."""
    channel = Channel(maxsize)
    for event in events:
        channel.push(event)
    channel.close()
    return asyncio.run(rest(channel))


@asynccontextmanager
async def started(coroutine: Any) -> AsyncGenerator[asyncio.Task[Any]]:
    """Run something beside the test, and end it with the test."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Start a thread of the test's own."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


# --- delivery -------------------------------------------------------------------------------------


async def test_what_was_pushed_before_close_is_read_after_it() -> None:
    """A call pushes its end and closes at once; the reader may be a moment behind."""
    channel = Channel()
    for number in range(3):
        channel.push(note(number))
    channel.close()
    assert channel.closed
    assert told(await rest(channel)) == [0, 1, 2]
    assert told(await rest(channel)) == []


async def test_after_close_pushes_and_sends_do_nothing() -> None:
    """Late events of abandoned work meet a reader that is gone."""
    channel = Channel(1)
    channel.close()
    channel.close()
    async with asyncio.timeout(30):
        for number in range(3):
            channel.push(note(number))
            channel.push(start(number))
            await channel.send(note(number))
            channel.send_blocking(note(number))
            await channel.wait_for_room()
    assert await rest(channel) == []
    assert channel.dropped == 0


async def test_a_reader_that_waits_gets_each_event_at_once() -> None:
    """Progress is worth something while the work goes on."""
    channel = Channel()
    seen: list[int | str] = []

    async def read() -> None:
        async for event in channel:
            seen.extend(told([event]))

    async with started(read()) as reader:
        await asyncio.sleep(0)
        for number in range(3):
            channel.push(note(number))
            await comes(lambda number=number: len(seen) == number + 1)
        channel.close()
        async with asyncio.timeout(30):
            await reader
    assert seen == [0, 1, 2]


async def test_the_first_event_is_live_though_the_producer_never_waits() -> None:
    """A busy tool must not keep its progress back until it is done."""
    channel = Channel()
    seen_before_the_end: list[int | str] = []
    seen: list[int | str] = []

    async def read() -> None:
        async for event in channel:
            seen.extend(told([event]))

    async def produce() -> None:
        await channel.send(start(0))
        await channel.send(note(1))
        seen_before_the_end.extend(seen)
        channel.close()

    async with started(read()) as reader:
        await asyncio.sleep(0)
        await produce()
        await asyncio.wait_for(reader, 30)
    assert seen_before_the_end[:1] == ["StreamStart"]
    assert seen == ["StreamStart", 1]


async def test_events_stay_live_through_a_long_stretch_without_waiting() -> None:
    """A typewriter of ten thousand letters is read while it types."""
    channel = Channel(patience=PATIENT)
    lag: list[int] = []
    count = 0

    async def read() -> None:
        nonlocal count
        async for _ in channel:
            count += 1

    async with started(read()) as reader:
        for number in range(5_000):
            await channel.send(note(number))
            lag.append(number - count)
        channel.close()
        await asyncio.wait_for(reader, 30)
    assert count == 5_000
    assert max(lag) <= 1024 + 64
    assert channel.dropped == 0


async def test_a_waiting_room_gives_the_reader_its_turn_too() -> None:
    """A producer that waits for room and pushes by itself is as live as one that sends."""
    channel = Channel()
    seen: list[int | str] = []

    async def read() -> None:
        async for event in channel:
            seen.extend(told([event]))

    async with started(read()):
        await asyncio.sleep(0)
        await channel.wait_for_room()
        channel.push(note(1))
        await channel.yield_to_reader()
        assert seen == [1]


async def test_a_writer_is_told_when_to_stop_for_the_reader() -> None:
    """Asking is cheaper than awaiting at each event, and misses neither of the two occasions."""
    channel = Channel(2, patience=PATIENT)
    channel.push(note(0))
    assert channel.should_wait()  # the reader never had a turn
    channel._next_turn = float("inf")  # it just had one
    assert not channel.should_wait()
    channel.push(note(1))
    assert channel.should_wait()  # the channel is full
    assert told([await anext(channel)]) == [0]
    assert not channel.should_wait()


async def test_the_reader_lets_other_tasks_run_in_an_endless_supply() -> None:
    """Threads that never stop talking must not freeze the event loop."""
    channel = Channel(100_000)
    for number in range(50_000):
        channel.push(note(number))
    channel.close()
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with started(tick()):
        assert len(await rest(channel)) == 50_000
    assert turns > 10


async def test_reading_may_pause_and_go_on() -> None:
    """Leaving a loop early loses nothing that another loop may want."""
    channel = Channel()
    for number in range(5):
        channel.push(note(number))
    channel.close()
    async for event in channel:
        assert told([event]) == [0]
        break
    assert told([await anext(channel)]) == [1]
    assert told(await rest(channel)) == [2, 3, 4]


async def test_a_second_reader_is_refused() -> None:
    """Two readers would each see half of the events and never know."""
    channel = Channel()

    async def read() -> None:
        await anext(channel)

    async with started(read()):
        await asyncio.sleep(0)
        with pytest.raises(UserError, match="Two tasks read the same events"):
            await anext(channel)


async def test_a_cancelled_reader_loses_no_event() -> None:
    """A timeout around one read is ordinary; the next read gets what came meanwhile."""
    channel = Channel()
    for wake_first in (True, False):
        task = asyncio.ensure_future(anext(channel))
        await asyncio.sleep(0)
        if wake_first:
            channel.push(note(1))  # the reader is woken and cancelled in one turn of the loop
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        if not wake_first:
            channel.push(note(1))
        async with asyncio.timeout(30):
            assert told([await anext(channel)]) == [1]


def test_a_channel_can_be_read_from_one_loop_after_another() -> None:
    """Synchronous programs run the loop piece by piece."""
    channel = Channel()

    async def read_one(*, cancelled: bool = False) -> list[int | str]:
        if not cancelled:
            channel.push(note(1))
        try:
            async with asyncio.timeout(5 if not cancelled else 0.001):
                return told([await anext(channel)])
        except TimeoutError:
            return []

    assert asyncio.run(read_one()) == [1]
    assert asyncio.run(read_one(cancelled=True)) == []
    assert asyncio.run(read_one()) == [1]


def test_a_loop_that_was_closed_under_a_reader_does_no_harm() -> None:
    """The writer learns nothing of it, and a new reader is welcome."""
    channel = Channel()
    loop = asyncio.new_event_loop()
    reader = channel.__anext__()
    waiting = loop.create_task(_wait(reader))
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))
    waiting._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
    loop.close()
    channel.push(note(1))
    thread = in_thread(lambda: channel.push(note(2)))
    thread.join(5)
    channel.close()
    assert told(asyncio.run(rest(channel))) == [1, 2]
    reader.close()


async def _wait(reader: Any) -> Event:
    return await reader


def test_a_channel_needs_room() -> None:
    """A channel of size nought could deliver nothing."""
    with pytest.raises(UserError, match="maxsize=0"):
        Channel(0)


async def test_an_event_that_comes_as_the_reader_lies_down_is_not_slept_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread may push after the reader found nothing and before it is known to wait."""
    channel = Channel()

    class Late(_wakeup.TaskWaiter):
        def __init__(self) -> None:
            super().__init__()
            channel.push(note(1))

    monkeypatch.setattr(_wakeup, "TaskWaiter", Late)
    async with asyncio.timeout(30):
        assert told([await anext(channel)]) == [1]


# --- threads --------------------------------------------------------------------------------------


async def test_eight_threads_lose_and_reorder_nothing() -> None:
    """Sync tools send from worker threads; what each of them says has an order."""
    channel = Channel(64, patience=PATIENT)

    def produce(producer: int) -> None:
        origin = Origin("tool", f"call{producer}", (f"call{producer}",))
        for number in range(2_000):
            channel.send_blocking(note(number, origin))

    with ThreadPoolExecutor(8) as pool:
        work = asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(pool, produce, n) for n in range(8))
        )
        work.add_done_callback(lambda _: channel.close())
        async with asyncio.timeout(15):
            heard = [event async for event in channel]
            await work
    assert channel.dropped == 0
    for producer in range(8):
        assert told(e for e in heard if e.tool_call_id == f"call{producer}") == list(range(2_000))


async def test_pushes_from_threads_add_up_whatever_is_dropped() -> None:
    """Delivered and missing events are all that there were, and lifecycle events are never missing.

    The threads push as fast as they can into a small channel, so most of it overflows.
    """
    channel = Channel(32)

    def produce(producer: int) -> None:
        origin = Origin("tool", f"call{producer}", (f"call{producer}",))
        for number in range(2_000):
            channel.push(
                stamp(ToolAttemptEvent(number), origin, number)
                if number % 20 == 0
                else note(number, origin)
            )

    with ThreadPoolExecutor(8) as pool:
        work = asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(pool, produce, n) for n in range(8))
        )
        work.add_done_callback(lambda _: channel.close())
        async with asyncio.timeout(15):
            heard = [event async for event in channel]
            await work
    missing = sum(event.dropped for event in heard if isinstance(event, GapEvent))
    assert missing == channel.dropped
    assert len([event for event in heard if event.origin is not None]) + missing == 16_000
    for producer in range(8):
        own = [event for event in heard if event.tool_call_id == f"call{producer}"]
        assert [event.seq for event in own] == sorted({event.seq for event in own})
        attempts = [event.attempt for event in own if isinstance(event, ToolAttemptEvent)]
        assert attempts == list(range(0, 2_000, 20))


async def test_a_reader_is_woken_from_another_thread() -> None:
    """A worker thread has no loop of its own to do it with."""
    channel = Channel()
    async with asyncio.timeout(30):
        for number in range(200):
            waiting = asyncio.ensure_future(anext(channel))
            await asyncio.sleep(0)
            thread = in_thread(lambda number=number: channel.push(note(number)))
            assert told([await waiting]) == [number]
            thread.join(5)


async def test_senders_on_another_loop_are_served() -> None:
    """A tool may run on a loop of its own, in a thread of its own."""
    channel = Channel(4, patience=PATIENT)

    async def produce() -> None:
        for number in range(500):
            await channel.send(note(number))

    def run() -> None:
        asyncio.run(produce())
        channel.close()

    thread = in_thread(run)
    assert told(await rest(channel)) == list(range(500))
    thread.join(5)


# --- waiting for room -----------------------------------------------------------------------------


async def test_send_waits_while_the_channel_is_full() -> None:
    """A yielded event waits for a slow reader, so that nothing of it is lost."""
    channel = Channel(2, patience=PATIENT)

    async def produce() -> None:
        for number in range(10):
            await channel.send(note(number))
        channel.close()

    async with started(produce()) as producer:
        await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not producer.done()
        assert told(await rest(channel)) == list(range(10))
        await asyncio.wait_for(producer, 30)
    assert channel.dropped == 0


async def test_more_senders_than_room_are_all_served() -> None:
    """Parallel tools share the channel of their run."""
    channel = Channel(3, patience=PATIENT)

    async def produce(number: int) -> None:
        await channel.send(note(number))

    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(produce(number))
        heard: list[Event] = []
        async with asyncio.timeout(30):
            while len(heard) < 200:
                heard.append(await anext(channel))
    assert sorted(map(int, told(heard))) == list(range(200))


async def test_close_releases_everybody_who_waits() -> None:
    """The reader left: tools end their work instead of waiting for it."""
    channel = Channel(1, patience=PATIENT)
    channel.push(note(0))
    thread = in_thread(lambda: channel.send_blocking(note(1)))
    senders = [asyncio.create_task(channel.send(note(number))) for number in range(2, 5)]
    await comes(lambda: len(channel._senders) == 4)
    channel.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*senders)
    thread.join(5)
    assert not thread.is_alive()
    assert told(await rest(channel)) == [0]


async def test_close_releases_a_waiting_reader() -> None:
    """The end of a run is the end of its stream."""
    channel = Channel()
    reading = asyncio.create_task(rest(channel))
    await asyncio.sleep(0)
    in_thread(channel.close).join(5)
    assert await asyncio.wait_for(reading, 30) == []


async def test_a_sender_waits_no_longer_than_its_patience() -> None:
    """A reader that stopped reading must not stop the tool."""
    channel = Channel(4, patience=0.01)
    async with asyncio.timeout(30):
        for number in range(100):
            await channel.send(note(number))
    await asyncio.to_thread(channel.send_blocking, note(100))
    channel.close()
    assert told(await rest(channel)) == ["gap 97", 97, 98, 99, 100]


async def test_only_the_first_sender_pays_for_a_stalled_reader() -> None:
    """Waiting at each event anew would make the tool slower by days."""
    channel = Channel(4, patience=0.05)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for number in range(200):
        await channel.send(note(number))
    await asyncio.to_thread(channel.send_blocking, note(200))
    assert loop.time() - begin < 2  # at 0.05 s each it would be ten


async def test_a_reader_that_comes_back_is_waited_for_again() -> None:
    """Losing events is for readers that are gone, not for one that was busy for a while."""
    channel = Channel(2, patience=0.01)
    for number in range(5):
        await channel.send(note(number))
    assert told([await anext(channel)]) == ["gap 3"]
    assert channel.dropped == 3
    channel._patience = PATIENT
    async with started(_send_all(channel, range(5, 50))) as producer:
        assert told(await rest(channel)) == [3, 4, *range(5, 50)]
        await asyncio.wait_for(producer, 30)
    assert channel.dropped == 3


async def _send_all(channel: Channel, numbers: Iterable[int]) -> None:
    for number in numbers:
        await channel.send(note(number))
    channel.close()


async def test_a_slow_reader_that_reads_is_not_given_up() -> None:
    """Patience counts from the last event taken, though the reader holds a handful already."""
    channel = Channel(4, patience=PATIENT)
    heard: list[Event] = []
    async with started(_send_all(channel, range(12))) as producer:
        heard.append(await anext(await _filled(channel)))
        for _ in range(3):
            await comes(lambda: len(channel._senders) == 1)
            waiting = channel._senders[0]
            heard.append(await anext(channel))  # from the hand: the queue is as full as before
            assert isinstance(waiting, _wakeup.TaskWaiter)
            waiting._time_out()  # what the timer does when patience ends
            await comes(lambda waiting=waiting: waiting not in channel._senders)
        heard += await rest(channel)
        await asyncio.wait_for(producer, 30)
    assert told(heard) == list(range(12))
    assert channel.dropped == 0


async def _filled(channel: Channel) -> Channel:
    """Wait until a sender waits for room."""
    await comes(lambda: len(channel._senders) == 1)
    return channel


async def test_a_cancelled_sender_says_nothing_and_passes_its_turn_on() -> None:
    """Cancelling one tool must not leave another waiting beside an empty queue."""
    channel = Channel(1, patience=PATIENT)
    channel.push(note(0))
    senders = [asyncio.create_task(channel.send(note(number))) for number in range(1, 4)]
    await comes(lambda: len(channel._senders) == 3)
    senders[1].cancel()  # waits in line
    await comes(lambda: len(channel._senders) == 2)
    assert told([await anext(channel)]) == [0]  # this wakes the first …
    senders[0].cancel()  # … which cannot use it any more
    async with asyncio.timeout(30):
        assert told([await anext(channel)]) == [3]
        await asyncio.wait(senders)
    assert [sender.cancelled() for sender in senders] == [True, True, False]
    channel.close()
    assert await rest(channel) == []


async def test_a_sender_whose_loop_was_closed_does_not_hold_up_the_line() -> None:
    """Loops in threads come and go; the turn of a dead one goes to the next."""
    channel = Channel(1, patience=PATIENT)
    channel.push(note(0))
    loop = asyncio.new_event_loop()

    def begin() -> None:
        task = loop.create_task(channel.send(note(1)))
        task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    await asyncio.to_thread(begin)
    async with started(channel.send(note(2))):
        await comes(lambda: len(channel._senders) == 2)
        async with asyncio.timeout(30):
            assert told([await anext(channel), await anext(channel)]) == [0, 2]


async def test_a_thread_that_runs_a_loop_is_never_blocked() -> None:
    """Waiting there for the reader on that same loop would wait for ever."""
    channel = Channel(2, patience=PATIENT)
    for number in range(5):
        channel.send_blocking(note(number))
    channel.close()
    assert told(await rest(channel)) == ["gap 3", 3, 4]


# --- a full channel -------------------------------------------------------------------------------


def test_the_oldest_display_events_give_way_to_one_gap() -> None:
    """A viewer that comes back sees the present, and how much it missed."""
    assert told(pushed(*map(note, range(10)), maxsize=4)) == ["gap 6", 6, 7, 8, 9]


def test_gaps_stand_where_events_are_missing() -> None:
    """Around lifecycle events, each hole is marked in its own place."""
    events = [note(0), start(1), note(2), note(3), start(4), note(5), note(6), note(7)]
    assert told(pushed(*events, maxsize=4)) == [
        "gap 1",
        "StreamStart",
        "gap 2",
        "StreamStart",
        "gap 1",
        6,
        7,
    ]


def test_a_gap_has_the_place_of_what_is_missing() -> None:
    """The numbers of a stream increase, with gaps as without."""
    heard = pushed(*map(note, range(10)), maxsize=4)
    assert [event.seq for event in heard] == [5, 6, 7, 8, 9]
    assert heard[0].timestamp > 0


def test_lifecycle_and_durable_events_always_find_room() -> None:
    """Without its end a call would run for ever in every user interface."""
    kept: list[Event] = [
        stamp(event, CALL, seq)
        for seq, event in enumerate(
            [
                ToolStreamStartEvent({}),
                ToolAttemptEvent(1),
                ActionEvent("K", {}),
                ToolStreamEndEvent("ok"),
            ]
            * 5
        )
    ]
    assert pushed(*kept, maxsize=2) == kept


def test_where_only_lifecycle_events_wait_new_display_events_are_left_out() -> None:
    """Memory is bounded even when nothing that waits may be dropped."""
    events = [start(seq) for seq in range(4)]
    heard = pushed(*events, *map(note, range(4, 1_000)), start(1_000), note(1_001), maxsize=4)
    assert told(heard) == [*["StreamStart"] * 4, "gap 996", "StreamStart", "gap 1"]
    assert [event.seq for event in heard] == [0, 1, 2, 3, 999, 1_000, 1_001]


async def test_a_channel_that_was_emptied_is_as_good_as_new() -> None:
    """What happened while it was full does not follow it."""
    channel = Channel(4)
    for event in [*map(start, range(6)), *map(note, range(6, 20))]:
        channel.push(event)
    assert told([await anext(channel) for _ in range(7)])[-1] == "gap 14"
    for number in range(20, 25):
        channel.push(note(number))
    assert told([await anext(channel) for _ in range(5)]) == ["gap 1", 21, 22, 23, 24]
    for number in range(25, 30):
        channel.push(note(number))
    channel.close()
    assert told(await rest(channel)) == ["gap 1", 26, 27, 28, 29]


def test_what_is_said_while_room_is_made_stays_behind_what_was_said_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other threads do not wait for that, and neither does a finalizer in the same thread."""
    channel = Channel(2)
    squeezed = _channel.shorten_queue
    late = [start(seq) for seq in range(10, 14)]

    def interrupted(events: list[Event], size: int) -> tuple[list[Event], int]:
        while late:
            channel.push(late.pop(0))
        return squeezed(events, size)

    monkeypatch.setattr(_channel, "shorten_queue", interrupted)
    for number in range(3):
        channel.push(note(number))
    channel.close()
    heard = asyncio.run(rest(channel))
    assert [event.seq for event in heard if event.seq != 2] == [0, 1, 10, 11, 12, 13]


def test_adjacent_deltas_of_a_call_are_merged_before_anything_is_dropped() -> None:
    """Text arrives whole, in larger pieces."""
    texts = [chr(ord("a") + number % 26) for number in range(100)]
    pieces = [delta(text, seq) for seq, text in enumerate(texts)]
    heard = pushed(*pieces, maxsize=10)
    assert len(heard) <= 10
    assert "".join(map(str, told(heard))) == "".join(texts)
    assert [event.seq for event in heard] == sorted({event.seq for event in heard})


def test_deltas_are_merged_only_with_their_own() -> None:
    """Two typewriters, a tag, a level, or a line in between: each would be garbled by a merge."""
    events = [
        delta("a", 0),
        delta("b", 1, OTHER),
        delta("c", 2),
        delta("d", 3, tag="t"),
        delta("e", 4, tag="t", level="debug"),
        stamp(RawResponseStreamEvent("x"), CALL, 5),
        delta("f", 6, tag="t", level="debug"),
        start(7),
    ]
    heard = pushed(*events, note(8), maxsize=8)
    assert told(heard) == [
        "ac",
        "b",
        "d",
        "e",
        "RawResponseStream",
        "f",
        "StreamStart",
        8,
    ]


def test_merged_deltas_stay_short() -> None:
    """A stalled reader and an endless typewriter must not fill the memory."""
    heard = pushed(*(delta("x" * 1000, seq) for seq in range(100)), maxsize=8)
    notes = [event for event in heard if isinstance(event, NotifyStreamEvent)]
    assert max(len(event.data) for event in notes) <= 4096
    missing = sum(event.dropped for event in heard if isinstance(event, GapEvent))
    assert missing
    assert len(heard) <= 9


def test_deltas_are_not_merged_over_the_gap_of_an_inner_channel() -> None:
    """A run forwards what it hears of an inner one, holes included."""
    gap = GapEvent(2).replace(seq=1)
    heard = pushed(delta("a", 0), gap, delta("b", 2), note(3), start(4), note(5), maxsize=4)
    assert told(heard) == ["gap 3", "b", 3, "StreamStart", 5]
    heard = pushed(delta("a", 0), gap, *(delta("b", seq) for seq in range(2, 9)), maxsize=4)
    assert told(heard)[:2] == ["a", "gap 2"]
    assert "".join(map(str, told(heard)[2:])) == "bbbbbbb"


def test_the_latest_progress_of_a_call_stands_for_the_earlier_ones() -> None:
    """A bar that jumps is right; one that stops early is wrong. Nothing is missing then."""
    steps = [stamp(ToolProgressEvent(n, 50), (CALL, OTHER)[n % 2], n) for n in range(50)]
    channel = Channel(4)
    for step in steps:
        channel.push(step)
    channel.close()
    heard = asyncio.run(rest(channel))
    assert heard[-2:] == steps[-2:]
    assert channel.dropped == 0


def test_artifacts_are_dropped_last() -> None:
    """A file is worth more than a line about it."""
    events = [stamp(ToolArtifactEvent("a", "x"), CALL, 0), *map(note, range(1, 10))]
    assert told(pushed(*events, maxsize=4)) == ["Artifact", "gap 6", 7, 8, 9]
    files = [stamp(ToolArtifactEvent(str(seq), "x"), CALL, seq) for seq in range(10)]
    assert pushed(*files, maxsize=4)[1:] == files[6:]


def test_events_without_an_origin_are_not_taken_for_one_call() -> None:
    """Nobody knows whose they are, so nothing is merged."""
    events = [NotifyStreamEvent(text, is_delta=True) for text in "abcde"]
    assert told(pushed(*events, maxsize=3)) == ["gap 2", "c", "d", "e"]


def test_a_channel_of_its_full_size_keeps_most_of_what_it_can() -> None:
    """Making room for several events at once is cheap, and must not throw much away."""
    heard = pushed(*map(note, range(5_000)), maxsize=1024)
    assert isinstance(heard[0], GapEvent)
    assert told(heard[1:]) == list(range(heard[0].dropped, 5_000))
    assert 1024 - 128 <= len(heard) <= 1024 + 1


@given(
    st.integers(1, 12),
    st.lists(st.sampled_from(["note", "delta", "progress", "start", "artifact", "read"])),
)
async def test_whatever_comes_the_books_balance(maxsize: int, kinds: list[str]) -> None:
    """Nothing is delivered twice or out of order, and each missing event is accounted for."""
    channel = Channel(maxsize)
    heard: list[Event] = []
    kept: list[int] = []
    letters = 0
    for seq, kind in enumerate(kinds):
        match kind:
            case "note":
                channel.push(note(seq))
            case "delta":
                channel.push(delta("x", seq))
                letters += 1
            case "progress":
                channel.push(stamp(ToolProgressEvent(seq), CALL, seq))
            case "artifact":
                channel.push(stamp(ToolArtifactEvent("a"), CALL, seq))
            case "start":
                channel.push(start(seq))
                kept.append(seq)
            case _ if channel._queue or channel._batch:
                heard.append(await anext(channel))
            case _:
                pass
    channel.close()
    heard += await rest(channel)
    seqs = [event.seq for event in heard]
    assert seqs == sorted(set(seqs))
    assert [event.seq for event in heard if isinstance(event, ToolStreamStartEvent)] == kept
    missing = sum(event.dropped for event in heard if isinstance(event, GapEvent))
    assert missing == channel.dropped
    notes = [event for event in heard if isinstance(event, NotifyStreamEvent)]
    assert sum(len(event.data) for event in notes if event.is_delta) <= letters
    if not missing:
        assert len([event for event in notes if not event.is_delta]) == kinds.count("note")
        assert sum(len(event.data) for event in notes if event.is_delta) == letters


def test_a_finalizer_may_speak_while_room_is_made() -> None:
    """The collector runs anywhere, inside the channel's own lock too; that must not deadlock."""
    channel = Channel(2)

    class Speaker:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            channel.push(start(99))

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(200):
            Speaker()
            channel.push(note(number))
    finally:
        gc.set_threshold(*threshold)
        gc.collect()
    channel.close()
    heard = told(asyncio.run(rest(channel)))
    assert heard.count("StreamStart") == 200


# --- listening ------------------------------------------------------------------------------------


def say(number: int) -> None:
    """Speak as a tool does."""
    for emit in current_listeners():
        emit(note(number))


def test_nobody_listens_by_default() -> None:
    """Tools look at this to save the work of making events."""
    assert current_listeners() == ()
    with listen():
        assert len(current_listeners()) == 1
    assert current_listeners() == ()


def test_a_block_collects_what_is_said_inside_it() -> None:
    """Whatever framework runs a tool, its events can be had."""
    say(1)
    with listen() as heard:
        say(2)
        say(3)
    say(4)
    assert told(heard) == told(heard.events) == [2, 3]
    heard.events.clear()
    assert told(heard) == [2, 3]


async def test_events_can_be_read_live_and_again_afterwards() -> None:
    """A monitor watches inside the block, a test looks after it."""
    async with listen() as heard, started(_say_all([1, 2, 3])):
        async with asyncio.timeout(30):
            assert told([await anext(heard), await anext(heard)]) == [1, 2]
        await comes(lambda: len(heard.events) == 3)
    assert told(await rest(heard)) == [3]
    assert told(heard) == [1, 2, 3]


async def _say_all(numbers: Iterable[int]) -> None:
    for number in numbers:
        say(number)
        await asyncio.sleep(0)


async def test_leaving_the_block_ends_a_live_reader() -> None:
    """A reader in a task of its own is not left waiting."""
    async with listen() as heard:
        reading = asyncio.create_task(rest(heard))
        await asyncio.sleep(0)
        say(1)
    assert told(await asyncio.wait_for(reading, 30)) == [1]


async def test_only_what_begins_inside_the_block_is_heard() -> None:
    """Two requests in one process must not hear each other."""
    proceed = asyncio.Event()

    async def speak(number: int) -> None:
        await proceed.wait()
        say(number)

    async with asyncio.TaskGroup() as group:
        group.create_task(speak(1))
        with listen() as heard:
            inside = group.create_task(speak(2))
            proceed.set()
            await inside
            await asyncio.to_thread(say, 3)
            in_thread(lambda: say(4)).join(5)
            in_thread(bind(lambda: say(5))).join(5)
    assert told(heard) == [2, 3, 5]


def test_all_hears_the_whole_process() -> None:
    """A monitor of a server has no request of its own."""
    with listen(all=True) as heard:
        in_thread(lambda: say(1)).join(5)
        say(2)
    say(3)
    assert told(heard) == [1, 2]


def test_blocks_nest() -> None:
    """A test may listen inside an application that listens."""
    with listen() as outer:
        with listen(all=True) as everything, listen() as inner:
            say(1)
        say(2)
    assert (told(outer), told(everything), told(inner)) == ([1, 2], [1], [1])


async def test_what_still_runs_after_the_block_is_not_heard() -> None:
    """Nobody reads it, and it would pile up."""
    proceed = asyncio.Event()

    async def speak() -> None:
        await proceed.wait()
        say(1)

    with listen() as heard:
        late = asyncio.create_task(speak())
        await asyncio.sleep(0)
    proceed.set()
    await late
    assert told(heard) == []


def test_a_block_can_be_left_in_another_context() -> None:
    """Fixtures of test frameworks enter and leave in contexts of their own."""
    listener = listen()
    bind(listener.__enter__)()
    listener.__exit__(None, None, None)
    assert current_listeners() == ()


def test_a_listener_serves_one_block() -> None:
    """Entered twice, it would hear everything twice."""
    with listen() as heard:
        pass
    with pytest.raises(UserError, match="used twice"):
        heard.__enter__()
    with pytest.raises(UserError, match="maxsize=0"):
        listen(maxsize=0)


async def test_a_listener_is_bounded_too() -> None:
    """A monitor that runs for weeks keeps the latest, and its reader goes on where it was."""
    with listen(maxsize=10) as heard:
        for number in range(8):
            say(number)
        assert told([await anext(heard) for _ in range(4)]) == [0, 1, 2, 3]
        for number in range(8, 12):
            say(number)
        assert told(heard) == ["gap 2", *range(2, 12)]
    assert told(await rest(heard)) == list(range(4, 12))
    with listen(maxsize=10) as heard:
        for number in range(100):
            say(number)
    assert told(await rest(heard)) == told(heard) == ["gap 90", *range(90, 100)]


async def test_the_reader_of_a_listener_lets_other_tasks_run() -> None:
    """A monitor that is behind catches up beside its application, not in its stead."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    with listen() as heard:
        for number in range(20_000):
            say(number)
    async with started(tick()):
        assert len(await rest(heard)) == 20_000
    assert turns > 10


async def test_a_listener_has_one_reader() -> None:
    """Two would each get half."""
    with listen() as heard:

        async def read() -> None:
            await anext(heard)

        async with started(read()):
            await asyncio.sleep(0)
            with pytest.raises(UserError, match="Two tasks read the same events"):
                await anext(heard)


def test_bound_functions_can_be_called_at_the_same_time() -> None:
    """Each call has a copy of the context: entering one context twice is an error of Python's."""

    def nested(depth: int) -> str:
        return "done" if depth == 0 else bound(depth - 1)

    bound = bind(nested)
    assert bound(3) == "done"
    assert bound.__name__ == "nested"
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(bound, [2] * 20)) == ["done"] * 20


def test_binding_an_async_function_is_refused_with_the_remedy() -> None:
    """It would run in the context of whoever awaits it, and the binding would do nothing."""

    async def work() -> None: ...

    with pytest.raises(UserTypeError, match=r"bind\(work\).*create_task"):
        bind(work)
