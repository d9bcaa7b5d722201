"""`check`: find problems that tools will have with models and providers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from agents_tools.cli.errors import FOUND
from agents_tools.cli.mcp_target import configs_of, is_mcp
from agents_tools.cli.options import PROVIDERS, json_option, target_argument
from agents_tools.cli.output import paint, print_json, short_path
from agents_tools.cli.target import load_target, tools_in
from agents_tools.wire.lint import Finding, lint_tools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.mcp import MCPServerConfig, MCPToolManager

__all__ = ["command"]


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
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    *,
    providers: tuple[str, ...],
    strict: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Check the tools of TARGET. The exit code is 1 if a tool has an error."""
    del debug
    value = load_target(target)
    tools = tools_in(value, target)
    found = lint_tools(tools, providers or PROVIDERS)
    if is_mcp(target):
        found += _findings_of_servers(value.manager)
        found += _findings_of_configs(configs_of(target))
    errors = sum(finding.level == "error" for finding in found)
    bad = bool(errors) or (strict and bool(found))
    if as_json:
        print_json({"ok": not bad, "findings": [asdict(item) for item in found]}, compact=True)
    else:
        for finding in found:
            click.echo(_line(finding))
        click.echo(_summary(len(tools), errors, len(found) - errors))
    ctx.exit(FOUND if bad else 0)


def _findings_of_servers(servers: MCPToolManager) -> list[Finding]:
    """Return the tools that MCP clients skip or whose text was cleaned."""
    found = [
        Finding(
            level="warning", code="left-out", tool=name, message=f"is left out ({server}): {why}"
        )
        for server, skipped in servers.skipped.items()
        for name, why in skipped.items()
    ]
    for server, cleaned in servers.findings.items():
        for name, changes in cleaned.items():
            message = f"had hidden or misleading text ({server}): {'; '.join(changes)}"
            found.append(Finding(level="warning", code="hidden-text", tool=name, message=message))
    return found


def _findings_of_configs(configs: Iterable[MCPServerConfig]) -> list[Finding]:
    """Return the problems in the configurations of MCP servers, reachable or not."""
    return [
        Finding(level="warning", code=one.code, tool=config.name, message=one.message)
        for config in configs
        for one in config.findings
    ]


def _line(finding: Finding) -> str:
    level = paint(finding.level, fg="red" if finding.level == "error" else "yellow")
    where = f"{short_path(finding.place)}: " if finding.place else ""
    return f"{where}{level}: {finding.tool}: {finding.message} [{finding.code}]"


def _summary(tools: int, errors: int, warnings: int) -> str:
    counts = [_counted(errors, "error"), _counted(warnings, "warning")]
    problems = " and ".join(text for text in counts if text) or "no problems"
    return f"{_counted(tools, 'tool')} checked: {problems}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""
