"""The tools of the LiveMCPBench catalogue: 70 published servers with 527 tools.

The catalogue is not part of this project. The tests read it from the file that
`AGENTS_TOOLS_LIVE_TOOLS` names, or from `shared/data/live_tools.json` next to the checkout.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from agents_tools import FunctionTool, ToolResult
from agents_tools.mcp import MCPToolManager
from agents_tools.testing import call_tool, tool_arguments
from tests.mcp.peers import BOUND, ROOT
from tests.mcp.small import Small, said

Tool = FunctionTool[..., Any]

CATALOGUE = Path(
    os.environ.get("AGENTS_TOOLS_LIVE_TOOLS", ROOT.parent / "shared" / "data" / "live_tools.json")
)
EXAMPLES = 3
"""Calls of each tool."""

TITLE = "LiveMCPBench"
LOADED, CALLED, CHECKED = CLAIMS = (
    "loaded without a warning",
    "called three times with generated arguments",
    "invalid arguments refused before they are sent",
)
"""What the tests show: the rows of a table in the documentation."""

pytestmark = [
    pytest.mark.external,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not CATALOGUE.exists(),
        reason="the LiveMCPBench catalogue is missing: set AGENTS_TOOLS_LIVE_TOOLS to its tools.json",
    ),
]


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Return the listed tools of each server."""
    entries = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {name: listed["tools"] for entry in entries for name, listed in entry["tools"].items()}


class Catalogued(Small):
    """A server that returns the arguments of a call, and a value of the tool's output schema."""

    async def _call(
        self,
        ctx: Any,
        name: str,
        arguments: dict[str, Any],
        raw: Mapping[str, Any],
        *,
        modern: bool,
    ) -> dict[str, Any]:
        del ctx, raw, modern
        self.calls.append((name, arguments))
        schema = self.tools[name].get("outputSchema")
        structured = {} if schema is None else {"structuredContent": example_of(schema)}
        return said(json.dumps(arguments), **structured)


def example_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value that a schema allows."""
    (value,) = examples_of(raw_tool(schema), 1)
    return value


def raw_tool(schema: dict[str, Any]) -> Tool:
    """Return a tool whose arguments are described by a schema."""

    async def invoke(_context: Any, args_json: str) -> str:
        return args_json

    return FunctionTool(
        name="example", description="", params_json_schema=schema, on_invoke_tool=invoke
    )


def examples_of(tool: Tool, count: int) -> list[dict[str, Any]]:
    """Return generated valid arguments of a tool, the same in each run."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(tool_arguments(tool))
    def collect(arguments: dict[str, Any]) -> None:
        found.append(arguments)

    collect()
    return found


@asynccontextmanager
async def loaded() -> AsyncGenerator[tuple[MCPToolManager, dict[str, Catalogued]]]:
    """Yield a manager with all servers of the catalogue, and the servers."""
    servers = {name: Catalogued(*tools, name=name) for name, tools in catalogue().items()}
    async with asyncio.timeout(4 * BOUND), MCPToolManager() as manager:
        for name, server in servers.items():
            await manager.add_server(name, server=server.server)
        yield manager, servers


@pytest.mark.cell(TITLE, LOADED)
async def test_every_tool_of_the_catalogue_loads(caplog: pytest.LogCaptureFixture) -> None:
    """No tool is missing or unvalidated, and none needs a warning."""
    async with loaded() as (manager, _):
        assert len(manager.get_server_names()) == 70
        for server, listed in catalogue().items():
            loaded_names = [tool.origin.wire_name for tool in manager.get_tools_by_server(server)]
            assert loaded_names == [tool["name"] for tool in listed], server
        names = manager.get_tool_names()
        assert len(set(names)) == len(names) == 527
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
        assert manager.skipped == {}
        assert manager.failures == {}
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


@pytest.mark.cell(TITLE, CALLED)
async def test_every_tool_of_the_catalogue_is_callable() -> None:
    """Generated arguments arrive unchanged, and the result matches the tool's output schema."""
    async with loaded() as (manager, servers):
        structured = 0
        for tool in manager.get_tools():
            server, name = servers[str(tool.origin.server)], tool.origin.wire_name
            for arguments in examples_of(tool, EXAMPLES):
                called = await call_tool(tool, arguments)
                assert called.status == "ok", (tool.name, called.outcome)
                assert server.calls.pop() == (name, arguments)
                assert isinstance(called.value, ToolResult)
                assert json.loads(called.value.content) == arguments
                assert not (called.value.metadata or {}).get("output_schema_faults"), tool.name
                structured += called.value.structured is not None
        assert structured == 104 * EXAMPLES


@pytest.mark.cell(TITLE, CHECKED)
async def test_invalid_arguments_never_reach_a_server_of_the_catalogue() -> None:
    async with loaded() as (manager, servers):
        with_required = [tool for tool in manager.get_tools() if tool.json_schema.get("required")]
        for tool in with_required:
            called = await call_tool(tool, {})
            assert called.status == "invalid_args", tool.name
            assert str(called.output).startswith(f"Invalid arguments for tool '{tool.name}'")
        assert len(with_required) > 300
        assert not any(server.calls for server in servers.values())
