"""Many clients of one run: they connect, disconnect and read slowly, without loss or blocking."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tracemalloc
from typing import Any

import pytest

from agents_tools import Event, NotifyStreamEvent, function_tool, streaming_tool
from agents_tools.events import GapEvent, RunFinishedEvent
from agents_tools.persistence import MemoryRunStore
from agents_tools.ui import sse
from tests.scale import IS_FULL
from tests.ui.web import PATIENCE, Exchange, Raw, ask, served

_ID = re.compile(rb"^id: r1:(\d+)$", re.MULTILINE)


class Ticker:
    """A tool that reports progress on request, and records its cancellation."""

    def __init__(self, size: int = 10) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.said = 0
        self._ticks: asyncio.Queue[int] = asyncio.Queue()

        @streaming_tool
        async def tick():
            """Say something for each tick."""
            self.begun.set()
            try:
                while count := await self._ticks.get():
                    for _ in range(count):
                        self.said += 1
                        yield NotifyStreamEvent(data=f"{self.said:06d}" + "x" * size)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            yield "done"

        self.tool = tick

    def tick(self, count: int = 1) -> None:
        self._ticks.put_nowait(count)

    def end(self) -> None:
        self._ticks.put_nowait(0)


async def started(app: Any, tool: str = "tick") -> None:
    """Start the run `r1` without watching it."""
    body = {"tool": tool, "run_id": "r1"}
    exchange = await ask(app, "POST", "/runs", body, headers={"prefer": "respond-async"})
    assert exchange.status == 202


async def bounded(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await event.wait()


def ids_of(data: bytes) -> list[int]:
    """Return the ids of the complete frames."""
    whole = data[: data.rfind(b"\n\n") + 2]
    return [int(number) for number in _ID.findall(whole)]


class Counting(Exchange):
    """A client that stores only the ids of its frames; each part of an answer is whole frames."""

    count = 0
    last = -1
    in_order = True

    def _take(self, part: bytes) -> None:
        ids = ids_of(part)
        if ids:
            self.in_order &= ids == sorted(set(ids)) and ids[0] > self.last
            self.count, self.last = self.count + len(ids), ids[-1]


# --- reconnecting clients


@pytest.mark.slow
@pytest.mark.requirement("F23")
@pytest.mark.timeout(90)
async def test_a_client_that_comes_back_a_thousand_times_misses_nothing() -> None:
    """It is cut off in the middle of frames, and resumes at the exact position each time."""
    ticker = Ticker()
    app = sse.app([ticker.tool], on_disconnect="detach")
    seen: list[int] = []
    async with served(app) as port:
        await started(app)
        for _ in range(1_000):
            ticker.tick()
            async with Raw.to(port) as raw:
                place = {"Last-Event-ID": f"r1:{seen[-1]}"} if seen else {}
                raw.request("GET", "/runs/r1/events", headers=place)
                await raw.until(b"\r\n\r\n")
                data = b""
                while not ids_of(data):
                    data += await asyncio.wait_for(raw.reader.read(300), PATIENCE)
            seen += ids_of(data)
        ticker.end()
        rest = await ask(app, "GET", f"/runs/r1/events?after={seen[-1]}")
        seen += ids_of(rest.text.encode())
        whole = await ask(app, "GET", "/runs/r1/events")
    events = list(sse.decode(whole.text))
    assert seen == sorted(set(seen))
    assert {event.id for event in events} <= set(seen)
    assert len(seen) - sum(not isinstance(event, NotifyStreamEvent) for event in events) == 1_000


@pytest.mark.requirement("F23")
async def test_a_run_can_be_resumed_after_every_event() -> None:
    """The response has exactly the events after the last id."""
    ticker = Ticker()
    app = sse.app([ticker.tool])
    await started(app)
    first = Exchange(app, "GET", "/runs/r1/events")
    ticker.tick(1_000)
    whole = (await first.until("001000x")).encode()
    whole = whole[: whole.rindex(b"\n\n") + 2]
    frames = [frame + b"\n\n" for frame in whole.split(b"\n\n")[:-1]]
    ids = [-1, *ids_of(whole)]
    for place in range(0, len(frames) - 1, 7):
        exchange = Exchange(app, "GET", f"/runs/r1/events?after={ids[place]}")
        rest = b"".join(frames[place:])
        await exchange.wait_for(lambda one=exchange, rest=rest: len(one.text) >= len(rest))
        assert exchange.text.encode() == rest
        await exchange.leave()
    ticker.end()
    assert (await first.whole()).text.encode().startswith(whole)
    await app.aclose()


# --- many clients


@pytest.mark.scaled
@pytest.mark.requirement("F23")
@pytest.mark.timeout(90)
async def test_many_clients_watch_one_run_in_flat_memory() -> None:
    """Each gets every event, and the memory use does not depend on their number."""
    clients = 1_000 if IS_FULL else 100
    ticker = Ticker(size=1_000)
    app = sse.app([ticker.tool])
    await started(app)
    watching = [Counting(app, "GET", "/runs/r1/events") for _ in range(clients)]
    ticker.tick(30)
    await until_all(watching, 30)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for turn in range(2, 5):
            ticker.tick(30)
            await until_all(watching, 30 * turn)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000 * clients  # the frames of 90 events for one are 110 KB
    ticker.end()
    for one in watching:
        await one.whole()
    assert {one.count for one in watching} == {watching[0].count}
    assert {one.last for one in watching} == {(await app.runs.list())[0].last_id}
    assert all(one.in_order for one in watching)
    await app.aclose()


async def until_all(watching: list[Counting], count: int) -> None:
    for one in watching:
        await one.wait_for(lambda one=one: one.count >= count, within=60)


# --- slow clients


@pytest.mark.requirement("F21", "F23")
@pytest.mark.timeout(120)
async def test_a_client_that_does_not_read_blocks_no_other_client() -> None:
    """The run ends, the others get all events, and it gets the rest when it reads again."""
    ticker = Ticker(size=2_000)
    app = sse.app([ticker.tool])
    async with served(app) as port, Raw.to(port, limit=1_024) as stalled:
        stalled.request("POST", "/runs", {"tool": "tick", "run_id": "r1"})
        await stalled.until(b"run_started_event")
        reader = Counting(app, "GET", "/runs/r1/events")
        for turn in range(1, 21):
            ticker.tick(500)
            await reader.wait_for(lambda turn=turn: reader.count > turn * 500)
        ticker.end()
        await reader.whole()
        assert reader.in_order
        assert reader.count > ticker.said == 10_000
        assert (await app.runs.list())[0].status == "ok"
        late = await drained(stalled)
    last = late[-1]
    assert isinstance(last, RunFinishedEvent)
    ids = [event.id for event in late if not isinstance(event, GapEvent)]
    assert ids == sorted(set(ids))
    got = sum(isinstance(event, NotifyStreamEvent) for event in late)
    left_out = sum(event.dropped for event in late if isinstance(event, GapEvent))
    assert got + left_out == 10_000


async def drained(raw: Raw) -> list[Event]:
    """Read the rest of an answer, from the next frame on."""
    data = await asyncio.wait_for(raw.reader.read(), 30)
    return list(sse.decode(data[data.index(b"\n\n") + 2 :].decode()))


# --- disconnects


@pytest.mark.parametrize("how", ["cut", "close"])
async def test_a_silent_tool_is_cancelled_when_its_client_disconnects(how: str) -> None:
    """The disconnect is noticed without an event of the tool; its cleanup runs."""
    ticker = Ticker()
    app = sse.app([ticker.tool], heartbeat=None)
    async with served(app) as port:
        async with Raw.to(port) as raw:
            raw.request("POST", "/runs", {"tool": "tick", "run_id": "r1"})
            await raw.until(b"tool_stream_start_event")
            await bounded(ticker.begun)
            if how == "close":
                raw.writer.close()
        await bounded(ticker.cancelled)
        run = (await app.runs.list())[0]
        await run.wait()
        assert (run.status, run.error) == ("cancelled", "The last client has disconnected.")


async def test_a_run_continues_while_one_client_is_connected() -> None:
    """Only the disconnect of the last client cancels it."""
    ticker = Ticker()
    app = sse.app([ticker.tool])
    async with served(app) as port, Raw.to(port) as stays:
        async with Raw.to(port) as first:
            first.request("POST", "/runs", {"tool": "tick", "run_id": "r1"})
            await first.until(b"tool_stream_start_event")
            stays.request("GET", "/runs/r1/events")
            await stays.until(b"tool_stream_start_event")
        ticker.tick()
        await stays.until(b"000001x")
        assert not ticker.cancelled.is_set()
        run = (await app.runs.list())[0]
        while run.watchers > 1:
            ticker.tick()
            await stays.until(b'x"')
        assert run.is_running
    await bounded(ticker.cancelled)


@pytest.mark.parametrize("kept", [True, False])
async def test_a_detached_run_continues_and_a_later_client_gets_all(*, kept: bool) -> None:
    """This is the default with a store."""
    ticker = Ticker()
    options: dict[str, Any] = {"store": MemoryRunStore()} if kept else {"on_disconnect": "detach"}
    app = sse.app([ticker.tool], **options)
    async with served(app) as port:
        async with Raw.to(port) as raw:
            raw.request("POST", "/runs", {"tool": "tick", "run_id": "r1"})
            await raw.until(b"tool_stream_start_event")
        run = (await app.runs.list())[0]
        while run.watchers:  # until the server has noticed the disconnect
            await asyncio.wait_for(asyncio.sleep(0), PATIENCE)
        ticker.tick(3)
        ticker.end()
        exchange = await ask(app, "GET", "/runs/r1/events")
        events = list(sse.decode(exchange.text))
        assert sum(isinstance(event, NotifyStreamEvent) for event in events) == 3
        assert run.status == "ok"
        assert not ticker.cancelled.is_set()


@pytest.mark.requirement("F5")
@pytest.mark.leaves_behind
async def test_a_tool_that_ignores_cancellation_does_not_block_its_run() -> None:
    """The run ends within the grace period; the tool that is still running is reported."""
    begun, let_go = asyncio.Event(), asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        """Go on whatever happens."""
        begun.set()
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        return "still here"

    app = sse.app([stubborn])
    watching = Exchange(app, "POST", "/runs", {"tool": "stubborn", "run_id": "r1"})
    await bounded(begun)
    await ask(app, "POST", "/runs/r1/cancel")
    await watching.whole()
    last = list(sse.decode(watching.text))[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.status == "cancelled"
    let_go.set()
    await app.aclose()


async def test_a_heartbeat_detects_a_disconnected_client() -> None:
    """Servers of ASGI 2.4 report the disconnect only at the next send."""
    ticker = Ticker()
    app = sse.app([ticker.tool], heartbeat=0.01)
    exchange = Exchange(app, "POST", "/runs", {"tool": "tick", "run_id": "r1"}, spec="2.4")
    await exchange.until("tool_stream_start_event")
    await exchange.until(":\n\n")
    exchange.disconnect()
    await bounded(ticker.cancelled)
    await exchange.whole()


async def test_a_server_that_stops_ends_its_streams_and_its_runs() -> None:
    """The client gets the end of the connection, the tool its cancellation."""
    ticker = Ticker()
    app = sse.app([ticker.tool], on_disconnect="detach")
    async with contextlib.AsyncExitStack() as stack:
        async with served(app) as port:
            raw = await stack.enter_async_context(Raw.to(port))
            raw.request("POST", "/runs", {"tool": "tick", "run_id": "r1"})
            await raw.until(b"tool_stream_start_event")
        await bounded(ticker.cancelled)
        await asyncio.wait_for(raw.reader.read(), PATIENCE)
    assert await app.runs.list() == []
