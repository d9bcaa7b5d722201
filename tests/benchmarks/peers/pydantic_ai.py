"""Pydantic AI, through the validator and the call of its function schema."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage, UsageLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Body = Callable[[dict[str, Any]], Awaitable[str]]


def decorate(functions: list[Callable[..., Any]]) -> list[Tool[None]]:
    """Make tools."""
    return [Tool(function) for function in functions]


def from_schema(name: str, schema: dict[str, Any], body: Body, description: str = "") -> Tool[None]:
    """Create a tool from a raw JSON Schema, which is sent to the model but not enforced."""

    async def run(**arguments: Any) -> str:
        return await body(arguments)

    return Tool.from_schema(run, name, description, schema)


def definitions(tools: list[Tool[None]]) -> list[dict[str, Any]]:
    """Return the definitions for the model."""
    return [
        {
            "name": tool.tool_def.name,
            "description": tool.tool_def.description,
            "parameters": tool.tool_def.parameters_json_schema,
        }
        for tool in tools
    ]


def caller(tool: Tool[None]) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments: only the inner part, its result is not made ready for a model."""
    schema = tool.function_schema
    validate = schema.validator.validate_json
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    async def call(arguments: str) -> Any:
        return await schema.call(validate(arguments), context)

    return call


def answerer(tool: Tool[None]) -> Callable[[str], Awaitable[Any]]:
    """Call with JSON arguments and render the result as its models send it."""
    call = caller(tool)

    async def answer(arguments: str) -> Any:
        return ToolReturnPart(tool.name, await call(arguments), "call").model_response_str()

    return answer


async def turns(tools: list[Tool[None]], arguments: str, count: int) -> list[float]:
    """Run an agent that calls its first tool `count` times; give when its model was asked."""
    asked: list[float] = []

    async def respond(messages: Any, info: Any) -> ModelResponse:
        del messages, info
        asked.append(perf_counter())
        if len(asked) > count:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[ToolCallPart(tools[0].name, arguments, tool_call_id=f"call_{len(asked)}")]
        )

    agent = Agent(FunctionModel(respond), tools=tools)
    await agent.run("go", usage_limits=UsageLimits(request_limit=None))
    return asked
