"""Pydantic AI, with its function model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic_ai import Agent, AgentRunResultEvent, BinaryContent, RunContext, Tool
from pydantic_ai.messages import CustomEvent, ModelRequest, RetryPromptPart, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_tools.export import from_pydantic_ai, to_pydantic_ai
from agents_tools.export.pydantic_ai import ToolEventPart
from tests.frameworks.suite import Answer, Call, Incoming, Report, attempted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from agents_tools import FunctionTool

__all__ = ["HARNESS"]


class _Harness:
    name = "pydantic_ai"
    extra = "pydantic-ai"
    stream = "custom events"
    agent = True
    raw = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_pydantic_ai(tools)

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        return {name: attempted(_own, given) for name, given in functions.items()}

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()

        async def stream(messages: Any, info: Any) -> AsyncIterator[Any]:
            if len(messages) > 1:
                report.answers.update(_answers(messages[-1]))
                yield "done"
                return
            for index, call in enumerate(calls):
                yield {
                    index: DeltaToolCall(
                        name=call.name, json_args=call.arguments, tool_call_id=call.id
                    )
                }

        agent = Agent(FunctionModel(stream_function=stream), tools=list(tools), deps_type=str)
        try:
            async with agent.run_stream_events("go", deps="the app") as events:
                async for event in events:
                    if isinstance(event, ToolEventPart):
                        report.streamed.append(event.event)
                    if isinstance(event, AgentRunResultEvent):
                        report.final = str(event.result.output)
        except Exception as error:  # noqa: BLE001 - what it raises is the finding
            report.error = error
        return report

    def incoming(self) -> list[Incoming]:
        return [Incoming(from_pydantic_ai(Tool(look_up)), streams=True)]


def _own(function: Callable[..., Any]) -> Any:
    return Tool(function)


def _answers(request: ModelRequest) -> dict[str, Answer]:
    found: dict[str, Answer] = {}
    for part in request.parts:
        if isinstance(part, ToolReturnPart):
            failed = part.outcome != "success"
            items: list[Any] = part.content if isinstance(part.content, list) else []
            files = [item for item in items if isinstance(item, BinaryContent)]
            words = [item for item in items if isinstance(item, str)]
            text = part.model_response_str(wrap_if_error=False)
            if files:
                found[part.tool_call_id] = Answer(
                    "\n".join(words), failed, ("text",) * len(words) + ("image",) * len(files)
                )
            else:
                found[part.tool_call_id] = Answer(text, failed)
        if isinstance(part, RetryPromptPart):
            found[part.tool_call_id] = Answer(part.model_response(), True)
    return found


@dataclass(kw_only=True)
class Looking(CustomEvent):
    topic: str


async def look_up(ctx: RunContext[Any], topic: str, limit: Annotated[int, Field(ge=1)] = 3) -> str:
    """Look up a topic.

    Args:
        topic: The topic.
        limit: How many answers.
    """
    await ctx.emit(Looking(topic=topic))
    if topic == "nothing":
        raise LookupError("no such topic")
    return f"{topic}: {limit}"


HARNESS = _Harness()
