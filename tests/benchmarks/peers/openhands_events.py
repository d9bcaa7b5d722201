"""OpenHands' log of events: a file for each, and a lock."""

from __future__ import annotations

import tempfile
from time import perf_counter

from openhands.sdk.conversation.event_store import EventLog
from openhands.sdk.event import MessageEvent
from openhands.sdk.io import LocalFileStore
from openhands.sdk.llm import Message, TextContent

from tests.benchmarks.events.limit import FILE, TEXT, at_least, timed


@at_least(FILE)
async def stored(size: int) -> float:
    """Append events."""
    with tempfile.TemporaryDirectory() as place:
        return _appended(place, size)


@at_least(FILE)
async def replay(size: int) -> float:
    """Read everything back, as when a conversation goes on."""
    with tempfile.TemporaryDirectory() as place:
        _appended(place, size)
        return timed(lambda: list(EventLog(LocalFileStore(place))), size)


def _appended(place: str, size: int) -> float:
    log = EventLog(LocalFileStore(place))
    message = Message(role="assistant", content=[TextContent(text=TEXT)])
    start = perf_counter()
    for _ in range(size):
        log.append(MessageEvent(source="agent", llm_message=message))
    return perf_counter() - start
