"""Run an agent inside a tool, for features that `as_tool` does not have: here, a second attempt.

Run it: python examples/run_my_agent.py. It prints the answer of the second attempt, and the number
of requests of both attempts.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio

from agents_tools import Agent, MaxTurnsExceeded, RunConfig, Runner, function_tool, notify
from agents_tools.testing import ScriptedModel, tool_call

MODEL = ScriptedModel(
    {
        "Searcher": [
            *[tool_call("look", place=place) for place in ("desk", "shelf", "bag")],
            "The keys are in the bag.",
        ],
        "Helper": [
            tool_call("run_my_agent", thing="keys"),
            "They are in your bag.",
        ],
    }
)


@function_tool
def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: Where.
    """
    return "keys" if place == "bag" else "nothing"


@function_tool
async def run_my_agent(thing: str) -> str:
    """Search for something.

    Args:
        thing: What is lost.
    """
    searcher = Agent(name="Searcher", instructions="You search.", tools=[look], model=MODEL)
    task = f"Find the {thing}."
    try:
        result = await Runner.run(searcher, task, max_turns=2)
    except MaxTurnsExceeded as error:
        notify("not found in 2 turns; going on, more patiently")
        so_far = error.run_result.to_input_list()  # what it did before is not lost
        config = RunConfig(timeout=60)
        result = await Runner.run(searcher, so_far, max_turns=5, run_config=config)
    return str(result.final_output)


helper = Agent(name="Helper", instructions="You help.", tools=[run_my_agent], model=MODEL)


async def main() -> None:
    """Run the helper; what the searcher used is part of what the helper used."""
    result = await Runner.run(helper, "Where are my keys?")
    print(result.final_output)
    print(result.usage.requests, "requests in all, of which the helper made 2")


asyncio.run(main())
