"""Ranks tools with the code of one library, in the environment of that library.

Standard input has `{"subject", "tools", "queries", "limit"}`; standard output gets `{"names",
"seconds"}`: the first different names for each query, and the processor time of one query. This
module imports only what the environment of every subject has.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

Find = Callable[[str, int], Iterable[str]]


def _agents_tools(tools: list[dict[str, Any]]) -> Find:
    from agents_tools.toolset import SearchIndex, ToolText

    index = SearchIndex(
        [
            ToolText.of(tool["name"], tool["description"], tool["parameters"], tool["server"])
            for tool in tools
        ]
    )
    return lambda query, limit: [tools[place]["name"] for place in index.find(query, limit)]


def _fastmcp(tools: list[dict[str, Any]]) -> Find:
    from fastmcp.server.transforms.search import bm25  # pyright: ignore[reportMissingImports]
    from fastmcp.tools.base import Tool  # pyright: ignore[reportMissingImports]

    index = bm25._BM25Index()
    index.build(
        [
            bm25._extract_searchable_text(
                Tool(name=one["name"], description=one["description"], parameters=one["parameters"])
            )
            for one in tools
        ]
    )
    return lambda query, limit: [tools[place]["name"] for place in index.query(query, 20 * limit)]


def _pydantic_ai(tools: list[dict[str, Any]]) -> Find:
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets._tool_search import keywords_search_fn

    definitions = [
        ToolDefinition(
            name=one["name"],
            description=one["description"],
            parameters_json_schema=one["parameters"],
        )
        for one in tools
    ]
    context: Any = None
    return lambda query, _limit: keywords_search_fn(context, [query], definitions)


SUBJECTS = {"agents-tools": _agents_tools, "fastmcp": _fastmcp, "pydantic-ai-slim": _pydantic_ai}


def main() -> None:
    """Answer the request on standard input."""
    asked = json.load(sys.stdin)
    find, limit = SUBJECTS[asked["subject"]](asked["tools"]), asked["limit"]
    find("warm up", limit)
    started = time.process_time()
    names = [list(find(query, limit)) for query in asked["queries"]]
    seconds = (time.process_time() - started) / max(1, len(names))
    first = [list(dict.fromkeys(found))[:limit] for found in names]
    json.dump({"names": first, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
