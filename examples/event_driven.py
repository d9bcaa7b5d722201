"""Connect an agent, its tools and its observers only by a stream of events.

Run it: python examples/event_driven.py. It prints the events with their sources, each with the id
of the event that caused it.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agents_tools import Agent, function_tool
from agents_tools.classes.event_types import MessageAction
from agents_tools.event_driven import AgentController, ToolRuntime
from agents_tools.persistence import EventFilter, SQLiteEventStore
from agents_tools.persistence.stream import EventStream
from agents_tools.testing import ScriptedModel, tool_call


@function_tool
def count(what: str) -> str:
    """Count what is in the garden.

    Args:
        what: What to count.
    """
    return f"3 {what}"


DONE = EventFilter(types=("action_event", "observation_event"), hidden=False)


def show(event: Any) -> None:
    """Print what is done and what is seen: a console is just another subscriber."""
    because = "" if event.cause is None else f" (because of {event.cause})"
    print(f"{event.source}: {event.value.message}{because}")


async def answer(stream: EventStream) -> None:
    """Wait until the agent waits for the user."""
    actions: Any = stream.follow(where=EventFilter(types=("action_event",)))
    async for event in actions:
        if isinstance(event.value, MessageAction) and event.value.wait_for_response:
            return


async def main() -> None:
    """Ask the agent something, and look at what was stored."""
    model = ScriptedModel([tool_call("count", what="owls"), "There are three owls."])
    agent = Agent("Gardener", tools=[count], model=model)
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteEventStore(Path(folder) / "garden.db")
        async with (
            EventStream(store) as stream,
            ToolRuntime(stream, agent.tools),
            AgentController(stream, agent),
        ):
            stream.subscribe("main", show, where=DONE)
            stream.add_event(MessageAction("How many owls are there?"), "user")
            await answer(stream)
        print(len(await store.read(where=EventFilter(text="owls"))), "stored events tell of owls")
        store.close()


asyncio.run(main())
