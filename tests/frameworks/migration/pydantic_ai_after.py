"""A support agent for a bank, with dependencies, a typed answer and a conversation."""

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from agents_tools import Agent, RunContextWrapper, Runner, ToolError, function_tool
from agents_tools.testing import ScriptedModel, tool_call


@dataclass
class Bank:
    """The state of the application."""

    name: str
    balances: dict[str, float]


class Advice(BaseModel):
    """The answer of the agent."""

    text: str
    risk: int = Field(ge=0, le=10)


steps: list[Any] = [
    tool_call("balance", {"account": "savings"}),
    tool_call("balance", {"account": "main"}),
    '{"text": "You have 120.5 euros.", "risk": 1}',
    '{"text": "As I said: 120.5 euros.", "risk": 11}',
    '{"text": "As I said: 120.5 euros.", "risk": 1}',
]


def instructions(ctx: RunContextWrapper[Bank], agent: Agent[Bank, Advice]) -> str:
    """Return the instructions."""
    return f"You are the desk of {ctx.context.name}."


@function_tool
async def balance(ctx: RunContextWrapper[Bank], account: str) -> float:
    """Return the balance of an account.

    Args:
        ctx: The context.
        account: The name of the account.
    """
    if account not in ctx.context.balances:
        raise ToolError(f"The accounts are {', '.join(ctx.context.balances)}.")
    return ctx.context.balances[account]


agent = Agent[Bank, Advice](
    "desk",
    instructions=instructions,
    tools=[balance],
    model=ScriptedModel(steps),
    output_type=Advice,
)


async def main() -> None:
    """Answer two messages of one conversation."""
    bank = Bank("Bank of Rome", {"main": 120.5})
    first = await Runner.run(agent, "What do I have?", context=bank, max_turns=5)
    print(first.final_output, first.usage.requests)
    history = [*first.to_input_list(), {"role": "user", "content": "Again?"}]
    second = await Runner.run(agent, history, context=bank, max_turns=5)
    print(second.final_output, second.usage.requests)


if __name__ == "__main__":
    asyncio.run(main())
