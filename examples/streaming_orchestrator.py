"""Show the events of nested agents with `as_tool(streaming=True)`.

Run it: python examples/streaming_orchestrator.py. It prints the events of the agent, the inner
agent and its tool, indented by depth.

Simple rules replace the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    RunFinishedEvent,
    Runner,
    RunStartedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    streaming_tool,
)

MODEL = "local/rules"


@streaming_tool
async def count_stock(shelf: str) -> AsyncIterator[Event | str]:
    """Count the stock on a shelf.

    Args:
        shelf: Which shelf.
    """
    yield NotifyStreamEvent(f"walking to the {shelf} shelf")
    for box in (1, 2):
        await asyncio.sleep(0)  # here a tool waits for something
        yield ToolProgressEvent(box, total=2)
    yield "12 boxes"


storekeeper = Agent(
    name="Storekeeper",
    instructions="You know the store.",
    tools=[count_stock],
    model=MODEL,
)
orchestrator = Agent(
    name="Orchestrator",
    instructions="You pass questions on to who knows the answer.",
    tools=[
        storekeeper.as_tool(
            tool_name="ask_storekeeper",
            tool_description="Count what is in stock on a shelf.",
            streaming=True,  # every event from inside is in the stream below
            enable_bracketing=True,  # and so are the start and the end of the call
        )
    ],
    model=MODEL,
)


async def main() -> None:
    """Print the events of all depths: the path of an event says where it comes from."""
    run = Runner.run_streamed(orchestrator, "Count the stock on the top shelf")
    async for event in run.stream_events():
        before = "  " * len(event.path)
        match event:
            case RunStartedEvent(agent=agent):
                print(f"{before}{agent} begins")
            case ToolStreamStartEvent(input_args=arguments):
                print(f"{before}{event.tool_name} is called with {dict(arguments)}")
            case NotifyStreamEvent(data=text):
                print(f"{before}  says: {text}")
            case ToolProgressEvent(current=current, total=total):
                print(f"{before}  has done {current} of {total}")
            case ToolStreamEndEvent(status=status):
                print(f"{before}{event.tool_name} ends: {status}")
            case RunFinishedEvent(output=output):
                print(f"{before}the agent answers: {output}")
            case _:
                pass  # pieces of what models write, and items of the conversation
    print(run.final_output)


asyncio.run(main())
