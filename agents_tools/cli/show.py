"""`show`: show one tool or agent."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.agents import agents_in, described_model, tool_names
from agents_tools.cli.errors import CommandError
from agents_tools.cli.list_ import origin_record
from agents_tools.cli.options import json_option, target_argument
from agents_tools.cli.output import paint, print_json, print_table, short_path, width
from agents_tools.cli.schema_text import DefinitionReader, describe_type
from agents_tools.cli.target import is_agent, load_target, pick, tools_in
from agents_tools.cli.tool_help import parameter_rows
from agents_tools.text.output import release_text
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.cli.agents import AnyAgent
    from agents_tools.cli.target import Tool

__all__ = ["command"]


@click.command("show")
@target_argument
@click.argument("tool_name", metavar="[NAME]", required=False)
@json_option
def command(target: str, tool_name: str | None, *, as_json: bool, debug: bool) -> None:
    """Show one tool of TARGET: its description, parameters, result and location.

    TARGET can also be MCP servers: a URL, or an mcpServers file.

    NAME can also be the name of an agent.
    """
    del debug
    value = load_target(target)
    agent = _agent_meant(value, tool_name)
    if agent is not None:
        if as_json:
            print_json(_agent_record(agent), compact=True)
        else:
            _print_agent(agent, target if tool_name is None else f"{target}:{tool_name}")
        return
    tools = tools_in(value, target)
    if tool_name is None and len(tools) > 1:
        names = ", ".join(tool.name for tool in tools)
        raise CommandError(f"{target} has several tools; name one.", hint=f"Tools: {names}.")
    tool = tools[0] if tool_name is None else pick(tools, tool_name, target)
    tool.build()
    if as_json:
        print_json(_record(tool), compact=True)
    else:
        _print(tool, target)


def _agent_meant(value: Any, name: str | None) -> AnyAgent | None:
    """Return the agent to show; `None` to show a tool."""
    agents = agents_in(value)
    if name is not None:
        for attribute, agent in agents.items():
            if name in {attribute, agent.name} and not is_agent(value):
                return agent
        return None
    if is_agent(value):
        return agents[value.name]
    members = getattr(value, "__dict__", {}).values()
    tools = any(isinstance(member, FunctionTool) for member in members)
    return next(iter(agents.values())) if len(agents) == 1 and not tools else None


def _agent_record(agent: AnyAgent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "kind": "agent",
        "model": described_model(agent),
        "instructions": agent.instructions if isinstance(agent.instructions, str) else None,
        "tools": tool_names(agent),
    }


def _print_agent(agent: AnyAgent, target: str) -> None:
    click.echo(paint(release_text(agent.name), bold=True))
    if isinstance(agent.instructions, str) and agent.instructions:
        click.echo()
        click.echo(click.wrap_text(release_text(agent.instructions), width(), "  ", "  "))
    click.echo("\n" + paint("Facts:", bold=True))
    facts = [
        ("kind", "agent"),
        ("model", described_model(agent) or "set by the run"),
        ("tools", ", ".join(tool_names(agent)) or "none"),
    ]
    if not isinstance(agent.instructions, str):
        facts.append(("instructions", "created for each run"))
    print_table(facts, indent=2)
    click.echo(f"\nTo run it: agents-tools run {target} INPUT")


def _record(tool: Tool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "kind": tool.origin.kind,
        **origin_record(tool),
        "strict": tool.strict_json_schema,
        "parameters": tool.params_json_schema,
    }
    if (output := tool.output_json_schema) is not None:
        record["output"] = output
    if tool.annotations is not None:
        record["annotations"] = asdict(tool.annotations)
    if policies := _policies(tool):
        record["policies"] = policies
    return record


def _print(tool: Tool, target: str) -> None:
    click.echo(paint(tool.name, bold=True))
    if tool.description:
        click.echo()
        text = "\n\n".join(
            click.wrap_text(release_text(part), width(), "  ", "  ")
            for part in tool.description.split("\n\n")
        )
        click.echo(text)
    if rows := parameter_rows(tool):
        click.echo("\n" + paint("Parameters:", bold=True))
        print_table(rows, indent=2)
    click.echo("\n" + paint("Facts:", bold=True))
    print_table(_facts(tool), indent=2)
    click.echo(release_text(f"\nTo call it: agents-tools call {target} {tool.name} --help"))


def _facts(tool: Tool) -> list[tuple[str, str]]:
    facts = [("kind", _KINDS.get(tool.origin.kind, tool.origin.kind))]
    if tool.origin.server is not None:
        facts.append(("server", f"{tool.origin.server}, which calls it {tool.origin.wire_name}"))
    if (output := tool.output_json_schema) is not None:
        facts.append(("result", describe_type(DefinitionReader(output), output)))
    if tool.annotations is not None:
        hints = {key: value for key, value in asdict(tool.annotations).items() if value is not None}
        facts.append(("hints", ", ".join(f"{key}: {_word(value)}" for key, value in hints.items())))
    if policies := _policies(tool):
        facts.append(("policies", ", ".join(policies)))
    facts.append(("strict", "requested" if tool.strict_json_schema else "not requested"))
    if tool.origin.place:
        facts.append(("place", short_path(tool.origin.place)))
    return facts


_KINDS = {
    "function": "function",
    "stream": "streaming tool",
    "manual": "defined manually",
    "agent": "agent as a tool",
    "mcp": "tool of an MCP server",
}


def _policies(tool: Tool) -> list[str]:
    """Return the policies, innermost first. They are parsed from the repr of the tool."""
    _, *names = repr(tool).removesuffix(">").split(" + ")
    return names


def _word(value: object) -> str:
    return (
        {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )
