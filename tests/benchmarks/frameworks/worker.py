"""`python -m tests.benchmarks.frameworks.worker NAME`: time one framework, in its environment."""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import sys
import warnings
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agents_tools import function_tool
from tests.benchmarks.frameworks import Cost
from tests.frameworks.suite import Call, harness_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CALLS = 40
ROUNDS = 9
BARE = 2_000
ARGUMENTS = {"a": 1, "b": 2}


async def plus(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return str(a + b)


TOOL = function_tool(plus)
TEXT = json.dumps(ARGUMENTS)


async def _of_a_turn(harness: Any, tools: list[Any], calls: int) -> float:
    asked = [Call(f"c{number}", "plus", TEXT) for number in range(calls)]
    start = perf_counter()
    report = await harness.run(tools, asked)
    taken = perf_counter() - start
    if report.error is not None or {one.text for one in report.answers.values()} != {"3"}:
        raise RuntimeError(f"{harness.name}: {report}")
    return taken


async def _of_one_more(harness: Any, kinds: dict[str, list[Any]]) -> dict[str, float]:
    """Time turns of one call and of many, by turns, and give what each further call took."""
    few: dict[str, list[float]] = {kind: [] for kind in kinds}
    many: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(ROUNDS + 1):
        for kind, tools in kinds.items():
            short = await _of_a_turn(harness, tools, 1)
            long = await _of_a_turn(harness, tools, CALLS + 1)
            if number:  # the first round loads what is loaded once
                few[kind].append(short)
                many[kind].append(long)
    return {
        kind: (statistics.median(many[kind]) - statistics.median(few[kind])) / CALLS * 1e6
        for kind in kinds
    }


async def _of_a_call(call: Callable[[], Awaitable[Any]]) -> float:
    taken: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(BARE // ROUNDS):
            await call()
        taken.append((perf_counter() - start) / (BARE // ROUNDS) * 1e6)
    return statistics.median(taken)


def _call_of(name: str, tool: Any) -> Callable[[], Awaitable[Any]] | None:
    """Return how the framework calls the tool."""
    match name:
        case "openai_agents":
            from agents.tool_context import ToolContext

            context: Any = ToolContext(None, tool_name="plus", tool_call_id="c", tool_arguments="")
            return lambda: tool.on_invoke_tool(context, TEXT)
        case "langchain":
            call = {"type": "tool_call", "id": "c", "name": "plus", "args": ARGUMENTS}
            return lambda: tool.ainvoke(call)
        case "anthropic_sdk":
            return lambda: tool.call(ARGUMENTS)
        case "openai_sdk":
            return lambda: tool.execute(ARGUMENTS)
        case "pydantic_ai":
            from pydantic_ai import RunContext
            from pydantic_ai.models.test import TestModel
            from pydantic_ai.usage import RunUsage

            around: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
            return lambda: tool.function_schema.call(ARGUMENTS, around)
        case "agent_framework":
            return lambda: tool.invoke(arguments=ARGUMENTS)
        case "llama_index":
            return lambda: tool.acall(**ARGUMENTS)
        case "strands":
            return lambda: _read(tool)
        case _:
            return None


async def _read(tool: Any) -> None:
    async for _ in tool.stream({"toolUseId": "c", "name": "plus", "input": ARGUMENTS}, {}):
        pass


async def cost(name: str) -> Cost:
    """Time one framework."""
    harness = harness_of(name)
    ours = harness.ours([TOOL])
    kinds = {"ours": ours}
    own = harness.own({"plus": plus}).get("plus")
    if own is not None and not isinstance(own, Exception):
        kinds["own"] = [own]
    more = await _of_one_more(harness, kinds)
    call = _call_of(harness.name, ours[0])
    return Cost(
        framework=harness.name,
        bare=await _of_a_call(lambda: TOOL.call(None, TEXT)),
        ours=more["ours"],
        own=more.get("own"),
        object=None if call is None else await _of_a_call(call),
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print(json.dumps(asdict(asyncio.run(cost(sys.argv[1])))))
