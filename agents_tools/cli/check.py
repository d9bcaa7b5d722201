"""`check`: find what models, providers and clients will misunderstand in tools."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.check_fix import fix_target
from agents_tools.cli.errors import FOUND, CommandError
from agents_tools.cli.mcp_target import configs_of, is_mcp
from agents_tools.cli.options import PROVIDERS, json_option, target_argument
from agents_tools.cli.output import paint, print_json, short_path
from agents_tools.cli.target import load_target, tools_in
from agents_tools.errors import UserError
from agents_tools.schema import StrictFallbackWarning
from agents_tools.text.output import release_text
from agents_tools.toolset.lint.definitions import is_tool_list, tools_of_document
from agents_tools.toolset.lint.finding import Finding
from agents_tools.toolset.lint.linter import lint_tools, selected_rules
from agents_tools.toolset.lint.rules import RULES
from agents_tools.toolset.lint.sarif import to_sarif
from agents_tools.toolset.lint.tokens import DEFAULT_BUDGET, largest_parts
from agents_tools.toolset.token_usage import token_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agents_tools.cli.target import Tool
    from agents_tools.mcp import MCPServerConfig, MCPToolManager

__all__ = ["command"]

_RULE = click.Choice(list(RULES))


@click.command("check")
@target_argument
@click.option(
    "--provider",
    "providers",
    multiple=True,
    type=click.Choice(PROVIDERS),
    help="A provider to check for; can be repeated. All by default.",
)
@click.option("--strict", is_flag=True, help="Exit with code 1 for warnings, too.")
@click.option(
    "--disable",
    multiple=True,
    type=_RULE,
    metavar="RULE",
    help="A rule to leave out; can be repeated.",
)
@click.option(
    "--enable",
    multiple=True,
    type=_RULE,
    metavar="RULE",
    help="A rule to add that is off by default: no-result, no-errors, no-example.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=DEFAULT_BUDGET,
    show_default=True,
    help="The tokens of one definition above which it is reported.",
)
@click.option("--tokens", is_flag=True, help="Print the tokens of each tool and its largest parts.")
@click.option("--fix", is_flag=True, help="Repair what is mechanical; shows the change first.")
@click.option("--yes", is_flag=True, help="With --fix: write the change without asking.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    help="How to print findings; sarif is for code review tools.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    *,
    providers: tuple[str, ...],
    strict: bool,
    disable: tuple[str, ...],
    enable: tuple[str, ...],
    budget: int,
    tokens: bool,
    fix: bool,
    yes: bool,
    form: str,
    as_json: bool,
    debug: bool,
) -> None:
    """Check the tools of TARGET. The exit code is 1 if a tool has an error.

    TARGET can also be a JSON file with the definitions of tools, in the format of any provider or
    as MCP servers list them.
    """
    del debug
    form = "json" if as_json else form
    tools, found = _read(target)
    if fix:
        fix_target(target, tools, yes=yes)
        tools, found = _read(target)
    if tokens:
        _print_tokens(tools, as_json=form == "json")
        return
    found += lint_tools(
        tools, providers or PROVIDERS, disable=disable, enable=enable, budget=budget
    )
    rules = selected_rules(disable=disable, enable=enable)
    found = [finding for finding in found if finding.code in rules]
    errors = sum(finding.level == "error" for finding in found)
    bad = bool(errors) or (strict and bool(found))
    if form == "json":
        print_json({"ok": not bad, "findings": [asdict(item) for item in found]}, compact=True)
    elif form == "sarif":
        print_json(to_sarif(found, target), compact=False)
    else:
        _print_findings(found)
        click.echo(_summary(len(tools), errors, len(found) - errors))
    ctx.exit(FOUND if bad else 0)


def _read(target: str) -> tuple[list[Tool], list[Finding]]:
    """Return the tools of a target, and the findings about what is no tool."""
    document = _document(target)
    if document is not None:
        try:
            return tools_of_document(document, short_path(target))
        except UserError as error:
            raise CommandError(f"{target}: {error}") from error
    value = load_target(target)
    tools = tools_in(value, target)
    if not is_mcp(target):
        return tools, []
    return tools, _findings_of_servers(value.manager) + _findings_of_configs(configs_of(target))


def _document(target: str) -> Any:
    """Return the content of a JSON file with definitions; `None` for every other target."""
    path = Path(target)
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return None  # the reader of configurations reports it
    return document if is_tool_list(document) else None


def _findings_of_servers(servers: MCPToolManager) -> list[Finding]:
    """Return the tools that MCP clients skip or whose text was cleaned."""
    found = [
        Finding(
            level="warning",
            code="left-out",
            tool=name,
            message=f"is left out ({server}): {why}",
            server=server,
        )
        for server, skipped in servers.skipped.items()
        for name, why in skipped.items()
    ]
    for server, cleaned in servers.findings.items():
        for name, changes in cleaned.items():
            message = f"had hidden or misleading text ({server}): {'; '.join(changes)}"
            found.append(
                Finding(
                    level="warning", code="hidden-text", tool=name, message=message, server=server
                )
            )
    return found


def _findings_of_configs(configs: Iterable[MCPServerConfig]) -> list[Finding]:
    """Return the problems in the configurations of MCP servers, reachable or not."""
    return [
        Finding(level="warning", code=one.code, tool=config.name, message=one.message)
        for config in configs
        for one in config.findings
    ]


# --- output


def _print_findings(found: Sequence[Finding]) -> None:
    servers = {finding.server for finding in found}
    for finding in found:
        level = paint(finding.level, fg="red" if finding.level == "error" else "yellow")
        where = f"{short_path(finding.place)}: " if finding.place else ""
        name = finding.tool
        if finding.server and len(servers) > 1:
            name = f"{finding.server}/{name}"
        click.echo(f"{where}{level}: {release_text(f'{name}: {finding.message}')} [{finding.code}]")


def _print_tokens(tools: Sequence[Tool], *, as_json: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StrictFallbackWarning)  # the rule not-strict reports it
        report = token_report(tools)
    rows = sorted(report.tools, key=lambda one: -max(one.tokens.values(), default=0))
    if as_json:
        records = [
            {"tool": one.name, "tokens": dict(one.tokens), "parts": dict(one.parts)} for one in rows
        ]
        print_json({"totals": report.totals, "tools": records}, compact=True)
        return
    for one in rows:
        cost = max(one.tokens.values(), default=0)
        click.echo(f"{cost:>7,}  {release_text(one.name)}: {release_text(largest_parts(one))}")
    total = sum(max(one.tokens.values(), default=0) for one in rows)
    click.echo(f"{total:>7,}  all {len(rows)}, for the provider that needs most")


def _summary(tools: int, errors: int, warnings: int) -> str:
    counts = [_counted(errors, "error"), _counted(warnings, "warning")]
    problems = " and ".join(text for text in counts if text) or "no problems"
    return f"{_counted(tools, 'tool') or '0 tools'} checked: {problems}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""
