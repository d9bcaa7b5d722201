"""An agent with fifty calls in the background, for the program that kills itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from agents_tools import Agent, ToolAnnotations, ToolContext, function_tool
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.content import MessageInputItem, MessageOutputItem, ToolCallOutputItem, Usage
from agents_tools.events import Emit
from agents_tools.policies import background
from agents_tools.testing import tool_call

CALLS = {
    **{f"b_send{number}": "send" for number in range(30)},
    **{f"b_index{number}": "index" for number in range(18)},
    **{f"b_help{number}": "helper" for number in range(2)},
}
"""The calls in the background and their tools, of which `send` must never run twice."""


class Model:
    """Answers from the conversation: begins the calls, does other work, and waits for results.

    Args:
        note: Records the results that each request contains.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer."""
        outputs = sum(isinstance(item, ToolCallOutputItem) for item in request.input)
        items: list[Any]
        if request.agent == "Helper":
            items = [MessageOutputItem(text="Helped.") if outputs else tool_call("post")]
        else:
            results = results_of(request.input)
            self._note(results=results)
            items = self._answer(outputs, len(results))
        return ModelResponse(items=items, usage=Usage(requests=1, input_tokens=7))

    def _answer(self, outputs: int, results: int) -> list[Any]:
        if not outputs:
            return [
                tool_call(tool, **({"input": "help"} if tool == "helper" else {}), call_id=call_id)
                for call_id, tool in CALLS.items()
            ]
        if outputs < len(CALLS) + 3:  # other work, during which some results arrive
            return [tool_call("work", call_id=f"c_work{outputs}")]
        return [MessageOutputItem(text="All done." if results == len(CALLS) else "Started.")]


def results_of(items: Any) -> Counter[str]:
    """Return how many results of each call in the background items have."""
    return Counter(
        item.call_id for item in items if isinstance(item, MessageInputItem) and item.call_id
    )


def background_agent(effect: Callable[..., None], note: Callable[..., None]) -> Agent[Any, Any]:
    """Return the agent.

    Args:
        effect: Has the effect of a call, before or after which the process can end.
        note: Records the results that a request to the model contains.
    """

    async def run(context: ToolContext[Any]) -> str:
        number = sum(context.tool_call_id.encode())
        for step in range(number % 9):  # the calls end in another order than they began
            context.progress(step, number % 9)
            await asyncio.sleep(0)
        effect(context)
        return f"Done: {context.tool_call_id}."

    @background()
    @function_tool
    async def send(context: ToolContext[Any]) -> str:
        """Send it."""
        return await run(context)

    @background()
    @function_tool(annotations=ToolAnnotations(idempotentHint=True))
    async def index(context: ToolContext[Any]) -> str:
        """Index it."""
        return await run(context)

    @function_tool
    async def post(context: ToolContext[Any]) -> str:
        """Post it."""
        return await run(context)

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def work(context: ToolContext[Any]) -> str:
        """Work."""
        await asyncio.sleep(0)
        return "Worked."

    model = Model(note)
    helper = background()(Agent("Helper", tools=[post], model=model).as_tool(tool_name="helper"))
    return Agent("Boss", tools=[send, index, helper, work], model=model)
