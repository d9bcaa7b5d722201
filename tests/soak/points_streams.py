"""Event streams and their stores, for faults at each of the awaits of those who publish and read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any

from agents_tools import Event, EventStream
from agents_tools.events import MessageEvent, NotifyStreamEvent
from agents_tools.persistence import EventStore, MemoryEventStore, PendingFuture, SQLiteEventStore
from tests.soak.points_stage import Scenario, Stage, together

__all__ = ["STREAMS"]

_COUNT = 6


def _said(number: int) -> Event:
    """Make an event: every other one is kept in the store."""
    if number % 2:
        return NotifyStreamEvent(f"line {number}")
    return MessageEvent(f"message {number}", role="user")


def _no_store(_: Stage) -> EventStore | None:
    return None


class _Failing(MemoryEventStore):
    """A store at which faults may strike."""

    stage: Stage

    def append(self, events: Sequence[Event], /, **more: Any) -> PendingFuture[int]:
        """Store events."""
        self.stage.hit("store")
        return super().append(events, **more)


def _failing(stage: Stage) -> EventStore | None:
    store = _Failing()
    store.stage = stage
    return store


def _memory(_: Stage) -> EventStore | None:
    return MemoryEventStore()


def _sqlite(stage: Stage) -> EventStore | None:
    return SQLiteEventStore(stage.folder / "events.db")


def _checked(stage: Stage, seen: list[Event], *, dense: bool = True) -> None:
    """Look afterwards whether a reader has seen events in order, each once, and none left out."""

    def check() -> Iterator[str]:
        ids = [event.id for event in seen]
        steps = {later - earlier for earlier, later in pairwise(ids)}
        if steps - ({1} if dense else set(range(1, 100))):
            yield f"a reader saw the ids {ids}"

    stage.checks.append(check)


async def _publishing(stage: Stage, stream: EventStream) -> None:
    for number in range(_COUNT):
        await stage.at("publisher")
        stage.kept["said"] = number + 1
        await stream.send(_said(number))
    await stream.flush()


async def _following(stage: Stage, stream: EventStream) -> None:
    seen = list[Event]()
    _checked(stage, seen)
    async with stream.follow() as follower:
        async for event in follower:
            seen.append(event)
            await stage.at("reader")
            if len(seen) == _COUNT:
                return


def _shared(make: Callable[[Stage], EventStore | None]) -> Callable[[Stage], Awaitable[Any]]:
    """Publish, follow and subscribe at the same time, in tasks of their own."""

    async def play(stage: Stage) -> None:
        store = make(stage)
        called, threaded = list[Event](), list[Event]()

        async def callback(event: Event) -> None:
            with stage.inside("callback"):
                called.append(event)
                await stage.at("callback")

        def in_thread(event: Event) -> None:
            threaded.append(event)
            stage.hit("callback in a thread")

        for seen in (called, threaded):
            _checked(stage, seen)
        try:
            async with EventStream(store) as stream:
                stream.subscribe("s", callback)
                stream.subscribe("t", in_thread)
                await together(_following(stage, stream), _publishing(stage, stream))
        finally:
            if store is not None:
                stage.kept["stored"] = list(store.read().result(3))
                store.close()
        _stored(stage)

    return play


def _stored(stage: Stage) -> None:
    """Look afterwards whether what was said is stored, up to where the stream was cut off."""
    if "stored" in stage.kept:
        kept = [event.content for event in stage.kept["stored"] if isinstance(event, MessageEvent)]
        said = [f"message {number}" for number in range(0, stage.kept.get("said", 0), 2)]
        if kept != said[: len(kept)]:
            stage.checks.append(lambda: iter([f"stored is {kept}"]))


async def _from_the_store(stage: Stage) -> None:
    """Read again what another stream has left in the file, while more is published."""
    with closing(SQLiteEventStore(stage.folder / "events.db")) as store:
        for number in range(0, 4, 2):
            await store.append([_said(number)])
        async with EventStream(store, window=1) as stream:
            await stage.at("publisher")
            seen = list[Event]()
            _checked(stage, seen, dense=False)
            for number in range(4, 8):
                await stream.send(_said(number))
            await stream.flush()
            await stage.at("reader")
            read = await stream.read()
            assert len(read) == 4, read
            async for event in stream.follow():
                seen.append(event)
                await stage.at("reader")
                if event.id == stream.last_id:
                    return


async def _slow_reader(stage: Stage) -> None:
    """Let the publisher wait for a reader that has no room left."""
    async with EventStream(window=2) as stream:
        gate = asyncio.Event()

        async def callback(_: Event) -> None:
            await gate.wait()
            await stage.at("callback")

        stream.subscribe("s", callback, max_pending=1)

        async def opens() -> None:
            for _ in range(3):
                await asyncio.sleep(0)
            gate.set()

        try:
            await together(_publishing(stage, stream), opens())
        finally:
            gate.set()


async def _waiting(stage: Stage) -> None:
    """Wait at stores themselves: for what is appended elsewhere."""
    store = MemoryEventStore()

    async def writes() -> None:
        await stage.at("writer")
        await store.append([_said(0), _said(2)])

    async def waits() -> None:
        last = await store.wait(-1)
        assert last == len(list(await store.read())) - 1

    try:
        await together(waits(), writes())
    finally:
        store.close()


async def _fresh(stage: Stage) -> None:
    """Use what is shared by all streams once more."""
    with closing(SQLiteEventStore(stage.folder / "again.db")) as store:
        async with EventStream(store) as stream:
            stream.publish(_said(0))
            await stream.flush()
        assert len(list(await store.read())) == 1


STREAMS: list[Scenario] = [
    Scenario(name="event stream", play=_shared(_no_store), again=_fresh, every=2),
    Scenario(name="event stream in memory", play=_shared(_memory), again=_fresh, every=2),
    Scenario(
        name="event stream that fails to store", play=_shared(_failing), again=_fresh, every=2
    ),
    Scenario(name="event stream in sqlite", play=_shared(_sqlite), again=_fresh, every=2),
    Scenario(name="event stream from a file", play=_from_the_store, again=_fresh, every=2),
    Scenario(name="event stream with a slow reader", play=_slow_reader, again=_fresh, every=2),
    Scenario(name="store that is waited at", play=_waiting, again=_fresh, every=2),
]
