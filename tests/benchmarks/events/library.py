"""The library's event stream."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agents_tools.events import (
    ActionEvent,
    AgentStateChangedEvent,
    AgentUpdatedStreamEvent,
    ErrorEvent,
    Event,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    ObservationEvent,
    Origin,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.events.channel import Channel
from agents_tools.persistence import SQLiteEventStore
from agents_tools.persistence.stream import EventStream
from tests.benchmarks.events.limit import (
    FILE,
    READERS,
    SECRETS,
    STRETCH,
    TEXT,
    at_least,
    check,
    timed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = Origin("crawl", "call_1", ("call_1",))
KINDS: list[tuple[Callable[..., Event], tuple[Any, ...]]] = [
    (NotifyStreamEvent, (TEXT,)),
    (ToolProgressEvent, (1, 10, TEXT)),
    (ToolArtifactEvent, ("report", TEXT)),
    (ToolStreamStartEvent, ({"url": TEXT},)),
    (ToolStreamEndEvent, ("ok", 0.5)),
    (ToolAttemptEvent, (1, TEXT, 0.5)),
    (GapEvent, (3,)),
    (RunItemStreamEvent, ("tool_called", {"name": TEXT})),
    (RawResponseStreamEvent, ({"delta": TEXT},)),
    (AgentUpdatedStreamEvent, ("reader",)),
    (RunStartedEvent, ("run_1", "reader")),
    (RunFinishedEvent, ("ok", TEXT)),
    (MessageEvent, (TEXT,)),
    (ActionEvent, ("Read", {"path": TEXT})),
    (ObservationEvent, ("Read", {"content": TEXT})),
    (AgentStateChangedEvent, ("running",)),
    (ErrorEvent, (TEXT,)),
    (NullEvent, ()),
]
"""Every kind of event with its arguments."""
SHOWN = NotifyStreamEvent(TEXT).stamped(CALL, 1)
DELTA = NotifyStreamEvent(TEXT, is_delta=True).stamped(CALL, 1)
SAID = MessageEvent(TEXT, role="assistant").stamped(Origin(), 1)


async def emit(size: int) -> float:
    """Create events of all kinds, stamp them and push them to a channel."""
    rounds = -(-size // len(KINDS))
    channel = Channel(rounds * len(KINDS))
    start = perf_counter()
    for number in range(rounds):
        for kind, arguments in KINDS:
            channel.push(kind(*arguments).stamped(CALL, number))
    return (perf_counter() - start) * size / (rounds * len(KINDS))


async def publish(size: int) -> float:
    """Publish without subscribers."""
    with EventStream() as stream:
        return _published(stream, SHOWN, size)


@at_least(STRETCH)
async def heard(size: int) -> float:
    """Publish to a plain function; nothing is lost, however fast that is."""
    said: list[Event] = []
    stream = EventStream(window=size + 1)
    stream.subscribe("main", said.append)
    start = perf_counter()
    _published(stream, SHOWN, size)
    await stream.aclose()
    taken = perf_counter() - start
    check(len(said), size)
    return taken


@at_least(STRETCH)
async def follow(size: int) -> float:
    """Publish to one follower."""
    return await _followed(size, 1)


@at_least(STRETCH)
async def fan_out(size: int) -> float:
    """Publish to several followers."""
    return await _followed(-(-size // READERS), READERS)


async def masked(size: int) -> float:
    """Publish where secrets are looked for."""
    with EventStream(secrets={str(n): secret for n, secret in enumerate(SECRETS)}) as stream:
        return _published(stream, DELTA, size)


@at_least(FILE)
async def stored(size: int) -> float:
    """Publish, and wait once until everything is stored."""

    def work(stream: EventStream) -> float:
        start = perf_counter()
        _published(stream, SAID, size)
        stream.flush().result()
        return perf_counter() - start

    return await asyncio.to_thread(_on_disk, work)


@at_least(FILE)
async def replay(size: int) -> float:
    """Read everything back from the store."""

    def work(stream: EventStream) -> float:
        _published(stream, SAID, size)
        stream.close()
        again = EventStream(stream.store)
        return timed(lambda: list(again.get_events()), size)

    return await asyncio.to_thread(_on_disk, work)


def _published(stream: EventStream, event: Event, size: int) -> float:
    publish = stream.publish
    start = perf_counter()
    for _ in range(size):
        publish(event)
    return perf_counter() - start


async def _followed(size: int, count: int) -> float:
    stream = EventStream(window=size + 1)

    async def read() -> int:
        said = 0
        async for _ in stream.follow():
            said += 1
        return said

    readers = [asyncio.create_task(read()) for _ in range(count)]
    await asyncio.sleep(0)
    start = perf_counter()
    _published(stream, SHOWN, size)
    await stream.aclose()
    said = await asyncio.gather(*readers)
    taken = perf_counter() - start
    check(sum(said), size * count)
    return taken


def _on_disk(work: Callable[[Any], float]) -> float:
    with tempfile.TemporaryDirectory() as place:
        store = SQLiteEventStore(Path(place, "events.db"))
        try:
            with EventStream(store) as stream:
                return work(stream)
        finally:
            store.close()
