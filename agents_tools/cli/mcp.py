"""`mcp`: inspect MCP servers and try their tools."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli import call as calling
from agents_tools.cli.errors import EXIT_CODES, OK
from agents_tools.cli.list_ import summary_of
from agents_tools.cli.mcp_discover import discover_command
from agents_tools.cli.mcp_features import (
    print_prompts,
    print_resources,
    prompt_command,
    prompts_of,
    read_command,
    resources_of,
)
from agents_tools.cli.mcp_install import install_command, uninstall_command
from agents_tools.cli.mcp_login import login_command, logout_command
from agents_tools.cli.mcp_target import connect_words, connection_options, take_options
from agents_tools.cli.options import json_option
from agents_tools.cli.output import console_errors, paint, print_json, print_table
from agents_tools.errors import AgentsToolsError, MCPError, UserError
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from agents_tools.cli.mcp_target import ServerConnection
    from agents_tools.cli.target import Tool
    from agents_tools.mcp import MCPTools

__all__ = ["command"]

_TIMEOUTS = ("--timeout", "--connect-timeout")
_EPILOG = (
    "\b\n"
    "SERVER is a URL, an mcpServers file (file.json or file.json:name), or a command.\n"
    "  agents-tools mcp list http://127.0.0.1:8000/mcp\n"
    "  agents-tools mcp list mcp.json\n"
    "  agents-tools mcp list -- npx -y @modelcontextprotocol/server-everything\n"
    "  agents-tools mcp call mcp.json files_read_file path=notes.txt\n"
    "  agents-tools mcp call 'python server.py' add a=1 b=2"
)


@click.group("mcp", epilog=_EPILOG)
def command() -> None:
    """Inspect MCP servers, and try their tools, resources and prompts."""


@command.command("list", epilog=_EPILOG, params=connection_options(*_TIMEOUTS))
@click.argument("server", nargs=-1, required=True)
@click.option("--resources", "has_resources", is_flag=True, help="Also list the resources.")
@click.option("--prompts", "has_prompts", is_flag=True, help="Also list the prompts.")
@json_option
def list_command(
    server: tuple[str, ...],
    *,
    has_resources: bool,
    has_prompts: bool,
    as_json: bool,
    debug: bool,
    **values: Any,
) -> None:
    """List the tools of SERVER and its information about itself."""
    del debug
    tools = connect_words(server, take_options(values))
    names = tools.manager.get_server_names()
    features = {
        name: _features(tools, name, resources=has_resources, prompts=has_prompts) for name in names
    }
    if as_json:
        failed = [
            {"name": name, "connected": False, "error": str(error)}
            for name, error in tools.failures.items()
        ]
        records = [{**_record(tools, name), **features[name]} for name in names]
        print_json([*records, *failed], compact=True)
        return
    for number, name in enumerate(names):
        if number:
            click.echo()
        _print_server(tools, name)
        _print_features(features[name])


def _features(tools: MCPTools, name: str, *, resources: bool, prompts: bool) -> dict[str, Any]:
    """Return the resources and prompts of a server, as far as they are requested."""
    features: dict[str, Any] = {}
    try:
        if resources:
            listed, templates = resources_of(tools, name)
            features |= {"resources": listed, "resource_templates": templates}
        if prompts:
            features["prompts"] = prompts_of(tools, name)
    except MCPError as error:
        console_errors("warning:", str(error))
    return features


def _print_features(features: dict[str, Any]) -> None:
    if "resources" in features:
        print_resources(features["resources"], features["resource_templates"])
    if "prompts" in features:
        print_prompts(features["prompts"])


@command.command("ping", epilog=_EPILOG, params=connection_options(*_TIMEOUTS))
@click.argument("server", nargs=-1, required=True)
@json_option
@click.pass_context
def ping_command(
    ctx: click.Context,
    /,
    server: tuple[str, ...],
    *,
    as_json: bool,
    debug: bool,
    **values: Any,
) -> None:
    """Ping SERVER and show the response time."""
    del debug
    how = take_options(values)
    tools = connect_words(server, how)
    answers = {name: _answer(tools, name, how) for name in tools.manager.get_server_names()}
    answers |= {name: {"ok": False, "error": str(error)} for name, error in tools.failures.items()}
    if as_json:
        print_json(answers, compact=True)
    else:
        print_table((name, _pinged(answer)) for name, answer in answers.items())
    well = all(answer["ok"] for answer in answers.values())
    ctx.exit(OK if well else EXIT_CODES["tool_error"])


def _answer(tools: MCPTools, name: str, how: ServerConnection) -> dict[str, Any]:
    from agents_tools.concurrency.bridge import call_async_from_sync

    try:
        seconds = call_async_from_sync(tools.manager.ping, name, timeout=how.timeout)
    except AgentsToolsError as error:
        console_errors("warning:", str(error))
        return {"ok": False, "error": str(error)}
    return {"ok": True, "seconds": round(seconds, 6)}


def _call(*, target: str | None, words: tuple[str, ...], model: str | None, **values: Any) -> None:
    how = take_options(values)
    tools: MCPTools | None = None
    if target is not None:
        server: tuple[str, ...] = (target,)
        if "--" in words:  # ... -- npx -y server -- tool name=value
            middle = words.index("--")
            server, words = (target, *words[:middle]), words[middle + 1 :]
            target = shlex.join(server)
        tools = connect_words(server, how, model=model)
    ctx = click.get_current_context()
    calling.call(ctx, target=target, words=words, tools=tools, **values)


command.add_command(read_command)
command.add_command(prompt_command)
command.add_command(discover_command)
command.add_command(install_command)
command.add_command(uninstall_command)
command.add_command(login_command)
command.add_command(logout_command)
_model_option = click.Option(
    ["--model"],
    metavar="NAME",
    help="The model that answers when the server asks for one (sampling). Without it, such "
    "requests are refused.",
)
command.add_command(
    click.Command(
        "call",
        callback=_call,
        params=[
            *calling.command.params,
            *connection_options("--connect-timeout"),
            _model_option,
        ],
        help="Call a tool of SERVER, as `agents-tools call` does.",
        context_settings=calling.command.context_settings,
        add_help_option=False,
        options_metavar=calling.command.options_metavar,
        epilog=_EPILOG,
    )
)


# --- output


def _record(tools: MCPTools, name: str) -> dict[str, Any]:
    manager = tools.manager
    return {
        "name": name,
        **manager.get_server_info(name),
        "tools": [_tool_record(tool) for tool in manager.get_tools_by_server(name)],
        "skipped": manager.skipped.get(name, {}),
        "findings": manager.findings.get(name, {}),
    }


def _tool_record(tool: Tool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": tool.name,
        "wire_name": tool.origin.wire_name,
        "description": tool.description,
        "hints": _hints(tool),
    }
    try:
        return {**record, "parameters": tool.params_json_schema, "output": tool.output_json_schema}
    except UserError as error:
        return {**record, "error": str(error)}


def _print_server(tools: MCPTools, name: str) -> None:
    manager = tools.manager
    info = manager.get_server_info(name)
    click.echo(paint(release_text(f"{name}: {_described(info)}"), bold=True))
    found = manager.get_tools_by_server(name)
    if not found:
        click.echo("  (no tools)")
    print_table(((tool.name, _line(tool)) for tool in found), indent=2)
    _print_notes("Left out:", manager.skipped.get(name, {}))
    findings = manager.findings.get(name, {})
    _print_notes("Removed:", {tool: "; ".join(changes) for tool, changes in findings.items()})


def _print_notes(title: str, notes: dict[str, str]) -> None:
    if notes:
        click.echo("  " + paint(title, bold=True))
        print_table(notes.items(), indent=4)


def _described(info: dict[str, Any]) -> str:
    """Return one line about a server: its name, version, protocol and address."""
    if not info["connected"]:
        return f"connection lost, {info['place']}"
    about = info["server_info"]
    who = " ".join(str(about[key]) for key in ("name", "version") if about.get(key))
    facts = [shorten(who, 100), f"protocol {info['protocol_version']}", str(info["place"])]
    return ", ".join(" ".join(fact.split()) for fact in facts if fact)


def _line(tool: Tool) -> str:
    hints = _hints(tool)
    return summary_of(tool) + (f" [{', '.join(hints)}]" if hints else "")


def _hints(tool: Tool) -> list[str]:
    """Return the server's unverified hints about a tool."""
    found = tool.annotations
    if found is None:
        return []
    hints = {
        "read-only": found.readOnlyHint,
        "destructive": found.destructiveHint if not found.readOnlyHint else None,
        "idempotent": found.idempotentHint,
    }
    return [word for word, holds in hints.items() if holds]


def _pinged(answer: dict[str, Any]) -> str:
    return f"{answer['seconds'] * 1000:.1f} ms" if answer["ok"] else "no answer"
