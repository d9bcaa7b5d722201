"""The library itself, with the same names as the adapters of its peers."""

from __future__ import annotations

import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agents_tools import (
    Agent,
    FunctionTool,
    MessageOutputItem,
    ModelRequest,
    ModelResponse,
    NotifyStreamEvent,
    Runner,
    ToolCallItem,
    function_tool,
    streaming_tool,
    to_openai_responses,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agents_tools import Emit

    Body = Callable[[dict[str, Any]], Awaitable[str]]


def decorate(functions: list[Callable[..., Any]]) -> list[FunctionTool[..., Any]]:
    """Make tools."""
    return [function_tool(function) for function in functions]


def from_schema(
    name: str, schema: dict[str, Any], body: Body, description: str = ""
) -> FunctionTool[..., Any]:
    """Create a tool from a raw JSON Schema."""

    async def run(_context: Any, arguments: str) -> str:
        return await body(json.loads(arguments))

    return FunctionTool.from_schema(
        name=name, description=description, schema=schema, on_invoke_tool=run
    )


def definitions(tools: list[FunctionTool[..., Any]]) -> list[dict[str, Any]]:
    """Return the definitions for the model; the natural schema is built, too."""
    for tool in tools:
        tool.params_json_schema  # noqa: B018 - building it is what is timed
    return [to_openai_responses(tool) for tool in tools]


def caller(tool: FunctionTool[..., Any]) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments; each call gets a context of its own."""

    async def call(arguments: str) -> Any:
        return await tool.on_invoke_tool(None, arguments)

    return call


answerer = caller  # `on_invoke_tool` gives what the model reads


def inline_caller(function: Callable[..., Any]) -> Callable[[str], Awaitable[Any]]:
    """Call a plain function on the event loop itself."""
    return caller(function_tool(run_in_thread=False)(function))


async def stream(events: int) -> int:
    """Run a streaming tool and count what it says."""

    @streaming_tool(enable_bracketing=False)
    async def steps() -> AsyncIterator[NotifyStreamEvent | str]:
        """Take steps."""
        for _ in range(events):
            yield NotifyStreamEvent("step")
        yield "done"

    came = 0
    async with steps.stream() as stream:
        async for _ in stream:
            came += 1
    return came


class _Model:
    """Asks for the same call again and again, and notes when it was asked."""

    def __init__(self, name: str, arguments: str, turns: int) -> None:
        self.asked: list[float] = []
        self._call = name, arguments
        self._turns = turns

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer with a call, or at the end with a text."""
        del request, emit
        self.asked.append(perf_counter())
        if len(self.asked) > self._turns:
            return ModelResponse(items=[MessageOutputItem(text="done")])
        name, arguments = self._call
        call = ToolCallItem(call_id=f"call_{len(self.asked)}", name=name, arguments=arguments)
        return ModelResponse(items=[call])


async def turns(tools: list[FunctionTool[..., Any]], arguments: str, count: int) -> list[float]:
    """Run an agent that calls its first tool `count` times; give when its model was asked."""
    model = _Model(tools[0].name, arguments, count)
    agent = Agent("bench", tools=tools, model=model)
    await Runner.run(agent, "go", max_turns=None)
    return model.asked
