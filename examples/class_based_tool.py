"""Write a class-based tool: an action, an observation, and an executor that lives between calls.

Run it: python examples/class_based_tool.py. It prints a query that the database refuses, the
model's corrected query, and, at the end of the block, that the database is closed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from agents_tools import (
    Action,
    Agent,
    Observation,
    Runner,
    ToolAnnotations,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    ToolSpec,
)
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import current_context


class QueryAction(Action):
    """What is asked of the database."""

    sql: str = Field(description="One SELECT statement", min_length=6)
    limit: int = Field(default=10, ge=1, le=100, description="Rows at most")


class QueryObservation(Observation):
    """The rows; the model reads them as a table, programs as they are."""

    columns: list[str] = Field(default_factory=list[str])
    rows: list[list[str]] = Field(default_factory=list[list[str]])


class Database(ToolExecutor[QueryAction, QueryObservation]):
    """Holds the connection, and closes it."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.execute("create table owls (name text, age int)")
        self._connection.executemany("insert into owls values (?, ?)", [("Ada", 3), ("Bo", 7)])
        self._connection.execute("pragma query_only = on")

    def __call__(self, action: QueryAction, conversation: Any = None) -> QueryObservation:
        """Run the query."""
        del conversation
        if (context := current_context()) is not None:
            context.notify(f"asking: {action.sql}")
        try:
            found = self._connection.execute(action.sql)
        except sqlite3.Error as error:
            return QueryObservation.from_text(f"The database says: {error}.", is_error=True)
        columns = [column[0] for column in found.description]
        rows = [[str(value) for value in row] for row in found.fetchmany(action.limit)]
        table = "\n".join(" | ".join(row) for row in [columns, *rows])
        return QueryObservation.from_text(table, columns=columns, rows=rows)

    def interrupt(self) -> None:
        """Cancel the running query."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        print("the database is closed")


class QueryTool(ToolDefinition[QueryAction, QueryObservation]):
    """Named `query` after its class; configured with the path of the database."""

    @classmethod
    def create(cls, conv_state: Any = None, *, path: str = ":memory:") -> Sequence[QueryTool]:
        """Make the tool."""
        del conv_state
        return [
            cls(
                description="Ask the database of owls.",
                action_type=QueryAction,
                observation_type=QueryObservation,
                executor=Database(path),
                annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False),
            )
        ]


async def main() -> None:
    """Resolve the tool by name, and let an agent use it: it mends its first query."""
    with ToolRegistry() as registry:
        registry.register("owls", QueryTool)
        tools = registry.resolve(ToolSpec(name="owls", params={"path": ":memory:"}))
        script = [
            tool_call("query", sql="select nme from owls"),
            tool_call("query", sql="select name, age from owls order by age desc", limit=1),
            "The oldest owl is Bo, who is seven.",
        ]
        agent = Agent("Keeper", tools=tools, model=ScriptedModel(script))
        result = await Runner.run(agent, "Who is the oldest?")
        for item in result.new_items:
            print(f"{item.type}: {getattr(item, 'output', None) or getattr(item, 'text', '')}")


asyncio.run(main())
