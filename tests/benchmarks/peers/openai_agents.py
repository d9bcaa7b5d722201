"""The OpenAI Agents SDK, through the calling convention of its tools."""

from __future__ import annotations

import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agents import (
    Agent,
    FunctionTool,
    ItemHelpers,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    function_tool,
)
from agents.models.openai_responses import Converter
from agents.testing import assistant_message, function_call
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Body = Callable[[dict[str, Any]], Awaitable[str]]


def decorate(functions: list[Callable[..., Any]]) -> list[FunctionTool]:
    """Make tools."""
    return [function_tool(function) for function in functions]


def from_schema(
    name: str, schema: dict[str, Any], body: Body, description: str = ""
) -> FunctionTool:
    """Create a tool from a raw JSON Schema, which is sent to the model but not enforced."""

    async def run(_context: Any, arguments: str) -> str:
        return await body(json.loads(arguments))

    return FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=run,
        strict_json_schema=False,
    )


def definitions(tools: list[FunctionTool]) -> list[dict[str, Any]]:
    """Return the definitions for the model."""
    return Converter.convert_tools(tools, handoffs=[]).tools


def caller(tool: FunctionTool) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments; the context is made once and reused."""
    context = ToolContext(None, tool_name=tool.name, tool_call_id="call", tool_arguments="{}")

    async def call(arguments: str) -> Any:
        return await tool.on_invoke_tool(context, arguments)

    return call


def answerer(tool: FunctionTool) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments and make the output item, as a run does."""
    call = caller(tool)
    asked = ResponseFunctionToolCall(
        name=tool.name, call_id="call", arguments="{}", type="function_call"
    )

    async def answer(arguments: str) -> Any:
        return ItemHelpers.tool_call_output_item(asked, await call(arguments))

    return answer


class _Model(Model):
    """Asks for the same call again and again, and notes when it was asked."""

    def __init__(self, name: str, arguments: str, turns: int) -> None:
        self.asked: list[float] = []
        self._call = name, arguments
        self._turns = turns

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Answer with a call, or at the end with a text."""
        del args, kwargs
        self.asked.append(perf_counter())
        if len(self.asked) > self._turns:
            output = [assistant_message("done")]
        else:
            name, arguments = self._call
            output = [function_call(name, arguments, call_id=f"call_{len(self.asked)}")]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        """Not needed here."""
        raise NotImplementedError


async def turns(tools: list[FunctionTool], arguments: str, count: int) -> list[float]:
    """Run an agent that calls its first tool `count` times; give when its model was asked."""
    model = _Model(tools[0].name, arguments, count)
    agent = Agent(name="bench", tools=list(tools), model=model)
    config = RunConfig(tracing_disabled=True)
    await Runner.run(agent, "go", max_turns=count + 1, run_config=config)
    return model.asked
