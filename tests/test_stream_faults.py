"""Test event streams when callbacks, loops or stores fail, and that secrets are masked."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import faulthandler
import gc
import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings, strategies as st

from agents_tools import Agent, RunConfig, Runner, ToolContext, function_tool, register_secret
from agents_tools.errors import (
    EventConflictError,
    EventStoreFullError,
    UserValueError,
)
from agents_tools.events import (
    ActionEvent,
    ErrorEvent,
    Event,
    EventSource,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    Origin,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    register_event,
)
from agents_tools.persistence import MemoryEventStore, PendingFuture
from agents_tools.persistence.stream import EventStream
from agents_tools.persistence.stream.size_limit import LARGEST
from agents_tools.testing import ScriptedModel, check_events, tool_call
from agents_tools.text import forget_secret
from tests.scale import IS_FULL, slow_case
from tests.waiting import comes, until

BOUND = 10.0
CALL = Origin("crawl", "call_1", ("call_1",), EventSource.ENVIRONMENT)
OTHER = Origin("crawl", "call_2", ("call_2",), EventSource.ENVIRONMENT)


def message(text: Any = "hello") -> MessageEvent:
    return MessageEvent(text, role="assistant")


def content_of(event: Any) -> Any:
    return event.content


def ids(events: Any) -> list[int]:
    return [event.id for event in events]


async def read_all(stream: EventStream, **options: Any) -> list[Event]:
    async with asyncio.timeout(BOUND):
        return [event async for event in stream.follow(**options)]


# --- callbacks that fail --------------------------------------------------------------------------


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.CRITICAL, logger="agents_tools"):
        yield caplog


@pytest.mark.requirement("D17", "F21")
@pytest.mark.usefixtures("quiet")
def test_a_callback_that_raises_is_reported_and_the_others_continue():
    """The exception goes to `on_error`, `errors` and the log; the next event is delivered."""
    reported: list[tuple[Exception, Event | None, str]] = []
    received: list[int] = []

    def on_error(*facts: Any) -> None:
        reported.append(facts)
        raise RuntimeError("a hook that fails is no better than none")

    def fail(event: Event) -> None:
        if event.id == 1:
            raise ValueError("no")
        received.append(event.id)

    with EventStream(on_error=on_error) as stream:
        stream.subscribe("a", fail, "x")
        stream.subscribe("b", lambda event: received.append(event.id))
        events = [stream.publish(message()) for _ in range(3)]
    assert sorted(received) == [0, 0, 1, 2, 2]
    [(error, event, who)] = reported
    assert (str(error), event, who) == ("no", events[1], "a/x")
    assert list(stream.errors) == [error]


@pytest.mark.requirement("D17")
def test_a_failing_callback_is_logged_without_the_event(caplog: pytest.LogCaptureFixture):
    """The record has the traceback but not the event, whose payload may be private."""

    def fail(event: Event) -> None:
        raise ValueError("no")

    with EventStream(sid="s1") as stream:
        stream.subscribe("a", fail, "x")
        stream.publish(message("a private matter"))
    assert "'s1'" in caplog.text
    assert "a/x failed: no" in caplog.text
    assert "Traceback" in caplog.text
    assert "private" not in caplog.text


@pytest.mark.requirement("F21")
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_callback_that_always_fails_is_detached(kind: str):
    """This happens after `max_failures` in a row; an event reports it, and publishing continues."""
    calls: list[int] = []

    def plain(event: Event) -> None:
        calls.append(event.id)
        if event.id != 1:
            raise ValueError("no")

    async def coroutine(event: Event) -> None:
        plain(event)

    stream = EventStream()
    made = stream.subscribe("a", plain if kind == "plain" else coroutine, "x", max_failures=3)
    follower = stream.follow()
    for _ in range(10):
        stream.publish(message())
    async with asyncio.timeout(BOUND):
        event = await anext(follower)
        while not isinstance(event, NotifyStreamEvent):
            event = await anext(follower)
    assert calls == [0, 1, 2, 3, 4]
    assert not made.active
    assert (event.data, event.level) == (
        "a/x gets no more events: it failed 3 times in a row.",
        "error",
    )
    stream.subscribe("a", plain, "x")
    await stream.aclose()


@pytest.mark.requirement("F21")
@pytest.mark.usefixtures("quiet")
def test_a_callback_that_raises_system_exit_has_failed():
    """Neither its thread nor the process exits."""
    received: list[int] = []

    def leave(event: Event) -> None:
        received.append(event.id)
        raise SystemExit

    with EventStream() as stream:
        stream.subscribe("a", leave)
        stream.publish(message())
        stream.publish(message())
    assert received == [0, 1]
    assert [str(error) for error in stream.errors] == [
        "The callback raised SystemExit(), which is not an Exception."
    ] * 2


@pytest.mark.requirement("F21")
@pytest.mark.usefixtures("quiet")
async def test_a_callback_that_raises_cancelled_error_has_failed():
    """Its subscription continues."""
    received: list[int] = []

    async def callback(event: Event) -> None:
        received.append(event.id)
        if event.id == 0:
            raise asyncio.CancelledError

    async with EventStream() as stream:
        stream.subscribe("a", callback)
        stream.publish(message())
        stream.publish(message())
    assert received == [0, 1]
    assert len(stream.errors) == 1


# --- loops and readers that are gone --------------------------------------------------------------


@pytest.mark.requirement("F21")
@pytest.mark.usefixtures("quiet")
def test_subscribers_on_a_finished_loop_are_removed():
    """Publishing, closing and the other readers are not affected."""
    received: list[int] = []
    stream = EventStream()
    stream.subscribe("b", lambda event: received.append(event.id))

    async def subscribe() -> Any:
        async def callback(event: Event) -> None:
            raise AssertionError("there is no loop any more")

        stream.subscribe("a", callback, "x")
        follower = stream.follow(max_pending=1)
        stream.publish(message("0"))
        stream.unsubscribe("a", "x")
        stream.subscribe("a", callback, "x")
        await anext(follower)
        return follower

    follower = asyncio.run(subscribe())
    for _ in range(20):
        stream.publish(message())

    async def send() -> None:
        async with asyncio.timeout(BOUND):
            for _ in range(20):
                await stream.send(message())

    asyncio.run(send())
    stream.close(timeout=BOUND)
    assert [n for n in received if n <= 20] == list(range(21))
    assert len(received) >= 41
    del follower


@pytest.mark.requirement("F21")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_closed_while_a_reader_waits_does_not_break_the_stream(
    quiet: pytest.LogCaptureFixture,
):
    """The tasks of that loop are not cancelled and never resume."""
    stream = EventStream()
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        async def callback(event: Event) -> None:
            await asyncio.Event().wait()

        stream.subscribe("a", callback)
        tasks.append(asyncio.ensure_future(read_all(stream)))
        stream.publish(message())
        for _ in range(5):
            await asyncio.sleep(0)

    tasks: list[Any] = []
    loop.run_until_complete(begin())
    loop.close()
    for _ in range(5):
        stream.publish(message())
    stream.close(timeout=BOUND)
    assert ids(stream.get_events())[:6] == list(range(6))
    tasks.clear()


@pytest.mark.requirement("F21")
@pytest.mark.usefixtures("quiet")
async def test_a_loop_that_ends_in_another_thread_does_not_break_the_stream():
    """A follower is waiting there when its loop is closed."""
    stream = EventStream()
    waiting = threading.Event()

    async def follow() -> None:
        reading = asyncio.ensure_future(read_all(stream))
        await asyncio.sleep(0)
        waiting.set()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    await asyncio.to_thread(asyncio.run, follow())
    assert waiting.is_set()
    for _ in range(5):
        stream.publish(message())
    await stream.aclose()
    assert ids(await read_all(stream)) == list(range(5))


@pytest.mark.requirement("F21")
async def test_a_garbage_collected_follower_blocks_nothing():
    """Neither senders nor the window wait for it."""
    async with EventStream(window=4) as stream:
        followers = [stream.follow(max_pending=1) for _ in range(3)]
        stream.publish(message())
        await asyncio.gather(*map(anext, followers))
        followers.clear()
        gc.collect()
        async with asyncio.timeout(BOUND):
            for _ in range(100):
                await stream.send(message())


def test_an_event_published_during_publishing_is_not_lost():
    """A finalizer or a signal handler publishes while the stream assigns an id."""
    stream = EventStream()
    published: list[Event] = []
    append = stream._log.append

    def interrupted(event: Any) -> None:
        if len(published) < 5:
            published.append(stream.publish(message(f"inner {len(published)}")))
        append(event)

    stream._log.append = interrupted  # type: ignore[method-assign]
    outer = [stream.publish(message(f"outer {n}")) for n in range(3)]
    stream.close()
    events = list(stream.get_events())
    assert ids(events) == list(range(8))
    assert sorted(ids([*outer, *published])) == list(range(8))


@pytest.mark.requirement("F39")
def test_events_stay_in_order_of_ids_when_the_clock_jumps():
    received: list[int] = []
    day = 86_400.0
    with EventStream(MemoryEventStore(), window=1) as stream:
        stream.subscribe("a", lambda event: received.append(event.id))
        for n in range(20):
            stream.publish(message().replace(timestamp=10 * day + (-1) ** n * day))
    assert received == list(range(20))
    assert ids(stream.get_events()) == list(range(20))


def test_an_idle_stream_uses_no_cpu_time():
    """Idle subscriptions cost no processor time and, after a moment, no thread either."""
    with EventStream() as stream:
        for n in range(20):
            stream.subscribe(f"s{n}", lambda event: None)
        stream.publish(message())
        until(lambda: len(stream._log.waiting) == 20)
        until(lambda: not [one for one in threading.enumerate() if one.name.startswith("events-")])
        before = time.process_time()
        threading.Event().wait(0.2)
        assert time.process_time() - before < 0.1
        stream.publish(message())
        until(lambda: len(stream._log.waiting) == 20)


# --- stores that fail -----------------------------------------------------------------------------


class Slow(MemoryEventStore):
    """A store that completes each batch only on `let_go`, possibly out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[int, str]] = []
        self.errors: list[Exception] = []
        self.held: list[Any] = []
        self.holds = False

    def append(self, events: Any, /, *, durability: Any = "normal", **options: Any) -> Any:
        self.batches.append((len(events), durability))
        if self.errors:
            return PendingFuture.failed(self.errors.pop(0))
        if not self.holds:
            return super().append(events)
        done: PendingFuture[int] = PendingFuture()
        self.held.append(lambda: done.resolve(super(Slow, self).append(events).result()))
        return done

    def let_go(self) -> None:
        self.holds = False
        while self.held:
            self.held.pop(0)()


@pytest.mark.requirement("D2", "D8")
def test_durable_events_are_stored_in_batches_and_in_order():
    """While one batch is being written, new events form the next; the publisher does not wait."""
    store = Slow()
    store.holds = True
    stream = EventStream(store)
    for n in range(100):
        stream.publish(message(str(n)) if n % 2 else NotifyStreamEvent(str(n)))
    flushed = stream.flush()
    assert not flushed.done()
    store.let_go()
    flushed.result(BOUND)
    assert store.batches == [(1, "normal"), (49, "normal")]
    assert ids(store.read().result()) == list(range(1, 100, 2))
    assert store.next_id == 100
    stream.close()


def test_messages_of_users_and_decisions_are_stored_with_sync_durability():
    """Once acknowledged, they survive a power failure."""
    store = Slow()
    for event, durability in (
        (MessageEvent("hi", role="user"), "sync"),
        (MessageEvent("hi", role="assistant"), "normal"),
        (RunItemStreamEvent("tool_approval_requested", {}), "sync"),
        (RunItemStreamEvent("tool_called", {}), "normal"),
        (ActionEvent("AgentFinishAction", {}), "sync"),
        (ActionEvent("CmdRunAction", {}), "normal"),
        (RunFinishedEvent(), "sync"),
        (NotifyStreamEvent("x"), "normal"),
    ):
        store.batches.clear()
        with EventStream(store, keep="all") as stream:
            stream.publish(event)
        assert store.batches == [(1, durability)]


@pytest.mark.requirement("F37", "D8")
@pytest.mark.usefixtures("quiet")
def test_a_full_store_is_reported_and_receives_all_events_once_there_is_room():
    """Readers get every event; `flush` raises, and later nothing is missing."""
    store = Slow()
    reported: list[str] = []
    stream = EventStream(
        store, on_error=lambda error, event, who: reported.append(f"{who}: {error}")
    )
    store.errors = [EventStoreFullError("no room", store="here") for _ in range(2)]
    stream.publish(message("0"))
    assert reported == ["store: no room"]
    with pytest.raises(EventStoreFullError):
        stream.flush().result(BOUND)
    for n in range(1, 5):
        stream.publish(message(str(n)))
    assert ids(stream.get_events()) == list(range(5))
    stream.flush().result(BOUND)
    assert ids(store.read().result()) == list(range(5))
    stream.close()


@pytest.mark.requirement("F37")
@pytest.mark.usefixtures("quiet")
def test_a_full_store_is_not_called_for_each_event():
    """A failed store stays cheap, and closing reports the events that are not stored."""
    store = Slow()
    stream = EventStream(store)
    store.errors = [EventStoreFullError("no room", store="here") for _ in range(1000)]
    for n in range(500):
        stream.publish(message(str(n)))
    assert len(store.batches) <= 12
    with pytest.raises(EventStoreFullError):
        stream.close()
    assert len(stream.errors) <= 13


@pytest.mark.requirement("F38")
@pytest.mark.usefixtures("quiet")
async def test_a_second_writer_on_one_log_is_reported():
    """The second stream continues for its readers and reports that nothing more is stored."""
    store = MemoryEventStore()
    one, two = EventStream(store), EventStream(store.session(store.sid))
    one.publish(message("one"))
    two.publish(message("two"))
    two.publish(message("three"))
    for _ in range(2):
        with pytest.raises(EventConflictError):
            await two.flush()
    assert len(two.errors) == 1
    assert ids(two.get_events()) == [0, 1]
    assert [content_of(event) for event in await store.read()] == ["one"]
    await one.aclose()
    with pytest.raises(EventConflictError):
        await two.aclose()


@pytest.mark.requirement("D11")
@pytest.mark.usefixtures("quiet")
def test_an_event_that_cannot_be_stored_affects_only_itself():
    """The other events of its batch are stored; `flush` raises the reason."""
    store = Slow()
    store.holds = True
    stream = EventStream(store)
    bad = [7, 8]
    for n in range(12):
        stream.publish(message(float("nan") if n in bad else str(n)))
    store.let_go()
    with pytest.raises(UserValueError):
        stream.flush().result(BOUND)
    stream.flush().result(BOUND)
    assert ids(store.read().result()) == [n for n in range(12) if n not in bad]
    assert len(stream.errors) == 2
    stream.close()


@pytest.mark.requirement("F37")
@pytest.mark.usefixtures("quiet")
async def test_a_reader_gets_an_error_when_the_store_cannot_be_read():
    """A follower raises, a callback is detached, and publishing continues."""
    store = MemoryEventStore()
    stream = EventStream(store, window=1)
    for _ in range(100):
        stream.publish(message())
    await stream.flush()
    store.close()
    with pytest.raises(Exception, match="is closed"):
        await read_all(stream)
    for kind in (lambda event: None, _nothing):
        made = stream.subscribe("a", kind, after=-1)
        await asyncio.wait_for(comes(lambda made=made: not made.active), BOUND)
    stream.publish(NotifyStreamEvent("x"))
    await stream.aclose()


async def _nothing(event: Event) -> None:
    """Do nothing."""


@pytest.mark.requirement("D12")
def test_events_being_stored_are_readable():
    """An event that has left the window but is not stored yet is not a gap."""
    store = Slow()
    store.holds = True
    stream = EventStream(store, window=2)
    for _ in range(100):
        stream.publish(message())
    assert ids(stream.get_events()) == list(range(100))
    assert ids(stream.get_events(reverse=True)) == list(range(100))[::-1]
    assert ids(asyncio.run(stream.read())) == list(range(100))
    received: list[int] = []
    stream.subscribe("a", lambda event: received.append(event.id), after=-1)
    until(lambda: len(received) == 100)
    store.let_go()
    stream.close()
    assert ids(store.read().result()) == received == list(range(100))


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.scaled
@pytest.mark.requirement("F22")
@pytest.mark.timeout(120)
async def test_thousands_of_streams_run_at_once():
    """Each has 100 events: none is lost, duplicated or out of order."""

    async def one() -> bool:
        stream = EventStream(window=32)
        follower = stream.follow()

        async def read() -> list[int]:
            return [event.id async for event in follower]

        reading = asyncio.create_task(read())
        for _ in range(4):
            for _ in range(25):
                stream.publish(event)
            await asyncio.sleep(0)
        await stream.aclose()
        return await reading == expected

    event = NotifyStreamEvent("x").stamped(CALL, 1)
    expected = list(range(100))
    gc.disable()  # the collector would scan half a million events again and again
    try:
        assert all(await asyncio.gather(*(one() for _ in range(10_000 if IS_FULL else 2_000))))
    finally:
        gc.enable()


@pytest.mark.scaled
@pytest.mark.requirement("D9", "D15")
@pytest.mark.timeout(120)
async def test_four_producers_and_ten_readers_with_random_cancels():
    """Of many events none is lost or reordered, for readers that stay or resume."""
    rng = random.Random(7)  # noqa: S311 - the same each time
    stream = EventStream(MemoryEventStore(), keep="all", window=3_000)
    total, burst = 100_000 if IS_FULL else 20_000, 500
    event = NotifyStreamEvent("x").stamped(CALL, 1)
    loop = asyncio.get_running_loop()

    def produce() -> None:
        for _ in range(total // 4 // burst):
            for _ in range(burst - 1):
                stream.publish(event)
            asyncio.run_coroutine_threadsafe(stream.send(event), loop).result(BOUND)

    async def follow(until_here: int) -> list[int]:
        """Read, leave at random places, and resume each time after the last event received."""
        seen: list[int] = []
        while not seen or seen[-1] < total - 1:
            patience = rng.uniform(0.001, 0.05) if len(seen) < until_here else 6 * BOUND
            follower = stream.follow(after=seen[-1] if seen else -1)
            with contextlib.suppress(TimeoutError):
                async with follower, asyncio.timeout(patience):
                    async for event in follower:
                        seen.append(event.id)  # noqa: PERF401 - what was read before it is cut off counts
        return seen

    def keep(received: list[int]) -> Any:
        return lambda event: received.append(event.id)

    received: list[list[int]] = [[] for _ in range(5)]
    for n, one in enumerate(received):
        stream.subscribe(f"s{n}", keep(one), max_pending=512)
    readers = [asyncio.create_task(follow(rng.randrange(total))) for _ in range(5)]
    await asyncio.gather(*(asyncio.to_thread(produce) for _ in range(4)))
    await stream.aclose()
    for reading in readers:
        assert await reading == list(range(total))
    for one in received:
        assert one == list(range(total))


# --- secrets --------------------------------------------------------------------------------------

WORD = "correct-horse battery/staple?"


def _encodings(secret: str) -> list[str]:
    raw = secret.encode()
    return [
        secret,
        *(base64.b64encode(b"x" * n + raw + b"yz").decode() for n in range(3)),
        base64.urlsafe_b64encode(b">" + raw).decode(),
        quote(secret, safe=""),
        quote_plus(secret),
        "".join(f"%{byte:02x}" for byte in raw),
        json.dumps(secret),
        repr(secret),
        raw.hex(),
        raw.hex().upper(),
    ]


def _planted(text: str) -> list[Event]:
    """Return events with the text in every place of a payload that can have one."""
    return [
        MessageEvent(f"say {text}!"),
        MessageEvent([{"type": "text", "text": text}, [[text]], {"n": {text: 1}}]),
        ActionEvent("A", {text: {"deep": [{"er": [text, 1, None, True]}]}}),
        RunItemStreamEvent("tool_called", {"arguments": json.dumps({"key": text})}),
        ToolArtifactEvent(text, data=f"…{text}…".encode(), uri=f"https://x/?q={text}"),
        ToolArtifactEvent("blob", data=b"\xff\x00" + text.encode() + b"\xfe"),
        ToolStreamStartEvent({"a": {"b": text}, text: "c"}),
        ToolProgressEvent(1, 2, f"at {text}"),
        ToolAttemptEvent(1, f"failed with {text}"),
        ErrorEvent(f"no: {text}", kind=text),
        NotifyStreamEvent(text, tag=text),
        RawResponseStreamEvent({"type": "response.output_text.done", "text": text, text: text}),
        RunFinishedEvent("error", output={"o": text}, error=text),
    ]


@pytest.mark.requirement("S20", "D21")
async def test_forty_planted_secrets_are_neither_stored_nor_delivered():
    """They are in every place of every kind of event, and in every usual encoding."""
    rng = random.Random(3)  # noqa: S311 - the same each time
    alphabet = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789-_/+ é"
    secrets = {f"S{n}": "K" + "".join(rng.choices(alphabet, k=16)) + "k" for n in range(40)}
    own = {name: secret for name, secret in secrets.items() if int(name[1:]) % 2}
    for secret in secrets.values():
        if secret not in own.values():
            register_secret(secret)
    store = MemoryEventStore()
    try:
        async with EventStream(store, keep="all", secrets=own) as stream:
            received: list[Event] = []
            stream.subscribe("main", received.append)
            given_back: list[Event] = []
            for secret in secrets.values():
                for text in _encodings(secret):
                    given_back += map(stream.publish, rng.sample(_planted(text), 3))
        wire = json.dumps([event.to_dict() for event in await store.read()])
        wire += json.dumps([event.to_dict() for event in (*received, *given_back)])
    finally:
        for secret in secrets.values():
            forget_secret(secret)
    blobs = b"".join(
        event.data
        for event in (*received, *given_back)
        if isinstance(event, ToolArtifactEvent) and isinstance(event.data, bytes)
    )
    for secret in secrets.values():
        assert secret not in json.loads(f"[{json.dumps(wire)}]")[0]
        assert secret.encode() not in blobs
        for text in _encodings(secret):
            core = text.strip("'\"=")[4:-4]
            assert core not in wire
            assert json.dumps(core)[1:-1] not in wire
            assert core.encode() not in blobs
    assert len(received) == len(given_back)
    assert "***" in wire


@pytest.mark.requirement("D21")
def test_payloads_without_a_secret_are_unchanged():
    """No payload is copied needlessly, and attachments stay."""
    stream = EventStream(secrets={"key": WORD})
    item: dict[str, Any] = {"type": "message", "n": [1, 2]}
    thing = object()
    event: Any = stream.publish(RunItemStreamEvent("x", item).attach(thing))
    assert event.item is item
    assert event.value is thing
    masked: Any = stream.publish(RunItemStreamEvent("x", {"t": WORD}).attach(thing))
    assert masked.item == {"t": "***"}
    assert masked.attached is None
    stream.close()


@pytest.mark.requirement("D21")
def test_the_secrets_of_a_stream_can_change_and_affect_only_that_stream():
    """New secrets are masked from then on, and in no other stream."""
    stream = EventStream()
    assert content_of(stream.publish(message(WORD))) == WORD
    stream.secrets = {"key": WORD, "unset": ""}
    assert dict(stream.secrets) == {"key": WORD, "unset": ""}
    assert content_of(stream.publish(message(WORD))) == "***"
    assert content_of(EventStream().publish(message(WORD))) == WORD
    stream.secrets = {}
    assert content_of(stream.publish(message(WORD))) == WORD
    with pytest.raises(
        UserValueError, match=r"secrets\['pin'\] has the wrong length: expected 6 to"
    ):
        stream.secrets = {"pin": "1234"}


@pytest.mark.requirement("D21")
def test_secrets_in_numbers_and_unusual_payloads_are_masked():
    """This includes digits that are a secret, and payloads nested too deeply to be searched."""
    stream = EventStream(secrets={"pin": "12345678", "level": "warning"})
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    event = stream.publish(message({"pin": 12345678, "other": 5, "f": 1.5, "deep": deep}))
    assert content_of(event)["pin"] == "***"
    assert content_of(event)["other"] == 5
    assert "x" not in repr(content_of(event)["deep"])
    two = stream.publish(message({"12345678": 1, "_12345678_": 2, "a": ["12345678"]}))
    assert content_of(two) == {"***": 1, "_***_": 2, "a": ["***"]}
    same = stream.publish(message({"12345678": 1, "***": 2}))
    assert sorted(content_of(same).values()) == [1, 2]
    kept: Any = stream.publish(NotifyStreamEvent("x", level="warning"))
    assert kept.level == "warning"


def _delta(kind: str, text: str, origin: Origin = CALL) -> Event:
    if kind == "notify":
        return NotifyStreamEvent(text, is_delta=True).stamped(origin, 1)
    data = {"type": kind, "delta": text, "call_id": "call_9"}
    return RawResponseStreamEvent(data).stamped(origin, 1)


def _written(events: Any, path: tuple[str, ...] = CALL.path) -> str:
    return "".join(
        event.data if isinstance(event, NotifyStreamEvent) else event.data["delta"]
        for event in events
        if isinstance(event, (NotifyStreamEvent, RawResponseStreamEvent)) and event.path == path
    )


_DELTAS = ["notify", "response.output_text.delta", "response.function_call_arguments.delta"]


@pytest.mark.requirement("D21")
@pytest.mark.parametrize("kind", _DELTAS)
def test_a_secret_split_over_several_deltas_is_masked(kind: str):
    """This includes single letters with deltas of other calls and progress events in between."""
    stream = EventStream(secrets={"key": WORD})
    for letter in f"my key is {WORD}, really":
        stream.publish(_delta(kind, letter))
        stream.publish(_delta(kind, letter, OTHER))
        stream.publish(ToolProgressEvent(1).stamped(CALL, 1))
    stream.close()
    events = list(stream.get_events())
    assert _written(events) == _written(events, OTHER.path) == "my key is ***, really"
    assert ids(events) == list(range(len(events)))


@pytest.mark.requirement("D21")
def test_only_a_possible_beginning_of_a_secret_is_held_back():
    """The rest of a delta is shown at once; text held back comes before the text that follows."""
    stream = EventStream(secrets={"key": WORD})

    def shown(event: Event) -> list[Any]:
        last = stream.last_id
        stream.publish(event)
        return [getattr(one, "data", one.type) for one in stream.get_events(last + 1)]

    assert shown(_delta("notify", "hello, all of you.")) == ["hello, all of you."]
    assert shown(_delta("notify", "that is correct")) == ["that is"]
    assert shown(ToolProgressEvent(1).stamped(CALL, 1)) == ["tool_progress_event"]
    assert shown(_delta("notify", ", yes.")) == [" correct, yes."]
    assert shown(_delta("notify", "is it correct")) == ["is it"]
    assert shown(_delta("notify", "-", OTHER)) == ["-"]
    assert shown(ToolStreamEndEvent("ok").stamped(CALL, 2)) == [" correct", "tool_stream_end_event"]
    stream.close()


@pytest.mark.requirement("D21")
@pytest.mark.parametrize(
    "last",
    [
        NotifyStreamEvent("done").stamped(CALL, 2),
        ToolStreamEndEvent("ok").stamped(CALL, 2),
        RunItemStreamEvent("tool_output", {"type": "function_call_output", "call_id": "call_1"}),
        RunFinishedEvent().stamped(Origin(), 2),
        None,
    ],
)
def test_held_back_text_is_released_when_its_text_ends(last: Event | None):
    """It ends with the next event of the call, the end of the call or its parent, or `close`."""
    stream = EventStream(secrets={"key": WORD})
    stream.publish(_delta("notify", "that is corr"))
    assert _written(stream.get_events()) == "that is"
    if last is None:
        stream.flush().result(BOUND)
        assert _written(stream.get_events()) == "that is"  # the text may still continue
        stream.close()
    else:
        stream.publish(last)
    events = list(stream.get_events())
    assert _written(events[:2]) == "that is corr"
    assert (events[1].path, events[1].type) == (CALL.path, "notify_stream_event")
    stream.close()


@pytest.mark.requirement("D21")
def test_an_incomplete_secret_is_masked_when_most_of_it_has_come():
    """A secret without its last letter is still usable."""
    stream = EventStream(secrets={"key": WORD})
    stream.publish(_delta("notify", f"it is {WORD[:-2]}"))
    stream.publish(NotifyStreamEvent(".").stamped(CALL, 1))
    stream.publish(_delta("notify", WORD[-2:]))
    stream.close()
    written = _written(stream.get_events())
    assert written.startswith("it is ***.")
    assert WORD[-2:] not in written


_PIECES = st.one_of(
    st.sampled_from([*_encodings(WORD), WORD[:9], WORD[12:], "%", "\\", "\\u00", "co", " ", "é"]),
    st.text(st.characters(codec="utf-8"), max_size=6),
)


@pytest.mark.requirement("D21")
@given(st.lists(_PIECES, min_size=1, max_size=6), st.data())
@settings(max_examples=200)
def test_masking_does_not_depend_on_how_the_text_is_split(pieces: list[str], data: st.DataObject):
    """A secret masked in the whole text is masked in its parts; all other text stays."""
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    whole: Any = EventStream(secrets={"key": WORD}).publish(NotifyStreamEvent(text))
    stream = EventStream(secrets={"key": WORD})
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        stream.publish(_delta("notify", text[start:end]))
    stream.publish(ToolStreamEndEvent("ok").stamped(CALL, 2))
    stream.close()
    written = _written(stream.get_events())
    for form in _encodings(WORD):
        assert form.strip("'\"=")[4:-4] not in written
    if WORD[: len(WORD) // 2] not in text and not any(mark in text for mark in "%\\"):
        # A base64 character next to a secret that was published before it was known stays.
        assert 0 <= len(written) - len(whole.data) <= whole.data.count("***")


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["delta", "other", "progress", "plain", "end"]),
        st.integers(0, 2),
        st.sampled_from([*(WORD[:n] for n in range(1, len(WORD), 5)), WORD, "no ", "-", "e"]),
    ),
    max_size=30,
)


@pytest.mark.requirement("D21")
@settings(max_examples=150, deadline=None)
@given(steps=_STEPS)
def test_a_masked_run_keeps_the_laws_of_events(steps: list[tuple[str, int, str]]):
    """Text held back keeps its place in its own call, whatever other calls publish meanwhile."""
    stream = EventStream(secrets={"key": WORD})
    calls = [Origin("say", f"call_{n}", (f"call_{n}",)) for n in range(3)]
    published: list[Event] = [ToolStreamStartEvent({}).replace(origin=origin) for origin in calls]
    open_calls = dict(enumerate(calls))
    for kind, call, text in steps:
        if call in open_calls:
            published.append(_step(kind, text).replace(origin=open_calls[call]))
        if kind == "end":
            open_calls.pop(call, None)
    published += [ToolStreamEndEvent("ok").replace(origin=origin) for origin in open_calls.values()]
    for number, event in enumerate(published):
        stream.publish(event.replace(seq=number))
    stream.close()
    events = list(stream.get_events())
    check_events(events)
    for origin in calls:
        said_of_it = [event for event in events if event.path == origin.path]
        whole = "".join(e.data for e in said_of_it if isinstance(e, NotifyStreamEvent))
        assert WORD not in whole


def _step(kind: str, text: str) -> Event:
    match kind:
        case "delta":
            return NotifyStreamEvent(text, is_delta=True)
        case "other":
            return NotifyStreamEvent(text, is_delta=True, tag="other")
        case "progress":
            return ToolProgressEvent(1.0)
        case "plain":
            return NotifyStreamEvent(text)
        case _:
            return ToolStreamEndEvent("ok")


@pytest.mark.requirement("D21")
async def test_a_run_with_masked_secrets_keeps_the_laws_of_events():
    """Concurrent calls each publish half of a secret."""

    @function_tool
    async def stream_letters(ctx: ToolContext[Any], text: str) -> str:
        """Stream a text letter by letter."""
        for letter in text:
            ctx.notify(letter, is_delta=True)
            await asyncio.sleep(0)
        return text

    stream = EventStream(secrets={"key": WORD})
    half = WORD[: len(WORD) // 3]
    model = ScriptedModel(
        [
            [tool_call("stream_letters", text=f"it is {text}") for text in (half, WORD, "corr")],
            "Done.",
        ]
    )
    await Runner.run(
        Agent("Clerk", tools=[stream_letters], model=model),
        "hello",
        run_config=RunConfig(event_stream=stream),
    )
    stream.close()
    events = list(stream.get_events())
    check_events(events)
    assert _written(events, ("call_1",)) == f"it is {half}"
    assert _written(events, ("call_2",)) == "it is ***"
    assert _written(events, ("call_3",)) == "it is corr"


# --- very large events ----------------------------------------------------------------------------

_HUGE = LARGEST + 1


@pytest.mark.requirement("S29")
@pytest.mark.parametrize(
    ("create", "kept"),
    [
        (lambda: NotifyStreamEvent("x" * _HUGE), "x" * 1000),
        (lambda: ToolArtifactEvent("film", b"\0" * _HUGE, mime_type="video/mp4"), "film"),
        (lambda: ToolArtifactEvent("book", "y" * _HUGE), "y" * 1000),
        (lambda: RunFinishedEvent("ok", {"text": ["z" * (_HUGE // 3)] * 3, "n": 1}), "z" * 1000),
        (lambda: RunFinishedEvent("ok", ["many"] * 2_000_000), "ok"),
        (
            lambda: MessageEvent([{"type": "text", "text": "w" * _HUGE}], role="assistant"),
            "w" * 1000,
        ),
        (
            lambda: RunItemStreamEvent("tool_output", {"call_id": "call_1", "output": "v" * _HUGE}),
            "call_1",
        ),
        (
            lambda: RunItemStreamEvent("tool_output", {"call_id": "c", "output": [1] * 2_000_000}),
            "call_id",
        ),
        slow_case(
            lambda: RawResponseStreamEvent({str(n): n for n in range(1_000_000)}), "raw_response"
        ),
    ],
)
def test_an_event_that_is_too_large_is_cut(create: Callable[[], Event], kept: str):
    """This applies to stored and to delivered events; the text notes the cut."""
    event = create()
    store = MemoryEventStore()
    with EventStream(store, keep="all") as stream:
        given = stream.publish(event.replace(origin=Origin()))
        assert given.__class__ is event.__class__
        stream.flush().result(BOUND)
        (stored,) = store.read().result()
    text = json.dumps(stored.to_dict(), ensure_ascii=False)
    assert len(text) < LARGEST // 4
    assert kept in text
    assert "left out" in text or "left_out" in text or "bGVmdCBvdX" in text


@pytest.mark.requirement("S29")
def test_a_large_event_within_the_limit_is_unchanged():
    """Only an event over the limit is cut; others are neither copied nor scanned."""
    stream = EventStream()
    text = "x" * (LARGEST - 1000)
    shown = stream.publish(NotifyStreamEvent(text))
    assert isinstance(shown, NotifyStreamEvent)
    assert shown.data is text
    assert content_of(stream.publish(message(text))) is text


@pytest.mark.requirement("S29")
def test_a_large_event_that_cannot_be_cut_becomes_a_gap():
    """A custom event class may have no field for the note about the cut."""

    @register_event
    class PictureEvent(Event):
        type = "picture_for_this_test"
        rows: list[str]

    given = EventStream().publish(PictureEvent(["x" * (1 << 20)] * 17).stamped(CALL, 3))
    assert isinstance(given, GapEvent)
    assert (given.dropped, given.seq, given.path) == (1, 3, CALL.path)


# --- forks, threads and stores that are cleared ---------------------------------------------------


@pytest.mark.requirement("F44")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_of_a_busy_process_publishes_without_hanging():
    """Other threads can hold any lock of a stream while this one forks."""
    stream = EventStream(MemoryEventStore(), secrets={"key": WORD})
    stream.subscribe("main", lambda _: None)
    over = threading.Event()

    def publish() -> None:
        while not over.is_set():
            stream.publish(message())
            stream.publish(_delta("notify", "corr"))

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                os._exit(_in_the_child(stream))
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        over.set()
        for thread in threads:
            thread.join()
        stream.close()


def _in_the_child(stream: EventStream) -> int:
    # Not SIGALRM: its handler belongs to the timeout of the test, and would continue the tests here.
    faulthandler.dump_traceback_later(BOUND, exit=True)
    received: list[Event] = []
    stream.subscribe("child", received.append)
    last = stream.publish(message("of the child"))
    stream.flush().result(BOUND)
    stream.close(timeout=BOUND)
    return 0 if last in received else 1


@pytest.mark.requirement("D5")
async def test_an_async_callback_does_not_begin_after_unsubscribe_in_another_thread():
    """The loop may be about to call it."""
    stream = EventStream()
    gone = threading.Event()
    late: list[Event] = []

    async def callback(event: Event) -> None:
        if gone.is_set():
            late.append(event)

    def resubscribe() -> None:
        for _ in range(300):
            stream.publish(message())
            stream.unsubscribe("server", "one")
            gone.set()
            asyncio.run_coroutine_threadsafe(subscribe(), loop).result(BOUND)

    async def subscribe() -> None:
        gone.clear()
        stream.subscribe("server", callback, "one")

    loop = asyncio.get_running_loop()
    await subscribe()
    await asyncio.to_thread(resubscribe)
    await stream.aclose()
    assert late == []


@pytest.mark.requirement("D5")
def test_the_end_of_a_loop_after_unsubscribe_is_not_reported(caplog: pytest.LogCaptureFixture):
    """The loop cancels the task that was about to call the callback."""
    stream = EventStream()

    async def callback(event: Event) -> None: ...

    async def subscribe_briefly() -> None:
        stream.subscribe("server", callback, "one")
        stream.publish(message())
        stream.unsubscribe("server", "one")

    asyncio.run(subscribe_briefly())
    assert [type(event) for event in stream.get_events()] == [MessageEvent]
    assert caplog.records == []


def close_in_a_thread(stream: EventStream) -> threading.Thread:
    """Close a stream in a thread, and return once that thread waits for a callback."""
    closer = threading.Thread(target=stream.close, daemon=True)
    [one] = stream._subscriptions.all()
    closer.start()
    until(lambda: one.drained._callbacks)
    return closer


def test_a_callback_cancelled_before_it_began_does_not_block_close() -> None:
    """The end of a loop cancels a task before its first step, so the task cannot report its end."""
    stream = EventStream()
    closers: list[threading.Thread] = []

    async def callback(event: Event) -> None:
        """Do nothing."""

    async def main() -> None:
        stream.subscribe("brief", callback)
        stream.publish(message())
        closers.append(close_in_a_thread(stream))

    asyncio.run(main())
    closers[0].join(BOUND)
    assert not closers[0].is_alive()


@pytest.mark.parametrize("method", ["close", "aclose"])
def test_a_callback_whose_loop_is_closed_meanwhile_does_not_block_close(method: str) -> None:
    """A stopped loop accepts callbacks but never runs them."""
    stream = EventStream()
    loop = asyncio.new_event_loop()

    async def callback(event: Event) -> None:
        """Do nothing."""

    async def main() -> None:
        stream.subscribe("brief", callback)

    loop.run_until_complete(main())
    stream.publish(message())
    [one] = stream._subscriptions.all()
    close = stream.close if method == "close" else lambda: asyncio.run(stream.aclose())
    closer = threading.Thread(target=close, daemon=True)
    closer.start()
    until(lambda: one.drained._callbacks)
    loop.close()
    closer.join(BOUND)
    assert not closer.is_alive()
