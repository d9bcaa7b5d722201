"""The help of a tool, generated from its schema."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.output import paint, width
from agents_tools.cli.schema_text import (
    DefinitionReader,
    Schema,
    describe_type,
    notes_on,
    parameters_of,
)
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from agents_tools.cli.target import Tool

__all__ = ["parameter_rows", "print_tool_help"]


def print_tool_help(tool: Tool, target: str, ctx: click.Context) -> None:
    """Print how to call a tool."""
    formatter = click.HelpFormatter(width=width())
    schema = tool.params_json_schema
    required = set(DefinitionReader(schema).read(schema).get("required", ()))
    words = [f"{name}=…" for name in parameters_of(schema) if name in required]
    optional = " [NAME=VALUE]..." if len(required) < len(parameters_of(schema)) else ""
    typed = f"{ctx.command_path} {shlex.quote(target)} {tool.name}"
    formatter.write_usage(release_text(typed), release_text(" ".join(words) + optional).strip())
    with formatter.indentation():
        for paragraph in tool.description.split("\n\n") if tool.description else ():
            formatter.write_paragraph()
            formatter.write_text(release_text(paragraph))
    taken = {option for param in ctx.command.params for option in param.opts}
    if rows := parameter_rows(tool, taken=taken):
        with formatter.section("Parameters"):
            formatter.write_dl(rows)
    with formatter.section("Options"):
        formatter.write_dl(
            [
                record
                for param in ctx.command.params
                if isinstance(param, click.Option) and (record := param.get_help_record(ctx))
            ]
        )
    click.echo(_heading_colours(formatter.getvalue()), nl=False)
    if rows:
        click.echo("\nYou can also write name=value, or name:=JSON for raw JSON.")


def parameter_rows(tool: Tool, *, taken: set[str] | None = None) -> list[tuple[str, str]]:
    """Return a row for each parameter: its spelling and its description.

    Args:
        tool: The tool.
        taken: Options with another meaning, whose parameters are written `name=value`. With
            `None`, the spelling is the name and the type.
    """
    schema = tool.params_json_schema
    reader = DefinitionReader(schema)
    root = reader.read(schema)
    required = set(root.get("required", ()))
    rows: list[tuple[str, str]] = []
    for name, child in parameters_of(schema).items():
        kind = describe_type(reader, child)
        text = _parameter_help(reader, child, required=name in required)
        rows.append((release_text(_written(name, kind, taken)), release_text(text)))
    return rows


def _written(name: str, kind: str, taken: set[str] | None) -> str:
    if taken is None:
        return f"{name}: {shorten(kind, 60)}"
    option = f"--{name.replace('_', '-')}"
    shown = _metavar(kind)
    if option in taken:
        return f"{name}={shown}"
    return f"{option}/--no-{option[2:]}" if kind == "boolean" else f"{option} {shown}"


def _metavar(kind: str) -> str:
    """Return a type in capitals, like the types of click; choices keep their spelling."""
    plain = kind.removesuffix(" or null")
    if " or " in plain and not any(word in _KINDS for word in plain.split(" or ")):
        return f"[{'|'.join(plain.split(' or '))}]"
    if plain.startswith("object"):
        return "JSON"
    if plain.startswith("array of"):
        item = _metavar(plain.removeprefix("array of "))
        return f"{item}..." if item != "JSON" else "JSON..."
    return "|".join(part.split(" ")[0].upper() for part in plain.split(" or "))


_KINDS = frozenset({"string", "integer", "number", "boolean", "array", "object", "any"})


def _parameter_help(reader: DefinitionReader, child: Schema, *, required: bool) -> str:
    whole = reader.read(child)
    text = " ".join(str(whole.get("description") or "").split())
    notes: list[str] = []
    if required:
        notes.append("required")
    elif "default" in whole:
        notes.append(f"default: {shorten(_plain(whole['default']), 40)}")
    notes.extend(notes_on(reader, child))
    members = [
        f"{name}: {describe_type(reader, member, depth=1)}"
        for arm in reader.arms(child)
        for name, member in parameters_of(arm).items()
    ]
    if members:
        notes.append("members: " + shorten(", ".join(members), 120))
    return f"{text}  [{'; '.join(notes)}]".strip() if notes else text


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _heading_colours(text: str) -> str:
    for heading in ("Usage:", "Parameters:", "Options:"):
        text = text.replace(f"{heading}", paint(heading, bold=True), 1)
    return text
