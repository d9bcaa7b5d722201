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
from agents_tools.concurrency.future import PendingFuture
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
    single_reader,
)
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
    """Create a display event with a number as its text."""
    return NotifyStreamEvent(str(number)).stamped(origin, number)


def delta(text: str, seq: int, origin: Origin = CALL, **payload: Any) -> NotifyStreamEvent:
    """Create a text delta."""
    return NotifyStreamEvent(text, is_delta=True, **payload).stamped(origin, seq)


def start(seq: int) -> ToolStreamStartEvent:
    """Create a lifecycle event, which must not be dropped."""
    return ToolStreamStartEvent({}).stamped(CALL, seq)


def summarize(events: Iterable[Event]) -> list[int | str]:
    """Summarize events: notes by their number, gaps as "gap n", others by class."""
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


async def send(channel: Channel, event: Event) -> None:
    """Wait for room, and deliver an event, as a tool on a backend does."""
    if channel.should_wait():
        await channel.wait_for_room()
    channel.push(event)


def send_blocking(channel: Channel, event: Event) -> None:
    """Wait for room, and deliver an event, as a tool in a worker thread does."""
    channel.wait_for_room_blocking()
    channel.push(event)


async def read_to_end(channel: Channel | Listener) -> list[Event]:
    """Read until the channel is closed."""
    async with asyncio.timeout(30):
        return [event async for event in channel]


def pushed(*events: Event, maxsize: int) -> list[Event]:
    """Push events into a channel without a reader, close it, and read it."""
    channel = Channel(maxsize)
    for event in events:
        channel.push(event)
    channel.close()
    return asyncio.run(read_to_end(channel))


@asynccontextmanager
async def started(coroutine: Any) -> AsyncGenerator[asyncio.Task[Any]]:
    """Run a coroutine as a task during the test, and cancel it afterwards."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def start_thread(work: Callable[[], object]) -> threading.Thread:
    """Start a daemon thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


# --- delivery -------------------------------------------------------------------------------------


async def test_events_pushed_before_close_can_be_read_after_it() -> None:
    """A call pushes its end event and closes at once; the reader can be slightly behind."""
    channel = Channel()
    for number in range(3):
        channel.push(note(number))
    channel.close()
    assert channel.closed
    assert summarize(await read_to_end(channel)) == [0, 1, 2]
    assert summarize(await read_to_end(channel)) == []


async def test_after_close_pushes_and_sends_do_nothing() -> None:
    """Abandoned work can still emit events after its reader has left."""
    channel = Channel(1)
    channel.close()
    channel.close()
    async with asyncio.timeout(30):
        for number in range(3):
            channel.push(note(number))
            channel.push(start(number))
            await send(channel, note(number))
            send_blocking(channel, note(number))
            await channel.wait_for_room()
    assert await read_to_end(channel) == []
    assert channel.dropped == 0


async def test_a_waiting_reader_gets_each_event_immediately() -> None:
    """Progress is only useful while the work runs."""
    channel = Channel()
    seen: list[int | str] = []

    async def read() -> None:
        async for event in channel:
            seen.extend(summarize([event]))

    async with started(read()) as reader:
        await asyncio.sleep(0)
        for number in range(3):
            channel.push(note(number))
            await comes(lambda number=number: len(seen) == number + 1)
        channel.close()
        async with asyncio.timeout(30):
            await reader
    assert seen == [0, 1, 2]


async def test_the_first_event_is_delivered_live_though_the_producer_never_awaits() -> None:
    """A busy tool must not delay its progress until it ends."""
    channel = Channel()
    seen_before_the_end: list[int | str] = []
    seen: list[int | str] = []

    async def read() -> None:
        async for event in channel:
            seen.extend(summarize([event]))

    async def produce() -> None:
        for event in (start(0), note(1)):
            channel.push(event)
            if channel.should_wait():
                await channel.wait_for_room()
        seen_before_the_end.extend(seen)
        channel.close()

    async with started(read()) as reader:
        await asyncio.sleep(0)
        await produce()
        await asyncio.wait_for(reader, 30)
    assert seen_before_the_end[:1] == ["StreamStart"]
    assert seen == ["StreamStart", 1]


async def test_events_stay_live_while_the_producer_does_not_await() -> None:
    """The first of ten thousand deltas is read while the others are produced."""
    channel = Channel(patience=PATIENT)
    lag: list[int] = []
    count = 0

    async def read() -> None:
        nonlocal count
        async for _ in channel:
            count += 1

    async with started(read()) as reader:
        for number in range(5_000):
            await send(channel, note(number))
            lag.append(number - count)
        channel.close()
        await asyncio.wait_for(reader, 30)
    assert count == 5_000
    assert max(lag) <= 1024 + 64
    assert channel.dropped == 0


async def test_waiting_for_room_lets_the_reader_run_too() -> None:
    """A producer without another `await` is seen live."""
    channel = Channel()
    seen: list[int | str] = []

    async def read() -> None:
        async for event in channel:
            seen.extend(summarize([event]))

    async with started(read()):
        await asyncio.sleep(0)
        channel.push(note(1))
        await channel.wait_for_room()
        assert seen == [1]


async def test_should_wait_is_true_when_the_reader_needs_a_turn_or_room() -> None:
    """Checking it is cheaper than awaiting each event."""
    channel = Channel(2, patience=PATIENT)
    channel.push(note(0))
    assert channel.should_wait()  # the reader has not run yet
    channel._next_turn = float("inf")  # the reader has just run
    assert not channel.should_wait()
    channel.push(note(1))
    assert channel.should_wait()  # the channel is full
    assert summarize([await anext(channel)]) == [0]
    assert not channel.should_wait()


async def test_the_reader_lets_other_tasks_run_under_constant_load() -> None:
    """Threads that emit constantly must not freeze the event loop."""
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
        assert len(await read_to_end(channel)) == 50_000
    assert turns > 10


async def test_reading_can_pause_and_resume() -> None:
    """Leaving a loop early loses no event."""
    channel = Channel()
    for number in range(5):
        channel.push(note(number))
    channel.close()
    async for event in channel:
        assert summarize([event]) == [0]
        break
    assert summarize([await anext(channel)]) == [1]
    assert summarize(await read_to_end(channel)) == [2, 3, 4]


async def test_a_second_reader_is_refused() -> None:
    """Two concurrent readers would each get only half of the events."""
    channel = Channel()

    async def read() -> None:
        await anext(channel)

    async with started(read()):
        await asyncio.sleep(0)
        with pytest.raises(UserError, match="Two tasks read the same events"):
            await anext(channel)


async def test_a_cancelled_reader_loses_no_event() -> None:
    """A timeout around one read is common; the next read gets the events that arrived meanwhile."""
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
            assert summarize([await anext(channel)]) == [1]


def test_a_channel_can_be_read_from_several_loops_in_turn() -> None:
    """Synchronous programs run one loop after the other."""
    channel = Channel()

    async def read_one(*, cancelled: bool = False) -> list[int | str]:
        if not cancelled:
            channel.push(note(1))
        try:
            async with asyncio.timeout(5 if not cancelled else 0.001):
                return summarize([await anext(channel)])
        except TimeoutError:
            return []

    assert asyncio.run(read_one()) == [1]
    assert asyncio.run(read_one(cancelled=True)) == []
    assert asyncio.run(read_one()) == [1]


def test_closing_the_loop_of_a_waiting_reader_does_no_harm() -> None:
    """The producer gets no error, and another reader can start."""
    channel = Channel()
    loop = asyncio.new_event_loop()
    reader = channel.__anext__()
    waiting = loop.create_task(_wait(reader))
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))
    waiting._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
    loop.close()
    channel.push(note(1))
    thread = start_thread(lambda: channel.push(note(2)))
    thread.join(5)
    channel.close()
    assert summarize(asyncio.run(read_to_end(channel))) == [1, 2]
    reader.close()


async def _wait(reader: Any) -> Event:
    return await reader


def test_the_size_of_a_channel_must_be_positive() -> None:
    with pytest.raises(UserError, match="maxsize=0"):
        Channel(0)


async def test_an_event_pushed_while_the_reader_starts_to_wait_wakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread can push after the reader found nothing and before it is registered as waiting."""
    channel = Channel()

    class Late(PendingFuture[None]):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            channel.push(note(1))

    monkeypatch.setattr(single_reader, "PendingFuture", Late)
    async with asyncio.timeout(30):
        assert summarize([await anext(channel)]) == [1]


# --- threads --------------------------------------------------------------------------------------


async def test_eight_threads_lose_and_reorder_nothing() -> None:
    """Sync tools send from worker threads; the events of each thread stay in order."""
    channel = Channel(64, patience=PATIENT)

    def produce(producer: int) -> None:
        origin = Origin("tool", f"call{producer}", (f"call{producer}",))
        for number in range(2_000):
            send_blocking(channel, note(number, origin))

    with ThreadPoolExecutor(8) as pool:
        work = asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(pool, produce, n) for n in range(8))
        )
        work.add_done_callback(lambda _: channel.close())
        async with asyncio.timeout(15):
            received = [event async for event in channel]
            await work
    assert channel.dropped == 0
    for producer in range(8):
        assert summarize(e for e in received if e.tool_call_id == f"call{producer}") == list(
            range(2_000)
        )


async def test_delivered_and_dropped_events_from_threads_add_up() -> None:
    """Lifecycle events are never dropped.

    The threads push as fast as they can into a small channel, so most of it overflows.
    """
    channel = Channel(32)

    def produce(producer: int) -> None:
        origin = Origin("tool", f"call{producer}", (f"call{producer}",))
        for number in range(2_000):
            channel.push(
                ToolAttemptEvent(number).stamped(origin, number)
                if number % 20 == 0
                else note(number, origin)
            )

    with ThreadPoolExecutor(8) as pool:
        work = asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(pool, produce, n) for n in range(8))
        )
        work.add_done_callback(lambda _: channel.close())
        async with asyncio.timeout(15):
            received = [event async for event in channel]
            await work
    missing = sum(event.dropped for event in received if isinstance(event, GapEvent))
    assert missing == channel.dropped
    assert len([event for event in received if event.origin is not None]) + missing == 16_000
    for producer in range(8):
        own = [event for event in received if event.tool_call_id == f"call{producer}"]
        assert [event.seq for event in own] == sorted({event.seq for event in own})
        attempts = [event.attempt for event in own if isinstance(event, ToolAttemptEvent)]
        assert attempts == list(range(0, 2_000, 20))


async def test_a_reader_is_woken_from_another_thread() -> None:
    """A worker thread has no event loop."""
    channel = Channel()
    async with asyncio.timeout(30):
        for number in range(200):
            waiting = asyncio.ensure_future(anext(channel))
            await asyncio.sleep(0)
            thread = start_thread(lambda number=number: channel.push(note(number)))
            assert summarize([await waiting]) == [number]
            thread.join(5)


async def test_senders_on_another_loop_are_served() -> None:
    """A tool can run on a loop in its own thread."""
    channel = Channel(4, patience=PATIENT)

    async def produce() -> None:
        for number in range(500):
            await send(channel, note(number))

    def run() -> None:
        asyncio.run(produce())
        channel.close()

    thread = start_thread(run)
    assert summarize(await read_to_end(channel)) == list(range(500))
    thread.join(5)


# --- waiting for room -----------------------------------------------------------------------------


async def test_send_waits_while_the_channel_is_full() -> None:
    """A yielded event waits for a slow reader, so that it is not lost."""
    channel = Channel(2, patience=PATIENT)

    async def produce() -> None:
        for number in range(10):
            await send(channel, note(number))
        channel.close()

    async with started(produce()) as producer:
        await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not producer.done()
        assert summarize(await read_to_end(channel)) == list(range(10))
        await asyncio.wait_for(producer, 30)
    assert channel.dropped == 0


async def test_more_senders_than_room_are_all_served() -> None:
    """Parallel tools share the channel of their run."""
    channel = Channel(3, patience=PATIENT)

    async def produce(number: int) -> None:
        await send(channel, note(number))

    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(produce(number))
        received: list[Event] = []
        async with asyncio.timeout(30):
            while len(received) < 200:
                received.append(await anext(channel))
    assert sorted(map(int, summarize(received))) == list(range(200))


async def test_close_releases_all_waiting_senders() -> None:
    """Tools finish instead of waiting for a reader that has left."""
    channel = Channel(1, patience=PATIENT)
    channel.push(note(0))
    thread = start_thread(lambda: send_blocking(channel, note(1)))
    senders = [asyncio.create_task(send(channel, note(number))) for number in range(2, 5)]
    await comes(lambda: len(channel._senders) == 4)
    channel.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*senders)
    thread.join(5)
    assert not thread.is_alive()
    assert summarize(await read_to_end(channel)) == [0]


async def test_close_releases_a_waiting_reader() -> None:
    """The end of a run is the end of its stream."""
    channel = Channel()
    reading = asyncio.create_task(read_to_end(channel))
    await asyncio.sleep(0)
    start_thread(channel.close).join(5)
    assert await asyncio.wait_for(reading, 30) == []


async def test_a_sender_waits_no_longer_than_the_patience_setting() -> None:
    """A reader that stopped reading must not block the tool."""
    channel = Channel(4, patience=0.01)
    async with asyncio.timeout(30):
        for number in range(100):
            await send(channel, note(number))
    await asyncio.to_thread(send_blocking, channel, note(100))
    channel.close()
    assert summarize(await read_to_end(channel)) == ["gap 97", 97, 98, 99, 100]


async def test_only_the_first_send_waits_for_a_stalled_reader() -> None:
    """Waiting again at each event would slow the tool down without a limit."""
    channel = Channel(4, patience=0.05)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for number in range(200):
        await send(channel, note(number))
    await asyncio.to_thread(send_blocking, channel, note(200))
    assert loop.time() - begin < 2  # at 0.05 s each it would be ten


async def test_senders_wait_again_for_a_reader_that_resumes() -> None:
    """Only events for stalled readers are dropped, not for one that was briefly busy."""
    channel = Channel(2, patience=0.01)
    for number in range(5):
        await send(channel, note(number))
    assert summarize([await anext(channel)]) == ["gap 3"]
    assert channel.dropped == 3
    channel._patience = PATIENT
    async with started(_send_all(channel, range(5, 50))) as producer:
        assert summarize(await read_to_end(channel)) == [3, 4, *range(5, 50)]
        await asyncio.wait_for(producer, 30)
    assert channel.dropped == 3


async def _send_all(channel: Channel, numbers: Iterable[int]) -> None:
    for number in numbers:
        await send(channel, note(number))
    channel.close()


async def test_a_slow_but_active_reader_is_not_treated_as_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The patience counts from the last event read, also if it came from the batch."""
    channel = Channel(4, patience=PATIENT)
    loop = asyncio.get_running_loop()
    call_later = loop.call_later
    ends_of_patience: list[Callable[[], object]] = []

    def record(delay: float, callback: Any, *args: Any, **options: Any) -> Any:
        if delay == PATIENT:
            ends_of_patience.append(lambda: callback(*args))
        return call_later(delay, callback, *args, **options)

    monkeypatch.setattr(loop, "call_later", record)
    received: list[Event] = []
    async with started(_send_all(channel, range(12))) as producer:
        received.append(await anext(await _filled(channel)))
        for _ in range(3):
            await comes(lambda: len(channel._senders) == 1)
            waiting = channel._senders[0]
            received.append(
                await anext(channel)
            )  # from the reader's batch: the queue is as full as before
            ends_of_patience[-1]()
            await comes(lambda waiting=waiting: waiting not in channel._senders)
        received += await read_to_end(channel)
        await asyncio.wait_for(producer, 30)
    assert summarize(received) == list(range(12))
    assert channel.dropped == 0


async def _filled(channel: Channel) -> Channel:
    """Wait until a sender waits for room."""
    await comes(lambda: len(channel._senders) == 1)
    return channel


async def test_a_cancelled_sender_emits_nothing_and_passes_its_turn_on() -> None:
    """Cancelling one tool must not leave another waiting at an empty queue."""
    channel = Channel(1, patience=PATIENT)
    channel.push(note(0))
    senders = [asyncio.create_task(send(channel, note(number))) for number in range(1, 4)]
    await comes(lambda: len(channel._senders) == 3)
    senders[1].cancel()  # waits in line
    await comes(lambda: len(channel._senders) == 2)
    assert summarize([await anext(channel)]) == [0]  # this wakes the first …
    senders[0].cancel()  # … which can no longer use it
    async with asyncio.timeout(30):
        assert summarize([await anext(channel)]) == [3]
        await asyncio.wait(senders)
    assert [sender.cancelled() for sender in senders] == [True, True, False]
    channel.close()
    assert await read_to_end(channel) == []


async def test_a_sender_on_a_closed_loop_does_not_block_the_queue() -> None:
    """Its turn goes to the next sender."""
    channel = Channel(1, patience=PATIENT)
    channel.push(note(0))
    loop = asyncio.new_event_loop()

    def begin() -> None:
        task = loop.create_task(send(channel, note(1)))
        task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    await asyncio.to_thread(begin)
    async with started(send(channel, note(2))):
        await comes(lambda: len(channel._senders) == 2)
        async with asyncio.timeout(30):
            assert summarize([await anext(channel), await anext(channel)]) == [0, 2]


async def test_a_thread_that_runs_a_loop_is_never_blocked() -> None:
    """Waiting there for a reader on the same loop would deadlock."""
    channel = Channel(2, patience=PATIENT)
    for number in range(5):
        send_blocking(channel, note(number))
    channel.close()
    assert summarize(await read_to_end(channel)) == ["gap 3", 3, 4]


# --- a full channel -------------------------------------------------------------------------------


def test_the_oldest_display_events_are_replaced_by_one_gap() -> None:
    """A returning viewer sees the latest events and how many were dropped."""
    assert summarize(pushed(*map(note, range(10)), maxsize=4)) == ["gap 6", 6, 7, 8, 9]


def test_gaps_are_placed_where_events_are_missing() -> None:
    """Each hole between lifecycle events is marked at its own position."""
    events = [note(0), start(1), note(2), note(3), start(4), note(5), note(6), note(7)]
    assert summarize(pushed(*events, maxsize=4)) == [
        "gap 1",
        "StreamStart",
        "gap 2",
        "StreamStart",
        "gap 1",
        6,
        7,
    ]


def test_a_gap_has_the_sequence_number_of_the_missing_events() -> None:
    """Sequence numbers increase, with gaps as without."""
    received = pushed(*map(note, range(10)), maxsize=4)
    assert [event.seq for event in received] == [5, 6, 7, 8, 9]
    assert received[0].timestamp > 0


def test_lifecycle_and_durable_events_are_never_dropped() -> None:
    """Without its end event a call would appear to run forever in every UI."""
    lifecycle: list[Event] = [
        event.stamped(CALL, seq)
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
    assert pushed(*lifecycle, maxsize=2) == lifecycle


def test_new_display_events_are_dropped_if_only_lifecycle_events_are_queued() -> None:
    """Memory stays bounded even if no queued event can be dropped."""
    events = [start(seq) for seq in range(4)]
    received = pushed(*events, *map(note, range(4, 1_000)), start(1_000), note(1_001), maxsize=4)
    assert summarize(received) == [*["StreamStart"] * 4, "gap 996", "StreamStart", "gap 1"]
    assert [event.seq for event in received] == [0, 1, 2, 3, 999, 1_000, 1_001]


async def test_a_channel_works_normally_again_after_it_was_emptied() -> None:
    """An earlier overflow has no further effect."""
    channel = Channel(4)
    for event in [*map(start, range(6)), *map(note, range(6, 20))]:
        channel.push(event)
    assert summarize([await anext(channel) for _ in range(7)])[-1] == "gap 14"
    for number in range(20, 25):
        channel.push(note(number))
    assert summarize([await anext(channel) for _ in range(5)]) == ["gap 1", 21, 22, 23, 24]
    for number in range(25, 30):
        channel.push(note(number))
    channel.close()
    assert summarize(await read_to_end(channel)) == ["gap 1", 26, 27, 28, 29]


def test_events_pushed_during_compaction_stay_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither other threads nor a finalizer in the same thread wait for it."""
    channel = Channel(2)
    drop = _channel.drop_display_events
    late = [start(seq) for seq in range(10, 14)]

    def interrupted(events: list[Event], size: int) -> tuple[list[Event], int]:
        while late:
            channel.push(late.pop(0))
        return drop(events, size)

    monkeypatch.setattr(_channel, "drop_display_events", interrupted)
    for number in range(3):
        channel.push(note(number))
    channel.close()
    received = asyncio.run(read_to_end(channel))
    assert [event.seq for event in received if event.seq != 2] == [0, 1, 10, 11, 12, 13]


def test_adjacent_deltas_of_a_call_are_merged_before_anything_is_dropped() -> None:
    """The text arrives complete, in larger pieces."""
    texts = [chr(ord("a") + number % 26) for number in range(100)]
    pieces = [delta(text, seq) for seq, text in enumerate(texts)]
    received = pushed(*pieces, maxsize=10)
    assert len(received) <= 10
    assert "".join(map(str, summarize(received))) == "".join(texts)
    assert [event.seq for event in received] == sorted({event.seq for event in received})


def test_only_deltas_of_the_same_text_are_merged() -> None:
    """A merge across calls, tags, levels or lines would garble the text."""
    events = [
        delta("a", 0),
        delta("b", 1, OTHER),
        delta("c", 2),
        delta("d", 3, tag="t"),
        delta("e", 4, tag="t", level="debug"),
        RawResponseStreamEvent("x").stamped(CALL, 5),
        delta("f", 6, tag="t", level="debug"),
        start(7),
    ]
    received = pushed(*events, note(8), maxsize=8)
    assert summarize(received) == [
        "ac",
        "b",
        "d",
        "e",
        "RawResponseStream",
        "f",
        "StreamStart",
        8,
    ]


def test_deltas_of_a_model_are_merged_per_output() -> None:
    """A slow viewer gets the whole text of each output that the model streams."""

    def part(text: str, seq: int, item: str) -> RawResponseStreamEvent:
        data = {"type": "response.output_text.delta", "item_id": item, "delta": text}
        return RawResponseStreamEvent(data).stamped(CALL, seq)

    parts = [part("a", seq, "x") for seq in range(50)] + [part("b", 50, "y")]
    received = pushed(*parts, part("c", 51, "y"), maxsize=4)
    whole = {"x": "", "y": ""}
    for event in received:
        assert isinstance(event, RawResponseStreamEvent)
        whole[event.data["item_id"]] += event.data["delta"]
    assert whole == {"x": "a" * 50, "y": "bc"}
    assert len(received) <= 4
    assert [event.seq for event in received] == sorted({event.seq for event in received})


def test_merged_deltas_stay_short() -> None:
    """A stalled reader and endless deltas must not fill the memory."""
    received = pushed(*(delta("x" * 1000, seq) for seq in range(100)), maxsize=8)
    notes = [event for event in received if isinstance(event, NotifyStreamEvent)]
    assert max(len(event.data) for event in notes) <= 4096
    missing = sum(event.dropped for event in received if isinstance(event, GapEvent))
    assert missing
    assert len(received) <= 9


def test_deltas_are_not_merged_over_the_gap_of_an_inner_channel() -> None:
    """A run forwards the events of an inner run, including its gaps."""
    gap = GapEvent(2).replace(seq=1)
    received = pushed(delta("a", 0), gap, delta("b", 2), note(3), start(4), note(5), maxsize=4)
    assert summarize(received) == ["gap 3", "b", 3, "StreamStart", 5]
    received = pushed(delta("a", 0), gap, *(delta("b", seq) for seq in range(2, 9)), maxsize=4)
    assert summarize(received)[:2] == ["a", "gap 2"]
    assert "".join(map(str, summarize(received)[2:])) == "bbbbbbb"


def test_the_latest_progress_of_a_call_replaces_earlier_ones() -> None:
    """A progress bar only needs the latest value, so this does not count as a gap."""
    steps = [ToolProgressEvent(n, 50).stamped((CALL, OTHER)[n % 2], n) for n in range(50)]
    channel = Channel(4)
    for step in steps:
        channel.push(step)
    channel.close()
    received = asyncio.run(read_to_end(channel))
    assert received[-2:] == steps[-2:]
    assert channel.dropped == 0


def test_artifacts_are_dropped_last() -> None:
    """A file matters more than a text line."""
    events = [ToolArtifactEvent("a", "x").stamped(CALL, 0), *map(note, range(1, 10))]
    assert summarize(pushed(*events, maxsize=4)) == ["Artifact", "gap 6", 7, 8, 9]
    files = [ToolArtifactEvent(str(seq), "x").stamped(CALL, seq) for seq in range(10)]
    assert pushed(*files, maxsize=4)[1:] == files[6:]


def test_events_without_an_origin_are_not_merged() -> None:
    """They can belong to different calls."""
    events = [NotifyStreamEvent(text, is_delta=True) for text in "abcde"]
    assert summarize(pushed(*events, maxsize=3)) == ["gap 2", "c", "d", "e"]


def test_an_overflow_drops_only_a_small_part_of_a_large_channel() -> None:
    """Several events are dropped at once to save time, but not too many."""
    received = pushed(*map(note, range(5_000)), maxsize=1024)
    assert isinstance(received[0], GapEvent)
    assert summarize(received[1:]) == list(range(received[0].dropped, 5_000))
    assert 1024 - 128 <= len(received) <= 1024 + 1


@given(
    st.integers(1, 12),
    st.lists(st.sampled_from(["note", "delta", "progress", "start", "artifact", "read"])),
)
async def test_delivered_and_dropped_events_always_add_up(maxsize: int, kinds: list[str]) -> None:
    """No event is delivered twice or out of order, and each missing event is counted."""
    channel = Channel(maxsize)
    received: list[Event] = []
    lifecycle: list[int] = []
    letters = 0
    for seq, kind in enumerate(kinds):
        match kind:
            case "note":
                channel.push(note(seq))
            case "delta":
                channel.push(delta("x", seq))
                letters += 1
            case "progress":
                channel.push(ToolProgressEvent(seq).stamped(CALL, seq))
            case "artifact":
                channel.push(ToolArtifactEvent("a").stamped(CALL, seq))
            case "start":
                channel.push(start(seq))
                lifecycle.append(seq)
            case _ if channel._queue or channel._batch:
                received.append(await anext(channel))
            case _:
                pass
    channel.close()
    received += await read_to_end(channel)
    seqs = [event.seq for event in received]
    assert seqs == sorted(set(seqs))
    assert [event.seq for event in received if isinstance(event, ToolStreamStartEvent)] == lifecycle
    missing = sum(event.dropped for event in received if isinstance(event, GapEvent))
    assert missing == channel.dropped
    notes = [event for event in received if isinstance(event, NotifyStreamEvent)]
    assert sum(len(event.data) for event in notes if event.is_delta) <= letters
    if not missing:
        assert len([event for event in notes if not event.is_delta]) == kinds.count("note")
        assert sum(len(event.data) for event in notes if event.is_delta) == letters


def test_a_finalizer_can_push_during_compaction() -> None:
    """The garbage collector can run inside the channel's own lock; that must not deadlock."""
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
    received = summarize(asyncio.run(read_to_end(channel)))
    assert received.count("StreamStart") == 200


# --- listening ------------------------------------------------------------------------------------


def emit_note(number: int) -> None:
    """Emit an event as a tool does."""
    for emit in current_listeners():
        emit(note(number))


def test_there_is_no_listener_by_default() -> None:
    """Tools check this to skip creating events."""
    assert current_listeners() == ()
    with listen():
        assert len(current_listeners()) == 1
    assert current_listeners() == ()


def test_a_listen_block_collects_the_events_emitted_inside_it() -> None:
    """This works with any framework that runs the tool."""
    emit_note(1)
    with listen() as received:
        emit_note(2)
        emit_note(3)
    emit_note(4)
    assert summarize(received) == summarize(received.events) == [2, 3]
    received.events.clear()
    assert summarize(received) == [2, 3]


async def test_events_can_be_read_live_and_again_afterwards() -> None:
    """A monitor reads inside the block, a test after it."""
    async with listen() as received, started(_emit_all([1, 2, 3])):
        async with asyncio.timeout(30):
            assert summarize([await anext(received), await anext(received)]) == [1, 2]
        await comes(lambda: len(received.events) == 3)
    assert summarize(await read_to_end(received)) == [3]
    assert summarize(received) == [1, 2, 3]


async def _emit_all(numbers: Iterable[int]) -> None:
    for number in numbers:
        emit_note(number)
        await asyncio.sleep(0)


async def test_leaving_the_block_ends_a_live_reader() -> None:
    """A reader in another task must not keep waiting."""
    async with listen() as received:
        reading = asyncio.create_task(read_to_end(received))
        await asyncio.sleep(0)
        emit_note(1)
    assert summarize(await asyncio.wait_for(reading, 30)) == [1]


async def test_only_work_started_inside_the_block_is_recorded() -> None:
    """Two requests in one process must not see each other's events."""
    proceed = asyncio.Event()

    async def speak(number: int) -> None:
        await proceed.wait()
        emit_note(number)

    async with asyncio.TaskGroup() as group:
        group.create_task(speak(1))
        with listen() as received:
            inside = group.create_task(speak(2))
            proceed.set()
            await inside
            await asyncio.to_thread(emit_note, 3)
            start_thread(lambda: emit_note(4)).join(5)
            start_thread(bind(lambda: emit_note(5))).join(5)
    assert summarize(received) == [2, 3, 5]


def test_all_records_the_whole_process() -> None:
    """A server monitor has no request of its own."""
    with listen(all=True) as received:
        start_thread(lambda: emit_note(1)).join(5)
        emit_note(2)
    emit_note(3)
    assert summarize(received) == [1, 2]


def test_listen_blocks_can_be_nested() -> None:
    """A test can listen inside an application that listens."""
    with listen() as outer:
        with listen(all=True) as everything, listen() as inner:
            emit_note(1)
        emit_note(2)
    assert (summarize(outer), summarize(everything), summarize(inner)) == ([1, 2], [1], [1])


async def test_events_after_the_block_are_not_recorded() -> None:
    """Without a reader they would pile up."""
    proceed = asyncio.Event()

    async def speak() -> None:
        await proceed.wait()
        emit_note(1)

    with listen() as received:
        late = asyncio.create_task(speak())
        await asyncio.sleep(0)
    proceed.set()
    await late
    assert summarize(received) == []


def test_a_block_can_be_left_in_another_context() -> None:
    """Fixtures of test frameworks enter and exit in different contexts."""
    listener = listen()
    bind(listener.__enter__)()
    listener.__exit__(None, None, None)
    assert current_listeners() == ()


def test_a_listener_cannot_be_entered_twice() -> None:
    """It would record each event twice."""
    with listen() as received:
        pass
    with pytest.raises(UserError, match="used twice"):
        received.__enter__()
    with pytest.raises(UserError, match="maxsize=0"):
        listen(maxsize=0)


async def test_a_listener_is_bounded() -> None:
    """It keeps the latest events, and its reader continues where it was."""
    with listen(maxsize=10) as received:
        for number in range(8):
            emit_note(number)
        assert summarize([await anext(received) for _ in range(4)]) == [0, 1, 2, 3]
        for number in range(8, 12):
            emit_note(number)
        assert summarize(received) == ["gap 2", *range(2, 12)]
    assert summarize(await read_to_end(received)) == list(range(4, 12))
    with listen(maxsize=10) as received:
        for number in range(100):
            emit_note(number)
    assert (
        summarize(await read_to_end(received)) == summarize(received) == ["gap 90", *range(90, 100)]
    )


async def test_the_reader_of_a_listener_lets_other_tasks_run() -> None:
    """A monitor that is behind must not block its application."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    with listen() as received:
        for number in range(20_000):
            emit_note(number)
    async with started(tick()):
        assert len(await read_to_end(received)) == 20_000
    assert turns > 10


async def test_a_listener_has_one_reader() -> None:
    """Two readers would each get half of the events."""
    with listen() as received:

        async def read() -> None:
            await anext(received)

        async with started(read()):
            await asyncio.sleep(0)
            with pytest.raises(UserError, match="Two tasks read the same events"):
                await anext(received)


def test_bound_functions_can_be_called_concurrently() -> None:
    """Each call has a copy of the context, because Python cannot enter one context twice."""

    def nested(depth: int) -> str:
        return "done" if depth == 0 else bound(depth - 1)

    bound = bind(nested)
    assert bound(3) == "done"
    assert bound.__name__ == "nested"
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(bound, [2] * 20)) == ["done"] * 20


def test_binding_an_async_function_is_refused_with_the_remedy() -> None:
    """It would run in the context of the awaiting task, so the binding would have no effect."""

    async def work() -> None: ...

    with pytest.raises(UserTypeError, match=r"bind\(work\).*create_task"):
        bind(work)
