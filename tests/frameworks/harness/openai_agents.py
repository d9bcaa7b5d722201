"""The OpenAI Agents SDK, with the scripted model of its own testing kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_tools.export import from_openai_agents, to_openai_agents
from tests.frameworks.suite import Answer, Call, Incoming, Report, attempted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools import FunctionTool

__all__ = ["HARNESS"]


class _Harness:
    name = "openai_agents"
    extra = "openai-agents"
    stream = None
    agent = True
    raw = True
    asks_people = True

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_openai_agents(tools)

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        return {name: attempted(function_tool, given) for name, given in functions.items()}

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        asked = [function_call(call.name, call.arguments, call_id=call.id) for call in calls]
        model = ScriptedModel([asked, [assistant_message("done")]])
        agent: Agent[Any, Any] = Agent(name="Agent", tools=list(tools), model=model)
        report = Report()
        try:
            result = await Runner.run(
                agent, "go", run_config=RunConfig(tracing_disabled=True), context="the app"
            )
        except Exception as error:  # noqa: BLE001 - what it raises is the finding
            report.error = error
            return report
        report.final = str(result.final_output)
        for item in result.new_items:
            if item.type == "tool_call_output_item":
                raw: Any = item.raw_item
                report.answers[raw["call_id"]] = _answer(raw["output"])
        return report

    def incoming(self) -> list[Incoming]:
        return [Incoming(from_openai_agents(look_up))]


def _answer(output: Any) -> Answer:
    if isinstance(output, str):
        return Answer(output)
    kinds = tuple(part["type"].removeprefix("input_") for part in output)
    return Answer("\n".join(part.get("text", "") for part in output).strip(), None, kinds)


@function_tool(strict_mode=False, failure_error_function=None)
async def look_up(topic: str, limit: int = 3) -> str:
    """Look up a topic.

    Args:
        topic: The topic.
        limit: How many answers, at least 1.
    """
    if topic == "nothing":
        raise LookupError("no such topic")
    return f"{topic}: {limit}"


HARNESS = _Harness()
