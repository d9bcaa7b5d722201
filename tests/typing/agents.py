"""What type checkers must know of agents and their results; only checked, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from agents_tools import Agent, Runner, function_tool
from agents_tools.agents import RunHooks
from agents_tools.tool import RunContextWrapper


@dataclass
class App:
    user: str


@dataclass
class Answer:
    text: str


@function_tool
def add(a: int, b: int) -> int:
    return a + b


def greet(context: RunContextWrapper[App], agent: Agent[App, Answer]) -> str:
    return f"{agent.name} greets {context.context.user}"


class Hooks(RunHooks[App]):
    """Hooks of an application."""


text_agent = Agent("text", tools=[add, [add]])
typed_agent = Agent[App, Answer](
    "typed", instructions=greet, output_type=Answer, tools=[text_agent.as_tool()], hooks=Hooks()
)


async def use() -> None:
    assert_type(text_agent, Agent[Any, str])
    assert_type((await Runner.run(text_agent, "hi")).final_output, str)
    result = await Runner.run(typed_agent, "hi", context=App("Ann"))
    assert_type(result.final_output, Answer)
    assert_type(result.final_output.text, str)
    assert_type(Runner.run_sync(typed_agent, "hi").final_output, Answer)
    streamed = Runner.run_streamed(typed_agent, "hi", context=App("Ann"))
    assert_type(streamed.final_output, Answer)
    assert_type((await streamed.wait()).final_output, Answer)


# A wrong value is an error; a comment that suppresses nothing is one as well.
# pyright: reportUnnecessaryTypeIgnoreComment=true
Agent("x", tools=[42])  # pyright: ignore[reportArgumentType]
Agent("x", tools=["add"])  # pyright: ignore[reportArgumentType]
Agent("x", output_type=3)  # pyright: ignore[reportArgumentType]
Agent("x", mcp_servers=["nope"])  # pyright: ignore[reportArgumentType]
Agent("x", model_settings={"temperature": 1})  # pyright: ignore[reportArgumentType]
Runner.run_sync(typed_agent, "hi", context="Ann")  # pyright: ignore[reportArgumentType]
text_agent.as_tool(is_enabled="never")  # pyright: ignore[reportArgumentType]
add.with_(annotations="readOnly")  # pyright: ignore[reportArgumentType]
add.with_(metadata=7)  # pyright: ignore[reportArgumentType]
function_tool(is_enabled="never")(add.__wrapped__)  # pyright: ignore[reportArgumentType]
