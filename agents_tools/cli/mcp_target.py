"""MCP servers as a TARGET: a URL, an `mcpServers` file, or a command that starts one."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from agents_tools.cli.approvals import can_ask
from agents_tools.cli.errors import CommandError
from agents_tools.cli.options import SecondsParam
from agents_tools.cli.output import console_errors, prints_on_stderr
from agents_tools.errors import MCPError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from agents_tools.mcp import MCPServerConfig, MCPToolManager, MCPTools

__all__ = [
    "ServerConnection",
    "configs_of",
    "connect",
    "connect_words",
    "connection_options",
    "is_mcp",
    "is_there",
    "require_mcp",
    "suppress_mcp_logs",
    "take_options",
]

_TIMEOUT = 30.0
_AT_ONCE = 8
"""The number of servers that are connected at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConnection:
    """The options on the command line for the connection to a server.

    Attributes:
        headers: Headers of every request.
        transport: The transport for a URL.
        timeout: The seconds in which the server must answer.
        env: Names of variables that its process gets as well.
        auth: How to authenticate: `oauth` to log in.
    """

    headers: tuple[tuple[str, str], ...] = ()
    transport: str | None = None
    timeout: float | None = None
    env: tuple[str, ...] = ()
    auth: str | None = None


def connection_options(*timeouts: str) -> list[click.Parameter]:
    """Return the options for connections to servers.

    Args:
        timeouts: The names of the option for the connection timeout.
    """
    return [
        click.Option(
            ["--header", "headers"],
            multiple=True,
            metavar="'NAME: VALUE'",
            callback=_read_headers,
            help="A header of every request; can be repeated. ${VARIABLE} in single quotes is "
            "replaced by the environment variable, to keep a secret off the command line.",
        ),
        click.Option(
            ["--transport"],
            type=click.Choice(["http", "sse"]),
            help="The transport for a URL; sse is the older one, and the default for .../sse.",
        ),
        click.Option(
            [*timeouts, "connect_timeout"],
            type=SecondsParam(),
            metavar="SECONDS",
            help=f"The longest wait for the first answer of a server; {_TIMEOUT:g} by default.",
        ),
        click.Option(
            ["--env"],
            multiple=True,
            metavar="NAME",
            help="An environment variable to pass to the server; can be repeated.",
        ),
        click.Option(
            ["--auth"],
            type=click.Choice(["oauth"]),
            help="oauth: log in to a URL in the browser, unless there is a stored login.",
        ),
    ]


def take_options(values: dict[str, Any]) -> ServerConnection:
    """Remove the values of `connection_options` from the parameters of a command."""
    return ServerConnection(
        headers=tuple(values.pop("headers")),
        transport=values.pop("transport"),
        timeout=values.pop("connect_timeout"),
        env=tuple(values.pop("env")),
        auth=values.pop("auth"),
    )


def is_mcp(target: str) -> bool:
    """Return whether a target is a URL or the path of a configuration file, existing or not."""
    return _is_address(target) or _file_of(target) is not None


def is_there(target: str) -> bool:
    """Return whether a target is a configuration file that exists."""
    found = _file_of(target)
    return found is not None and found[0].is_file()


def connect(
    target: str | Sequence[str], how: ServerConnection | None = None, *, model: str | None = None
) -> MCPTools:
    """Connect servers and return their tools; the end of the command closes the connections.

    Args:
        target: A URL, a file (`file.json:name` for one of its servers), or the words of a command
            that starts a server.
        how: The options for the connection.
        model: The name of the model that answers the requests of the servers for one.

    Raises:
        CommandError: None of the servers can be connected.
        UserError: The model cannot be loaded.
    """
    require_mcp()
    from agents_tools.concurrency.bridge import call_async_from_sync
    from agents_tools.mcp import MCPTools

    configs = _configs(target, how or ServerConnection())
    with suppress_mcp_logs():
        tools = MCPTools(call_async_from_sync(_connected, configs, model))
    if (ctx := click.get_current_context(silent=True)) is not None:
        ctx.call_on_close(tools.close)
    failures = list(tools.failures.values())
    if len(failures) == len(configs):
        more = "".join(f"\n{error}" for error in failures[1:])
        raise CommandError(f"{failures[0]}{more}", hint=_hint(failures)) from failures[0]
    for failure in failures:
        console_errors("warning:", str(failure))
    return tools


def connect_words(
    words: Sequence[str], how: ServerConnection, *, model: str | None = None
) -> MCPTools:
    """Connect servers that are typed as one word, or as the words of a command.

    Args:
        words: A URL, a file, or a command in one word; or the words of a command.
        how: The options for the connection.
        model: As for `connect`.

    Raises:
        CommandError: None of the servers can be connected.
        UserError: The model cannot be loaded.
    """
    if len(words) > 1:
        return connect(words, how, model=model)
    typed = words[0]
    try:
        parts = shlex.split(typed)
    except ValueError as error:
        raise click.UsageError(f"the command {typed!r} cannot be read: {error}.") from error
    if not parts:
        raise click.UsageError("the command is empty.")
    # The last word of a command can look like a configuration file.
    is_target = is_mcp(typed) and (len(parts) == 1 or is_there(typed))
    return connect(typed if is_target else parts, how, model=model)


def require_mcp() -> None:
    """Check that MCP is installed.

    Raises:
        CommandError: MCP is not installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("mcp", "jsonschema_rs")):
        raise CommandError(
            'MCP needs the extra "mcp".', hint='Install it: pip install "agents-tools[mcp]"'
        )


async def _connected(configs: Sequence[MCPServerConfig], model: str | None) -> MCPToolManager:
    from agents_tools.mcp import MCPToolManager

    # `call` and `run` pass the questions of servers to the person.
    with prints_on_stderr():
        manager = MCPToolManager(ask=True if can_ask() else None, sample=model)
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(config: MCPServerConfig) -> None:
        settings = {part.name: getattr(config, part.name) for part in fields(config)}
        async with room:
            try:
                await manager.add_server(settings.pop("name"), **settings)
            except MCPError as error:
                manager.failures[config.name] = error

    try:
        async with asyncio.TaskGroup() as group:
            for config in configs:
                group.create_task(one(config))
    except BaseException:
        await manager.cleanup()
        raise
    return manager


def _hint(failures: Sequence[MCPError]) -> str | None:
    if any(error.code in {401, 403} or "status 401" in str(error) for error in failures):
        return (
            "If the server needs a login: --auth oauth; a token: "
            "--header 'Authorization: Bearer ${NAME}'"
        )
    return None


@contextlib.contextmanager
def suppress_mcp_logs() -> Generator[None]:
    """Suppress log output of the MCP client: the command reports the failures itself."""
    logger, nobody = logging.getLogger("agents_tools.mcp"), logging.NullHandler()
    logger.addHandler(nobody)
    try:
        yield
    finally:
        logger.removeHandler(nobody)


# --- which servers


def configs_of(target: str) -> list[MCPServerConfig]:
    """Return the configurations of the servers that a target names, without connecting them."""
    return _configs(target, ServerConnection())


def _configs(target: str | Sequence[str], how: ServerConnection) -> list[MCPServerConfig]:
    if not isinstance(target, str):
        found = [_of_command(target)]
    elif _is_address(target):
        found = [_of_address(target)]
    else:
        found = _of_file(target)
    if how.timeout is not None:
        found = [replace(config, connect_timeout=how.timeout) for config in found]
    if not (how.headers or how.transport or how.env or how.auth):
        return found
    if len(found) > 1:
        raise CommandError(
            "--header, --transport, --env and --auth are for one server, and "
            f"{target} has {len(found)}.",
            hint=f"Name the one: {target}:{found[0].name}",
        )
    return [_adjusted(found[0], how)]


def _of_command(words: Sequence[str]) -> MCPServerConfig:
    from agents_tools.mcp import MCPServerConfig

    program, *args = words
    if not args and program.endswith(".py") and Path(program).is_file():
        shown = shlex.quote(program)
        raise CommandError(
            f"{program} is not a command but a Python file.",
            hint=f"List its tools: agents-tools list {shown}. If it is an MCP server: "
            f"agents-tools mcp list -- python {shown}",
        )
    return MCPServerConfig(
        name=Path(program).name or program,
        command=program,
        args=tuple(args),
        prefix=None,
        connect_timeout=_TIMEOUT,
    )


def _of_address(url: str) -> MCPServerConfig:
    from agents_tools.mcp.config import server_config

    try:
        name = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError as error:
        raise CommandError(f"{url} is not a valid URL: {error}.") from error
    return server_config(name or "server", url=url, prefix=None, connect_timeout=_TIMEOUT)


def _of_file(target: str) -> list[MCPServerConfig]:
    from agents_tools.mcp import load_config

    path, only = _file_of(target) or (Path(target), "")
    if not path.is_file():
        raise CommandError(f"file {path} not found.")
    found = load_config(path, connect_timeout=_TIMEOUT)
    if not found:
        raise CommandError(f"{path} has no enabled MCP servers.")
    chosen = [config for config in found if not only or config.name == only]
    if not chosen:
        names = ", ".join(config.name for config in found)
        raise CommandError(f"{path} has no MCP server {only!r}.", hint=f"Servers: {names}.")
    return chosen


def _adjusted(config: MCPServerConfig, how: ServerConnection) -> MCPServerConfig:
    """Return a server configuration with the options of the command line."""
    if config.transport == "stdio":
        if how.headers or how.transport or how.auth:
            raise CommandError(
                f"--header, --transport and --auth require a URL, but {config.name!r} is a "
                "command.",
                hint="Pass settings of a command in its environment: --env NAME",
            )
        if missing := [name for name in how.env if name not in os.environ]:
            raise CommandError(f"the variable {missing[0]} is not set.")
        return replace(config, inherit_env=(*config.inherit_env, *how.env))
    if how.env:
        raise CommandError(
            f"--env requires a command, but {config.name!r} is a URL.",
            hint="Pass settings of a URL in its headers: --header 'Name: ${VARIABLE}'",
        )
    headers = {name: _with_variables(name, value) for name, value in how.headers}
    transport: Any = how.transport or config.transport
    return replace(
        config,
        transport=transport,
        headers={**config.headers, **headers},
        auth=how.auth or config.auth,
    )


def _is_address(target: str) -> bool:
    return re.match(r"https?://", target, re.IGNORECASE) is not None


def _file_of(target: str) -> tuple[Path, str] | None:
    """Return a configuration file and the name of a server in it, which can be empty."""
    for place, name in ((target, ""), target.rpartition(":")[::2]):
        path = Path(place)
        if place and path.suffix.lower() in {".json", ".jsonc", ".toml"}:
            return path, name
    return None


# --- headers


_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _read_headers(
    ctx: click.Context, param: click.Parameter, headers: tuple[str, ...]
) -> list[tuple[str, str]]:
    read: list[tuple[str, str]] = []
    for one in headers:
        name, colon, value = (part.strip() for part in one.partition(":"))
        if not colon or not _TOKEN.fullmatch(name) or not value.isprintable():
            # The header is not shown, because it may contain a secret.
            raise click.BadParameter("a header is written 'Name: value', on one line.", ctx, param)
        read.append((name, value))
    return read


def _with_variables(header: str, value: str) -> str:
    def variable(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise CommandError(f"the variable {found[1]} of the header {header} is not set.")
        return os.environ[found[1]]

    return _VARIABLE.sub(variable, value)
