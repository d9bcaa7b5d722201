"""Measures toolsets of growing size and prints what they cost."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING, Any

from agents_tools import Agent
from agents_tools.policies import timeout
from agents_tools.tool import ToolContext
from agents_tools.toolset import Toolset, token_report, tool_search
from agents_tools.toolset.catalog import text_of
from agents_tools.toolset.search import SearchIndex
from agents_tools.wire.project import project
from tests.benchmarks.tables import duration, markdown
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
    columns: list[dict[str, str]] = []
    for number in _SIZES:
        tools = catalog(number)
        columns.append({**_turns(tools), **_searches(tools)})
    rows = [(what, *(column[what] for column in columns)) for what in columns[0]]
    print(markdown(("", *(f"{number:,} tools" for number in _SIZES)), rows))
    print()
    _tokens(catalog(1_000))


def _turns(tools: list[FunctionTool[..., Any]]) -> dict[str, str]:
    started = time.perf_counter()
    toolset = Toolset(tools).prefix("x_").map(timeout(10))
    found = {"combine, with a prefix and a policy": duration(time.perf_counter() - started)}
    for name, given in (
        ("a turn with all tools", toolset),
        ("a turn with tool search", tool_search(toolset)),
        ("a turn with tool search, of a server", tool_search(Toolset(_Server(tools)).prefix("x_"))),
    ):
        agent = Agent("a", tools=[given])
        context = ToolContext(None)
        with asyncio.Runner() as runner:

            async def turn(agent: Agent[Any, Any] = agent, context: Any = context) -> None:
                await agent.toolbox(context)

            started = time.perf_counter()
            runner.run(turn())
            found[f"{name}, first"] = duration(time.perf_counter() - started)
            found[f"{name}, later"] = duration(runner.run(_repeated(turn)))
    return found


async def _repeated(work: Callable[[], Any], times: int = 200) -> float:
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _searches(tools: list[FunctionTool[..., Any]]) -> dict[str, str]:
    documents = [text_of(tool) for tool in tools]
    started = time.perf_counter()
    index = SearchIndex(documents)
    built = time.perf_counter() - started
    taken: list[float] = []
    hits: dict[str, list[bool]] = {}
    for kind, query, wanted in queries(tools):
        started = time.perf_counter()
        places = index.find(query, 5)
        taken.append(time.perf_counter() - started)
        hits.setdefault(kind, []).append(wanted in [tools[place].name for place in places])
    taken.sort()
    return {
        "build the index": duration(built),
        "search, median": duration(statistics.median(taken)),
        "search, 99th percentile": duration(taken[int(len(taken) * 0.99)]),
        **{
            f"in the top five, query by {kind}": f"{statistics.mean(hits[kind]):.0%}"
            for kind in hits
        },
    }


def _tokens(tools: list[FunctionTool[..., Any]]) -> None:
    rows: list[tuple[str, ...]] = []
    for name, given in (("all tools", tools), ("with tool search", list(tool_search(tools)))):
        report = token_report(given)
        for provider, total in report.totals.items():
            exact = count(project(tool, provider).wire for tool in given)
            told = "" if exact is None else f"{exact:,}"
            rows.append((f"{name}, for {provider}", f"{total:,}", told))
    head = (f"tokens of {len(tools):,} definitions", "`token_report`", "counted (o200k)")
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
