"""The least that could do the work: a list, queues, a file of JSON lines."""

from __future__ import annotations

import asyncio
import functools
import json
import tempfile
from collections import deque
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    Work: TypeAlias = "Callable[[int], Awaitable[float]]"

TEXT = "a piece of what is said, as long as such pieces are"
READERS = 10
STRETCH = 1_000
"""The number of events that are delivered at a time."""
FILE = 500
"""Events at a time that are kept on disk."""
SECRETS = ("correct-horse-battery-staple", "sk-0123456789abcdef0123456789", "hunter2hunter2")


def at_least(count: int) -> Callable[[Work], Work]:
    """Let a function do so many events at a time, so that it is not its start that is timed."""

    def enlarge(work: Work) -> Work:
        @functools.wraps(work)
        async def enlarged(size: int) -> float:
            number = max(size, count)
            return await work(number) * size / number

        return enlarged

    return enlarge


async def emit(size: int) -> float:
    """Put a dictionary with the time into a queue."""
    queue: deque[dict[str, Any]] = deque()
    path = ("call_1",)
    start = perf_counter()
    for number in range(size):
        queue.append({"type": "a", "seq": number, "timestamp": time(), "path": path, "data": TEXT})
    return perf_counter() - start


async def publish(size: int) -> float:
    """Number and keep."""
    log: list[tuple[int, float, str]] = []
    lock = Lock()
    start = perf_counter()
    for _ in range(size):
        with lock:
            log.append((len(log), time(), TEXT))
    return perf_counter() - start


@at_least(STRETCH)
async def heard(size: int) -> float:
    """Put into a queue that a thread empties."""
    queue: SimpleQueue[Any] = SimpleQueue()
    said: list[Any] = []

    def work() -> None:
        while (event := queue.get()) is not None:
            said.append(event)

    thread = Thread(target=work)
    start = perf_counter()
    thread.start()
    for number in range(size):
        queue.put((number, time(), TEXT))
    queue.put(None)
    await asyncio.to_thread(thread.join)
    return perf_counter() - start


@at_least(STRETCH)
async def follow(size: int) -> float:
    """Put into a queue that a task empties."""
    return await _queues(size, 1)


@at_least(STRETCH)
async def fan_out(size: int) -> float:
    """Put into a queue for each reader."""
    return await _queues(-(-size // READERS), READERS)


async def masked(size: int) -> float:
    """Replace plain texts."""
    start = perf_counter()
    for _ in range(size):
        text = TEXT
        for secret in SECRETS:
            text = text.replace(secret, "***")
    return perf_counter() - start


@at_least(FILE)
async def stored(size: int) -> float:
    """Write a line for each event, and hand all of them to the system."""
    with tempfile.TemporaryDirectory() as place:
        return _written(Path(place, "log"), size)


@at_least(FILE)
async def replay(size: int) -> float:
    """Read lines."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "log")
        _written(path, size)
        return timed(lambda: [json.loads(line) for line in path.open(encoding="utf-8")], size)


async def _queues(size: int, count: int) -> float:
    queues: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(count)]

    async def read(queue: asyncio.Queue[Any]) -> int:
        said = 0
        while await queue.get() is not None:
            said += 1
        return said

    readers = [asyncio.create_task(read(queue)) for queue in queues]
    await asyncio.sleep(0)
    start = perf_counter()
    for number in range(size):
        event = (number, time(), TEXT)
        for queue in queues:
            queue.put_nowait(event)
    for queue in queues:
        queue.put_nowait(None)
    said = await asyncio.gather(*readers)
    taken = perf_counter() - start
    check(sum(said), size * count)
    return taken


def _written(path: Path, size: int) -> float:
    with path.open("w", encoding="utf-8") as file:
        start = perf_counter()
        for number in range(size):
            line = {"type": "message_event", "id": number, "timestamp": time(), "content": TEXT}
            file.write(json.dumps(line) + "\n")
        file.flush()
        return perf_counter() - start


def timed(read: Callable[[], list[Any]], expected: int) -> float:
    """Time reading, and see that all is there."""
    start = perf_counter()
    events = read()
    taken = perf_counter() - start
    check(len(events), expected)
    return taken


def check(count: int, expected: int) -> None:
    """See that nothing is missing."""
    if count != expected:
        raise RuntimeError(f"{expected} events were to come, {count} came")
