"""`list`: list the tools and agents of a file or module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.agents import agents_in, described_model, tool_names
from agents_tools.cli.errors import CommandError
from agents_tools.cli.options import json_option, target_argument
from agents_tools.cli.output import paint, print_json, print_table, sentence_of
from agents_tools.cli.target import Tool, is_agent, load_target, tools_in
from agents_tools.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.cli.agents import AnyAgent

__all__ = ["command", "origin_record", "summary_of"]


@click.command("list")
@target_argument
@json_option
def command(target: str, *, as_json: bool, debug: bool) -> None:
    """List the tools and agents of TARGET: file.py, package.module, or either with :attribute.

    TARGET can also be MCP servers: http://address/mcp, or an mcpServers file (mcp.json:server for
    one of its servers).
    """
    del debug
    value = load_target(target)
    agents = {} if is_agent(value) else agents_in(value)
    try:
        tools = tools_in(value, target)
    except CommandError:
        if not agents:
            raise
        tools = []
    if as_json:
        print_json([*_records(tools), *_agent_records(agents)], compact=True)
        return
    print_table((tool.name, summary_of(tool)) for tool in tools)
    if agents:
        click.echo(("\n" if tools else "") + paint("Agents:", bold=True))
        print_table(((name, _agent_summary(agents[name])) for name in agents), indent=2)


def summary_of(tool: Tool) -> str:
    """Return the first paragraph of a description, or the reason why there is none."""
    try:
        text = sentence_of(tool.description)
    except UserError as error:
        return f"(cannot be used: {sentence_of(str(error))})"
    return text or "(no description)"


def _records(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for tool in tools:
        record: dict[str, Any] = {"name": tool.name, "kind": tool.origin.kind}
        try:
            record["description"] = tool.description
            record["parameters"] = tool.params_json_schema
        except UserError as error:
            record["error"] = str(error)
        records.append({**record, **origin_record(tool)})
    return records


def origin_record(tool: Tool) -> dict[str, Any]:
    """Return the place of a tool, and for a tool of an MCP server its name there."""
    origin = tool.origin
    if origin.server is None:
        return {"place": origin.place}
    return {"place": origin.place, "server": origin.server, "wire_name": origin.wire_name}


def _agent_summary(agent: AnyAgent) -> str:
    facts = [f"tools: {', '.join(names)}" if (names := tool_names(agent)) else "no tools"]
    if (model := described_model(agent)) is not None:
        facts.append(f"model: {model}")
    return f"{agent.name} ({'; '.join(facts)})"


def _agent_records(agents: Mapping[str, AnyAgent]) -> list[dict[str, Any]]:
    return [
        {
            "name": agent.name,
            "kind": "agent",
            "attribute": attribute,
            "model": described_model(agent),
            "tools": tool_names(agent),
        }
        for attribute, agent in agents.items()
    ]
