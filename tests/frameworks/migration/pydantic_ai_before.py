"""A support agent for a bank, with dependencies, a typed answer and a conversation."""

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits


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
    ToolCallPart("balance", {"account": "savings"}),
    ToolCallPart("balance", {"account": "main"}),
    TextPart('{"text": "You have 120.5 euros.", "risk": 1}'),
    TextPart('{"text": "As I said: 120.5 euros.", "risk": 11}'),
    TextPart('{"text": "As I said: 120.5 euros.", "risk": 1}'),
]


def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Return the next prepared answer."""
    step = steps.pop(0)
    if isinstance(step, TextPart) and info.output_tools:
        step = ToolCallPart(info.output_tools[0].name, step.content)
    return ModelResponse(parts=[step])


agent = Agent(
    FunctionModel(respond),
    deps_type=Bank,
    output_type=Advice,
    retries=2,
)


@agent.instructions
def instructions(ctx: RunContext[Bank]) -> str:
    """Return the instructions."""
    return f"You are the desk of {ctx.deps.name}."


@agent.tool
async def balance(ctx: RunContext[Bank], account: str) -> float:
    """Return the balance of an account.

    Args:
        ctx: The context.
        account: The name of the account.
    """
    if account not in ctx.deps.balances:
        raise ModelRetry(f"The accounts are {', '.join(ctx.deps.balances)}.")
    return ctx.deps.balances[account]


async def main() -> None:
    """Answer two messages of one conversation."""
    bank = Bank("Bank of Rome", {"main": 120.5})
    limits = UsageLimits(request_limit=5)
    first = await agent.run("What do I have?", deps=bank, usage_limits=limits)
    print(first.output, first.usage.requests)
    history = first.all_messages()
    second = await agent.run("Again?", deps=bank, usage_limits=limits, message_history=history)
    print(second.output, second.usage.requests)


if __name__ == "__main__":
    asyncio.run(main())
