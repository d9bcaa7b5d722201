"""Let an agent with the built-in tools fix a program, and watch the shell while it works.

Run it: python examples/coding_agent.py. It prints the output of the shell as it arrives, then the
result of each tool: a failing test, the faulty line and its fix, a passing test.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agents_tools import Agent, NotifyStreamEvent, RunItemStreamEvent, Runner, get_default_tools
from agents_tools.builtin import FinishObservation, FinishTool
from agents_tools.testing import ScriptedModel, tool_call

PROGRAM = """def mean(numbers):
    return sum(numbers) / len(number)
"""
TEST = """import unittest
from stats import mean

class Mean(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 3]), 2)
"""
SCRIPT = [
    tool_call("execute_bash", command="python3 -m unittest 2>&1 | tail -n 3"),
    tool_call("grep", pattern=r"len\(", include="*.py"),
    tool_call(
        "str_replace_editor",
        command="str_replace",
        path="stats.py",
        old_str="len(number)",
        new_str="len(numbers)",
    ),
    tool_call("execute_bash", command="python3 -m unittest 2>&1 | tail -n 1"),
    tool_call("finish", result="The mean works: a name was misspelled."),
]
"""What a model might do; with `model="openai/gpt-5"` it is one that does."""


def write_program(folder: Path) -> None:
    """Write the program that is to be mended, and its test."""
    (folder / "stats.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "test_stats.py").write_text(TEST, encoding="utf-8")


async def main() -> None:
    """Let the agent work in a directory of its own."""
    with tempfile.TemporaryDirectory() as folder, get_default_tools(folder) as tools:
        write_program(Path(folder))
        agent: Agent[Any, FinishObservation] = Agent(
            "Mechanic",
            tools=[*tools, *FinishTool.create()],
            model=ScriptedModel(SCRIPT),
            tool_use_behavior={"stop_at_tool_names": ["finish"]},
        )
        result = Runner.run_streamed(agent, "Mend the program.")
        async for event in result.stream_events():
            if isinstance(event, NotifyStreamEvent):  # what a tool says while it works
                print("  live:", event.data.rstrip())
            elif isinstance(event, RunItemStreamEvent) and event.name == "tool_output":
                print(event.item["output"].rstrip())
        print("finished:", result.final_output.text)


asyncio.run(main())
