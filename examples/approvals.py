"""Ask a person for approval: the run stops, the person decides, and the run resumes.

Run it: python examples/approvals.py. It prints the waiting payments and the results for the model:
one payment was small, one was refused, one was approved.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agents_tools import Agent, Runner, ToolContext, function_tool
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call

MODEL = ScriptedModel(
    [
        [
            tool_call("pay", payee="the baker", euros=20),
            tool_call("pay", payee="a stranger", euros=9000),
            tool_call("pay", payee="the landlord", euros=800),
        ],
        "The baker and the landlord are paid. The stranger is not.",
    ]
)


def is_much(_: ToolContext[Any], arguments: dict[str, Any]) -> bool:
    """Whether a person is to look at a payment."""
    return arguments["euros"] > 100  # noqa: PLR2004


@needs_approval(is_much)
@function_tool
def pay(payee: str, euros: int) -> str:
    """Pay somebody.

    Args:
        payee: Who gets the money.
        euros: How much.
    """
    print(f"  ({euros} euros go to {payee})")
    return f"{payee} got {euros} euros"


agent = Agent(name="Bookkeeper", instructions="You pay the bills.", tools=[pay], model=MODEL)


async def main() -> None:
    """Approve one payment and refuse another."""
    result = await Runner.run(agent, "Pay what is due.")
    state = result.to_state()
    for item in result.interruptions:
        print("waits:", item.name, item.arguments)
        if "stranger" in item.arguments:
            state.reject(item, "We do not know this person.")
        else:
            state.approve(item)
    result = await Runner.run(agent, state)  # what was paid before is not paid again
    for item in result.to_input_list():
        if item.get("type") == "function_call_output":
            print("the model reads:", item["output"])
    print(result.final_output)


asyncio.run(main())
