"""LangChain and LangGraph: the agent that LangChain makes, with a fake chat model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from langchain.agents import create_agent
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as own_tool
from pydantic import Field

from agents_tools.export import from_langchain, to_langchain
from tests.frameworks.suite import Answer, Call, Incoming, Report, attempted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools import FunctionTool

__all__ = ["HARNESS"]


class _Model(BaseChatModel):
    """Asks for the calls, and says `done` when they are answered."""

    calls: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **more: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage("done")
        else:
            message = AIMessage(
                "",
                tool_calls=[
                    {"name": call.name, "args": json.loads(call.arguments), "id": call.id}
                    for call in self.calls
                ],
            )
        return ChatResult(generations=[ChatGeneration(message=message)])


class _Harness:
    name = "langchain"
    extra = "langchain"
    stream = "custom"
    agent = True
    raw = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_langchain(tools)

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        return {name: attempted(own_tool, given) for name, given in functions.items()}

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()
        agent: Any = create_agent(_Model(calls=list(calls)), tools=list(tools), context_schema=dict)
        deltas: list[Any] = []
        try:
            async for mode, data in agent.astream(
                {"messages": [{"role": "user", "content": "go"}]},
                context={"app": "the app"},
                stream_mode=["custom", "tools", "values"],
            ):
                if mode == "custom":
                    report.streamed.append(data)
                elif mode == "tools" and data.get("event") == "tool-output-delta":
                    deltas.append(data["delta"])
                elif mode == "values":
                    _read(data["messages"], report)
        except Exception as error:  # noqa: BLE001 - what it raises is the finding
            report.error = error
        assert deltas == report.streamed, "the two streams of a graph say different things"
        return report

    def incoming(self) -> list[Incoming]:
        return [Incoming(from_langchain(own_tool(look_up)), streams=True)]


def _read(messages: list[Any], report: Report) -> None:
    for message in messages:
        if isinstance(message, ToolMessage):
            content: Any = message.content
            kinds = () if isinstance(content, str) else tuple(block["type"] for block in content)
            report.answers[message.tool_call_id] = Answer(
                message.text, message.status == "error", kinds
            )
    report.final = messages[-1].text


async def look_up(topic: str, limit: Annotated[int, Field(ge=1)] = 3) -> str:
    """Look up a topic.

    Args:
        topic: The topic.
        limit: How many answers.
    """
    await adispatch_custom_event("looking", {"topic": topic})
    if topic == "nothing":
        raise LookupError("no such topic")
    return f"{topic}: {limit}"


HARNESS = _Harness()
