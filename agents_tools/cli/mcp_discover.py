"""`mcp discover`: find the MCP servers in the configurations of editors and other programs."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from agents_tools.cli.mcp_clients import ClientFile, client_files, titles
from agents_tools.cli.mcp_target import require_mcp, suppress_mcp_logs
from agents_tools.cli.options import json_option
from agents_tools.cli.output import paint, print_json, print_table
from agents_tools.errors import UserError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["discover_command"]


@click.command(
    "discover",
    epilog="\b\n"
    "Use a server that was found as FILE:NAME, for example:\n"
    "  agents-tools mcp list ~/.cursor/mcp.json:files\n"
    "  agents-tools serve .vscode/mcp.json",
)
@json_option
def discover_command(*, as_json: bool, debug: bool) -> None:
    """Find MCP servers in the configurations of editors and other programs.

    Searches your home folder and this folder. No server is started, and values of variables and
    headers are not shown.
    """
    del debug
    require_mcp()
    files = [file for file in client_files(Path.cwd()) if file.path.is_file()]
    with suppress_mcp_logs():
        found = [record for file in files for record in _records(file)]
    if as_json:
        print_json(found, compact=True)
        return
    if not found:
        programs = ", ".join(titles.values())
        click.echo(f"No configurations with MCP servers. Searched those of {programs}.")
    for number, record in enumerate(found):
        if number:
            click.echo()
        _print(record)


def _records(file: ClientFile) -> list[dict[str, Any]]:
    """Return a record for a file with its servers; none if it has no servers."""
    start = {"client": file.client, "scope": file.scope, "path": str(file.path)}
    try:
        content = _content(file)
    except UserError as error:
        return [{**start, "error": release_text(str(error), patterns=True), "servers": []}]
    from agents_tools.mcp.config import server_entries

    records: list[dict[str, Any]] = []
    if entries := server_entries(content):
        is_target = file.path.suffix in {".json", ".toml"}
        servers = [_server(name, entry) for name, entry in entries.items()]
        for server in servers:
            server["target"] = f"{file.path}:{server['name']}" if is_target else None
        records.append({**start, "servers": servers})
    if local := server_entries(_project_of(content)):
        servers = [{**_server(name, entry), "target": None} for name, entry in local.items()]
        records.append({**start, "scope": "project", "servers": servers})
    return records


def _content(file: ClientFile) -> Mapping[str, Any]:
    from agents_tools.mcp.config import load_content

    if file.client == "goose":
        return {"mcpServers": _goose_entries(file.path)}
    return load_content(file.path)[1]


def _project_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the user file of Claude Code has for this folder."""
    from agents_tools.mcp._coerce import an_object

    return an_object(an_object(content.get("projects")).get(str(Path.cwd())))


def _server(name: str, entry: Any) -> dict[str, Any]:
    """Return the facts about one server; no values of variables or headers."""
    from agents_tools.mcp import load_config

    try:
        configs = load_config({"mcpServers": {name: entry}})
    except UserError as error:
        message = str(error).removeprefix("The MCP configuration: ")
        return {"name": name, "error": release_text(message, patterns=True)}
    if not configs:
        return {"name": name, "enabled": False}
    config = configs[0]
    record: dict[str, Any] = {
        "name": name,
        "enabled": True,
        "transport": config.transport,
        "place": config.place,
        "findings": [
            {"code": finding.code, "message": finding.message} for finding in config.findings
        ],
    }
    if config.command is not None and not _exists(config.command, config.env):
        record["error"] = f"the program {config.command} was not found"
    return record


def _exists(command: str, env: Mapping[str, str]) -> bool:
    path = env.get("PATH") or os.environ.get("PATH")
    return shutil.which(os.path.expanduser(command), path=path) is not None  # noqa: PTH111


def _goose_entries(path: Path) -> dict[str, Any]:
    """Return the extensions of Goose as entries of servers.

    Raises:
        UserError: The file cannot be read, or reading it needs PyYAML.
    """
    from agents_tools.mcp._coerce import an_object

    try:
        yaml: Any = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise UserError(f"{path} is not read: install PyYAML to read it.") from None
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = getattr(error, "problem", None) or type(error).__name__
        raise UserError(f"{path} cannot be read: {reason}.") from error
    entries: dict[str, Any] = {}
    for name, value in an_object(an_object(content).get("extensions")).items():
        extension = an_object(value)
        if extension.get("type") in {"stdio", "sse", "streamable_http"}:
            entries[str(name)] = _goose_entry(extension)
    return entries


def _goose_entry(extension: dict[str, Any]) -> dict[str, Any]:
    keys = {"cmd": "command", "uri": "url", "envs": "env"}
    known = ("args", "cmd", "enabled", "envs", "headers", "uri")
    return {keys.get(key, key): extension[key] for key in known if extension.get(key) is not None}


# --- output


def _print(record: dict[str, Any]) -> None:
    title = titles[record["client"]]
    scope = "" if record["scope"] == "user" else ", this folder"
    click.echo(paint(release_text(f"{title}{scope}: {_short(record['path'])}"), bold=True))
    if "error" in record:
        click.echo(f"  error: {release_text(record['error'])}")
    rows = [(server["name"], _line(server)) for server in cast("list[Any]", record["servers"])]
    print_table(rows, indent=2)


def _line(server: dict[str, Any]) -> str:
    if server.get("enabled") is False:
        return "(disabled)"
    facts = [f"{server['transport']}, {server['place']}"] if "transport" in server else []
    if "error" in server:
        facts.append(f"error: {server['error']}")
    facts += [f"finding: {finding['message']}" for finding in server.get("findings", ())]
    return "; ".join(facts)


def _short(path: str) -> str:
    """Return a path relative to this folder, or to the home folder as `~`."""
    place = Path(path)
    for folder, prefix in ((Path.cwd(), Path()), (Path.home(), Path("~"))):
        if place.is_relative_to(folder):
            return str(prefix / place.relative_to(folder))
    return path
