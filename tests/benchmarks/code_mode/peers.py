"""Replays the multi-turn tasks of BFCL with the code mode of another library, in its environment.

`python -m tests.benchmarks.code_mode.peers NAME`, with `bfcl_eval` on the path, prints a line of JSON
for each task: the definitions that the model reads, the calls of each turn with their outputs, and
whether the task ends in the expected state. Each library is used as its documentation shows, with the
best searches that a model could send.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any, TypedDict

from tests.benchmarks.code_mode.world import Call, Task, World, tasks_in

__all__ = ["PEERS", "Replayed", "Step"]


class Step(TypedDict):
    """A call of the model, and what it reads of its result."""

    name: str
    arguments: dict[str, Any]
    output: str


class Replayed(TypedDict):
    """What the model has read and written in a task."""

    id: str
    definitions: list[dict[str, Any]]
    turns: list[list[Step]]
    reached: bool


async def _fastmcp(world: World, turns: list[list[Call]]) -> tuple[Any, list[list[Step]]]:
    """Search for the tools of a turn that are not known yet, then send a program."""
    fastmcp: Any = importlib.import_module("fastmcp")
    mode: Any = importlib.import_module("fastmcp.experimental.transforms.code_mode")
    base: Any = importlib.import_module("fastmcp.tools.base")

    class Remote(base.Tool):
        """A tool of the task."""

        async def run(self, arguments: dict[str, Any]) -> Any:
            described = next(one for one in world.tools if one.name == self.name)
            return base.ToolResult(content=json.dumps(described.result(arguments)))

    server = fastmcp.FastMCP("BFCL", transforms=[mode.CodeMode()])
    for one in world.tools:
        server.add_tool(Remote(name=one.name, description=one.description, parameters=one.schema))
    known: set[str] = set()
    replayed: list[list[Step]] = []
    async with fastmcp.Client(server) as client:

        async def step(name: str, **arguments: Any) -> Step:
            result = await client.call_tool(name, arguments, raise_on_error=False)
            output = "\n".join(getattr(one, "text", "") for one in result.content)
            return Step(name=name, arguments=arguments, output=output)

        definitions = [
            {"name": one.name, "description": one.description, "parameters": one.inputSchema}
            for one in await client.list_tools()
        ]
        for calls in turns:
            steps: list[Step] = []
            if new := sorted({call.name for call in calls} - known):
                known.update(new)
                query = " ".join(new)
                steps.append(await step("search", query=query, detail="detailed", limit=len(new)))
            lines = [f"await call_tool({call.name!r}, {call.arguments!r})" for call in calls]
            if lines:
                lines[-1] = f"return {lines[-1]}"
                steps.append(await step("execute", code="\n".join(lines)))
            replayed.append(steps)
    return definitions, replayed


async def _harness(world: World, turns: list[list[Call]]) -> tuple[Any, list[list[Step]]]:
    """Send the programs; the definition of the tool has the signatures of all others."""
    ai: Any = importlib.import_module("pydantic_ai")
    messages: Any = importlib.import_module("pydantic_ai.messages")
    function: Any = importlib.import_module("pydantic_ai.models.function")
    harness: Any = importlib.import_module("pydantic_ai_harness")
    definitions: list[dict[str, Any]] = []

    def tool(described: Any) -> Any:
        def call(**arguments: Any) -> Any:
            return described.result(arguments)

        return ai.Tool.from_schema(
            call,
            name=described.name,
            description=described.description,
            json_schema=described.schema,
        )

    def respond(history: list[Any], info: Any) -> Any:
        definitions[:] = [
            {
                "name": one.name,
                "description": one.description,
                "parameters": one.parameters_json_schema,
            }
            for one in info.function_tools
        ]
        if programs and isinstance(history[-1].parts[-1], messages.UserPromptPart):
            part = messages.ToolCallPart("run_code", {"code": programs.pop()})
            return messages.ModelResponse(parts=[part])
        return messages.ModelResponse(parts=[messages.TextPart("Done.")])

    agent = ai.Agent(
        function.FunctionModel(respond),
        tools=[tool(one) for one in world.tools],
        capabilities=[harness.CodeMode()],
    )
    replayed: list[list[Step]] = []
    history: list[Any] = []
    for calls in turns:
        code = "\n".join(f"await {call.to_python(call.name)}" for call in calls)
        programs = [code] if calls else []
        result = await agent.run("Go on.", message_history=history)
        history = result.all_messages()
        outputs = [
            part.model_response_str()
            for message in result.new_messages()
            for part in message.parts
            if isinstance(part, (messages.ToolReturnPart, messages.RetryPromptPart))
            and hasattr(part, "model_response_str")
        ]
        replayed.append(
            [Step(name="run_code", arguments={"code": code}, output=one) for one in outputs]
        )
    return definitions, replayed


PEERS = {"fastmcp": _fastmcp, "pydantic-ai-harness": _harness}


async def _replay(name: str, task: Task, data: Path) -> Replayed:
    expected, world = World(task, data), World(task, data)
    for call in (call for calls in task.calls for call in calls):
        expected.run(call)
    turns = [[world.parsed(call) for call in calls] for calls in task.calls]
    definitions, replayed = await PEERS[name](world, turns)
    return Replayed(
        id=task.id,
        definitions=definitions,
        turns=replayed,
        reached=world.state == expected.state,
    )


def main() -> None:
    """Replay all tasks."""
    package: Any = importlib.import_module("bfcl_eval")
    data = Path(package.__file__).parent / "data"
    for task in tasks_in(data):
        print(json.dumps(asyncio.run(_replay(sys.argv[1], task, data))), flush=True)


if __name__ == "__main__":
    main()
