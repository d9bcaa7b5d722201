"""Use agents as tools: an orchestrator calls the translators that a request needs.

Run it: python examples/agents_as_tools.py. It prints the answer, the conversation of the
orchestrator, with one call per translator, and the number of requests.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio

from agents_tools import Agent, Runner
from agents_tools.testing import ScriptedModel, tool_call

REQUEST = "Say 'Hello, how are you?' in Spanish and in French."
HELLO = "Hello, how are you?"

MODEL = ScriptedModel(
    {
        "Orchestrator": [
            [
                tool_call("translate_to_spanish", input=HELLO),
                tool_call("translate_to_french", input=HELLO),
            ],
            "In Spanish: Hola, ¿cómo estás?\nIn French: Bonjour, comment vas-tu ?",
        ],
        "Spanish translator": ["Hola, ¿cómo estás?"],
        "French translator": ["Bonjour, comment vas-tu ?"],
    }
)

spanish = Agent(
    name="Spanish translator",
    instructions="You translate what you are given into Spanish.",
    model=MODEL,
)
french = Agent(
    name="French translator",
    instructions="You translate what you are given into French.",
    model=MODEL,
)
orchestrator = Agent(
    name="Orchestrator",
    instructions="You translate with your tools, and only with them.",
    tools=[
        spanish.as_tool("translate_to_spanish", "Translate a text into Spanish."),
        french.as_tool("translate_to_french", "Translate a text into French."),
    ],
    model=MODEL,
)


async def main() -> None:
    """Ask the orchestrator, and look at what it did."""
    result = await Runner.run(orchestrator, REQUEST)
    print(result.final_output)
    # A translator sees its task and nothing else; the orchestrator sees the answer and no more.
    for item in result.to_input_list():
        print("-", item.get("type", item.get("role")), item.get("name", ""))
    print(result.usage.requests, "requests, those of the translators included")


asyncio.run(main())
