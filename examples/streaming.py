"""Stream events from a tool, then its result, to a live consumer.

Run it: python examples/streaming.py. It prints the events of one call from its start to its end,
then the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from agents_tools import (
    Event,
    NotifyStreamEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    streaming_tool,
)

TEXTS = {"one.txt": "a short text", "two.txt": "a text that is a little longer"}


@streaming_tool
async def count_words(folder: str) -> AsyncIterator[Event | str]:
    """Count the words of the texts in a folder.

    Args:
        folder: The folder.
    """
    yield NotifyStreamEvent(f"reading {folder}")
    words = 0
    for done, text in enumerate(TEXTS.values(), start=1):
        words += len(text.split())
        yield ToolProgressEvent(done, total=len(TEXTS))
    yield f"{words} words"  # the first value that is no event is the result, and ends the tool


async def main() -> None:
    """Watch one call from its start to its end."""
    async with count_words.stream(folder="texts") as stream:
        async for event in stream:
            match event:
                case ToolStreamStartEvent(input_args=arguments):
                    print("start", dict(arguments))
                case NotifyStreamEvent(data=text):
                    print("  says", text)
                case ToolProgressEvent(current=current, total=total):
                    print(f"  has done {current} of {total}")
                case ToolStreamEndEvent(status=status):
                    print("end", status)
                case _:
                    print("  and", event.type)
    print("result:", stream.result)


asyncio.run(main())
