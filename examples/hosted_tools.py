"""Use hosted tools: the provider runs some, and your own functions implement the others.

Run it: python examples/hosted_tools.py. It prints the tools in the form of the Responses API, and
the results of two commands for the model, one of them refused.

Nothing is sent. A script replaces a model that requests a command. With `model="openai/gpt-5"` and
OPENAI_API_KEY set, the same agents call the real model.
"""

from __future__ import annotations

import asyncio
import json

from agents_tools import (
    Agent,
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    LocalShellTool,
    Runner,
    ToolCallItem,
    UserError,
    WebSearchTool,
)
from agents_tools.agents import ShellRequest
from agents_tools.testing import ScriptedModel

assistant = Agent(
    name="Assistant",
    tools=[
        WebSearchTool(),
        FileSearchTool(vector_store_ids=["VECTOR_STORE_ID"], max_num_results=3),
        CodeInterpreterTool(tool_config={"container": {"type": "auto"}}),
        ImageGenerationTool(),
        HostedMCPTool(
            tool_config={
                "server_label": "wiki",
                "server_url": "https://wiki.example/mcp",
                "require_approval": "never",
            }
        ),
    ],
    model="local/rules",  # which hosts nothing, and says so below
)


def run_command(request: ShellRequest) -> str:
    """Decide what the model may run, and run it; here nothing but `echo`."""
    program, *words = request.command
    return " ".join(words) if program == "echo" else f"{program} is not allowed here"


shell_user = Agent(
    name="Shell user",
    tools=[LocalShellTool(executor=run_command)],
    model=ScriptedModel(
        [
            [
                ToolCallItem(
                    call_id=f"call_{number}",
                    kind="local_shell",
                    name="local_shell",
                    arguments=json.dumps({"type": "exec", "command": command}),
                )
                for number, command in enumerate([["echo", "hello"], ["rm", "-rf", "/"]])
            ],
            "It said hello, and kept the files.",
        ]
    ),
)


async def main() -> None:
    """Print the records, ask a model that has none of them, and run two commands."""
    for tool in assistant.known_tools:
        print(json.dumps(tool.to_responses()))
    try:
        await Runner.run(assistant, "Find a coffee shop.")
    except UserError as error:
        print("error:", error)
    result = await Runner.run(shell_user, "Say hello, then tidy up.")
    for item in result.to_input_list():
        if item.get("type") == "tool_call_output":
            print("the model reads:", item["output"])
    print(result.final_output)


asyncio.run(main())
