"""MCP servers as a TARGET: an address, an `mcpServers` file, or a command that starts one."""

from __future__ import annotations

import logging
import re
import shlex
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from agents_tools.cli.errors import CommandError
from agents_tools.cli.options import Seconds
from agents_tools.cli.screen import console_errors
from agents_tools.errors import MCPError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.mcp import MCPTools

__all__ = ["Connecting", "connect", "connecting", "connection_options", "is_mcp"]

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")

_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """How the servers of a target are connected.

    Attributes:
        headers: Headers of every request to an address.
        transport: How an address is reached.
        timeout: Seconds until a server has to have answered.
        env: Names of variables that the process of a server gets as well.
    """

    headers: tuple[tuple[str, str], ...] = ()
    transport: str | None = None
    timeout: float = _TIMEOUT
    env: tuple[str, ...] = ()


connecting: ContextVar[Connecting] = ContextVar("connecting", default=Connecting())  # noqa: B039
"""How the servers of this command are connected."""


def connection_options(command: CommandT) -> CommandT:
    """Add the options for how servers are connected."""
    for option in (
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="'NAME: VALUE'",
            callback=_read_headers,
            help="A header of every request to an address; may be given again.",
        ),
        click.option(
            "--transport",
            type=click.Choice(["http", "sse"]),
            help="How an address is reached; seen from the address by default.",
        ),
        click.option(
            "--connect-timeout",
            type=Seconds(),
            default=_TIMEOUT,
            metavar="SECONDS",
            help="How long a server may take to answer at first.",
        ),
        click.option(
            "--env",
            multiple=True,
            metavar="NAME",
            help="A variable of this environment that the server gets as well; may be given again.",
        ),
    ):
        command = option(command)
    return command


def take_options(values: dict[str, Any]) -> Connecting:
    """Take the options of `connection_options` out of what a command was called with."""
    return Connecting(
        headers=tuple(values.pop("headers")),
        transport=values.pop("transport"),
        timeout=values.pop("connect_timeout"),
        env=tuple(values.pop("env")),
    )


def is_mcp(target: str) -> bool:
    """Whether a target is an address or the file of a configuration."""
    return _is_address(target) or _file_of(target) is not None


def connect(target: str, *, command: bool = False) -> MCPTools:
    """Connect the servers of a target and give their tools; they end with the program.

    Args:
        target: An address, or a file, of which `file.json:name` takes one server.
        command: Whether the target is a command that starts a server.

    Raises:
        CommandError: None of the servers can be connected.
    """
    from agents_tools.mcp import create_mcp_tools

    logging.getLogger("agents_tools.mcp").addHandler(logging.NullHandler())  # said below
    how = connecting.get()
    try:
        tools = create_mcp_tools(_config_of(target, how, command=command), timeout=how.timeout)
    except MCPError as error:
        raise CommandError(str(error)) from error
    for failure in tools.failures.values():
        console_errors("warning:", str(failure))
    return tools


def _config_of(target: str, how: Connecting, *, command: bool) -> dict[str, Any]:
    entry: dict[str, Any]
    if command:
        program, *args = shlex.split(target)
        entry = {"command": program, "args": args, "inherit_env": list(how.env), "prefix": None}
        return {"mcpServers": {Path(program).stem or "server": entry}}
    if _is_address(target):
        entry = {"url": target, "headers": dict(how.headers), "prefix": None}
        if how.transport is not None:
            entry["transport"] = how.transport
        return {"mcpServers": {"server": entry}}
    return _servers_of_file(target, how)


def _servers_of_file(target: str, how: Connecting) -> dict[str, Any]:
    from dataclasses import asdict

    from agents_tools.mcp import load_config

    path, only = _file_of(target) or (Path(target), "")
    servers = load_config(path)
    names = [server.name for server in servers]
    if only and only not in names:
        raise CommandError(
            f"{path} has no server {only!r}.", hint=f"It has: {', '.join(names) or 'none'}."
        )
    if not servers:
        raise CommandError(f"{path} names no servers that are switched on.")
    entries: dict[str, Any] = {}
    for server in servers:
        if only and server.name != only:
            continue
        given = asdict(replace(server, inherit_env=(*server.inherit_env, *how.env)))
        given = {key: _plain(value) for key, value in given.items() if value is not None}
        del given["name"], given["connect_timeout"]
        for key in ("trusted", "header_provider", "auth", "server"):
            given.pop(key, None)
        entries[server.name] = {**given, "prefix": server.prefix}
    return {"mcpServers": entries}


def _plain(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def _is_address(target: str) -> bool:
    return re.match(r"https?://", target) is not None


def _file_of(target: str) -> tuple[Path, str] | None:
    """Give the file of a configuration and the name of a server in it, which may be empty."""
    for place, name in ((target, ""), target.rpartition(":")[::2]):
        path = Path(place)
        if place and path.suffix in {".json", ".toml", ".jsonc"}:
            if not path.is_file():
                raise CommandError(f"there is no file {path}.")
            return path, name
    return None


def _read_headers(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, str]]:
    read: list[tuple[str, str]] = []
    for one in given:
        name, colon, value = one.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name.strip()):
            # The value is not shown: it may be a secret.
            raise click.BadParameter("a header is written 'Name: value'.", ctx, param)
        read.append((name.strip(), value.strip()))
    return read
