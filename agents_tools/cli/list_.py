"""`list`: the tools of a file or module, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.options import json_option, target_argument
from agents_tools.cli.screen import print_json, print_table, sentence_of
from agents_tools.cli.target import Tool, load_tools
from agents_tools.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command", "summary_of"]


@click.command("list")
@target_argument
@json_option
def command(target: str, *, as_json: bool, debug: bool) -> None:
    """List the tools of TARGET: file.py, package.module, or either with :attribute."""
    del debug
    tools = load_tools(target)
    if as_json:
        print_json(_records(tools), compact=True)
        return
    print_table((tool.name, summary_of(tool)) for tool in tools)


def summary_of(tool: Tool) -> str:
    """Give the first paragraph of a description, or why there is none."""
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
        records.append({**record, "place": tool.origin.place})
    return records
