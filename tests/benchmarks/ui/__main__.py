"""`python -m tests.benchmarks.ui`: time the streams of `sse.app`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tracemalloc
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agents_tools import NotifyStreamEvent, streaming_tool
from agents_tools.ui import sse
from tests.benchmarks.subjects import BENCH
from tests.benchmarks.ui import UI_TITLES
from tests.ui.web import Exchange, Raw, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

EVENTS = 10_000
CLIENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What one workload took.

    Attributes:
        median: In the middle.
        worst: At the worst.
        limit: What it takes by hand, in the middle.
    """

    median: float
    worst: float
    limit: float | None = None


class Speaker:
    """A tool that says what it is given, and notes when it is cancelled."""

    def __init__(self) -> None:
        self.texts: asyncio.Queue[list[str] | None] = asyncio.Queue()
        self.cancelled: asyncio.Future[float] = asyncio.get_running_loop().create_future()

        @streaming_tool
        async def speak(delta: bool = False):
            """Say what is given."""
            try:
                while (texts := await self.texts.get()) is not None:
                    for text in texts:
                        yield NotifyStreamEvent(text, is_delta=delta)
            except asyncio.CancelledError:
                self.cancelled.set_result(perf_counter())
                raise
            yield "done"

        self.tool = speak


async def by_hand(scope: Any, receive: Any, send: Any) -> None:
    """Send what is asked for: so many frames of so many bytes."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    queue: asyncio.Queue[bytes] = scope["app_queue"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while data := await queue.get():
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def with_queue(queue: asyncio.Queue[bytes]) -> Any:
    """Return the hand-written app, with the frames that it sends."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await by_hand({**scope, "app_queue": queue}, receive, send)

    return app


async def first_byte(turns: int) -> Figure:
    """Time one event at a time."""
    speaker, queue = Speaker(), asyncio.Queue[bytes]()
    own: list[float] = []
    least: list[float] = []
    async with (
        served(sse.app([speaker.tool])) as port,
        served(with_queue(queue)) as other,
        Raw.to(port) as raw,
        Raw.to(other) as bare,
    ):
        raw.request("POST", "/runs", {"tool": "speak"})
        bare.request("GET", "/")
        await raw.until(b"tool_stream_start_event")
        for turn in range(turns):
            await asyncio.sleep(0.01)  # people and models pause, too
            mark = f"mark {turn:06d}".encode()
            start = perf_counter()
            speaker.texts.put_nowait([mark.decode()])
            await raw.until(mark)
            own.append(perf_counter() - start)
            start = perf_counter()
            queue.put_nowait(mark)
            await bare.until(mark)
            least.append(perf_counter() - start)
        queue.put_nowait(b"")
    return _figure(own, least)


async def disconnect(turns: int) -> Figure:
    """Time the way from a cut connection to the tool."""
    taken: list[float] = []
    for _ in range(turns):
        speaker = Speaker()
        app = sse.app([speaker.tool])
        async with served(app) as port, Raw.to(port) as raw:
            raw.request("POST", "/runs", {"tool": "speak"})
            await raw.until(b"tool_stream_start_event")
            await asyncio.sleep(0.01)  # nothing of the start is under way any more
            start = perf_counter()
            raw.cut()
            taken.append(await speaker.cancelled - start)
    return _figure(taken)


async def flood(turns: int, *, delta: bool = False) -> Figure:
    """Time a tool that says as much as it can, up to the last byte."""
    own: list[float] = []
    least: list[float] = []
    for _ in range(turns):
        speaker, queue = Speaker(), asyncio.Queue[bytes]()
        async with (
            served(sse.app([speaker.tool])) as port,
            served(with_queue(queue)) as other,
            Raw.to(port) as raw,
            Raw.to(other) as bare,
        ):
            arguments = {"tool": "speak", "arguments": {"delta": delta}, "run_id": "r1"}
            raw.request("POST", "/runs", arguments)
            await raw.until(b"tool_stream_start_event")
            start = perf_counter()
            speaker.texts.put_nowait([f"{number:08d}" for number in range(EVENTS)])
            speaker.texts.put_nowait(None)
            data = await raw.reader.read()
            own.append((perf_counter() - start) / EVENTS)
            bare.request("GET", "/")
            start = perf_counter()
            queue.put_nowait(data)
            queue.put_nowait(b"")
            await bare.reader.read()
            least.append((perf_counter() - start) / EVENTS)
    return _figure(own, least)


async def flood_deltas(turns: int) -> Figure:
    """Time pieces of a text."""
    return await flood(turns, delta=True)


async def resume(turns: int) -> Figure:
    """Time a client that comes back."""
    speaker = Speaker()
    app = sse.app([speaker.tool], on_disconnect="detach")
    taken: list[float] = []
    async with served(app) as port:
        async with Raw.to(port, limit=16 << 20) as raw:
            raw.request("POST", "/runs", {"tool": "speak", "run_id": "r1"})
            await raw.until(b"tool_stream_start_event")
            speaker.texts.put_nowait([f"{number:08d}" for number in range(EVENTS // 2)])
            await raw.until(f"{EVENTS // 2 - 1:08d}".encode())
        for turn in range(turns):
            place = EVENTS // 2 - 10 - turn
            start = perf_counter()
            async with Raw.to(port) as raw:
                raw.request("GET", "/runs/r1/events", headers={"Last-Event-ID": f"r1:{place}"})
                await raw.until(f"id: r1:{place + 1}\n".encode())
                taken.append(perf_counter() - start)
    return _figure(taken)


class Counting(Exchange):
    """A client that counts frames and keeps nothing."""

    count = 0

    def has(self, count: int) -> Callable[[], bool]:
        """Return a condition: whether at least this many frames were received."""
        return lambda: self.count >= count

    def _take(self, part: bytes) -> None:
        self.count += part.count(b"\n\n")


async def watchers(turns: int) -> Figure:
    """Time one event for all, and again."""
    speaker = Speaker()
    app = sse.app([speaker.tool])
    headers = {"prefer": "respond-async"}
    await Exchange(app, "POST", "/runs", {"tool": "speak", "run_id": "r1"}, headers=headers).whole()
    clients = [Counting(app, "GET", "/runs/r1/events") for _ in range(CLIENTS)]
    taken: list[float] = []
    expected = 3
    for client in clients:
        await client.wait_for(client.has(expected), within=60)
    for turn in range(turns):
        expected += 1
        start = perf_counter()
        speaker.texts.put_nowait([f"{turn:08d}"])
        for client in clients:
            await client.wait_for(client.has(expected), within=60)
        taken.append((perf_counter() - start) / CLIENTS)
        await asyncio.sleep(0.01)  # people and models pause, too
    speaker.texts.put_nowait(None)
    for client in clients:
        await client.whole()
    await app.aclose()
    return _figure(taken)


async def watcher_memory(_: int) -> Figure:
    """Weigh clients that wait, on the side of the server and of the test."""
    speaker = Speaker()
    app = sse.app([speaker.tool])
    headers = {"prefer": "respond-async"}
    await Exchange(app, "POST", "/runs", {"tool": "speak", "run_id": "r1"}, headers=headers).whole()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    clients = [Counting(app, "GET", "/runs/r1/events") for _ in range(CLIENTS)]
    for client in clients:
        await client.wait_for(client.has(1), within=60)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    speaker.texts.put_nowait(None)
    for client in clients:
        await client.whole()
    await app.aclose()
    weight = (after - before) / CLIENTS / 1024
    return Figure(median=weight, worst=weight)


WORKLOADS: dict[str, tuple[Callable[[int], Awaitable[Figure]], int]] = {
    "first_byte": (first_byte, 300),
    "disconnect": (disconnect, 30),
    "flood": (flood, 5),
    "flood_deltas": (flood_deltas, 5),
    "resume": (resume, 200),
    "watchers": (watchers, 30),
    "watcher_memory": (watcher_memory, 1),
}


def main() -> None:
    """Time what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ui")
    parser.add_argument("--only", nargs="+", choices=UI_TITLES, default=list(UI_TITLES))
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    options = parser.parse_args()
    figures: dict[str, Figure] = {}
    for name in options.only:
        work, turns = WORKLOADS[name]
        print(f"  {name}", file=sys.stderr, flush=True)
        figures[name] = asyncio.run(_timed(work, max(1, turns // 10 if options.quick else turns)))
    BENCH.mkdir(exist_ok=True)
    told = {
        name: {key: getattr(one, key) for key in one.__slots__} for name, one in figures.items()
    }
    (BENCH / "ui.json").write_text(json.dumps(told, indent=2) + "\n")
    print("| | median | worst | limit |\n|---|---:|---:|---:|")
    for name, one in figures.items():
        shown = [_shown(name, value) for value in (one.median, one.worst, one.limit)]
        print(f"| {UI_TITLES[name]} | {' | '.join(shown)} |")


async def _timed(work: Callable[[int], Awaitable[Figure]], turns: int) -> Figure:
    return await work(turns)


def _figure(taken: list[float], least: list[float] | None = None) -> Figure:
    return Figure(
        median=statistics.median(taken),
        worst=max(taken),
        limit=statistics.median(least) if least else None,
    )


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "watcher_memory":
        return f"{value:.1f} KB"
    return f"{value * 1e3:.2f} ms" if value >= 0.001 else f"{value * 1e6:.1f} µs"


if __name__ == "__main__":
    main()
