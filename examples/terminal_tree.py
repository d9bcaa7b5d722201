"""Show nested agents as a live tree on a terminal.

Run it: python examples/terminal_tree.py on a terminal (with the extra `cli`): two agents work at
the same time, each with a progress bar. If the output goes to a file, each change is one line.

Simple rules replace the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from agents_tools import Agent, Event, NotifyStreamEvent, Runner, ToolProgressEvent, streaming_tool
from agents_tools.ui import console

MODEL = "local/rules"
PACE = 0.3 if sys.stdout.isatty() else 0.01


@streaming_tool
async def bake_rolls(rolls: int) -> AsyncIterator[Event | str]:
    """Bake rolls.

    Args:
        rolls: How many.
    """
    yield NotifyStreamEvent("heating up the oven")
    for done in range(1, rolls + 1):
        await asyncio.sleep(PACE)
        yield ToolProgressEvent(done, total=rolls, message="rolls")
    yield f"{rolls} rolls, still warm"


@streaming_tool
async def brew_tea(cups: int) -> AsyncIterator[Event | str]:
    """Brew tea.

    Args:
        cups: How many cups.
    """
    for done in range(1, cups + 1):
        await asyncio.sleep(PACE * 2)
        yield ToolProgressEvent(done, total=cups, message="cups")
    yield f"{cups} cups of tea"


baker = Agent("Baker", instructions="You bake.", tools=[bake_rolls], model=MODEL)
waiter = Agent("Waiter", instructions="You make drinks.", tools=[brew_tea], model=MODEL)
host = Agent(
    "Host",
    instructions="You hand each part of an order to the one who does it.",
    tools=[
        baker.as_tool("ask_baker", "Bake rolls and bread.", streaming=True),
        waiter.as_tool("ask_waiter", "Brew tea and coffee.", streaming=True),
    ],
    model=MODEL,
)


async def main() -> None:
    """Draw one run, then print its answer."""
    run = Runner.run_streamed(host, "Bake 6 rolls and brew 3 cups of tea")
    await console.render(run, file=sys.stdout)
    print(run.final_output)


asyncio.run(main())
