"""Agents of Agno, with a model that says what it is told to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from agno.agent import Agent
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run.agent import CustomEvent
from agno.tools import tool as foreign_tool

from agents_tools import FunctionTool
from agents_tools.export.agno import AgnoToolEvent, as_tool, from_agno, to_agno
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedModel", "answers_in", "make_agent"]


class ScriptedModel(Model):
    """A model of Agno that gives one answer after the other: calls, or pieces of text."""

    def __init__(self, *answers: Sequence[Call] | str) -> None:
        super().__init__(id="scripted", name="scripted", provider="tests")
        self.answers = list(answers)

    def _answer(self, *, whole: bool) -> list[ModelResponse]:
        answer = self.answers.pop(0)
        usage = MessageMetrics(input_tokens=5, output_tokens=2, total_tokens=7)
        if isinstance(answer, str):
            words = answer.split(" ")
            pieces = [
                f"{word} " if index < len(words) - 1 else word for index, word in enumerate(words)
            ]
            responses = [
                ModelResponse(role="assistant", content=piece)
                for piece in ([answer] if whole else pieces)
            ]
        else:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in answer
            ]
            responses = [ModelResponse(role="assistant", tool_calls=calls)]
        responses[-1].response_usage = usage
        return responses

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self._answer(whole=True)[0]

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self._answer(whole=True)[0]

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        yield from self._answer(whole=False)

    async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        for response in self._answer(whole=False):
            yield response

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response


def make_agent(model: ScriptedModel, tools: Sequence[Any], **more: Any) -> Agent:
    """Make an agent that sends nothing home."""
    return Agent(model=model, tools=list(tools), telemetry=False, **more)


def answers_in(messages: Any) -> dict[str, Answer]:
    """Return the output of each call that the model received."""
    return {
        message.tool_call_id: Answer(str(message.content), bool(message.tool_call_error), ("text",))
        for message in messages or ()
        if message.role == "tool"
    }


class AgnoHarness:
    name = "agno"
    extra = "agno"
    stream = "events of arun(stream=True, stream_events=True)"
    agent = True
    raw = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_agno(tools)

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
        agent = make_agent(ScriptedModel(calls, "done"), tools)
        events: Any = agent.arun("Go.", stream=True, stream_events=True, yield_run_output=True)
        try:
            async for event in events:
                if isinstance(event, AgnoToolEvent) and event.data is not None:
                    report.streamed.append(event.data)
                if hasattr(event, "messages"):
                    report.answers = answers_in(event.messages)
                    report.final = str(event.content)
        except Exception as error:  # noqa: BLE001 - part of the report
            report.error = error
        finally:
            await events.aclose()
        return report

    def incoming(self) -> list[Incoming]:
        schema = {
            "type": "object",
            "properties": {
                "topic": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "default": 3},
            },
            "required": ["topic"],
        }

        @foreign_tool(name="look_up")
        def look_up(topic: str, limit: int = 3) -> str:
            """Look up a topic."""
            if topic == "nothing":
                raise LookupError("no such topic")
            return f"{topic}: {limit}"

        @foreign_tool(name="look_up")
        async def look_further(topic: str, limit: int = 3) -> Any:
            """Look up a topic."""
            yield CustomEvent(note="looking")
            if topic == "nothing":
                raise LookupError("no such topic")
            yield f"{topic}: {limit}"

        @foreign_tool(name="look_up")
        def look_slowly(topic: str, limit: int = 3) -> Any:
            """Look up a topic."""
            if topic == "nothing":
                raise LookupError("no such topic")
            yield f"{topic}: "
            yield str(limit)

        made: list[Incoming] = []
        for label, tool in (
            ("@tool", look_up),
            ("async generator", look_further),
            ("generator", look_slowly),
        ):
            tool.parameters = schema
            tool.skip_entrypoint_processing = True
            streams = "generator" in label
            made.append(Incoming(from_agno(tool), streams=streams, label=label))
        return made

    def as_tool(self, tools: Sequence[Any], answers: Sequence[Any], **options: Any) -> Any:
        """Return an agent called Scout, with these tools and answers of its model, as a tool."""
        return as_tool(make_agent(ScriptedModel(*answers), tools, name="Scout"), **options)


HARNESS = AgnoHarness()
