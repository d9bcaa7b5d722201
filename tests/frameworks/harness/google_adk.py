"""Agents of Google's ADK, with a model that says what it is told to say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool as ForeignTool
from google.genai import types
from pydantic import PrivateAttr

from agents_tools import FunctionTool
from agents_tools.export.google_adk import EVENT, as_tool, from_google_adk, to_google_adk
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedModel", "make_agent", "started"]


class ScriptedModel(BaseLlm):
    """A model of ADK that gives one answer after the other: calls, or pieces of text."""

    _answers: list[Any] = PrivateAttr()

    def __init__(self, *answers: Sequence[Call] | str) -> None:
        super().__init__(model="scripted")
        self._answers = list(answers)

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            words = answer.split(" ") if stream else []
            for index, word in enumerate(words):
                text = word if index == len(words) - 1 else f"{word} "
                yield LlmResponse(content=_content(types.Part(text=text)), partial=True)
            parts = [types.Part(text=answer)]
        else:
            parts = [
                types.Part(
                    function_call=types.FunctionCall(
                        id=call.id, name=call.name, args=json.loads(call.arguments)
                    )
                )
                for call in answer
            ]
        yield LlmResponse(
            content=_content(*parts),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=5, candidates_token_count=2, total_token_count=7
            ),
        )


def _content(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


def make_agent(model: ScriptedModel, tools: Sequence[Any], name: str = "agent") -> LlmAgent:
    """Make an agent."""
    return LlmAgent(name=name, model=model, tools=list(tools))


async def started(agent: LlmAgent) -> tuple[InMemoryRunner, dict[str, Any]]:
    """Return a runner of an agent, and the arguments of its `run_async`."""
    runner = InMemoryRunner(agent=agent, app_name="tests")
    session = await runner.session_service.create_session(app_name="tests", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="Go.")])
    return runner, {"user_id": "u", "session_id": session.id, "new_message": message}


def read(report: Report, event: Any) -> None:
    """Put what an event says into a report."""
    metadata = event.custom_metadata or {}
    if EVENT in metadata:
        report.streamed.append(metadata[EVENT])
    for response in event.get_function_responses():
        given = response.response
        text = given.get("error", given.get("result", ""))
        kinds = tuple(
            (part.inline_data or part.file_data).mime_type.partition("/")[0]
            for part in response.parts or ()
        )
        report.answers[response.id] = Answer(text, "error" in given, ("text", *kinds))
    if event.is_final_response() and event.content is not None:
        report.final = "".join(part.text or "" for part in event.content.parts or ())


class GoogleAdkHarness:
    name = "google_adk"
    extra = "google-adk"
    stream = "partial events of the runner"
    agent = True
    raw = False
    asks_people = True

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_google_adk(tools)

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, function in functions.items():
            try:
                made[name] = ForeignTool(function)
                made[name]._get_declaration()
            except Exception as error:  # noqa: BLE001 - that it refuses is the answer
                made[name] = error
        return made

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()
        runner, begin = await started(make_agent(ScriptedModel(calls, "done"), tools))
        events: Any = runner.run_async(**begin)
        try:
            async for event in events:
                read(report, event)
        except Exception as error:  # noqa: BLE001 - part of the report
            report.error = error
        finally:
            await events.aclose()
        return report

    def incoming(self) -> list[Incoming]:
        def look_up(topic: str, limit: int = 3) -> str:
            """Look up a topic."""
            if topic == "nothing":
                raise LookupError("no such topic")
            return f"{topic}: {limit}"

        class LookUp(ForeignTool):
            def _get_declaration(self) -> Any:
                declaration = super()._get_declaration()
                declaration.parameters_json_schema = {
                    "type": "object",
                    "properties": {
                        "topic": {"type": "string"},
                        "limit": {"type": "integer", "minimum": 1, "default": 3},
                    },
                    "required": ["topic"],
                }
                return declaration

        async def look_further(topic: str, limit: int = 3) -> Any:
            """Look up a topic."""
            from google.adk.events import Event

            yield Event(content=_content(types.Part(text="looking")), partial=True)
            if topic == "nothing":
                raise LookupError("no such topic")
            yield f"{topic}: {limit}"

        look_further.__name__ = "look_up"
        return [
            Incoming(from_google_adk(LookUp(look_up)), label="FunctionTool"),
            Incoming(from_google_adk(LookUp(look_further)), streams=True, label="generator"),
        ]

    def as_tool(self, tools: Sequence[Any], answers: Sequence[Any], **options: Any) -> Any:
        """Return an agent called Scout, with these tools and answers of its model, as a tool."""
        return as_tool(make_agent(ScriptedModel(*answers), tools, "Scout"), **options)


HARNESS = GoogleAdkHarness()
