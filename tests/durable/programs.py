"""An agent whose model writes a program with many calls, for the program that kills itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents_tools import Agent, ToolAnnotations, ToolContext, code_mode, function_tool
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.content import MessageOutputItem, ToolCallOutputItem, Usage
from agents_tools.events import Emit
from agents_tools.testing import tool_call

PROGRAM = """
import asyncio, random
async def name_of(number):
    try:
        return (await look(number=number))["name"]
    except RuntimeError:  # a repeatable call that has ended its process twice is not repeated
        return f"user {number}"
names = await asyncio.gather(*[name_of(n) for n in range(3)])
random.shuffle(names)
results = {}
async def settle(name):
    try:
        results[name] = await pay(to=name)
        results[name] += await stamp(what=name)
    except RuntimeError as error:
        results[name] = "unknown" if "Outcome unknown" in str(error) else str(error)
await asyncio.gather(*[settle(name) for name in names])
answer = await helper(input="post it")
print(answer)
{"order": list(results), "paid": results}
"""
"""Twelve calls: three in parallel, three pairs in parallel, an agent, each with its effects."""


class Model:
    """Sends the program once, and then its result.

    Args:
        note: Records each request.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer."""
        outputs = [item for item in request.input if isinstance(item, ToolCallOutputItem)]
        self._note(model=request.agent, after=len(outputs))
        items: list[Any]
        if request.agent == "Helper":
            items = [MessageOutputItem(text="Posted.") if outputs else tool_call("post")]
        elif outputs:
            items = [MessageOutputItem(text=str(outputs[0].output))]
        else:
            items = [tool_call("run_code", code=PROGRAM, call_id="c_code")]
        return ModelResponse(items=items, usage=Usage(requests=1, input_tokens=7))


def program_agent(effect: Callable[..., None], note: Callable[..., None]) -> Agent[Any, Any]:
    """Return the agent whose runs are killed.

    Args:
        effect: Has the effect of a call.
        note: Records each request to the model.
    """

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look(context: ToolContext[Any], number: int) -> dict[str, str]:
        """Look."""
        await asyncio.sleep(0)
        effect(context)
        return {"name": f"user {number}"}

    @function_tool
    async def pay(context: ToolContext[Any], to: str) -> str:
        """Pay."""
        await asyncio.sleep(0)
        effect(context)
        return f"Paid {to}."

    @function_tool(annotations=ToolAnnotations(idempotentHint=True))
    async def stamp(context: ToolContext[Any], what: str) -> str:
        """Stamp."""
        await asyncio.sleep(0)
        effect(context)
        return f" Stamped {what}."

    @function_tool
    async def post(context: ToolContext[Any]) -> str:
        """Post."""
        effect(context)
        return "Done."

    model = Model(note)
    helper = Agent("Helper", tools=[post], model=model)
    code = code_mode(look, pay, stamp, helper.as_tool(tool_name="helper"))
    return Agent("Coder", tools=[code], model=model)
