"""Measures toolsets of growing size and prints what they cost."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from agents_tools import Agent
from agents_tools._search import SearchIndex
from agents_tools.context import ToolContext
from agents_tools.policies import timeout
from agents_tools.toolset import Toolset, token_report, tool_search
from agents_tools.wire._project import project
from tests.benchmarks.tokens import count
from tests.benchmarks.toolsets.catalog import catalog, queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool import FunctionTool

_SIZES = (100, 1_000, 10_000)


class _Server:
    """Gives the same tools in a new list each time, as an `MCPToolManager` does."""

    def __init__(self, tools: list[Any]) -> None:
        self._tools = tools

    def get_tools(self) -> list[Any]:
        return list(self._tools)


def main() -> None:
    """Measure and print."""
    for number in _SIZES:
        tools = catalog(number)
        print(f"\n{number:,} tools")
        _turns(tools)
        _searches(tools)
    _tokens(catalog(1_000))


def _turns(tools: list[FunctionTool[..., Any]]) -> None:
    started = time.perf_counter()
    toolset = Toolset(tools).prefix("x_").map(timeout(10))
    _row("put together, prefix and policy", time.perf_counter() - started)
    for name, given in (
        ("a turn, all offered", toolset),
        ("a turn, behind a search", tool_search(toolset)),
        ("a turn, behind a search, of a server", tool_search(Toolset(_Server(tools)).prefix("x_"))),
    ):
        agent = Agent("a", tools=[given])
        context = ToolContext(None)
        with asyncio.Runner() as runner:

            async def turn(agent: Agent[Any] = agent, context: Any = context) -> None:
                await agent.toolbox(context)

            started = time.perf_counter()
            runner.run(turn())
            first = time.perf_counter() - started
            _row(name, runner.run(_repeated(turn)), f"first one {first * 1e3:8.2f} ms")


async def _repeated(work: Callable[[], Any], times: int = 200) -> float:
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _searches(tools: list[FunctionTool[..., Any]]) -> None:
    documents = [(tool.name, tool.description, tool.json_schema["properties"]) for tool in tools]
    started = time.perf_counter()
    index = SearchIndex(documents)
    _row("build the index", time.perf_counter() - started)
    asked = queries(tools)
    taken: list[float] = []
    found: dict[str, list[bool]] = {}
    first: dict[str, list[bool]] = {}
    for kind, query, wanted in asked:
        started = time.perf_counter()
        places = index.find(query, 5)
        taken.append(time.perf_counter() - started)
        names = [tools[place].name for place in places]
        found.setdefault(kind, []).append(wanted in names)
        first.setdefault(kind, []).append(names[:1] == [wanted])
    taken.sort()
    _row("search, median", statistics.median(taken))
    _row("search, p99", taken[int(len(taken) * 0.99)], f"slowest {taken[-1] * 1e3:8.2f} ms")
    for kind, hits in found.items():
        print(
            f"  {'found by ' + kind:40} first {statistics.mean(first[kind]):6.1%}"
            f"   among five {statistics.mean(hits):6.1%}"
        )


def _tokens(tools: list[FunctionTool[..., Any]]) -> None:
    print(f"\ntokens of {len(tools):,} definitions, estimated (o200k, where it can be counted)")
    for name, given in (("all", tools), ("behind a search", list(tool_search(tools)))):
        report = token_report(given)
        for provider, total in report.totals.items():
            exact = count(project(tool, provider).wire for tool in given)
            size = sum(len(_json(project(tool, provider).wire)) for tool in given)
            told = "not counted" if exact is None else f"{exact:,}, {size / exact:.2f} bytes each"
            print(f"  {name + ', ' + provider:40} {total:>9,}   ({told})")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _row(name: str, seconds: float, more: str = "") -> None:
    print(f"  {name:40} {seconds * 1e3:9.3f} ms   {more}".rstrip())


if __name__ == "__main__":
    main()
