"""Agents that plan a journey, for the pictures: every step takes a fixed time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    ToolArtifactEvent,
    ToolProgressEvent,
    Usage,
    function_tool,
    streaming_tool,
)
from agents_tools.testing import ScriptedModel, tool_call

HOTELS = ("Aurelia", "Bellavista", "Campo", "Domus")


@function_tool
async def weather(city: str) -> str:
    """Return the weather of a city."""
    await asyncio.sleep(0.4)
    return f"18 °C and dry in {city}"


@streaming_tool
async def find_trains(city: str, passengers: int = 1) -> AsyncIterator[Event | str]:
    """Find trains to a city.

    Args:
        city: The destination.
        passengers: The number of travelers.
    """
    for done, railway in enumerate(("SBB", "DB", "ÖBB", "Trenitalia"), start=1):
        await asyncio.sleep(0.5)
        yield ToolProgressEvent(done, total=4, message=f"asking {railway}")
    yield ToolArtifactEvent("trains.csv", "08:12,10:12\n", mime_type="text/csv")
    yield f"08:12 and 10:12 to {city} for {passengers}"


@streaming_tool
async def search_hotels(city: str, nights: int) -> AsyncIterator[Event | str]:
    """Search hotels.

    Args:
        city: The city to stay in.
        nights: The number of nights.
    """
    for done, hotel in enumerate(HOTELS, start=1):
        yield NotifyStreamEvent(f"looking at {hotel}")
        await asyncio.sleep(0.6)
        if hotel == "Campo":
            yield NotifyStreamEvent("Campo does not answer", level="warning")
        yield ToolProgressEvent(done, total=len(HOTELS), message="hotels")
    yield f"Aurelia has a room in {city} for {nights} nights"


def _after(seconds: float, *answer: Any) -> Any:
    """Return a step of the model that answers after some seconds."""

    async def step(request: object) -> list[Any]:
        del request
        await asyncio.sleep(seconds)
        return list(answer)

    return step


scout = Agent(
    name="Scout",
    instructions="You find out about places.",
    tools=[weather, search_hotels],
    model=ScriptedModel(
        [
            _after(
                0.5,
                tool_call("weather", call_id="call_3", city="Rome"),
                tool_call("search_hotels", call_id="call_4", city="Rome", nights=3),
            ),
            _after(0.4, "Rome is dry, and Aurelia has a room."),
        ],
        usage=Usage(requests=1, input_tokens=412, output_tokens=38),
    ),
)

planner = Agent(
    name="Planner",
    instructions="You plan journeys.",
    tools=[
        find_trains,
        scout.as_tool("ask_scout", "Ask about a place.", streaming=True),
    ],
    model=ScriptedModel(
        [
            _after(
                0.5,
                tool_call("find_trains", city="Rome", passengers=2),
                tool_call("ask_scout", input="Weather and hotels in Rome, 3 nights"),
            ),
            _after(0.4, "Take the 08:12 to Rome. It is dry there, and Aurelia has a room."),
        ],
        usage=Usage(requests=1, input_tokens=505, output_tokens=61),
    ),
)
