"""Call tools from a tool: one stream has the events of all calls, with their path.

Run it: python examples/nested_tools.py. It prints the events of three calls, with inner calls
indented.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from agents_tools import (
    Event,
    NotifyStreamEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    function_tool,
    notify,
    streaming_tool,
)


@function_tool
async def price_of(item: str) -> float:
    """Look up the price of an item.

    Args:
        item: The item.
    """
    notify(f"looking up {item}")
    return {"tea": 2.5, "cake": 4.0}[item]


@streaming_tool
async def price_order(items: list[str]) -> AsyncIterator[Event | str]:
    """Add up the prices of an order.

    Args:
        items: What is ordered.
    """
    yield NotifyStreamEvent(f"{len(items)} items")
    total = 0.0
    for item in items:
        total += await price_of.invoke(item=item)
    yield f"{total:.2f} in all"


async def main() -> None:
    """Print the events of all calls, indented by their depth."""
    async with price_order.stream(items=["tea", "cake"]) as stream:
        async for event in stream:
            indent = "  " * len(event.path)
            match event:
                case ToolStreamStartEvent():
                    print(f"{indent}{event.tool_name} starts")
                case ToolStreamEndEvent(status=status):
                    print(f"{indent}{event.tool_name} ends: {status}")
                case NotifyStreamEvent(data=text):
                    print(f"{indent}  {text}")
                case _:
                    pass
    print(stream.result)


asyncio.run(main())
