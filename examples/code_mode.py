"""Let the model write a program that calls the tools, instead of one request per call.

Run it: python examples/code_mode.py. It prints what the program does while it runs, the request for
an approval in the middle of it, and the answer.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    Runner,
    ToolStreamEndEvent,
    code_mode,
    function_tool,
)
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call

PROGRAM = """
import asyncio
cities = ["Oslo", "Rome", "Vienna", "Lisbon"]
weather = await asyncio.gather(*[get_weather(city) for city in cities])
warmest = max(weather, key=lambda one: one["high"])
print(f"compared {len(weather)} cities")
await book_flight(warmest["city"])
"""
MODEL = ScriptedModel([tool_call("run_code", code=PROGRAM), "Your flight to the sun is booked."])


@function_tool
async def get_weather(city: str) -> dict[str, str | int]:
    """Return the weather of a city, with the highest temperature."""
    await asyncio.sleep(0.05)
    return {"city": city, "high": {"Oslo": 4, "Rome": 17, "Vienna": 8, "Lisbon": 19}[city]}


@needs_approval
@function_tool
def book_flight(city: str) -> str:
    """Book a flight."""
    return f"A flight to {city} is booked."


async def main() -> None:
    """Run the agent until it asks, approve the call, and continue."""
    agent = Agent("Travel", tools=[code_mode(get_weather, book_flight)], model=MODEL)
    given: object = "Book a flight to the warmest city."
    while True:
        stream = Runner.run_streamed(agent, given)
        async for event in stream.stream_events():
            if isinstance(event, NotifyStreamEvent):
                print("  program:", event.data.rstrip())
            elif isinstance(event, ToolStreamEndEvent):
                print("  " * len(event.path), event.tool_name, event.status)
        if not stream.interruptions:
            print(stream.final_output)
            return
        state = stream.to_state()
        for item in stream.interruptions:
            print(f"approved: {item.name} {item.arguments}")
            state.approve(item)
        given = state


if __name__ == "__main__":
    asyncio.run(main())
