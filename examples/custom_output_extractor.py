"""Choose the result of a sub-agent with `custom_output_extractor`.

Run it: python examples/custom_output_extractor.py. It prints the JSON that the caretaker's model
receives instead of the other agent's last message.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio

from agents_tools import Agent, Runner, RunResult, ToolCallOutputItem, function_tool
from agents_tools.testing import ScriptedModel, tool_call

MODEL = ScriptedModel(
    {
        "Data agent": [
            tool_call("read_sensors", room="cellar"),
            "I have looked at the sensors for you. It is rather damp down there!",
        ],
        "Caretaker": [
            tool_call("get_data_json", input="How is the cellar?"),
            "Open the window: 81 % humidity.",
        ],
    }
)


@function_tool
def read_sensors(room: str) -> dict[str, float]:
    """Read the sensors of a room.

    Args:
        room: The room.
    """
    return {"temperature": 12.5, "humidity": 81.0} if room == "cellar" else {}


def json_payload(result: RunResult) -> str:
    """Return the last JSON object that a tool returned, without the text around it."""
    for item in reversed(result.new_items):
        if isinstance(item, ToolCallOutputItem) and str(item.output).startswith("{"):
            return str(item.output)
    return "{}"


data_agent = Agent(
    name="Data agent",
    instructions="You look things up with your tools.",
    tools=[read_sensors],
    model=MODEL,
)
caretaker = Agent(
    name="Caretaker",
    instructions="You look after the house.",
    tools=[
        data_agent.as_tool(
            tool_name="get_data_json",
            tool_description="Ask for data and get nothing but JSON.",
            custom_output_extractor=json_payload,
        )
    ],
    model=MODEL,
)


async def main() -> None:
    """Show what the caretaker reads of the data agent."""
    result = await Runner.run(caretaker, "How is the cellar?")
    for item in result.new_items:
        if isinstance(item, ToolCallOutputItem):
            print("the caretaker reads:", item.output)
    print(result.final_output)


asyncio.run(main())
