"""The library itself, with the same names as the adapters of its peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools import FunctionTool, NotifyStreamEvent, function_tool, streaming_tool
from agents_tools.wire.openai_responses import to_openai_responses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


def decorate(functions: list[Callable[..., Any]]) -> list[FunctionTool[..., Any]]:
    """Make tools."""
    return [function_tool(function) for function in functions]


def definitions(tools: list[FunctionTool[..., Any]]) -> list[dict[str, Any]]:
    """Give what the model is told; the natural schema is built on the way and asked for too."""
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
