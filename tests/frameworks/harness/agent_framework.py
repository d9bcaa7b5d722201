"""Agents of the Microsoft Agent Framework, with a client that says what it is told to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    FunctionTool as ForeignTool,
    ResponseStream,
    tool as foreign_tool,
)
from pydantic import Field

from agents_tools import FunctionTool
from agents_tools.export.agent_framework import (
    as_tool,
    from_agent_framework,
    to_agent_framework,
)
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedClient", "make_agent"]


class ScriptedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A client that gives one answer after the other: calls, or words of a text."""

    def __init__(self, *answers: Sequence[Call] | str) -> None:
        # Without it a model is never told why a tool of theirs failed.
        super().__init__(function_invocation_configuration={"include_detailed_errors": True})
        self.answers = list(answers)
        self.seen: list[list[Any]] = []
        self.offered: list[Any] = []

    def _inner_get_response(
        self, *, messages: Any, stream: bool, options: Any, **kwargs: Any
    ) -> Any:
        self.seen.append(list(messages))
        self.offered = list(options.get("tools") or [])

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for contents in _pieces(self.answers.pop(0)):
                yield ChatResponseUpdate(role="assistant", contents=contents)

        made = ResponseStream(updates(), finalizer=ChatResponse.from_updates)
        return made if stream else made.get_final_response()


def _pieces(given: Sequence[Call] | str) -> list[list[Content]]:
    """Return an answer as a model streams it, with its usage at the end."""
    usage = Content.from_usage({"input_token_count": 5, "output_token_count": 2})
    if not isinstance(given, str):
        calls = [Content.from_function_call(c.id, c.name, arguments=c.arguments) for c in given]
        return [calls, [usage]]
    words = given.split(" ")
    texts = [f" {word}" if number else word for number, word in enumerate(words)]
    return [*([Content.from_text(text)] for text in texts), [usage]]


def make_agent(client: ScriptedClient, tools: Sequence[Any], **more: Any) -> Agent[Any, Any]:
    return Agent(client, tools=list(tools), **more)


_KINDS = {"data": "file", "uri": "file", "hosted_file": "file"}


def answers_in(messages: Sequence[Any]) -> dict[str, Answer]:
    """Return the output of each call that the model received."""
    found: dict[str, Answer] = {}
    for message in messages:
        for content in message.contents:
            if content.type == "function_result":
                kinds = tuple(_kind(item) for item in content.items or ())
                failed = True if content.exception else None
                found[content.call_id] = Answer(content.result, failed, kinds)
    return found


def _kind(item: Any) -> str:
    kind = (item.media_type or "").partition("/")[0]
    return kind if kind in {"image", "audio"} else _KINDS.get(item.type, item.type)


class AgentFrameworkHarness:
    name = "agent_framework"
    extra = "agent-framework"
    stream = None
    agent = True
    raw = False
    hides_errors = True

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return list(to_agent_framework(tools))

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, function in functions.items():
            try:
                made[name] = foreign_tool(function)
                made[name].parameters()
            except Exception as error:  # noqa: BLE001 - that it refuses is the answer
                made[name] = error
        return made

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()
        client = ScriptedClient(calls, "done")
        try:
            response = await make_agent(client, tools).run("Go.")
            report.final = response.text
        except Exception as error:  # noqa: BLE001 - part of the report
            report.error = error
        report.answers = answers_in(client.seen[-1])
        return report

    def incoming(self) -> list[Incoming]:
        @foreign_tool
        def look_up(topic: str, limit: Annotated[int, Field(ge=1)] = 3) -> str:
            """Look up a topic."""
            if topic == "nothing":
                raise LookupError("no such topic")
            return f"{topic}: {limit}"

        async def look(topic: str, limit: int = 3) -> list[Content]:
            if topic == "nothing":
                raise LookupError("no such topic")
            return [Content.from_text(f"{topic}: {limit}")]

        declared = ForeignTool(
            name="look_up",
            description="Look up a topic.",
            func=look,
            input_model={
                "type": "object",
                "properties": {
                    "topic": {"type": "string"},
                    "limit": {"type": "integer", "minimum": 1, "default": 3},
                },
                "required": ["topic"],
            },
        )
        return [
            Incoming(from_agent_framework(look_up), label="@tool"),
            Incoming(from_agent_framework(declared), label="FunctionTool"),
        ]

    def as_tool(self, tools: Sequence[Any], answers: Sequence[Any], **options: Any) -> Any:
        """Return an agent called Scout, with these tools and answers of its model, as a tool."""
        agent = make_agent(ScriptedClient(*answers), tools, name="Scout")
        return as_tool(agent, **options)


HARNESS = AgentFrameworkHarness()
