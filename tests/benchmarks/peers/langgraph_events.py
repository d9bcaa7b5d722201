"""LangGraph's stream of what a node writes."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

from tests.benchmarks.events.limit import STRETCH, TEXT, at_least, check


class State(dict[str, Any]):
    """What the graph works on."""


@at_least(STRETCH)
async def follow(size: int) -> float:
    """Write from a node, and read with `astream`."""

    async def speak(state: Any) -> Any:
        write = get_stream_writer()
        for number in range(size):
            write({"id": number, "text": TEXT})
        return {}

    graph: Any = StateGraph(dict)
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", END)
    compiled = graph.compile()
    said = 0
    start = perf_counter()
    async for _ in compiled.astream({}, stream_mode="custom"):
        said += 1
    taken = perf_counter() - start
    check(said, size)
    return taken
