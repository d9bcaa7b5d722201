"""`python -m tools.reference`: write the pages on the command line and the linter."""

from __future__ import annotations

import html
import inspect
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents_tools.cli.app import cli
from agents_tools.toolset.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PAGE", "RULES_PAGE", "command_line", "lint_rules"]

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
RULES_PAGE = PAGE.with_name("lint-rules.md")
_HEAD = """\
# Command line

<!-- Written by `python -m tools.reference`; change the commands below agents_tools/cli. -->

Every command with its options, as `--help` of each shows them. How they are used:
[Use the command line](../how-to/command-line.md).
"""


_RULES_HEAD = """\
# Rules of the linter

<!-- Written by `python -m tools.reference`; change agents_tools/toolset/lint/rules.py. -->

What `agents-tools check` and [`lint_tools`](#the-api) find in tools. How they are used:
[Check tools with the linter](../how-to/check-tools.md).
"""
_RULES_API = """\
## The API

Import these from `agents_tools.toolset.lint`.

::: agents_tools.toolset.lint.lint_tools

::: agents_tools.toolset.lint.Finding

::: agents_tools.toolset.lint.Rule

::: agents_tools.toolset.lint.RULES
"""


def lint_rules() -> str:
    """Return the page on the rules of the linter."""
    parts = [_RULES_HEAD]
    for rule in RULES.values():
        state = "" if rule.default else " Off unless it is enabled."
        parts.append(f"## {rule.code}\n\n*{rule.level.capitalize()}.*{state} {rule.summary}\n")
        parts.append(f"{rule.remedy}\n")
    return "\n".join([*parts, _RULES_API])


def command_line() -> str:
    """Return the page: the commands in the order of their use, each with its options."""
    return "\n".join([_HEAD, *_told(cli, None, "agents-tools", 2)])


def _told(
    command: click.Command, parent: click.Context | None, name: str, level: int
) -> Iterator[str]:
    """Yield the text about a command, and about those below it."""
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield f"{'#' * level} {context.command_path}\n"
    yield inspect.cleandoc(command.help or "").partition("\f")[0].replace("\b\n", "") + "\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```\n"
    options = [
        one.get_help_record(context) for one in command.get_params(context) if _is_option(one)
    ]
    rows = [
        f"| <code>{_cell(names)}</code> | {_cell(told)} |" for names, told in filter(None, options)
    ]
    yield "\n".join(["| option | what it does |", "| --- | --- |", *rows]) + "\n"
    if command.epilog:
        lines = textwrap.dedent(command.epilog.replace("\b\n", "\n")).strip("\n")
        yield f"```text\n{lines}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _told(found, context, below, min(level + 1, 3) if parent else 2)


def _is_option(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.hidden


def _cell(text: str) -> str:
    """Write a text so that it can stand in a table, for every reader of Markdown."""
    return " ".join(html.escape(text, quote=False).split()).replace("|", "&#124;")


if __name__ == "__main__":
    PAGE.write_text(command_line(), encoding="utf-8")
    RULES_PAGE.write_text(lint_rules(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} and {RULES_PAGE.name} written\n")
