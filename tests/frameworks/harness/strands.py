"""Agents of Strands, with a model that says what it is told to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from strands import Agent, ToolContext as ForeignContext, tool as foreign_tool
from strands.models import Model

from agents_tools import FunctionTool
from agents_tools.export.strands import as_tool, from_strands, to_strands
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedModel", "make_agent"]


class ScriptedModel(Model):
    """A model of Strands that gives one answer after the other: calls, or pieces of text."""

    def __init__(self, *answers: Sequence[Call] | str) -> None:
        self.answers = list(answers)
        self.seen: list[Any] = []

    def update_config(self, **model_config: Any) -> None:
        """Take no configuration."""

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.seen.append(list(messages))
        answer = self.answers.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            for word in answer.split(" "):
                text = word if word == answer.rsplit(" ", 1)[-1] else f"{word} "
                yield {"contentBlockDelta": {"delta": {"text": text}}}
            yield {"contentBlockStop": {}}
        else:
            for call in answer:
                use = {"toolUse": {"name": call.name, "toolUseId": call.id}}
                yield {"contentBlockStart": {"start": use}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": call.arguments}}}}
                yield {"contentBlockStop": {}}
        reason = "end_turn" if isinstance(answer, str) else "tool_use"
        yield {"messageStop": {"stopReason": reason}}
        usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}


def make_agent(model: ScriptedModel, tools: Sequence[Any], **more: Any) -> Agent:
    """Make an agent that prints nothing."""
    return Agent(model=model, tools=list(tools), callback_handler=None, **more)


def answers_in(messages: Any) -> dict[str, Answer]:
    """Return the output of each call that the model received."""
    found: dict[str, Answer] = {}
    for message in messages:
        for block in message["content"]:
            if "toolResult" in block:
                result = block["toolResult"]
                kinds = tuple(_kind(part) for part in result["content"])
                text = "\n".join(part["text"] for part in result["content"] if "text" in part)
                failed = result["status"] == "error"
                found[result["toolUseId"]] = Answer(text, failed, kinds)
    return found


def _kind(part: dict[str, Any]) -> str:
    return {"document": "file", "json": "text"}.get(next(iter(part)), next(iter(part)))


class StrandsHarness:
    name = "strands"
    extra = "strands"
    stream = "tool_stream_event of stream_async"
    agent = True
    raw = False
    asks_people = True

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_strands(tools)

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
        events: Any = agent.stream_async("Go.")
        try:
            async for event in events:
                told = event.get("tool_stream_event")
                if told is not None and isinstance(told["data"], dict) and "type" in told["data"]:
                    report.streamed.append(told["data"])
                if "result" in event:
                    report.final = str(event["result"]).strip()
        except Exception as error:  # noqa: BLE001 - part of the report
            report.error = error
        finally:
            await events.aclose()
        report.answers = answers_in(agent.messages)
        return report

    def incoming(self) -> list[Incoming]:
        @foreign_tool
        def look_up(topic: str, limit: int = 3) -> str:
            """Look up a topic."""
            if topic == "nothing":
                raise LookupError("no such topic")
            return f"{topic}: {limit}"

        @foreign_tool(name="look_up", context=True)
        async def look_further(topic: str, tool_context: ForeignContext, limit: int = 3) -> Any:
            """Look up a topic."""
            yield f"looking in {tool_context.tool_use['name']}"
            if topic == "nothing":
                raise LookupError("no such topic")
            yield f"{topic}: {limit}"

        schema = {
            "type": "object",
            "properties": {
                "topic": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "default": 3},
            },
            "required": ["topic"],
        }
        for tool in (look_up, look_further):
            tool.tool_spec = {**tool.tool_spec, "inputSchema": {"json": schema}}
        state = {"agent": make_agent(ScriptedModel(), [])}
        return [
            Incoming(from_strands(look_up), label="@tool"),
            Incoming(
                from_strands(look_further, invocation_state=state), streams=True, label="generator"
            ),
        ]

    def as_tool(self, tools: Sequence[Any], answers: Sequence[Any], **options: Any) -> Any:
        """Return an agent called Scout, with these tools and answers of its model, as a tool."""
        agent = make_agent(ScriptedModel(*answers), tools, name="Scout")
        return as_tool(agent, **options)


HARNESS = StrandsHarness()
