"""Prints how many tokens eight tasks take with one call per request, in parallel, and in code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents_tools import Agent, Runner, code_mode, tool_search
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.content import MessageOutputItem, ToolCallOutputItem, Usage
from agents_tools.events import Emit
from agents_tools.testing import tool_call
from agents_tools.toolset.token_usage import estimated_tokens
from agents_tools.wire.project import project
from tests.benchmarks.code_mode.tasks import TASKS, Task
from tests.benchmarks.tables import markdown

__all__ = ["Measured", "ReplayModel", "compact", "item_text", "measure"]


@dataclass
class Measured:
    """What a task has taken.

    Attributes:
        requests: The number of requests to the model.
        tokens: The tokens of all requests and responses: definitions, conversation and answers.
        output: The last output of a tool.
    """

    requests: int = 0
    tokens: int = 0
    output: str = ""


@dataclass
class ReplayModel:
    """Sends the calls of a script, then a short answer, and counts what it reads and writes."""

    script: list[list[Any]]
    measured: Measured = field(default_factory=Measured)
    _sent: int = 0
    _known: dict[int, int] = field(default_factory=dict[int, int])

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer."""
        done = self._sent >= len(self.script)
        items = [MessageOutputItem(text="Done.")] if done else self.script[self._sent]
        self._sent += 1
        self.measured.requests += 1
        definitions = sum(self._count(tool, _definition) for tool in request.tools)
        conversation = sum(self._count(item, _item) for item in request.input)
        self.measured.tokens += (
            definitions + conversation + sum(map(estimated_tokens, map(_item, items)))
        )
        return ModelResponse(items=items, usage=Usage(requests=1))

    def _count(self, one: Any, text_of: Callable[[Any], str]) -> int:
        if id(one) not in self._known:
            self._known[id(one)] = estimated_tokens(text_of(one))
        return self._known[id(one)]


def _definition(tool: Any) -> str:
    return compact(project(tool, "openai_responses").wire)


def _item(item: Any) -> str:
    return item_text(item.to_dict())


def item_text(item: Mapping[str, Any]) -> str:
    """Return an item as it is sent to a model, with an id of the usual length."""
    sent = {name: value for name, value in item.items() if name not in _OWN_FIELDS}
    if item.get("type") == "function_call_output":
        del sent["name"]
    return compact(sent | ({"call_id": "call_0123456789abcdef"} if "call_id" in item else {}))


_OWN_FIELDS = {"agent", "status"}
"""The fields of an item that no provider gets."""


def compact(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def measure(task: Task, form: str) -> Measured:
    """Run a task, and return what it has taken.

    Args:
        task: The task.
        form: `single` with one call per request, `parallel`, `search` for parallel calls of tools
            that are found by search, or `code`.
    """
    tools: list[Any] = task.tools
    if form == "code":
        tools = [code_mode(*task.tools)]
        turns = [[tool_call("run_code", code=task.program)]]
    else:
        turns = [[tool_call(name, arguments) for name, arguments in turn] for turn in task.calls]
    if form == "search":
        tools = [tool_search(*task.tools)]
        names = dict.fromkeys(name for turn in task.calls for name, _ in turn)
        called = [
            [tool_call("call_tool", {"name": name, "arguments": given}) for name, given in turn]
            for turn in task.calls
        ]
        turns = [[tool_call("tool_search", query=" ".join(names))], *called]
    if form == "single":
        turns = [[call] for turn in turns for call in turn]
    answer = MessageOutputItem(text=compact(task.result))
    model = ReplayModel([*turns, [answer]])
    agent = Agent("Worker", tools=tools, model=model)
    result = await Runner.run(agent, f"Please {task.name}.", max_turns=None)
    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    model.measured.output = str(outputs[-1].output)
    return model.measured


def main() -> None:
    """Measure and print."""
    rows: list[tuple[str, ...]] = []
    totals = [0] * len(_FORMS)
    for task in TASKS:
        found = [asyncio.run(measure(task, form)) for form in _FORMS]
        assert json.loads(found[-1].output) == task.result, task.name
        rows.append(_row(task.name, found))
        totals = [total + one.tokens for total, one in zip(totals, found, strict=True)]
    rows.append(_row("all", [Measured(tokens=total) for total in totals]))
    print(markdown(("", *_FORMS.values(), "less than with tool search"), rows))


_FORMS = {
    "single": "one call per request",
    "parallel": "parallel calls",
    "search": "parallel calls, tool search",
    "code": "code mode",
}


def _row(name: str, found: list[Measured]) -> tuple[str, ...]:
    saved = 1 - found[-1].tokens / found[-2].tokens
    cells = [
        f"{one.tokens:,}" + (f" ({one.requests} requests)" if one.requests else "") for one in found
    ]
    return (name, *cells, f"{saved:.1%}")


if __name__ == "__main__":
    main()
