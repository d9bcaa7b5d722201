"""`show`: everything about one tool."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from agents_tools._text import safe_text
from agents_tools.cli.errors import CommandError
from agents_tools.cli.options import json_option, target_argument
from agents_tools.cli.screen import paint, print_json, print_table, short_path, width
from agents_tools.cli.target import load_tools, pick
from agents_tools.cli.tool_help import parameter_rows
from agents_tools.cli.words import Reader, described_kind

if TYPE_CHECKING:
    from agents_tools.cli.target import Tool

__all__ = ["command"]


@click.command("show")
@target_argument
@click.argument("tool_name", metavar="[TOOL]", required=False)
@json_option
def command(target: str, tool_name: str | None, *, as_json: bool, debug: bool) -> None:
    """Show one tool of TARGET: what it does, what it takes and gives, and where it is."""
    del debug
    tools = load_tools(target)
    if tool_name is None and len(tools) > 1:
        names = ", ".join(tool.name for tool in tools)
        raise CommandError(f"which tool of {target}?", hint=f"It has: {names}.")
    tool = tools[0] if tool_name is None else pick(tools, tool_name, target)
    tool.build()
    if as_json:
        print_json(_record(tool), compact=True)
    else:
        _print(tool, target)


def _record(tool: Tool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "kind": tool.origin.kind,
        "place": tool.origin.place,
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
            click.wrap_text(safe_text(part), width(), "  ", "  ")
            for part in tool.description.split("\n\n")
        )
        click.echo(text)
    if rows := parameter_rows(tool):
        click.echo("\n" + paint("Parameters:", bold=True))
        print_table(rows, indent=2)
    click.echo("\n" + paint("Facts:", bold=True))
    print_table(_facts(tool), indent=2)
    click.echo(f"\nTo call it: agents-tools call {target} {tool.name} --help")


def _facts(tool: Tool) -> list[tuple[str, str]]:
    facts = [("kind", _KINDS.get(tool.origin.kind, tool.origin.kind))]
    if (output := tool.output_json_schema) is not None:
        facts.append(("result", described_kind(Reader(output), output)))
    if tool.annotations is not None:
        hints = {key: value for key, value in asdict(tool.annotations).items() if value is not None}
        facts.append(("hints", ", ".join(f"{key}: {_word(value)}" for key, value in hints.items())))
    if policies := _policies(tool):
        facts.append(("policies", ", ".join(policies)))
    facts.append(("strict", "wanted" if tool.strict_json_schema else "not wanted"))
    if tool.origin.place:
        facts.append(("place", short_path(tool.origin.place)))
    return facts


_KINDS = {
    "function": "function",
    "stream": "streaming tool",
    "manual": "made by hand",
}


def _policies(tool: Tool) -> list[str]:
    """Give the policies, inner first: a tool names them in its repr."""
    _, *names = repr(tool).removesuffix(">").split(" + ")
    return names


def _word(value: object) -> str:
    return (
        {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )
