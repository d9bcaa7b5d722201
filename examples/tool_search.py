"""Offer many tools through a search tool: the model reads two definitions instead of hundreds.

Run it: python examples/tool_search.py. It prints the cost of 42 definitions per turn, the cost of
two, and how the model finds the tool that it needs.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
import json

from agents_tools import Agent, FunctionTool, Runner, function_tool
from agents_tools.policies import timeout
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.toolset import Toolset, token_report, tool_search

MODEL = ScriptedModel(
    [
        tool_call("tool_search", query="take down the sign of the herons"),
        tool_call("call_tool", name="zoo_remove_heron", arguments={"reason": "they flew away"}),
        "The sign of the herons is down.",
    ]
)
ANIMALS = (
    "badger beaver crane dormouse ferret gecko heron ibex jackal kestrel lemur marten newt owl"
)


def tools_for(animal: str) -> list[FunctionTool]:
    """Make the tools that the zoo has for one of its animals."""

    @function_tool(name_override=f"feed_{animal}", description_override=f"Feed the {animal}s.")
    def feed(kilos: float) -> str:
        return f"the {animal}s have {kilos} kg"

    @function_tool(name_override=f"count_{animal}", description_override=f"Count the {animal}s.")
    def count() -> int:
        return len(animal)

    @function_tool(
        name_override=f"remove_{animal}",
        description_override=f"Take down the sign of the {animal}s.",
    )
    def remove(reason: str) -> str:
        return f"no sign of the {animal}s any more: {reason}"

    return [feed, count, remove]


# A toolset is many tools as one. What is put around it is put around each of them.
zoo = Toolset([tools_for(animal) for animal in ANIMALS.split()]).prefix("zoo_").map(timeout(10))
agent = Agent("Keeper", instructions="You look after a zoo.", tools=[tool_search(zoo)], model=MODEL)


async def main() -> None:
    """Ask for one thing, and look at how the model came to the tool for it."""
    print(zoo)
    behind = tool_search(zoo)
    for name, tools in (("all definitions", zoo), ("behind a search", behind)):
        print(f"{name}: {token_report(tools, 'anthropic').totals['anthropic']} tokens in each turn")

    result = await Runner.run(agent, "The herons flew away. Take their sign down.")
    for item in result.to_input_list():
        if item.get("type") == "function_call":
            print("call:", item["name"], item["arguments"])
        elif item.get("type") == "function_call_output":
            output = item["output"]
            if output.startswith("{"):
                output = ", ".join(tool["name"] for tool in json.loads(output)["tools"])
            print("  ->", output)
    print(result.final_output)


asyncio.run(main())
