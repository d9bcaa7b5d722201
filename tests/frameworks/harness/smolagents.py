"""Agents of smolagents, with a model that says what it is told to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from smolagents import (
    CodeAgent,
    LogLevel,
    Tool as ForeignTool,
    ToolCallingAgent,
    tool as foreign_tool,
)
from smolagents.agent_types import AgentImage
from smolagents.agents import ToolOutput
from smolagents.memory import ActionStep, FinalAnswerStep
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)
from smolagents.monitoring import TokenUsage

from agents_tools import FunctionTool
from agents_tools.export.smolagents import from_smolagents, to_smolagents
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedModel", "make_agent", "make_code_agent"]


class ScriptedModel(Model):
    """A model that gives one answer after the other: calls, or a text."""

    def __init__(self, *answers: Sequence[Call] | str) -> None:
        super().__init__(model_id="scripted")
        self.answers = list(answers)
        self.seen: list[Any] = []

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        self.seen.append(list(messages))
        given = self.answers.pop(0)
        used = TokenUsage(input_tokens=5, output_tokens=2)
        if isinstance(given, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=given, token_usage=used)
        calls = [
            ChatMessageToolCall(
                ChatMessageToolCallFunction(arguments=call.arguments, name=call.name),
                call.id,
                "function",
            )
            for call in given
        ]
        return ChatMessage(
            role=MessageRole.ASSISTANT, content="", tool_calls=calls, token_usage=used
        )


def make_agent(model: Model, tools: Sequence[Any]) -> ToolCallingAgent:
    return ToolCallingAgent(tools=list(tools), model=model, verbosity_level=LogLevel.OFF)


def make_code_agent(model: Model, tools: Sequence[Any]) -> CodeAgent:
    return CodeAgent(tools=list(tools), model=model, verbosity_level=LogLevel.OFF)


class SmolagentsHarness:
    name = "smolagents"
    extra = "smolagents"
    stream = None
    agent = True
    raw = False
    tells_ids = False
    validates = True

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return list(to_smolagents(tools))

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, function in functions.items():
            try:
                made[name] = foreign_tool(function)
            except Exception as error:  # noqa: BLE001 - that it refuses is the answer
                made[name] = error
        return made

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()
        last = Call("final", "final_answer", json.dumps({"answer": "done"}))
        agent = make_agent(ScriptedModel(calls, [last]), tools)
        running = asyncio.create_task(asyncio.to_thread(_follow, agent, calls, report))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            agent.interrupt()
            for tool in tools:
                getattr(tool, "cancel", lambda: None)()
            await running
            raise
        return report

    def incoming(self) -> list[Incoming]:
        class LookUp(ForeignTool):
            name = "look_up"
            description = "Look up a topic."
            inputs = {  # noqa: RUF012 - how they write it
                "topic": {"type": "string", "description": "What."},
                "limit": {
                    "type": "integer",
                    "description": "How many.",
                    "nullable": True,
                    "minimum": 1,
                },
            }
            output_type = "string"

            def forward(self, topic: str, limit: int | None = 3) -> str:
                if topic == "nothing":
                    raise LookupError("no such topic")
                return f"{topic}: {limit}"

        return [Incoming(from_smolagents(LookUp()), label="Tool")]


def _follow(agent: ToolCallingAgent, calls: Sequence[Call], report: Report) -> None:
    """Run the agent in a thread, and tell what its model was given."""
    try:
        for step in agent.run("Go.", stream=True):
            if isinstance(step, ToolOutput) and step.id != "final":
                kinds = ("image",) if isinstance(step.output, AgentImage) else ("text",)
                report.answers[step.id] = Answer(step.observation, None, kinds)
            elif isinstance(step, ActionStep) and step.error is not None:
                # One failure stands for all calls of the turn that have no answer.
                for call in calls:
                    told = Answer(step.error.message, True, ("text",))
                    report.answers.setdefault(call.id, told)
            elif isinstance(step, FinalAnswerStep):
                report.final = str(step.output)
    except Exception as error:  # noqa: BLE001 - part of the report
        report.error = error


HARNESS = SmolagentsHarness()
