"""`mcp`: MCP servers looked at and tried out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from agents_tools._bridge import call_async_from_sync
from agents_tools.cli import call as calling
from agents_tools.cli.errors import EXIT_CODES, CommandError
from agents_tools.cli.list_ import summary_of
from agents_tools.cli.mcp_target import (
    connect,
    connecting,
    connection_options,
    is_mcp,
    take_options,
)
from agents_tools.cli.options import json_option
from agents_tools.cli.screen import console_errors, paint, print_json, print_table
from agents_tools.errors import MCPError, ToolLostError

if TYPE_CHECKING:
    from agents_tools.mcp import MCPTools

__all__ = ["command"]

_EPILOG = (
    "\b\n"
    "SERVER is an address, an mcpServers file (file.json or file.json:name), or a command.\n"
    "  agents-tools mcp list http://127.0.0.1:8000/mcp\n"
    "  agents-tools mcp list mcp.json\n"
    "  agents-tools mcp list -- npx -y @modelcontextprotocol/server-everything\n"
    "  agents-tools mcp call mcp.json files_read_file path=notes.txt\n"
    "  agents-tools mcp call 'python server.py' add a=1 b=2"
)


@click.group("mcp", epilog=_EPILOG)
def command() -> None:
    """Look at MCP servers and try out their tools."""


@command.command("list", epilog=_EPILOG)
@click.argument("server", nargs=-1, required=True)
@connection_options
@json_option
def list_command(server: tuple[str, ...], *, as_json: bool, **values: Any) -> None:
    """List the tools of SERVER, and what it says of itself."""
    tools = _connected(server, values)
    if as_json:
        print_json(
            [_record(tools, name) for name in tools.manager.get_server_names()], compact=True
        )
        return
    for number, name in enumerate(_in_order(tools)):
        if number:
            click.echo()
        _print_server(tools, name)


@command.command("ping", epilog=_EPILOG)
@click.argument("server", nargs=-1, required=True)
@connection_options
@json_option
@click.pass_context
def ping_command(
    ctx: click.Context, /, server: tuple[str, ...], *, as_json: bool, **values: Any
) -> None:
    """Ask SERVER for a sign of life, and show how long it took."""
    tools = _connected(server, values)
    answers: dict[str, dict[str, Any]] = {}
    for name in _in_order(tools):
        if (failure := tools.failures.get(name)) is not None:
            answers[name] = {"ok": False, "error": str(failure)}
            continue
        try:
            seconds = call_async_from_sync(tools.manager.ping, name)
        except (MCPError, ToolLostError) as error:
            answers[name] = {"ok": False, "error": str(error)}
            console_errors("error:", str(error))
        else:
            answers[name] = {"ok": True, "seconds": round(seconds, 6)}
    if as_json:
        print_json(answers, compact=True)
    else:
        print_table((name, _pinged(answer)) for name, answer in answers.items())
    ctx.exit(0 if all(one["ok"] for one in answers.values()) else EXIT_CODES["tool_error"])


def _call(**values: Any) -> None:
    connecting.set(take_options(values))
    target = values["target"]
    if target is not None and not is_mcp(target):
        values["tools"] = connect(target, command=True)
    run = calling.call
    run(click.get_current_context(), **values)


command.add_command(
    connection_options(
        click.Command(
            "call",
            callback=_call,
            params=[*calling.command.params],
            help="Call a tool of SERVER, as `agents-tools call` does.",
            context_settings=calling.command.context_settings,
            add_help_option=False,
            options_metavar=calling.command.options_metavar,
            epilog=_EPILOG,
        )
    )
)


def _connected(server: tuple[str, ...], values: dict[str, Any]) -> MCPTools:
    values.pop("debug", None)
    connecting.set(take_options(values))
    if len(server) == 1 and is_mcp(server[0]):
        return connect(server[0])
    words = server[0] if len(server) == 1 else shlex.join(server)
    if not shlex.split(words):
        raise CommandError("the command is empty.")
    return connect(words, command=True)


def _in_order(tools: MCPTools) -> list[str]:
    return tools.manager.get_server_names()


def _record(tools: MCPTools, name: str) -> dict[str, Any]:
    manager = tools.manager
    failure = tools.failures.get(name)
    return {
        "name": name,
        **manager.get_server_info(name),
        **({"error": str(failure)} if failure is not None else {}),
        "tools": [
            {
                "name": tool.name,
                "wire_name": tool.origin.wire_name,
                "description": tool.description,
                "parameters": tool.params_json_schema,
                "output": tool.output_json_schema,
                "hints": _hints(tool),
            }
            for tool in manager.get_tools_by_server(name)
        ],
        "skipped": manager.skipped.get(name, {}),
        "findings": manager.findings.get(name, {}),
    }


def _print_server(tools: MCPTools, name: str) -> None:
    manager = tools.manager
    info = manager.get_server_info(name)
    if not info["connected"]:
        click.echo(paint(f"{name}: not connected", bold=True))
        return
    said = info["server_info"]
    facts = [
        f"{said.get('name', '?')} {said.get('version', '')}".strip(),
        f"protocol {info['protocol_version']}",
        str(info["place"]),
    ]
    click.echo(paint(f"{name}: {', '.join(facts)}", bold=True))
    found = manager.get_tools_by_server(name)
    if not found:
        click.echo("  (no tools)")
    print_table(((tool.name, _line(tool)) for tool in found), indent=2)
    for title, told in (("Left out", manager.skipped), ("Cleaned", manager.findings)):
        if name not in told:
            continue
        click.echo(paint(f"  {title}:", bold=True))
        rows = told[name].items()
        print_table(
            ((tool, why if isinstance(why, str) else "; ".join(why)) for tool, why in rows),
            indent=4,
        )


def _line(tool: Any) -> str:
    hints = _hints(tool)
    return summary_of(tool) + (f" [{', '.join(hints)}]" if hints else "")


def _hints(tool: Any) -> list[str]:
    """Give what the server says a tool does, as far as it says so."""
    found = tool.annotations
    if found is None:
        return []
    told = [("read-only", found.read_only), ("idempotent", found.idempotent)]
    if not found.read_only:
        told.append(("destructive", found.destructive))
    return [word for word, holds in told if holds]


def _pinged(answer: dict[str, Any]) -> str:
    return f"{answer['seconds'] * 1000:.1f} ms" if answer["ok"] else "no answer"
