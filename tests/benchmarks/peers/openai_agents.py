"""The OpenAI Agents SDK, through the calling convention of its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import FunctionTool, ItemHelpers, function_tool
from agents.models.openai_responses import Converter
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def decorate(functions: list[Callable[..., Any]]) -> list[FunctionTool]:
    """Make tools."""
    return [function_tool(function) for function in functions]


def definitions(tools: list[FunctionTool]) -> list[dict[str, Any]]:
    """Give what the model is told."""
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
