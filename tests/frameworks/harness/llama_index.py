"""Agents of LlamaIndex, with a model that says what it is told to say."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool as ForeignTool
from pydantic import Field, PrivateAttr, create_model

from agents_tools import FunctionTool
from agents_tools.export.llama_index import (
    LlamaIndexToolEvent,
    as_tool,
    from_llama_index,
    to_llama_index,
)
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedModel", "make_agent"]


class ScriptedModel(MockFunctionCallingLLM):
    """A model of LlamaIndex that gives one answer after the other: calls, or words of a text."""

    _answers: list[Any] = PrivateAttr(default_factory=list)

    def __init__(self, *answers: Sequence[Call] | str) -> None:
        super().__init__(is_chat_model=True)
        self._answers = list(answers)

    async def astream_chat(self, messages: Any, **options: Any) -> Any:
        given = self._answers.pop(0)
        raw = {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}

        async def responses() -> AsyncIterator[ChatResponse]:
            if not isinstance(given, str):
                message = ChatMessage(role="assistant", blocks=[_block(call) for call in given])
                yield ChatResponse(message=message, raw=raw)
                return
            text = ""
            for word in given.split(" "):
                delta = f" {word}" if text else word
                text += delta
                message = ChatMessage(role="assistant", content=text)
                yield ChatResponse(message=message, delta=delta, raw=raw)

        return responses()


def _block(call: Call) -> ToolCallBlock:
    arguments = json.loads(call.arguments)
    return ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=arguments)


def make_agent(model: Any, tools: Sequence[Any], **more: Any) -> FunctionAgent:
    return FunctionAgent(tools=list(tools), llm=model, **more)


_KINDS = {"document": "file"}


class LlamaIndexHarness:
    name = "llama_index"
    extra = "llama-index"
    stream = "LlamaIndexToolEvent in the stream of the workflow"
    agent = True
    raw = False
    tells_ids = False
    waits = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return list(to_llama_index(tools))

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, function in functions.items():
            given = {"async_fn" if inspect.iscoroutinefunction(function) else "fn": function}
            try:
                made[name] = ForeignTool.from_defaults(**given)
                made[name].metadata.get_parameters_dict()
            except Exception as error:  # noqa: BLE001 - that it refuses is the answer
                made[name] = error
        return made

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()
        handler: Any = make_agent(ScriptedModel(calls, "done"), tools).run(user_msg="Go.")
        try:
            async for event in handler.stream_events():
                if isinstance(event, LlamaIndexToolEvent):
                    report.streamed.append(event.event)
                elif isinstance(event, ToolCallResult):
                    output = event.tool_output
                    kinds = tuple(_KINDS.get(b.block_type, b.block_type) for b in output.blocks)
                    report.answers[event.tool_id] = Answer(output.content, output.is_error, kinds)
            report.final = str((await handler).response.content)
        except Exception as error:  # noqa: BLE001 - part of the report
            report.error = error
        finally:
            if not handler.is_done():
                await handler.cancel_run()
        return report

    def incoming(self) -> list[Incoming]:
        def look_up(topic: str, limit: int = 3) -> str:
            """Look up a topic."""
            if topic == "nothing":
                raise LookupError("no such topic")
            return f"{topic}: {limit}"

        async def look_up_slowly(topic: str, limit: int = 3) -> str:
            return look_up(topic, limit)

        schema = create_model("look_up", topic=(str, ...), limit=(int, Field(3, ge=1)))
        told: Any = {"name": "look_up", "description": "Look up a topic.", "fn_schema": schema}
        now = ForeignTool.from_defaults(look_up, **told)
        later = ForeignTool.from_defaults(async_fn=look_up_slowly, **told)
        return [
            Incoming(from_llama_index(now), label="function"),
            Incoming(from_llama_index(later), label="async function"),
        ]

    def as_tool(self, tools: Sequence[Any], answers: Sequence[Any], **options: Any) -> Any:
        """Return an agent called Scout, with these tools and answers of its model, as a tool."""
        agent = make_agent(ScriptedModel(*answers), tools, name="Scout")
        return as_tool(agent, **options)


HARNESS = LlamaIndexHarness()
