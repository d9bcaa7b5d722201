"""Read saved tool schemas and print how tools have changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import paint
from agents_tools.wire.diff import SchemaChange, ToolSchema, read_tool_list

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["changes_record", "print_changes", "shapes_of_file"]


def shapes_of_file(path: Path) -> list[ToolSchema]:
    """Read the list of tools in a file."""
    try:
        return read_tool_list(json.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(
            f"{path} is not a file of `agents-tools schema`: {error}.",
            hint="Write it with: agents-tools schema TARGET > old.json",
        ) from error


def changes_record(changes: list[SchemaChange], *, breaking: bool) -> dict[str, Any]:
    """Return changes as JSON."""
    return {
        "breaking": breaking,
        "changes": [
            {
                "tool": change.tool,
                "path": change.path,
                "message": change.message,
                "breaking": change.breaking,
            }
            for change in changes
        ],
    }


def print_changes(changes: list[SchemaChange]) -> None:
    """Print changes for people, breaking ones first."""
    if not changes:
        click.echo("no changes")
    for change in sorted(changes, key=lambda change: not change.breaking):
        label = paint("breaking  ", fg="red") if change.breaking else "compatible"
        click.echo(f"{label}  {change}")
