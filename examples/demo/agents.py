"""The agents of the demonstration: two that know something, and one that asks them."""

from __future__ import annotations

from agents_tools import Agent
from examples.demo.tools import drop, survey, weigh

MODEL = "local/rules"  # a few rules that need no key; "openai/gpt-5" takes the same agents

astronomer = Agent(
    name="Astronomer",
    instructions="You answer questions about planets, with your tools.",
    tools=[weigh, drop],
    model=MODEL,
)

librarian = Agent(
    name="Librarian",
    instructions="You know what is written in the files of a project.",
    tools=[survey],
    model=MODEL,
)

guide = Agent(
    name="Guide",
    instructions="You hand each part of a request to the agent that knows about it.",
    tools=[
        astronomer.as_tool(
            "ask_astronomer", "Weigh something, or drop a stone, on a planet.", streaming=True
        ),
        librarian.as_tool("ask_librarian", "Survey the Python files of a project.", streaming=True),
    ],
    model=MODEL,
)
