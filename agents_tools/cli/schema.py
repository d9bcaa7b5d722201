"""`schema`: print tools in the format of a model provider, and compare them with earlier ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.diff import changes_record, print_changes, shapes_of_file
from agents_tools.cli.errors import FOUND
from agents_tools.cli.options import PROVIDERS, json_option, target_argument
from agents_tools.cli.output import print_json, say
from agents_tools.cli.target import Tool, load_tools, pick
from agents_tools.wire.diff import compare_tools, read_tool_list
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command", "described"]


@click.command("schema")
@target_argument
@click.argument("tool_name", metavar="[TOOL]", required=False)
@click.option(
    "--provider",
    type=click.Choice(PROVIDERS),
    help="Print tools in the format of this provider; by default in the library's own format.",
)
@click.option("--strict/--no-strict", default=None, help="Request the provider's strict mode.")
@click.option(
    "--diff",
    "old",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OLD.JSON",
    help="Compare with a file of `schema`. The exit code is 1 if a valid call can be rejected now.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    tool_name: str | None,
    *,
    provider: str | None,
    strict: bool | None,
    old: Path | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Print the tools of TARGET as JSON, or their changes with --diff."""
    del debug
    tools = load_tools(target)
    if tool_name is not None:
        tools = [pick(tools, tool_name, target)]
    document = described(tools, provider, strict=strict)
    if old is None:
        print_json(document[0] if tool_name is not None else document, compact=as_json)
        return
    before = shapes_of_file(old)
    if tool_name is not None:
        before = [tool for tool in before if tool.name == tool_name]
    changes = compare_tools(before, read_tool_list(document))
    breaking = any(change.breaking for change in changes)
    if as_json:
        print_json(changes_record(changes, breaking=breaking), compact=True)
    else:
        print_changes(changes)
    ctx.exit(FOUND if breaking else 0)


def described(
    tools: Sequence[Tool], provider: str | None, *, strict: bool | None
) -> list[dict[str, Any]]:
    """Return tools in the format of a provider, or in the library's own format."""
    if provider is None:
        return [_own_form(tool) for tool in tools]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wire = [project(tool, provider, strict).wire for tool in tools]
    for warning in caught:
        say(f"warning: {warning.message}", fg="yellow")
    return wire


def _own_form(tool: Tool) -> dict[str, Any]:
    form: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
    if (output := tool.output_json_schema) is not None:
        form["output"] = output
    return form
