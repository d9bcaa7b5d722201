"""The race of an event stream: many publish, many read, some come and go, and it is closed."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from random import Random

from agents_tools import Event, EventStream, MessageEvent, SQLiteEventStore
from agents_tools.errors import UserError
from tests.soak._race_crowd import Crowd, hold as _hold

__all__ = ["readers_of_a_stream"]


def readers_of_a_stream(chance: Random) -> int:
    """Publish from threads and loops while readers of every kind come and go; then close."""
    with tempfile.TemporaryDirectory(prefix="agents-tools-races-") as folder:
        stored = chance.random() < 0.3
        store = SQLiteEventStore(Path(folder, "events.db")) if stored else None
        try:
            return _stream(EventStream(store, window=10_000), chance, stored=stored)
        finally:
            if store is not None:
                store.close()


def _stream(stream: EventStream, chance: Random, *, stored: bool) -> int:
    ids: dict[str, list[int]] = {}
    by_thread: list[Event] = []
    followed: list[list[Event]] = []
    stream.subscribe("all", by_thread.append)
    each = 40
    early = chance.random() < 0.3

    def publish(who: str) -> None:
        mine = ids[who]
        for number in range(each):
            try:
                mine.append(stream.publish(MessageEvent(f"{who} {number}")).id)
            except UserError:
                _hold(early, "a stream that is open refused an event")
                break

    async def send(who: str) -> None:
        for number in range(each):
            try:
                ids[who].append((await stream.send(MessageEvent(f"{who} {number}"))).id)
            except UserError:
                _hold(early, "a stream that is open refused an event")
                break

    async def follow() -> None:
        mine: list[Event] = []
        followed.append(mine)
        async for event in stream.follow():
            mine.append(event)  # noqa: PERF401 - others read it meanwhile

    async def come_and_go() -> None:
        for number in range(10):
            mine: list[Event] = []

            async def hear(event: Event, mine: list[Event] = mine) -> None:
                mine.append(event)

            with suppress(UserError):
                stream.subscribe("brief", hear, f"{id(mine)}", after=-1 if number % 2 else None)
                await asyncio.sleep(0.001)
                stream.unsubscribe("brief", f"{id(mine)}")
            _check_dense(mine)

    def watch_briefly() -> None:
        for _ in range(10):
            mine: list[Event] = []
            with suppress(UserError):
                stream.subscribe("thread", mine.append, f"{id(mine)}")
                stream.unsubscribe("thread", f"{id(mine)}")
            _check_dense(mine)

    writers = [f"w{number}" for number in range(6)]
    ids.update({who: [] for who in writers})
    left = [len(writers)]
    lock = threading.Lock()

    def written() -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last or early:
            stream.close()

    crowd = Crowd()
    for number, who in enumerate(writers):
        if number % 2:
            crowd.thread(lambda who=who: (publish(who), written()))
        else:

            async def sending(who: str = who) -> None:
                await send(who)
                await asyncio.to_thread(written)

            crowd.loop(sending)
    crowd.loop(follow)
    crowd.loop(follow)
    crowd.loop(come_and_go)
    crowd.thread(watch_briefly)
    crowd.run()
    return _check_stream(stream, ids, [by_thread, *followed], stored=stored)


def _check_dense(events: list[Event]) -> None:
    ids = [event.id for event in list(events)]
    _hold(ids == list(range(ids[0], ids[0] + len(ids))) if ids else True, f"ids have gaps: {ids}")


def _check_stream(
    stream: EventStream, ids: dict[str, list[int]], seen: list[list[Event]], *, stored: bool
) -> int:
    published = sorted(itertools.chain.from_iterable(ids.values()))
    _hold(published == list(range(len(published))), "ids were given twice, or left out")
    _hold(all(mine == sorted(mine) for mine in ids.values()), "a publisher's events lost order")
    for events in seen:
        got = [event.id for event in events]
        _hold(got == published, f"a reader saw {len(got)} events of {len(published)}: {got[-5:]}")
    if stored:
        kept = [event.id for event in stream.get_events()]
        _hold(kept == published, f"{len(kept)} events are kept of {len(published)}")
    _hold(not stream.errors, f"errors: {list(stream.errors)[:2]}")
    return len(published)
