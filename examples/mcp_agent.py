"""Configure the MCP servers of an agent, in the format of editors.

Run it: python examples/mcp_agent.py. It prints the results of two tools of the server, then the
agent's answer.

The servers are connected when the agent first runs, and end with the program. `local/rules`
replaces a language model. The server is this file, started again with the argument `serve`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agents_tools import Agent, Runner, ToolCallOutputItem, function_tool
from agents_tools.mcp import serve


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def roman_numerals(number: int) -> str:
    """Convert a number to roman numerals."""
    signs = {10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}
    text = ""
    for value, sign in signs.items():
        text += sign * (number // value)
        number %= value
    return text


CONFIG = {
    "mcpServers": {
        "numbers": {
            "command": sys.executable,
            "args": [str(Path(__file__).resolve()), "serve"],
            "inherit_env": ["PYTHONPATH"],
        }
    }
}


def main() -> None:
    """Run an agent that has no tools but those of its server."""
    agent = Agent("Clerk", model="local/rules", mcp_config=CONFIG)
    result = Runner.run_sync(agent, "add 4 and 5, then convert it to roman numerals")
    for item in result.new_items:
        if isinstance(item, ToolCallOutputItem):
            print(f"{item.server}: {item.output}")
    print(result.final_output)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve([add, roman_numerals])
    else:
        main()
