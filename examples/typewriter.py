"""Stream a text in deltas that a user interface joins as they arrive.

Run it: python examples/typewriter.py. It prints a sentence word by word, then the result for the
model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from agents_tools import Event, NotifyStreamEvent, streaming_tool


async def words_of_a_model(topic: str) -> AsyncIterator[str]:
    """Stand in for a language model that answers word by word."""
    for word in f"Three things are known about {topic}.".split():
        await asyncio.sleep(0.02)
        yield word + " "


@streaming_tool
async def summarize(topic: str) -> AsyncIterator[Event | str]:
    """Summarize what is known about a topic.

    Args:
        topic: The topic.
    """
    yield NotifyStreamEvent(f"searching for {topic}")
    summary = ""
    async for piece in words_of_a_model(topic):
        summary += piece
        yield NotifyStreamEvent(piece, is_delta=True)
    yield summary.strip()


async def main() -> None:
    """Print the pieces as they come."""
    async with summarize.stream(topic="owls") as stream:
        async for event in stream:
            if isinstance(event, NotifyStreamEvent):
                print(event.data, end="" if event.is_delta else "\n", flush=True)
    print()
    print("the model gets:", stream.result)


asyncio.run(main())
